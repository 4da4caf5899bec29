/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/passes/norms.h"

static bool is_along_last(const struct sac_node *n)
{
    const int rank = n->inputs[0]->rank;
    int       axis;
    return sac_axis_normalise(sac_attr_int(n, "axis", -1), rank, &axis) && axis == rank - 1;
}

bool sac_is_line_norm(const struct sac_node *n)
{
    if (!n || n->output_count != 1 || !n->outputs[0] || !sac_node_input(n, 0))
        return false;
    for (int i = 0; i < n->input_count; i++)
        if (n->inputs[i] && n->inputs[i]->dtype != SAC_F32)
            return false;
    if (sac_is_fused(n, "FusedNorm"))
        return sac_attr_int(n, "y_type", SAC_QUANT_FLOAT) == SAC_QUANT_FLOAT;
    return sac_is(n, "LayerNormalization") || sac_is(n, "RMSNormalization") ||
           (sac_is(n, "LpNormalization") && is_along_last(n));
}

static sac_result set_kind(struct sac_graph *g, struct sac_node *made, const struct sac_node *norm)
{
    const bool lp = sac_is(norm, "LpNormalization");
    const int  kind = lp ? sac_attr_int(norm, "p", 2) == 1 ? SAC_NORM_L1 : SAC_NORM_L2
                      : sac_is(norm, "LayerNormalization") ? SAC_NORM_CENTRED
                                                           : SAC_NORM_ROOT;
    sac_result res = sac_node_set_int(g, made, "kind", kind);
    if (res == SAC_OK && lp)
        return sac_node_set_float(g, made, "epsilon", sac_attr_float(norm, "floor", 0));
    if (res == SAC_OK)
        res = sac_node_copy_attr(g, made, "epsilon", norm);
    return res == SAC_OK ? sac_node_copy_attr(g, made, "axis", norm) : res;
}

struct sac_node *sac_line_norm_again(struct sac_graph *g, const struct sac_node *norm,
                                     sac_result *res)
{
    struct sac_node *made = sac_op_node(g, "saccade", "FusedNorm", SAC_NORM_RESIDUAL + 1, 1, norm);
    if (made)
        *res = sac_is_fused(norm, "FusedNorm") ? sac_copy_attrs(g, made, norm)
                                               : set_kind(g, made, norm);
    if (!made || *res != SAC_OK) {
        *res = SAC_ERR_MEMORY;
        return NULL;
    }
    for (int i = 0; i < norm->input_count; i++)
        made->inputs[i] = norm->inputs[i];
    return made;
}

struct sac_node *sac_norm_before(const struct sac_node *attention, int operand)
{
    const struct sac_value *v = attention->inputs[operand];
    struct sac_node        *norm = v->producer;
    return sac_is_fused(norm, "FusedNorm") && sac_is_line_norm(norm) && v->uses == 1 &&
                   !sac_node_input(norm, SAC_NORM_RESIDUAL) && sac_node_attr(norm, "x")
               ? norm
               : NULL;
}
