/* SPDX-License-Identifier: Apache-2.0 */
/* Products of heads' float16 matrices on the tensor cores. A block makes a tile of one head's
 * product; pieces of KS numbers of the depth come through shared memory in STAGES turns, fetched
 * ahead.
 * - a and b are alike: each is fetched along whichever of its dims lies dense, and turned, where
 *   that is not the depth, when a warp loads it. So no operand is transposed first.
 * - Warps share the tile and, where it is small, the depth of each turn: what each of them summed
 *   up is added in shared memory, always in the same order.
 * - On Hopper four warps multiply together where the tile is large (UNIT): each loads sixteen rows
 *   of a, and the matrix unit reads b where it was fetched to.
 * - Of a last turn, and of a tile at the border, what is not there is neither fetched nor
 *   multiplied, but in sixteens of the depth: those are filled with zeros. */
#pragma once

#include "engine/cuda/kernels/attention_unit.cuh"
#include "engine/cuda/kernels/each.cuh"
#include "engine/cuda/kernels/head_matmul_ending.cuh"
#include "engine/cuda/kernels/tile_unit.cuh"

namespace ops
{

struct product_params {
    struct ops_head_matmul p;
    const uint16_t        *a, *b;
    uint16_t              *y;
    product_behind         behind;
    int                    behind_at; /* bytes of shared memory before what is behind the product */
};

/* A warp makes 32 x 32 numbers. */
template <int ROWS, int COLUMNS, bool DEEP> struct product_shape {
    static constexpr bool UNIT = false;
    static constexpr int  MS = ROWS, NS = COLUMNS, KS = DEEP ? 2 * OPS_HEAD_TURN : OPS_HEAD_TURN;
    static constexpr int  WARPS = DEEP ? 8 : 4, THREADS = WARPS * 32;
    static constexpr int  WM = MS / 32, WN = NS / 32, WK = WARPS / (WM * WN); /* warps that share */
    static constexpr int  STAGE = (MS + NS) * KS;                             /* numbers */
    static constexpr int  STAGES = DEEP ? (96 << 10) / (2 * STAGE) : (48 << 10) / (2 * STAGE);
    static constexpr int  RESIDENT = DEEP ? 1 : 5;           /* blocks that have registers */
    static constexpr int  PITCH = NS + 8, PART = MS * PITCH; /* floats of a row of sums, of a warp's
                                                                share of the depth */
};

/* Four warps make 64 rows, each 16 of them. */
template <int COLUMNS> struct product_unit_shape {
    static constexpr bool UNIT = true;
    static constexpr int  MS = 64, NS = COLUMNS, KS = OPS_HEAD_TURN, WARPS = 4, THREADS = 128;
    static constexpr int  WM = 4, WN = 1, WK = 1;
    static constexpr int  STAGE = (MS + NS) * KS, STAGES = 3;
    static constexpr int  RESIDENT = NS == 64 ? 4 : 3;
    static constexpr int  PITCH = NS + 8, PART = MS * PITCH;
};

/* Of a warp. */
template <class S> struct product_sums {
    float of[2][4][4]; /* rows g, g + 8 of two sixteens by columns 2 t, 2 t + 1 of four eights */
};
template <int COLUMNS> struct product_sums<product_unit_shape<COLUMNS>> {
    float of[COLUMNS / 64][8][4]; /* of one sixteen by eights of columns */
};

/* ---- fetching ---- */

/* Where number d of a row of `width` lies in shared memory, where there are so many rows: parts of
 * 64 numbers of all rows follow each other, as the matrix unit wants them. Pieces of 16 bytes are
 * turned by the row, so that eight rows have theirs in different banks. Rows a multiple of eight
 * apart are turned alike. */
__device__ __forceinline__ int product_place(int width, int rows, int row, int d)
{
    if (width < 64)
        return row * width + ((d / 8 ^ (row / 2 & 3)) << 3 | d % 8);
    return (d / 64 * rows + row) * 64 + ((d / 8 % 8 ^ (row & 7)) << 3 | d % 8);
}

/* What a block reads of an operand in a turn: rows in shared memory are its rows (or columns) with
 * the numbers of the depth side by side or, turned, the other way around. Of all rows and of their
 * width, so many are there, and so many are filled, with zeros behind those. */
struct product_piece {
    const uint16_t *at;
    int             row_step, step; /* from row to row; along it */
    int             rows, rows_filled;
    int             width, width_filled;
};

/* Eight numbers of a row, of which so many are there. */
template <int PIECE>
__device__ __forceinline__ void product_fetch_eight(uint16_t *to, const uint16_t *from, int there)
{
#pragma unroll
    for (int k = 0; k < 8; k += PIECE)
        fetch_first<2 * PIECE>(to + k, from + k, 2 * max(0, min(PIECE, there - k)));
}

/* A thread fetches of each so many rows the same eight, so that little is computed for each of
 * them. */
template <int THREADS, int PIECE, int ROWS, int WIDTH>
__device__ __forceinline__ void product_fetch_pieces(uint16_t *to, const product_piece &p)
{
    constexpr int ABREAST = THREADS * 8 / WIDTH, PITCH = WIDTH < 64 ? WIDTH : 64;
    const int     first = (int)threadIdx.x * 8 / WIDTH, d = (int)threadIdx.x * 8 % WIDTH,
              there = p.width - d, step = ABREAST * p.row_step;
    if (d >= p.width_filled)
        return;
    const uint16_t *from = p.at + (first * p.row_step + d);
    to += product_place(WIDTH, ROWS, first, d);
    int row = first;
#pragma unroll 4
    for (; row < p.rows; row += ABREAST, from += step, to += ABREAST * PITCH)
        product_fetch_eight<PIECE>(to, from, there);
    for (; row < p.rows_filled; row += ABREAST, to += ABREAST * PITCH)
        product_fetch_eight<PIECE>(to, p.at, 0);
}

/* By pairs through registers, wherever they lie. All loads of some pairs are under way at once: no
 * branch between them asks for what one has brought. */
template <int THREADS, int ROWS, int WIDTH>
__device__ __forceinline__ void product_fetch_numbers(uint16_t *to, const product_piece &p)
{
    constexpr int AT_ONCE = 8, ABREAST = THREADS * 2 / WIDTH;
    const int     first = (int)threadIdx.x * 2 / WIDTH, d = (int)threadIdx.x * 2 % WIDTH;
    if (d >= p.width_filled)
        return;
    const uint16_t *from = p.at + d * p.step;
#pragma unroll 1
    for (int row = first; row < p.rows_filled; row += AT_ONCE * ABREAST) {
        uint16_t low[AT_ONCE], high[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            const int r = row + i * ABREAST, at = r * p.row_step;
            low[i] = r < p.rows && d < p.width ? from[at] : (uint16_t)0;
            high[i] = r < p.rows && d + 1 < p.width ? from[at + p.step] : (uint16_t)0;
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            const int r = row + i * ABREAST;
            if (r < ROWS)
                *reinterpret_cast<uint32_t *>(to + product_place(WIDTH, ROWS, r, d)) =
                    low[i] | (uint32_t)high[i] << 16;
        }
    }
}

template <int THREADS, int ROWS, int WIDTH>
__device__ __forceinline__ void product_fetch_by(uint16_t *to, const product_piece &p, int piece)
{
    if (piece == 8)
        product_fetch_pieces<THREADS, 8, ROWS, WIDTH>(to, p);
    else if (piece == 4)
        product_fetch_pieces<THREADS, 4, ROWS, WIDTH>(to, p);
    else
        product_fetch_numbers<THREADS, ROWS, WIDTH>(to, p);
}

/* An operand's numbers for a turn. left: rows (or columns), and numbers of the depth, from `at` on.
 */
template <int OUTER, class S>
__device__ __forceinline__ void product_fetch(uint16_t *to, const uint16_t *at,
                                              const ops_head_view &view, bool turned, int piece,
                                              int outer_left, int depth_left)
{
    const int outer_step = (int)view.step[2], depth_step = (int)view.step[3],
              outer = min(OUTER, outer_left), depth = min((int)S::KS, depth_left),
              filled = (depth + 15) & ~15;
    if (turned)
        product_fetch_by<S::THREADS, S::KS, OUTER>(
            to, {at, depth_step, outer_step, depth, filled, outer, outer}, piece);
    else
        product_fetch_by<S::THREADS, OUTER, S::KS>(
            to, {at, outer_step, depth_step, outer, outer, depth, filled}, piece);
}

/* ---- multiplying ---- */

/* Sixteen rows (or columns) by sixteen numbers of the depth, as the tensor cores want those of a;
 * words 0 and 2, 1 and 3 are two eights of columns, as they want those of b. */
template <int OUTER, int KS, bool TURNED>
__device__ __forceinline__ void product_load(uint32_t (&v)[4], const uint16_t *from, int outer,
                                             int k)
{
    const int lane = threadIdx.x % 32;
    if (TURNED)
        load_turned(v, from + product_place(OUTER, KS, k + (lane & 7) + (lane >> 4) * 8,
                                            outer + (lane >> 3 & 1) * 8));
    else
        load(v, from + product_place(KS, OUTER, outer + (lane & 15), k + (lane >> 4) * 8));
}

/* COUNT sixteens of the depth, from the k-th on, by four warps, each with sixteen rows from `row`
 * on. */
template <class S, bool A_TURNED, bool B_TURNED, int COUNT>
__device__ __forceinline__ void product_together(product_sums<S> &sum, const uint16_t *stage,
                                                 int row, int k)
{
    const uint16_t *b = stage + S::MS * S::KS;
    uint32_t        a[COUNT][4];
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        product_load<S::MS, S::KS, A_TURNED>(a[i], stage, row, (k + i) * 16);
    unit_begin();
#pragma unroll
    for (int i = 0; i < COUNT; i++)
#pragma unroll
        for (int part = 0; part < S::NS / 64; part++)
            unit_multiply<8, B_TURNED>(sum.of[part], a[i],
                                       unit_matrix<64>(b + part * 64 * S::KS) +
                                           (k + i) * (B_TURNED ? 2 * 64 : 2));
    unit_commit();
    unit_wait<0>();
}

/* The warp's share of a turn, of which `left` numbers of the depth are there. */
template <class S, bool A_TURNED, bool B_TURNED>
__device__ __forceinline__ void product_multiply(product_sums<S> &sum, const uint16_t *stage,
                                                 int row, int column, int share, int left)
{
    if constexpr (S::UNIT) {
        constexpr int STEPS = S::KS / 16;
        if (left >= S::KS)
            product_together<S, A_TURNED, B_TURNED, STEPS>(sum, stage, row, 0);
        else
#pragma unroll 1
            for (int k = 0; k * 16 < left; k++)
                product_together<S, A_TURNED, B_TURNED, 1>(sum, stage, row, k);
    } else {
#pragma unroll
        for (int i = 0; i < S::KS / 16; i += S::WK) {
            const int k = (i + share) * 16;
            if (k >= left)
                return;
            uint32_t a[2][4];
#pragma unroll
            for (int m = 0; m < 2; m++)
                product_load<S::MS, S::KS, A_TURNED>(a[m], stage, row + m * 16, k);
#pragma unroll
            for (int n = 0; n < 4; n += 2) {
                uint32_t b[4];
                product_load<S::NS, S::KS, B_TURNED>(b, stage + S::MS * S::KS, column + n * 8, k);
#pragma unroll
                for (int m = 0; m < 2; m++) {
                    multiply_halves(sum.of[m][n], a[m], b[0], b[2]);
                    multiply_halves(sum.of[m][n + 1], a[m], b[1], b[3]);
                }
            }
        }
    }
}

template <class S>
__device__ __forceinline__ void product_turn(const ops_head_matmul &p, product_sums<S> &sum,
                                             const uint16_t *stage, int row, int column, int share,
                                             int left)
{
    if (p.a_turned && p.b_turned)
        product_multiply<S, true, true>(sum, stage, row, column, share, left);
    else if (p.a_turned)
        product_multiply<S, true, false>(sum, stage, row, column, share, left);
    else if (p.b_turned)
        product_multiply<S, false, true>(sum, stage, row, column, share, left);
    else
        product_multiply<S, false, false>(sum, stage, row, column, share, left);
}

/* ---- the result ---- */

/* A warp's sums to where all of the block see them. */
template <class S>
__device__ __forceinline__ void product_show(const product_sums<S> &sum, float *room, int row,
                                             int column, int share)
{
    constexpr int OUTER = sizeof sum.of / sizeof *sum.of, EIGHTS = sizeof *sum.of / sizeof **sum.of,
                  FAR = S::UNIT ? 64 : 16 * S::PITCH; /* a part of columns, or sixteen rows on */
    const int lane = threadIdx.x % 32;
    float    *to = room + share * S::PART + (row + lane / 4) * S::PITCH + column + lane % 4 * 2;
#pragma unroll
    for (int m = 0; m < OUTER; m++)
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int n = 0; n < EIGHTS; n++)
                *reinterpret_cast<float2 *>(to + m * FAR + half * 8 * S::PITCH + n * 8) =
                    make_float2(sum.of[m][n][2 * half], sum.of[m][n][2 * half + 1]);
}

/* Where a tile is in the result, and its numbers of what is behind the product; so many rows and
 * columns from there on are there. */
struct product_tile {
    uint16_t       *y;
    const uint16_t *r; /* NULL: there is none */
    int             r_row_step, r_step;
    const float    *bias; /* likewise */
    int             rows, columns;
};

/* What is behind the product comes through shared memory while it is multiplied: at its end each
 * thread would wait for it again and again. */
template <class S> struct product_room {
    static constexpr int PITCH = S::NS + 8, NUMBERS = S::MS > S::NS ? S::MS : S::NS;
    float                bias[NUMBERS];
    uint16_t             r[S::MS * PITCH]; /* there where it is read by eights */
};
template <class S> int room_bytes(const ops_head_matmul &p)
{
    return (int)sizeof(float) * product_room<S>::NUMBERS +
           (p.r_type && p.r_piece == 8 ? (int)sizeof product_room<S>::r : 0);
}

template <class S>
__device__ __forceinline__ void product_load_bias(const ops_head_matmul &p, const float *from,
                                                  const product_tile &t, product_room<S> *room)
{
    const int count = p.by_row ? min((int)S::MS, t.rows) : min((int)S::NS, t.columns);
    for (int i = threadIdx.x; i < count; i += S::THREADS)
        room->bias[i] = from[i];
}

template <class S>
__device__ __forceinline__ void product_fetch_other(const product_tile &t, product_room<S> *room)
{
    constexpr int ABREAST = S::THREADS / (S::NS / 8), PITCH = product_room<S>::PITCH;
    const int column = (int)threadIdx.x % (S::NS / 8) * 8, first = (int)threadIdx.x / (S::NS / 8),
              rows = min((int)S::MS, t.rows), there = t.columns - column;
    const uint16_t *from = t.r + (first * t.r_row_step + column);
    uint16_t       *to = room->r + first * PITCH + column;
    for (int row = first; row < rows && there > 0; row += ABREAST) {
        product_fetch_eight<8>(to, from, there);
        from += ABREAST * t.r_row_step;
        to += ABREAST * PITCH;
    }
}

/* COUNT sums of a row, side by side: 2; 4 or 8 that fit 16 bytes. */
template <class S, int COUNT>
__device__ __forceinline__ void product_sums_of(const float *room, int row, int column,
                                                float (&v)[COUNT])
{
    const float *from = room + row * S::PITCH + column;
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        v[i] = 0;
#pragma unroll
    for (int share = 0; share < S::WK; share++, from += S::PART) {
        float some[COUNT];
        if constexpr (COUNT == 8)
            get8(from, SAC_F32, 0, some);
        else if constexpr (COUNT == 4)
            get4(from, SAC_F32, 0, some);
        else {
            const float2 pair = *reinterpret_cast<const float2 *>(from);
            some[0] = pair.x, some[1] = pair.y;
        }
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            v[i] += some[i];
    }
}

/* Those of r beside them; of the last, some may not be there. */
template <int COUNT>
__device__ __forceinline__ void product_others(const product_tile &t, bool by_eights, int row,
                                               int column, float (&v)[COUNT])
{
    const uint16_t *from = t.r + row * t.r_row_step + column * t.r_step;
    if (COUNT > 2 && by_eights) {
        if constexpr (COUNT == 8)
            get8(from, SAC_F16, 0, v);
        else if constexpr (COUNT == 4)
            get4(from, SAC_F16, 0, v);
        return;
    }
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        v[i] = column + i < t.columns ? half_to_float(from[i * t.r_step]) : 0;
}

/* COUNT numbers, of which each is computed while others wait. */
template <int COUNT>
__device__ __forceinline__ void product_activate(const ops_head_matmul &p, float (&v)[COUNT])
{
#define OF(fn)                                                     \
    case fn:                                                       \
        _Pragma("unroll") for (int i = 0; i < COUNT; i++) v[i] =   \
            real_function(fn, v[i], 0.0f, 0.0f, p.act_a, p.act_b); \
        break
    switch (p.act) {
        OF(OPS_FN_RELU);
        OF(OPS_FN_LEAKY_RELU);
        OF(OPS_FN_CLIP);
        OF(OPS_FN_SIGMOID);
        OF(OPS_FN_SWISH);
        OF(OPS_FN_HARD_SIGMOID);
        OF(OPS_FN_HARD_SWISH);
        OF(OPS_FN_TANH);
        OF(OPS_FN_SOFTPLUS);
        OF(OPS_FN_GELU);
        OF(OPS_FN_GELU_TANH);
        OF(OPS_FN_SQUARED_RELU);
    default: break;
    }
#undef OF
}

/* Sums to results. */
template <int COUNT>
__device__ __forceinline__ void product_end(const ops_head_matmul &p, const product_tile &t,
                                            int row, int column, float (&v)[COUNT])
{
    const float shift = t.bias && p.by_row ? t.bias[row] : 0;
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        v[i] = fmaf(v[i], p.scale, t.bias && !p.by_row ? t.bias[column + i] : shift);
    product_activate(p, v);
    if (!t.r)
        return;
    float other[COUNT];
    product_others(t, p.r_piece == 8, row, column, other);
    if (p.gates)
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            v[i] *= other[i];
    else
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            v[i] += other[i];
}

/* Each thread stores COUNT columns, 4 or 8, of every so many rows. */
template <class S, int COUNT>
__device__ __forceinline__ void product_store_pieces(const ops_head_matmul &p, const float *sums,
                                                     const product_tile &t)
{
    constexpr int ABREAST = S::THREADS / (S::NS / COUNT);
    const int     column = (int)threadIdx.x % (S::NS / COUNT) * COUNT,
              first = (int)threadIdx.x / (S::NS / COUNT), row_step = (int)p.y.step[2],
              rows = min((int)S::MS, t.rows);
    uint16_t *to = t.y + (first * row_step + column);
    if (column >= t.columns)
        return;
#pragma unroll 1
    for (int row = first; row < rows; row += ABREAST, to += ABREAST * row_step) {
        float v[COUNT];
        product_sums_of<S>(sums, row, column, v);
        product_end(p, t, row, column, v);
        if (column + COUNT > t.columns) {
#pragma unroll
            for (int k = 0; k < COUNT - 1; k++)
                if (column + k < t.columns)
                    to[k] = float_to_half(v[k]);
        } else if constexpr (COUNT == 8)
            put8(to, SAC_F16, 0, v);
        else
            put4(to, SAC_F16, 0, v);
    }
}

template <class S>
__device__ __forceinline__ void product_store_pairs(const ops_head_matmul &p, const float *sums,
                                                    const product_tile &t)
{
    const int row_step = (int)p.y.step[2], step = (int)p.y.step[3];
#pragma unroll 1
    for (int i = threadIdx.x; i < S::MS * (S::NS / 2); i += S::THREADS) {
        const int row = i / (S::NS / 2), column = i % (S::NS / 2) * 2;
        float     v[2];
        if (row >= t.rows || column >= t.columns)
            continue;
        product_sums_of<S>(sums, row, column, v);
        product_end(p, t, row, column, v);
        const uint32_t pair = pair_of(v[0], v[1]);
        uint16_t      *to = t.y + row * row_step + column * step;
        if (step == 1 && column + 1 < t.columns && (uintptr_t)to % 4 == 0) {
            *reinterpret_cast<uint32_t *>(to) = pair;
            continue;
        }
        to[0] = (uint16_t)pair;
        if (column + 1 < t.columns)
            to[step] = (uint16_t)(pair >> 16);
    }
}

/* ---- a block: one tile ---- */

__device__ __forceinline__ int64_t product_start(const ops_head_view &v, unsigned batch,
                                                 unsigned head)
{
    return v.offset + batch * v.step[0] + head * v.step[1];
}

template <class S>
__global__ void __launch_bounds__(S::THREADS, S::RESIDENT)
    product_kernel(const __grid_constant__ product_params a)
{
    early_begin();
    const ops_head_matmul &p = a.p;
    const unsigned         across = ((unsigned)p.columns + S::NS - 1) / S::NS,
                   down = ((unsigned)p.rows + S::MS - 1) / S::MS, tile = blockIdx.x,
                   product = tile / across / down, head = product % (unsigned)p.heads,
                   batch = product / (unsigned)p.heads;
    const int first_row = (int)(tile / across % down) * S::MS,
              first_column = (int)(tile % across) * S::NS, rows = (int)p.rows - first_row,
              columns = (int)p.columns - first_column, depth = (int)p.depth,
              turns = (depth + S::KS - 1) / S::KS;
    const int warp = threadIdx.x / 32, row = warp % S::WM * (S::MS / S::WM),
              column = warp / S::WM % S::WN * (S::NS / S::WN), share = warp / (S::WM * S::WN);
    const bool      busy = S::UNIT || (row < rows && column < columns);
    uint16_t *const stages = tile_memory();
    const uint16_t *left = a.a + product_start(p.a, batch, head) + first_row * p.a.step[2],
                   *right = a.b + product_start(p.b, batch, head) + first_column * p.b.step[2];
    product_room<S> *const room =
        reinterpret_cast<product_room<S> *>(reinterpret_cast<char *>(stages) + a.behind_at);
    product_tile t = {a.y + product_start(p.y, batch, head) + first_row * p.y.step[2] +
                          first_column * p.y.step[3],
                      p.r_type ? (const uint16_t *)a.behind.r + product_start(p.r, batch, head) +
                                     first_row * p.r.step[2] + first_column * p.r.step[3]
                               : nullptr,
                      (int)p.r.step[2],
                      (int)p.r.step[3],
                      p.bias_type ? room->bias : nullptr,
                      rows,
                      columns};
    const bool   fetches_other = t.r && p.r_piece == 8;
    if (t.bias)
        product_load_bias<S>(p, a.behind.bias + (p.by_row ? first_row : first_column), t, room);
    product_sums<S> sum = {};
#pragma unroll 1
    for (int turn = 1 - S::STAGES, stage = 0, to = 0; turn < turns; turn++) {
        if (turn >= 0) {
            fetch_wait<S::STAGES - 2>();
            if constexpr (S::UNIT)
                unit_sees();
            __syncthreads(); /* this turn is there, and all have multiplied the one before it */
        }
        const int k = (turn + S::STAGES - 1) * S::KS;
        if (k < depth) {
            uint16_t *const ahead = stages + to * S::STAGE;
            product_fetch<S::MS, S>(ahead, left + k * p.a.step[3], p.a, p.a_turned, p.a_piece, rows,
                                    depth - k);
            product_fetch<S::NS, S>(ahead + S::MS * S::KS, right + k * p.b.step[3], p.b, p.b_turned,
                                    p.b_piece, columns, depth - k);
            to = to + 1 < S::STAGES ? to + 1 : 0;
        }
        if (turn == 0 && fetches_other)
            product_fetch_other<S>(t, room);
        fetch_commit();
        if (turn < 0)
            continue;
        if (busy)
            product_turn<S>(p, sum, stages + stage * S::STAGE, row, column, share,
                            depth - turn * S::KS);
        stage = stage + 1 < S::STAGES ? stage + 1 : 0;
    }
    fetch_wait<0>();
    __syncthreads(); /* all have multiplied the last turn */
    float *sums = reinterpret_cast<float *>(stages);
    if (busy)
        product_show<S>(sum, sums, row, column, share);
    if (fetches_other) {
        t.r = room->r;
        t.r_row_step = product_room<S>::PITCH;
    }
    __syncthreads();
    if (p.y_piece == 8)
        product_store_pieces<S, 8>(p, sums, t);
    else if (p.y_piece == 4)
        product_store_pieces<S, 4>(p, sums, t);
    else
        product_store_pairs<S>(p, sums, t);
}

/* ---- launching ---- */

template <class S> int run_product(product_params a, void *stream)
{
    const ops_head_matmul &p = a.p;
    const int64_t          turns = (p.depth + S::KS - 1) / S::KS, blocks = p.batch * p.heads *
                                                                  ((p.rows + S::MS - 1) / S::MS) *
                                                                  ((p.columns + S::NS - 1) / S::NS);
    const int stages = (int)(turns < S::STAGES ? turns : S::STAGES) * S::STAGE * 2,
              sums = S::WK * S::PART * (int)sizeof(float);
    if (blocks == 0)
        return 0;
    a.behind_at = stages > sums ? stages : sums;
    return tile_launch(product_kernel<S>, dim3((unsigned)blocks), dim3(S::THREADS),
                       a.behind_at + room_bytes<S>(p), stream, a);
}

inline int run_unit(const product_params &a, void *stream)
{
    return a.p.unit_columns == 64 ? run_product<product_unit_shape<64>>(a, stream)
                                  : run_product<product_unit_shape<128>>(a, stream);
}

template <bool DEEP> int run_tiles_of(const product_params &a, void *stream)
{
    enum { SMALL = OPS_HEAD_SMALL_TILE, LARGE = OPS_HEAD_TILE };
    if (a.p.tile_rows == SMALL)
        return a.p.tile_columns == SMALL
                   ? run_product<product_shape<SMALL, SMALL, DEEP>>(a, stream)
                   : run_product<product_shape<SMALL, LARGE, DEEP>>(a, stream);
    return a.p.tile_columns == SMALL ? run_product<product_shape<LARGE, SMALL, DEEP>>(a, stream)
                                     : run_product<product_shape<LARGE, LARGE, DEEP>>(a, stream);
}

/* What has tiles (ops_head_matmul.tile_rows). unit: may four warps multiply together? */
inline int product_by_tiles(const struct ops_head_matmul &p, const struct ops_ports *ports,
                            bool unit, void *stream)
{
    product_params a = {p,
                        (const uint16_t *)ports->in[p.a_port],
                        (const uint16_t *)ports->in[p.b_port],
                        (uint16_t *)ports->out[0],
                        product_behind(ports),
                        0};
    if (!fits16(a.a))
        a.p.a_piece = 1;
    if (!fits16(a.b))
        a.p.b_piece = 1;
    if (!fits16(a.y))
        a.p.y_piece = 1;
    if (!fits16(a.behind.r))
        a.p.r_piece = 1;
    if (unit && p.unit_columns)
        return run_unit(a, stream);
    return p.deep ? run_tiles_of<true>(a, stream) : run_tiles_of<false>(a, stream);
}

} // namespace ops
