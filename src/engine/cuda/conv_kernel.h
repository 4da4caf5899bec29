/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution that is ready to run on a GPU, and how the best way to compute it is found. */
#ifndef SAC_ENGINE_CUDA_CONV_KERNEL_H
#define SAC_ENGINE_CUDA_CONV_KERNEL_H

#include "engine/cuda/conv_launch.h"
#include "engine/cuda/cudnn.h"
#include "engine/cuda/cudnn_conv.h"
#include "engine/cuda/libraries.h"

/* One way of computing a convolution, made ready. Convolutions of the same text share it: a plan has no
 * pointers in it, and takes up to seconds to compile. */
struct conv_ready {
    struct conv_choice choice;
    struct cudnn_graph graph; /* of cuDNN's ways */
    struct cudnn_plan  plan;
    int                users; /* guarded by the lock of conv_memory.c */
    bool               kept;  /* lies in the user's cache, or was so quick to make that it need not */
};

struct conv_state {
    struct cudnn_gpu *gpu;
    struct conv_spec  spec;
    struct conv_ready *ready;
    const void       *bias, *weights; /* on the device, in the form that the choice reads */
    char              label[96];      /* of the node, for sentences */
};

struct conv_pointers {
    const void *x, *residual;
    void       *y, *scratch;
};

/* Bytes of scratch that it needs. */
size_t conv_scratch_bytes(const struct conv_state *s);
/* Queues it. In the GPU's context. */
cudaError_t conv_execute(const struct conv_state *s, const struct conv_pointers *p, cudaStream_t stream);

/* ---- ways (conv_ways.c); key: as conv_key ---- */

enum { CONV_TRIED_MAX = 24 };

/* In the order in which they are likely to be good. */
struct conv_ways {
    struct cudnn_candidate items[CONV_TRIED_MAX];
    int                    count, compiled;
};
void conv_ways_list(const struct cudnn_target *t, const struct conv_spec *s, struct conv_ways *out);
/* NULL: it does not run here, and the log says why at debug. In the GPU's context; with one user. */
struct conv_ready *conv_ready_make(struct sac_device *dev, const struct cudnn_target *target,
                                   const char *key, const struct conv_spec *spec,
                                   const struct conv_choice *choice);
/* Let a plan that took long to make stay in the user's cache. */
void               conv_ready_keep(struct sac_device *dev, const char *key, struct conv_ready *r);
void               conv_ready_destroy(struct conv_ready *r); /* whatever users it has */
enum conv_form     conv_form_of(enum conv_way way);

/* ---- what is in use, by the convolutions' text (conv_memory.c); any thread ---- */

enum { CONV_KEY_MAX = 640 };
/* false: it does not fit. */
bool conv_key(const struct sac_device *dev, const struct conv_spec *s, char key[CONV_KEY_MAX]);
/* One that others use right now, of this choice (NULL: any); or NULL. Counts a user. */
struct conv_ready *conv_share(const char *key, const struct conv_choice *choice);
void               conv_offer(const char *key, struct conv_ready *r);
/* The last user destroys it. */
void               conv_ready_unref(struct conv_ready **r);

/* ---- choosing (conv_tune.c) ---- */

/* Weights of the node in a form, on the device. */
struct conv_weights_source {
    sac_result (*get)(void *arg, enum conv_form form, const void **device);
    void        *arg;
};
/* The way that the planner's choice, an earlier measurement or the heuristics say, or the fastest that is
 * measured now. state has gpu, spec and bias. In the GPU's context. */
sac_result conv_choose(struct sac_device *dev, struct conv_state *state, const struct sac_kernel_plan *plan,
                       const struct conv_weights_source *weights);

#endif
