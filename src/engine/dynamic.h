/* SPDX-License-Identifier: Apache-2.0 */
/* The tail of a plan: nodes whose shapes only the data tells, run one by one on the host with the
 * reference kernels, each result in a pooled tensor of its own. If, Loop and Scan run their subgraphs
 * here too. */
#ifndef SAC_ENGINE_DYNAMIC_H
#define SAC_ENGINE_DYNAMIC_H

#include "engine/plan.h"

struct sac_dynamic {
    struct sac_plan    *plan;
    struct sac_device  *dev;     /* where the tail runs: a CPU device */
    struct sac_stream  *stream;
    struct sac_operand *values;  /* by value id, for the run; of the plan and of the tail */
    sac_tensor        **tensors; /* by value id: who owns the data; NULL: the plan's */
    size_t              count;
};

/* After the plan's steps: run the tail and hand out the graph's outputs that it makes. Where the device's
 * memory is not the host's, what the tail reads is fetched first, and the call returns when all is done. */
sac_result sac_dynamic_run(struct sac_plan *plan, struct sac_stream *stream, sac_tensor **out);

/* For control flow (control.c). */
sac_result sac_dynamic_nodes(struct sac_dynamic *d, const struct sac_node *const *nodes,
                             size_t count);
/* Bind a value to a tensor (which is referenced) or, tensor NULL, to memory that outlives the run. */
void       sac_dynamic_bind(struct sac_dynamic *d, const struct sac_value *v,
                            const struct sac_operand *o, sac_tensor *tensor);
/* A tensor of that dtype and shape, bound to v. */
sac_result sac_dynamic_make(struct sac_dynamic *d, const struct sac_node *n,
                            const struct sac_value *v, const struct sac_operand *shape);
/* Let v be the same as `from`. */
void       sac_dynamic_alias(struct sac_dynamic *d, const struct sac_value *v,
                             const struct sac_value *from);
sac_result sac_dynamic_control(struct sac_dynamic *d, const struct sac_node *n);

#endif
