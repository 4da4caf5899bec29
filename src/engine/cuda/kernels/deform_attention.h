/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAC_ENGINE_CUDA_KERNELS_DEFORM_ATTENTION_H
#define SAC_ENGINE_CUDA_KERNELS_DEFORM_ATTENTION_H

#include "engine/cuda/kernels/types.h"

enum { OPS_DEFORM_LEVELS = 8 };
struct ops_deform_level {
    int64_t start; /* of its first pixel, in numbers */
    int32_t height, width, points;
};
/* Over [sample][query][head][piece of the head's numbers]. Types: enum sac_dtype. */
struct ops_deform_attention {
    struct ops_deform_level level[OPS_DEFORM_LEVELS];
    struct ops_divisor      queries, heads, pieces[3]; /* pieces: of a head, by 8, 4 and 1 */
    int64_t                 lines, values; /* heads of all queries; numbers of a sample */
    int32_t                 levels, points, channels, size;
    int32_t                 v_type, p_type, w_type, out_type;
    float                   gain, shift;
    bool                    softmax;
};
OPS_LAUNCHER(ops_launch_deform_attention);

#endif
