/* SPDX-License-Identifier: Apache-2.0 */
/* QuantConv and QuantMatMul as a convolution of 8-bit numbers. Host code without CUDA, so that it
 * can be tested without a GPU. */
#ifndef SAC_ENGINE_CUDA_PRODUCTS_QUANT_SPEC_H
#define SAC_ENGINE_CUDA_PRODUCTS_QUANT_SPEC_H

#include "engine/cuda/products/conv_bytes.h"
#include "engine/cuda/products/conv_spec.h"
#include "engine/ops/quant.h"

/* A product is a window of one over a map of as many pixels as it has rows; conv.turned then. Steps
 * of 8-bit maps count bytes. */
struct quant_spec {
    struct conv_spec     conv;
    enum conv_bytes_kind kind;
    enum conv_number     y, residual;
    struct sac_quant     q;
};

/* false: why says what is not covered. */
bool quant_spec_read(const struct sac_kernel_plan *plan, struct quant_spec *out, char *why,
                     size_t why_size);
/* Equal for those that one kernel computes in the same time. 0: it does not fit. */
size_t quant_spec_text(const struct quant_spec *s, char *out, size_t size);

/* Can a variant of conv_bytes.cu compute it on a GPU of this compute capability (90 of 9.0)? The
 * plain kernel computes all that are read. */
bool quant_fits(const struct quant_spec *s, int64_t variant, int capability);
/* Can conv_stream.cu? */
bool quant_streams(const struct quant_spec *s, int64_t variant, int capability);
/* Can conv_tensor.cuh? */
bool quant_tensors(const struct quant_spec *s, int64_t variant, int capability);
/* Can cuBLASLt compute it (quant_lt.h)? Float16 of rows that lie without gaps, with one scale. */
bool quant_lt_fits(const struct quant_spec *s, int capability);
/* One scale for all channels, and biases (NULL: none) that float16 has. */
bool quant_lt_takes(const struct quant_spec *s, const float *scale, const float *bias);
/* May it be the fastest? */
bool quant_stream_worth(const struct quant_spec *s, int variant);
bool quant_worth(const struct quant_spec *s, int variant);
/* Can the output's channels be stored sixteen at once, and the residual's be loaded so? */
bool quant_is_wide(const struct quant_spec *s);
/* Is the bias that the kernel adds another than the node's? Zero points are taken off there. */
bool quant_moves_bias(const struct quant_spec *s);

/* Channels of an input as the tiles read them, by sixteens: with fewer, or where they do not lie
 * so, the input is laid out anew before, with zeros behind each pixel's channels. */
int64_t quant_depth(const struct quant_spec *s);
bool    quant_is_laid_out(const struct quant_spec *s);
int64_t quant_scratch_bytes(const struct quant_spec *s); /* for that; 0: it lies so */

/* Weights as the kernels read them, [K][taps][C/g]; of one group with zeros up to quant_depth. */
size_t quant_weights_bytes(const struct quant_spec *s);
void   quant_weights_pack(const struct quant_spec *s, const void *from, void *to, int64_t begin,
                          int64_t end); /* of the output channels */
/* The bias less what x_zero adds to each sum. bias: NULL where there is none. */
void quant_bias_pack(const struct quant_spec *s, const int8_t *weights, const float *scale,
                     const float *bias, float *to);

#endif
