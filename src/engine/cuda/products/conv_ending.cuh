// SPDX-License-Identifier: Apache-2.0
// What conv_tensor.cu has behind its sums. A thread has four channels side by side of each sixteen,
// of two rows: they go to a panel in shared memory, from where the copy engine stores it.
#pragma once

#include "engine/cuda/products/conv_pieces.cuh"

namespace conv
{

// Where a byte of a panel lies whose rows have `width` bytes; row and byte as one number.
__device__ __forceinline__ int panel_at(int at, int width)
{
    return at ^ (at >> 3 & (width - 16));
}

// Four numbers of a residual.
__device__ __forceinline__ void ending_residual(const uint8_t *from, bool half, bool f8, float *v)
{
    if (half) {
        const uint2   w = *reinterpret_cast<const uint2 *>(from);
        const __half2 low = *reinterpret_cast<const __half2 *>(&w.x),
                      high = *reinterpret_cast<const __half2 *>(&w.y);
        const float2 a = __half22float2(low), b = __half22float2(high);
        v[0] = a.x, v[1] = a.y, v[2] = b.x, v[3] = b.y;
        return;
    }
    const uint32_t w = *reinterpret_cast<const uint32_t *>(from);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint32_t byte = w >> i * 8 & 255;
        v[i] = f8 ? float_of_f8(byte) : (float)(int8_t)byte;
    }
}

template <int KIND>
__device__ __forceinline__ void ending_put(bool half, uint8_t *to, const float *v)
{
    if (half)
        *reinterpret_cast<uint2 *>(to) = make_uint2(word_of(v[0], v[1]), word_of(v[2], v[3]));
    else if (KIND == CONV_BYTES_F8)
        *reinterpret_cast<uint32_t *>(to) = f8_of(v[0], v[1]) | f8_of(v[2], v[3]) << 16;
    else {
        // Adding 1.5 * 2^23 rounds to the nearest even integer, which is then in the low bits.
        uint32_t bits[4];
#pragma unroll
        for (int j = 0; j < 4; j++)
            bits[j] = __float_as_uint(__fadd_rn(fminf(fmaxf(v[j], -128.0f), 127.0f), 12582912.0f));
        *reinterpret_cast<uint32_t *>(to) = __byte_perm(
            __byte_perm(bits[0], bits[1], 0x40), __byte_perm(bits[2], bits[3], 0x40), 0x5410);
    }
}

// A part of a panel: S::PART sixteens of channels from `first` on, of which `sum` has the thread's.
// factors: of the panel's channels, residual: NULL, none.
template <class S>
__device__ __forceinline__ void ending_part(const conv_stream_params &s, const float *factors,
                                            const uint8_t *residual, uint8_t *panel, int first,
                                            const uint32_t (&sum)[S::NUMBERS])
{
    const int lane = threadIdx.x & 31, row = (threadIdx.x >> 5 & 3) * 16 + (lane >> 2),
              from = first + (lane & 3) * 4, kind = s.b.at.finish.residual_kind;
    const bool half = S::HALF || s.b.y_kind == CONV_F16,
               half_residual = S::HALF || s.b.residual_kind == CONV_F16;
    float v[S::NUMBERS], other[S::NUMBERS];
#pragma unroll
    for (int g = 0; g < S::PART; g++) {
        float scale[4] = {1, 1, 1, 1}, bias[4];
        if (!S::HALF)
            floats_at(factors + from + g * 16, scale);
        floats_at(factors + S::NS + from + g * 16, bias);
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[g * 8 + i] = fmaf(sum_of<S::KIND>(sum[g * 8 + i % 4 / 2 * 4 + i / 4 * 2 + i % 2]),
                                scale[i % 4], bias[i % 4]);
    }
    if (kind != SAC_RESIDUAL_NONE) {
        const int each = half_residual ? 2 : 1, width = S::PANEL * each;
#pragma unroll
        for (int i = 0; i < S::PART * 2; i++)
            ending_residual(
                residual + panel_at((row + i % 2 * 8) * width + (from + i / 2 * 16) * each, width),
                half_residual, S::KIND == CONV_BYTES_F8, other + 4 * i);
    }
    if (kind == SAC_RESIDUAL_BEFORE)
#pragma unroll
        for (int i = 0; i < S::NUMBERS; i++)
            v[i] = fmaf(s.b.residual_scale, other[i], v[i]);
    if constexpr (S::HALF)
        activate_all(s.b.at.finish.act, s.b.at.finish.alpha, s.b.at.finish.beta, v);
    else
        stream_activate<true>(s, v);
    if (kind == SAC_RESIDUAL_AFTER)
#pragma unroll
        for (int i = 0; i < S::NUMBERS; i++)
            v[i] = fmaf(s.b.residual_scale, other[i], v[i]);
    const int each = half ? 2 : 1, width = S::PANEL * each;
#pragma unroll
    for (int i = 0; i < S::PART * 2; i++)
        ending_put<S::KIND>(
            half, panel + panel_at((row + i % 2 * 8) * width + (from + i / 2 * 16) * each, width),
            v + 4 * i);
}

} // namespace conv
