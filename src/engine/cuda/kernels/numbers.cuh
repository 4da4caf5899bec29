/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of any dtype in memory, computed in one of four types, as engine/ops/util.h has it for
 * the reference: float (also for the half precisions), double, int64_t (other integers and bool),
 * uint64_t. */
#pragma once

#include <math.h>
#include <string.h>

#include "engine/cuda/kernels/each.cuh"

#ifdef __CUDACC__
#include <cuda_fp16.h>
#else
#include "engine/ops/half.h"
#endif

namespace ops
{

OPS_BODY float half_to_float(uint16_t h)
{
#ifdef __CUDACC__
    return __half2float(__ushort_as_half(h));
#else
    return sac_half_value(h);
#endif
}

OPS_BODY uint16_t float_to_half(float f)
{
#ifdef __CUDACC__
    return __half_as_ushort(__float2half_rn(f));
#else
    return sac_half_of(f);
#endif
}

OPS_BODY float bits_to_float(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

OPS_BODY float bf16_to_float(uint16_t h)
{
    return bits_to_float((uint32_t)h << 16);
}

OPS_BODY uint16_t float_to_bf16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

OPS_BODY bool is_nan(float x)
{
    return x != x;
}
OPS_BODY bool is_nan(double x)
{
    return x != x;
}
OPS_BODY bool is_nan(int64_t)
{
    return false;
}
OPS_BODY bool is_nan(uint64_t)
{
    return false;
}

/* Element i of an array whose numbers are of dtype `type`. */
template <class T> OPS_BODY T get(const void *p, int type, int64_t i)
{
    switch (type) {
    case SAC_F32: return (T)((const float *)p)[i];
    case SAC_F16: return (T)half_to_float(((const uint16_t *)p)[i]);
    case SAC_BF16: return (T)bf16_to_float(((const uint16_t *)p)[i]);
    case SAC_F64: return (T)((const double *)p)[i];
    case SAC_I8: return (T)((const int8_t *)p)[i];
    case SAC_U8:
    case SAC_BOOL: return (T)((const uint8_t *)p)[i];
    case SAC_I16: return (T)((const int16_t *)p)[i];
    case SAC_U16: return (T)((const uint16_t *)p)[i];
    case SAC_I32: return (T)((const int32_t *)p)[i];
    case SAC_U32: return (T)((const uint32_t *)p)[i];
    case SAC_I64: return (T)((const int64_t *)p)[i];
    default: return (T)((const uint64_t *)p)[i];
    }
}

/* Only float dtypes, which takes less code. */
OPS_BODY float get_float(const void *p, int type, int64_t i)
{
    switch (type) {
    case SAC_F32: return ((const float *)p)[i];
    case SAC_F16: return half_to_float(((const uint16_t *)p)[i]);
    case SAC_BF16: return bf16_to_float(((const uint16_t *)p)[i]);
    default: return (float)((const double *)p)[i];
    }
}

OPS_BODY double get_double(const void *p, int type, int64_t i)
{
    return type == SAC_F64 ? ((const double *)p)[i] : (double)get_float(p, type, i);
}

template <class T> struct floats; /* get and put of the float dtypes in float or double */
template <> struct floats<float> {
    static OPS_BODY float get(const void *p, int type, int64_t i)
    {
        return get_float(p, type, i);
    }
};
template <> struct floats<double> {
    static OPS_BODY double get(const void *p, int type, int64_t i)
    {
        return get_double(p, type, i);
    }
};

template <class T> OPS_BODY void put_float(void *p, int type, int64_t i, T v)
{
    switch (type) {
    case SAC_F32: ((float *)p)[i] = (float)v; break;
    case SAC_F16: ((uint16_t *)p)[i] = float_to_half((float)v); break;
    case SAC_BF16: ((uint16_t *)p)[i] = float_to_bf16((float)v); break;
    default: ((double *)p)[i] = (double)v; break;
    }
}

/* Integers wrap, as sac_store has it. */
template <class T> OPS_BODY void put_int(void *p, int type, int64_t i, T v)
{
    switch (type) {
    case SAC_I8:
    case SAC_U8: ((uint8_t *)p)[i] = (uint8_t)v; break;
    case SAC_I16:
    case SAC_U16: ((uint16_t *)p)[i] = (uint16_t)v; break;
    case SAC_I32:
    case SAC_U32: ((uint32_t *)p)[i] = (uint32_t)v; break;
    case SAC_BOOL: ((uint8_t *)p)[i] = v != 0; break;
    default: ((uint64_t *)p)[i] = (uint64_t)v; break;
    }
}

/* Rounded to even and saturated, NaN is 0, as sac_operand_set has it. */
OPS_BODY int64_t saturate(double v, int type)
{
    double lo = 0, hi = 0;
    switch (type) {
    case SAC_I8: lo = -0x1p7, hi = 0x1p7; break;
    case SAC_U8: hi = 0x1p8; break;
    case SAC_I16: lo = -0x1p15, hi = 0x1p15; break;
    case SAC_U16: hi = 0x1p16; break;
    case SAC_I32: lo = -0x1p31, hi = 0x1p31; break;
    case SAC_U32: hi = 0x1p32; break;
    case SAC_I64: lo = -0x1p63, hi = 0x1p63; break;
    default: hi = 0x1p64; break;
    }
    v = v != v ? 0 : rint(v);
    if (v >= hi)
        return type == SAC_I64 ? INT64_MAX : type == SAC_U64 ? -1 : (int64_t)hi - 1;
    if (v < lo)
        return (int64_t)lo;
    return type == SAC_U64 ? (int64_t)(uint64_t)v : (int64_t)v;
}

template <class T> OPS_BODY void put(void *p, int type, int64_t i, T v);
template <> OPS_BODY void        put(void *p, int type, int64_t i, double v)
{
    if (type == SAC_BOOL)
        ((uint8_t *)p)[i] = v != 0;
    else if (type <= SAC_BF16)
        put_float(p, type, i, v);
    else
        put_int(p, type, i, saturate(v, type));
}
template <> OPS_BODY void put(void *p, int type, int64_t i, float v)
{
    if (type <= SAC_BF16)
        put_float(p, type, i, v);
    else
        put(p, type, i, (double)v);
}
template <> OPS_BODY void put(void *p, int type, int64_t i, int64_t v)
{
    put_int(p, type, i, v);
}
template <> OPS_BODY void put(void *p, int type, int64_t i, uint64_t v)
{
    put_int(p, type, i, v);
}

/* The dtype that a pointer stands for, known at compile time. */
OPS_BODY int type_as(const float *)
{
    return SAC_F32;
}
OPS_BODY int type_as(const uint16_t *)
{
    return SAC_F16;
}

/* ---- eight floats at once: one or two loads of 16 bytes ---- */

enum { LANES = 8 };

#ifdef __CUDACC__
typedef uint4 bytes16;
#else
struct alignas(16) bytes16 {
    uint32_t x, y, z, w;
};
#endif

OPS_BODY void halves_of(uint32_t word, float &a, float &b)
{
    a = half_to_float((uint16_t)word);
    b = half_to_float((uint16_t)(word >> 16));
}
OPS_BODY uint32_t word_of(float a, float b)
{
    return (uint32_t)float_to_half(a) | (uint32_t)float_to_half(b) << 16;
}

/* Eight numbers as they lie in memory, so that several operands are under way at once. */
struct raw8 {
    bytes16 a, b;
};

/* Elements at.. at + 7 of float32, float16 or bool; the address fits 16 bytes. */
OPS_BODY raw8 load8(const void *p, int type, int64_t at)
{
    raw8 r = {};
    if (type == SAC_F16)
        r.a = *(const bytes16 *)((const uint16_t *)p + at);
    else if (type == SAC_BOOL) {
        const uint64_t bytes = *(const uint64_t *)((const uint8_t *)p + at);
        r.a.x = (uint32_t)bytes;
        r.a.y = (uint32_t)(bytes >> 32);
    } else {
        const bytes16 *from = (const bytes16 *)((const float *)p + at);
        r.a = from[0];
        r.b = from[1];
    }
    return r;
}

OPS_BODY void floats_of(const raw8 &r, int type, float (&v)[LANES])
{
    if (type == SAC_F16) {
        halves_of(r.a.x, v[0], v[1]);
        halves_of(r.a.y, v[2], v[3]);
        halves_of(r.a.z, v[4], v[5]);
        halves_of(r.a.w, v[6], v[7]);
    } else if (type == SAC_BOOL) {
        OPS_UNROLL
        for (int k = 0; k < LANES; k++)
            v[k] = (float)((k < 4 ? r.a.x : r.a.y) >> 8 * (k % 4) & 0xff);
    } else {
        v[0] = bits_to_float(r.a.x), v[1] = bits_to_float(r.a.y), v[2] = bits_to_float(r.a.z),
        v[3] = bits_to_float(r.a.w);
        v[4] = bits_to_float(r.b.x), v[5] = bits_to_float(r.b.y), v[6] = bits_to_float(r.b.z),
        v[7] = bits_to_float(r.b.w);
    }
}

/* Elements at.. at + 7 of float32 or float16; the address fits 16 bytes. */
OPS_BODY void get8(const void *p, int type, int64_t at, float (&v)[LANES])
{
    if (type == SAC_F16)
        floats_of(load8(p, SAC_F16, at), SAC_F16, v);
    else
        floats_of(load8(p, SAC_F32, at), SAC_F32, v);
}

OPS_BODY uint32_t float_to_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* The same for writing. */
OPS_BODY void put8(void *p, int type, int64_t at, const float (&v)[LANES])
{
    if (type == SAC_F16) {
        bytes16 b;
        b.x = word_of(v[0], v[1]);
        b.y = word_of(v[2], v[3]);
        b.z = word_of(v[4], v[5]);
        b.w = word_of(v[6], v[7]);
        *(bytes16 *)((uint16_t *)p + at) = b;
        return;
    }
    if (type == SAC_BOOL) {
#ifdef __CUDACC__
        uint64_t bytes = 0;
        OPS_UNROLL
        for (int k = 0; k < LANES; k++)
            bytes |= (uint64_t)(v[k] != 0) << 8 * k;
        *(uint64_t *)((uint8_t *)p + at) = bytes;
#else /* clang 14 makes other bytes of this with its bounds checks in it */
        for (int k = 0; k < LANES; k++)
            ((uint8_t *)p)[at + k] = v[k] != 0;
#endif
        return;
    }
    bytes16 *to = (bytes16 *)((float *)p + at), a, b;
    a.x = float_to_bits(v[0]), a.y = float_to_bits(v[1]), a.z = float_to_bits(v[2]),
    a.w = float_to_bits(v[3]);
    b.x = float_to_bits(v[4]), b.y = float_to_bits(v[5]), b.z = float_to_bits(v[6]),
    b.w = float_to_bits(v[7]);
    to[0] = a;
    to[1] = b;
}

/* Four at once, of which the address fits 8 bytes of float16 or 16 of float32. */
OPS_BODY void get4(const void *p, int type, int64_t at, float (&v)[4])
{
    if (type == SAC_F16) {
        const uint64_t words = *(const uint64_t *)((const uint16_t *)p + at);
        halves_of((uint32_t)words, v[0], v[1]);
        halves_of((uint32_t)(words >> 32), v[2], v[3]);
        return;
    }
    const bytes16 b = *(const bytes16 *)((const float *)p + at);
    v[0] = bits_to_float(b.x), v[1] = bits_to_float(b.y), v[2] = bits_to_float(b.z),
    v[3] = bits_to_float(b.w);
}
OPS_BODY void put4(void *p, int type, int64_t at, const float (&v)[4])
{
    if (type == SAC_F16) {
        uint32_t words[2] = {word_of(v[0], v[1]), word_of(v[2], v[3])};
        *(uint64_t *)((uint16_t *)p + at) = (uint64_t)words[1] << 32 | words[0];
        return;
    }
    bytes16 b;
    b.x = float_to_bits(v[0]), b.y = float_to_bits(v[1]), b.z = float_to_bits(v[2]),
    b.w = float_to_bits(v[3]);
    *(bytes16 *)((float *)p + at) = b;
}

/* Eight, or the same number eight times where the operand stands still along the dimension. */
OPS_BODY void get8_or_one(const void *p, int type, int64_t at, bool one, float (&v)[LANES])
{
    if (!one) {
        get8(p, type, at, v);
        return;
    }
    const float x = get_float(p, type, at);
    OPS_UNROLL
    for (int k = 0; k < LANES; k++)
        v[k] = x;
}

} // namespace ops
