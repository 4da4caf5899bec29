/* SPDX-License-Identifier: Apache-2.0 */
/* What stands behind a norm of maps, by samples, groups of channels or channels, joins it: an
 * activation, as in the heads of detectors (FCOS, RetinaNet) and decoders of masks, and a sum with
 * a map before it (residual networks with group norms) or behind it (RAFT's encoders). */
#include <string.h>

#include "engine/passes/pass.h"

/* Groups of a norm whose scale and shift have a number for each channel; 0: it is none. */
static int64_t groups_of(const struct sac_node *n)
{
    const int64_t channels = n->inputs[0] && n->inputs[0]->rank > 1 ? n->inputs[0]->dims[1] : 0;
    if (channels <= 0 || n->output_count != 1 || n->inputs[0]->dtype != SAC_F32)
        return 0;
    if (sac_is(n, "InstanceNormalization"))
        return channels;
    if (sac_is_fused(n, "SampleNorm"))
        return sac_node_input(n, 1) && sac_node_input(n, 2) ? 1 : 0;
    if (sac_is(n, "GroupNormalization") && n->opset < 21 &&
        sac_value_elements(n->inputs[1]) != channels)
        return 0;
    return sac_is(n, "GroupNormalization") || sac_is_fused(n, "FusedGroupNorm")
               ? sac_attr_int(n, "num_groups", 0)
               : 0;
}

/* The norm that makes v for one reader alone. */
static struct sac_node *norm_of(const struct sac_value *v)
{
    struct sac_node *n = v && v->uses == 1 ? v->producer : NULL;
    return n && n->input_count > 2 && groups_of(n) > 0 ? n : NULL;
}

/* A FusedGroupNorm like it, whose output replaces that of `last`. */
static struct sac_node *norm_again(struct sac_graph *g, const struct sac_node *norm,
                                   struct sac_node *last)
{
    const struct sac_activation act = sac_activation_read(norm);
    const int64_t               groups = groups_of(norm);
    struct sac_node            *made =
        sac_op_node(g, "saccade", "FusedGroupNorm", SAC_RESIDUAL_INPUT + 1, 1, norm);
    if (!made)
        return NULL;
    for (int i = 0; i <= SAC_RESIDUAL_INPUT; i++)
        made->inputs[i] = sac_node_input(norm, i);
    sac_result res = sac_node_copy_attr(g, made, "epsilon", norm);
    if (res == SAC_OK)
        res = sac_node_set_int(g, made, "num_groups", groups);
    if (res == SAC_OK)
        res = sac_node_copy_attr(g, made, "residual", norm);
    if (res == SAC_OK)
        res = sac_set_activation(g, made, &act);
    if (res == SAC_OK)
        res = sac_take_over(g, made, last);
    return res == SAC_OK ? made : NULL;
}

static bool is_activated(const struct sac_node *norm)
{
    return sac_attr_int(norm, "activation", SAC_ACT_NONE) != SAC_ACT_NONE;
}

static sac_result absorb_activation(struct sac_graph *g, struct sac_node *n,
                                    const struct sac_activation *act, bool *changed)
{
    const struct sac_node *norm = norm_of(sac_node_input(n, 0));
    if (!norm || is_activated(norm) ||
        sac_attr_int(norm, "residual", SAC_RESIDUAL_NONE) == SAC_RESIDUAL_AFTER)
        return SAC_OK;
    struct sac_node *made = norm_again(g, norm, n);
    *changed = true;
    return made ? sac_set_activation(g, made, act) : SAC_ERR_MEMORY;
}

/* Without an activation so far, the residual is added before one, which may still follow. */
static sac_result absorb_residual(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    for (int i = 0; i < 2; i++) {
        const struct sac_node  *norm = norm_of(n->inputs[i]);
        struct sac_value *const other = sac_residual_beside(n, n->inputs[i]);
        if (!norm || !other || sac_node_input(norm, SAC_RESIDUAL_INPUT))
            continue;
        const bool       activated = is_activated(norm);
        struct sac_node *made = norm_again(g, norm, n);
        if (!made)
            return SAC_ERR_MEMORY;
        made->inputs[SAC_RESIDUAL_INPUT] = other;
        *changed = true;
        return sac_node_set_int(g, made, "residual",
                                activated ? SAC_RESIDUAL_AFTER : SAC_RESIDUAL_BEFORE);
    }
    return SAC_OK;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct sac_activation act;
    if (n->output_count != 1 || !n->outputs[0])
        return SAC_OK;
    if (sac_activation_of(n, &act) && act.kind != SAC_ACT_NONE)
        return absorb_activation(g, n, &act, changed);
    return sac_is(n, "Add") ? absorb_residual(g, n, changed) : SAC_OK;
}

const struct sac_pass sac_pass_norm_ending = {"norm-ending", visit};
