/* SPDX-License-Identifier: Apache-2.0 */
/* The main job as one object.
 *
 * Pull: from a source to sinks, in one call.
 *     struct sac_pipeline_params params = sac_pipeline_params_default();
 *     params.input = "in.mp4";
 *     params.video_out = "out.mp4";
 *     sac_pipeline *pipe = NULL;
 *     sac_result    res = sac_pipeline_create(ctx, &params, &pipe);
 *     if (res == SAC_OK)
 *         res = sac_pipeline_run(pipe);
 *     sac_pipeline_destroy(&pipe);
 *
 * Push: frames from the program, results back (sac_session below).
 */
#ifndef SACCADE_PIPELINE_H
#define SACCADE_PIPELINE_H

#include <saccade/files.h>
#include <saccade/sink.h>
#include <saccade/stats.h>
#include <saccade/track.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The part that both forms share. Strings are copied at creation. */
struct sac_track_job_params {
    const char                *device;   /* "auto", "cpu", ... */
    struct sac_device_params   device_params;
    /* Each a file, the name of a model that comes with saccade (saccade/models.h), or NULL or
     * "none". "auto", the default: person_det unless there are ready-made detections; person_reid
     * where the tracker looks at appearance and the detector's boxes are all persons (where it is
     * not there: a warning). */
    const char                *detector;
    struct sac_detector_params detector_params;
    const char                *reid;
    struct sac_embedder_params reid_params; /* batch_max 0 (default): what pays on the device */
    struct sac_tracker_params  tracker;
    int                        timeout_ms; /* wait this long to fill a batch; default 10 */
    int                        inference_batch_max; /* frames in a run of the detector, at most
                                                       detector_params.batch_max; 0 (default): what pays on
                                                       the device */
    int                        batches_ahead; /* batches that are queued on the device before the first of
                                                 them is waited for: 1 or 2; 0 (default): 2 on a GPU */
    int                        reid_every;   /* 1: embeddings of all detections, also of those that are matched
                                                by motion alone; default 0 */
    int                        queue_length; /* bounded queues between stages; default 4 */
    int                        timers;       /* 1 (default): time the stages */
    const char                *trace_out;    /* Chrome trace (Perfetto opens it): an event a stage and
                                                frame; NULL (default): none. Whole once a run has ended,
                                                or a session was destroyed */
    const char                *stats_out;    /* the statistics as JSON (docs/stats.schema.json), written at
                                                the same time; NULL (default): not */
};

/* Bits. AUTO: the id, and the class where boxes of more than one are kept. A class without a name is left out. */
enum { SAC_LABEL_ID = 1, SAC_LABEL_CLASS = 2, SAC_LABEL_SCORE = 4, SAC_LABEL_AUTO = 8 };
/* "auto", "none", or a list as "id,class,score".
 * Errors   SAC_ERR_ARG. */
SAC_API sac_result sac_labels_parse(const char *text, unsigned *out);

/* One input among several, with its outputs; the fields are those of sac_pipeline_params. */
struct sac_stream_params {
    const char *input, *detections;
    const char *video_out, *jsonl_out, *mot_out, *csv_out, *kitti_out, *coco_out, *crops_out;
};

struct sac_pipeline_params {
    struct sac_track_job_params job;
    /* Several inputs in one run: input, detections and the outputs below are then not looked at, and
     * source.stream_id counts from 0. All or none have detections. One that fails, already when it is
     * opened, does not stop the others: its sentence is logged, and run returns it in the end. */
    const struct sac_stream_params *streams;
    int                      stream_count;   /* 0 (default): the one input below */
    /* Several devices, each as job.device: the streams are dealt to them in turn. Those that get none are not
     * opened, and that is logged. */
    const char *const       *devices;
    int                      device_count;   /* 0 (default): job.device alone */
    const char              *input;          /* NULL only with detections, and without reid */
    struct sac_source_params source;
    const char              *detections;     /* MOTChallenge detections instead of a detector, or NULL */
    /* Without a video: frames per second; 0 (default): that of seqinfo.ini beside the detections, else
     * an error. Of images source.fps counts; for a video it is ignored, and that is logged. */
    double                   fps;
    int                      realtime;       /* 1: frames of a file are held back until their time has come, as
                                                a camera would give them; default 0 */
    const char              *video_out;      /* each output NULL: not written */
    const char              *jsonl_out;      /* "-" is standard output, here and in the next four */
    const char              *mot_out;        /* the columns of these are told in docs/formats.md */
    const char              *csv_out;
    const char              *kitti_out;      /* tracking labels */
    const char              *coco_out;       /* results, a JSON array */
    /* A folder, made where it is missing: CLASS/ID.jpg is the best view of each object, large, sure and not
     * covered by others. Needs a video; on a GPU the crops are copied to the host, which strict mode refuses. */
    const char              *crops_out;
    int                      clip_boxes;     /* 1 (default): in files, boxes end at the frame's edges and those outside
                                                are left out; 0: as the tracker has them, which may reach past it */
    struct sac_sink_params   sink;
    unsigned                 labels;         /* what stands beside a box: SAC_LABEL_..., 0: nothing; default
                                                SAC_LABEL_AUTO */
    int                      draw_trails;    /* 1 (default) */
    float                    trail_s;        /* length of a trail; default 2 */
    const char              *command;        /* for the header line of the JSON lines, or NULL */
    const char *const       *reads;          /* [read_count] other files that the program has read, such as its
                                                configuration: no output may overwrite them; looked at by create */
    int                      read_count;     /* default 0 */
    /* Called on the sink thread for each frame, in order, before anything is drawn; NULL: none. Of several
     * inputs each has a sink thread; they call in turns. frame is NULL without a video. Both are borrowed for the call. Returning non-zero stops the run, as
     * sac_pipeline_stop does. */
    int                    (*on_frame)(void *user, const sac_frame *frame,
                                       const struct sac_track *tracks, size_t n);
    void                    *on_frame_user;
};
SAC_API struct sac_pipeline_params sac_pipeline_params_default(void);

/* Would an output of such a run overwrite what it reads (inputs, each picture of a folder, detections, models,
 * heads, reads), or another output, of any stream? sac_pipeline_create asks by itself, for that it opens the
 * files; this one goes by the names alone. How files are compared: saccade/files.h.
 * Errors   SAC_ERR_ARG, SAC_ERR_MEMORY. */
SAC_API sac_result sac_pipeline_check_files(sac_context *ctx, const struct sac_pipeline_params *params);

typedef struct sac_pipeline sac_pipeline;
/* Opens inputs, models and outputs; nothing runs yet. Output files are written under a fresh temporary
 * name (NAME.XXXXXXXX.part beside them) and renamed when whole; of two runs with one output the last to finish has it.
 * Errors   SAC_ERR_ARG (no input, no detector, a bad option, an output that would overwrite a file of the run), SAC_ERR_IO, SAC_ERR_FORMAT or
 *          SAC_ERR_UNSUPPORTED for a file, SAC_ERR_DEVICE, SAC_ERR_MEMORY. Nothing is left of outputs. */
SAC_API sac_result sac_pipeline_create(sac_context *ctx, const struct sac_pipeline_params *params,
                                       sac_pipeline **out);
/* Until the input ends. SAC_ERR_CANCELLED after sac_pipeline_stop: the outputs then hold all frames up
 * to there and are whole. On a fault of the input midway the outputs are finished too. An input of which not one
 * frame came gets none of its outputs, and that is logged: files of an earlier run stay as they are. Trace and
 * statistics tell of the run itself and are always written. */
SAC_API sac_result sac_pipeline_run(sac_pipeline *pipe);
/* Ask a run to end soon: frames already read are finished, then the outputs. Before a run, it ends that
 * run at once. Any thread; async-signal-safe. */
SAC_API void       sac_pipeline_stop(sac_pipeline *pipe);
/* Any thread, also during a run. */
SAC_API void       sac_pipeline_get_stats(sac_pipeline *pipe, struct sac_pipeline_stats *out);
/* Of one input; 0 <= stream < the number of inputs. Any thread, also during a run. */
SAC_API void       sac_pipeline_get_stream_stats(sac_pipeline *pipe, int stream,
                                                 struct sac_stream_stats *out);
/* The name of a class, or NULL where the model has none. Any thread. */
SAC_API const char *sac_pipeline_class_name(const sac_pipeline *pipe, int class_id);
/* One line per live buffer of its device (owner, bytes, shape, age) to fn. Any thread, also during a run. */
SAC_API void       sac_pipeline_dump_live(const sac_pipeline *pipe, void (*fn)(void *user, const char *line),
                                          void *user);
SAC_API void       sac_pipeline_destroy(sac_pipeline **pipe);

/* ---- push ---- */

struct sac_session_params {
    struct sac_track_job_params job;
    int submit_max; /* frames inside at once; default 8 */
};
SAC_API struct sac_session_params sac_session_params_default(void);

struct sac_session_result {
    int64_t           id;     /* as submitted */
    int64_t           pts_us;
    int               stream_id;
    sac_frame        *frame;  /* the one that was submitted: a reference, released by sac_session_result_finish */
    struct sac_track *tracks; /* [count], owned by the result */
    size_t            count;
    /* From submit to result. preprocess, inference and head are those of the batch that the frame was
     * in; queue is the rest: waiting for the frames before it. */
    double            queue_ms, preprocess_ms, inference_ms, head_ms, reid_ms, tracking_ms, total_ms;
    sac_result        status; /* of this frame; others go on */
};
SAC_API void sac_session_result_finish(struct sac_session_result *result);

typedef struct sac_session sac_session;
/* Opens the device and finds the models; they are loaded by start.
 * Errors   SAC_ERR_ARG, SAC_ERR_IO (a name that is no model's), SAC_ERR_DEVICE, SAC_ERR_MEMORY. */
SAC_API sac_result  sac_session_create(sac_context *ctx, const struct sac_session_params *params,
                                       sac_session **out);
/* Where the work is done: frames made on it are copied nowhere. "cuda:0" has memory that the program cannot write
 * to; frames from its own memory belong to a device "cpu". Borrowed. */
SAC_API sac_device *sac_session_device(const sac_session *s);
/* Loads the models and starts the threads, once.
 * Errors   SAC_ERR_ARG (no detector, started before), those of the models, SAC_ERR_MEMORY. */
SAC_API sac_result  sac_session_start(sac_session *s);
/* The name of a class, or NULL where the model has none. Any thread, once started. */
SAC_API const char *sac_session_class_name(const sac_session *s, int class_id);
/* Takes a reference of its own. Frames of one stream_id come in pts order; each stream has a tracker.
 *
 * frame    on the session's device, or in host memory (a frame of any device "cpu", such as one that wraps the
 *          program's pixels). A session on a GPU copies the latter there before this returns, a frame-upload in
 *          the ledger; one on the CPU reads it where it is. The pixels may change again when the last reference
 *          is gone: see sac_frame_wrap.
 * Errors   SAC_AGAIN when submit_max frames are inside; SAC_ERR_ARG for a frame of another GPU or of another
 *          handle to the same, before start or after end; SAC_ERR_LIMIT for a frame in host memory where
 *          zero-copy is strict on a GPU; SAC_ERR_MEMORY.
 * Threads  any. */
SAC_API sac_result  sac_session_submit(sac_session *s, sac_frame *frame, int64_t id);
/* The next result, in the order of submission; the caller owns it. timeout_ns below 0: wait as long as it
 * takes. A frame that failed is a result too: see its status.
 * Errors   SAC_AGAIN on time-out; SAC_EOS after sac_session_end once all results are out; SAC_ERR_ARG
 *          before start.
 * Threads  any. */
SAC_API sac_result  sac_session_result_wait(sac_session *s, int64_t timeout_ns,
                                            struct sac_session_result *out);
/* No more frames will come. Any thread. */
SAC_API void        sac_session_end(sac_session *s);
/* Any thread, at any time. encoder, frames_total and source are the pipeline's alone. */
SAC_API void        sac_session_get_stats(sac_session *s, struct sac_pipeline_stats *out);
SAC_API void        sac_session_destroy(sac_session **s);

#ifdef __cplusplus
}
#endif
#endif
