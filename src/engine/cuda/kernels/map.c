/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of elementwise operators: which function with which constants, over which views. */
#include "engine/cuda/kernels/map.h"

#include <math.h>

#include "engine/cuda/kernels/kernels.h"
#include "engine/ops/chain.h"

/* ---- layouts: those of the inputs that are as large as the output, or where none is, as a gate of
 * channels times one of places, of all that are broadcast ---- */

static bool is_large(const struct sac_op_call *c, int i)
{
    return c->in[i].present && sac_operand_same_dims(&c->in[i], &c->out[0]);
}

static bool is_wide(const struct sac_op_call *c, int i)
{
    bool any = false;
    for (int k = 0; k < c->in_count; k++)
        any |= is_large(c, k);
    return any ? is_large(c, i) : c->in[i].present && c->in[i].rank == c->out[0].rank;
}

/* A mask that is added to scores: 0 and one number, which float16 holds, for what is masked. */
static bool is_mask(const struct sac_operand *o, double low)
{
    bool open = false;
    for (int64_t i = 0, n = sac_operand_elements(o); i < n; i++) {
        const double v = sac_operand_get(o, i);
        if (v != 0 && v != low)
            return false;
        open |= v == 0;
    }
    return open && low >= -1e4;
}

static bool is_divisor(const struct sac_node *n, int i)
{
    return n->op->id == SAC_OP_Chain ? sac_chain_divides(n, i) : n->op->id == SAC_OP_Div && i == 1;
}

/* Is it a factor of what a Chain goes on with, as a layer's scale is? Its steps are in float32. */
static bool scales_within(const struct sac_node *n, int i)
{
    struct sac_chain c;
    if (n->op->id != SAC_OP_Chain || !sac_chain_read(n, &c))
        return false;
    for (int s = 0; s < c.count; s++)
        if ((c.step[s].operand[0] == i || c.step[s].operand[1] == i) &&
            (c.step[s].fn != SAC_CHAIN_MUL || s == c.count - 1))
            return false;
    return true;
}

/* Does a constant need float32? Then the result stays float32. Constants over 16 are places and
 * sizes (grids, strides, anchors), for which eleven bits are too few, unless they are a mask. One
 * below float16's smallest number is an epsilon (of a norm); beside larger ones, as in a bias, it
 * is only small, but as a divisor it is not. */
static bool constant_needs_float(const struct sac_op_call *c, int i)
{
    const struct sac_operand *o = &c->in[i];
    const bool                divides = is_divisor(c->node, i);
    const double              tiny = 6.2e-5;
    double                    low = 0, high = 0;
    for (int64_t k = 0, n = sac_operand_elements(o); k < n; k++) {
        const double v = sac_operand_get(o, k);
        low = fmin(low, v);
        high = fmax(high, v);
        if (divides && v != 0 && fabs(v) < tiny)
            return true;
    }
    if (high > 16 || (low < -16 && (high > 0 || !is_mask(o, low))))
        return true;
    return fmax(high, -low) > 0 && fmax(high, -low) < tiny && !scales_within(c->node, i);
}

static bool follows_half(const struct sac_kernel_question *q, const struct sac_kernel_offer *offer)
{
    const struct sac_op_call *c = q->call;
    bool                      wide = false, wide_half = true, half = false, all_half = true;
    for (int i = 0; i < c->in_count; i++) {
        if (!c->in[i].present || c->in[i].dtype != SAC_F32)
            continue;
        if (c->in[i].data) {
            if (constant_needs_float(c, i))
                return false;
            continue;
        }
        const bool is_half = sac_layout_is_half(offer->in_layout[i]);
        half |= is_half;
        all_half &= is_half;
        if (is_wide(c, i)) {
            wide = true;
            wide_half &= is_half;
        }
    }
    return wide ? wide_half : half && all_half;
}

/* These grow or shrink so fast that they leave float16's range. */
static bool leaves_range(enum sac_op_id id)
{
    return id == SAC_OP_Exp || id == SAC_OP_Pow || id == SAC_OP_Reciprocal || id == SAC_OP_Cosh ||
           id == SAC_OP_Sinh || id == SAC_OP_Tan;
}

static void settle_in_place(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    const int i = offer->in_place;
    if (i >= 0 && (offer->in_layout[i] != offer->out_layout[0] || q->call->in[i].data))
        offer->in_place = -1;
}

bool ops_map_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    const struct sac_op_call *c = q->call;
    bool                      last = false, wide = false;
    for (int i = 0; i < c->in_count; i++)
        wide |= is_wide(c, i);
    for (int i = 0; i < c->in_count; i++)
        last |= is_wide(c, i) && !c->in[i].data && ops_can_be_last(&c->in[i]) &&
                sac_layout_is_last(offer->in_layout[i]);
    for (int i = 0; i < c->in_count; i++)
        if (last && is_wide(c, i) && c->in[i].data)
            offer->in_layout[i] = ops_with_last(offer->in_layout[i], true); /* once, when the plan
                                                                             is made */
    for (int i = 0; i < c->out_count; i++) {
        offer->out_layout[i] = ops_with_last(SAC_LAYOUT_PLAIN, last);
        ops_halve_output(q, offer, i, follows_half(q, offer) && !leaves_range(c->node->op->id));
    }
    offer->strided = last;
    /* A map that only smaller operands are spread over, such as gates of pixels and of channels. */
    offer->writes_any =
        !wide && c->out_count == 1 && ops_can_be_last(&c->out[0]) && c->out[0].dtype == SAC_F32;
    settle_in_place(q, offer);
    return true;
}

/* ---- views ---- */

static void find_dense(struct ops_map *m)
{
    m->dense = m->type == OPS_FLOAT && !m->view.wide && ops_view_is_dense(&m->view, 0);
    for (int k = 0; k <= m->inputs; k++)
        m->dense &= ops_is_f16_or_f32(m->dtype[k]) || m->dtype[k] == SAC_BOOL;
    for (int k = 0; k < m->inputs; k++)
        m->beside[k] = ops_view_is_dense(&m->view, k + 1)       ? OPS_BESIDE_EACH
                       : ops_view_stands_still(&m->view, k + 1) ? OPS_BESIDE_ONE
                                                                : OPS_BESIDE_PLACED;
}

/* ports: the inputs, -1 for the output itself. */
static sac_result fill_map(struct sac_kernel_plan *plan, struct ops_map *m, int fn, int inputs,
                           const int *ports)
{
    struct ops_shape s;
    bool             eights = true;
    m->fn = fn;
    m->inputs = inputs;
    ops_shape_over_out(&s, plan);
    m->dtype[0] = ops_out_type(plan, 0);
    for (int k = 0; k < inputs; k++) {
        m->port[k] = ports[k];
        m->dtype[k + 1] = ports[k] < 0 ? m->dtype[0] : ops_in_type(plan, ports[k]);
        if (ports[k] < 0)
            ops_shape_out(&s, plan, 0);
        else
            ops_shape_in(&s, plan, ports[k]);
    }
    for (int k = 0; k <= inputs; k++)
        eights &= ops_is_f16_or_f32(m->dtype[k]);
    if (!ops_view_of(&s, 0, &m->view))
        return ops_view_fail(plan);
    find_dense(m);
    for (m->vector = eights ? 8 : 0; m->vector >= 4; m->vector /= 2)
        if (ops_view_units(&m->view, inputs + 1, m->vector, true, &m->units, &m->stills) &&
            !(m->stills & 1))
            return SAC_OK;
    m->vector = 0;
    return SAC_OK;
}

/* ---- one input ---- */

struct unary {
    int         fn;
    const char *a_name, *b_name;
    float       a, b;
};

static sac_result unary_fill(struct sac_kernel_plan *plan, void *params)
{
    static const int       first[] = {0};
    const struct sac_node *n = plan->call->node;
    const struct unary    *u = ops_own(plan->call);
    struct ops_map        *m = params;
    const bool             tanh_like =
        n->op->id == SAC_OP_Gelu && strcmp(sac_attr_string(n, "approximate", "none"), "tanh") == 0;
    m->type = ops_class_of(plan->call->in[0].dtype);
    m->a = u->a_name ? sac_attr_float(n, u->a_name, u->a) : u->a;
    m->b = u->b_name ? sac_attr_float(n, u->b_name, u->b) : u->b;
    if (n->op->id == SAC_OP_IsInf) {
        m->a = sac_attr_int(n, "detect_negative", 1) != 0;
        m->b = sac_attr_int(n, "detect_positive", 1) != 0;
    }
    return fill_map(plan, m, tanh_like ? OPS_FN_GELU_TANH : u->fn, 1, first);
}

int ops_activation_fn(const struct sac_activation *act, double *a, double *b)
{
    static const int of[SAC_ACT_COUNT] = {[SAC_ACT_NONE] = OPS_FN_IDENTITY,
                                          [SAC_ACT_RELU] = OPS_FN_RELU,
                                          [SAC_ACT_LEAKY_RELU] = OPS_FN_LEAKY_RELU,
                                          [SAC_ACT_CLIP] = OPS_FN_CLIP,
                                          [SAC_ACT_SIGMOID] = OPS_FN_SIGMOID,
                                          [SAC_ACT_SILU] = OPS_FN_SWISH,
                                          [SAC_ACT_HARD_SIGMOID] = OPS_FN_HARD_SIGMOID,
                                          [SAC_ACT_HARD_SWISH] = OPS_FN_HARD_SWISH,
                                          [SAC_ACT_TANH] = OPS_FN_TANH,
                                          [SAC_ACT_SOFTPLUS] = OPS_FN_SOFTPLUS,
                                          [SAC_ACT_GELU] = OPS_FN_GELU,
                                          [SAC_ACT_GELU_TANH] = OPS_FN_GELU_TANH,
                                          [SAC_ACT_SQUARED_RELU] = OPS_FN_SQUARED_RELU};
    *a = act->kind == SAC_ACT_SILU ? 1 : act->alpha;
    *b = act->beta;
    return of[act->kind];
}

static sac_result activation_fill(struct sac_kernel_plan *plan, void *params)
{
    static const int            first[] = {0};
    const struct sac_activation act = sac_activation_read(plan->call->node);
    struct ops_map             *m = params;
    const int                   fn = ops_activation_fn(&act, &m->a, &m->b);
    return fill_map(plan, m, fn, 1, first);
}

/* Constant bounds go into the parameters, others are read as operands. */
static sac_result clip_fill(struct sac_kernel_plan *plan, void *params)
{
    static const int          ports[] = {0, 1, 2};
    const struct sac_op_call *c = plan->call;
    struct ops_map           *m = params;
    const bool                lo = sac_op_has(c, 1), hi = sac_op_has(c, 2);
    const bool                known = (!lo || c->in[1].data) && (!hi || c->in[2].data);
    m->type = ops_class_of(c->in[0].dtype);
    if (m->type == OPS_FLOAT && (known || c->node->opset < 11)) {
        m->a = c->node->opset < 11 ? sac_attr_float(c->node, "min", -INFINITY)
               : lo                ? sac_operand_get(&c->in[1], 0)
                                   : -INFINITY;
        m->b = c->node->opset < 11 ? sac_attr_float(c->node, "max", INFINITY)
               : hi                ? sac_operand_get(&c->in[2], 0)
                                   : INFINITY;
        ops_take_from(plan, 1);
        return fill_map(plan, m, OPS_FN_CLIP, 1, ports);
    }
    if (c->node->opset < 11)
        return SAC_OP_FAIL(c, SAC_ERR_UNSUPPORTED, "no CUDA kernel for dtype %s in opset %d",
                           sac_dtype_name(c->in[0].dtype), c->node->opset);
    m->a = (lo ? 1 : 0) + (hi ? 2 : 0);
    const int by[] = {0, lo ? 1 : 0, hi ? 2 : 0};
    return fill_map(plan, m, OPS_FN_CLIP_BY, 3, by);
}

static bool clip_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    const struct sac_op_call *c = q->call;
    if (c->node->opset < 11 && ops_class_of(c->in[0].dtype) != OPS_FLOAT)
        return ops_refuse(offer, "dtype %s in opset %d", sac_dtype_name(c->in[0].dtype),
                          c->node->opset);
    ops_map_layouts(q, offer);
    for (int i = 0; i < c->out_count; i++) /* bounds do not affect the precision */
        ops_halve_output(q, offer, i, sac_layout_is_half(offer->in_layout[0]));
    settle_in_place(q, offer);
    return true;
}

/* A cast to float32 keeps the input's precision; other casts give the named dtype. */
static bool cast_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    ops_map_layouts(q, offer);
    ops_halve_output(q, offer, 0,
                     q->call->in[0].dtype == SAC_F32 && sac_layout_is_half(offer->in_layout[0]));
    offer->in_place = -1;
    return true;
}

static sac_result cast_fill(struct sac_kernel_plan *plan, void *params)
{
    static const int first[] = {0};
    struct ops_map  *m = params;
    m->type = ops_class_of(plan->call->in[0].dtype);
    return fill_map(plan, m, (int)ops_class_of(plan->call->out[0].dtype), 1, first);
}

/* At inference a copy; the mask is all ones. */
static sac_result dropout_fill(struct sac_kernel_plan *plan, void *params)
{
    static const int ports[] = {0};
    struct ops_map  *m = params;
    m->type = ops_class_of(plan->call->in[0].dtype);
    ops_take_from(plan, 1);
    return fill_map(plan, m, OPS_FN_IDENTITY, 1, ports);
}

static bool dropout_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    if (sac_op_wants(q->call, 1))
        return ops_refuse(offer, "its mask is wanted");
    return ops_map_layouts(q, offer);
}

/* ---- two and three inputs ---- */

static sac_result binary_fill(struct sac_kernel_plan *plan, void *params)
{
    static const int          ports[] = {0, 1};
    const struct sac_op_call *c = plan->call;
    const struct sac_node    *n = c->node;
    struct ops_map           *m = params;
    int                       fn = *(const int *)ops_own(c);
    m->type = ops_class_of(c->in[0].dtype);
    if (n->op->id == SAC_OP_Mod && sac_attr_int(n, "fmod", 0))
        fn = OPS_FN_FMOD;
    if (n->op->id == SAC_OP_BitShift && strcmp(sac_attr_string(n, "direction", ""), "LEFT") != 0)
        fn = OPS_FN_SHIFT_RIGHT;
    if (n->op->id == SAC_OP_Pow && ops_class_of(c->in[1].dtype) != m->type)
        m->type = OPS_DOUBLE;
    if (n->op->id == SAC_OP_SwiGLU)
        m->a = sac_attr_float(n, "alpha", 1);
    return fill_map(plan, m, fn, 2, ports);
}

static sac_result where_fill(struct sac_kernel_plan *plan, void *params)
{
    static const int ports[] = {0, 1, 2};
    struct ops_map  *m = params;
    m->type = ops_class_of(plan->call->in[1].dtype);
    return fill_map(plan, m, OPS_FN_WHERE, 3, ports);
}

static bool chain_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    if (q->call->in_count > OPS_CHAIN_MAX + 1)
        return ops_refuse(offer, "%d inputs; at most %d", q->call->in_count, OPS_CHAIN_MAX + 1);
    return ops_map_layouts(q, offer);
}

static sac_result chain_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    const enum sac_op_id      id = c->node->op->id;
    struct ops_map_chain     *m = params;
    sac_result                res = SAC_OK;
    m->count = SAC_MAX(c->in_count - 1, 1);
    for (int i = 0; i < m->count && res == SAC_OK; i++) {
        const bool mean = id == SAC_OP_Mean && i == m->count - 1;
        const int  ports[] = {i ? -1 : 0, i + 1};
        m->step[i].type = ops_class_of(c->in[0].dtype);
        m->step[i].a = c->in_count;
        res = fill_map(plan, &m->step[i],
                       c->in_count == 1 ? OPS_FN_IDENTITY
                       : mean           ? OPS_FN_MEAN_LAST
                                        : *(const int *)ops_own(c),
                       c->in_count == 1 ? 1 : 2, ports);
    }
    return res;
}

/* ---- GatedSum ---- */

static void sums_of_parts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    bool half = true;
    for (int i = 0; i < q->call->in_count; i += 2)
        half &= sac_layout_is_half(offer->in_layout[i]);
    offer->out_layout[0] = ops_with_last(SAC_LAYOUT_PLAIN, sac_layout_is_last(offer->in_layout[0]));
    ops_halve_output(q, offer, 0, half);
    offer->in_place = -1;
}

static bool gated_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    const struct sac_op_call *c = q->call;
    if (!ops_can_be_last(&c->out[0]) || c->in_count > 2 * OPS_GATES_MAX)
        return ops_refuse(offer, "%d dimensions and %d inputs", c->out[0].rank, c->in_count);
    ops_map_layouts(q, offer);
    if (sac_attr_int(c->node, "parts", 1) > 1) /* no input is as large as the output */
        sums_of_parts(q, offer);
    for (int i = 0; i < c->in_count; i++) /* one view for all: they must have the same strides */
        offer->in_layout[i] =
            ops_with_last(offer->in_layout[i], sac_layout_is_last(offer->out_layout[0]));
    offer->strided = false;
    return true;
}

static sac_result gated_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call   *c = plan->call;
    const int64_t               channels = c->out[0].dims[1];
    const int64_t               own[SAC_RANK_MAX] = {c->in[0].dims[1], 1};
    const int64_t               shared[SAC_RANK_MAX] = {0, 1};
    const struct sac_activation act = sac_activation_read(c->node);
    struct ops_gated           *g = params;
    struct ops_shape            s;
    int64_t                     steps[SAC_RANK_MAX];
    ops_steps_in(plan, 0, steps);
    ops_shape_over_out(&s, plan);
    ops_shape_add(&s, 0, steps);
    ops_shape_add(&s, 0, own);
    ops_shape_add(&s, 0, shared);
    g->count = c->in_count / 2;
    g->parts = (int32_t)sac_attr_int(c->node, "parts", 1);
    g->x_part = channels * steps[1];
    g->gate_part = channels;
    g->out_type = ops_out_type(plan, 0);
    g->activation = ops_activation_fn(&act, &g->a, &g->b);
    for (int k = 0; k < g->count; k++) {
        g->x_type[k] = ops_in_type(plan, 2 * k);
        g->gate_type[k] = ops_in_type(plan, 2 * k + 1);
        g->shared[k] = c->in[2 * k + 1].dims[0] == 1;
    }
    if (!ops_view_of(&s, 0, &g->view))
        return ops_view_fail(plan);
    for (int n = 8; n > 1 && !g->vector; n /= 2)
        if (ops_view_units(&g->view, 4, n, true, &g->units, &g->stills) && !(g->stills & 3) &&
            (g->parts == 1 ||
             (g->x_part % n == 0 && (g->gate_part % n == 0 || (g->stills & 12) == 12))))
            g->vector = n;
    return SAC_OK;
}

/* ---- rows ---- */

OPS_ROW(Activation, ops_map_layouts, activation_fill, ops_launch_map, ops_map)
OPS_ROW(Clip, clip_layouts, clip_fill, ops_launch_map, ops_map)
OPS_ROW(Cast, cast_layouts, cast_fill, ops_launch_cast, ops_map)
OPS_ROW(CastLike, cast_layouts, cast_fill, ops_launch_cast, ops_map)
OPS_ROW(Dropout, dropout_layouts, dropout_fill, ops_launch_map, ops_map)
OPS_ROW(Where, ops_map_layouts, where_fill, ops_launch_map, ops_map)
OPS_ROW(GatedSum, gated_layouts, gated_fill, ops_launch_gated, ops_gated)

#define CHAIN(op, fn) \
    OPS_OWN_ROW(op, chain_layouts, chain_fill, ops_launch_chain, ops_map_chain, &(const int){fn})
CHAIN(Max, OPS_FN_MAX)
CHAIN(Min, OPS_FN_MIN)
CHAIN(Sum, OPS_FN_ADD)
CHAIN(Mean, OPS_FN_ADD)

#define BINARY(op, fn) \
    OPS_OWN_ROW(op, ops_map_layouts, binary_fill, ops_launch_map, ops_map, &(const int){fn})
BINARY(Add, OPS_FN_ADD)
BINARY(Sub, OPS_FN_SUB)
BINARY(Mul, OPS_FN_MUL)
BINARY(Div, OPS_FN_DIV)
BINARY(Pow, OPS_FN_POW)
BINARY(Mod, OPS_FN_MOD)
BINARY(PRelu, OPS_FN_PRELU)
BINARY(SwiGLU, OPS_FN_SWIGLU)
BINARY(Equal, OPS_FN_EQUAL)
BINARY(Greater, OPS_FN_GREATER)
BINARY(GreaterOrEqual, OPS_FN_GREATER_OR_EQUAL)
BINARY(Less, OPS_FN_LESS)
BINARY(LessOrEqual, OPS_FN_LESS_OR_EQUAL)
BINARY(And, OPS_FN_AND)
BINARY(Or, OPS_FN_OR)
BINARY(Xor, OPS_FN_XOR)
BINARY(BitwiseAnd, OPS_FN_BIT_AND)
BINARY(BitwiseOr, OPS_FN_BIT_OR)
BINARY(BitwiseXor, OPS_FN_BIT_XOR)
BINARY(BitShift, OPS_FN_SHIFT_LEFT)

#define UNARY(op, ...)                                                    \
    OPS_OWN_ROW(op, ops_map_layouts, unary_fill, ops_launch_map, ops_map, \
                (&(const struct unary){__VA_ARGS__}))
UNARY(Abs, OPS_FN_ABS)
UNARY(Acos, OPS_FN_ACOS)
UNARY(Acosh, OPS_FN_ACOSH)
UNARY(Asin, OPS_FN_ASIN)
UNARY(Asinh, OPS_FN_ASINH)
UNARY(Atan, OPS_FN_ATAN)
UNARY(Atanh, OPS_FN_ATANH)
UNARY(BitwiseNot, OPS_FN_BIT_NOT)
UNARY(Ceil, OPS_FN_CEIL)
UNARY(Celu, OPS_FN_CELU, "alpha", NULL, 1, 0)
UNARY(Cos, OPS_FN_COS)
UNARY(Cosh, OPS_FN_COSH)
UNARY(Elu, OPS_FN_ELU, "alpha", NULL, 1, 0)
UNARY(Erf, OPS_FN_ERF)
UNARY(Exp, OPS_FN_EXP)
UNARY(Floor, OPS_FN_FLOOR)
UNARY(Gelu, OPS_FN_GELU)
UNARY(HardSigmoid, OPS_FN_HARD_SIGMOID, "alpha", "beta", 0.2f, 0.5f)
UNARY(HardSwish, OPS_FN_HARD_SWISH, NULL, NULL, 1.0f / 6, 0.5f)
UNARY(IsInf, OPS_FN_IS_INF)
UNARY(IsNaN, OPS_FN_IS_NAN)
UNARY(LeakyRelu, OPS_FN_LEAKY_RELU, "alpha", NULL, 0.01f, 0)
UNARY(Log, OPS_FN_LOG)
UNARY(Mish, OPS_FN_MISH)
UNARY(Neg, OPS_FN_NEG)
UNARY(Not, OPS_FN_NOT)
UNARY(Reciprocal, OPS_FN_RECIPROCAL)
UNARY(Relu, OPS_FN_RELU)
UNARY(Round, OPS_FN_ROUND)
UNARY(Selu, OPS_FN_SELU, "alpha", "gamma", 1.67326319f, 1.05070102f)
UNARY(Shrink, OPS_FN_SHRINK, "bias", "lambd", 0, 0.5f)
UNARY(Sigmoid, OPS_FN_SIGMOID)
UNARY(Sign, OPS_FN_SIGN)
UNARY(Sin, OPS_FN_SIN)
UNARY(Sinh, OPS_FN_SINH)
UNARY(Softplus, OPS_FN_SOFTPLUS)
UNARY(Softsign, OPS_FN_SOFTSIGN)
UNARY(Sqrt, OPS_FN_SQRT)
UNARY(Swish, OPS_FN_SWISH, "alpha", NULL, 1, 0)
UNARY(Tan, OPS_FN_TAN)
UNARY(Tanh, OPS_FN_TANH)
UNARY(ThresholdedRelu, OPS_FN_THRESHOLDED_RELU, "alpha", NULL, 1, 0)
