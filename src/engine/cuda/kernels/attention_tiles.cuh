/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of float16 heads by tiles on the tensor cores, as FlashAttention-2 (Dao, 2023) has it:
 * a warp holds its queries and their sums in registers, keys and values come through shared memory,
 * and a row's greatest score so far scales what was summed up when it grows. Here
 * - the warps of a block are a grid: those in y have queries of their own, those in z the same
 *   queries and their share of a turn's keys, and what these made is put together at the end;
 * - a turn's keys and values are fetched while those before are multiplied. Of short sequences,
 * such as vision transformers have, all are under way at once;
 * - a row's sums are only scaled when its greatest score has grown by more than GROWTH: shares are
 *   then up to two to the power of that, which float16 holds as exactly as one. What is divided at
 *   the end has the same scale;
 * - a mask is what the scores begin with, divided by their scale, so that the product adds to it;
 * - relative positions are that too, as a product of the query's numbers for all rows and columns
 *   with a matrix that has a one for a key's row and one for its column, made in registers;
 * - vision transformers have a few tokens more than whole tiles (197, 257): a warp without queries
 *   only fetches, and of a last tile with FEW keys the others are not multiplied;
 * - on Hopper four warps may multiply together (UNIT): its matrix unit reads keys and values from
 *   shared memory, where rows have no padding but turned pieces; attention_whole.cuh goes on there.
 * How many of all these suits a shape is decided when a plan is made (attention_shape.c). */
#pragma once

#include <math.h>

#include "device/cuda/launch.h"
#include "engine/cuda/kernels/attention_unit.cuh"
#include "engine/cuda/kernels/each.cuh"
#include "engine/cuda/kernels/fused_attention.h"

namespace ops
{

struct tile_params {
    struct ops_fused_attention p;
    const uint16_t            *q, *k, *v;
    const void                *mask;
    const uint16_t            *row, *column;
    void                      *y;
};

inline tile_params tile_params_of(const struct ops_fused_attention &p,
                                  const struct ops_ports           *ports)
{
    return {p,
            (const uint16_t *)ports->in[0],
            (const uint16_t *)ports->in[1],
            (const uint16_t *)ports->in[2],
            ports->in[3],
            (const uint16_t *)ports->in[4],
            (const uint16_t *)ports->in[5],
            ports->out[0]};
}

enum { FEW = OPS_ATTENTION_FEW, PILE = OPS_ATTENTION_PILE, PADDING = OPS_ATTENTION_PADDING };
enum { ADDS_NOTHING, ADDS_MASK, ADDS_POSITIONS }; /* to scores */
constexpr float GROWTH = 8;                       /* of a score, as a power of two */

/* KEY, VALUE: numbers of a key and of a value, rounded up; KEYS: of a warp in a turn; PILES: of
 * queries of a warp; UNIT: four warps multiply together. */
template <int KEY_, int VALUE_, int KEYS_, int PILES_, int ADDS, bool UNIT_ = false>
struct tile_shape {
    static constexpr bool MASKED = ADDS == ADDS_MASK, PLACED = ADDS == ADDS_POSITIONS, UNIT = UNIT_;
    static constexpr int  KEY = KEY_, VALUE = VALUE_, KEYS = KEYS_, PILES = PILES_;
    static constexpr int  QUERIES = PILES * PILE, EIGHTS = KEYS / 8;
    /* eight rows of 16 bytes begin in different banks, or are turned: see place */
    static constexpr int KEY_PITCH = UNIT ? KEY : KEY + PADDING,
                         VALUE_PITCH = UNIT ? VALUE : VALUE + PADDING,
                         RESULT_PITCH = VALUE + PADDING;
    static constexpr int STATE = PILES * (VALUE / 2 + 4); /* a lane's part of what a warp made */
    /* blocks of most threads that have registers */
    static constexpr int RESIDENT = PILES == 1 && VALUE <= 64 && !(MASKED && KEYS > 32) ? 2 : 1;
};

/* What a warp keeps of its queries, of rows g and g + 8 of each pile (g the lane's group of four):
 * the queries, sums of values, greatest scores and sums of shares. */
template <class S> struct tile_state {
    uint32_t q[S::PILES][S::KEY / 16][4];
    float    out[S::PILES][S::VALUE / 8][4];
    float    max[S::PILES][2], sum[S::PILES][2];
};
/* Scores: rows g, g + 8 of a pile by keys 8 j + 2 t, + 1. */
template <class S> struct tile_part {
    float of[S::PILES][S::EIGHTS][4];
};

/* ---- fetching ---- */

/* Where number d of a row lies: of rows of WIDTH numbers, with padding behind them or, for the unit
 * of four warps, with their pieces of 16 bytes in an order that the row turns. */
template <int WIDTH, bool UNIT> __device__ __forceinline__ int place(int row, int d)
{
    constexpr int PIECES = WIDTH / 8; /* of 16 bytes; all rows of 128 bytes begin in the same bank
                                       */
    return UNIT ? row * WIDTH + (((d >> 3) ^ (row * PIECES >> 3 & (PIECES - 1))) << 3 | (d & 7))
                : row * (WIDTH + PADDING) + d;
}

/* One number at a time, in the order in which they probably lie. */
template <int WIDTH>
__device__ __forceinline__ void fetch_numbers(uint16_t *to, const uint16_t *head,
                                              const ops_head_view &view, int first, int rows,
                                              int count, int size, int thread, int threads)
{
    const bool dense = view.step[3] == 1;
#pragma unroll 8
    for (int i = thread; i < rows * WIDTH; i += threads) {
        const int  row = dense ? i / WIDTH : i % rows, d = dense ? i % WIDTH : i / rows;
        const bool real = first + row < count && d < size;
        to[place<WIDTH, false>(row, d)] =
            real ? head[(first + row) * view.step[2] + d * view.step[3]] : (uint16_t)0;
    }
}

template <int WIDTH, int PIECE>
__device__ __forceinline__ void fetch_pieces(uint16_t *to, const uint16_t *head, int step,
                                             int first, int rows, int count, int size, int thread,
                                             int threads)
{
    constexpr int UNITS = WIDTH / 8, ABREAST = UNITS > 8 ? 16 : UNITS;
    const int     at = thread % ABREAST * 8;
    if (at >= WIDTH)
        return;
#pragma unroll 4
    for (int row = thread / ABREAST; row < rows; row += threads / ABREAST) {
        const bool      real = first + row < count;
        const uint16_t *from = head + (real ? (int64_t)(first + row) * step : 0);
#pragma unroll
        for (int k = 0; k < 8; k += PIECE) {
            const bool in = real && at + k < size;
            fetch<2 * PIECE>(to + place<WIDTH, false>(row, at + k), from + (in ? at + k : 0), in);
        }
    }
}

/* In pieces of eight, for the unit. Rows a multiple of eight apart are turned alike. Copies need no
 * registers, and the less code there is the less often a warp waits for it: no loop is unrolled. */
template <int WIDTH>
__device__ __forceinline__ void fetch_turned(uint16_t *to, const uint16_t *head, int step,
                                             int first, int rows, int count, int size, int thread,
                                             int threads)
{
    const int       at = thread % (WIDTH / 8) * 8, abreast = threads / (WIDTH / 8);
    int             row = thread / (WIDTH / 8);
    const uint16_t *from = head + (int64_t)(first + row) * step + at;
    const int64_t   from_step = (int64_t)abreast * step;
    to += place<WIDTH, true>(row, at);
#pragma unroll 1
    for (; row < rows; row += abreast, to += abreast * WIDTH, from += from_step) {
        const bool in = first + row < count && at < size;
        fetch<16>(to, in ? from : head, in);
    }
}

/* Rows first.. of a head to shared memory, zeros where there are none. */
template <int WIDTH, bool UNIT>
__device__ __forceinline__ void fetch_rows(uint16_t *to, const uint16_t *head,
                                           const ops_head_view &view, int piece, int first,
                                           int rows, int count, int size)
{
    const int thread = threadIdx.x + 32 * (threadIdx.y + blockDim.y * threadIdx.z),
              threads = 32 * blockDim.y * blockDim.z, step = (int)view.step[2];
    if constexpr (UNIT)
        fetch_turned<WIDTH>(to, head, step, first, rows, count, size, thread, threads);
    else if (piece == 8)
        fetch_pieces<WIDTH, 8>(to, head, step, first, rows, count, size, thread, threads);
    else if (piece == 4)
        fetch_pieces<WIDTH, 4>(to, head, step, first, rows, count, size, thread, threads);
    else
        fetch_numbers<WIDTH>(to, head, view, first, rows, count, size, thread, threads);
}

/* Turn number `turn`, when there is one, into its stage. */
template <class S>
__device__ __forceinline__ void fetch_turn(const tile_params &a, const uint16_t *k,
                                           const uint16_t *v, uint16_t *keys, uint16_t *values,
                                           int turn, int stage)
{
    const ops_fused_attention &p = a.p;
    const int count = (int)p.keys, whole = blockDim.z * S::KEYS, first = turn * whole,
              left = count - first;
    if (left > 0) {
        const int tail = left % S::KEYS, rows = left >= whole ? whole
                                                              : left - tail +
                                                                    (tail == 0     ? 0
                                                                     : tail <= FEW ? (int)FEW
                                                                                   : S::KEYS);
        fetch_rows<S::KEY, S::UNIT>(keys + stage * whole * S::KEY_PITCH, k, p.k, p.k_piece, first,
                                    rows, count, (int)p.size);
        fetch_rows<S::VALUE, S::UNIT>(values + stage * whole * S::VALUE_PITCH, v, p.v, p.v_piece,
                                      first, rows, count, (int)p.v_size);
    }
    fetch_commit();
}

/* All but what was fetched for later turns than the next one. */
__device__ __forceinline__ void wait_turn(int stages)
{
    if (stages > 2)
        fetch_wait<1>();
    else
        fetch_wait<0>();
}

/* ---- relative positions ---- */

__device__ __forceinline__ int position_pitch(const ops_fused_attention &p)
{
    return p.row_room + p.column_room + PADDING;
}

/* An infinite number becomes the largest there is: others of the row are added times zero. */
__device__ __forceinline__ uint16_t finite(uint16_t half)
{
    return (half & 0x7fff) == 0x7c00 ? half - 1 : half;
}

/* By how much a query's numbers for rows, or for columns, begin earlier than the first query's. */
__device__ __forceinline__ int turned_back(const ops_fused_attention &p, int query, bool of_row)
{
    const int above = (int)divide(query, p.query_columns);
    return of_row ? above : query - above * (int)p.query_columns.d;
}

/* Those of queries first.. to shared memory, a warp for each row of `rows`, zeros where there are
 * none. */
__device__ __forceinline__ void fetch_positions(uint16_t *to, const tile_params &a, int batch,
                                                int head, int first, int rows, int warp, int warps)
{
    const ops_fused_attention &p = a.p;
    const uint16_t *row = a.row + p.row.offset + batch * p.row.step[0] + head * p.row.step[1],
                   *column = a.column + p.column.offset + batch * p.column.step[0] +
                             head * p.column.step[1];
    for (int at = threadIdx.x; at < p.row_room + p.column_room; at += 32) {
        const bool      of_row = at < p.row_room;
        const int       own = of_row ? at : at - p.row_room;
        const bool      in = own < (of_row ? (int)p.rows : (int)p.columns.d);
        const int       step = (int)(of_row ? p.row : p.column).step[2];
        const int64_t   next = (of_row ? p.row : p.column).step[3];
        const bool      relative = p.query_columns.d != 0;
        const int       skip = !relative ? 0 : of_row ? p.row_from : p.column_from;
        const uint16_t *from =
            (of_row ? row : column) + (own + skip) * next + (int64_t)first * step;
#pragma unroll 4
        for (int i = warp; i < rows; i += warps) {
            const bool    there = in && first + i < (int)p.queries;
            const int64_t back =
                there && relative ? turned_back(p, first + i, of_row) * next : (int64_t)0;
            to[i * position_pitch(p) + at] =
                there ? finite(from[(int64_t)i * step - back]) : (uint16_t)0;
        }
    }
}

/* A pair of a column of ones and zeros, whose one is number d of it. */
__device__ __forceinline__ uint32_t one_at(int d)
{
    return d == 0 ? 0x3c00u : d == 1 ? 0x3c000000u : 0;
}

/* Sixteen numbers of each query, `from` on, by those keys that they are for: the one of key number
 * k is number of(k). */
template <class S, class OF>
__device__ __forceinline__ void add_positions(const uint16_t *from, int pitch, int first, OF of,
                                              tile_part<S> &c)
{
    const int lane = threadIdx.x;
    uint32_t  a[S::PILES][4];
#pragma unroll
    for (int m = 0; m < S::PILES; m++)
        load(a[m], from + (m * PILE + (lane & 15)) * pitch + (lane >> 4) * 8);
#pragma unroll
    for (int j = 0; j < S::EIGHTS; j++) {
        const int d = of(first + j * 8 + (lane >> 2)) - 2 * (lane & 3);
#pragma unroll
        for (int m = 0; m < S::PILES; m++)
            multiply_halves(c.of[m][j], a[m], one_at(d), one_at(d - 8));
    }
}

/* What they add to the scores of a turn's keys from `first` on, over the scale. own: of the warp's
 * first query. */
template <class S>
__device__ __forceinline__ void begin_placed(const ops_fused_attention &p, const uint16_t *own,
                                             int first, tile_part<S> &c)
{
    const int pitch = position_pitch(p), columns = (int)p.columns.d,
              end = (int)divide(first + S::KEYS - 1, p.columns) + 1;
    const float inverse = 1 / p.scale;
    for (int at = (int)divide(first, p.columns) & -PILE; at < min(p.row_room, end); at += PILE)
        add_positions(
            own + at, pitch, first, [&](int key) { return (int)divide(key, p.columns) - at; }, c);
    for (int at = 0; at < p.column_room; at += PILE)
        add_positions(
            own + p.row_room + at, pitch, first,
            [&](int key) { return key - (int)divide(key, p.columns) * columns - at; }, c);
#pragma unroll
    for (int m = 0; m < S::PILES; m++)
#pragma unroll
        for (int j = 0; j < S::EIGHTS; j++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                c.of[m][j][i] *= inverse;
}

/* ---- a turn ---- */

/* The mask's numbers over the scale; beyond the last key zeros. All loads are under way at once. */
template <class S, class T>
__device__ __forceinline__ void begin_masked(const ops_fused_attention &p, const T *mask, int first,
                                             int query, tile_part<S> &c)
{
    constexpr float LEAST = -3.402823466e38f;
    const int       end = (int)p.queries - 1, row = (int)p.mask_step[2], left = (int)p.keys - first;
    const float     inverse = 1 / p.scale;
    mask += first; /* it has each key */
#pragma unroll
    for (int m = 0; m < S::PILES; m++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const T *from = mask + min(query + m * PILE + r * 8, end) * row;
#pragma unroll
            for (int j = 0; j < S::EIGHTS; j++)
#pragma unroll
                for (int i = 0; i < 2; i++)
                    c.of[m][j][2 * r + i] = j * 8 + i < left ? number_at(from, j * 8 + i) : 0;
        }
#pragma unroll
    for (int m = 0; m < S::PILES; m++)
#pragma unroll
        for (int j = 0; j < S::EIGHTS; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) { /* masks hold float32's least number too */
                const float x = c.of[m][j][i] * inverse;
                c.of[m][j][i] = x < LEAST && c.of[m][j][i] != -INFINITY ? LEAST : x;
            }
}

/* What the scores begin with. query: the lane's first; placed: the relative positions of the
 * warp's. */
template <class S>
__device__ __forceinline__ void begin_turn(const tile_params &a, int64_t mask, int first, int query,
                                           const uint16_t *placed, tile_part<S> &c)
{
    const int own = first + 2 * (threadIdx.x & 3);
    if constexpr (S::MASKED) {
        if (a.p.mask_type == SAC_F16)
            begin_masked<S>(a.p, (const uint16_t *)a.mask + mask, own, query, c);
        else
            begin_masked<S>(a.p, (const float *)a.mask + mask, own, query, c);
    } else {
#pragma unroll
        for (int m = 0; m < S::PILES; m++)
#pragma unroll
            for (int j = 0; j < S::EIGHTS; j++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    c.of[m][j][i] = 0;
        if constexpr (S::PLACED)
            begin_placed<S>(a.p, placed, first, c);
    }
}

/* Shares of pile m and keys 16 k and on, as factors. */
template <class S>
__device__ __forceinline__ void tile_pairs(const tile_part<S> &c, int m, int k,
                                           uint32_t (&share)[4])
{
#pragma unroll
    for (int i = 0; i < 4; i++)
        share[i] =
            pair_of(c.of[m][2 * k + i / 2][i % 2 * 2], c.of[m][2 * k + i / 2][i % 2 * 2 + 1]);
}

/* As tile_scores and tile_mix below do, by four warps together. */
template <int EIGHTS, class S>
__device__ __forceinline__ void unit_scores(const tile_state<S> &s, const uint16_t *keys,
                                            tile_part<S> &c)
{
    const auto matrix = unit_matrix<S::KEY>(keys);
    unit_begin();
#pragma unroll
    for (int k = 0; k < S::KEY / 16; k++)
        unit_multiply<EIGHTS, false>(c.of[0], s.q[0][k], matrix + k * 2);
    unit_commit();
    unit_wait<0>();
}

template <int EIGHTS, class S>
__device__ __forceinline__ void unit_mix(tile_state<S> &s, const uint16_t *values,
                                         const tile_part<S> &c)
{
    const auto matrix = unit_matrix<S::VALUE>(values);
    uint32_t   share[EIGHTS / 2][4];
#pragma unroll
    for (int k = 0; k < EIGHTS / 2; k++)
        tile_pairs(c, 0, k, share[k]);
    unit_begin();
#pragma unroll
    for (int k = 0; k < EIGHTS / 2; k++)
        unit_multiply<S::VALUE / 8, true>(s.out[0], share[k], matrix + k * 2 * S::VALUE);
    unit_commit();
    unit_wait<0>();
}

/* The scores of a warp's first EIGHTS times eight keys of a turn. */
template <int EIGHTS, class S>
__device__ __forceinline__ void tile_scores(const tile_state<S> &s, const uint16_t *keys,
                                            tile_part<S> &c)
{
    const int lane = threadIdx.x;
    keys += ((lane & 7) + (lane >> 4) * 8) * S::KEY_PITCH + (lane >> 3 & 1) * 8;
#pragma unroll
    for (int k = 0; k < S::KEY / 16; k++)
#pragma unroll
        for (int j = 0; j < EIGHTS; j += 2) {
            uint32_t b[4];
            load(b, keys + j * 8 * S::KEY_PITCH + k * 16);
#pragma unroll
            for (int m = 0; m < S::PILES; m++) {
                multiply_halves(c.of[m][j], s.q[m][k], b[0], b[1]);
                multiply_halves(c.of[m][j + 1], s.q[m][k], b[2], b[3]);
            }
        }
}

/* Keys that there are not get no share: of these, `left` are there, eight times FROM at least. */
template <int EIGHTS, int FROM = 0, class S>
__device__ __forceinline__ void tile_end(tile_part<S> &c, int left)
{
    const int t = threadIdx.x & 3;
#pragma unroll
    for (int j = FROM; j < EIGHTS; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (j * 8 + 2 * t + i % 2 >= left)
#pragma unroll
                for (int m = 0; m < S::PILES; m++)
                    c.of[m][j][i] = -INFINITY;
}

/* Each row's greatest score of a turn, by chains that do not wait for each other. */
template <int EIGHTS, class S>
__device__ __forceinline__ void tile_max(const tile_part<S> &c, float (&max)[S::PILES][2])
{
    constexpr int CHAINS = EIGHTS < 4 ? 1 : 4;
#pragma unroll
    for (int m = 0; m < S::PILES; m++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float x[CHAINS];
#pragma unroll
            for (int j = 0; j < EIGHTS; j++) {
                const float pair = fmaxf(c.of[m][j][2 * r], c.of[m][j][2 * r + 1]);
                x[j % CHAINS] = j < CHAINS ? pair : fmaxf(x[j % CHAINS], pair);
            }
#pragma unroll
            for (int i = 1; i < CHAINS; i++)
                x[0] = fmaxf(x[0], x[i]);
            x[0] = fmaxf(x[0], __shfl_xor_sync(0xffffffff, x[0], 1));
            max[m][r] = fmaxf(x[0], __shfl_xor_sync(0xffffffff, x[0], 2));
        }
}

/* Has a row's greatest score grown? Then what was summed up before is scaled. scale: to powers of
 * two. */
template <int EIGHTS, class S>
__device__ __forceinline__ void tile_grow(tile_state<S> &s, const tile_part<S> &c, float scale)
{
    float max[S::PILES][2];
    bool  grows = false;
    tile_max<EIGHTS>(c, max);
#pragma unroll
    for (int m = 0; m < S::PILES; m++)
#pragma unroll
        for (int r = 0; r < 2; r++)
            grows |= (max[m][r] - s.max[m][r]) * scale > GROWTH;
    if (!__any_sync(0xffffffff, grows))
        return;
#pragma unroll
    for (int m = 0; m < S::PILES; m++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float top = fmaxf(s.max[m][r], max[m][r]),
                        past = top == -INFINITY ? 0 : power_of_two((s.max[m][r] - top) * scale);
            s.max[m][r] = top;
            s.sum[m][r] *= past;
#pragma unroll
            for (int d = 0; d < S::VALUE / 8; d++) {
                s.out[m][d][2 * r] *= past;
                s.out[m][d][2 * r + 1] *= past;
            }
        }
}

/* Scores of eights FROM to TO of the keys become shares, before they are divided by their sum.
 * Without a mask they are small enough for one multiply-add each. */
template <int FROM, int TO, class S>
__device__ __forceinline__ void tile_shares(tile_state<S> &s, tile_part<S> &c, float scale)
{
#pragma unroll
    for (int m = 0; m < S::PILES; m++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float top = s.max[m][r] == -INFINITY ? 0 : s.max[m][r], less = -top * scale;
            float       sum = 0;
            if (S::MASKED)
#pragma unroll
                for (int j = FROM; j < TO; j++)
#pragma unroll
                    for (int i = 2 * r; i < 2 * r + 2; i++)
                        c.of[m][j][i] = (c.of[m][j][i] - top) * scale;
            else
#pragma unroll
                for (int j = FROM; j < TO; j++)
#pragma unroll
                    for (int i = 2 * r; i < 2 * r + 2; i++)
                        c.of[m][j][i] = fmaf(c.of[m][j][i], scale, less);
#pragma unroll
            for (int j = FROM; j < TO; j++)
#pragma unroll
                for (int i = 2 * r; i < 2 * r + 2; i++)
                    sum += c.of[m][j][i] = power_of_two(c.of[m][j][i]);
            s.sum[m][r] += sum;
        }
}

/* Values, each by its share. */
template <int EIGHTS, class S>
__device__ __forceinline__ void tile_mix(tile_state<S> &s, const uint16_t *values,
                                         const tile_part<S> &c)
{
    const int lane = threadIdx.x;
    values += (lane & 15) * S::VALUE_PITCH + (lane >> 4) * 8;
#pragma unroll
    for (int k = 0; k < EIGHTS / 2; k++) {
        uint32_t share[S::PILES][4];
#pragma unroll
        for (int m = 0; m < S::PILES; m++)
            tile_pairs(c, m, k, share[m]);
#pragma unroll
        for (int d = 0; d < S::VALUE / 8; d += 2) {
            uint32_t b[4];
            load_turned(b, values + k * 16 * S::VALUE_PITCH + d * 8);
#pragma unroll
            for (int m = 0; m < S::PILES; m++) {
                multiply_halves(s.out[m][d], share[m], b[0], b[1]);
                multiply_halves(s.out[m][d + 1], share[m], b[2], b[3]);
            }
        }
    }
}

template <int EIGHTS, class S>
__device__ __forceinline__ void tile_turn(tile_state<S> &s, tile_part<S> &c, const uint16_t *keys,
                                          const uint16_t *values, int left, float scale)
{
    if constexpr (S::UNIT)
        unit_scores<EIGHTS>(s, keys, c);
    else
        tile_scores<EIGHTS>(s, keys, c);
    if (left < EIGHTS * 8)
        tile_end<EIGHTS>(c, left);
    tile_grow<EIGHTS>(s, c, scale);
    tile_shares<0, EIGHTS>(s, c, scale);
    if constexpr (S::UNIT)
        unit_mix<EIGHTS>(s, values, c);
    else
        tile_mix<EIGHTS>(s, values, c);
}

/* ---- the result ---- */

/* Where a block's results go: rows of `size` numbers, the output's or, of those that become bytes,
 * in shared memory. */
struct tile_rows {
    uint16_t *first;
    int       rows, size, step;
    int64_t   number;
    bool      pairs; /* can be written */
};

/* Numbers 2 t and 2 t + 1 of eight of a row's. */
__device__ __forceinline__ void put_pair(const tile_rows &y, int row, int eight, float low,
                                         float high)
{
    const int      at = eight * 8 + 2 * (threadIdx.x & 3);
    const uint32_t pair = pair_of(low, high);
    if (row >= y.rows || at >= y.size)
        return;
    uint16_t *to = y.first + (int64_t)row * y.step;
    if (y.pairs) {
        *reinterpret_cast<uint32_t *>(to + at) = pair;
        return;
    }
    to[at * y.number] = (uint16_t)pair;
    if (at + 1 < y.size)
        to[(at + 1) * y.number] = (uint16_t)(pair >> 16);
}

/* Results from shared memory, eight at a time: `rows` of them, `step` apart; to: the first byte of
 * the first. */
static __device__ __noinline__ void put_bytes(const ops_fused_attention &p, const uint16_t *from,
                                              int rows, int step, uint8_t *to, int thread,
                                              int threads)
{
    const int size = (int)p.v_size, eights = (size + 7) / 8;
    for (int i = thread; i < rows * eights; i += threads) {
        const int      row = i / eights, at = i % eights * 8;
        const uint64_t bytes = bytes_of_halves(p.bytes, from + row * step + at);
        uint8_t       *y = to + row * p.y.step[2] + at * p.y.step[3];
        if (p.y_piece == 8)
            *reinterpret_cast<uint64_t *>(y) = bytes;
        else
            for (int k = 0; k < 8 && at + k < size; k++)
                y[k * p.y.step[3]] = (uint8_t)(bytes >> 8 * k);
    }
}

/* The sums of a row's shares, of which each of four lanes has a part. */
template <class S> __device__ __forceinline__ void sum_rows(tile_state<S> &s)
{
#pragma unroll
    for (int m = 0; m < S::PILES; m++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            s.sum[m][r] += __shfl_xor_sync(0xffffffff, s.sum[m][r], 1);
            s.sum[m][r] += __shfl_xor_sync(0xffffffff, s.sum[m][r], 2);
        }
}

/* The queries themselves, for the sums of shares by which all is divided. q: of the head; query:
 * the lane's first. */
template <class S>
__device__ __forceinline__ void add_queries(const ops_fused_attention &p, const uint16_t *q,
                                            int query, tile_state<S> &s)
{
    const int t = threadIdx.x & 3, end = (int)p.queries - 1;
#pragma unroll
    for (int m = 0; m < S::PILES; m++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const uint16_t *own = q + (int64_t)min(query + m * PILE + r * 8, end) * p.q.step[2];
#pragma unroll
            for (int d = 0; d < S::VALUE / 8; d++)
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const int at = d * 8 + 2 * t + i;
                    if (at < (int)p.size)
                        s.out[m][d][2 * r + i] +=
                            number_at(own, at * (int)p.q.step[3]) * s.sum[m][r];
                }
        }
}

/* Whole rows in pairs, as most are. */
template <class S>
__device__ __forceinline__ void tile_store_whole(const tile_state<S> &s, const tile_rows &y,
                                                 int row)
{
    uint16_t *to = y.first + (int64_t)row * y.step + 2 * (threadIdx.x & 3);
#pragma unroll
    for (int m = 0; m < S::PILES; m++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float share = s.sum[m][r] != 0 ? 1 / s.sum[m][r] : 0;
            uint16_t   *own = to + (m * PILE + r * 8) * y.step;
            if (row + m * PILE + r * 8 < y.rows)
#pragma unroll
                for (int d = 0; d < S::VALUE / 8; d++)
                    *reinterpret_cast<uint32_t *>(own + d * 8) =
                        pair_of(s.out[m][d][2 * r] * share, s.out[m][d][2 * r + 1] * share);
        }
}

/* row: the lane's first. */
template <class S>
__device__ __forceinline__ void tile_store(const tile_state<S> &s, const tile_rows &y, int row)
{
    if (y.pairs && y.size == S::VALUE) {
        tile_store_whole(s, y, row);
        return;
    }
#pragma unroll
    for (int m = 0; m < S::PILES; m++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float share = s.sum[m][r] != 0 ? 1 / s.sum[m][r] : 0;
#pragma unroll
            for (int d = 0; d < S::VALUE / 8; d++)
                put_pair(y, row + m * PILE + r * 8, d, s.out[m][d][2 * r] * share,
                         s.out[m][d][2 * r + 1] * share);
        }
}

/* Each of the warps that shared keys puts some eights of the result together of what all of them
 * made. room: of each warp its numbers one after the other, the lanes side by side. */
template <class S>
__device__ __forceinline__ void tile_join(const tile_state<S> &s, float *room, const tile_rows &y,
                                          int row, float scale)
{
    const int parts = blockDim.z, far = blockDim.y * S::STATE * 32;
    room += threadIdx.y * S::STATE * 32 + threadIdx.x;
    float *to = room + threadIdx.z * far;
#pragma unroll
    for (int m = 0; m < S::PILES; m++) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            to[(4 * m + r) * 32] = s.max[m][r];
            to[(4 * m + 2 + r) * 32] = s.sum[m][r];
        }
#pragma unroll
        for (int d = 0; d < S::VALUE / 8; d++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                to[(4 * S::PILES + (m * (S::VALUE / 8) + d) * 4 + i) * 32] = s.out[m][d][i];
    }
    __syncthreads();
#pragma unroll
    for (int m = 0; m < S::PILES; m++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float *from = room + (4 * m + r) * 32;
            float        top = -INFINITY, sum = 0;
            for (int part = 0; part < parts; part++)
                top = fmaxf(top, from[part * far]);
            top = top == -INFINITY ? 0 : top;
            for (int part = 0; part < parts; part++)
                sum += from[part * far + 2 * 32] * power_of_two((from[part * far] - top) * scale);
            const float share = sum != 0 ? 1 / sum : 0;
            for (int d = threadIdx.z; d < S::VALUE / 8; d += parts) {
                const float *out =
                    room + (4 * S::PILES + (m * (S::VALUE / 8) + d) * 4 + 2 * r) * 32;
                float low = 0, high = 0;
                for (int part = 0; part < parts; part++) {
                    const float by = power_of_two((from[part * far] - top) * scale);
                    low += out[part * far] * by;
                    high += out[part * far + 32] * by;
                }
                put_pair(y, row + m * PILE + r * 8, d, low * share, high * share);
            }
        }
}

/* ---- a block: blockIdx is batch, head and a part of the queries ---- */

template <class S>
__global__ void __launch_bounds__(OPS_ATTENTION_THREADS, S::RESIDENT)
    tile_kernel(const __grid_constant__ tile_params a)
{
    early_begin();
    if constexpr (S::UNIT && !UNIT_HERE)
        return;
    constexpr float            LOG2_E = 1.44269504f;
    const ops_fused_attention &p = a.p;
    const int                  lane = threadIdx.x, batch = blockIdx.x, head = blockIdx.y;
    const int                  count = (int)p.keys, stages = p.shape.stages, turns = p.shape.turns,
              whole = blockDim.z * S::KEYS, own_key = threadIdx.z * S::KEYS,
              own_query = threadIdx.y * S::QUERIES, first = blockIdx.z * (blockDim.y * S::QUERIES),
              query = first + own_query + (lane >> 2);
    /* Where four warps multiply together, of all four. */
    const bool  any = first + (S::UNIT ? own_query & -4 * S::QUERIES : own_query) < (int)p.queries;
    const float scale = p.scale * LOG2_E;
    uint16_t *const        queries = tile_memory(),
                    *const keys = queries + blockDim.y * S::QUERIES * S::KEY_PITCH,
                    *const values = keys + p.shape.room * S::KEY_PITCH,
                    *const positions = queries + p.shape.positions;
    const uint16_t        *placed = positions + own_query * position_pitch(p);
    const uint16_t        *q = a.q + p.q.offset + batch * p.q.step[0] + head * p.q.step[1],
                   *k = a.k + p.k.offset + batch * p.k.step[0] + head / p.group * p.k.step[1],
                   *v = a.v + p.v.offset + batch * p.v.step[0] + head / p.group * p.v.step[1];
    const int64_t mask =
        S::MASKED ? (unsigned)batch % (unsigned)p.period * p.mask_step[0] + head * p.mask_step[1]
                  : 0;

    fetch_rows<S::KEY, S::UNIT>(queries, q, p.q, p.q_piece, first, blockDim.y * S::QUERIES,
                                (int)p.queries, (int)p.size);
    for (int turn = 0; turn < stages - 1; turn++)
        fetch_turn<S>(a, k, v, keys, values, turn, turn);
    if constexpr (S::PLACED) {
        fetch_positions(positions, a, batch, head, first, blockDim.y * S::QUERIES,
                        threadIdx.y + blockDim.y * threadIdx.z, blockDim.y * blockDim.z);
        __syncthreads(); /* they are there */
    }
    tile_state<S> s = {};
#pragma unroll
    for (int m = 0; m < S::PILES; m++)
        s.max[m][0] = s.max[m][1] = -INFINITY;

    for (int turn = 0, stage = 0; turn < turns; turn++) {
        const int    key = turn * whole + own_key, left = any ? count - key : 0;
        tile_part<S> c;
        begin_turn<S>(a, mask, key, query, placed, c);
        wait_turn(stages);
        if constexpr (S::UNIT)
            unit_sees();
        /* this turn's tile is there, and all have read the one before it */
        __syncthreads();
        if (turn == 0)
#pragma unroll
            for (int m = 0; m < S::PILES; m++)
#pragma unroll
                for (int i = 0; i < S::KEY / 16; i++)
                    load(s.q[m][i],
                         queries + place<S::KEY, S::UNIT>(own_query + m * PILE + (lane & 15),
                                                          i * 16 + (lane >> 4) * 8));
        fetch_turn<S>(a, k, v, keys, values, turn + stages - 1, stage ? stage - 1 : stages - 1);
        const uint16_t *own_keys = keys + (stage * whole + own_key) * S::KEY_PITCH,
                       *own_values = values + (stage * whole + own_key) * S::VALUE_PITCH;
        if (left > FEW)
            tile_turn<S::EIGHTS>(s, c, own_keys, own_values, left, scale);
        else if (left > 0)
            tile_turn<FEW / 8>(s, c, own_keys, own_values, left, scale);
        stage = stage + 1 < stages ? stage + 1 : 0;
    }
    sum_rows(s);
    if (!S::MASKED && p.residual)
        add_queries(p, q, query, s);
    const bool    bytes = p.bytes.type != 0, joins = blockDim.z > 1;
    const int64_t y =
        p.y.offset + blockIdx.x * p.y.step[0] + blockIdx.y * p.y.step[1] + first * p.y.step[2];
    tile_rows rows = {static_cast<uint16_t *>(a.y) + y,
                      min((int)p.queries - first, (int)blockDim.y * S::QUERIES),
                      (int)p.v_size,
                      (int)p.y.step[2],
                      p.y.step[3],
                      p.y_piece > 1};
    if (bytes)
        rows = {queries + p.shape.joined / 2, rows.rows, rows.size, S::RESULT_PITCH, 1, true};
    if (bytes || joins) {
        fetch_wait<0>();
        __syncthreads(); /* all have read the last tile */
    }
    if (joins)
        tile_join(s, reinterpret_cast<float *>(queries), rows, query - first, scale);
    else
        tile_store(s, rows, query - first);
    if (bytes) {
        __syncthreads();
        put_bytes(p, rows.first, rows.rows, rows.step, static_cast<uint8_t *>(a.y) + y,
                  lane + 32 * (threadIdx.y + blockDim.y * threadIdx.z),
                  32 * blockDim.y * blockDim.z);
    }
}

} // namespace ops
