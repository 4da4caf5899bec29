/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of 8 bits that stand for others by one scale and a zero point. */
#pragma once

#include "engine/cuda/kernels/numbers.cuh"

namespace ops
{

/* E4M3, as sac_f8_to_float and sac_float_to_f8 have it. */
OPS_BODY float f8_to_float(uint8_t v)
{
    const uint32_t low = v & 0x7f;
    const float    size = low == 0x7f  ? NAN
                          : low < 0x08 ? (float)low * 0x1p-9f
                                       : bits_to_float((low << 20) + ((127u - 7) << 23));
    return v & 0x80 ? -size : size;
}

OPS_BODY uint8_t float_to_f8(float v)
{
    const uint8_t sign = (uint8_t)(float_to_bits(v) >> 24 & 0x80);
    const float   size = fminf(fabsf(v), 448.0f);
    if (is_nan(v))
        return sign | 0x7f;
    if (size < 0x1p-6f)
        return sign | (uint8_t)rintf(size * 0x1p9f);
    uint32_t bits = float_to_bits(size);
    bits += 0x7ffff + (bits >> 20 & 1);
    return sign | (uint8_t)((bits >> 20) - ((127 - 7) << 3));
}

OPS_BODY float byte_to_float(uint8_t v, int type)
{
    return type == SAC_I8 ? (float)(int8_t)v : type == SAC_U8 ? (float)v : f8_to_float(v);
}

/* v is scaled. NaN is the least integer. */
OPS_BODY uint8_t float_to_byte(float v, float zero, int type)
{
    const float low = type == SAC_I8 ? -128.0f : 0.0f;
    if (type == SAC_F8)
        return float_to_f8(v);
    return (uint8_t)(int)fminf(fmaxf(rintf(v) + zero, low), low + 255.0f);
}

/* ---- what a kernel has made ---- */

/* Four bytes of scaled numbers, which are clamped before they are rounded: integers that are that
 * small are float32's last bits next to 1.5 times 2^23. */
OPS_BODY uint32_t word_of_bytes(const float *v, float zero, int type)
{
    const float low = (type == SAC_I8 ? -128.0f : 0.0f) - zero;
    uint32_t    bits[4];
    OPS_UNROLL
    for (int k = 0; k < 4; k++)
        bits[k] = float_to_bits(fminf(fmaxf(v[k], low), low + 255.0f) + 0x1.8p23f + zero) & 0xff;
    return bits[0] | bits[1] << 8 | bits[2] << 16 | bits[3] << 24;
}

OPS_BODY uint32_t word_of_f8(const float *v)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    uint16_t low, high;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(low) : "f"(v[1]), "f"(v[0]));
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(high) : "f"(v[3]), "f"(v[2]));
    return (uint32_t)high << 16 | low;
#else
    return float_to_f8(v[0]) | (uint32_t)float_to_f8(v[1]) << 8 |
           (uint32_t)float_to_f8(v[2]) << 16 | (uint32_t)float_to_f8(v[3]) << 24;
#endif
}

/* One number, and eight that lie side by side. A call, because kernels of floats have it in a
 * branch. */
[[maybe_unused]] OPS_APART uint8_t byte_of(float v, float inverse, float zero, int type, bool half)
{
    v = half ? half_to_float(float_to_half(v)) : v;
    return float_to_byte(v * inverse, zero, type);
}
[[maybe_unused]] OPS_APART uint64_t bytes8_of(float a, float b, float c, float d, float e, float f,
                                              float g, float h, float inverse, float zero, int type,
                                              bool half)
{
    float v[LANES] = {a, b, c, d, e, f, g, h};
    OPS_UNROLL
    for (int k = 0; half && k < LANES; k++)
        v[k] = half_to_float(float_to_half(v[k]));
    OPS_UNROLL
    for (int k = 0; k < LANES; k++)
        v[k] *= inverse;
    const uint32_t low = type == SAC_F8 ? word_of_f8(v) : word_of_bytes(v, zero, type),
                   high = type == SAC_F8 ? word_of_f8(v + 4) : word_of_bytes(v + 4, zero, type);
    return (uint64_t)high << 32 | low;
}

OPS_BODY void put_byte(const struct ops_bytes &b, void *out, int64_t at, float v)
{
    ((uint8_t *)out)[at] = byte_of(v, b.inverse, b.zero, b.type, b.half);
}
/* The address fits 8 bytes. */
OPS_BODY void put_bytes8(const struct ops_bytes &b, void *out, int64_t at, const float (&v)[LANES])
{
    *(uint64_t *)((uint8_t *)out + at) = bytes8_of(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7],
                                                   b.inverse, b.zero, b.type, b.half);
}

} // namespace ops
