/* SPDX-License-Identifier: Apache-2.0 */
/* The pull form: one job, and for each input a stream with a thread that reads and one that writes.
 *
 * How a stream ends: its reading thread meets the end of the input (or a fault, or a cancelled source)
 * and sends a last item after the frames; what is inside goes its way; the sink thread meets the last
 * item, finishes the outputs and wakes run(). A stop, and a fault of an output, only make the reading
 * end earlier. The run ends with its last stream.
 *
 * Streams share the job and its queues, but none can hold them up: of several, each has only so many
 * frames inside as its sink's queue has room for, so the tracking thread never waits for a sink. */
#ifndef SAC_PIPELINE_PIPELINE_H
#define SAC_PIPELINE_PIPELINE_H

#include "pipeline/output.h"

struct sac_stream_run {
    sac_pipeline              *pipe;
    struct sac_job            *job;    /* one of the pipeline's */
    struct sac_pipeline_params params; /* the pipeline's, with this stream's input and outputs */
    const char                *name;   /* of its input, or of its detections, without secrets */
    struct sac_lane            lane;
    struct sac_rows            rows;   /* with params.detections */
    sac_source                *src;    /* NULL without a video, or where it could not be opened */
    struct sac_source_info     info;
    struct sac_output_setup    setup;
    struct sac_output         *outputs[SAC_OUTPUT_ROWS]; /* the sink thread's during a run */
    int                        output_count;
    char                       encoder[64];
    struct sac_item           *last; /* sent after the frames */

    sem_t       room;   /* for frames inside */
    int64_t     pace_start_ns, pace_first_us; /* with params.realtime: its first frame */
    bool        ready;  /* it could be opened */
    bool        read_started, sink_started;
    pthread_t   read_thread, sink_thread;
    bool        ended_early; /* run()'s: told to */
    atomic_bool failed;   /* an output, or a frame on its way */
    atomic_bool finished; /* the outputs are */
    atomic_uint_fast64_t room_waits, room_wait_ns;
    atomic_uint          whole;    /* outputs that are done: SAC_OUTPUT_... */
    struct sac_fault     fault;
};

struct sac_pipeline {
    sac_context               *ctx;
    struct sac_arena           strings; /* behind params */
    struct sac_pipeline_params params;
    struct sac_job            *jobs[SAC_SHARDS_MAX]; /* one a device; streams are dealt to them in turn */
    int                        job_count;
    struct sac_stream_run     *streams; /* [stream_count] */
    int                        stream_count;

    bool            ran;
    sem_t           wake;    /* posted when a flag was set: below, or of a stream */
    atomic_bool     stopped; /* the user asks to end */
    atomic_bool     cancelled; /* a stop came before the end: frames are missing */
    pthread_mutex_t on_frame_lock; /* held for the call */
};

/* ---- files.c ---- */

/* Input and outputs of the parameters without a list of streams, or of a stream's own. */
struct sac_stream_params sac_pipeline_only_stream(const struct sac_pipeline_params *params);
/* sac_pipeline_check_files again, with inputs and models open. */
sac_result sac_pipeline_check_opened(sac_pipeline *pipe);

/* ---- shards.c ---- */

/* A job for each device, half-built after a fault; streams know theirs then. */
sac_result sac_pipeline_create_jobs(sac_pipeline *pipe);
sac_result sac_pipeline_start_jobs(sac_pipeline *pipe, bool ready_made);
void       sac_pipeline_destroy_jobs(sac_pipeline *pipe);
int        sac_pipeline_streams_of(const sac_pipeline *pipe, int job);
/* sac_job_get_stats of them all. */
void       sac_pipeline_add_jobs(sac_pipeline *pipe, struct sac_pipeline_stats *out);

/* ---- stream.c ---- */

/* Its parameters; streams are numbered from 0. */
void       sac_stream_init(struct sac_stream_run *s, sac_pipeline *pipe,
                           const struct sac_stream_params *params, int index);
/* Detections first, before the job: they say whether there is a detector. */
sac_result sac_stream_open_rows(struct sac_stream_run *s);
int64_t    sac_stream_rows_total(const struct sac_stream_run *s); /* frames that it will have, without a video */
/* Frames that make a batch full, with what the streams of a job may have inside. */
int        sac_pipeline_batch_limit(const sac_pipeline *pipe, const struct sac_job *job);
sac_result sac_stream_open_input(struct sac_stream_run *s);
sac_result sac_stream_prepare(struct sac_stream_run *s); /* once its job has started */
sac_result sac_stream_open_outputs(struct sac_stream_run *s);
/* A fault of one among several: its sentence is said, the others go on. */
void       sac_stream_fail(struct sac_stream_run *s, sac_result res);
sac_result sac_stream_start(struct sac_stream_run *s);
/* Let the reading end: the source stops waiting, and what waits for the detector is dropped. */
void       sac_stream_end_early(struct sac_stream_run *s);
void       sac_stream_join(struct sac_stream_run *s);
void       sac_stream_close(struct sac_stream_run *s); /* its threads have ended; half-built too */
/* After the job: it may still hold items of the stream. */
void       sac_stream_finish(struct sac_stream_run *s);

/* pace.c: wait until the frame's time has come; its latency counts from there. */
void       sac_stream_pace(struct sac_stream_run *s, struct sac_item *item);

#endif
