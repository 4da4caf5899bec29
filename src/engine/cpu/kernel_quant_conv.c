/* SPDX-License-Identifier: Apache-2.0 */
/* QuantConv and QuantMatMul for the planner: which are supported, and their shapes. */
#include "engine/cpu/quant.h"
#include "engine/ops/quant.h"
#include "engine/ops/window.h"

static bool is_byte(enum sac_dtype t)
{
    return t == SAC_I8 || t == SAC_U8;
}

static bool are_bytes(const struct sac_op_call *c)
{
    const enum sac_dtype y = c->out[0].dtype, r = c->in[SAC_RESIDUAL_INPUT].dtype;
    return is_byte(c->in[0].dtype) && (is_byte(y) || y == SAC_F32) &&
           (!sac_op_has(c, SAC_RESIDUAL_INPUT) || is_byte(r) || r == SAC_F32);
}

static bool are_constant(const struct sac_op_call *c)
{
    return c->in[1].data && c->in[SAC_QUANT_SCALE].data &&
           (!sac_op_has(c, SAC_QUANT_BIAS) || c->in[SAC_QUANT_BIAS].data);
}

/* With X, R and the output in that layout. */
static struct sac_kernel_offer accept(const struct sac_kernel_question *q, enum sac_layout layout)
{
    struct sac_kernel_offer   offer = sac_kernel_take(q);
    const struct sac_op_call *c = q->call;
    if (sac_cpu_level() < SAC_CPU_AVX2)
        return sac_kernel_refuse("needs AVX2");
    if (!are_bytes(c) || sac_operand_elements(&c->out[0]) == 0 ||
        sac_operand_elements(&c->in[0]) == 0)
        return sac_kernel_refuse("not of 8-bit integers, or empty");
    if (!are_constant(c))
        return sac_kernel_refuse("weights are not constant");
    for (int i = 0; i < c->in_count; i++)
        offer.in_layout[i] = SAC_LAYOUT_PLAIN;
    offer.in_layout[0] = offer.in_layout[SAC_RESIDUAL_INPUT] = offer.out_layout[0] = layout;
    if (sac_op_has(c, SAC_RESIDUAL_INPUT) && c->in[SAC_RESIDUAL_INPUT].dtype == c->out[0].dtype)
        offer.in_place = SAC_RESIDUAL_INPUT; /* each number is read just before it is written */
    return offer;
}

static const float *floats_of(const struct sac_op_call *c, int input)
{
    return sac_op_has(c, input) ? c->in[input].data : NULL;
}

/* ---- QuantConv ---- */

static struct sac_kernel_offer conv_supports(struct sac_device                *dev,
                                             const struct sac_kernel_question *q)
{
    (void)dev;
    if (!sac_map_fits(&q->call->in[0]))
        return sac_kernel_refuse("not of one or two spatial dimensions");
    struct sac_kernel_offer offer = accept(q, SAC_LAYOUT_CHANNELS_LAST);
    offer.strided = offer.taken;
    return offer;
}

static struct sac_conv_strides strides_of(const struct sac_map *m, enum sac_dtype t)
{
    const int64_t bytes = (int64_t)sac_dtype_bytes(t);
    return (struct sac_conv_strides){m->sample * bytes, m->w * m->pixel * bytes, m->pixel * bytes,
                                     bytes, 0};
}

static void read_shape(struct sac_conv *v, const struct sac_kernel_plan *plan,
                       const struct sac_window *w)
{
    const struct sac_op_call *c = plan->call;
    const struct sac_map      in = sac_map_in(plan, 0), out = sac_map_out(plan, 0);
    v->n = in.n;
    v->groups = sac_attr_int(c->node, "group", 1);
    v->group_in_c = in.c / v->groups;
    v->group_out_c = out.c / v->groups;
    v->in_h = in.h, v->in_w = in.w, v->out_h = out.h, v->out_w = v->last_w = out.w;
    v->kernel_h = (int)w->kernel[1], v->kernel_w = (int)w->kernel[2];
    v->stride_h = (int)w->stride[1], v->stride_w = (int)w->stride[2];
    v->dilation_h = (int)w->dilation[1], v->dilation_w = (int)w->dilation[2];
    v->pad_top = (int)w->pad_begin[1], v->pad_left = (int)w->pad_begin[2];
    v->in_d = v->out_d = 1;
    v->kernel_d = v->stride_d = v->dilation_d = 1;
    v->planes = 1;
    v->depthwise = v->groups > 1 && v->group_in_c == 1 && v->group_out_c == 1;
    v->out = strides_of(&out, c->out[0].dtype);
    if (sac_op_has(c, SAC_RESIDUAL_INPUT)) {
        const struct sac_map r = sac_map_in(plan, SAC_RESIDUAL_INPUT);
        v->residual = strides_of(&r, c->in[SAC_RESIDUAL_INPUT].dtype);
    }
}

static sac_result conv_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    const struct sac_map      in = sac_map_in(plan, 0);
    struct sac_window         window;
    sac_result                res = sac_window_read(c, 0, c->in[1].dims + 2, &window);
    if (res != SAC_OK)
        return res;
    struct sac_quant_state *s = sac_new(struct sac_quant_state);
    if (!s)
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    struct sac_conv *v = &s->base.conv;
    read_shape(v, plan, &window);
    const int64_t                  taps = (int64_t)v->kernel_h * v->kernel_w;
    const struct sac_quant_weights w = {c->in[1].data, v->group_in_c * taps, taps,
                                        floats_of(c, SAC_QUANT_SCALE),
                                        floats_of(c, SAC_QUANT_BIAS)};
    return sac_quant_prepare(dev, plan, s, &in, &w);
}

/* ---- QuantMatMul: a pointwise convolution whose pixels are rows ---- */

static struct sac_kernel_offer product_supports(struct sac_device                *dev,
                                                const struct sac_kernel_question *q)
{
    (void)dev;
    return accept(q, SAC_LAYOUT_PLAIN);
}

static struct sac_conv_strides rows_of(int64_t rows, int64_t columns, enum sac_dtype t)
{
    const struct sac_map m = {1, columns, 1, rows, rows * columns, columns, 1};
    return strides_of(&m, t);
}

static sac_result product_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    const int64_t             depth = c->in[1].dims[0], columns = c->in[1].dims[1];
    const int64_t             rows = sac_operand_elements(&c->in[0]) / depth;
    const struct sac_map      in = {1, depth, 1, rows, rows * depth, depth, 1};
    struct sac_quant_state   *s = sac_new(struct sac_quant_state);
    if (!s)
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    s->base.conv = (struct sac_conv){.n = 1,
                                     .group_in_c = depth,
                                     .group_out_c = columns,
                                     .groups = 1,
                                     .in_h = 1,
                                     .in_w = rows,
                                     .out_h = 1,
                                     .out_w = rows,
                                     .last_w = rows,
                                     .in_d = 1,
                                     .out_d = 1,
                                     .kernel_d = 1,
                                     .stride_d = 1,
                                     .dilation_d = 1,
                                     .kernel_h = 1,
                                     .kernel_w = 1,
                                     .stride_h = 1,
                                     .stride_w = 1,
                                     .dilation_h = 1,
                                     .dilation_w = 1,
                                     .planes = 1,
                                     .out = rows_of(rows, columns, c->out[0].dtype)};
    if (sac_op_has(c, SAC_RESIDUAL_INPUT))
        s->base.conv.residual = rows_of(rows, columns, c->in[SAC_RESIDUAL_INPUT].dtype);
    const struct sac_quant_weights w = {c->in[1].data, 1, columns, floats_of(c, SAC_QUANT_SCALE),
                                        floats_of(c, SAC_QUANT_BIAS)};
    return sac_quant_prepare(dev, plan, s, &in, &w);
}

const struct sac_kernel sac_cpu_QuantConv = {SAC_OP_QuantConv, conv_supports, conv_prepare,
                                             sac_quant_run, sac_quant_release};
const struct sac_kernel sac_cpu_QuantMatMul = {SAC_OP_QuantMatMul, product_supports,
                                               product_prepare, sac_quant_run, sac_quant_release};
