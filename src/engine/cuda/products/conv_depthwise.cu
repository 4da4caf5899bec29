// SPDX-License-Identifier: Apache-2.0
// Convolutions of each channel by itself. A thread has some channels of a strip, a few pixels wide,
// and goes down its rows: every number of a row of the input is loaded and converted once, and
// added to all rows of the output that it belongs to, whose sums stay in registers, as the taps do.
// Where the number of taps is not known to the compiler, or there are too many of them for that, a
// thread has one row of pixels and loads the rows of its window one after another.
#include "engine/cuda/products/conv_numbers.cuh"

namespace conv
{

enum { THREADS = 128 }; // of a block, at most

// Strips of a dilated convolution take every dilation-th row and column, so that their windows
// overlap as those of any other. Offsets are in elements; a map has fewer than 2^31.
struct depthwise {
    conv_finish finish;
    const void *x, *w;
    void       *y;
    int         n, c, in_h, in_w, out_h, out_w, kernel_h, kernel_w, stride_h, stride_w;
    int         dilation_h, dilation_w, pad_top, pad_left;
    int         rows;                     // of a strip
    int         phases_h, phases_w;       // into which strips divide an axis
    int         strips_h, strips_w;       // of a sample
    int         x_row, x_pixel, x_sample; // from one to the next
    int         y_row, y_pixel, y_sample;
    int         residual_row, residual_pixel, residual_sample;
};

// A strip's first channel, sample, row and column.
struct strip {
    int c, n, y, x, rows, columns;
};

// Along one axis: a strip's first pixel, and how many it has.
__device__ __forceinline__ int part_of(int index, int size, int phases, int strips, int length,
                                       int *first)
{
    int phase = 0;
    if (phases > 1) {
        const int each = strips / phases;
        phase = index / each;
        index -= phase * each;
        size = (size - phase + phases - 1) / phases;
    }
    *first = phase + index * length * phases;
    return min(size - index * length, length);
}

// A block's threads have the channels and strips of a row. false: there is none for this thread.
template <int WIDTH> __device__ __forceinline__ bool place(const depthwise &p, int pixels, strip *s)
{
    const unsigned packs = p.c / WIDTH, index = blockIdx.y * blockDim.x + threadIdx.x;
    const unsigned across = index / packs;
    if (across >= (unsigned)p.strips_w)
        return false;
    s->c = (int)(index - across * packs) * WIDTH;
    s->n = blockIdx.x / p.strips_h;
    s->rows =
        part_of(blockIdx.x - s->n * p.strips_h, p.out_h, p.phases_h, p.strips_h, p.rows, &s->y);
    s->columns = part_of((int)across, p.out_w, p.phases_w, p.strips_w, pixels, &s->x);
    return s->rows > 0 && s->columns > 0;
}

// Sums of COUNT neighbours, from the strip's pixel `first` on, to what is stored.
template <class T, int WIDTH, int COUNT>
__device__ __forceinline__ void emit_some(const depthwise &p, const strip &s, int y, int first,
                                          const float *sum)
{
    const conv_finish &f = p.finish;
    float              v[COUNT * WIDTH], bias[WIDTH] = {}, other[COUNT * WIDTH] = {};
    const int          x = s.x + first * p.phases_w;
    if (f.bias)
        load<T, WIDTH>((const T *)f.bias + s.c, bias);
    if (f.residual_kind != SAC_RESIDUAL_NONE) {
        const int from = s.n * p.residual_sample + y * p.residual_row + x * p.residual_pixel + s.c;
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            if (first + i < s.columns)
                load<T, WIDTH>((const T *)f.residual + (from + i * p.phases_w * p.residual_pixel),
                               other + i * WIDTH);
    }
#pragma unroll
    for (int i = 0; i < COUNT * WIDTH; i++)
        v[i] = sum[i] + bias[i % WIDTH];
    if (f.residual_kind == SAC_RESIDUAL_BEFORE)
#pragma unroll
        for (int i = 0; i < COUNT * WIDTH; i++)
            v[i] += other[i];
    activate_all(f.act, f.alpha, f.beta, v);
    end_channels<WIDTH>(f, s.c, v, other);
    if (f.residual_kind == SAC_RESIDUAL_AFTER)
#pragma unroll
        for (int i = 0; i < COUNT * WIDTH; i++)
            v[i] += other[i];
    const int to = s.n * p.y_sample + y * p.y_row + x * p.y_pixel + s.c;
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        if (first + i < s.columns)
            store<T, WIDTH>((T *)p.y + (to + i * p.phases_w * p.y_pixel), v + i * WIDTH);
}

// Eight numbers at a time, as registers are scarce.
template <class T, int WIDTH, int PIXELS>
__device__ __forceinline__ void emit(const depthwise &p, const strip &s, int y,
                                     const float (&sum)[PIXELS * WIDTH])
{
    constexpr int COUNT = PIXELS * WIDTH > 8 ? 8 / WIDTH : PIXELS;
#pragma unroll
    for (int first = 0; first < PIXELS; first += COUNT)
        emit_some<T, WIDTH, COUNT>(p, s, y, first, sum + first * WIDTH);
}

// Which of a strip's input columns are inside the map.
template <int COLUMNS> __device__ __forceinline__ unsigned inside_of(int first, int step, int size)
{
    unsigned mask = 0;
#pragma unroll
    for (int i = 0; i < COLUMNS; i++) {
        const int at = first + i * step;
        mask |= (at >= 0 && at < size ? 1u : 0u) << i;
    }
#ifdef __CUDA_ARCH__
    asm volatile("" : "+r"(mask)); // or the compiler compares again for each row
#endif
    return mask;
}

// From a sample's element `from` on. Its bytes are counted in 32 bits, so that what is the same for
// all threads is not added up by each.
template <class T, int WIDTH, int COLUMNS>
__device__ __forceinline__ void fetch(const T *x, int from, int step, unsigned mask,
                                      pack<T, WIDTH> (&row)[COLUMNS])
{
#pragma unroll
    for (int i = 0; i < COLUMNS; i++) {
        const unsigned at = (unsigned)(from + i * step) * (unsigned)sizeof(T);
        row[i] = {};
        if (mask >> i & 1)
            row[i] = pack<T, WIDTH>::from((const T *)((const char *)x + at));
    }
}

// ---- down the rows ----

// Row i of those that a turn takes, to the sums of the outputs it belongs to: sum[m] is of the
// output that began m turns ago.
template <int WIDTH, int KERNEL, int STRIDE, int PIXELS, int COLUMNS, int SLOTS>
__device__ __forceinline__ void add_row(int i, int turn, int rows, const float (&v)[COLUMNS][WIDTH],
                                        const float (&taps)[KERNEL * KERNEL][WIDTH],
                                        float (&sum)[SLOTS][PIXELS * WIDTH])
{
#pragma unroll
    for (int m = 0; m < SLOTS; m++) {
        const int r = i + STRIDE * m;
        if (r < KERNEL && (unsigned)(turn - m) < (unsigned)rows) {
#pragma unroll
            for (int s = 0; s < KERNEL; s++)
#pragma unroll
                for (int at = 0; at < PIXELS * WIDTH; at++)
                    sum[m][at] = fmaf(v[at / WIDTH * STRIDE + s][at % WIDTH],
                                      taps[r * KERNEL + s][at % WIDTH], sum[m][at]);
        }
    }
}

template <class T, int WIDTH, int KERNEL, int STRIDE, int PIXELS>
__global__ void __launch_bounds__(THREADS, KERNEL == 7                 ? 2
                                           : WIDTH == 2 && KERNEL == 3 ? 4
                                                                       : 3)
    down_kernel(const __grid_constant__ depthwise p)
{
    early_begin();
    constexpr int COLUMNS = (PIXELS - 1) * STRIDE + KERNEL, SLOTS = (KERNEL + STRIDE - 1) / STRIDE;
    strip         s;
    if (!place<WIDTH>(p, PIXELS, &s))
        return;
    const T *x = (const T *)p.x + s.n * (int64_t)p.x_sample, *w = (const T *)p.w + s.c;
    float    taps[KERNEL * KERNEL][WIDTH], sum[SLOTS][PIXELS * WIDTH] = {};
#pragma unroll
    for (int i = 0; i < KERNEL * KERNEL; i++)
        load<T, WIDTH>(w + i * p.c, taps[i]);
    const int      first = s.x * STRIDE - p.pad_left;
    const unsigned mask = inside_of<COLUMNS>(first, p.phases_w, p.in_w);
    const int      step = p.phases_w * p.x_pixel;
    const int      turns = s.rows + SLOTS - 1;
    int            y = s.y * STRIDE - p.pad_top;
    pack<T, WIDTH> next[COLUMNS];
    const int      from = first * p.x_pixel + s.c;
    if (y >= 0 && y < p.in_h)
        fetch(x, from + y * p.x_row, step, mask, next);
#pragma unroll 1
    for (int turn = 0; turn < turns; turn++) {
#pragma unroll
        for (int i = 0; i < STRIDE; i++) {
            const bool inside = y >= 0 && y < p.in_h;
            float      v[COLUMNS][WIDTH];
            if (inside) {
#pragma unroll
                for (int k = 0; k < COLUMNS; k++)
                    next[k].get(v[k]);
            }
            y += p.phases_h;
            if (y >= 0 && y < p.in_h)
                fetch(x, from + y * p.x_row, step, mask, next);
            if (inside)
                add_row<WIDTH, KERNEL, STRIDE, PIXELS>(i, turn, s.rows, v, taps, sum);
        }
        const int row = turn - (SLOTS - 1);
        if (row >= 0)
            emit<T, WIDTH, PIXELS>(p, s, s.y + row * p.phases_h, sum[SLOTS - 1]);
#pragma unroll
        for (int m = SLOTS - 1; m >= 0; m--)
#pragma unroll
            for (int at = 0; at < PIXELS * WIDTH; at++)
                sum[m][at] = m > 0 ? sum[m > 0 ? m - 1 : 0][at] : 0;
    }
}

// ---- one row, of windows of any height ----

template <class T, int WIDTH, int KERNEL, int PIXELS>
__global__ void __launch_bounds__(THREADS) across_kernel(const __grid_constant__ depthwise p)
{
    early_begin();
    constexpr int COLUMNS = PIXELS - 1 + KERNEL;
    strip         s;
    if (!place<WIDTH>(p, PIXELS, &s))
        return;
    const T       *x = (const T *)p.x + s.n * (int64_t)p.x_sample, *w = (const T *)p.w + s.c;
    float          sum[PIXELS * WIDTH] = {};
    const int      first = s.x - p.pad_left;
    const unsigned mask = inside_of<COLUMNS>(first, p.phases_w, p.in_w);
    const int      step = p.phases_w * p.x_pixel;
    const int      from = first * p.x_pixel + s.c;
#pragma unroll 1
    for (int r = 0; r < p.kernel_h; r++) {
        const int      y = s.y * p.stride_h + r * p.dilation_h - p.pad_top;
        pack<T, WIDTH> row[COLUMNS], taps[KERNEL];
        if (y < 0 || y >= p.in_h)
            continue;
        fetch(x, from + y * p.x_row, step, mask, row);
#pragma unroll
        for (int i = 0; i < KERNEL; i++)
            taps[i] = pack<T, WIDTH>::from(w + (r * KERNEL + i) * p.c);
        float v[COLUMNS][WIDTH];
#pragma unroll
        for (int i = 0; i < COLUMNS; i++)
            row[i].get(v[i]);
#pragma unroll
        for (int i = 0; i < KERNEL; i++) {
            float tap[WIDTH];
            taps[i].get(tap);
#pragma unroll
            for (int at = 0; at < PIXELS * WIDTH; at++)
                sum[at] = fmaf(v[at / WIDTH + i][at % WIDTH], tap[at % WIDTH], sum[at]);
        }
    }
    emit<T, WIDTH, PIXELS>(p, s, s.y, sum);
}

// ---- any ----

template <class T, int WIDTH, int PIXELS>
__global__ void __launch_bounds__(THREADS) any_kernel(const __grid_constant__ depthwise p)
{
    early_begin();
    strip s;
    if (!place<WIDTH>(p, PIXELS, &s))
        return;
    const T *x = (const T *)p.x + s.n * (int64_t)p.x_sample, *w = (const T *)p.w + s.c;
    float    sum[PIXELS * WIDTH] = {};
    for (int r = 0; r < p.kernel_h; r++) {
        const int y = s.y * p.stride_h + r * p.dilation_h - p.pad_top;
        if (y < 0 || y >= p.in_h)
            continue;
        for (int i = 0; i < p.kernel_w; i++) {
            const int      first = s.x * p.stride_w + i * p.dilation_w - p.pad_left;
            const unsigned mask = inside_of<PIXELS>(first, p.stride_w, p.in_w);
            pack<T, WIDTH> row[PIXELS];
            float          tap[WIDTH];
            fetch(x, y * p.x_row + first * p.x_pixel + s.c, p.stride_w * p.x_pixel, mask, row);
            load<T, WIDTH>(w + (r * p.kernel_w + i) * p.c, tap);
#pragma unroll
            for (int pixel = 0; pixel < PIXELS; pixel++) {
                float v[WIDTH];
                row[pixel].get(v);
#pragma unroll
                for (int k = 0; k < WIDTH; k++)
                    sum[pixel * WIDTH + k] = fmaf(v[k], tap[k], sum[pixel * WIDTH + k]);
            }
        }
    }
    emit<T, WIDTH, PIXELS>(p, s, s.y, sum);
}

// ---- launching ----

static int strips_of(int size, int phases, int length)
{
    return phases * ((size + phases * length - 1) / (phases * length));
}

// The block that leaves the fewest threads without work. Small ones spread a small map over the
// whole GPU.
static int block_of(int threads, int64_t rows)
{
    const int most = threads * rows >= 1 << 16 ? THREADS : threads * rows >= 1 << 14 ? 64 : 32;
    int       best = most;
    for (int size = most; size >= 32 && size >= most / 2; size -= 32)
        if ((threads + size - 1) / size * size < (threads + best - 1) / best * best)
            best = size;
    return best;
}

// Strips of `pixels` by p.rows.
template <class KERNEL>
static cudaError_t start(KERNEL kernel, depthwise p, int width, int pixels, cudaStream_t stream)
{
    p.strips_w = strips_of(p.out_w, p.phases_w, pixels);
    p.strips_h = strips_of(p.out_h, p.phases_h, p.rows);
    const int64_t rows = (int64_t)p.n * p.strips_h;
    const int     threads = p.strips_w * (p.c / width), block = block_of(threads, rows);
    const dim3    grid((unsigned)rows, (unsigned)((threads + block - 1) / block));
    CUDA_LAUNCH(kernel, grid, (unsigned)block, stream, p);
    return cudaGetLastError();
}

template <class T, int WIDTH, int KERNEL>
static cudaError_t go_down(const depthwise &p, cudaStream_t stream)
{
    return p.stride_h == 1 ? start(down_kernel<T, WIDTH, KERNEL, 1, 4>, p, WIDTH, 4, stream)
                           : start(down_kernel<T, WIDTH, KERNEL, 2, 4>, p, WIDTH, 4, stream);
}

template <class T, int WIDTH, int KERNEL>
static cudaError_t go_across(depthwise p, cudaStream_t stream)
{
    p.rows = p.phases_h = 1;
    return start(across_kernel<T, WIDTH, KERNEL, 8>, p, WIDTH, 8, stream);
}

template <class T, int WIDTH, int PIXELS>
static cudaError_t go_anyhow(depthwise p, cudaStream_t stream)
{
    p.rows = p.phases_h = p.phases_w = 1;
    return start(any_kernel<T, WIDTH, PIXELS>, p, WIDTH, PIXELS, stream);
}

template <class T> static bool aligned(const void *p, int64_t pixel, int64_t sample, int width)
{
    return (uintptr_t)p % (sizeof(T) * width) == 0 && pixel % width == 0 && sample % width == 0;
}

// Can `width` channels be loaded and stored at once?
template <class T> static bool fits(const depthwise &p, int width)
{
    const conv_finish &f = p.finish;
    return p.c % width == 0 && aligned<T>(p.x, p.x_pixel, p.x_sample, width) &&
           aligned<T>(p.y, p.y_pixel, p.y_sample, width) && aligned<T>(p.w, 0, 0, width) &&
           (!f.residual || aligned<T>(f.residual, p.residual_pixel, p.residual_sample, width)) &&
           (!f.bias || aligned<T>(f.bias, 0, 0, width));
}

template <class T> static cudaError_t launch(const depthwise &p, cudaStream_t stream)
{
    constexpr int WIDE = 16 / sizeof(T);
    const bool    dilated = p.dilation_h != 1 || p.dilation_w != 1;
    const bool    down = p.kernel_h == p.kernel_w && p.stride_h == p.stride_w &&
                      (p.stride_h == 1 || (p.stride_h == 2 && !dilated));
    if (!fits<T>(p, 2))
        return go_anyhow<T, 1, 4>(p, stream);
    if constexpr (sizeof(T) == 2)
        if (down && p.kernel_h == 3 && fits<T>(p, 4))
            return go_down<T, 4, 3>(p, stream);
    if (down && p.kernel_h == 3)
        return go_down<T, 2, 3>(p, stream);
    if (down && p.kernel_h == 5)
        return go_down<T, 2, 5>(p, stream);
    if (down && p.kernel_h == 7)
        return go_down<T, 2, 7>(p, stream);
    if (p.stride_w == 1 && p.stride_h == 1 && p.kernel_w == 7)
        return go_across<T, 2, 7>(p, stream);
    if (p.stride_w == 1 && p.stride_h == 1 && p.kernel_w == 9)
        return go_across<T, 2, 9>(p, stream);
    if (p.stride_w == 1 && p.stride_h == 1 && p.kernel_w == 11)
        return go_across<T, 2, 11>(p, stream);
    return fits<T>(p, WIDE) ? go_anyhow<T, WIDE, 4>(p, stream) : go_anyhow<T, 2, 4>(p, stream);
}

template <class V> static void swap(V &a, V &b)
{
    const V old = a;
    a = b;
    b = old;
}

// Rows become columns.
static void turn(depthwise &p)
{
    swap(p.in_h, p.in_w);
    swap(p.out_h, p.out_w);
    swap(p.kernel_h, p.kernel_w);
    swap(p.stride_h, p.stride_w);
    swap(p.dilation_h, p.dilation_w);
    swap(p.phases_h, p.phases_w);
    swap(p.pad_top, p.pad_left);
    swap(p.x_row, p.x_pixel);
    swap(p.y_row, p.y_pixel);
    swap(p.residual_row, p.residual_pixel);
}

static depthwise read(const conv_depthwise_params &from)
{
    depthwise p = {};
    p.finish = from.finish;
    p.x = from.x, p.w = from.w, p.y = from.y;
    p.n = from.n, p.c = from.c;
    p.in_h = from.in_h, p.in_w = from.in_w, p.out_h = from.out_h, p.out_w = from.out_w;
    p.kernel_h = from.kernel_h, p.kernel_w = from.kernel_w;
    p.stride_h = from.stride_h, p.stride_w = from.stride_w;
    p.dilation_h = from.dilation_h, p.dilation_w = from.dilation_w;
    p.pad_top = from.pad_top, p.pad_left = from.pad_left;
    p.rows = from.rows;
    p.phases_h = p.dilation_h, p.phases_w = p.dilation_w;
    p.x_pixel = (int)from.x_pixel, p.x_row = (int)(from.in_w * from.x_pixel);
    p.x_sample = (int)from.x_sample;
    p.y_pixel = (int)from.y_pixel, p.y_row = (int)(from.out_w * from.y_pixel);
    p.y_sample = (int)from.y_sample;
    p.residual_pixel = (int)from.finish.residual_pixel;
    p.residual_row = (int)(from.out_w * from.finish.residual_pixel);
    p.residual_sample = (int)from.finish.residual_sample;
    if (p.kernel_w == 1 && p.kernel_h > 1) // a row of taps, upright
        turn(p);
    return p;
}

} // namespace conv

extern "C" cudaError_t conv_launch_depthwise(const conv_depthwise_params *p, cudaStream_t stream)
{
    const conv::depthwise d = conv::read(*p);
    return p->half ? conv::launch<__half>(d, stream) : conv::launch<float>(d, stream);
}
