/* SPDX-License-Identifier: Apache-2.0 */
/* Mattes: where blocks and cells were in the frame before, and what they keep of it. */
#pragma once

#include "vision/cuda/matte_cells.cuh"

namespace
{

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
__device__ int still_difference(const uint8_t *now, const uint8_t *before, int pitch,
                                search_room &r, int lane)
{
    int sum = 0;
    if (lane < BLOCK * BLOCK / 4) {
        const ptrdiff_t at = (ptrdiff_t)(lane / 2) * pitch + lane % 2 * 4;
        const uint32_t  four = four_at(now + at);
        r.now[lane / 2][lane % 2] = four;
        sum = (int)add_differences(four, four_at(before + at), 0);
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
            four_at(now + (ptrdiff_t)(lane / 2) * pitch + lane % 2 * 4);
}

/* The cells about where the coarse search leads. */
__device__ void copy_before(const uint8_t *before, int pitch, sac_matte_move coarse, search_room &r,
                            int lane)
{
    const uint8_t *from = before + (ptrdiff_t)(2 * coarse.y - FINE) * pitch + 2 * coarse.x - FINE;
    for (int i = lane; i < FINE_BEFORE * (FINE_BEFORE / 4); i += LANES) {
        const int row = i / (FINE_BEFORE / 4), word = i % (FINE_BEFORE / 4);
        r.before[row][word] = four_at(from + (ptrdiff_t)row * pitch + word * 4);
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
    early_begin();
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
    const int       still = still_difference(now, before, pitch, r, lane);
    sac_matte_move  move = {0, 0};
    if (still > SAC_MATTE_STILL) { /* for all lanes */
        copy_halves(job, p.half_pitch, x, y, r, lane);
        __syncwarp();
        const sac_matte_move coarse = coarse_move(r, lane);
        copy_before(before, pitch, coarse, r, lane);
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

__device__ surroundings surroundings_of(const uint8_t *cell, int pitch)
{
    surroundings    s;
    const uint8_t  *row = cell - pitch - 1;
    const int       off = (int)((uintptr_t)row & 3); /* of all rows */
    const uint32_t *word = (const uint32_t *)(const void *)(row - off);
#pragma unroll
    for (int j = 0; j < 3; j++, word += pitch / 4) {
        const uint32_t a = word[0], b = word[1], c = word[2];
        s.of[j][0] = __funnelshift_r(a, b, off * 8);
        s.of[j][1] = __funnelshift_r(b, c, off * 8);
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
    early_begin();
    const cuda_matte_job &job = p.jobs[blockIdx.z];
    const int             width = job.x.cells, height = job.y.cells, pitch = p.luma_pitch;
    if (!job.moves)
        return;
    const tile t = tile_of(QUAD_TILE, QUADS);
    const int  x = t.x + threadIdx.x * PIXELS, y = t.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    const int across = blocks_along(width), bx = x / BLOCK, by = y / BLOCK;
    const int sx = clamp_to(bx + (x / (BLOCK / 2) & 1 ? 1 : -1), 0, across - 1);
    const int sy = clamp_to(by + (y / (BLOCK / 2) & 1 ? 1 : -1), 0, blocks_along(height) - 1);
    const sac_matte_move none = {0, 0};
    const sac_matte_move moves[4] = {job.move[by * across + bx], job.move[by * across + sx],
                                     job.move[sy * across + bx], job.move[sy * across + sx]};
    const ptrdiff_t      at = (ptrdiff_t)y * pitch + x;
    const surroundings   now = surroundings_of(job.luma + at, pitch);
    uint32_t             best[PIXELS], former[PIXELS];
    residuals_of(now, surroundings_of(job.luma_before + at, pitch), best);
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
        residuals_of(now, surroundings_of(job.luma_before + to, pitch), off);
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

/* Four cells, side by side in the last frame, on their way back through the others. As long as all
 * of them stay where they were, they are read together. */
struct traced_cells {
    int      x[PIXELS], y[PIXELS], count; /* the first `count` are there */
    bool     together;
    uint32_t at; /* of the first in planes of cells, while they are together */
};

template <typename T>
__device__ void read_traced(const traced_cells &c, const T *plane, uint32_t pitch, T out[PIXELS])
{
    if (c.together) {
        load_four(plane + c.at, c.count, out);
        return;
    }
#pragma unroll
    for (int k = 0; k < PIXELS; k++)
        if (k < c.count)
            out[k] = read_only(plane + ((uint32_t)c.y[k] * pitch + (uint32_t)c.x[k]));
}

__device__ bool all_stay(const uint32_t former[PIXELS])
{
    const uint32_t stay = pack_former(sac_matte_move{0, 0}, 0);
    uint32_t       moved = 0;
#pragma unroll
    for (int k = 0; k < PIXELS; k++)
        moved |= former[k] ^ stay;
    return !(moved & 0xffff);
}

__device__ void move_traced(traced_cells *c, const cuda_matte_job &job,
                            const uint32_t former[PIXELS])
{
    if (c->together && all_stay(former))
        return;
    c->together = false;
#pragma unroll
    for (int k = 0; k < PIXELS; k++) {
        c->x[k] = clamp_to(c->x[k] + (int)(former[k] & 0xff) - NOWHERE, 0, job.x.cells - 1);
        c->y[k] = clamp_to(c->y[k] + (int)(former[k] >> 8 & 0xff) - NOWHERE, 0, job.y.cells - 1);
    }
}

/* What one frame has for a cell of the next one's: the share, and above it the part that is kept;
 * all of it and share 0: the former share stays as it is. */
__device__ uint32_t trace_step(bool alone, int16_t share, uint32_t former, int smooth)
{
    const int kept =
        alone ? (int)SAC_MATTE_ONE : sac_matte_kept(share, (int)(former >> 16), smooth);
    return (uint32_t)(uint16_t)share | (uint32_t)kept << 16;
}

/* What a frame has for four cells that were found in it. */
struct traced_numbers {
    uint32_t former[PIXELS];
    int16_t  share[PIXELS];
};

__device__ void read_job(const cuda_matte_params &p, const cuda_matte_job &job,
                         const traced_cells &c, traced_numbers *out)
{
    read_traced(c, job.former, (uint32_t)p.spec.width, out->former);
    if (job.image >= 0)
        read_traced(c, job.raw, (uint32_t)p.spec.width, out->share);
}

__device__ void steps_of(const cuda_matte_job &job, const traced_numbers &n, int smooth,
                         uint32_t out[PIXELS])
{
    const bool alone = job.image < 0;
#pragma unroll
    for (int k = 0; k < PIXELS; k++)
        out[k] = trace_step(alone, alone ? (int16_t)0 : n.share[k], n.former[k], smooth);
}

__device__ void blend_step(const uint32_t step[PIXELS], int16_t value[PIXELS])
{
#pragma unroll
    for (int k = 0; k < PIXELS; k++)
        value[k] = sac_matte_blend((int16_t)step[k], value[k], (int)(step[k] >> 16));
}

/* Back through the frames of the batch, up to where former shares do not matter; then forth.
 * n: of job `number` and of these cells. */
template <int CHAIN>
__device__ void trace_shares(const cuda_matte_params &p, int number, traced_cells c,
                             traced_numbers n, int16_t value[PIXELS])
{
    uint32_t step[CHAIN][PIXELS];
    int      count = 0;
#pragma unroll
    for (int k = 0; k < PIXELS; k++)
        value[k] = 0;
#pragma unroll
    for (int i = 0; i < CHAIN; i++) {
        const cuda_matte_job &job = p.jobs[number];
        uint32_t              kept = 0;
        steps_of(job, n, p.smooth, step[i]);
#pragma unroll
        for (int k = 0; k < PIXELS; k++)
            kept |= step[i][k] >> 16;
        count = i + 1;
        if (kept == 0)
            break;
        move_traced(&c, job, n.former);
        if (i == CHAIN - 1 || job.depth == 0) {
            read_traced(c, job.share_before, (uint32_t)p.spec.width, value);
            break;
        }
        number = job.before;
        read_job(p, p.jobs[number], c, &n);
    }
#pragma unroll
    for (int i = CHAIN - 1; i >= 0; i--)
        if (i < count)
            blend_step(step[i], value);
}

/* A frame and those that follow it, CHAIN at most. Where all four cells of a thread stay where they
 * were, what they had then is at hand. */
template <int CHAIN>
__global__ void __launch_bounds__(THREADS) take_over(const __grid_constant__ cuda_matte_params p)
{
    early_begin();
    const cuda_matte_job &head = p.jobs[blockIdx.z];
    const int             width = head.x.cells, height = head.y.cells;
    const tile            t = tile_of(QUAD_TILE, QUADS);
    if (!head.moves || head.follows || t.x >= width || t.y >= height)
        return;
    const int          x = t.x + threadIdx.x * PIXELS, y = t.y + threadIdx.y;
    const int          count = y < height ? clamp_to(width - x, 0, PIXELS) : 0;
    const uint32_t     at = (uint32_t)y * (uint32_t)p.spec.width + (uint32_t)x;
    const traced_cells cells = {{x, x + 1, x + 2, x + 3}, {y, y, y, y}, count, true, at};
    traced_numbers     next = {};
    int16_t            share[PIXELS] = {};
#pragma unroll
    for (int k = 0; k < PIXELS; k++) /* those that are not there */
        next.former[k] = pack_former(sac_matte_move{0, 0}, 0);
    if (count > 0)
        read_job(p, head, cells, &next);
#pragma unroll 1
    for (int number = (int)blockIdx.z; number >= 0;) {
        const cuda_matte_job &job = p.jobs[number];
        const traced_numbers  now = next;
        if (job.after >= 0 && count > 0) /* on its way meanwhile */
            read_job(p, p.jobs[job.after], cells, &next);
        if (job.follows && all_stay(now.former)) {
            uint32_t step[PIXELS];
            steps_of(job, now, p.smooth, step);
            blend_step(step, share);
        } else if (count > 0) {
            trace_shares<CHAIN>(p, number, cells, now, share);
        }
        store_four(job.share + at, count, share);
        if (job.summary && job.image < 0)
            add_to_summary(job, count, share, x, y);
        number = job.after;
    }
}

} // namespace
