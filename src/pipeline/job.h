/* SPDX-License-Identifier: Apache-2.0 */
/* The job that both forms of the pipeline share: frames in, tracks out.
 *
 *   producer -> [detect] -> inference thread -> [track] -> tracking thread -> [done] -> consumer
 *
 * The brackets are bounded queues: a full one holds its producer back, so nothing is lost. What
 * travels is an item; items are recycled with the memory that they have grown.
 *
 * The inference thread loads the models, runs them and unloads them: libraries below keep state per
 * calling thread (oneDNN's OpenMP workers), so no other thread ever calls them. */
#ifndef SAC_PIPELINE_JOB_H
#define SAC_PIPELINE_JOB_H

#include <semaphore.h>

#include <saccade/pipeline.h>

#include "base/files.h"
#include "base/outfile.h"
#include "base/thread.h"
#include "reid/features.h"

/* ---- faults that cross threads ---- */

/* The first fault, with its sentence: the context keeps sentences by thread, so one that another
 * thread met is said again by the thread that returns it. */
struct sac_fault {
    pthread_mutex_t lock; /* guards both below */
    sac_result      res;
    char            sentence[1024];
};
void       sac_fault_init(struct sac_fault *fault);
void       sac_fault_finish(struct sac_fault *fault);
/* Keep res and this thread's sentence, unless there is one already; true when it was kept. */
bool       sac_fault_keep(struct sac_fault *fault, sac_context *ctx, sac_result res);
sac_result sac_fault_raise(struct sac_fault *fault, sac_context *ctx);

/* ---- detections from a file ---- */

/* Rows of a MOTChallenge file by frame. */
struct sac_rows {
    struct sac_mot_file file;
    double              fps;    /* of seqinfo.ini; 0: it has none */
    int                 frames; /* of the sequence: seqinfo.ini's length, else the last frame with a row */
    char               *seqinfo; /* its path; NULL: there is none */
};
/* Also looks for seqinfo.ini beside the file and one folder up (SEQUENCE/det/det.txt). */
sac_result sac_rows_open(sac_context *ctx, const char *path, struct sac_rows *out);
void       sac_rows_finish(struct sac_rows *rows);
/* The rows of a frame (0, 1, 2, ...) as detections, in the file's order. */
sac_result sac_rows_get(const struct sac_rows *rows, sac_context *ctx, int64_t number,
                        struct sac_detections *out);

/* ---- items ---- */

/* What the items of one input share on their way; those of the push form have none. */
struct sac_lane {
    const struct sac_rows *rows; /* instead of the detector, or NULL */
    struct sac_queue      *done; /* where its results go */
    atomic_bool            discard; /* drop what has not been inferred yet */

    atomic_int_fast64_t frames_done, detections, tracks, first_ns, last_ns;
};

struct sac_item {
    struct sac_item *next; /* in the list of free items */
    struct sac_lane *lane; /* NULL: results go to the job's own last queue */
    bool             last; /* no frame: the lane's end, behind all its frames */
    sac_frame       *frame; /* a reference, or NULL without a video */
    sac_frame       *submitted; /* what the program pushed, where frame is another over its pixels; else NULL */
    int64_t          id, number, pts_us;
    int64_t          source_pts_us; /* SAC_PTS_NONE: the input says nothing */
    int              stream_id;

    struct sac_detections found;
    float                *feat; /* [found.count, dim] where has_feat */
    size_t                feat_capacity;
    bool                  has_feat;
    /* The same on a device whose memory is not the host's: rows of the batch's embeddings. */
    struct sac_features  *features;
    int32_t              *feat_row; /* [found.count] where features; -1: none of this one */
    size_t                feat_row_capacity;

    struct sac_track *tracks;
    size_t            track_count, track_capacity;

    int64_t              submitted_ns, done_ns; /* latency is what lies between */
    struct sac_run_times times; /* of the batch */
    int64_t              reid_ns, tracking_ns;

    sac_result status; /* a fault ends the item's way through the stages, not the stages */
    char       why[256];
};

/* ---- the job ---- */

enum sac_stage {
    SAC_STAGE_DECODE = 0,
    SAC_STAGE_PREPROCESS,
    SAC_STAGE_INFERENCE,
    SAC_STAGE_HEAD,
    SAC_STAGE_REID,
    SAC_STAGE_TRACKING,
    SAC_STAGE_CROP,
    SAC_STAGE_DRAW,
    SAC_STAGE_ENCODE,
    SAC_STAGE_WRITE,
    SAC_STAGE_COUNT,
    SAC_SPAN_LATENCY = SAC_STAGE_COUNT, /* of no stage: among the timers, behind them */
    SAC_SPAN_COUNT
};

struct sac_job {
    sac_context                *ctx;
    struct sac_arena            strings; /* behind params */
    struct sac_track_job_params params;
    bool                        ready_made; /* lanes have rows; there is no detector */
    sac_device                 *dev;
    sac_timers                 *timers; /* id = enum sac_stage */
    sac_timers                 *gpu_timers; /* the same; the device's own time, measured by events */
    struct sac_trace           *trace;  /* NULL: none is written */
    struct sac_job             *leader; /* whose the three above are; NULL: this one's */
    int                         gpu_track, gpu_tracking; /* the device's own rows in it: of two streams, whose work overlaps */
    struct sac_gpu_watch       *gpu;    /* NULL: no GPU, or no NVML */
    struct sac_outfile          stats_file; /* with params.stats_out */
    atomic_uint                 reports_whole; /* SAC_OUTPUT_TRACE, SAC_OUTPUT_STATS */
    bool                        measures; /* the clock is taken: for timers or trace */
    struct sac_queue           *detect, *track, *done;

    /* The inference thread; the models are its own once it has started. */
    pthread_t        infer_thread;
    sem_t            opened; /* posted when the models are loaded, or not: see fault */
    struct sac_fault fault;
    sac_detector    *det;
    sac_embedder    *emb;
    /* Models or trackers find no memory on the device: give up a stream, so that the others have
     * it. false: there is none to spare. On the inference thread while start waits, and on the
     * caller's thread before the first frame. NULL: then starting fails. */
    bool           (*give_way)(void *user, struct sac_job *job);
    void            *give_way_user;
    bool             reid_auto; /* params.reid is to be chosen once the detector is known */
    bool             wants_embeddings;
    int              batch_max;
    int              batch_limit; /* frames that make a batch full: fewer where so many can't be inside at once */
    int              depth;       /* batches under way at once */
    bool             ahead;       /* they are: see ahead.c */
    int64_t          small_ns;    /* how long batches stay small when memory ran out; then twice as long, and so on */
    bool             eager;       /* with nothing under way no frame waits for others to share its batch */
    struct sac_item **batch; /* [batch_max], with frames and found beside it */
    struct sac_item  *after_batch; /* the end of a lane, met while a batch was collected */
    sac_frame       **frames;
    struct sac_detections *found;
    struct sac_detections  wanted;     /* those of one frame that need embeddings, and where they were */
    size_t                *wanted_at, wanted_at_capacity;
    atomic_bool      discard; /* drop what has not been inferred yet */

    /* The tracking thread. */
    pthread_t track_thread;
    bool      infer_started, track_started;
    struct sac_stream_tracker {
        int          stream_id;
        sac_tracker *trk;
        int64_t      track_id_max; /* ids are given in rising order, so a greater one is a new identity */
    } *trackers;
    size_t  tracker_count, tracker_capacity;
    struct sac_wave *wave;

    pthread_mutex_t  free_lock; /* guards free_items */
    struct sac_item *free_items;

    /* Constant once started. */
    char   engine[128], head[32];
    char   kept[256]; /* the classes that boxes may have, for people */
    char **classes; /* [class_count], copied: the detector goes before the last frame is written */
    int    class_count, class_kept; /* kept: how many of them boxes may have */

    atomic_int_fast64_t frames_done, detections, tracks, first_ns, last_ns;
    atomic_uint_fast64_t batches, batch_frames, batches_full; /* runs of the detector */
    atomic_int          objects;
};

/* Copies params, opens the device. queue_min: the least length of the first and last queue. leader: the job
 * whose timers and trace this one writes into, and which outlives it; NULL: it has its own. */
sac_result sac_job_create(sac_context *ctx, const struct sac_track_job_params *params,
                          size_t queue_min, struct sac_job *leader, struct sac_job **out);
/* Loads the models and starts the threads. */
sac_result sac_job_start(struct sac_job *job, bool ready_made);
/* Drops what is inside, ends the threads. */
void       sac_job_stop(struct sac_job *job);
/* The same, and all goes. Accepts a job in any state. */
void       sac_job_destroy(struct sac_job **job);

/* An empty item, recycled where there is one; NULL: no memory. Any thread. */
struct sac_item *sac_job_item(struct sac_job *job);
void             sac_job_recycle(struct sac_job *job, struct sac_item *item);
/* Takes the item, waits for room. On failure the item is recycled. Any thread. */
sac_result sac_job_push_wait(struct sac_job *job, struct sac_item *item);
/* As sac_queue_pop_wait on the last queue. */
sac_result sac_job_pop_wait(struct sac_job *job, int64_t timeout_ns, struct sac_item **item);
/* No more items will come: what is inside goes its way, then pop_wait says SAC_EOS. */
void       sac_job_end(struct sac_job *job);
/* Drop what has not been inferred yet. Those that have been go on: what comes out is a whole beginning. */
void       sac_job_discard(struct sac_job *job);

/* The name of a class, or NULL where the model has none. Any thread, once started. */
const char *sac_job_class_name(const struct sac_job *job, int class_id);

/* Settle a params.reid that is "auto", with the detector open. */
sac_result sac_job_choose_reid(struct sac_job *job);

/* span.c: what the stages' work leaves behind. */
sac_result sac_job_spans_open(struct sac_job *job);
void       sac_job_spans_close(struct sac_job *job); /* half-built too */
/* A stage's work on one frame, both on the thread that does it. begin: 0 when nobody measures. */
int64_t    sac_job_begin(struct sac_job *job, enum sac_stage stage);
void       sac_job_finish(struct sac_job *job, enum sac_stage stage, int64_t begun,
                          const struct sac_item *item);
/* Work measured elsewhere that the calling thread did on n frames at once. */
void       sac_job_record(struct sac_job *job, enum sac_stage stage, int64_t begun_ns,
                          int64_t ended_ns, const struct sac_item *const *items, int n);
/* The same for the trace alone, or for the timer alone. */
void       sac_job_trace(struct sac_job *job, enum sac_stage stage, int64_t begun_ns, int64_t ended_ns,
                         const struct sac_item *const *items, int n);
void       sac_job_time(struct sac_job *job, enum sac_stage stage, int64_t duration_ns);
/* The time that the device itself took for a batch. begun_ns: on the host's clock, for the trace; 0: not
 * known. */
void       sac_job_record_gpu(struct sac_job *job, enum sac_stage stage, int64_t begun_ns, int64_t duration_ns,
                              const struct sac_item *const *items, int n);
/* For sac_source_params.on_decoded, with the job as its user. */
void       sac_job_on_decoded(void *job, const sac_frame *frame, int64_t begun_ns, int64_t ended_ns);

/* ahead.c: the inference thread's work where more than one batch may be under way. */
void sac_job_infer_ahead(struct sac_job *job);

/* stages.c. Was it memory that a call on this thread lacked? */
bool sac_job_is_out_of_memory(const struct sac_job *job, sac_result res);
/* After a call that lacked memory, before the first frame: a stream made way, so try again. */
bool sac_job_make_way(struct sac_job *job, sac_result res);
/* For both ways of inferring. Put the fault that this thread just met on the item. */
void sac_job_fail_item(struct sac_job *job, struct sac_item *item, sac_result res);
/* Ready-made detections of an item. */
void sac_job_look_up(struct sac_job *job, struct sac_item *item);
bool sac_job_is_discarded(struct sac_job *job, const struct sac_item *item);
/* To the tracking thread. */
void sac_job_pass_on(struct sac_job *job, struct sac_item *item);
/* Does it take part in a match by appearance? The rest are paired by motion alone. */
static inline bool sac_job_wants_embedding(const struct sac_job *job, const struct sac_detection *d)
{
    return job->params.reid_every || d->score >= job->params.tracker.score_high;
}

/* stages.c and tracking.c: the two threads. */
void *sac_job_infer_main(void *job);
void *sac_job_track_main(void *job);
/* The tracker of a stream, made on first use; on the tracking thread once that runs. Valid until the
 * next call. */
sac_result sac_job_tracker(struct sac_job *job, int stream_id, struct sac_stream_tracker **out);

/* Before the tracking thread runs: what waves need of the device. */
sac_result sac_job_open_wave(struct sac_job *job);
/* The stream has ended: what its tracker holds goes back to the device. One without a tracker too. */
void       sac_job_end_tracker(struct sac_job *job, int stream_id);
/* Before the first frame of a stream comes: its tracker, with the memory that it and the waves need
 * of the device. width 0: it has no pixels. On failure there is no tracker. */
sac_result sac_job_prepare_tracker(struct sac_job *job, int stream_id, int width, int height);

/* files.c: what it reads and writes by itself; once it has started, all files of its models. */
void       sac_job_add_files(const struct sac_job *job, struct sac_files *files);

/* stats.c: everything but what is the source's and the sink's, and the last queue. */
void       sac_job_get_stats(struct sac_job *job, struct sac_pipeline_stats *out);
void       sac_job_add_queue(struct sac_pipeline_stats *out, const char *name, struct sac_queue *queue);
/* What all of it means; once everything else is there. */
void       sac_job_judge(const struct sac_job *job, int streams, struct sac_pipeline_stats *out);
/* At the end: make the trace whole and write the statistics; what comes later is not in them. */
sac_result sac_job_finish_reports(struct sac_job *job, const struct sac_pipeline_stats *stats,
                                  const struct sac_stream_stats *streams, int stream_count);

#endif
