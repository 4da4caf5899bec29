/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of QuantizeLinear and DequantizeLinear. */
#include "engine/cuda/kernels/quantize.h"

#include "engine/cuda/kernels/kernels.h"

static bool is_byte(enum sac_dtype t)
{
    return t == SAC_I8 || t == SAC_U8 || t == SAC_F8;
}

/* Float to 8 bits or back, by one scale that is known. */
static bool is_whole(const struct sac_op_call *c)
{
    const bool back = c->node->op->id == SAC_OP_DequantizeLinear;
    return is_byte(c->in[0].dtype) == back && is_byte(c->out[0].dtype) != back &&
           (back ? &c->out[0] : &c->in[0])->dtype == SAC_F32 && c->in[1].data &&
           sac_operand_elements(&c->in[1]) == 1 && c->in[1].rank <= 1 &&
           (!sac_op_has(c, 2) || c->in[2].data) && sac_operand_elements(&c->in[0]) < INT32_MAX;
}

static bool quantize_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    const struct sac_op_call *c = q->call;
    const bool last = sac_layout_is_last(offer->in_layout[0]) && ops_can_be_last(&c->in[0]);
    ops_want_plain(q, offer);
    if (!is_whole(c))
        return c->in[0].dtype != SAC_F8 && c->out[0].dtype != SAC_F8
                   ? true
                   : ops_refuse(offer, "float8 by scales that are not one constant");
    offer->in_layout[0] = q->in_layout[0];
    offer->out_layout[0] = ops_with_last(SAC_LAYOUT_PLAIN, last);
    ops_halve_output(q, offer, 0, true);
    offer->strided = last;
    return true;
}

/* A sample's numbers lie pixel by pixel, or, where they do not lie channels last, as one pixel. */
static void whole_fill(struct sac_kernel_plan *plan, struct ops_quantize *p)
{
    const struct sac_operand *in = &plan->call->in[0];
    struct ops_rescale       *w = &p->whole;
    const bool                last = sac_layout_is_last(plan->out_layout[0]) && in->rank > 2;
    const int64_t             n = last ? in->dims[0] : 1, all = sac_operand_elements(in);
    const int64_t             c = last ? in->dims[1] : all, pixels = last ? all / n / c : 1;
    const float               scale = (float)sac_operand_get(&plan->call->in[1], 0);
    w->in_pixel = plan->in_pixel[0] ? plan->in_pixel[0] : c;
    w->in_sample = plan->in_sample[0] ? plan->in_sample[0] : w->in_pixel * pixels;
    w->out_pixel = plan->out_pixel[0] ? plan->out_pixel[0] : c;
    w->out_sample = plan->out_sample[0] ? plan->out_sample[0] : w->out_pixel * pixels;
    const int64_t steps[] = {c, w->in_pixel, w->in_sample, w->out_pixel, w->out_sample};
    w->width = 16;
    for (size_t i = 0; i < SAC_COUNT(steps); i++)
        w->width = steps[i] % 16 ? 1 : w->width;
    w->count = all / w->width;
    w->across = ops_divisor_of(c / w->width);
    w->pixels = ops_divisor_of(pixels);
    w->scale = p->dequantize ? scale : 1 / scale;
    w->zero = sac_op_has(plan->call, 2) ? (float)sac_operand_get(&plan->call->in[2], 0) : 0;
    ops_take_from(plan, 1);
}

static sac_result quantize_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    struct ops_quantize      *p = params;
    struct sac_scaling        s;
    SAC_TRY(sac_read_scaling(c, &s));
    p->n = ops_count_in(plan, 0);
    p->length = SAC_MAX(s.length, 1);
    p->inner = SAC_MAX(s.inner, 1);
    p->scales = s.count;
    p->block = s.block;
    p->blocked = s.blocked;
    p->dequantize = c->node->op->id == SAC_OP_DequantizeLinear;
    p->in_type = ops_in_type(plan, 0);
    p->out_type = ops_out_type(plan, 0);
    p->scale_type = ops_in_type(plan, 1);
    p->zero_type = ops_in_type(plan, 2);
    if (p->n > 0 && is_whole(c))
        whole_fill(plan, p);
    return SAC_OK;
}

OPS_ROW(QuantizeLinear, quantize_layouts, quantize_fill, ops_launch_quantize, ops_quantize)
OPS_ROW(DequantizeLinear, quantize_layouts, quantize_fill, ops_launch_quantize, ops_quantize)
