/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores of up to eight (float16) or four (float32) numbers, and what is applied to a
 * sum. */
#pragma once

#include <cuda_fp16.h>

#include "engine/cuda/products/conv_launch.h"
#include "engine/ops/fused_kinds.h"

namespace conv
{

template <int BYTES> struct word;
template <> struct word<2> {
    using type = uint16_t;
};
template <> struct word<4> {
    using type = uint32_t;
};
template <> struct word<8> {
    using type = uint2;
};
template <> struct word<16> {
    using type = uint4;
};

/* WIDTH neighbouring numbers as they lie in memory, which are loaded and stored at once. */
template <class T, int WIDTH = 16 / sizeof(T)> struct pack {
    static constexpr int width = WIDTH;
    using word_type = typename word<sizeof(T) * WIDTH>::type;
    word_type bits;

    __device__ void get(float *v) const
    {
        const T *t = reinterpret_cast<const T *>(&bits);
        if constexpr (sizeof(T) == 2 && WIDTH > 1) {
            const __half2 *h = reinterpret_cast<const __half2 *>(&bits);
#pragma unroll
            for (int i = 0; i < WIDTH / 2; i++) {
                const float2 f = __half22float2(h[i]);
                v[2 * i] = f.x;
                v[2 * i + 1] = f.y;
            }
        } else {
#pragma unroll
            for (int i = 0; i < WIDTH; i++)
                v[i] = (float)t[i];
        }
    }
    __device__ void put(const float *v)
    {
        T *t = reinterpret_cast<T *>(&bits);
        if constexpr (sizeof(T) == 2 && WIDTH > 1) {
            __half2 *h = reinterpret_cast<__half2 *>(&bits);
#pragma unroll
            for (int i = 0; i < WIDTH / 2; i++)
                h[i] = __floats2half2_rn(v[2 * i], v[2 * i + 1]);
        } else {
#pragma unroll
            for (int i = 0; i < WIDTH; i++)
                t[i] = (T)v[i];
        }
    }
    __device__ static pack from(const T *p)
    {
        pack k;
        k.bits = __ldg(reinterpret_cast<const word_type *>(p));
        return k;
    }
};

/* WIDTH numbers from p at once, which p must be aligned for. */
template <class T, int WIDTH> __device__ __forceinline__ void load(const T *p, float *v)
{
    if (WIDTH == 1)
        v[0] = (float)p[0];
    else
        pack<T, WIDTH>::from(p).get(v);
}

template <class T, int WIDTH> __device__ __forceinline__ void store(T *p, const float *v)
{
    pack<T, WIDTH> k;
    k.put(v);
    *reinterpret_cast<typename pack<T, WIDTH>::word_type *>(p) = k.bits;
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

/* 2^x by one instruction; below 2^-126 it is 0. */
__device__ __forceinline__ float exp2_of(float x)
{
#ifdef __CUDA_ARCH__
    asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
    return x;
#else
    return exp2f(x);
#endif
}
/* 1 / x, off by one in the last place at most. */
__device__ __forceinline__ float inverse_of(float x)
{
#ifdef __CUDA_ARCH__
    asm("rcp.approx.ftz.f32 %0, %0;" : "+f"(x));
    return x;
#else
    return 1 / x;
#endif
}
/* The larger of x and 0; NaN stays. */
__device__ __forceinline__ float positive(float x)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm("max.NaN.f32 %0, %0, 0f00000000;" : "+f"(x));
    return x;
#else
    return x < 0 ? 0 : x;
#endif
}
__device__ __forceinline__ float sigmoid(float x)
{
    return inverse_of(1.0f + exp2_of(-1.44269504f * x));
}

/* GELU, x Phi(x), as max(x, 0) - |x| Phi(-|x|), where log2 of Phi(-a) is nearly a polynomial: off
 * by 1e-6 at most, in a third of the instructions of erff, which took longer than the bytes of a
 * product with few columns. The coefficients are a minimax fit over 0 to 5.9; from 16 on Phi(-a)
 * is 0. NaN stays. */
__device__ __forceinline__ float gelu(float x)
{
    const float a = fminf(fabsf(x), 16.0f);
    float       p = 3.25883047e-05f;
    p = fmaf(p, a, -7.50636042e-04f);
    p = fmaf(p, a, 7.95555022e-03f);
    p = fmaf(p, a, -5.30906208e-02f);
    p = fmaf(p, a, -4.59113955e-01f);
    p = fmaf(p, a, -1.15107357f);
    p = fmaf(p, a, -1.0f);
    return fmaf(-a, exp2_of(p), positive(x));
}

__device__ __forceinline__ float activate(int kind, float alpha, float beta, float x)
{
    switch (kind) {
    case SAC_ACT_RELU: return positive(x);
    case SAC_ACT_LEAKY_RELU: return x < 0 ? alpha * x : x;
    case SAC_ACT_CLIP: return clamp(x, alpha, beta);
    case SAC_ACT_SIGMOID: return sigmoid(x);
    case SAC_ACT_SILU: return x * sigmoid(x);
    case SAC_ACT_HARD_SIGMOID: return clamp(alpha * x + beta, 0, 1);
    case SAC_ACT_HARD_SWISH: return x * clamp(alpha * x + beta, 0, 1);
    case SAC_ACT_TANH: return tanhf(x);
    case SAC_ACT_SOFTPLUS: return (x > 0 ? x : 0) + log1pf(__expf(-fabsf(x)));
    case SAC_ACT_GELU: return gelu(x);
    case SAC_ACT_GELU_TANH: /* (1 + tanh u) / 2 is the sigmoid of 2 u */
        return x * sigmoid(1.59576912f * (x + 0.044715f * x * x * x));
    case SAC_ACT_SQUARED_RELU: x = positive(x); return fmaf(alpha * x, x, beta);
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
        CONV_ACTIVATE(SAC_ACT_GELU)
        CONV_ACTIVATE(SAC_ACT_GELU_TANH)
        CONV_ACTIVATE(SAC_ACT_SQUARED_RELU)
    default: break;
    }
#undef CONV_ACTIVATE
}

/* What is added to WIDTH channels from c on; 0 to those that have no residual. */
template <class T, int WIDTH>
__device__ __forceinline__ void residual_of(const struct conv_finish &f, int64_t c, const T *from,
                                            float (&v)[WIDTH])
{
    if (c + WIDTH <= f.residual_c) {
        load<T, WIDTH>(from, v);
        return;
    }
#pragma unroll
    for (int i = 0; i < WIDTH; i++)
        v[i] = c + i < f.residual_c ? (float)from[i] : 0.0f;
}

/* What is done to WIDTH channels from c on behind the activation, and their residuals of it. */
template <int WIDTH> struct channel_ending {
    float scale[WIDTH], shift[WIDTH], residual[WIDTH];

    __device__ __forceinline__ channel_ending(const struct conv_finish &f, int64_t c)
    {
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            scale[i] = __ldg(f.ending + SAC_ENDING_SCALE * f.ending_c + c + i);
            shift[i] = __ldg(f.ending + SAC_ENDING_SHIFT * f.ending_c + c + i);
            residual[i] = __ldg(f.ending + SAC_ENDING_RESIDUAL * f.ending_c + c + i);
        }
    }
};
/* The same of numbers of several pixels, of which each has WIDTH. */
template <int WIDTH, int COUNT>
__device__ __forceinline__ void end_channels(const struct conv_finish &f, int64_t c,
                                             float (&v)[COUNT], float (&other)[COUNT])
{
    if (!f.ending)
        return;
    const channel_ending<WIDTH> ending(f, c);
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        v[i] = fmaf(v[i], ending.scale[i % WIDTH], ending.shift[i % WIDTH]);
        other[i] *= ending.residual[i % WIDTH];
    }
}

/* Sums of WIDTH channels from c on, at this pixel of this sample, to what is stored. */
template <class T, int WIDTH>
__device__ __forceinline__ void finish(const struct conv_finish &f, int64_t c, int64_t residual_at,
                                       float (&v)[WIDTH])
{
    float bias[WIDTH], other[WIDTH] = {};
    if (f.bias) {
        load<T, WIDTH>((const T *)f.bias + c, bias);
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            v[i] += bias[i];
    }
    if (f.residual)
        residual_of<T, WIDTH>(f, c, (const T *)f.residual + residual_at + c, other);
    if (f.residual_kind == SAC_RESIDUAL_BEFORE)
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            v[i] += other[i];
    activate_all(f.act, f.alpha, f.beta, v);
    end_channels<WIDTH>(f, c, v, other);
    if (f.residual_kind == SAC_RESIDUAL_AFTER)
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            v[i] += other[i];
}

} // namespace conv
