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

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
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
