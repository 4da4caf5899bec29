/* SPDX-License-Identifier: Apache-2.0 */
/* Mattes: the network's numbers become shares, the frame's pixels the luma of cells. */
#pragma once

#include "vision/cuda/matte_common.cuh"

namespace
{

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
    __device__ four_numbers<T> four(int k, int x, int y, int count) const
    {
        const T *from = first + k * number + y * row + x * cell;
        if (count == PIXELS && cell == 1 && (uintptr_t)from % sizeof(four_numbers<T>) == 0)
            return *(const four_numbers<T> *)(const void *)from;
        four_numbers<T> v;
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            v.of[i] = from[(i < count ? i : 0) * cell];
        return v;
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

/* sac_exp of what is 0 or less, or no number, to the last bit. Added to a number whose last bit is
 * one, downwards, a number loses its fraction; rounding and conversion are slow. */
__device__ float exp_of(float x)
{
#ifdef __CUDA_ARCH__
    const float whole = 12582912.0f; /* 1.5 * 2^23: the lowest bits of a sum are the other number */
    const float at = __fadd_rd(x * 1.44269504f + 0.5f, whole), n = at - whole;
    const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
    float       p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    p = __uint_as_float(__float_as_uint(p) + (__float_as_uint(at) << 23));
    return x > -87.0f ? p : 0.0f;
#else
    return sac_exp(x);
#endif
}

/* sac_matte_share without the slow conversion. */
__device__ int16_t share_of(float v)
{
#ifdef __CUDA_ARCH__
    v = v > 0.0f ? v : 0.0f;
    v = v < 1.0f ? v : 1.0f;
    return (int16_t)__float_as_uint(__fadd_rz(v * (float)SAC_MATTE_ONE + 0.5f, 8388608.0f));
#else
    return sac_matte_share(v);
#endif
}

/* The share of two classes by one exponential: the greater one's is 1, or 0 where it is no number
 * or infinite. As softmax_of, to the last bit. */
__device__ float part_of_two(float a, float b, bool wants_a, bool wants_b)
{
    const float first = a > -INFINITY ? a : -INFINITY;
    const bool  second = b > first;
    const float greatest = second ? b : first;
    const float less = exp_of(-fabsf(a - b)), most = greatest - greatest == 0.0f ? 1.0f : 0.0f;
    const float of_a = second ? less : most, of_b = second ? most : less;
    const float wanted = (wants_a ? of_a : 0.0f) + (wants_b ? of_b : 0.0f);
    return part_of(wanted, of_a + of_b);
}

template <typename T>
__device__ void softmax_of(const sac_matte_spec &s, const numbers<T> &in, int x, int y, int count,
                           float out[PIXELS])
{
    float greatest[PIXELS], total[PIXELS], wanted[PIXELS];
#pragma unroll
    for (int i = 0; i < PIXELS; i++) {
        greatest[i] = -INFINITY;
        total[i] = wanted[i] = 0.0f;
    }
#pragma unroll 4
    for (int k = 0; k < s.classes; k++) {
        const four_numbers<T> four = in.four(k, x, y, count);
#pragma unroll
        for (int i = 0; i < PIXELS; i++) {
            const float v = number_of(four.of[i]);
            greatest[i] = v > greatest[i] ? v : greatest[i];
        }
    }
#pragma unroll 1
    for (int k = 0; k < s.classes; k++) {
        const bool            wants = sac_matte_wanted(&s, k);
        const four_numbers<T> four = in.four(k, x, y, count);
#pragma unroll
        for (int i = 0; i < PIXELS; i++) {
            const float e = exp_of(number_of(four.of[i]) - greatest[i]);
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
#pragma unroll
    for (int i = 0; i < PIXELS; i++)
        out[i] = 0.0f;
    for (int k = 0; k < s.classes; k++) {
        if (!sac_matte_wanted(&s, k))
            continue;
        const four_numbers<T> four = in.four(k, x, y, count);
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            out[i] += number_of(four.of[i]);
    }
}

__device__ bool has_two_logits(const sac_matte_spec &s)
{
    return s.form == SAC_MATTE_CLASS_LOGITS && s.classes == 2;
}

/* Numbers 0 and, of two logits, 1 of four cells: read first, used much later. */
template <typename T> struct early_numbers {
    four_numbers<T> first, second;
    __device__ early_numbers(const sac_matte_spec &s, const numbers<T> &in, int x, int y, int count)
        : first(), second()
    {
        if (count > 0)
            first = in.four(0, x, y, count);
        if (count > 0 && has_two_logits(s))
            second = in.four(1, x, y, count);
    }
};

template <typename T>
__device__ void shares_of(const sac_matte_spec &s, const numbers<T> &in,
                          const early_numbers<T> &early, int x, int y, int count,
                          int16_t out[PIXELS])
{
    float v[PIXELS];
#pragma unroll
    for (int i = 0; i < PIXELS; i++)
        v[i] = number_of(early.first.of[i]);
    if (has_two_logits(s)) {
        const bool wants[2] = {sac_matte_wanted(&s, 0), sac_matte_wanted(&s, 1)};
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            v[i] = part_of_two(v[i], number_of(early.second.of[i]), wants[0], wants[1]);
    } else if (s.form == SAC_MATTE_CLASS_LOGITS) {
        softmax_of(s, in, x, y, count, v);
    } else if (s.form == SAC_MATTE_CLASS_SHARES) {
        sum_of(s, in, x, y, count, v);
    }
    if (s.form == SAC_MATTE_LABEL) {
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            out[i] = sac_matte_share_of_label(&s, v[i]);
        return;
    }
    if (s.form == SAC_MATTE_LOGIT) {
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            v[i] = sac_sigmoid(v[i]);
    }
#pragma unroll
    for (int i = 0; i < PIXELS; i++)
        out[i] = share_of(v[i]);
}

/* ---- luma ---- */

/* How a launch reads its frames. A kernel that has no other way than words is short. */
enum reading { WORDS, UPRIGHT, TURNED };

/* The format is one for all of a block. */
template <reading READING, typename BODY>
__device__ auto read_as(enum sac_pixel_format format, BODY body)
{
    switch (format) {
    case SAC_PIXEL_P010: return body(sac_reading{SAC_PIXEL_P010, READING == TURNED});
    case SAC_PIXEL_NV12:
    case SAC_PIXEL_I420:
    case SAC_PIXEL_GRAY8: return body(sac_reading{SAC_PIXEL_GRAY8, READING == TURNED});
    default: return body(sac_reading{format, READING == TURNED});
    }
}

/* A block's cells, and the pixels of its columns and rows of them. Columns and rows past the grid
 * have the pixels of the nearest ones. */
struct tile_cells {
    int            edge_x[QUAD_TILE + 1], edge_y[QUADS + 1];
    sac_matte_span x[QUAD_TILE], y[QUADS];
    float          inverse[SAC_MATTE_SAMPLES * SAC_MATTE_SAMPLES]; /* of 1 and more pixels */
    uint32_t       luma[QUADS][QUADS];
};
enum { TILE_EDGES = QUAD_TILE + 1 + QUADS + 1 };
static_assert((int)TILE_EDGES <= (int)THREADS, "a thread for each");
static_assert(SAC_MATTE_SAMPLES * SAC_MATTE_SAMPLES == (int)THREADS, "the same");

/* sac_matte_edge, to the last bit. */
__device__ int edge_of(const sac_matte_axis &a, int cell)
{
#ifdef __CUDA_ARCH__
    const int at = __double2int_ru(quotient_of(cell - a.origin, a.step) - 0.5);
    return clamp_to(at, a.from, a.until);
#else
    return sac_matte_edge(&a, cell);
#endif
}

/* A division for each edge, not for each cell. */
__device__ void look_up(tile_cells *cells, const cuda_matte_job &job, const tile &t, int thread)
{
    const bool            along = thread <= QUAD_TILE;
    const sac_matte_axis &a = along ? job.x : job.y;
    const int             i = along ? thread : thread - QUAD_TILE - 1;
    const int             at = (along ? t.x : t.y) + i, cell = at < a.cells ? at : a.cells;
    int *const            edge = along ? cells->edge_x : cells->edge_y;
    cells->inverse[thread] = part_of(1.0f, (float)(thread + 1)); /* sac_matte_inverse */
    if (thread < TILE_EDGES)
        edge[i] = edge_of(a, cell);
    __syncthreads();
    if (thread >= TILE_EDGES || i == (along ? QUAD_TILE : QUADS))
        return;
    const int nearest = at < a.cells ? i : i - (at - a.cells + 1);
    (along ? cells->x : cells->y)[i] =
        sac_matte_span_between(&a, at - i + nearest, edge[nearest], edge[nearest + 1]);
}

template <reading READING>
__device__ uint8_t mean_of(const cuda_matte_job &job, const sac_matte_span &sx,
                           const sac_matte_span &sy)
{
    const int     across = sac_matte_samples(&sx), down = sac_matte_samples(&sy);
    const int32_t sum = read_as<READING>(job.frame.format, [&](sac_reading r) {
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

/* The first `count` bytes of a word; less than none are none. */
__device__ uint32_t first_bytes(int count)
{
    return count >= 4 ? ~0u : ~(~0u << 8 * (count > 0 ? count : 0));
}

/* sac_matte_mean without slow conversions. */
__device__ uint8_t mean_byte(uint32_t sum, float inverse)
{
#ifdef __CUDA_ARCH__
    const float of = __uint_as_float(0x4b000000u | sum) - 8388608.0f;
    return (uint8_t)__float_as_uint(__fadd_rz(of * inverse + 0.5f, 8388608.0f));
#else
    return sac_matte_mean((int32_t)sum, inverse);
#endif
}

enum {
    ROWS_AT_ONCE = 9, /* rows of pixels of a thread that are under way */
    WORDS_MAX = (QUAD_TILE * SAC_MATTE_SAMPLES + 3) / PIXELS + 1 /* that a row of a tile touches */
};

/* The sums of columns of pixels, four of them side by side: of the first and the third, and of the
 * second and the fourth, 16 bits each. A row of cells has its own and those of the rows above it in
 * the same thread, at most 64 rows of pixels. */
struct column_sums {
    uint2 of[QUADS][WORDS_MAX];
};

/* Four columns, from `left` on, in the rows of pixels of four rows of cells, which mostly follow
 * each other. */
template <bool WIDE>
__device__ void sum_columns(const uint8_t *left, uint32_t pitch, const sac_matte_span sy[PIXELS],
                            uint2 *to)
{
    bool follow = true;
#pragma unroll
    for (int i = 0; i < PIXELS - 1; i++)
        follow = follow && sy[i].first + sy[i].length == sy[i + 1].first;
    const sac_matte_span *const past = sy + PIXELS;
    uint2                       sum = {0, 0};
#pragma unroll 1
    while (sy < past) {
        const sac_matte_span *const last = follow ? past - 1 : sy;
        const int                   until = last->first + last->length;
        int                         end = sy->first + sy->length;
#pragma unroll 1
        for (int y = sy->first; y < until; y += ROWS_AT_ONCE) {
            const uint8_t  *at = left + (size_t)(uint32_t)y * pitch;
            four_luma<WIDE> row[ROWS_AT_ONCE];
#pragma unroll
            for (int j = 0; j < ROWS_AT_ONCE; j++, at += pitch) {
                row[j] = {};
                if (y + j < until)
                    row[j] = read_four<WIDE>(at);
            }
#pragma unroll
            for (int j = 0; j < ROWS_AT_ONCE; j++) {
                const uint32_t four = row[j].bytes();
                sum.x += four & 0x00ff00ffu;
                sum.y += four >> 8 & 0x00ff00ffu;
                if (y + j + 1 == end) { /* for all of a warp */
                    *to = sum;
                    to += WORDS_MAX;
                    sy++;
                    end = sy <= last ? sy->first + sy->length : 0;
                }
            }
        }
    }
}

/* The luma of four cells one below the other, of the sums of columns from pixel x on. */
__device__ void sum_cells(const tile_cells &cells, int column, int top, int x, const uint2 *sums,
                          uint8_t *to)
{
    const sac_matte_span sx = cells.x[column];
    const int            from = (sx.first - x) & (PIXELS - 1);
    uint32_t             sum[PIXELS] = {}, mask = 0x01010101u << 8 * from;
    sums += (sx.first - x) / PIXELS;
#pragma unroll 1
    for (int left = from + sx.length; left > 0; left -= PIXELS, sums++) {
        /* of a column or not, in the order of the sums */
        mask = __byte_perm(mask & first_bytes(left), 0, 0x3120);
#pragma unroll
        for (int i = 0; i < PIXELS; i++) {
            const uint2 of = sums[i * WORDS_MAX];
            sum[i] = __dp2a_hi(of.y, mask, __dp2a_lo(of.x, mask, sum[i]));
        }
        mask = 0x01010101u;
    }
#pragma unroll
    for (int i = 0; i < PIXELS; i++)
        to[i * QUAD_TILE] = mean_byte(sum[i] - (i > 0 ? sum[i - 1] : 0),
                                      cells.inverse[sx.length * cells.y[top + i].length - 1]);
}

/* Each thread reads columns of pixels, then makes cells of them: pixels are read once, by lanes
 * that lie side by side. Every thread of the block calls it. */
__device__ void fill_by_words(const cuda_matte_job &job, const tile_cells &cells, int column,
                              int top, uint8_t *to)
{
    __shared__ column_sums sums;
    const sac_matte_span   last = cells.x[QUAD_TILE - 1];
    const int              x = cells.x[0].first & -PIXELS, end = last.first + last.length;
    const uint32_t         pitch = job.frame.pitch[0];
    for (int word = column; x + word * PIXELS < end; word += QUAD_TILE) {
        const uint8_t *left = job.frame.plane[0];
        const uint32_t pixel = (uint32_t)(x + word * PIXELS);
        if (job.frame.format == SAC_PIXEL_P010)
            sum_columns<true>(left + 2 * pixel, pitch, &cells.y[top], &sums.of[top][word]);
        else
            sum_columns<false>(left + pixel, pitch, &cells.y[top], &sums.of[top][word]);
    }
    __syncthreads();
    sum_cells(cells, column, top, x, sums.of[top], to);
}

template <reading READING>
__device__ void fill_luma(const cuda_matte_job &job, tile_cells *cells, int thread)
{
    const int column = thread % QUAD_TILE, top = thread / QUAD_TILE * PIXELS;
    uint8_t  *to = (uint8_t *)cells->luma[top] + column;
    if (READING == WORDS)
        fill_by_words(job, *cells, column, top, to);
    else
        for (int i = 0; i < PIXELS; i++)
            to[i * QUAD_TILE] = mean_of<READING>(job, cells->x[column], cells->y[top + i]);
}

/* ---- planes of luma ---- */

/* What a block writes of the planes: its cells, at the grid's edges with the margin. */
struct reach {
    int left, top, right, bottom;
};

__device__ reach reach_of(const cuda_matte_job &job, const tile &t)
{
    reach r;
    r.left = t.x > 0 ? t.x : -MARGIN;
    r.top = t.y > 0 ? t.y : -MARGIN;
    r.right = t.x + QUAD_TILE < job.x.cells ? t.x + QUAD_TILE : job.x.cells + MARGIN;
    r.bottom = t.y + QUADS < job.y.cells ? t.y + QUADS : job.y.cells + MARGIN;
    return r;
}

/* Four cells from x on, a multiple of four; those of the margin are the nearest ones. */
__device__ uint32_t four_near(const tile_cells &cells, const tile &t, int x, int y)
{
    const uint32_t *row = cells.luma[clamp_to(y - t.y, 0, QUADS - 1)];
    if (x < t.x)
        return __byte_perm(row[0], 0, 0x0000);
    return x < t.x + QUAD_TILE ? row[(x - t.x) / PIXELS] : __byte_perm(row[QUADS - 1], 0, 0x3333);
}

__device__ void store_luma(const cuda_matte_params &p, const cuda_matte_job &job,
                           const tile_cells &cells, const tile &t, const reach &r)
{
#pragma unroll 1
    for (int y = r.top + (int)threadIdx.y; y < r.bottom; y += QUADS)
#pragma unroll 1
        for (int x = r.left + (int)threadIdx.x * PIXELS; x < r.right; x += QUAD_TILE) {
            const uint32_t four = four_near(cells, t, x, y);
            uint8_t       *to = job.luma + (ptrdiff_t)y * p.luma_pitch + x;
            if (x + PIXELS <= r.right)
                *(uint32_t *)(void *)to = four;
            else
                for (int i = 0; i < PIXELS && x + i < r.right; i++)
                    to[i] = (uint8_t)(four >> 8 * i);
        }
}

/* Planes of half size begin with their margin's first cell. A thread makes four of their cells at a
 * time, of 8 x 2; body(x, y, to): from x, y on. */
template <typename BODY>
__device__ void each_half(const cuda_matte_params &p, const cuda_matte_job &job, const reach &r,
                          uint8_t *half, int thread, BODY body)
{
    const int across = QUADS / 2, bottom = r.bottom < job.y.cells + MARGIN - 1
                                               ? r.bottom
                                               : job.y.cells + MARGIN - 1; /* rows in twos */
#pragma unroll 1
    for (int y = r.top + thread / across * 2; y < bottom; y += THREADS / across * 2)
#pragma unroll 1
        for (int x = r.left + thread % across * 2 * PIXELS; x < r.right; x += QUAD_TILE)
            body(x, y,
                 (uint32_t *)(void *)(half + (ptrdiff_t)((y + MARGIN) / 2) * p.half_pitch +
                                      (x + MARGIN) / 2));
}

__device__ void fill_half(const cuda_matte_params &p, const cuda_matte_job &job,
                          const tile_cells &cells, const tile &t, const reach &r, int thread)
{
    each_half(p, job, r, job.half, thread, [&](int x, int y, uint32_t *to) {
        const uint32_t rows[2][2] = {
            {four_near(cells, t, x, y), four_near(cells, t, x + PIXELS, y)},
            {four_near(cells, t, x, y + 1), four_near(cells, t, x + PIXELS, y + 1)}};
        *to = halve_four(rows[0], rows[1]);
    });
}

/* The same of the frame before, which is of an earlier batch. No search reads the last cells of its
 * margin. */
__device__ void fill_half_before(const cuda_matte_params &p, const cuda_matte_job &job,
                                 const reach &r, int thread)
{
    each_half(p, job, r, job.half_before, thread, [&](int x, int y, uint32_t *to) {
        if (x >= job.x.cells + MARGIN - 1)
            return;
        const uint8_t *above = job.luma_before + (ptrdiff_t)y * p.luma_pitch + x,
                      *below = above + p.luma_pitch;
        const uint32_t rows[2][2] = {{four_at(above), four_at(above + PIXELS)},
                                     {four_at(below), four_at(below + PIXELS)}};
        *to = halve_four(rows[0], rows[1]);
    });
}

/* Shares of the grid, and luma with its margin, whose cells are those next to them. */
template <typename T, reading READING>
__global__ void __launch_bounds__(THREADS, 4)
    fill_cells(const __grid_constant__ cuda_matte_params p)
{
    early_begin();
    __shared__ tile_cells cells;
    const cuda_matte_job &job = p.jobs[blockIdx.z];
    const int             width = job.x.cells, height = job.y.cells, thread = thread_of_block();
    const tile            t = tile_of(QUAD_TILE, QUADS);
    const int             x = t.x + threadIdx.x * PIXELS, y = t.y + threadIdx.y;
    if (t.x >= width || t.y >= height)
        return;
    const int        count = job.image >= 0 && y < height ? clamp_to(width - x, 0, PIXELS) : 0;
    const numbers<T> in = numbers_of<T>(p, job);
    const early_numbers<T> early(p.spec, in, x, y, count);
    int16_t                share[PIXELS] = {};
    look_up(&cells, job, t, thread);
    __syncthreads();
    fill_luma<READING>(job, &cells, thread);
    if (count > 0) {
        shares_of(p.spec, in, early, x, y, count, share);
        store_four(job.raw + (ptrdiff_t)y * p.spec.width + x, count, share);
    }
    __syncthreads();
    const reach r = reach_of(job, t);
    store_luma(p, job, cells, t, r);
    if (job.half)
        fill_half(p, job, cells, t, r, thread);
    if (job.halves_before)
        fill_half_before(p, job, r, thread);
    if (job.summary && job.image >= 0)
        add_to_summary(job, count, share, x, y);
}

} // namespace
