/* SPDX-License-Identifier: Apache-2.0 */
/* Conv and FusedConv for the planner: which are supported, and their shapes. */
#include "engine/cpu/conv.h"
#include "engine/ops/window.h"

/* Up to this many, a plain input is read in place: a network's first image. */
enum { PLAIN_CHANNELS = 4 };

/* Channels of the output that the residual does not have. */
static int64_t fewer_channels(const struct sac_op_call *c)
{
    return sac_op_has(c, SAC_RESIDUAL_INPUT) ? c->out[0].dims[1] - c->in[SAC_RESIDUAL_INPUT].dims[1]
                                             : 0;
}

static struct sac_kernel_offer conv_supports(struct sac_device                *dev,
                                             const struct sac_kernel_question *q)
{
    struct sac_kernel_offer   offer = sac_kernel_take(q);
    const struct sac_op_call *c = q->call;
    (void)dev;
    if (sac_cpu_level() < SAC_CPU_AVX2)
        return sac_kernel_refuse("needs AVX2");
    if (!sac_call_is_float(q->call) || !sac_volume_fits(&c->in[0]) ||
        sac_operand_elements(&c->out[0]) == 0)
        return sac_kernel_refuse("not float32 of one to three spatial dimensions, or empty");
    if (!c->in[1].data || (sac_op_has(c, 2) && !c->in[2].data) ||
        (sac_op_has(c, SAC_ENDING) && !c->in[SAC_ENDING].data))
        return sac_kernel_refuse("weights are not constant");
    const bool image = offer.in_layout[0] == SAC_LAYOUT_PLAIN &&
                       c->in[0].dims[1] <= PLAIN_CHANNELS && c->in[1].dims[1] == c->in[0].dims[1];
    offer.in_layout[0] = image ? SAC_LAYOUT_PLAIN : SAC_LAYOUT_CHANNELS_LAST;
    offer.in_layout[1] = offer.in_layout[2] = offer.in_layout[SAC_ENDING] = SAC_LAYOUT_PLAIN;
    offer.in_layout[SAC_RESIDUAL_INPUT] = offer.out_layout[0] = SAC_LAYOUT_CHANNELS_LAST;
    offer.strided = true;
    if (fewer_channels(c) && sac_attr_int(c->node, "group", 1) != 1)
        return sac_kernel_refuse("a residual of fewer channels, and groups");
    if (sac_attr_int(c->node, "residual", SAC_RESIDUAL_NONE) == SAC_RESIDUAL_BEFORE &&
        fewer_channels(c) == 0)
        offer.in_place = SAC_RESIDUAL_INPUT; /* each number is read just before its place is written
                                              */
    return offer;
}

static struct sac_conv_strides strides_of(const struct sac_map *m)
{
    return (struct sac_conv_strides){m->sample, m->w * m->pixel, m->pixel, 1,
                                     m->h * m->w * m->pixel};
}

/* Each pixel of a slice goes on its own. */
static bool along_depth(const struct sac_conv *v)
{
    return v->in_d * v->out_d > 1 && v->kernel_h * v->kernel_w == 1 &&
           v->stride_h * v->stride_w == 1 && v->out_h == v->in_h && v->out_w == v->in_w;
}

static void turn_strides(struct sac_conv_strides *s)
{
    s->row = s->slice;
    s->slice = 0;
}

/* As a map whose lines are the slices: a line of all their pixels has few tiles at its ends. */
static void lay_flat(struct sac_conv *v)
{
    v->in_w = v->out_w = v->last_w = v->in_h * v->in_w;
    v->in_h = v->in_d, v->out_h = v->out_d;
    v->kernel_h = v->kernel_d, v->stride_h = v->stride_d;
    v->dilation_h = v->dilation_d, v->pad_top = v->pad_front;
    v->in_d = v->out_d = 1;
    v->kernel_d = v->stride_d = v->dilation_d = 1;
    v->pad_front = 0;
    turn_strides(&v->in);
    turn_strides(&v->out);
    turn_strides(&v->residual);
}

static void read_shape(struct sac_conv *v, const struct sac_kernel_plan *plan,
                       const struct sac_window *w)
{
    const struct sac_map in = sac_map_in(plan, 0), out = sac_map_out(plan, 0);
    v->n = in.n;
    v->groups = sac_attr_int(plan->call->node, "group", 1);
    v->group_in_c = in.c / v->groups;
    v->group_out_c = out.c / v->groups;
    v->in_d = in.d, v->out_d = out.d;
    v->in_h = in.h, v->in_w = in.w, v->out_h = out.h, v->out_w = v->last_w = out.w;
    v->kernel_d = (int)w->kernel[0], v->stride_d = (int)w->stride[0];
    v->dilation_d = (int)w->dilation[0], v->pad_front = (int)w->pad_begin[0];
    v->kernel_h = (int)w->kernel[1], v->kernel_w = (int)w->kernel[2];
    v->stride_h = (int)w->stride[1], v->stride_w = (int)w->stride[2];
    v->dilation_h = (int)w->dilation[1], v->dilation_w = (int)w->dilation[2];
    v->pad_top = (int)w->pad_begin[1], v->pad_left = (int)w->pad_begin[2];
    v->depthwise = v->groups > 1 && v->group_in_c == 1 && v->group_out_c == 1;
    v->in = strides_of(&in);
    v->planes = 1;
    if (plan->in_layout[0] == SAC_LAYOUT_PLAIN) {
        v->in = (struct sac_conv_strides){in.c * in.d * in.h * in.w, in.w, 1, in.d * in.h * in.w,
                                          in.h * in.w};
        v->planes = in.c;
        v->group_in_c = 1;
    }
    v->merged = v->dilation_w * v->in.pixel == v->group_in_c;
    v->out = strides_of(&out);
    if (sac_op_has(plan->call, SAC_RESIDUAL_INPUT)) {
        const struct sac_map r = sac_map_in(plan, SAC_RESIDUAL_INPUT);
        v->residual = strides_of(&r);
        v->residual_fewer = fewer_channels(plan->call);
    }
    if (along_depth(v))
        lay_flat(v);
}

static sac_result conv_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    struct sac_window         window;
    sac_result                res = sac_window_read(c, 0, c->in[1].dims + 2, &window);
    if (res != SAC_OK)
        return res;
    struct sac_conv_state *s = sac_new(struct sac_conv_state);
    if (!s)
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    struct sac_conv *v = &s->conv;
    s->has_residual = sac_op_has(c, SAC_RESIDUAL_INPUT);
    sac_conv_read_ending(v, c->node);
    read_shape(v, plan, &window);
    const int64_t                 taps = sac_conv_taps(v);
    const struct sac_conv_weights w = {c->in[1].data, v->group_in_c * v->planes * taps, taps,
                                       sac_op_has(c, 2) ? c->in[2].data : NULL,
                                       sac_op_has(c, SAC_ENDING) ? c->in[SAC_ENDING].data : NULL};
    return sac_conv_prepare(dev, plan, s, &w);
}

const struct sac_kernel sac_cpu_Conv = {SAC_OP_Conv, conv_supports, conv_prepare, sac_units_run,
                                        sac_conv_release};
const struct sac_kernel sac_cpu_FusedConv = {SAC_OP_FusedConv, conv_supports, conv_prepare,
                                             sac_units_run, sac_conv_release};
