/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of any dtype: the classes that they are computed in, and the conversions. */
#include <math.h>

#include "engine/ops/half.h"
#include "engine/ops/util.h"

int64_t sac_operand_elements(const struct sac_operand *o)
{
    return sac_dims_product(o->rank, o->dims);
}

size_t sac_operand_bytes(const struct sac_operand *o)
{
    return (size_t)sac_operand_elements(o) * sac_dtype_bytes(o->dtype);
}

bool sac_dtype_is_float(enum sac_dtype t)
{
    return t == SAC_F32 || t == SAC_F16 || t == SAC_F64 || t == SAC_BF16;
}

bool sac_dtype_is_integer(enum sac_dtype t)
{
    return t >= SAC_I8 && t <= SAC_U64;
}

enum sac_class sac_dtype_class(enum sac_dtype t)
{
    if (t == SAC_F64)
        return SAC_CLASS_F64;
    if (t == SAC_U64)
        return SAC_CLASS_U64;
    return sac_dtype_is_float(t) || t == SAC_F8 ? SAC_CLASS_F32 : SAC_CLASS_I64;
}

float sac_half_to_float(uint16_t h)
{
    return sac_half_value(h);
}

uint16_t sac_float_to_half(float f)
{
    return sac_half_of(f);
}

float sac_bf16_to_float(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float    f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

uint16_t sac_float_to_bf16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float sac_f8_to_float(uint8_t v)
{
    const int   exponent = v >> 3 & 15, mantissa = v & 7;
    const float f = (v & 0x7f) == 0x7f ? NAN
                    : exponent == 0    ? (float)mantissa * 0x1p-9f
                                       : ldexpf((float)(8 + mantissa), exponent - 10);
    return v & 0x80 ? -f : f;
}

uint8_t sac_float_to_f8(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    const uint8_t sign = bits >> 24 & 0x80;
    uint32_t      magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000)
        return sign | 0x7f;
    if (magnitude >= 0x43e00000) /* 448, and what would round to more */
        return sign | 0x7e;
    if (magnitude < 0x3c800000) /* under 2^-6: subnormal, a multiple of 2^-9 */
        return sign | (uint8_t)lrintf(fabsf(f) * 0x1p9f);
    magnitude += 0x7ffff + (magnitude >> 20 & 1); /* to nearest, ties to even */
    return sign | (uint8_t)((magnitude >> 20) - (120 << 3));
}

/* X(dtype, type in memory, class's type, to class, from class) */
#define EXACT(v) (v)
#define EACH_DTYPE(X)                                                  \
    X(SAC_F32, float, float, EXACT, EXACT)                             \
    X(SAC_F16, uint16_t, float, sac_half_to_float, sac_float_to_half)  \
    X(SAC_BF16, uint16_t, float, sac_bf16_to_float, sac_float_to_bf16) \
    X(SAC_F8, uint8_t, float, sac_f8_to_float, sac_float_to_f8)        \
    X(SAC_F64, double, double, EXACT, EXACT)                           \
    X(SAC_I8, int8_t, int64_t, EXACT, (int8_t))                        \
    X(SAC_U8, uint8_t, int64_t, EXACT, (uint8_t))                      \
    X(SAC_I16, int16_t, int64_t, EXACT, (int16_t))                     \
    X(SAC_U16, uint16_t, int64_t, EXACT, (uint16_t))                   \
    X(SAC_I32, int32_t, int64_t, EXACT, (int32_t))                     \
    X(SAC_U32, uint32_t, int64_t, EXACT, (uint32_t))                   \
    X(SAC_I64, int64_t, int64_t, EXACT, EXACT)                         \
    X(SAC_U64, uint64_t, uint64_t, EXACT, EXACT)                       \
    X(SAC_BOOL, uint8_t, int64_t, EXACT, 0 !=)

void sac_load(enum sac_dtype t, const void *base, int64_t start, int64_t stride, int64_t n,
              void *out)
{
    switch (t) {
#define X(dtype, type, klass, to, from)               \
    case dtype: {                                     \
        const type *src = (const type *)base + start; \
        klass      *dst = out;                        \
        for (int64_t i = 0; i < n; i++)               \
            dst[i] = (klass)to(src[i * stride]);      \
        break;                                        \
    }
        EACH_DTYPE(X)
#undef X
    default: break;
    }
}

void sac_store(enum sac_dtype t, void *base, int64_t start, int64_t n, const void *values)
{
    switch (t) {
#define X(dtype, type, klass, to, from)          \
    case dtype: {                                \
        const klass *src = values;               \
        type        *dst = (type *)base + start; \
        for (int64_t i = 0; i < n; i++)          \
            dst[i] = from(src[i]);               \
        break;                                   \
    }
        EACH_DTYPE(X)
#undef X
    default: break;
    }
}

double sac_operand_get(const struct sac_operand *o, int64_t i)
{
    switch (o->dtype) {
#define X(dtype, type, klass, to, from) \
    case dtype: return (double)to(((const type *)o->data)[i]);
        EACH_DTYPE(X)
#undef X
    default: return 0;
    }
}

/* Bounds of the integers as doubles: v fits when lo <= v < hi. */
static const struct bounds {
    double lo, hi;
} bounds[SAC_DTYPE_COUNT] = {
    [SAC_I8] = {-0x1p7, 0x1p7},    [SAC_U8] = {0, 0x1p8},         [SAC_I16] = {-0x1p15, 0x1p15},
    [SAC_U16] = {0, 0x1p16},       [SAC_I32] = {-0x1p31, 0x1p31}, [SAC_U32] = {0, 0x1p32},
    [SAC_I64] = {-0x1p63, 0x1p63}, [SAC_U64] = {0, 0x1p64},
};

/* The smallest or largest value of the dtype. */
static void set_bound(const struct sac_operand *o, int64_t i, bool upper)
{
    uint64_t max = o->dtype == SAC_U64   ? UINT64_MAX
                   : o->dtype == SAC_I64 ? INT64_MAX
                                         : (uint64_t)bounds[o->dtype].hi - 1;
    int64_t  min = (int64_t)bounds[o->dtype].lo;
    sac_store(o->dtype, o->data, i, 1, upper ? (const void *)&max : (const void *)&min);
}

void sac_operand_set(const struct sac_operand *o, int64_t i, double v)
{
    const struct bounds *b = &bounds[o->dtype];
    if (o->dtype == SAC_BOOL)
        v = v != 0; /* before the conversion to an integer, which a large number would not fit */
    if (b->hi != 0) {
        v = isnan(v) ? 0 : rint(v);
        if (v >= b->hi || v < b->lo) {
            set_bound(o, i, v >= b->hi);
            return;
        }
    }
    switch (o->dtype) {
#define X(dtype, type, klass, to, from) \
    case dtype: ((type *)o->data)[i] = from((klass)v); break;
        EACH_DTYPE(X)
#undef X
    default: break;
    }
}

void sac_read_doubles(const struct sac_operand *o, int64_t start, int64_t stride, int64_t n,
                      double *out)
{
    if (o->dtype == SAC_F32)
        for (int64_t i = 0; i < n; i++)
            out[i] = ((const float *)o->data)[start + i * stride];
    else
        for (int64_t i = 0; i < n; i++)
            out[i] = sac_operand_get(o, start + i * stride);
}

void sac_write_doubles(const struct sac_operand *o, int64_t start, int64_t stride, int64_t n,
                       const double *values)
{
    if (o->dtype == SAC_F32)
        for (int64_t i = 0; i < n; i++)
            ((float *)o->data)[start + i * stride] = (float)values[i];
    else
        for (int64_t i = 0; i < n; i++)
            sac_operand_set(o, start + i * stride, values[i]);
}

const float *sac_floats(const struct sac_operand *o)
{
    if (o->dtype == SAC_F32)
        return o->data;
    int64_t n = sac_operand_elements(o);
    float  *f = sac_alloc((size_t)n * sizeof *f);
    if (f && sac_dtype_class(o->dtype) == SAC_CLASS_F32)
        sac_load(o->dtype, o->data, 0, 1, n, f);
    else if (f)
        for (int64_t i = 0; i < n; i++)
            f[i] = (float)sac_operand_get(o, i);
    return f;
}

void sac_floats_done(const struct sac_operand *o, const float *f)
{
    if (f != o->data)
        sac_free((void *)f);
}

const double *sac_doubles(const struct sac_operand *o)
{
    if (o->dtype == SAC_F64)
        return o->data;
    int64_t n = sac_operand_elements(o);
    double *d = sac_alloc((size_t)n * sizeof *d);
    if (d)
        sac_read_doubles(o, 0, 1, n, d);
    return d;
}

void sac_doubles_done(const struct sac_operand *o, const double *d)
{
    if (d != o->data)
        sac_free((void *)d);
}
