/* SPDX-License-Identifier: Apache-2.0 */
/* What an Expand repeats for each sample, and is then worked on in the same way, is worked on once:
 * op(Expand(x)) is Expand(op(x)). Positions that a network projects anew for each picture become
 * constants so, where they are folded. */
#include "engine/passes/pass.h"

/* One entry that becomes many, all of whose other dims stay. */
static bool repeats(const struct sac_node *n)
{
    const struct sac_value *x = sac_node_input(n, 0), *shape = sac_node_input(n, 1);
    if (!sac_is(n, "Expand") || !x || !shape || !n->outputs[0])
        return false;
    const struct sac_value *y = n->outputs[0];
    bool same = x->rank == y->rank && x->rank > 1 && x->dims[0] == 1 && y->dims[0] != 1 &&
                shape->rank == 1 && shape->dims[0] == y->rank;
    for (int d = 1; same && d < y->rank; d++)
        same = x->dims[d] == y->dims[d] && x->dims[d] != SAC_DIM_OPEN;
    return same;
}

/* Each number by itself; some have constants beside them. */
static bool is_elementwise(const struct sac_node *n)
{
    static const char *const types[] = {
        "Abs",  "Add", "Cast",    "Clip",       "Cos",       "Div",         "Elu",
        "Erf",  "Exp", "Gelu",    "Log",        "LeakyRelu", "Max",         "Min",
        "Mul",  "Neg", "Pow",     "Reciprocal", "Relu",      "Sin",         "HardSwish",
        "Sqrt", "Sub", "Sigmoid", "Sum",        "Tanh",      "HardSigmoid", "Softplus"};
    return sac_is_any(n, types, SAC_COUNT(types));
}

/* Do all inputs but that have one entry for all samples? */
static bool others_are_for_all(const struct sac_node *n, int of)
{
    const int rank = n->inputs[of]->rank;
    for (int i = 0; i < n->input_count; i++) {
        const struct sac_value *v = n->inputs[i];
        if (i != of && v && (v->rank < 0 || v->rank > rank || (v->rank == rank && v->dims[0] != 1)))
            return false;
    }
    return true;
}

/* Does n do the same with each entry of input `of`? */
static bool is_for_each(const struct sac_node *n, int of)
{
    static const char *const reductions[] = {"ReduceL1",   "ReduceL2",  "ReduceMax", "ReduceMean",
                                             "ReduceProd", "ReduceMin", "ReduceSum"};
    const int                rank = n->inputs[of]->rank;
    const int64_t           *perm;
    bool                     reduced[SAC_RANK_MAX];
    int                      axis;
    if (is_elementwise(n))
        return others_are_for_all(n, of);
    if (of)
        return false;
    if (sac_is(n, "MatMul"))
        return rank > 2 && n->inputs[1]->rank == 2;
    if (sac_is(n, "Transpose"))
        return sac_node_attr(n, "perm") && sac_attr_ints(n, "perm", &perm) && perm[0] == 0;
    if (sac_is(n, "Softmax"))
        return sac_softmax_axis(n, rank, &axis) && axis > 0;
    return sac_is_any(n, reductions, SAC_COUNT(reductions)) && sac_reduce_axes(n, rank, reduced) &&
           !reduced[0];
}

/* The dims of y, of which only the first is not that of x: `first` of those that `from` expands to,
 * and ones. */
static struct sac_value *expanded_shape(struct sac_graph *g, const struct sac_node *from, int rank,
                                        sac_result *res)
{
    const struct sac_tensor_desc desc = {.dtype = SAC_I64, .rank = 1, .shape = {rank - 1}};
    int64_t                      ones[SAC_RANK_MAX];
    for (int d = 0; d < rank; d++)
        ones[d] = 1;
    struct sac_value *first = sac_part_of(g, from, from->inputs[1], 0, 0, 1, res);
    if (rank == 1 || !first)
        return first;
    struct sac_value *in[] = {first, sac_graph_constant(g, first->name, &desc, ones)};
    struct sac_value *all = sac_made_of(g, from, "Concat", 2, in, res);
    if (!all)
        return NULL;
    all->dims[0] = rank;
    *res = sac_node_set_int(g, all->producer, "axis", 0);
    return *res == SAC_OK ? all : NULL;
}

/* n, of what is not expanded yet. */
static struct sac_value *of_one(struct sac_graph *g, struct sac_node *n, int of,
                                struct sac_value *one, sac_result *res)
{
    struct sac_node  *made = sac_op_node(g, n->domain, n->op_type, n->input_count, 1, n);
    struct sac_value *y = made ? sac_value_like(g, n->outputs[0]) : NULL;
    *res = y ? sac_copy_attrs(g, made, n) : SAC_ERR_MEMORY;
    if (*res != SAC_OK)
        return NULL;
    for (int i = 0; i < n->input_count; i++)
        made->inputs[i] = i == of ? one : n->inputs[i];
    made->outputs[0] = y;
    y->producer = made;
    y->dims[0] = 1;
    y->batches = 0;
    return y;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    int              of = 0;
    struct sac_node *expand = NULL;
    for (; of < n->input_count; of++) {
        expand = n->inputs[of] ? sac_made_by(n->inputs[of], "Expand") : NULL;
        if (expand && repeats(expand))
            break;
    }
    if (of == n->input_count || n->output_count != 1 || sac_node_has_subgraph(n) ||
        n->outputs[0]->rank < 1 || !is_for_each(n, of))
        return SAC_OK;
    sac_result        res = SAC_OK;
    struct sac_value *one = of_one(g, n, of, expand->inputs[0], &res);
    struct sac_value *shape = one ? expanded_shape(g, expand, one->rank, &res) : NULL;
    struct sac_node  *made = shape ? sac_op_node(g, "", "Expand", 2, 1, n) : NULL;
    if (!made)
        return res != SAC_OK ? res : SAC_ERR_MEMORY;
    made->inputs[0] = one;
    made->inputs[1] = shape;
    *changed = true;
    return sac_take_over(g, made, n);
}

const struct sac_pass sac_pass_repeated = {"repeated", visit};
