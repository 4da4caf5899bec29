/* SPDX-License-Identifier: Apache-2.0 */
/* Binary operators with broadcasting: arithmetic, comparison, logic, bits; and the operators with
 * any number of inputs (Max, Min, Sum, Mean), as a chain of those. */
#include <tgmath.h>

#include "engine/ops/util.h"

/* a, b and y are dense; y is of the class of the output's dtype. */
typedef void binary_fn(const void *a, const void *b, void *y, int64_t n);
struct binary {
    binary_fn *fn[SAC_CLASS_COUNT];
};

#define EXPRESSION(op, suffix, type, result, expr)                                 \
    static void op##_##suffix(const void *pa, const void *pb, void *py, int64_t n) \
    {                                                                              \
        const type *va = pa, *vb = pb;                                             \
        result     *y = py;                                                        \
        for (int64_t i = 0; i < n; i++) {                                          \
            type a = va[i], b = vb[i];                                             \
            (void)b;                                                               \
            y[i] = (result)(expr);                                                 \
        }                                                                          \
    }
#define FLOATS(op, expr) \
    EXPRESSION(op, f32, float, float, expr) EXPRESSION(op, f64, double, double, expr)
#define SIGNED(op, expr)   EXPRESSION(op, i64, int64_t, int64_t, expr)
#define UNSIGNED(op, expr) EXPRESSION(op, u64, uint64_t, uint64_t, expr)
/* Computed without a sign: the low bits are the same, and overflow is defined. */
#define WRAPPING(op, expr) EXPRESSION(op, i64, uint64_t, uint64_t, expr) UNSIGNED(op, expr)
#define COMPARE(op, expr)                       \
    EXPRESSION(op, f32, float, int64_t, expr)   \
    EXPRESSION(op, f64, double, int64_t, expr)  \
    EXPRESSION(op, i64, int64_t, int64_t, expr) \
    EXPRESSION(op, u64, uint64_t, int64_t, expr)

/* Integer division rounds towards zero; division by zero gives 0 instead of a trap. */
static int64_t divide(int64_t a, int64_t b)
{
    return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}
/* Remainder with the sign of the divisor (Python's %), and with that of the dividend (C's). */
static int64_t remainder_c(int64_t a, int64_t b)
{
    return b == 0 || b == -1 ? 0 : a % b;
}
static int64_t modulo(int64_t a, int64_t b)
{
    int64_t r = remainder_c(a, b);
    return r && (r < 0) != (b < 0) ? r + b : r;
}
static uint64_t power(uint64_t a, uint64_t b)
{
    uint64_t y = 1;
    for (; b; b >>= 1, a *= a)
        if (b & 1)
            y *= a;
    return y;
}

FLOATS(Add, a + b)
WRAPPING(Add, a + b)
FLOATS(Sub, a - b)
WRAPPING(Sub, a - b)
FLOATS(Mul, a *b)
WRAPPING(Mul, a *b)
FLOATS(Div, a / b)
SIGNED(Div, divide(a, b))
UNSIGNED(Div, b ? a / b : 0)
FLOATS(Pow, b == 2 ? a * a : pow(a, b))
/* A negative exponent gives 1, -1 or 0. */
SIGNED(Pow, b >= 0    ? (int64_t)power((uint64_t)a, (uint64_t)b)
            : a == 1  ? 1
            : a == -1 ? (b & 1 ? -1 : 1)
                      : 0)
UNSIGNED(Pow, power(a, b))
FLOATS(Mod, fmod(a, b) != 0 && (fmod(a, b) < 0) != (b < 0) ? fmod(a, b) + b : fmod(a, b))
SIGNED(Mod, modulo(a, b))
UNSIGNED(Mod, b ? a % b : 0)
FLOATS(Fmod, fmod(a, b))
SIGNED(Fmod, remainder_c(a, b))
/* NaN wins, from either side. */
FLOATS(Max, isnan(a) || a > b ? a : b)
SIGNED(Max, a > b ? a : b)
UNSIGNED(Max, a > b ? a : b)
FLOATS(Min, isnan(a) || a < b ? a : b)
SIGNED(Min, a < b ? a : b)
UNSIGNED(Min, a < b ? a : b)
FLOATS(PRelu, a < 0 ? a * b : a)
SIGNED(PRelu, a < 0 ? (int64_t)((uint64_t)a * (uint64_t)b) : a)
UNSIGNED(PRelu, a)
COMPARE(Equal, a == b)
COMPARE(Greater, a > b)
COMPARE(GreaterOrEqual, a >= b)
COMPARE(Less, a < b)
COMPARE(LessOrEqual, a <= b)
SIGNED(And, a &&b)
SIGNED(Or, a || b)
SIGNED(Xor, !a != !b)
WRAPPING(BitwiseAnd, a &b)
WRAPPING(BitwiseOr, a | b)
WRAPPING(BitwiseXor, a ^ b)
WRAPPING(ShiftLeft, b < 64 ? a << b : 0)
/* A negative count counts as a huge one; right shifts copy the sign. */
SIGNED(ShiftRight, a >> (b >= 0 && b < 64 ? b : 63))
UNSIGNED(ShiftRight, b < 64 ? a >> b : 0)

#define F(op) [SAC_CLASS_F32] = op##_f32, [SAC_CLASS_F64] = op##_f64
#define S(op) [SAC_CLASS_I64] = op##_i64
#define U(op) [SAC_CLASS_U64] = op##_u64
static const struct binary fmod_kernel = {{F(Fmod), S(Fmod), U(Mod)}};
static const struct binary shift_right = {{S(ShiftRight), U(ShiftRight)}};

static binary_fn *kernel_of(const struct sac_op_call *c)
{
    const struct sac_node *n = c->node;
    enum sac_class         k = sac_dtype_class(c->in[0].dtype);
    if (n->op->id == SAC_OP_Mod && sac_attr_int(n, "fmod", 0))
        return fmod_kernel.fn[k];
    if (n->op->id == SAC_OP_BitShift && strcmp(sac_attr_string(n, "direction", ""), "LEFT") != 0)
        return shift_right.fn[k];
    return ((const struct binary *)n->op->own)->fn[k];
}

/* n elements of an operand in its class: in place when they are dense and of that type, else in
 * chunk. */
static const void *view(const struct sac_operand *o, int64_t start, int64_t step, int64_t n,
                        void *chunk)
{
    enum sac_dtype t = o->dtype;
    if (step == 1 && (t == SAC_F32 || t == SAC_F64 || t == SAC_I64 || t == SAC_U64))
        return (const char *)o->data + start * (int64_t)sac_dtype_bytes(t);
    sac_load(t, o->data, start, step, n, chunk);
    return chunk;
}

enum { CHUNK = 512 };

/* y = fn(a, b) over y's shape; y may be a or b. */
static void apply(binary_fn *fn, const struct sac_operand *a, const struct sac_operand *b,
                  const struct sac_operand *y)
{
    double          ca[CHUNK], cb[CHUNK], cy[CHUNK]; /* room for any class */
    struct sac_walk w;
    sac_walk_init(&w, y->rank, y->dims);
    int ia = sac_walk_operand(&w, a), ib = sac_walk_operand(&w, b), iy = sac_walk_operand(&w, y);
    for (sac_walk_start(&w); w.run; sac_walk_next(&w)) {
        for (int64_t i = 0; i < w.run; i += CHUNK) {
            int64_t     n = SAC_MIN(w.run - i, (int64_t)CHUNK);
            const void *va = view(a, w.at[ia] + i * w.step[ia], w.step[ia], n, ca);
            const void *vb = view(b, w.at[ib] + i * w.step[ib], w.step[ib], n, cb);
            fn(va, vb, cy, n);
            sac_store(y->dtype, y->data, w.at[iy] + i, n, cy);
        }
    }
}

static sac_result check_dtypes(struct sac_op_call *c)
{
    enum sac_dtype t = c->in[0].dtype;
    enum sac_op_id id = c->node->op->id;
    bool           logical = id == SAC_OP_And || id == SAC_OP_Or || id == SAC_OP_Xor;
    bool           boolean = logical || id == SAC_OP_Equal;
    SAC_CHECK(c, kernel_of(c) && (t == SAC_BOOL ? boolean : !logical), "inputs of dtype %s",
              sac_in_dtype(c, 0));
    for (int i = 1; i < c->in_count; i++)
        SAC_CHECK(c, c->in[i].dtype == t || id == SAC_OP_Pow, "inputs of dtypes %s and %s",
                  sac_in_dtype(c, 0), sac_in_dtype(c, i));
    return SAC_OK;
}

static sac_result arithmetic_shape(struct sac_op_call *c)
{
    SAC_TRY(check_dtypes(c));
    return sac_shape_broadcast(c);
}

static sac_result compare_shape(struct sac_op_call *c)
{
    SAC_TRY(arithmetic_shape(c));
    c->out[0].dtype = SAC_BOOL;
    return SAC_OK;
}

static sac_result prelu_shape(struct sac_op_call *c)
{
    SAC_TRY(arithmetic_shape(c));
    SAC_CHECK(c,
              sac_operand_elements(&c->out[0]) == sac_operand_elements(&c->in[0]) &&
                  c->out[0].rank == c->in[0].rank,
              "the slope is larger than the input");
    return SAC_OK;
}

static sac_result binary_ref(struct sac_op_call *c)
{
    apply(kernel_of(c), &c->in[0], &c->in[1], &c->out[0]);
    return SAC_OK;
}

/* Base and exponent may differ in dtype; the result is of the base's. */
static sac_result pow_ref(struct sac_op_call *c)
{
    const struct sac_operand *a = &c->in[0], *b = &c->in[1], *y = &c->out[0];
    if (sac_dtype_class(a->dtype) == sac_dtype_class(b->dtype))
        return binary_ref(c);
    struct sac_walk w;
    sac_walk_init(&w, y->rank, y->dims);
    int ia = sac_walk_operand(&w, a), ib = sac_walk_operand(&w, b), iy = sac_walk_operand(&w, y);
    for (sac_walk_start(&w); w.run; sac_walk_next(&w))
        for (int64_t i = 0; i < w.run; i++)
            sac_operand_set(y, w.at[iy] + i,
                            pow(sac_operand_get(a, w.at[ia] + i * w.step[ia]),
                                sac_operand_get(b, w.at[ib] + i * w.step[ib])));
    return SAC_OK;
}

static sac_result variadic_ref(struct sac_op_call *c)
{
    const struct sac_operand *y = &c->out[0];
    if (c->in_count == 1) {
        memcpy(y->data, c->in[0].data, sac_operand_bytes(y));
        return SAC_OK;
    }
    apply(kernel_of(c), &c->in[0], &c->in[1], y);
    for (int i = 2; i < c->in_count; i++)
        apply(kernel_of(c), y, &c->in[i], y);
    return SAC_OK;
}

static sac_result mean_ref(struct sac_op_call *c)
{
    const struct sac_operand *y = &c->out[0];
    SAC_TRY(variadic_ref(c));
    for (int64_t i = 0, n = sac_operand_elements(y); i < n; i++)
        sac_operand_set(y, i, sac_operand_get(y, i) / c->in_count);
    return SAC_OK;
}

#define ROW(op, since, in_max, shape_fn, ref_fn, ...)                                      \
    const struct sac_op sac_row_##op = {SAC_ROW(op, since, SAC_MIN(in_max, 2), in_max, 1), \
                                        SAC_TOLERANCE(1e-6f, 1e-6f),                       \
                                        .flags = SAC_OP_ELEMENTWISE,                       \
                                        .shape = shape_fn,                                 \
                                        .ref = ref_fn,                                     \
                                        .own = &(const struct binary){{__VA_ARGS__}}}
ROW(Add, 7, 2, arithmetic_shape, binary_ref, F(Add), S(Add), U(Add));
ROW(Sub, 7, 2, arithmetic_shape, binary_ref, F(Sub), S(Sub), U(Sub));
ROW(Mul, 7, 2, arithmetic_shape, binary_ref, F(Mul), S(Mul), U(Mul));
ROW(Div, 7, 2, arithmetic_shape, binary_ref, F(Div), S(Div), U(Div));
ROW(Mod, 10, 2, arithmetic_shape, binary_ref, F(Mod), S(Mod), U(Mod));
ROW(Pow, 7, 2, arithmetic_shape, pow_ref, F(Pow), S(Pow), U(Pow));
ROW(PRelu, 7, 2, prelu_shape, binary_ref, F(PRelu), S(PRelu), U(PRelu));
ROW(BitwiseAnd, 18, 2, arithmetic_shape, binary_ref, S(BitwiseAnd), U(BitwiseAnd));
ROW(BitwiseOr, 18, 2, arithmetic_shape, binary_ref, S(BitwiseOr), U(BitwiseOr));
ROW(BitwiseXor, 18, 2, arithmetic_shape, binary_ref, S(BitwiseXor), U(BitwiseXor));
ROW(BitShift, 11, 2, arithmetic_shape, binary_ref, S(ShiftLeft), U(ShiftLeft));
ROW(Equal, 7, 2, compare_shape, binary_ref, F(Equal), S(Equal), U(Equal));
ROW(Greater, 7, 2, compare_shape, binary_ref, F(Greater), S(Greater), U(Greater));
ROW(GreaterOrEqual, 12, 2, compare_shape, binary_ref, F(GreaterOrEqual), S(GreaterOrEqual),
    U(GreaterOrEqual));
ROW(Less, 7, 2, compare_shape, binary_ref, F(Less), S(Less), U(Less));
ROW(LessOrEqual, 12, 2, compare_shape, binary_ref, F(LessOrEqual), S(LessOrEqual), U(LessOrEqual));
ROW(And, 7, 2, compare_shape, binary_ref, S(And));
ROW(Or, 7, 2, compare_shape, binary_ref, S(Or));
ROW(Xor, 7, 2, compare_shape, binary_ref, S(Xor));

/* Not in place: an input of the output's size may be read after the output was first written. */
#define VARIADIC(op, ref_fn, ...)                                             \
    const struct sac_op sac_row_##op = {                                      \
        SAC_ROW(op, 6, 1, SAC_OP_INPUTS_MAX, 1), SAC_TOLERANCE(1e-6f, 1e-6f), \
        .shape = arithmetic_shape, .ref = ref_fn, .own = &(const struct binary){{__VA_ARGS__}}}
VARIADIC(Max, variadic_ref, F(Max), S(Max), U(Max));
VARIADIC(Min, variadic_ref, F(Min), S(Min), U(Min));
VARIADIC(Sum, variadic_ref, F(Add));
VARIADIC(Mean, mean_ref, F(Add));

/* ---- SwiGLU: the gate a, as Swish with its alpha, times b ---- */

static sac_result swiglu_shape(struct sac_op_call *c)
{
    const struct sac_operand *a = &c->in[0], *b = &c->in[1];
    SAC_CHECK(c, sac_dtype_is_float(a->dtype) && b->dtype == a->dtype, "inputs of dtypes %s and %s",
              sac_in_dtype(c, 0), sac_in_dtype(c, 1));
    SAC_CHECK(
        c, a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0,
        "gate and value differ in shape");
    return sac_shape_same(c);
}

static sac_result swiglu_ref(struct sac_op_call *c)
{
    double alpha = sac_attr_float(c->node, "alpha", 1);
    for (int64_t i = 0, n = sac_operand_elements(&c->in[0]); i < n; i++) {
        double a = sac_operand_get(&c->in[0], i), b = sac_operand_get(&c->in[1], i);
        sac_operand_set(&c->out[0], i, a / (1 + exp(-alpha * a)) * b);
    }
    return SAC_OK;
}

const struct sac_op sac_row_SwiGLU = {SAC_ROW(SwiGLU, 28, 2, 2, 1), SAC_TOLERANCE(1e-6f, 1e-5f),
                                      .flags = SAC_OP_ELEMENTWISE, .shape = swiglu_shape,
                                      .ref = swiglu_ref};
