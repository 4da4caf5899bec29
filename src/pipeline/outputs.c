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
