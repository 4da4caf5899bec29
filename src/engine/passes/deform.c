/* SPDX-License-Identifier: Apache-2.0 */
/* Attention to a few places of each level of a pyramid (Zhu et al., "Deformable DETR", 2021), which
 * exporters write as a GridSample for each level, a Concat of them, a Mul by the shares and a
 * ReduceSum, heads counted with the batch, is one DeformAttention. Its operands are found where
 * they lie head by head before the exporter's Transposes, Splits and Gathers. */
#include <string.h>

#include "engine/ops/deform_attention.h"
#include "engine/ops/util.h"
#include "engine/passes/strided.h"

enum { DEPTH_MAX = 12 };
enum { VALUES, PLACES, SHARES, OPERANDS };

struct spelling {
    int               levels;
    struct sac_node  *sample[SAC_DEFORM_LEVELS];
    struct sac_value *weights; /* [N H,1,Q,points] */
    int64_t           heads, size, queries, points;
    struct sac_value *operand[OPERANDS];
    int64_t           batch; /* a prime stands for an open one */
    double            gain, shift;
    bool              softmax;
};

/* ---- back from the sum ---- */

static struct sac_value *before_reshapes(struct sac_value *v)
{
    while (v && sac_is_reshape(v->producer))
        v = v->producer->inputs[0];
    return v;
}

/* The GridSample of a level, from which what is concatenated differs by a dim of 1 at most. */
static bool take_level(struct spelling *s, struct sac_value *v)
{
    const struct sac_value *made = before_reshapes(v);
    struct sac_node        *n = made ? sac_made_by(made, "GridSample") : NULL;
    if (!n || made->rank != 4 || s->levels == SAC_DEFORM_LEVELS || v->rank < 4 ||
        strcmp(sac_attr_string(n, "padding_mode", "zeros"), "zeros") != 0 ||
        sac_attr_int(n, "align_corners", 0) != 0)
        return false;
    const char *mode = sac_attr_string(n, "mode", "linear");
    if (strcmp(mode, "linear") != 0 && strcmp(mode, "bilinear") != 0)
        return false;
    for (int d = 0; d < 3; d++)
        if (v->dims[d] != made->dims[d])
            return false;
    if (s->levels == 0) {
        s->size = made->dims[1];
        s->queries = made->dims[2];
    }
    s->points += made->dims[3];
    s->sample[s->levels++] = n;
    return made->dims[1] == s->size && made->dims[2] == s->queries && made->dims[1] > 0 &&
           made->dims[2] > 0 && made->dims[3] > 0;
}

static bool take_levels(struct spelling *s, struct sac_value *v)
{
    struct sac_value *joined = before_reshapes(v);
    struct sac_node  *n = joined ? sac_made_by(joined, "Concat") : NULL;
    int               axis;
    s->levels = 0;
    s->points = 0;
    if (!n)
        return take_level(s, v);
    if (!sac_axis_normalise(sac_attr_int(n, "axis", 0), joined->rank, &axis) || axis != 3)
        return false;
    for (int i = 0; i < n->input_count; i++)
        if (!n->inputs[i] || n->inputs[i]->rank != joined->rank || !take_level(s, n->inputs[i]))
            return false;
    return true;
}

static bool take_sum(const struct sac_node *n, struct spelling *s)
{
    bool                    reduced[SAC_RANK_MAX];
    const struct sac_value *sum = n->inputs[0];
    const struct sac_node  *mul = sac_is(n, "ReduceSum") ? sac_made_by(sum, "Mul") : NULL;
    if (!mul || sum->uses != 1 || sum->rank != 4 || sum->dtype != SAC_F32 ||
        !sac_reduce_axes(n, 4, reduced) || reduced[0] || reduced[1] || reduced[2] || !reduced[3])
        return false;
    for (int i = 0; i < 2; i++) {
        struct sac_value *x = mul->inputs[i];
        s->weights = mul->inputs[1 - i];
        if (sac_same_shape(x, sum) && s->weights->rank == 4 && s->weights->dims[1] == 1 &&
            s->weights->dims[0] == x->dims[0] && s->weights->dims[2] == x->dims[2] &&
            s->weights->dims[3] == x->dims[3] && take_levels(s, x))
            return s->points == x->dims[3] && s->queries == x->dims[2] && s->size == x->dims[1];
    }
    return false;
}

/* ---- where the operands lie ---- */

/* Does the view, taken apart by `dims`, begin there and lie at these steps? */
static bool lies(struct sac_strided *v, int rank, const int64_t *dims, const int64_t *steps,
                 int64_t offset)
{
    if (v->offset != offset || !sac_strided_reshape(v, rank, dims) || !sac_strided_settle(v))
        return false;
    for (int d = 0; d < rank; d++)
        if (v->dim[d] > 1 && v->step[d] != steps[d])
            return false;
    return true;
}

/* v as [batch,head,...] of a base [N,T,line...]; of the heads and of the lines before them */
struct want {
    int64_t heads, each, first; /* each: numbers of a head in a line; first: of this view */
    int     rank;               /* of what follows the head */
    int64_t dims[3], steps[3];  /* a step of 0: from one line to the next */
};

/* The base as far before v as there is one. */
static struct sac_value *find_base(const struct spelling *s, struct sac_value *v,
                                   const struct want *want, int64_t tokens, double *scale)
{
    struct sac_value       *found = NULL;
    const struct sac_value *at = v;
    for (int depth = 0; at && depth < DEPTH_MAX; depth++, at = sac_strided_before(at)) {
        struct sac_strided view;
        int64_t            dims[SAC_RANK_MAX], parts[5], steps[5];
        int                open;
        if (!sac_strided_from(&view, v, depth))
            break;
        const struct sac_value *b = view.base;
        const int64_t           line = want->heads * want->each;
        if (b->rank < 3 || !sac_stand_in_dims(b, 0, dims, &open) || open > 0 ||
            sac_dims_product(b->rank - 2, dims + 2) != line || dims[1] != tokens ||
            (s->batch && dims[0] != s->batch))
            continue;
        parts[0] = dims[0];
        parts[1] = want->heads;
        steps[0] = tokens * line;
        steps[1] = want->each;
        for (int d = 0; d < want->rank; d++) {
            parts[2 + d] = want->dims[d];
            steps[2 + d] = want->steps[d] ? want->steps[d] : line;
        }
        if (lies(&view, 2 + want->rank, parts, steps, want->first)) {
            found = view.base;
            *scale = view.scale;
        }
    }
    return found;
}

static int64_t level_values(const struct spelling *s, int i)
{
    const int64_t *dims = s->sample[i]->inputs[0]->dims;
    return dims[2] > 0 && dims[3] > 0 && dims[2] < SAC_STAND_IN / dims[3] ? dims[2] * dims[3] : -1;
}

/* The same base for all levels, which lie one after the other in it. */
static bool same_base(struct sac_value **base, struct sac_value *now)
{
    if (!now || (*base && *base != now))
        return false;
    *base = now;
    return true;
}

static bool find_values(struct spelling *s)
{
    int64_t tokens = 0, start = 0;
    for (int i = 0; i < s->levels; i++) {
        if (level_values(s, i) < 0)
            return false;
        tokens += level_values(s, i);
    }
    for (int i = 0; i < s->levels; i++) {
        const int64_t     count = level_values(s, i), line = s->heads * s->size;
        double            scale;
        const struct want want = {s->heads, s->size, start * line, 2, {s->size, count}, {1, 0}};
        if (!same_base(&s->operand[VALUES],
                       find_base(s, s->sample[i]->inputs[0], &want, tokens, &scale)) ||
            scale != 1)
            return false;
        start += count;
    }
    return true;
}

static bool find_places(struct spelling *s)
{
    int64_t first = 0;
    for (int i = 0; i < s->levels; i++) {
        const int64_t     points = s->sample[i]->inputs[1]->dims[2];
        double            scale = 1;
        const struct want want = {s->heads, 2 * s->points,           2 * first,
                                  3,        {s->queries, points, 2}, {0, 2, 1}};
        if (!same_base(&s->operand[PLACES],
                       find_base(s, s->sample[i]->inputs[1], &want, s->queries, &scale)) ||
            (i > 0 && scale != s->gain))
            return false;
        s->gain = scale;
        first += points;
    }
    return true;
}

static bool find_shares(struct spelling *s)
{
    double            scale;
    const struct want want = {s->heads, s->points, 0, 2, {s->queries, s->points}, {0, 1}};
    s->operand[SHARES] = find_base(s, s->weights, &want, s->queries, &scale);
    return s->operand[SHARES] && scale == 1;
}

/* The places before they are scaled and shifted: 2 x - 1, as GridSample counts. */
static void take_affine(struct spelling *s)
{
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        struct sac_value *v = s->operand[PLACES], *x;
        double            factor;
        float             c;
        if ((x = sac_scaled(v, &factor))) {
            s->gain *= factor;
        } else if (sac_made_by(v, "Sub") && sac_constant_scalar(v->producer->inputs[1], &c)) {
            x = v->producer->inputs[0];
            s->shift -= s->gain * c;
        }
        if (!x || !sac_same_shape(x, v))
            return;
        s->operand[PLACES] = x;
    }
}

/* The scores, where a Softmax over a head's points alone makes the shares. */
static void take_softmax(struct spelling *s)
{
    const struct sac_value *v = before_reshapes(s->operand[SHARES]);
    const struct sac_node  *n = sac_made_by(v, "Softmax");
    int                     axis;
    if (!n || v->uses != 1 || v->rank < 3 || v->dims[v->rank - 1] != s->points ||
        v->dims[1] != s->queries || v->dims[0] != s->operand[SHARES]->dims[0] ||
        !sac_softmax_axis(n, v->rank, &axis) || axis != v->rank - 1)
        return;
    s->operand[SHARES] = n->inputs[0];
    s->softmax = true;
}

/* The values' base tells how many heads there are. */
static bool find_operands(struct spelling *s)
{
    struct sac_value       *values = s->sample[0]->inputs[0]; /* [N H,size,height,width] */
    const struct sac_value *at = values;
    for (int depth = 0; at && depth < DEPTH_MAX; depth++, at = sac_strided_before(at)) {
        struct sac_strided v;
        int64_t            dims[SAC_RANK_MAX];
        int                open;
        if (!sac_strided_from(&v, values, depth))
            break;
        if (at->rank < 3 || !sac_stand_in_dims(at, 0, dims, &open) || open > 0)
            continue;
        const int64_t line = sac_dims_product(at->rank - 2, dims + 2);
        if (line % s->size != 0 || sac_strided_dim(&v, 0) != dims[0] * (line / s->size))
            continue;
        s->heads = line / s->size;
        s->batch = dims[0];
        memset(s->operand, 0, sizeof s->operand);
        if (find_values(s) && find_places(s) && find_shares(s))
            return true;
    }
    return false;
}

/* ---- the new node ---- */

/* What Transposes and Reshapes make of the sum where its numbers lie as the new node writes them;
 * NULL: they make no such value. */
static struct sac_value *find_result(const struct sac_node *n, const struct spelling *s)
{
    struct sac_value *after[DEPTH_MAX] = {n->outputs[0]}, *found = NULL;
    const int64_t     line = s->heads * s->size;
    const int64_t     dims[] = {s->batch, s->heads, s->size, s->queries};
    const int64_t     steps[] = {s->queries * line, s->size, 1, line};
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        struct sac_strided view;
        if (sac_strided_into(&view, after[0], after[depth], depth) &&
            lies(&view, 4, dims, steps, 0))
            found = after[depth];
        const struct sac_node *next = sac_value_only_reader(after[depth]);
        if (depth + 1 == DEPTH_MAX || !next || next->inputs[0] != after[depth] ||
            (!sac_is(next, "Transpose") && !sac_is_reshape(next)) || next->outputs[0]->rank < 0)
            break;
        after[depth + 1] = next->outputs[0];
    }
    return found;
}

static sac_result set_attributes(struct sac_graph *g, struct sac_node *made,
                                 const struct spelling *s)
{
    int64_t sizes[2 * SAC_DEFORM_LEVELS], points[SAC_DEFORM_LEVELS];
    for (int i = 0; i < s->levels; i++) {
        memcpy(sizes + 2 * i, s->sample[i]->inputs[0]->dims + 2, 2 * sizeof *sizes);
        points[i] = s->sample[i]->inputs[1]->dims[2];
    }
    sac_result res = sac_node_set_ints(g, made, "sizes", sizes, (size_t)(2 * s->levels));
    if (res == SAC_OK)
        res = sac_node_set_ints(g, made, "points", points, (size_t)s->levels);
    if (res == SAC_OK)
        res = sac_node_set_int(g, made, "heads", s->heads);
    if (res == SAC_OK)
        res = sac_node_set_float(g, made, "gain", (float)s->gain);
    if (res == SAC_OK)
        res = sac_node_set_float(g, made, "shift", (float)s->shift);
    return res == SAC_OK ? sac_node_set_int(g, made, "softmax", s->softmax) : res;
}

static sac_result make(struct sac_graph *g, struct sac_node *n, const struct spelling *s,
                       struct sac_value *result)
{
    struct sac_node  *made = sac_op_node(g, "saccade", "DeformAttention", OPERANDS, 1, n);
    struct sac_value *y = made ? sac_graph_value(g, result->name) : NULL;
    if (!y)
        return SAC_ERR_MEMORY;
    memcpy(made->inputs, s->operand, sizeof s->operand);
    made->outputs[0] = y;
    y->producer = made;
    y->dtype = SAC_F32;
    y->rank = 3;
    y->dims[0] = s->operand[VALUES]->dims[0];
    y->dims[1] = s->queries;
    y->dims[2] = s->heads * s->size;
    sac_result res = set_attributes(g, made, s);
    if (res == SAC_OK && !sac_same_shape(y, result))
        y = sac_reshaped(g, n, y, result->rank, result->dims, &res);
    if (y && res == SAC_OK)
        sac_graph_replace(g, result, y);
    return res;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct spelling s = {.gain = 1};
    if (n->output_count != 1 || !n->outputs[0] || !sac_node_input(n, 0) || !take_sum(n, &s) ||
        !find_operands(&s))
        return SAC_OK;
    struct sac_value *result = find_result(n, &s);
    if (!result)
        return SAC_OK;
    take_affine(&s);
    take_softmax(&s);
    *changed = true;
    return make(g, n, &s, result);
}

const struct sac_pass sac_pass_deform = {"deform", visit};
