/* SPDX-License-Identifier: Apache-2.0 */
/* The job that both forms of the pipeline share: frames in, tracks out.
 *
 *   producer -> [detect] -> inference thread -> [track] -> tracking thread -> [done] -> consumer
 *
 * The brackets are bounded queues: a full one blocks its producer, so nothing is lost. The queues
 * carry items: a frame with its results. Items are recycled with the memory that they hold.
 *
 * The inference thread loads the models, runs them and unloads them. No other thread calls them,
 * because libraries below keep state per calling thread (oneDNN's OpenMP workers). */
#ifndef SAC_PIPELINE_JOB_H
#define SAC_PIPELINE_JOB_H

#include <semaphore.h>

#include <saccade/pipeline.h>

#include "base/files.h"
#include "base/outfile.h"
#include "base/thread.h"
#include "reid/features.h"

/* ---- faults that cross threads ---- */

/* The first fault, with its sentence. The context keeps the last sentence of each thread, so the
 * thread that returns another thread's fault sets the sentence again for its own. */
struct sac_fault {
    pthread_mutex_t lock; /* guards both below */
    sac_result      res;
    char            sentence[1024];
};
void sac_fault_init(struct sac_fault *fault);
void sac_fault_finish(struct sac_fault *fault);
/* Keep res and this thread's sentence, unless there is one already; true when it was kept. */
bool       sac_fault_keep(struct sac_fault *fault, sac_context *ctx, sac_result res);
sac_result sac_fault_raise(struct sac_fault *fault, sac_context *ctx);

/* ---- detections from a file ---- */

/* Rows of a MOTChallenge file by frame. */
struct sac_rows {
    struct sac_mot_file file;
    double              fps; /* of seqinfo.ini; 0: it has none */
    int   frames;  /* of the sequence: seqinfo.ini's length, else the last frame with a row */
    char *seqinfo; /* its path; NULL: there is none */
};
/* Also looks for seqinfo.ini beside the file and one folder up (SEQUENCE/det/det.txt). */
sac_result sac_rows_open(sac_context *ctx, const char *path, struct sac_rows *out);
void       sac_rows_finish(struct sac_rows *rows);
/* The rows of a frame (0, 1, 2, ...) as detections, in the file's order. */
sac_result sac_rows_get(const struct sac_rows *rows, sac_context *ctx, int64_t number,
                        struct sac_detections *out);

/* ---- items ---- */

/* Shared by the items of one input; items of the push form have no lane. */
struct sac_lane {
    const struct sac_rows *rows;    /* instead of the detector, or NULL */
    struct sac_queue      *done;    /* where its results go */
    atomic_bool            discard; /* drop what has not been inferred yet */

    atomic_int_fast64_t frames_done, detections, tracks, first_ns, last_ns;
};

struct sac_item {
    struct sac_item *next;  /* in the list of free items */
    struct sac_lane *lane;  /* NULL: results go to the job's own last queue */
    bool             last;  /* no frame: the lane's end, behind all its frames */
    sac_frame       *frame; /* a reference, or NULL without a video */
    sac_frame *submitted;   /* what the program pushed, where frame is another over its pixels; else
                               NULL */
    int64_t id, number, pts_us;
    int64_t source_pts_us; /* SAC_PTS_NONE: the input states none */
    int     stream_id;

    struct sac_detections found;
    float                *feat; /* [found.count, dim] where has_feat */
    size_t                feat_capacity;
    bool                  has_feat;
    /* Instead of feat on a device with memory of its own: rows among the batch's embeddings. */
    struct sac_features *features;
    int32_t             *feat_row; /* [found.count] if features is set; -1: no embedding */
    size_t               feat_row_capacity;

    struct sac_track *tracks;
    size_t            track_count, track_capacity;

    int64_t              submitted_ns, done_ns; /* latency is their difference */
    struct sac_run_times times;                 /* of the batch */
    int64_t              reid_ns, tracking_ns;

    sac_result status; /* after a fault the remaining stages skip this item and go on with others */
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
    SAC_SPAN_LATENCY = SAC_STAGE_COUNT, /* not a stage: the timer after theirs */
    SAC_SPAN_COUNT
};

struct sac_job {
    sac_context                *ctx;
    struct sac_arena            strings; /* those that params points to */
    struct sac_track_job_params params;
    bool                        ready_made; /* lanes have rows; there is no detector */
    sac_device                 *dev;
    sac_timers                 *timers;     /* id = enum sac_stage */
    sac_timers                 *gpu_timers; /* same ids; time on the device, measured with events */
    struct sac_trace           *trace;      /* NULL: none is written */
    struct sac_job             *leader;     /* owns the three above; NULL: this job does */
    int                         gpu_track, gpu_tracking; /* trace rows of its two streams */
    struct sac_gpu_watch       *gpu;                     /* NULL: no GPU, or no NVML */
    struct sac_outfile          stats_file;              /* with params.stats_out */
    atomic_uint                 reports_whole;           /* SAC_OUTPUT_TRACE, SAC_OUTPUT_STATS */
    bool                        measures;                /* timers or trace are on */
    struct sac_queue           *detect, *track, *done;

    /* The inference thread; once started, only it uses the models. */
    pthread_t        infer_thread;
    sem_t            opened; /* posted when the models are loaded or loading failed: see fault */
    struct sac_fault fault;
    sac_detector    *det;
    sac_embedder    *emb;
    /* Called when models or trackers find no memory on the device: drops a stream to free memory
     * for the others. false: no stream can be dropped. Runs on the inference thread while start
     * waits, and on the caller's thread before the first frame. NULL: starting fails instead. */
    bool (*give_way)(void *user, struct sac_job *job);
    void                  *give_way_user;
    bool                   reid_auto; /* params.reid is chosen once the detector is known */
    bool                   wants_embeddings;
    int                    batch_max;
    int                    batch_limit; /* frames in a full batch; fewer if fewer can be inside */
    int                    depth;       /* batches under way at once */
    bool                   ahead;       /* several batches may be under way: see ahead.c */
    int64_t                small_ns; /* how long batches stay small without memory; then doubles */
    bool                   eager; /* while the device is idle no frame waits for a fuller batch */
    struct sac_item      **batch; /* [batch_max], with frames and found beside it */
    struct sac_item       *after_batch; /* the end of a lane, met while a batch was collected */
    sac_frame            **frames;
    struct sac_detections *found;
    struct sac_detections  wanted; /* one frame's that need embeddings, and their indices */
    size_t                *wanted_at, wanted_at_capacity;
    atomic_bool            discard; /* drop what has not been inferred yet */

    /* The tracking thread. */
    pthread_t track_thread;
    bool      infer_started, track_started;
    struct sac_stream_tracker {
        int          stream_id;
        sac_tracker *trk;
        int64_t      track_id_max; /* ids only rise, so a greater one is a new identity */
    } * trackers;
    size_t           tracker_count, tracker_capacity;
    struct sac_wave *wave;

    pthread_mutex_t  free_lock; /* guards free_items */
    struct sac_item *free_items;

    /* Constant once started. */
    char   engine[128], head[32];
    char   kept[256]; /* the classes that are kept (params.classes), as text for the log */
    char **classes;   /* [class_count], copied: they outlive the detector */
    int    class_count, class_kept; /* class_kept: how many of them are kept */

    atomic_int_fast64_t  frames_done, detections, tracks, first_ns, last_ns;
    atomic_uint_fast64_t batches, batch_frames, batches_full; /* runs of the detector */
    atomic_int           objects;
};

/* Copies params, opens the device. queue_min: the least length of the first and last queue. leader:
 * the job whose timers and trace this one uses, and which must outlive it; NULL: it has its own. */
sac_result sac_job_create(sac_context *ctx, const struct sac_track_job_params *params,
                          size_t queue_min, struct sac_job *leader, struct sac_job **out);
/* Loads the models and starts the threads. */
sac_result sac_job_start(struct sac_job *job, bool ready_made);
/* Drops the frames inside, ends the threads. */
void sac_job_stop(struct sac_job *job);
/* Stops the job and frees it. Accepts a job in any state. */
void sac_job_destroy(struct sac_job **job);

/* An empty item, a recycled one if there is one; NULL: no memory. Any thread. */
struct sac_item *sac_job_item(struct sac_job *job);
void             sac_job_recycle(struct sac_job *job, struct sac_item *item);
/* Takes the item, waits for room. On failure the item is recycled. Any thread. */
sac_result sac_job_push_wait(struct sac_job *job, struct sac_item *item);
/* As sac_queue_pop_wait on the last queue. */
sac_result sac_job_pop_wait(struct sac_job *job, int64_t timeout_ns, struct sac_item **item);
/* No more items will come: those inside are finished, then pop_wait returns SAC_EOS. */
void sac_job_end(struct sac_job *job);
/* Drop frames that have not been inferred yet. Those that have been are finished, so the results
 * cover the first frames without a gap. */
void sac_job_discard(struct sac_job *job);

/* The name of a class, or NULL where the model has none. Any thread, once started. */
const char *sac_job_class_name(const struct sac_job *job, int class_id);

/* Replace a params.reid of "auto" by a model or "none"; the detector must be open. */
sac_result sac_job_choose_reid(struct sac_job *job);

/* span.c: timers and trace events of the stages. */
sac_result sac_job_spans_open(struct sac_job *job);
void       sac_job_spans_close(struct sac_job *job); /* half-built too */
/* Time a stage's work on one frame; call both on the thread that does the work. begin: 0 when not
 * measuring. */
int64_t sac_job_begin(struct sac_job *job, enum sac_stage stage);
void    sac_job_finish(struct sac_job *job, enum sac_stage stage, int64_t begun,
                       const struct sac_item *item);
/* Work measured elsewhere that the calling thread did on n frames at once. */
void sac_job_record(struct sac_job *job, enum sac_stage stage, int64_t begun_ns, int64_t ended_ns,
                    const struct sac_item *const *items, int n);
/* The same, only for the trace or only for the timer. */
void sac_job_trace(struct sac_job *job, enum sac_stage stage, int64_t begun_ns, int64_t ended_ns,
                   const struct sac_item *const *items, int n);
void sac_job_time(struct sac_job *job, enum sac_stage stage, int64_t duration_ns);
/* The time that a batch took on the device. begun_ns: on the host's clock, for the trace; 0:
 * unknown. */
void sac_job_record_gpu(struct sac_job *job, enum sac_stage stage, int64_t begun_ns,
                        int64_t duration_ns, const struct sac_item *const *items, int n);
/* For sac_source_params.on_decoded, with the job as its user. */
void sac_job_on_decoded(void *job, const sac_frame *frame, int64_t begun_ns, int64_t ended_ns);

/* ahead.c: the inference thread's work where more than one batch may be under way. */
void sac_job_infer_ahead(struct sac_job *job);

/* stages.c. After a call that ran out of memory, before the first frame. true: a stream was
 * dropped, try again. */
bool sac_job_make_way(struct sac_job *job, sac_result res);
/* Set the item's status and sentence from the fault that this thread just met. */
void sac_job_fail_item(struct sac_job *job, struct sac_item *item, sac_result res);
/* Fill in an item's ready-made detections. */
void sac_job_look_up(struct sac_job *job, struct sac_item *item);
bool sac_job_is_discarded(struct sac_job *job, const struct sac_item *item);
/* Hand the item to the tracking thread. */
void sac_job_pass_on(struct sac_job *job, struct sac_item *item);
/* Whether the detection is matched by appearance; the others are matched by motion only. */
static inline bool sac_job_wants_embedding(const struct sac_job *job, const struct sac_detection *d)
{
    return job->params.reid_every || d->score >= job->params.tracker.score_high;
}

/* stages.c and tracking.c: the two threads. */
void *sac_job_infer_main(void *job);
void *sac_job_track_main(void *job);
/* The tracker of a stream, created on first use. Once the tracking thread runs, only it may call
 * this. Valid until the next call. */
sac_result sac_job_tracker(struct sac_job *job, int stream_id, struct sac_stream_tracker **out);

/* Allocate what waves need on the device; before the tracking thread runs. */
sac_result sac_job_open_wave(struct sac_job *job);
/* The stream has ended: free its tracker's device memory. Accepts a stream without a tracker. */
void sac_job_end_tracker(struct sac_job *job, int stream_id);
/* Before a stream's first frame: create its tracker and allocate the device memory that it and the
 * waves need. width 0: the stream has no pixels. On failure there is no tracker. */
sac_result sac_job_prepare_tracker(struct sac_job *job, int stream_id, int width, int height);

/* files.c: add the files that the job itself reads and writes; once started, all files of its
 * models. */
void sac_job_add_files(const struct sac_job *job, struct sac_files *files);

/* stats.c: all statistics except the source's, the sink's and the last queue's. */
void sac_job_get_stats(struct sac_job *job, struct sac_pipeline_stats *out);
struct sac_queue_info sac_job_queue_info(struct sac_queue *queue, const char *name);
/* Fill in the bottleneck and the advice, once all other figures are there. */
void sac_job_judge(const struct sac_job *job, int streams, struct sac_pipeline_stats *out);
/* At the end: finish the trace and write the statistics; later work is not in them. */
sac_result sac_job_finish_reports(struct sac_job *job, const struct sac_pipeline_stats *stats,
                                  const struct sac_stream_stats *streams, int stream_count);

#endif
