/* SPDX-License-Identifier: Apache-2.0 */
/* Where the network looks (segment.region): at the part of the frame around the people of the
 * stream's latest matte, and at all of it every region_every frames and while nobody is there.
 *
 *     rect = sac_region_choose(region, item);                       // in the order of the frames
 *     sac_region_learn(region, item, rect, summary.found);          // once its matte is there
 *
 * A new region begins the stream's mattes anew, so one stays as long as it fits. It has the frame's
 * shape, as networks see people undistorted there. The inference thread's. */
#ifndef SAC_PIPELINE_TASKS_REGION_H
#define SAC_PIPELINE_TASKS_REGION_H

#include "pipeline/job.h"

struct sac_region;
/* *out stays NULL where segment.region is off; the functions below then choose whole frames.
 * Errors   SAC_ERR_MEMORY. */
sac_result sac_region_create(struct sac_job *job, struct sac_region **out);
void       sac_region_destroy(struct sac_region **region);
/* Pixels of the item's frame; empty: all of it. A still frame's is that of the one before. */
struct sac_rect sac_region_choose(struct sac_region *region, const struct sac_item *item);
/* found: pixels around all people that were seen in `seen`; empty: there was none. */
void sac_region_learn(struct sac_region *region, const struct sac_item *item, struct sac_rect seen,
                      struct sac_rect found);
void sac_region_forget(struct sac_region *region, int stream_id);

#endif
