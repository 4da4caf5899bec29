/* SPDX-License-Identifier: Apache-2.0 */
/* What a network is fed: a picture, and beside it the small inputs that some exports have, which
 * are the same for every picture of the network's size.
 *
 *     res = sac_feed_init(ctx, model, &feed);
 *     res = sac_feed_make(&feed, dev, model, pixels, in);    // in[0..feed.count) for sac_model_run
 *     ...
 *     sac_feed_release(in);
 */
#ifndef SAC_HEADS_FEED_H
#define SAC_HEADS_FEED_H

#include <saccade/model.h>
#include "base/base.h"

enum { SAC_FEED_INPUTS_MAX = 4 };

enum sac_feed_kind {
    SAC_FEED_PIXELS = 0,
    SAC_FEED_WIDTH_HEIGHT, /* [N,2]: the size that boxes are to be in: the network's own */
    SAC_FEED_HEIGHT_WIDTH,
    SAC_FEED_ONES, /* [N,2]: by how much the picture was scaled before */
    SAC_FEED_MASK  /* [N,H,W]: which pixels count: all */
};

struct sac_feed {
    int  count, image; /* inputs; which of them takes the pixels */
    bool single;       /* the picture has no batch dimension, [3,H,W], as torchvision's detectors
                        * take it */
    enum sac_feed_kind kind[SAC_FEED_INPUTS_MAX];
};

/* Errors   SAC_ERR_UNSUPPORTED for a model without a picture, or with an input that nobody here can
 * fill. */
sac_result sac_feed_init(sac_context *ctx, const sac_model *model, struct sac_feed *out);
/* Is there an input of that kind? */
bool sac_feed_has(const struct sac_feed *feed, enum sac_feed_kind kind);
/* What the inputs are where the pixels are so: in [feed->count]. */
void sac_feed_describe(const struct sac_feed *feed, const sac_model *model,
                       const struct sac_tensor_desc *pixels, struct sac_tensor_desc *in);
/* pixels   [N,3,H,W] or [N,H,W,3]; in holds a reference of its own.
 * in       [SAC_FEED_INPUTS_MAX], in the model's order; NULL behind the last, all NULL on failure.
 * Errors   as of sac_tensor_create. */
sac_result sac_feed_make(const struct sac_feed *feed, sac_device *dev, const sac_model *model,
                         sac_tensor *pixels, sac_tensor **in);
void       sac_feed_release(sac_tensor **in);

#endif
