// SPDX-License-Identifier: Apache-2.0
// What conv_tensor.cu and conv_window.cuh have behind their sums. A thread has four channels side
// by side of each sixteen, of two rows: they go to a panel in shared memory, from where the copy
// engine stores it, or to the map itself.
#pragma once

#include "engine/cuda/products/conv_pieces.cuh"

namespace conv
{

// A thread's numbers in a panel whose rows have `CHANNELS` of EACH bytes, their sixteens of bytes
// exchanged as the engine has them: fours, of two rows by turns, from a sixteen of channels to the
// next.
template <int CHANNELS, int EACH> struct panel_place {
    static constexpr int WIDTH = CHANNELS * EACH;
    int                  row, column, twist;

    __device__ __forceinline__ panel_place()
    {
        const int lane = threadIdx.x & 31;
        row = ((threadIdx.x >> 5 & 3) * 16 + (lane >> 2)) * WIDTH;
        column = (lane & 3) * 4 * EACH;
        twist = row >> 3 & (WIDTH - 16);
    }
    __device__ __forceinline__ int at(int four) const
    {
        return row + four % 2 * 8 * WIDTH + ((column + four / 2 * 16 * EACH) ^ twist);
    }
};

// Where numbers go and residuals come from, fours counted as above. EACH: bytes of a number.
template <class S> struct in_panels {
    const uint8_t *residual; // NULL: none
    uint8_t       *panel;

    __device__ __forceinline__ bool holds(int) const
    {
        return true;
    }
    template <int EACH> __device__ __forceinline__ const uint8_t *other(int four) const
    {
        return residual + panel_place<S::PANEL, EACH>().at(four);
    }
    template <int EACH> __device__ __forceinline__ uint8_t *to(int four) const
    {
        return panel + panel_place<S::PANEL, EACH>().at(four);
    }
};
struct in_maps {
    const uint8_t *residual[2];
    uint8_t       *y[2];     // of each row the thread's first four; NULL: it is not stored
    int            channels; // from the tile's first on

    __device__ __forceinline__ bool holds(int four) const
    {
        return y[four % 2] != nullptr && four / 2 * 16 < channels;
    }
    template <int EACH> __device__ __forceinline__ const uint8_t *other(int four) const
    {
        return residual[four % 2] + four / 2 * 16 * EACH;
    }
    template <int EACH> __device__ __forceinline__ uint8_t *to(int four) const
    {
        return y[four % 2] + four / 2 * 16 * EACH;
    }
};

__device__ __forceinline__ void floats_of_halves(uint2 w, float *v)
{
    const __half2 low = *reinterpret_cast<const __half2 *>(&w.x),
                  high = *reinterpret_cast<const __half2 *>(&w.y);
    const float2 a = __half22float2(low), b = __half22float2(high);
    v[0] = a.x, v[1] = a.y, v[2] = b.x, v[3] = b.y;
}
__device__ __forceinline__ void floats_of_f8(uint32_t w, float *v)
{
#pragma unroll
    for (int i = 0; i < 4; i++)
        v[i] = float_of_f8(w >> i * 8 & 255);
}
// A byte b + 128 in the low bits of 2^23 is 2^23 + b + 128.
__device__ __forceinline__ void floats_of_bytes(uint32_t w, float *v)
{
    const uint32_t positive = w ^ 0x80808080u;
#pragma unroll
    for (int i = 0; i < 4; i++)
        v[i] = __fadd_rn(__uint_as_float(__byte_perm(positive, 0x4b000000u, 0x7440u + (unsigned)i)),
                         -8388736.0f);
}
// Adding 1.5 * 2^23 rounds to the nearest even integer, which is then in the low bits.
__device__ __forceinline__ uint32_t bytes_of_floats(const float *v)
{
    uint32_t bits[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        bits[i] = __float_as_uint(__fadd_rn(v[i], 12582912.0f));
    return __byte_perm(__byte_perm(bits[0], bits[1], 0x40), __byte_perm(bits[2], bits[3], 0x40),
                       0x5410);
}

template <int COUNT> __device__ __forceinline__ void limit(float (&v)[COUNT], float low, float high)
{
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        v[i] = fminf(fmaxf(v[i], low), high);
}

template <class S, class PLACES>
__device__ __forceinline__ void ending_add(const conv_stream_params &s, const PLACES &places,
                                           int first, float (&v)[S::NUMBERS])
{
    const bool half = S::HALF || s.b.residual_kind == CONV_F16;
#pragma unroll
    for (int i = 0; i < S::NUMBERS; i += 4) {
        const int four = first + i / 4;
        float     other[4];
        if (!places.holds(four))
            continue;
        if (half)
            floats_of_halves(*reinterpret_cast<const uint2 *>(places.template other<2>(four)),
                             other);
        else if (S::KIND == CONV_BYTES_F8)
            floats_of_f8(*reinterpret_cast<const uint32_t *>(places.template other<1>(four)),
                         other);
        else
            floats_of_bytes(*reinterpret_cast<const uint32_t *>(places.template other<1>(four)),
                            other);
#pragma unroll
        for (int j = 0; j < 4; j++)
            v[i + j] = fmaf(s.b.residual_scale, other[j], v[i + j]);
    }
}

template <class S, class PLACES>
__device__ __forceinline__ void ending_put(const conv_tensor_params &p, const PLACES &places,
                                           int first, float (&v)[S::NUMBERS])
{
    if (S::HALF || p.s.b.y_kind == CONV_F16) {
#pragma unroll
        for (int i = 0; i < S::NUMBERS; i += 4)
            if (places.holds(first + i / 4))
                *reinterpret_cast<uint2 *>(places.template to<2>(first + i / 4)) =
                    make_uint2(word_of(v[i], v[i + 1]), word_of(v[i + 2], v[i + 3]));
        return;
    }
    if (S::KIND != CONV_BYTES_F8 && p.saturates)
        limit(v, -128, 127);
#pragma unroll
    for (int i = 0; i < S::NUMBERS; i += 4)
        if (places.holds(first + i / 4))
            *reinterpret_cast<uint32_t *>(places.template to<1>(first + i / 4)) =
                S::KIND == CONV_BYTES_F8 ? f8_of(v[i], v[i + 1]) | f8_of(v[i + 2], v[i + 3]) << 16
                                         : bytes_of_floats(v + i);
}

// Converted where it is used: otherwise the compiler converts all sums before the loop over their
// parts, and spills them.
template <class S> __device__ __forceinline__ float sum_here(uint32_t bits)
{
#ifdef __CUDA_ARCH__
    if constexpr (S::KIND == CONV_BYTES_S8 && S::UNROLL == 1) {
        float v;
        asm volatile("cvt.rn.f32.s32 %0, %1;" : "=f"(v) : "r"(bits));
        return v;
    }
#endif
    return sum_of<S::KIND>(bits);
}

// The sums of a part of the tile's channels with scales and biases. Registers cannot be
// indexed at run time: in a loop a part has a branch of its own for them, and shares all code
// behind.
template <class S, int I = 0>
__device__ __forceinline__ void ending_sums(int part, const float *factors,
                                            const uint32_t (&sum)[S::SUMS], float (&v)[S::NUMBERS])
{
    if (part == I) {
#pragma unroll
        for (int g = 0; g < S::PART; g++) {
            const float *of = factors + (threadIdx.x & 3) * 4 + (I * S::PART + g) * 16;
            float        scale[4] = {1, 1, 1, 1}, bias[4];
            if (!S::HALF)
                floats_at(of, scale);
            floats_at(of + S::NS, bias);
#pragma unroll
            for (int i = 0; i < 8; i++)
                v[g * 8 + i] = fmaf(
                    sum_here<S>(sum[(I * S::PART + g) * 8 + i % 4 / 2 * 4 + i / 4 * 2 + i % 2]),
                    scale[i % 4], bias[i % 4]);
        }
    } else if constexpr ((I + 1) * S::NUMBERS < S::SUMS) {
        ending_sums<S, I + 1>(part, factors, sum, v);
    }
}

// A part of the tile, whose fours begin with `four` of the places. Tiles of more than 128 channels
// loop over their parts (S::UNROLL), as written out these do not fit in the instruction cache: 256
// channels that end in GELU took 67.5 us in place of 77.1. Narrower ones are written out, so that a
// part is computed while another waits: as a loop they took up to 24 % longer (one H200,
// 2026-11-28).
template <class S, class PLACES>
__device__ __forceinline__ void ending_part(const conv_tensor_params &p, const float *factors,
                                            const PLACES &places, int part, int four,
                                            const uint32_t (&sum)[S::SUMS])
{
    const conv_finish &finish = p.s.b.at.finish;
    float              v[S::NUMBERS];
    ending_sums<S>(part, factors, sum, v);
    if (finish.residual_kind == SAC_RESIDUAL_BEFORE)
        ending_add<S>(p.s, places, four, v);
    if constexpr (S::HALF)
        activate_all(finish.act, finish.alpha, finish.beta, v);
    else
        stream_activate<true>(p.s, v);
    if (finish.residual_kind == SAC_RESIDUAL_AFTER)
        ending_add<S>(p.s, places, four, v);
    ending_put<S>(p, places, four, v);
}

} // namespace conv
