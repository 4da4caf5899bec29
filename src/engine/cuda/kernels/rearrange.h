/* SPDX-License-Identifier: Apache-2.0 */
/* Rearrange: a copy whose source goes round on some axes, with zeros where there is nothing, plus
 * another operand. */
#ifndef SAC_ENGINE_CUDA_KERNELS_REARRANGE_H
#define SAC_ENGINE_CUDA_KERNELS_REARRANGE_H

#include "engine/cuda/kernels/copy.h"

enum { OPS_RINGS = 3 };

/* An axis on which coordinates turn, or that is two of X. */
struct ops_ring {
    int64_t            period, size;
    struct ops_divisor inner;                /* of the inner part, or 1 */
    int64_t            stride, inner_stride; /* in X's memory, in elements */
    int64_t            unit_stride, unit_inner_stride;
};

/* Operands of the views: the output; the source, but for the axes that are rings; the coordinate on
 * each ring; then what is added. Units: 16 bytes, or eight numbers where these change. */
struct ops_rearrange {
    struct ops_copies copy; /* straight: no rings and nothing added, so one copy is all of it */
    struct ops_view   view, units;
    int32_t           straight, rings, adds, moves; /* moves: bytes, as they are */
    int32_t           bytes, vector;                /* of an element; whether units is filled */
    int32_t           in_type, add_type, out_type;
    struct ops_ring   ring[OPS_RINGS];
};
OPS_LAUNCHER(ops_launch_rearrange);

#endif
