/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that work line by line on plain tensors: Softmax and LpNormalization. */
#include <math.h>
#include <stdio.h>

#include "engine/cpu/cpu.h"
#include "engine/cpu/map.h"
#include "engine/ops/reads.h"

enum { COLUMNS = 256 /* neighbouring lines in a unit of work */ };

struct rows_state {
    struct sac_units units;
    int64_t          length, lines;    /* of one line; how many */
    int64_t          inner, stretches; /* lines that are neighbours; units they make */
    double           epsilon;          /* of LpNormalization: the least norm */
    bool             magnitudes;       /* LpNormalization by their sum, not by that of squares */
};

static sac_result rows_take(struct sac_kernel_plan *plan, struct rows_state *s)
{
    snprintf(plan->implementation, sizeof plan->implementation, "%s", sac_simd_name());
    plan->state = s;
    return SAC_OK;
}

/* ---- along an axis ---- */

static struct sac_kernel_offer axis_supports(struct sac_device                *dev,
                                             const struct sac_kernel_question *q)
{
    struct sac_kernel_offer offer = sac_kernel_take(q);
    (void)dev;
    if (sac_cpu_level() < SAC_CPU_AVX2 || sac_operand_elements(&q->call->in[0]) == 0 ||
        !sac_call_is_float(q->call))
        return sac_kernel_refuse("empty, not float32, or no AVX2");
    offer.in_layout[0] = SAC_LAYOUT_PLAIN;
    offer.in_place = 0;
    return offer;
}

/* Up to opset 12 a Softmax' line runs over the axis and everything after it. */
static void read_lines(const struct sac_op_call *c, struct rows_state *s)
{
    const struct sac_operand *in = &c->in[0];
    const bool                old = c->node->op->id == SAC_OP_Softmax && c->node->opset < 13;
    int                       axis = 0;
    (void)sac_op_axis(c, old ? 1 : -1, in->rank, &axis);
    const int after = old ? in->rank : axis + 1;
    s->lines = sac_dims_product(axis, in->dims);
    s->length = sac_dims_product(after - axis, in->dims + axis);
    s->inner = sac_dims_product(in->rank - after, in->dims + after);
}

static sac_result axis_prepare(struct sac_device *dev, struct sac_kernel_plan *plan,
                               sac_units_work *work)
{
    struct rows_state *s = sac_new(struct rows_state);
    const int64_t      count = sac_operand_elements(&plan->call->in[0]);
    if (!s)
        return SAC_OP_FAIL(plan->call, SAC_ERR_MEMORY, "no memory for its kernel");
    read_lines(plan->call, s);
    s->stretches = s->inner == 1 ? 1 : (s->inner + COLUMNS - 1) / COLUMNS;
    s->magnitudes = sac_attr_int(plan->call->node, "p", 2) == 1;
    s->epsilon = sac_norm_floor(plan->call->node);
    sac_units_init(&s->units, dev, s->lines * s->stretches, count, work);
    return rows_take(plan, s);
}

/* ---- Softmax ---- */

static void softmax_work(const void *state, void *const *in, void *const *out, int64_t first,
                         int64_t end)
{
    const struct rows_state *s = state;
    const float             *x = in[0];
    float                   *y = out[0];
    if (s->inner == 1) {
        SAC_SIMD_PICK(sac_map_softmax)
        (x + first * s->length, y + first * s->length, s->length, 1, end - first);
        return;
    }
    for (int64_t u = first; u < end; u++) {
        const int64_t column = u % s->stretches * COLUMNS;
        const int64_t at = u / s->stretches * s->length * s->inner + column;
        SAC_SIMD_PICK(sac_map_softmax)
        (x + at, y + at, s->length, s->inner, SAC_MIN(COLUMNS, s->inner - column));
    }
}

static sac_result softmax_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    return axis_prepare(dev, plan, softmax_work);
}

const struct sac_kernel sac_cpu_Softmax = {SAC_OP_Softmax, axis_supports, softmax_prepare,
                                           sac_units_run, sac_free};

/* ---- LpNormalization ---- */

static enum sac_reduction lp_sum(const struct rows_state *s)
{
    return s->magnitudes ? SAC_REDUCTION_ABS : SAC_REDUCTION_SQUARE;
}

/* By which the line of such a sum is multiplied, in double: that of subnormal numbers is beyond
 * float32. A line of zeros stays one. */
static double lp_factor(const struct rows_state *s, double sum)
{
    const double length = s->magnitudes ? sum : sqrt(sum);
    const double norm = length < s->epsilon ? s->epsilon : length;
    return norm != 0 ? 1 / norm : 0;
}

static void lp_line(const struct rows_state *s, const float *x, float *y)
{
    const double factor = lp_factor(s, SAC_SIMD_PICK(sac_map_reduce)(lp_sum(s), x, s->length));
    for (int64_t i = 0; i < s->length; i++)
        y[i] = (float)(x[i] * factor);
}

static void lp_columns(const struct rows_state *s, const float *x, float *y, int64_t columns)
{
    double factor[COLUMNS];
    SAC_SIMD_PICK(sac_map_reduce_columns)(lp_sum(s), x, s->length, s->inner, factor, columns);
    for (int64_t i = 0; i < columns; i++)
        factor[i] = lp_factor(s, factor[i]);
    for (int64_t k = 0; k < s->length; k++, x += s->inner, y += s->inner)
        for (int64_t i = 0; i < columns; i++)
            y[i] = (float)(x[i] * factor[i]);
}

static void lp_work(const void *state, void *const *in, void *const *out, int64_t first,
                    int64_t end)
{
    const struct rows_state *s = state;
    for (int64_t u = first; u < end; u++) {
        const int64_t column = u % s->stretches * COLUMNS;
        const int64_t at = u / s->stretches * s->length * s->inner + column;
        const float  *x = (const float *)in[0] + at;
        float        *y = (float *)out[0] + at;
        if (s->inner == 1)
            lp_line(s, x, y);
        else
            lp_columns(s, x, y, SAC_MIN(COLUMNS, s->inner - column));
    }
}

static sac_result lp_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    return axis_prepare(dev, plan, lp_work);
}

const struct sac_kernel sac_cpu_LpNormalization = {SAC_OP_LpNormalization, axis_supports,
                                                   lp_prepare, sac_units_run, sac_free};
