/* SPDX-License-Identifier: Apache-2.0 */
/* A chain of nodes that only move numbers is one Rearrange: a roll (a Concat of two Slices, for
 * each axis), windows of it (Reshape, Transpose, Reshape) and the way back, space to depth by
 * Slices and a Concat, padding before any of that. So is one with the sum after it. Transposes
 * between channels first and last stay as they are where they stand at the end, and alone: there
 * the planner makes a view of them. */
#include "engine/passes/digits.h"

static bool is_step(const struct sac_node *n)
{
    return (sac_is_move(n) && !sac_turns_first(n) && !sac_turns_last(n)) || sac_takes_map(n);
}

/* Does the node itself, or one that goes with it, read this value so often that nobody else can? */
static bool goes_too(const struct sac_digits_seen *seen, const bool *gone,
                     const struct sac_node *root, const struct sac_value *v)
{
    int reads = 0;
    for (int i = 0; i < root->input_count; i++)
        reads += root->inputs[i] == v;
    for (int k = 0; k < seen->count; k++)
        for (int i = 0; gone[k] && seen->node[k] != root && i < seen->node[k]->input_count; i++)
            reads += seen->node[k]->inputs[i] == v;
    return reads == v->uses;
}

/* Would the node be read by nobody else? */
static bool all_go_too(const struct sac_digits_seen *seen, const bool *gone,
                       const struct sac_node *root, const struct sac_node *n)
{
    bool all = true;
    for (int i = 0; i < n->output_count; i++)
        all &= !n->outputs[i] || goes_too(seen, gone, root, n->outputs[i]);
    return all;
}

/* The steps of the chain that are no longer needed once `root` reads its base. */
static int steps_saved(const struct sac_digits_seen *seen, const struct sac_node *root)
{
    bool gone[SAC_DIGITS_SEEN_MAX] = {false};
    int  saved = 0;
    for (bool more = true; more;) {
        more = false;
        for (int k = 0; k < seen->count; k++) {
            if (gone[k] || seen->node[k] == root || !all_go_too(seen, gone, root, seen->node[k]))
                continue;
            gone[k] = more = true;
            saved += is_step(seen->node[k]);
        }
    }
    return saved;
}

/* A sum reads channels of a map where they lie. */
static bool cuts_channels(const struct sac_node *n)
{
    struct sac_slice_bounds b;
    if (!sac_is(n, "Slice") || !sac_is_map(n->inputs[0]) ||
        !sac_slice_constants(n, n->inputs[0]->rank, &b))
        return false;
    for (int d = 0; d < n->inputs[0]->rank; d++)
        if (b.step[d] != 1 || (d != 1 && (b.start[d] != 0 || b.end[d] != INT64_MAX)))
            return false;
    return true;
}

static bool only_cuts_channels(const struct sac_digits_seen *seen)
{
    bool only = true;
    for (int k = 0; k < seen->count; k++)
        only &= cuts_channels(seen->node[k]);
    return only;
}

/* n, the end of a chain. */
static sac_result join_chain(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct sac_digits      s;
    struct sac_digits_seen seen;
    bool                   fits;
    if (!sac_digits_of(&s, n->outputs[0], &seen) || steps_saved(&seen, n) < 1)
        return SAC_OK;
    struct sac_node *made = sac_digits_node(g, &s, n->outputs[0], n, &fits);
    if (!made)
        return fits ? SAC_ERR_MEMORY : SAC_OK;
    *changed = true;
    return sac_take_over(g, made, n);
}

/* A sum of what a chain moves and a value of the same shape. */
static sac_result join_sum(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct sac_digits      s;
    struct sac_digits_seen seen;
    bool                   fits;
    for (int i = 0; i < 2; i++) {
        struct sac_value *v = n->inputs[i], *r = n->inputs[1 - i];
        if (!v || !r || v == r || v->data || r->data || v->dtype != SAC_F32 ||
            !sac_same_shape(v, r) || !sac_same_shape(v, n->outputs[0]) ||
            !sac_digits_of(&s, v, &seen) || steps_saved(&seen, n) < 1 || only_cuts_channels(&seen))
            continue;
        struct sac_node *made = sac_digits_node(g, &s, v, n, &fits);
        if (!made && fits)
            return SAC_ERR_MEMORY;
        if (!made)
            continue;
        made->inputs[1] = r;
        *changed = true;
        return sac_take_over(g, made, n);
    }
    return SAC_OK;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    if (n->output_count != 1 || !n->outputs[0])
        return SAC_OK;
    if (sac_is(n, "Add"))
        return join_sum(g, n, changed);
    const bool shapes = sac_is(n, "Reshape") && sac_node_input(n, 0) &&
                        sac_is_fused(n->inputs[0]->producer, "Rearrange");
    return shapes || (is_step(n) && !sac_is_fused(n, "Rearrange")) ? join_chain(g, n, changed)
                                                                   : SAC_OK;
}

const struct sac_pass sac_pass_rearrange = {"rearrange", visit};
