/* SPDX-License-Identifier: Apache-2.0 */
/* float16 as our kernels take it: see cuda_runtime_api.h. */
#ifndef SAC_TESTS_EMULATED_CUDA_FP16_H
#define SAC_TESTS_EMULATED_CUDA_FP16_H

#include "cuda_runtime_api.h"

extern "C" float    sac_half_to_float(uint16_t h);
extern "C" uint16_t sac_float_to_half(float f);

/* By a table: most of the time of emulated products goes into this. */
static inline float half_value(uint16_t h)
{
    static float values[1 << 16];
    if (values[0x3c00] == 0) /* that of one */
        for (unsigned i = 0; i < 1 << 16; i++)
            values[i] = sac_half_to_float((uint16_t)i);
    return values[h];
}

struct __half {
    uint16_t bits;
    __half() = default;
    explicit __half(float f) : bits(sac_float_to_half(f))
    {
    }
    explicit operator float() const
    {
        return sac_half_to_float(bits);
    }
};
static inline __half __ushort_as_half(uint16_t bits)
{
    __half h;
    h.bits = bits;
    return h;
}
static inline uint16_t __half_as_ushort(__half h)
{
    return h.bits;
}
static inline float __half2float(__half h)
{
    return half_value(h.bits);
}
static inline __half __float2half_rn(float f)
{
    return __half(f);
}
struct __half2 {
    __half x, y;
};
static inline float2 __half22float2(__half2 h)
{
    return {(float)h.x, (float)h.y};
}
static inline __half2 __floats2half2_rn(float x, float y)
{
    return {__half(x), __half(y)};
}

#endif
