/* SPDX-License-Identifier: Apache-2.0 */
/* DeformConv (2-D): a convolution whose taps are moved by offsets and weighted by a mask, both
 * given for each output place. Taps between pixels are interpolated from their four neighbours. */
#include <math.h>

#include "engine/ops/util.h"
#include "engine/ops/window.h"

enum { X, WEIGHTS, OFFSET, BIAS, MASK, INPUTS };

static sac_result deform_shape(struct sac_op_call *c)
{
    const struct sac_operand *x = &c->in[X], *w = &c->in[WEIGHTS], *o = &c->in[OFFSET];
    struct sac_window         win;
    int64_t                   group = sac_attr_int(c->node, "group", 1);
    int64_t                   offset_group = sac_attr_int(c->node, "offset_group", 1);
    SAC_CHECK(c, sac_dtype_is_float(x->dtype), "input of dtype %s", sac_in_dtype(c, 0));
    SAC_CHECK(c, x->rank == 4 && w->rank == 4 && o->rank == 4,
              "input, weights and offsets of %d, %d and %d dimensions; have 4", x->rank, w->rank,
              o->rank);
    SAC_TRY(sac_window_read(c, X, w->dims + 2, &win));
    int64_t taps = sac_dims_product(3, win.kernel);
    SAC_CHECK(c,
              group >= 1 && x->dims[1] % group == 0 && w->dims[0] % group == 0 &&
                  w->dims[1] == x->dims[1] / group && offset_group >= 1 &&
                  x->dims[1] % offset_group == 0,
              "%lld channels in %lld groups, %lld of offsets", (long long)x->dims[1],
              (long long)group, (long long)offset_group);
    SAC_CHECK(c,
              o->dims[0] == x->dims[0] && o->dims[1] == 2 * offset_group * taps &&
                  o->dims[2] == win.out[1] && o->dims[3] == win.out[2],
              "the offsets do not fit");
    if (sac_op_has(c, MASK))
        SAC_CHECK(c,
                  c->in[MASK].rank == 4 && c->in[MASK].dims[0] == x->dims[0] &&
                      c->in[MASK].dims[1] == offset_group * taps &&
                      c->in[MASK].dims[2] == win.out[1] && c->in[MASK].dims[3] == win.out[2],
                  "the mask does not fit");
    if (sac_op_has(c, BIAS))
        SAC_CHECK(c, c->in[BIAS].rank == 1 && c->in[BIAS].dims[0] == w->dims[0],
                  "the bias is not one number for each of %lld channels", (long long)w->dims[0]);
    int64_t dims[4] = {x->dims[0], w->dims[0], win.out[1], win.out[2]};
    return sac_shape_out(c, 0, x->dtype, 4, dims);
}

static double pixel(const double *plane, const struct sac_window *w, double y, double x)
{
    const bool inside = y >= 0 && x >= 0 && y < (double)w->in[1] && x < (double)w->in[2];
    return inside ? plane[(int64_t)y * w->in[2] + (int64_t)x] : 0; /* NaN is nowhere */
}

static double blend(const double *plane, const struct sac_window *w, double y, double x)
{
    double y0 = floor(y), x0 = floor(x), fy = y - y0, fx = x - x0;
    return (1 - fy) * ((1 - fx) * pixel(plane, w, y0, x0) + fx * pixel(plane, w, y0, x0 + 1)) +
           fy * ((1 - fx) * pixel(plane, w, y0 + 1, x0) + fx * pixel(plane, w, y0 + 1, x0 + 1));
}

struct deform {
    struct sac_window w;
    const double     *in[INPUTS];
    int64_t           channels, per_group, per_offset, out_channels, outputs_per_group;
    int64_t           offset_group;
};

/* What all outputs at place p of image n are sums of: each channel's taps, blended and masked. */
static void blend_taps(const struct deform *d, int64_t n, int64_t p, double *column)
{
    const struct sac_window *w = &d->w;
    const int64_t            taps = w->kernel[1] * w->kernel[2], plane = w->out[1] * w->out[2];
    for (int64_t ic = 0; ic < d->channels; ic++) {
        const int64_t og = ic / d->per_offset;
        const double *x = d->in[X] + (n * d->channels + ic) * w->in[1] * w->in[2];
        for (int64_t t = 0; t < taps; t++) {
            const int64_t at = (n * d->offset_group + og) * taps + t;
            const double  y_at = (double)(p / w->out[2] * w->stride[1] - w->pad_begin[1] +
                                         t / w->kernel[2] * w->dilation[1]) +
                                d->in[OFFSET][2 * at * plane + p];
            const double x_at = (double)(p % w->out[2] * w->stride[2] - w->pad_begin[2] +
                                         t % w->kernel[2] * w->dilation[2]) +
                                d->in[OFFSET][(2 * at + 1) * plane + p];
            const double mask = d->in[MASK] ? d->in[MASK][at * plane + p] : 1;
            *column++ = mask * blend(x, w, y_at, x_at);
        }
    }
}

static double deform_one(const struct deform *d, int64_t oc, const double *column)
{
    const int64_t taps = d->w.kernel[1] * d->w.kernel[2], count = d->per_group * taps;
    const double *weights = d->in[WEIGHTS] + oc * count;
    double        sum = d->in[BIAS] ? d->in[BIAS][oc] : 0;
    column += oc / d->outputs_per_group * count;
    for (int64_t k = 0; k < count; k++)
        sum += weights[k] * column[k];
    return sum;
}

static void deform_all(struct sac_op_call *c, const struct deform *d, double *column)
{
    const int64_t plane = d->w.out[1] * d->w.out[2];
    for (int64_t n = 0; n < c->out[0].dims[0]; n++)
        for (int64_t p = 0; p < plane; p++) {
            blend_taps(d, n, p, column);
            for (int64_t oc = 0; oc < d->out_channels; oc++)
                sac_operand_set(&c->out[0], (n * d->out_channels + oc) * plane + p,
                                deform_one(d, oc, column));
        }
}

static sac_result deform_ref(struct sac_op_call *c)
{
    const struct sac_operand *x = &c->in[X], *weights = &c->in[WEIGHTS];
    struct deform             d = {.channels = x->dims[1],
                                   .per_group = weights->dims[1],
                                   .out_channels = weights->dims[0],
                                   .offset_group = sac_attr_int(c->node, "offset_group", 1)};
    bool                      ok = true;
    SAC_TRY(sac_window_read(c, X, weights->dims + 2, &d.w));
    d.per_offset = SAC_MAX(d.channels / d.offset_group, 1);
    d.outputs_per_group = SAC_MAX(d.out_channels / sac_attr_int(c->node, "group", 1), 1);
    for (int i = 0; i < INPUTS; i++)
        if (sac_op_has(c, i)) {
            d.in[i] = sac_doubles(&c->in[i]);
            ok = ok && d.in[i];
        }
    if (ok && sac_operand_elements(&c->out[0]) > 0) {
        double *column = sac_calloc((size_t)SAC_MAX(d.channels, 1),
                                    (size_t)sac_dims_product(3, d.w.kernel) * sizeof *column);
        ok = column != NULL;
        if (ok)
            deform_all(c, &d, column);
        sac_free(column);
    }
    for (int i = 0; i < INPUTS; i++)
        if (sac_op_has(c, i))
            sac_doubles_done(&c->in[i], d.in[i]);
    return ok ? SAC_OK : sac_op_no_memory(c);
}

const struct sac_op sac_row_DeformConv = {SAC_ROW(DeformConv, 19, 3, 5, 1),
                                          SAC_TOLERANCE(1e-4f, 1e-4f), .shape = deform_shape,
                                          .ref = deform_ref};
