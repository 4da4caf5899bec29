/* SPDX-License-Identifier: Apache-2.0 */
/* Camera motion of a batch of frames in three launches: the small pictures; a warp for each corner;
 * a block for the motion that a frame's corners agree on. Sums run in the host's order
 * (vision/camera.h): lanes make the terms, and one of them adds these up. */
#include "vision/cuda/launch.h"

namespace
{

enum {
    TILE = CUDA_CAMERA_TILE,
    TILE_THREADS = TILE * TILE,
    SIDE = SAC_CAMERA_SIDE,
    PATCH = SAC_CAMERA_PATCH,
    WIDE = SAC_CAMERA_WIDE,
    LANES = 32,
    CORNERS = 4, /* of a block */
    AGREE_THREADS = 128
};
static_assert((int)AGREE_THREADS >= (int)SAC_CAMERA_TRIALS, "a thread for each trial");

__device__ sac_camera_pyramid pyramid_of(const cuda_camera_job &job, uint8_t *memory)
{
    size_t bytes;
    return sac_camera_pyramid_of(job.width, job.height, memory, &bytes);
}

/* ---- the small picture ---- */

template <bool TURNED>
__device__ uint8_t mean_of(const cuda_camera_job &job, int shrink, int x, int y)
{
    const int rows = sac_camera_rows(shrink);
    unsigned  sum = 0;
    for (int j = 0; j < rows; j++) {
        const uint8_t *row = job.luma + (int64_t)sac_camera_row(y, j, shrink) * job.down;
#pragma unroll 8
        for (int i = 0; i < shrink; i++) {
            const int at = x * shrink + i;
            sum += TURNED ? sac_camera_luma(row + (int64_t)at * job.across,
                                            (enum sac_pixel_format)job.format, 0)
                          : sac_camera_luma(row, (enum sac_pixel_format)job.format, at);
        }
    }
    return (uint8_t)(sum / (unsigned)(shrink * rows));
}

/* Half the size of what stands in a tile; also into the next tile. */
__device__ void halve_tile(const sac_camera_plane &to, int left, int top, int side,
                           const uint8_t (*from)[TILE + 1], uint8_t (*tile)[TILE + 1])
{
    const int x = threadIdx.x % side, y = threadIdx.x / side;
    if (y < side && left + x < to.width && top + y < to.height) {
        const uint8_t v = sac_camera_halve(from[2 * y], from[2 * y + 1], x);
        tile[y][x] = v;
        to.pixels[(size_t)(top + y) * to.width + left + x] = v;
    }
    __syncthreads();
}

template <bool TURNED>
__global__ void __launch_bounds__(TILE_THREADS) fill_pyramids(const cuda_camera_params p)
{
    early_begin();
    __shared__ uint8_t       tile[2][TILE][TILE + 1];
    const cuda_camera_job    job = p.jobs[blockIdx.y];
    const sac_camera_pyramid now = pyramid_of(job, job.now);
    const sac_camera_plane  &level = now.level[0];
    const int                shrink = sac_camera_shrink(job.width);
    const int                across = (level.width + TILE - 1) / TILE;
    const int                left = blockIdx.x % across * TILE, top = blockIdx.x / across * TILE;
    if (top >= level.height)
        return;
    const int x = threadIdx.x % TILE, y = threadIdx.x / TILE;
    if (left + x < level.width && top + y < level.height) {
        const uint8_t v = mean_of<TURNED>(job, shrink, left + x, top + y);
        tile[0][y][x] = v;
        level.pixels[(size_t)(top + y) * level.width + left + x] = v;
    }
    __syncthreads();
    halve_tile(now.level[1], left / 2, top / 2, TILE / 2, tile[0], tile[1]);
    halve_tile(now.level[2], left / 4, top / 4, TILE / 4, tile[1], tile[0]);
}

/* ---- corners ---- */

/* The best corner of a cell, the first of equals; every lane has the result. */
__device__ bool best_in_cell(const sac_camera_plane &p, int left, int top, int lane,
                             sac_camera_match *m)
{
    const int right = min(left + SAC_CAMERA_CELL, p.width - SAC_CAMERA_BORDER);
    const int bottom = min(top + SAC_CAMERA_CELL, p.height - SAC_CAMERA_BORDER);
    const int across = (right - left + 1) / 2, count = across * ((bottom - top + 1) / 2);
    float     best = SAC_CAMERA_EIGEN_MIN;
    int       at = count;
    for (int i = lane; i < count; i += LANES) {
        const float strength = sac_camera_strength(&p, left + i % across * 2, top + i / across * 2);
        if (strength > best) {
            best = strength;
            at = i;
        }
    }
    for (int half = LANES / 2; half > 0; half /= 2) {
        const float other = __shfl_xor_sync(~0u, best, half);
        const int   other_at = __shfl_xor_sync(~0u, at, half);
        if (other > best || (other == best && other_at < at)) {
            best = other;
            at = other_at;
        }
    }
    m->x = (float)(left + at % across * 2);
    m->y = (float)(top + at / across * 2);
    return at < count;
}

static_assert(SAC_CAMERA_BORDER % 2 == 0 && SAC_CAMERA_CELL % 2 == 0, "corners at even pixels");

__device__ bool is_moving(const cuda_camera_params &p, const cuda_camera_job &job, bool small,
                          int lane, const sac_camera_match &m)
{
    const cuda_camera_box *boxes = p.moving + job.moving;
    const sac_camera_box  *whole = (const sac_camera_box *)boxes;
    const int              x = (int)m.x, y = (int)m.y;
    bool                   moves = false;
    for (unsigned i = lane; i < job.moving_count; i += LANES) {
        const sac_camera_box box =
            small ? sac_camera_box{(int16_t)(2 * boxes[i].x0), (int16_t)(2 * boxes[i].y0),
                                   (int16_t)(2 * boxes[i].x1), (int16_t)(2 * boxes[i].y1)}
                  : whole[i];
        moves = moves || sac_camera_moves(&box, 1, x, y);
    }
    return __any_sync(~0u, moves);
}

/* ---- following a corner ---- */

/* What a warp works in. */
struct room {
    float wide[WIDE * WIDE], gx[PATCH], gy[PATCH];
    float term[3][PATCH];
};

/* The three sums of terms, each by one lane in order; every lane has them. */
__device__ void add_up(const room &r, int lane, float *a, float *b, float *c)
{
    float sum = 0;
    __syncwarp();
    if (lane < 3) {
#pragma unroll 27
        for (int i = 0; i < PATCH; i++)
            sum += r.term[lane][i];
    }
    *a = __shfl_sync(~0u, sum, 0);
    *b = __shfl_sync(~0u, sum, 1);
    *c = __shfl_sync(~0u, sum, 2);
    __syncwarp();
}

__device__ bool cut_patch(room &r, const sac_camera_plane &p, float x, float y, int lane,
                          sac_camera_sums *s)
{
    sac_camera_window w;
    if (!sac_camera_window_of(&p, x, y, WIDE, &w))
        return false;
    for (int i = lane; i < WIDE * WIDE; i += LANES)
        r.wide[i] = sac_camera_pixel(&w, i % WIDE, i / WIDE);
    __syncwarp();
    for (int i = lane; i < PATCH; i += LANES) {
        const float *c = r.wide + (i / SIDE + 1) * WIDE + i % SIDE + 1;
        const float  gx = (c[1] - c[-1]) / 2, gy = (c[WIDE] - c[-WIDE]) / 2;
        r.gx[i] = gx;
        r.gy[i] = gy;
        r.term[0][i] = gx * gx;
        r.term[1][i] = gx * gy;
        r.term[2][i] = gy * gy;
    }
    add_up(r, lane, &s->xx, &s->xy, &s->yy);
    return true;
}

/* As on the host: what is left, or a negative number. */
__device__ float follow(room &r, const sac_camera_plane &from, const sac_camera_plane &to, int lane,
                        sac_camera_spot *at)
{
    sac_camera_sums   s;
    sac_camera_window w;
    float             det;
    if (!cut_patch(r, from, at->x, at->y, lane, &s) || !sac_camera_pinned(&s, &det))
        return -1;
    for (int step = 0; step < SAC_CAMERA_STEPS; step++) {
        if (!sac_camera_window_of(&to, at->x + at->dx, at->y + at->dy, SIDE, &w))
            return -1;
        for (int i = lane; i < PATCH; i += LANES) {
            const int   column = i % SIDE, row = i / SIDE;
            const float off =
                r.wide[(row + 1) * WIDE + column + 1] - sac_camera_pixel(&w, column, row);
            r.term[0][i] = off * r.gx[i];
            r.term[1][i] = off * r.gy[i];
            r.term[2][i] = fabsf(off);
        }
        add_up(r, lane, &s.ex, &s.ey, &s.residual);
        if (sac_camera_step(&s, det, &at->dx, &at->dy))
            break;
    }
    return s.residual / PATCH;
}

__device__ bool follow_corner(room &r, const cuda_camera_job &job, int lane, sac_camera_match *m)
{
    const sac_camera_pyramid now = pyramid_of(job, job.now), before = pyramid_of(job, job.before);
    sac_camera_way           way = sac_camera_way_begin();
    for (int i = SAC_CAMERA_LEVELS - 1; i >= 0; i--) {
        sac_camera_spot spot = sac_camera_spot_of(&way, m, i);
        const float     residual = follow(r, before.level[i], now.level[i], lane, &spot);
        sac_camera_way_take(&way, &spot, i, residual);
    }
    return sac_camera_way_end(&way, m);
}

__global__ void __launch_bounds__(LANES *CORNERS) follow_corners(const cuda_camera_params p)
{
    early_begin();
    __shared__ room          rooms[CORNERS];
    const cuda_camera_job    job = p.jobs[blockIdx.y];
    const sac_camera_pyramid before = pyramid_of(job, job.before);
    const sac_camera_plane  &level = before.level[0];
    const int                lane = threadIdx.x, cell = blockIdx.x * CORNERS + threadIdx.y;
    const int                across = sac_camera_cells(level.width);
    if (!job.before || cell >= across * sac_camera_cells(level.height))
        return;
    cuda_camera_corner c = {};
    c.found = best_in_cell(level, SAC_CAMERA_BORDER + cell % across * SAC_CAMERA_CELL,
                           SAC_CAMERA_BORDER + cell / across * SAC_CAMERA_CELL, lane, &c.match) &&
              !is_moving(p, job, cuda_camera_is_small(&level), lane, c.match);
    c.followed = c.found && follow_corner(rooms[threadIdx.y], job, lane, &c.match);
    if (lane == 0)
        p.corners[(size_t)blockIdx.y * p.cells_max + cell] = c;
}

/* ---- the motion that most agree on ---- */

/* A block's work: the matches, and lists of them. */
struct table {
    sac_camera_match match[SAC_CAMERA_POINTS];
    int              use[SAC_CAMERA_POINTS];
    int              warp_count[AGREE_THREADS / LANES];
    double           term[4][SAC_CAMERA_POINTS], sum[4];
    sac_camera_move  best;
    int              winner;
};

/* How many threads before this one say yes, and how many of the block. */
__device__ int rank_of(table &t, bool yes, int *all)
{
    const int      warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const unsigned votes = __ballot_sync(~0u, yes);
    int            rank = __popc(votes & ((1u << lane) - 1));
    __syncthreads();
    if (lane == 0)
        t.warp_count[warp] = __popc(votes);
    __syncthreads();
    *all = 0;
    for (int i = 0; i < AGREE_THREADS / LANES; i++) {
        rank += i < warp ? t.warp_count[i] : 0;
        *all += t.warp_count[i];
    }
    return rank;
}

/* Of the first corners that were found, those that were followed. Returns how many. */
__device__ int gather(table &t, const cuda_camera_corner *corners, int cells)
{
    int found = 0, kept = 0;
    for (int first = 0; first < cells && found < SAC_CAMERA_POINTS; first += AGREE_THREADS) {
        const int          cell = first + threadIdx.x;
        cuda_camera_corner c = {};
        int                all;
        if (cell < cells)
            c = corners[cell];
        const int  rank = found + rank_of(t, c.found, &all);
        const bool keep = c.found && c.followed && rank < SAC_CAMERA_POINTS;
        found += all;
        const int to = kept + rank_of(t, keep, &all);
        if (keep)
            t.match[to] = c.match;
        kept += all;
    }
    __syncthreads();
    return kept;
}

/* The trial with the most agreement, the first of equals, into t.best. */
__device__ void propose(table &t, int n)
{
    sac_camera_move s = sac_camera_still(n);
    uint32_t        seed = SAC_CAMERA_SEED;
    int             pair[2], count = 0;
    if (threadIdx.x == 0) {
        t.best = s;
        t.winner = 0;
    }
    __syncthreads();
    if (threadIdx.x < SAC_CAMERA_TRIALS) {
        for (int i = 0; i < 2 * (int)threadIdx.x; i++)
            sac_camera_random(&seed);
        sac_camera_pair(&seed, n, pair);
        if (sac_camera_fit(t.match, pair, 2, &s) && sac_camera_plausible(&s))
            for (int i = 0; i < n; i++)
                count += sac_camera_agrees(&s, &t.match[i]);
    }
    const int key = count ? count * AGREE_THREADS + (AGREE_THREADS - 1 - (int)threadIdx.x) : 0;
    atomicMax(&t.winner, key);
    __syncthreads();
    if (key && key == t.winner)
        t.best = s;
    __syncthreads();
}

/* Those that agree with t.best into t.use, in order. Returns how many. */
__device__ int list_agreeing(table &t, int n)
{
    int agreed = 0;
    for (int first = 0; first < n; first += AGREE_THREADS) {
        const int  i = first + threadIdx.x;
        const bool agrees = i < n && sac_camera_agrees(&t.best, &t.match[i]);
        int        all;
        const int  to = agreed + rank_of(t, agrees, &all);
        if (agrees)
            t.use[to] = i;
        agreed += all;
    }
    __syncthreads();
    return agreed;
}

/* So many first terms into t.sum, each kind by one thread in order. */
__device__ void add_terms(table &t, int kinds, int n)
{
    __syncthreads();
    if ((int)threadIdx.x < kinds) {
        const double *term = t.term[threadIdx.x];
        double        sum = 0;
#pragma unroll 8
        for (int i = 0; i < n; i++)
            sum += term[i];
        t.sum[threadIdx.x] = sum;
    }
    __syncthreads();
}

/* sac_camera_fit over the first n of t.use, into t.best; every thread has the result. */
__device__ bool fit(table &t, int n)
{
    for (int i = threadIdx.x; i < n; i += AGREE_THREADS) {
        const sac_camera_match &m = t.match[t.use[i]];
        t.term[0][i] = m.x;
        t.term[1][i] = m.y;
        t.term[2][i] = m.to_x;
        t.term[3][i] = m.to_y;
    }
    add_terms(t, 4, n);
    const sac_camera_centre c = {t.sum[0] / n, t.sum[1] / n, t.sum[2] / n, t.sum[3] / n};
    for (int i = threadIdx.x; i < n; i += AGREE_THREADS) {
        const sac_camera_term term = sac_camera_term_of(&t.match[t.use[i]], &c);
        t.term[0][i] = term.dot;
        t.term[1][i] = term.cross;
        t.term[2][i] = term.spread;
    }
    add_terms(t, 3, n);
    const sac_camera_term sum = {t.sum[0], t.sum[1], t.sum[2]};
    sac_camera_move       s = t.best;
    const bool            good = sac_camera_solve(&c, &sum, &s) && sac_camera_plausible(&s);
    s.agreed = n;
    __syncthreads();
    if (threadIdx.x == 0)
        t.best = s;
    __syncthreads();
    return good;
}

__global__ void __launch_bounds__(AGREE_THREADS) agree(const cuda_camera_params p)
{
    early_begin();
    __shared__ table         t;
    const cuda_camera_job    job = p.jobs[blockIdx.x];
    const sac_camera_pyramid now = pyramid_of(job, job.now);
    const int cells = sac_camera_cells(now.level[0].width) * sac_camera_cells(now.level[0].height);
    const cuda_camera_corner *corners = p.corners + (size_t)blockIdx.x * p.cells_max;
    const int                 n = job.before ? gather(t, corners, cells) : 0;
    sac_camera_move           out = sac_camera_still(n);
    bool                      good = n >= SAC_CAMERA_INLIERS_MIN;
    if (good)
        propose(t, n);
    for (int round = 0; round < 2 && good; round++) {
        const int most = list_agreeing(t, n);
        good = sac_camera_is_most(most, n) && fit(t, most);
    }
    if (threadIdx.x == 0)
        p.out[blockIdx.x] = good ? t.best : out;
}

} // namespace

extern "C" cudaError_t cuda_launch_camera(const struct cuda_camera_params *p, cudaStream_t stream)
{
    if (p->turned)
        CUDA_LAUNCH(fill_pyramids<true>, dim3(p->tiles_max, p->n), TILE_THREADS, stream, *p);
    else
        CUDA_LAUNCH(fill_pyramids<false>, dim3(p->tiles_max, p->n), TILE_THREADS, stream, *p);
    cudaError_t res = cudaGetLastError();
    if (p->cells_max && res == cudaSuccess) {
        const dim3 grid((p->cells_max + CORNERS - 1) / CORNERS, p->n);
        CUDA_LAUNCH(follow_corners, grid, dim3(LANES, CORNERS), stream, *p);
        res = cudaGetLastError();
    }
    if (res == cudaSuccess) {
        CUDA_LAUNCH(agree, p->n, AGREE_THREADS, stream, *p);
        res = cudaGetLastError();
    }
    return res;
}
