/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/output.h"

#define ROW(field, create)                                                                      \
    {                                                                                           \
        offsetof(struct sac_pipeline_params, field), offsetof(struct sac_stream_params, field), \
            create                                                                              \
    }

/* Crops come before the video, which may draw on the frame itself. Outputs that time themselves
 * come before the others. */
const struct sac_output_row sac_output_rows[SAC_OUTPUT_ROWS] = {
    ROW(crops_out, sac_crops_create), ROW(video_out, sac_video_create),
    ROW(jsonl_out, sac_jsonl_create), ROW(mot_out, sac_mot_create),
    ROW(csv_out, sac_csv_create),     ROW(kitti_out, sac_kitti_create),
    ROW(coco_out, sac_coco_create),
};

const char **sac_output_path(struct sac_pipeline_params *params, int row)
{
    return (const char **)((char *)params + sac_output_rows[row].in_pipeline);
}

const char **sac_output_path_of_stream(struct sac_stream_params *params, int row)
{
    return (const char **)((char *)params + sac_output_rows[row].in_stream);
}

bool sac_output_clip(const struct sac_output_setup *setup, const struct sac_item *item,
                     const struct sac_track *track, struct sac_track *out)
{
    const float width = (float)(item->frame ? item->frame->width : setup->width);
    const float height = (float)(item->frame ? item->frame->height : setup->height);
    *out = *track;
    if (!setup->params->clip_boxes || width <= 0 || height <= 0)
        return true;
    out->x0 = SAC_CLAMP(track->x0, 0, width);
    out->y0 = SAC_CLAMP(track->y0, 0, height);
    out->x1 = SAC_CLAMP(track->x1, 0, width);
    out->y1 = SAC_CLAMP(track->y1, 0, height);
    return out->x0 < out->x1 && out->y0 < out->y1;
}
