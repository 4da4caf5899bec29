/* SPDX-License-Identifier: Apache-2.0 */
/* SampleNorm, InstanceNormalization, GroupNormalization and what is fused with one, and GatedSum.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/cpu/cpu.h"
#include "engine/cpu/map.h"

enum {
    STRETCH = 4096,   /* floats whose moments are computed at once: half of the L1 cache */
    PIXELS_MAX = 128, /* of each channel that are added up in single precision */
    TURN = 2048       /* floats that are normalised before something is added to them */
};

struct norm_state {
    int64_t               n, c, count; /* count: numbers of one sample */
    int64_t               stretches, length;
    double                epsilon;
    struct sac_activation act;
    enum sac_residual     residual;
    float                *scale, *shift; /* [c] */
    bool                  last;          /* channels last: patterns; else plane by plane */
    int                   pieces;
};

struct norm_job {
    const struct norm_state *s;
    const float             *x, *r; /* r: what is added, or NULL */
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
        offer.in_layout[i] = i == SAC_RESIDUAL_INPUT ? offer.in_layout[0] : SAC_LAYOUT_PLAIN;
        if (i < SAC_RESIDUAL_INPUT && c->in[i].present && !c->in[i].data)
            return sac_kernel_refuse("scale or shift is not constant");
    }
    offer.out_layout[0] = offer.in_layout[0];
    offer.in_place = sac_op_has(c, SAC_RESIDUAL_INPUT) ? -1 : 0; /* the residual may be the input
                                                                    too */
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

/* Adds the moments of `count` numbers to those of `all`, as Chan et al. do ("Updating Formulae",
 * 1979): no cancellation. */
static void add_moments(double *mean, double *squares, double all, double other_mean,
                        double other_squares, double count)
{
    const double apart = other_mean - *mean;
    *squares += other_squares + apart * apart * all * count / (all + count);
    *mean += apart * count / (all + count);
}

static void join(const struct norm_state *s, const double *moments, double *mean, double *variance)
{
    double squares = 0;
    *mean = 0;
    for (int64_t k = 0; k < s->stretches; k++)
        add_moments(mean, &squares, (double)(k * STRETCH), moments[2 * k], moments[2 * k + 1],
                    (double)SAC_MIN(STRETCH, s->count - k * STRETCH));
    *variance = squares / (double)s->count;
}

/* Numbers from `at` to `end`, with patterns that begin there. */
static void apply_to(const struct norm_job *j, const float *scale, const float *shift,
                     int64_t length, int64_t at, int64_t end)
{
    static const struct sac_activation none = {SAC_ACT_NONE, 0, 0};
    const struct norm_state           *s = j->s;
    const bool                         before = s->residual == SAC_RESIDUAL_BEFORE;
    const int64_t                      turn = j->r ? SAC_MAX(TURN / length, 1) * length : end - at;
    for (; at < end; at += turn) {
        const int64_t count = SAC_MIN(turn, end - at);
        SAC_SIMD_PICK(sac_map_affine)
        (before ? &none : &s->act, j->x + at, scale, shift, length, j->y + at, count);
        if (j->r)
            SAC_SIMD_PICK(sac_map_binary)
        (SAC_BINARY_ADD, j->y + at, j->r + at, 0, j->y + at, count);
        if (before && s->act.kind != SAC_ACT_NONE)
            SAC_SIMD_PICK(sac_map_activate)(&s->act, j->y + at, j->y + at, count);
    }
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
        apply_to(j, j->scale, j->shift, s->length, first, end);
        return;
    }
    const int64_t plane = s->count / s->c;
    for (int64_t k = s->c * piece / s->pieces; k < s->c * (piece + 1) / s->pieces; k++) {
        float scale[16], shift[16];
        sac_pattern_fill(scale, 16, &j->scale[k], 1);
        sac_pattern_fill(shift, 16, &j->shift[k], 1);
        apply_to(j, scale, shift, sac_simd_lanes(), k * plane, (k + 1) * plane);
    }
}

/* Numbers that are all their mean leave nothing, whatever they are multiplied by. */
static double factor_of(double variance, double epsilon)
{
    return variance == 0 && epsilon > 0 ? 0 : 1 / sqrt(variance + epsilon);
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
        const double factor = factor_of(variance, s->epsilon);
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

/* ---- by channels ----
 * Moments of each channel, of which those of a group are made. */

struct channel_norm {
    struct norm_state norm;                  /* stretches: of pixels, or of a plane */
    int64_t           plane, groups, pixels; /* pixels: of a stretch, channels last */
};

struct channel_job {
    const struct channel_norm *s;
    const float               *x;
    double                    *mean, *squares; /* [pieces][c]; [c] when plain */
    double                    *counts;         /* [pieces] */
    float                     *part;           /* [pieces][2][c] */
};

static void channel_release(void *state)
{
    norm_release(state); /* it begins with that */
}

/* An input's numbers for all channels, of which it has one each or one for each group. */
static float *each_channel(const struct sac_op_call *c, int input, int64_t channels)
{
    const int64_t given = sac_operand_elements(&c->in[input]);
    const float  *from = c->in[input].data;
    float        *out = sac_alloc((size_t)channels * sizeof *out);
    for (int64_t k = 0; out && k < channels; k++)
        out[k] = from[k * given / channels];
    return out;
}

static sac_result channel_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    struct channel_norm      *s = sac_new(struct channel_norm);
    if (!s)
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    struct norm_state *n = &s->norm;
    n->n = c->in[0].dims[0];
    n->c = c->in[0].dims[1];
    n->count = sac_operand_elements(&c->in[0]) / n->n;
    n->last = plan->in_layout[0] == SAC_LAYOUT_CHANNELS_LAST;
    n->length = n->last ? sac_pattern_length(n->c, sac_simd_lanes()) : n->c;
    n->epsilon = sac_attr_float(c->node, "epsilon", 1e-5f);
    n->act = sac_activation_read(c->node);
    n->residual = (enum sac_residual)sac_attr_int(c->node, "residual", SAC_RESIDUAL_NONE);
    s->groups = c->node->op->id == SAC_OP_InstanceNormalization
                    ? n->c
                    : sac_attr_int(c->node, "num_groups", 1);
    s->plane = n->count / n->c;
    s->pixels = SAC_CLAMP(STRETCH / n->c, (int64_t)1, (int64_t)PIXELS_MAX);
    n->stretches = n->last ? (s->plane + s->pixels - 1) / s->pixels : n->c;
    n->scale = each_channel(c, 1, n->c);
    n->shift = each_channel(c, 2, n->c);
    if (!n->scale || !n->shift) {
        channel_release(s);
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    }
    n->pieces = sac_pieces(dev, n->stretches, n->count / 8);
    const size_t rows = n->last ? (size_t)n->pieces : 1, channels = (size_t)n->c;
    plan->scratch_bytes =
        (2 * rows * channels + (size_t)n->pieces) * sizeof(double) +
        (2 * (size_t)n->pieces * channels + 2 * (size_t)n->length) * sizeof(float);
    snprintf(plan->implementation, sizeof plan->implementation, "%s", sac_simd_name());
    plan->state = s;
    return SAC_OK;
}

static void plain_piece(void *arg, int piece, int worker)
{
    const struct channel_job  *j = arg;
    const struct channel_norm *s = j->s;
    (void)worker;
    for (int64_t k = s->norm.c * piece / s->norm.pieces;
         k < s->norm.c * (piece + 1) / s->norm.pieces; k++) {
        const float *x = j->x + k * s->plane;
        j->mean[k] = j->squares[k] = 0;
        for (int64_t i = 0; i < s->plane; i += STRETCH) {
            const int64_t count = SAC_MIN(s->plane - i, (int64_t)STRETCH);
            double        mean, squares;
            SAC_SIMD_PICK(sac_map_moments)(x + i, count, &mean, &squares);
            add_moments(&j->mean[k], &j->squares[k], (double)i, mean, squares, (double)count);
        }
    }
}

static void last_piece(void *arg, int piece, int worker)
{
    const struct channel_job  *j = arg;
    const struct channel_norm *s = j->s;
    const struct norm_state   *n = &s->norm;
    double                    *mean = j->mean + piece * n->c, *squares = j->squares + piece * n->c;
    float                     *part = j->part + 2 * piece * n->c, *more = part + n->c;
    (void)worker;
    memset(mean, 0, (size_t)n->c * sizeof *mean);
    memset(squares, 0, (size_t)n->c * sizeof *squares);
    j->counts[piece] = 0;
    for (int64_t k = n->stretches * piece / n->pieces; k < n->stretches * (piece + 1) / n->pieces;
         k++) {
        const int64_t count = SAC_MIN(s->plane - k * s->pixels, s->pixels);
        SAC_SIMD_PICK(sac_map_channel_moments)
        (j->x + k * s->pixels * n->c, count, n->c, part, more);
        for (int64_t i = 0; i < n->c; i++)
            add_moments(&mean[i], &squares[i], j->counts[piece], part[i], more[i], (double)count);
        j->counts[piece] += (double)count;
    }
}

/* All pieces' moments, in those of the first. */
static void join_pieces(const struct channel_job *j)
{
    const struct norm_state *n = &j->s->norm;
    double                   all = j->counts[0];
    for (int piece = 1; piece < n->pieces; piece++) {
        for (int64_t i = 0; i < n->c && j->counts[piece] > 0; i++)
            add_moments(&j->mean[i], &j->squares[i], all, j->mean[piece * n->c + i],
                        j->squares[piece * n->c + i], j->counts[piece]);
        all += j->counts[piece];
    }
}

/* What each channel is multiplied by, and what is added, from the moments of its group. */
static void numbers_from(const struct channel_job *j, float *scale, float *shift)
{
    const struct channel_norm *s = j->s;
    const struct norm_state   *n = &s->norm;
    const int64_t              each = n->c / s->groups;
    for (int64_t g = 0; g < s->groups; g++) {
        double mean = 0, squares = 0;
        for (int64_t k = 0; k < each; k++)
            add_moments(&mean, &squares, (double)(k * s->plane), j->mean[g * each + k],
                        j->squares[g * each + k], (double)s->plane);
        const double factor = factor_of(squares / (double)(each * s->plane), n->epsilon);
        for (int64_t k = g * each; k < (g + 1) * each; k++) {
            scale[k] = (float)(n->scale[k] * factor);
            shift[k] = (float)(n->shift[k] - mean * n->scale[k] * factor);
        }
    }
    for (int64_t k = n->c; k < n->length; k++) {
        scale[k] = scale[k % n->c];
        shift[k] = shift[k % n->c];
    }
}

static sac_result channel_run(struct sac_device *dev, void *state, void *const *in,
                              void *const *out, void *scratch, struct sac_device_stream *stream)
{
    const struct channel_norm *s = state;
    const struct norm_state   *n = &s->norm;
    const int64_t              rows = n->last ? n->pieces : 1;
    struct norm_job            apply = {.s = n};
    struct channel_job         job = {.s = s, .mean = scratch};
    (void)stream;
    job.squares = job.mean + rows * n->c;
    job.counts = job.squares + rows * n->c;
    job.part = (float *)(job.counts + n->pieces);
    apply.scale = job.part + 2 * n->pieces * n->c;
    apply.shift = apply.scale + n->length;
    for (int64_t i = 0; i < n->n; i++) {
        apply.x = job.x = (const float *)in[0] + i * n->count;
        apply.y = (float *)out[0] + i * n->count;
        apply.r = n->residual ? (const float *)in[SAC_RESIDUAL_INPUT] + i * n->count : NULL;
        sac_worker_pool_run(dev->workers, n->pieces, n->last ? last_piece : plain_piece, &job);
        if (n->last)
            join_pieces(&job);
        numbers_from(&job, apply.scale, apply.shift);
        sac_worker_pool_run(dev->workers, n->pieces, apply_piece, &apply);
    }
    return SAC_OK;
}

const struct sac_kernel sac_cpu_InstanceNormalization = {
    SAC_OP_InstanceNormalization, norm_supports, channel_prepare, channel_run, channel_release};
const struct sac_kernel sac_cpu_GroupNormalization = {
    SAC_OP_GroupNormalization, norm_supports, channel_prepare, channel_run, channel_release};
const struct sac_kernel sac_cpu_FusedGroupNorm = {SAC_OP_FusedGroupNorm, norm_supports,
                                                  channel_prepare, channel_run, channel_release};

/* ---- GatedSum ---- */

struct gate_state {
    int                   gates, parts;          /* parts of each, which are added up */
    int64_t               n, c, count, length;   /* c, count: of the output */
    bool                  shared[SAC_GATES_MAX]; /* one gate for all samples */
    int                   pieces;
    struct sac_activation act;
};

/* Parts are maps of their own, whose pixels lie further apart. */
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
    const int64_t             parts = sac_attr_int(c->node, "parts", 1);
    (void)dev;
    if (sac_cpu_level() < SAC_CPU_AVX2 || !sac_call_is_float(q->call) || parts > SAC_GATES_MAX ||
        c->in_count / 2 * parts > SAC_GATES_MAX || !sac_volume_fits(&c->in[0]))
        return sac_kernel_refuse("needs AVX2, and at most %d gates", SAC_GATES_MAX);
    for (int i = 0; i < c->in_count; i++)
        offer.in_layout[i] = i % 2 ? SAC_LAYOUT_PLAIN : SAC_LAYOUT_CHANNELS_LAST;
    offer.out_layout[0] = SAC_LAYOUT_CHANNELS_LAST;
    offer.in_place = parts == 1 ? 0 : -1;
    return sac_operand_elements(&c->in[0]) > 0 ? offer : sac_kernel_refuse("empty");
}

/* How many numbers are worked on together: of parts those of a pixel. */
static int64_t gate_unit(const struct gate_state *s)
{
    return s->parts == 1 ? s->length : s->c;
}

/* The same where an activation follows, while they are in the L1 cache. */
static int64_t gate_turn(const struct gate_state *s, int64_t all)
{
    enum { NUMBERS = 2048 };
    const int64_t unit = gate_unit(s), some = SAC_MAX(NUMBERS / unit, 1) * unit;
    return s->act.kind == SAC_ACT_NONE ? all : SAC_MIN(all, some);
}

static sac_result gate_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    struct gate_state        *s = sac_new(struct gate_state);
    if (!s)
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    s->gates = c->in_count / 2;
    s->parts = (int)sac_attr_int(c->node, "parts", 1);
    s->act = sac_activation_read(c->node);
    s->n = c->out[0].dims[0];
    s->c = c->out[0].dims[1];
    s->count = sac_operand_elements(&c->out[0]) / s->n;
    s->length = sac_pattern_length(s->c, sac_simd_lanes());
    for (int k = 0; k < s->gates; k++)
        s->shared[k] = c->in[2 * k + 1].dims[0] == 1;
    const int all = s->gates * s->parts;
    s->pieces = sac_pieces(dev, (s->count + gate_unit(s) - 1) / gate_unit(s), s->count * all / 8);
    plan->scratch_bytes = (size_t)(all * s->length) * sizeof(float);
    snprintf(plan->implementation, sizeof plan->implementation, "%s", sac_simd_name());
    plan->state = s;
    return SAC_OK;
}

static void gate_stretch(const struct gate_job *j, int64_t pixel, int64_t first, int64_t end)
{
    const struct gate_state *s = j->s;
    const float             *x[SAC_GATES_MAX];
    const int                all = s->gates * s->parts;
    for (int k = 0; k < all; k++)
        x[k] = j->x[k] + first + pixel * s->c * (s->parts - 1);
    SAC_SIMD_PICK(sac_map_gated_sum)
    (all, x, j->pattern, s->length, 0, j->y + first, end - first);
    if (s->act.kind != SAC_ACT_NONE)
        SAC_SIMD_PICK(sac_map_activate)(&s->act, j->y + first, j->y + first, end - first);
}

static void gate_piece(void *arg, int piece, int worker)
{
    const struct gate_job   *j = arg;
    const struct gate_state *s = j->s;
    const int64_t            unit = gate_unit(s), units = (s->count + unit - 1) / unit;
    const int64_t first = units * piece / s->pieces, end = units * (piece + 1) / s->pieces;
    const int64_t last = SAC_MIN(end * unit, s->count), turn = gate_turn(s, s->count);
    (void)worker;
    for (int64_t at = first * unit; s->parts == 1 && at < last; at += turn)
        gate_stretch(j, 0, at, SAC_MIN(at + turn, last));
    for (int64_t i = first; s->parts > 1 && i < end; i++)
        gate_stretch(j, i, i * unit, (i + 1) * unit);
}

static sac_result gate_run(struct sac_device *dev, void *state, void *const *in, void *const *out,
                           void *scratch, struct sac_device_stream *stream)
{
    const struct gate_state *s = state;
    struct gate_job          job = {.s = s};
    (void)stream;
    for (int64_t n = 0; n < s->n; n++) {
        for (int i = 0; i < s->gates * s->parts; i++) {
            const int     k = i / s->parts;
            const int64_t part = i % s->parts * s->c;
            float        *pattern = (float *)scratch + i * s->length;
            sac_pattern_fill(pattern, s->length,
                             (const float *)in[2 * k + 1] + part +
                                 (s->shared[k] ? 0 : n * s->c * s->parts),
                             s->c);
            job.pattern[i] = pattern;
            job.x[i] = (const float *)in[2 * k] + part + n * s->count * s->parts;
        }
        job.y = (float *)out[0] + n * s->count;
        sac_worker_pool_run(dev->workers, s->pieces, gate_piece, &job);
    }
    return SAC_OK;
}

const struct sac_kernel sac_cpu_GatedSum = {SAC_OP_GatedSum, gate_supports, gate_prepare, gate_run,
                                            sac_free};
