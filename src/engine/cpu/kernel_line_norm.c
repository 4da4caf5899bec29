/* SPDX-License-Identifier: Apache-2.0 */
/* LayerNormalization, RMSNormalization and FusedNorm: one line after the other, each read where a
 * view has it. Scale and shift that are not numbers of a line each become so when a plan is made.
 */
#include <math.h>
#include <stdio.h>

#include "engine/cpu/cpu.h"
#include "engine/cpu/map.h"
#include "engine/ops/quant.h"
#include "engine/ops/reads.h"

enum {
    LINE_MAX_FLOATS = 8192, /* whose moments are sums of float32 */
    BESIDE = 512            /* numbers of a line that become bytes at a time */
};
enum { X, SCALE, SHIFT, RESIDUAL };
enum { PLACES = 3 }; /* what lines are read from at steps of their own */

struct lines_state {
    struct sac_units     units;
    struct sac_line_norm norm;
    int64_t              length, lines;
    int64_t          step[PLACES][SAC_RANK_MAX]; /* from line to line, along dims before the axis */
    float           *own[PLACES];                /* constants that became lines, or NULL */
    float           *ones;                       /* in a scale's place where there is none */
    bool             has[RESIDUAL + 1];
    struct sac_quant bytes; /* what they become, of y_dtype */
};

/* Where one line is. */
struct line_place {
    int64_t index[SAC_RANK_MAX], at[PLACES];
};

/* ---- planning ---- */

/* The operand's dim beside dim d of the output; 1 where it has none. */
static int64_t beside(const struct sac_operand *o, const struct sac_line_norm *n, int d)
{
    const int own = d - (n->rank - o->rank);
    return own < 0 ? 1 : o->dims[own];
}

/* One number for each place of a line. */
static bool has_lines(const struct sac_operand *o, const struct sac_line_norm *n)
{
    for (int d = n->axis; d < n->rank; d++)
        if (beside(o, n, d) != n->dims[d])
            return false;
    return true;
}

static struct sac_kernel_offer norm_supports(struct sac_device                *dev,
                                             const struct sac_kernel_question *q)
{
    const struct sac_op_call *c = q->call;
    struct sac_kernel_offer   offer = sac_kernel_take(q);
    struct sac_line_norm      n;
    (void)dev;
    if (sac_line_norm_read(c, &n) != SAC_OK || sac_cpu_level() < SAC_CPU_AVX2 ||
        sac_operand_elements(&c->out[0]) == 0)
        return sac_kernel_refuse("empty, or no AVX2");
    if (n.kind == SAC_NORM_SHARES && c->out[0].dtype != SAC_F32)
        return sac_kernel_refuse("shares in 8 bits");
    if (n.viewed && n.x.dim[n.axis] > 1 && n.x.step[n.axis] != 1)
        return sac_kernel_refuse("a line's numbers are not neighbours");
    for (int i = 0; i < c->in_count; i++) {
        offer.in_layout[i] = SAC_LAYOUT_PLAIN;
        if (c->in[i].present && c->in[i].dtype != SAC_F32)
            return sac_kernel_refuse("not float32");
    }
    for (int i = SCALE; i <= SHIFT && i < c->in_count; i++)
        if (c->in[i].present && !c->in[i].data && !has_lines(&c->in[i], &n))
            return sac_kernel_refuse("scale or shift is not one number for each of a line");
    for (int i = 1; i < c->out_count; i++)
        if (c->out[i].present)
            return sac_kernel_refuse("its mean is an output");
    if (sac_dims_product(n.rank - n.axis, n.dims + n.axis) > LINE_MAX_FLOATS)
        return sac_kernel_refuse("lines of over %d numbers lose digits in float32",
                                 LINE_MAX_FLOATS);
    offer.in_place = n.viewed || c->out[0].dtype != SAC_F32 ? -1 : 0;
    return offer;
}

static void norm_release(void *state)
{
    struct lines_state *s = state;
    for (int k = 0; s && k < PLACES; k++)
        sac_free(s->own[k]);
    if (s)
        sac_free(s->ones);
    sac_free(s);
}

/* The constant with all numbers of its lines, of which there are as many as it has. */
static float *make_lines(const struct sac_operand *o, const struct lines_state *s)
{
    const struct sac_line_norm *n = &s->norm;
    int64_t dims[SAC_RANK_MAX], dense[SAC_RANK_MAX], own[SAC_RANK_MAX], from[SAC_RANK_MAX];
    for (int d = 0; d < n->rank; d++)
        dims[d] = d < n->axis ? beside(o, n, d) : n->dims[d];
    sac_dense_strides(n->rank, dims, dense);
    sac_dense_strides(o->rank, o->dims, own);
    for (int d = 0; d < n->rank; d++)
        from[d] = beside(o, n, d) == 1 ? 0 : own[d - (n->rank - o->rank)];
    float *to = sac_alloc((size_t)sac_dims_product(n->rank, dims) * sizeof *to);
    if (to)
        sac_copy_strided(to, 0, dense, o->data, 0, from, n->rank, dims, sizeof *to);
    return to;
}

/* How far apart the lines of a scale or shift lie, which is now of whole lines. */
static void set_steps(const struct sac_operand *o, const struct sac_line_norm *n, int64_t length,
                      int64_t *step)
{
    for (int d = n->axis - 1; d >= 0; d--) {
        const int64_t own = beside(o, n, d);
        step[d] = own == 1 ? 0 : length;
        length *= own;
    }
}

static bool set_places(struct lines_state *s, const struct sac_op_call *c)
{
    const struct sac_line_norm *n = &s->norm;
    int64_t                     dense[SAC_RANK_MAX];
    sac_dense_strides(n->rank, n->dims, dense);
    for (int d = 0; d < n->axis; d++)
        s->step[X][d] = n->viewed ? n->x.step[d] : dense[d];
    for (int i = SCALE; i <= SHIFT; i++) {
        if (!s->has[i])
            continue;
        set_steps(&c->in[i], n, s->length, s->step[i]);
        if (!has_lines(&c->in[i], n) && !(s->own[i] = make_lines(&c->in[i], s)))
            return false;
    }
    if (s->has[SCALE])
        return true;
    s->ones = sac_alloc((size_t)s->length * sizeof *s->ones);
    for (int64_t i = 0; s->ones && i < s->length; i++)
        s->ones[i] = 1;
    return s->ones != NULL;
}

/* ---- lines ---- */

static void place_line(const struct lines_state *s, int64_t line, struct line_place *p)
{
    *p = (struct line_place){.at = {s->norm.viewed ? s->norm.x.offset : 0}};
    for (int d = s->norm.axis - 1; d >= 0; d--) {
        p->index[d] = line % s->norm.dims[d];
        line /= s->norm.dims[d];
        for (int k = 0; k < PLACES; k++)
            p->at[k] += p->index[d] * s->step[k][d];
    }
}

static void next_line(const struct lines_state *s, struct line_place *p)
{
    for (int d = s->norm.axis - 1; d >= 0; d--) {
        const bool more = ++p->index[d] < s->norm.dims[d];
        for (int k = 0; k < PLACES; k++)
            p->at[k] += s->step[k][d] * (more ? 1 : 1 - s->norm.dims[d]);
        if (more)
            return;
        p->index[d] = 0;
    }
}

static double sum_of(const struct lines_state *s, const float *x)
{
    return SAC_SIMD_PICK(sac_map_reduce)(SAC_REDUCTION_SUM, x, s->length);
}

/* The mean that is taken off a line, and what it is multiplied by, in double: of subnormal numbers
 * that is beyond float32. */
static double measure(const struct lines_state *s, const float *x, float *mean)
{
    double middle, squares;
    *mean = 0;
    if (s->norm.kind == SAC_NORM_SHARES) /* they are made beforehand */
        return 1;
    if (s->norm.kind == SAC_NORM_SUM)
        return 1 / (sum_of(s, x) + s->norm.epsilon);
    if (s->norm.kind == SAC_NORM_L1 || s->norm.kind == SAC_NORM_L2) {
        const bool   magnitudes = s->norm.kind == SAC_NORM_L1;
        const double sum = SAC_SIMD_PICK(sac_map_reduce)(
            magnitudes ? SAC_REDUCTION_ABS : SAC_REDUCTION_SQUARE, x, s->length);
        const double length = magnitudes ? sum : sqrt(sum),
                     norm = length < s->norm.epsilon ? s->norm.epsilon : length;
        return norm != 0 ? 1 / norm : 0;
    }
    SAC_SIMD_PICK(sac_map_moments)(x, s->length, &middle, &squares);
    double power = squares / (double)s->length;
    if (s->norm.kind == SAC_NORM_ROOT)
        power += middle * middle;
    else
        *mean = (float)middle;
    return 1 / sqrt(power + s->norm.epsilon);
}

/* What is known of a line: numbers i to i + count of it are made. */
struct line {
    const float *x, *scale, *shift, *residual;
    float        mean;
    double       factor;
};

static void make_numbers(const struct line *l, int64_t i, int64_t count, float *y)
{
    const float factor = (float)l->factor;
    if (isinf(factor))
        for (int64_t k = i; k < i + count; k++)
            y[k - i] = (float)((l->x[k] - l->mean) * l->factor) * l->scale[k] +
                       (l->shift ? l->shift[k] : 0);
    else
        SAC_SIMD_PICK(sac_map_normalise)
    (l->x + i, l->mean, factor, l->scale + i, l->shift ? l->shift + i : NULL, y, count);
    if (l->residual)
        SAC_SIMD_PICK(sac_map_binary)(SAC_BINARY_ADD, y, l->residual + i, 0, y, count);
}

/* A line's numbers become bytes where they still are in the L1 cache. */
static void put_bytes(const struct lines_state *s, const struct line *l, uint8_t *y)
{
    for (int64_t i = 0; i < s->length; i += BESIDE) {
        const int64_t count = SAC_MIN(BESIDE, s->length - i);
        float         v[BESIDE];
        make_numbers(l, i, count, v);
        sac_make_bytes(&s->bytes, v, y + i, count);
    }
}

static void put_line(const struct lines_state *s, const struct line *l, float *y)
{
    make_numbers(l, 0, s->length, y);
    if (!s->norm.whole)
        return;
    const float sum = (float)(sum_of(s, y) + s->norm.epsilon);
    for (int64_t i = 0; i < s->length; i++)
        y[i] /= sum;
}

static void norm_work(const void *state, void *const *in, void *const *out, int64_t first,
                      int64_t end)
{
    const struct lines_state *s = state;
    const float              *scale = s->own[SCALE]   ? s->own[SCALE]
                                      : s->has[SCALE] ? in[SCALE]
                                                      : s->ones,
                *shift = s->own[SHIFT]   ? s->own[SHIFT]
                         : s->has[SHIFT] ? in[SHIFT]
                                         : NULL;
    struct line_place p;
    place_line(s, first, &p);
    for (int64_t r = first; r < end; r++, next_line(s, &p)) {
        const int64_t at = r * s->length;
        struct line   l = {.x = (const float *)in[X] + p.at[X],
                           .scale = scale + p.at[SCALE],
                           .shift = shift ? shift + p.at[SHIFT] : NULL,
                           .residual = s->has[RESIDUAL] ? (const float *)in[RESIDUAL] + at : NULL};
        if (s->norm.kind == SAC_NORM_SHARES) {
            SAC_SIMD_PICK(sac_map_softmax)(l.x, (float *)out[0] + at, s->length, 1, 1);
            l.x = (float *)out[0] + at;
        }
        l.factor = measure(s, l.x, &l.mean);
        if (s->bytes.y_dtype != SAC_F32)
            put_bytes(s, &l, (uint8_t *)out[0] + at);
        else
            put_line(s, &l, (float *)out[0] + at);
    }
}

static sac_result norm_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    struct lines_state       *s = sac_new(struct lines_state);
    if (!s || sac_line_norm_read(c, &s->norm) != SAC_OK) {
        sac_free(s);
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    }
    s->length = sac_dims_product(s->norm.rank - s->norm.axis, s->norm.dims + s->norm.axis);
    s->lines = sac_operand_elements(&c->out[0]) / s->length;
    for (int i = 0; i <= RESIDUAL; i++)
        s->has[i] = sac_op_has(c, i);
    s->bytes = sac_quant_read(c->node);
    if (!set_places(s, c)) {
        norm_release(s);
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    }
    sac_units_init(&s->units, dev, s->lines, s->lines * s->length / 4, norm_work);
    snprintf(plan->implementation, sizeof plan->implementation, "%s", sac_simd_name());
    plan->state = s;
    return SAC_OK;
}

const struct sac_kernel sac_cpu_LayerNormalization = {SAC_OP_LayerNormalization, norm_supports,
                                                      norm_prepare, sac_units_run, norm_release};
const struct sac_kernel sac_cpu_RMSNormalization = {SAC_OP_RMSNormalization, norm_supports,
                                                    norm_prepare, sac_units_run, norm_release};
const struct sac_kernel sac_cpu_FusedNorm = {SAC_OP_FusedNorm, norm_supports, norm_prepare,
                                             sac_units_run, norm_release};
