/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of the real size for measuring a convolution, and the expected result from saccade's plain
 * kernel. */
#ifndef SAC_ENGINE_CUDA_PRODUCTS_CONV_TRIAL_H
#define SAC_ENGINE_CUDA_PRODUCTS_CONV_TRIAL_H

#include "engine/cuda/products/conv_kernel.h"

struct conv_trial {
    struct sac_device *dev;
    struct conv_state *state;
    const char        *key;
    struct conv_ways   list;
    struct conv_ready *ready[CONV_TRIED_MAX]; /* NULL: could not be created */
    struct sac_buffer *x, *y, *want, *residual, *workspace, *weights, *found;
    struct sac_buffer *other_x, *other_y; /* the same at other addresses */
    size_t             workspace_bytes;
};

/* Allocates memory for all ready convolutions, fills it, and computes the expected result. weights:
 * as in the file. The GPU's context must be current. */
sac_result           conv_trial_begin(struct conv_trial *t, const float *weights);
void                 conv_trial_finish(struct conv_trial *t);
struct conv_pointers conv_trial_pointers(const struct conv_trial *t);
/* Runs the state's way once, with garbage in its workspace and output: is the result as expected?
 * false is logged at debug. */
bool conv_trial_right(struct conv_trial *t, const char *when);
/* Is the output as expected now? */
bool conv_trial_same(struct conv_trial *t, const char *when);
/* Does a captured graph keep reading and writing the captured addresses after the same plan has run
 * at other addresses? Plans are shared, and a network is captured for several batches in flight. */
bool conv_trial_captures(struct conv_trial *t);

#endif
