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
    PIXELS = 4 /* of a thread, side by side */
};

template <int N> struct job_list {
    cuda_matte_job job[N];
};

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

__device__ tile tile_of(int columns, int height)
{
    const int across = (columns + TILE_X - 1) / TILE_X;
    return tile{(int)blockIdx.x % across * TILE_X, (int)blockIdx.x / across * height};
}

/* ---- tables ---- */

/* The cells beside a pixel and the second one's weight; nearest: the cell that it lies in. */
__device__ uint32_t pack_tap(const sac_matte_axis &a, int pixel, bool nearest)
{
    if (nearest)
        return (uint32_t)sac_matte_cell(&a, pixel);
    const sac_tap tap = sac_matte_tap(&a, pixel);
    return (uint32_t)tap.a | (uint32_t)(tap.b - tap.a) << 12 | (uint32_t)tap.second << 13;
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
    const int left = job.x.from & -PIXELS, down = job.y.until - job.y.from;
    if (left + i < ((job.x.until + PIXELS - 1) & -PIXELS))
        job.tap_x[i] = pack_tap(job.x, clamp_to(left + i, job.x.from, job.x.until - 1), nearest);
    if (i < down)
        job.tap_y[i] = pack_tap(job.y, job.y.from + i, nearest);
    if (job.span_x && i < job.x.cells)
        job.span_x[i] = sac_matte_span_of(&job.x, i);
    if (job.span_x && i < job.y.cells)
        job.span_y[i] = sac_matte_span_of(&job.y, i);
}

/* The jobs come with the launch, and are kept for those that follow. */
template <int N>
__global__ void __launch_bounds__(THREADS)
    prepare(const __grid_constant__ job_list<N> list, cuda_matte_job *jobs, bool nearest)
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

/* A block's cells of one image; every thread calls it. */
__device__ void add_to_summary(const cuda_matte_job &job, bool any, int16_t share, int x, int y)
{
    __shared__ int box[4], unsure;
    const int      thread = thread_of_block();
    if (thread == 0)
        box[0] = box[1] = box[2] = box[3] = unsure = 0;
    __syncthreads();
    if (any)
        atomicAdd(&unsure, sac_matte_unsure(share));
    if (any && sac_matte_inside(share)) {
        atomicMax(&box[0], x + 1);
        atomicMax(&box[1], y + 1);
        atomicMax(&box[2], job.x.cells - x);
        atomicMax(&box[3], job.y.cells - y);
    }
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

/* An image's numbers: that of class k and cell x, y of the grid. */
template <typename T> struct numbers {
    const T         *first;
    int64_t          cell, row, number;
    __device__ float at(int k, int x, int y) const
    {
        return number_of(first[k * number + y * row + x * cell]);
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

template <typename T>
__device__ int16_t softmax(const sac_matte_spec &s, const numbers<T> &in, int x, int y)
{
    float greatest = -INFINITY, total = 0, wanted = 0;
#pragma unroll 4
    for (int k = 0; k < s.classes; k++) {
        const float v = in.at(k, x, y);
        greatest = v > greatest ? v : greatest;
    }
#pragma unroll 4
    for (int k = 0; k < s.classes; k++) {
        const float e = sac_exp(in.at(k, x, y) - greatest);
        total += e;
        wanted = sac_matte_wanted(&s, k) ? wanted + e : wanted;
    }
    return sac_matte_share(sac_matte_part(wanted, total));
}

template <typename T>
__device__ int16_t sum_shares(const sac_matte_spec &s, const numbers<T> &in, int x, int y)
{
    float wanted = 0;
    for (int k = 0; k < s.classes; k++)
        if (sac_matte_wanted(&s, k))
            wanted += in.at(k, x, y);
    return sac_matte_share(wanted);
}

template <typename T>
__device__ int16_t share_of(const sac_matte_spec &s, const numbers<T> &in, int x, int y)
{
    switch (s.form) {
    case SAC_MATTE_CLASS_LOGITS: return softmax(s, in, x, y);
    case SAC_MATTE_CLASS_SHARES: return sum_shares(s, in, x, y);
    case SAC_MATTE_LOGIT: return sac_matte_share(sac_sigmoid(in.at(0, x, y)));
    case SAC_MATTE_SHARE: return sac_matte_share(in.at(0, x, y));
    default: return sac_matte_share_of_label(&s, in.at(0, x, y));
    }
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

template <bool TURNED> __device__ uint8_t mean_of(const cuda_matte_job &job, int x, int y)
{
    const sac_matte_span sx = job.span_x[x], sy = job.span_y[y];
    const int            across = sac_matte_samples(&sx), down = sac_matte_samples(&sy);
    const int32_t        sum = read_as<TURNED>(job.frame.format, [&](sac_reading r) {
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

/* Shares of the grid, and luma with its margin, whose cells are those next to them. */
template <typename T, bool TURNED>
__global__ void __launch_bounds__(THREADS) fill_cells(const __grid_constant__ cuda_matte_params p)
{
    const cuda_matte_job &job = p.jobs[blockIdx.y];
    const int             width = job.x.cells, height = job.y.cells;
    const tile            t = tile_of(width + 2 * MARGIN, TILE_Y);
    const int             x = t.x + threadIdx.x - MARGIN, y = t.y + threadIdx.y - MARGIN;
    if (width == 0 || t.y >= height + 2 * MARGIN)
        return;
    if (x < width + MARGIN && y < height + MARGIN)
        job.luma[(ptrdiff_t)y * p.luma_pitch + x] =
            mean_of<TURNED>(job, clamp_to(x, 0, width - 1), clamp_to(y, 0, height - 1));
    const bool in = job.image >= 0 && x >= 0 && x < width && y >= 0 && y < height;
    int16_t    share = 0;
    if (in) {
        share = share_of(p.spec, numbers_of<T>(p, job), x, y);
        job.raw[(ptrdiff_t)y * p.spec.width + x] = share;
    }
    if (job.summary && job.image >= 0)
        add_to_summary(job, in, share, x, y);
}

/* ---- motion ---- */

enum {
    BLOCK = SAC_MATTE_BLOCK,
    REACH = SAC_MATTE_REACH,
    FINE = SAC_MATTE_FINE,
    WARPS = THREADS / LANES,
    BEFORE_MARGIN = 16, /* cells around a block that a search may read: twice REACH, and FINE */
    BEFORE = BLOCK + 2 * BEFORE_MARGIN,
    NOW_MARGIN = 4,
    NOW = BLOCK + 2 * NOW_MARGIN,
    HALF_BEFORE = BLOCK + 2 * REACH,
    SIDE = 2 * REACH + 1, /* candidates, each way */
    FINE_SIDE = 2 * FINE + 1,
    COLUMN = REACH + 1 /* candidates of a lane, one below the other: two lanes share a column */
};
static_assert((int)BEFORE_MARGIN >= 2 * REACH + FINE, "all places are at hand");
static_assert(2 * HALF_BEFORE == BEFORE && 2 * BLOCK == NOW, "planes of half size");

/* A block's cells and those around it in the frame before, both also of half size. Rows are longer
 * by a word: a place that is no multiple of four reads past the last one, and banks differ. */
struct search_room {
    uint32_t before[BEFORE][BEFORE / 4 + 1], now[NOW][NOW / 4];
    uint32_t half_before[HALF_BEFORE][HALF_BEFORE / 4 + 1], half_now[BLOCK][BLOCK / 4];
};

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

/* Four cells of a row from any one on. */
__device__ uint32_t four_of(const uint32_t *row, int at)
{
    const uint32_t *word = row + at / 4;
    return __funnelshift_r(word[0], word[1], at % 4 * 8);
}

/* Cells left, top on, rows of `words` words. */
__device__ void copy_window(const uint8_t *luma, int pitch, bool wide, int words, int rows,
                            uint32_t *to, int to_pitch, int lane)
{
    for (int i = lane; i < words * rows; i += LANES) {
        const uint8_t *from = luma + (ptrdiff_t)(i / words) * pitch + i % words * 4;
        uint32_t      *word = &to[i / words * to_pitch + i % words];
        if (wide)
            *word = *(const uint32_t *)(const void *)from;
        else
            *word = from[0] | from[1] << 8 | from[2] << 16 | (uint32_t)from[3] << 24;
    }
}

__device__ void halve_window(const uint32_t *from, int from_pitch, int side, uint32_t *to,
                             int to_pitch, int lane)
{
    for (int i = lane; i < side * side; i += LANES) {
        const int      x = i % side, y = i / side;
        const uint8_t *above = (const uint8_t *)(from + 2 * y * from_pitch) + 2 * x;
        const uint8_t *below = (const uint8_t *)(from + (2 * y + 1) * from_pitch) + 2 * x;
        ((uint8_t *)(to + y * to_pitch))[x] = sac_matte_halve(above, below);
    }
}

__device__ uint32_t least_of_warp(uint32_t v)
{
    for (int half = LANES / 2; half > 0; half /= 2) {
        const uint32_t other = __shfl_xor_sync(~0u, v, half);
        v = other < v ? other : v;
    }
    return v;
}

/* The sum of differences of a block to itself: every lane has it. */
__device__ int still_difference(const uint8_t *now, const uint8_t *before, int pitch, int lane)
{
    int sum = 0;
    for (int i = lane; i < BLOCK * BLOCK; i += LANES) {
        const ptrdiff_t at = (ptrdiff_t)(i / BLOCK) * pitch + i % BLOCK;
        sum += now[at] > before[at] ? now[at] - before[at] : before[at] - now[at];
    }
    for (int half = LANES / 2; half > 0; half /= 2)
        sum += __shfl_xor_sync(~0u, sum, half);
    return sum;
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
    const int x = 2 * coarse.x + lane % FINE_SIDE - FINE,
              y = 2 * coarse.y + lane / FINE_SIDE - FINE;
    uint32_t best = sac_matte_candidate(still, 0, 0, 0);
    if (lane < FINE_SIDE * FINE_SIDE) {
        uint32_t off = 0;
#pragma unroll
        for (int row = 0; row < BLOCK; row++) {
            const uint32_t *before = r.before[BEFORE_MARGIN + y + row],
                           *now = &r.now[NOW_MARGIN + row][NOW_MARGIN / 4];
            off = add_differences(four_of(before, BEFORE_MARGIN + x), now[0], off);
            off = add_differences(four_of(before, BEFORE_MARGIN + x + 4), now[1], off);
        }
        const uint32_t it = sac_matte_candidate((int)off, x, y, lane + 1);
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
    const cuda_matte_job  &job = p.jobs[blockIdx.y];
    const int              lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    const int              across = blocks_along(job.x.cells);
    const int              block = blockIdx.x * WARPS + warp, pitch = p.luma_pitch;
    search_room           &r = rooms[warp];
    if (!job.moves || block >= across * blocks_along(job.y.cells))
        return;
    const ptrdiff_t at = (ptrdiff_t)(block / across * BLOCK) * pitch + block % across * BLOCK;
    const uint8_t  *now = job.luma + at, *before = job.luma_before + at;
    const int       still = still_difference(now, before, pitch, lane);
    sac_matte_move  move = {0, 0};
    if (still > SAC_MATTE_STILL) { /* for all lanes */
        copy_window(before - BEFORE_MARGIN * (pitch + 1), pitch, job.wide_luma, BEFORE / 4, BEFORE,
                    r.before[0], BEFORE / 4 + 1, lane);
        copy_window(now - NOW_MARGIN * (pitch + 1), pitch, job.wide_luma, NOW / 4, NOW, r.now[0],
                    NOW / 4, lane);
        __syncwarp();
        halve_window(r.before[0], BEFORE / 4 + 1, HALF_BEFORE, r.half_before[0],
                     HALF_BEFORE / 4 + 1, lane);
        halve_window(r.now[0], NOW / 4, BLOCK, r.half_now[0], BLOCK / 4, lane);
        __syncwarp();
        move = fine_move(r, coarse_move(r, lane), still, lane);
    }
    if (lane == 0)
        job.move[block] = move;
}

/* ---- where cells were ---- */

/* Where a cell was and the sum of differences to that, in one word. */
enum { NOWHERE = 64 };

__device__ uint32_t pack_former(sac_matte_move move, int residual)
{
    return (uint32_t)residual << 16 | (uint32_t)(move.y + NOWHERE) << 8 |
           (uint32_t)(move.x + NOWHERE);
}

__device__ int residual_of(const cuda_matte_job &job, int pitch, int x, int y, sac_matte_move move)
{
    const ptrdiff_t at = (ptrdiff_t)(y - 1) * pitch + x - 1;
    const uint8_t  *a = job.luma + at;
    const uint8_t  *b = job.luma_before + at + (ptrdiff_t)move.y * pitch + move.x;
    int             sum = 0;
#pragma unroll
    for (int j = 0; j < 3; j++, a += pitch, b += pitch)
#pragma unroll
        for (int i = 0; i < 3; i++)
            sum += a[i] > b[i] ? a[i] - b[i] : b[i] - a[i];
    return sum;
}

__device__ bool same_move(sac_matte_move a, sac_matte_move b)
{
    return a.x == b.x && a.y == b.y;
}

/* Of staying and the moves of the blocks that the cell's quarter lies between, its own first. */
__global__ void __launch_bounds__(THREADS) find_cells(const __grid_constant__ cuda_matte_params p)
{
    const cuda_matte_job &job = p.jobs[blockIdx.y];
    const int             width = job.x.cells, height = job.y.cells;
    if (!job.moves)
        return;
    const tile t = tile_of(width, TILE_Y);
    const int  x = t.x + threadIdx.x, y = t.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    const int across = blocks_along(width), bx = x / BLOCK, by = y / BLOCK;
    const int sx = clamp_to(bx + (x / (BLOCK / 2) & 1 ? 1 : -1), 0, across - 1);
    const int sy = clamp_to(by + (y / (BLOCK / 2) & 1 ? 1 : -1), 0, blocks_along(height) - 1);
    const sac_matte_move none = {0, 0};
    const sac_matte_move moves[4] = {job.move[by * across + bx], job.move[by * across + sx],
                                     job.move[sy * across + bx], job.move[sy * across + sx]};
    sac_matte_move       found = none;
    int                  best = residual_of(job, p.luma_pitch, x, y, none);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        bool known = same_move(moves[i], none);
#pragma unroll
        for (int k = 0; k < i; k++)
            known = known || same_move(moves[i], moves[k]);
        if (known)
            continue;
        const int off = residual_of(job, p.luma_pitch, x, y, moves[i]) + SAC_MATTE_MOVE_COST;
        if (off < best) {
            best = off;
            found = moves[i];
        }
    }
    job.former[(ptrdiff_t)y * p.spec.width + x] = pack_former(found, best);
}

/* ---- what stays of former shares ---- */

/* What one frame has for a cell of the next one's; kept SAC_MATTE_ONE and share 0: the former share
 * stays as it is. */
struct trace_step {
    int16_t share;
    int     kept;
};

/* Back through the frames of one launch, up to where the former share does not matter; then forth.
 */
__device__ int16_t trace_share(const cuda_matte_params &p, int number, int first, int x, int y)
{
    trace_step      step[CUDA_MATTE_CHAIN];
    const ptrdiff_t pitch = p.spec.width;
    int             count = 0;
    int16_t         value = 0;
#pragma unroll
    for (int i = 0; i < CUDA_MATTE_CHAIN; i++) {
        const cuda_matte_job &job = p.jobs[number];
        const uint32_t        former = job.former[y * pitch + x];
        const bool            alone = job.image < 0;
        step[i].share = alone ? 0 : job.raw[y * pitch + x];
        step[i].kept =
            alone ? SAC_MATTE_ONE : sac_matte_kept(step[i].share, (int)(former >> 16), p.smooth);
        count = i + 1;
        if (step[i].kept == 0)
            break;
        x = clamp_to(x + (int)(former & 0xff) - NOWHERE, 0, job.x.cells - 1);
        y = clamp_to(y + (int)(former >> 8 & 0xff) - NOWHERE, 0, job.y.cells - 1);
        if (job.depth == first) {
            value = job.share_before[y * pitch + x];
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
    const cuda_matte_job &job = p.jobs[blockIdx.y];
    const int             width = job.x.cells, height = job.y.cells;
    if (!job.moves || job.depth < first || job.depth >= first + CUDA_MATTE_CHAIN)
        return;
    const tile t = tile_of(width, TILE_Y);
    const int  x = t.x + threadIdx.x, y = t.y + threadIdx.y;
    const bool in = x < width && y < height;
    int16_t    share = 0;
    if (t.y >= height)
        return;
    if (in) {
        share = trace_share(p, blockIdx.y, first, x, y);
        job.share[(ptrdiff_t)y * p.spec.width + x] = share;
    }
    if (job.summary && job.image < 0)
        add_to_summary(job, in, share, x, y);
}

/* ---- holes ---- */

enum { HOLE = SAC_MATTE_HOLE_MAX, CLOSE_X = TILE_X + 2 * HOLE, CLOSE_Y = TILE_Y + 2 * HOLE };

/* The greatest share of a window, then the smallest of these; what lies outside the grid is none of
 * them. */
__global__ void __launch_bounds__(THREADS) close_holes(const __grid_constant__ cuda_matte_params p)
{
    __shared__ int16_t    share[CLOSE_Y][CLOSE_X], most[CLOSE_Y][CLOSE_X];
    const cuda_matte_job &job = p.jobs[blockIdx.y];
    const int             width = job.x.cells, height = job.y.cells, hole = p.hole;
    const int             before = sac_matte_hole_before(hole), after = sac_matte_hole_after(hole);
    if (width == 0)
        return;
    const tile t = tile_of(width, TILE_Y);
    if (t.y >= height)
        return;
    const int left = t.x - hole, top = t.y - hole;
    for (int j = threadIdx.y; j < TILE_Y + 2 * hole; j += TILE_Y)
        for (int i = threadIdx.x; i < TILE_X + 2 * hole; i += TILE_X) {
            const int  x = left + i, y = top + j;
            const bool in = x >= 0 && x < width && y >= 0 && y < height;
            share[j][i] = in ? job.share[(ptrdiff_t)y * p.spec.width + x] : (int16_t)INT16_MIN;
        }
    __syncthreads();
    for (int j = threadIdx.y + before; j < TILE_Y + 2 * hole - after; j += TILE_Y)
        for (int i = threadIdx.x + before; i < TILE_X + 2 * hole - after; i += TILE_X) {
            const int  x = left + i, y = top + j;
            const bool in = x >= 0 && x < width && y >= 0 && y < height;
            int16_t    best = INT16_MIN;
            for (int v = -before; v <= after; v++)
                for (int u = -before; u <= after; u++)
                    best = share[j + v][i + u] > best ? share[j + v][i + u] : best;
            most[j][i] = in ? best : (int16_t)INT16_MAX;
        }
    __syncthreads();
    const int i = threadIdx.x + hole, j = threadIdx.y + hole;
    if (left + i >= width || top + j >= height)
        return;
    int16_t best = INT16_MAX;
    for (int v = -after; v <= before; v++)
        for (int u = -after; u <= before; u++)
            best = most[j + v][i + u] < best ? most[j + v][i + u] : best;
    job.closed[(ptrdiff_t)(top + j) * p.spec.width + left + i] = best;
}

/* ---- lines ---- */

enum {
    GUIDE = SAC_MATTE_GUIDE_MAX,
    LINE_Y = 2 * TILE_Y, /* rows of a block: each thread has two cells */
    LINE_ROOM_X = TILE_X + 2 * GUIDE,
    LINE_ROOM_Y = LINE_Y + 2 * GUIDE
};

/* Luma and share of a cell. */
struct line_cell {
    int16_t luma, share;
};

/* The line of each cell's window: sums along rows first, then of these. */
__global__ void __launch_bounds__(THREADS) fit_lines(const __grid_constant__ cuda_matte_params p)
{
    __shared__ line_cell      cell[LINE_ROOM_Y][LINE_ROOM_X];
    __shared__ sac_matte_sums row[LINE_ROOM_Y][TILE_X];
    const cuda_matte_job     &job = p.jobs[blockIdx.y];
    const int                 width = job.x.cells, height = job.y.cells, radius = p.guide;
    if (width == 0)
        return;
    const tile t = tile_of(width, LINE_Y);
    if (t.y >= height)
        return;
    for (int j = threadIdx.y; j < LINE_Y + 2 * radius; j += TILE_Y)
        for (int i = threadIdx.x; i < TILE_X + 2 * radius; i += TILE_X) {
            const int x = t.x - radius + i, y = t.y - radius + j;
            line_cell c = {0, 0};
            if (x >= 0 && x < width && y >= 0 && y < height) {
                c.luma = job.luma[(ptrdiff_t)y * p.luma_pitch + x];
                c.share = job.closed[(ptrdiff_t)y * p.spec.width + x];
            }
            cell[j][i] = c;
        }
    __syncthreads();
    for (int j = threadIdx.y; j < LINE_Y + 2 * radius; j += TILE_Y) {
        sac_matte_sums s = {0, 0, 0, 0};
        for (int i = 0; i <= 2 * radius; i++) {
            const line_cell c = cell[j][threadIdx.x + i];
            s.luma += c.luma;
            s.share += c.share;
            s.luma2 += c.luma * c.luma;
            s.both += c.luma * c.share;
        }
        row[j][threadIdx.x] = s;
    }
    __syncthreads();
    const int x = t.x + threadIdx.x;
    for (int j = threadIdx.y; j < LINE_Y; j += TILE_Y) {
        const int y = t.y + j;
        if (x >= width || y >= height)
            return;
        sac_matte_sums s = {0, 0, 0, 0};
        for (int i = 0; i <= 2 * radius; i++) {
            const sac_matte_sums &r = row[j + i][threadIdx.x];
            s.luma += r.luma;
            s.share += r.share;
            s.luma2 += r.luma2;
            s.both += r.both;
        }
        const double n =
            (double)(sac_matte_window(x, width, radius) * sac_matte_window(y, height, radius));
        cuda_matte_line line;
        sac_matte_line(&s, n, sac_matte_noise(p.variance, n), &line.slope, &line.base);
        job.line[(ptrdiff_t)y * p.spec.width + x] = line;
    }
}

/* The mean line of the windows about a cell. */
__global__ void __launch_bounds__(THREADS) mean_lines(const __grid_constant__ cuda_matte_params p)
{
    __shared__ cuda_matte_line cell[LINE_ROOM_Y][LINE_ROOM_X], row[LINE_ROOM_Y][TILE_X];
    const cuda_matte_job      &job = p.jobs[blockIdx.y];
    const int                  width = job.x.cells, height = job.y.cells, radius = p.guide;
    if (width == 0)
        return;
    const tile t = tile_of(width, LINE_Y);
    if (t.y >= height)
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
    const int x = t.x + threadIdx.x;
    for (int j = threadIdx.y; j < LINE_Y; j += TILE_Y) {
        const int y = t.y + j;
        if (x >= width || y >= height)
            return;
        cuda_matte_line s = {0, 0};
        for (int i = 0; i <= 2 * radius; i++) {
            s.slope += row[j + i][threadIdx.x].slope;
            s.base += row[j + i][threadIdx.x].base;
        }
        const float     inverse = sac_matte_inverse(sac_matte_window(x, width, radius) *
                                                    sac_matte_window(y, height, radius));
        cuda_matte_mean mean = {sac_matte_slope(s.slope, inverse), sac_matte_base(s.base, inverse)};
        job.mean[(ptrdiff_t)y * p.spec.width + x] = mean;
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
    return read_as<TURNED>(s.format, [&](sac_reading r) {
        uint32_t luma = 0;
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            if (i >= q.first && i < q.end)
                luma |= (uint32_t)sac_matte_luma(&s, r, q.x + i, y) << 8 * i;
        return luma;
    });
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

/* Tables and planes that no thread of the launch writes. */
template <typename T> __device__ T read_only(const T *at)
{
#ifdef __CUDA_ARCH__
    return __ldg(at);
#else
    return *at;
#endif
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

/* One row of cells as wide as four pixels; at: its first cell. */
struct wide_guided {
    float           slope[PIXELS], base[PIXELS];
    __device__ void fill(const cuda_matte_mean *cells, uint32_t at, const quad_taps &t)
    {
#pragma unroll
        for (int i = 0; i < PIXELS; i++) {
            const cuda_matte_mean a = read_mean(cells + (at + t.of[i].a)),
                                  b = read_mean(cells + (at + t.of[i].b));
            slope[i] = sac_matte_between(a.slope, b.slope, t.of[i].part);
            base[i] = sac_matte_between(a.base, b.base, t.of[i].part);
        }
    }
};
struct wide_level {
    float           base[PIXELS];
    __device__ void fill(const int16_t *cells, uint32_t at, const quad_taps &t)
    {
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            base[i] = sac_matte_between(float_of_share(read_only(cells + (at + t.of[i].a))),
                                        float_of_share(read_only(cells + (at + t.of[i].b))),
                                        t.of[i].part);
    }
};

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

__device__ uint32_t pixel_of(const two_rows<wide_guided> &w, int i, float part, int luma,
                             const sac_matte_stretch &stretch)
{
    return byte_of(sac_matte_number(sac_matte_between(w.wide[0].slope[i], w.wide[1].slope[i], part),
                                    sac_matte_between(w.wide[0].base[i], w.wide[1].base[i], part),
                                    luma, stretch));
}

__device__ uint32_t pixel_of(const two_rows<wide_level> &w, int i, float part, int,
                             const sac_matte_stretch &stretch)
{
    return byte_of(sac_matte_number(
        0.0f, sac_matte_between(w.wide[0].base[i], w.wide[1].base[i], part), 0, stretch));
}

/* Where a block of pixels begins: a thread has some rows of four. */
struct area {
    int x, y;
};

__device__ area area_of(const cuda_matte_job &job, int rows)
{
    const int left = job.x.from & -PIXELS;
    const int across = (job.x.until - left + CUDA_MATTE_AREA_X - 1) / CUDA_MATTE_AREA_X;
    return area{left + ((int)blockIdx.x % across) * CUDA_MATTE_AREA_X + (int)threadIdx.x * PIXELS,
                job.y.from + ((int)blockIdx.x / across * TILE_Y + (int)threadIdx.y) * rows};
}

__device__ const cuda_matte_mean *cells_of(const cuda_matte_job &job, const wide_guided *)
{
    return job.mean;
}
__device__ const int16_t *cells_of(const cuda_matte_job &job, const wide_level *)
{
    return job.closed;
}

enum { ROWS = CUDA_MATTE_AREA_Y / TILE_Y, CLASS_ROWS = CUDA_MATTE_CLASS_Y / TILE_Y };

template <typename WIDE, bool GUIDED, bool TURNED>
__global__ void __launch_bounds__(THREADS) fill_pixels(const __grid_constant__ cuda_matte_params p)
{
    const cuda_matte_job &job = p.jobs[blockIdx.y];
    if (job.x.cells == 0)
        return;
    if (job.summary && blockIdx.x == 0 && thread_of_block() == 0)
        write_summary(job);
    const area at = area_of(job, ROWS);
    if (at.x >= job.x.until || at.y >= job.y.until)
        return;
    const quad      q = quad_of(job.x, at.x);
    const quad_taps taps = taps_of(job.tap_x + (at.x - (job.x.from & -PIXELS)));
    const auto     *cells = cells_of(job, (const WIDE *)NULL);
    const uint32_t *tap_y = job.tap_y + (at.y - job.y.from);
    const int       count = job.y.until - at.y < ROWS ? job.y.until - at.y : ROWS;
    const bool      wide_out = job.wide_out;
    const size_t    out_pitch = job.out_pitch;
    const uint32_t  pitch = (uint32_t)p.spec.width;
    uint8_t        *out = job.out + (size_t)at.y * out_pitch + at.x;
    uint32_t        luma[ROWS] = {}, down[ROWS];
    two_rows<WIDE>  w;
#pragma unroll
    for (int j = 0; j < ROWS; j++)
        down[j] = read_only(tap_y + (j < count ? j : 0));
    if (GUIDED) {
#pragma unroll
        for (int j = 0; j < ROWS; j++)
            if (j < count)
                luma[j] = luma_of_quad<TURNED>(job.frame, job.wide_frame, q, at.y + j);
    }
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
        if (j >= count)
            break;
        const two_cells tap = unpack_tap(down[j]);
        w.move_to(tap.a, tap.b,
                  [&](uint32_t row, WIDE &wide) { wide.fill(cells, row * pitch, taps); });
        uint32_t bytes = 0;
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            bytes |= pixel_of(w, i, tap.part, (int)(luma[j] >> 8 * i & 0xff), p.stretch) << 8 * i;
        store_quad(out, wide_out, q, bytes);
        out += out_pitch;
    }
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
__global__ void __launch_bounds__(THREADS) fill_classes(const __grid_constant__ cuda_matte_params p)
{
    const cuda_matte_job &job = p.jobs[blockIdx.y];
    if (job.x.cells == 0)
        return;
    const area at = area_of(job, CLASS_ROWS);
    if (at.x >= job.x.until || at.y >= job.y.until)
        return;
    const bool       alone = p.spec.form == SAC_MATTE_SHARE || p.spec.form == SAC_MATTE_LOGIT;
    const quad       q = quad_of(job.x, at.x);
    const quad_taps  taps = taps_of(job.tap_x + (at.x - (job.x.from & -PIXELS)));
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
    const cuda_matte_job &job = p.jobs[blockIdx.y];
    if (job.x.cells == 0)
        return;
    const area at = area_of(job, CLASS_ROWS);
    if (at.x >= job.x.until || at.y >= job.y.until)
        return;
    const quad       q = quad_of(job.x, at.x);
    const numbers<T> in = numbers_of<T>(p, job);
    const uint32_t  *tap_x = job.tap_x + (at.x - (job.x.from & -PIXELS));
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
    const cuda_matte_job &job = p.jobs[blockIdx.y];
    const int             width = job.x.cells, height = job.y.cells;
    if (!job.share_kept)
        return;
    const tile t = tile_of(width + 2 * MARGIN, TILE_Y);
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
dim3 tiles(const cuda_matte_params &p, int around, int height)
{
    return dim3(pieces(p.cells_x_max + 2 * around, TILE_X) *
                    pieces(p.cells_y_max + 2 * around, height),
                p.n);
}

template <int N>
void launch_list(const cuda_matte_params &p, const cuda_matte_job *jobs, cudaStream_t stream)
{
    const bool  nearest = p.classes && p.spec.form == SAC_MATTE_LABEL;
    job_list<N> list;
    for (int i = 0; i < p.n; i++)
        list.job[i] = jobs[i];
    CUDA_LAUNCH(prepare<N>, dim3(pieces(p.table_max, THREADS), p.n), THREADS, stream, list, p.jobs,
                nearest);
}

void launch_motion(const cuda_matte_params &p, cudaStream_t stream)
{
    const int  blocks = pieces(p.cells_x_max, BLOCK) * pieces(p.cells_y_max, BLOCK);
    const dim3 block(TILE_X, TILE_Y);
    CUDA_LAUNCH(search_blocks, dim3(pieces(blocks, WARPS), p.n), THREADS, stream, p);
    CUDA_LAUNCH(find_cells, tiles(p, 0, TILE_Y), block, stream, p);
    for (int first = 0; first <= p.depth_max; first += CUDA_MATTE_CHAIN)
        CUDA_LAUNCH(take_over, tiles(p, 0, TILE_Y), block, stream, p, first);
}

template <typename WIDE, bool GUIDED>
void launch_pixels(const cuda_matte_params &p, cudaStream_t stream)
{
    const dim3 grid(p.tiles_max, p.n), block(TILE_X, TILE_Y);
    if (p.turned)
        CUDA_LAUNCH((fill_pixels<WIDE, GUIDED, true>), grid, block, stream, p);
    else
        CUDA_LAUNCH((fill_pixels<WIDE, GUIDED, false>), grid, block, stream, p);
}

template <typename T> void launch_matte(const cuda_matte_params &p, cudaStream_t stream)
{
    const dim3 block(TILE_X, TILE_Y);
    if (p.turned)
        CUDA_LAUNCH((fill_cells<T, true>), tiles(p, MARGIN, TILE_Y), block, stream, p);
    else
        CUDA_LAUNCH((fill_cells<T, false>), tiles(p, MARGIN, TILE_Y), block, stream, p);
    if (p.depth_max >= 0)
        launch_motion(p, stream);
    if (p.hole > 0)
        CUDA_LAUNCH(close_holes, tiles(p, 0, TILE_Y), block, stream, p);
    if (p.guide > 0) {
        CUDA_LAUNCH(fit_lines, tiles(p, 0, LINE_Y), block, stream, p);
        CUDA_LAUNCH(mean_lines, tiles(p, 0, LINE_Y), block, stream, p);
        launch_pixels<wide_guided, true>(p, stream);
    } else {
        launch_pixels<wide_level, false>(p, stream);
    }
    if (p.kept)
        CUDA_LAUNCH(keep_planes, tiles(p, MARGIN, TILE_Y), block, stream, p);
}

template <typename T> void launch(const cuda_matte_params &p, cudaStream_t stream)
{
    const dim3 grid(p.tiles_max, p.n), block(TILE_X, TILE_Y);
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
    if (p->n <= CUDA_MATTE_JOBS_FEW)
        launch_list<CUDA_MATTE_JOBS_FEW>(*p, jobs, stream);
    else
        launch_list<CUDA_MATTE_JOBS_MAX>(*p, jobs, stream);
    if (p->tiles_max == 0)
        return cudaGetLastError();
    switch (p->spec.value.dtype) {
    case SAC_F16: launch<half_bits>(*p, stream); break;
    case SAC_I32: launch<int32_t>(*p, stream); break;
    case SAC_I64: launch<int64_t>(*p, stream); break;
    default: launch<float>(*p, stream); break;
    }
    return cudaGetLastError();
}
