/* SPDX-License-Identifier: Apache-2.0 */
/* Neighbouring numbers that are read and written at once: by 16 bytes, or fewer where no more lie
 * together. By words, because the compiler takes halves apart that are chosen by a condition. */
#pragma once

#include "engine/cuda/kernels/numbers.cuh"

namespace ops
{

/* N numbers of type T as they lie in memory, at an address that is a multiple of their bytes or of
 * 16. */
template <class T, int N> struct pack;
template <int N> struct alignas(N < 4 ? 4 * N : 16) pack<float, N> {
    uint32_t      word[N];
    OPS_BODY void to(float (&v)[N]) const
    {
        OPS_UNROLL
        for (int k = 0; k < N; k++)
            v[k] = bits_to_float(word[k]);
    }
    OPS_BODY void of(const float (&v)[N])
    {
        OPS_UNROLL
        for (int k = 0; k < N; k++)
            word[k] = float_to_bits(v[k]);
    }
    OPS_BODY void fill(float v)
    {
        OPS_UNROLL
        for (int k = 0; k < N; k++)
            word[k] = float_to_bits(v);
    }
};
template <int N> struct alignas(N < 8 ? 2 * N : 16) pack<uint16_t, N> {
    uint32_t      word[N / 2];
    OPS_BODY void to(float (&v)[N]) const
    {
        OPS_UNROLL
        for (int k = 0; k < N; k += 2)
            halves_of(word[k / 2], v[k], v[k + 1]);
    }
    OPS_BODY void of(const float (&v)[N])
    {
        OPS_UNROLL
        for (int k = 0; k < N; k += 2)
            word[k / 2] = word_of(v[k], v[k + 1]);
    }
    OPS_BODY void fill(float v)
    {
        OPS_UNROLL
        for (int k = 0; k < N; k += 2)
            word[k / 2] = word_of(v, v);
    }
};
template <> struct pack<uint16_t, 1> {
    uint16_t      word;
    OPS_BODY void to(float (&v)[1]) const
    {
        v[0] = half_to_float(word);
    }
    OPS_BODY void of(const float (&v)[1])
    {
        word = float_to_half(v[0]);
    }
    OPS_BODY void fill(float v)
    {
        word = float_to_half(v);
    }
};

template <int N, class T> OPS_BODY pack<T, N> load(const T *p)
{
    return *(const pack<T, N> *)p;
}

/* float16 or float32. */
template <int N> OPS_BODY void store(void *p, int type, int64_t at, const float (&v)[N])
{
    if (type == SAC_F16) {
        pack<uint16_t, N> halves;
        halves.of(v);
        *(pack<uint16_t, N> *)((uint16_t *)p + at) = halves;
        return;
    }
    pack<float, N> singles;
    singles.of(v);
    *(pack<float, N> *)((float *)p + at) = singles;
}

/* Does the address allow n numbers of the dtype, which is one of the two, at once? */
inline bool fits_pack(const void *p, int n, int type)
{
    const int bytes = n * (type == SAC_F16 ? 2 : 4);
    return (uintptr_t)p % (uintptr_t)(bytes < 16 ? bytes : 16) == 0;
}

} // namespace ops
