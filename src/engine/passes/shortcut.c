/* SPDX-License-Identifier: Apache-2.0 */
/* A shortcut of fewer channels than what it is added to (networks that grow a little with each
 * block) is a residual of the convolution, whose other channels have none. Exporters write it as
 * Slices of both parts, a sum of one and a Concat, or as a residual that is padded by channels of
 * zeros. */
#include "engine/passes/taken.h"

struct shortcut {
    struct sac_value *added;
    struct sac_node  *last; /* what makes the sum */
};

/* ---- a residual that is Pad(x) ---- */

/* A Pad of zeros behind the channels alone. */
static bool pads_channels(const struct sac_node *n, int rank)
{
    int64_t pads[2 * SAC_RANK_MAX];
    bool    alone = n && sac_zero_pads(n, rank, pads) && pads[rank + 1] > 0;
    for (int i = 0; alone && i < 2 * rank; i++)
        alone = i == rank + 1 || pads[i] == 0;
    return alone;
}

static sac_result drop_pad(struct sac_node *n, bool *changed)
{
    const struct sac_node *pad = sac_made_by(n->inputs[SAC_RESIDUAL_INPUT], "Pad");
    if (pads_channels(pad, n->outputs[0]->rank) && !pad->inputs[0]->data) {
        n->inputs[SAC_RESIDUAL_INPUT] = pad->inputs[0];
        *changed = true;
    }
    return SAC_OK;
}

/* ---- Concat(first channels of v + x, the others) ---- */

/* The two parts of v, if these are all that is read of it. */
static bool take_apart(const struct sac_value *v, struct sac_taken out[2])
{
    if (sac_taken_channels(v, out, 2) != 2 || !out[0].whole || !out[1].whole)
        return false;
    if (out[0].first > out[1].first) {
        const struct sac_taken first = out[1];
        out[1] = out[0];
        out[0] = first;
    }
    return out[0].first == 0 && out[0].end == out[1].first && out[1].end == v->dims[1];
}

static bool find_parts(const struct sac_value *v, struct shortcut *s)
{
    struct sac_taken part[2];
    if (!take_apart(v, part))
        return false;
    struct sac_node        *sum = sac_value_only_reader(part[0].value);
    struct sac_node        *rest = sac_value_only_reader(part[1].value);
    struct sac_value       *x = sac_residual_beside(sum, part[0].value);
    const struct sac_value *both = x ? sum->outputs[0] : NULL;
    if (!x || x == part[1].value || !sac_is(rest, "Concat") || rest->input_count != 2 ||
        rest->inputs[0] != both || rest->inputs[1] != part[1].value || both->uses != 1)
        return false;
    const int64_t axis = sac_attr_int(rest, "axis", 1);
    *s = (struct shortcut){x, rest};
    return axis == 1 || axis == 1 - v->rank;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct shortcut s;
    if (!sac_is_dense_conv(n))
        return SAC_OK;
    if (sac_node_input(n, SAC_RESIDUAL_INPUT))
        return drop_pad(n, changed);
    if (!find_parts(n->outputs[0], &s))
        return SAC_OK;
    const bool       plain = sac_attr_int(n, "activation", SAC_ACT_NONE) == SAC_ACT_NONE;
    struct sac_node *made = sac_op_node(g, "saccade", "FusedConv", 4, 1, n);
    sac_result       res = made ? sac_copy_attrs(g, made, n) : SAC_ERR_MEMORY;
    for (int i = 0; res == SAC_OK && i < 3; i++)
        made->inputs[i] = sac_node_input(n, i);
    if (res == SAC_OK)
        res =
            sac_node_set_int(g, made, "residual", plain ? SAC_RESIDUAL_BEFORE : SAC_RESIDUAL_AFTER);
    if (res != SAC_OK)
        return res;
    made->inputs[SAC_RESIDUAL_INPUT] = s.added;
    *changed = true;
    return sac_take_over(g, made, s.last);
}

const struct sac_pass sac_pass_shortcut = {"shortcut", visit};
