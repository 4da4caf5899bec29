/* SPDX-License-Identifier: Apache-2.0 */
/* A network that swaps RGB and BGR itself (Split, Concat in another order) does so for every frame.
 * This pass moves the swap down through operators that work per channel, into the weights of the
 * first convolution. */
#include <string.h>

#include "engine/passes/pass.h"

enum { CHANNELS_MAX = 64 };

/* The pieces of a Split into single channels, concatenated in another order: out[i] =
 * in[order[i]]. */
static bool reads_order(const struct sac_node *concat, struct sac_value **in, int64_t *order)
{
    const struct sac_node *split = concat->inputs[0] ? concat->inputs[0]->producer : NULL;
    const int              count = concat->input_count;
    if (!sac_is(split, "Split") || count != split->output_count || count > CHANNELS_MAX)
        return false;
    const struct sac_value *x = split->inputs[0];
    int64_t axis = sac_attr_int(split, "axis", 0), other = sac_attr_int(concat, "axis", 0);
    axis += axis < 0 ? x->rank : 0;
    other += other < 0 ? x->rank : 0;
    if (x->rank < 3 || axis != other || axis != 1 || x->dims[1] != count)
        return false;
    bool seen[CHANNELS_MAX] = {false};
    for (int i = 0; i < count; i++) {
        order[i] = -1;
        for (int k = 0; k < count; k++)
            if (concat->inputs[i] == split->outputs[k])
                order[i] = k;
        if (order[i] < 0 || seen[order[i]] || concat->inputs[i]->dims[1] != 1)
            return false;
        seen[order[i]] = true;
    }
    *in = split->inputs[0];
    return true;
}

/* One number per channel c, for the channels in their original order: out[order[i]] = c[i]. */
static struct sac_value *reordered(struct sac_graph *g, const struct sac_value *c, int rank,
                                   int64_t channels, const int64_t *order, bool as_vector)
{
    float   numbers[CHANNELS_MAX], *out;
    int64_t dims[SAC_RANK_MAX] = {channels};
    if (!sac_constant_per_channel(c, rank, channels, numbers))
        return NULL;
    for (int d = 1; d < rank - 1; d++)
        dims[d] = 1;
    struct sac_value *v = sac_new_floats(g, c->name, as_vector ? 1 : rank - 1, dims, &out);
    for (int64_t i = 0; v && i < channels; i++)
        out[order[i]] = numbers[i];
    return v;
}

static sac_result into_weights(struct sac_graph *g, struct sac_node *n, struct sac_value *in,
                               const int64_t *order, bool *changed)
{
    const struct sac_value *w = n->inputs[1];
    if (!sac_constant_floats(w) || sac_value_elements(w) == 0 || sac_attr_int(n, "group", 1) != 1)
        return SAC_OK;
    const int64_t taps = sac_value_elements(w) / (w->dims[0] * w->dims[1]), channels = w->dims[1];
    const float  *from = w->data;
    float        *to;
    struct sac_value *made = sac_new_floats(g, w->name, w->rank, w->dims, &to);
    if (!made)
        return SAC_ERR_MEMORY;
    for (int64_t m = 0; m < w->dims[0]; m++)
        for (int64_t i = 0; i < channels; i++, from += taps)
            memcpy(to + (m * channels + order[i]) * taps, from, (size_t)taps * sizeof *to);
    n->inputs[0] = in;
    n->inputs[1] = made;
    *changed = true;
    return SAC_OK;
}

/* Swap n and the Concat that feeds it: n works on the old order, a new Concat follows it. */
static sac_result move_below(struct sac_graph *g, struct sac_node *n, struct sac_node *concat,
                             bool *changed)
{
    const struct sac_node *split = concat->inputs[0]->producer;
    struct sac_node       *after_split =
        sac_op_node(g, "", "Split", split->input_count, split->output_count, split);
    struct sac_node  *after = sac_op_node(g, "", "Concat", concat->input_count, 1, concat);
    struct sac_value *turned = sac_value_like(g, n->outputs[0]);
    if (!after_split || !after || !turned)
        return SAC_ERR_MEMORY;
    sac_result res = SAC_OK;
    for (int i = 0; i < split->attr_count && res == SAC_OK; i++)
        res = sac_node_copy_attr(g, after_split, split->attrs[i].name, split);
    if (res == SAC_OK)
        res = sac_node_set_int(g, after, "axis", 1);
    for (int k = 0; k < split->output_count && res == SAC_OK; k++) {
        after_split->outputs[k] = sac_value_like(g, split->outputs[k]);
        if (!after_split->outputs[k])
            return SAC_ERR_MEMORY;
        after_split->outputs[k]->producer = after_split;
        for (int i = 0; i < concat->input_count; i++)
            if (concat->inputs[i] == split->outputs[k])
                after->inputs[i] = after_split->outputs[k];
    }
    for (int i = 1; i < split->input_count; i++)
        after_split->inputs[i] = split->inputs[i];
    if (res == SAC_OK)
        res = sac_take_over(g, after, n);
    after_split->inputs[0] = n->outputs[0] = turned;
    *changed = true;
    return res;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    int64_t               order[CHANNELS_MAX];
    struct sac_value     *in, *parts[3] = {NULL};
    struct sac_activation act;
    int                   from = -1;
    if (n->input_count < 1 || n->output_count != 1 || !n->outputs[0])
        return SAC_OK;
    for (int i = 0; i < n->input_count && i < 2; i++)
        if (from < 0 && sac_made_by(n->inputs[i], "Concat") && n->inputs[i]->uses == 1)
            from = i;
    struct sac_node *concat = from < 0 ? NULL : n->inputs[from]->producer;
    if (!concat || !reads_order(concat, &in, order))
        return SAC_OK;
    if (sac_is(n, "Conv") || sac_is_fused(n, "FusedConv"))
        return from == 0 ? into_weights(g, n, in, order, changed) : SAC_OK;
    const struct sac_value *v = n->inputs[from];
    const bool norm = sac_is_fused(n, "SampleNorm"), binary = sac_is(n, "Mul") || sac_is(n, "Add");
    if (!norm && !binary && !sac_activation_of(n, &act))
        return SAC_OK;
    for (int i = 0; (norm || binary) && i < n->input_count; i++) {
        if (i == from || !n->inputs[i])
            continue;
        parts[i] = reordered(g, n->inputs[i], norm ? 2 : v->rank, v->dims[1], order, norm);
        if (!parts[i])
            return SAC_OK;
    }
    for (int i = 0; i < n->input_count && i < 3; i++)
        n->inputs[i] = i == from ? in : parts[i] ? parts[i] : n->inputs[i];
    return move_below(g, n, concat, changed);
}

const struct sac_pass sac_pass_channels = {"channels", visit};
