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

bool sac_fits_beside(const struct sac_value *constant, const struct sac_value *v)
{
    const int missing = v->rank - constant->rank;
    for (int d = 0; missing >= 0 && d < constant->rank; d++)
        if (constant->dims[d] != 1 && constant->dims[d] != v->dims[missing + d])
            return false;
    return missing >= 0;
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

struct sac_heads_reader sac_heads_reader_of(struct sac_node *attention, int operand)
{
    static const char *const names[] = {"q", "k", "v"};
    static const char *const open_names[] = {"q_open", "k_open", "v_open"};
    return (struct sac_heads_reader){attention, operand, names[operand], open_names[operand]};
}

bool sac_heads_reader_before(struct sac_heads_reader *r)
{
    const struct sac_value *v = r->node->inputs[r->input];
    struct sac_node        *n = v->producer;
    const bool              norm = sac_is_fused(n, "FusedNorm") && sac_is_line_norm(n) &&
                      !sac_node_input(n, SAC_NORM_RESIDUAL);
    if ((!norm && !sac_is_fused(n, "FusedRotary")) || v->uses != 1 || !sac_node_attr(n, "x"))
        return false;
    *r = (struct sac_heads_reader){n, 0, "x", "x_open"};
    return true;
}
