/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMax and ArgMin of float32, as maps of classes end: columns of [outer, axis, inner], some
 * hundred side by side, whose loops the compiler turns into vectors. */
#include <math.h>
#include <stdio.h>

#include "engine/cpu/cpu.h"
#include "engine/ops/util.h"

enum { COLUMNS = 256 };

struct arg_state {
    struct sac_units units;
    int64_t          count, inner, blocks; /* blocks: of columns, of each outer */
    bool             least, last;
};

static struct sac_kernel_offer arg_supports(struct sac_device                *dev,
                                            const struct sac_kernel_question *q)
{
    struct sac_kernel_offer offer = sac_kernel_take(q);
    (void)dev;
    if (q->call->in[0].dtype != SAC_F32)
        return sac_kernel_refuse("not float32");
    offer.in_layout[0] = SAC_LAYOUT_PLAIN;
    return offer;
}

#define KEEP_FIRST(before)                     \
    for (int64_t i = 0; i < columns; i++) {    \
        const float   v = x[i], had = best[i]; \
        const int32_t take = (before);         \
        best[i] = take ? v : had;              \
        at[i] = take ? k : at[i];              \
    }

/* NaN counts as the largest. */
static void find_columns(const struct arg_state *s, const float *x, int64_t columns, float *best,
                         int32_t *at)
{
    for (int64_t i = 0; i < columns; i++) {
        best[i] = x[i];
        at[i] = 0;
    }
    for (int32_t k = 1; k < s->count; k++) {
        x += s->inner;
        if (s->least)
            KEEP_FIRST((v < had) | ((had != had) & (v == v)))
        else
            KEEP_FIRST(((v > had) | (v != v)) & (had == had))
    }
}

static int64_t last_of(const struct arg_state *s, const float *x, float best, int64_t at)
{
    for (int64_t k = at + 1; k < s->count; k++) {
        const float v = x[k * s->inner];
        at = v == best || (isnan(v) && isnan(best)) ? k : at;
    }
    return at;
}

static void arg_work(const void *state, void *const *in, void *const *out, int64_t first,
                     int64_t end)
{
    const struct arg_state *s = state;
    float                   best[COLUMNS];
    int32_t                 at[COLUMNS];
    for (int64_t unit = first; unit < end; unit++) {
        const int64_t column = unit % s->blocks * COLUMNS, outer = unit / s->blocks;
        const int64_t columns = SAC_MIN(s->inner - column, (int64_t)COLUMNS);
        const float  *x = (const float *)in[0] + outer * s->count * s->inner + column;
        int64_t      *y = (int64_t *)out[0] + outer * s->inner + column;
        find_columns(s, x, columns, best, at);
        for (int64_t i = 0; i < columns; i++)
            y[i] = s->last ? last_of(s, x + i, best[i], at[i]) : at[i];
    }
}

static sac_result arg_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    const struct sac_operand *in = &c->in[0];
    struct arg_state         *s = sac_new(struct arg_state);
    int                       axis = 0;
    if (!s)
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    sac_axis_normalise(sac_attr_int(c->node, "axis", 0), in->rank, &axis);
    s->count = in->dims[axis];
    s->inner = sac_dims_product(in->rank - axis - 1, in->dims + axis + 1);
    s->blocks = (s->inner + COLUMNS - 1) / COLUMNS;
    s->least = c->node->op->id == SAC_OP_ArgMin;
    s->last = sac_attr_int(c->node, "select_last_index", 0) != 0;
    sac_units_init(&s->units, dev, sac_dims_product(axis, in->dims) * s->blocks,
                   sac_operand_elements(in) / 4, arg_work);
    snprintf(plan->implementation, sizeof plan->implementation, "loop");
    plan->state = s;
    return SAC_OK;
}

const struct sac_kernel sac_cpu_ArgMax = {SAC_OP_ArgMax, arg_supports, arg_prepare, sac_units_run,
                                          sac_free};
const struct sac_kernel sac_cpu_ArgMin = {SAC_OP_ArgMin, arg_supports, arg_prepare, sac_units_run,
                                          sac_free};
