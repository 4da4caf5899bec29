/* SPDX-License-Identifier: Apache-2.0 */
/* What a norm or attention makes and a QuantizeLinear alone reads is written in 8 bits at once: one
 * step, and no numbers of 16 or 32 bits between the two. Convolutions and products do so too
 * (quantised.c), but before their weights are folded. */
#include "engine/passes/pass.h"

/* The QuantizeLinear that alone reads what n makes, by one scale; NULL: none. */
static struct sac_node *rounder(const struct sac_node *n, struct sac_to_bytes *y)
{
    struct sac_node *reader = sac_only_reader(n, "QuantizeLinear");
    return reader && reader->inputs[0] == n->outputs[0] && sac_makes_bytes(reader, y) ? reader
                                                                                      : NULL;
}

static bool reads_floats(const struct sac_node *n)
{
    for (int i = 0; i < n->input_count; i++)
        if (n->inputs[i] && n->inputs[i]->dtype != SAC_F32)
            return false;
    return true;
}

static bool is_norm(const struct sac_node *n)
{
    return sac_is(n, "LayerNormalization") || sac_is(n, "RMSNormalization");
}

static bool can_round(const struct sac_node *n)
{
    return is_norm(n) || ((sac_is_fused(n, "FusedNorm") || sac_is_fused(n, "FusedAttention")) &&
                          sac_attr_int(n, "y_type", SAC_QUANT_FLOAT) == SAC_QUANT_FLOAT);
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct sac_to_bytes y;
    struct sac_node    *reader = can_round(n) ? rounder(n, &y) : NULL;
    if (!reader || !reads_floats(n))
        return SAC_OK;
    *changed = true;
    struct sac_node *made =
        sac_op_node(g, "saccade", is_norm(n) ? "FusedNorm" : n->op_type, n->input_count, 1, n);
    sac_result res = made ? sac_copy_attrs(g, made, n) : SAC_ERR_MEMORY;
    for (int i = 0; res == SAC_OK && i < n->input_count; i++)
        made->inputs[i] = n->inputs[i];
    if (res == SAC_OK && is_norm(n))
        res = sac_node_set_int(g, made, "kind",
                               sac_is(n, "LayerNormalization") ? SAC_NORM_CENTRED : SAC_NORM_ROOT);
    if (res == SAC_OK)
        res = sac_set_bytes(g, made, &y);
    return res == SAC_OK ? sac_take_over(g, made, reader) : res;
}

const struct sac_pass sac_pass_rounded = {"rounded", visit};
