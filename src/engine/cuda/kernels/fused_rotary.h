/* SPDX-License-Identifier: Apache-2.0 */
/* FusedRotary: one thread per pair of eights of numbers. */
#ifndef SAC_ENGINE_CUDA_KERNELS_FUSED_ROTARY_H
#define SAC_ENGINE_CUDA_KERNELS_FUSED_ROTARY_H

#include "engine/cuda/kernels/types.h"

/* Operands of the views: the output, X, the cosines, the sines. `pairs` has the first number of
 * each pair; units are eight of these, or with `within` (1, 2, 4: how far apart the numbers of a
 * pair are) eight numbers of which all are pairs. */
struct ops_fused_rotary {
    struct ops_view pairs, units;
    int64_t         half, x_step; /* between the numbers of a pair; in X, between neighbours */
    int32_t         vector, within;
    int32_t         type[4];
};
OPS_LAUNCHER(ops_launch_fused_rotary);

#endif
