/* SPDX-License-Identifier: Apache-2.0 */
/* CumSum of float32: lines of [outer, axis, inner], some side by side, each with a total of its own
 * in double. Where nothing lies within (inner 1) these are rows, a few, so that one waits for the
 * addition of another; else columns, whose loops the compiler turns into vectors. */
#include <stdio.h>

#include "engine/cpu/cpu.h"
#include "engine/ops/reads.h"

enum { COLUMNS = 256, ROWS = 4 };

struct cumulative_state {
    struct sac_units units;
    int64_t          outer, count, inner, blocks; /* blocks: of columns, of each outer */
    bool             exclusive, reverse;
};

static struct sac_kernel_offer cumulative_supports(struct sac_device                *dev,
                                                   const struct sac_kernel_question *q)
{
    struct sac_kernel_offer offer = sac_kernel_take(q);
    int                     axis;
    (void)dev;
    if (q->call->in[0].dtype != SAC_F32)
        return sac_kernel_refuse("not float32");
    if (!q->call->in[1].data || sac_cumulative_axis(q->call, &axis) != SAC_OK)
        return sac_kernel_refuse("its axis is not constant");
    offer.in_layout[0] = offer.in_layout[1] = SAC_LAYOUT_PLAIN;
    return offer;
}

/* `lines` lines, `apart` from each other; total: room for as many. */
static inline void add_up(const struct cumulative_state *s, const float *x, float *y, int64_t lines,
                          int64_t apart, double *total)
{
    const int64_t step = s->reverse ? -s->inner : s->inner;
    const bool    exclusive = s->exclusive;
    int64_t       at = s->reverse ? (s->count - 1) * s->inner : 0;
    for (int64_t i = 0; i < lines; i++)
        total[i] = 0;
    for (int64_t k = 0; k < s->count; k++, at += step)
        for (int64_t i = 0; i < lines; i++) {
            const double before = total[i];
            total[i] += x[at + i * apart];
            y[at + i * apart] = (float)(exclusive ? before : total[i]);
        }
}

static void cumulate_rows(const void *state, void *const *in, void *const *out, int64_t first,
                          int64_t end)
{
    const struct cumulative_state *s = state;
    double                         total[ROWS];
    for (int64_t unit = first; unit < end; unit++) {
        int64_t row = unit * ROWS;
        if (row + ROWS <= s->outer)
            add_up(s, (const float *)in[0] + row * s->count, (float *)out[0] + row * s->count, ROWS,
                   s->count, total);
        else
            for (; row < s->outer; row++)
                add_up(s, (const float *)in[0] + row * s->count, (float *)out[0] + row * s->count,
                       1, 0, total);
    }
}

static void cumulate_columns(const void *state, void *const *in, void *const *out, int64_t first,
                             int64_t end)
{
    const struct cumulative_state *s = state;
    double                         total[COLUMNS];
    for (int64_t unit = first; unit < end; unit++) {
        const int64_t column = unit % s->blocks * COLUMNS;
        const int64_t at = unit / s->blocks * s->count * s->inner + column;
        add_up(s, (const float *)in[0] + at, (float *)out[0] + at,
               SAC_MIN(s->inner - column, (int64_t)COLUMNS), 1, total);
    }
}

static sac_result cumulative_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    const struct sac_operand *in = &c->in[0];
    struct cumulative_state  *s = sac_new(struct cumulative_state);
    int                       axis = 0;
    if (!s)
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    (void)sac_cumulative_axis(c, &axis);
    s->outer = sac_dims_product(axis, in->dims);
    s->count = in->dims[axis];
    s->inner = sac_dims_product(in->rank - axis - 1, in->dims + axis + 1);
    s->exclusive = sac_attr_int(c->node, "exclusive", 0) != 0;
    s->reverse = sac_attr_int(c->node, "reverse", 0) != 0;
    s->blocks = (s->inner + COLUMNS - 1) / COLUMNS;
    sac_units_init(&s->units, dev,
                   s->inner == 1 ? (s->outer + ROWS - 1) / ROWS : s->outer * s->blocks,
                   sac_operand_elements(in) / 2, s->inner == 1 ? cumulate_rows : cumulate_columns);
    snprintf(plan->implementation, sizeof plan->implementation, "loop");
    plan->state = s;
    return SAC_OK;
}

const struct sac_kernel sac_cpu_CumSum = {SAC_OP_CumSum, cumulative_supports, cumulative_prepare,
                                          sac_units_run, sac_free};
