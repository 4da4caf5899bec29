/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of norms. */
#include "engine/cuda/kernels/lines.h"
#include "engine/cuda/kernels/map.h"
#include "engine/cuda/kernels/kernels.h"
#include "engine/ops/fused.h"

enum { SCALE = 1, BIAS, RESIDUAL }; /* inputs */

/* Statistics stay float32 whatever the plan's precision. */
static bool norm_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    ops_line_layouts(q, offer);
    ops_halve_output(q, offer, 0, true);
    return true;
}

/* Slices of maps are read where they lie, and written there. */
static bool channel_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    norm_layouts(q, offer);
    offer->strided = sac_layout_is_last(offer->out_layout[0]);
    return true;
}

/* A residual is read in the order in which the map lies. */
static bool group_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    if (sac_op_has(q->call, RESIDUAL))
        offer->in_layout[RESIDUAL] =
            ops_with_last(offer->in_layout[RESIDUAL], sac_layout_is_last(offer->in_layout[0]));
    return channel_layouts(q, offer);
}

/* In training the statistics are the input's: only the host knows how. */
static bool batch_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    if (sac_attr_int(q->call->node, "training_mode", 0))
        return ops_refuse(offer, "in training its statistics are the input's");
    return channel_layouts(q, offer);
}

static void norm_vector(struct sac_kernel_plan *plan, struct ops_shape *s, int input,
                        const int64_t *steps, int32_t *port, int32_t *type)
{
    *port = input > 0 && sac_op_has(plan->call, input) ? input : -1;
    *type = *port < 0 ? 0 : ops_in_type(plan, input);
    ops_shape_add(s, 0, steps);
}

/* ---- who works on lines that are not held ---- */

enum { THREADS = 256, BLOCKS_WANTED = 528, LOADS_MIN = 4, PARTS_MAX = 512 };

/* So many parts of a line, for so many blocks, as fill the multiprocessors and leave each thread a
 * few loads. */
static int parts_of(int64_t blocks, int64_t loads)
{
    return (int)SAC_CLAMP(SAC_MIN(BLOCKS_WANTED / SAC_MAX(blocks, 1), loads / LOADS_MIN), 1,
                          PARTS_MAX);
}

static bool steps_by(const struct ops_view *v, int operand, int n)
{
    bool all = v->start[operand] % n == 0;
    for (int d = 0; d < v->rank; d++)
        all &= v->step[operand][d] % n == 0;
    return all;
}

/* A line's units of n numbers. false: it does not lie so, or not in two dimensions, or 31 bits do
 * not count the way through it. */
static bool walk_line(const struct ops_lines *l, int n, struct ops_walk *w)
{
    struct ops_view units;
    unsigned        stills;
    if (!ops_view_units(&l->inner, 5, n, true, &units, &stills) || (stills & 3) || units.rank > 2 ||
        units.wide)
        return false;
    *w = (struct ops_walk){.count = units.count,
                           .inner = ops_divisor_of(units.size[units.rank - 1]),
                           .stills = stills};
    for (int k = 0; k < 5; k++) {
        const int each = stills >> k & 1 ? 1 : n;
        int64_t   reach = n;
        if (!steps_by(&l->outer, k, each))
            return false;
        for (int d = 2 - units.rank, from = 0; d < 2; d++, from++) {
            const int64_t step = units.step[k][from] * each;
            w->step[k][d] = (int32_t)step;
            reach += step * (units.size[from] - 1);
        }
        if (reach > INT32_MAX)
            return false;
    }
    return true;
}

/* As the samples and groups of maps, in ONNX's order the maps themselves: over more blocks as long
 * as a GPU has some idle and each thread a few loads. Blocks of up to THREADS leave room for
 * another beside them, whose loads are under way while this one computes. */
static void spread_line(struct ops_norm *p)
{
    enum { BLOCKS = 264, THREADS_MIN = 128, THREADS_TWICE = 512, UNITS_MIN = 256, SHORT = 1024 };
    const int         size = p->in_type == SAC_F16 ? 2 : 4;
    const int64_t     lines = p->lines.outer.count;
    struct ops_spread s = {.vector = 16 / size, .threads = THREADS_MIN};
    if (p->lines.inner.count < SHORT || p->lines.outer.wide || p->scale_type == SAC_F16 ||
        p->bias_type == SAC_F16)
        return;
    while (!walk_line(&p->lines, s.vector, &s.walk)) {
        if (s.vector == 1)
            return;
        s.vector = s.vector == 8 ? 2 : 1;
    }
    const int turns = OPS_SPREAD_TURNS(s.vector * size);
    int64_t   units = s.walk.count;
    while (s.shift < OPS_SPREAD_SHIFT_MAX &&
           (units > THREADS_TWICE * turns ||
            (lines << (s.shift + 1) <= BLOCKS && units / 2 >= UNITS_MIN))) {
        s.shift++;
        units = (s.walk.count + (1 << s.shift) - 1) >> s.shift;
    }
    while (s.threads < OPS_SPREAD_THREADS_MAX &&
           units > s.threads * (s.threads < THREADS_TWICE ? turns / 2 : turns))
        s.threads *= 2;
    if (units <= s.threads * turns)
        p->spread = s;
}

/* Long lines by eights, in parts where there are few. */
static bool along_eights(struct ops_norm *p)
{
    struct ops_lines *l = &p->lines;
    if (l->inner.count < 4 * THREADS || !walk_line(l, 8, &p->walk))
        return false;
    p->eights = OPS_EIGHTS_ALONG;
    l->team = OPS_TEAM_BLOCK;
    l->parts = parts_of(l->outer.count, p->walk.count / THREADS);
    return true;
}

/* As few units beside each other as fill the multiprocessors, but enough for whole pieces of 64
 * bytes of memory. */
static void stand_side_by_side(struct ops_lines *l, int64_t units, int64_t width_min)
{
    int64_t width = 32;
    while (width > 1 && (width / 2 >= units ||
                         (width > width_min && (units + width - 1) / width < BLOCKS_WANTED)))
        width /= 2;
    l->team = OPS_TEAM_COLUMN;
    l->width = (int)width;
    l->parts = parts_of((units + width - 1) / width, l->inner.count * width / THREADS);
}

/* Maps in channels last: lines side by side, by eights where they lie so. */
static void across_lines(struct ops_norm *p)
{
    struct ops_lines *l = &p->lines;
    unsigned          stills = 0;
    if (l->outer.step[0][l->outer.rank - 1] != 1 || l->inner.step[0][l->inner.rank - 1] == 1 ||
        l->inner.count < 32)
        return;
    if (ops_is_f16_or_f32(p->in_type) && ops_is_f16_or_f32(p->out_type) && l->inner.rank == 1 &&
        !p->mean_type && !p->inverse_type && steps_by(&l->inner, 0, 8) &&
        steps_by(&l->inner, 1, 8) && l->inner.step[2][0] == 0 && l->inner.step[3][0] == 0 &&
        steps_by(&l->inner, 4, 8) && ops_view_units(&l->outer, 5, 8, true, &p->units, &stills) &&
        !(stills & 3)) {
        p->eights = OPS_EIGHTS_ACROSS;
        p->stills = stills;
        stand_side_by_side(l, p->units.count, 4);
    } else
        stand_side_by_side(l, l->outer.count, 32);
}

static void choose_threads(struct ops_norm *p)
{
    const int  types[OPS_OPERANDS] = {p->in_type, p->out_type, p->scale_type, p->bias_type,
                                      p->residual_type};
    const bool centred = p->kind == OPS_NORM_CENTRED || p->kind == OPS_NORM_MEAN_VARIANCE;
    bool       floats = true;
    for (int k = 0; k < OPS_OPERANDS; k++)
        floats &= !types[k] || ops_is_f16_or_f32(types[k]);
    const bool bytes = p->bytes.type != 0;
    ops_choose_team(&p->lines, centred);
    if (p->activation == OPS_FN_IDENTITY)
        ops_choose_held(&p->lines, OPS_OPERANDS, 1u << 2 | 1u << 3, types);
    if (p->lines.held.lanes || !centred || bytes || p->lines.outer.count == 0)
        return;
    if (floats)
        spread_line(p);
    if (!(floats && along_eights(p)))
        across_lines(p);
}

/* The common end of all norms. */
static sac_result finish_norm(struct sac_kernel_plan *plan, struct ops_norm *p,
                              const struct ops_shape *s, const bool *along)
{
    p->in_type = ops_in_type(plan, 0);
    p->bytes = ops_bytes_of(plan);
    p->out_type = !p->bytes.type ? ops_out_type(plan, 0) : p->bytes.half ? SAC_F16 : SAC_F32;
    SAC_TRY(ops_split_lines(plan, s, along, &p->lines));
    choose_threads(p);
    if (p->lines.parts > 1)
        plan->scratch_bytes = (size_t)(p->lines.outer.count * p->lines.parts) * 2 * sizeof(double);
    return SAC_OK;
}

/* R, input 3 of a node that may have one, of the output's shape, and where it is added. */
static void norm_residual(struct sac_kernel_plan *plan, struct ops_norm *p, struct ops_shape *s,
                          const int64_t *steps)
{
    norm_vector(plan, s, RESIDUAL, steps, &p->residual_port, &p->residual_type);
    p->residual_after =
        sac_attr_int(plan->call->node, "residual", SAC_RESIDUAL_NONE) == SAC_RESIDUAL_AFTER;
}

/* One number of scale and bias per channel; lines from dimension `first` on, 2: a map, 1: a
 * sample. */
static sac_result channel_norm(struct sac_kernel_plan *plan, struct ops_norm *p, int first)
{
    static const int64_t      none[OPS_SHAPE_DIMS];
    const struct sac_operand *in = &plan->call->in[0];
    const int64_t             channel[SAC_RANK_MAX] = {0, 1};
    bool                      along[SAC_RANK_MAX] = {false};
    struct ops_shape          s;
    for (int d = first; d < in->rank; d++)
        along[d] = true;
    ops_shape_over_in(&s, plan);
    norm_vector(plan, &s, 1, channel, &p->scale_port, &p->scale_type);
    norm_vector(plan, &s, 2, channel, &p->bias_port, &p->bias_type);
    for (int k = 0; k < 2; k++)
        ops_shape_add(&s, 0, none);
    p->residual_port = -1;
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

/* Steps along the channels become those along groups, and in each. */
static void in_groups(const int64_t *own, int rank, int64_t each, int64_t *steps)
{
    for (int d = 0; d <= rank; d++)
        steps[d] = d == 0 ? own[0] : d == 1 ? own[1] * each : own[d - 1];
}

/* Lines over [N,G,(C/G,spatial...)]; up to opset 20 scale and bias are by group. */
static sac_result group_fill(struct sac_kernel_plan *plan, void *params)
{
    static const int64_t      none[OPS_SHAPE_DIMS];
    const struct sac_op_call *c = plan->call;
    const struct sac_operand *in = &c->in[0];
    struct ops_norm          *p = params;
    const int64_t    groups = sac_attr_int(c->node, "num_groups", 1), each = in->dims[1] / groups;
    const bool       by_group = c->in[1].dims[0] == groups && groups != in->dims[1];
    int64_t          own[3][SAC_RANK_MAX] = {{0}}, dims[OPS_SHAPE_DIMS], steps[3][OPS_SHAPE_DIMS];
    const int64_t    vector[OPS_SHAPE_DIMS] = {0, by_group ? 1 : each, by_group ? 0 : 1};
    bool             along[OPS_SHAPE_DIMS] = {false};
    struct ops_shape s;
    ops_steps_in(plan, 0, own[0]);
    ops_steps_out(plan, 0, own[1]);
    if (sac_op_has(c, RESIDUAL))
        ops_steps_in(plan, RESIDUAL, own[2]);
    for (int k = 0; k < 3; k++)
        in_groups(own[k], in->rank, each, steps[k]);
    for (int d = 0; d <= in->rank; d++) {
        dims[d] = d == 0 ? in->dims[0] : d == 1 ? groups : d == 2 ? each : in->dims[d - 1];
        along[d] = d >= 2;
    }
    ops_shape_init(&s, in->rank + 1, dims);
    ops_shape_add(&s, 0, steps[0]);
    ops_shape_add(&s, 0, steps[1]);
    norm_vector(plan, &s, 1, vector, &p->scale_port, &p->scale_type);
    norm_vector(plan, &s, 2, vector, &p->bias_port, &p->bias_type);
    norm_residual(plan, p, &s, steps[2]);
    ops_shape_add(&s, 0, none);
    p->epsilon = sac_attr_float(c->node, "epsilon", 1e-5f);
    return finish_norm(plan, p, &s, along);
}

static sac_result fused_group_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_activation act = sac_activation_read(plan->call->node);
    struct ops_norm            *p = params;
    p->activation = ops_activation_fn(&act, &p->a, &p->b);
    return group_fill(plan, params);
}

/* The strides of an operand that is broadcast over the output. */
static void broadcast_steps(const struct sac_kernel_plan *plan, int input, int64_t *out)
{
    const struct sac_operand *o = &plan->call->in[input];
    const int                 missing = plan->call->out[0].rank - o->rank;
    int64_t                   own[SAC_RANK_MAX];
    memset(out, 0, SAC_RANK_MAX * sizeof *out);
    if (!sac_op_has(plan->call, input))
        return;
    ops_steps_in(plan, input, own);
    for (int d = 0; d < o->rank; d++)
        out[missing + d] = o->dims[d] == 1 ? 0 : own[d];
}

static enum ops_norm_kind kind_of(const struct sac_line_norm *n)
{
    switch (n->kind) {
    case SAC_NORM_ROOT: return OPS_NORM_ROOT;
    case SAC_NORM_L1: return OPS_NORM_L1;
    case SAC_NORM_L2: return OPS_NORM_L2;
    case SAC_NORM_SUM: return OPS_NORM_SUM;
    case SAC_NORM_SHARES: return OPS_NORM_SHARES;
    default: return OPS_NORM_CENTRED;
    }
}

/* The operands of a norm of lines, in their order. */
static void line_operands(struct sac_kernel_plan *plan, const struct sac_line_norm *n,
                          struct ops_norm *p, struct ops_shape *s)
{
    int64_t steps[SAC_RANK_MAX], step = 1;
    ops_shape_init(s, n->rank, n->dims);
    if (n->viewed)
        ops_shape_add(s, n->x.offset, n->x.step);
    else
        ops_shape_in(s, plan, 0);
    ops_shape_out(s, plan, 0);
    broadcast_steps(plan, SCALE, steps);
    norm_vector(plan, s, SCALE, steps, &p->scale_port, &p->scale_type);
    broadcast_steps(plan, BIAS, steps);
    norm_vector(plan, s, BIAS, steps, &p->bias_port, &p->bias_type);
    broadcast_steps(plan, RESIDUAL, steps);
    norm_residual(plan, p, s, steps);
    for (int d = n->rank - 1; d >= 0; d--) {
        steps[d] = d < n->axis ? step : 0;
        step *= d < n->axis ? n->dims[d] : 1;
    }
    ops_shape_add(s, 0, steps);
}

static sac_result line_fill(struct sac_kernel_plan *plan, void *params)
{
    struct ops_norm     *p = params;
    struct sac_line_norm n;
    bool                 along[SAC_RANK_MAX] = {false};
    struct ops_shape     s;
    SAC_TRY(sac_line_norm_read(plan->call, &n));
    for (int d = n.axis; d < n.rank; d++)
        along[d] = true;
    line_operands(plan, &n, p, &s);
    p->kind = kind_of(&n);
    p->mean_type = ops_out_type(plan, 1);
    p->inverse_type = ops_out_type(plan, 2);
    p->epsilon = n.epsilon;
    p->whole = n.whole;
    return finish_norm(plan, p, &s, along);
}

/* Statistics are written in ONNX's order, in which a view sees the input. */
static bool line_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    struct sac_line_norm n;
    if (sac_line_norm_read(q->call, &n) != SAC_OK)
        return ops_refuse(offer, "its lines are not known");
    /* In channels last the numbers of a line lie apart, which costs more than to move them. */
    if (n.viewed || n.axis > 1)
        offer->in_layout[0] = ops_with_last(offer->in_layout[0], false);
    norm_layouts(q, offer);
    for (int i = 1; i < q->call->out_count; i++)
        offer->out_layout[i] = SAC_LAYOUT_PLAIN;
    return true;
}

static sac_result plain_norm(struct sac_kernel_plan *plan, struct ops_norm *p, const bool *along)
{
    static const int64_t none[OPS_SHAPE_DIMS];
    struct ops_shape     s;
    ops_shape_over_in(&s, plan);
    p->scale_port = p->bias_port = p->residual_port = -1;
    for (int k = 0; k < 4; k++)
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
    const struct sac_op_call *c = plan->call;
    struct ops_norm          *p = params;
    bool                      along[SAC_RANK_MAX] = {false};
    int                       axis;
    SAC_TRY(sac_op_axis(c, -1, c->in[0].rank, &axis));
    along[axis] = true;
    p->kind = sac_attr_int(c->node, "p", 2) == 1 ? OPS_NORM_L1 : OPS_NORM_L2;
    p->epsilon = sac_norm_floor(c->node);
    return plain_norm(plan, p, along);
}

/* Threads that keep a card's memory busy, where a few loads are left for each; more only where many
 * are left, because each computes its factors first. */
enum { BATCH_FEW = 64 << 10, BATCH_MANY = 512 << 10, BATCH_LOADS = 4, BATCH_WARP = 32 };

static int64_t slots_of(int64_t channels, int64_t places)
{
    const int64_t wanted = SAC_CLAMP(places / BATCH_LOADS, BATCH_FEW / SAC_MAX(channels, 1),
                                     BATCH_MANY / SAC_MAX(channels, 1));
    return SAC_MIN(SAC_MAX(wanted / BATCH_WARP * BATCH_WARP, BATCH_WARP), places);
}

static void channel_walk(const struct ops_view *v, struct ops_channel_walk *w)
{
    const int inner = v->rank - 1;
    int       d = inner;
    while (d >= 0 && v->step[2][d] == 0)
        d--;
    w->inside = d == inner;
    w->channels = d < 0 ? 1 : v->size[d];
    for (int k = 0; k < 2; k++)
        w->step[k] = d < 0 ? 0 : v->step[k][d];
    w->rest = *v;
    if (d >= 0)
        ops_view_leave_out(&w->rest, d);
    w->slots = slots_of(w->channels, w->rest.count);
}

static void channel_walks(struct ops_channel_norm *p)
{
    struct ops_view units;
    unsigned        stills;
    bool            floats = ops_is_f16_or_f32(p->in_type) && ops_is_f16_or_f32(p->out_type);
    for (int i = 0; i < 4; i++)
        floats &= ops_is_f16_or_f32(p->vector_type[i]);
    channel_walk(&p->view, &p->singles);
    if (floats && ops_view_units(&p->view, 3, 8, true, &units, &stills) && !(stills & 3))
        channel_walk(&units, &p->eights);
}

static sac_result channel_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    const struct sac_node    *n = c->node;
    struct ops_channel_norm  *p = params;
    const int64_t             channel[SAC_RANK_MAX] = {0, 1};
    int64_t                   steps[SAC_RANK_MAX];
    struct ops_shape          s;
    ops_shape_over_out(&s, plan);
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
    if (!ops_view_of(&s, 0, &p->view))
        return ops_view_fail(plan);
    channel_walks(p);
    return SAC_OK;
}

static sac_result batch_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_activation act = sac_activation_read(plan->call->node);
    struct ops_channel_norm    *p = params;
    p->activation = ops_activation_fn(&act, &p->a, &p->b);
    return channel_fill(plan, params);
}

/* ---- rows ---- */

OPS_ROW(InstanceNormalization, channel_layouts, instance_fill, ops_launch_norm, ops_norm)
OPS_ROW(GroupNormalization, channel_layouts, group_fill, ops_launch_norm, ops_norm)
OPS_ROW(FusedGroupNorm, group_layouts, fused_group_fill, ops_launch_norm, ops_norm)
OPS_ROW(LayerNormalization, line_layouts, line_fill, ops_launch_norm, ops_norm)
OPS_ROW(RMSNormalization, line_layouts, line_fill, ops_launch_norm, ops_norm)
OPS_ROW(FusedNorm, line_layouts, line_fill, ops_launch_norm, ops_norm)
OPS_ROW(SampleNorm, channel_layouts, sample_fill, ops_launch_norm, ops_norm)
OPS_ROW(MeanVarianceNormalization, norm_layouts, mean_variance_fill, ops_launch_norm, ops_norm)
OPS_ROW(LpNormalization, norm_layouts, lp_fill, ops_launch_norm, ops_norm)
OPS_ROW(BatchNormalization, batch_layouts, batch_fill, ops_launch_batch_norm, ops_channel_norm)
OPS_ROW(FusedBatchNorm, channel_layouts, batch_fill, ops_launch_batch_norm, ops_channel_norm)
OPS_ROW(LRN, channel_layouts, channel_fill, ops_launch_lrn, ops_channel_norm)
