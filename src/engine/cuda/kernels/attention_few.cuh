/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of few keys and small heads, as local attention and the pixels of a patch have it: a
 * warp for 16 queries of a head, with all keys, values and scores in registers. Nothing goes
 * through shared memory, and no warp waits for another: a lane reads the pairs of numbers that the
 * tensor cores want of it where they lie, and of values, which they want by columns, eight rows of
 * eight change places between the lanes. Heads are read as zeros from their size to the next
 * multiple of eight. The parts are attention_tiles.cuh's, whose blocks of one warp took 192 us for
 * 25,088 heads of 16 tokens by 6 numbers, read one by one (TNT-S at batch 32, one H200,
 * 2026-11-30). */
#pragma once

#include "engine/cuda/kernels/attention_tiles.cuh"

namespace ops
{

enum { FEW_WARPS = 4 };

/* SIZE: numbers of a key or value, rounded up; PAIRS: of these and queries can be read. */
template <int SIZE_, int KEYS, int ADDS, bool PAIRS_>
struct few_shape : tile_shape<(SIZE_ < 16 ? 16 : SIZE_), SIZE_, KEYS, 1, ADDS> {
    static constexpr int SIZE = SIZE_, NUMBERS = KEYS * (SIZE + (ADDS == ADDS_MASK ? 16 : 8));
    /* blocks that have registers for them */
    static constexpr int  RESIDENT = !PAIRS_           ? 3
                                     : NUMBERS <= 512  ? 12
                                     : NUMBERS <= 1024 ? 8
                                     : NUMBERS <= 1536 ? 5
                                                       : 3;
    static constexpr bool PAIRS = PAIRS_;
};

/* A row's numbers `at` and at + 1 of `size`; zeros where there are none. */
template <bool PAIRS>
__device__ __forceinline__ uint32_t pair_at(const uint16_t *row, int step, int at, int size,
                                            bool in)
{
    if constexpr (PAIRS) /* the size is even */
        return in && at < size ? *reinterpret_cast<const uint32_t *>(row + at) : 0;
    const uint32_t low = in && at < size ? row[at * step] : 0,
                   high = in && at + 1 < size ? row[(at + 1) * step] : 0;
    return low | high << 16;
}

/* Of rows g of ROWS eights of rows, the first `count` of which are there, the lane's pair of each
 * eight numbers. */
template <class S, int ROWS>
__device__ __forceinline__ void read_pairs(const uint16_t *head, const ops_head_view &view,
                                           int count, int size, uint32_t (&to)[ROWS][S::SIZE / 8])
{
    const int g = threadIdx.x >> 2, t = threadIdx.x & 3;
#pragma unroll
    for (int j = 0; j < ROWS; j++)
#pragma unroll
        for (int d = 0; d < S::SIZE / 8; d++)
            to[j][d] = pair_at<S::PAIRS>(head + (j * 8 + g) * view.step[2], (int)view.step[3],
                                         d * 8 + 2 * t, size, j * 8 + g < count);
}

template <class S>
__device__ __forceinline__ void few_scores(const uint32_t (&q)[2][S::SIZE / 8],
                                           const uint32_t (&k)[S::EIGHTS][S::SIZE / 8],
                                           tile_part<S> &c)
{
    constexpr int EIGHTS = S::SIZE / 8;
#pragma unroll
    for (int d = 0; d < EIGHTS; d += 2) {
        constexpr bool ONE = EIGHTS == 1;
        const uint32_t a[4] = {q[0][d], q[1][d], ONE ? 0 : q[0][ONE ? 0 : d + 1],
                               ONE ? 0 : q[1][ONE ? 0 : d + 1]};
#pragma unroll
        for (int j = 0; j < S::EIGHTS; j++)
            multiply_halves(c.of[0][j], a, k[j][d], ONE ? 0 : k[j][ONE ? 0 : d + 1]);
    }
}

template <class S>
__device__ __forceinline__ void
few_mix(const tile_part<S> &c, const uint32_t (&v)[S::EIGHTS][S::SIZE / 8], tile_state<S> &s)
{
#pragma unroll
    for (int k = 0; k < S::EIGHTS / 2; k++) {
        uint32_t share[4];
        tile_pairs(c, 0, k, share);
#pragma unroll
        for (int d = 0; d < S::SIZE / 8; d++)
            multiply_halves(s.out[0][d], share, turned(v[2 * k][d]), turned(v[2 * k + 1][d]));
    }
}

/* A warp's part: heads beside each other are read by neighbours, as they share bytes. */
struct few_item {
    int batch, head, first; /* query */
};
__device__ __forceinline__ few_item few_item_of(const ops_fused_attention &p, unsigned item)
{
    const unsigned heads = (unsigned)p.heads, piles = ((unsigned)p.queries + PILE - 1) / PILE,
                   above = item / heads, batch = above / piles;
    return {(int)batch, (int)(item - above * heads), (int)(above - batch * piles) * PILE};
}

template <class S>
__global__ void __launch_bounds__(FEW_WARPS * 32, S::RESIDENT)
    few_kernel(const __grid_constant__ tile_params a)
{
    early_begin();
    constexpr float            LOG2_E = 1.44269504f;
    const ops_fused_attention &p = a.p;
    const few_item             i = few_item_of(p, blockIdx.x * FEW_WARPS + threadIdx.y);
    const int                  count = (int)p.keys, left = (int)p.queries - i.first;
    if (i.batch >= (int)p.batch)
        return;
    const uint16_t *q = a.q + p.q.offset + i.batch * p.q.step[0] + i.head * p.q.step[1],
                   *k = a.k + p.k.offset + i.batch * p.k.step[0] + i.head / p.group * p.k.step[1],
                   *v = a.v + p.v.offset + i.batch * p.v.step[0] + i.head / p.group * p.v.step[1];
    const int64_t mask = S::MASKED ? (unsigned)i.batch % (unsigned)p.period * p.mask_step[0] +
                                         i.head * p.mask_step[1]
                                   : 0;
    uint32_t      own[2][S::SIZE / 8], keys[S::EIGHTS][S::SIZE / 8], values[S::EIGHTS][S::SIZE / 8];
    read_pairs<S>(q + i.first * p.q.step[2], p.q, left, (int)p.size, own);
    read_pairs<S>(k, p.k, count, (int)p.size, keys);
    read_pairs<S>(v, p.v, count, (int)p.v_size, values);
    tile_state<S> s = {};
    tile_part<S>  c;
    begin_turn<S>(a, mask, 0, i.first + (threadIdx.x >> 2), nullptr, c);
    few_scores<S>(own, keys, c);
    if (count < S::KEYS)
        tile_end<S::EIGHTS>(c, count);
    tile_max<S::EIGHTS>(c, s.max);
    tile_shares<0, S::EIGHTS>(s, c, p.scale * LOG2_E);
    few_mix<S>(c, values, s);
    sum_rows(s);
    if (!S::MASKED && p.residual)
        add_queries(p, q, i.first + (threadIdx.x >> 2), s);
    const int64_t y =
        p.y.offset + i.batch * p.y.step[0] + i.head * p.y.step[1] + i.first * p.y.step[2];
    tile_store(s,
               {static_cast<uint16_t *>(a.y) + y, left, (int)p.v_size, (int)p.y.step[2],
                p.y.step[3], p.y_piece > 1},
               threadIdx.x >> 2);
}

/* ---- launching ---- */

template <int SIZE, int KEYS, bool PAIRS> int run_few(const tile_params &a, void *stream)
{
    const ops_fused_attention &p = a.p;
    const int64_t              items = p.batch * p.heads * ((p.queries + PILE - 1) / PILE);
    const unsigned             blocks = (unsigned)((items + FEW_WARPS - 1) / FEW_WARPS);
    const dim3                 threads(32, FEW_WARPS);
    if (items <= 0)
        return 0;
    return p.period ? tile_launch(few_kernel<few_shape<SIZE, KEYS, ADDS_MASK, PAIRS>>, dim3(blocks),
                                  threads, 0, stream, a)
                    : tile_launch(few_kernel<few_shape<SIZE, KEYS, ADDS_NOTHING, PAIRS>>,
                                  dim3(blocks), threads, 0, stream, a);
}

template <int SIZE> int run_few_keys(const tile_params &a, void *stream)
{
    return a.p.keys <= 16   ? run_few<SIZE, 16, true>(a, stream)
           : a.p.keys <= 32 ? run_few<SIZE, 32, true>(a, stream)
                            : run_few<SIZE, OPS_ATTENTION_FEW_KEYS, true>(a, stream);
}

/* What ops_fused_attention.few allows. */
inline int by_few(const struct ops_fused_attention &p, const struct ops_ports *ports, void *stream)
{
    const tile_params a = tile_params_of(p, ports);
    const int64_t     size = p.size > p.v_size ? p.size : p.v_size;
    if (p.q_piece < 2 || p.k_piece < 2 || p.v_piece < 2)
        return run_few<OPS_ATTENTION_FEW_SIZE, OPS_ATTENTION_FEW_ONES, false>(a, stream);
    return size <= 8    ? run_few_keys<8>(a, stream)
           : size <= 16 ? run_few_keys<16>(a, stream)
                        : run_few_keys<OPS_ATTENTION_FEW_SIZE>(a, stream);
}

} // namespace ops
