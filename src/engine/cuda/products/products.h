/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of the provider "products", and what they share. */
#ifndef SAC_ENGINE_CUDA_CUDNN_H
#define SAC_ENGINE_CUDA_CUDNN_H

#include "engine/cuda/cuda.h"

extern const struct sac_kernel products_Conv, products_FusedConv, products_ConvTranspose,
    products_Gemm, products_MatMul;

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

/* The fastest variants that were measured in this process, as text, by what they compute (tuned.c).
 * Any thread. Without memory for one, it is measured again. */
void tuned_remember(const char *key, const char *choice);
bool tuned_recall(const char *key, char choice[SAC_KERNEL_CHOICE_MAX]);

#endif
