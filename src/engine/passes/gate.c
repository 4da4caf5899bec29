/* SPDX-License-Identifier: Apache-2.0 */
/* Channel gates: x * g, where g holds one number per channel and sample (squeeze-and-excitation),
 * and sums of such products (the branches of an omni-scale block) are one GatedSum, with the
 * activation that follows. One that a shortcut is added to, or that has a factor, is left to the
 * chain of what is done to each number, which reads and writes the maps once. */
#include "engine/passes/pass.h"

enum { INPUTS_MAX = 16 };

static bool is_gate(const struct sac_value *x, const struct sac_value *g)
{
    if (x->data || x->rank < 3 || g->rank != x->rank || x->dtype != SAC_F32 ||
        g->dtype != SAC_F32 || x->dims[1] == SAC_DIM_OPEN || g->dims[1] != x->dims[1] ||
        (g->dims[0] != x->dims[0] && g->dims[0] != 1))
        return false;
    if (g->data && (sac_made_by(x, "Conv") || sac_made_by(x, "Concat") || x->rank == 3 ||
                    sac_made_by(x, "Softmax")))
        return false; /* a frozen batch norm, which the weights of convolutions take; a mask of
                         tokens, [1,tokens,1], or shares of heads, which are no channels */
    bool wide = false;
    for (int d = 2; d < x->rank; d++) {
        if (g->dims[d] != 1)
            return false;
        wide |= x->dims[d] != 1;
    }
    return wide;
}

static sac_result gated_sum(struct sac_graph *g, struct sac_node *n, struct sac_value **inputs,
                            int count, bool *changed)
{
    struct sac_node *made = sac_op_node(g, "saccade", "GatedSum", count, 1, n);
    if (!made)
        return SAC_ERR_MEMORY;
    for (int i = 0; i < count; i++)
        made->inputs[i] = inputs[i];
    *changed = true;
    return sac_take_over(g, made, n);
}

static bool is_gated(const struct sac_value *v)
{
    const struct sac_node *n = v->producer;
    if (sac_is_fused(n, "GatedSum"))
        return true;
    return sac_is(n, "Mul") && n->inputs[0] && n->inputs[1] &&
           (is_gate(n->inputs[0], n->inputs[1]) || is_gate(n->inputs[1], n->inputs[0]));
}

/* Does n's only reader multiply it by a constant, or add a map without a gate? */
static bool goes_on(const struct sac_node *n)
{
    const struct sac_value *v = n->outputs[0];
    const struct sac_node  *next = sac_only_reader(n, NULL);
    const bool              sum = sac_is(next, "Add");
    const struct sac_value *other = sum || sac_is(next, "Mul") ? sac_other_input(next, v) : NULL;
    if (!other || other == v || !sac_same_shape(next->outputs[0], v))
        return false;
    return sum ? sac_same_shape(other, v) && !is_gated(other) : other->data != NULL;
}

static bool is_activated(const struct sac_node *n)
{
    return sac_attr_int(n, "activation", SAC_ACT_NONE) != SAC_ACT_NONE;
}

/* n is an activation of what only it reads. */
static sac_result absorb_activation(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct sac_activation  act;
    const struct sac_node *sum = n->inputs[0]->producer;
    if (!sac_is_fused(sum, "GatedSum") || n->inputs[0]->uses != 1 || is_activated(sum) ||
        !sac_activation_of(n, &act))
        return SAC_OK;
    struct sac_node *made = sac_op_node(g, "saccade", "GatedSum", sum->input_count, 1, n);
    sac_result       res = made ? sac_copy_attrs(g, made, sum) : SAC_ERR_MEMORY;
    for (int i = 0; res == SAC_OK && i < sum->input_count; i++)
        made->inputs[i] = sum->inputs[i];
    if (res == SAC_OK)
        res = sac_set_activation(g, made, &act);
    *changed = true;
    return res == SAC_OK ? sac_take_over(g, made, n) : res;
}

static sac_result sum_up(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct sac_value *inputs[INPUTS_MAX];
    int               count = 0;
    for (int i = 0; i < 2; i++) {
        const struct sac_node *part = n->inputs[i]->producer;
        if (!sac_is_fused(part, "GatedSum") || n->inputs[i]->uses != 1 || is_activated(part) ||
            count + part->input_count > INPUTS_MAX || !sac_same_shape(n->inputs[i], n->outputs[0]))
            return SAC_OK;
        for (int k = 0; k < part->input_count; k++)
            inputs[count++] = part->inputs[k];
    }
    return gated_sum(g, n, inputs, count, changed);
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    if (n->input_count < 1 || n->output_count != 1 || !n->inputs[0])
        return SAC_OK;
    if (n->input_count != 2 || !n->inputs[1] || (!sac_is(n, "Mul") && !sac_is(n, "Add")))
        return absorb_activation(g, n, changed);
    if (sac_is(n, "Add"))
        return sum_up(g, n, changed);
    if (goes_on(n))
        return SAC_OK;
    for (int i = 0; i < 2; i++)
        if (is_gate(n->inputs[i], n->inputs[1 - i])) {
            struct sac_value *pair[2] = {n->inputs[i], n->inputs[1 - i]};
            return gated_sum(g, n, pair, 2, changed);
        }
    return SAC_OK;
}

const struct sac_pass sac_pass_gate = {"gate", visit};
