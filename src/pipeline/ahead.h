/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by ahead.c and ahead_embed.c: see ahead.c. */
#ifndef SAC_PIPELINE_AHEAD_H
#define SAC_PIPELINE_AHEAD_H

#include "heads/detector.h"
#include "pipeline/job.h"

struct sac_ahead_batch {
    struct sac_item **items; /* frames, and ends of lanes between them */
    size_t            count, capacity;
    int               frames;
    int               slot;  /* of the detector; -1: none */
    sac_result        begun; /* the result of starting it */
};

struct sac_ahead {
    struct sac_job        *job;
    struct sac_ahead_batch ring[SAC_DETECTOR_SLOTS + 1];
    int                    first, under_way; /* the oldest batch, and the number of batches */
    unsigned               turn;
    /* The items of a batch that have frames, without the lane ends between them. */
    struct sac_item **seen;
    size_t            seen_capacity;
    /* All crops of a batch. */
    struct sac_detection *crops;
    sac_frame           **crop_frames;
    size_t                crops_capacity, crop_frames_capacity;
    /* Out of memory. */
    int     limit; /* frames in a batch */
    int64_t grow_ns, small_ns;
    int     refused_from; /* streams from this number on found no memory; INT_MAX: none */
};

/* List a batch's items with frames in a->seen and their frames in job->frames; their detection
 * lists move to job->found meanwhile. Returns how many. */
int sac_ahead_line_up(struct sac_ahead *a, const struct sac_ahead_batch *b);
/* ahead_embed.c: queue the embeddings of a batch whose boxes have arrived. A frame whose crops fail
 * does not make the other frames fail. */
void sac_ahead_embed(struct sac_ahead *a, struct sac_ahead_batch *b);

#endif
