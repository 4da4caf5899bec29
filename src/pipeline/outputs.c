/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/output.h"

#define ROW(field, create, create_mattes)                                                       \
    {                                                                                           \
        offsetof(struct sac_pipeline_params, field), offsetof(struct sac_stream_params, field), \
            create, create_mattes                                                               \
    }

/* Crops come before the video, which may draw on the frame itself. Outputs that time themselves
 * come before the others. */
const struct sac_output_row sac_output_rows[SAC_OUTPUT_ROWS] = {
    ROW(crops_out, sac_crops_create, NULL), ROW(video_out, sac_video_create, sac_mattes_create),
    ROW(jsonl_out, sac_jsonl_create, NULL), ROW(mot_out, sac_mot_create, NULL),
    ROW(csv_out, sac_csv_create, NULL),     ROW(kitti_out, sac_kitti_create, NULL),
    ROW(coco_out, sac_coco_create, NULL),
};

const char **sac_output_path(struct sac_pipeline_params *params, int row)
{
    return (const char **)((char *)params + sac_output_rows[row].in_pipeline);
}

const char **sac_output_path_of_stream(struct sac_stream_params *params, int row)
{
    return (const char **)((char *)params + sac_output_rows[row].in_stream);
}
