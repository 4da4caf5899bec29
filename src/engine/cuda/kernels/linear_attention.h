/* SPDX-License-Identifier: Apache-2.0 */
/* LinearAttention: by the tensor cores where all operands lie in float16 with the numbers of a head
 * side by side (linear_attention_tiles.cuh), else in float32 (linear_attention_plain.cuh). */
#ifndef SAC_ENGINE_CUDA_KERNELS_LINEAR_ATTENTION_H
#define SAC_ENGINE_CUDA_KERNELS_LINEAR_ATTENTION_H

#include "engine/cuda/kernels/types.h"
#include "engine/ops/fused_kinds.h"

enum { OPS_LINEAR_SHIFT_MAX = 3 }; /* a head's tokens are shared by 8 blocks at most */

struct ops_linear_attention {
    struct ops_head_view a, b, c, y;
    int64_t              batch, heads, keys, queries;
    int32_t              size, width; /* numbers of b and c; of a and y */
    int32_t              kind;        /* enum sac_linear_kind */
    int32_t              lengths, gain_step;
    int32_t              has_gain;
    float                scale, epsilon;
    int32_t              a_type, b_type, c_type, y_type, gain_type;
    /* A multiple of 16 that holds size and width, of 16 to 96 in steps that have a kernel; 0: no
     * tensor cores. Numbers of a and b that are read at once: 8, 4 or 2. */
    int32_t tile, piece;
    int32_t shift; /* 1 << shift blocks share a head's tokens where the card has clusters */
};
OPS_LAUNCHER(ops_launch_linear_attention);

#endif
