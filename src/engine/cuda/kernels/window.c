/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of sliding windows: pooling, and the convolutions without cuDNN or that it does not
 * support. */
#include "engine/cuda/kernels/window.h"

#include "engine/cuda/kernels/map.h"
#include "engine/cuda/kernels/kernels.h"
#include "engine/cuda/kernels/product.h"
#include "engine/ops/fused.h"

/* ---- places ---- */

/* Steps of an operand along [N,C,depth,height,width], from those of its own dims. */
static void five_steps(const struct sac_operand *o, const int64_t *own, int64_t *out)
{
    out[0] = own[0];
    out[1] = own[1];
    for (int d = 0; d < 3; d++) {
        const int from = o->rank - 3 + d;
        out[2 + d] = from < 2 ? 0 : own[from];
    }
}

struct ops_places ops_places_of(const struct ops_window *w, const struct sac_operand *out,
                                bool last)
{
    return (struct ops_places){.count = sac_operand_elements(out),
                               .last = last,
                               .c = ops_divisor_of(out->dims[1]),
                               .z = ops_divisor_of(w->out[0]),
                               .y = ops_divisor_of(w->out[1]),
                               .x = ops_divisor_of(w->out[2])};
}

void ops_window_steps(const struct sac_kernel_plan *plan, int x, struct ops_window *w)
{
    const struct sac_operand *in = &plan->call->in[x], *out = &plan->call->out[0];
    int64_t                   own[SAC_RANK_MAX];
    ops_steps_in(plan, x, own);
    five_steps(in, own, w->x_step);
    ops_steps_out(plan, 0, own);
    five_steps(out, own, w->y_step);
    for (int d = 0; d < 3; d++) {
        const int from = out->rank - 3 + d;
        w->out[d] = from < 2 ? 1 : (int)out->dims[from];
    }
}

bool ops_window_of(const struct sac_kernel_plan *plan, int x, const struct sac_window *from,
                   struct ops_window *w)
{
    for (int d = 0; d < 3; d++) {
        const int64_t of[] = {from->in[d],       from->kernel[d],    from->stride[d],
                              from->dilation[d], from->pad_begin[d], from->pad_end[d]};
        int32_t      *to[] = {&w->in[d],       &w->kernel[d],    &w->stride[d],
                              &w->dilation[d], &w->pad_begin[d], &w->pad_end[d]};
        for (size_t k = 0; k < SAC_COUNT(of); k++)
            *to[k] = (int32_t)of[k];
    }
    ops_window_steps(plan, x, w);
    return ops_count_out(plan, 0) < INT32_MAX;
}

/* Do channels lie by n wherever a window is? */
static bool lies_by(const struct ops_window *w, int n, int64_t channels)
{
    bool fits = channels % n == 0;
    for (int d = 0; d < 5; d++)
        fits = fits && (d == 1 || (w->x_step[d] % n == 0 && w->y_step[d] % n == 0));
    return fits;
}

bool ops_window_by_eights(const struct ops_window *w, int in_type, int out_type, int64_t channels)
{
    return ops_is_f16_or_f32(in_type) && ops_is_f16_or_f32(out_type) && lies_by(w, 8, channels);
}

/* ---- pooling ---- */

static bool pool_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    const bool last = sac_layout_is_last(offer->in_layout[0]) && ops_can_be_last(&q->call->in[0]);
    offer->out_layout[0] = ops_with_last(SAC_LAYOUT_PLAIN, last);
    /* A maximum has the input's precision; a mean may be float16. */
    ops_halve_output(q, offer, 0,
                     q->call->node->op->id == SAC_OP_AveragePool ||
                         sac_layout_is_half(offer->in_layout[0]));
    offer->strided = last && !sac_op_wants(q->call, 1);
    return ops_small_enough(q, offer);
}

static bool is_aligned(int align, int n, int type)
{
    return align % SAC_MIN(n * (type == SAC_F16 ? 2 : 4), 16) == 0;
}

/* As many channels as lie together in both operands, by 16 bytes of the input at most. */
static int channels_at_once(const struct sac_kernel_plan *plan, const struct ops_pool *p)
{
    int n = !p->places.last ? 1 : p->in_type == SAC_F16 ? 8 : 4;
    while (n > 1 &&
           !(lies_by(&p->w, n, p->channels) && is_aligned(plan->in_align[0], n, p->in_type) &&
             is_aligned(plan->out_align[0], n, p->out_type)))
        n /= 2;
    return n;
}

/* Means of small windows, where there are threads enough for a GPU. */
static int outputs_at_once(const struct ops_pool *p)
{
    enum { THREADS_MANY = 32 << 10 };
    const struct ops_window *w = &p->w;
    const int                size = w->kernel[1], stride = w->stride[1];
    const bool               flat = w->kernel[0] == 1 && w->kernel[2] == size;
    const bool known = (size == 3 && (stride == 1 || stride == 2)) || (size == 2 && stride == 2);
    return p->kind == OPS_POOL_AVERAGE && flat && known && w->dilation[1] == 1 &&
                   w->out[1] >= OPS_POOL_RUN &&
                   p->places.count / (p->vector * OPS_POOL_RUN) >= THREADS_MANY
               ? OPS_POOL_RUN
               : 1;
}

/* Do 31 bits count the way to all of it, and to where a window begins outside? */
static bool is_within_reach(const struct ops_window *w, const int64_t *dims)
{
    int64_t in = 0, out = 0;
    for (int d = 0; d < 5; d++) {
        in += ((d < 2 ? dims[d] : w->in[d - 2]) - 1) * w->x_step[d];
        out += ((d < 2 ? dims[d] : w->out[d - 2]) - 1) * w->y_step[d];
    }
    return SAC_MAX(in, out) < INT32_MAX / 2;
}

static void choose_units(const struct sac_kernel_plan *plan, struct ops_pool *p)
{
    const bool same = p->kind == OPS_POOL_MAX && p->in_type == p->out_type,
               bytes = same && (p->in_type == SAC_I8 || p->in_type == SAC_U8);
    p->run = 1;
    if (p->indices || !is_within_reach(&p->w, plan->call->in[0].dims))
        return;
    if (ops_is_f16_or_f32(p->in_type) && ops_is_f16_or_f32(p->out_type)) {
        p->vector = channels_at_once(plan, p);
        p->run = outputs_at_once(p);
    } else if (bytes && p->places.last && lies_by(&p->w, 8, p->channels))
        p->vector = 8;
    if (!p->vector)
        return;
    p->words = same && p->vector == 8;
    p->units = p->places;
    p->units.c = ops_divisor_of(p->channels / p->vector);
    p->units.y = ops_divisor_of((p->w.out[1] + p->run - 1) / p->run);
    p->units.count = p->places.count / p->w.out[1] / p->vector * p->units.y.d;
}

static sac_result pool_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    struct ops_pool          *p = params;
    struct sac_pooling        read;
    SAC_TRY(sac_pooling_read(c, &read));
    if (!ops_window_of(plan, 0, &read.w, &p->w))
        return ops_view_fail(plan);
    p->kind = (int)read.kind; /* in the same order */
    p->p = read.p;
    p->include_pad = read.include_pad;
    p->columns_first = read.columns_first;
    p->channels = (int)c->in[0].dims[1];
    p->in_type = ops_in_type(plan, 0);
    p->out_type = ops_out_type(plan, 0);
    p->places = ops_places_of(&p->w, &c->out[0], sac_layout_is_last(plan->out_layout[0]));
    p->indices = sac_op_wants(c, 1);
    choose_units(plan, p);
    return SAC_OK;
}

_Static_assert((int)SAC_POOL_MAX == OPS_POOL_MAX && (int)SAC_POOL_AVERAGE == OPS_POOL_AVERAGE &&
                   (int)SAC_POOL_LP == OPS_POOL_LP,
               "the kinds are those of ops/reads.h");

/* ---- convolutions ---- */

static bool conv_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    const struct sac_op_call *c = q->call;
    const bool last = sac_layout_is_last(offer->in_layout[0]) && ops_can_be_last(&c->in[0]);
    for (int i = 1; i < 3 && i < c->in_count; i++) /* weights in ONNX's order */
        offer->in_layout[i] = ops_with_last(offer->in_layout[i], false);
    offer->out_layout[0] = ops_with_last(SAC_LAYOUT_PLAIN, last);
    ops_halve_output(q, offer, 0, true);
    offer->strided = last;
    return ops_small_enough(q, offer);
}

static sac_result read_window(const struct sac_op_call *c, struct sac_window *w)
{
    return c->node->op->id == SAC_OP_ConvTranspose
               ? sac_window_read_transposed(c, c->in[1].dims + 2, w)
               : sac_window_read(c, 0, c->in[1].dims + 2, w);
}

static sac_result conv_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    struct ops_conv          *p = params;
    struct sac_window         w;
    int64_t                   own[SAC_RANK_MAX];
    SAC_TRY(read_window(c, &w));
    if (!ops_window_of(plan, 0, &w, &p->w))
        return ops_view_fail(plan);
    const int64_t out_channels = c->out[0].dims[1];
    p->places = ops_places_of(&p->w, &c->out[0], sac_layout_is_last(plan->out_layout[0]));
    p->group = (int)sac_attr_int(c->node, "group", 1);
    p->in_each = (int)(c->in[0].dims[1] / p->group);
    p->out_each = (int)SAC_MAX(out_channels / p->group, 1);
    p->transposed = c->node->op->id == SAC_OP_ConvTranspose;
    p->exact = c->in[0].dtype == SAC_F64;
    for (int i = 0; i < 5; i++)
        p->type[i] = ops_in_type(plan, i);
    p->out_type = ops_out_type(plan, 0);
    p->activation = OPS_FN_IDENTITY;
    if (c->node->op->id != SAC_OP_FusedConv)
        return SAC_OK;
    const struct sac_activation act = sac_activation_read(c->node);
    p->activation = ops_activation_fn(&act, &p->a, &p->b);
    p->residual_after = sac_attr_int(c->node, "residual", SAC_RESIDUAL_NONE) == SAC_RESIDUAL_AFTER;
    if (p->type[SAC_RESIDUAL_INPUT]) {
        p->residual_c = (int32_t)c->in[SAC_RESIDUAL_INPUT].dims[1];
        ops_steps_in(plan, SAC_RESIDUAL_INPUT, own);
        five_steps(&c->in[SAC_RESIDUAL_INPUT], own, p->residual_step);
    }
    return SAC_OK;
}

/* ---- of 8-bit numbers ---- */

static bool integer_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    const int  x = 0, w = q->call->node->op->id == SAC_OP_QLinearConv ? 3 : 1;
    const bool last = sac_layout_is_last(offer->in_layout[x]) && ops_can_be_last(&q->call->in[x]);
    offer->in_layout[w] = ops_with_last(offer->in_layout[w], false);
    offer->out_layout[0] = ops_with_last(SAC_LAYOUT_PLAIN, last);
    return ops_small_enough(q, offer);
}

static sac_result integer_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    struct ops_conv_integer  *p = params;
    const bool                linear = c->node->op->id == SAC_OP_QLinearConv;
    const int                 x = 0, weights = linear ? 3 : 1;
    struct sac_window         w;
    SAC_TRY(sac_window_read(c, x, c->in[weights].dims + 2, &w));
    if (!ops_window_of(plan, x, &w, &p->w))
        return ops_view_fail(plan);
    p->places = ops_places_of(&p->w, &c->out[0], sac_layout_is_last(plan->out_layout[0]));
    p->group = (int)sac_attr_int(c->node, "group", 1);
    p->in_each = (int)(c->in[x].dims[1] / p->group);
    p->out_each = (int)SAC_MAX(c->out[0].dims[1] / p->group, 1);
    p->x_port = x;
    p->w_port = weights;
    p->bias_port = linear && sac_op_has(c, 8) ? 8 : -1;
    p->x_type = ops_in_type(plan, x);
    p->w_type = ops_in_type(plan, weights);
    p->out_type = ops_out_type(plan, 0);
    p->x_zero = ops_parameter_of(plan, 2);
    p->w_zero = ops_parameter_of(plan, linear ? 5 : 3);
    p->x_scale = ops_parameter_of(plan, linear ? 1 : -1);
    p->w_scale = ops_parameter_of(plan, linear ? 4 : -1);
    p->y_scale = ops_parameter_of(plan, linear ? 6 : -1);
    p->y_zero = ops_parameter_of(plan, linear ? 7 : -1);
    return SAC_OK;
}

OPS_ROW(MaxPool, pool_layouts, pool_fill, ops_launch_pool, ops_pool)
OPS_ROW(AveragePool, pool_layouts, pool_fill, ops_launch_pool, ops_pool)
OPS_ROW(LpPool, pool_layouts, pool_fill, ops_launch_pool, ops_pool)
OPS_ROW(GlobalLpPool, pool_layouts, pool_fill, ops_launch_pool, ops_pool)
OPS_ROW(Conv, conv_layouts, conv_fill, ops_launch_conv, ops_conv)
OPS_ROW(FusedConv, conv_layouts, conv_fill, ops_launch_conv, ops_conv)
OPS_ROW(ConvTranspose, conv_layouts, conv_fill, ops_launch_conv, ops_conv)
OPS_ROW(ConvInteger, integer_layouts, integer_fill, ops_launch_conv_integer, ops_conv_integer)
OPS_ROW(QLinearConv, integer_layouts, integer_fill, ops_launch_conv_integer, ops_conv_integer)
