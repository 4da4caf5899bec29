/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of float32 over axes that lie side by side: [outer, count, inner] to [outer, inner].
 * Rows where nothing lies within (inner 1), columns else. */
#include <math.h>
#include <stdio.h>

#include "engine/cpu/cpu.h"
#include "engine/cpu/map.h"
#include "engine/ops/reads.h"

enum { COLUMNS = 256 };

struct reduce_state {
    struct sac_units   units;
    int64_t            outer, count, inner;
    int64_t            blocks; /* of columns, of each outer */
    enum sac_reduction op;
    bool               mean, root;
};

/* ---- which ---- */

static enum sac_reduction op_of(enum sac_op_id id)
{
    switch (id) {
    case SAC_OP_ReduceL1: return SAC_REDUCTION_ABS;
    case SAC_OP_ReduceL2:
    case SAC_OP_ReduceSumSquare: return SAC_REDUCTION_SQUARE;
    case SAC_OP_GlobalMaxPool:
    case SAC_OP_ReduceMax: return SAC_REDUCTION_MAX;
    case SAC_OP_ReduceMin: return SAC_REDUCTION_MIN;
    default: return SAC_REDUCTION_SUM;
    }
}

static bool axes_of(const struct sac_op_call *c, bool *reduced)
{
    if (c->node->op->id == SAC_OP_GlobalMaxPool) {
        for (int d = 0; d < c->in[0].rank; d++)
            reduced[d] = d >= 2;
        return true;
    }
    return (c->in_count < 2 || !c->in[1].present || c->in[1].data) &&
           sac_reduced_axes(c, reduced) == SAC_OK;
}

/* The three sizes; false: axes that are kept lie between, or not in the order of the result. */
static bool sizes_of(const struct sac_op_call *c, enum sac_layout layout, struct reduce_state *s)
{
    const struct sac_operand *in = &c->in[0];
    const bool                last = sac_layout_is_last(layout) && in->rank > 2;
    bool                      reduced[SAC_RANK_MAX] = {false}, keeps_map = false;
    int64_t                   size[3] = {1, 1, 1};
    int                       part = 0;
    if (!axes_of(c, reduced))
        return false;
    for (int d = 2; d < in->rank; d++)
        keeps_map |= !reduced[d] && in->dims[d] > 1;
    if (last && keeps_map && !reduced[1] && in->dims[1] > 1)
        return false;
    for (int k = 0; k < in->rank; k++) { /* in the order in which they lie */
        const int d = !last || k == 0 ? k : k == in->rank - 1 ? 1 : k + 1;
        if (in->dims[d] == 1)
            continue;
        part += reduced[d] != (part == 1);
        if (part > 2)
            return false;
        size[part] *= in->dims[d];
    }
    s->outer = size[0];
    s->count = size[1];
    s->inner = size[2];
    return true;
}

static struct sac_kernel_offer reduce_supports(struct sac_device                *dev,
                                               const struct sac_kernel_question *q)
{
    struct sac_kernel_offer   offer = sac_kernel_take(q);
    const struct sac_op_call *c = q->call;
    struct reduce_state       s;
    (void)dev;
    if (sac_cpu_level() < SAC_CPU_AVX2 || c->in[0].dtype != SAC_F32 ||
        sac_operand_elements(&c->in[0]) == 0)
        return sac_kernel_refuse("not float32, empty, or no AVX2");
    if (sac_layout_is_half(q->in_layout[0]) || !sizes_of(c, q->in_layout[0], &s))
        offer.in_layout[0] = SAC_LAYOUT_PLAIN;
    if (!sizes_of(c, offer.in_layout[0], &s))
        return sac_kernel_refuse("axes that are kept lie between");
    offer.in_layout[1] = SAC_LAYOUT_PLAIN;
    return offer;
}

/* ---- the kernel ---- */

static float finish(const struct reduce_state *s, double sum)
{
    return (float)(s->mean ? sum / (double)s->count : s->root ? sqrt(sum) : sum);
}

static void reduce_rows(const void *state, void *const *in, void *const *out, int64_t first,
                        int64_t end)
{
    const struct reduce_state *s = state;
    for (int64_t row = first; row < end; row++)
        ((float *)out[0])[row] =
            finish(s, SAC_SIMD_PICK(sac_map_reduce)(s->op, (const float *)in[0] + row * s->count,
                                                    s->count));
}

static void reduce_columns(const void *state, void *const *in, void *const *out, int64_t first,
                           int64_t end)
{
    const struct reduce_state *s = state;
    double                     all[COLUMNS];
    for (int64_t unit = first; unit < end; unit++) {
        const int64_t column = unit % s->blocks * COLUMNS, outer = unit / s->blocks;
        const int64_t columns = SAC_MIN(s->inner - column, (int64_t)COLUMNS);
        float        *y = (float *)out[0] + outer * s->inner + column;
        SAC_SIMD_PICK(sac_map_reduce_columns)
        (s->op, (const float *)in[0] + outer * s->count * s->inner + column, s->count, s->inner,
         all, columns);
        for (int64_t i = 0; i < columns; i++)
            y[i] = finish(s, all[i]);
    }
}

static sac_result reduce_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    struct reduce_state      *s = sac_new(struct reduce_state);
    if (!s)
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    sizes_of(c, plan->in_layout[0], s);
    s->op = op_of(c->node->op->id);
    s->mean = c->node->op->id == SAC_OP_ReduceMean;
    s->root = c->node->op->id == SAC_OP_ReduceL2;
    s->blocks = (s->inner + COLUMNS - 1) / COLUMNS;
    sac_units_init(&s->units, dev, s->inner == 1 ? s->outer : s->outer * s->blocks,
                   s->outer * s->count * s->inner / 8,
                   s->inner == 1 ? reduce_rows : reduce_columns);
    snprintf(plan->implementation, sizeof plan->implementation, "%s", sac_simd_name());
    plan->state = s;
    return SAC_OK;
}

#define REDUCE(op)                                                                        \
    const struct sac_kernel sac_cpu_##op = {SAC_OP_##op, reduce_supports, reduce_prepare, \
                                            sac_units_run, sac_free};
REDUCE(GlobalMaxPool)
REDUCE(ReduceL1)
REDUCE(ReduceL2)
REDUCE(ReduceMax)
REDUCE(ReduceMin)
REDUCE(ReduceSum)
REDUCE(ReduceSumSquare)

/* ---- means ---- */

/* Those over each channel's map have a kernel of their own (kernel_pool.c). */
static struct sac_kernel_offer mean_supports(struct sac_device                *dev,
                                             const struct sac_kernel_question *q)
{
    const struct sac_kernel_offer offer = sac_map_means_supports(dev, q);
    return offer.taken ? offer : reduce_supports(dev, q);
}

static sac_result mean_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const bool maps = sac_layout_is_last(plan->in_layout[0]) && sac_map_means_fit(plan->call);
    return maps ? sac_map_means_prepare(dev, plan) : reduce_prepare(dev, plan);
}

const struct sac_kernel sac_cpu_ReduceMean = {SAC_OP_ReduceMean, mean_supports, mean_prepare,
                                              sac_units_run, sac_free};
