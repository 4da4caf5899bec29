/* SPDX-License-Identifier: Apache-2.0 */
/* The task "track": detect, re-identify, track.
 *
 *   track.c           the row: a batch's boxes, and the embeddings of those that are matched by
 *                     appearance
 *   track_models.c    which networks there are; opens, warms up and describes them
 *   track_trackers.c  one tracker a stream, driven in waves
 *
 * The networks belong to the inference thread, which alone may call them, because libraries below
 * keep state per calling thread (oneDNN's OpenMP workers). The trackers belong to whoever opens
 * streams, and once items come to the finishing thread. */
#ifndef SAC_PIPELINE_TASKS_TRACK_H
#define SAC_PIPELINE_TASKS_TRACK_H

#include "heads/detector.h"
#include "pipeline/books.h"
#include "pipeline/task.h"
#include "reid/embedder.h"
#include "track/wave.h"

_Static_assert((int)SAC_TASK_SLOTS <= (int)SAC_DETECTOR_SLOTS,
               "each slot of the task is one of its detector");

struct sac_stream_tracker {
    int          stream_id;
    sac_tracker *trk;
    int64_t      track_id_max; /* ids only rise, so a greater one is a new identity */
};

struct sac_track_run {
    struct sac_task_run base;

    /* Written by open, constant from then on. */
    sac_detector *det; /* NULL: the boxes are those of the lanes' rows, or of the disk cache */
    sac_embedder *emb;
    char          head[32];
    bool          reid_auto;     /* params.reid is chosen once the detector is known; by prepare */
    bool          embeds;        /* embeddings are wanted, by the tracker or by params.reid_every */
    bool          by_appearance; /* the tracker matches by appearance */
    int           streams;       /* of the detector's buckets; 0: there are none */
    char          engine[128];
    char          kept[256]; /* the classes that are kept (params.classes), as text for the log */

    /* The inference thread's: a batch's frames and lists; the crops of one. */
    sac_frame            **frames; /* [batch_max of the job] */
    struct sac_detections *found;  /* the same */
    struct sac_item      **seen;   /* the same: those of them that the detector sees */
    struct sac_kept_image *images; /* the same: of those, what the disk cache has */
    int                    seen_count[SAC_TASK_SLOTS];
    struct sac_still      *still; /* NULL: all are seen */
    struct sac_detection  *crops;
    sac_frame            **crop_frames;
    size_t                 crops_capacity, crop_frames_capacity;

    /* The trackers'. */
    struct sac_stream_tracker *trackers;
    size_t                     tracker_count, tracker_capacity;
    struct sac_wave           *wave;
    struct sac_worker_pool    *helpers;  /* NULL: the finishing thread works alone */
    atomic_int_fast64_t        together; /* the most members of a wave so far */
};

/* item->own: the rows of its detections among the embeddings of its batch. */
struct sac_track_own {
    struct sac_embeddings *embeddings; /* a reference; NULL: the item has none */
    int32_t               *row;        /* [found.count] if embeddings is set; -1: no embedding */
    size_t                 row_capacity;
};

/* track_models.c */
sac_result sac_track_prepare(struct sac_task_run *run);
sac_result sac_track_open(struct sac_task_run *run);
void       sac_track_close(struct sac_task_run *run);
void       sac_track_describe(const struct sac_task_run *run, struct sac_pipeline_stats *out);
void       sac_track_add_files(const struct sac_task_run *run, struct sac_files *files);

/* track_trackers.c */
/* Creates one tracker now, to check its parameters and whether it uses appearance, and what waves
 * need on the device. */
sac_result sac_track_open_trackers(struct sac_track_run *t);
sac_result sac_track_expect(struct sac_task_run *run, int stream_id, int width, int height);
void       sac_track_finish(struct sac_task_run *run, struct sac_item *const *items, int n);
void       sac_track_rest(struct sac_task_run *run);
void       sac_track_forget(struct sac_task_run *run, int stream_id);
void       sac_track_release(struct sac_task_run *run);

#endif
