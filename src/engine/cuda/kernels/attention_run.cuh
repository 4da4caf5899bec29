/* SPDX-License-Identifier: Apache-2.0 */
/* Attention's kernels by tiles, as a shape of attention_shape.c names them. */
#pragma once

#include "engine/cuda/kernels/attention_few.cuh"
#include "engine/cuda/kernels/attention_whole.cuh"

namespace ops
{

template <class S> int run_tiles(const tile_params &a, void *stream)
{
    const struct ops_attention_shape &shape = a.p.shape;
    const int                         queries = shape.query_warps * S::QUERIES;
    const int64_t                     blocks = (a.p.queries + queries - 1) / queries;
    if (a.p.batch * a.p.heads * blocks <= 0)
        return 0;
    return tile_launch(
        tile_kernel<S>, dim3((unsigned)a.p.batch, (unsigned)a.p.heads, (unsigned)blocks),
        dim3(32, (unsigned)shape.query_warps, (unsigned)shape.key_warps), shape.shared, stream, a);
}

template <class S, int ABOVE> int run_whole(const tile_params &a, void *stream)
{
    const int64_t of = (int64_t)WHOLE_TILE * a.p.shape.tiles, blocks = (a.p.queries + of - 1) / of;
    if (a.p.batch * a.p.heads * blocks <= 0)
        return 0;
    return tile_launch(whole_kernel<S, ABOVE>,
                       dim3((unsigned)a.p.batch, (unsigned)a.p.heads, (unsigned)blocks),
                       dim3(32, WHOLE_WARPS), a.p.shape.shared, stream, a);
}

template <int SIZE, int ADDS> int run_keys(const tile_params &a, void *stream)
{
    const int keys = a.p.shape.keys;
#define TURN(above, all) \
    if (keys == (all))   \
        return run_whole<tile_shape<SIZE, SIZE, all, 1, ADDS, true>, above>(a, stream);
    if (a.p.shape.turns == 1) {
        OPS_ATTENTION_ONE_TURN(TURN)
    }
#undef TURN
#define TURN(each)      \
    if (keys == (each)) \
        return run_whole<tile_shape<SIZE, SIZE, each, 1, ADDS, true>, WHOLE_TURNS>(a, stream);
    OPS_ATTENTION_TURNS(TURN)
#undef TURN
    return (int)cudaErrorInvalidValue;
}

template <int KEY, int VALUE, int ADDS> int run_size(const tile_params &a, void *stream)
{
    if constexpr (KEY == VALUE && VALUE <= 64)
        if (a.p.shape.tiles)
            return run_keys<KEY, ADDS>(a, stream);
    if constexpr (KEY == VALUE && VALUE <= 64)
        if (a.p.shape.together)
            return run_tiles<tile_shape<KEY, VALUE, 64, 1, ADDS, true>>(a, stream);
    if constexpr (VALUE <= 64)
        if (a.p.shape.keys == 64)
            return a.p.shape.piles == 1 ? run_tiles<tile_shape<KEY, VALUE, 64, 1, ADDS>>(a, stream)
                                        : run_tiles<tile_shape<KEY, VALUE, 64, 2, ADDS>>(a, stream);
    return run_tiles<tile_shape<KEY, VALUE, 32, 1, ADDS>>(a, stream);
}

template <int ADDS> int run_sizes(const tile_params &a, void *stream)
{
    const int key = a.p.shape.key_size, value = a.p.shape.value_size;
    return value == 32   ? run_size<32, 32, ADDS>(a, stream)
           : value == 96 ? run_size<96, 96, ADDS>(a, stream)
           : value == 64
               ? key == 32 ? run_size<32, 64, ADDS>(a, stream) : run_size<64, 64, ADDS>(a, stream)
           : key == 64 ? run_size<64, 128, ADDS>(a, stream)
                       : run_size<128, 128, ADDS>(a, stream);
}

/* What can be read by tiles (ops_fused_attention.q_piece). */
inline int by_tiles(const struct ops_fused_attention &p, const struct ops_ports *ports,
                    void *stream)
{
    const tile_params a = tile_params_of(p, ports);
    return p.period ? run_sizes<ADDS_MASK>(a, stream)
           : p.rows ? run_sizes<ADDS_POSITIONS>(a, stream)
                    : run_sizes<ADDS_NOTHING>(a, stream);
}

} // namespace ops
