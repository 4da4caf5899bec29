// SPDX-License-Identifier: Apache-2.0
// What conv_tensor.cuh and conv_window.cuh have behind their sums. A thread has four channels side
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

/* ---- which endings there are ---- */

// What networks have most is computed by code that is written out for it: no test lies between its
// numbers, so that those of one part are computed while another's wait. Written out with all of
// them inside, a tile's ending was 100 KB, through which warps jumped: 128 pixels by 128 channels
// with SiLU took 4,850 clocks, where two special instructions for a number take 2,048 (one H200,
// 2026-11-28).
struct ending_kind {
    int  act;      // of float16 enum sac_activation_kind, of 8 bits conv_stream_act
    int  residual; // of those that are added to what has no activation, nor such an ending: BEFORE
    bool half;     // numbers of the output, and of the residual
    bool channels = false; // each is scaled and shifted behind the activation (SAC_ENDING)

    // An activation of those that cost most, where nothing but the 8 bits of the output comes
    // behind.
    __host__ __device__ constexpr bool in_halves(bool half_input) const
    {
        return !half_input && !half && residual == SAC_RESIDUAL_NONE &&
               (act == CONV_STREAM_SILU || act == CONV_STREAM_GELU);
    }
};

template <bool HALF> struct endings {
    static constexpr ending_kind OF[] = {{SAC_ACT_NONE, SAC_RESIDUAL_NONE, true},
                                         {SAC_ACT_NONE, SAC_RESIDUAL_BEFORE, true},
                                         {SAC_ACT_RELU, SAC_RESIDUAL_NONE, true},
                                         {SAC_ACT_RELU, SAC_RESIDUAL_BEFORE, true},
                                         {SAC_ACT_SILU, SAC_RESIDUAL_NONE, true},
                                         {SAC_ACT_SILU, SAC_RESIDUAL_AFTER, true},
                                         {SAC_ACT_GELU, SAC_RESIDUAL_NONE, true},
                                         {SAC_ACT_CLIP, SAC_RESIDUAL_NONE, true},
                                         {SAC_ACT_LEAKY_RELU, SAC_RESIDUAL_NONE, true},
                                         {SAC_ACT_HARD_SWISH, SAC_RESIDUAL_NONE, true},
                                         {SAC_ACT_SQUARED_RELU, SAC_RESIDUAL_NONE, true},
                                         {SAC_ACT_GELU, SAC_RESIDUAL_NONE, true, true},
                                         {SAC_ACT_NONE, SAC_RESIDUAL_AFTER, true, true}};
    static constexpr int         COUNT = sizeof OF / sizeof *OF;
};
template <> struct endings<false> {
    static constexpr ending_kind OF[] = {{CONV_STREAM_CLAMP, SAC_RESIDUAL_NONE, false},
                                         {CONV_STREAM_CLAMP, SAC_RESIDUAL_BEFORE, false},
                                         {CONV_STREAM_NONE, SAC_RESIDUAL_NONE, false},
                                         {CONV_STREAM_SILU, SAC_RESIDUAL_NONE, false},
                                         {CONV_STREAM_SILU, SAC_RESIDUAL_AFTER, false},
                                         {CONV_STREAM_GELU, SAC_RESIDUAL_NONE, false},
                                         {CONV_STREAM_NONE, SAC_RESIDUAL_NONE, true},
                                         {CONV_STREAM_NONE, SAC_RESIDUAL_BEFORE, true},
                                         {CONV_STREAM_CLAMP, SAC_RESIDUAL_NONE, true},
                                         {CONV_STREAM_SILU, SAC_RESIDUAL_NONE, true}};
    static constexpr int         COUNT = sizeof OF / sizeof *OF;
};

template <class S, int I> struct known_ending {
    static constexpr ending_kind KIND = endings<S::HALF>::OF[I];
    // Unrolled, the loads of all parts' numbers would be under way at once, in registers that
    // spill.
    static constexpr int ACT = KIND.act, UNROLL = KIND.channels ? 1 : S::NS / 16;
    // A limit that is an activation's own is none behind it.
    static constexpr bool SATURATES =
        S::KIND == CONV_BYTES_S8 && !KIND.half && ACT != CONV_STREAM_CLAMP;
    static constexpr bool IN_HALVES = KIND.in_halves(S::HALF);

    static __device__ __forceinline__ int residual(const conv_tensor_params &)
    {
        return KIND.residual;
    }
    static __device__ __forceinline__ bool channels(const conv_tensor_params &)
    {
        return KIND.channels;
    }
    static __device__ __forceinline__ bool half_output(const conv_tensor_params &)
    {
        return KIND.half;
    }
    static __device__ __forceinline__ bool half_residual(const conv_tensor_params &)
    {
        return KIND.half;
    }
    static __device__ __forceinline__ bool saturates(const conv_tensor_params &)
    {
        return SATURATES;
    }
    template <int N>
    static __device__ __forceinline__ void activate(const conv_tensor_params &p, float (&v)[N])
    {
        const conv_finish &f = p.s.b.at.finish;
        if constexpr (S::HALF)
#pragma unroll
            for (int i = 0; i < N; i++)
                v[i] = conv::activate(ACT, f.alpha, f.beta, v[i]);
        else
            stream_activate_as<ACT, KIND.half>(p.s, v);
    }
};
// All others, a part after the other.
template <class S> struct any_ending {
    static constexpr int  UNROLL = 1;
    static constexpr bool IN_HALVES = false;

    static __device__ __forceinline__ int residual(const conv_tensor_params &p)
    {
        return p.s.b.at.finish.residual_kind;
    }
    static __device__ __forceinline__ bool channels(const conv_tensor_params &p)
    {
        return S::HALF && p.s.b.at.finish.ending;
    }
    static __device__ __forceinline__ bool half_output(const conv_tensor_params &p)
    {
        return S::HALF || p.s.b.y_kind == CONV_F16;
    }
    static __device__ __forceinline__ bool half_residual(const conv_tensor_params &p)
    {
        return S::HALF || p.s.b.residual_kind == CONV_F16;
    }
    static __device__ __forceinline__ bool saturates(const conv_tensor_params &p)
    {
        return p.saturates;
    }
    template <int N>
    static __device__ __forceinline__ void activate(const conv_tensor_params &p, float (&v)[N])
    {
        const conv_finish &f = p.s.b.at.finish;
        if constexpr (S::HALF)
            activate_all(f.act, f.alpha, f.beta, v);
        else
            stream_activate(p.s, half_output(p), v);
    }
};

// Steps of an output that float16 is large enough for, and fine enough: the largest of 448 steps is
// below 65504, eight by their inverse too, and what comes to 0 by a difference of tanh's is off by
// 0.0015 at most, of int8 a fifth of a step, of E4M3 less than it has to the largest of them.
template <class S> static bool halves_will_do(const conv_tensor_params &p)
{
    const float inverse = p.s.b.y_inverse;
    return inverse >= 1.0f / 128 && inverse <= (S::KIND == CONV_BYTES_F8 ? 4096 : 128);
}

// The number of the launch's in the list, or of any.
template <class S> static int ending_of(const conv_tensor_params &p)
{
    const conv_finish &f = p.s.b.at.finish;
    const bool half = S::HALF || p.s.b.y_kind == CONV_F16, other = p.s.b.residual_kind == CONV_F16;
    const int  act = S::HALF ? f.act : p.s.act,
              none = S::HALF ? (int)SAC_ACT_NONE : (int)CONV_STREAM_NONE,
              residual = act == none && f.residual_kind == SAC_RESIDUAL_AFTER && !f.ending
                             ? (int)SAC_RESIDUAL_BEFORE
                             : f.residual_kind;
    const ending_kind own = {act, residual, half, f.ending != nullptr};
    int               i = 0;
    if (own.in_halves(S::HALF) && !halves_will_do<S>(p))
        return endings<S::HALF>::COUNT;
    for (; i < endings<S::HALF>::COUNT; i++) {
        const ending_kind kind = endings<S::HALF>::OF[i];
        if (kind.act == act && kind.residual == residual && kind.half == half &&
            kind.channels == own.channels &&
            (residual == SAC_RESIDUAL_NONE || S::HALF || other == half))
            break;
    }
    return i;
}

// Calls a function of the ending that this launch has.
template <class S, int I = 0, class F>
__device__ __forceinline__ void with_ending(const conv_tensor_params &p, const F &f)
{
    if constexpr (I == endings<S::HALF>::COUNT)
        f(any_ending<S>());
    else if (p.ending == I)
        f(known_ending<S, I>());
    else
        with_ending<S, I + 1>(p, f);
}

/* ---- numbers ---- */

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

// Four neighbouring channels' numbers of a row of the ending, from channel c on. Of those that the
// output does not have, which are not stored, the last's.
__device__ __forceinline__ void ending_row(const conv_finish &f, int row, int c, float (&v)[4])
{
    const int64_t last = f.ending_c - 4;
    floats_at(f.ending + row * f.ending_c + (c < last ? c : last), v);
}

// Times the scales of the channels from `channel` on, plus their shifts.
template <class S>
__device__ __forceinline__ void ending_channels(const conv_tensor_params &p, int channel,
                                                float (&v)[S::NUMBERS])
{
    const conv_finish &f = p.s.b.at.finish;
#pragma unroll
    for (int g = 0; g < S::PART; g++) {
        float scale[4], shift[4];
        ending_row(f, SAC_ENDING_SCALE, channel + g * 16, scale);
        ending_row(f, SAC_ENDING_SHIFT, channel + g * 16, shift);
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[g * 8 + i] = fmaf(v[g * 8 + i], scale[i % 4], shift[i % 4]);
    }
}

// channel: of the thread's first number.
template <class S, class E, class PLACES>
__device__ __forceinline__ void ending_add(const conv_tensor_params &p, const PLACES &places,
                                           int first, int channel, float (&v)[S::NUMBERS])
{
#pragma unroll
    for (int i = 0; i < S::NUMBERS; i += 4) {
        const int four = first + i / 4;
        float     other[4];
        if (!places.holds(four))
            continue;
        if (E::half_residual(p))
            floats_of_halves(*reinterpret_cast<const uint2 *>(places.template other<2>(four)),
                             other);
        else if (S::KIND == CONV_BYTES_F8)
            floats_of_f8(*reinterpret_cast<const uint32_t *>(places.template other<1>(four)),
                         other);
        else
            floats_of_bytes(*reinterpret_cast<const uint32_t *>(places.template other<1>(four)),
                            other);
        const float same = p.s.b.residual_scale;
        float       scales[4] = {same, same, same, same};
        if (E::channels(p) && E::residual(p) == SAC_RESIDUAL_AFTER)
            ending_row(p.s.b.at.finish, SAC_ENDING_RESIDUAL, channel + i / 8 * 16, scales);
#pragma unroll
        for (int j = 0; j < 4; j++)
            v[i + j] = fmaf(scales[j], other[j], v[i + j]);
    }
}

template <class S, class E, class PLACES>
__device__ __forceinline__ void ending_put(const conv_tensor_params &p, const PLACES &places,
                                           int first, float (&v)[S::NUMBERS])
{
    if (E::half_output(p)) {
#pragma unroll
        for (int i = 0; i < S::NUMBERS; i += 4)
            if (places.holds(first + i / 4))
                *reinterpret_cast<uint2 *>(places.template to<2>(first + i / 4)) =
                    make_uint2(word_of(v[i], v[i + 1]), word_of(v[i + 2], v[i + 3]));
        return;
    }
    if (S::KIND != CONV_BYTES_F8 && E::saturates(p))
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
template <class S, class E> __device__ __forceinline__ float sum_here(uint32_t bits)
{
#ifdef __CUDA_ARCH__
    if constexpr (S::KIND == CONV_BYTES_S8 && E::UNROLL == 1) {
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
template <class S, class E, int I = 0>
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
                    sum_here<S, E>(sum[(I * S::PART + g) * 8 + i % 4 / 2 * 4 + i / 4 * 2 + i % 2]),
                    scale[i % 4], bias[i % 4]);
        }
    } else if constexpr ((I + 1) * S::NUMBERS < S::SUMS) {
        ending_sums<S, E, I + 1>(part, factors, sum, v);
    }
}

#ifdef __CUDA_ARCH__
__device__ __forceinline__ __half2 tanh_of_two(__half2 x)
{
    uint32_t bits = *reinterpret_cast<const uint32_t *>(&x);
    asm("tanh.approx.f16x2 %0, %0;" : "+r"(bits));
    return *reinterpret_cast<const __half2 *>(&bits);
}
// What stream_activate_as does, of two numbers an instruction, rounded to float16 four times, and
// what it comes to in the output's steps: near the last of int8's it is off by a quarter of one.
// Below -16 both activations are 0; an infinite number stays one, as does NaN.
template <int ACT> __device__ __forceinline__ __half2 activate_two(__half2 x, __half2 half_inverse)
{
    x = __hmax2_nan(x, __float2half2_rn(-16.0f));
    const __half2 t = ACT == CONV_STREAM_GELU
                          ? __hmul2(x, __hfma2(__hmul2(x, x), __float2half2_rn(GELU_CUBIC),
                                               __float2half2_rn(GELU_LINEAR)))
                          : __hmul2(x, __float2half2_rn(0.5f));
    const __half2 half = __hmul2(x, half_inverse);
    return __hfma2(half, tanh_of_two(t), half);
}

// Adding 1.5 * 2^10 rounds to the nearest even integer, which is then in the low bits. Neither
// activation comes to less than -0.28, which is not below -128 in steps that halves will do for.
__device__ __forceinline__ uint32_t bytes_of_halves(__half2 a, __half2 b)
{
    const __half2  high = __float2half2_rn(127.0f), whole = __float2half2_rn(1536.0f);
    const __half2  x = __hadd2(__hmin2(a, high), whole), y = __hadd2(__hmin2(b, high), whole);
    const uint32_t first = *reinterpret_cast<const uint32_t *>(&x),
                   second = *reinterpret_cast<const uint32_t *>(&y);
    return __byte_perm(first, second, 0x6420);
}
__device__ __forceinline__ uint32_t f8_of_halves(__half2 v)
{
    uint16_t out;
    asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;"
        : "=h"(out)
        : "r"(*reinterpret_cast<const uint32_t *>(&v)));
    return out;
}

// 9 instructions a number where E::activate and ending_put have 17, most of what a tile of a
// ViT-B/16's first product of an MLP took behind its sums: 45.5 us at batch 32 in INT8, and the
// whole network 1.975 ms, which is 1.901 now (one H200, 2026-11-29).
template <class S, class E, class PLACES>
__device__ __forceinline__ void ending_in_halves(const conv_tensor_params &p, const PLACES &places,
                                                 int first, const float (&v)[S::NUMBERS])
{
    const __half2 half_inverse = __float2half2_rn(0.5f * p.s.b.y_inverse);
#pragma unroll
    for (int i = 0; i < S::NUMBERS; i += 4) {
        const __half2 a = activate_two<E::ACT>(__floats2half2_rn(v[i], v[i + 1]), half_inverse),
                      b = activate_two<E::ACT>(__floats2half2_rn(v[i + 2], v[i + 3]), half_inverse);
        if (places.holds(first + i / 4))
            *reinterpret_cast<uint32_t *>(places.template to<1>(first + i / 4)) =
                S::KIND == CONV_BYTES_F8 ? f8_of_halves(a) | f8_of_halves(b) << 16
                                         : bytes_of_halves(a, b);
    }
}
#endif

// A part of the tile, which begins at that channel, whose fours begin with `four` of the places.
template <class S, class E, class PLACES>
__device__ __forceinline__ void ending_part(const conv_tensor_params &p, const float *factors,
                                            const PLACES &places, int tile_channel, int part,
                                            int four, const uint32_t (&sum)[S::SUMS])
{
    const int channel = tile_channel + (threadIdx.x & 3) * 4 + part * S::PART * 16;
    float     v[S::NUMBERS];
    ending_sums<S, E>(part, factors, sum, v);
#ifdef __CUDA_ARCH__
    if constexpr (E::IN_HALVES) {
        ending_in_halves<S, E>(p, places, four, v);
        return;
    }
#endif
    if (E::residual(p) == SAC_RESIDUAL_BEFORE)
        ending_add<S, E>(p, places, four, channel, v);
    E::activate(p, v);
    if (E::channels(p))
        ending_channels<S>(p, channel, v);
    if (E::residual(p) == SAC_RESIDUAL_AFTER)
        ending_add<S, E>(p, places, four, channel, v);
    ending_put<S, E>(p, places, four, v);
}

} // namespace conv
