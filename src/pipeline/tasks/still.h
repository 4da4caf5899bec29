/* SPDX-License-Identifier: Apache-2.0 */
/* Still frames (params.skip_still): a frame that hardly differs from the last one of its stream
 * that the network saw needs no look of its own. Each frame is compared with that one, not with the
 * frame before, so that slow changes add up; and of each row of still frames only skip_max are left
 * out.
 *
 *     res = sac_still_decide(still, items, n);   // then: item->still
 *
 * What a task makes of a still frame is its own: tracks are predicted, a matte is moved along. */
#ifndef SAC_PIPELINE_TASKS_STILL_H
#define SAC_PIPELINE_TASKS_STILL_H

#include "pipeline/job.h"

struct sac_still;
/* *out stays NULL where params.skip_still is off; the functions below then do nothing.
 * Errors   SAC_ERR_UNSUPPORTED where the device compares no frames; SAC_ERR_MEMORY. */
sac_result sac_still_create(struct sac_job *job, struct sac_still **out);
void       sac_still_destroy(struct sac_still **still);
/* Sets `still` and `decided` of items that have frames; of each once, so that parts of a batch may
 * come again. On a device of its own it waits for the comparisons, some ten microseconds. On
 * failure nothing was decided. One thread.
 * Errors   SAC_ERR_MEMORY, SAC_ERR_LIMIT; SAC_ERR_DEVICE. */
sac_result sac_still_decide(struct sac_still *still, struct sac_item *const *items, int n);
/* The stream has ended. Any thread. */
void sac_still_forget(struct sac_still *still, int stream_id);

#endif
