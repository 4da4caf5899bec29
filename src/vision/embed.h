/* SPDX-License-Identifier: Apache-2.0 */
/* Embeddings, the rows of numbers that stand for appearance, to length 1. A GPU sums a row with the
 * lanes of a warp, so every device sums in that order, and results are equal to the last bit. */
#ifndef SAC_VISION_EMBED_H
#define SAC_VISION_EMBED_H

#include <math.h>

#include "vision/vision.h"

enum { SAC_EMBED_LANES = 32 };

/* What a row is multiplied by; 0 for a row of zeros (or worse), which stays one: it is like
 * nothing. */
static inline float sac_embed_scale(double square)
{
    return square > 0 && square < INFINITY ? (float)(1.0 / sqrt(square)) : 0.0f;
}

/* rows of `dim` numbers (in: SAC_F32 or SAC_F16) to rows of length 1, in device memory; in and out
 * may be the same when both are float32. */
sac_result sac_embed_normalise(sac_device *dev, struct sac_device_stream *stream, const void *in,
                               enum sac_dtype dtype, int rows, int dim, float *out);

#endif
