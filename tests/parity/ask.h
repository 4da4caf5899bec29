/* SPDX-License-Identifier: Apache-2.0 */
/* What the planner does with one node and one kernel, for tests and benchmarks of kernels. */
#ifndef SAC_TESTS_PARITY_ASK_H
#define SAC_TESTS_PARITY_ASK_H

#include "engine/kernel/kernel.h"

/* Asks about the plan's node, whose inputs lie as plan->in_layout says; when the kernel takes it,
 * all operands lie as it wants them. k may be NULL. */
static inline struct sac_kernel_offer ask_kernel(struct sac_device *dev, const struct sac_kernel *k,
                                                 struct sac_kernel_plan *plan)
{
    struct sac_kernel_question q = {
        .call = plan->call, .precision = plan->precision, .weights = plan->weights};
    if (!k)
        return sac_kernel_refuse("no kernel");
    memcpy(q.in_layout, plan->in_layout, sizeof q.in_layout);
    const struct sac_kernel_offer offer = k->supports(dev, &q);
    memcpy(plan->in_layout, offer.in_layout, sizeof plan->in_layout);
    memcpy(plan->out_layout, offer.out_layout, sizeof plan->out_layout);
    return offer;
}

#endif
