/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of the real size to measure a convolution on, and what must come out: what our plain kernel computes. */
#ifndef SAC_ENGINE_CUDA_CONV_TRIAL_H
#define SAC_ENGINE_CUDA_CONV_TRIAL_H

#include "engine/cuda/conv_kernel.h"

struct conv_trial {
    struct sac_device *dev;
    struct conv_state *state;
    const char        *key;
    struct conv_ways   list;
    struct conv_ready *ready[CONV_TRIED_MAX]; /* NULL: could not be made */
    struct sac_buffer *x, *y, *want, *residual, *workspace, *weights, *found;
    struct sac_buffer *other_x, *other_y; /* the same at other places */
    size_t             workspace_bytes;
    int64_t            began_ns;
};

/* Memory for all that is ready, numbers in it, and what must come out. weights: as the file has them. In the
 * GPU's context. */
sac_result           conv_trial_begin(struct conv_trial *t, const float *weights);
void                 conv_trial_finish(struct conv_trial *t);
struct conv_pointers conv_trial_pointers(const struct conv_trial *t);
/* Run the state's way once, with rubbish in its workspace and in the output: does it compute what must come
 * out? false is said at debug. */
bool                 conv_trial_right(struct conv_trial *t, const char *when);
/* Is it what lies in the output now? */
bool                 conv_trial_same(struct conv_trial *t, const char *when);
/* A graph must go on to read and write where it was captured, whatever the same plan computes elsewhere
 * afterwards: plans are shared, and one network is captured for several batches under way. Does it? */
bool                 conv_trial_captures(struct conv_trial *t);

#endif
