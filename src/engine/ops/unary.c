/* SPDX-License-Identifier: Apache-2.0 */
/* Unary operators: activation and rounding functions, each an expression of x and up to two
 * attributes a and b. */
#include <tgmath.h>

#include "engine/ops/util.h"

struct unary {
    void (*fn[SAC_CLASS_COUNT])(const void *in, void *out, int64_t n, double a, double b);
    const char *a_name, *b_name;
    float       a, b; /* attribute defaults */
};

#define EXPRESSION(op, suffix, type, expr)                                                \
    static void op##_##suffix(const void *in, void *out, int64_t n, double a_, double b_) \
    {                                                                                     \
        const type  a = (type)a_, b = (type)b_;                                           \
        const type *src = in;                                                             \
        type       *dst = out;                                                            \
        (void)a, (void)b;                                                                 \
        for (int64_t i = 0; i < n; i++) {                                                 \
            type x = src[i];                                                              \
            dst[i] = (type)(expr);                                                        \
        }                                                                                 \
    }
/* tgmath.h makes one expression serve both precisions. */
#define FLOATS(op, expr) EXPRESSION(op, f32, float, expr) EXPRESSION(op, f64, double, expr)

#define K(constant) ((__typeof__(x))(constant))
#define SIGMOID(x)  (1 / (1 + exp(-(x))))
#define SOFTPLUS(x) ((x) > 0 ? (x) + log1p(exp(-(x))) : log1p(exp(x))) /* exp cannot overflow */
#define CLAMP01(x)  ((x) < 0 ? 0 : (x) > 1 ? 1 : (x))

FLOATS(Abs, fabs(x))
EXPRESSION(Abs, i64, int64_t, x < 0 ? 0 - (uint64_t)x : (uint64_t)x)
EXPRESSION(Abs, u64, uint64_t, x)
FLOATS(Acos, acos(x))
FLOATS(Acosh, acosh(x))
FLOATS(Asin, asin(x))
FLOATS(Asinh, asinh(x))
FLOATS(Atan, atan(x))
FLOATS(Atanh, atanh(x))
EXPRESSION(BitwiseNot, i64, int64_t, ~x)
EXPRESSION(BitwiseNot, u64, uint64_t, ~x)
FLOATS(Ceil, ceil(x))
FLOATS(Celu, x > 0 ? x : a * expm1(x / a))
FLOATS(Cos, cos(x))
FLOATS(Cosh, cosh(x))
FLOATS(Elu, x > 0 ? x : a * expm1(x))
FLOATS(Erf, erf(x))
FLOATS(Exp, exp(x))
FLOATS(Floor, floor(x))
FLOATS(Gelu, x / 2 * (1 + erf(x * K(0.70710678118654752440))))
/* the factor is sqrt(2 / pi) */
FLOATS(GeluTanh, x / 2 * (1 + tanh(K(0.79788456080286535588) * (x + K(0.044715) * x * x * x))))
FLOATS(HardSigmoid, CLAMP01(a *x + b))
FLOATS(HardSwish, x *CLAMP01(x / 6 + K(0.5)))
FLOATS(LeakyRelu, x < 0 ? a * x : x)
FLOATS(Log, log(x))
FLOATS(Mish, x *tanh(SOFTPLUS(x)))
FLOATS(Neg, -x)
EXPRESSION(Neg, i64, int64_t, 0 - (uint64_t)x)
EXPRESSION(Not, i64, int64_t, !x)
FLOATS(Reciprocal, 1 / x)
FLOATS(Relu, x < 0 ? 0 : x) /* NaN stays NaN */
EXPRESSION(Relu, i64, int64_t, x < 0 ? 0 : x)
FLOATS(Round, rint(x)) /* the default rounding is to even, as ONNX wants */
FLOATS(Selu, x > 0 ? b * x : b * a * expm1(x))
FLOATS(Shrink, x<-b ? x + a : x> b ? x - a : 0)
FLOATS(Sigmoid, SIGMOID(x))
FLOATS(Sign, x > 0 ? 1 : x < 0 ? -1 : x)
EXPRESSION(Sign, i64, int64_t, x > 0 ? 1 : x < 0 ? -1 : 0)
EXPRESSION(Sign, u64, uint64_t, x > 0)
FLOATS(Sin, sin(x))
FLOATS(Sinh, sinh(x))
FLOATS(Softplus, SOFTPLUS(x))
FLOATS(Softsign, x / (1 + fabs(x)))
FLOATS(Sqrt, sqrt(x))
FLOATS(Swish, x *SIGMOID(a *x))
FLOATS(Tan, tan(x))
FLOATS(Tanh, tanh(x))
FLOATS(ThresholdedRelu, x > a ? x : 0)

#define F(op) [SAC_CLASS_F32] = op##_f32, [SAC_CLASS_F64] = op##_f64
#define S(op) [SAC_CLASS_I64] = op##_i64
#define U(op) [SAC_CLASS_U64] = op##_u64
static const struct unary gelu_tanh = {{F(GeluTanh)}};

static const struct unary *kernel_of(const struct sac_op_call *c)
{
    if (c->node->op->id == SAC_OP_Gelu &&
        strcmp(sac_attr_string(c->node, "approximate", "none"), "tanh") == 0)
        return &gelu_tanh;
    return c->node->op->own;
}

static sac_result unary_shape(struct sac_op_call *c)
{
    bool logical = c->node->op->id == SAC_OP_Not;
    SAC_CHECK(c,
              kernel_of(c)->fn[sac_dtype_class(c->in[0].dtype)] &&
                  (c->in[0].dtype == SAC_BOOL) == logical,
              "input of dtype %s", sac_in_dtype(c, 0));
    return sac_shape_same(c);
}

static sac_result unary_ref(struct sac_op_call *c)
{
    const struct unary *u = kernel_of(c);
    enum sac_dtype      t = c->in[0].dtype;
    double              a = u->a_name ? sac_attr_float(c->node, u->a_name, u->a) : 0;
    double              b = u->b_name ? sac_attr_float(c->node, u->b_name, u->b) : 0;
    int64_t             n = sac_operand_elements(&c->in[0]);
    if (t == SAC_F32 || t == SAC_F64 || t == SAC_I64 || t == SAC_U64) {
        u->fn[sac_dtype_class(t)](c->in[0].data, c->out[0].data, n, a, b);
        return SAC_OK;
    }
    double chunk[256]; /* room for any class */
    for (int64_t i = 0; i < n; i += (int64_t)SAC_COUNT(chunk)) {
        int64_t m = SAC_MIN(n - i, (int64_t)SAC_COUNT(chunk));
        sac_load(t, c->in[0].data, i, 1, m, chunk);
        u->fn[sac_dtype_class(t)](chunk, chunk, m, a, b);
        sac_store(t, c->out[0].data, i, m, chunk);
    }
    return SAC_OK;
}

#define ROW(op, ...)                                                 \
    const struct sac_op sac_row_##op = {SAC_ROW(op, 1, 1, 1, 1),     \
                                        SAC_TOLERANCE(1e-7f, 1e-5f), \
                                        .flags = SAC_OP_ELEMENTWISE, \
                                        .shape = unary_shape,        \
                                        .ref = unary_ref,            \
                                        .own = &(const struct unary){__VA_ARGS__}}
ROW(Abs, {F(Abs), S(Abs), U(Abs)});
ROW(Acos, {F(Acos)});
ROW(Acosh, {F(Acosh)});
ROW(Asin, {F(Asin)});
ROW(Asinh, {F(Asinh)});
ROW(Atan, {F(Atan)});
ROW(Atanh, {F(Atanh)});
ROW(BitwiseNot, {S(BitwiseNot), U(BitwiseNot)});
ROW(Ceil, {F(Ceil)});
ROW(Celu, {F(Celu)}, "alpha", NULL, 1);
ROW(Cos, {F(Cos)});
ROW(Cosh, {F(Cosh)});
ROW(Elu, {F(Elu)}, "alpha", NULL, 1);
ROW(Erf, {F(Erf)});
ROW(Exp, {F(Exp)});
ROW(Floor, {F(Floor)});
ROW(Gelu, {F(Gelu)});
ROW(HardSigmoid, {F(HardSigmoid)}, "alpha", "beta", 0.2f, 0.5f);
ROW(HardSwish, {F(HardSwish)});
ROW(LeakyRelu, {F(LeakyRelu)}, "alpha", NULL, 0.01f);
ROW(Log, {F(Log)});
ROW(Mish, {F(Mish)});
ROW(Neg, {F(Neg), S(Neg)});
ROW(Not, {S(Not)});
ROW(Reciprocal, {F(Reciprocal)});
ROW(Relu, {F(Relu), S(Relu)});
ROW(Round, {F(Round)});
ROW(Selu, {F(Selu)}, "alpha", "gamma", 1.67326319f, 1.05070102f);
ROW(Shrink, {F(Shrink)}, "bias", "lambd", 0, 0.5f);
ROW(Sigmoid, {F(Sigmoid)});
ROW(Sign, {F(Sign), S(Sign), U(Sign)});
ROW(Sin, {F(Sin)});
ROW(Sinh, {F(Sinh)});
ROW(Softplus, {F(Softplus)});
ROW(Softsign, {F(Softsign)});
ROW(Sqrt, {F(Sqrt)});
ROW(Swish, {F(Swish)}, "alpha", NULL, 1);
ROW(Tan, {F(Tan)});
ROW(Tanh, {F(Tanh)});
ROW(ThresholdedRelu, {F(ThresholdedRelu)}, "alpha", NULL, 1);

/* ---- floats to bool ---- */

static sac_result test_shape(struct sac_op_call *c)
{
    SAC_CHECK(c, sac_dtype_is_float(c->in[0].dtype), "input of dtype %s; have the float types",
              sac_in_dtype(c, 0));
    return sac_shape_out(c, 0, SAC_BOOL, c->in[0].rank, c->in[0].dims);
}

static sac_result isnan_ref(struct sac_op_call *c)
{
    for (int64_t i = 0, n = sac_operand_elements(&c->in[0]); i < n; i++)
        ((uint8_t *)c->out[0].data)[i] = isnan(sac_operand_get(&c->in[0], i));
    return SAC_OK;
}

static sac_result isinf_ref(struct sac_op_call *c)
{
    bool negative = sac_attr_int(c->node, "detect_negative", 1);
    bool positive = sac_attr_int(c->node, "detect_positive", 1);
    for (int64_t i = 0, n = sac_operand_elements(&c->in[0]); i < n; i++) {
        double x = sac_operand_get(&c->in[0], i);
        ((uint8_t *)c->out[0].data)[i] = isinf(x) && (x < 0 ? negative : positive);
    }
    return SAC_OK;
}

const struct sac_op sac_row_IsNaN = {SAC_ROW(IsNaN, 9, 1, 1, 1), .shape = test_shape,
                                     .ref = isnan_ref};
const struct sac_op sac_row_IsInf = {SAC_ROW(IsInf, 10, 1, 1, 1), .shape = test_shape,
                                     .ref = isinf_ref};
