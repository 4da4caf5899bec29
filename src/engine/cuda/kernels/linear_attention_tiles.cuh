/* SPDX-License-Identifier: Apache-2.0 */
/* LinearAttention of float16 heads on the tensor cores. The blocks of a cluster share a head's
 * tokens:
 * - each sums up its part of the state A^T B, whose rows belong to groups of warps; where there are
 *   more warps than groups, they share the tokens of a turn. Keys and values come through registers
 *   into shared memory, a turn ahead; on the way the kind does to them what it does, and sums of
 *   columns are taken.
 * - Blocks tell each other what they have; each finishes some rows of the state and gives them, in
 *   float16, to all.
 * - Then each reads the state for its tokens of C.
 * All sums are made in an order of their own, so results are the same in each run. */
#pragma once

#include "engine/cuda/kernels/cluster.cuh"
#include "engine/cuda/kernels/linear_attention.h"
#include "engine/cuda/kernels/pack.cuh"
#include "engine/cuda/kernels/team.cuh"
#include "engine/cuda/kernels/tile_unit.cuh"

namespace ops
{

struct linear_params {
    struct ops_linear_attention p;
    const uint16_t             *a, *b, *c;
    const void                 *gain;
    uint16_t                   *y;
};

/* Of a tile of SIZE x SIZE numbers. A turn's KS tokens are read in pieces of eight numbers; a
 * thread's have the same columns. */
template <int SIZE> struct linear_shape {
    static constexpr int TILE = SIZE, GROUPS = SIZE / 16;
    static constexpr int SHARES = GROUPS >= 6 ? 1 : GROUPS >= 3 ? 2 : 8 / GROUPS; /* of tokens */
    static constexpr int WARPS = GROUPS * SHARES, THREADS = WARPS * 32;
    static constexpr int KS = SIZE == 16 ? 128 : SIZE <= 64 ? 64 : 32;
    static constexpr int PIECES = SIZE / 8, ABREAST = THREADS / PIECES, EACH = KS / ABREAST;
    static constexpr int PITCH = SIZE + 8; /* eight rows of 16 bytes lie in different banks */
    static_assert(THREADS % PIECES == 0 && KS % ABREAST == 0 && KS % (16 * SHARES) == 0 &&
                      THREADS % SIZE == 0 && ABREAST % (THREADS / SIZE) == 0,
                  "whole");
};

/* A block's shared memory. */
template <class S> struct alignas(16) linear_room {
    float    own[S::TILE][S::PITCH];            /* of the state, from its tokens */
    uint16_t state[S::TILE][S::PITCH];          /* as C is multiplied by it */
    float    sums[2][S::TILE];                  /* of columns of b and a, from its tokens */
    float    most[S::TILE];                     /* of columns of b */
    float    all[2][S::TILE], highest[S::TILE]; /* the same from all blocks */
    union {
        uint16_t stage[2][S::KS][S::PITCH]; /* a and b */
        float    column[2][S::ABREAST][S::TILE];
    };
};

/* ---- reading ---- */

/* Eight neighbouring numbers, of which so many are there, in pieces of 8, 4 or 2. */
static __device__ __forceinline__ void linear_read(uint32_t (&w)[4], const uint16_t *at, int piece,
                                                   int there)
{
    if (piece == 8 && there == 8) {
        const uint4 v = *reinterpret_cast<const uint4 *>(at);
        w[0] = v.x, w[1] = v.y, w[2] = v.z, w[3] = v.w;
        return;
    }
    if (piece >= 4 && there % 4 == 0) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            uint2 v = make_uint2(0, 0);
            if (4 * i < there)
                v = *reinterpret_cast<const uint2 *>(at + 4 * i);
            w[2 * i] = v.x, w[2 * i + 1] = v.y;
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        w[i] = 2 * i < there ? *reinterpret_cast<const uint32_t *>(at + 2 * i) : 0;
}

static __device__ __forceinline__ void linear_put(uint16_t *to, const uint32_t (&w)[4])
{
    *reinterpret_cast<uint4 *>(to) = make_uint4(w[0], w[1], w[2], w[3]);
}

static __device__ __forceinline__ float linear_positive(float x)
{
    return x < 0 ? 0 : x;
}

/* A piece's column and the first of the thread's rows; what of a turn it has in registers. */
template <class S> struct linear_turn {
    uint32_t a[S::EACH][4], b[S::EACH][4];

    static __device__ __forceinline__ int column()
    {
        return (int)threadIdx.x % S::PIECES * 8;
    }
    static __device__ __forceinline__ int row()
    {
        return (int)threadIdx.x / S::PIECES;
    }
    /* From token `first` on; what is at `last` or behind it is 0. */
    __device__ __forceinline__ void read(const linear_params &l, const uint16_t *a_at,
                                         const uint16_t *b_at, int first, int last)
    {
#pragma unroll
        for (int i = 0; i < S::EACH; i++) {
            const int64_t token = first + row() + i * S::ABREAST;
            const bool    in = token < last;
            linear_read(a[i], a_at + token * l.p.a.step[2] + column(), l.p.piece,
                        in ? min(8, l.p.width - column()) : 0);
            linear_read(b[i], b_at + token * l.p.b.step[2] + column(), l.p.piece,
                        in ? min(8, l.p.size - column()) : 0);
        }
    }
};

/* ---- columns ---- */

/* What all threads have of the tile's columns, in `to`, by way of `room`. */
template <class S, class FOLD>
__device__ __forceinline__ void linear_fold(const float (&v)[8], float (*room)[S::TILE], float *to,
                                            FOLD fold)
{
    constexpr int PARTS = S::THREADS / S::TILE, ROWS = S::ABREAST / PARTS;
    const int     column = (int)threadIdx.x % S::TILE, part = (int)threadIdx.x / S::TILE;
    __syncthreads(); /* whatever was there has been read */
#pragma unroll
    for (int e = 0; e < 8; e++)
        room[linear_turn<S>::row()][linear_turn<S>::column() + e] = v[e];
    __syncthreads();
    float sum = room[part][column];
#pragma unroll
    for (int i = 1; i < ROWS; i++)
        sum = fold(sum, room[part + i * PARTS][column]);
    room[part][column] = sum; /* no other thread reads this place */
    __syncthreads();
    if (part > 0)
        return;
#pragma unroll
    for (int i = 1; i < PARTS; i++)
        sum = fold(sum, room[i][column]);
    to[column] = sum;
}

/* What the head's blocks have at `own`. */
template <class FOLD>
__device__ __forceinline__ float linear_of_all(float *own, int blocks, FOLD fold)
{
    float v = *cluster::of(own, 0);
#pragma unroll 4
    for (int k = 1; k < blocks; k++)
        v = fold(v, *cluster::of(own, k));
    return v;
}

/* All threads of a head's blocks have got here, and see what the others wrote. */
static __device__ __forceinline__ void linear_meet(int blocks)
{
    if (blocks > 1)
        cluster::sync();
    else
        __syncthreads();
}

template <class S>
__device__ void linear_highest(const linear_params &l, const uint16_t *b_at, int first, int last,
                               int blocks, linear_room<S> *room)
{
    float most[8];
#pragma unroll
    for (int e = 0; e < 8; e++)
        most[e] = -INFINITY;
    const int     column = linear_turn<S>::column(), there = min(8, l.p.size - column);
    constexpr int AT_ONCE = 4;
#pragma unroll 1
    for (int token = first + linear_turn<S>::row(); token < last; token += AT_ONCE * S::ABREAST) {
        pack<uint16_t, 8> raw[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            const int at = min(token + i * S::ABREAST, last - 1); /* one of them twice is no harm */
            linear_read(raw[i].word, b_at + at * l.p.b.step[2] + column, l.p.piece, there);
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            float v[8];
            raw[i].to(v);
#pragma unroll
            for (int e = 0; e < 8; e++)
                most[e] = v[e] > most[e] || v[e] != v[e] ? v[e] : most[e];
        }
    }
    const auto larger = [](float a, float b) { return b > a || b != b ? b : a; };
    linear_fold<S>(most, room->column[0], room->most, larger);
    linear_meet(blocks);
    if ((int)threadIdx.x < S::TILE)
        room->highest[threadIdx.x] = linear_of_all(&room->most[threadIdx.x], blocks, larger);
    __syncthreads();
}

/* ---- the state ---- */

template <class S> struct linear_sums {
    float state[S::TILE / 8][4]; /* rows g, g + 8 of the group's by columns 2 t, 2 t + 1 of eights
                                  */
    float b[8], a[8];            /* of the thread's columns */
};

static __device__ __forceinline__ void linear_add_squares(float (&sums)[8], const uint32_t (&w)[4])
{
#pragma unroll
    for (int k = 0; k < 4; k++) {
        float low, high;
        halves_of(w[k], low, high);
        sums[2 * k] += low * low;
        sums[2 * k + 1] += high * high;
    }
}

/* What is not negative of keys, and their sums. */
static __device__ __forceinline__ void linear_keep_positive(float (&sums)[8], uint32_t (&w)[4])
{
#pragma unroll
    for (int k = 0; k < 4; k++) {
        float low, high;
        halves_of(w[k], low, high);
        low = linear_positive(low), high = linear_positive(high);
        w[k] = word_of(low, high);
        sums[2 * k] += low;
        sums[2 * k + 1] += high;
    }
}

/* Powers of e of keys less the largest of each column, and their sums as they are rounded. */
static __device__ __forceinline__ void linear_raise(float (&sums)[8], uint32_t (&w)[4],
                                                    const float *highest, int there)
{
#pragma unroll
    for (int k = 0; k < 4; k++) {
        float low, high;
        halves_of(w[k], low, high);
        w[k] = 2 * k < there
                   ? word_of(__expf(low - highest[2 * k]), __expf(high - highest[2 * k + 1]))
                   : 0;
        halves_of(w[k], low, high);
        sums[2 * k] += low;
        sums[2 * k + 1] += high;
    }
}

/* A turn's numbers as the kind wants them, into shared memory; zeros stay where no token is. */
template <class S>
__device__ __forceinline__ void linear_stage(const linear_params &l, linear_turn<S> &turn,
                                             int first, int last, linear_room<S> *room,
                                             linear_sums<S> &sums)
{
    const int column = turn.column();
#pragma unroll
    for (int i = 0; i < S::EACH; i++) {
        const int row = turn.row() + i * S::ABREAST;
        if (l.p.lengths) {
            linear_add_squares(sums.a, turn.a[i]);
            linear_add_squares(sums.b, turn.b[i]);
        } else if (l.p.kind == SAC_LINEAR_RATIO)
            linear_keep_positive(sums.b, turn.b[i]);
        else if (l.p.kind == SAC_LINEAR_TOKENS)
            linear_raise(sums.b, turn.b[i], room->highest + column,
                         first + row < last ? l.p.size - column : 0);
        linear_put(&room->stage[0][row][column], turn.a[i]);
        linear_put(&room->stage[1][row][column], turn.b[i]);
    }
}

/* Sixteen columns by sixteen tokens, as the tensor cores want those of a; words 0 and 2, 1 and 3
 * are two eights of columns, as they want those of b. */
template <class S>
__device__ __forceinline__ void linear_load(uint32_t (&v)[4], const uint16_t (*from)[S::PITCH],
                                            int column, int token)
{
    const int lane = threadIdx.x % 32;
    load_turned(v, &from[token + (lane & 7) + (lane >> 4) * 8][column + (lane >> 3 & 1) * 8]);
}

template <class S>
__device__ __forceinline__ void linear_multiply(const linear_room<S> *room, int group, int share,
                                                linear_sums<S> &sums)
{
#pragma unroll
    for (int k = share * 16; k < S::KS; k += S::SHARES * 16) {
        uint32_t a[4];
        linear_load<S>(a, room->stage[0], group * 16, k);
#pragma unroll
        for (int n = 0; n < S::TILE / 8; n += 2) {
            uint32_t b[4];
            linear_load<S>(b, room->stage[1], n * 8, k);
            multiply_halves(sums.state[n], a, b[0], b[2]);
            multiply_halves(sums.state[n + 1], a, b[1], b[3]);
        }
    }
}

/* What warps have of the same rows is added up in turn. */
template <class S>
__device__ __forceinline__ void linear_show(const linear_sums<S> &sums, int group, int share,
                                            linear_room<S> *room)
{
    const int lane = threadIdx.x % 32, row = group * 16 + lane / 4, column = lane % 4 * 2;
#pragma unroll 1
    for (int turn = 0; turn < S::SHARES; turn++) {
#pragma unroll
        for (int n = 0; turn == share && n < S::TILE / 8; n++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float2 *to = reinterpret_cast<float2 *>(&room->own[row + i * 8][n * 8 + column]);
                float2  v = turn ? *to : make_float2(0, 0);
                v.x += sums.state[n][2 * i];
                v.y += sums.state[n][2 * i + 1];
                *to = v;
            }
        __syncthreads();
    }
}

template <class S>
__device__ void linear_gather(const linear_params &l, const uint16_t *a_at, const uint16_t *b_at,
                              int first, int last, linear_room<S> *room)
{
    const int      warp = threadIdx.x / 32, group = warp % S::GROUPS, share = warp / S::GROUPS;
    linear_sums<S> sums = {};
    linear_turn<S> turn;
    const auto     plus = [](float a, float b) { return a + b; };
    if (first < last)
        turn.read(l, a_at, b_at, first, last);
#pragma unroll 1
    for (int token = first; token < last; token += S::KS) {
        linear_stage<S>(l, turn, token, last, room, sums);
        __syncthreads();
        if (token + S::KS < last)
            turn.read(l, a_at, b_at, token + S::KS, last);
        linear_multiply<S>(room, group, share, sums);
        __syncthreads();
    }
    linear_show<S>(sums, group, share, room);
    if (l.p.lengths || l.p.kind != SAC_LINEAR_SHARES)
        linear_fold<S>(sums.b, room->column[0], room->sums[0], plus);
    if (l.p.lengths)
        linear_fold<S>(sums.a, room->column[1], room->sums[1], plus);
}

/* ---- rows of the state ---- */

/* What the sums of the columns make of a row: the factor of column j. */
static __device__ __forceinline__ float linear_over_length(float squares, float least)
{
    const float length = fmaxf(sqrtf(squares), least);
    return length > 0 ? 1 / length : length != length ? length : 1;
}

/* Sums over all blocks, as the kind wants them: of shares one over the lengths, of tokens one over
 * the sum, of a ratio the sum over the largest, which is returned. */
template <class S>
__device__ __forceinline__ float linear_settle(const linear_params &l, int blocks,
                                               linear_room<S> *room)
{
    const auto plus = [](float a, float b) { return a + b; };
    const int  lane = threadIdx.x % 32;
    float      most = 0;
    const int  counted = l.p.lengths ? 2 : l.p.kind != SAC_LINEAR_SHARES;
    if ((int)threadIdx.x < S::TILE)
        for (int i = 0; i < counted; i++) {
            const float v = linear_of_all(&room->sums[i][threadIdx.x], blocks, plus);
            room->all[i][threadIdx.x] = l.p.lengths ? linear_over_length(v, l.p.epsilon)
                                        : l.p.kind == SAC_LINEAR_TOKENS ? (v > 0 ? 1 / v : v)
                                                                        : v;
        }
    __syncthreads();
    if (l.p.kind != SAC_LINEAR_RATIO)
        return 1;
    for (int j = lane; j < S::TILE; j += 32)
        most = fmaxf(most, room->all[0][j]);
    most = fold_warp(most, [](float a, float b) { return fmaxf(a, b); });
    return most > 0 ? 1 / most : 1;
}

/* Among the eight lanes of a row. */
template <class FOLD> __device__ __forceinline__ float linear_fold_row(float v, FOLD fold)
{
#pragma unroll
    for (int step = 4; step > 0; step /= 2)
        v = fold(v, shuffle(v, step));
    return v;
}

/* A row, which eight lanes make, to all blocks; of a warp's four rows some may be none. */
template <class S>
__device__ __forceinline__ void linear_row(const linear_params &l, int row, float part, float gain,
                                           int blocks, linear_room<S> *room)
{
    constexpr int EACH = S::TILE / 8;
    const int     lane = threadIdx.x % 8, i = min(row, S::TILE - 1);
    const auto    plus = [](float a, float b) { return a + b; };
    const float   factor = l.p.scale * part * (l.p.lengths ? room->all[1][i] * gain : gain);
    float         v[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int j = lane + e * 8;
        v[e] = linear_of_all(&room->own[i][j], blocks, plus) * factor;
        if (l.p.lengths || l.p.kind == SAC_LINEAR_TOKENS)
            v[e] *= room->all[0][j];
    }
    if (l.p.kind == SAC_LINEAR_SHARES) {
        float most = -INFINITY, sum = 0;
#pragma unroll
        for (int e = 0; e < EACH; e++)
            if (lane + e * 8 < l.p.size)
                most = v[e] > most || v[e] != v[e] ? v[e] : most;
        most = linear_fold_row(most, [](float a, float b) { return b > a || b != b ? b : a; });
#pragma unroll
        for (int e = 0; e < EACH; e++)
            sum += v[e] = lane + e * 8 < l.p.size ? __expf(v[e] - most) : 0;
        sum = 1 / linear_fold_row(sum, plus);
#pragma unroll
        for (int e = 0; e < EACH; e++)
            v[e] *= sum;
    }
#pragma unroll
    for (int e = 0; e < EACH; e++)
        for (int k = 0; row == i && k < blocks; k++)
            *cluster::of(&room->state[i][lane + e * 8], k) = float_to_half(v[e]);
}

/* ---- the result ---- */

/* Sixteen tokens of C, as the tensor cores want them, a sixteen of numbers after the other. */
template <class S> struct linear_queries {
    uint32_t of[S::GROUPS][4];

    __device__ __forceinline__ void read(const linear_params &l, const uint16_t *at, int left)
    {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int k = 0; k < S::GROUPS; k++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int row = lane / 4 + i % 2 * 8, column = k * 16 + lane % 4 * 2 + i / 2 * 8;
                of[k][i] =
                    row < left && column < l.p.size
                        ? *reinterpret_cast<const uint32_t *>(at + row * l.p.c.step[2] + column)
                        : 0;
            }
    }
};

/* Of a ratio, what is not negative, and rows' products with the sums of the keys. */
template <class S>
__device__ __forceinline__ void linear_rectify(uint32_t (&v)[4], int k, const linear_room<S> *room,
                                               float (&over)[2])
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int column = k * 16 + lane % 4 * 2 + i / 2 * 8;
        float     low, high;
        halves_of(v[i], low, high);
        low = linear_positive(low), high = linear_positive(high);
        v[i] = word_of(low, high);
        over[i % 2] += low * room->all[0][column] + high * room->all[0][column + 1];
    }
}

/* The warp's tokens from `token` on, of which `queries` holds the first sixteen: the next are on
 * their way while these are multiplied. */
template <class S>
__device__ void linear_answer(const linear_params &l, const uint16_t *c_at, uint16_t *y_at,
                              int token, int last, float part, linear_queries<S> &queries,
                              const linear_room<S> *room)
{
    const int lane = threadIdx.x % 32;
#pragma unroll 1
    for (; token < last; token += S::WARPS * 16) {
        const int         next = token + S::WARPS * 16;
        linear_queries<S> now = queries;
        float             sum[S::TILE / 8][4] = {}, over[2] = {}, times[2] = {1, 1};
        if (next < last)
            queries.read(l, c_at + next * l.p.c.step[2], last - next);
#pragma unroll
        for (int k = 0; k < S::GROUPS; k++) {
            if (l.p.kind == SAC_LINEAR_RATIO)
                linear_rectify<S>(now.of[k], k, room, over);
#pragma unroll
            for (int n = 0; n < S::TILE / 8; n += 2) {
                uint32_t b[4];
                load(b, &room->state[n * 8 + (lane & 15)][k * 16 + (lane >> 4) * 8]);
                multiply_halves(sum[n], now.of[k], b[0], b[2]);
                multiply_halves(sum[n + 1], now.of[k], b[1], b[3]);
            }
        }
        if (l.p.kind == SAC_LINEAR_RATIO)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                over[i] += shuffle(over[i], 1);
                over[i] += shuffle(over[i], 2);
                times[i] = 1 / ((over[i] + l.p.epsilon) * part);
            }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int row = lane / 4 + i * 8;
            uint16_t *to = y_at + (token + row) * l.p.y.step[2];
#pragma unroll
            for (int n = 0; n < S::TILE / 8; n++) {
                const int column = n * 8 + lane % 4 * 2;
                if (token + row < last && column < l.p.width)
                    *reinterpret_cast<uint32_t *>(to + column) =
                        pair_of(sum[n][2 * i] * times[i], sum[n][2 * i + 1] * times[i]);
            }
        }
    }
}

/* ---- all of it ---- */

static __device__ __forceinline__ int64_t linear_start(const ops_head_view &v, int64_t batch,
                                                       int64_t head)
{
    return v.offset + batch * v.step[0] + head * v.step[1];
}

/* The first token of part k of 1 << shift. */
static __device__ __forceinline__ int linear_begin(int64_t tokens, int k, int shift)
{
    const int64_t each = (tokens + (16 << shift) - 1) / (16 << shift) * 16;
    return (int)(k * each < tokens ? k * each : tokens);
}

template <class S>
__global__ void __launch_bounds__(S::THREADS) linear_kernel(const __grid_constant__ linear_params l)
{
    early_begin();
    CUDA_SHARED_ROOM(uint4, shared);
    linear_room<S> *room = reinterpret_cast<linear_room<S> *>(shared);
    const int       shift = l.p.shift, blocks = 1 << shift, part = (int)blockIdx.x & (blocks - 1);
    const int64_t   product = blockIdx.x >> shift, head = product % l.p.heads,
                  batch = product / l.p.heads;
    const uint16_t *a_at = l.a + linear_start(l.p.a, batch, head),
                   *b_at = l.b + linear_start(l.p.b, batch, head);
    const int first = linear_begin(l.p.keys, part, shift),
              last = linear_begin(l.p.keys, part + 1, shift);
    if (l.p.kind == SAC_LINEAR_TOKENS)
        linear_highest<S>(l, b_at, first, last, blocks, room);
    linear_gather<S>(l, a_at, b_at, first, last, room);
    const uint16_t *c_at = l.c + linear_start(l.p.c, batch, head);
    const int       token = linear_begin(l.p.queries, part, shift) + (int)threadIdx.x / 32 * 16,
              end = linear_begin(l.p.queries, part + 1, shift);
    linear_queries<S> queries; /* on their way while the state is finished */
    queries.read(l, c_at + token * l.p.c.step[2], end - token);
    linear_meet(blocks);
    const float most = linear_settle<S>(l, blocks, room),
                gain = l.p.has_gain ? get_float(l.gain, l.p.gain_type, head * l.p.gain_step) : 1;
    for (int row = (int)threadIdx.x / 32 * 4; part + row * blocks < S::TILE; row += S::WARPS * 4)
        linear_row<S>(l, part + (row + (int)threadIdx.x % 32 / 8) * blocks, most, gain, blocks,
                      room);
    linear_meet(blocks);
    linear_answer<S>(l, c_at, l.y + linear_start(l.p.y, batch, head), token, end, most, queries,
                     room);
}

/* ---- launching ---- */

template <class S> int linear_launch(const linear_params &l, void *stream)
{
    const unsigned blocks = (unsigned)(l.p.batch * l.p.heads) << l.p.shift;
    if (blocks == 0 || l.p.queries == 0 || l.p.width == 0)
        return 0;
    if (l.p.shift == 0)
        CUDA_LAUNCH_ALONE(linear_kernel<S>, blocks, S::THREADS, sizeof(linear_room<S>),
                          (cudaStream_t)stream, l);
    else
        CUDA_LAUNCH_CLUSTER(linear_kernel<S>, blocks, S::THREADS, sizeof(linear_room<S>),
                            1u << l.p.shift, (cudaStream_t)stream, l);
    return (int)cudaGetLastError();
}

/* Do the addresses allow it? */
inline bool linear_has_tiles(const struct ops_linear_attention &p, const struct ops_ports *ports)
{
    return p.tile && fits16(ports->in[0]) && fits16(ports->in[1]) && fits16(ports->in[2]) &&
           fits16(ports->out[0]);
}

inline int linear_by_tiles(const struct ops_linear_attention &p, const struct ops_ports *ports,
                           void *stream)
{
    linear_params l = {p,
                       (const uint16_t *)ports->in[0],
                       (const uint16_t *)ports->in[1],
                       (const uint16_t *)ports->in[2],
                       p.has_gain ? ports->in[3] : NULL,
                       (uint16_t *)ports->out[0]};
    if (!has_clusters())
        l.p.shift = 0;
    switch (p.tile) {
    case 16: return linear_launch<linear_shape<16>>(l, stream);
    case 32: return linear_launch<linear_shape<32>>(l, stream);
    case 48: return linear_launch<linear_shape<48>>(l, stream);
    case 64: return linear_launch<linear_shape<64>>(l, stream);
    default: return linear_launch<linear_shape<SAC_LINEAR_SIZE_MAX>>(l, stream);
    }
}

} // namespace ops
