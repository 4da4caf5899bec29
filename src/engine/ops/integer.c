/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and matrix products of 8-bit numbers: ConvInteger and MatMulInteger give int32,
 * QLinearConv and QLinearMatMul scale back to 8 bits. Zero points are subtracted first, then the
 * plain kernels run on int32 and int64. */
#include <math.h>

#include "engine/ops/conv.h"
#include "engine/ops/matmul.h"

/* Where the operands of each operator are; -1: it has none. */
struct roles {
    int a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero, bias;
};
static const struct roles integer = {0, -1, 2, 1, -1, 3, -1, -1, -1};
static const struct roles linear = {0, 1, 2, 3, 4, 5, 6, 7, 8};

static const struct roles *roles_of(const struct sac_op_call *c)
{
    enum sac_op_id id = c->node->op->id;
    return id == SAC_OP_ConvInteger || id == SAC_OP_MatMulInteger ? &integer : &linear;
}

static bool is_byte(enum sac_dtype t)
{
    return t == SAC_I8 || t == SAC_U8;
}

/* A scale or zero point: one number, or one for each of `count` (along the axis it belongs to). */
static sac_result check_parameter(struct sac_op_call *c, int i, int64_t count)
{
    if (i < 0 || !sac_op_has(c, i))
        return SAC_OK;
    int64_t n = sac_operand_elements(&c->in[i]);
    SAC_CHECK(c, n == 1 || n == count, "input %d holds %lld numbers; have 1, %lld", i, (long long)n,
              (long long)count);
    return SAC_OK;
}

static double parameter(const struct sac_op_call *c, int i, int64_t k, double fallback)
{
    if (i < 0 || !sac_op_has(c, i))
        return fallback;
    return sac_operand_get(&c->in[i], sac_operand_elements(&c->in[i]) == 1 ? 0 : k);
}

static sac_result integer_dtypes(struct sac_op_call *c, enum sac_dtype *out)
{
    const struct roles *r = roles_of(c);
    SAC_CHECK(c, is_byte(c->in[r->a].dtype) && is_byte(c->in[r->b].dtype),
              "operands of dtypes %s and %s; have int8, uint8", sac_in_dtype(c, r->a),
              sac_in_dtype(c, r->b));
    *out = r->y_zero < 0 ? SAC_I32 : c->in[r->y_zero].dtype;
    SAC_CHECK(c, r->y_zero < 0 || is_byte(*out), "a result of dtype %s", sac_dtype_name(*out));
    SAC_TRY(check_parameter(c, r->y_scale, 1));
    return check_parameter(c, r->y_zero, 1);
}

/* Element i of the product is v: stored as it is, or scaled back with the scales of its row and
 * column.
 */
static void write_result(struct sac_op_call *c, int64_t i, int64_t v, double scale)
{
    const struct roles *r = roles_of(c);
    if (r->y_scale >= 0) {
        double y = (double)v * scale / parameter(c, r->y_scale, 0, 1);
        sac_operand_set(&c->out[0], i, rint((double)(float)y) + parameter(c, r->y_zero, 0, 0));
    } else
        ((int32_t *)c->out[0].data)[i] = (int32_t)v;
}

/* ---- convolutions ---- */

static sac_result conv_shape(struct sac_op_call *c)
{
    const struct roles *r = roles_of(c);
    enum sac_dtype      out = SAC_DTYPE_NONE;
    SAC_TRY(integer_dtypes(c, &out));
    SAC_TRY(sac_conv_shape(c, r->a, r->b, r->bias < 0 ? SAC_OP_INPUTS_MAX : r->bias, out));
    SAC_CHECK(c, r->bias < 0 || !sac_op_has(c, r->bias) || c->in[r->bias].dtype == SAC_I32,
              "bias of dtype %s; have int32", sac_in_dtype(c, SAC_MAX(r->bias, 0)));
    SAC_TRY(check_parameter(c, r->a_scale, 1));
    SAC_TRY(check_parameter(c, r->a_zero, 1));
    SAC_TRY(check_parameter(c, r->b_scale, c->in[r->b].dims[0]));
    return check_parameter(c, r->b_zero, c->in[r->b].dims[0]);
}

/* Subtracts the zero point, which changes every `run` elements. */
static int32_t *centred(const struct sac_op_call *c, int operand, int zero, int64_t run)
{
    const struct sac_operand *o = &c->in[operand];
    int64_t                   n = sac_operand_elements(o);
    int32_t                  *v = sac_alloc((size_t)n * sizeof *v);
    for (int64_t i = 0; v && i < n; i++)
        v[i] = (int32_t)(sac_operand_get(o, i) - parameter(c, zero, i / run, 0));
    return v;
}

static sac_result conv_ref(struct sac_op_call *c)
{
    const struct roles       *r = roles_of(c);
    const struct sac_operand *w = &c->in[r->b], *y = &c->out[0];
    int64_t  n = sac_operand_elements(y), plane = sac_dims_product(y->rank - 2, y->dims + 2);
    int32_t *dx = centred(c, r->a, r->a_zero, INT64_MAX);
    int32_t *dw =
        centred(c, r->b, r->b_zero, SAC_MAX(sac_dims_product(w->rank - 1, w->dims + 1), 1));
    int32_t *dy = sac_alloc((size_t)n * sizeof *dy);
    bool     ok = dx && dw && dy;
    if (ok) {
        bool bias = r->bias >= 0 && sac_op_has(c, r->bias);
        sac_conv_run(c, r->a, r->b, SAC_I32, dx, dw, bias ? c->in[r->bias].data : NULL, dy);
        for (int64_t i = 0; i < n; i++)
            write_result(c, i, dy[i],
                         parameter(c, r->a_scale, 0, 1) *
                             parameter(c, r->b_scale, i / plane % w->dims[0], 1));
    }
    sac_free(dx);
    sac_free(dw);
    sac_free(dy);
    return ok ? SAC_OK : sac_op_no_memory(c);
}

const struct sac_op sac_row_ConvInteger = {SAC_ROW(ConvInteger, 10, 2, 4, 1), .shape = conv_shape,
                                           .ref = conv_ref};
const struct sac_op sac_row_QLinearConv = {SAC_ROW(QLinearConv, 10, 8, 9, 1), SAC_TOLERANCE(0, 0),
                                           .flags = SAC_OP_QUANTISES, .shape = conv_shape,
                                           .ref = conv_ref};

/* ---- matrix products: a's parameters go by row, b's by column ---- */

static int64_t row_count(const struct sac_operand *a)
{
    return a->rank > 1 ? a->dims[a->rank - 2] : 1;
}
static int64_t column_count(const struct sac_operand *b)
{
    return b->rank > 1 ? b->dims[b->rank - 1] : 1;
}

static sac_result matmul_shape(struct sac_op_call *c)
{
    const struct roles *r = roles_of(c);
    enum sac_dtype      out = SAC_DTYPE_NONE;
    SAC_TRY(integer_dtypes(c, &out));
    SAC_TRY(sac_matmul_shape(c, r->a, r->b, out));
    int64_t rows = row_count(&c->in[r->a]), columns = column_count(&c->in[r->b]);
    SAC_TRY(check_parameter(c, r->a_scale, rows));
    SAC_TRY(check_parameter(c, r->a_zero, rows));
    SAC_TRY(check_parameter(c, r->b_scale, columns));
    return check_parameter(c, r->b_zero, columns);
}

/* Subtracts the zero point of the row (period after `run`) or column (run 1). */
static uint64_t *centred_matrix(const struct sac_op_call *c, int operand, int zero, int64_t run,
                                int64_t period)
{
    const struct sac_operand *o = &c->in[operand];
    int64_t                   n = sac_operand_elements(o);
    uint64_t                 *v = sac_alloc((size_t)n * sizeof *v);
    for (int64_t i = 0; v && i < n; i++)
        v[i] = (uint64_t)(int64_t)(sac_operand_get(o, i) - parameter(c, zero, i / run % period, 0));
    return v;
}

static sac_result matmul_ref(struct sac_op_call *c)
{
    const struct roles       *r = roles_of(c);
    const struct sac_operand *a = &c->in[r->a], *b = &c->in[r->b];
    int64_t   n = sac_operand_elements(&c->out[0]), rows = row_count(a), columns = column_count(b);
    uint64_t *da = centred_matrix(c, r->a, r->a_zero, SAC_MAX(a->dims[a->rank - 1], 1), rows);
    uint64_t *db = centred_matrix(c, r->b, r->b_zero, 1, columns);
    int64_t  *dy = sac_alloc((size_t)n * sizeof *dy);
    bool      ok = da && db && dy;
    if (ok) {
        sac_matmul_run(a, b, SAC_CLASS_U64, da, db, dy);
        for (int64_t i = 0; i < n; i++)
            write_result(c, i, dy[i],
                         parameter(c, r->a_scale, i / columns % rows, 1) *
                             parameter(c, r->b_scale, i % columns, 1));
    }
    sac_free(da);
    sac_free(db);
    sac_free(dy);
    return ok ? SAC_OK : sac_op_no_memory(c);
}

const struct sac_op sac_row_MatMulInteger = {SAC_ROW(MatMulInteger, 10, 2, 4, 1),
                                             .shape = matmul_shape, .ref = matmul_ref};
const struct sac_op sac_row_QLinearMatMul = {SAC_ROW(QLinearMatMul, 10, 8, 8, 1),
                                             SAC_TOLERANCE(0, 0), .flags = SAC_OP_QUANTISES,
                                             .shape = matmul_shape, .ref = matmul_ref};
