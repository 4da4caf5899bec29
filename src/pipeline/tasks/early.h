/* SPDX-License-Identifier: Apache-2.0 */
/* Two networks (segment.small_model): the small one sees all frames, and where it is sure its
 * answer is taken; the others go to the large one. Each has states of streams of its own.
 *
 *     res = sac_segmenter_begin(small, slot, asks, n);
 *     res = sac_segmenter_end(small, slot, mattes, came_to, NULL, &times);
 *     res = sac_early_look_again(early, large, slot, asks, n, mattes, came_to, &again);
 *
 * How sure it is: 1 less twice the mean distance of the map's cells to what is certain, 0 or 1. It
 * is 1 where all cells are certain, and 0 where all are a half. The inference thread's. */
#ifndef SAC_PIPELINE_TASKS_EARLY_H
#define SAC_PIPELINE_TASKS_EARLY_H

#include "heads/segmenter.h"

struct sac_early;
sac_result sac_early_create(sac_context *ctx, int batch_max, float confidence,
                            struct sac_early **out);
void       sac_early_destroy(struct sac_early **early);
bool       sac_early_is_sure(const struct sac_early *early, const struct sac_segmenter_summary *s);
/* The large network's answer in place of those that the small one is not sure of. again: when it
 * did what, for `sac_early_count` frames; all 0 for none. After a fault nothing has changed. */
sac_result sac_early_look_again(struct sac_early *early, sac_segmenter *large, int slot,
                                const struct sac_segmenter_ask *asks, int n, sac_frame **mattes,
                                struct sac_segmenter_summary *came_to,
                                struct sac_batch_times       *again);
/* Of the latest call: how many frames the large one was asked for, and which. */
int sac_early_count(const struct sac_early *early);
int sac_early_index(const struct sac_early *early, int i);

#endif
