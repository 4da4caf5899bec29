/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors made from attributes, shapes and counters: Constant, ConstantOfShape, Shape, Size, Range,
 * EyeLike. */
#include <math.h>

#include "engine/ops/batch.h"
#include "engine/ops/util.h"

/* ---- Constant ---- */

static sac_result constant_shape(struct sac_op_call *c)
{
    if (c->node->attr_count != 1)
        return SAC_OP_FAIL(c, SAC_ERR_FORMAT, "%d attributes instead of one", c->node->attr_count);
    const struct sac_attr *a = &c->node->attrs[0];
    int64_t                count = (int64_t)a->count;
    switch (a->kind) {
    case SAC_ATTR_TENSOR:
        return sac_shape_out(c, 0, a->tensor->dtype, a->tensor->rank, a->tensor->dims);
    case SAC_ATTR_FLOAT: return sac_shape_out(c, 0, SAC_F32, 0, NULL);
    case SAC_ATTR_INT: return sac_shape_out(c, 0, SAC_I64, 0, NULL);
    case SAC_ATTR_FLOATS: return sac_shape_out(c, 0, SAC_F32, 1, &count);
    case SAC_ATTR_INTS: return sac_shape_out(c, 0, SAC_I64, 1, &count);
    default: return SAC_OP_FAIL(c, SAC_ERR_UNSUPPORTED, "attribute '%s'; have numbers", a->name);
    }
}

static sac_result constant_ref(struct sac_op_call *c)
{
    const struct sac_attr *a = &c->node->attrs[0];
    const void            *from = a->kind == SAC_ATTR_TENSOR   ? a->tensor->data
                                  : a->kind == SAC_ATTR_FLOATS ? (const void *)a->floats
                                  : a->kind == SAC_ATTR_INTS   ? (const void *)a->ints
                                  : a->kind == SAC_ATTR_INT    ? (const void *)&a->i
                                                               : (const void *)&a->f;
    memcpy(c->out[0].data, from, sac_operand_bytes(&c->out[0]));
    return SAC_OK;
}

const struct sac_op sac_row_Constant = {SAC_ROW(Constant, 1, 0, 0, 1), .shape = constant_shape,
                                        .ref = constant_ref};

/* ---- ConstantOfShape ---- */

static sac_result constant_of_shape_shape(struct sac_op_call *c)
{
    const struct sac_attr *a = sac_node_attr(c->node, "value");
    int64_t                dims[SAC_RANK_MAX];
    size_t                 rank;
    SAC_CHECK(c,
              !a || (a->kind == SAC_ATTR_TENSOR && a->tensor->data &&
                     sac_dims_product(a->tensor->rank, a->tensor->dims) == 1),
              "'value' is not one number");
    SAC_TRY(sac_operand_ints(c, 0, dims, SAC_RANK_MAX, &rank));
    return sac_shape_out(c, 0, a ? a->tensor->dtype : SAC_F32, (int)rank, dims);
}

static sac_result constant_of_shape_ref(struct sac_op_call *c)
{
    const struct sac_attr    *a = sac_node_attr(c->node, "value");
    const struct sac_operand *out = &c->out[0];
    size_t                    size = sac_dtype_bytes(out->dtype);
    if (!a)
        memset(out->data, 0, sac_operand_bytes(out));
    for (int64_t i = 0, n = a ? sac_operand_elements(out) : 0; i < n; i++)
        memcpy((char *)out->data + i * (int64_t)size, a->tensor->data, size);
    return SAC_OK;
}

const struct sac_op sac_row_ConstantOfShape = {SAC_ROW(ConstantOfShape, 9, 1, 1, 1),
                                               .shape = constant_of_shape_shape,
                                               .ref = constant_of_shape_ref};

/* ---- Shape, Size ---- */

static void shape_range(const struct sac_op_call *c, int64_t *start, int64_t *end)
{
    int64_t rank = c->in[0].rank;
    *start = sac_attr_int(c->node, "start", 0);
    *end = sac_attr_int(c->node, "end", rank);
    *start = SAC_CLAMP(*start < 0 ? *start + rank : *start, 0, rank);
    *end = SAC_CLAMP(*end < 0 ? *end + rank : *end, *start, rank);
}

static sac_result shape_shape(struct sac_op_call *c)
{
    int64_t start, end;
    shape_range(c, &start, &end);
    int64_t count = end - start;
    return sac_shape_out(c, 0, SAC_I64, 1, &count);
}

static sac_result shape_ref(struct sac_op_call *c)
{
    int64_t start, end;
    shape_range(c, &start, &end);
    memcpy(c->out[0].data, c->in[0].dims + start, (size_t)(end - start) * sizeof(int64_t));
    return SAC_OK;
}

static sac_result size_shape(struct sac_op_call *c)
{
    return sac_shape_out(c, 0, SAC_I64, 0, NULL);
}

static sac_result size_ref(struct sac_op_call *c)
{
    *(int64_t *)c->out[0].data = sac_operand_elements(&c->in[0]);
    return SAC_OK;
}

static bool shape_batch(struct sac_batch_walk *w, struct sac_node *n, int k, int *out)
{
    (void)w, (void)n, (void)k;
    *out = -1; /* adapts by itself when a plan is created */
    return true;
}

const struct sac_op sac_row_Shape = {SAC_ROW(Shape, 1, 1, 1, 1), .flags = SAC_OP_OF_SHAPE,
                                     .shape = shape_shape, .ref = shape_ref, .batch = shape_batch};
const struct sac_op sac_row_Size = {SAC_ROW(Size, 1, 1, 1, 1), .flags = SAC_OP_OF_SHAPE,
                                    .shape = size_shape, .ref = size_ref};

/* ---- Range ---- */

static sac_result range_shape(struct sac_op_call *c)
{
    for (int i = 0; i < 3; i++) {
        SAC_CHECK(c, sac_operand_elements(&c->in[i]) == 1, "input %d is not one number", i);
        SAC_CHECK(c, c->in[i].dtype == c->in[0].dtype, "inputs of dtypes %s and %s",
                  sac_in_dtype(c, 0), sac_in_dtype(c, i));
        if (!c->in[i].data)
            return SAC_AGAIN;
    }
    double start = sac_operand_get(&c->in[0], 0), limit = sac_operand_get(&c->in[1], 0);
    double delta = sac_operand_get(&c->in[2], 0), count = ceil((limit - start) / delta);
    SAC_CHECK(c, delta != 0 && count < 0x1p40, "a range from %g to %g by %g", start, limit, delta);
    int64_t n = count > 0 ? (int64_t)count : 0;
    return sac_shape_out(c, 0, c->in[0].dtype, 1, &n);
}

static sac_result range_ref(struct sac_op_call *c)
{
    double start = sac_operand_get(&c->in[0], 0), delta = sac_operand_get(&c->in[2], 0);
    for (int64_t i = 0; i < c->out[0].dims[0]; i++)
        sac_operand_set(&c->out[0], i, start + (double)i * delta);
    return SAC_OK;
}

const struct sac_op sac_row_Range = {SAC_ROW(Range, 11, 3, 3, 1), .shape = range_shape,
                                     .ref = range_ref};

/* ---- EyeLike ---- */

static sac_result eye_like_shape(struct sac_op_call *c)
{
    int64_t        type = sac_attr_int(c->node, "dtype", -1);
    enum sac_dtype t = type < 0 ? c->in[0].dtype : sac_dtype_from_onnx(type);
    SAC_CHECK(c, c->in[0].rank == 2, "input of %d dimensions; have 2", c->in[0].rank);
    SAC_CHECK(c, t != SAC_DTYPE_NONE, "ONNX data type %lld", (long long)type);
    return sac_shape_out(c, 0, t, 2, c->in[0].dims);
}

static sac_result eye_like_ref(struct sac_op_call *c)
{
    const struct sac_operand *out = &c->out[0];
    int64_t                   k = sac_attr_int(c->node, "k", 0);
    memset(out->data, 0, sac_operand_bytes(out));
    for (int64_t row = 0; row < out->dims[0]; row++) {
        int64_t column = row + SAC_CLAMP(k, -out->dims[0], out->dims[1]);
        if (column >= 0 && column < out->dims[1])
            sac_operand_set(out, row * out->dims[1] + column, 1);
    }
    return SAC_OK;
}

const struct sac_op sac_row_EyeLike = {SAC_ROW(EyeLike, 9, 1, 1, 1), .flags = SAC_OP_OF_SHAPE,
                                       .shape = eye_like_shape, .ref = eye_like_ref};
