/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAC_ENGINE_CUDA_KERNELS_EXPECTATION_H
#define SAC_ENGINE_CUDA_KERNELS_EXPECTATION_H

#include "engine/cuda/kernels/types.h"

/* Over [sample][pixel][group]; steps in elements. Types: enum sac_dtype. */
struct ops_expectation {
    int64_t            count, in_sample, in_pixel, in_bin, out_sample, out_pixel, out_group;
    struct ops_divisor pixels, groups;
    int32_t            bins, in_type, w_type, out_type;
};
OPS_LAUNCHER(ops_launch_expectation);

#endif
