/* SPDX-License-Identifier: Apache-2.0 */
/* The task "segment": a matte for each frame. The network belongs to the inference thread. */
#ifndef SAC_PIPELINE_TASKS_SEGMENT_H
#define SAC_PIPELINE_TASKS_SEGMENT_H

#include <stdatomic.h>

#include "heads/segmenter.h"
#include "pipeline/books.h"
#include "pipeline/job.h"
#include "pipeline/task.h"
#include "vision/composite.h"

struct sac_early;
struct sac_region;
struct sac_still;

struct sac_segment_run {
    struct sac_task_run base;

    /* Written by open, constant from then on. */
    sac_segmenter *seg, *small; /* small: NULL, or it sees all frames first */
    char           head[32], engine[128];
    char           kept[256]; /* the classes that are the matte, as text */

    /* The inference thread's: what is asked for a batch's frames, and their mattes, [batch_max of
     * the job]. */
    struct sac_segmenter_ask     *asks;
    sac_frame                   **mattes;
    struct sac_segmenter_summary *came_to;
    struct sac_segmenter_found   *found; /* where instances are shown */
    size_t                        room;  /* of these arrays */
    struct sac_item             **again; /* those that the large network sees too */
    /* Techniques; NULL where they are off. */
    struct sac_still         *still;
    struct sac_region        *region;
    struct sac_early         *early;
    struct sac_composite_job *composites; /* [room], of the asks; NULL: none are made here */

    int streams; /* of the network's buckets; written by open */

    atomic_bool composes; /* composites are wanted with the mattes: sac_segment_compose_early */

    /* Streams that have ended, whose states the inference thread has yet to free. */
    pthread_mutex_t ended_lock;  /* guards the three below */
    bool            ended_ready; /* the lock was made */
    int            *ended;
    size_t          ended_count, ended_capacity;
};

/* item->own */
struct sac_segment_own {
    sac_frame                 *matte;    /* a reference */
    sac_frame                 *composed; /* the same, and as complete; NULL: nothing is yet */
    struct sac_segmenter_found found;
    bool                       placed; /* region is chosen */
    struct sac_rect            region; /* what the network sees; empty: all */
};

/* The matte of a frame that passed the task without a fault. */
static inline sac_frame *sac_segment_matte(const struct sac_item *item)
{
    return item->own ? ((const struct sac_segment_own *)item->own)->matte : NULL;
}

/* Its composite, where that is made with the matte. */
static inline sac_frame *sac_segment_composed(const struct sac_item *item)
{
    return item->own ? ((const struct sac_segment_own *)item->own)->composed : NULL;
}

/* Whether this kind shows a picture that is composed. */
static inline bool sac_segment_composes(enum sac_segment_as as)
{
    return as == SAC_SEGMENT_OVERLAY || as == SAC_SEGMENT_CUTOUT || as == SAC_SEGMENT_CLASSES ||
           as == SAC_SEGMENT_ALPHA_PACKED;
}

/* What frames and mattes become, without these and a background's pixels. */
struct sac_composite_job sac_segment_composite_of(const struct sac_segment_params *params);
/* Somebody takes composites in the frames' own format, who does not wait for a sheet to draw on:
 * from now on they are made with the mattes, where a batch is one launch and they need nothing
 * else. Any thread. */
void sac_segment_compose_early(struct sac_job *job);

/* Its instances, where the segmenter shows them. */
static inline const struct sac_segmenter_found *sac_segment_found(const struct sac_item *item)
{
    return item->own ? &((const struct sac_segment_own *)item->own)->found : NULL;
}

#endif
