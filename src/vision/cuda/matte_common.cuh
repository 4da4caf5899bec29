/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels of mattes share: blocks of threads, numbers that lie side by side, tables. */
#pragma once

#include "vision/cuda/launch.h"

namespace
{

enum {
    LANES = 32,
    TILE_X = CUDA_MATTE_TILE_X,
    TILE_Y = CUDA_MATTE_TILE_Y,
    THREADS = TILE_X * TILE_Y,
    MARGIN = SAC_MATTE_MARGIN,
    PIXELS = 4, /* of a thread, side by side; cells too */
    QUADS = CUDA_MATTE_QUADS,
    QUAD_TILE = QUADS * PIXELS /* cells of a row of a block */
};

__device__ int thread_of_block()
{
    return threadIdx.y * blockDim.x + threadIdx.x;
}

__device__ int clamp_to(int v, int low, int high)
{
    return v < low ? low : v > high ? high : v;
}

/* Where a block of cells begins. */
struct tile {
    int x, y;
};

__device__ tile tile_of(int width, int height)
{
    return tile{(int)blockIdx.x * width, (int)blockIdx.y * height};
}

/* Tables and planes that no thread of the launch writes. */
template <typename T> __device__ T read_only(const T *at)
{
#ifdef __CUDA_ARCH__
    return __ldg(at);
#else
    return *at;
#endif
}

/* ---- divisions ---- */

/* wanted / total of numbers that are neither very small nor very large, as it is compiled without
 * the way for those; 0 of a total of 0, which else is 1 at least. Shares by softmax are such
 * (sac_matte_part), where a part so small is none, and 1 / n (sac_matte_inverse). */
__device__ float part_of(float wanted, float total)
{
#ifdef __CUDA_ARCH__
    float inverse;
    total = fmaxf(total, 1.0f); /* 0 / 1 is 0 too */
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(total));
    inverse = __fmaf_rn(inverse, __fmaf_rn(-total, inverse, 1.0f), inverse);
    const float near = wanted * inverse;
    return __fmaf_rn(inverse, __fmaf_rn(-total, near, wanted), near);
#else
    return sac_matte_part(wanted, total);
#endif
}

/* The same in double: a / b, b greater than 0. The way that is left out is also taken where a is 0,
 * as it is for most cells, and nothing else can be computed beside it. 1 / b: to the last bit or
 * nearly. */
__device__ double inverse_of(double b)
{
#ifdef __CUDA_ARCH__
    double seed;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(seed) : "d"(b));
    const double near = __hiloint2double(__double2hiint(seed), 1), off = fma(-b, near, 1.0);
    const double nearer = fma(near, fma(off, off, off), near);
    return fma(nearer, fma(-b, nearer, 1.0), nearer);
#else
    return 1.0 / b;
#endif
}
__device__ double quotient_of(double a, double b)
{
#ifdef __CUDA_ARCH__
    const double inverse = inverse_of(b), near = a * inverse;
    return fma(inverse, fma(-b, near, a), near);
#else
    return a / b;
#endif
}

/* ---- four bytes at once ---- */

/* From any address on. Up to seven bytes behind the first are read. */
__device__ uint32_t four_at(const uint8_t *at)
{
    const int       off = (int)((uintptr_t)at & 3);
    const uint32_t *word = (const uint32_t *)(const void *)(at - off);
    return __funnelshift_r(word[0], word[1], off * 8);
}

/* Four cells of a row from any one on. */
__device__ uint32_t four_of(const uint32_t *row, int at)
{
    const uint32_t *word = row + at / 4;
    return __funnelshift_r(word[0], word[1], at % 4 * 8);
}

/* Differences of four bytes, added to a sum. */
__device__ uint32_t add_differences(uint32_t a, uint32_t b, uint32_t sum)
{
#ifdef __CUDA_ARCH__
    uint32_t out;
    asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(sum));
    return out;
#else
    return sum + __vsadu4(a, b);
#endif
}

/* Means of two by two of eight bytes of two rows: four bytes. */
__device__ uint32_t halve_four(const uint32_t above[2], const uint32_t below[2])
{
    uint32_t out = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint32_t a = above[i / 2] >> i % 2 * 16, b = below[i / 2] >> i % 2 * 16;
        const uint8_t  up[2] = {(uint8_t)a, (uint8_t)(a >> 8)},
                      down[2] = {(uint8_t)b, (uint8_t)(b >> 8)};
        out |= (uint32_t)sac_matte_halve(up, down) << 8 * i;
    }
    return out;
}

/* The luma of four pixels side by side as it is read; WIDE: of 16 bits, of which the upper byte
 * counts. */
template <bool WIDE> struct alignas(WIDE ? 8 : 4) four_luma {
    uint32_t            of[WIDE ? 2 : 1];
    __device__ uint32_t bytes() const
    {
        return WIDE ? __byte_perm(of[0], of[WIDE], 0x7531) : of[0];
    }
};

template <bool WIDE> __device__ four_luma<WIDE> read_four(const uint8_t *at)
{
    four_luma<WIDE> four;
#pragma unroll
    for (int i = 0; i <= (int)WIDE; i++)
        four.of[i] = read_only((const uint32_t *)(const void *)at + i);
    return four;
}

/* Numbers of a row's cells, at once where they lie so. */
template <typename T> struct alignas(PIXELS * sizeof(T)) four_numbers {
    T of[PIXELS];
};

template <typename T> __device__ void store_four(T *to, int count, const T from[PIXELS])
{
    if (count == PIXELS && (uintptr_t)to % sizeof(four_numbers<T>) == 0) {
        *(four_numbers<T> *)(void *)to = four_numbers<T>{{from[0], from[1], from[2], from[3]}};
        return;
    }
#pragma unroll
    for (int i = 0; i < PIXELS; i++)
        if (i < count)
            to[i] = from[i];
}

template <typename T> __device__ void load_four(const T *from, int count, T to[PIXELS])
{
    if (count == PIXELS && (uintptr_t)from % sizeof(four_numbers<T>) == 0) {
        const four_numbers<T> v = *(const four_numbers<T> *)(const void *)from;
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            to[i] = v.of[i];
        return;
    }
#pragma unroll
    for (int i = 0; i < PIXELS; i++)
        if (i < count)
            to[i] = from[i];
}

/* ---- where pixels lie among cells ---- */

/* sac_matte_tap, to the last bit: what is whole is kept within its limits as such, which costs less
 * than doubles do. */
__device__ sac_tap tap_of(const sac_matte_axis &a, int pixel)
{
#ifdef __CUDA_ARCH__
    const double centre = a.origin + (pixel + 0.5) * a.step - 0.5;
    const int    low = __double2int_rd(centre);
    return sac_tap{clamp_to(low, 0, a.cells - 1), clamp_to(low, -1, a.cells - 2) + 1,
                   __double2int_rn((centre - low) * SAC_MATTE_ONE)};
#else
    return sac_matte_tap(&a, pixel);
#endif
}

/* The cells beside a pixel and the second one's weight; nearest: the cell that it lies in. */
__device__ uint32_t pack_tap(const sac_matte_axis &a, int pixel, bool nearest)
{
    if (nearest)
        return (uint32_t)sac_matte_cell(&a, pixel);
    const sac_tap  tap = tap_of(a, pixel);
    const uint32_t second = tap.b > tap.a ? (uint32_t)tap.second : 0; /* else it weighs nothing */
    return (uint32_t)tap.a | (uint32_t)(tap.b - tap.a) << 12 | second << 13;
}
static_assert((int)SAC_MATTE_SIZE_MAX <= 1 << 12, "a cell has 12 bits");

struct two_cells {
    uint32_t a, b;
    float    part;
};

__device__ two_cells unpack_tap(uint32_t packed)
{
    const uint32_t a = packed & 0xfff;
    return two_cells{a, a + (packed >> 12 & 1), sac_matte_part_of((int32_t)(packed >> 13))};
}

} // namespace
