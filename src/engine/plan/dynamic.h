/* SPDX-License-Identifier: Apache-2.0 */
/* The tail of a plan: nodes whose shapes depend on the data. They run one by one on the host with
 * the reference kernels, each result in a pooled tensor of its own. If, Loop and Scan run their
 * subgraphs here too. */
#ifndef SAC_ENGINE_PLAN_DYNAMIC_H
#define SAC_ENGINE_PLAN_DYNAMIC_H

#include "engine/plan/plan.h"

struct sac_dynamic {
    struct sac_plan          *plan;
    struct sac_device        *dev; /* where the tail runs: a CPU device */
    struct sac_device_stream *stream;
    struct sac_operand *values;  /* by value id, for this run: those of the plan and of the tail */
    sac_tensor        **tensors; /* by value id: the owner of the data; NULL: the plan */
    size_t              count;
};

/* Runs the tail after the plan's steps and returns the graph outputs that it computes. Where the
 * device's memory is not the host's, the tail's inputs are copied to the host first, and the call
 * returns when all work is done. */
sac_result sac_dynamic_run(struct sac_plan *plan, struct sac_device_stream *stream,
                           sac_tensor **out);

/* For control flow (control.c). */
sac_result sac_dynamic_nodes(struct sac_dynamic *d, const struct sac_node *const *nodes,
                             size_t count);
/* Bind a value to a tensor (of which a reference is taken) or, with tensor NULL, to memory that
 * outlives the run. */
void sac_dynamic_bind(struct sac_dynamic *d, const struct sac_value *v, const struct sac_operand *o,
                      sac_tensor *tensor);
/* Creates a tensor of that dtype and shape and binds v to it. */
sac_result sac_dynamic_make(struct sac_dynamic *d, const struct sac_node *n,
                            const struct sac_value *v, const struct sac_operand *shape);
/* Binds v to the tensor of `from`. */
void       sac_dynamic_alias(struct sac_dynamic *d, const struct sac_value *v,
                             const struct sac_value *from);
sac_result sac_dynamic_control(struct sac_dynamic *d, const struct sac_node *n);

#endif
