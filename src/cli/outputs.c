/* SPDX-License-Identifier: Apache-2.0 */
#include "outputs.h"

#define FIELD(field) offsetof(struct settings, run.field), offsetof(struct sac_stream_params, field)

const struct output_kind output_kinds[] = {
    {"--output", FIELD(video_out), SAC_OUTPUT_VIDEO, NULL},
    {"--jsonl", FIELD(jsonl_out), SAC_OUTPUT_JSONL, ".jsonl"},
    {"--mot", FIELD(mot_out), SAC_OUTPUT_MOT, ".txt"},
    {"--csv", FIELD(csv_out), SAC_OUTPUT_CSV, ".csv"},
    {"--kitti", FIELD(kitti_out), SAC_OUTPUT_KITTI, ".txt"},
    {"--coco", FIELD(coco_out), SAC_OUTPUT_COCO, ".json"},
    {"--save-crops", FIELD(crops_out), SAC_OUTPUT_CROPS, ""},
};
const size_t output_kind_count = sizeof output_kinds / sizeof output_kinds[0];

const char *output_ending(const struct output_kind *kind, const struct settings *s)
{
    const struct sac_segment_params *segment = s->run.job.segment;
    if (!segment || kind->bit != SAC_OUTPUT_VIDEO)
        return kind->ending;
    switch (segment->as) {
    case SAC_SEGMENT_ALPHA: return ".mov";
    case SAC_SEGMENT_PNG: return "";
    case SAC_SEGMENT_COCO: return ".json";
    default: return kind->ending;
    }
}

const char *output_setting(const struct output_kind *kind, const struct settings *s)
{
    return *(const char *const *)((const char *)s + kind->setting);
}

void output_set(const struct output_kind *kind, struct settings *s, const char *path)
{
    *(const char **)((char *)s + kind->setting) = path;
}

const char **output_in_stream(const struct output_kind *kind, struct sac_stream_params *params)
{
    return (const char **)((char *)params + kind->in_stream);
}
