/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "engine/ops/batch.h"

bool sac_batch_refuse(struct sac_batch_walk *w, const char *why)
{
    snprintf(w->why, sizeof w->why, "%s", why);
    return false;
}

int sac_batch_axis(const struct sac_batch_walk *w, const struct sac_value *v)
{
    return v ? w->axis[v->id] : -1;
}

bool sac_batch_edit(struct sac_batch_walk *w, struct sac_batch_edit e)
{
    if (!sac_grow((void **)&w->edits, &w->edit_cap, w->edit_count + 1, sizeof *w->edits))
        return sac_batch_refuse(w, "no memory");
    w->edits[w->edit_count++] = e;
    return true;
}

bool sac_batch_ints(const struct sac_node *n, int input, int64_t *out, size_t *count)
{
    const struct sac_value *v = input < n->input_count ? n->inputs[input] : NULL;
    if (!v || !v->data || v->dtype != SAC_I64 || v->rank > 1)
        return false;
    *count = v->rank == 0 ? 1 : (size_t)v->dims[0];
    if (*count > SAC_RANK_MAX)
        return false;
    memcpy(out, v->data, *count * sizeof *out);
    return true;
}

bool sac_batch_axes(const struct sac_node *n, int input, int rank, int64_t *axes, size_t *count)
{
    const int64_t *list;
    *count = sac_attr_ints(n, "axes", &list);
    if (*count > SAC_RANK_MAX)
        return false;
    if (*count)
        memcpy(axes, list, *count * sizeof *axes);
    else if (input < n->input_count && n->inputs[input] && !sac_batch_ints(n, input, axes, count))
        return false;
    for (size_t i = 0; i < *count; i++)
        axes[i] += axes[i] < 0 ? rank : 0;
    return true;
}

bool sac_batch_contains(const int64_t *list, size_t count, int64_t v)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == v)
            return true;
    return false;
}

bool sac_batch_elementwise(struct sac_batch_walk *w, struct sac_node *n, int k, int *out)
{
    int from_right = -1, rank = 0;
    (void)k;
    for (int i = 0; i < n->input_count; i++)
        if (n->inputs[i])
            rank = SAC_MAX(rank, n->inputs[i]->rank);
    for (int i = 0; i < n->input_count; i++) {
        int a = sac_batch_axis(w, n->inputs[i]);
        if (a < 0)
            continue;
        int right = n->inputs[i]->rank - 1 - a;
        if (from_right >= 0 && right != from_right)
            return sac_batch_refuse(w, "its inputs carry the batch on different axes");
        from_right = right;
    }
    for (int i = 0; i < n->input_count; i++) {
        const struct sac_value *v = n->inputs[i];
        if (v && sac_batch_axis(w, v) < 0 && v->rank > from_right &&
            v->dims[v->rank - 1 - from_right] != 1)
            return sac_batch_refuse(w, "an input has another size where the batch is");
    }
    *out = rank - 1 - from_right;
    return true;
}

bool sac_batch_first(struct sac_batch_walk *w, struct sac_node *n, int k, int *out)
{
    for (int i = 1; i < n->input_count; i++)
        if (sac_batch_axis(w, n->inputs[i]) >= 0)
            return sac_batch_refuse(w, "a parameter depends on the input");
    *out = 0;
    return k == 0 || sac_batch_refuse(w, "the batch is not its first axis");
}

static bool along_axis(struct sac_batch_walk *w, struct sac_node *n, int usual, int k, int *out)
{
    int64_t axis = sac_attr_int(n, "axis", usual);
    axis += axis < 0 ? n->inputs[0]->rank : 0;
    *out = k;
    return axis != k || sac_batch_refuse(w, "it works along the batch");
}

bool sac_batch_one_axis(struct sac_batch_walk *w, struct sac_node *n, int k, int *out)
{
    return along_axis(w, n, 0, k, out);
}

bool sac_batch_last_axis(struct sac_batch_walk *w, struct sac_node *n, int k, int *out)
{
    return along_axis(w, n, -1, k, out);
}
