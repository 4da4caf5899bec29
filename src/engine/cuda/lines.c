/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of operators over lines: which dimensions a line runs along, and who works on it. */
#include "engine/cuda/lines.h"

#include <math.h>

#include "engine/cuda/map.h"
#include "engine/cuda/ops.h"
#include "engine/fused.h"
#include "engine/layout.h"
#include "engine/op_reads.h"

/* ---- lines ---- */

/* The dimensions in `along` make up a line, the others count lines. */
static sac_result split_lines(struct sac_kernel_plan *plan, const struct ops_shape *s, const bool *along,
                              struct ops_lines *out)
{
    struct ops_shape part[2];
    for (int side = 0; side < 2; side++) {
        int rank = 0;
        part[side] = *s;
        for (int d = 0; d < s->rank; d++) {
            if (along[d] != (side == 1))
                continue;
            part[side].dims[rank] = s->dims[d];
            for (int k = 0; k < s->operands; k++)
                part[side].step[k][rank] = s->step[k][d];
            rank++;
        }
        part[side].rank = rank;
        for (int k = 0; k < s->operands && side == 1; k++)
            part[side].start[k] = 0;
    }
    if (!ops_view_of(&part[0], 0, &out->outer) || !ops_view_of(&part[1], 0, &out->inner))
        return ops_view_fail(plan);
    out->parts = 1;
    return SAC_OK;
}

/* Who reads in rows of memory: threads side by side along a line that is contiguous, or on neighbouring
 * lines that are. The counts of threads are those that a card of 132 multiprocessors wants. */
static void choose_team(struct ops_lines *l, bool parts_allowed)
{
    enum { THREADS_WANTED = 64 << 10, BLOCKS_WANTED = 264, PART_MIN = 32, BLOCK_PART_MIN = 4096, PARTS_MAX = 256 };
    const int64_t rows = l->outer.count, n = l->inner.count;
    const bool    in_rows = l->inner.step[0][l->inner.rank - 1] == 1;
    const bool    side_by_side = l->outer.step[0][l->outer.rank - 1] == 1 && !in_rows && rows >= 8;
    l->parts = 1;
    if (n <= 4 || (side_by_side && (parts_allowed || rows >= THREADS_WANTED / 16 || n <= 64))) {
        l->team = OPS_TEAM_SOLO;
        if (parts_allowed && rows > 0 && n >= 2 * PART_MIN)
            l->parts = (int)SAC_CLAMP(SAC_MIN(THREADS_WANTED / rows, n / PART_MIN), 1, PARTS_MAX);
        return;
    }
    l->team = n <= 256 || (n <= 2048 && rows >= 2 * BLOCKS_WANTED) ? OPS_TEAM_WARP : OPS_TEAM_BLOCK;
    if (parts_allowed && l->team == OPS_TEAM_BLOCK && rows > 0)
        l->parts = (int)SAC_CLAMP(SAC_MIN(BLOCKS_WANTED / rows, n / BLOCK_PART_MIN), 1, PARTS_MAX);
}

/* Channels last stays where the output has the input's dimensions. */
static void line_layouts(struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    for (int i = 0; i < c->out_count; i++)
        if (c->out[i].present) {
            const bool last = sac_layout_is_last(plan->in_layout[0]) && ops_can_be_last(&c->in[0]) &&
                              c->out[i].rank == c->in[0].rank;
            plan->out_layout[i] = ops_with_last(SAC_LAYOUT_PLAIN, last);
        }
}

static bool softmax_layouts(struct sac_kernel_plan *plan, char *why, size_t size)
{
    (void)why, (void)size;
    if (plan->call->node->opset < 13) /* a line over several dimensions: Hardmax counts in ONNX's order */
        plan->in_layout[0] = ops_with_last(plan->in_layout[0], false);
    line_layouts(plan);
    ops_halve_output(plan, 0, true);
    return true;
}

/* ---- reductions ---- */

struct reduction {
    int    kind, finish;
    double nothing;
};
static const struct reduction reductions[SAC_OP_COUNT] = {
    [SAC_OP_ReduceSum] = {OPS_REDUCE_SUM, OPS_FINISH_NONE, 0},
    [SAC_OP_ReduceMean] = {OPS_REDUCE_SUM, OPS_FINISH_MEAN, 0},
    [SAC_OP_ReduceProd] = {OPS_REDUCE_PROD, OPS_FINISH_NONE, 1},
    [SAC_OP_ReduceMax] = {OPS_REDUCE_MAX, OPS_FINISH_NONE, -INFINITY},
    [SAC_OP_ReduceMin] = {OPS_REDUCE_MIN, OPS_FINISH_NONE, INFINITY},
    [SAC_OP_ReduceL1] = {OPS_REDUCE_ABS, OPS_FINISH_NONE, 0},
    [SAC_OP_ReduceL2] = {OPS_REDUCE_SQUARE, OPS_FINISH_SQRT, 0},
    [SAC_OP_ReduceLogSum] = {OPS_REDUCE_SUM, OPS_FINISH_LOG, 0},
    [SAC_OP_ReduceLogSumExp] = {OPS_REDUCE_LOG_SUM_EXP, OPS_FINISH_NONE, -INFINITY},
    [SAC_OP_ReduceSumSquare] = {OPS_REDUCE_SQUARE, OPS_FINISH_NONE, 0},
    [SAC_OP_GlobalAveragePool] = {OPS_REDUCE_SUM, OPS_FINISH_MEAN, 0},
    [SAC_OP_GlobalMaxPool] = {OPS_REDUCE_MAX, OPS_FINISH_NONE, -INFINITY},
};

static sac_result read_reduced(struct sac_op_call *c, bool *along)
{
    const enum sac_op_id id = c->node->op->id;
    if (id != SAC_OP_GlobalAveragePool && id != SAC_OP_GlobalMaxPool)
        return sac_reduced_axes(c, along);
    for (int d = 0; d < c->in[0].rank; d++)
        along[d] = d >= 2;
    return SAC_OK;
}

/* Means over maps feed convolutions; other sums and means are statistics, which are small and stay
 * float32. */
static bool reduce_layouts(struct sac_kernel_plan *plan, char *why, size_t size)
{
    struct sac_op_call *c = plan->call;
    bool                along[SAC_RANK_MAX] = {false}, maps = c->in[0].rank >= 3;
    if (read_reduced(c, along) != SAC_OK)
        return ops_refuse(why, size, "its axes are not known");
    for (int d = 0; d < c->in[0].rank; d++)
        maps &= along[d] == (d >= 2);
    const int kind = reductions[c->node->op->id].kind;
    line_layouts(plan);
    ops_halve_output(plan, 0, kind == OPS_REDUCE_MAX || kind == OPS_REDUCE_MIN
                                  ? sac_layout_is_half(plan->in_layout[0])
                                  : maps && reductions[c->node->op->id].finish == OPS_FINISH_MEAN);
    plan->strided = sac_layout_is_last(plan->in_layout[0]) && maps;
    return true;
}

/* The output's steps along the input's dimensions. */
static void reduced_steps(const struct sac_kernel_plan *plan, const bool *along, int64_t *to)
{
    const struct sac_op_call *c = plan->call;
    const bool                keep = c->out[0].rank == c->in[0].rank;
    int64_t                   own[SAC_RANK_MAX];
    ops_steps_out(plan, 0, own);
    for (int d = 0, k = 0; d < c->in[0].rank; d++) {
        to[d] = along[d] ? 0 : own[k];
        k += keep || !along[d];
    }
}

static sac_result reduce_fill(struct sac_kernel_plan *plan, void *params)
{
    struct sac_op_call     *c = plan->call;
    struct ops_reduce      *p = params;
    const struct reduction *r = &reductions[c->node->op->id];
    bool                    along[SAC_RANK_MAX] = {false};
    int64_t                 to[SAC_RANK_MAX];
    struct ops_shape        s;
    SAC_TRY(read_reduced(c, along));
    ops_take(plan, 1);
    ops_shape_init(&s, c->in[0].rank, c->in[0].dims);
    ops_shape_in(&s, plan, 0);
    reduced_steps(plan, along, to);
    ops_shape_add(&s, 0, to);
    SAC_TRY(split_lines(plan, &s, along, &p->lines));
    p->kind = r->kind;
    p->finish = r->finish;
    p->nothing = r->finish == OPS_FINISH_MEAN ? (double)NAN : r->nothing;
    p->in_type = ops_in_type(plan, 0);
    p->out_type = ops_out_type(plan, 0);
    p->type = ops_class_of(c->in[0].dtype);
    const bool exact = r->finish == OPS_FINISH_NONE && r->kind != OPS_REDUCE_LOG_SUM_EXP;
    if (!exact && p->type != OPS_FLOAT) /* the reference computes these in double */
        p->type = OPS_DOUBLE;
    choose_team(&p->lines, p->type == OPS_FLOAT && p->kind != OPS_REDUCE_LOG_SUM_EXP);
    if (p->lines.parts > 1)
        plan->scratch_bytes = (size_t)(p->lines.outer.count * p->lines.parts) * sizeof(double);
    return SAC_OK;
}

/* ---- along one axis ---- */

/* in and out over the input's dimensions, lines along axis, or from it to the last dimension. */
static sac_result axis_lines(struct sac_kernel_plan *plan, int axis, bool to_end, struct ops_lines *out)
{
    const struct sac_operand *in = &plan->call->in[0];
    bool                      along[SAC_RANK_MAX] = {false};
    struct ops_shape          s;
    for (int d = axis; d < (to_end ? in->rank : axis + 1); d++)
        along[d] = true;
    ops_shape_init(&s, in->rank, in->dims);
    ops_shape_in(&s, plan, 0);
    ops_shape_out(&s, plan, 0);
    return split_lines(plan, &s, along, out);
}

static sac_result softmax_fill(struct sac_kernel_plan *plan, void *params)
{
    struct sac_op_call  *c = plan->call;
    struct ops_softmax  *p = params;
    const enum sac_op_id id = c->node->op->id;
    const bool           old = c->node->opset < 13;
    int                  axis;
    SAC_TRY(sac_op_axis(c, old ? 1 : -1, c->in[0].rank, &axis));
    SAC_TRY(axis_lines(plan, axis, old, &p->lines));
    choose_team(&p->lines, false);
    p->kind = id == SAC_OP_Softmax ? OPS_SOFTMAX : id == SAC_OP_LogSoftmax ? OPS_LOG_SOFTMAX : OPS_HARDMAX;
    p->in_type = ops_in_type(plan, 0);
    p->out_type = ops_out_type(plan, 0);
    return SAC_OK;
}

static bool arg_layouts(struct sac_kernel_plan *plan, char *why, size_t size)
{
    (void)why, (void)size;
    line_layouts(plan);
    return true;
}

static sac_result arg_fill(struct sac_kernel_plan *plan, void *params)
{
    struct sac_op_call *c = plan->call;
    struct ops_arg     *p = params;
    int                 axis;
    bool                along[SAC_RANK_MAX] = {false};
    int64_t             to[SAC_RANK_MAX];
    struct ops_shape    s;
    SAC_TRY(sac_op_axis(c, 0, c->in[0].rank, &axis));
    along[axis] = true;
    ops_shape_init(&s, c->in[0].rank, c->in[0].dims);
    ops_shape_in(&s, plan, 0);
    reduced_steps(plan, along, to);
    ops_shape_add(&s, 0, to);
    SAC_TRY(split_lines(plan, &s, along, &p->lines));
    choose_team(&p->lines, false);
    p->least = c->node->op->id == SAC_OP_ArgMin;
    p->last = sac_attr_int(c->node, "select_last_index", 0) != 0;
    p->in_type = ops_in_type(plan, 0);
    p->type = ops_class_of(c->in[0].dtype);
    return SAC_OK;
}

static bool cumulate_layouts(struct sac_kernel_plan *plan, char *why, size_t size)
{
    int axis;
    if (sac_cumulative_axis(plan->call, &axis) != SAC_OK)
        return ops_refuse(why, size, "its axis is not known");
    line_layouts(plan); /* sums stay float32: they grow */
    return true;
}

static sac_result cumulate_fill(struct sac_kernel_plan *plan, void *params)
{
    struct sac_op_call  *c = plan->call;
    struct ops_cumulate *p = params;
    int                  axis;
    SAC_TRY(sac_cumulative_axis(c, &axis));
    ops_take(plan, 1);
    SAC_TRY(axis_lines(plan, axis, false, &p->lines));
    p->product = c->node->op->id == SAC_OP_CumProd;
    p->exclusive = sac_attr_int(c->node, "exclusive", 0) != 0;
    p->reverse = sac_attr_int(c->node, "reverse", 0) != 0;
    p->type_in = ops_in_type(plan, 0);
    p->type_out = ops_out_type(plan, 0);
    p->floats = sac_dtype_is_float(c->in[0].dtype);
    return SAC_OK;
}

/* ---- norms ---- */

/* Statistics stay float32 whatever the plan's precision. */
static bool norm_layouts(struct sac_kernel_plan *plan, char *why, size_t size)
{
    (void)why, (void)size;
    line_layouts(plan);
    ops_halve_output(plan, 0, true);
    return true;
}

static void norm_vector(struct sac_kernel_plan *plan, struct ops_shape *s, int input, const int64_t *steps,
                        int32_t *port, int32_t *type)
{
    *port = input > 0 && sac_op_has(plan->call, input) ? input : -1;
    *type = *port < 0 ? 0 : ops_in_type(plan, input);
    ops_shape_add(s, 0, steps);
}

/* What all norms end with. */
static sac_result finish_norm(struct sac_kernel_plan *plan, struct ops_norm *p, const struct ops_shape *s,
                              const bool *along)
{
    p->in_type = ops_in_type(plan, 0);
    p->out_type = ops_out_type(plan, 0);
    SAC_TRY(split_lines(plan, s, along, &p->lines));
    choose_team(&p->lines, p->kind == OPS_NORM_CENTRED || p->kind == OPS_NORM_MEAN_VARIANCE);
    if (p->lines.parts > 1)
        plan->scratch_bytes = (size_t)(p->lines.outer.count * p->lines.parts) * 2 * sizeof(double);
    return SAC_OK;
}

/* One number of scale and bias per channel; lines from dimension `first` on, 2: a map, 1: a sample. */
static sac_result channel_norm(struct sac_kernel_plan *plan, struct ops_norm *p, int first)
{
    static const int64_t none[OPS_SHAPE_DIMS];
    const struct sac_operand *in = &plan->call->in[0];
    const int64_t             channel[SAC_RANK_MAX] = {0, 1};
    bool                      along[SAC_RANK_MAX] = {false};
    struct ops_shape          s;
    for (int d = first; d < in->rank; d++)
        along[d] = true;
    ops_shape_init(&s, in->rank, in->dims);
    ops_shape_in(&s, plan, 0);
    ops_shape_out(&s, plan, 0);
    norm_vector(plan, &s, 1, channel, &p->scale_port, &p->scale_type);
    norm_vector(plan, &s, 2, channel, &p->bias_port, &p->bias_type);
    ops_shape_add(&s, 0, none);
    p->epsilon = sac_attr_float(plan->call->node, "epsilon", 1e-5f);
    return finish_norm(plan, p, &s, along);
}

static sac_result instance_fill(struct sac_kernel_plan *plan, void *params)
{
    return channel_norm(plan, params, 2);
}

static sac_result sample_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_activation act = sac_activation_read(plan->call->node);
    struct ops_norm            *p = params;
    p->activation = ops_activation_fn(&act, &p->a, &p->b);
    return channel_norm(plan, p, 1);
}

/* Lines over [N,G,(C/G,spatial...)]; up to opset 20 scale and bias are by group. */
static sac_result group_fill(struct sac_kernel_plan *plan, void *params)
{
    static const int64_t none[OPS_SHAPE_DIMS];
    const struct sac_op_call *c = plan->call;
    const struct sac_operand *in = &c->in[0];
    struct ops_norm          *p = params;
    const int64_t groups = sac_attr_int(c->node, "num_groups", 1), each = in->dims[1] / groups;
    const bool    by_group = c->in[1].dims[0] == groups && groups != in->dims[1];
    int64_t       own[2][SAC_RANK_MAX], dims[OPS_SHAPE_DIMS], steps[2][OPS_SHAPE_DIMS];
    const int64_t vector[OPS_SHAPE_DIMS] = {0, by_group ? 1 : each, by_group ? 0 : 1};
    bool          along[OPS_SHAPE_DIMS] = {false};
    struct ops_shape s;
    ops_steps_in(plan, 0, own[0]);
    ops_steps_out(plan, 0, own[1]);
    for (int d = 0; d <= in->rank; d++) {
        dims[d] = d == 0 ? in->dims[0] : d == 1 ? groups : d == 2 ? each : in->dims[d - 1];
        along[d] = d >= 2;
        for (int k = 0; k < 2; k++)
            steps[k][d] = d == 0 ? own[k][0] : d == 1 ? own[k][1] * each : own[k][d - 1];
    }
    ops_shape_init(&s, in->rank + 1, dims);
    ops_shape_add(&s, 0, steps[0]);
    ops_shape_add(&s, 0, steps[1]);
    norm_vector(plan, &s, 1, vector, &p->scale_port, &p->scale_type);
    norm_vector(plan, &s, 2, vector, &p->bias_port, &p->bias_type);
    ops_shape_add(&s, 0, none);
    p->epsilon = sac_attr_float(c->node, "epsilon", 1e-5f);
    return finish_norm(plan, p, &s, along);
}

/* The steps of an operand that is broadcast over the input. */
static void broadcast_steps(const struct sac_kernel_plan *plan, int input, int64_t *out)
{
    const struct sac_operand *o = &plan->call->in[input];
    const int                 missing = plan->call->in[0].rank - o->rank;
    int64_t                   own[SAC_RANK_MAX];
    memset(out, 0, SAC_RANK_MAX * sizeof *out);
    if (!sac_op_has(plan->call, input))
        return;
    ops_steps_in(plan, input, own);
    for (int d = 0; d < o->rank; d++)
        out[missing + d] = o->dims[d] == 1 ? 0 : own[d];
}

static sac_result layer_fill(struct sac_kernel_plan *plan, void *params)
{
    struct sac_op_call       *c = plan->call;
    const struct sac_operand *in = &c->in[0];
    struct ops_norm          *p = params;
    const bool                layer = c->node->op->id == SAC_OP_LayerNormalization;
    int                       axis;
    int64_t                   steps[SAC_RANK_MAX], step = 1;
    bool                      along[SAC_RANK_MAX] = {false};
    struct ops_shape          s;
    SAC_TRY(sac_op_axis(c, -1, in->rank, &axis));
    for (int d = axis; d < in->rank; d++)
        along[d] = true;
    ops_shape_init(&s, in->rank, in->dims);
    ops_shape_in(&s, plan, 0);
    ops_shape_out(&s, plan, 0);
    broadcast_steps(plan, 1, steps);
    norm_vector(plan, &s, 1, steps, &p->scale_port, &p->scale_type);
    broadcast_steps(plan, 2, steps);
    norm_vector(plan, &s, layer ? 2 : -1, steps, &p->bias_port, &p->bias_type);
    for (int d = in->rank - 1; d >= 0; d--) {
        steps[d] = d < axis ? step : 0;
        step *= d < axis ? in->dims[d] : 1;
    }
    ops_shape_add(&s, 0, steps);
    p->kind = layer ? OPS_NORM_CENTRED : OPS_NORM_ROOT;
    p->mean_type = sac_op_wants(c, 1) ? ops_out_type(plan, 1) : 0;
    p->inverse_type = sac_op_wants(c, 2) ? ops_out_type(plan, 2) : 0;
    p->epsilon = sac_attr_float(c->node, "epsilon", 1e-5f);
    return finish_norm(plan, p, &s, along);
}

/* Statistics are written in ONNX's order. */
static bool layer_layouts(struct sac_kernel_plan *plan, char *why, size_t size)
{
    norm_layouts(plan, why, size);
    for (int i = 1; i < plan->call->out_count; i++)
        plan->out_layout[i] = SAC_LAYOUT_PLAIN;
    return true;
}

static sac_result plain_norm(struct sac_kernel_plan *plan, struct ops_norm *p, const bool *along)
{
    static const int64_t none[OPS_SHAPE_DIMS];
    const struct sac_operand *in = &plan->call->in[0];
    struct ops_shape          s;
    ops_shape_init(&s, in->rank, in->dims);
    ops_shape_in(&s, plan, 0);
    ops_shape_out(&s, plan, 0);
    p->scale_port = p->bias_port = -1;
    for (int k = 0; k < 3; k++)
        ops_shape_add(&s, 0, none);
    return finish_norm(plan, p, &s, along);
}

static sac_result mean_variance_fill(struct sac_kernel_plan *plan, void *params)
{
    struct ops_norm *p = params;
    bool             along[SAC_RANK_MAX] = {false};
    SAC_TRY(sac_mean_variance_axes(plan->call, along));
    p->kind = OPS_NORM_MEAN_VARIANCE;
    return plain_norm(plan, p, along);
}

static sac_result lp_fill(struct sac_kernel_plan *plan, void *params)
{
    struct sac_op_call *c = plan->call;
    struct ops_norm    *p = params;
    bool                along[SAC_RANK_MAX] = {false};
    int                 axis;
    SAC_TRY(sac_op_axis(c, -1, c->in[0].rank, &axis));
    along[axis] = true;
    p->kind = sac_attr_int(c->node, "p", 2) == 1 ? OPS_NORM_L1 : OPS_NORM_L2;
    return plain_norm(plan, p, along);
}

static sac_result channel_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    const struct sac_node    *n = c->node;
    struct ops_channel_norm  *p = params;
    const int64_t             channel[SAC_RANK_MAX] = {0, 1};
    int64_t                   steps[SAC_RANK_MAX];
    struct ops_shape          s;
    ops_shape_init(&s, c->out[0].rank, c->out[0].dims);
    ops_shape_out(&s, plan, 0);
    ops_shape_in(&s, plan, 0);
    ops_shape_add(&s, 0, channel);
    ops_steps_in(plan, 0, steps);
    p->in_type = ops_in_type(plan, 0);
    p->out_type = ops_out_type(plan, 0);
    for (int i = 1; i < 5 && i < c->in_count; i++)
        p->vector_type[i - 1] = ops_in_type(plan, i);
    p->channels = c->in[0].dims[1];
    p->channel_step = steps[1];
    p->size = SAC_MIN(sac_attr_int(n, "size", 1), 2 * p->channels + 1);
    p->epsilon = sac_attr_float(n, "epsilon", 1e-5f);
    p->alpha = sac_attr_float(n, "alpha", 1e-4f) / (double)SAC_MAX(sac_attr_int(n, "size", 1), 1);
    p->beta = sac_attr_float(n, "beta", 0.75f);
    p->bias = sac_attr_float(n, "bias", 1);
    return ops_view_of(&s, 0, &p->view) ? SAC_OK : ops_view_fail(plan);
}

/* ---- rows ---- */

#define REDUCE(op)                                                                                        \
    const struct ops_row ops_row_##op = {reduce_layouts, reduce_fill, ops_launch_reduce,                  \
                                         sizeof(struct ops_reduce), 0};
REDUCE(ReduceSum) REDUCE(ReduceMean) REDUCE(ReduceProd) REDUCE(ReduceMax) REDUCE(ReduceMin) REDUCE(ReduceL1)
REDUCE(ReduceL2) REDUCE(ReduceLogSum) REDUCE(ReduceLogSumExp) REDUCE(ReduceSumSquare)
REDUCE(GlobalAveragePool) REDUCE(GlobalMaxPool)

#define SOFTMAX(op)                                                                                       \
    const struct ops_row ops_row_##op = {softmax_layouts, softmax_fill, ops_launch_softmax,           \
                                         sizeof(struct ops_softmax), 0};
SOFTMAX(Softmax) SOFTMAX(LogSoftmax) SOFTMAX(Hardmax)

#define NORM(op, layouts, fill)                                                                           \
    const struct ops_row ops_row_##op = {layouts, fill, ops_launch_norm, sizeof(struct ops_norm), 0};
NORM(InstanceNormalization, norm_layouts, instance_fill)
NORM(GroupNormalization, norm_layouts, group_fill)
NORM(LayerNormalization, layer_layouts, layer_fill)
NORM(RMSNormalization, layer_layouts, layer_fill)
NORM(SampleNorm, norm_layouts, sample_fill)
NORM(MeanVarianceNormalization, norm_layouts, mean_variance_fill)
NORM(LpNormalization, norm_layouts, lp_fill)

const struct ops_row ops_row_ArgMax = {arg_layouts, arg_fill, ops_launch_arg, sizeof(struct ops_arg), 0};
const struct ops_row ops_row_ArgMin = {arg_layouts, arg_fill, ops_launch_arg, sizeof(struct ops_arg), 0};
const struct ops_row ops_row_CumSum = {cumulate_layouts, cumulate_fill, ops_launch_cumulate,
                                       sizeof(struct ops_cumulate), 0};
const struct ops_row ops_row_CumProd = {cumulate_layouts, cumulate_fill, ops_launch_cumulate,
                                        sizeof(struct ops_cumulate), 0};
const struct ops_row ops_row_BatchNormalization = {norm_layouts, channel_fill, ops_launch_batch_norm,
                                                   sizeof(struct ops_channel_norm), 0};
const struct ops_row ops_row_LRN = {norm_layouts, channel_fill, ops_launch_lrn, sizeof(struct ops_channel_norm), 0};
