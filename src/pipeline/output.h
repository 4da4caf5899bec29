/* SPDX-License-Identifier: Apache-2.0 */
/* Where results go: an output is one row with its state. A stream has up to one of each, written by one thread,
 * each under a temporary name until it is whole.
 *
 *   outputs.c    the rows
 *   crops.c      the best view of each object
 *   video.c      the annotated video
 *   jsonl.c      JSON lines: a header, then one object a frame (docs/tracks.schema.json)
 *   records.c    a record for each track in each frame: MOTChallenge, CSV, KITTI, COCO (docs/formats.md) */
#ifndef SAC_PIPELINE_OUTPUT_H
#define SAC_PIPELINE_OUTPUT_H

#include "pipeline/job.h"

struct sac_output;

struct sac_output_ops {
    const char *name;
    unsigned    bit;          /* SAC_OUTPUT_... */
    bool        times_itself; /* its stages have timers; else it counts as SAC_STAGE_WRITE */
    /* One frame's results, in order. */
    sac_result (*write)(struct sac_output *out, struct sac_item *item);
    /* Make the file whole and give it its name; it has one frame at least. */
    sac_result (*finish)(struct sac_output *out);
    /* Release; what was not finished goes away. */
    void (*destroy)(struct sac_output *out);
};

struct sac_output {
    const struct sac_output_ops *ops;
    bool                         begun; /* a frame was written; the stream's */
    bool                         empty; /* finished now there is no file all the same; the output's */
};

/* What the outputs are told at their start; borrowed for their life. */
struct sac_output_setup {
    sac_context                      *ctx;
    struct sac_job                   *job;
    const struct sac_pipeline_params *params;
    sac_source                       *src;           /* NULL without a video */
    int                               width, height; /* of the frames; 0: unknown */
    double                            fps;           /* 0: unknown */
};
/* The outputs that a stream can have, in the order in which they are opened and written. A new one is a
 * field in both structs of parameters and a row. */
enum { SAC_OUTPUT_ROWS = 7 };
struct sac_output_row {
    size_t in_pipeline, in_stream; /* where sac_pipeline_params and sac_stream_params have its path */
    sac_result (*create)(const struct sac_output_setup *setup, struct sac_output **out);
};
extern const struct sac_output_row sac_output_rows[SAC_OUTPUT_ROWS];
/* The path of a row's output; *NULL: it is not written. */
const char **sac_output_path(struct sac_pipeline_params *params, int row);
const char **sac_output_path_of_stream(struct sac_stream_params *params, int row);

/* A track as it is written: its box cut at the frame's edges, unless params.clip_boxes is 0 or nothing tells the
 * frame's size. false: it lies wholly outside, and is not written. */
bool sac_output_clip(const struct sac_output_setup *setup, const struct sac_item *item,
                     const struct sac_track *track, struct sac_track *out);

sac_result sac_crops_create(const struct sac_output_setup *setup, struct sac_output **out);
sac_result sac_video_create(const struct sac_output_setup *setup, struct sac_output **out);
sac_result sac_jsonl_create(const struct sac_output_setup *setup, struct sac_output **out);
sac_result sac_mot_create(const struct sac_output_setup *setup, struct sac_output **out);
sac_result sac_csv_create(const struct sac_output_setup *setup, struct sac_output **out);
sac_result sac_kitti_create(const struct sac_output_setup *setup, struct sac_output **out);
sac_result sac_coco_create(const struct sac_output_setup *setup, struct sac_output **out);
/* What encodes the output that sac_video_create made: "libx264". */
const char *sac_video_encoder(const struct sac_output *video);

#endif
