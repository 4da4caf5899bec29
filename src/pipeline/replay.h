/* SPDX-License-Identifier: Apache-2.0 */
/* What the disk cache has of an input, and gets from it (params.disk_cache), in three entries:
 * boxes with the frames' numbers and times, embeddings of all of them, and what the camera's motion
 * is made of, whatever objects a tracker leaves out of it (docs/cache.md).
 *
 * The reading thread takes the next record for each item, the task gets boxes and embeddings from
 * it, and where both are there, no network is opened. Where nothing wants pixels either, no video
 * is. What is missing is recorded by the finishing thread, and committed when the input came to its
 * end and each of its frames was recorded.
 *
 *     sac_replay_open     the devices are open, nothing else is: looks both entries up
 *     sac_replay_record   all is open: begins those that are missing
 *     sac_replay_next     reading thread
 *     sac_replay_fill, sac_replay_add     as below
 *     sac_replay_commit   the threads have ended
 */
#ifndef SAC_PIPELINE_REPLAY_H
#define SAC_PIPELINE_REPLAY_H

#include "base/disk_cache.h"
#include "pipeline/job.h"

/* What is known of an input and its boxes beside the frames; as it lies in the file. */
struct sac_replay_about {
    uint32_t               version, bytes; /* of this struct */
    int32_t                class_count;    /* their names follow, each with a zero behind it */
    int32_t                class_kept;
    int32_t                persons; /* 1: all boxes are persons */
    int32_t                padding;
    char                   head[32], kept[256], engine[128];
    struct sac_source_info info;
};

/* A frame; its boxes follow. */
struct sac_replay_frame {
    int64_t  number, pts_us, source_pts_us;
    uint32_t count, still;
};

/* What was seen of the camera's motion in a frame; its corners follow. */
struct sac_replay_motion {
    int32_t shrink, count; /* as in struct sac_camera_corners */
};

struct sac_replay {
    sac_context *ctx;
    sac_cache   *cache;                  /* the pipeline's */
    char        *name;                   /* of the input, for people */
    char        *base, *key;             /* of all, and of the boxes */
    char        *detector;               /* its path */
    sac_cached  *boxes, *looks, *motion; /* NULL: there are none */
    int64_t      frames;                 /* with boxes */
    int          dim;                    /* with looks */
    uint64_t     sum[2];                 /* of the boxes, which the others belong to */

    /* The reading thread's. */
    const uint8_t *at;
    const float   *look_at;
    const uint8_t *motion_at;
    int64_t        taken;

    /* Recording. */
    struct sac_cache_writer boxes_out, looks_out, motion_out;
    struct sac_sum          sum_out;
    bool                    records_looks, records_motion; /* constant once recording began */
    bool                    boxes_kept;                    /* committed */
    int64_t                 recorded;                      /* the finishing thread's */
    float                  *rows;                          /* the same: of a device */
    size_t                  rows_capacity;
    bool                    ended; /* the reading thread's: the input came to its end */
    int64_t                 sent;  /* the same: frames that it passed on */
};

/* The folder of params.disk_cache; NULL where it is off. */
sac_result sac_replay_open_cache(sac_context *ctx, const struct sac_pipeline_params *params,
                                 sac_cache **out);
/* What all keys of an input begin with, the key of its boxes, and that of embeddings by that model
 * of them; released with free.
 * Errors   SAC_ERR_IO, SAC_ERR_FORMAT, SAC_ERR_MEMORY. */
sac_result sac_replay_base(const struct sac_job *job, const struct sac_source_params *source,
                           const char *input, char **out);
sac_result sac_replay_key(const struct sac_job *job, const char *base, char **out);
sac_result sac_replay_looks_key(const struct sac_job *job, const char *boxes, const char *reid,
                                char **out);
/* The same of the camera's motion: it depends on which frames a tracker sees, as the boxes do. */
sac_result sac_replay_motion_key(const struct sac_job *job, const char *boxes, char **out);
/* Of prepared frames, which depend on no model but by what it takes, and of their times. */
sac_result sac_replay_frames_key(const struct sac_job *job, const char *base,
                                 const struct sac_preprocess *pre, char **out);
sac_result sac_replay_times_key(const struct sac_job *job, const char *frames, char **out);
/* Inputs that are no files, such as cameras, get none: *out stays NULL. Reads the whole input once,
 * for its sum.
 * Errors   SAC_ERR_MEMORY, those of sac_models_find. */
sac_result sac_replay_open(sac_cache *cache, const struct sac_job *job,
                           const struct sac_pipeline_params *params, const char *name,
                           struct sac_replay **out);
void       sac_replay_close(struct sac_replay **replay); /* without a commit: nothing is kept */
/* Whether embeddings are wanted that are not there; by replay's boxes or, without them, perhaps. */
bool sac_replay_lacks_looks(const struct sac_replay *replay, const struct sac_job *job);
/* The same of the camera's motion. */
bool sac_replay_lacks_motion(const struct sac_replay *replay, const struct sac_job *job);
const struct sac_replay_about *sac_replay_about(const struct sac_replay *replay);
/* The name of class i. */
const char *sac_replay_class(const struct sac_replay *replay, int i);
/* A cache that can't be written is logged; the run goes on without. */
void sac_replay_record(struct sac_replay *replay, const struct sac_job *job,
                       const struct sac_source_info *info);
/* With boxes: takes the next record for the item, whose frame, if it has one, must be that one.
 * Errors   SAC_EOS; SAC_ERR_FORMAT for a video that gives other frames than it gave before. */
sac_result sac_replay_next(struct sac_replay *replay, struct sac_item *item);
/* The record's boxes into item->found.
 * Errors   SAC_ERR_MEMORY. */
sac_result sac_replay_fill(sac_context *ctx, struct sac_item *item);
/* The finishing thread, in the frames' order. embeddings: [found.count] rows of their owner, whose
 * work is done; NULL: the frame has none. corners: with records_motion. */
struct sac_embeddings;
struct sac_camera_corners;
void sac_replay_add(struct sac_replay *replay, const struct sac_item *item,
                    const struct sac_embeddings *embeddings, const int32_t *row,
                    const struct sac_camera_corners *corners);
void sac_replay_commit(struct sac_replay *replay);

#endif
