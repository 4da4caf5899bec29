/* SPDX-License-Identifier: Apache-2.0 */
/* Operators whose output size depends on the values: NonZero, Compress, Unique. Their shape
 * functions count, and return SAC_AGAIN until the values are known. */
#include "engine/ops/util.h"

/* ---- NonZero: the places, one column each ---- */

static sac_result nonzero_shape(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    int64_t                   dims[2] = {in->rank, 0};
    if (!in->data)
        return SAC_AGAIN;
    for (int64_t i = 0, n = sac_operand_elements(in); i < n; i++)
        dims[1] += sac_operand_get(in, i) != 0;
    return sac_shape_out(c, 0, SAC_I64, 2, dims);
}

static sac_result nonzero_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    int64_t                  *out = c->out[0].data, column = 0, count = c->out[0].dims[1];
    for (int64_t i = 0, n = sac_operand_elements(in); i < n; i++) {
        if (sac_operand_get(in, i) == 0)
            continue;
        int64_t rest = i;
        for (int d = in->rank - 1; d >= 0; d--) {
            out[d * count + column] = rest % in->dims[d];
            rest /= in->dims[d];
        }
        column++;
    }
    return SAC_OK;
}

const struct sac_op sac_row_NonZero = {SAC_ROW(NonZero, 9, 1, 1, 1), .shape = nonzero_shape,
                                       .ref = nonzero_ref};

/* ---- Compress: slices whose condition holds ---- */

/* Without an axis the input counts as one long line. */
static sac_result compress_axis(struct sac_op_call *c, int *axis, int64_t *length)
{
    *axis = -1;
    *length = sac_operand_elements(&c->in[0]);
    if (!sac_node_attr(c->node, "axis"))
        return SAC_OK;
    SAC_TRY(sac_op_axis(c, 0, c->in[0].rank, axis));
    *length = c->in[0].dims[*axis];
    return SAC_OK;
}

static sac_result compress_shape(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0], *condition = &c->in[1];
    int                       axis;
    int64_t                   length, dims[SAC_RANK_MAX], count = 0;
    SAC_TRY(compress_axis(c, &axis, &length));
    SAC_CHECK(c, condition->dtype == SAC_BOOL && condition->rank == 1,
              "a condition of dtype %s and %d dimensions", sac_in_dtype(c, 1), condition->rank);
    if (!condition->data)
        return SAC_AGAIN;
    for (int64_t i = 0; i < SAC_MIN(length, condition->dims[0]); i++)
        count += ((const uint8_t *)condition->data)[i] != 0;
    if (axis < 0)
        return sac_shape_out(c, 0, in->dtype, 1, &count);
    memcpy(dims, in->dims, sizeof dims);
    dims[axis] = count;
    return sac_shape_out(c, 0, in->dtype, in->rank, dims);
}

static sac_result compress_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0], *condition = &c->in[1];
    int                       axis;
    int64_t                   length;
    SAC_TRY(compress_axis(c, &axis, &length));
    int64_t outer = axis < 0 ? 1 : sac_dims_product(axis, in->dims);
    size_t  run = sac_dtype_bytes(in->dtype);
    if (axis >= 0)
        run *= (size_t)sac_dims_product(in->rank - axis - 1, in->dims + axis + 1);
    char *to = c->out[0].data;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < SAC_MIN(length, condition->dims[0]); i++)
            if (((const uint8_t *)condition->data)[i]) {
                memcpy(to, (const char *)in->data + (size_t)(o * length + i) * run, run);
                to += run;
            }
    return SAC_OK;
}

const struct sac_op sac_row_Compress = {SAC_ROW(Compress, 9, 2, 2, 1), .shape = compress_shape,
                                        .ref = compress_ref};

/* ---- Unique ---- */

struct unique {
    const struct sac_operand *in;
    int64_t  count, outer, inner; /* slices along the axis; elements before and after it */
    int64_t *order;               /* slice numbers, equal ones together */
    int64_t *group;               /* of each place in order: 0, 1, ... by value */
    int64_t  groups;
};

static int compare_slices(const struct unique *u, int64_t a, int64_t b)
{
    for (int64_t o = 0; o < u->outer; o++)
        for (int64_t i = 0; i < u->inner; i++) {
            double x = sac_operand_get(u->in, (o * u->count + a) * u->inner + i);
            double y = sac_operand_get(u->in, (o * u->count + b) * u->inner + i);
            if (x != y)
                return x < y ? -1 : 1;
        }
    return 0;
}

/* Stable: of equal slices the first in the input comes first. */
static void sort_slices(const struct unique *u, int64_t *order, int64_t *spare, int64_t n)
{
    if (n < 2)
        return;
    int64_t half = n / 2, a = 0, b = half;
    sort_slices(u, order, spare, half);
    sort_slices(u, order + half, spare, n - half);
    for (int64_t i = 0; i < n; i++) {
        bool left = b == n || (a < half && compare_slices(u, order[a], order[b]) <= 0);
        spare[i] = order[left ? a++ : b++];
    }
    memcpy(order, spare, (size_t)n * sizeof *order);
}

/* u->order: room for two arrays of count numbers, released by the caller. */
static sac_result unique_find(struct sac_op_call *c, struct unique *u, int *axis)
{
    const struct sac_operand *in = &c->in[0];
    int64_t                   length;
    SAC_TRY(compress_axis(c, axis, &length));
    *u = (struct unique){.in = in, .count = length, .outer = 1, .inner = 1};
    if (*axis >= 0) {
        u->outer = sac_dims_product(*axis, in->dims);
        u->inner = sac_dims_product(in->rank - *axis - 1, in->dims + *axis + 1);
    }
    u->order = sac_calloc((size_t)length, 2 * sizeof *u->order);
    if (!u->order)
        return sac_op_no_memory(c);
    u->group = u->order + length;
    for (int64_t i = 0; i < length; i++)
        u->order[i] = i;
    sort_slices(u, u->order, u->group, length);
    for (int64_t i = 0; i < length; i++) {
        if (i && compare_slices(u, u->order[i - 1], u->order[i]) != 0)
            u->groups++;
        u->group[i] = u->groups;
    }
    u->groups += length > 0;
    return SAC_OK;
}

static sac_result unique_shape(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    struct unique             u;
    int                       axis;
    int64_t                   dims[SAC_RANK_MAX];
    if (!in->data)
        return SAC_AGAIN;
    SAC_TRY(unique_find(c, &u, &axis));
    sac_free(u.order);
    memcpy(dims, in->dims, sizeof dims);
    dims[SAC_MAX(axis, 0)] = u.groups;
    SAC_TRY(sac_shape_out(c, 0, in->dtype, axis < 0 ? 1 : in->rank, dims));
    SAC_TRY(sac_shape_out(c, 1, SAC_I64, 1, &u.groups));
    SAC_TRY(sac_shape_out(c, 2, SAC_I64, 1, &u.count));
    return sac_shape_out(c, 3, SAC_I64, 1, &u.groups);
}

/* Group g of the sorted order is output as number rank[g]: g itself, or by first appearance. */
static void rank_groups(const struct unique *u, const int64_t *first, bool sorted, int64_t *rank)
{
    for (int64_t g = 0; g < u->groups; g++) {
        rank[g] = sorted ? g : 0;
        for (int64_t other = 0; other < u->groups && !sorted; other++)
            rank[g] += first[other] < first[g];
    }
}

static void unique_write(struct sac_op_call *c, const struct unique *u, const int64_t *first,
                         const int64_t *rank)
{
    const struct sac_operand *y = &c->out[0];
    int64_t                  *indices = sac_op_wants(c, 1) ? c->out[1].data : NULL;
    int64_t                  *inverse = sac_op_wants(c, 2) ? c->out[2].data : NULL;
    int64_t                  *counts = sac_op_wants(c, 3) ? c->out[3].data : NULL;
    size_t                    run = (size_t)u->inner * sac_dtype_bytes(u->in->dtype);
    for (int64_t g = 0; g < u->groups; g++) {
        for (int64_t o = 0; o < u->outer; o++)
            memcpy((char *)y->data + (size_t)(o * u->groups + rank[g]) * run,
                   (const char *)u->in->data + (size_t)(o * u->count + first[g]) * run, run);
        if (indices)
            indices[rank[g]] = first[g];
        if (counts)
            counts[rank[g]] = 0;
    }
    for (int64_t i = 0; i < u->count; i++) {
        if (inverse)
            inverse[u->order[i]] = rank[u->group[i]];
        if (counts)
            counts[rank[u->group[i]]]++;
    }
}

static sac_result unique_ref(struct sac_op_call *c)
{
    struct unique u;
    int           axis;
    SAC_TRY(unique_find(c, &u, &axis));
    int64_t *first = sac_calloc((size_t)u.groups, 2 * sizeof *first), *rank = first + u.groups;
    if (first) {
        /* backwards, so that the first of a group remains */
        for (int64_t i = u.count - 1; i >= 0; i--)
            first[u.group[i]] = u.order[i];
        rank_groups(&u, first, sac_attr_int(c->node, "sorted", 1), rank);
        unique_write(c, &u, first, rank);
    }
    sac_free(first);
    sac_free(u.order);
    return first ? SAC_OK : sac_op_no_memory(c);
}

const struct sac_op sac_row_Unique = {SAC_ROW(Unique, 11, 1, 1, 4), .shape = unique_shape,
                                      .ref = unique_ref};
