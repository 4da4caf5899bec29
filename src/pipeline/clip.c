/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/output.h"
#include "pipeline/prepared.h"

bool sac_output_clip(const struct sac_output_setup *setup, const struct sac_item *item,
                     const struct sac_track *track, struct sac_track *out)
{
    int w = setup->width, h = setup->height; /* of the first frame */
    if (item->frame)
        w = item->frame->width, h = item->frame->height;
    else if (item->prepared)
        w = item->prepared->width, h = item->prepared->height;
    const float width = (float)w, height = (float)h;
    *out = *track;
    if (!setup->params->clip_boxes || width <= 0 || height <= 0)
        return true;
    out->x0 = SAC_CLAMP(track->x0, 0, width);
    out->y0 = SAC_CLAMP(track->y0, 0, height);
    out->x1 = SAC_CLAMP(track->x1, 0, width);
    out->y1 = SAC_CLAMP(track->y1, 0, height);
    return out->x0 < out->x1 && out->y0 < out->y1;
}
