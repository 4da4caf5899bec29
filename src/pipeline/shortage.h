/* SPDX-License-Identifier: Apache-2.0 */
/* A batch that failed, mostly because memory ran out: it is tried again in smaller pieces, batches
 * stay small for a while, and where not even one frame fits, the newest stream is refused.
 *
 * A refused stream gives its memory back when its sink has seen the fault and its reader has closed
 * the decoder; until then, and no longer than a few seconds, the frame that found no memory is
 * tried again, and no other stream is refused. */
#ifndef SAC_PIPELINE_SHORTAGE_H
#define SAC_PIPELINE_SHORTAGE_H

#include "pipeline/inference.h"

/* List the items of a batch that have a frame and no fault in inf->lined; returns how many. */
int sac_inference_line_up(struct sac_inference *inf, const struct sac_batch *b);
/* The task's begin, where it has one. */
sac_result sac_inference_begin(struct sac_inference *inf, int slot, struct sac_item *const *items,
                               int n);
void       sac_inference_pass_on(struct sac_inference *inf, struct sac_item *item);

/* The n items lined up, batch b, failed with res: afterwards each is done, or has its fault, or was
 * passed on with it. */
void sac_inference_retry(struct sac_inference *inf, struct sac_batch *b, int n, sac_result res);
/* true: the item's stream was refused, and the item passed on with that fault. */
bool sac_inference_refuses(struct sac_inference *inf, struct sac_item *item);
/* Try larger batches again once they have been small for long enough. */
void sac_inference_grow(struct sac_inference *inf);

#endif
