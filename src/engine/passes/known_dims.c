/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of a Shape that do not depend on the batch become constants, and what is computed from
 * them can be folded: the scale of an attention, a mask of windows. Only where nothing but the
 * batch is open: a dim that two sizes of an image have in common may be another for a third (a
 * limit), but hardly for a third batch.
 *
 * Exporters compute the shape that a Reshape makes from Shapes of what they have at hand. Where one
 * dim of it alone is open, it is -1, and nobody asks for those Shapes any more: patterns see a
 * value's readers, and a Shape would be one. */
#include "engine/passes/pass.h"

static bool only_batch_open(const struct sac_graph *g)
{
    for (int i = 0; i < g->input_count; i++)
        for (int d = 1; d < g->inputs[i]->rank; d++)
            if (g->inputs[i]->dims[d] == SAC_DIM_OPEN)
                return false;
    return true;
}

/* Which entries of a Shape n takes: it is the Shape itself, or reads it; -1: unknown. */
static int entries(const struct sac_node *n, int rank, int64_t *index)
{
    size_t count;
    if (sac_is(n, "Shape")) {
        for (int d = 0; d < rank; d++)
            index[d] = d;
        return rank;
    }
    if (!sac_constant_ints(sac_node_input(n, 1), index, SAC_RANK_MAX, &count))
        return -1;
    if (sac_is(n, "Gather"))
        return (int)count;
    const int64_t length = sac_value_elements(n->outputs[0]);
    if (!sac_is(n, "Slice") || count != 1 || sac_node_input(n, 4) || length < 0 || length > rank)
        return -1;
    index[0] = SAC_CLAMP(index[0] + (index[0] < 0 ? rank : 0), 0, rank);
    for (int i = 1; i < length; i++)
        index[i] = index[0] + i;
    return (int)length;
}

static sac_result close_reshape(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    const struct sac_value *shape = sac_node_input(n, 1), *y = n->outputs[0];
    int64_t                 dims[SAC_RANK_MAX];
    int                     open = 0;
    if (!shape || shape->data || y->rank < 1 || !only_batch_open(g))
        return SAC_OK;
    for (int d = 0; d < y->rank; d++) {
        dims[d] = y->dims[d] == SAC_DIM_OPEN ? -1 : y->dims[d];
        open += dims[d] == -1;
        if (dims[d] == 0)
            return SAC_OK;
    }
    if (open > 1)
        return SAC_OK;
    struct sac_tensor_desc desc = {.dtype = SAC_I64, .rank = 1, .shape = {y->rank}};
    n->inputs[1] = sac_graph_constant(g, shape->name, &desc, dims);
    *changed = true;
    return n->inputs[1] ? SAC_OK : SAC_ERR_MEMORY;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    if (sac_is(n, "Reshape"))
        return close_reshape(g, n, changed);
    const struct sac_node *shape =
        sac_is(n, "Shape") ? n : sac_made_by(sac_node_input(n, 0), "Shape");
    const struct sac_value *of = shape ? shape->inputs[0] : NULL, *out = n->outputs[0];
    int64_t                 index[SAC_RANK_MAX], dims[SAC_RANK_MAX] = {0};
    if (!of || of->rank < 0 || sac_node_attr(shape, "start") || sac_node_attr(shape, "end") ||
        !out || out->rank < 0 || out->rank > 1 || out->uses == 0 || !only_batch_open(g))
        return SAC_OK;
    const int count = entries(n, of->rank, index);
    if (count < 0 || count != sac_value_elements(out))
        return SAC_OK;
    for (int i = 0; i < count; i++) {
        const int64_t at = index[i] + (index[i] < 0 ? of->rank : 0);
        if (at < 0 || at >= of->rank || of->dims[at] <= 0)
            return SAC_OK;
        dims[i] = of->dims[at];
    }
    struct sac_tensor_desc desc = {.dtype = SAC_I64, .rank = out->rank, .shape = {count}};
    struct sac_value      *made = sac_graph_constant(g, out->name, &desc, dims);
    if (!made)
        return SAC_ERR_MEMORY;
    sac_graph_replace(g, n->outputs[0], made);
    *changed = true;
    return SAC_OK;
}

const struct sac_pass sac_pass_known_dims = {"known-dims", visit};
