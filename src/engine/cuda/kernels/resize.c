/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of Resize and Upsample. */
#include "engine/cuda/kernels/resize.h"

#include <math.h>

#include "engine/cuda/kernels/kernels.h"

static bool is_resized(const struct sac_resize *r, const struct sac_operand *in, int d)
{
    return r->out[d] != in->dims[d] || r->scale[d] != 1 || r->roi_start[d] != 0 ||
           r->roi_end[d] != 1;
}

static bool resize_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    const struct sac_op_call *c = q->call;
    const struct sac_operand *in = &c->in[0];
    struct sac_resize         r;
    int                       axes = 0;
    if (sac_resize_read(c, &r) != SAC_OK)
        return ops_refuse(offer, "its sizes are not known");
    for (int d = 0; d < in->rank; d++)
        axes += is_resized(&r, in, d);
    if (axes > OPS_RESIZE_AXES || in->rank > 5 ||
        sac_operand_elements(&q->call->out[0]) >= INT32_MAX)
        return ops_refuse(offer, "%d of %d dimensions change", axes, in->rank);
    const bool last = sac_layout_is_last(offer->in_layout[0]) && ops_can_be_last(in);
    offer->out_layout[0] = ops_with_last(SAC_LAYOUT_PLAIN, last);
    /* Copies keep the input's precision; interpolated results may be float16. */
    ops_halve_output(q, offer, 0,
                     r.mode != SAC_RESIZE_NEAREST || sac_layout_is_half(offer->in_layout[0]));
    offer->strided = last;
    offer->writes_any = true;
    return true;
}

static int find(const char *name, const char *const *list)
{
    int i = 0;
    while (list[i] && strcmp(name, list[i]) != 0)
        i++;
    return i;
}

/* Output x reads input x / n: nearest, with an integer scale and a suitable rounding. */
static struct ops_divisor whole_scale(const struct ops_resize *p, const struct ops_resize_axis *a)
{
    const int64_t n = (int64_t)a->scale;
    const bool    floors =
        (p->coordinates == OPS_ASYMMETRIC && p->nearest == OPS_NEAREST_FLOOR) ||
        (p->coordinates == OPS_HALF_PIXEL && p->nearest == OPS_NEAREST_PREFER_FLOOR);
    if (p->mode != OPS_RESIZE_NEAREST || !floors || (double)n != a->scale || n < 1 ||
        a->out != a->in * n)
        return (struct ops_divisor){0};
    return ops_divisor_of(n);
}

/* The linear map from outputs to inputs, before nearest rounds it. */
static void set_line(const struct ops_resize *p, struct ops_resize_axis *a)
{
    const double size = a->in, out = a->scale * size,
                 span = (a->roi_end - a->roi_start) * (size - 1);
    a->slope = 1 / a->scale;
    a->shift = 0;
    switch (p->coordinates) {
    case OPS_ASYMMETRIC: break;
    case OPS_ALIGN_CORNERS: a->slope = out == 1 ? 0 : (size - 1) / (out - 1); break;
    case OPS_CROP:
        a->slope = a->out == 1 ? 0 : span / (a->out - 1);
        a->shift = a->roi_start * (size - 1) + (a->out == 1 ? span / 2 : 0);
        break;
    case OPS_TF_HALF_PIXEL: a->shift = 0.5 / a->scale; break;
    default:
        a->shift = 0.5 / a->scale - 0.5;
        if (p->coordinates == OPS_HALF_PIXEL_SYMMETRIC)
            a->shift += size / 2 * (1 - a->out / out);
        if (p->coordinates == OPS_PYTORCH_HALF_PIXEL && a->out == 1) {
            a->slope = 0;
            a->shift = -0.5;
        }
    }
}

static void set_axis(struct ops_resize *p, const struct sac_resize *r, const struct sac_operand *in,
                     int d)
{
    struct ops_resize_axis *a = &p->axis[p->axes++];
    a->dim = in->rank < 3 ? d + 5 - in->rank : d < 2 ? d : d + 5 - in->rank;
    a->in = (int)in->dims[d];
    a->out = (int)r->out[d];
    a->scale = r->scale[d];
    a->shrink = r->antialias && r->scale[d] < 1 ? r->scale[d] : 1;
    a->taps = r->mode == SAC_RESIZE_NEAREST
                  ? 1
                  : 2 * (int)ceil((r->mode == SAC_RESIZE_CUBIC ? 2 : 1) / a->shrink);
    a->crops = p->coordinates == OPS_CROP;
    a->roi_start = r->roi_start[d];
    a->roi_end = r->roi_end[d];
    a->whole = whole_scale(p, a);
    set_line(p, a);
}

/* [N,C,depth,height,width]: ranks one and two have neither samples nor channels. */
static void spread(const struct sac_operand *o, const int64_t *own, int64_t *steps, int64_t *dims)
{
    for (int k = 0; k < 5; k++) {
        steps[k] = 0;
        dims[k] = 1;
    }
    for (int d = 0; d < o->rank; d++) {
        const int k = o->rank < 3 ? d + 5 - o->rank : d < 2 ? d : d + 5 - o->rank;
        steps[k] = own[d];
        dims[k] = o->dims[d];
    }
}

static void set_units(struct ops_resize *p, const int64_t *dims, bool last)
{
    int64_t each = 8;
    for (int k = 0; k < p->axes; k++)
        each = p->axis[k].dim == 1 ? 1 : each;
    const int64_t units = (dims[1] + each - 1) / each;
    p->channels = (int)dims[1];
    p->units =
        (struct ops_places){.last = last, .count = dims[0] * units * dims[2] * dims[3] * dims[4]};
    p->units.c = ops_divisor_of(units);
    p->units.z = ops_divisor_of(dims[2]);
    p->units.y = ops_divisor_of(dims[3]);
    p->units.x = ops_divisor_of(dims[4]);
}

static bool by_eights(const struct ops_resize *p, int64_t channels)
{
    bool fits = ops_window_by_eights(&p->w, p->in_type, p->out_type, channels) &&
                p->w.x_step[1] == 1 && p->w.y_step[1] == 1;
    for (int k = 0; k < p->axes; k++)
        fits = fits && p->axis[k].dim != 1;
    return fits;
}

/* Nearest with whole scales: each input is read once and written where it stands. */
static void set_repeats(struct ops_resize *p, const int64_t *in)
{
    p->repeats = p->vector && p->mode == OPS_RESIZE_NEAREST;
    for (int d = 0; d < 5; d++)
        p->times[d] = 1;
    for (int k = 0; k < p->axes; k++) {
        p->repeats = p->repeats && p->axis[k].whole.d && p->axis[k].dim >= 2;
        p->times[p->axis[k].dim] = (int)p->axis[k].whole.d;
    }
    p->sources = p->units;
    p->sources.count = p->units.c.d * in[0] * in[2] * in[3] * in[4];
    p->sources.z = ops_divisor_of(in[2]);
    p->sources.y = ops_divisor_of(in[3]);
    p->sources.x = ops_divisor_of(in[4]);
}

/* Enlarged maps: four neighbouring columns interpolate at most four columns of the input, so one
 * thread computes them together. */
static void set_run(struct ops_resize *p, const int64_t *in, const int64_t *out)
{
    const bool types = ops_is_f16_or_f32(p->in_type) && ops_is_f16_or_f32(p->out_type);
    int64_t    reach = 0;
    p->x_axis = p->y_axis = -1;
    p->run = types && p->mode == OPS_RESIZE_LINEAR && !p->exclude_outside;
    for (int k = 0; k < p->axes; k++) {
        const struct ops_resize_axis *a = &p->axis[k];
        p->run = p->run && a->dim >= 3 && a->taps == 2 && !a->crops;
        *(a->dim == 4 ? &p->x_axis : &p->y_axis) = k;
    }
    for (int d = 1; d < 5; d++)
        reach += (in[d] - 1) * p->w.x_step[d];
    if (!p->run || p->x_axis < 0 || p->axis[p->x_axis].slope < 0 ||
        p->axis[p->x_axis].slope > 0.66 || reach >= INT32_MAX) {
        p->run = 0;
        return;
    }
    p->fours = p->units;
    p->fours.x = ops_divisor_of((out[4] + 3) / 4);
    p->fours.count = p->units.count / out[4] * ((out[4] + 3) / 4);
    p->whole = p->w.y_step[4] == 1 && out[4] % 4 == 0;
    for (int d = 0; d < 4; d++)
        p->whole = p->whole && p->w.y_step[d] % 4 == 0;
}

/* Nearest with whole scales only moves bits, so four neighbouring bytes move as one number. */
static bool by_words(const struct ops_resize *p, const int64_t *dims)
{
    bool fits = p->mode == OPS_RESIZE_NEAREST && p->in_type == p->out_type &&
                sac_dtype_bytes((enum sac_dtype)p->in_type) == 1 && dims[1] % 32 == 0 &&
                p->w.x_step[1] == 1 && p->w.y_step[1] == 1;
    for (int d = 0; d < 5; d++)
        fits = fits && (d == 1 || (p->w.x_step[d] % 4 == 0 && p->w.y_step[d] % 4 == 0));
    for (int k = 0; k < p->axes; k++)
        fits = fits && p->axis[k].whole.d && p->axis[k].dim >= 2;
    return fits;
}

static void take_words(struct ops_resize *p, int64_t *in, int64_t *out)
{
    p->in_type = p->out_type = SAC_F32;
    in[1] /= 4;
    out[1] /= 4;
    for (int d = 0; d < 5; d++) {
        p->w.x_step[d] /= d == 1 ? 1 : 4;
        p->w.y_step[d] /= d == 1 ? 1 : 4;
    }
}

static sac_result resize_fill(struct sac_kernel_plan *plan, void *params)
{
    static const char *const coordinates[] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
        "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize", NULL};
    static const char *const  nearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                           "ceil", NULL};
    const struct sac_op_call *c = plan->call;
    const struct sac_operand *in = &c->in[0];
    struct ops_resize        *p = params;
    struct sac_resize         r;
    int64_t                   own[SAC_RANK_MAX], dims[5], in_dims[5];
    SAC_TRY(sac_resize_read(c, &r));
    p->mode = (int)r.mode;
    p->coordinates = find(r.coordinates, coordinates);
    p->nearest = find(r.nearest, nearest);
    p->exclude_outside = r.exclude_outside;
    p->cubic_a = r.cubic_a;
    p->extrapolation = r.extrapolation;
    p->in_type = ops_in_type(plan, 0);
    p->out_type = ops_out_type(plan, 0);
    for (int d = 0; d < in->rank; d++)
        if (is_resized(&r, in, d))
            set_axis(p, &r, in, d);
    ops_steps_in(plan, 0, own);
    spread(in, own, p->w.x_step, in_dims);
    ops_steps_out(plan, 0, own);
    spread(&c->out[0], own, p->w.y_step, dims);
    if (plan->in_align[0] % 4 == 0 && plan->out_align[0] % 4 == 0 && by_words(p, dims))
        take_words(p, in_dims, dims);
    set_units(p, dims, sac_layout_is_last(plan->out_layout[0]));
    p->vector = by_eights(p, dims[1]);
    if (p->units.count > 0) {
        set_run(p, in_dims, dims);
        set_repeats(p, in_dims);
    }
    ops_take_from(plan, 1);
    return SAC_OK;
}

_Static_assert((int)SAC_RESIZE_NEAREST == OPS_RESIZE_NEAREST &&
                   (int)SAC_RESIZE_LINEAR == OPS_RESIZE_LINEAR &&
                   (int)SAC_RESIZE_CUBIC == OPS_RESIZE_CUBIC,
               "the modes are those of ops/reads.h");

OPS_ROW(Resize, resize_layouts, resize_fill, ops_launch_resize, ops_resize)
OPS_ROW(Upsample, resize_layouts, resize_fill, ops_launch_resize, ops_resize)
