/* SPDX-License-Identifier: Apache-2.0 */
/* Mattes: what is made of the windows about cells: holes that are closed, lines along luma. */
#pragma once

#include "vision/cuda/matte_common.cuh"

namespace
{

/* ---- holes ---- */

enum {
    HOLE = SAC_MATTE_HOLE_MAX,
    PAIR = 2,               /* cells of a lane, side by side, as halves of a word */
    CLOSE_X = PAIR * LANES, /* cells of a block with those around that it reads; a warp has a row */
    CLOSE_Y = 5 * TILE_Y
};
static_assert(CLOSE_X > 2 * HOLE && CLOSE_Y > 2 * HOLE, "cells are left to be closed");
static_assert((int)TILE_X == (int)LANES, "a row of a block's threads is a warp");

__device__ uint32_t pair_of(int16_t a, int16_t b)
{
    return (uint32_t)(uint16_t)a | (uint32_t)(uint16_t)b << 16;
}

/* Of a row's pairs those that begin `by` cells further on. */
__device__ uint32_t shift_pair(uint32_t pair, int by)
{
    const int      from = threadIdx.x + (by >> 1); /* past the row: nobody reads what comes of it */
    const uint32_t a = __shfl_sync(~0u, pair, from & (LANES - 1));
    if (!(by & 1))
        return a;
    return __funnelshift_r(a, __shfl_sync(~0u, pair, (from + 1) & (LANES - 1)), 16);
}

template <bool MOST> __device__ uint32_t better_of(uint32_t a, uint32_t b)
{
    return MOST ? __vmaxs2(a, b) : __vmins2(a, b);
}

/* The greatest or smallest of each cell's window along its row, from `before` cells before it. */
template <bool MOST> __device__ uint32_t best_along(uint32_t pair, int before, int after)
{
    uint32_t best = pair;
    for (int u = -before; u <= after; u++)
        if (u)
            best = better_of<MOST>(best, shift_pair(pair, u));
    return best;
}

template <bool MOST>
__device__ uint32_t best_across(const uint32_t (*row)[LANES], int before, int after)
{
    uint32_t best = row[0][threadIdx.x];
    for (int v = -before; v <= after; v++)
        if (v)
            best = better_of<MOST>(best, row[v][threadIdx.x]);
    return best;
}

/* The greatest share of a window, then the smallest of these, each along rows and then columns;
 * what lies outside the grid is none of them. */
__global__ void __launch_bounds__(THREADS) close_holes(const __grid_constant__ cuda_matte_params p)
{
    early_begin();
    __shared__ uint32_t   a[CLOSE_Y][LANES], b[CLOSE_Y][LANES];
    const cuda_matte_job &job = p.jobs[blockIdx.z];
    const int             width = job.x.cells, height = job.y.cells, hole = p.hole;
    const int             before = sac_matte_hole_before(hole), after = sac_matte_hole_after(hole);
    const tile            t = tile_of(CLOSE_X - 2 * hole, CLOSE_Y - 2 * hole);
    if (t.x >= width || t.y >= height)
        return;
    const int  x = t.x - hole + (int)threadIdx.x * PAIR, top = t.y - hole;
    const bool in[PAIR] = {x >= 0 && x < width, x + 1 >= 0 && x + 1 < width};
#pragma unroll
    for (int j = threadIdx.y; j < CLOSE_Y; j += TILE_Y) {
        const int      y = top + j;
        const bool     row = y >= 0 && y < height;
        const int16_t *share = job.share + (ptrdiff_t)y * p.spec.width + x;
        const uint32_t pair = pair_of(row && in[0] ? share[0] : (int16_t)INT16_MIN,
                                      row && in[1] ? share[1] : (int16_t)INT16_MIN);
        b[j][threadIdx.x] = best_along<true>(pair, before, after);
    }
    __syncthreads();
    const uint32_t outside = pair_of(in[0] ? 0 : -1, in[1] ? 0 : -1),
                   far = pair_of(INT16_MAX, INT16_MAX);
#pragma unroll
    for (int j = threadIdx.y; j < CLOSE_Y; j += TILE_Y) {
        const int y = top + j;
        if (j < before || j >= CLOSE_Y - after)
            continue;
        const uint32_t most = best_across<true>(&b[j], before, after);
        const uint32_t none = y >= 0 && y < height ? outside : ~0u;
        a[j][threadIdx.x] = best_along<false>((most & ~none) | (far & none), after, before);
    }
    __syncthreads();
    for (int j = threadIdx.y + hole; j < CLOSE_Y - hole; j += TILE_Y) {
        const uint32_t least = best_across<false>(&a[j], after, before);
        int16_t       *to = job.closed + (ptrdiff_t)(top + j) * p.spec.width + x;
#pragma unroll
        for (int i = 0; i < PAIR; i++) {
            const int column = (int)threadIdx.x * PAIR + i;
            if (in[i] && column >= hole && column < CLOSE_X - hole && top + j < height)
                to[i] = (int16_t)(least >> 16 * i);
        }
    }
}

/* ---- lines ----
 * Windows about cells: a warp has a strip of columns and walks it down. The sum of a row of a
 * window is that of the lanes beside, and what the rows of a window came to stays in a ring, so
 * that each step adds a row and takes one away. */

enum {
    GUIDE = SAC_MATTE_GUIDE_MAX,
    WALKS = 4,    /* warps of a block, one below the other */
    WALK_MIN = 8, /* rows of cells of each */
    WALK_MAX = 32,
    STEPS = 4,             /* rows that are read at once, while those before them are summed */
    AT_ONCE = 6,           /* blocks of a multiprocessor */
    STRIPS = AT_ONCE * 132 /* blocks that a large card has at once */
};
static_assert(LANES > 2 * GUIDE, "columns are left in a strip");

/* The values of the lanes `by` before and after this one; nobody reads what comes of lanes that
 * have none. */
__device__ uint32_t lane_before(uint32_t v, int by)
{
    return __shfl_up_sync(~0u, v, by);
}
__device__ uint32_t lane_after(uint32_t v, int by)
{
    return __shfl_down_sync(~0u, v, by);
}
__device__ cuda_matte_line lane_before(const cuda_matte_line &v, int by)
{
    return cuda_matte_line{__shfl_up_sync(~0u, v.slope, by), __shfl_up_sync(~0u, v.base, by)};
}
__device__ cuda_matte_line lane_after(const cuda_matte_line &v, int by)
{
    return cuda_matte_line{__shfl_down_sync(~0u, v.slope, by), __shfl_down_sync(~0u, v.base, by)};
}

__device__ int32_t whole_below(double v)
{
#ifdef __CUDA_ARCH__
    return __double2int_rd(v);
#else
    return (int32_t)floor(v);
#endif
}

/* Two numbers of a cell, written at once. */
template <typename PAIR> __device__ void store_pair(PAIR *to, const PAIR &v)
{
    struct alignas(8) together {
        PAIR of;
    };
    *(together *)(void *)to = together{v};
}

/* The line of a cell's window. */
struct fit_rule {
    typedef uint32_t        value; /* luma and share of a cell in one word */
    typedef cuda_matte_line result_type;
    struct raw { /* as they are read: nothing waits for them yet */
        uint8_t luma;
        int16_t share;
    };
    struct alignas(16) sums : sac_matte_sums {
    };
    /* What all windows of n cells share. */
    struct size {
        int    n;
        double noise, part;
    };
    const uint8_t   *luma;
    const int16_t   *share;
    cuda_matte_line *out;
    int              luma_pitch, pitch;
    double           variance;
    __device__       fit_rule(const cuda_matte_params &p, const cuda_matte_job &job)
        : luma(job.luma), share(job.closed), out(job.line), luma_pitch(p.luma_pitch),
          pitch(p.spec.width), variance(p.variance)
    {
    }
    __device__ size size_of(int n) const
    {
        return size{n, sac_matte_noise(variance, (double)n), inverse_of(16 * n)};
    }
    __device__ raw read(int x, int y) const
    {
        return raw{read_only(luma + (y * luma_pitch + x)), read_only(share + (y * pitch + x))};
    }
    static __device__ value value_of(const raw &r)
    {
        return (uint32_t)r.luma | (uint32_t)(uint16_t)r.share << 16;
    }
    static __device__ void add(sums *s, value v)
    {
        const int luma = (int)(v & 0xffff), share = (int)(v >> 16);
        s->luma += luma;
        s->share += share;
        s->luma2 += luma * luma;
        s->both += luma * share;
    }
    /* sign: 1 or -1. */
    static __device__ void add(sums *s, const sums &row, int sign)
    {
        s->luma += sign * row.luma;
        s->share += sign * row.share;
        s->luma2 += sign * row.luma2;
        s->both += sign * row.both;
    }
    /* sac_matte_line, to the last bit: products as whole numbers, of which a GPU converts few at a
     * time, and one division less. What base is rounded from is a multiple of 1 / 16 n, n at most
     * 17 * 17: a hundred thousandth more makes up for the product, and reaches no other number. */
    __device__ cuda_matte_line result(const sums &s, const size &w) const
    {
        const int64_t cov = (int64_t)w.n * s.both - (int64_t)s.luma * s.share,
                      var = (int64_t)w.n * s.luma2 - (int64_t)s.luma * s.luma;
        cuda_matte_line line;
        line.slope = whole_below(quotient_of((double)(256 * cov), (double)var + w.noise) + 0.5);
        const int64_t rest = 256 * (int64_t)s.share - (int64_t)line.slope * s.luma;
        line.base = whole_below((double)(rest + 8 * w.n) * w.part + 1e-5);
        return line;
    }
};

/* The mean line of the windows about a cell. */
struct mean_rule {
    typedef cuda_matte_line value, raw;
    typedef cuda_matte_mean result_type;
    struct alignas(8) sums : cuda_matte_line {
    };
    struct size {
        int   n;
        float inverse;
    };
    const cuda_matte_line *line;
    cuda_matte_mean       *out;
    int                    pitch;
    sac_matte_stretch      stretch;
    __device__             mean_rule(const cuda_matte_params &p, const cuda_matte_job &job)
        : line(job.line), out(job.mean), pitch(p.spec.width), stretch(p.stretch)
    {
    }
    __device__ size size_of(int n) const
    {
        return size{n, part_of(1.0f, (float)n)}; /* sac_matte_inverse */
    }
    __device__ raw read(int x, int y) const
    {
        const cuda_matte_line *at = line + (y * pitch + x);
#ifdef __CUDA_ARCH__
        const int2 v = __ldg((const int2 *)at);
        return cuda_matte_line{v.x, v.y};
#else
        return *at;
#endif
    }
    static __device__ value value_of(const raw &r)
    {
        return r;
    }
    static __device__ void add(sums *s, const value &v)
    {
        s->slope += v.slope;
        s->base += v.base;
    }
    static __device__ void add(sums *s, const sums &row, int sign)
    {
        s->slope += sign * row.slope;
        s->base += sign * row.base;
    }
    __device__ cuda_matte_mean result(const sums &s, const size &w) const
    {
        return cuda_matte_mean{sac_matte_slope(s.slope, w.inverse, stretch),
                               sac_matte_base(s.base, w.inverse, stretch)};
    }
};

/* walk: rows of a warp. */
template <typename RULE>
__global__ void __launch_bounds__(WALKS *LANES, AT_ONCE)
    walk_windows(const __grid_constant__ cuda_matte_params p, int walk)
{
    early_begin();
    typedef typename RULE::value value;
    typedef typename RULE::raw   raw;
    typedef typename RULE::sums  sums;
    __shared__ sums              rings[WALKS][2 * GUIDE + 1][LANES];
    const cuda_matte_job        &job = p.jobs[blockIdx.z];
    const RULE                   rule(p, job);
    const int width = job.x.cells, height = job.y.cells, radius = p.guide, lane = threadIdx.x;
    const int x = (int)blockIdx.x * (LANES - 2 * radius) + lane - radius;
    const int top = ((int)blockIdx.y * WALKS + (int)threadIdx.y) * walk;
    if (x - lane + radius >= width || top >= height)
        return;
    const bool column = x >= 0 && x < width;
    const bool mine = column && lane >= radius && lane < LANES - radius;
    const int  across = column ? sac_matte_window(x, width, radius) : 1;
    const int  rows = height - top < walk ? height - top : walk;
    const auto read = [&](int row, raw to[STEPS]) {
#pragma unroll
        for (int i = 0; i < STEPS; i++) {
            const int y = top - radius + row + i;
            to[i] = column && y >= 0 && y < height ? rule.read(x, y) : raw{};
        }
    };
    sums window = {};
    raw  now[STEPS], next[STEPS];
    int  slot = 0;
    read(0, now);
#pragma unroll 1
    for (int row = -2 * radius; row < rows; row += STEPS) { /* whose windows are whole now */
        sums whole[STEPS];
        read(row + 2 * radius + STEPS, next);
#pragma unroll
        for (int i = 0; i < STEPS; i++) {
            const value own = RULE::value_of(now[i]);
            sums        beside = {};
            RULE::add(&beside, own);
            for (int u = 1; u <= radius; u++) {
                RULE::add(&beside, lane_before(own, u));
                RULE::add(&beside, lane_after(own, u));
            }
            RULE::add(&window, beside, 1);
            sums *const kept = &rings[threadIdx.y][slot][lane];
            if (row + i > 0)
                RULE::add(&window, *kept, -1);
            *kept = beside;
            slot = slot < 2 * radius ? slot + 1 : 0;
            whole[i] = window;
            now[i] = next[i];
        }
        if (row + STEPS <= 0)
            continue;
        /* Of all steps at once, as each waits long for its divisions. */
        typename RULE::result_type results[STEPS];
#pragma unroll
        for (int i = 0; i < STEPS; i++) {
            const int y = clamp_to(top + row + i, 0, height - 1);
            results[i] =
                rule.result(whole[i], rule.size_of(across * sac_matte_window(y, height, radius)));
        }
#pragma unroll
        for (int i = 0; i < STEPS; i++)
            if (mine && row + i >= 0 && row + i < rows)
                store_pair(rule.out + (top + row + i) * rule.pitch + x, results[i]);
    }
}

} // namespace
