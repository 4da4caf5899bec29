/* SPDX-License-Identifier: Apache-2.0 */
/* float16 from and to float32, without the processor's own instructions: what is behind
 * sac_half_to_float() and sac_float_to_half(), for loops over many numbers, and for the kernels
 * that tests compile as C++, where a call for each number took a quarter of the time. */
#ifndef SAC_ENGINE_OPS_HALF_H
#define SAC_ENGINE_OPS_HALF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float sac_half_value(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, mantissa = h & 0x3ff;
    int      exponent = h >> 10 & 31;
    if (exponent == 0) { /* zero and subnormal: the mantissa times 2^-24 */
        float f = (float)mantissa * 0x1p-24f;
        return sign ? -f : f;
    }
    uint32_t bits = sign | mantissa << 13 | (uint32_t)(exponent == 31 ? 255 : exponent + 112) << 23;
    float    f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint16_t sac_half_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) /* NaN stays NaN, whatever its payload */
        return sign | 0x7e00;
    if (magnitude >= 0x477ff000) /* 65520 and up round to infinity */
        return sign | 0x7c00;
    if (magnitude < 0x38800000) /* under 2^-14: subnormal; the default rounding is to even */
        return sign | (uint16_t)lrintf(fabsf(f) * 0x1p24f);
    magnitude += 0xfff + (magnitude >> 13 & 1); /* to nearest, ties to even */
    return sign | (uint16_t)((magnitude >> 13) - (112 << 10));
}

#endif
