/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that only move data and need not know what the channels are: Transpose, Expand, Tile,
 * Pad, Gather of one index, DepthToSpace, SpaceToDepth. Each is one move, Pad a
 * few. */
#include <stdio.h>
#include <string.h>

#include "engine/cpu/moves.h"
#include "engine/ops/reads.h"

/* One move between input 0 and output 0. */
struct single {
    int     rank;
    int64_t dims[SAC_WALK_DIMS], from[SAC_WALK_DIMS], to[SAC_WALK_DIMS];
    int64_t at; /* in the input */
};
/* Describes the operator's move, given the strides of its operands. False: it cannot. */
typedef bool describe_fn(const struct sac_op_call *c, const int64_t *in, const int64_t *out,
                         struct single *m);

static bool fill_single(const struct sac_kernel_plan *plan, describe_fn *describe,
                        struct sac_moves *s)
{
    const struct sac_op_call *c = plan->call;
    int64_t                   in[SAC_RANK_MAX], out[SAC_RANK_MAX];
    struct single             m = {0};
    sac_input_strides(plan, 0, in);
    sac_output_strides(plan, 0, out);
    if (!describe(c, in, out, &m))
        return false;
    sac_moves_add(s, 0, m.at, m.from, 0, 0, m.to, sac_dtype_bytes(c->in[0].dtype), m.rank, m.dims);
    return true;
}

/* Would all bytes stay where they are? */
static bool stays(const struct sac_kernel_question *q, enum sac_layout in, enum sac_layout out,
                  describe_fn *describe)
{
    struct sac_kernel_plan plan = {.call = q->call};
    struct sac_moves      *s = sac_moves_create(1);
    plan.in_layout[0] = in;
    plan.out_layout[0] = out;
    const bool whole = s &&
                       sac_operand_bytes(&q->call->in[0]) == sac_operand_bytes(&q->call->out[0]) &&
                       fill_single(&plan, describe, s) && sac_moves_whole(s);
    sac_free(s);
    return whole;
}

static struct sac_kernel_offer supports_single(const struct sac_kernel_question *q,
                                               describe_fn                      *describe)
{
    const struct sac_op_call *c = q->call;
    struct sac_kernel_offer   offer = sac_moves_keep_layout(q);
    int64_t                   none[SAC_RANK_MAX] = {0};
    struct single             m = {0};
    if (!describe(c, none, none, &m))
        return sac_kernel_refuse("what it does is known only at run time");
    offer.out_layout[0] = SAC_LAYOUT_PLAIN;
    if (c->in[0].dtype == SAC_F32 && c->out[0].rank >= 3 &&
        !stays(q, offer.in_layout[0], SAC_LAYOUT_PLAIN, describe) &&
        stays(q, offer.in_layout[0], SAC_LAYOUT_CHANNELS_LAST, describe))
        offer.out_layout[0] = SAC_LAYOUT_CHANNELS_LAST;
    offer.in_place = stays(q, offer.in_layout[0], offer.out_layout[0], describe) ? 0 : -1;
    return offer;
}

static const char *kind_name(const struct sac_moves *s)
{
    static const char *const names[] = {"copy", "transpose", "gather"};
    return s->count ? names[s->parts[0].move.kind] : "nothing";
}

static sac_result prepare_single(struct sac_kernel_plan *plan, describe_fn *describe)
{
    struct sac_moves *s = sac_moves_create(1);
    if (!s || !fill_single(plan, describe, s)) {
        sac_free(s);
        return SAC_OP_FAIL(plan->call, SAC_ERR_MEMORY, "no memory for its kernel");
    }
    snprintf(plan->implementation, sizeof plan->implementation, "%s", kind_name(s));
    plan->state = s;
    return SAC_OK;
}

/* ---- each operator's move ---- */

static bool describe_transpose(const struct sac_op_call *c, const int64_t *in, const int64_t *out,
                               struct single *m)
{
    int perm[SAC_RANK_MAX];
    if (sac_transpose_perm(c, perm) != SAC_OK)
        return false;
    m->rank = c->in[0].rank;
    for (int d = 0; d < m->rank; d++) {
        m->dims[d] = c->out[0].dims[d];
        m->from[d] = in[perm[d]];
        m->to[d] = out[d];
    }
    return true;
}

static bool describe_expand(const struct sac_op_call *c, const int64_t *in, const int64_t *out,
                            struct single *m)
{
    m->rank = c->out[0].rank;
    sac_expand_steps(c, in, m->from);
    for (int d = 0; d < m->rank; d++) {
        m->dims[d] = c->out[0].dims[d];
        m->to[d] = out[d];
    }
    return true;
}

static bool describe_tile(const struct sac_op_call *c, const int64_t *in, const int64_t *out,
                          struct single *m)
{
    const struct sac_tiling t = sac_tiling_of(c, in, out);
    m->rank = t.rank;
    for (int d = 0; d < t.rank; d++) {
        m->dims[d] = t.dims[d];
        m->from[d] = t.from[d];
        m->to[d] = t.to[d];
    }
    return true;
}

/* One constant index: a slice, of which the output may have kept the axis or not. */
static bool describe_gather(const struct sac_op_call *c, const int64_t *in, const int64_t *out,
                            struct single *m)
{
    const int rank = c->in[0].rank;
    int64_t   index;
    size_t    count;
    int       axis;
    if (!c->in[1].data || sac_operand_elements(&c->in[1]) != 1 || c->in[1].rank > 1 ||
        !sac_axis_normalise(sac_attr_int(c->node, "axis", 0), rank, &axis) ||
        sac_operand_ints(c, 1, &index, 1, &count) != SAC_OK)
        return false;
    index += index < 0 ? c->in[0].dims[axis] : 0;
    if (index < 0 || index >= c->in[0].dims[axis])
        return false; /* the reference row names the fault */
    m->at = index * in[axis];
    for (int d = 0; d < rank; d++) {
        if (d == axis)
            continue;
        m->dims[m->rank] = c->in[0].dims[d];
        m->from[m->rank] = in[d];
        m->to[m->rank++] = out[d > axis && c->in[1].rank == 0 ? d - 1 : d];
    }
    return true;
}

/* Over [N,C,H,b,W,b]: a block's place in depth, "DCR" before the channels, "CRD" after them, and in
 * space. */
static bool describe_blocks(const struct sac_op_call *c, const int64_t *in, const int64_t *out,
                            struct single *m)
{
    const bool     to_space = c->node->op->id == SAC_OP_DepthToSpace;
    const bool     first = strcmp(sac_attr_string(c->node, "mode", "DCR"), "CRD") != 0;
    const int64_t  b = sac_attr_int(c->node, "blocksize", 1);
    const int64_t *deep = (to_space ? &c->in[0] : &c->out[0])->dims, channels = deep[1] / (b * b);
    const int64_t *d = to_space ? in : out, *s = to_space ? out : in;
    const int64_t  place = first ? channels : 1; /* channels from a place to the next one */
    const int64_t  dims[] = {deep[0], channels, deep[2], b, deep[3], b};
    const int64_t  depth[] = {d[0],        d[1] * (first ? 1 : b * b), d[2], d[1] * place * b, d[3],
                              d[1] * place};
    const int64_t  space[] = {s[0], s[1], s[2] * b, s[2], s[3] * b, s[3]};
    m->rank = SAC_COUNT(dims);
    memcpy(m->dims, dims, sizeof dims);
    memcpy(m->from, to_space ? depth : space, sizeof depth);
    memcpy(m->to, to_space ? space : depth, sizeof space);
    return true;
}

#define SINGLE_KERNEL(op, describe)                                                               \
    static struct sac_kernel_offer describe##_supports(struct sac_device                *dev,     \
                                                       const struct sac_kernel_question *q)       \
    {                                                                                             \
        (void)dev;                                                                                \
        return supports_single(q, describe);                                                      \
    }                                                                                             \
    static sac_result describe##_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)    \
    {                                                                                             \
        (void)dev;                                                                                \
        return prepare_single(plan, describe);                                                    \
    }                                                                                             \
    const struct sac_kernel sac_cpu_##op = {SAC_OP_##op, describe##_supports, describe##_prepare, \
                                            sac_moves_run, sac_free}
SINGLE_KERNEL(Transpose, describe_transpose);
SINGLE_KERNEL(Expand, describe_expand);
SINGLE_KERNEL(Tile, describe_tile);
SINGLE_KERNEL(Gather, describe_gather);

static struct sac_kernel_offer blocks_supports(struct sac_device                *dev,
                                               const struct sac_kernel_question *q)
{
    (void)dev;
    return sac_moves_keep_layout(q);
}

static sac_result blocks_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    (void)dev;
    return prepare_single(plan, describe_blocks);
}

const struct sac_kernel sac_cpu_DepthToSpace = {SAC_OP_DepthToSpace, blocks_supports,
                                                blocks_prepare, sac_moves_run, sac_free};
const struct sac_kernel sac_cpu_SpaceToDepth = {SAC_OP_SpaceToDepth, blocks_supports,
                                                blocks_prepare, sac_moves_run, sac_free};

/* ---- Pad: the input's place in the output, and the border around it in slabs ---- */

/* What lies along an axis: the input, and what is repeated of it at either end. */
struct pad_part {
    int64_t to, from, step, count; /* step: of the input's, from one output to the next one */
};
enum { PAD_PARTS = 3, PAD_MOVES_MAX = 27 };

/* The parts of axis d; 0: it is cut, or more is repeated than there is. */
static int pad_parts(enum sac_pad_mode mode, int64_t begin, int64_t n, int64_t out,
                     struct pad_part part[PAD_PARTS])
{
    const int64_t end = out - begin - n, most = mode == SAC_PAD_REFLECT ? n - 1 : n;
    const bool    edge = mode == SAC_PAD_EDGE, reflect = mode == SAC_PAD_REFLECT;
    const int64_t step = edge ? 0 : reflect ? -1 : 1;
    int           count = 0;
    if (begin < 0 || end < 0 || n < 1 || (!edge && (begin > most || end > most)))
        return 0;
    if (begin > 0)
        part[count++] = (struct pad_part){0, edge ? 0 : reflect ? begin : n - begin, step, begin};
    part[count++] = (struct pad_part){begin, 0, 1, n};
    if (end > 0)
        part[count++] = (struct pad_part){begin + n, edge ? n - 1 : reflect ? n - 2 : 0, step, end};
    return count;
}

/* How many moves it takes, a constant's aside; 0: it cannot. */
static int pad_moves(const struct sac_op_call *c, enum sac_pad_mode mode, const struct sac_pads *p)
{
    struct pad_part part[PAD_PARTS];
    int             moves = 1;
    for (int d = 0; d < c->in[0].rank && moves <= PAD_MOVES_MAX; d++)
        moves *= pad_parts(mode, p->begin[d], c->in[0].dims[d], c->out[0].dims[d], part);
    return moves <= PAD_MOVES_MAX ? moves : 0;
}

static bool read_pads(const struct sac_op_call *c, enum sac_pad_mode *mode, struct sac_pads *p)
{
    for (int i = 1; i < c->in_count; i++)
        if (c->in[i].present && !c->in[i].data && sac_operand_elements(&c->in[i]) > 0)
            return false;
    return sac_pad_mode(c, mode) == SAC_OK && sac_pad_read(c, p) == SAC_OK &&
           (*mode == SAC_PAD_CONSTANT || pad_moves(c, *mode, p) > 0);
}

static struct sac_kernel_offer pad_supports(struct sac_device                *dev,
                                            const struct sac_kernel_question *q)
{
    struct sac_kernel_offer offer = sac_moves_keep_layout(q);
    struct sac_pads         p;
    enum sac_pad_mode       mode;
    (void)dev;
    if (!read_pads(q->call, &mode, &p))
        return sac_kernel_refuse("its pads are not known, or repeat more than there is");
    offer.in_place = sac_operand_same_dims(&q->call->in[0], &q->call->out[0]) ? 0 : -1;
    for (int d = 0; d < q->call->in[0].rank; d++)
        if (p.begin[d] != 0)
            offer.in_place = -1;
    return offer;
}

/* Pads along axis d: dimensions before it are those of the input's place, those after it whole. */
static void add_slab(struct sac_moves *s, const struct sac_op_call *c, const int64_t *to,
                     const int64_t *begin, const int64_t *end, int d, int64_t first, int64_t last)
{
    const int64_t zero[SAC_RANK_MAX] = {0};
    int64_t       dims[SAC_RANK_MAX], at = first * to[d];
    for (int k = 0; k < c->out[0].rank; k++) {
        dims[k] = k < d ? end[k] - begin[k] : c->out[0].dims[k];
        at += k < d ? begin[k] * to[k] : 0;
    }
    dims[d] = last - first;
    sac_moves_add(s, -1, 0, zero, 0, at, to, sac_dtype_bytes(c->in[0].dtype), c->out[0].rank, dims);
}

static void add_pads(struct sac_moves *s, const struct sac_kernel_plan *plan,
                     const struct sac_pads *p)
{
    const struct sac_op_call *c = plan->call;
    int64_t in[SAC_RANK_MAX], out[SAC_RANK_MAX], begin[SAC_RANK_MAX], end[SAC_RANK_MAX];
    int64_t dims[SAC_RANK_MAX], from = 0, to = 0;
    sac_input_strides(plan, 0, in);
    sac_output_strides(plan, 0, out);
    for (int d = 0; d < c->in[0].rank; d++) { /* negative pads cut */
        const int64_t size = c->out[0].dims[d];
        begin[d] = SAC_CLAMP(p->begin[d], 0, size);
        end[d] = SAC_CLAMP(p->begin[d] + c->in[0].dims[d], begin[d], size);
        dims[d] = end[d] - begin[d];
        from += (begin[d] - p->begin[d]) * in[d];
        to += begin[d] * out[d];
    }
    for (int d = 0; d < c->in[0].rank; d++) {
        add_slab(s, c, out, begin, end, d, 0, begin[d]);
        add_slab(s, c, out, begin, end, d, end[d], c->out[0].dims[d]);
    }
    sac_moves_add(s, 0, from, in, 0, to, out, sac_dtype_bytes(c->in[0].dtype), c->in[0].rank, dims);
}

/* Each part of an axis beside each of the others. */
static void add_repeats(struct sac_moves *s, const struct sac_kernel_plan *plan,
                        enum sac_pad_mode mode, const struct sac_pads *p)
{
    const struct sac_op_call *c = plan->call;
    const int                 rank = c->in[0].rank, moves = pad_moves(c, mode, p);
    int64_t                   in[SAC_RANK_MAX], out[SAC_RANK_MAX];
    sac_input_strides(plan, 0, in);
    sac_output_strides(plan, 0, out);
    for (int k = 0; k < moves; k++) {
        int64_t dims[SAC_RANK_MAX], steps[SAC_RANK_MAX], from = 0, to = 0;
        for (int d = 0, rest = k; d < rank; d++) {
            struct pad_part part[PAD_PARTS];
            const int       parts =
                pad_parts(mode, p->begin[d], c->in[0].dims[d], c->out[0].dims[d], part);
            const struct pad_part *one = &part[rest % parts];
            rest /= parts;
            dims[d] = one->count;
            steps[d] = one->step * in[d];
            from += one->from * in[d];
            to += one->to * out[d];
        }
        sac_moves_add(s, 0, from, steps, 0, to, out, sac_dtype_bytes(c->in[0].dtype), rank, dims);
    }
}

static sac_result pad_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    struct sac_pads           p;
    enum sac_pad_mode         mode;
    struct sac_moves *s = sac_moves_create(SAC_MAX(2 * c->in[0].rank + 1, (int)PAD_MOVES_MAX));
    (void)dev;
    if (!s || !read_pads(c, &mode, &p)) {
        sac_free(s);
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    }
    struct sac_operand constant = {.dtype = c->in[0].dtype, .data = &s->constant};
    if (sac_op_has(c, 2) && sac_operand_elements(&c->in[2]) == 1)
        memcpy(&s->constant, c->in[2].data, sac_dtype_bytes(constant.dtype));
    else
        sac_operand_set(&constant, 0, sac_attr_float(c->node, "value", 0));
    if (mode == SAC_PAD_CONSTANT)
        add_pads(s, plan, &p);
    else
        add_repeats(s, plan, mode, &p);
    snprintf(plan->implementation, sizeof plan->implementation, "copy");
    plan->state = s;
    return SAC_OK;
}

const struct sac_kernel sac_cpu_Pad = {SAC_OP_Pad, pad_supports, pad_prepare, sac_moves_run,
                                       sac_free};
