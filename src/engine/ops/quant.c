/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of QuantConv and QuantMatMul, which engine/ops/quant.h defines. */
#include <math.h>

#include "engine/ops/batch.h"
#include "engine/ops/conv.h"
#include "engine/ops/matmul.h"
#include "engine/ops/quant.h"

extern const struct sac_op sac_row_Conv, sac_row_MatMul, sac_row_FusedMatMul, sac_row_QuantConv,
    sac_row_QuantMatMul;

bool sac_dtype_is_quantised(enum sac_dtype t)
{
    return t == SAC_I8 || t == SAC_U8 || t == SAC_F8;
}

static enum sac_dtype dtype_of(int64_t type)
{
    return type == SAC_QUANT_FLOAT ? SAC_F32 : sac_dtype_from_onnx(type);
}

struct sac_quant sac_quant_read(const struct sac_node *n)
{
    const float y_scale = sac_attr_float(n, "y_scale", 1);
    return (struct sac_quant){.x_zero = (int)sac_attr_int(n, "x_zero", 0),
                              .r_zero = (int)sac_attr_int(n, "r_zero", 0),
                              .y_zero = (int)sac_attr_int(n, "y_zero", 0),
                              .r_scale = sac_attr_float(n, "r_scale", 1),
                              .y_scale = y_scale,
                              .y_inverse = 1 / y_scale,
                              .y_dtype = dtype_of(sac_attr_int(n, "y_type", SAC_QUANT_FLOAT))};
}

/* ---- shapes: a file can use the domain too, so nothing about the node is trusted ---- */

static sac_result check_zero(const struct sac_op_call *c, const char *name, enum sac_dtype t)
{
    const int64_t zero = sac_attr_int(c->node, name, 0);
    const int64_t least = t == SAC_I8 ? INT8_MIN : 0;
    const int64_t most = t == SAC_I8 ? INT8_MAX : t == SAC_U8 ? UINT8_MAX : 0;
    SAC_CHECK(c, zero >= least && zero <= most, "%s is %lld; %s has %lld to %lld", name,
              (long long)zero, sac_dtype_name(t), (long long)least, (long long)most);
    return SAC_OK;
}

static sac_result check_scale(const struct sac_op_call *c, const char *name)
{
    const float scale = sac_attr_float(c->node, name, 1);
    SAC_CHECK(c, scale > 0 && isfinite(scale) && isfinite(1 / scale), "%s is %g", name,
              (double)scale);
    return SAC_OK;
}

static sac_result check_operands(const struct sac_op_call *c)
{
    const enum sac_dtype x = c->in[0].dtype, w = c->in[1].dtype;
    SAC_CHECK(c, sac_dtype_is_quantised(x) && w == (x == SAC_F8 ? SAC_F8 : SAC_I8),
              "operands of dtypes %s and %s", sac_in_dtype(c, 0), sac_in_dtype(c, 1));
    SAC_CHECK(c, sac_op_has(c, SAC_QUANT_SCALE), "input 4, the scales, is left out");
    SAC_CHECK(c,
              c->in[SAC_QUANT_SCALE].dtype == SAC_F32 &&
                  (!sac_op_has(c, SAC_QUANT_BIAS) || c->in[SAC_QUANT_BIAS].dtype == SAC_F32),
              "scales or bias not of float32");
    return check_zero(c, "x_zero", x);
}

/* What belongs to each of the output's channels. */
static sac_result check_channels(const struct sac_op_call *c, int64_t channels)
{
    for (int i = SAC_QUANT_BIAS; i <= SAC_QUANT_SCALE; i += SAC_QUANT_SCALE - SAC_QUANT_BIAS)
        SAC_CHECK(c, !sac_op_has(c, i) || (c->in[i].rank == 1 && c->in[i].dims[0] == channels),
                  "input %d is not one number for each of %lld channels", i, (long long)channels);
    return SAC_OK;
}

/* R goes with the attribute. */
static sac_result check_residual(const struct sac_op_call *c)
{
    const struct sac_operand *r = &c->in[SAC_RESIDUAL_INPUT];
    const int64_t             residual = sac_attr_int(c->node, "residual", SAC_RESIDUAL_NONE);
    const bool                has = sac_op_has(c, SAC_RESIDUAL_INPUT);
    SAC_CHECK(c, residual >= 0 && residual < SAC_RESIDUAL_COUNT, "residual %lld",
              (long long)residual);
    SAC_CHECK(c, (residual != SAC_RESIDUAL_NONE) == has, "residual %lld, but input %d is %s",
              (long long)residual, SAC_RESIDUAL_INPUT, has ? "there" : "missing");
    if (!has)
        return SAC_OK;
    SAC_CHECK(c, sac_operand_same_dims(r, &c->out[0]), "the residual's shape is not the output's");
    SAC_CHECK(c, r->dtype == SAC_F32 || sac_dtype_is_quantised(r->dtype), "residual of dtype %s",
              sac_dtype_name(r->dtype));
    if (r->dtype == SAC_F32)
        return SAC_OK;
    SAC_TRY(check_scale(c, "r_scale"));
    return check_zero(c, "r_zero", r->dtype);
}

sac_result sac_quant_check_output(const struct sac_op_call *c, enum sac_dtype *out)
{
    const int64_t type = sac_attr_int(c->node, "y_type", SAC_QUANT_FLOAT);
    *out = dtype_of(type);
    SAC_CHECK(c, type == SAC_QUANT_FLOAT || sac_dtype_is_quantised(*out), "y_type %lld",
              (long long)type);
    if (type == SAC_QUANT_FLOAT)
        return SAC_OK;
    SAC_TRY(check_scale(c, "y_scale"));
    return check_zero(c, "y_zero", *out);
}

static sac_result check_output(const struct sac_op_call *c, enum sac_dtype *out)
{
    SAC_CHECK(c, sac_activation_is_known(c->node, "activation"), "activation %lld",
              (long long)sac_attr_int(c->node, "activation", SAC_ACT_NONE));
    return sac_quant_check_output(c, out);
}

static sac_result quant_conv_shape(struct sac_op_call *c)
{
    enum sac_dtype out;
    SAC_TRY(check_operands(c));
    SAC_TRY(check_output(c, &out));
    SAC_TRY(sac_conv_shape(c, 0, 1, SAC_QUANT_BIAS, out));
    SAC_TRY(check_channels(c, c->in[1].dims[0]));
    return check_residual(c);
}

static sac_result quant_matmul_shape(struct sac_op_call *c)
{
    enum sac_dtype out;
    SAC_TRY(check_operands(c));
    SAC_TRY(check_output(c, &out));
    SAC_CHECK(c, c->in[0].rank >= 2 && c->in[1].rank == 2,
              "a product of %d by %d dimensions; at least 2 by 2 are needed", c->in[0].rank,
              c->in[1].rank);
    SAC_TRY(sac_matmul_shape(c, 0, 1, out));
    SAC_TRY(check_channels(c, c->in[1].dims[1]));
    return check_residual(c);
}

/* ---- the reference ---- */

/* The numbers less their zero point, as the plain kernels take them: int32, or float32 of float8;
 * NULL: no memory. */
static void *widened(const struct sac_operand *o, int zero)
{
    const int64_t n = sac_operand_elements(o);
    void         *wide = sac_alloc((size_t)n * sizeof(int32_t));
    if (!wide)
        return NULL;
    if (o->dtype == SAC_F8)
        sac_load(SAC_F8, o->data, 0, 1, n, wide);
    else if (o->dtype == SAC_I8)
        for (int64_t i = 0; i < n; i++)
            ((int32_t *)wide)[i] = ((const int8_t *)o->data)[i] - zero;
    else
        for (int64_t i = 0; i < n; i++)
            ((int32_t *)wide)[i] = ((const uint8_t *)o->data)[i] - zero;
    return wide;
}

void sac_quant_put(const struct sac_quant *q, const struct sac_operand *y, int64_t i, float v)
{
    if (q->y_dtype == SAC_F32)
        ((float *)y->data)[i] = v;
    else if (q->y_dtype == SAC_F8)
        ((uint8_t *)y->data)[i] = sac_float_to_f8(v * q->y_inverse);
    else
        sac_operand_set(y, i, (double)rintf(v * q->y_inverse) + q->y_zero);
}

/* The sums into the output; element i belongs to channel i / run % channels. */
static void write_output(const struct sac_op_call *c, const void *sums, int64_t run,
                         int64_t channels)
{
    const struct sac_operand   *y = &c->out[0], *r = &c->in[SAC_RESIDUAL_INPUT];
    const struct sac_quant      q = sac_quant_read(c->node);
    const struct sac_activation act = sac_activation_read(c->node);
    const int64_t               residual = sac_attr_int(c->node, "residual", SAC_RESIDUAL_NONE);
    const float                *scale = c->in[SAC_QUANT_SCALE].data;
    const float  *bias = sac_op_has(c, SAC_QUANT_BIAS) ? c->in[SAC_QUANT_BIAS].data : NULL;
    const bool    real = c->in[0].dtype == SAC_F8, plain = residual && r->dtype == SAC_F32;
    const int64_t count = sac_operand_elements(y);
    for (int64_t i = 0; i < count; i++) {
        const int64_t k = i / run % channels;
        const float   sum = real ? ((const float *)sums)[i] : (float)((const int32_t *)sums)[i];
        float         other = 0;
        if (residual)
            other = plain ? ((const float *)r->data)[i]
                          : ((float)sac_operand_get(r, i) - (float)q.r_zero) * q.r_scale;
        float v = sum * scale[k] + (bias ? bias[k] : 0);
        v = sac_activate(residual == SAC_RESIDUAL_BEFORE ? v + other : v, &act);
        if (residual == SAC_RESIDUAL_AFTER)
            v += other;
        sac_quant_put(&q, y, i, v);
    }
}

static sac_result quant_conv_ref(struct sac_op_call *c)
{
    const struct sac_operand *y = &c->out[0];
    const int64_t n = sac_operand_elements(y), run = sac_dims_product(y->rank - 2, y->dims + 2);
    void         *x = widened(&c->in[0], sac_quant_read(c->node).x_zero);
    void         *w = widened(&c->in[1], 0), *sums = sac_alloc((size_t)n * sizeof(int32_t));
    const bool    ok = x && w && sums;
    if (ok) {
        sac_conv_run(c, 0, 1, c->in[0].dtype == SAC_F8 ? SAC_F32 : SAC_I32, x, w, NULL, sums);
        write_output(c, sums, SAC_MAX(run, 1), y->dims[1]);
    }
    sac_free(x);
    sac_free(w);
    sac_free(sums);
    return ok ? SAC_OK : sac_op_no_memory(c);
}

/* X W of int32 numbers, row by row; sums wrap. */
static void multiply(const int32_t *x, const int32_t *w, int64_t rows, int64_t k, int64_t n,
                     uint32_t *y)
{
    memset(y, 0, (size_t)(rows * n) * sizeof *y);
    for (int64_t r = 0; r < rows; r++, y += n)
        for (int64_t i = 0; i < k; i++) {
            const uint32_t by = (uint32_t)x[r * k + i];
            const int32_t *row = w + i * n;
            for (int64_t j = 0; j < n; j++)
                y[j] += by * (uint32_t)row[j];
        }
}

static sac_result quant_matmul_ref(struct sac_op_call *c)
{
    const struct sac_operand *y = &c->out[0], *w = &c->in[1];
    const int64_t             n = sac_operand_elements(y), columns = w->dims[1];
    void                     *x = widened(&c->in[0], sac_quant_read(c->node).x_zero);
    void                     *wide = widened(w, 0), *sums = sac_alloc((size_t)n * sizeof(int32_t));
    const bool                ok = x && wide && sums;
    if (ok && c->in[0].dtype == SAC_F8)
        sac_matmul_run(&c->in[0], w, SAC_CLASS_F32, x, wide, sums);
    else if (ok)
        multiply(x, wide, n / SAC_MAX(columns, 1), w->dims[0], columns, sums);
    if (ok)
        write_output(c, sums, 1, SAC_MAX(columns, 1));
    sac_free(x);
    sac_free(wide);
    sac_free(sums);
    return ok ? SAC_OK : sac_op_no_memory(c);
}

static int64_t quant_conv_flops(const struct sac_op_call *c)
{
    return sac_row_Conv.flops(c);
}

static int64_t quant_matmul_flops(const struct sac_op_call *c)
{
    return sac_row_MatMul.flops(c);
}

const struct sac_op sac_row_QuantConv = {
    SAC_FUSED_ROW(QuantConv, 2, 5), SAC_TOLERANCE(1e-4f, 1e-4f), .flags = SAC_OP_QUANTISES,
    .shape = quant_conv_shape,      .ref = quant_conv_ref,       .flops = quant_conv_flops};
const struct sac_op sac_row_QuantMatMul = {
    SAC_FUSED_ROW(QuantMatMul, 2, 5), SAC_TOLERANCE(1e-4f, 1e-4f), .flags = SAC_OP_QUANTISES,
    .shape = quant_matmul_shape,      .ref = quant_matmul_ref,     .flops = quant_matmul_flops};
