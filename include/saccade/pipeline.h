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
#include <saccade/monitor.h>
#include <saccade/segment.h>
#include <saccade/sink.h>
#include <saccade/stacks.h>
#include <saccade/stats.h>
#include <saccade/track.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the video of a run that segments shows; all but packed ones are of the frames' size. */
enum sac_segment_as {
    SAC_SEGMENT_OVERLAY = 0,  /* the frame, with what the matte covers tinted */
    SAC_SEGMENT_MASK,         /* the matte in 8 bit grey: 255 is a person */
    SAC_SEGMENT_CUTOUT,       /* the people over another background */
    SAC_SEGMENT_ALPHA,        /* the frame, with the matte as its alpha: .webm, .mov or .mkv */
    SAC_SEGMENT_ALPHA_PACKED, /* the frame with its matte inside, as VR players take it (docs/vr.md)
                               */
    SAC_SEGMENT_CLASSES,      /* the frame, each class tinted in a colour of its own */
    SAC_SEGMENT_PNG,  /* no video: video_out is a folder of grey pictures, 000000.png and so on; one
                         that has such pictures already is SAC_ERR_ARG */
    SAC_SEGMENT_COCO, /* no video: video_out is a file of COCO results with run-length masks, of
                         each frame, or of each instance where the network tells them apart */
    SAC_SEGMENT_AS_COUNT
};
SAC_API const char *sac_segment_as_name(enum sac_segment_as as); /* "overlay", ... */

/* What a run that segments is made for. */
enum sac_segment_mode {
    SAC_SEGMENT_THROUGHPUT = 0, /* many frames a second: batches are filled, of one file's frames
                                   too; while a camera's frames leave the device idle, none waits */
    SAC_SEGMENT_VR              /* each frame soon: it is a batch of its own, and no frame is
                                   decoded ahead of those that are waited for */
};

/* For runs that make mattes instead of tracks. */
struct sac_segment_params {
    const char                 *model;     /* as a detector; "auto" (default) or NULL: person_seg */
    struct sac_segmenter_params segmenter; /* batch_max, class_map, stereo and projection follow
                                              from the run */
    enum sac_segment_as as;                /* what video_out gets; default overlay */
    struct sac_colour   colour; /* of an overlay's tint, and of a cutout's background; default
                                   green */
    float strength;             /* of a tint: 0..1, default 0.5 */
    float blur;                 /* above 0: a cutout's background is the frame itself, blurred with
                                   this radius in pixels; default 0 */
    const char *background;     /* or the picture of this file, fitted to the frame; a video is
                                   SAC_ERR_ARG; NULL (default): the colour */
    enum sac_stereo     stereo; /* the network sees each eye by itself; default mono */
    enum sac_projection projection; /* of each eye: what segmenter.facets show, and how
                                       SAC_SEGMENT_ALPHA_PACKED packs; default flat */
    /* Called as on_frame is, with the frame's matte; both are borrowed for the call. NULL
     * (default): not called. */
    int (*on_matte)(void *user, const sac_frame *frame, const sac_frame *matte);
    void                 *on_matte_user;
    enum sac_segment_mode mode; /* default SAC_SEGMENT_THROUGHPUT */
    /* Called on the sink thread, as on_matte is, with what video_out would show, once its pixels
     * are complete on the device; without a video_out too: nothing is encoded then, and the picture
     * has the frame's format. For kinds that have such a picture: overlay, cutout, alpha-packed,
     * classes. Both frames are borrowed for the call. NULL (default): not called.
     * sac_pipeline_stop ends the run from here. */
    void (*on_composite)(void *user, const sac_frame *frame, const sac_frame *composite);
    void *on_composite_user;
    /* 1: the network sees the part of a frame around all people of the stream's latest matte, which
     * are then larger in its input; and all of the frame every region_every frames, while nobody is
     * there, and where they are all over it; default 0 */
    int   region;
    int   region_every;  /* 0..1000000, default 25 */
    float region_margin; /* on each side, as a share of the people's extent; 0..4, default 0.25 */
    /* Two networks: this one, as model above, sees all frames, and its matte is taken where it is
     * sure: where 1 - 2 * the mean distance of its map's cells to 0 or 1, whichever is nearer, is
     * small_confidence at least. The others go to model, which has a stream's memory of its own.
     * With region, this one sees whole frames, and model the part in which it found people: a
     * coarse look, and a fine one where that is needed; both may be the same file.
     * NULL (default): only model */
    float       small_confidence; /* 0..1, default 0.95 */
    const char *small_model;
    uint64_t    reserved[10]; /* 0 */
};
SAC_API struct sac_segment_params sac_segment_params_default(void);

/* The part that both forms share. Strings are copied at creation. */
struct sac_track_job_params {
    const char              *device; /* "auto", "cpu", ... */
    struct sac_device_params device_params;
    /* Each a file, the name of a model that comes with saccade (saccade/models.h), or NULL or
     * "none". "auto", the default: person_det unless detections are read from a file; person_reid
     * where the tracker uses appearance and the detector keeps persons only (a warning is logged
     * when that model is not found). */
    const char                *detector;
    struct sac_detector_params detector_params;
    const char                *reid;
    struct sac_embedder_params reid_params; /* batch_max 0 (default): the device's best */
    struct sac_tracker_params  tracker;
    int                        timeout_ms;          /* wait this long to fill a batch; default 10 */
    int                        inference_batch_max; /* frames in a run of the detector, at most
                                                       detector_params.batch_max; 0 (default):
                                                       the device's best */
    int batches_ahead;        /* batches queued on the device before the host waits for
                                 the first of them: 1 or 2; 0 (default): 2 on a GPU */
    int reid_every;           /* 1: compute embeddings of all detections, also of those
                                 matched by motion only; default 0 */
    int         queue_length; /* bounded queues between stages; default 4 */
    int         timers;       /* 1 (default): time the stages */
    const char *trace_out;    /* Chrome trace (Perfetto opens it): one event per stage and
                                 frame; NULL (default): none. Complete when the run has
                                 ended or the session is destroyed */
    const char *stats_out;    /* the statistics as JSON (docs/stats.schema.json), written at
                                 the same time; NULL (default): none */
    const struct sac_segment_params *segment; /* make mattes of it instead of tracks: detector, reid
                                                 and tracker are not looked at. Copied. NULL
                                                 (default): track */
    /* Above 0: the network does not see a frame whose luma differs by no more than this from that
     * of the last one that it saw: its tracks are predicted, its matte is that of the frame before,
     * moved along. The mean difference as a share of full scale, 0..1 (0.01 is a good one); default
     * 0: it sees all frames, as do networks that carry states from frame to frame, and those of
     * maps of classes */
    float                  skip_still;
    int                    skip_max;      /* so many frames in a row at most; 0..1000, default 8 */
    enum sac_batch_padding batch_padding; /* default SAC_BATCH_PADDING_AUTO */
    /* From this many frames on a batch begins as soon as the device has nothing to do, without the
     * wait of timeout_ms for more; while it is busy, batches fill. 1: no frame waits for another.
     * 0 (default): a full batch, and 1 where inputs are live */
    int64_t inference_batch_min;
    /* Watch the run while it runs, and log what is unusual (saccade/monitor.h); with stats_out the
     * history is in the statistics. Copied. NULL (default): not watched */
    const struct sac_monitor_params *monitor;
    /* 1: at SAC_LOG_DEBUG, log how long each stage of each frame took; at other levels it costs
     * nothing. Default 0. */
    int frame_times;
    /* Where memory ran out and batches became smaller: they grow again while less than this share
     * of the device's memory is in use; 0 (default): 0.85, at most 1. */
    float memory_target;
    /* Streams of a GPU that pictures are made into the network's input on. 1: the network's own,
     * one batch after the other. 2: that of the next batch is made, and the results of the last one
     * are read, on streams beside it, for which the network's inputs and outputs are there twice. 0
     * (default): 2 for mattes, 1 for boxes. Always 1 on the CPU, of networks that carry states, and
     * where batches are one launch (SAC_SEGMENT_VR). Results are the same. */
    int preprocess_streams;
    /* Threads that follow the camera on the CPU, for frames of several streams side by side: most
     * of the time of tracking there. Tracks and their ids are the same. 0 or 1: one thread
     * (default); at most 64. Always 1 on a GPU, which does it itself; runs that segment have none.
     */
    int postprocess_threads;
    /* A sampler that was started (saccade/stacks.h): the run stops it when it ends, and the
     * statistics have what it found. Borrowed until then; NULL (default): none. */
    sac_stacks *stacks;
    uint64_t    reserved[8]; /* 0 */
};

/* Bits. AUTO: the id, and the class where more than one class is kept. A class without a name is
 * left out. */
enum { SAC_LABEL_ID = 1, SAC_LABEL_CLASS = 2, SAC_LABEL_SCORE = 4, SAC_LABEL_AUTO = 8 };
/* "auto", "none", or a list as "id,class,score".
 * Errors   SAC_ERR_ARG. */
SAC_API sac_result sac_labels_parse(const char *text, unsigned *out);

/* One input among several, with its outputs; the fields are those of sac_pipeline_params. */
struct sac_stream_params {
    const char *input, *detections;
    const char *video_out, *jsonl_out, *mot_out, *csv_out, *kitti_out, *coco_out, *crops_out;
    uint64_t    reserved[8]; /* 0 */
};

struct sac_pipeline_params {
    struct sac_track_job_params job;
    /* Several inputs in one run: input, detections and the outputs below are then ignored, and
     * source.stream_id counts from 0. Either all or none have detections. An input that fails, even
     * when it is opened, does not stop the others: its error is logged, and run returns it at the
     * end. */
    const struct sac_stream_params *streams;
    int                             stream_count; /* 0 (default): the one input below */
    /* Several devices, each named as in job.device: the streams are assigned to them in turn. A
     * device without a stream is not opened, and that is logged. */
    const char *const       *devices;
    int                      device_count; /* 0 (default): only job.device */
    const char              *input;        /* NULL only with detections, and without reid */
    struct sac_source_params source;
    const char *detections; /* MOTChallenge detections instead of a detector, or NULL */
    /* Frames per second of detections without a video; 0 (default): read from seqinfo.ini beside
     * them, else an error. For images use source.fps. For a video it is ignored, and that is
     * logged. */
    double fps;
    int    realtime;       /* 1: frames of a file are delivered at their own rate, as from a
                              camera; default 0 */
    const char *video_out; /* NULL, for each output: not written */
    const char *jsonl_out; /* "-" is standard output, here and in the next four */
    const char *mot_out;   /* docs/formats.md describes these formats */
    const char *csv_out;
    const char *kitti_out; /* tracking labels */
    const char *coco_out;  /* results, a JSON array */
    /* A folder, created when it is missing: CLASS/ID.jpg is the best view of each object (large,
     * with a high score, not covered by others). Needs a video. On a GPU the crops are copied to
     * the host, which fails in strict mode. */
    const char *crops_out;
    int clip_boxes; /* 1 (default): in files, boxes are cut to the frame and those outside it
                       are left out; 0: the tracker's boxes, which may reach past it */
    struct sac_sink_params sink;
    unsigned               labels;  /* text beside a box: SAC_LABEL_... bits, 0: none; default
                                       SAC_LABEL_AUTO */
    int                draw_trails; /* 1 (default) */
    float              trail_s;     /* length of a trail; default 2 */
    const char        *command;     /* for the header line of the JSON lines, or NULL */
    const char *const *reads; /* [read_count] other files that the program has read, such as its
                                 configuration: no output may overwrite them. Used by create only;
                                 NULL among them: none */
    int read_count;           /* default 0 */
    /* Called on the sink thread for each frame, in order, before anything is drawn; may be NULL.
     * Each input has its own sink thread; only one of them calls at a time. frame is NULL without a
     * video. frame and tracks are borrowed for the call. Returning non-zero stops the run, as
     * sac_pipeline_stop does. */
    int (*on_frame)(void *user, const sac_frame *frame, const struct sac_track *tracks, size_t n);
    void *on_frame_user;
    /* Keep the boxes, embeddings and camera motion of each input that is a video's file on disk,
     * and take them from there when the same video is tracked again with the same networks: these
     * are then not run, and trackers and their parameters can be tried at the cost of the tracking
     * alone. The video is decoded only where pixels are needed: for an annotated video, crops, or
     * what is not kept; else on_frame gets no frame. docs/cache.md has what an entry depends on.
     * A folder; "auto": SACCADE_CACHE, else the user's cache folder; NULL (default) or "off": none.
     * Runs that segment have none. */
    const char *disk_cache;
    uint64_t    disk_cache_bytes; /* bound of all such entries of the folder; 0 (default): 10 GiB */
    const char *const *writes; /* [write_count] other files that the program will write, such as a
                                  report: no run begins that reads or writes one of them. Used by
                                  create only; NULL among them: none */
    int write_count;           /* default 0 */
    /* 1: with a disk_cache, keep there what the detector's network takes of each frame, too, and
     * give it to another detector that takes the same, or to this one with other thresholds or in
     * another precision: the video is then not decoded, and on_frame gets no frame. Some megabytes
     * a frame. Only for runs in which nothing else wants pixels, and on the CPU. 0 (default) */
    int      disk_cache_frames;
    uint64_t reserved[12]; /* 0 */
};
SAC_API struct sac_pipeline_params sac_pipeline_params_default(void);

/* Check that no output of such a run would overwrite another output or a file that the run reads
 * (inputs, each picture of a folder, detections, models, heads, `reads`). sac_pipeline_create makes
 * the same check; this function opens no files. saccade/files.h describes how files are compared.
 * Any thread.
 * Errors   SAC_ERR_ARG, SAC_ERR_MEMORY. */
SAC_API sac_result sac_pipeline_check_files(sac_context                      *ctx,
                                            const struct sac_pipeline_params *params);

typedef struct sac_pipeline sac_pipeline;
/* Open inputs, models and outputs; nothing runs yet. Output files are written under a new temporary
 * name (NAME.XXXXXXXX.part in the same folder) and renamed when they are complete. When two runs
 * write the same output, the last one to finish replaces the other's file.
 * Errors   SAC_ERR_ARG (no input, no detector, a bad option, an output that would overwrite a file
 *          of the run), SAC_ERR_IO, SAC_ERR_FORMAT or SAC_ERR_UNSUPPORTED for a file,
 *          SAC_ERR_DEVICE, SAC_ERR_MEMORY. The temporary files are then removed. */
SAC_API sac_result sac_pipeline_create(sac_context *ctx, const struct sac_pipeline_params *params,
                                       sac_pipeline **out);
/* Run until the input ends; call it once. When the run is stopped or the input fails midway, the
 * outputs are finished and hold all frames up to that point. An input that gave no frame gets no
 * outputs, and that is logged: files of an earlier run stay unchanged. Trace and statistics are
 * always written.
 * Errors   SAC_ERR_CANCELLED after sac_pipeline_stop; SAC_ERR_ARG for a second run; those of
 *          sources, sinks, models and the device. */
SAC_API sac_result sac_pipeline_run(sac_pipeline *pipe);
/* Ask a run to end soon: it finishes the frames that are already read, then the outputs. Called
 * before a run, it makes that run end immediately. Any thread; async-signal-safe. */
SAC_API void sac_pipeline_stop(sac_pipeline *pipe);
/* Any thread, also during a run. */
SAC_API void sac_pipeline_get_stats(sac_pipeline *pipe, struct sac_pipeline_stats *out);
/* Of one input; 0 <= stream < the number of inputs. Any thread, also during a run. */
SAC_API void sac_pipeline_get_stream_stats(sac_pipeline *pipe, int stream,
                                           struct sac_stream_stats *out);
/* As sac_device_get_allocations, of all devices of the run, each with its stage. Any thread, also
 * during a run. */
SAC_API int sac_pipeline_get_allocations(const sac_pipeline *pipe, struct sac_allocation *out,
                                         int max);
/* The name of a class, or NULL where the model has none. Any thread. */
SAC_API const char *sac_pipeline_class_name(const sac_pipeline *pipe, int class_id);
/* Call fn with one line per live buffer of the device (owner, bytes, shape, age). Any thread, also
 * during a run. */
SAC_API void sac_pipeline_dump_live(const sac_pipeline *pipe,
                                    void (*fn)(void *user, const char *line), void *user);
/* What job.monitor watches, borrowed; NULL: nothing, or sac_pipeline_run was not called yet. */
SAC_API sac_monitor *sac_pipeline_monitor(sac_pipeline *pipe);
SAC_API void         sac_pipeline_destroy(sac_pipeline **pipe);

/* ---- push ---- */

struct sac_session_params {
    struct sac_track_job_params job;
    int                         submit_max;  /* frames inside at once; default 8 */
    uint64_t                    reserved[8]; /* 0 */
};
SAC_API struct sac_session_params sac_session_params_default(void);

/* One frame, tracked or segmented. */
struct sac_session_result {
    int64_t    id; /* as submitted */
    int64_t    pts_us;
    int        stream_id;
    sac_frame *frame;         /* the one that was submitted: a reference, released by
                                 sac_session_result_finish */
    struct sac_track *tracks; /* [count], owned by the result */
    size_t            count;
    /* total is the time from submit to result. preprocess, inference and head are the times of the
     * frame's whole batch; queue is the rest, when the frame waited for earlier ones. */
    double     queue_ms, preprocess_ms, inference_ms, head_ms, reid_ms, tracking_ms, total_ms;
    sac_result status;      /* of this frame; other frames are not affected */
    sac_frame *matte;       /* with job.segment: the frame's matte, a reference; else NULL */
    uint64_t   reserved[7]; /* 0 */
};
/* Releases frame and matte and frees the tracks. */
SAC_API void sac_session_result_finish(struct sac_session_result *result);

typedef struct sac_session sac_session;
/* Open the device and find the models; sac_session_start loads them.
 * Errors   SAC_ERR_ARG, SAC_ERR_IO (a model is not found), SAC_ERR_DEVICE, SAC_ERR_MEMORY. */
SAC_API sac_result sac_session_create(sac_context *ctx, const struct sac_session_params *params,
                                      sac_session **out);
/* The device that does the work, borrowed. Frames created on it are not copied. The program cannot
 * write to the memory of a "cuda:0"; wrap its own memory as frames of a device "cpu". Any
 * thread. */
SAC_API sac_device *sac_session_device(const sac_session *s);
/* Load the models and start the threads; call it once.
 * Errors   SAC_ERR_ARG (no detector, already started), those of the models, SAC_ERR_MEMORY. */
SAC_API sac_result sac_session_start(sac_session *s);
/* The name of a class, or NULL where the model has none. Any thread, once started. */
SAC_API const char *sac_session_class_name(const sac_session *s, int class_id);
/* Submit a frame; the session takes its own reference. Frames of one stream_id must come in pts
 * order; each stream has its own tracker.
 *
 * frame    on the session's device, or in host memory (a frame of any device "cpu", such as one
 *          that wraps the program's pixels). A session on a GPU uploads a frame in host memory
 *          before this function returns, and counts a frame-upload; one on the CPU reads it in
 *          place. Do not change the pixels before the last reference is gone: see sac_frame_wrap.
 * Errors   SAC_AGAIN when submit_max frames are inside; SAC_ERR_ARG for a frame of another GPU or
 *          of another handle to the same GPU, before start or after end; SAC_ERR_COPY for a frame
 *          in host memory on a GPU in strict mode; SAC_ERR_MEMORY.
 * Threads  any. */
SAC_API sac_result sac_session_submit(sac_session *s, sac_frame *frame, int64_t id);
/* Wait for the next result, in the order of submission; the caller owns it. A negative timeout_ns
 * waits without a limit. A frame that failed gives a result too: see its status.
 * Errors   SAC_AGAIN on time-out; SAC_EOS after sac_session_end when all results have been taken;
 *          SAC_ERR_ARG before start.
 * Threads  any. */
SAC_API sac_result sac_session_result_wait(sac_session *s, int64_t timeout_ns,
                                           struct sac_session_result *out);
/* No more frames will come. Any thread. */
SAC_API void sac_session_end(sac_session *s);
/* Any thread, at any time. Only a pipeline fills encoder, frames_total and source. */
SAC_API void sac_session_get_stats(sac_session *s, struct sac_pipeline_stats *out);
/* What job.monitor watches, borrowed; NULL: nothing, or the session has not started. */
SAC_API sac_monitor *sac_session_monitor(sac_session *s);
SAC_API void         sac_session_destroy(sac_session **s);

#ifdef __cplusplus
}
#endif
#endif
