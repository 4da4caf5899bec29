/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution as a cuDNN graph: the engines that the heuristics offer, and plans that compute it.
 * Needs no CUDA runtime. */
#ifndef SAC_ENGINE_CUDA_PRODUCTS_CUDNN_CONV_H
#define SAC_ENGINE_CUDA_PRODUCTS_CUDNN_CONV_H

#include "engine/cuda/products/conv_spec.h"
#include "engine/cuda/products/cudnn_api.h"

/* Its operations. fused: with bias, residual and activation; else only the sums. */
struct cudnn_graph {
    struct cudnn_set set;
    cudnn_desc       graph;
    bool             fused;
};
/* Plans for a graph of any shape can share what was compiled for another (cudnn_kernels.h). */
enum cudnn_shape { CUDNN_THIS_SHAPE, CUDNN_ANY_SHAPE };
/* false: cudnn_say describes the set's error. Finish it in any case. */
bool cudnn_graph_make(const struct cudnn_target *t, const struct conv_spec *s, bool fused,
                      enum cudnn_shape shape, struct cudnn_graph *out);
void cudnn_graph_finish(struct cudnn_graph *g);
/* Can the graph express this convolution's activation? */
bool cudnn_graph_can_fuse(const struct conv_spec *s);

struct cudnn_candidate {
    struct conv_choice choice;
    bool               runtime; /* NVRTC compiles it when the plan is made */
};
/* In the heuristics' order, without those that are less exact than the precision requires. */
int cudnn_graph_candidates(const struct cudnn_target *t, const struct cudnn_graph *g,
                           const struct conv_spec *s, cudnnBackendHeurMode_t mode,
                           struct cudnn_candidate *out, int max);

struct cudnn_plan {
    struct cudnn_set set;
    cudnn_desc       plan;
    int64_t          workspace;
};
/* Does NVRTC compile the plan of this choice? */
bool cudnn_graph_compiles(const struct cudnn_target *t, const struct cudnn_graph *g,
                          const struct conv_choice *choice);
/* cache: cuDNN's kernel cache, for a graph of any shape; or NULL. */
bool cudnn_plan_make(const struct cudnn_target *t, const struct cudnn_graph *g,
                     const struct conv_choice *choice, cudnn_desc cache, struct cudnn_plan *out);
void cudnn_plan_finish(struct cudnn_plan *p);
/* A plan as text, with the kernels that were compiled for it (sac_free); NULL: this cuDNN
 * cannot. */
char *cudnn_plan_text(const struct cudnn_plan *p, size_t *size);
/* A plan from such a text, which must be undamaged: cuDNN does not check it. */
bool cudnn_plan_read(const struct cudnn_target *t, const char *text, size_t size,
                     struct cudnn_plan *out);

/* A plan's operands; pointers that its graph does not have are ignored. */
struct cudnn_tensors {
    const void *x, *w, *bias, *residual;
    void       *y, *workspace;
};
/* Queues the plan on the handle's stream. */
cudnnStatus_t cudnn_plan_run(const struct cudnn_target *t, const struct cudnn_plan *p,
                             const struct conv_spec *s, bool fused,
                             const struct cudnn_tensors *tensors);

#endif
