/* SPDX-License-Identifier: Apache-2.0 */
/* (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon), over all numbers of a sample, with the
 * scale and shift per channel that follow, is one SampleNorm. Exporters without an instance
 * normalisation write it this way. */
#include <math.h>
#include <string.h>

#include "engine/passes/pass.h"

/* A Transpose or Reshape that leaves each number in its sample. */
static bool moves_within_samples(const struct sac_node *n)
{
    const int64_t *perm;
    if (sac_is(n, "Transpose"))
        return sac_attr_ints(n, "perm", &perm) > 0 && perm[0] == 0;
    return sac_is(n, "Reshape") && n->inputs[0]->rank > 0 && n->outputs[0]->rank > 0 &&
           n->inputs[0]->dims[0] == n->outputs[0]->dims[0];
}

/* Reordering numbers does not change a mean over all of them. */
static struct sac_value *before_moves(struct sac_value *v)
{
    while (v && moves_within_samples(v->producer))
        v = v->producer->inputs[0];
    return v;
}

/* Broadcast over x, does v have one number per sample? A mean per sample of shape [N] would align
 * with the last axis instead. */
static bool one_per_sample(const struct sac_value *v, const struct sac_value *x)
{
    if (sac_value_elements(v) == 1)
        return x->rank > 0 && x->dims[0] == 1;
    for (int d = 1; d < v->rank; d++)
        if (v->dims[d] != 1)
            return false;
    return v->rank > 0 && v->rank == x->rank && v->dims[0] == x->dims[0];
}

/* v = mean over each whole sample of *of, moved or not. */
static bool is_sample_mean(struct sac_value *v, struct sac_value **of)
{
    const struct sac_node *n = before_moves(v)->producer;
    bool                   reduced[SAC_RANK_MAX];
    if (!sac_is(n, "ReduceMean"))
        return false;
    const struct sac_value *x = n->inputs[0];
    if (!sac_reduce_axes(n, x->rank, reduced) || x->rank < 2 || (reduced[0] && x->dims[0] != 1))
        return false;
    for (int d = 1; d < x->rank; d++)
        if (!reduced[d])
            return false;
    *of = before_moves(n->inputs[0]);
    return true;
}

/* v = d * d or d^2 for a moved d. */
static struct sac_value *square_of(struct sac_value *v)
{
    struct sac_node *n = before_moves(v)->producer;
    float            two;
    if (sac_is(n, "Mul") && n->inputs[0] == n->inputs[1])
        return before_moves(n->inputs[0]);
    if (sac_is(n, "Pow") && sac_constant_scalar(n->inputs[1], &two) && two == 2)
        return before_moves(n->inputs[0]);
    return NULL;
}

/* v = sqrt(mean(d^2) + epsilon). */
static struct sac_value *deviation_of(struct sac_value *v, float *epsilon)
{
    struct sac_value      *squared;
    const struct sac_node *root = before_moves(v)->producer;
    const struct sac_node *add =
        sac_is(root, "Sqrt") ? before_moves(root->inputs[0])->producer : NULL;
    if (!sac_is(add, "Add"))
        return NULL;
    for (int i = 0; i < 2; i++)
        if (sac_constant_scalar(add->inputs[1 - i], epsilon) &&
            is_sample_mean(add->inputs[i], &squared))
            return square_of(squared);
    return NULL;
}

static struct sac_node *make_norm(struct sac_graph *g, struct sac_node *n, struct sac_value *x,
                                  float epsilon)
{
    struct sac_node *norm = sac_op_node(g, "saccade", "SampleNorm", 3, 1, n);
    if (!norm || sac_node_set_float(g, norm, "epsilon", epsilon) != SAC_OK)
        return NULL;
    norm->inputs[0] = x;
    return norm;
}

/* n = Div(moved(x - mean), deviation). The move, if any, goes before the normalisation. */
static sac_result match_div(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    float             epsilon;
    struct sac_value *moved = n->inputs[0], *centred = moved;
    struct sac_node  *move = sac_made_by(moved, "Transpose");
    if (move && moves_within_samples(move))
        centred = move->inputs[0];
    struct sac_node  *sub = sac_made_by(centred, "Sub");
    struct sac_value *of;
    if (!sub || deviation_of(n->inputs[1], &epsilon) != centred ||
        !is_sample_mean(sub->inputs[1], &of) || of != before_moves(sub->inputs[0]) ||
        !one_per_sample(sub->inputs[1], centred) || !one_per_sample(n->inputs[1], moved) ||
        !sac_same_shape(n->outputs[0], moved) || n->outputs[0]->dtype != SAC_F32)
        return SAC_OK;
    struct sac_value *x = sub->inputs[0];
    if (move) {
        struct sac_node *again = sac_op_node(g, "", "Transpose", 1, 1, move);
        if (!again || sac_node_copy_attr(g, again, "perm", move) != SAC_OK)
            return SAC_ERR_MEMORY;
        again->inputs[0] = x;
        x = again->outputs[0] = sac_value_like(g, moved);
        if (!x)
            return SAC_ERR_MEMORY;
    }
    struct sac_node *norm = make_norm(g, n, x, epsilon);
    *changed = true;
    return norm ? sac_take_over(g, norm, n) : SAC_ERR_MEMORY;
}

/* Mul or Add of one number per channel after a SampleNorm, which may lie behind a Reshape that
 * keeps the numbers' order. */
static sac_result absorb(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    const int input = sac_is(n, "Mul") ? 1 : 2;
    for (int i = 0; i < 2; i++) {
        struct sac_value *v = n->inputs[i];
        struct sac_node  *norm = v->producer;
        if (!sac_is_fused(norm, "SampleNorm") || v->uses != 1 || v->rank < 2 ||
            v->dims[1] == SAC_DIM_OPEN || !sac_same_shape(v, n->outputs[0]) ||
            sac_node_input(norm, input) || (input == 1 && sac_node_input(norm, 2)) ||
            sac_attr_int(norm, "activation", SAC_ACT_NONE) != SAC_ACT_NONE)
            continue;
        float            *numbers;
        struct sac_value *made = sac_new_floats(g, n->op_type, 1, &v->dims[1], &numbers);
        if (!made)
            return SAC_ERR_MEMORY;
        if (!sac_constant_per_channel(n->inputs[1 - i], v->rank, v->dims[1], numbers))
            continue;
        norm->inputs[input] = made;
        sac_graph_changed(g, norm);
        sac_graph_replace(g, n->outputs[0], v);
        *changed = true;
        return SAC_OK;
    }
    return SAC_OK;
}

/* SampleNorm, then a Reshape [N,a,b] to [N,c,1,1] of the same numbers: normalise after it, so that
 * the per-channel constants that follow fit. */
static sac_result norm_after_view(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct sac_node *norm = n->inputs[0]->producer;
    if (!sac_is_fused(norm, "SampleNorm") || n->inputs[0]->uses != 1 || sac_node_input(norm, 1) ||
        sac_node_input(norm, 2) || n->outputs[0]->rank < 2 ||
        n->outputs[0]->dims[0] != n->inputs[0]->dims[0])
        return SAC_OK;
    struct sac_node *view = sac_op_node(g, "", "Reshape", 2, 1, n);
    if (!view || sac_node_copy_attr(g, view, "allowzero", n) != SAC_OK)
        return SAC_ERR_MEMORY;
    view->inputs[0] = norm->inputs[0];
    view->inputs[1] = n->inputs[1];
    struct sac_node *after = make_norm(g, norm, NULL, sac_attr_float(norm, "epsilon", 0));
    if (!after)
        return SAC_ERR_MEMORY;
    sac_result res = sac_take_over(g, after, n);
    if (res == SAC_OK)
        res = sac_take_over(g, view, n);
    after->inputs[0] = view->outputs[0];
    *changed = true;
    return res;
}

static sac_result absorb_activation(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct sac_activation act;
    struct sac_node      *norm = sac_node_input(n, 0) ? n->inputs[0]->producer : NULL;
    if (!sac_is_fused(norm, "SampleNorm") || n->inputs[0]->uses != 1 ||
        !sac_activation_of(n, &act) ||
        sac_attr_int(norm, "activation", SAC_ACT_NONE) != SAC_ACT_NONE)
        return SAC_OK;
    sac_graph_replace(g, n->outputs[0], n->inputs[0]);
    *changed = true;
    return sac_set_activation(g, norm, &act);
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    if (n->output_count != 1 || !n->outputs[0] || !sac_node_input(n, 0))
        return SAC_OK;
    if (sac_is(n, "Div") && n->inputs[1])
        return match_div(g, n, changed);
    if ((sac_is(n, "Mul") || sac_is(n, "Add")) && n->inputs[1])
        return absorb(g, n, changed);
    if (sac_is(n, "Reshape"))
        return norm_after_view(g, n, changed);
    return absorb_activation(g, n, changed);
}

const struct sac_pass sac_pass_norm = {"norm", visit};
