/* SPDX-License-Identifier: Apache-2.0 */
/* Exporters write out what an elementwise operator broadcasts by itself: y / n.expand_as(y). Where
 * another operand has the dims that an Expand makes, its input takes its place. Where that has
 * these dims already, it does so everywhere. */
#include "engine/passes/pass.h"

static bool broadcasts(const struct sac_node *n)
{
    static const char *const types[] = {
        "Add",   "Sub",  "Mul",         "Div",     "Pow",
        "Mod",   "Max",  "Min",         "Sum",     "Mean",
        "Equal", "Less", "LessOrEqual", "And",     "Or",
        "Where", "Xor",  "BitShift",    "Greater", "GreaterOrEqual",
    };
    return sac_is_any(n, types, SAC_COUNT(types)) && n->output_count == 1 && n->outputs[0];
}

/* The dim of v that lines up with dim d of y; -1: there is none. */
static int beside(const struct sac_value *v, const struct sac_value *y, int d)
{
    return v->rank - (y->rank - d);
}

/* Of two inputs the open first dims may differ, though each is taken for the batch. */
static bool has_one_batch(const struct sac_graph *g)
{
    int open = 0;
    for (int i = 0; i < g->input_count; i++)
        open += g->inputs[i]->rank > 0 && g->inputs[i]->dims[0] == SAC_DIM_OPEN;
    return open <= 1;
}

/* Surely as large as dim d of y. */
static bool has_dim(const struct sac_graph *g, const struct sac_value *v, const struct sac_value *y,
                    int d)
{
    const int own = beside(v, y, d);
    if (own < 0)
        return false;
    if (y->dims[d] != SAC_DIM_OPEN)
        return v->dims[own] == y->dims[d];
    return own == 0 && d == 0 && v->batches && v->batches == y->batches && has_one_batch(g);
}

/* Does another operand of n have that dim? */
static bool others_have(const struct sac_graph *g, const struct sac_node *n,
                        const struct sac_value *y, int d)
{
    for (int i = 0; i < n->input_count; i++)
        if (n->inputs[i] && n->inputs[i] != y && has_dim(g, n->inputs[i], y, d))
            return true;
    return false;
}

/* Is the Expand to the shape of another operand of n, whatever that is? */
static bool is_to_others(const struct sac_node *expand, const struct sac_node *n)
{
    const struct sac_node *shape = sac_made_by(sac_node_input(expand, 1), "Shape");
    if (!shape || sac_node_attr(shape, "start") || sac_node_attr(shape, "end"))
        return false;
    for (int i = 0; i < n->input_count; i++)
        if (n->inputs[i] && n->inputs[i] == shape->inputs[0])
            return true;
    return false;
}

/* Is the result of n the same without this one? */
static bool is_needless(const struct sac_graph *g, const struct sac_node *expand,
                        const struct sac_node *n)
{
    const struct sac_value *x = expand->inputs[0], *y = expand->outputs[0];
    if (x->rank < 0 || y->rank < 0)
        return false;
    if (is_to_others(expand, n))
        return true;
    for (int d = 0; d < y->rank; d++)
        if (!has_dim(g, x, y, d) && !others_have(g, n, y, d))
            return false;
    return true;
}

static bool expands_nothing(const struct sac_graph *g, const struct sac_node *n)
{
    const struct sac_value *x = sac_node_input(n, 0), *y = n->outputs[0];
    bool same = sac_is(n, "Expand") && x && y && x->rank > 0 && x->rank == y->rank;
    for (int d = 0; same && d < y->rank; d++)
        same = has_dim(g, x, y, d);
    return same;
}

/* A Transpose behind an Expand goes before it, so that what reads it may find the Expand. */
static sac_result turn_before(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    const struct sac_node  *expand = sac_made_by(n->inputs[0], "Expand");
    const struct sac_value *y = n->outputs[0];
    const int64_t          *perm;
    int64_t                 dims[SAC_RANK_MAX];
    sac_result              res = SAC_OK;
    if (!expand || !sac_node_input(expand, 0) || expand->inputs[0]->rank != y->rank ||
        sac_attr_ints(n, "perm", &perm) != (size_t)y->rank)
        return SAC_OK;
    for (int d = 0; d < y->rank; d++) {
        const int64_t own = expand->inputs[0]->dims[perm[d]];
        dims[d] = own == 1 ? y->dims[d] : 1; /* 1: as it is */
        if (own == 1 ? y->dims[d] < 0
                     : !has_dim(g, expand->inputs[0], expand->outputs[0], (int)perm[d]))
            return SAC_OK;
    }
    const struct sac_tensor_desc desc = {.dtype = SAC_I64, .rank = 1, .shape = {y->rank}};
    struct sac_value            *x = sac_transposed(g, n, expand->inputs[0], perm, &res);
    struct sac_value            *shape = sac_graph_constant(g, "shape", &desc, dims);
    struct sac_node             *again = sac_op_node(g, "", "Expand", 2, 1, n);
    if (!x || !shape || !again)
        return SAC_ERR_MEMORY;
    again->inputs[0] = x;
    again->inputs[1] = shape;
    *changed = true;
    return sac_take_over(g, again, n);
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    if (sac_is(n, "Transpose"))
        return turn_before(g, n, changed);
    if (expands_nothing(g, n)) {
        sac_graph_replace(g, n->outputs[0], n->inputs[0]);
        *changed = true;
        return SAC_OK;
    }
    if (!broadcasts(n))
        return SAC_OK;
    for (int i = 0; i < n->input_count; i++) {
        const struct sac_node *expand = sac_made_by(n->inputs[i], "Expand");
        if (!expand || !is_needless(g, expand, n))
            continue;
        struct sac_value *const y = n->inputs[i];
        for (int k = i; k < n->input_count; k++)
            if (n->inputs[k] == y)
                n->inputs[k] = expand->inputs[0];
        *changed = true;
    }
    return SAC_OK;
}

const struct sac_pass sac_pass_expand = {"expand", visit};
