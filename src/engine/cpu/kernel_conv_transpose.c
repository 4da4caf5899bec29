/* SPDX-License-Identifier: Apache-2.0 */
/* ConvTranspose as convolutions. Outputs whose places have the same remainders by the strides are a
 * phase: they see the same taps of the kernel, those of its own remainders, each of another input.
 * So a phase is a convolution with these taps in turned order, whose outputs lie a stride apart,
 * and no number is computed that is not needed. */
#include <stdio.h>

#include "engine/cpu/conv.h"
#include "engine/ops/util.h"
#include "engine/ops/window.h"

enum {
    FLOPS_PER_NS = 100, /* for cutting work into pieces only */
    BAND_PIXELS = 84    /* whole tiles of 14, 6 and 12 pixels */
};

/* One dimension of a phase. */
struct axis {
    int64_t tap, taps;        /* the first of its taps, and how many */
    int64_t out;              /* outputs */
    int64_t pad, input, size; /* its first input, how many it has, and zeros before these */
};

struct phase {
    struct sac_conv conv;
    int64_t         in_at, out_at; /* elements */
};

struct state {
    struct sac_units  units; /* a band of rows of a phase each */
    struct phase     *phases;
    int64_t           count, bands;
    bool              by_phases; /* the bands of a phase follow each other */
    sac_conv_rows_fn *rows;
};

/* Output first + i * stride gets input i + whole - t by the phase's tap t. */
static struct axis axis_of(const struct sac_window *w, int d, int64_t first)
{
    const int64_t stride = w->stride[d], at = first + w->pad_begin[d], whole = at / stride;
    struct axis   a = {.tap = at % stride, .out = (w->out[d] - first + stride - 1) / stride};
    a.taps = (w->kernel[d] - a.tap + stride - 1) / stride;
    a.pad = SAC_MAX(a.taps - 1 - whole, 0);
    a.input = SAC_MAX(whole - (a.taps - 1), 0);
    a.size = w->in[d] - a.input;
    return a;
}

/* Each phase has taps, and inputs that these see. */
static bool phases_are_convs(const struct sac_window *w)
{
    for (int d = 0; d < SAC_WINDOW_DIMS; d++) {
        if (w->dilation[d] != 1 || w->kernel[d] < w->stride[d])
            return false;
        for (int64_t first = 0; first < SAC_MIN(w->stride[d], w->out[d]); first++)
            if (axis_of(w, d, first).size < 1)
                return false;
    }
    return true;
}

static struct sac_kernel_offer transpose_supports(struct sac_device                *dev,
                                                  const struct sac_kernel_question *q)
{
    struct sac_kernel_offer   offer = sac_kernel_take(q);
    const struct sac_op_call *c = q->call;
    struct sac_window         w;
    (void)dev;
    if (sac_cpu_level() < SAC_CPU_AVX2)
        return sac_kernel_refuse("needs AVX2");
    if (!sac_call_is_float(c) || !sac_volume_fits(&c->in[0]) ||
        sac_operand_elements(&c->out[0]) == 0 || sac_operand_elements(&c->in[0]) == 0)
        return sac_kernel_refuse("not float32 of one to three spatial dimensions, or empty");
    if (!c->in[1].data || (sac_op_has(c, 2) && !c->in[2].data))
        return sac_kernel_refuse("weights are not constant");
    if (sac_window_read_transposed(c, c->in[1].dims + 2, &w) != SAC_OK || !phases_are_convs(&w))
        return sac_kernel_refuse("dilated, a stride longer than the kernel, or pads beyond it");
    offer.in_layout[0] = offer.out_layout[0] = SAC_LAYOUT_CHANNELS_LAST;
    offer.in_layout[1] = offer.in_layout[2] = SAC_LAYOUT_PLAIN;
    offer.strided = true;
    return offer;
}

static struct sac_conv_strides strides_of(const struct sac_map *m)
{
    return (struct sac_conv_strides){m->sample, m->w * m->pixel, m->pixel, 1,
                                     m->h * m->w * m->pixel};
}

static void describe(struct phase *p, const struct sac_kernel_plan *plan,
                     const struct sac_window *w, const struct axis *a, const int64_t *first)
{
    const struct sac_map          in = sac_map_in(plan, 0), out = sac_map_out(plan, 0);
    struct sac_conv              *v = &p->conv;
    const struct sac_conv_strides from = strides_of(&in), to = strides_of(&out);
    sac_conv_read_ending(v, plan->call->node);
    v->n = in.n;
    v->groups = sac_attr_int(plan->call->node, "group", 1);
    v->group_in_c = in.c / v->groups;
    v->group_out_c = out.c / v->groups;
    v->depthwise = v->groups > 1 && v->group_in_c == 1 && v->group_out_c == 1;
    v->planes = 1;
    v->in_d = a[0].size, v->in_h = a[1].size, v->in_w = a[2].size;
    v->out_d = a[0].out, v->out_h = a[1].out, v->out_w = v->last_w = a[2].out;
    v->kernel_d = (int)a[0].taps, v->kernel_h = (int)a[1].taps, v->kernel_w = (int)a[2].taps;
    v->pad_front = (int)a[0].pad, v->pad_top = (int)a[1].pad, v->pad_left = (int)a[2].pad;
    v->stride_d = v->stride_h = v->stride_w = 1;
    v->dilation_d = v->dilation_h = v->dilation_w = 1;
    v->merged = from.pixel == v->group_in_c;
    v->in = from;
    v->out = (struct sac_conv_strides){to.sample, to.row * w->stride[1], to.pixel * w->stride[2], 1,
                                       to.slice * w->stride[0]};
    p->in_at = a[0].input * from.slice + a[1].input * from.row + a[2].input * from.pixel;
    p->out_at = first[0] * to.slice + first[1] * to.row + first[2] * to.pixel;
}

/* Weights of the file are [C][K/groups][taps], those of a convolution [K][C/groups][taps]. */
static bool pack(struct sac_conv *v, const struct sac_op_call *c, const struct sac_window *w,
                 const struct axis *a)
{
    const int64_t taps = sac_conv_taps(v), all = sac_dims_product(SAC_WINDOW_DIMS, w->kernel);
    const int64_t channels = v->groups * v->group_out_c;
    const float  *from = c->in[1].data;
    float        *turned = sac_alloc((size_t)(channels * v->group_in_c * taps) * sizeof *turned);
    if (!turned)
        return false;
    for (int64_t i = 0; i < channels * v->group_in_c * taps; i++) {
        const int64_t tap = i % taps, o = i / taps / v->group_in_c;
        const int64_t input = o / v->group_out_c * v->group_in_c + i / taps % v->group_in_c;
        const int64_t place[] = {tap / (a[1].taps * a[2].taps), tap / a[2].taps % a[1].taps,
                                 tap % a[2].taps};
        int64_t       at = 0;
        for (int d = 0; d < SAC_WINDOW_DIMS; d++)
            at = at * w->kernel[d] + a[d].tap + (a[d].taps - 1 - place[d]) * w->stride[d];
        turned[i] = from[(input * v->group_out_c + o % v->group_out_c) * all + at];
    }
    const struct sac_conv_weights weights = {turned, v->group_in_c * taps, taps,
                                             sac_op_has(c, 2) ? c->in[2].data : NULL};
    const bool                    ok = sac_conv_pack(v, &weights);
    sac_free(turned);
    return ok;
}

static bool make_phases(struct state *s, const struct sac_kernel_plan *plan,
                        const struct sac_window *w)
{
    int64_t steps[SAC_WINDOW_DIMS];
    for (int d = 0; d < SAC_WINDOW_DIMS; d++)
        steps[d] = SAC_MIN(w->stride[d], w->out[d]);
    s->count = sac_dims_product(SAC_WINDOW_DIMS, steps);
    s->phases = sac_calloc((size_t)s->count, sizeof *s->phases);
    bool ok = s->phases != NULL;
    for (int64_t i = 0; i < s->count && ok; i++) {
        const int64_t first[] = {i / (steps[1] * steps[2]), i / steps[2] % steps[1], i % steps[2]};
        const struct axis axes[] = {axis_of(w, 0, first[0]), axis_of(w, 1, first[1]),
                                    axis_of(w, 2, first[2])};
        describe(&s->phases[i], plan, w, axes, first);
        ok = pack(&s->phases[i].conv, plan->call, w, axes);
    }
    return ok;
}

static void work(const void *state, void *const *in, void *const *out, int64_t first, int64_t end)
{
    const struct state *s = state;
    for (int64_t u = first; u < end; u++) {
        const int64_t       band = s->by_phases ? u % s->bands : u / s->count;
        const struct phase *p = &s->phases[s->by_phases ? u / s->bands : u % s->count];
        const int64_t       rows = sac_conv_row_count(&p->conv);
        s->rows(&p->conv, (const float *)in[0] + p->in_at, NULL, (float *)out[0] + p->out_at,
                rows * band / s->bands, rows * (band + 1) / s->bands);
    }
}

/* What is larger, weights or input, is read once. */
static void cut(struct state *s, const struct sac_device *dev, const struct sac_op_call *c)
{
    const struct sac_conv *v = &s->phases[0].conv;
    const int64_t          rows = sac_conv_row_count(v), input = sac_operand_elements(&c->in[0]);
    const int64_t          weights = sac_operand_elements(&c->in[1]);
    const int64_t          ns = 2 * input * (weights / c->in[1].dims[0]) / FLOPS_PER_NS;
    const int64_t          tall = SAC_CLAMP(BAND_PIXELS / v->out_w, 1, v->out_h);
    const int64_t wanted = (sac_pieces(dev, rows * s->count, ns) + s->count - 1) / s->count;
    s->bands = SAC_CLAMP((rows + tall - 1) / tall, SAC_MIN(wanted, rows), rows);
    s->by_phases = weights > input;
    s->rows = SAC_SIMD_PICK(sac_conv_rows);
    sac_units_init(&s->units, dev, s->bands * s->count, ns, work);
}

static void transpose_release(void *state)
{
    struct state *s = state;
    for (int64_t i = 0; s && s->phases && i < s->count; i++) {
        sac_free(s->phases[i].conv.weights);
        sac_free(s->phases[i].conv.bias);
    }
    if (s)
        sac_free(s->phases);
    sac_free(s);
}

static sac_result transpose_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    struct sac_window         window;
    sac_result                res = sac_window_read_transposed(c, c->in[1].dims + 2, &window);
    if (res != SAC_OK)
        return res;
    struct state *s = sac_new(struct state);
    if (!s || !make_phases(s, plan, &window)) {
        transpose_release(s);
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    }
    cut(s, dev, c);
    snprintf(plan->implementation, sizeof plan->implementation, "%s phases", sac_simd_name());
    plan->state = s;
    return SAC_OK;
}

const struct sac_kernel sac_cpu_ConvTranspose = {
    SAC_OP_ConvTranspose, transpose_supports, transpose_prepare, sac_units_run, transpose_release};
