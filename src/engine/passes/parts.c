/* SPDX-License-Identifier: Apache-2.0 */
/* A Concat of consecutive parts of a value, which together are all of it, takes the value itself:
 * cross-stage blocks split a map in two, and concatenate both halves with what came of the second.
 * The convolution before then writes its place in the Concat (plan/placement.c), and what reads the
 * second half reads it there. A Concat of what another one joins, and more, takes what that one
 * makes: dense blocks join all maps so far for each layer, which so are one map that grows. */
#include <string.h>

#include "engine/passes/pass.h"

/* The outputs of a Split all have a length where one's is known. */
static bool split_part(const struct sac_node *n, const struct sac_value *v, int axis,
                       struct sac_part *out)
{
    const int64_t along = sac_attr_int(n, "axis", 0);
    if ((along < 0 ? along + v->rank : along) != axis)
        return false;
    out->begin = 0;
    for (int i = 0; i < n->output_count; i++) {
        if (!n->outputs[i] || n->outputs[i]->rank != v->rank || n->outputs[i]->dims[axis] < 0)
            return false;
        if (n->outputs[i] == v)
            return true;
        out->begin += n->outputs[i]->dims[axis];
    }
    return false;
}

static bool slice_part(const struct sac_node *n, const struct sac_value *v, int axis,
                       struct sac_part *out)
{
    struct sac_slice_bounds b;
    if (!sac_slice_constants(n, v->rank, &b))
        return false;
    for (int d = 0; d < v->rank; d++)
        if (b.step[d] != 1 || (d != axis && (b.start[d] != 0 || b.end[d] != INT64_MAX)))
            return false;
    const int64_t dim = out->of->dims[axis];
    out->begin = SAC_CLAMP(b.start[axis] + (b.start[axis] < 0 ? dim : 0), 0, dim);
    return true;
}

bool sac_part_along(const struct sac_value *v, int axis, struct sac_part *out)
{
    const struct sac_node *n = v->producer;
    if ((!sac_is(n, "Split") && !sac_is(n, "Slice")) || !n->inputs[0] ||
        n->inputs[0]->rank != v->rank || n->inputs[0]->dims[axis] < 0 || v->dims[axis] < 0)
        return false;
    out->of = n->inputs[0];
    if (!(sac_is(n, "Split") ? split_part : slice_part)(n, v, axis, out))
        return false;
    out->end = out->begin + v->dims[axis];
    return true;
}

/* The inputs from `first` on that together are *whole; 0: they are not. */
static int whole_from(const struct sac_node *n, int first, int axis, struct sac_value **whole)
{
    struct sac_part p;
    int64_t         end = 0;
    int             count = 0;
    *whole = NULL;
    while (first + count < n->input_count && sac_part_along(n->inputs[first + count], axis, &p) &&
           p.begin == end && (!*whole || p.of == *whole)) {
        *whole = p.of;
        end = p.end;
        count++;
        if (end == p.of->dims[axis])
            return count;
    }
    return 0;
}

static int64_t axis_of(const struct sac_node *n)
{
    const int64_t axis = sac_attr_int(n, "axis", 1);
    return axis + (axis < 0 ? n->outputs[0]->rank : 0);
}

/* Joins m just what n does from its input `first` on? */
static bool joins_some_of(const struct sac_node *m, const struct sac_node *n, int first)
{
    if (!sac_is(m, "Concat") || m->output_count != 1 || !m->outputs[0] ||
        m->outputs[0]->rank != n->outputs[0]->rank || axis_of(m) != axis_of(n) ||
        m->input_count < 2 || m->input_count >= n->input_count ||
        first + m->input_count > n->input_count)
        return false;
    for (int k = 0; k < m->input_count; k++)
        if (m->inputs[k] != n->inputs[first + k])
            return false;
    return true;
}

/* The same for what another Concat joins, the longest one. */
static int joined_from(const struct sac_node *n, int first, struct sac_value **joined)
{
    const struct sac_value *v = n->inputs[first];
    int                     count = 0;
    for (size_t i = 0; i < v->reader_count; i++) {
        const struct sac_node *m = v->readers[i];
        if (m->input_count > count && joins_some_of(m, n, first)) {
            *joined = m->outputs[0];
            count = m->input_count;
        }
    }
    return count;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    (void)g;
    if (!sac_is(n, "Concat") || n->output_count != 1 || !n->outputs[0])
        return SAC_OK;
    for (int i = 0; i < n->input_count; i++) {
        struct sac_value *whole;
        int               count = whole_from(n, i, (int)axis_of(n), &whole);
        if (count < 1)
            count = joined_from(n, i, &whole);
        if (count < 1)
            continue;
        n->inputs[i] = whole;
        n->input_count -= count - 1;
        memmove(&n->inputs[i + 1], &n->inputs[i + count],
                (size_t)(n->input_count - i - 1) * sizeof *n->inputs);
        *changed = true;
    }
    return SAC_OK;
}

const struct sac_pass sac_pass_parts = {"parts", visit};
