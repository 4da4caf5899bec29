/* SPDX-License-Identifier: Apache-2.0 */
/* The pull form: a job for each device, and for each input a stream with a thread that reads and a
 * thread that writes.
 *
 * How a stream ends: its reading thread reaches the end of the input (or a fault, or a cancelled
 * source) and sends a last item after the frames. The frames before it are finished; then the sink
 * thread takes the last item, finishes the outputs and wakes run(). A stop, or a fault of an
 * output, only makes the reading end earlier. The run ends with its last stream.
 *
 * Streams share the job and its queues, but none can block the others: with several streams, each
 * has at most as many frames inside as its sink's queue has room for, so the finishing thread never
 * waits for a sink. */
#ifndef SAC_PIPELINE_PIPELINE_H
#define SAC_PIPELINE_PIPELINE_H

#include <semaphore.h>

#include "base/disk_cache.h"
#include "pipeline/output.h"

struct sac_stream_run {
    sac_pipeline              *pipe;
    struct sac_job            *job;    /* one of the pipeline's */
    struct sac_pipeline_params params; /* the pipeline's, with this stream's input and outputs */
    const char                *name;   /* of its input, or of its detections, without secrets */
    struct sac_lane            lane;
    struct sac_rows            rows;   /* with params.detections */
    bool                       unseen; /* its video is not opened: all is in the disk cache */
    sac_source                *src;    /* NULL without a video, or where it could not be opened */
    struct sac_source_info     info;
    struct sac_output_setup    setup;
    struct sac_output         *outputs[SAC_OUTPUT_ROWS]; /* the sink thread's during a run */
    int                        output_count;
    char                       encoder[64];
    struct sac_item           *last; /* sent after the frames */

    sem_t       room;                         /* for frames inside */
    int64_t     pace_start_ns, pace_first_us; /* with params.realtime: when its first frame came */
    bool        ready;                        /* it was opened */
    bool        read_started, sink_started;
    pthread_t   read_thread, sink_thread;
    bool        ended_early; /* used by run(): it told the stream to end */
    atomic_bool failed;      /* an output or a frame failed */
    atomic_bool finished;    /* the outputs are finished */
    atomic_uint_fast64_t room_waits, room_wait_ns;
    atomic_uint          whole;           /* outputs that are complete: SAC_OUTPUT_... */
    struct sac_fault     fault, unopened; /* unopened: of a worker that opened its input */
};

struct sac_pipeline {
    sac_context               *ctx;
    struct sac_arena           strings; /* those that params points to */
    struct sac_pipeline_params params;
    struct sac_job            *jobs[SAC_SHARDS_MAX]; /* one per device */
    int                        job_count;
    struct sac_stream_run     *streams; /* [stream_count] */
    int                        stream_count;
    sac_cache                 *cache; /* params.disk_cache; NULL: none */
    bool                       devices_open;

    bool            ran;
    sem_t           wake;          /* posted when a flag below or of a stream was set */
    atomic_bool     stopped;       /* the user asked to stop */
    atomic_bool     cancelled;     /* a stop came before the end: frames are missing */
    pthread_mutex_t on_frame_lock; /* held for the call */
};

/* ---- files.c ---- */

/* The one stream of parameters that have no list of streams. */
struct sac_stream_params sac_pipeline_only_stream(const struct sac_pipeline_params *params);
/* Repeat the check of sac_pipeline_check_files once inputs and models are open. params are those
 * that the pipeline was created with. */
sac_result sac_pipeline_check_opened(sac_pipeline *pipe, const struct sac_pipeline_params *params);

/* ---- shards.c ---- */

/* Create a job for each device, which is not open yet, and assign the streams to them. Half-built
 * after a fault. */
sac_result sac_pipeline_create_jobs(sac_pipeline *pipe, const struct sac_task *task);
/* Their threads begin, and open the engine's libraries beside the devices and inputs; open_jobs:
 * the networks too. Recall: they give back what they took, for the inputs to have it. */
sac_result sac_pipeline_prepare_jobs(sac_pipeline *pipe);
sac_result sac_pipeline_open_jobs(sac_pipeline *pipe);
void       sac_pipeline_recall_jobs(sac_pipeline *pipe);
sac_result sac_pipeline_open_devices(sac_pipeline *pipe);
sac_result sac_pipeline_start_jobs(sac_pipeline *pipe);
void       sac_pipeline_destroy_jobs(sac_pipeline *pipe);
int        sac_pipeline_streams_of(const sac_pipeline *pipe, int job);
/* The sum of sac_job_get_stats over all jobs. */
void sac_pipeline_add_jobs(sac_pipeline *pipe, struct sac_pipeline_stats *out);

/* ---- stream.c ---- */

/* Set its parameters; streams are numbered from 0. */
void sac_stream_init(struct sac_stream_run *s, sac_pipeline *pipe,
                     const struct sac_stream_params *params, int index);
/* Open its file of detections; before the job, since with detections there is no detector. */
sac_result sac_stream_open_rows(struct sac_stream_run *s);
/* After the devices, before anything else is opened: what the disk cache has of it. */
sac_result sac_stream_look_up(struct sac_stream_run *s);
int64_t    sac_stream_rows_total(const struct sac_stream_run *s); /* frames, without a video */
/* Frames in a full batch, given how many frames the streams of a job may have inside. */
int        sac_pipeline_batch_limit(const sac_pipeline *pipe, const struct sac_job *job);
sac_result sac_stream_open_input(struct sac_stream_run *s);
void       sac_stream_reset(struct sac_stream_run *s);   /* to open its input once more */
sac_result sac_stream_prepare(struct sac_stream_run *s); /* after its job has started */
sac_result sac_stream_open_outputs(struct sac_stream_run *s);
void       sac_stream_record(struct sac_stream_run *s); /* all is open: what the disk cache lacks */
/* A fault of one of several streams: its sentence is logged, the others go on. */
void       sac_stream_fail(struct sac_stream_run *s, sac_result res);
sac_result sac_stream_start(struct sac_stream_run *s);
/* Make the reading end: the source stops waiting, and frames that wait for the detector are
 * dropped. */
void sac_stream_end_early(struct sac_stream_run *s);
void sac_stream_join(struct sac_stream_run *s);
void sac_stream_close(struct sac_stream_run *s); /* its threads have ended; half-built too */
/* Call it after the job is destroyed, which may still hold items of the stream. */
void sac_stream_finish(struct sac_stream_run *s);

/* pace.c: wait until the frame is due; its latency counts from then. */
void sac_stream_pace(struct sac_stream_run *s, struct sac_item *item);

#endif
