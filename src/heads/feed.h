/* SPDX-License-Identifier: Apache-2.0 */
/* What a network is fed: a picture, and beside it the small inputs that some exports have, which
 * are the same for every picture of the network's size. A recurrent network also takes states: what
 * it gave with the frame before. Here they are as before the first frame, all 0.
 *
 *     res = sac_feed_init(ctx, model, NULL, &feed);
 *     res = sac_feed_make(&feed, dev, model, pixels, in);    // in[0..feed.count) for sac_model_run
 *     ...
 *     sac_feed_release(in);
 */
#ifndef SAC_HEADS_FEED_H
#define SAC_HEADS_FEED_H

#include <saccade/model.h>
#include "base/base.h"

enum { SAC_FEED_INPUTS_MAX = 16 };

enum sac_feed_kind {
    SAC_FEED_PIXELS = 0,
    SAC_FEED_WIDTH_HEIGHT, /* [N,2]: the size that boxes are to be in: the network's own */
    SAC_FEED_HEIGHT_WIDTH,
    SAC_FEED_ONES,  /* [N,2]: by how much the picture was scaled before */
    SAC_FEED_MASK,  /* [N,H,W]: which pixels count: all */
    SAC_FEED_RATIO, /* [1]: by how much the network shrinks the picture before it looks at all of it
                     */
    SAC_FEED_STATE  /* [1,...]: what output pair[] was for the frame before */
};

struct sac_feed {
    int  count, image; /* inputs; which of them takes the pixels */
    bool single;       /* the picture has no batch dimension, [3,H,W], as torchvision's detectors
                        * take it */
    enum sac_feed_kind kind[SAC_FEED_INPUTS_MAX];
    int                pair[SAC_FEED_INPUTS_MAX]; /* of a state: its output */
};

/* user     "state=r1i:r1o,...", among other items of a contract's text, or NULL: which output an
 *          input is fed with; it comes before the file's metadata, which come before names and
 *          shapes.
 * Errors   SAC_ERR_UNSUPPORTED for a model without a picture, or with an input that nobody here can
 *          fill; SAC_ERR_ARG, SAC_ERR_FORMAT for a pair that it does not have. */
sac_result sac_feed_init(sac_context *ctx, const sac_model *model, const char *user,
                         struct sac_feed *out);
/* Is there an input of that kind? */
bool sac_feed_has(const struct sac_feed *feed, enum sac_feed_kind kind);
/* The first of them; -1: there is none. */
int sac_feed_find(const struct sac_feed *feed, enum sac_feed_kind kind);
/* What a SAC_FEED_RATIO is for pictures of that size. */
double sac_feed_ratio(int64_t width, int64_t height);
/* The input that is the i-th state; -1: there are fewer. */
int sac_feed_state(const struct sac_feed *feed, int i);
/* Is the output one that a state is fed with? */
bool sac_feed_gives_state(const struct sac_feed *feed, int output);
/* What the inputs are where the pixels are so: in [feed->count]. */
void sac_feed_describe(const struct sac_feed *feed, const sac_model *model,
                       const struct sac_tensor_desc *pixels, struct sac_tensor_desc *in);
/* pixels   [N,3,H,W] or [N,H,W,3]; in holds a reference of its own.
 * in       [SAC_FEED_INPUTS_MAX], in the model's order; NULL behind the last, all NULL on failure.
 * Errors   as of sac_tensor_create. */
sac_result sac_feed_make(const struct sac_feed *feed, sac_device *dev, const sac_model *model,
                         sac_tensor *pixels, sac_tensor **in);
void       sac_feed_release(sac_tensor **in);

/* states.c: pair [inputs] is the output that each input is fed with, -1: none. */
sac_result sac_states_pair(sac_context *ctx, const sac_model *model, const char *user, int *pair);

#endif
