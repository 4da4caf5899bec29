/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/kernels/expectation.h"

#include "engine/cuda/kernels/kernels.h"
#include "engine/ops/fused.h"

enum { X, W, M, R };

/* Stretches of a sample's pixels; parts of their channels. */
static int64_t stretches_of(const struct sac_operand *x)
{
    const int64_t pixels = sac_dims_product(x->rank - 2, x->dims + 2);
    return (pixels + OPS_EXPECTATION_PIXELS - 1) / OPS_EXPECTATION_PIXELS;
}

static int64_t parts_of(const struct sac_op_call *c)
{
    const int64_t rest = sac_op_has(c, R) ? c->in[R].dims[1] : 0;
    return 1 + (rest + OPS_EXPECTATION_CHANNELS - 1) / OPS_EXPECTATION_CHANNELS;
}

static int64_t tail_count(const struct sac_op_call *c)
{
    return c->in[X].dims[0] * stretches_of(&c->in[X]) * parts_of(c) * OPS_EXPECTATION_PIXELS;
}

/* As the inputs lie. The result is float32: positions are made of it. */
static bool expectation_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    const struct sac_op_call *c = q->call;
    const bool last = sac_layout_is_last(offer->in_layout[X]) && ops_can_be_last(&c->in[X]) &&
                      ops_can_be_last(&c->out[0]);
    offer->in_layout[X] = ops_with_last(offer->in_layout[X], last);
    offer->in_layout[W] = SAC_LAYOUT_PLAIN;
    if (sac_op_has(c, M))
        offer->in_layout[M] = SAC_LAYOUT_PLAIN;
    if (sac_op_has(c, R))
        offer->in_layout[R] = ops_with_last(offer->in_layout[R], last);
    offer->out_layout[0] = ops_with_last(SAC_LAYOUT_PLAIN, last);
    offer->strided = last;
    offer->writes_any = ops_can_be_last(&c->out[0]);
    if (c->in[X].dims[1] == 0)
        return ops_refuse(offer, "it has no means");
    return (sac_operand_elements(&c->in[X]) < INT32_MAX && tail_count(c) < INT32_MAX) ||
           ops_refuse(offer, "more than 2^31 numbers");
}

static void fill_tail(const struct sac_kernel_plan *plan, struct ops_expectation *p)
{
    const struct sac_op_call   *c = plan->call;
    const struct sac_activation act = sac_activation_read(c->node);
    int64_t                     from[SAC_RANK_MAX];
    p->sums = sac_op_has(c, M) ? (int32_t)c->in[M].dims[0] : 0;
    p->rest = sac_op_has(c, R) ? (int32_t)c->in[R].dims[1] : 0;
    p->tail_count = p->sums || p->rest ? tail_count(c) : 0;
    p->stretches = ops_divisor_of(stretches_of(&c->in[X]));
    p->parts = ops_divisor_of(parts_of(c));
    p->activation = ops_activation_fn(&act, &p->a, &p->b);
    if (!p->rest)
        return;
    ops_steps_in(plan, R, from);
    p->rest_sample = from[0];
    p->rest_channel = from[1];
    p->rest_pixel = from[c->in[R].rank - 1];
    p->rest_type = ops_in_type(plan, R);
    p->rest_eights = ops_is_f16_or_f32(p->rest_type) && p->rest_channel == 1 &&
                     p->rest % OPS_EXPECTATION_CHANNELS == 0 &&
                     p->rest_sample % OPS_EXPECTATION_CHANNELS == 0 &&
                     p->rest_pixel % OPS_EXPECTATION_CHANNELS == 0;
}

/* The pixels of a sample lie at one step in both orders. */
static sac_result expectation_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_operand *x = &plan->call->in[X];
    struct ops_expectation   *p = params;
    int64_t                   from[SAC_RANK_MAX], to[SAC_RANK_MAX];
    ops_steps_in(plan, X, from);
    ops_steps_out(plan, 0, to);
    p->bins = (int32_t)plan->call->in[W].dims[0];
    p->groups = ops_divisor_of(x->dims[1] / p->bins);
    p->pixels = ops_divisor_of(sac_dims_product(x->rank - 2, x->dims + 2));
    p->count = ops_count_in(plan, X) / p->bins;
    p->in_sample = from[0];
    p->in_bin = from[1];
    p->in_pixel = from[x->rank - 1];
    p->out_sample = to[0];
    p->out_channel = to[1];
    p->out_pixel = to[x->rank - 1];
    p->in_type = ops_in_type(plan, X);
    p->w_type = ops_in_type(plan, W);
    p->out_type = ops_out_type(plan, 0);
    fill_tail(plan, p);
    return SAC_OK;
}

OPS_ROW(Expectation, expectation_layouts, expectation_fill, ops_launch_expectation, ops_expectation)
