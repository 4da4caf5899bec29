/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/kernels/expectation.h"

#include "engine/cuda/kernels/kernels.h"

/* As the input lies. The result is float32: positions are made of it. */
static bool expectation_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    const bool last = sac_layout_is_last(offer->in_layout[0]) && ops_can_be_last(&q->call->in[0]) &&
                      ops_can_be_last(&q->call->out[0]);
    offer->in_layout[0] = ops_with_last(offer->in_layout[0], last);
    offer->in_layout[1] = SAC_LAYOUT_PLAIN;
    offer->out_layout[0] = ops_with_last(SAC_LAYOUT_PLAIN, last);
    offer->strided = last;
    return sac_operand_elements(&q->call->in[0]) < INT32_MAX ||
           ops_refuse(offer, "more than 2^31 numbers");
}

/* The pixels of a sample lie at one step in both orders. */
static sac_result expectation_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_operand *x = &plan->call->in[0];
    struct ops_expectation   *p = params;
    int64_t                   from[SAC_RANK_MAX], to[SAC_RANK_MAX];
    ops_steps_in(plan, 0, from);
    ops_steps_out(plan, 0, to);
    p->bins = (int32_t)plan->call->in[1].dims[0];
    p->count = ops_count_out(plan, 0);
    p->groups = ops_divisor_of(x->dims[1] / p->bins);
    p->pixels = ops_divisor_of(sac_dims_product(x->rank - 2, x->dims + 2));
    p->in_sample = from[0];
    p->in_bin = from[1];
    p->in_pixel = from[x->rank - 1];
    p->out_sample = to[0];
    p->out_group = to[1];
    p->out_pixel = to[x->rank - 1];
    p->in_type = ops_in_type(plan, 0);
    p->w_type = ops_in_type(plan, 1);
    p->out_type = ops_out_type(plan, 0);
    return SAC_OK;
}

OPS_ROW(Expectation, expectation_layouts, expectation_fill, ops_launch_expectation, ops_expectation)
