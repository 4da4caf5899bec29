/* SPDX-License-Identifier: Apache-2.0 */
/* What a norm of lines alone makes for a sum, x + LayerNormalization(f(x)), is added to x at once:
 * transformers that normalise behind their layers have two such sums each. */
#include "engine/passes/norms.h"

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    sac_result       res = SAC_OK;
    struct sac_node *add = sac_is_line_norm(n) ? sac_only_reader(n, "Add") : NULL;
    if (!add || !add->outputs[0] || sac_node_input(n, SAC_NORM_RESIDUAL))
        return SAC_OK;
    struct sac_value *other = sac_other_input(add, n->outputs[0]);
    if (!other || other->data || !sac_same_shape(other, n->outputs[0]) ||
        !sac_same_shape(other, add->outputs[0]))
        return SAC_OK;
    struct sac_node *made = sac_line_norm_again(g, n, &res);
    if (!made)
        return res;
    made->inputs[SAC_NORM_RESIDUAL] = other;
    *changed = true;
    return sac_take_over(g, made, add);
}

const struct sac_pass sac_pass_norm_sum = {"norm-sum", visit};
