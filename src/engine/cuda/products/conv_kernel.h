/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution that is ready to run on a GPU, and the search for the fastest way to compute it. */
#ifndef SAC_ENGINE_CUDA_PRODUCTS_CONV_KERNEL_H
#define SAC_ENGINE_CUDA_PRODUCTS_CONV_KERNEL_H

#include "engine/cuda/products/conv_launch.h"
#include "engine/cuda/products/products.h"
#include "engine/cuda/products/cudnn_conv.h"
#include "engine/cuda/products/libraries.h"

/* One way of computing a convolution, ready to run. Convolutions with the same text share it: a
 * plan contains no pointers, and may take seconds to compile. */
struct conv_ready {
    struct conv_choice choice;
    struct cudnn_graph graph; /* of cuDNN's ways */
    struct cudnn_plan  plan;
    int                users; /* guarded by the lock of conv_memory.c */
    bool kept; /* is in the user's cache, or shall not be: precompiled, or wrong when read again */
};

struct conv_state {
    struct products_gpu *gpu;
    struct conv_spec     spec;
    struct conv_ready   *ready;
    const void          *bias, *weights; /* on the device, in the form that the choice reads */
    const float         *ending;         /* there, [SAC_ENDING_ROWS][channels]; NULL: none */
    char                 label[96];      /* of the node, for sentences */
};

struct conv_pointers {
    const void *x, *residual;
    void       *y, *scratch;
};

/* What a ready one works in, which begins at a multiple of 256 bytes. */
static inline int64_t conv_workspace_bytes(const struct conv_spec *s, const struct conv_ready *r)
{
    return r->choice.way == CONV_PATCHES ? conv_patches_bytes(s) : r->plan.workspace;
}
/* Bytes of scratch. */
size_t conv_scratch_bytes(const struct conv_state *s);
/* Queues the convolution. The GPU's context must be current. */
cudaError_t conv_execute(const struct conv_state *s, const struct conv_pointers *p,
                         cudaStream_t stream);
/* Writes what was chosen and the implementation's name. */
void conv_describe(const struct conv_state *s, struct sac_kernel_plan *plan);

/* ---- ways (conv_ways.c); key: as conv_key ---- */

enum { CONV_TRIED_MAX = 32 };

/* Is any of them worth asking for? Of products that cuBLASLt computes in one step Hopper's own
 * kernels are, where these fill a card. Those that have a residual, over which the planner may let
 * them write, have no way of cuDNN's. */
bool conv_ways_for(const struct products_gpu *gpu, const struct conv_spec *s);

/* Likely fastest first. */
struct conv_ways {
    struct cudnn_candidate items[CONV_TRIED_MAX];
    int                    count, compiled;
};
void conv_ways_list(const struct products_gpu *gpu, const struct cudnn_target *t,
                    const struct conv_spec *s, struct conv_ways *out);
/* NULL: it does not run here; the reason is logged at debug. The GPU's context must be current. The
 * result has one user. */
struct conv_ready *conv_ready_make(struct sac_device *dev, const struct cudnn_target *target,
                                   const char *key, const struct conv_spec *spec,
                                   const struct conv_choice *choice);
/* As the user's cache would give it back; NULL: it would not. */
struct conv_ready *conv_ready_reread(const struct cudnn_target *target, const struct conv_ready *r);
/* Stores a plan that was compiled in the user's cache. */
void conv_ready_keep(struct sac_device *dev, const char *key, struct conv_ready *r);
void conv_ready_destroy(struct conv_ready *r); /* even if it has users */
/* In which order a way reads the weights. */
enum conv_form conv_form_of(const struct conv_spec *s, enum conv_way way);

/* ---- what is in use, by the convolutions' text (conv_memory.c); any thread ---- */

enum { CONV_KEY_MAX = 640 };
/* false: it does not fit. */
bool conv_key(const struct sac_device *dev, const struct conv_spec *s, char key[CONV_KEY_MAX]);
/* One of this choice (NULL: any) that is in use, or NULL. Adds a user. */
struct conv_ready *conv_share(const char *key, const struct conv_choice *choice);
void               conv_offer(const char *key, struct conv_ready *r);
/* The last user destroys it. */
void conv_ready_unref(struct conv_ready **r);

/* ---- what was fast for others (conv_near.c); any thread ---- */

/* What the ways took, in microseconds; negative: not measured. */
void conv_near_note(const struct sac_device *dev, const struct conv_spec *spec,
                    const struct conv_ways *l, const double us[CONV_TRIED_MAX]);
/* Which ways are worth trying: where a convolution was measured that is the same but for its
 * samples and sizes, and no smaller: ours, the first of each kind of cuDNN's, and what was nearly
 * the fastest there, or if it is compiled the fastest, which is added to the list where the
 * heuristics do not name it. Else all. */
void conv_near_narrow(const struct sac_device *dev, const struct conv_spec *spec,
                      struct conv_ways *l, bool keep[CONV_TRIED_MAX]);

/* ---- making many at once (conv_ahead.c), on the thread that prepares a plan ---- */

/* Notes what prepare will ask for: the way that is known; else those that are worth trying, if it
 * may measure, or the likely one. What is asked for and not made yet is then made with those noted
 * behind it. */
void conv_foresee(struct sac_device *dev, const struct sac_kernel_plan *plan);
/* The same for a node that is read already. */
void conv_foresee_spec(struct sac_device *dev, const struct sac_kernel_plan *plan,
                       const struct conv_spec *spec);
void conv_forget(void);
/* The noted one of this choice, with one user; NULL: it was not noted, or does not run here. */
struct conv_ready *conv_ahead_take(struct sac_device *dev, const char *key,
                                   const struct conv_choice *choice);
/* The ways, noted or not. ready: those of them that are worth trying and run here, or with all
 * false only the first if it does, for the caller to destroy. false: no memory, or the start was
 * given up. */
bool conv_ahead_ways(struct sac_device *dev, const char *key, const struct conv_spec *spec,
                     bool all, struct conv_ways *list, struct conv_ready *ready[CONV_TRIED_MAX]);

/* ---- choosing (conv_tune.c) ---- */

/* That of the plan's file, or of an earlier measurement. */
bool conv_known_choice(const struct sac_kernel_plan *plan, const struct conv_spec *spec,
                       const char *key, struct conv_choice *out);

/* Weights of the node in a form, on the device. */
struct conv_weights_source {
    sac_result (*get)(void *arg, enum conv_form form, const void **device);
    void *arg;
};
/* The way given by the planner's choice, an earlier measurement or the heuristics, or else the
 * fastest that is measured now. state has gpu, spec and bias. The GPU's context must be current. */
sac_result conv_choose(struct sac_device *dev, struct conv_state *state,
                       const struct sac_kernel_plan     *plan,
                       const struct conv_weights_source *weights);

#endif
