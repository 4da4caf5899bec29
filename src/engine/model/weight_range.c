/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of products that float16 does not hold: numbers beyond its end, or so small that most are
 * subnormal there. The small ones are judged by what their rounding makes of the result: gates are
 * often initialised to weights of 1e-6 beside a bias of one (gMLP: Liu et al., "Pay Attention to
 * MLPs", 2021), where all that they add is less than the result's own rounding. */
#include <math.h>

#include "engine/model/ranges.h"
#include "engine/ops/fused.h"
#include "engine/ops/reads.h"
#include "engine/ops/util.h"

/* Float16's least steps, 2^-24, take half of that off a number, and 11 bits half of the last. */
static const float SUBNORMAL_ERROR = 0x1p-25f, ROUNDING = 0x1p-11f;

static bool is_conv(const struct sac_node *n)
{
    return n->op->id == SAC_OP_Conv || n->op->id == SAC_OP_FusedConv ||
           n->op->id == SAC_OP_ConvTranspose;
}

/* Which input of the product has its weights; -1: it is none, or none of constants. */
static int weights_of(const struct sac_node *n)
{
    const bool heads = n->op->id == SAC_OP_HeadMatMul;
    if (!is_conv(n) && !heads && n->op->id != SAC_OP_MatMul && n->op->id != SAC_OP_FusedMatMul &&
        n->op->id != SAC_OP_Gemm)
        return -1;
    for (int i = heads ? 0 : 1; i < SAC_MIN(n->input_count, 2); i++)
        if (n->inputs[i] && n->inputs[i]->data && n->inputs[i]->dtype == SAC_F32)
            return i;
    return -1;
}

/* How many weights a number of the result is made with; 0: it is not known. */
static int64_t depth_of(const struct sac_node *n, int weights)
{
    enum { ROWS = 3, COLUMNS = 4 }; /* of a view (engine/ops/fused.h) */
    const struct sac_value *w = n->inputs[weights];
    const int64_t          *view;
    switch (n->op->id) {
    case SAC_OP_HeadMatMul:
        return sac_attr_ints(n, weights ? "b" : "a", &view) < SAC_VIEW_ENTRIES
                   ? 0
                   : view[weights ? ROWS : COLUMNS];
    case SAC_OP_Conv:
    case SAC_OP_FusedConv:
        return sac_dims_product(w->rank, w->dims) / SAC_MAX(w->rank > 0 ? w->dims[0] : 1, 1);
    case SAC_OP_Gemm: return w->rank == 2 ? w->dims[sac_attr_int(n, "transB", 0) ? 1 : 0] : 0;
    case SAC_OP_MatMul:
    case SAC_OP_FusedMatMul: return w->rank >= 2 ? w->dims[w->rank - 2] : 0;
    default: return 0;
    }
}

static float scale_of(const struct sac_node *n)
{
    return n->op->id == SAC_OP_HeadMatMul ? sac_attr_float(n, "scale", 1)
           : n->op->id == SAC_OP_Gemm     ? sac_attr_float(n, "alpha", 1)
                                          : 1;
}

/* Is the result changed by no more than the sum, or little more? Squares and numbers for each
 * channel behind them are not looked into. */
static bool is_even_behind(const struct sac_node *n)
{
    if (n->input_count > SAC_ENDING && n->inputs[SAC_ENDING])
        return false;
    const struct sac_activation act = sac_activation_read(n);
    switch (act.kind) {
    case SAC_ACT_SQUARED_RELU: return false;
    case SAC_ACT_LEAKY_RELU:
    case SAC_ACT_HARD_SIGMOID:
    case SAC_ACT_HARD_SWISH: return fabsf(act.alpha) <= 1;
    default: return true;
    }
}

/* The largest magnitude of a value that was seen. */
static float most_of(const struct sac_value *v, const struct sac_range *ranges)
{
    return v && !v->data && ranges[v->id].some > 0 ? ranges[v->id].most : INFINITY;
}

/* What rounding small weights changes a number of the result by, at most. */
static float change_of(const struct sac_node *n, int weights, const struct sac_range *ranges)
{
    const int64_t depth = depth_of(n, weights);
    float         most = most_of(n->inputs[weights ? 0 : 1], ranges);
    if (depth < 1 || !is_even_behind(n))
        return INFINITY;
    if (n->op->id == SAC_OP_HeadMatMul && sac_attr_int(n, "gates", 0))
        most *= most_of(n->input_count > SAC_RESIDUAL_INPUT ? n->inputs[SAC_RESIDUAL_INPUT] : NULL,
                        ranges);
    return (float)depth * SUBNORMAL_ERROR * most * fabsf(scale_of(n));
}

/* Where small weights make small numbers, or a share of a sum, as with the scales of layers at
 * their start, that is for those who read them. */
static bool are_shares(const struct sac_node *n)
{
    return n->input_count > SAC_RESIDUAL_INPUT && n->inputs[SAC_RESIDUAL_INPUT] &&
           !(n->op->id == SAC_OP_HeadMatMul && sac_attr_int(n, "gates", 0));
}

bool sac_weights_leave(const struct sac_node *n, const struct sac_value *result,
                       const struct sac_range *ranges)
{
    const int              weights = weights_of(n);
    const struct sac_range made = ranges[result->id];
    struct sac_range       r = {.most = 0};
    if (weights < 0)
        return false;
    const struct sac_value *w = n->inputs[weights];
    sac_range_look(&r, w->data, sac_dims_product(w->rank, w->dims), -1);
    if (!(r.most <= 65504))
        return true;
    return sac_range_is_small(&r) && !sac_range_is_small(&made) && !are_shares(n) &&
           !(change_of(n, weights, ranges) <= made.most * ROUNDING);
}
