/* SPDX-License-Identifier: Apache-2.0 */
/* Cast and CastLike convert the dtype; BitCast reinterprets the bits. */
#include "engine/ops/util.h"

enum sac_dtype sac_dtype_from_onnx(int64_t type)
{
    static const enum sac_dtype of[] = {
        [1] = SAC_F32,  [2] = SAC_U8,   [3] = SAC_I8,    [4] = SAC_U16,  [5] = SAC_I16,
        [6] = SAC_I32,  [7] = SAC_I64,  [9] = SAC_BOOL,  [10] = SAC_F16, [11] = SAC_F64,
        [12] = SAC_U32, [13] = SAC_U64, [16] = SAC_BF16, [17] = SAC_F8};
    return type >= 0 && type < (int64_t)SAC_COUNT(of) ? of[type] : SAC_DTYPE_NONE;
}

/* Rounds towards zero. Values out of range saturate and NaN becomes 0, because a plain conversion
 * would be undefined. */
static int64_t truncate_i64(double v)
{
    return v != v ? 0 : v >= 0x1p63 ? INT64_MAX : v < -0x1p63 ? INT64_MIN : (int64_t)v;
}
static uint64_t truncate_u64(double v)
{
    return v >= 0x1p63 ? (v < 0x1p64 ? (uint64_t)v : UINT64_MAX) : (uint64_t)truncate_i64(v);
}

#define CONVERT(from, to, function)     \
    {                                   \
        const from *x = in;             \
        to         *y = out;            \
        for (int64_t i = 0; i < n; i++) \
            y[i] = (to)function(x[i]);  \
        return;                         \
    }
#define CONVERT_FROM(type, to_signed, to_unsigned)        \
    switch (to) {                                         \
    case SAC_CLASS_F32: CONVERT(type, float, )            \
    case SAC_CLASS_F64: CONVERT(type, double, )           \
    case SAC_CLASS_I64: CONVERT(type, int64_t, to_signed) \
    default: CONVERT(type, uint64_t, to_unsigned)         \
    }

/* n values of one class to another. */
static void convert(enum sac_class from, enum sac_class to, const void *in, void *out, int64_t n)
{
    switch (from) {
    case SAC_CLASS_F32: CONVERT_FROM(float, truncate_i64, truncate_u64)
    case SAC_CLASS_F64: CONVERT_FROM(double, truncate_i64, truncate_u64)
    case SAC_CLASS_I64: CONVERT_FROM(int64_t, , )
    default: CONVERT_FROM(uint64_t, , )
    }
}

/* Everything but 0 is true, fractions included. */
static void to_bool(const struct sac_operand *in, uint8_t *out)
{
    for (int64_t i = 0, n = sac_operand_elements(in); i < n; i++)
        out[i] = sac_operand_get(in, i) != 0;
}

static sac_result cast_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0], *out = &c->out[0];
    if (out->dtype == SAC_BOOL) {
        to_bool(in, out->data);
        return SAC_OK;
    }
    double a[256], b[256]; /* room for any class */
    for (int64_t i = 0, n = sac_operand_elements(in); i < n; i += (int64_t)SAC_COUNT(a)) {
        int64_t m = SAC_MIN(n - i, (int64_t)SAC_COUNT(a));
        sac_load(in->dtype, in->data, i, 1, m, a);
        convert(sac_dtype_class(in->dtype), sac_dtype_class(out->dtype), a, b, m);
        sac_store(out->dtype, out->data, i, m, b);
    }
    return SAC_OK;
}

static sac_result target_dtype(struct sac_op_call *c, enum sac_dtype *out)
{
    int64_t to = sac_attr_int(c->node, "to", 0);
    *out = sac_dtype_from_onnx(to);
    if (*out == SAC_DTYPE_NONE)
        return SAC_OP_FAIL(c, SAC_ERR_UNSUPPORTED, "cast to ONNX data type %lld", (long long)to);
    return SAC_OK;
}

static sac_result cast_shape(struct sac_op_call *c)
{
    enum sac_dtype to;
    SAC_TRY(target_dtype(c, &to));
    return sac_shape_out(c, 0, to, c->in[0].rank, c->in[0].dims);
}

static sac_result cast_like_shape(struct sac_op_call *c)
{
    return sac_shape_out(c, 0, c->in[1].dtype, c->in[0].rank, c->in[0].dims);
}

static sac_result bit_cast_shape(struct sac_op_call *c)
{
    enum sac_dtype to;
    SAC_TRY(target_dtype(c, &to));
    SAC_CHECK(c, sac_dtype_bytes(to) == sac_dtype_bytes(c->in[0].dtype),
              "bits of %s as %s: the sizes differ", sac_in_dtype(c, 0), sac_dtype_name(to));
    return sac_shape_out(c, 0, to, c->in[0].rank, c->in[0].dims);
}

static sac_result bit_cast_ref(struct sac_op_call *c)
{
    memcpy(c->out[0].data, c->in[0].data, sac_operand_bytes(&c->in[0]));
    return SAC_OK;
}

const struct sac_op sac_row_Cast = {SAC_ROW(Cast, 6, 1, 1, 1), .shape = cast_shape,
                                    .ref = cast_ref};
const struct sac_op sac_row_CastLike = {SAC_ROW(CastLike, 15, 2, 2, 1), .shape = cast_like_shape,
                                        .ref = cast_ref};
const struct sac_op sac_row_BitCast = {SAC_ROW(BitCast, 26, 1, 1, 1), .shape = bit_cast_shape,
                                       .ref = bit_cast_ref};
