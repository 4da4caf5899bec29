/* SPDX-License-Identifier: Apache-2.0 */
/* A slice that is assigned to, as exporters spell it: a ScatterND with an index for each number,
 * whose every component counts up along an axis of its own. Written to all places, it is what is
 * written; to a stretch of one axis, a Concat of that with what stands before and behind it. */
#include <string.h>

#include "engine/ops/util.h"
#include "engine/passes/pass.h"

/* The places along each indexed axis, which follow each other. An open axis is covered as a whole:
 * its length is SAC_DIM_OPEN. */
struct box {
    int     rank;
    int64_t start[SAC_RANK_MAX], length[SAC_RANK_MAX];
};

/* ---- constant indices ---- */

/* The next place of a grid behind `at`, in the numbers' order. */
static void next_place(int64_t *at, const int64_t *dims, int rank)
{
    for (int d = rank - 1; d >= 0 && ++at[d] == dims[d]; d--)
        at[d] = 0;
}

static bool box_of_constant(const struct sac_value *indices, struct box *b)
{
    int64_t at[SAC_RANK_MAX] = {0};
    if (!indices->data || indices->dtype != SAC_I64 || sac_value_elements(indices) < 1)
        return false;
    const int64_t *index = indices->data;
    memcpy(b->start, index, (size_t)b->rank * sizeof *index);
    memcpy(b->length, indices->dims, (size_t)b->rank * sizeof *index);
    for (int64_t i = 0; i < sac_value_elements(indices); i += b->rank, index += b->rank) {
        for (int d = 0; d < b->rank; d++)
            if (index[d] != b->start[d] + at[d])
                return false;
        next_place(at, b->length, b->rank);
    }
    return true;
}

/* ---- indices that are made for an open batch ---- */

/* v, or what it is another name of. */
static const struct sac_value *before_cast(const struct sac_value *v)
{
    while (sac_made_by(v, "Cast") || sac_made_by(v, "Identity"))
        v = v->producer->inputs[0];
    return v;
}

/* v is how long that axis of `of` is. */
static bool is_length(const struct sac_value *v, const struct sac_value *of, int axis)
{
    const struct sac_node *gather = sac_made_by(before_cast(v), "Gather");
    const struct sac_node *shape = gather ? sac_made_by(gather->inputs[0], "Shape") : NULL;
    int64_t                index;
    size_t                 count;
    return shape && shape->inputs[0] == of && sac_attr_int(shape, "start", 0) == 0 &&
           sac_constant_ints(gather->inputs[1], &index, 1, &count) && count == 1 &&
           (index < 0 ? index + of->rank : index) == axis;
}

static bool is_constant(const struct sac_value *v, int64_t number)
{
    int64_t is;
    size_t  count;
    return sac_constant_ints(v, &is, 1, &count) && count == 1 && is == number;
}

/* v counts from zero up to the length of that axis of `to`, in one dim. */
static bool counts_all(const struct sac_value *v, const struct sac_value *to, int axis)
{
    while (v->producer && sac_is_reshape(v->producer) && v->rank != 1)
        v = v->producer->inputs[0];
    const struct sac_node *range = v->rank == 1 ? sac_made_by(v, "Range") : NULL;
    return range && is_constant(range->inputs[0], 0) && is_constant(range->inputs[2], 1) &&
           is_length(range->inputs[1], to, axis);
}

/* Component `axis`, of which v is [grid...,1]: it differs along that axis of the grid alone. */
static bool read_component(const struct sac_value *v, const struct sac_value *to, int axis,
                           struct box *b)
{
    const struct sac_node *n = v->producer;
    if (!sac_is_reshape(n) || v->rank != b->rank + 1 || v->dims[b->rank] != 1 ||
        n->inputs[0]->rank != b->rank)
        return false;
    for (int d = 0; d < b->rank; d++)
        if (n->inputs[0]->dims[d] != v->dims[d])
            return false;
    v = n->inputs[0];
    if (sac_made_by(v, "Expand"))
        v = v->producer->inputs[0];
    const int own = axis - (b->rank - v->rank);
    if (v->rank < 1 || own < 0)
        return false;
    for (int d = 0; d < v->rank; d++)
        if (d != own && v->dims[d] != 1)
            return false;
    b->start[axis] = 0;
    b->length[axis] = v->dims[own];
    if (!v->data)
        return v->dims[own] == SAC_DIM_OPEN && to->dims[axis] == SAC_DIM_OPEN &&
               counts_all(v, to, axis);
    const int64_t *number = v->data;
    if (v->dtype != SAC_I64 || v->dims[own] < 1)
        return false;
    b->start[axis] = number[0];
    for (int64_t i = 0; i < v->dims[own]; i++)
        if (number[i] != number[0] + i)
            return false;
    return true;
}

static bool box_of_concat(const struct sac_value *indices, const struct sac_value *to,
                          struct box *b)
{
    const struct sac_node *n = sac_made_by(indices, "Concat");
    int                    axis;
    if (!n || !sac_axis_normalise(sac_attr_int(n, "axis", 0), indices->rank, &axis) ||
        axis != b->rank || n->input_count != b->rank)
        return false;
    for (int d = 0; d < b->rank; d++)
        if (!read_component(n->inputs[d], to, d, b))
            return false;
    return true;
}

/* ---- the node ---- */

static bool read_box(const struct sac_node *n, struct box *b)
{
    const struct sac_value *to = sac_node_input(n, 0), *indices = sac_node_input(n, 1),
                           *updates = sac_node_input(n, 2);
    if (!sac_is(n, "ScatterND") || !n->outputs[0] || !to || !indices || !updates ||
        strcmp(sac_attr_string(n, "reduction", "none"), "none") != 0 || to->rank < 1 ||
        updates->rank != to->rank || indices->rank < 2 || indices->rank - 1 > to->rank)
        return false;
    b->rank = indices->rank - 1;
    if (indices->dims[b->rank] != b->rank ||
        (!box_of_constant(indices, b) && !box_of_concat(indices, to, b)))
        return false;
    for (int d = 0; d < to->rank; d++)
        if (updates->dims[d] != (d < b->rank ? b->length[d] : to->dims[d]))
            return false;
    return true;
}

/* The only axis that is not written to as a whole; -1: there is none, -2: there are more. */
static int partial_axis(const struct box *b, const struct sac_value *to)
{
    int axis = -1;
    for (int d = 0; d < b->rank; d++) {
        if (b->start[d] == 0 && b->length[d] == to->dims[d])
            continue;
        if (axis >= 0 || to->dims[d] < 1 || b->length[d] < 1 || b->start[d] < 0 ||
            b->start[d] > to->dims[d] - b->length[d])
            return -2;
        axis = d;
    }
    return axis;
}

static sac_result put_between(struct sac_graph *g, struct sac_node *n, const struct box *b,
                              int axis)
{
    struct sac_value *to = n->inputs[0], *part[3];
    const int64_t     behind = b->start[axis] + b->length[axis];
    sac_result        res = SAC_OK;
    int               count = 0;
    if (b->start[axis] > 0)
        part[count++] = sac_part_of(g, n, to, axis, 0, b->start[axis], &res);
    part[count++] = n->inputs[2];
    if (res == SAC_OK && behind < to->dims[axis])
        part[count++] = sac_part_of(g, n, to, axis, behind, to->dims[axis] - behind, &res);
    if (res != SAC_OK)
        return res;
    struct sac_node *made = sac_op_node(g, "", "Concat", count, 1, n);
    if (!made)
        return SAC_ERR_MEMORY;
    memcpy(made->inputs, part, (size_t)count * sizeof *part);
    res = sac_node_set_int(g, made, "axis", axis);
    return res == SAC_OK ? sac_take_over(g, made, n) : res;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct box b;
    if (!read_box(n, &b))
        return SAC_OK;
    const int axis = partial_axis(&b, n->inputs[0]);
    if (axis == -2)
        return SAC_OK;
    *changed = true;
    if (axis >= 0)
        return put_between(g, n, &b, axis);
    sac_graph_replace(g, n->outputs[0], n->inputs[2]);
    return SAC_OK;
}

const struct sac_pass sac_pass_scatter = {"scatter", visit};
