/* SPDX-License-Identifier: Apache-2.0 */
/* LayerNormalization (Ba et al., 2016) as it is spelled before opset 17, x less its mean over the
 * root of the mean of its squares and an epsilon, is one node; so is RMSNormalization, which takes
 * off no mean. Over the channels of maps, which lie second, it stands between two Transposes: with
 * channels last in memory these do nothing. */
#include <math.h>
#include <string.h>

#include "engine/passes/pass.h"

struct spelling {
    struct sac_value *x;
    int               axis;
    bool              centred;
    float             epsilon;
    struct sac_node  *last; /* the scale and the shift included */
    struct sac_value *scale, *shift;
};

/* ---- back from the division ---- */

/* The mean of what it returns over one axis, kept as a dim of one. */
static struct sac_value *mean_of(const struct sac_value *v, int *axis)
{
    const struct sac_node *n = sac_made_by(v, "ReduceMean");
    bool                   reduced[SAC_RANK_MAX];
    int                    count = 0;
    if (!n || !sac_node_input(n, 0) || v->rank < 2 || n->inputs[0]->rank != v->rank ||
        !sac_reduce_axes(n, v->rank, reduced))
        return NULL;
    for (int d = 0; d < v->rank; d++) {
        *axis = reduced[d] ? d : *axis;
        count += reduced[d];
    }
    return count == 1 && n->inputs[0]->dims[*axis] > 1 ? n->inputs[0] : NULL;
}

/* The mean of squares and epsilon, of which v is the root, or one over it. */
static bool take_root(struct spelling *s, const struct sac_value *v, bool inverse,
                      struct sac_value **squared)
{
    const struct sac_node *n = v ? v->producer : NULL;
    if (inverse && sac_is(n, "Reciprocal"))
        return take_root(s, n->inputs[0], false, squared);
    if (inverse && sac_is(n, "Div") && sac_is_number(n->inputs[0], 1))
        return take_root(s, n->inputs[1], false, squared);
    if (!(sac_is(n, "Sqrt") && !inverse) &&
        !(sac_is(n, "Pow") && sac_is_number(n->inputs[1], inverse ? -0.5f : 0.5f)))
        return false;
    const struct sac_node *add = sac_made_by(n->inputs[0], "Add");
    for (int i = 0; add && i < 2; i++) {
        struct sac_value *mean;
        if (sac_constant_scalar(add->inputs[1 - i], &s->epsilon) && s->epsilon > 0 &&
            (mean = mean_of(add->inputs[i], &s->axis)))
            return (*squared = sac_square_of(mean)) != NULL;
    }
    return false;
}

/* Over all of a sample it is a SampleNorm (norm.c). */
static bool is_whole_sample(const struct sac_value *x, int axis)
{
    for (int d = 1; d < x->rank; d++)
        if (d != axis && x->dims[d] != 1)
            return false;
    return true;
}

/* n is x, or x less its mean, over that root. */
static bool take_quotient(struct spelling *s, const struct sac_node *n)
{
    struct sac_value *above = NULL, *squared;
    if (sac_is(n, "Div") && take_root(s, n->inputs[1], false, &squared))
        above = n->inputs[0];
    for (int i = 0; sac_is(n, "Mul") && !above && i < 2; i++)
        if (take_root(s, n->inputs[1 - i], true, &squared))
            above = n->inputs[i];
    if (!above || above != squared || above->dtype != SAC_F32 ||
        !sac_same_shape(above, n->outputs[0]))
        return false;
    const struct sac_node *sub = sac_made_by(above, "Sub");
    int                    axis = -1;
    s->centred = sub && mean_of(sub->inputs[1], &axis) == sub->inputs[0] && axis == s->axis &&
                 sac_same_shape(sub->inputs[0], above);
    s->x = s->centred ? sub->inputs[0] : above;
    return (s->axis == s->x->rank - 1 || s->axis == 1) && !is_whole_sample(s->x, s->axis);
}

/* ---- forward from it ---- */

/* The numbers of a constant of one for each entry of the axis, or one for all. */
static struct sac_value *take_constant(struct sac_graph *g, const struct spelling *s,
                                       const struct sac_value *v)
{
    const int64_t     count = s->x->dims[s->axis];
    const float      *from = sac_constant_floats(v);
    float            *to;
    const bool        row = sac_constant_row(v, s->x->rank, count);
    struct sac_value *made = from ? sac_new_floats(g, v->name, 1, &count, &to) : NULL;
    if (!made)
        return NULL;
    if (s->axis == 1 && s->x->rank > 2)
        return sac_constant_per_channel(v, s->x->rank, count, to) ? made : NULL;
    for (int64_t i = 0; row && i < count; i++)
        to[i] = from[sac_value_elements(v) == 1 ? 0 : i];
    return row ? made : NULL;
}

/* The only reader of what there is so far, if it is of this type and its other operand will do. */
static struct sac_value *take_next(struct sac_graph *g, struct spelling *s, const char *op)
{
    struct sac_node  *next = sac_only_reader(s->last, op);
    struct sac_value *other = next ? sac_other_input(next, s->last->outputs[0]) : NULL;
    struct sac_value *made = NULL;
    if (other && next->outputs[0] && sac_same_shape(next->outputs[0], s->x))
        made = take_constant(g, s, other);
    if (made)
        s->last = next;
    return made;
}

/* ---- the new node ---- */

static struct sac_value *ones(struct sac_graph *g, const struct spelling *s)
{
    float            *to;
    const int64_t     count = s->x->dims[s->axis];
    struct sac_value *made = sac_new_floats(g, s->x->name, 1, &count, &to);
    for (int64_t i = 0; made && i < count; i++)
        to[i] = 1;
    return made;
}

/* The dim that is normalised to the end, or from there back. */
static struct sac_value *turned(struct sac_graph *g, const struct sac_node *n, struct sac_value *v,
                                bool back, sac_result *res)
{
    int64_t perm[SAC_RANK_MAX] = {0};
    for (int d = 1; d < v->rank; d++)
        perm[d] = back ? (d == 1 ? v->rank - 1 : d - 1) : (d == v->rank - 1 ? 1 : d + 1);
    return sac_transposed(g, n, v, perm, res);
}

static sac_result make(struct sac_graph *g, struct sac_node *n, const struct spelling *s)
{
    sac_result        res = SAC_OK;
    const bool        turns = s->axis != s->x->rank - 1;
    struct sac_value *x = turns ? turned(g, n, s->x, false, &res) : s->x;
    struct sac_node  *made =
        sac_op_node(g, "", s->centred ? "LayerNormalization" : "RMSNormalization",
                    s->centred && s->shift ? 3 : 2, 1, n);
    struct sac_value *y = x && made ? sac_value_like(g, x) : NULL;
    if (!y || res != SAC_OK)
        return SAC_ERR_MEMORY;
    made->inputs[0] = x;
    made->inputs[1] = s->scale ? s->scale : ones(g, s);
    if (made->input_count > 2)
        made->inputs[2] = s->shift;
    made->outputs[0] = y;
    y->producer = made;
    res = made->inputs[1] ? sac_node_set_float(g, made, "epsilon", s->epsilon) : SAC_ERR_MEMORY;
    if (res == SAC_OK)
        res = sac_node_set_int(g, made, "axis", -1);
    if (res == SAC_OK && turns)
        y = turned(g, n, y, true, &res);
    if (res == SAC_OK)
        sac_graph_replace(g, s->last->outputs[0], y);
    return res;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct spelling s = {.last = n, .axis = -1};
    if (n->output_count != 1 || !n->outputs[0] || !sac_node_input(n, 0) || !sac_node_input(n, 1) ||
        !take_quotient(&s, n))
        return SAC_OK;
    s.scale = take_next(g, &s, "Mul");
    if (s.centred)
        s.shift = take_next(g, &s, "Add");
    *changed = true;
    return make(g, n, &s);
}

const struct sac_pass sac_pass_layer_norm = {"layer-norm", visit};
