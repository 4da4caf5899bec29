/* SPDX-License-Identifier: Apache-2.0 */
/* BatchNormalization that no convolution took, with the activation behind it: a factor and a
 * summand for each channel. */
#include <math.h>
#include <stdio.h>

#include "engine/cpu/cpu.h"
#include "engine/cpu/map.h"

enum { SCALE = 1, SHIFT, MEAN, VARIANCE, CHUNK = 8192 };

struct batch_norm {
    struct sac_units      units;
    int64_t               c, plane, count;
    int64_t               unit, length; /* floats of a unit and of a pattern; channels last */
    float                *scale, *shift;
    struct sac_map        in, out; /* where one of them is a part of a wider map */
    struct sac_activation act;
};

static struct sac_kernel_offer batch_norm_supports(struct sac_device                *dev,
                                                   const struct sac_kernel_question *q)
{
    struct sac_kernel_offer   offer = sac_kernel_take(q);
    const struct sac_op_call *c = q->call;
    (void)dev;
    if (sac_attr_int(c->node, "training_mode", 0))
        return sac_kernel_refuse("in training its statistics are the input's");
    if (sac_cpu_level() < SAC_CPU_AVX2 || !sac_call_is_float(c) ||
        sac_layout_is_half(q->in_layout[0]) || sac_operand_elements(&c->in[0]) == 0)
        return sac_kernel_refuse("not float32, empty, or no AVX2");
    for (int i = SCALE; i <= VARIANCE; i++) {
        offer.in_layout[i] = SAC_LAYOUT_PLAIN;
        if (!c->in[i].data)
            return sac_kernel_refuse("its statistics are not constant");
    }
    offer.out_layout[0] = offer.in_layout[0];
    offer.in_place = 0;
    offer.strided = sac_layout_is_last(offer.out_layout[0]) && sac_volume_fits(&c->in[0]);
    return offer;
}

static void by_pattern(const void *state, void *const *in, void *const *out, int64_t first,
                       int64_t end)
{
    const struct batch_norm *s = state;
    const int64_t            from = first * s->unit, to = SAC_MIN(end * s->unit, s->count);
    SAC_SIMD_PICK(sac_map_affine)
    (&s->act, (const float *)in[0] + from, s->scale, s->shift, s->length, (float *)out[0] + from,
     to - from);
}

static void by_pixel(const void *state, void *const *in, void *const *out, int64_t first,
                     int64_t end)
{
    const struct batch_norm *s = state;
    for (int64_t k = first; k < end; k++) {
        const int64_t n = k / s->plane, pixel = k % s->plane;
        SAC_SIMD_PICK(sac_map_affine)
        (&s->act, (const float *)in[0] + n * s->in.sample + pixel * s->in.pixel, s->scale, s->shift,
         s->length, (float *)out[0] + n * s->out.sample + pixel * s->out.pixel, s->c);
    }
}

static void by_plane(const void *state, void *const *in, void *const *out, int64_t first,
                     int64_t end)
{
    const struct batch_norm *s = state;
    for (int64_t k = first; k < end; k++) {
        float scale[16], shift[16];
        sac_pattern_fill(scale, 16, &s->scale[k % s->c], 1);
        sac_pattern_fill(shift, 16, &s->shift[k % s->c], 1);
        SAC_SIMD_PICK(sac_map_affine)
        (&s->act, (const float *)in[0] + k * s->plane, scale, shift, sac_simd_lanes(),
         (float *)out[0] + k * s->plane, s->plane);
    }
}

static void batch_norm_release(void *state)
{
    struct batch_norm *s = state;
    if (s) {
        sac_free(s->scale);
        sac_free(s->shift);
    }
    sac_free(s);
}

static void fill(struct batch_norm *s, const struct sac_op_call *c)
{
    const float *scale = c->in[SCALE].data, *shift = c->in[SHIFT].data;
    const float *mean = c->in[MEAN].data, *variance = c->in[VARIANCE].data;
    const double epsilon = sac_attr_float(c->node, "epsilon", 1e-5f);
    for (int64_t i = 0; i < s->length; i++) {
        const int64_t k = i % s->c;
        const double  factor = scale[k] / sqrt(variance[k] + epsilon);
        s->scale[i] = (float)factor;
        s->shift[i] = (float)(shift[k] - mean[k] * factor);
    }
}

static sac_result batch_norm_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_operand *x = &plan->call->in[0];
    struct batch_norm        *s = sac_new(struct batch_norm);
    if (!s)
        return SAC_OP_FAIL(plan->call, SAC_ERR_MEMORY, "no memory for its kernel");
    s->c = x->dims[1];
    s->count = sac_operand_elements(x);
    s->plane = s->count / x->dims[0] / s->c;
    const bool last = plan->in_layout[0] == SAC_LAYOUT_CHANNELS_LAST || s->plane == 1;
    s->length = last ? sac_pattern_length(s->c, sac_simd_lanes()) : s->c;
    s->scale = sac_alloc_aligned(64, (size_t)s->length * sizeof(float));
    s->shift = sac_alloc_aligned(64, (size_t)s->length * sizeof(float));
    if (!s->scale || !s->shift) {
        batch_norm_release(s);
        return SAC_OP_FAIL(plan->call, SAC_ERR_MEMORY, "no memory for its kernel");
    }
    fill(s, plan->call);
    s->act = sac_activation_read(plan->call->node);
    s->unit = (CHUNK + s->length - 1) / s->length * s->length;
    if (plan->in_pixel[0] || plan->out_pixel[0]) {
        s->in = sac_map_in(plan, 0);
        s->out = sac_map_out(plan, 0);
        sac_units_init(&s->units, dev, x->dims[0] * s->plane, s->count / 8, by_pixel);
    } else if (last)
        sac_units_init(&s->units, dev, (s->count + s->unit - 1) / s->unit, s->count / 8,
                       by_pattern);
    else
        sac_units_init(&s->units, dev, x->dims[0] * s->c, s->count / 8, by_plane);
    snprintf(plan->implementation, sizeof plan->implementation, "%s", sac_simd_name());
    plan->state = s;
    return SAC_OK;
}

const struct sac_kernel sac_cpu_BatchNormalization = {SAC_OP_BatchNormalization,
                                                      batch_norm_supports, batch_norm_prepare,
                                                      sac_units_run, batch_norm_release};
const struct sac_kernel sac_cpu_FusedBatchNorm = {SAC_OP_FusedBatchNorm, batch_norm_supports,
                                                  batch_norm_prepare, sac_units_run,
                                                  batch_norm_release};
