/* SPDX-License-Identifier: Apache-2.0 */
/* Appearance embeddings: one row of numbers per image. No boxes; src/reid runs it.
 *
 * The defaults follow where such networks come from. Channels last: converted from TensorFlow or
 * OpenVINO's zoo, whose graphs take OpenCV's BGR bytes and normalise inside. So does
 * person_reid_0288: its first nodes reverse the channels and then scale by 1 / (255 * 0.229),
 * 1 / (255 * 0.224), 1 / (255 * 0.225), the standard deviations of ImageNet's R, G, B in this
 * order; what comes in must be B, G, R in 0..255. (Measured 2026-11-21: over 16,000 pairs of boxes
 * of PETS09-S2L1's people the cosine tells same from other with an AUC of 0.865 in BGR, 0.839 in
 * RGB.) Channels first: trained in PyTorch (OSNet and others), RGB normalised outside by ImageNet's
 * mean and deviation. */
#include "heads/heads.h"

static bool recognise(const struct sac_head_view *v)
{
    const struct sac_tensor_desc *d = &v->output[0].desc;
    if (v->output_count != 1 || d->rank < 2 || d->shape[1] < 8)
        return false;
    for (int i = 2; i < d->rank; i++)
        if (d->shape[i] != 1)
            return false;
    return true;
}

static void defaults(const struct sac_head_view *v, struct sac_preprocess *pre)
{
    pre->fit = SAC_FIT_STRETCH;
    if (!v->channels_last) {
        sac_head_normalise(pre, SAC_ORDER_RGB);
        return;
    }
    pre->order = SAC_ORDER_BGR;
    for (int c = 0; c < 3; c++)
        pre->scale[c] = 1;
}

const struct sac_head sac_head_embedding = {
    .name = "embedding",
    .what = "one row of numbers per image, for re-identification",
    .wants = "[numbers]",
    .recognise = recognise,
    .defaults = defaults,
};
