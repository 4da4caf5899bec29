/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs: files that results are written to. A stream has at most one of each kind; one thread
 * writes them all. A file has a temporary name until it is whole.
 *
 *   outputs.c    the rows
 *   clip.c       boxes as they are written
 *   crops.c      the best view of each object
 *   video.c      the annotated video
 *   jsonl.c      JSON lines: a header, then one object a frame (docs/tracks.schema.json)
 *   records.c    a record for each track in each frame: MOTChallenge, CSV, KITTI, COCO
 *                (docs/formats.md)
 *   mattes.c     of a run that segments: video
 *   matte_pictures.c, matte_records.c   of such a run: PNG files; COCO's masks */
#ifndef SAC_PIPELINE_OUTPUT_H
#define SAC_PIPELINE_OUTPUT_H

#include "base/outfile.h"
#include "pipeline/books.h"
#include "pipeline/task.h"

struct sac_output;

struct sac_output_ops {
    const char *name;
    unsigned    bit;          /* SAC_OUTPUT_... */
    bool        times_itself; /* its stages have timers; else it counts as SAC_STAGE_WRITE */
    /* One frame's results, in order. */
    sac_result (*write)(struct sac_output *out, struct sac_item *item);
    /* Complete the file and give it its final name; at least one frame was written. */
    sac_result (*finish)(struct sac_output *out);
    /* Free; an unfinished file is deleted. */
    void (*destroy)(struct sac_output *out);
    const char *(*encoder)(const struct sac_output *out); /* "libx264"; NULL: it has none */
};

struct sac_output {
    const struct sac_output_ops *ops;
    bool                         begun; /* a frame was written; set by the stream */
    bool                         empty; /* finishing now would give no file; set by the output */
};

/* Passed to the outputs at creation; must outlive them. */
struct sac_output_setup {
    sac_context                      *ctx;
    struct sac_job                   *job;
    const struct sac_pipeline_params *params;
    sac_source                       *src;           /* NULL without a video */
    int                               width, height; /* of the frames; 0: unknown */
    double                            fps;           /* 0: unknown */
    pthread_mutex_t                  *call_lock;     /* held for calls of the program */
};
/* The outputs that a stream can have, in the order in which they are opened and written. A new one
 * needs a row and a path in both structs of parameters. */
enum { SAC_OUTPUT_ROWS = 7 };
struct sac_output_row {
    size_t in_pipeline, in_stream; /* offsets of its path in the two params */
    sac_result (*create)(const struct sac_output_setup *setup, struct sac_output **out);
    /* The same in a run that segments; NULL: it writes none. */
    sac_result (*create_mattes)(const struct sac_output_setup *setup, struct sac_output **out);
};
extern const struct sac_output_row sac_output_rows[SAC_OUTPUT_ROWS];
/* The path of a row's output; *NULL: it is not written. */
const char **sac_output_path(struct sac_pipeline_params *params, int row);
const char **sac_output_path_of_stream(struct sac_stream_params *params, int row);

/* A track as it is written: its box is clipped to the frame unless params.clip_boxes is 0 or the
 * frame's size is unknown. false: the box lies outside the frame, and the track is not written. */
bool sac_output_clip(const struct sac_output_setup *setup, const struct sac_item *item,
                     const struct sac_track *track, struct sac_track *out);

/* Whether all classes that the job's network names are COCO's: results then have its numbers. */
bool sac_output_has_coco_classes(const struct sac_job *job);

sac_result sac_crops_create(const struct sac_output_setup *setup, struct sac_output **out);
sac_result sac_video_create(const struct sac_output_setup *setup, struct sac_output **out);
sac_result sac_jsonl_create(const struct sac_output_setup *setup, struct sac_output **out);
sac_result sac_mot_create(const struct sac_output_setup *setup, struct sac_output **out);
sac_result sac_csv_create(const struct sac_output_setup *setup, struct sac_output **out);
sac_result sac_kitti_create(const struct sac_output_setup *setup, struct sac_output **out);
sac_result sac_coco_create(const struct sac_output_setup *setup, struct sac_output **out);
/* What job->segment->as says. Without params->video_out, for on_composite alone. */
sac_result sac_mattes_create(const struct sac_output_setup *setup, struct sac_output **out);
sac_result sac_matte_pictures_create(const struct sac_output_setup *setup, struct sac_output **out);
/* Is it a name that they get, 000000.png and so on? */
bool       sac_matte_is_picture(const char *name);
sac_result sac_matte_records_create(const struct sac_output_setup *setup, struct sac_output **out);

#endif
