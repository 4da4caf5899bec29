/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAC_ENGINE_CUDA_KERNELS_EXPECTATION_H
#define SAC_ENGINE_CUDA_KERNELS_EXPECTATION_H

#include "engine/cuda/kernels/types.h"
#include "engine/ops/expectation.h"

/* Neighbouring pixels that a warp takes, and channels of the rest that a thread takes, where there
 * are sums or a rest. */
enum { OPS_EXPECTATION_PIXELS = 32, OPS_EXPECTATION_CHANNELS = 8 };

/* Over [sample][pixel][group]; steps in elements. Types: enum sac_dtype. */
struct ops_expectation {
    int64_t            count, in_sample, in_pixel, in_bin, out_sample, out_pixel, out_channel;
    struct ops_divisor pixels, groups;
    int32_t            bins, in_type, w_type, out_type;
    /* With sums or a rest, over [sample][stretch of pixels][part of its channels][pixel]: the first
     * part has the means, each other eight channels of the rest. */
    int64_t            tail_count, rest_sample, rest_pixel, rest_channel;
    struct ops_divisor stretches, parts;
    int32_t            sums, rest, rest_type, rest_eights; /* eights: can be read at once */
    int32_t            activation;                         /* enum ops_fn */
    double             a, b;
};
OPS_LAUNCHER(ops_launch_expectation);

#endif
