/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution or product of 8-bit numbers that is ready to run on a GPU, and the search for its
 * fastest variant. */
#ifndef SAC_ENGINE_CUDA_PRODUCTS_QUANT_KERNEL_H
#define SAC_ENGINE_CUDA_PRODUCTS_QUANT_KERNEL_H

#include "engine/cuda/products/conv_kernel.h"
#include "engine/cuda/products/quant_lt.h"

struct quant_state {
    struct products_gpu *gpu;
    struct quant_spec    spec;
    struct conv_choice   choice;
    const void          *weights, *scale, *bias; /* on the device */
    struct quant_lt      lt;
    char                 label[96];
};

size_t quant_scratch(const struct quant_state *s); /* bytes */
/* Queues it. The GPU's context must be current. */
cudaError_t quant_execute(const struct quant_state *s, const struct conv_pointers *p,
                          cudaStream_t stream);
/* Sets the choice: the planner's, an earlier measurement's, or the fastest that is measured now;
 * without leave to measure, the first that is right of those that are likely fast. The plain kernel
 * where there is none. Weights are on the device; the GPU's context must be current. */
void quant_choose(struct sac_device *dev, struct quant_state *s,
                  const struct sac_kernel_plan *plan);

#endif
