/* SPDX-License-Identifier: Apache-2.0 */
/* SampleNorm and GatedSum. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/cpu/cpu.h"
#include "engine/cpu/map.h"

enum { STRETCH = 4096 }; /* floats whose moments are computed at once: half of the L1 cache */

struct norm_state {
    int64_t               n, c, count; /* count: numbers of one sample */
    int64_t               stretches, length;
    double                epsilon;
    struct sac_activation act;
    float                *scale, *shift; /* [c] */
    bool                  last;          /* channels last: patterns; else plane by plane */
    int                   pieces;
};

struct norm_job {
    const struct norm_state *s;
    const float             *x;
    float                   *y;
    double                  *moments;       /* [stretches][2] of the sample under way */
    float                   *scale, *shift; /* patterns, or per channel when plain */
};

static struct sac_kernel_offer norm_supports(struct sac_device                *dev,
                                             const struct sac_kernel_question *q)
{
    struct sac_kernel_offer   offer = sac_kernel_take(q);
    const struct sac_op_call *c = q->call;
    (void)dev;
    if (sac_cpu_level() < SAC_CPU_AVX2 || !sac_call_is_float(q->call))
        return sac_kernel_refuse("needs AVX2");
    for (int i = 1; i < c->in_count; i++) {
        offer.in_layout[i] = SAC_LAYOUT_PLAIN;
        if (c->in[i].present && !c->in[i].data)
            return sac_kernel_refuse("scale or shift is not constant");
    }
    offer.out_layout[0] = offer.in_layout[0];
    offer.in_place = 0;
    if (sac_layout_is_half(q->in_layout[0]) || sac_operand_elements(&c->in[0]) == 0)
        return sac_kernel_refuse("half precision, or empty");
    return offer;
}

static void norm_release(void *state)
{
    struct norm_state *s = state;
    if (s) {
        sac_free(s->scale);
        sac_free(s->shift);
    }
    sac_free(s);
}

static float *numbers_of(const struct sac_op_call *c, int input, int64_t count, float fallback)
{
    float       *out = sac_alloc((size_t)count * sizeof *out);
    const bool   given = input < c->in_count && c->in[input].present;
    const float *from = given ? c->in[input].data : NULL;
    for (int64_t i = 0; out && i < count; i++)
        out[i] = from ? from[i] : fallback;
    return out;
}

static sac_result norm_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    struct norm_state        *s = sac_new(struct norm_state);
    if (!s)
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    s->n = c->in[0].dims[0];
    s->c = c->in[0].dims[1];
    s->count = sac_operand_elements(&c->in[0]) / s->n;
    s->stretches = (s->count + STRETCH - 1) / STRETCH;
    s->last = plan->in_layout[0] == SAC_LAYOUT_CHANNELS_LAST;
    s->length = s->last ? sac_pattern_length(s->c, sac_simd_lanes()) : s->c;
    s->epsilon = sac_attr_float(c->node, "epsilon", 1e-5f);
    s->act = sac_activation_read(c->node);
    s->scale = numbers_of(c, 1, s->c, 1);
    s->shift = numbers_of(c, 2, s->c, 0);
    if (!s->scale || !s->shift) {
        norm_release(s);
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    }
    s->pieces = sac_pieces(dev, s->stretches, s->count / 8);
    plan->scratch_bytes =
        (size_t)s->stretches * 2 * sizeof(double) + (size_t)s->length * 2 * sizeof(float);
    snprintf(plan->implementation, sizeof plan->implementation, "%s", sac_simd_name());
    plan->state = s;
    return SAC_OK;
}

static void moments_piece(void *arg, int piece, int worker)
{
    const struct norm_job   *j = arg;
    const struct norm_state *s = j->s;
    (void)worker;
    for (int64_t k = s->stretches * piece / s->pieces; k < s->stretches * (piece + 1) / s->pieces;
         k++)
        SAC_SIMD_PICK(sac_map_moments)
    (j->x + k * STRETCH, SAC_MIN(STRETCH, s->count - k * STRETCH), &j->moments[2 * k],
     &j->moments[2 * k + 1]);
}

/* Combines the moments of parts as Chan et al. do ("Updating Formulae", 1979): no cancellation. */
static void join(const struct norm_state *s, const double *moments, double *mean, double *variance)
{
    double all = 0, squares = 0, middle = 0;
    for (int64_t k = 0; k < s->stretches; k++) {
        const double count = (double)SAC_MIN(STRETCH, s->count - k * STRETCH);
        const double apart = moments[2 * k] - middle;
        squares += moments[2 * k + 1] + apart * apart * all * count / (all + count);
        all += count;
        middle += apart * count / all;
    }
    *mean = middle;
    *variance = squares / all;
}

static void apply_piece(void *arg, int piece, int worker)
{
    const struct norm_job   *j = arg;
    const struct norm_state *s = j->s;
    (void)worker;
    if (s->last) {
        const int64_t units = (s->count + s->length - 1) / s->length;
        const int64_t first = units * piece / s->pieces * s->length;
        const int64_t end = SAC_MIN(units * (piece + 1) / s->pieces * s->length, s->count);
        SAC_SIMD_PICK(sac_map_affine)
        (&s->act, j->x + first, j->scale, j->shift, s->length, j->y + first, end - first);
        return;
    }
    const int64_t plane = s->count / s->c;
    for (int64_t k = s->c * piece / s->pieces; k < s->c * (piece + 1) / s->pieces; k++) {
        float scale[16], shift[16];
        sac_pattern_fill(scale, 16, &j->scale[k], 1);
        sac_pattern_fill(shift, 16, &j->shift[k], 1);
        SAC_SIMD_PICK(sac_map_affine)
        (&s->act, j->x + k * plane, scale, shift, sac_simd_lanes(), j->y + k * plane, plane);
    }
}

static sac_result norm_run(struct sac_device *dev, void *state, void *const *in, void *const *out,
                           void *scratch, struct sac_device_stream *stream)
{
    const struct norm_state *s = state;
    struct norm_job          job = {.s = s, .moments = scratch};
    (void)stream;
    job.scale = (float *)(job.moments + 2 * s->stretches);
    job.shift = job.scale + s->length;
    for (int64_t n = 0; n < s->n; n++) {
        double mean, variance;
        job.x = (const float *)in[0] + n * s->count;
        job.y = (float *)out[0] + n * s->count;
        sac_worker_pool_run(dev->workers, s->pieces, moments_piece, &job);
        join(s, job.moments, &mean, &variance);
        const double factor = 1 / sqrt(variance + s->epsilon);
        for (int64_t k = 0; k < s->length; k++) {
            job.scale[k] = (float)(s->scale[k % s->c] * factor);
            job.shift[k] = (float)(s->shift[k % s->c] - mean * s->scale[k % s->c] * factor);
        }
        sac_worker_pool_run(dev->workers, s->pieces, apply_piece, &job);
    }
    return SAC_OK;
}

const struct sac_kernel sac_cpu_SampleNorm = {SAC_OP_SampleNorm, norm_supports, norm_prepare,
                                              norm_run, norm_release};

/* ---- GatedSum ---- */

struct gate_state {
    int     gates;
    int64_t n, c, count, length;
    bool    shared[SAC_GATES_MAX]; /* one gate for all samples */
    int     pieces;
};

struct gate_job {
    const struct gate_state *s;
    const float             *x[SAC_GATES_MAX], *pattern[SAC_GATES_MAX];
    float                   *y;
};

static struct sac_kernel_offer gate_supports(struct sac_device                *dev,
                                             const struct sac_kernel_question *q)
{
    struct sac_kernel_offer   offer = sac_kernel_take(q);
    const struct sac_op_call *c = q->call;
    (void)dev;
    if (sac_cpu_level() < SAC_CPU_AVX2 || !sac_call_is_float(q->call) ||
        c->in_count > 2 * SAC_GATES_MAX || !sac_map_fits(&c->in[0]))
        return sac_kernel_refuse("needs AVX2, and at most %d gates", SAC_GATES_MAX);
    for (int i = 0; i < c->in_count; i++)
        offer.in_layout[i] = i % 2 ? SAC_LAYOUT_PLAIN : SAC_LAYOUT_CHANNELS_LAST;
    offer.out_layout[0] = SAC_LAYOUT_CHANNELS_LAST;
    offer.in_place = 0;
    return sac_operand_elements(&c->in[0]) > 0 ? offer : sac_kernel_refuse("empty");
}

static sac_result gate_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    struct gate_state        *s = sac_new(struct gate_state);
    if (!s)
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    s->gates = c->in_count / 2;
    s->n = c->in[0].dims[0];
    s->c = c->in[0].dims[1];
    s->count = sac_operand_elements(&c->in[0]) / s->n;
    s->length = sac_pattern_length(s->c, sac_simd_lanes());
    for (int k = 0; k < s->gates; k++)
        s->shared[k] = c->in[2 * k + 1].dims[0] == 1;
    s->pieces = sac_pieces(dev, (s->count + s->length - 1) / s->length, s->count * s->gates / 8);
    plan->scratch_bytes = (size_t)(s->gates * s->length) * sizeof(float);
    snprintf(plan->implementation, sizeof plan->implementation, "%s", sac_simd_name());
    plan->state = s;
    return SAC_OK;
}

static void gate_piece(void *arg, int piece, int worker)
{
    const struct gate_job   *j = arg;
    const struct gate_state *s = j->s;
    const int64_t            units = (s->count + s->length - 1) / s->length;
    const int64_t            first = units * piece / s->pieces * s->length;
    const int64_t            end = SAC_MIN(units * (piece + 1) / s->pieces * s->length, s->count);
    const float             *x[SAC_GATES_MAX];
    (void)worker;
    for (int k = 0; k < s->gates; k++)
        x[k] = j->x[k] + first;
    SAC_SIMD_PICK(sac_map_gated_sum)
    (s->gates, x, j->pattern, s->length, 0, j->y + first, end - first);
}

static sac_result gate_run(struct sac_device *dev, void *state, void *const *in, void *const *out,
                           void *scratch, struct sac_device_stream *stream)
{
    const struct gate_state *s = state;
    struct gate_job          job = {.s = s};
    (void)stream;
    for (int64_t n = 0; n < s->n; n++) {
        for (int k = 0; k < s->gates; k++) {
            float *pattern = (float *)scratch + k * s->length;
            sac_pattern_fill(pattern, s->length,
                             (const float *)in[2 * k + 1] + (s->shared[k] ? 0 : n * s->c), s->c);
            job.pattern[k] = pattern;
            job.x[k] = (const float *)in[2 * k] + n * s->count;
        }
        job.y = (float *)out[0] + n * s->count;
        sac_worker_pool_run(dev->workers, s->pieces, gate_piece, &job);
    }
    return SAC_OK;
}

const struct sac_kernel sac_cpu_GatedSum = {SAC_OP_GatedSum, gate_supports, gate_prepare, gate_run,
                                            sac_free};
