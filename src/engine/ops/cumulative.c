/* SPDX-License-Identifier: Apache-2.0 */
/* CumSum and CumProd: running totals along an axis. */
#include "engine/ops/batch.h"
#include "engine/ops/reads.h"
#include "engine/ops/util.h"

sac_result sac_cumulative_axis(const struct sac_op_call *c, int *axis)
{
    int64_t value;
    size_t  n;
    SAC_TRY(sac_operand_ints(c, 1, &value, 1, &n));
    SAC_CHECK(c, n == 1 && sac_axis_normalise(value, c->in[0].rank, axis),
              "no such axis of a tensor of %d dimensions", c->in[0].rank);
    return SAC_OK;
}

static sac_result cumulative_shape(struct sac_op_call *c)
{
    SAC_CHECK(c, c->in[0].dtype != SAC_BOOL, "input of dtype bool");
    return sac_shape_same(c);
}

/* One line: element k at start + k * step. exclusive: the total without the element itself. */
#define RUN(type, get, put)                           \
    {                                                 \
        type acc = product;                           \
        for (int64_t k = 0; k < n; k++, at += step) { \
            type x, before = acc;                     \
            get;                                      \
            acc = product ? acc * x : acc + x;        \
            x = exclusive ? before : acc;             \
            put;                                      \
        }                                             \
    }

static void run_line(const struct sac_operand *in, const struct sac_operand *out, int64_t at,
                     int64_t step, int64_t n, bool product, bool exclusive)
{
    if (sac_dtype_is_float(in->dtype))
        RUN(double, x = sac_operand_get(in, at), sac_operand_set(out, at, x))
    else /* unsigned, so that overflow wraps */
        RUN(uint64_t, sac_load(in->dtype, in->data, at, 1, 1, &x),
            sac_store(out->dtype, out->data, at, 1, &x))
}

static sac_result cumulative_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    bool                      product = c->node->op->id == SAC_OP_CumProd;
    bool                      exclusive = sac_attr_int(c->node, "exclusive", 0);
    bool                      reverse = sac_attr_int(c->node, "reverse", 0);
    int                       axis;
    SAC_TRY(sac_cumulative_axis(c, &axis));
    int64_t n = in->dims[axis], outer = sac_dims_product(axis, in->dims);
    int64_t inner = sac_dims_product(in->rank - axis - 1, in->dims + axis + 1);
    for (int64_t i = 0; i < outer * inner; i++) {
        int64_t start = i / inner * n * inner + i % inner;
        if (reverse)
            run_line(in, &c->out[0], start + (n - 1) * inner, -inner, n, product, exclusive);
        else
            run_line(in, &c->out[0], start, inner, n, product, exclusive);
    }
    return SAC_OK;
}

const struct sac_op sac_row_CumSum = {SAC_ROW(CumSum, 11, 2, 2, 1), SAC_TOLERANCE(1e-5f, 1e-5f),
                                      .shape = cumulative_shape, .ref = cumulative_ref,
                                      .batch = sac_batch_one_axis};
const struct sac_op sac_row_CumProd = {SAC_ROW(CumProd, 26, 2, 2, 1), SAC_TOLERANCE(1e-5f, 1e-5f),
                                       .shape = cumulative_shape, .ref = cumulative_ref};
