/* SPDX-License-Identifier: Apache-2.0 */
/* Which dimensions form a line and which threads work on it; the rows of reductions and softmax. */
#include "engine/cuda/kernels/lines.h"

#include <math.h>

#include "engine/cuda/kernels/kernels.h"

/* ---- lines ---- */

/* The dimensions in `along` make up a line, the others count lines. */
sac_result ops_split_lines(struct sac_kernel_plan *plan, const struct ops_shape *s,
                           const bool *along, struct ops_lines *out)
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

/* Chooses the team so that neighbouring threads read neighbouring memory: along a contiguous line,
 * or across neighbouring lines. The thread counts suit a GPU of 132 multiprocessors. */
void ops_choose_team(struct ops_lines *l, bool parts_allowed)
{
    enum {
        THREADS_WANTED = 64 << 10,
        BLOCKS_WANTED = 264,
        PART_MIN = 32,
        BLOCK_PART_MIN = 4096,
        PARTS_MAX = 256
    };
    const int64_t rows = l->outer.count, n = l->inner.count;
    const bool    in_rows = l->inner.step[0][l->inner.rank - 1] == 1;
    const bool    side_by_side = l->outer.step[0][l->outer.rank - 1] == 1 && !in_rows && rows >= 8;
    l->parts = 1;
    const bool many_short = n <= 4 || (n <= 32 && rows >= 16 << 10); /* a thread's line fits a cache
                                                                        line or two */
    if (many_short || (side_by_side && (parts_allowed || rows >= THREADS_WANTED / 16 || n <= 64))) {
        l->team = OPS_TEAM_SOLO;
        if (parts_allowed && rows > 0 && n >= 2 * PART_MIN)
            l->parts = (int)SAC_CLAMP(SAC_MIN(THREADS_WANTED / rows, n / PART_MIN), 1, PARTS_MAX);
        return;
    }
    l->team = n <= 256 || (n <= 2048 && rows >= 2 * BLOCKS_WANTED) ? OPS_TEAM_WARP : OPS_TEAM_BLOCK;
    if (parts_allowed && l->team == OPS_TEAM_BLOCK && rows > 0)
        l->parts = (int)SAC_CLAMP(SAC_MIN(BLOCKS_WANTED / rows, n / BLOCK_PART_MIN), 1, PARTS_MAX);
}

/* Whether each operand's numbers of a line are neighbours, or one number for the whole line where
 * `one` has its bit. */
static bool lies_densely(const struct ops_lines *l, int operands, unsigned one, const int *types)
{
    for (int k = 0; k < operands; k++) {
        const int64_t step = l->inner.step[k][0];
        if (types[k] &&
            (!ops_is_f16_or_f32(types[k]) || !(step == 1 || (step == 0 && one >> k & 1))))
            return false;
    }
    return true;
}

/* How many numbers, a power of two, lie together in all lines of all operands. */
static int pack_of(const struct ops_lines *l, int operands, const int *types, int most)
{
    uint64_t places = (uint64_t)most | (uint64_t)l->inner.count; /* the lowest bit is all's */
    for (int k = 0; k < operands; k++) {
        if (!types[k] || l->inner.step[k][0] == 0)
            continue;
        places |= (uint64_t)(l->outer.start[k] + l->inner.start[k]);
        for (int d = 0; d < l->outer.rank; d++)
            places |= (uint64_t)l->outer.step[k][d];
    }
    return (int)(places & -places);
}

/* Of lines by eights or fours: the threads of a warp that have as little room too much as can be,
 * and of these as few as keep a GPU busy, since each finds its place and folds sums. */
static int lanes_of_eights(int64_t n, int64_t rows, int eights_max)
{
    enum { BUSY = 128 << 10 };
    int     best = 32;
    int64_t room = INT64_MAX;
    for (int lanes = 32; lanes >= 4; lanes /= 2) {
        const int64_t eights = (n + lanes * 8 - 1) / (lanes * 8);
        if (eights > eights_max ||
            (lanes * eights >= room && (lanes * eights > room || rows * lanes < BUSY)))
            continue;
        best = lanes;
        room = lanes * eights;
    }
    return best;
}

/* A thread holds eight numbers of a line, or 32 where a warp or a block would not hold it else, or
 * where it suits lines by eights. Of other lines it holds few, so that threads beside each other
 * read long pieces. */
void ops_choose_held(struct ops_lines *l, int operands, unsigned one, const int *types)
{
    enum { THREAD_MAX = 4, EIGHT = 8, MORE = 32, WARP = 32, BLOCK = 256 };
    const int64_t n = l->inner.count;
    if (l->inner.rank != 1 || n <= THREAD_MAX || n > OPS_HELD_MAX ||
        !lies_densely(l, operands, one, types))
        return;
    l->held.pack = pack_of(l, operands, types, EIGHT);
    l->held.pack = l->held.pack == 2 ? 1 : l->held.pack; /* it would gain little */
    const int eights_max = l->held.pack < EIGHT && n <= WARP * 2 * EIGHT ? 2 : MORE / EIGHT;
    l->held.lanes = n > WARP * MORE     ? BLOCK
                    : l->held.pack >= 4 ? lanes_of_eights(n, l->outer.count, eights_max)
                    : n <= 8 * EIGHT    ? 8
                    : n <= 16 * EIGHT   ? 16
                                        : WARP;
    l->held.eights = (int)((n + l->held.lanes * EIGHT - 1) / (l->held.lanes * EIGHT));
    l->parts = 1;
}

/* Channels last is kept where the output has the input's dimensions. */
bool ops_line_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    const struct sac_op_call *c = q->call;
    for (int i = 0; i < c->out_count; i++)
        if (c->out[i].present) {
            const bool last = sac_layout_is_last(offer->in_layout[0]) &&
                              ops_can_be_last(&c->in[0]) && c->out[i].rank == c->in[0].rank;
            offer->out_layout[i] = ops_with_last(SAC_LAYOUT_PLAIN, last);
        }
    return true;
}

static bool softmax_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    if (q->call->node->opset < 13) /* a line over several dimensions: Hardmax counts in ONNX's
                                         order */
        offer->in_layout[0] = ops_with_last(offer->in_layout[0], false);
    ops_line_layouts(q, offer);
    ops_halve_output(q, offer, 0, true);
    return true;
}

/* ---- reductions ---- */

struct reduction {
    int    kind, finish;
    double nothing;
};

static sac_result read_reduced(const struct sac_op_call *c, bool *along)
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
static bool reduce_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    const struct sac_op_call *c = q->call;
    const struct reduction   *r = ops_own(c);
    bool                      along[SAC_RANK_MAX] = {false}, maps = c->in[0].rank >= 3;
    if (read_reduced(c, along) != SAC_OK)
        return ops_refuse(offer, "its axes are not known");
    for (int d = 0; d < c->in[0].rank; d++)
        maps &= along[d] == (d >= 2);
    ops_line_layouts(q, offer);
    ops_halve_output(q, offer, 0,
                     r->kind == OPS_REDUCE_MAX || r->kind == OPS_REDUCE_MIN
                         ? sac_layout_is_half(offer->in_layout[0])
                         : maps && r->finish == OPS_FINISH_MEAN);
    offer->strided = sac_layout_is_last(offer->in_layout[0]) && maps;
    return true;
}

/* Lines along what is reduced, with the output's steps along the input's dimensions. */
static sac_result reduced_lines(struct sac_kernel_plan *plan, const bool *along,
                                struct ops_lines *out)
{
    const struct sac_op_call *c = plan->call;
    const bool                keep = c->out[0].rank == c->in[0].rank;
    int64_t                   own[SAC_RANK_MAX], to[SAC_RANK_MAX];
    struct ops_shape          s;
    ops_steps_out(plan, 0, own);
    for (int d = 0, k = 0; d < c->in[0].rank; d++) {
        to[d] = along[d] ? 0 : own[k];
        k += keep || !along[d];
    }
    ops_shape_init(&s, c->in[0].rank, c->in[0].dims);
    ops_shape_in(&s, plan, 0);
    ops_shape_add(&s, 0, to);
    return ops_split_lines(plan, &s, along, out);
}

/* Who works on lines side by side by eights: as few units beside each other as fill the
 * multiprocessors and still read memory in pieces of 64 bytes; then parts of the lines, where each
 * thread has enough to read. */
static void choose_width(struct ops_reduce *p)
{
    enum { THREADS = 256, WARP = 32, WIDTH_MIN = 4, BLOCKS_WANTED = 264, LOADS_MIN = 8 };
    struct ops_lines *l = &p->lines;
    const int64_t     n = l->inner.count, units = p->units.count;
    int64_t           width = WARP;
    while (width > WIDTH_MIN &&
           (width / 2 >= units ||
            ((units + width - 1) / width < BLOCKS_WANTED && n >= 2 * THREADS / width)))
        width /= 2;
    const int64_t groups = (units + width - 1) / width, loads = n * width / THREADS;
    l->width = (int)width;
    l->parts = 1;
    if (2 * groups <= BLOCKS_WANTED && loads >= 2 * LOADS_MIN)
        l->parts = (int)SAC_MIN(BLOCKS_WANTED / groups, loads / LOADS_MIN);
}

/* Lines side by side that are worth the threads of a block, as spatial means of channels last are:
 * a warp reads along the lines, and where they lie by eights, eight a thread. */
static void choose_columns(struct ops_reduce *p)
{
    enum { LINE_MIN = 64, EIGHTS_MIN = 16, PART_MIN = 128, BLOCKS_WANTED = 2048, WARP = 32 };
    struct ops_lines *l = &p->lines;
    const int64_t     n = l->inner.count, lanes = 8;
    const bool        sums =
        p->kind == OPS_REDUCE_SUM || p->kind == OPS_REDUCE_ABS || p->kind == OPS_REDUCE_SQUARE;
    unsigned stills;
    if (l->outer.step[0][l->outer.rank - 1] != 1 || l->inner.step[0][l->inner.rank - 1] == 1 ||
        n < EIGHTS_MIN)
        return;
    p->vector = (sums || p->kind == OPS_REDUCE_MAX) && ops_is_f16_or_f32(p->in_type) &&
                l->inner.rank == 1 && l->inner.step[0][0] % lanes == 0 && l->outer.count > 0 &&
                ops_view_units(&l->outer, 1, (int)lanes, false, &p->units, &stills);
    if (!p->vector && (n < LINE_MIN || l->outer.count < WARP))
        return;
    l->team = OPS_TEAM_COLUMN;
    if (p->vector) {
        choose_width(p);
        return;
    }
    const int64_t groups = (l->outer.count + WARP - 1) / WARP;
    l->width = WARP;
    l->parts = (int)SAC_CLAMP(SAC_MIN(BLOCKS_WANTED / groups, n / PART_MIN), 1, 256);
}

/* Lines side by side that are short, or so many that a thread for as many as 16 bytes hold fills a
 * GPU, or that would have a thread each. */
static void choose_across(struct ops_reduce *p)
{
    enum { LINE_SHORT = 16, UNITS_MANY = 64 << 10 };
    struct ops_lines *l = &p->lines;
    const int         lanes = p->in_type == SAC_F16 ? 8 : 4;
    struct ops_view   units;
    unsigned          stills;
    if (p->type != OPS_FLOAT || !ops_is_f16_or_f32(p->in_type) || !ops_is_f16_or_f32(p->out_type) ||
        l->outer.step[0][l->outer.rank - 1] != 1 || l->inner.step[0][0] == 1 ||
        l->inner.rank != 1 || l->inner.count == 0)
        return;
    const bool packs = ops_view_units(&l->outer, 2, lanes, false, &units, &stills);
    if (l->inner.count >= LINE_SHORT && !(packs && units.count >= UNITS_MANY) &&
        !(l->team == OPS_TEAM_SOLO && l->parts == 1))
        return;
    p->across = packs ? lanes : 1;
    if (packs)
        p->units = units;
    l->parts = 1;
}

/* Dense lines: so many threads of a warp that each has a few packs, more where there are few lines,
 * or a block, whose lines may have parts. */
static void choose_along(struct ops_reduce *p)
{
    enum { LINE_MIN = 5, TURNS = 4, WARP = 32, WARP_PACKS = 1024, BUSY = 64 << 10 };
    struct ops_lines *l = &p->lines;
    const int64_t     n = l->inner.count, rows = l->outer.count;
    if (p->type != OPS_FLOAT || !ops_is_f16_or_f32(p->in_type) || l->inner.rank != 1 ||
        l->inner.step[0][0] != 1 || n < LINE_MIN)
        return;
    p->along = pack_of(l, 1, &p->in_type, p->in_type == SAC_F16 ? 8 : 4);
    const int64_t packs = n / p->along;
    int64_t       width = 1;
    while (width < WARP && width < packs && (width * TURNS < packs || rows * width < BUSY))
        width *= 2;
    l->width = (int)width;
    l->team = packs > WARP_PACKS || (packs >= WARP_PACKS / 4 && rows * WARP < BUSY) ? OPS_TEAM_BLOCK
                                                                                    : OPS_TEAM_WARP;
    l->parts = l->team == OPS_TEAM_BLOCK ? l->parts : 1;
}

static sac_result reduce_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    struct ops_reduce        *p = params;
    const struct reduction   *r = ops_own(c);
    bool                      along[SAC_RANK_MAX] = {false};
    SAC_TRY(read_reduced(c, along));
    ops_take(plan, 1);
    SAC_TRY(reduced_lines(plan, along, &p->lines));
    p->kind = r->kind;
    p->finish = r->finish;
    p->nothing = r->finish == OPS_FINISH_MEAN ? (double)NAN : r->nothing;
    p->in_type = ops_in_type(plan, 0);
    p->out_type = ops_out_type(plan, 0);
    p->type = ops_class_of(c->in[0].dtype);
    const bool exact = r->finish == OPS_FINISH_NONE && r->kind != OPS_REDUCE_LOG_SUM_EXP;
    if (!exact && p->type != OPS_FLOAT) /* the reference computes these in double */
        p->type = OPS_DOUBLE;
    const bool in_parts = p->type == OPS_FLOAT && p->kind != OPS_REDUCE_LOG_SUM_EXP;
    ops_choose_team(&p->lines, in_parts);
    if (in_parts)
        choose_columns(p);
    choose_across(p);
    choose_along(p);
    if (p->lines.parts > 1)
        plan->scratch_bytes = (size_t)(p->lines.outer.count * p->lines.parts) * sizeof(double);
    return SAC_OK;
}

/* ---- along one axis ---- */

/* in and out over the input's dimensions, lines along axis, or from it to the last dimension. */
static sac_result axis_lines(struct sac_kernel_plan *plan, int axis, bool to_end,
                             struct ops_lines *out)
{
    const struct sac_operand *in = &plan->call->in[0];
    bool                      along[SAC_RANK_MAX] = {false};
    struct ops_shape          s;
    for (int d = axis; d < (to_end ? in->rank : axis + 1); d++)
        along[d] = true;
    ops_shape_over_in(&s, plan);
    return ops_split_lines(plan, &s, along, out);
}

/* Lines side by side by eights, so many that a thread for each eight fills the multiprocessors, or
 * so short that nothing else would. */
static bool softmax_across(struct ops_softmax *p)
{
    enum { LANES = 8, LINE_SHORT = 64, UNITS_MANY = 16 << 10 };
    struct ops_lines *l = &p->lines;
    unsigned          stills;
    return p->kind != OPS_HARDMAX && l->held.lanes == 0 && l->inner.rank == 1 &&
           ops_is_f16_or_f32(p->in_type) && ops_is_f16_or_f32(p->out_type) &&
           l->inner.step[0][0] % LANES == 0 && l->inner.step[1][0] % LANES == 0 &&
           l->outer.count > 0 && l->inner.count > 1 &&
           ops_view_units(&l->outer, 2, LANES, false, &p->units, &stills) &&
           (l->inner.count <= LINE_SHORT || p->units.count >= UNITS_MANY);
}

/* Other lines side by side, as many as lie in a row: threads beside each other read neighbours. A
 * few lines have more threads each without. */
static void softmax_columns(struct ops_softmax *p)
{
    enum { LINE_MIN = 32, LINES_MIN = 2048 };
    struct ops_lines *l = &p->lines;
    const int         outer = l->outer.rank - 1, inner = l->inner.rank - 1;
    if (p->across || l->held.lanes || l->outer.count < LINES_MIN || l->inner.count < LINE_MIN ||
        l->outer.step[0][outer] != 1 || l->outer.size[outer] < 2 || l->inner.step[0][inner] == 1)
        return;
    l->team = OPS_TEAM_COLUMN;
    l->width = 32;
    while (l->width > l->outer.size[outer])
        l->width /= 2;
}

static sac_result softmax_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    struct ops_softmax       *p = params;
    const enum sac_op_id      id = c->node->op->id;
    const bool                old = c->node->opset < 13;
    int                       axis;
    SAC_TRY(sac_op_axis(c, old ? 1 : -1, c->in[0].rank, &axis));
    SAC_TRY(axis_lines(plan, axis, old, &p->lines));
    ops_choose_team(&p->lines, false);
    p->kind = id == SAC_OP_Softmax      ? OPS_SOFTMAX
              : id == SAC_OP_LogSoftmax ? OPS_LOG_SOFTMAX
                                        : OPS_HARDMAX;
    p->in_type = ops_in_type(plan, 0);
    p->out_type = ops_out_type(plan, 0);
    if (p->kind != OPS_HARDMAX)
        ops_choose_held(&p->lines, 2, 0, (const int[]){p->in_type, p->out_type});
    p->across = softmax_across(p);
    softmax_columns(p);
    return SAC_OK;
}

static sac_result arg_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    struct ops_arg           *p = params;
    int                       axis;
    bool                      along[SAC_RANK_MAX] = {false};
    SAC_TRY(sac_op_axis(c, 0, c->in[0].rank, &axis));
    along[axis] = true;
    SAC_TRY(reduced_lines(plan, along, &p->lines));
    ops_choose_team(&p->lines, false);
    p->least = c->node->op->id == SAC_OP_ArgMin;
    p->last = sac_attr_int(c->node, "select_last_index", 0) != 0;
    p->in_type = ops_in_type(plan, 0);
    p->type = ops_class_of(c->in[0].dtype);
    return SAC_OK;
}

static bool cumulate_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    int axis;
    if (sac_cumulative_axis(q->call, &axis) != SAC_OK)
        return ops_refuse(offer, "its axis is not known");
    return ops_line_layouts(q, offer); /* sums stay float32, because they grow */
}

static sac_result cumulate_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    struct ops_cumulate      *p = params;
    int                       axis;
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

/* ---- rows ---- */

OPS_ROW(Softmax, softmax_layouts, softmax_fill, ops_launch_softmax, ops_softmax)
OPS_ROW(LogSoftmax, softmax_layouts, softmax_fill, ops_launch_softmax, ops_softmax)
OPS_ROW(Hardmax, softmax_layouts, softmax_fill, ops_launch_softmax, ops_softmax)
OPS_ROW(ArgMax, ops_line_layouts, arg_fill, ops_launch_arg, ops_arg)
OPS_ROW(ArgMin, ops_line_layouts, arg_fill, ops_launch_arg, ops_arg)
OPS_ROW(CumSum, cumulate_layouts, cumulate_fill, ops_launch_cumulate, ops_cumulate)
OPS_ROW(CumProd, cumulate_layouts, cumulate_fill, ops_launch_cumulate, ops_cumulate)

#define REDUCE(op, ...)                                                         \
    OPS_OWN_ROW(op, reduce_layouts, reduce_fill, ops_launch_reduce, ops_reduce, \
                (&(const struct reduction){__VA_ARGS__}))
REDUCE(ReduceSum, OPS_REDUCE_SUM, OPS_FINISH_NONE, 0)
REDUCE(ReduceMean, OPS_REDUCE_SUM, OPS_FINISH_MEAN, 0)
REDUCE(ReduceProd, OPS_REDUCE_PROD, OPS_FINISH_NONE, 1)
REDUCE(ReduceMax, OPS_REDUCE_MAX, OPS_FINISH_NONE, -INFINITY)
REDUCE(ReduceMin, OPS_REDUCE_MIN, OPS_FINISH_NONE, INFINITY)
REDUCE(ReduceL1, OPS_REDUCE_ABS, OPS_FINISH_NONE, 0)
REDUCE(ReduceL2, OPS_REDUCE_SQUARE, OPS_FINISH_SQRT, 0)
REDUCE(ReduceLogSum, OPS_REDUCE_SUM, OPS_FINISH_LOG, 0)
REDUCE(ReduceLogSumExp, OPS_REDUCE_LOG_SUM_EXP, OPS_FINISH_NONE, -INFINITY)
REDUCE(ReduceSumSquare, OPS_REDUCE_SQUARE, OPS_FINISH_NONE, 0)
REDUCE(GlobalAveragePool, OPS_REDUCE_SUM, OPS_FINISH_MEAN, 0)
REDUCE(GlobalMaxPool, OPS_REDUCE_MAX, OPS_FINISH_NONE, -INFINITY)
