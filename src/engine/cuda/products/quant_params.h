/* SPDX-License-Identifier: Apache-2.0 */
/* What conv_bytes.cu gets for a convolution or product of 8-bit numbers. */
#ifndef SAC_ENGINE_CUDA_PRODUCTS_QUANT_PARAMS_H
#define SAC_ENGINE_CUDA_PRODUCTS_QUANT_PARAMS_H

#include "engine/cuda/products/conv_launch.h"
#include "engine/cuda/products/quant_spec.h"
#include "engine/cuda/products/tensor_spec.h"

/* On the device; bias NULL: none, residual: where the node has one. */
struct quant_operands {
    const void *x, *weights, *scale, *bias, *residual;
    void       *y;
};
/* laid: x is the input as it was laid out for the tiles. */
struct conv_bytes_params quant_params(const struct quant_spec *s, const struct quant_operands *o,
                                      bool laid);
/* For conv_stream.cu, of what quant_streams. */
struct conv_stream_params quant_stream_params(const struct quant_spec     *s,
                                              const struct quant_operands *o, bool laid);
/* For a variant of conv_tensor.cuh, of what quant_tensors; shapes: as tensor_shapes. */
struct conv_tensor_params    quant_tensor_params(const struct quant_spec     *s,
                                                 const struct quant_operands *o, bool laid,
                                                 int                    variant,
                                                 struct conv_copy_shape shapes[TENSOR_MAPS]);
struct conv_bytes_lay_params quant_lay_params(const struct quant_spec *s, const void *x, void *to);

#endif
