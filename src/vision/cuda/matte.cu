/* SPDX-License-Identifier: Apache-2.0 */
/* Mattes of a batch of frames. All that does not depend on the frame before is done for all frames
 * at once: the shares and luma of cells, the search for where blocks were. Frames of one stream
 * follow each other in the batch; a cell of the last one traces its way back through the others, so
 * that a few of them need one launch. Tables say where pixels lie among cells: they are made in
 * double, as on the host, once for each row and column. */
#include "vision/cuda/launch.h"

namespace
{

enum {
    LANES = 32,
    TILE_X = CUDA_MATTE_TILE_X,
    TILE_Y = CUDA_MATTE_TILE_Y,
    THREADS = TILE_X * TILE_Y,
    MARGIN = SAC_MATTE_MARGIN,
    PIXELS = 4, /* of a thread, side by side; cells too */
    QUADS = CUDA_MATTE_QUADS,
    QUAD_TILE = QUADS * PIXELS, /* cells of a row of a block */
    STRIP = 2 * PIXELS          /* pixels of a thread of a matte */
};

/* As many jobs as fit into the 4 KB of parameters that any launch may have. With more the thread
 * that launches stood still until the GPU had done what was queued before. */
struct job_list {
    cuda_matte_job job[CUDA_MATTE_JOBS_SENT];
};
static_assert(sizeof(job_list) + 2 * sizeof(void *) <= 4096, "a launch's parameters");

__device__ int thread_of_block()
{
    return threadIdx.y * blockDim.x + threadIdx.x;
}

__device__ int clamp_to(int v, int low, int high)
{
    return v < low ? low : v > high ? high : v;
}

/* Where a block of cells begins. */
struct tile {
    int x, y;
};

__device__ tile tile_of(int width, int height)
{
    return tile{(int)blockIdx.x * width, (int)blockIdx.y * height};
}

/* Tables and planes that no thread of the launch writes. */
template <typename T> __device__ T read_only(const T *at)
{
#ifdef __CUDA_ARCH__
    return __ldg(at);
#else
    return *at;
#endif
}

/* ---- four bytes at once ---- */

/* From any address on; wide: it lies in rows that begin at multiples of four. Up to seven bytes
 * behind the first are read. */
__device__ uint32_t four_at(const uint8_t *at, bool wide)
{
    if (!wide)
        return at[0] | at[1] << 8 | at[2] << 16 | (uint32_t)at[3] << 24;
    const int       off = (int)((uintptr_t)at & 3);
    const uint32_t *word = (const uint32_t *)(const void *)(at - off);
    return __funnelshift_r(word[0], word[1], off * 8);
}

/* Four cells of a row from any one on. */
__device__ uint32_t four_of(const uint32_t *row, int at)
{
    const uint32_t *word = row + at / 4;
    return __funnelshift_r(word[0], word[1], at % 4 * 8);
}

/* Differences of four bytes, added to a sum. */
__device__ uint32_t add_differences(uint32_t a, uint32_t b, uint32_t sum)
{
#ifdef __CUDA_ARCH__
    uint32_t out;
    asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(sum));
    return out;
#else
    return sum + __vsadu4(a, b);
#endif
}

/* Means of two by two of eight bytes of two rows: four bytes. */
__device__ uint32_t halve_four(const uint32_t above[2], const uint32_t below[2])
{
    uint32_t out = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint32_t a = above[i / 2] >> i % 2 * 16, b = below[i / 2] >> i % 2 * 16;
        const uint8_t  up[2] = {(uint8_t)a, (uint8_t)(a >> 8)},
                      down[2] = {(uint8_t)b, (uint8_t)(b >> 8)};
        out |= (uint32_t)sac_matte_halve(up, down) << 8 * i;
    }
    return out;
}

/* ---- tables ---- */

/* The cells beside a pixel and the second one's weight; nearest: the cell that it lies in. */
__device__ uint32_t pack_tap(const sac_matte_axis &a, int pixel, bool nearest)
{
    if (nearest)
        return (uint32_t)sac_matte_cell(&a, pixel);
    const sac_tap  tap = sac_matte_tap(&a, pixel);
    const uint32_t second = tap.b > tap.a ? (uint32_t)tap.second : 0; /* else it weighs nothing */
    return (uint32_t)tap.a | (uint32_t)(tap.b - tap.a) << 12 | second << 13;
}
static_assert((int)SAC_MATTE_SIZE_MAX <= 1 << 12, "a cell has 12 bits");

struct two_cells {
    uint32_t a, b;
    float    part;
};

__device__ two_cells unpack_tap(uint32_t packed)
{
    const uint32_t a = packed & 0xfff;
    return two_cells{a, a + (packed >> 12 & 1), sac_matte_part_of((int32_t)(packed >> 13))};
}

__device__ void fill_tables(const cuda_matte_job &job, int i, bool nearest)
{
    const int left = job.x.from & -STRIP, down = job.y.until - job.y.from;
    if (left + i < ((job.x.until + STRIP - 1) & -STRIP))
        job.tap_x[i] = pack_tap(job.x, clamp_to(left + i, job.x.from, job.x.until - 1), nearest);
    if (i < down)
        job.tap_y[i] = pack_tap(job.y, job.y.from + i, nearest);
    if (job.span_x && i < job.x.cells)
        job.span_x[i] = sac_matte_span_of(&job.x, i);
    if (job.span_x && i < job.y.cells)
        job.span_y[i] = sac_matte_span_of(&job.y, i);
}

/* The jobs come with the launch, and are kept for those that follow. */
__global__ void __launch_bounds__(THREADS)
    prepare(const __grid_constant__ job_list list, cuda_matte_job *jobs, bool nearest)
{
    const cuda_matte_job &job = list.job[blockIdx.y];
    const int             i = blockIdx.x * THREADS + threadIdx.x;
    if (i == 0) {
        jobs[blockIdx.y] = job;
        if (job.summary)
            *job.summary = sac_matte_summary{};
        if (job.sum)
            *job.sum = cuda_matte_sum{};
    }
    if (job.x.cells > 0)
        fill_tables(job, i, nearest);
}

/* ---- summaries ---- */

/* `count` cells of a thread, from x on, of one image; every thread of the block calls it. */
__device__ void add_to_summary(const cuda_matte_job &job, int count, const int16_t *share, int x,
                               int y)
{
    __shared__ int box[4], unsure;
    const int      thread = thread_of_block();
    int            missing = 0;
    if (thread == 0)
        box[0] = box[1] = box[2] = box[3] = unsure = 0;
    __syncthreads();
    for (int i = 0; i < count; i++) {
        missing += sac_matte_unsure(share[i]);
        if (!sac_matte_inside(share[i]))
            continue;
        atomicMax(&box[0], x + i + 1);
        atomicMax(&box[1], y + 1);
        atomicMax(&box[2], job.x.cells - x - i);
        atomicMax(&box[3], job.y.cells - y);
    }
    if (missing)
        atomicAdd(&unsure, missing);
    __syncthreads();
    if (thread != 0)
        return;
    if (unsure)
        atomicAdd(&job.sum->unsure, (unsigned long long)unsure);
    if (box[0]) {
        atomicMax(&job.sum->right, box[0]);
        atomicMax(&job.sum->bottom, box[1]);
        atomicMax(&job.sum->left, box[2]);
        atomicMax(&job.sum->top, box[3]);
    }
}

__device__ void write_summary(const cuda_matte_job &job)
{
    const cuda_matte_sum &s = *job.sum;
    sac_matte_summary     out = {};
    out.cells = job.x.cells * job.y.cells;
    out.unsure = (int64_t)s.unsure;
    if (s.right) {
        out.x0 = job.x.cells - s.left;
        out.y0 = job.y.cells - s.top;
        out.x1 = s.right;
        out.y1 = s.bottom;
    }
    *job.summary = out;
}

/* ---- the network's numbers ---- */

/* A half is its own type: int16 is none of the network's. */
typedef uint16_t half_bits;

__device__ float number_of(float v)
{
    return v;
}
__device__ float number_of(half_bits v)
{
#ifdef __CUDA_ARCH__
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(v)); /* exact, as sac_float_of_half */
    return f;
#else
    return sac_float_of_half(v);
#endif
}
__device__ float number_of(int32_t v)
{
    return (float)v;
}
__device__ float number_of(int64_t v)
{
    return (float)v;
}

/* An image's numbers, by class and cell of the grid. */
template <typename T> struct numbers {
    const T         *first;
    int64_t          cell, row, number;
    __device__ float at(int k, int x, int y) const
    {
        return number_of(first[k * number + y * row + x * cell]);
    }
    /* Of cells x..x + 3, of which `count` are there; others as the first. */
    __device__ void four(int k, int x, int y, int count, float out[PIXELS]) const
    {
        struct alignas(PIXELS * sizeof(T)) together {
            T of[PIXELS];
        };
        const T *from = first + k * number + y * row + x * cell;
        if (count == PIXELS && cell == 1 && (uintptr_t)from % sizeof(together) == 0) {
            const together v = *(const together *)(const void *)from;
#pragma unroll
            for (int i = 0; i < PIXELS; i++)
                out[i] = number_of(v.of[i]);
            return;
        }
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            out[i] = number_of(from[(i < count ? i : 0) * cell]);
    }
};

template <typename T>
__device__ numbers<T> numbers_of(const cuda_matte_params &p, const cuda_matte_job &job)
{
    const sac_detect_field &f = p.spec.value;
    const int64_t           corner = (int64_t)job.y.first * p.spec.width + job.x.first;
    return numbers<T>{(const T *)p.numbers + sac_detect_at(&f, job.image, corner), f.cell,
                      f.cell * p.spec.width, f.number};
}

/* ---- shares ---- */

/* The share of two classes by one exponential: the greater one's is 1, or 0 where it is no number
 * or infinite. As softmax_of, to the last bit. */
__device__ float part_of_two(float a, float b, bool wants_a, bool wants_b)
{
    const float first = a > -INFINITY ? a : -INFINITY;
    const bool  second = b > first;
    const float greatest = second ? b : first;
    const float less = sac_exp((second ? a : b) - greatest),
                most = greatest - greatest == 0.0f ? 1.0f : 0.0f;
    const float of_a = second ? less : most, of_b = second ? most : less;
    const float wanted = (wants_a ? of_a : 0.0f) + (wants_b ? of_b : 0.0f);
    return sac_matte_part(wanted, of_a + of_b);
}

template <typename T>
__device__ void softmax_of(const sac_matte_spec &s, const numbers<T> &in, int x, int y, int count,
                           float out[PIXELS])
{
    float greatest[PIXELS], total[PIXELS], wanted[PIXELS], v[PIXELS];
#pragma unroll
    for (int i = 0; i < PIXELS; i++) {
        greatest[i] = -INFINITY;
        total[i] = wanted[i] = 0.0f;
    }
#pragma unroll 4
    for (int k = 0; k < s.classes; k++) {
        in.four(k, x, y, count, v);
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            greatest[i] = v[i] > greatest[i] ? v[i] : greatest[i];
    }
#pragma unroll 1
    for (int k = 0; k < s.classes; k++) {
        const bool wants = sac_matte_wanted(&s, k);
        in.four(k, x, y, count, v);
#pragma unroll
        for (int i = 0; i < PIXELS; i++) {
            const float e = sac_exp(v[i] - greatest[i]);
            total[i] += e;
            wanted[i] = wants ? wanted[i] + e : wanted[i];
        }
    }
#pragma unroll
    for (int i = 0; i < PIXELS; i++)
        out[i] = sac_matte_part(wanted[i], total[i]);
}

template <typename T>
__device__ void sum_of(const sac_matte_spec &s, const numbers<T> &in, int x, int y, int count,
                       float out[PIXELS])
{
    float v[PIXELS];
#pragma unroll
    for (int i = 0; i < PIXELS; i++)
        out[i] = 0.0f;
    for (int k = 0; k < s.classes; k++) {
        if (!sac_matte_wanted(&s, k))
            continue;
        in.four(k, x, y, count, v);
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            out[i] += v[i];
    }
}

template <typename T>
__device__ void shares_of(const sac_matte_spec &s, const numbers<T> &in, int x, int y, int count,
                          int16_t out[PIXELS])
{
    float v[PIXELS], other[PIXELS];
    if (s.form == SAC_MATTE_CLASS_LOGITS && s.classes == 2) {
        const bool wants[2] = {sac_matte_wanted(&s, 0), sac_matte_wanted(&s, 1)};
        in.four(0, x, y, count, v);
        in.four(1, x, y, count, other);
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            v[i] = part_of_two(v[i], other[i], wants[0], wants[1]);
    } else if (s.form == SAC_MATTE_CLASS_LOGITS) {
        softmax_of(s, in, x, y, count, v);
    } else if (s.form == SAC_MATTE_CLASS_SHARES) {
        sum_of(s, in, x, y, count, v);
    } else {
        in.four(0, x, y, count, v);
    }
#pragma unroll
    for (int i = 0; i < PIXELS; i++)
        out[i] = s.form == SAC_MATTE_LABEL   ? sac_matte_share_of_label(&s, v[i])
                 : s.form == SAC_MATTE_LOGIT ? sac_matte_share(sac_sigmoid(v[i]))
                                             : sac_matte_share(v[i]);
}

/* Numbers of a row's cells, at once where they lie so. */
template <typename T> struct alignas(PIXELS * sizeof(T)) four_numbers {
    T of[PIXELS];
};

template <typename T> __device__ void store_four(T *to, int count, const T from[PIXELS])
{
    if (count == PIXELS && (uintptr_t)to % sizeof(four_numbers<T>) == 0) {
        *(four_numbers<T> *)(void *)to = four_numbers<T>{{from[0], from[1], from[2], from[3]}};
        return;
    }
#pragma unroll
    for (int i = 0; i < PIXELS; i++)
        if (i < count)
            to[i] = from[i];
}

template <typename T> __device__ void load_four(const T *from, int count, T to[PIXELS])
{
    if (count == PIXELS && (uintptr_t)from % sizeof(four_numbers<T>) == 0) {
        const four_numbers<T> v = *(const four_numbers<T> *)(const void *)from;
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            to[i] = v.of[i];
        return;
    }
#pragma unroll
    for (int i = 0; i < PIXELS; i++)
        if (i < count)
            to[i] = from[i];
}

/* ---- luma ---- */

/* The format is one for all of a block. */
template <bool TURNED, typename BODY>
__device__ auto read_as(enum sac_pixel_format format, BODY body)
{
    switch (format) {
    case SAC_PIXEL_P010: return body(sac_reading{SAC_PIXEL_P010, TURNED});
    case SAC_PIXEL_NV12:
    case SAC_PIXEL_I420:
    case SAC_PIXEL_GRAY8: return body(sac_reading{SAC_PIXEL_GRAY8, TURNED});
    default: return body(sac_reading{format, TURNED});
    }
}

template <bool TURNED>
__device__ uint8_t mean_of(const cuda_matte_job &job, const sac_matte_span &sx,
                           const sac_matte_span &sy)
{
    const int     across = sac_matte_samples(&sx), down = sac_matte_samples(&sy);
    const int32_t sum = read_as<TURNED>(job.frame.format, [&](sac_reading r) {
        int32_t all = 0;
        for (int j = 0; j < down; j++) {
            const int row = sac_matte_sample(&sy, j);
#pragma unroll 4
            for (int i = 0; i < across; i++)
                all += sac_matte_luma(&job.frame, r, sac_matte_sample(&sx, i), row);
        }
        return all;
    });
    return sac_matte_mean(sum, sac_matte_inverse(across * down));
}

/* The sum of a cell's luma where its rows can be read word by word and all its pixels count. */
__device__ int32_t sum_words(const cuda_matte_job &job, const sac_matte_span &sx,
                             const sac_matte_span &sy)
{
    const bool     words = job.frame.format == SAC_PIXEL_P010;
    const int      scale = words ? 2 : 1, from = sx.first * scale, until = from + sx.length * scale;
    const uint32_t ones = words ? 0x01000100u : 0x01010101u; /* of 16 bits the upper byte counts */
    const size_t   pitch = job.frame.pitch[0];
    uint32_t       sum = 0;
    for (int at = from & -4; at < until; at += 4) {
        const int      low = from - at, high = at + 4 - until;
        const uint8_t *row = job.frame.plane[0] + (size_t)sy.first * pitch + at;
        uint32_t       mask = ones;
        mask = low > 0 ? mask & ~0u << 8 * low : mask;
        mask = high > 0 ? mask & ~0u >> 8 * high : mask;
#pragma unroll 2
        for (int j = 0; j < sy.length; j++, row += pitch)
            sum = __dp4a(read_only((const uint32_t *)(const void *)row), mask, sum);
    }
    return (int32_t)sum;
}

/* Of a row's last pixels a word may reach past the frame. */
__device__ bool has_words(const cuda_matte_job &job, const sac_matte_span &sx,
                          const sac_matte_span &sy)
{
    const int scale = job.frame.format == SAC_PIXEL_P010 ? 2 : 1;
    return job.wide_frame && sx.length <= SAC_MATTE_SAMPLES && sy.length <= SAC_MATTE_SAMPLES &&
           (((sx.first + sx.length) * scale + 3) & -4) <= job.frame.width * scale;
}

template <bool TURNED> __device__ uint8_t luma_of(const cuda_matte_job &job, int x, int y)
{
    const sac_matte_span sx = job.span_x[clamp_to(x, 0, job.x.cells - 1)],
                         sy = job.span_y[clamp_to(y, 0, job.y.cells - 1)];
    if (TURNED || !has_words(job, sx, sy))
        return mean_of<TURNED>(job, sx, sy);
    return sac_matte_mean(sum_words(job, sx, sy), sac_matte_inverse(sx.length * sy.length));
}

/* Luma of four cells, of which `count` are there. */
template <bool TURNED>
__device__ uint32_t fill_luma(const cuda_matte_params &p, const cuda_matte_job &job, int x, int y,
                              int count)
{
    uint8_t *to = job.luma + (ptrdiff_t)y * p.luma_pitch + x;
    uint32_t four = 0;
    for (int i = 0; i < count; i++)
        four |= (uint32_t)luma_of<TURNED>(job, x + i, y) << 8 * i;
    if (count == PIXELS && job.wide_luma) {
        *(uint32_t *)(void *)to = four;
        return four;
    }
    for (int i = 0; i < count; i++)
        to[i] = (uint8_t)(four >> 8 * i);
    return four;
}

/* Planes of half size begin with their margin's first cell. Of a block's cells a quarter is left:
 * where thread i, j of them writes four; NULL: past the plane. */
__device__ uint32_t *half_of_block(const cuda_matte_params &p, const cuda_matte_job &job,
                                   uint8_t *half, const tile &t, int i, int j)
{
    const int x = t.x / 2 + i * PIXELS, y = t.y / 2 + j;
    if (j >= QUADS / 2 || x >= p.half_pitch || y >= (job.y.cells + 2 * MARGIN) / 2)
        return NULL;
    return (uint32_t *)(void *)(half + (ptrdiff_t)y * p.half_pitch + x);
}

__device__ void fill_half(const cuda_matte_params &p, const cuda_matte_job &job, const tile &t,
                          const uint32_t (*luma)[QUADS], int thread)
{
    const int i = thread % (QUADS / 2), j = thread / (QUADS / 2);
    uint32_t *to = half_of_block(p, job, job.half, t, i, j);
    if (to)
        *to = halve_four(&luma[2 * j][2 * i], &luma[2 * j + 1][2 * i]);
}

/* The same of the frame before, which is of an earlier batch. No search reads the last cells of its
 * margin. */
__device__ void fill_half_before(const cuda_matte_params &p, const cuda_matte_job &job,
                                 const tile &t, int thread)
{
    const int i = thread % (QUADS / 2), j = thread / (QUADS / 2);
    const int x = t.x - MARGIN + 2 * PIXELS * i, y = t.y - MARGIN + 2 * j;
    uint32_t *to = half_of_block(p, job, job.half_before, t, i, j);
    if (!to || x >= job.x.cells + MARGIN - 1 || y + 1 >= job.y.cells + MARGIN - 1)
        return;
    const uint8_t *above = job.luma_before + (ptrdiff_t)y * p.luma_pitch + x,
                  *below = above + p.luma_pitch;
    const uint32_t rows[2][2] = {
        {four_at(above, job.wide_luma), four_at(above + PIXELS, job.wide_luma)},
        {four_at(below, job.wide_luma), four_at(below + PIXELS, job.wide_luma)}};
    *to = halve_four(rows[0], rows[1]);
}

/* Shares of the grid, and luma with its margin, whose cells are those next to them. */
template <typename T, bool TURNED>
__global__ void __launch_bounds__(THREADS) fill_cells(const __grid_constant__ cuda_matte_params p)
{
    __shared__ uint32_t   luma[QUADS][QUADS];
    const cuda_matte_job &job = p.jobs[blockIdx.z];
    const int             width = job.x.cells, height = job.y.cells;
    const tile            t = tile_of(QUAD_TILE, QUADS);
    const int             x = t.x + threadIdx.x * PIXELS - MARGIN, y = t.y + threadIdx.y - MARGIN;
    if (width == 0 || t.x >= width + 2 * MARGIN || t.y >= height + 2 * MARGIN)
        return;
    const int lumas = y < height + MARGIN ? clamp_to(width + MARGIN - x, 0, PIXELS) : 0;
    luma[threadIdx.y][threadIdx.x] = fill_luma<TURNED>(p, job, x, y, lumas);
    const bool in = job.image >= 0 && x >= 0 && y >= 0 && y < height;
    const int  count = in ? clamp_to(width - x, 0, PIXELS) : 0;
    int16_t    share[PIXELS] = {};
    if (count > 0) {
        shares_of(p.spec, numbers_of<T>(p, job), x, y, count, share);
        store_four(job.raw + (ptrdiff_t)y * p.spec.width + x, count, share);
    }
    if (job.half) {
        __syncthreads();
        fill_half(p, job, t, luma, thread_of_block());
    }
    if (job.halves_before)
        fill_half_before(p, job, t, thread_of_block());
    if (job.summary && job.image >= 0)
        add_to_summary(job, count, share, x, y);
}

/* ---- motion ---- */

enum {
    BLOCK = SAC_MATTE_BLOCK,
    REACH = SAC_MATTE_REACH,
    FINE = SAC_MATTE_FINE,
    WARPS = THREADS / LANES,
    HALF_BEFORE = BLOCK + 2 * REACH,
    SIDE = 2 * REACH + 1, /* candidates, each way */
    FINE_SIDE = 2 * FINE + 1,
    FINE_BEFORE = BLOCK + 2 * FINE,
    COLUMN = REACH + 1 /* candidates of a lane, one below the other: two lanes share a column */
};
static_assert(MARGIN / 2 - BLOCK / 4 - REACH == 4 && MARGIN % 8 == 0,
              "where a block is looked for begins at a multiple of four");

/* What a warp looks at: a block, and where it may have been, also of half size. Rows are longer by
 * a word: a place that is no multiple of four reads past the last one. */
struct search_room {
    uint32_t now[BLOCK][BLOCK / 4], before[FINE_BEFORE][FINE_BEFORE / 4 + 1];
    uint32_t half_now[BLOCK][BLOCK / 4], half_before[HALF_BEFORE][HALF_BEFORE / 4 + 1];
};

__device__ uint32_t least_of_warp(uint32_t v)
{
    for (int half = LANES / 2; half > 0; half /= 2) {
        const uint32_t other = __shfl_xor_sync(~0u, v, half);
        v = other < v ? other : v;
    }
    return v;
}

/* The sum of differences of a block to itself: every lane has it. The block stays in the room. */
__device__ int still_difference(const uint8_t *now, const uint8_t *before, int pitch, bool wide,
                                search_room &r, int lane)
{
    int sum = 0;
    if (lane < BLOCK * BLOCK / 4) {
        const ptrdiff_t at = (ptrdiff_t)(lane / 2) * pitch + lane % 2 * 4;
        const uint32_t  four = four_at(now + at, wide);
        r.now[lane / 2][lane % 2] = four;
        sum = (int)add_differences(four, four_at(before + at, wide), 0);
    }
    for (int half = LANES / 2; half > 0; half /= 2)
        sum += __shfl_xor_sync(~0u, sum, half);
    return sum;
}

/* Block x, y of half size, and all around it in the frame before. */
__device__ void copy_halves(const cuda_matte_job &job, int pitch, int x, int y, search_room &r,
                            int lane)
{
    const int      left = x * BLOCK / 2 + 4, top = y * BLOCK / 2 + 4;
    const uint8_t *from = job.half_before + (ptrdiff_t)top * pitch + left;
    const uint8_t *now = job.half + (ptrdiff_t)(top + REACH) * pitch + left + REACH;
    for (int i = lane; i < HALF_BEFORE * (HALF_BEFORE / 4); i += LANES) {
        const int row = i / (HALF_BEFORE / 4), word = i % (HALF_BEFORE / 4);
        r.half_before[row][word] =
            *(const uint32_t *)(const void *)(from + (ptrdiff_t)row * pitch + word * 4);
    }
    if (lane < BLOCK * BLOCK / 4)
        r.half_now[lane / 2][lane % 2] =
            four_at(now + (ptrdiff_t)(lane / 2) * pitch + lane % 2 * 4, true);
}

/* The cells about where the coarse search leads. */
__device__ void copy_before(const uint8_t *before, int pitch, bool wide, sac_matte_move coarse,
                            search_room &r, int lane)
{
    const uint8_t *from = before + (ptrdiff_t)(2 * coarse.y - FINE) * pitch + 2 * coarse.x - FINE;
    for (int i = lane; i < FINE_BEFORE * (FINE_BEFORE / 4); i += LANES) {
        const int row = i / (FINE_BEFORE / 4), word = i % (FINE_BEFORE / 4);
        r.before[row][word] = four_at(from + (ptrdiff_t)row * pitch + word * 4, wide);
    }
}

/* Differences of a block of half size to seven places, one below the other. */
__device__ void column_differences(const search_room &r, int x, int y, uint32_t out[COLUMN])
{
    for (int i = 0; i < COLUMN; i++)
        out[i] = 0;
#pragma unroll
    for (int row = 0; row < BLOCK + COLUMN - 1; row++) {
        const uint32_t left = four_of(r.half_before[y + row], x),
                       right = four_of(r.half_before[y + row], x + 4);
#pragma unroll
        for (int i = 0; i < COLUMN; i++)
            if (row >= i && row - i < BLOCK)
                out[i] = add_differences(left, r.half_now[row - i][0],
                                         add_differences(right, r.half_now[row - i][1], out[i]));
    }
}

/* Numbers of candidates are those of the host's loops: row by row, from 1 on. */
__device__ sac_matte_move coarse_move(const search_room &r, int lane)
{
    const int x = lane % SIDE, y = lane / SIDE * REACH;
    uint32_t  best = ~0u;
    if (lane < 2 * SIDE) {
        uint32_t off[COLUMN];
        column_differences(r, x, y, off);
#pragma unroll
        for (int i = 0; i < COLUMN; i++) {
            const uint32_t it =
                sac_matte_candidate((int)off[i], x - REACH, y + i - REACH, (y + i) * SIDE + x + 1);
            best = it < best ? it : best;
            if (x == REACH && y + i == REACH) { /* staying comes first among equals */
                const uint32_t stay = sac_matte_candidate((int)off[i], 0, 0, 0);
                best = stay < best ? stay : best;
            }
        }
    }
    best = least_of_warp(best);
    const int      number = (int)(best & 0xfff) - 1;
    sac_matte_move move = {0, 0};
    if (number >= 0) {
        move.x = (int16_t)(number % SIDE - REACH);
        move.y = (int16_t)(number / SIDE - REACH);
    }
    return move;
}

__device__ sac_matte_move fine_move(const search_room &r, sac_matte_move coarse, int still,
                                    int lane)
{
    const int column = lane % FINE_SIDE, line = lane / FINE_SIDE;
    uint32_t  best = sac_matte_candidate(still, 0, 0, 0);
    if (lane < FINE_SIDE * FINE_SIDE) {
        uint32_t off = 0;
#pragma unroll
        for (int row = 0; row < BLOCK; row++) {
            const uint32_t *before = r.before[line + row];
            off = add_differences(four_of(before, column), r.now[row][0], off);
            off = add_differences(four_of(before, column + 4), r.now[row][1], off);
        }
        const uint32_t it = sac_matte_candidate((int)off, 2 * coarse.x + column - FINE,
                                                2 * coarse.y + line - FINE, lane + 1);
        best = it < best ? it : best;
    }
    best = least_of_warp(best);
    const int      number = (int)(best & 0xfff) - 1;
    sac_matte_move move = {0, 0};
    if (number >= 0) {
        move.x = (int16_t)(2 * coarse.x + number % FINE_SIDE - FINE);
        move.y = (int16_t)(2 * coarse.y + number / FINE_SIDE - FINE);
    }
    return move;
}

__device__ int blocks_along(int cells)
{
    return (cells + BLOCK - 1) / BLOCK;
}

/* A warp for each block. */
__global__ void __launch_bounds__(THREADS)
    search_blocks(const __grid_constant__ cuda_matte_params p)
{
    __shared__ search_room rooms[WARPS];
    const cuda_matte_job  &job = p.jobs[blockIdx.z];
    const int              lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    const int              across = blocks_along(job.x.cells), pitch = p.luma_pitch;
    const int              x = blockIdx.x * WARPS + warp, y = blockIdx.y;
    search_room           &r = rooms[warp];
    if (!job.moves || x >= across || y >= blocks_along(job.y.cells))
        return;
    const ptrdiff_t at = (ptrdiff_t)(y * BLOCK) * pitch + x * BLOCK;
    const uint8_t  *now = job.luma + at, *before = job.luma_before + at;
    const int       still = still_difference(now, before, pitch, job.wide_luma, r, lane);
    sac_matte_move  move = {0, 0};
    if (still > SAC_MATTE_STILL) { /* for all lanes */
        copy_halves(job, p.half_pitch, x, y, r, lane);
        __syncwarp();
        const sac_matte_move coarse = coarse_move(r, lane);
        copy_before(before, pitch, job.wide_luma, coarse, r, lane);
        __syncwarp();
        move = fine_move(r, coarse, still, lane);
    }
    if (lane == 0)
        job.move[y * across + x] = move;
}

/* ---- where cells were ---- */

/* Where a cell was and the sum of differences to that, in one word. */
enum { NOWHERE = 64 };

__device__ uint32_t pack_former(sac_matte_move move, int residual)
{
    return (uint32_t)residual << 16 | (uint32_t)(move.y + NOWHERE) << 8 |
           (uint32_t)(move.x + NOWHERE);
}

/* Bytes x - 1 to x + 6 of three rows about a cell. */
struct surroundings {
    uint32_t of[3][2];
};

__device__ surroundings surroundings_of(const uint8_t *cell, int pitch, bool wide)
{
    surroundings   s;
    const uint8_t *row = cell - pitch - 1;
#pragma unroll
    for (int j = 0; j < 3; j++, row += pitch) {
        s.of[j][0] = four_at(row, wide);
        s.of[j][1] = four_at(row + 4, wide);
    }
    return s;
}

/* Sums of differences over the 3 x 3 cells about each of four. */
__device__ void residuals_of(const surroundings &a, const surroundings &b, uint32_t out[PIXELS])
{
#pragma unroll
    for (int i = 0; i < PIXELS; i++)
        out[i] = 0;
#pragma unroll
    for (int j = 0; j < 3; j++) {
        const uint32_t left = __vabsdiffu4(a.of[j][0], b.of[j][0]),
                       right = __vabsdiffu4(a.of[j][1], b.of[j][1]);
        out[0] = __dp4a(left, 0x00010101u, out[0]);
        out[1] = __dp4a(left, 0x01010100u, out[1]);
        out[2] = __dp4a(left, 0x01010000u, __dp4a(right, 0x00000001u, out[2]));
        out[3] = __dp4a(left, 0x01000000u, __dp4a(right, 0x00000101u, out[3]));
    }
}

__device__ bool same_move(sac_matte_move a, sac_matte_move b)
{
    return a.x == b.x && a.y == b.y;
}

/* Of staying and the moves of the blocks that a quarter of a block lies between, its own first:
 * four cells of one. */
__global__ void __launch_bounds__(THREADS) find_cells(const __grid_constant__ cuda_matte_params p)
{
    const cuda_matte_job &job = p.jobs[blockIdx.z];
    const int             width = job.x.cells, height = job.y.cells, pitch = p.luma_pitch;
    if (!job.moves)
        return;
    const tile t = tile_of(QUAD_TILE, QUADS);
    const int  x = t.x + threadIdx.x * PIXELS, y = t.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    const bool wide = job.wide_luma;
    const int  across = blocks_along(width), bx = x / BLOCK, by = y / BLOCK;
    const int  sx = clamp_to(bx + (x / (BLOCK / 2) & 1 ? 1 : -1), 0, across - 1);
    const int  sy = clamp_to(by + (y / (BLOCK / 2) & 1 ? 1 : -1), 0, blocks_along(height) - 1);
    const sac_matte_move none = {0, 0};
    const sac_matte_move moves[4] = {job.move[by * across + bx], job.move[by * across + sx],
                                     job.move[sy * across + bx], job.move[sy * across + sx]};
    const ptrdiff_t      at = (ptrdiff_t)y * pitch + x;
    const surroundings   now = surroundings_of(job.luma + at, pitch, wide);
    uint32_t             best[PIXELS], former[PIXELS];
    residuals_of(now, surroundings_of(job.luma_before + at, pitch, wide), best);
#pragma unroll
    for (int k = 0; k < PIXELS; k++)
        former[k] = pack_former(none, (int)best[k]);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        bool known = same_move(moves[i], none);
#pragma unroll
        for (int k = 0; k < i; k++)
            known = known || same_move(moves[i], moves[k]);
        if (known)
            continue;
        const ptrdiff_t to = at + (ptrdiff_t)moves[i].y * pitch + moves[i].x;
        uint32_t        off[PIXELS];
        residuals_of(now, surroundings_of(job.luma_before + to, pitch, wide), off);
#pragma unroll
        for (int k = 0; k < PIXELS; k++) {
            off[k] += SAC_MATTE_MOVE_COST;
            if (off[k] < best[k]) {
                best[k] = off[k];
                former[k] = pack_former(moves[i], (int)off[k]);
            }
        }
    }
    store_four(job.former + (ptrdiff_t)y * p.spec.width + x, clamp_to(width - x, 0, PIXELS),
               former);
}

/* ---- what stays of former shares ---- */

/* What one frame has for a cell of the next one's; kept SAC_MATTE_ONE and share 0: the former share
 * stays as it is. */
struct trace_step {
    int16_t share;
    int     kept;
};

/* Back through the frames of one launch, up to where the former share does not matter; then forth.
 * former, share: what job `number` has for cell x, y. */
__device__ int16_t trace_share(const cuda_matte_params &p, int number, int first, int x, int y,
                               uint32_t former, int16_t share)
{
    trace_step     step[CUDA_MATTE_CHAIN];
    const uint32_t pitch = (uint32_t)p.spec.width;
    int            count = 0;
    int16_t        value = 0;
#pragma unroll
    for (int i = 0; i < CUDA_MATTE_CHAIN; i++) {
        const cuda_matte_job &job = p.jobs[number];
        const bool            alone = job.image < 0;
        if (i > 0) {
            const uint32_t at = (uint32_t)y * pitch + (uint32_t)x;
            former = read_only(job.former + at);
            share = alone ? 0 : read_only(job.raw + at);
        }
        step[i].share = share;
        step[i].kept = alone ? SAC_MATTE_ONE : sac_matte_kept(share, (int)(former >> 16), p.smooth);
        count = i + 1;
        if (step[i].kept == 0)
            break;
        x = clamp_to(x + (int)(former & 0xff) - NOWHERE, 0, job.x.cells - 1);
        y = clamp_to(y + (int)(former >> 8 & 0xff) - NOWHERE, 0, job.y.cells - 1);
        if (job.depth == first) {
            value = read_only(job.share_before + ((uint32_t)y * pitch + (uint32_t)x));
            break;
        }
        number = job.before;
    }
#pragma unroll
    for (int i = CUDA_MATTE_CHAIN - 1; i >= 0; i--)
        if (i < count)
            value = sac_matte_blend(step[i].share, value, step[i].kept);
    return value;
}

/* Frames that have from `first` to first + CUDA_MATTE_CHAIN - 1 others before them. */
__global__ void __launch_bounds__(THREADS)
    take_over(const __grid_constant__ cuda_matte_params p, int first)
{
    const cuda_matte_job &job = p.jobs[blockIdx.z];
    const int             width = job.x.cells, height = job.y.cells;
    if (!job.moves || job.depth < first || job.depth >= first + CUDA_MATTE_CHAIN)
        return;
    const tile t = tile_of(QUAD_TILE, QUADS);
    if (t.x >= width || t.y >= height)
        return;
    const int      x = t.x + threadIdx.x * PIXELS, y = t.y + threadIdx.y;
    const int      count = y < height ? clamp_to(width - x, 0, PIXELS) : 0;
    const uint32_t at = (uint32_t)y * (uint32_t)p.spec.width + (uint32_t)x;
    int16_t        share[PIXELS] = {};
    uint32_t       former[PIXELS] = {};
    load_four(job.former + at, count, former);
    if (job.image >= 0)
        load_four(job.raw + at, count, share);
#pragma unroll
    for (int i = 0; i < PIXELS; i++)
        if (i < count)
            share[i] = trace_share(p, blockIdx.z, first, x + i, y, former[i], share[i]);
    store_four(job.share + at, count, share);
    if (job.summary && job.image < 0)
        add_to_summary(job, count, share, x, y);
}

/* ---- holes ---- */

enum {
    HOLE = SAC_MATTE_HOLE_MAX,
    CLOSE_Y = 4 * TILE_Y, /* rows of a block: each thread has four cells */
    CLOSE_ROOM_X = TILE_X + 2 * HOLE,
    CLOSE_ROOM_Y = CLOSE_Y + 2 * HOLE
};

/* The greatest share of a window, then the smallest of these, each along rows and then columns;
 * what lies outside the grid is none of them. */
__global__ void __launch_bounds__(THREADS) close_holes(const __grid_constant__ cuda_matte_params p)
{
    __shared__ int16_t    a[CLOSE_ROOM_Y][CLOSE_ROOM_X], b[CLOSE_ROOM_Y][CLOSE_ROOM_X];
    const cuda_matte_job &job = p.jobs[blockIdx.z];
    const int             width = job.x.cells, height = job.y.cells, hole = p.hole;
    const int             before = sac_matte_hole_before(hole), after = sac_matte_hole_after(hole);
    const uint32_t        pitch = (uint32_t)p.spec.width;
    const tile            t = tile_of(TILE_X, CLOSE_Y);
    if (t.x >= width || t.y >= height)
        return;
    const int      left = t.x - hole, top = t.y - hole;
    const int      columns = TILE_X + 2 * hole, rows = CLOSE_Y + 2 * hole;
    const int16_t *share = job.share;
    for (int j = threadIdx.y; j < rows; j += TILE_Y)
        for (int i = threadIdx.x; i < columns; i += TILE_X) {
            const int  x = left + i, y = top + j;
            const bool in = x >= 0 && x < width && y >= 0 && y < height;
            a[j][i] = in ? share[(uint32_t)y * pitch + (uint32_t)x] : (int16_t)INT16_MIN;
        }
    __syncthreads();
    for (int j = threadIdx.y; j < rows; j += TILE_Y)
        for (int i = threadIdx.x + before; i < columns - after; i += TILE_X) {
            int best = a[j][i];
            for (int u = -before; u <= after; u++)
                best = a[j][i + u] > best ? a[j][i + u] : best;
            b[j][i] = (int16_t)best;
        }
    __syncthreads();
    for (int j = threadIdx.y + before; j < rows - after; j += TILE_Y)
        for (int i = threadIdx.x + before; i < columns - after; i += TILE_X) {
            const int  x = left + i, y = top + j;
            const bool in = x >= 0 && x < width && y >= 0 && y < height;
            int        best = b[j][i];
            for (int v = -before; v <= after; v++)
                best = b[j + v][i] > best ? b[j + v][i] : best;
            a[j][i] = in ? (int16_t)best : (int16_t)INT16_MAX;
        }
    __syncthreads();
    const int i = threadIdx.x + hole;
    for (int j = threadIdx.y + before; j < rows - after; j += TILE_Y) {
        int best = a[j][i];
        for (int u = -after; u <= before; u++)
            best = a[j][i + u] < best ? a[j][i + u] : best;
        b[j][i] = (int16_t)best;
    }
    __syncthreads();
    for (int j = threadIdx.y + hole; j < CLOSE_Y + hole; j += TILE_Y) {
        int best = b[j][i];
        for (int v = -after; v <= before; v++)
            best = b[j + v][i] < best ? b[j + v][i] : best;
        if (left + i < width && top + j < height)
            job.closed[(uint32_t)(top + j) * pitch + (uint32_t)(left + i)] = (int16_t)best;
    }
}

/* ---- lines ---- */

enum {
    GUIDE = SAC_MATTE_GUIDE_MAX,
    LINES = 4, /* cells of a thread, one below the other */
    LINE_Y = LINES * TILE_Y,
    LINE_ROOM_X = TILE_X + 2 * GUIDE,
    LINE_ROOM_Y = LINE_Y + 2 * GUIDE
};

/* Luma and share of a cell in one word. */
__device__ uint32_t pack_cell(uint8_t luma, int16_t share)
{
    return (uint32_t)luma | (uint32_t)(uint16_t)share << 16;
}

__device__ void add_cell(sac_matte_sums *s, uint32_t cell)
{
    const int luma = (int)(cell & 0xffff), share = (int)(cell >> 16);
    s->luma += luma;
    s->share += share;
    s->luma2 += luma * luma;
    s->both += luma * share;
}

/* sign: 1 or -1. */
__device__ void add_sums(sac_matte_sums *s, const sac_matte_sums &row, int sign)
{
    s->luma += sign * row.luma;
    s->share += sign * row.share;
    s->luma2 += sign * row.luma2;
    s->both += sign * row.both;
}

/* The line of each cell's window: sums along rows first, then of these, from cell to cell. */
__global__ void __launch_bounds__(THREADS) fit_lines(const __grid_constant__ cuda_matte_params p)
{
    __shared__ uint32_t       cell[LINE_ROOM_Y][LINE_ROOM_X];
    __shared__ sac_matte_sums row[LINE_ROOM_Y][TILE_X];
    const cuda_matte_job     &job = p.jobs[blockIdx.z];
    const int                 width = job.x.cells, height = job.y.cells, radius = p.guide;
    const tile                t = tile_of(TILE_X, LINE_Y);
    if (t.x >= width || t.y >= height)
        return;
    for (int j = threadIdx.y; j < LINE_Y + 2 * radius; j += TILE_Y)
        for (int i = threadIdx.x; i < TILE_X + 2 * radius; i += TILE_X) {
            const int  x = t.x - radius + i, y = t.y - radius + j;
            const bool in = x >= 0 && x < width && y >= 0 && y < height;
            cell[j][i] = in ? pack_cell(job.luma[(ptrdiff_t)y * p.luma_pitch + x],
                                        job.closed[(ptrdiff_t)y * p.spec.width + x])
                            : 0;
        }
    __syncthreads();
    for (int j = threadIdx.y; j < LINE_Y + 2 * radius; j += TILE_Y) {
        sac_matte_sums s = {0, 0, 0, 0};
        for (int i = 0; i <= 2 * radius; i++)
            add_cell(&s, cell[j][threadIdx.x + i]);
        row[j][threadIdx.x] = s;
    }
    __syncthreads();
    const int      x = t.x + threadIdx.x, first = threadIdx.y * LINES;
    const int      across = sac_matte_window(x, width, radius);
    sac_matte_sums s = {0, 0, 0, 0};
    for (int i = 0; i < 2 * radius; i++)
        add_sums(&s, row[first + i][threadIdx.x], 1);
    for (int j = first; j < first + LINES; j++) {
        const int y = t.y + j;
        if (x >= width || y >= height)
            return;
        add_sums(&s, row[j + 2 * radius][threadIdx.x], 1);
        const double    n = (double)(across * sac_matte_window(y, height, radius));
        cuda_matte_line line;
        sac_matte_line(&s, n, sac_matte_noise(p.variance, n), &line.slope, &line.base);
        job.line[(ptrdiff_t)y * p.spec.width + x] = line;
        add_sums(&s, row[j][threadIdx.x], -1);
    }
}

/* The mean line of the windows about a cell. */
__global__ void __launch_bounds__(THREADS) mean_lines(const __grid_constant__ cuda_matte_params p)
{
    __shared__ cuda_matte_line cell[LINE_ROOM_Y][LINE_ROOM_X], row[LINE_ROOM_Y][TILE_X];
    const cuda_matte_job      &job = p.jobs[blockIdx.z];
    const int                  width = job.x.cells, height = job.y.cells, radius = p.guide;
    const tile                 t = tile_of(TILE_X, LINE_Y);
    if (t.x >= width || t.y >= height)
        return;
    for (int j = threadIdx.y; j < LINE_Y + 2 * radius; j += TILE_Y)
        for (int i = threadIdx.x; i < TILE_X + 2 * radius; i += TILE_X) {
            const int       x = t.x - radius + i, y = t.y - radius + j;
            cuda_matte_line c = {0, 0};
            if (x >= 0 && x < width && y >= 0 && y < height)
                c = job.line[(ptrdiff_t)y * p.spec.width + x];
            cell[j][i] = c;
        }
    __syncthreads();
    for (int j = threadIdx.y; j < LINE_Y + 2 * radius; j += TILE_Y) {
        cuda_matte_line s = {0, 0};
        for (int i = 0; i <= 2 * radius; i++) {
            s.slope += cell[j][threadIdx.x + i].slope;
            s.base += cell[j][threadIdx.x + i].base;
        }
        row[j][threadIdx.x] = s;
    }
    __syncthreads();
    const int       x = t.x + threadIdx.x, first = threadIdx.y * LINES;
    const int       across = sac_matte_window(x, width, radius);
    cuda_matte_line s = {0, 0};
    for (int i = 0; i < 2 * radius; i++) {
        s.slope += row[first + i][threadIdx.x].slope;
        s.base += row[first + i][threadIdx.x].base;
    }
    for (int j = first; j < first + LINES; j++) {
        const int y = t.y + j;
        if (x >= width || y >= height)
            return;
        s.slope += row[j + 2 * radius][threadIdx.x].slope;
        s.base += row[j + 2 * radius][threadIdx.x].base;
        const float inverse = sac_matte_inverse(across * sac_matte_window(y, height, radius));
        const cuda_matte_mean mean = {sac_matte_slope(s.slope, inverse),
                                      sac_matte_base(s.base, inverse)};
        job.mean[(ptrdiff_t)y * p.spec.width + x] = mean;
        s.slope -= row[j][threadIdx.x].slope;
        s.base -= row[j][threadIdx.x].base;
    }
}

/* ---- pixels ---- */

/* Four pixels side by side, from a multiple of four on: those from `first` up to `end` are of the
 * crop. */
struct quad {
    int             x, first, end;
    __device__ bool whole() const
    {
        return first == 0 && end == PIXELS;
    }
};

__device__ quad quad_of(const sac_matte_axis &a, int x)
{
    const int first = a.from - x, end = a.until - x;
    return quad{x, first > 0 ? first : 0, end < PIXELS ? end : PIXELS};
}

/* Their luma, a byte each. */
template <bool TURNED>
__device__ uint32_t luma_of_quad(const sac_surface &s, bool wide, const quad &q, int y)
{
    if (!TURNED && wide && q.whole()) {
        const uint8_t *row = s.plane[0] + (size_t)y * s.pitch[0];
        if (s.format != SAC_PIXEL_P010)
            return *(const uint32_t *)(const void *)(row + q.x);
        const uint32_t *two = (const uint32_t *)(const void *)(row + 2 * (size_t)q.x);
        const uint32_t  a = two[0], b = two[1];
        return (a >> 8 & 0xff) | (a >> 16 & 0xff00) | (b << 8 & 0xff0000) | (b & 0xff000000);
    }
    uint32_t luma = 0;
#pragma unroll 1
    for (int i = q.first; i < q.end; i++)
        luma |= (uint32_t)sac_matte_luma(&s, sac_reading{s.format, TURNED}, q.x + i, y) << 8 * i;
    return luma;
}

/* to: the first of the four. */
__device__ void store_quad(uint8_t *to, bool wide, const quad &q, uint32_t bytes)
{
    if (wide && q.whole()) {
        *(uint32_t *)(void *)to = bytes;
        return;
    }
#pragma unroll
    for (int i = 0; i < PIXELS; i++)
        if (i >= q.first && i < q.end)
            to[i] = (uint8_t)(bytes >> 8 * i);
}

/* Where the four lie among cells. */
struct quad_taps {
    two_cells of[PIXELS];
};

__device__ quad_taps taps_of(const uint32_t *packed)
{
    quad_taps t;
#pragma unroll
    for (int i = 0; i < PIXELS; i++)
        t.of[i] = unpack_tap(read_only(packed + i));
    return t;
}

__device__ cuda_matte_mean read_mean(const cuda_matte_mean *at)
{
#ifdef __CUDA_ARCH__
    const float2 v = __ldg((const float2 *)at);
    return cuda_matte_mean{v.x, v.y};
#else
    return *at;
#endif
}

/* A share, 0 to SAC_MATTE_ONE, without the slow conversion of 16 bit numbers. */
__device__ float float_of_share(int16_t share)
{
#ifdef __CUDA_ARCH__
    return __uint_as_float(0x4b000000u | (uint32_t)(uint16_t)share) - 8388608.0f;
#else
    return (float)share;
#endif
}

/* A number that is one to a byte, as sac_byte_of. */
__device__ uint32_t byte_of(float v)
{
#ifdef __CUDA_ARCH__
    return __float2uint_rz(fminf(v + 0.5f, 255.5f)); /* what is below 0 becomes 0 */
#else
    return sac_byte_of(v);
#endif
}

/* The two rows of cells that a row of pixels lies between; those of the row above are used again.
 */
template <typename WIDE> struct two_rows {
    int                                      cell[2] = {-1, -1};
    WIDE                                     wide[2];
    template <typename FILL> __device__ void move_to(int a, int b, FILL fill)
    {
        if (cell[0] != a) {
            if (cell[1] == a)
                wide[0] = wide[1];
            else
                fill(a, wide[0]);
            cell[0] = a;
        }
        if (cell[1] != b) {
            if (b == a)
                wide[1] = wide[0];
            else
                fill(b, wide[1]);
            cell[1] = b;
        }
    }
};

/* Where a block of pixels begins: a thread has some rows of four. */
struct area {
    int x, y;
};

__device__ area area_of(const cuda_matte_job &job, int height, int pixels, int rows)
{
    return area{(job.x.from & -STRIP) + (int)blockIdx.x * CUDA_MATTE_AREA_X +
                    (int)threadIdx.x * pixels,
                job.y.from + (int)blockIdx.y * height + (int)threadIdx.y * rows};
}

/* A cell with the way to the next one. */
struct level_cell {
    float base, base_step;
};
struct alignas(16) guided_cell {
    float slope, slope_step, base, base_step;
};

__device__ void read_cell(const cuda_matte_job &job, uint32_t at, uint32_t next, level_cell *out)
{
    out->base = float_of_share(read_only(job.closed + at));
    out->base_step = float_of_share(read_only(job.closed + next)) - out->base;
}

__device__ void read_cell(const cuda_matte_job &job, uint32_t at, uint32_t next, guided_cell *out)
{
    const cuda_matte_mean a = read_mean(job.mean + at), b = read_mean(job.mean + next);
    out->slope = a.slope;
    out->slope_step = b.slope - a.slope;
    out->base = a.base;
    out->base_step = b.base - a.base;
}

/* One row of cells as wide as a thread's pixels. */
template <typename CELL> struct wide_row;
template <> struct wide_row<level_cell> {
    float           base[STRIP];
    __device__ void set(int i, const level_cell &c, float part)
    {
        base[i] = c.base + c.base_step * part; /* sac_matte_between */
    }
};
template <> struct wide_row<guided_cell> {
    float           slope[STRIP], base[STRIP];
    __device__ void set(int i, const guided_cell &c, float part)
    {
        slope[i] = c.slope + c.slope_step * part;
        base[i] = c.base + c.base_step * part;
    }
};

__device__ uint32_t pixel_of(const two_rows<wide_row<guided_cell>> &w, int i, float part, int luma,
                             const sac_matte_stretch &stretch)
{
    return byte_of(sac_matte_number(sac_matte_between(w.wide[0].slope[i], w.wide[1].slope[i], part),
                                    sac_matte_between(w.wide[0].base[i], w.wide[1].base[i], part),
                                    luma, stretch));
}

/* Without a guide the slope is 0, and adds nothing. */
__device__ uint32_t pixel_of(const two_rows<wide_row<level_cell>> &w, int i, float part, int,
                             const sac_matte_stretch &stretch)
{
    return byte_of((sac_matte_between(w.wide[0].base[i], w.wide[1].base[i], part) - stretch.low) *
                   stretch.scale);
}

__device__ uint32_t bytes_of(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}

struct alignas(8) eight_bytes {
    uint32_t of[2];
};

/* Two quads side by side. */
__device__ void store_strip(uint8_t *to, bool wide, const quad q[2], const eight_bytes &bytes)
{
    if (wide && q[0].whole() && q[1].whole()) {
        *(eight_bytes *)(void *)to = bytes;
        return;
    }
    store_quad(to, wide, q[0], bytes.of[0]);
    store_quad(to + PIXELS, wide, q[1], bytes.of[1]);
}

enum {
    STRIPS = CUDA_MATTE_AREA_X / STRIP,
    ROWS = CUDA_MATTE_AREA_Y / STRIPS, /* of a thread */
    TOGETHER = 4,                      /* of these, whose luma is read at once */
    CLASS_ROWS = CUDA_MATTE_CLASS_Y / TILE_Y,
    STAGED_MAX = 2304 /* cells of a block of pixels that are copied to its shared memory */
};

/* The cells under a block of pixels. */
struct cell_window {
    int left, top, width, height;
};

__device__ cell_window window_of(const cuda_matte_job &job)
{
    const area at = area_of(job, CUDA_MATTE_AREA_Y, 0, 0);
    const int  left = job.x.from & -STRIP, columns = (job.x.until + STRIP - 1) & -STRIP;
    const int  x = at.x - left, y = (at.y - job.y.from);
    const int  last_x =
        (at.x + CUDA_MATTE_AREA_X < columns ? at.x + CUDA_MATTE_AREA_X : columns) - left - 1;
    const int last_y =
        (at.y + CUDA_MATTE_AREA_Y < job.y.until ? at.y + CUDA_MATTE_AREA_Y : job.y.until) -
        job.y.from - 1;
    const two_cells first[2] = {unpack_tap(read_only(job.tap_x + x)),
                                unpack_tap(read_only(job.tap_y + y))};
    const two_cells last[2] = {unpack_tap(read_only(job.tap_x + last_x)),
                               unpack_tap(read_only(job.tap_y + last_y))};
    return cell_window{(int)first[0].a, (int)first[1].a, (int)(last[0].b - first[0].a) + 1,
                       (int)(last[1].b - first[1].a) + 1};
}

template <typename CELL>
__device__ void stage_cells(const cuda_matte_job &job, uint32_t pitch, const cell_window &in,
                            CELL *room)
{
    for (int y = threadIdx.y; y < in.height; y += STRIPS)
        for (int x = threadIdx.x; x < in.width; x += STRIPS) {
            const int      column = in.left + x;
            const uint32_t at = (uint32_t)(in.top + y) * pitch + (uint32_t)column;
            read_cell(job, at, column + 1 < job.x.cells ? at + 1 : at, &room[y * in.width + x]);
        }
}

/* The rows of a thread; cell_of(x, y): of the grid. */
template <typename CELL, bool TURNED, typename CELL_OF>
__device__ void fill_rows(const cuda_matte_params &p, const cuda_matte_job &job, int x, int y,
                          CELL_OF cell_of)
{
    const bool               guided = sizeof(CELL) == sizeof(guided_cell);
    const quad               q[2] = {quad_of(job.x, x), quad_of(job.x, x + PIXELS)};
    const uint32_t          *tap_x = job.tap_x + (x - (job.x.from & -STRIP));
    const uint32_t          *tap_y = job.tap_y + (y - job.y.from);
    const int                count = job.y.until - y < ROWS ? job.y.until - y : ROWS;
    const bool               wide_out = job.wide_out;
    const size_t             out_pitch = job.out_pitch;
    uint8_t                 *out = job.out + (size_t)y * out_pitch + x;
    two_cells                across[STRIP];
    two_rows<wide_row<CELL>> w;
#pragma unroll
    for (int i = 0; i < STRIP; i++)
        across[i] = unpack_tap(read_only(tap_x + i));
#pragma unroll 1
    for (int from = 0; from < count; from += TOGETHER) {
        uint32_t luma[TOGETHER][2] = {}, down[TOGETHER];
#pragma unroll
        for (int j = 0; j < TOGETHER; j++)
            down[j] = read_only(tap_y + (from + j < count ? from + j : from));
#pragma unroll
        for (int j = 0; j < TOGETHER; j++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                if (guided && from + j < count)
                    luma[j][i] =
                        luma_of_quad<TURNED>(job.frame, job.wide_frame, q[i], y + from + j);
#pragma unroll
        for (int j = 0; j < TOGETHER; j++) {
            if (from + j >= count)
                break;
            const two_cells tap = unpack_tap(down[j]);
            w.move_to(tap.a, tap.b, [&](uint32_t row, wide_row<CELL> &wide) {
#pragma unroll
                for (int i = 0; i < STRIP; i++)
                    wide.set(i, cell_of(across[i].a, row), across[i].part);
            });
            uint32_t v[STRIP];
#pragma unroll
            for (int i = 0; i < STRIP; i++)
                v[i] = pixel_of(w, i, tap.part,
                                (int)(luma[j][i / PIXELS] >> 8 * (i % PIXELS) & 0xff), p.stretch);
            const eight_bytes bytes = {
                {bytes_of(v[0], v[1], v[2], v[3]), bytes_of(v[4], v[5], v[6], v[7])}};
            store_strip(out, wide_out, q, bytes);
            out += out_pitch;
        }
    }
}

/* A block's cells go to its shared memory first; where there are too many, as of a map finer than
 * the frame, they are read where they are. */
template <typename CELL, bool TURNED>
__global__ void __launch_bounds__(STRIPS *STRIPS, sizeof(CELL) > sizeof(level_cell) ? 2 : 3)
    fill_pixels(const __grid_constant__ cuda_matte_params p)
{
    __shared__ CELL       room[STAGED_MAX];
    const cuda_matte_job &job = p.jobs[blockIdx.z];
    const uint32_t        pitch = (uint32_t)p.spec.width;
    if (job.x.cells == 0)
        return;
    if (job.summary && blockIdx.x == 0 && blockIdx.y == 0 && thread_of_block() == 0)
        write_summary(job);
    const area at = area_of(job, CUDA_MATTE_AREA_Y, STRIP, ROWS);
    if (at.x - (int)threadIdx.x * STRIP >= job.x.until ||
        at.y - (int)threadIdx.y * ROWS >= job.y.until) /* for all of the block */
        return;
    const cell_window in = window_of(job);
    const bool        staged = in.width * in.height <= STAGED_MAX;
    if (staged)
        stage_cells(job, pitch, in, room);
    __syncthreads();
    if (at.x >= job.x.until || at.y >= job.y.until)
        return;
    if (staged)
        fill_rows<CELL, TURNED>(p, job, at.x, at.y, [&](uint32_t x, uint32_t row) {
            return room[((int)row - in.top) * in.width + (int)x - in.left];
        });
    else
        fill_rows<CELL, TURNED>(p, job, at.x, at.y, [&](uint32_t x, uint32_t row) {
            const uint32_t from = row * pitch + x;
            CELL           c;
            read_cell(job, from, (int)x + 1 < job.x.cells ? from + 1 : from, &c);
            return c;
        });
}

/* ---- classes ---- */

struct wide_numbers {
    float of[PIXELS];
};

/* What a number has to exceed: one number alone is class 1 from its half on. */
__device__ float class_from(enum sac_matte_form form)
{
    switch (form) {
    case SAC_MATTE_SHARE: return 0.5f;
    case SAC_MATTE_LOGIT: return 0.0f;
    default: return -INFINITY;
    }
}

/* Class after class, each where it is likelier than those before it. */
template <typename T>
__global__ void __launch_bounds__(THREADS, 3)
    fill_classes(const __grid_constant__ cuda_matte_params p)
{
    const cuda_matte_job &job = p.jobs[blockIdx.z];
    if (job.x.cells == 0)
        return;
    const area at = area_of(job, CUDA_MATTE_CLASS_Y, PIXELS, CLASS_ROWS);
    if (at.x >= job.x.until || at.y >= job.y.until)
        return;
    const bool       alone = p.spec.form == SAC_MATTE_SHARE || p.spec.form == SAC_MATTE_LOGIT;
    const quad       q = quad_of(job.x, at.x);
    const quad_taps  taps = taps_of(job.tap_x + (at.x - (job.x.from & -STRIP)));
    const numbers<T> in = numbers_of<T>(p, job);
    const uint32_t   cell = (uint32_t)in.cell;
    const int        count = job.y.until - at.y < CLASS_ROWS ? job.y.until - at.y : CLASS_ROWS;
    uint32_t         down[CLASS_ROWS], which[CLASS_ROWS] = {};
    float            best[CLASS_ROWS][PIXELS];
#pragma unroll
    for (int j = 0; j < CLASS_ROWS; j++) {
        down[j] = read_only(job.tap_y + (at.y - job.y.from + (j < count ? j : count - 1)));
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            best[j][i] = class_from(p.spec.form);
    }
#pragma unroll 1
    for (int k = 0; k < (alone ? 1 : p.spec.classes); k++) {
        const T               *plane = in.first + k * in.number;
        const uint32_t         number = alone ? 1 : (uint32_t)k;
        two_rows<wide_numbers> w;
#pragma unroll
        for (int j = 0; j < CLASS_ROWS; j++) {
            const two_cells tap = unpack_tap(down[j]);
            w.move_to(tap.a, tap.b, [&](uint32_t row, wide_numbers &wide) {
                const T *from = plane + row * in.row;
#pragma unroll
                for (int i = 0; i < PIXELS; i++)
                    wide.of[i] = sac_matte_between(number_of(read_only(from + taps.of[i].a * cell)),
                                                   number_of(read_only(from + taps.of[i].b * cell)),
                                                   taps.of[i].part);
            });
#pragma unroll
            for (int i = 0; i < PIXELS; i++) {
                const float v = sac_matte_between(w.wide[0].of[i], w.wide[1].of[i], tap.part);
                if (v > best[j][i]) {
                    best[j][i] = v;
                    which[j] = (which[j] & ~(0xffu << 8 * i)) | number << 8 * i;
                }
            }
        }
    }
    for (int j = 0; j < count; j++)
        store_quad(job.out + (size_t)(at.y + j) * job.out_pitch + at.x, job.wide_out, q, which[j]);
}

/* The class of the cell that a pixel lies in. */
template <typename T>
__global__ void __launch_bounds__(THREADS) fill_labels(const __grid_constant__ cuda_matte_params p)
{
    const cuda_matte_job &job = p.jobs[blockIdx.z];
    if (job.x.cells == 0)
        return;
    const area at = area_of(job, CUDA_MATTE_CLASS_Y, PIXELS, CLASS_ROWS);
    if (at.x >= job.x.until || at.y >= job.y.until)
        return;
    const quad       q = quad_of(job.x, at.x);
    const numbers<T> in = numbers_of<T>(p, job);
    const uint32_t  *tap_x = job.tap_x + (at.x - (job.x.from & -STRIP));
    const int        end = job.y.until - at.y < CLASS_ROWS ? job.y.until : at.y + CLASS_ROWS;
    for (int y = at.y; y < end; y++) {
        const int row = (int)job.tap_y[y - job.y.from];
        uint32_t  bytes = 0;
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            bytes |= (uint32_t)sac_matte_class(in.at(0, (int)tap_x[i], row)) << 8 * i;
        store_quad(job.out + (size_t)y * job.out_pitch + at.x, job.wide_out, q, bytes);
    }
}

/* ---- the state ---- */

/* Planes that were made elsewhere because their place was still read. */
__global__ void __launch_bounds__(THREADS) keep_planes(const __grid_constant__ cuda_matte_params p)
{
    const cuda_matte_job &job = p.jobs[blockIdx.z];
    const int             width = job.x.cells, height = job.y.cells;
    if (!job.share_kept)
        return;
    const tile t = tile_of(TILE_X, TILE_Y);
    const int  x = t.x + threadIdx.x - MARGIN, y = t.y + threadIdx.y - MARGIN;
    if (x >= width + MARGIN || y >= height + MARGIN)
        return;
    const ptrdiff_t luma_at = (ptrdiff_t)y * p.luma_pitch + x;
    job.luma_kept[luma_at] = job.luma[luma_at];
    if (x >= 0 && x < width && y >= 0 && y < height) {
        const ptrdiff_t at = (ptrdiff_t)y * p.spec.width + x;
        job.share_kept[at] = job.share[at];
    }
}

/* ---- launches ---- */

int pieces(int of, int size)
{
    return (of + size - 1) / size;
}

/* A block for each tile of cells of each job. */
dim3 tiles(const cuda_matte_params &p, int around, int width, int height)
{
    return dim3(pieces(p.cells_x_max + 2 * around, width),
                pieces(p.cells_y_max + 2 * around, height), p.n);
}

dim3 quads(const cuda_matte_params &p, int around)
{
    return tiles(p, around, QUAD_TILE, QUADS);
}

dim3 areas(const cuda_matte_params &p, int height)
{
    return dim3(pieces(p.pixels_x_max, CUDA_MATTE_AREA_X), pieces(p.pixels_y_max, height), p.n);
}

void launch_list(const cuda_matte_params &p, const cuda_matte_job *jobs, cudaStream_t stream)
{
    const bool nearest = p.classes && p.spec.form == SAC_MATTE_LABEL;
    job_list   list;
    for (int first = 0; first < p.n; first += CUDA_MATTE_JOBS_SENT) {
        const int n = p.n - first < CUDA_MATTE_JOBS_SENT ? p.n - first : CUDA_MATTE_JOBS_SENT;
        for (int i = 0; i < n; i++)
            list.job[i] = jobs[first + i];
        CUDA_LAUNCH(prepare, dim3(pieces(p.table_max, THREADS), n), THREADS, stream, list,
                    p.jobs + first, nearest);
    }
}

void launch_motion(const cuda_matte_params &p, cudaStream_t stream)
{
    const dim3 blocks(pieces(p.cells_x_max, BLOCK * WARPS), pieces(p.cells_y_max, BLOCK), p.n);
    const dim3 block(QUADS, QUADS);
    CUDA_LAUNCH(search_blocks, blocks, THREADS, stream, p);
    CUDA_LAUNCH(find_cells, quads(p, 0), block, stream, p);
    for (int first = 0; first <= p.depth_max; first += CUDA_MATTE_CHAIN)
        CUDA_LAUNCH(take_over, quads(p, 0), block, stream, p, first);
}

template <typename CELL> void launch_pixels(const cuda_matte_params &p, cudaStream_t stream)
{
    const dim3 grid = areas(p, CUDA_MATTE_AREA_Y), block(STRIPS, STRIPS);
    if (p.turned)
        CUDA_LAUNCH((fill_pixels<CELL, true>), grid, block, stream, p);
    else
        CUDA_LAUNCH((fill_pixels<CELL, false>), grid, block, stream, p);
}

template <typename T> void launch_matte(const cuda_matte_params &p, cudaStream_t stream)
{
    const dim3 block(TILE_X, TILE_Y);
    if (p.turned)
        CUDA_LAUNCH((fill_cells<T, true>), quads(p, MARGIN), dim3(QUADS, QUADS), stream, p);
    else
        CUDA_LAUNCH((fill_cells<T, false>), quads(p, MARGIN), dim3(QUADS, QUADS), stream, p);
    if (p.depth_max >= 0)
        launch_motion(p, stream);
    if (p.hole > 0)
        CUDA_LAUNCH(close_holes, tiles(p, 0, TILE_X, CLOSE_Y), block, stream, p);
    if (p.guide > 0) {
        CUDA_LAUNCH(fit_lines, tiles(p, 0, TILE_X, LINE_Y), block, stream, p);
        CUDA_LAUNCH(mean_lines, tiles(p, 0, TILE_X, LINE_Y), block, stream, p);
        launch_pixels<guided_cell>(p, stream);
    } else {
        launch_pixels<level_cell>(p, stream);
    }
    if (p.kept)
        CUDA_LAUNCH(keep_planes, tiles(p, MARGIN, TILE_X, TILE_Y), block, stream, p);
}

template <typename T> void launch(const cuda_matte_params &p, cudaStream_t stream)
{
    const dim3 grid = areas(p, CUDA_MATTE_CLASS_Y), block(TILE_X, TILE_Y);
    if (!p.classes)
        launch_matte<T>(p, stream);
    else if (p.spec.form == SAC_MATTE_LABEL)
        CUDA_LAUNCH(fill_labels<T>, grid, block, stream, p);
    else
        CUDA_LAUNCH(fill_classes<T>, grid, block, stream, p);
}

} // namespace

extern "C" cudaError_t cuda_launch_matte(const struct cuda_matte_params *p,
                                         const struct cuda_matte_job *jobs, cudaStream_t stream)
{
    launch_list(*p, jobs, stream);
    if (p->pixels_x_max == 0)
        return cudaGetLastError();
    switch (p->spec.value.dtype) {
    case SAC_F16: launch<half_bits>(*p, stream); break;
    case SAC_I32: launch<int32_t>(*p, stream); break;
    case SAC_I64: launch<int64_t>(*p, stream); break;
    default: launch<float>(*p, stream); break;
    }
    return cudaGetLastError();
}
