/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/products/quant_params.h"

#include <math.h>

static struct conv_finish finish_of(const struct conv_spec *v, const struct quant_operands *o)
{
    return (struct conv_finish){
        .act = (int)v->act.kind,
        .alpha = v->act.alpha,
        .beta = v->act.beta,
        .residual_kind = (int)v->residual_kind,
        .bias = o->bias,
        .residual = v->residual_kind == SAC_RESIDUAL_NONE ? NULL : o->residual,
        .residual_c = v->residual.c,
        .residual_pixel = v->residual.pixel,
        .residual_sample = v->residual.sample,
    };
}

static struct conv_tile_params places_of(const struct quant_spec *s, const struct quant_operands *o)
{
    const struct conv_spec *v = &s->conv;
    const int64_t           pixels = v->out.size[1] * v->out.size[2];
    return (struct conv_tile_params){
        .finish = finish_of(v, o),
        .x = o->x,
        .w = o->weights,
        .y = o->y,
        .wide = quant_is_wide(s),
        .m = v->n * pixels,
        .pixels = (int)pixels,
        .in_c = (int)v->in.c,
        .in_h = (int)v->in.size[1],
        .in_w = (int)v->in.size[2],
        .out_c = (int)v->out.c,
        .out_w = (int)v->out.size[2],
        .kernel_h = (int)v->kernel[1],
        .kernel_w = (int)v->kernel[2],
        .taps = (int)(v->kernel[1] * v->kernel[2] * v->in.c),
        .stride_h = (int)v->stride[1],
        .stride_w = (int)v->stride[2],
        .dilation_h = (int)v->dilation[1],
        .dilation_w = (int)v->dilation[2],
        .pad_top = (int)v->pad_begin[1],
        .pad_left = (int)v->pad_begin[2],
        .x_pixel = v->in.pixel,
        .x_sample = v->in.sample,
        .y_pixel = v->out.pixel,
        .y_sample = v->out.sample,
    };
}

static bool is_float(enum conv_number n)
{
    return n == CONV_F32 || n == CONV_F16;
}

/* Does act(a v) equal a act(v) for a > 0? Then the output's scale is part of what comes before. */
static bool is_linear(enum sac_activation_kind kind)
{
    return kind == SAC_ACT_NONE || kind == SAC_ACT_RELU || kind == SAC_ACT_LEAKY_RELU;
}

struct conv_bytes_params quant_params(const struct quant_spec *s, const struct quant_operands *o,
                                      bool laid)
{
    const bool               scaled = !is_float(s->y), steps = !is_float(s->residual);
    const float              inverse = scaled ? s->q.y_inverse : 1;
    const float              fold = is_linear(s->conv.act.kind) ? inverse : 1;
    struct conv_bytes_params p = {
        .at = places_of(s, o),
        .scale = o->scale,
        .y_kind = (int)s->y,
        .residual_kind = (int)s->residual,
        .y_inverse = inverse / fold,
        .y_zero = scaled ? (float)s->q.y_zero : 0,
        .residual_scale = (steps ? s->q.r_scale : 1) * fold,
        .residual_zero = steps ? (float)s->q.r_zero : 0,
        .x_zero = quant_moves_bias(s) ? s->q.x_zero : 0,
        .fold = fold,
        .groups = (int)s->conv.groups,
        .depth = (int)quant_depth(s),
    };
    if (laid) {
        p.at.in_c = p.depth;
        p.at.taps = (int)(s->conv.kernel[1] * s->conv.kernel[2]) * p.depth;
        p.at.x_pixel = p.depth;
        p.at.x_sample = (int64_t)p.at.in_h * p.at.in_w * p.depth;
    }
    return p;
}

static enum conv_stream_act stream_act(const struct sac_activation *act)
{
    switch (act->kind) {
    case SAC_ACT_RELU:
    case SAC_ACT_CLIP: return CONV_STREAM_CLAMP;
    case SAC_ACT_SILU: return CONV_STREAM_SILU;
    case SAC_ACT_GELU:
    case SAC_ACT_GELU_TANH: return CONV_STREAM_GELU;
    case SAC_ACT_HARD_SWISH: return CONV_STREAM_HARD_SWISH;
    default: return CONV_STREAM_NONE;
    }
}

struct conv_stream_params quant_stream_params(const struct quant_spec     *s,
                                              const struct quant_operands *o, bool laid)
{
    const struct conv_spec   *v = &s->conv;
    const bool                clip = v->act.kind == SAC_ACT_CLIP;
    const float               inverse = is_float(s->y) ? 1 : s->q.y_inverse;
    struct conv_stream_params p = {.b = quant_params(s, o, laid), .act = (int)stream_act(&v->act)};
    p.low = clip ? v->act.alpha * inverse : 0;
    p.high = clip ? v->act.beta * inverse : INFINITY;
    p.low = SAC_MIN(p.low, p.high);
    if (clip) { /* the output's scale is part of the ends, and of what comes before */
        p.b.fold = inverse;
        p.b.y_inverse = 1;
        p.b.residual_scale *= inverse;
    } else if (v->residual_kind == SAC_RESIDUAL_AFTER)
        p.b.residual_scale = (is_float(s->residual) ? 1 : s->q.r_scale) * inverse;
    p.flat = conv_is_flat(v) && (laid || tensor_is_dense(&v->in, v->n));
    p.dense = tensor_writes_dense(v);
    return p;
}

struct conv_tensor_params quant_tensor_params(const struct quant_spec     *s,
                                              const struct quant_operands *o, bool laid,
                                              int                    variant,
                                              struct conv_copy_shape shapes[TENSOR_MAPS])
{
    struct conv_tensor_params  p = {.s = quant_stream_params(s, o, laid)};
    struct conv_stream_params *e = &p.s;
    if (s->y == CONV_S8 && s->conv.residual_kind != SAC_RESIDUAL_AFTER &&
        (e->act == CONV_STREAM_NONE || e->act == CONV_STREAM_CLAMP)) {
        const bool none = e->act == CONV_STREAM_NONE;
        e->act = CONV_STREAM_CLAMP; /* one limit does for both */
        e->low = none ? -128 : SAC_MAX(-128.0f, SAC_MIN(e->low, 127.0f));
        e->high = none ? 127 : SAC_MAX(-128.0f, SAC_MIN(e->high, 127.0f));
    } else
        p.saturates = s->y == CONV_S8;
    tensor_shapes(&s->conv, &p, variant, shapes);
    return p;
}

struct conv_bytes_lay_params quant_lay_params(const struct quant_spec *s, const void *x, void *to)
{
    const struct conv_map *m = &s->conv.in;
    return (struct conv_bytes_lay_params){.x = x,
                                          .to = to,
                                          .pixels = m->size[1] * m->size[2],
                                          .count = s->conv.n * m->size[1] * m->size[2],
                                          .c = (int)m->c,
                                          .depth = (int)quant_depth(s),
                                          .x_pixel = m->pixel,
                                          .x_sample = m->sample};
}
