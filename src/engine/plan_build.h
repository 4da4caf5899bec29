/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that make a plan share. In the order in which plan.c calls them: inference (infer.h),
 * steps (plan_steps.c), concat by placement (placement.c), preparation of kernels, memory
 * (plan_memory.c). All yield SAC_ERR_MEMORY and what the rows and kernels yield. */
#ifndef SAC_ENGINE_PLAN_BUILD_H
#define SAC_ENGINE_PLAN_BUILD_H

#include "engine/plan.h"

sac_result sac_plan_no_memory(const struct sac_plan *plan); /* says so; returns SAC_ERR_MEMORY */

/* A new slot; *out is its index. value: id, or -1 for one that is no value's. */
sac_result sac_plan_add_slot(struct sac_plan *plan, const struct sac_operand *desc, int value,
                             enum sac_layout layout, int *out);
/* A new step at the end, its slots to be filled. Borrowed until the next is added. */
sac_result sac_plan_add_step(struct sac_plan *plan, enum sac_step_kind kind,
                             const struct sac_node *node, int in_count, int out_count,
                             struct sac_step **out);
sac_result sac_plan_add_storage(struct sac_plan *plan, struct sac_storage s, int *out);
/* Give a value that is a constant its slot, if it has none yet; nothing for others. */
sac_result sac_plan_ensure_constant(struct sac_plan *plan, int value);
/* The slot of a value in a layout; a conversion is put in when there is none yet. */
sac_result sac_plan_slot_in_layout(struct sac_plan *plan, int value, enum sac_layout layout,
                                   const struct sac_node *reader, int *out);

/* Leave out work whose results are wanted only by what folding removed. */
sac_result sac_plan_drop_unneeded(struct sac_plan *plan);
/* Steps for all static work, and the list of the tail. */
sac_result sac_plan_make_steps(struct sac_plan *plan);
/* Let each kernel make its state, now that all operands have their final form. */
sac_result sac_plan_prepare(struct sac_plan *plan);
sac_result sac_plan_place_memory(struct sac_plan *plan);
/* Copy the constants that kernels read to a device whose memory is not the host's, and make room for what
 * steps on the host exchange with it (plan_device.c). */
sac_result sac_plan_finish_device(struct sac_plan *plan);

#endif
