/* SPDX-License-Identifier: Apache-2.0 */
/* Expectation: a pixel's bins lie beside each other, in channels last; they are turned, so that the
 * softmax takes neighbouring pixels at once. What follows the means is activated on the way. */
#include <stdio.h>
#include <string.h>

#include "engine/cpu/cpu.h"
#include "engine/cpu/map.h"
#include "engine/cpu/moves.h"
#include "engine/ops/expectation.h"
#include "engine/ops/fused.h"

enum {
    BINS_MAX = 128,
    PIXELS = 64 /* in a unit of work, which lie side by side for the softmax */
};

enum { X, W, M, R };

struct expectation_state {
    struct sac_units      units;
    int64_t               bins, groups;
    int64_t               sums, rest;        /* 0: none */
    int64_t               pixels, stretches; /* of one sample; units they make */
    int64_t               in_sample, in_pixel, rest_sample, rest_pixel;
    int64_t               out_sample, out_group, out_pixel;
    struct sac_activation act;
};

static struct sac_kernel_offer expectation_supports(struct sac_device                *dev,
                                                    const struct sac_kernel_question *q)
{
    struct sac_kernel_offer offer = sac_kernel_take(q);
    (void)dev;
    if (sac_cpu_level() < SAC_CPU_AVX2 || !sac_call_is_float(q->call) ||
        q->call->in[1].dims[0] > BINS_MAX || !sac_map_fits(&q->call->in[0]) ||
        !sac_map_fits(&q->call->out[0]) || sac_operand_elements(&q->call->out[0]) == 0)
        return sac_kernel_refuse("no map, empty, more than %d bins, or no AVX2", BINS_MAX);
    offer.in_layout[X] = offer.in_layout[R] = offer.out_layout[0] = SAC_LAYOUT_CHANNELS_LAST;
    offer.in_layout[W] = offer.in_layout[M] = SAC_LAYOUT_PLAIN;
    offer.strided = true;
    return offer;
}

/* The means of `count` neighbouring pixels, from their bins of one group. */
static void stretch(const struct expectation_state *s, const float *x, const float *w, float *sum,
                    int64_t count)
{
    float line[BINS_MAX * PIXELS];
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < s->bins; k++)
            line[k * count + i] = x[i * s->in_pixel + k];
    SAC_SIMD_PICK(sac_map_softmax)(line, line, s->bins, count, count);
    memset(sum, 0, (size_t)count * sizeof *sum);
    for (int64_t k = 0; k < s->bins; k++)
        for (int64_t i = 0; i < count; i++)
            sum[i] += line[k * count + i] * w[k];
}

static void put(const struct expectation_state *s, const float *v, float *y, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        y[i * s->out_pixel] = v[i];
}

/* The sums that m, at the first of the pixels, makes of their means. */
static void put_sums(const struct expectation_state *s, float mean[][PIXELS], const float *m,
                     float *y, int64_t count)
{
    for (int64_t c = 0; c < s->sums; c++, m += (s->groups + 1) * s->pixels) {
        float sum[PIXELS];
        memcpy(sum, m + s->groups * s->pixels, (size_t)count * sizeof *sum);
        for (int64_t g = 0; g < s->groups; g++)
            for (int64_t i = 0; i < count; i++)
                sum[i] += m[g * s->pixels + i] * mean[g][i];
        put(s, sum, y + c * s->out_group, count);
    }
}

static void put_rest(const struct expectation_state *s, const float *r, float *y, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        SAC_SIMD_PICK(sac_map_activate)
    (&s->act, r + i * s->rest_pixel, y + i * s->out_pixel, s->rest);
}

static void expectation_work(const void *state, void *const *in, void *const *out, int64_t first,
                             int64_t end)
{
    const struct expectation_state *s = state;
    for (int64_t u = first; u < end; u++) {
        const int64_t n = u / s->stretches, p = u % s->stretches * PIXELS,
                      count = SAC_MIN(PIXELS, s->pixels - p);
        const float *x = (const float *)in[0] + n * s->in_sample + p * s->in_pixel;
        float       *y = (float *)out[0] + n * s->out_sample + p * s->out_pixel;
        float        mean[SAC_EXPECTATION_MEANS][PIXELS];
        for (int64_t g = 0; g < s->groups; g++) {
            float *to = mean[s->sums ? g : 0];
            stretch(s, x + g * s->bins, in[W], to, count);
            if (!s->sums)
                put(s, to, y + g * s->out_group, count);
        }
        if (s->sums)
            put_sums(s, mean, (const float *)in[M] + p, y, count);
        if (s->rest)
            put_rest(s, (const float *)in[R] + n * s->rest_sample + p * s->rest_pixel,
                     y + (s->sums ? s->sums : s->groups) * s->out_group, count);
    }
}

static void set_rest(struct expectation_state *s, const struct sac_kernel_plan *plan)
{
    int64_t from[SAC_RANK_MAX];
    if (!sac_op_has(plan->call, R))
        return;
    sac_input_strides(plan, R, from);
    s->act = sac_activation_read(plan->call->node);
    s->rest = plan->call->in[R].dims[1];
    s->rest_sample = from[0];
    s->rest_pixel = from[plan->call->in[R].rank - 1];
}

static sac_result expectation_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    struct expectation_state *s = sac_new(struct expectation_state);
    const struct sac_operand *x = &plan->call->in[0];
    int64_t                   from[SAC_RANK_MAX], to[SAC_RANK_MAX];
    if (!s)
        return SAC_OP_FAIL(plan->call, SAC_ERR_MEMORY, "no memory for its kernel");
    sac_input_strides(plan, 0, from);
    sac_output_strides(plan, 0, to);
    s->bins = plan->call->in[W].dims[0];
    s->sums = sac_op_has(plan->call, M) ? plan->call->in[M].dims[0] : 0;
    s->groups = x->dims[1] / s->bins;
    s->pixels = sac_operand_elements(x) / (x->dims[0] * x->dims[1]);
    s->stretches = (s->pixels + PIXELS - 1) / PIXELS;
    s->in_sample = from[0];
    s->in_pixel = from[x->rank - 1];
    s->out_sample = to[0];
    s->out_group = to[1];
    s->out_pixel = to[x->rank - 1];
    set_rest(s, plan);
    sac_units_init(&s->units, dev, x->dims[0] * s->stretches, sac_operand_elements(x),
                   expectation_work);
    snprintf(plan->implementation, sizeof plan->implementation, "%s", sac_simd_name());
    plan->state = s;
    return SAC_OK;
}

const struct sac_kernel sac_cpu_Expectation = {SAC_OP_Expectation, expectation_supports,
                                               expectation_prepare, sac_units_run, sac_free};
