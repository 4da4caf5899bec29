/* SPDX-License-Identifier: Apache-2.0 */
/* The provider "products": convolutions and matrix products, the sums of many products in which
 * networks spend their time.
 *
 * A convolution's way: conv.c reads the node into a description (conv_spec.h), the key to all that
 * is known of it. conv_ways.c lists the ways to compute it, cuDNN's (cudnn_*.c) and our kernels'
 * (conv_stem.cu, conv_tensor.cuh, conv_tile.cu, conv_patches.cu, conv_depthwise.cu,
 * conv_direct.cu); conv_ahead.c makes those of many by several threads, fewer where conv_near.c
 * knows better; conv_tune.c tries them on the GPU (conv_trial.c: right numbers first, then the
 * time; measure.c) and prints its choice as a word for the plan's book (conv_choice.c).
 * conv_memory.c shares what is ready between plans, conv_run.c queues it, with a pass of
 * conv_pass.cu behind it where the way does not apply bias, residual or activation itself.
 * Products are the same with cuBLASLt: matmul.c, matmul_spec.h, matmul_lt.h, and matmul_pass.cu
 * behind them. Those that would need that pass are tried as convolutions too (matmul_conv.h).
 *
 * Convolutions and products of 8-bit numbers (QuantConv, QuantMatMul) are quant.c's, in the same
 * order: quant_spec.h, quant_tune.c, quant_params.h. Their ways are variants of conv_bytes.cu,
 * conv_stream.cu and conv_tensor.cuh, and cuBLASLt's (quant_lt.h).
 *
 * Read first: conv_spec.h, conv_kernel.h, conv.c. Here: what the kernels share. */
#ifndef SAC_ENGINE_CUDA_PRODUCTS_PRODUCTS_H
#define SAC_ENGINE_CUDA_PRODUCTS_PRODUCTS_H

#include "engine/cuda/cuda.h"

extern const struct sac_kernel products_Conv, products_FusedConv, products_ConvTranspose,
    products_Gemm, products_MatMul, products_FusedMatMul, products_QuantConv, products_QuantMatMul;

/* Microseconds that work takes on the GPU, launched from a graph as a plan's steps are; negative:
 * it does not run, or cannot be captured. queue queues the work once on the stream. The GPU's
 * context must be current.
 * stop_us   give up after one iteration that took longer than this (0: never). */
struct measure {
    cudaError_t (*queue)(void *arg, cudaStream_t stream);
    void        *arg;
    cudaStream_t stream;
    double       stop_us;
};
double measure_us(const struct measure *m);

/* Begins the text by which variants are remembered, with the device that they are of; returns its
 * length. A deterministic device remembers none of another's. */
int products_key_begin(const struct sac_device *dev, char *key, size_t size);
/* The fastest variants that were measured in this process, as text, by what they compute (tuned.c).
 * Any thread. Without memory for one, it is measured again. */
void tuned_remember(const char *key, const char *choice);
bool tuned_recall(const char *key, char choice[SAC_KERNEL_CHOICE_MAX]);

/* Bring constants into a kernel's form: rows, channels or numbers, 0 to count, of so many bytes in
 * all; where these are many, by several threads of the device (pieces.c). */
void fill_in_pieces(struct sac_device *dev, size_t bytes, int64_t count,
                    void (*part)(void *arg, int64_t begin, int64_t end), void *arg);

#endif
