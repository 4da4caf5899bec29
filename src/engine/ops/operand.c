/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "engine/ops/util.h"

sac_result sac_op_fail(const struct sac_op_call *c, sac_result res, const char *fmt, ...)
{
    char    what[384], label[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return SAC_FAIL(c->ctx, res, "%s: %s", sac_node_label(c->node, label, sizeof label), what);
}

/* ---- operands ---- */

bool sac_operand_same_dims(const struct sac_operand *a, const struct sac_operand *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

sac_result sac_shape_out(struct sac_op_call *c, int i, enum sac_dtype dtype, int rank,
                         const int64_t *dims)
{
    struct sac_operand *out = &c->out[i];
    if (i >= c->out_count || !out->present)
        return SAC_OK;
    SAC_CHECK(c, rank >= 0 && rank <= SAC_RANK_MAX,
              "output %d would have %d dimensions; at most %d", i, rank, SAC_RANK_MAX);
    int64_t bytes = (int64_t)sac_dtype_bytes(dtype);
    for (int d = 0; d < rank; d++) {
        SAC_CHECK(c, dims[d] >= 0, "dimension %d of output %d would be %lld", d, i,
                  (long long)dims[d]);
        int64_t size = SAC_MAX(dims[d], 1); /* an empty dimension must not hide an overflow */
        if (__builtin_mul_overflow(bytes, size, &bytes))
            return SAC_OP_FAIL(c, SAC_ERR_LIMIT, "output %d would be larger than memory can be", i);
    }
    out->dtype = dtype;
    out->rank = rank;
    for (int d = 0; d < rank; d++)
        out->dims[d] = dims[d];
    return SAC_OK;
}

sac_result sac_shape_same(struct sac_op_call *c)
{
    return sac_shape_out_like(c, 0, 0);
}

bool sac_broadcast_dims(int *rank, int64_t *dims, int other_rank, const int64_t *other)
{
    int shift = other_rank - *rank;
    if (shift > 0) {
        memmove(dims + shift, dims, (size_t)*rank * sizeof *dims);
        for (int d = 0; d < shift; d++)
            dims[d] = 1;
        *rank = other_rank;
    }
    for (int d = 0; d < other_rank; d++) {
        int64_t *mine = &dims[*rank - other_rank + d];
        if (*mine == 1)
            *mine = other[d];
        else if (other[d] != 1 && other[d] != *mine)
            return false;
    }
    return true;
}

sac_result sac_shape_broadcast(struct sac_op_call *c)
{
    int     rank = 0;
    int64_t dims[SAC_RANK_MAX];
    for (int i = 0; i < c->in_count; i++) {
        if (!c->in[i].present)
            continue;
        SAC_CHECK(c, sac_broadcast_dims(&rank, dims, c->in[i].rank, c->in[i].dims),
                  "the shape of input %d does not broadcast with those before it", i);
    }
    return sac_shape_out(c, 0, c->in[0].dtype, rank, dims);
}

bool sac_axis_normalise(int64_t axis, int rank, int *out)
{
    if (axis < -rank || axis >= rank)
        return false;
    *out = (int)(axis < 0 ? axis + rank : axis);
    return true;
}

sac_result sac_operand_ints(const struct sac_op_call *c, int input, int64_t *out, size_t max,
                            size_t *count)
{
    const struct sac_operand *o = &c->in[input];
    SAC_CHECK(c, o->dtype == SAC_I64 || o->dtype == SAC_I32,
              "input %d has dtype %s; have int64, int32", input, sac_in_dtype(c, input));
    int64_t n = sac_operand_elements(o);
    SAC_CHECK(c, o->rank <= 1 && n <= (int64_t)max, "input %d holds %lld numbers; at most %zu",
              input, (long long)n, max);
    if (!o->data)
        return SAC_AGAIN;
    sac_load(o->dtype, o->data, 0, 1, n, out);
    *count = (size_t)n;
    return SAC_OK;
}

sac_result sac_op_ints(const struct sac_op_call *c, const char *attr, int input, int64_t *out,
                       size_t max, size_t *count)
{
    if (!sac_node_attr(c->node, attr)) {
        if (input >= 0 && input < c->in_count && c->in[input].present)
            return sac_operand_ints(c, input, out, max, count);
        *count = 0;
        return SAC_OK;
    }
    const int64_t *values = NULL;
    size_t         n = sac_attr_ints(c->node, attr, &values);
    SAC_CHECK(c, n <= max, "'%s' holds %zu numbers; at most %zu", attr, n, max);
    for (size_t i = 0; i < n; i++)
        out[i] = values[i];
    *count = n;
    return SAC_OK;
}

sac_result sac_op_axes(const struct sac_op_call *c, const char *attr, int input, int rank,
                       int *axes, int *count)
{
    int64_t raw[SAC_RANK_MAX];
    size_t  n;
    SAC_TRY(sac_op_ints(c, attr, input, raw, SAC_RANK_MAX, &n));
    for (size_t i = 0; i < n; i++) {
        SAC_CHECK(c, sac_axis_normalise(raw[i], rank, &axes[i]),
                  "axis %lld of a tensor of %d dimensions", (long long)raw[i], rank);
        for (size_t j = 0; j < i; j++)
            SAC_CHECK(c, axes[j] != axes[i], "axis %d is named twice", axes[i]);
    }
    *count = (int)n;
    return SAC_OK;
}

sac_result sac_op_axis(const struct sac_op_call *c, int64_t fallback, int rank, int *axis)
{
    int64_t wanted = sac_attr_int(c->node, "axis", fallback);
    SAC_CHECK(c, sac_axis_normalise(wanted, rank, axis), "axis %lld of a tensor of %d dimensions",
              (long long)wanted, rank);
    return SAC_OK;
}
