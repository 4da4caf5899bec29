/* SPDX-License-Identifier: Apache-2.0 */
/* Tracking: detections of one stream in, identities over time out.
 *
 *     sac_tracker          *trk = NULL;
 *     struct sac_track_view view;
 *     sac_result            res = sac_tracker_create(ctx, NULL, &trk);
 *     ...                                    // for each frame, with the boxes of head.h:
 *     res = sac_tracker_update(trk, found.items, found.count, NULL, frame, frame->pts_us, &view);
 *     ...                                    // view.tracks[0..view.count), each with its id
 *     sac_tracker_destroy(&trk);
 *
 * A track is tentative until it has been seen for confirm_s, then confirmed. While no detection
 * matches it, it is lost: it is found again, or dropped after lost_max_s. A pipeline or a session
 * (saccade/pipeline.h) has its trackers itself. */
#ifndef SACCADE_TRACK_H
#define SACCADE_TRACK_H

#include <saccade/frame.h>
#include <saccade/head.h>
#include <saccade/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The trackers; docs/models.md compares them. */
enum sac_tracker_kind {
    SAC_TRACKER_SORT = 0,
    SAC_TRACKER_BYTETRACK,
    SAC_TRACKER_OCSORT,
    SAC_TRACKER_BOTSORT
};
SAC_API const char *sac_tracker_kind_name(enum sac_tracker_kind kind); /* "bytetrack" */
/* Errors   SAC_ERR_ARG for an unknown name; no sentence is kept. */
SAC_API sac_result sac_tracker_kind_parse(const char *name, enum sac_tracker_kind *out);
/* 1 when trackers of this kind use appearance, given embeddings. */
SAC_API int sac_tracker_kind_uses_appearance(enum sac_tracker_kind kind);

/* Call fn with the name and description of each kind, in the order of the enum. Any thread. */
SAC_API void sac_tracker_list(void (*fn)(void *user, const char *name, const char *what),
                              void *user);

/* Times are in seconds of video, so the frame rate and dropped frames do not matter. Defaults apply
 * to all kinds unless one is named. */
struct sac_tracker_params {
    enum sac_tracker_kind kind;       /* default SAC_TRACKER_BOTSORT */
    float                 score_high; /* detections from here on are matched first; default 0.6 */
    float score_low; /* detections between low and high are matched in a later round; default 0.15
                      */
    float score_new; /* a detection from here on starts a new track; default 0.7 */
    float match_iou; /* least overlap of a pair in the first round, after both boxes are enlarged by
                        the filter's uncertainty; where scores count, multiplied by the score;
                        default 0.2; SORT and OC-SORT 0.3 */
    float lost_max_s; /* a track is kept this long after its last detection of score_high or more;
                         default 2.5; SORT 1 */
    float confirm_s;  /* a track is confirmed when it was seen for this long, with two detections at
                         least (in a stream's first frame immediately); default 0.03 */
    float reid_distance_max; /* a pair with a larger cosine distance is not matched by appearance;
                                default 0.15 */
    int embedding_dim;       /* 0 (default): motion only */
    int gallery_max;         /* embeddings kept per track; 1 (default): one running average */
    int camera_motion; /* 1 (default): compensate, when the tracker gets frames; BoT-SORT only */
    int track_max; /* live and lost tracks together; the oldest lost ones are removed first; default
                      1000. Of more detections than this in one frame only the first count */
    int      stream_id;   /* for the caller; ids of all trackers of a context differ anyway */
    uint64_t reserved[8]; /* 0 */
};
/* The defaults of one kind of tracker. */
SAC_API struct sac_tracker_params sac_tracker_params_default(enum sac_tracker_kind kind);

/* Callers see confirmed tracks only. */
enum sac_track_state { SAC_TRACK_TENTATIVE = 0, SAC_TRACK_CONFIRMED, SAC_TRACK_LOST };
/* An object that is followed, as of one frame. */
struct sac_track {
    int64_t              id; /* 1, 2, 3, ... */
    float                x0, y0, x1, y1;
    float                score;
    int                  class_id;
    enum sac_track_state state;
    float                vx, vy;            /* pixels per second */
    int64_t              first_us, last_us; /* first and latest detection */
    int                  detection;         /* index into this frame's detections, or -1 */
};
/* Owned by the tracker, valid until its next call. */
struct sac_track_view {
    const struct sac_track *tracks; /* those seen in this frame and confirmed */
    size_t                  count;
};

typedef struct sac_tracker sac_tracker;
/* params   NULL: the defaults of SAC_TRACKER_BOTSORT.
 * out      owned by the caller, destroyed with sac_tracker_destroy.
 * Errors   SAC_ERR_ARG for an unknown kind or a parameter out of range; SAC_ERR_MEMORY. */
SAC_API sac_result sac_tracker_create(sac_context *ctx, const struct sac_tracker_params *params,
                                      sac_tracker **out);
SAC_API void       sac_tracker_destroy(sac_tracker **trk);

/* Pair this frame's detections with live tracks.
 *
 * det      [n] boxes in frame pixels, score in 0..1; borrowed for the call. Boxes that are empty or
 *          not finite are ignored.
 * embeddings [n,dim] float32 rows of length 1, host memory, dim as in the params; or NULL to match
 *          on motion only. A row of zeros: no embedding (detections under score_high need none).
 * frame    for camera motion; NULL: it is not estimated.
 * pts_us   frame time; must not step back.
 * out      view of the tracks.
 * Threads  one tracker, one thread at a time; different trackers are independent.
 * Errors   SAC_ERR_ARG when pts_us steps back; SAC_ERR_MEMORY. The tracks are then unchanged. */
SAC_API sac_result sac_tracker_update(sac_tracker *trk, const struct sac_detection *det, size_t n,
                                      const float *embeddings, const sac_frame *frame,
                                      int64_t pts_us, struct sac_track_view *out);
/* The same with embeddings in a tensor, which are not copied to the host.
 *
 * embeddings [rows,dim] float32 on any device, each row of length 1; or NULL. On a GPU these
 *          and the tracks' galleries stay there; only distances are copied to the host. The tracker
 *          holds a reference until its next call with embeddings. Work that fills the tensor must
 *          be done, or queued on the device's own stream, as all of this library's work is.
 * row      [n] the row of each detection, -1 where it has none; NULL: row i belongs to detection i.
 * frame    on any device; a frame on a GPU is processed there.
 * Errors   as above; SAC_ERR_ARG also for a tensor of another shape, a row that does not exist, and
 *          embeddings on another device than the first ones, where the galleries are;
 *          SAC_ERR_DEVICE: the galleries of all tracks and the camera motion then start again from
 *          nothing. */
SAC_API sac_result sac_tracker_update_tensor(sac_tracker *trk, const struct sac_detection *det,
                                             size_t n, sac_tensor *embeddings, const int32_t *row,
                                             const sac_frame *frame, int64_t pts_us,
                                             struct sac_track_view *out);
/* 1 when the tracker would use embeddings of these detections (BoT-SORT with a dim). */
SAC_API int sac_tracker_wants_embeddings(const sac_tracker *trk);

/* ---- MOTChallenge files ---- */

/* A line of a file. */
struct sac_mot_row {
    int    frame;      /* from 1 */
    int    id;         /* -1 in detection files */
    double x, y, w, h; /* as written: evaluation must not depend on rounding to float */
    float  conf;
    int    class_id;  /* 8th column, cut to a whole number; -1 when it is missing, and for
                         MOT15's ten columns, whose last three are world coordinates */
    float visibility; /* 9th column; 1 when it is missing */
};
/* A file of boxes. */
struct sac_mot_file {
    struct sac_mot_row *rows; /* sorted by frame, then as in the file */
    size_t              count;
    int                 frame_max;
};
/* Read a MOTChallenge file. Fields are separated by commas or blanks; the first six are required, a
 * missing conf is 1. Numbers must be finite; sizes may have any value.
 *
 * out      released with sac_mot_finish.
 * Threads  any.
 * Errors   SAC_ERR_IO; SAC_ERR_FORMAT with file and line; SAC_ERR_MEMORY. */
SAC_API sac_result sac_mot_read(sac_context *ctx, const char *path, struct sac_mot_file *out);
SAC_API void       sac_mot_finish(struct sac_mot_file *file);
/* The contents of seqinfo.ini. Missing fields are 0 or empty. */
struct sac_mot_seqinfo {
    char     name[128];
    double   fps;
    int      length, width, height;
    uint64_t reserved[4]; /* 0 */
};
/* Errors   SAC_ERR_IO, SAC_ERR_FORMAT, SAC_ERR_MEMORY. Any thread. */
SAC_API sac_result sac_mot_read_seqinfo(sac_context *ctx, const char *path,
                                        struct sac_mot_seqinfo *out);

#ifdef __cplusplus
}
#endif
#endif
