/* SPDX-License-Identifier: Apache-2.0 */
/* Attention with all keys and values of a head in shared memory, by Hopper's matrix unit: a block
 * is four warps, which take a tile of 64 queries after the other. Keys of up to 208 are one turn:
 * then a row's greatest score is known before any share is computed, and nothing is scaled. The
 * parts are attention_tiles.cuh's. Against its turns of 64 keys:
 * - a head's keys and values are fetched once for some tiles or all, and warps wait for each other
 *   twice, when keys and when values are there; queries are each warp's own;
 * - other blocks of the processor compute shares while one multiplies, and the values of a tile's
 *   first keys are multiplied while the next keys' shares are computed. */
#pragma once

#include "engine/cuda/kernels/attention_tiles.cuh"

namespace ops
{

enum { WHOLE_WARPS = 4, WHOLE_TILE = WHOLE_WARPS * PILE, WHOLE_TURNS = -1 };

/* A warp's queries of a tile, from number `first` on. */
template <int WIDTH>
__device__ __forceinline__ void fetch_own(uint16_t *to, const uint16_t *head,
                                          const ops_fused_attention &p, int first)
{
    constexpr int   PIECES = WIDTH / 8, ABREAST = 32 / PIECES;
    const int       row = threadIdx.x / PIECES, at = threadIdx.x % PIECES * 8;
    const int64_t   step = p.q.step[2];
    const uint16_t *from = head + (first + row) * step + at;
#pragma unroll
    for (int i = 0; i < PILE; i += ABREAST, from += ABREAST * step) {
        const bool in = first + row + i < (int)p.queries && at < (int)p.size;
        fetch<16>(to + place<WIDTH, true>(row + i, at), in ? from : head, in);
    }
}

/* A turn's shares, and what they make of the values. The unit multiplies those of some keys while
 * the next ones' are computed. busy: the warp has queries. */
template <class S, int FROM = 0, class MATRIX>
__device__ __forceinline__ void whole_mix(tile_state<S> &s, tile_part<S> &c, MATRIX values,
                                          float scale, bool busy)
{
    constexpr int AT_ONCE = 8, TO = FROM + AT_ONCE < S::EIGHTS ? FROM + AT_ONCE : S::EIGHTS;
    uint32_t      share[(TO - FROM) / 2][4];
    if (busy)
        tile_shares<FROM, TO>(s, c, scale);
#pragma unroll
    for (int k = FROM / 2; k < TO / 2; k++)
        tile_pairs(c, 0, k, share[k - FROM / 2]);
    unit_begin();
#pragma unroll
    for (int k = FROM / 2; k < TO / 2; k++)
        unit_multiply<S::VALUE / 8, true>(s.out[0], share[k - FROM / 2], values + k * 2 * S::VALUE);
    unit_commit();
    if constexpr (TO < S::EIGHTS)
        whole_mix<S, TO>(s, c, values, scale, busy);
    else
        unit_wait<0>();
}

/* The warp's rows of a tile to the output, by shared memory where these are pieces of eight: a
 * lane's pairs lie in eight rows. y: of the tile's first query. */
template <class S>
__device__ __forceinline__ void whole_store(const tile_params &a, const tile_state<S> &s, int64_t y,
                                            int left)
{
    const ops_fused_attention &p = a.p;
    const int lane = threadIdx.x, own = threadIdx.y * PILE, rows = min(left - own, (int)PILE),
              size = (int)p.v_size;
    y += own * p.y.step[2];
    uint16_t *to = static_cast<uint16_t *>(a.y) + y;
    if (!p.bytes.type && (S::VALUE < 64 || p.y_piece != 8)) {
        tile_store(s, {to, rows, size, (int)p.y.step[2], p.y.step[3], p.y_piece > 1}, lane >> 2);
        return;
    }
    uint16_t *room = tile_memory() + p.shape.joined / 2 + own * S::RESULT_PITCH;
    tile_store(s, {room, rows, size, S::RESULT_PITCH, 1, true}, lane >> 2);
    __syncwarp();
    if (p.bytes.type)
        put_bytes(p, room, rows, S::RESULT_PITCH, static_cast<uint8_t *>(a.y) + y, lane, 32);
    else
#pragma unroll
        for (int i = lane; i < PILE * (S::VALUE / 8); i += 32) {
            const int row = i / (S::VALUE / 8), at = i % (S::VALUE / 8) * 8;
            if (row < rows && at < size)
                *reinterpret_cast<uint4 *>(to + row * p.y.step[2] + at) =
                    *reinterpret_cast<const uint4 *>(room + row * S::RESULT_PITCH + at);
        }
    __syncwarp();
}

/* blockIdx is batch, head and a part of the tiles of queries. ABOVE: there is one turn, for more
 * keys than so many; or WHOLE_TURNS. */
template <class S, int ABOVE>
__global__ void __launch_bounds__(WHOLE_WARPS * 32, OPS_ATTENTION_BLOCKS(S::KEYS, S::MASKED))
    whole_kernel(const __grid_constant__ tile_params a)
{
    early_begin();
    if constexpr (!UNIT_HERE)
        return;
    constexpr float            LOG2_E = 1.44269504f;
    constexpr bool             ONE = ABOVE != WHOLE_TURNS;
    const ops_fused_attention &p = a.p;
    const int lane = threadIdx.x, batch = blockIdx.x, head = blockIdx.y, count = (int)p.keys,
              own = threadIdx.y * PILE, turns = ONE ? 1 : p.shape.turns, room = p.shape.room;
    const float            scale = p.scale * LOG2_E;
    uint16_t *const        queries = tile_memory() + own * S::KEY,
                    *const keys = tile_memory() + WHOLE_TILE * S::KEY,
                    *const values = keys + room * S::KEY,
                    *const placed = tile_memory() + p.shape.positions + own * position_pitch(p);
    const uint16_t        *q = a.q + p.q.offset + batch * p.q.step[0] + head * p.q.step[1],
                   *k = a.k + p.k.offset + batch * p.k.step[0] + head / p.group * p.k.step[1],
                   *v = a.v + p.v.offset + batch * p.v.step[0] + head / p.group * p.v.step[1];
    const int64_t mask =
        S::MASKED ? (unsigned)batch % (unsigned)p.period * p.mask_step[0] + head * p.mask_step[1]
                  : 0;
    int       first = blockIdx.z * p.shape.tiles * WHOLE_TILE;
    const int end = min((int)p.queries, first + p.shape.tiles * WHOLE_TILE);

    fetch_own<S::KEY>(queries, q, p, first + own);
    fetch_rows<S::KEY, true>(keys, k, p.k, 8, 0, room, count, (int)p.size);
    fetch_commit();
    fetch_rows<S::VALUE, true>(values, v, p.v, 8, 0, room, count, (int)p.v_size);
    fetch_commit();
    fetch_wait<1>();
    unit_sees();
    __syncthreads(); /* queries and keys are there */

    for (bool begun = false; first < end; first += WHOLE_TILE) {
        const bool    busy = first + own < (int)p.queries;
        tile_state<S> s = {};
        s.max[0][0] = s.max[0][1] = -INFINITY;
#pragma unroll
        for (int i = 0; i < S::KEY / 16; i++)
            load(s.q[0][i], queries + place<S::KEY, true>(lane & 15, i * 16 + (lane >> 4) * 8));
        if constexpr (S::PLACED) {
            fetch_positions(placed, a, batch, head, first + own, PILE, 0, 1);
            __syncwarp(); /* they are there */
        }
        for (int turn = 0; turn < turns; turn++) {
            const int    key = turn * S::KEYS;
            tile_part<S> c;
            begin_turn<S>(a, mask, key, first + own + (lane >> 2), placed, c);
            unit_scores<S::EIGHTS>(s, keys + key * S::KEY, c);
            if (turn == 0) {
                __syncwarp(); /* all lanes have their queries */
                if (first + WHOLE_TILE < end)
                    fetch_own<S::KEY>(queries, q, p, first + WHOLE_TILE + own);
                fetch_commit();
            }
            if (count - key < S::KEYS)
                tile_end<S::EIGHTS, ONE ? ABOVE / 8 : 0>(c, count - key);
            if constexpr (ONE)
                tile_max<S::EIGHTS>(c, s.max);
            else
                tile_grow<S::EIGHTS>(s, c, scale);
            if (!begun) {
                begun = true;
                fetch_wait<1>();
                unit_sees();
                __syncthreads(); /* the values are there */
            }
            whole_mix(s, c, unit_matrix<S::VALUE>(values + key * S::VALUE), scale, busy);
        }
        fetch_wait<0>();
        __syncwarp(); /* the next queries are there */
        sum_rows(s);
        if (!S::MASKED && p.residual)
            add_queries(p, q, first + own + (lane >> 2), s);
        whole_store(a, s,
                    p.y.offset + batch * p.y.step[0] + head * p.y.step[1] + first * p.y.step[2],
                    (int)p.queries - first);
    }
}

} // namespace ops
