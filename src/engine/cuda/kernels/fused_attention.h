/* SPDX-License-Identifier: Apache-2.0 */
/* FusedAttention: by tiles on the tensor cores where the heads lie in float16, else a warp for a
 * few queries of a head at a time. */
#ifndef SAC_ENGINE_CUDA_KERNELS_FUSED_ATTENTION_H
#define SAC_ENGINE_CUDA_KERNELS_FUSED_ATTENTION_H

#include "engine/cuda/kernels/types.h"

enum { OPS_ATTENTION_GROUP = 4 /* queries of a warp */, OPS_ATTENTION_SIZE_MAX = 128 };

/* struct sac_head_view of engine/ops/reads.h: steps of batch, head, token and number. */
struct ops_head_view {
    int64_t offset, step[4];
};
struct ops_fused_attention {
    struct ops_head_view q, k, v, y;
    int64_t              batch, heads, queries, keys, size, v_size;
    int64_t              period, mask_step[4]; /* period 0: there is no mask */
    int64_t at_once; /* groups of queries whose scores are in scratch, [][GROUP][keys] */
    float   scale;
    int32_t q_type, k_type, v_type, mask_type, out_type;
    /* Numbers that are read at once by tiles: 8, 4, or 1 wherever they lie; 0: no tiles. Of y, more
     * than 1: pairs can be written. */
    int32_t q_piece, k_piece, v_piece, y_piece;
};
OPS_LAUNCHER(ops_launch_fused_attention);

#endif
