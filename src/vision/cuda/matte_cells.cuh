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
        out[i] = sac_matte_share(v[i]);
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

/* Sums of four cells' luma, two words of a row of each at a time, so that many are under way. What
 * a cell does not reach counts as nothing, and is read where the cell begins. */
__device__ void sums_of_four(const cuda_matte_job &job, const sac_matte_span sx[PIXELS],
                             const sac_matte_span &sy, uint32_t sum[PIXELS])
{
    const bool     words = job.frame.format == SAC_PIXEL_P010;
    const int      scale = words ? 2 : 1;
    const uint32_t ones = words ? 0x01000100u : 0x01010101u; /* of 16 bits the upper byte counts */
    const size_t   pitch = job.frame.pitch[0];
    const uint8_t *first = job.frame.plane[0] + (size_t)sy.first * pitch;
    int            end[PIXELS], longest = 0; /* bytes from a cell's first word on */
    uint32_t       begin[PIXELS], mask[PIXELS][2];
#pragma unroll
    for (int i = 0; i < PIXELS; i++) {
        const int from = sx[i].first * scale;
        begin[i] = (uint32_t)from & ~3u;
        end[i] = (from & 3) + sx[i].length * scale;
        mask[i][0] = first_bytes(end[i]) & ones << 8 * (from & 3);
        longest = end[i] > longest ? end[i] : longest;
        sum[i] = 0;
    }
#pragma unroll 1
    for (int k = 0; k < longest; k += 8) {
        uint32_t at[PIXELS][2];
#pragma unroll
        for (int i = 0; i < PIXELS; i++) {
            if (k > 0)
                mask[i][0] = first_bytes(end[i] - k) & ones;
            mask[i][1] = first_bytes(end[i] - k - 4) & ones;
            at[i][0] = begin[i] + (uint32_t)(k < end[i] ? k : 0);
            at[i][1] = begin[i] + (uint32_t)(k + 4 < end[i] ? k + 4 : 0);
        }
        const uint8_t *row = first;
#pragma unroll 2
        for (int j = 0; j < sy.length; j++, row += pitch)
#pragma unroll
            for (int i = 0; i < 2 * PIXELS; i++)
                sum[i / 2] =
                    __dp4a(read_only((const uint32_t *)(const void *)(row + at[i / 2][i % 2])),
                           mask[i / 2][i % 2], sum[i / 2]);
    }
}

/* The pixels of a block's columns and rows of cells. */
struct tile_spans {
    sac_matte_span x[QUAD_TILE], y[QUADS];
};

/* x, y: the tile's first cell; those of the margin have the pixels of the nearest ones. */
__device__ void look_up(tile_spans *spans, const cuda_matte_job &job, int x, int y, int thread)
{
    if (thread < QUAD_TILE)
        spans->x[thread] = sac_matte_span_of(&job.x, clamp_to(x + thread, 0, job.x.cells - 1));
    else if (thread < QUAD_TILE + QUADS)
        spans->y[thread - QUAD_TILE] =
            sac_matte_span_of(&job.y, clamp_to(y + thread - QUAD_TILE, 0, job.y.cells - 1));
}
static_assert((int)QUAD_TILE + (int)QUADS <= (int)THREADS, "a thread for each");

/* Of four cells side by side. */
template <reading READING>
__device__ uint32_t lumas_of(const cuda_matte_job &job, const sac_matte_span *x,
                             const sac_matte_span &sy)
{
    sac_matte_span sx[PIXELS];
    uint32_t       sum[PIXELS], four = 0;
#pragma unroll
    for (int i = 0; i < PIXELS; i++)
        sx[i] = x[i];
    if (READING == WORDS)
        sums_of_four(job, sx, sy, sum);
#pragma unroll
    for (int i = 0; i < PIXELS; i++)
        four |= (uint32_t)(READING == WORDS
                               ? sac_matte_mean((int32_t)sum[i],
                                                sac_matte_inverse(sx[i].length * sy.length))
                               : mean_of<READING>(job, sx[i], sy))
                << 8 * i;
    return four;
}

/* Luma of a thread's four cells, of which `count` are there. */
template <reading READING>
__device__ uint32_t fill_luma(const cuda_matte_params &p, const cuda_matte_job &job,
                              const tile_spans &spans, int x, int y, int count)
{
    uint8_t *to = job.luma + (ptrdiff_t)y * p.luma_pitch + x;
    if (count == 0)
        return 0;
    const uint32_t four =
        lumas_of<READING>(job, &spans.x[threadIdx.x * PIXELS], spans.y[threadIdx.y]);
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
template <typename T, reading READING>
__global__ void __launch_bounds__(THREADS, 4)
    fill_cells(const __grid_constant__ cuda_matte_params p)
{
    __shared__ tile_spans spans;
    __shared__ uint32_t   luma[QUADS][QUADS];
    const cuda_matte_job &job = p.jobs[blockIdx.z];
    const int             width = job.x.cells, height = job.y.cells;
    const tile            t = tile_of(QUAD_TILE, QUADS);
    const int             x = t.x + threadIdx.x * PIXELS - MARGIN, y = t.y + threadIdx.y - MARGIN;
    if (width == 0 || t.x >= width + 2 * MARGIN || t.y >= height + 2 * MARGIN)
        return;
    look_up(&spans, job, t.x - MARGIN, t.y - MARGIN, thread_of_block());
    __syncthreads();
    const int  lumas = y < height + MARGIN ? clamp_to(width + MARGIN - x, 0, PIXELS) : 0;
    const bool in = job.image >= 0 && x >= 0 && y >= 0 && y < height;
    const int  count = in ? clamp_to(width - x, 0, PIXELS) : 0;
    int16_t    share[PIXELS] = {};
    luma[threadIdx.y][threadIdx.x] = fill_luma<READING>(p, job, spans, x, y, lumas);
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

} // namespace
