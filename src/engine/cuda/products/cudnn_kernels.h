/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that NVRTC compiles for cuDNN. One takes a quarter of a second, and computes all
 * convolutions that have the same steps behind their sums, whatever their sizes: cuDNN keeps it in
 * a kernel cache, from which plans of other shapes take it within a millisecond. The graph is then
 * marked as one of any shape, which changes nothing else: the kernels are the same to the last
 * byte. Needs no CUDA runtime. */
#ifndef SAC_ENGINE_CUDA_PRODUCTS_CUDNN_KERNELS_H
#define SAC_ENGINE_CUDA_PRODUCTS_CUDNN_KERNELS_H

#include <pthread.h>

#include "engine/cuda/products/cudnn_conv.h"

/* Those of one GPU. */
struct cudnn_kernel;
struct cudnn_kernels {
    pthread_mutex_t      lock; /* guards the list */
    struct cudnn_kernel *first;
};
void cudnn_kernels_init(struct cudnn_kernels *k);
void cudnn_kernels_finish(struct cudnn_kernels *k); /* plans made with them are destroyed */

/* What tells kernels apart, as text (sac_free); NULL: no memory. */
char *cudnn_kernels_key(const struct conv_spec *s, const struct conv_choice *choice);

/* The plan of an engine that compiles, as of a graph of any shape; any thread, each with a handle
 * of its own. Waits for another that compiles the same kernel. false: this cuDNN cannot; both out
 * are to be finished in any case. */
bool cudnn_kernels_plan(struct cudnn_kernels *k, const struct cudnn_target *t,
                        const struct conv_spec *s, const struct conv_choice *choice,
                        struct cudnn_graph *graph, struct cudnn_plan *plan);

#endif
