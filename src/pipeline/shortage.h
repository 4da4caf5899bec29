/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a batch's frames where the collector (serve/collect.h) tries them again, mostly
 * because memory ran out; where not even one frame fits, the newest stream is refused.
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

/* true: the item's stream was refused, and the item passed on with that fault. */
bool sac_inference_refuses(struct sac_inference *inf, struct sac_item *item);

/* Entries of struct sac_collector_calls; user: the struct sac_inference, items: those lined up. */
sac_result sac_inference_again(void *user, struct sac_batch *b, int first, int n);
void       sac_inference_fail(void *user, int item, sac_result res);
void       sac_inference_sort_out(void *user, struct sac_batch *b, struct sac_pieces *p);
bool       sac_inference_skips(void *user, int item);
bool sac_inference_find_room(void *user, struct sac_batch *b, struct sac_pieces *p, sac_result res);
void sac_inference_eased(void *user);

#endif
