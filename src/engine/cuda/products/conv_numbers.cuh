/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores of eight (float16) or four (float32) numbers, and what is applied to a sum. */
#pragma once

#include <cuda_fp16.h>

#include "engine/cuda/products/conv_launch.h"
#include "engine/ops/fused_kinds.h"

namespace conv
{

template <class T> struct pack;
template <> struct pack<__half> {
    static constexpr int width = 8;
    uint4                bits;
    __device__ void      get(float *v) const
    {
        const __half2 *h = reinterpret_cast<const __half2 *>(&bits);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float2 f = __half22float2(h[i]);
            v[2 * i] = f.x;
            v[2 * i + 1] = f.y;
        }
    }
    __device__ void put(const float *v)
    {
        __half2 *h = reinterpret_cast<__half2 *>(&bits);
#pragma unroll
        for (int i = 0; i < 4; i++)
            h[i] = __floats2half2_rn(v[2 * i], v[2 * i + 1]);
    }
};
template <> struct pack<float> {
    static constexpr int width = 4;
    uint4                bits;
    __device__ void      get(float *v) const
    {
        const float *f = reinterpret_cast<const float *>(&bits);
#pragma unroll
        for (int i = 0; i < 4; i++)
            v[i] = f[i];
    }
    __device__ void put(const float *v)
    {
        float *f = reinterpret_cast<float *>(&bits);
#pragma unroll
        for (int i = 0; i < 4; i++)
            f[i] = v[i];
    }
};

/* WIDTH numbers from p: all at once, which p must be aligned for, or one. */
template <class T, int WIDTH> __device__ __forceinline__ void load(const T *p, float *v)
{
    if (WIDTH == 1) {
        v[0] = (float)p[0];
    } else {
        pack<T> k;
        k.bits = __ldg(reinterpret_cast<const uint4 *>(p));
        k.get(v);
    }
}

template <class T, int WIDTH> __device__ __forceinline__ void store(T *p, const float *v)
{
    if (WIDTH == 1) {
        p[0] = (T)v[0];
    } else {
        pack<T> k;
        k.put(v);
        *reinterpret_cast<uint4 *>(p) = k.bits;
    }
}

__device__ __forceinline__ uint32_t word_of(float a, float b)
{
    const __half2 h = __floats2half2_rn(a, b);
    return *reinterpret_cast<const uint32_t *>(&h);
}

/* Each of four neighbouring threads has a word of four tiles; afterwards one has the four words of
 * its tile. */
__device__ __forceinline__ uint4 turn_words(uint32_t v0, uint32_t v1, uint32_t v2, uint32_t v3)
{
    const int  t = threadIdx.x & 3;
    const bool odd = t & 1, high = t & 2;
    uint32_t   give = odd ? v0 : v1, give2 = odd ? v2 : v3;
    uint32_t   got = __shfl_xor_sync(~0u, give, 1), got2 = __shfl_xor_sync(~0u, give2, 1);
    if (odd)
        v0 = got, v2 = got2;
    else
        v1 = got, v3 = got2;
    give = high ? v0 : v2;
    give2 = high ? v1 : v3;
    got = __shfl_xor_sync(~0u, give, 2);
    got2 = __shfl_xor_sync(~0u, give2, 2);
    if (high)
        v0 = got, v1 = got2;
    else
        v2 = got, v3 = got2;
    return make_uint4(v0, v1, v2, v3);
}

/* As sac_activate: NaN stays NaN; where a clip's low end is above its high end, the result is the
 * high end. */
__device__ __forceinline__ float clamp(float x, float low, float high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

__device__ __forceinline__ float activate(int kind, float alpha, float beta, float x)
{
    switch (kind) {
    case SAC_ACT_RELU: return x < 0 ? 0 : x;
    case SAC_ACT_LEAKY_RELU: return x < 0 ? alpha * x : x;
    case SAC_ACT_CLIP: return clamp(x, alpha, beta);
    case SAC_ACT_SIGMOID: return 1.0f / (1.0f + __expf(-x));
    case SAC_ACT_SILU: return __fdividef(x, 1.0f + __expf(-x));
    case SAC_ACT_HARD_SIGMOID: return clamp(alpha * x + beta, 0, 1);
    case SAC_ACT_HARD_SWISH: return x * clamp(alpha * x + beta, 0, 1);
    case SAC_ACT_TANH: return tanhf(x);
    case SAC_ACT_SOFTPLUS: return (x > 0 ? x : 0) + log1pf(__expf(-fabsf(x)));
    default: return x;
    }
}

/* The same for many numbers. The kind is tested once: with a test per number the code of all
 * kinds is repeated for each (200 KB per kernel), and warps that jump through it wait for
 * instructions. */
template <int N>
__device__ __forceinline__ void activate_all(int kind, float alpha, float beta, float (&v)[N])
{
#define CONV_ACTIVATE(name)                                                                     \
    case name:                                                                                  \
        _Pragma("unroll") for (int i = 0; i < N; i++) v[i] = activate(name, alpha, beta, v[i]); \
        break;
    switch (kind) {
        CONV_ACTIVATE(SAC_ACT_RELU)
        CONV_ACTIVATE(SAC_ACT_LEAKY_RELU)
        CONV_ACTIVATE(SAC_ACT_CLIP)
        CONV_ACTIVATE(SAC_ACT_SIGMOID)
        CONV_ACTIVATE(SAC_ACT_SILU)
        CONV_ACTIVATE(SAC_ACT_HARD_SIGMOID)
        CONV_ACTIVATE(SAC_ACT_HARD_SWISH)
        CONV_ACTIVATE(SAC_ACT_TANH)
        CONV_ACTIVATE(SAC_ACT_SOFTPLUS)
    default: break;
    }
#undef CONV_ACTIVATE
}

/* Sums of WIDTH channels from c on, at this pixel of this sample, to what is stored. */
template <class T, int WIDTH>
__device__ __forceinline__ void finish(const struct conv_finish &f, int64_t c, int64_t residual_at,
                                       float (&v)[WIDTH])
{
    float bias[WIDTH], other[WIDTH];
    if (f.bias) {
        load<T, WIDTH>((const T *)f.bias + c, bias);
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            v[i] += bias[i];
    }
    if (f.residual)
        load<T, WIDTH>((const T *)f.residual + residual_at + c, other);
    if (f.residual_kind == SAC_RESIDUAL_BEFORE)
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            v[i] += other[i];
    activate_all(f.act, f.alpha, f.beta, v);
    if (f.residual_kind == SAC_RESIDUAL_AFTER)
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            v[i] += other[i];
}

} // namespace conv
