/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizeLinear and DequantizeLinear. */
#ifndef SAC_ENGINE_CUDA_KERNELS_QUANTIZE_H
#define SAC_ENGINE_CUDA_KERNELS_QUANTIZE_H

#include "engine/cuda/kernels/types.h"

/* With one constant scale, as networks have it between their layers: numbers as they lie in memory,
 * `width` at once. */
struct ops_rescale {
    int64_t            count; /* of widths; 0: scales are read for each number (ops_quantize) */
    int32_t            width; /* 16 or 1 */
    struct ops_divisor across, pixels; /* widths of a pixel, pixels of a sample */
    int64_t            in_pixel, in_sample, out_pixel, out_sample;
    float              scale, zero; /* what is multiplied with: 1 / scale where it is quantised */
};

/* struct sac_scaling, with what is read and written. Operands in ONNX's order. */
struct ops_quantize {
    int64_t            n, length, inner, scales, block;
    int32_t            blocked, dequantize, in_type, out_type, scale_type, zero_type; /* 0: none */
    struct ops_rescale whole;
};
OPS_LAUNCHER(ops_launch_quantize);

#endif
