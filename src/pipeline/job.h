/* SPDX-License-Identifier: Apache-2.0 */
/* The job that both forms of the pipeline share: frames in, results out.
 *
 *   producer -> [detect] -> inference thread -> [track] -> finishing thread -> [done] -> consumer
 *
 * The brackets are bounded queues: a full one blocks its producer, so nothing is lost. The queues
 * carry items: a frame with its results. Items are recycled with the memory that they hold. What
 * the two threads do with a frame is the task's (task.h). */
#ifndef SAC_PIPELINE_JOB_H
#define SAC_PIPELINE_JOB_H

#include <saccade/pipeline.h>

#include "base/start.h"
#include "base/files.h"
#include "base/thread.h"

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
    const struct sac_rows *rows;     /* instead of the detector, or NULL */
    struct sac_replay     *replay;   /* what the disk cache has of it and gets, or NULL */
    struct sac_prepared   *prepared; /* the same of its prepared frames */
    struct sac_queue      *done;     /* where its results go */
    atomic_bool            discard;  /* drop what has not been inferred yet */
    bool                   refused;  /* there is no memory for it; the inference thread's */
    int                    room;     /* frames that it may have inside; its input's thread waits */

    atomic_int_fast64_t frames_done, detections, tracks, first_ns, last_ns; /* books.c's */
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
    struct sac_track     *tracks;
    size_t                track_count, track_capacity;
    int64_t               tracks_new;      /* identities that began with this frame */
    bool                  decided, still;  /* tasks/still.h: whether the network need not see it */
    const struct sac_replay_frame   *kept; /* replay.h: its boxes, or NULL: they are found */
    const float                     *kept_looks;  /* [kept->count,dim] the same of its embeddings */
    const struct sac_replay_motion  *kept_motion; /* the same of the camera's motion */
    const struct sac_prepared_frame *prepared;    /* prepared.h: what is known of it, or NULL */
    const void *image;          /* what the network takes of it; NULL: it is made of the frame */
    bool        image_recorded; /* it was made and is recorded, */
    uint64_t    image_sum[2];   /* and this is its sum */
    void       *own;            /* what else the task has for it, or NULL: see task.h */

    int64_t              submitted_ns, done_ns; /* latency is their difference */
    struct sac_run_times times;                 /* of the batch */
    int64_t              reid_ns, tracking_ns;

    sac_result status; /* after a fault the remaining stages skip this item and go on with others */
    char       why[256];
};

/* ---- the job ---- */

struct sac_books;
struct sac_finishing;
struct sac_inference;
struct sac_task;
struct sac_task_run;

/* Each of the parts has a header of its own, which says who writes what; only what they share is
 * here. */
struct sac_job {
    /* Constant once started. */
    sac_context                *ctx;
    struct sac_arena            strings; /* those that params points to */
    struct sac_track_job_params params;
    struct sac_segment_params  *segment; /* params.segment as this job has it; NULL: it tracks */
    sac_device                 *dev;
    struct sac_task_run        *run;       /* task.h: what is done with the frames */
    struct sac_inference       *inference; /* inference.h: the thread that does it, in batches */
    struct sac_finishing       *finishing; /* finish.h: the thread that does the rest, in waves */
    struct sac_books           *books;     /* books.h: timers, trace, counts, reports */
    struct sac_queue           *detect, *track, *done;
    struct sac_start            start; /* what its start consists of; whoever opens adds to it */
    /* Of its streams, written before the task opens. replay: one that has boxes, or NULL; by it
     * what the detector would have told is known. */
    const struct sac_replay *replay;
    int                      replay_dim; /* of embeddings, which all have that want any; else 0 */
    /* Called when models or trackers find no memory on the device: drops a stream to free memory
     * for the others. false: no stream can be dropped. Runs on the inference thread while start
     * waits, and on the caller's thread before the first frame. NULL: starting fails instead. */
    bool (*give_way)(void *user, struct sac_job *job);
    void *give_way_user;
    /* Asked while a start waits: whether the run is not wanted any more. NULL: it is. */
    int (*unwanted)(void *user);
    void *unwanted_user;

    atomic_bool      discard;   /* drop what has not been inferred yet; sac_job_discard writes it */
    pthread_mutex_t  free_lock; /* guards free_items */
    struct sac_item *free_items;
};

/* Each frame soon, by itself: see SAC_SEGMENT_VR. */
static inline bool sac_job_is_prompt(const struct sac_job *job)
{
    return job->segment && job->segment->mode == SAC_SEGMENT_VR;
}

/* Copies params, begins to open the device. queue_min: the least length of the first and last
 * queue. leader: the job whose timers and trace this one uses, and which must outlive it; NULL: it
 * has its own. */
sac_result sac_job_create(sac_context *ctx, const struct sac_task *task,
                          const struct sac_track_job_params *params, size_t queue_min,
                          const struct sac_job *leader, struct sac_job **out);
/* Once; before that the device cannot be used. */
sac_result sac_job_open_device(struct sac_job *job);
/* All is ready for the first frame, and the caller began at begun_ns: logs what that consisted of.
 */
void sac_job_started(struct sac_job *job, int64_t begun_ns);
/* Opens the task and starts the threads. */
sac_result sac_job_start(struct sac_job *job);
/* Drops the frames inside, ends the threads. */
void sac_job_stop(struct sac_job *job);
/* Stops the job and frees it. Accepts a job in any state. */
void sac_job_destroy(struct sac_job **job);

/* items.c */
/* An empty item, a recycled one if there is one; NULL: no memory. Any thread. */
struct sac_item *sac_job_item(struct sac_job *job);
void             sac_job_recycle(struct sac_job *job, struct sac_item *item);
void             sac_job_free_items(struct sac_job *job); /* the recycled ones */
/* Set the item's status and sentence from the fault that this thread just met. */
void sac_job_fail_item(struct sac_job *job, struct sac_item *item, sac_result res);
/* After a call that ran out of memory, before the first frame. true: a stream was dropped, try
 * again. */
bool sac_job_make_way(struct sac_job *job, sac_result res);

/* job.c */
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

/* A stream will bring frames of this size (0: without pixels): the task takes the memory that it
 * needs. The end of a stream that brought none. */
sac_result sac_job_expect(struct sac_job *job, int stream_id, int width, int height);
void       sac_job_forget(struct sac_job *job, int stream_id);

/* files.c: add the files that the job itself reads and writes; once started, all files of its
 * models. */
void sac_job_add_files(const struct sac_job *job, struct sac_files *files);

/* stats.c: all statistics except the source's, the sink's and the last queue's. */
void                  sac_job_get_stats(struct sac_job *job, struct sac_pipeline_stats *out);
struct sac_queue_info sac_job_queue_info(struct sac_queue *queue, const char *name);
/* Fill in the bottleneck and the advice, once all other figures are there. */
void sac_job_judge(const struct sac_job *job, int streams, struct sac_pipeline_stats *out);
/* With params.monitor: watch a run that begins now; and the end of that, which the caller must see
 * to before what the feed asks goes away. */
struct sac_run_feed;
sac_result sac_job_watch(struct sac_job *job, const struct sac_run_feed *feed, const char *title,
                         bool live);
void       sac_job_watch_end(struct sac_job *job);
/* Of all jobs together, as sac_device_get_allocations. */
int sac_jobs_get_allocations(struct sac_job *const *jobs, int job_count, struct sac_allocation *out,
                             int max);
/* At the end of a run of these jobs: finish the trace and write the statistics; later work is not
 * in them. */
sac_result sac_job_finish_reports(struct sac_job *const *jobs, int job_count,
                                  const struct sac_pipeline_stats *stats,
                                  const struct sac_stream_stats *streams, int stream_count);

#endif
