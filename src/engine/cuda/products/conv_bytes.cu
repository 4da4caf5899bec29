// SPDX-License-Identifier: Apache-2.0
// Convolutions of 8-bit numbers as an implicit matrix product: pixels by taps, times taps by output
// channels, with everything behind the sums in the same pass. A block computes MS pixels by NS
// channels; pieces of 128 taps go through shared memory in STAGES turns, fetched ahead. The same
// pieces serve the tensor cores of any generation (conv_bytes.cuh).
#include "engine/cuda/products/conv_pieces.cuh"

namespace conv
{
/* ---- behind the sums ---- */
// N numbers as they lie in memory, so that several loads are under way at once.
template <int N> struct raw_numbers {
    uint32_t                        w[N];
    __device__ __forceinline__ void load(const void *p, int kind)
    {
        if (kind == CONV_F32)
            load_words(p, w);
        else if (kind == CONV_F16)
            load_words(p, *reinterpret_cast<uint32_t(*)[N / 2]>(&w));
        else
            load_words(p, *reinterpret_cast<uint32_t(*)[N / 4]>(&w));
    }
    __device__ __forceinline__ void get(int kind, float (&v)[N]) const
    {
#pragma unroll
        for (int i = 0; i < N; i++) {
            const uint32_t byte = w[i / 4] >> i % 4 * 8 & 255;
            if (kind == CONV_F32)
                v[i] = __uint_as_float(w[i]);
            else if (kind == CONV_F16)
                v[i] = __half2float(__ushort_as_half((unsigned short)(w[i / 2] >> i % 2 * 16)));
            else
                v[i] = kind == CONV_S8   ? (float)(int8_t)byte
                       : kind == CONV_U8 ? (float)byte
                                         : float_of_f8(byte);
        }
    }
};

// Adding 1.5 * 2^23 rounds to the nearest even integer, which is then in the low bits.
__device__ __forceinline__ uint32_t byte_of(float v, float zero, float low, float high)
{
    const float rounded = __fadd_rn(fminf(fmaxf(v, low - zero), high - zero), 12582912.0f);
    return __float_as_uint(__fadd_rn(rounded, zero));
}

template <int N>
__device__ __forceinline__ void bytes_of(const conv_bytes_params &b, const float (&v)[N],
                                         uint32_t (&w)[N / 4])
{
    if (b.y_kind == CONV_F8) {
#pragma unroll
        for (int i = 0; i < N / 4; i++) {
            w[i] = f8_of(v[4 * i], v[4 * i + 1]) | f8_of(v[4 * i + 2], v[4 * i + 3]) << 16;
        }
        return;
    }
    const float low = b.y_kind == CONV_S8 ? -128.0f : 0.0f, high = low + 255.0f;
#pragma unroll
    for (int i = 0; i < N / 4; i++) {
        uint32_t q[4];
#pragma unroll
        for (int j = 0; j < 4; j++)
            q[j] = byte_of(v[4 * i + j], b.y_zero, low, high);
        w[i] = __byte_perm(__byte_perm(q[0], q[1], 0x40), __byte_perm(q[2], q[3], 0x40), 0x5410);
    }
}

template <int N>
__device__ __forceinline__ void store_numbers(const conv_bytes_params &b, void *to,
                                              const float (&v)[N])
{
    if (b.y_kind == CONV_F32) {
        uint32_t w[N];
#pragma unroll
        for (int i = 0; i < N; i++)
            w[i] = __float_as_uint(v[i]);
        store_words(to, w);
    } else if (b.y_kind == CONV_F16) {
        uint32_t w[N / 2];
#pragma unroll
        for (int i = 0; i < N / 2; i++)
            w[i] = word_of(v[2 * i], v[2 * i + 1]);
        store_words(to, w);
    } else {
        uint32_t w[N / 4];
        bytes_of(b, v, w);
        store_words(to, w);
    }
}

// What the sums of N channels are multiplied with, and what is added.
template <int N> struct bytes_channels {
    float scale[N], bias[N];
};

// N channels of a pixel from k on, of which all are stored at once where `wide`; other: the
// residual.
template <int N>
__device__ __forceinline__ void bytes_finish(const conv_bytes_params &b, bool wide,
                                             const bytes_channels<N> &channels, int64_t y_at, int k,
                                             const float (&other)[N], float (&v)[N])
{
    const conv_finish &f = b.at.finish;
#pragma unroll
    for (int i = 0; i < N; i++)
        v[i] = fmaf(v[i], channels.scale[i], channels.bias[i]);
    if (f.residual_kind == SAC_RESIDUAL_BEFORE)
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] += b.residual_scale * (other[i] - b.residual_zero);
    activate_all(f.act, f.alpha, f.beta, v);
    if (f.residual_kind == SAC_RESIDUAL_AFTER)
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] += b.residual_scale * (other[i] - b.residual_zero);
    if (b.y_inverse != 1)
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] *= b.y_inverse;
    if (wide) {
        store_numbers(b, (char *)b.at.y + (y_at + k) * number_bytes(b.y_kind), v);
        return;
    }
    uint32_t bytes[N / 4];
    if (b.y_kind >= CONV_S8)
        bytes_of(b, v, bytes);
#pragma unroll
    for (int i = 0; i < N; i++) {
        if (k + i >= b.at.out_c)
            continue;
        if (b.y_kind == CONV_F32)
            ((float *)b.at.y)[y_at + k + i] = v[i];
        else if (b.y_kind == CONV_F16)
            ((__half *)b.at.y)[y_at + k + i] = __float2half_rn(v[i]);
        else
            ((uint8_t *)b.at.y)[y_at + k + i] = (uint8_t)(bytes[i / 4] >> i % 4 * 8);
    }
}

// One by one, where they cannot be loaded at once.
template <int N>
__device__ __forceinline__ void residual_at(const conv_bytes_params &b, int64_t at, int k,
                                            float (&other)[N])
{
    const void *from = b.at.finish.residual;
#pragma unroll
    for (int i = 0; i < N; i++)
        other[i] = from && k + i < b.at.out_c ? number_at(from, b.residual_kind, at + k + i) : 0;
}

// Scales and biases of the block's channels, which its threads read when its sums are there.
template <class S>
__device__ __forceinline__ void bytes_prepare(const conv_bytes_params &b, float *channels, int k)
{
    for (int i = threadIdx.x; i < S::NS; i += S::THREADS) {
        channels[i] = scale_at(b, k + i);
        channels[S::NS + i] = bias_at(b, k + i);
    }
}

// Where the two rows of a thread in each 16 (of a warp) lie; y below 0: beyond the last pixel.
struct bytes_rows {
    int                             y[2], residual[2];
    __device__ __forceinline__ void find(const conv_tile_params &p, unsigned m0)
    {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const unsigned m = m0 + i * 8, n = m / (unsigned)p.pixels,
                           pixel = m - n * (unsigned)p.pixels;
            y[i] = m < p.m ? (int)(n * p.y_sample + pixel * p.y_pixel) : -1;
            residual[i] = (int)(n * p.finish.residual_sample + pixel * p.finish.residual_pixel);
        }
    }
};

template <class S>
__device__ __forceinline__ void put_aside(uint4 *shared, const uint32_t (&sum)[S::MT][S::SUMS])
{
    constexpr int GROUPS = S::SUMS * 2 / S::GROUP, QUADS = S::RUN / 4, ROWS = 2 * S::MT;
#pragma unroll
    for (int g = 0; g < GROUPS; g++)
#pragma unroll
        for (int i = 0; i < ROWS; i++)
#pragma unroll
            for (int q = 0; q < QUADS; q++) {
                const uint32_t *from = &sum[i / 2][(g * S::GROUP / 8 + q * 2) * 4 + i % 2 * 2];
                shared[((g * ROWS + i) * QUADS + q) * S::THREADS] =
                    make_uint4(from[0], from[1], from[4], from[5]);
            }
}

// RUN channels from k on of two rows, the sums of which begin at `sums`.
template <class S>
__device__ __forceinline__ void bytes_store_run(const conv_bytes_params &b, const bytes_rows &rows,
                                                const uint4 *sums, const float *factors, int k)
{
    constexpr int          QUADS = S::RUN / 4;
    const void            *residual = b.at.finish.residual;
    const bool             wide = b.at.wide && k + S::RUN <= b.at.out_c;
    bytes_channels<S::RUN> channels;
    raw_numbers<S::RUN>    raw[2];
    if (residual && wide)
#pragma unroll
        for (int i = 0; i < 2; i++)
            if (rows.y[i] >= 0)
                raw[i].load((const char *)residual +
                                (int64_t)(rows.residual[i] + k) * number_bytes(b.residual_kind),
                            b.residual_kind);
    floats_at(factors, channels.scale);
    floats_at(factors + S::NS, channels.bias);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float v[S::RUN], other[S::RUN];
        if (rows.y[i] < 0)
            continue;
#pragma unroll
        for (int q = 0; q < QUADS; q++) {
            const uint4 four = sums[(i * QUADS + q) * S::THREADS];
            v[4 * q] = sum_of<S::KIND>(four.x);
            v[4 * q + 1] = sum_of<S::KIND>(four.y);
            v[4 * q + 2] = sum_of<S::KIND>(four.z);
            v[4 * q + 3] = sum_of<S::KIND>(four.w);
        }
        if (residual && wide)
            raw[i].get(b.residual_kind, other);
        else
            residual_at(b, rows.residual[i], k, other);
        bytes_finish(b, wide, channels, rows.y[i], k, other, v);
    }
}

// The sums go through shared memory, each thread's to itself: what is behind them is then a loop,
// where in registers it would be written out for each of them.
template <class S>
__device__ __forceinline__ void bytes_store(const conv_bytes_params &b, uint4 *shared,
                                            const float *factors, int64_t m0, int channel,
                                            const uint32_t (&sum)[S::MT][S::SUMS])
{
    constexpr int GROUPS = S::SUMS * 2 / S::GROUP, QUADS = S::RUN / 4;
    const int     lane = threadIdx.x & 31, warp = threadIdx.x >> 5,
              row = (S::HOPPER ? (warp >> 2) * S::MT * 64 + (warp & 3) * 16
                               : warp % (S::MS / 16 / S::MT) * S::MT * 16) +
                    (lane >> 2),
              first =
                  (S::HOPPER ? 0 : warp / (S::MS / 16 / S::MT) * S::SUMS * 2) + (lane & 3) * S::RUN;
    shared += threadIdx.x;
    put_aside<S>(shared, sum);
#pragma unroll 1
    for (int t = 0; t < S::MT; t++) {
        bytes_rows rows;
        rows.find(b.at, (unsigned)m0 + row + t * (S::HOPPER ? 64 : 16));
#pragma unroll 1
        for (int g = 0; g < GROUPS; g++) {
            const int at = first + g * S::GROUP;
            if (channel + at >= b.at.out_c)
                break;
            bytes_store_run<S>(b, rows, shared + (g * S::MT + t) * 2 * QUADS * S::THREADS,
                               factors + at, channel + at);
        }
    }
}

/* ---- the kernel ---- */

// A turn, and what is fetched ahead meanwhile.
template <class S>
__device__ __forceinline__ void bytes_step(const conv_bytes_params &b, uint8_t *stages, int channel,
                                           int turn, int turns, bytes_source<S> &source,
                                           uint32_t (&sum)[S::MT][S::SUMS])
{
    fetch_wait<S::AHEAD - 1>();
#ifdef BYTES_HOPPER
    if constexpr (S::HOPPER) {
        unit_sees();
        if (S::LAG == 0 && turn > 0)
            unit_wait<0>();
    }
#endif
    __syncthreads();
#ifdef BYTES_HOPPER
    if constexpr (S::HOPPER) {
        bytes_turn<S>(stages + turn % S::STAGES * S::STAGE, turn == 0, sum);
        if (S::LAG == 1 && turn > 0)
            unit_wait<1>();
    }
#endif
    const int ahead = turn + S::AHEAD;
    if (ahead < turns) {
        source.fetch(b, stages + ahead % S::STAGES * S::STAGE, channel, ahead);
        source.next(b.at);
    }
    fetch_commit();
    if constexpr (!S::HOPPER)
        bytes_turn<S>(stages + turn % S::STAGES * S::STAGE, turn == 0, sum);
}

template <class S>
__global__ void __launch_bounds__(S::THREADS, S::RESIDENT)
    bytes_kernel(const __grid_constant__ conv_bytes_params b)
{
    early_begin();
#ifndef BYTES_HOPPER
    if constexpr (S::HOPPER)
        return; // its launcher asks the GPU before
    else
#endif
    {
        const conv_tile_params &p = b.at;
        uint8_t                *stages = block_memory();
        const int n_tiles = (p.out_c + S::NS - 1) / S::NS, first_k = blockIdx.x % n_tiles * S::NS;
        const int64_t   first_m = (int64_t)(blockIdx.x / n_tiles) * S::MS;
        const int       turns = (p.taps + BYTES_TAPS - 1) / BYTES_TAPS;
        uint32_t        sum[S::MT][S::SUMS];
        float          *factors = (float *)(stages + S::STAGES * S::STAGE);
        bytes_source<S> source;
        bytes_prepare<S>(b, factors, first_k);
        source.begin(p, first_m);
#pragma unroll 1
        for (int i = 0; i < S::AHEAD; i++) {
            if (i < turns) {
                source.fetch(b, stages + i * S::STAGE, first_k, i);
                source.next(p);
            }
            fetch_commit();
        }
        // The first turn is by itself: what begins the sums would else be inside the pipeline of
        // Hopper's unit, which the compiler then empties after every instruction.
        if constexpr (!S::HOPPER)
#pragma unroll
            for (int i = 0; i < S::MT * S::SUMS; i++)
                sum[i / S::SUMS][i % S::SUMS] = 0;
        bytes_step<S>(b, stages, first_k, 0, turns, source, sum);
        for (int turn = 1; turn < turns; turn++)
            bytes_step<S>(b, stages, first_k, turn, turns, source, sum);
        fetch_wait<0>();
#ifdef BYTES_HOPPER
        if constexpr (S::HOPPER)
            unit_wait<0>();
#endif
        __syncthreads();
        bytes_store<S>(b, (uint4 *)stages, factors, first_m, first_k, sum);
    }
}

/* ---- the plain kernel ---- */

enum { PLAIN_THREADS = 256, PLAIN_RUN = 4 };

template <int KIND>
__device__ __forceinline__ void bytes_add(const uint8_t *x, uint8_t w, int zero, uint32_t &sum)
{
    if constexpr (KIND == CONV_BYTES_F8)
        sum = __float_as_uint(__uint_as_float(sum) + (x ? float_of_f8(*x) * float_of_f8(w) : 0));
    else {
        const int v = !x ? zero : KIND == CONV_BYTES_S8 ? (int)(int8_t)*x : (int)*x;
        sum += (uint32_t)(v * (int8_t)w);
    }
}

// A channel's sum at a pixel whose window begins at (y, x).
template <int KIND>
__device__ __forceinline__ uint32_t plain_sum(const conv_bytes_params &b, int64_t n, int y, int x,
                                              int k)
{
    const conv_tile_params &p = b.at;
    const int               depth = p.in_c / b.groups, group = k / (p.out_c / b.groups);
    const uint8_t          *sample = (const uint8_t *)p.x + n * p.x_sample + group * depth,
                  *w = (const uint8_t *)p.w + (int64_t)k * p.kernel_h * p.kernel_w * b.depth;
    uint32_t sum = 0;
    for (int r = 0; r < p.kernel_h; r++)
        for (int s = 0; s < p.kernel_w; s++, w += b.depth) {
            const int  at_y = y + r * p.dilation_h, at_x = x + s * p.dilation_w;
            const bool inside =
                (unsigned)at_y < (unsigned)p.in_h && (unsigned)at_x < (unsigned)p.in_w;
            const uint8_t *from = sample + ((int64_t)at_y * p.in_w + at_x) * p.x_pixel;
            for (int c = 0; c < depth; c++)
                bytes_add<KIND>(inside ? from + c : nullptr, w[c], b.x_zero, sum);
        }
    return sum;
}

template <int KIND>
__global__ void __launch_bounds__(PLAIN_THREADS)
    bytes_plain_kernel(const __grid_constant__ conv_bytes_params b)
{
    early_begin();
    const conv_tile_params &p = b.at;
    const int64_t           i = (int64_t)blockIdx.x * PLAIN_THREADS + threadIdx.x;
    const int     runs = (p.out_c + PLAIN_RUN - 1) / PLAIN_RUN, k = (int)(i % runs) * PLAIN_RUN;
    const int64_t m = i / runs;
    if (m >= p.m)
        return;
    const int64_t             n = m / p.pixels, pixel = m - n * p.pixels;
    const int                 oy = (int)pixel / p.out_w, ox = (int)pixel - oy * p.out_w;
    bytes_channels<PLAIN_RUN> channels;
    float                     v[PLAIN_RUN], other[PLAIN_RUN];
    for (int j = 0; j < PLAIN_RUN; j++) {
        channels.scale[j] = scale_at(b, k + j);
        channels.bias[j] = bias_at(b, k + j);
        v[j] = k + j < p.out_c ? sum_of<KIND>(plain_sum<KIND>(b, n, oy * p.stride_h - p.pad_top,
                                                              ox * p.stride_w - p.pad_left, k + j))
                               : 0;
    }
    residual_at(b, n * p.finish.residual_sample + pixel * p.finish.residual_pixel, k, other);
    bytes_finish(b, false, channels, n * p.y_sample + pixel * p.y_pixel, k, other, v);
}

__global__ void __launch_bounds__(PLAIN_THREADS)
    bytes_fill_kernel(uint8_t *p, int kind, int64_t count)
{
    early_begin();
    const int64_t step = (int64_t)gridDim.x * PLAIN_THREADS;
    for (int64_t i = (int64_t)blockIdx.x * PLAIN_THREADS + threadIdx.x; i < count; i += step) {
        uint32_t h = (uint32_t)i * 2654435761u;
        h ^= h >> 15;
        h *= 2246822519u;
        h ^= h >> 13;
        p[i] = (uint8_t)(kind == CONV_BYTES_F8 ? h >> 8 & 0xbf : h >> 8);
    }
}

// A thread for each sixteen bytes of what is laid out.
__global__ void __launch_bounds__(PLAIN_THREADS)
    bytes_lay_kernel(const __grid_constant__ conv_bytes_lay_params p)
{
    early_begin();
    const int     chunks = p.depth / 16;
    const int64_t i = (int64_t)blockIdx.x * PLAIN_THREADS + threadIdx.x, m = i / chunks,
                  n = m / p.pixels;
    const int c = (int)(i - m * chunks) * 16;
    if (m >= p.count)
        return;
    const uint8_t *from = (const uint8_t *)p.x + n * p.x_sample + (m - n * p.pixels) * p.x_pixel;
    uint32_t       w[4] = {0, 0, 0, 0};
#pragma unroll
    for (int j = 0; j < 16; j++)
        if (c + j < p.c)
            w[j / 4] |= (uint32_t)__ldg(from + c + j) << j % 4 * 8;
    store_words((uint8_t *)p.to + m * p.depth + c, w);
}

/* ---- launching ---- */

template <class S> static cudaError_t run_bytes(const conv_bytes_params &p, cudaStream_t stream)
{
    const int64_t blocks = (p.at.m + S::MS - 1) / S::MS * ((p.at.out_c + S::NS - 1) / S::NS);
    if (blocks > 0x7fffffff)
        return cudaErrorInvalidValue;
    return bytes_launch(bytes_kernel<S>, (unsigned)blocks, S::THREADS, S::SHARED, stream, p);
}

template <int KIND>
static cudaError_t run_variant(const conv_bytes_params &p, int variant, cudaStream_t stream)
{
    switch (variant) {
    case 0: return run_bytes<warp_shape<KIND, 128, 128, 4, 2, 3, 2>>(p, stream);
    case 1: return run_bytes<warp_shape<KIND, 128, 64, 4, 1, 3, 2>>(p, stream);
    case 2: return run_bytes<warp_shape<KIND, 128, 32, 4, 1, 3, 3>>(p, stream);
    case 3: return run_bytes<warp_shape<KIND, 64, 64, 4, 1, 4, 3>>(p, stream);
    case 4: return run_bytes<warp_shape<KIND, 64, 32, 4, 1, 4, 4>>(p, stream);
    case 5: return run_bytes<hopper_shape<KIND, 128, 256, 2, 4, 1>>(p, stream);
    case 6: return run_bytes<hopper_shape<KIND, 256, 128, 2, 4, 1>>(p, stream);
    case 7: return run_bytes<hopper_shape<KIND, 128, 128, 2, 3, 2>>(p, stream);
    case 8: return run_bytes<hopper_shape<KIND, 128, 64, 2, 4, 2>>(p, stream);
    case 9: return run_bytes<hopper_shape<KIND, 64, 128, 1, 4, 2>>(p, stream);
    case 10: return run_bytes<hopper_shape<KIND, 64, 64, 1, 3, 4>>(p, stream);
    case 11: return run_bytes<hopper_shape<KIND, 128, 32, 2, 3, 3>>(p, stream);
    default: return cudaErrorNotSupported;
    }
}

} // namespace conv

// Sizes as conv_bytes_sizes has them.
extern "C" cudaError_t conv_launch_bytes(const conv_bytes_params *p, enum conv_bytes_kind kind,
                                         int variant, cudaStream_t stream)
{
    using namespace conv;
    switch (kind) {
    case CONV_BYTES_S8: return run_variant<CONV_BYTES_S8>(*p, variant, stream);
    case CONV_BYTES_U8: return run_variant<CONV_BYTES_U8>(*p, variant, stream);
    default: return run_variant<CONV_BYTES_F8>(*p, variant, stream);
    }
}

template <int KIND>
static cudaError_t run_bytes_plain(const conv_bytes_params &p, cudaStream_t stream)
{
    using namespace conv;
    const int64_t count = p.at.m * ((p.at.out_c + PLAIN_RUN - 1) / PLAIN_RUN),
                  blocks = (count + PLAIN_THREADS - 1) / PLAIN_THREADS;
    if (blocks > 0x7fffffff)
        return cudaErrorInvalidValue;
    return bytes_launch(bytes_plain_kernel<KIND>, (unsigned)blocks, PLAIN_THREADS, 0, stream, p);
}

extern "C" cudaError_t conv_launch_bytes_plain(const conv_bytes_params *p,
                                               enum conv_bytes_kind kind, cudaStream_t stream)
{
    switch (kind) {
    case CONV_BYTES_S8: return run_bytes_plain<CONV_BYTES_S8>(*p, stream);
    case CONV_BYTES_U8: return run_bytes_plain<CONV_BYTES_U8>(*p, stream);
    default: return run_bytes_plain<CONV_BYTES_F8>(*p, stream);
    }
}

extern "C" cudaError_t conv_launch_bytes_fill(void *p, enum conv_bytes_kind kind, int64_t count,
                                              cudaStream_t stream)
{
    CUDA_LAUNCH(conv::bytes_fill_kernel, 1024, conv::PLAIN_THREADS, stream, (uint8_t *)p, (int)kind,
                count);
    return cudaGetLastError();
}

extern "C" cudaError_t conv_launch_bytes_lay(const conv_bytes_lay_params *p, cudaStream_t stream)
{
    const int64_t count = p->count * (p->depth / 16),
                  blocks = (count + conv::PLAIN_THREADS - 1) / conv::PLAIN_THREADS;
    if (blocks > 0x7fffffff)
        return cudaErrorInvalidValue;
    return conv::bytes_launch(conv::bytes_lay_kernel, (unsigned)blocks, conv::PLAIN_THREADS, 0,
                              stream, *p);
}

extern "C" bool conv_bytes_has_hopper(void)
{
#ifdef SAC_HOPPER_CODE
    return true;
#else
    return false;
#endif
}
