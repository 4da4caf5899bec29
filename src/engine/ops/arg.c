/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMax, ArgMin and TopK. */
#include <math.h>

#include "engine/ops/batch.h"
#include "engine/ops/util.h"

/* One line along an axis: element k lies at start + k * stride. */
struct line {
    const struct sac_operand *in;
    int64_t                   start, stride, length;
};

/* Order of elements a and b of the line: negative when a is the larger. NaN counts as largest, and
 * 64-bit integers are compared exactly. */
static int compare(const struct line *l, int64_t a, int64_t b)
{
    int64_t ia = l->start + a * l->stride, ib = l->start + b * l->stride;
    if (sac_dtype_class(l->in->dtype) == SAC_CLASS_I64 || l->in->dtype == SAC_U64) {
        int64_t x, y;
        sac_load(l->in->dtype, l->in->data, ia, 1, 1, &x);
        sac_load(l->in->dtype, l->in->data, ib, 1, 1, &y);
        if (l->in->dtype == SAC_U64)
            return ((uint64_t)x < (uint64_t)y) - ((uint64_t)x > (uint64_t)y);
        return (x < y) - (x > y);
    }
    double x = sac_operand_get(l->in, ia), y = sac_operand_get(l->in, ib);
    if (isnan(x) || isnan(y))
        return isnan(y) - isnan(x);
    return (x < y) - (x > y);
}

/* ---- ArgMax, ArgMin ---- */

static sac_result arg_shape(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    int                       axis, rank = 0;
    bool                      keep = sac_attr_int(c->node, "keepdims", 1);
    int64_t                   dims[SAC_RANK_MAX];
    SAC_TRY(sac_op_axis(c, 0, in->rank, &axis));
    SAC_CHECK(c, in->dims[axis] > 0, "dimension %d is empty", axis);
    for (int d = 0; d < in->rank; d++)
        if (d != axis || keep)
            dims[rank++] = d == axis ? 1 : in->dims[d];
    return sac_shape_out(c, 0, SAC_I64, rank, dims);
}

static sac_result arg_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    int                       axis, sign = c->node->op->id == SAC_OP_ArgMax ? 1 : -1;
    bool                      last = sac_attr_int(c->node, "select_last_index", 0);
    SAC_TRY(sac_op_axis(c, 0, in->rank, &axis));
    int64_t inner = sac_dims_product(in->rank - axis - 1, in->dims + axis + 1);
    for (int64_t i = 0, n = sac_operand_elements(&c->out[0]); i < n; i++) {
        struct line l = {in, i / inner * in->dims[axis] * inner + i % inner, inner, in->dims[axis]};
        int64_t     best = 0;
        for (int64_t k = 1; k < l.length; k++) {
            int order = sign * compare(&l, k, best);
            if (order < 0 || (order == 0 && last))
                best = k;
        }
        ((int64_t *)c->out[0].data)[i] = best;
    }
    return SAC_OK;
}

const struct sac_op sac_row_ArgMax = {SAC_ROW(ArgMax, 1, 1, 1, 1), .shape = arg_shape,
                                      .ref = arg_ref, .batch = sac_batch_one_axis};
const struct sac_op sac_row_ArgMin = {SAC_ROW(ArgMin, 1, 1, 1, 1), .shape = arg_shape,
                                      .ref = arg_ref, .batch = sac_batch_one_axis};

/* ---- TopK ---- */

static sac_result topk_shape(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    int                       axis;
    int64_t k = sac_attr_int(c->node, "k", -1), dims[SAC_RANK_MAX]; /* an input since opset 10 */
    size_t  n = 1;
    SAC_TRY(sac_op_axis(c, -1, in->rank, &axis));
    if (sac_op_has(c, 1))
        SAC_TRY(sac_operand_ints(c, 1, &k, 1, &n));
    SAC_CHECK(c, n == 1 && k >= 0 && k <= in->dims[axis], "the %lld largest of %lld",
              n ? (long long)k : 0, (long long)in->dims[axis]);
    memcpy(dims, in->dims, sizeof dims);
    dims[axis] = k;
    SAC_TRY(sac_shape_out(c, 0, in->dtype, in->rank, dims));
    return sac_shape_out(c, 1, SAC_I64, in->rank, dims);
}

/* Merge sort keeps equal elements in their order, as the specification requires. sign: -1 for the
 * smallest first. */
static void sort_line(const struct line *l, int sign, int64_t *order, int64_t *spare, int64_t n)
{
    if (n < 2)
        return;
    int64_t half = n / 2, a = 0, b = half;
    sort_line(l, sign, order, spare, half);
    sort_line(l, sign, order + half, spare, n - half);
    for (int64_t i = 0; i < n; i++) {
        bool left = b == n || (a < half && sign * compare(l, order[a], order[b]) <= 0);
        spare[i] = order[left ? a++ : b++];
    }
    memcpy(order, spare, (size_t)n * sizeof *order);
}

/* A heap of the k best so far, the worst of them on top, avoids sorting long lines. */
static bool worse(const struct line *l, int sign, int64_t a, int64_t b)
{
    int order = sign * compare(l, a, b);
    return order ? order > 0 : a > b;
}

static void sift_down(const struct line *l, int sign, int64_t *heap, int64_t k, int64_t i)
{
    for (int64_t child; (child = 2 * i + 1) < k; i = child) {
        if (child + 1 < k && worse(l, sign, heap[child + 1], heap[child]))
            child++;
        if (!worse(l, sign, heap[child], heap[i]))
            return;
        int64_t swap = heap[i];
        heap[i] = heap[child];
        heap[child] = swap;
    }
}

static void select_best(const struct line *l, int sign, int64_t *heap, int64_t k)
{
    for (int64_t i = 0; i < k; i++)
        heap[i] = i;
    for (int64_t i = k / 2 - 1; i >= 0; i--)
        sift_down(l, sign, heap, k, i);
    for (int64_t i = k; i < l->length && k; i++)
        if (worse(l, sign, heap[0], i)) {
            heap[0] = i;
            sift_down(l, sign, heap, k, 0);
        }
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static sac_result topk_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0], *values = &c->out[0];
    int                       axis, sign = sac_attr_int(c->node, "largest", 1) ? 1 : -1;
    SAC_TRY(sac_op_axis(c, -1, in->rank, &axis));
    const struct sac_operand *shape = sac_op_wants(c, 0) ? values : &c->out[1];
    int64_t                   inner = sac_dims_product(in->rank - axis - 1, in->dims + axis + 1);
    int64_t                   k = shape->dims[axis], outer = sac_dims_product(axis, in->dims);
    size_t                    bytes = sac_dtype_bytes(in->dtype);
    int64_t                  *order = sac_alloc(2 * (size_t)k * sizeof *order);
    if (!order)
        return sac_op_no_memory(c);
    for (int64_t i = 0; i < outer * inner; i++) {
        struct line l = {in, i / inner * in->dims[axis] * inner + i % inner, inner, in->dims[axis]};
        select_best(&l, sign, order, k);
        qsort(order, (size_t)k, sizeof *order, by_number); /* then a stable sort orders ties */
        sort_line(&l, sign, order, order + k, k);
        for (int64_t j = 0; j < k; j++) {
            int64_t to = (i / inner * k + j) * inner + i % inner;
            int64_t from = l.start + order[j] * l.stride;
            if (sac_op_wants(c, 0))
                memcpy((char *)values->data + (size_t)to * bytes,
                       (const char *)in->data + (size_t)from * bytes, bytes);
            if (sac_op_wants(c, 1))
                ((int64_t *)c->out[1].data)[to] = order[j];
        }
    }
    sac_free(order);
    return SAC_OK;
}

const struct sac_op sac_row_TopK = {SAC_ROW(TopK, 1, 1, 2, 2), .shape = topk_shape, .ref = topk_ref,
                                    .batch = sac_batch_last_axis};
