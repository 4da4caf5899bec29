/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/passes/taken.h"

static bool slice(const struct sac_node *n, const struct sac_value *v, struct sac_taken *out)
{
    const int64_t           all = v->dims[1];
    struct sac_slice_bounds b;
    if (!sac_slice_constants(n, v->rank, &b) || b.step[1] != 1)
        return false;
    out->first = SAC_CLAMP(b.start[1] < 0 ? b.start[1] + all : b.start[1], 0, all);
    for (int d = 0; d < v->rank; d++)
        if (d != 1 && (b.start[d] != 0 || b.step[d] != 1 || b.end[d] != INT64_MAX))
            out->whole = false;
    return true;
}

static bool split(const struct sac_node *n, const struct sac_value *v, int k, struct sac_taken *out)
{
    const int64_t axis = sac_attr_int(n, "axis", 0);
    if (axis != 1 && axis != 1 - v->rank)
        return false;
    for (int i = 0; i < k; i++) {
        if (!n->outputs[i] || n->outputs[i]->rank != v->rank)
            return false;
        out->first += n->outputs[i]->dims[1];
    }
    return true;
}

/* The channels of v that its reader n puts into output k; false: they are not known. */
static bool taken(const struct sac_node *n, const struct sac_value *v, int k, struct sac_taken *out)
{
    const struct sac_value *part = n->outputs[k];
    if (!part || part->rank != v->rank || sac_node_input(n, 0) != v)
        return false;
    *out = (struct sac_taken){n->outputs[k], 0, part->dims[1], true};
    if (sac_is(n, "Slice") ? !slice(n, v, out) : !sac_is(n, "Split") || !split(n, v, k, out))
        return false;
    out->end += out->first;
    return out->first < out->end && out->end <= v->dims[1];
}

int sac_taken_channels(const struct sac_value *v, struct sac_taken *out, int max)
{
    int count = 0;
    for (size_t i = 0; i < v->reader_count; i++) {
        const struct sac_node *n = v->readers[i];
        if (sac_node_input(n, 0) != v || sac_node_has_subgraph(n))
            return 0;
        for (int k = 0; k < n->output_count; k++)
            if (count == max || !taken(n, v, k, &out[count++]))
                return 0;
    }
    return v->reader_count == (size_t)v->uses ? count : 0; /* no output */
}
