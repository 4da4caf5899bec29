/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that create a plan. In the order in which plan.c calls them: inference
 * (infer.h), steps (steps.c), concat by placement (placement.c), preparation of kernels,
 * memory (memory.c). All return SAC_ERR_MEMORY and the errors of the rows and kernels. */
#ifndef SAC_ENGINE_PLAN_BUILD_H
#define SAC_ENGINE_PLAN_BUILD_H

#include "engine/plan/plan.h"

/* sets the error; returns SAC_ERR_MEMORY */
sac_result sac_plan_no_memory(const struct sac_plan *plan);

/* A new slot; *out is its index. value: id, or -1 for scratch. */
sac_result sac_plan_add_slot(struct sac_plan *plan, const struct sac_operand *desc, int value,
                             enum sac_layout layout, int *out);
/* A new step at the end, its slots to be filled. Borrowed until the next is added. */
sac_result sac_plan_add_step(struct sac_plan *plan, enum sac_step_kind kind,
                             const struct sac_node *node, int in_count, int out_count,
                             struct sac_step **out);
sac_result sac_plan_add_storage(struct sac_plan *plan, struct sac_storage s, int *out);
/* A slot with its own storage: a graph input or a constant. */
sac_result sac_plan_add_placed(struct sac_plan *plan, int value, enum sac_layout layout,
                               struct sac_storage storage);
/* Adds a slot for a constant value that has none yet. Other values are ignored. */
sac_result sac_plan_ensure_constant(struct sac_plan *plan, int value);
/* Lets the kernel that writes a slot write it in another layout, when nobody reads it yet. */
bool sac_plan_write_as(struct sac_plan *plan, int slot, enum sac_layout layout);
/* The slot of a value in a layout; a conversion is added when there is none yet. */
sac_result sac_plan_slot_in_layout(struct sac_plan *plan, int value, enum sac_layout layout,
                                   const struct sac_node *reader, int *out);

/* Removes work whose results only folded nodes would have read. */
sac_result sac_plan_drop_unneeded(struct sac_plan *plan);
/* Steps for all static work, and the list of the tail. */
sac_result sac_plan_make_steps(struct sac_plan *plan);
/* Has each kernel create its state, now that all operands have their final layouts. */
sac_result sac_plan_prepare(struct sac_plan *plan);
sac_result sac_plan_place_memory(struct sac_plan *plan);
/* Copies the constants that kernels read to a device whose memory is not the host's, and allocates
 * staging for steps on the host (device.c). */
sac_result sac_plan_finish_device(struct sac_plan *plan);

#endif
