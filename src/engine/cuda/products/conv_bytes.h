/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels of 8-bit numbers compute, and their variants; conv_tensor.cuh multiplies
 * float16, too. */
#ifndef SAC_ENGINE_CUDA_PRODUCTS_CONV_BYTES_H
#define SAC_ENGINE_CUDA_PRODUCTS_CONV_BYTES_H

enum conv_bytes_kind {
    CONV_BYTES_S8 = 0, /* int8 by int8 */
    CONV_BYTES_U8,     /* uint8 by int8 */
    CONV_BYTES_F8,     /* E4M3 by E4M3, sums in float32 */
    CONV_BYTES_F16     /* float16 by float16, sums in float32: by conv_tensor.cuh alone */
};
/* What the output and the residual hold. */
enum conv_number { CONV_F32 = 0, CONV_F16, CONV_S8, CONV_U8, CONV_F8 };

/* The first variants are for any GPU since sm_80, with E4M3 since sm_89; those from
 * CONV_BYTES_HOPPER on are for sm_90 alone. */
enum { CONV_BYTES_HOPPER = 5, CONV_BYTES_VARIANTS = 12 };
/* Of conv_stream.cu. */
enum { CONV_STREAM_VARIANTS = 5 };
/* Of conv_tensor.cuh; those from CONV_TENSOR_WINDOWS on are conv_window.cuh's. */
enum { CONV_TENSOR_WINDOWS = 9, CONV_TENSOR_VARIANTS = 13 };

#endif
