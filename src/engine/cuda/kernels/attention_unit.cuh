/* SPDX-License-Identifier: Apache-2.0 */
/* What attention by tiles, and head_matmul_tiles.cuh, ask of the hardware beside tile_unit.cuh: the
 * unit of four warps, and numbers in 8 bits. Tests without a GPU have their own. */
#pragma once

#include "engine/cuda/kernels/bytes.cuh"
#include "engine/cuda/kernels/tile_unit.cuh"
#include "engine/cuda/unit.cuh"

namespace ops
{

/* ---- the unit of four warps ---- */

using namespace unit;

/* A matrix of rows of WIDTH numbers in shared memory, from one of its numbers on. */
template <int WIDTH> __device__ __forceinline__ uint64_t unit_matrix(const uint16_t *from)
{
    return unit::matrix_of<2 * WIDTH>(shared_place(from));
}

/* ---- numbers ---- */

__device__ __forceinline__ float number_at(const float *p, int i)
{
    return p[i];
}
__device__ __forceinline__ float number_at(const uint16_t *p, int i)
{
    return __half2float(__ushort_as_half(p[i]));
}
/* Of eight numbers, whose address fits 16 bytes. */
__device__ __forceinline__ uint64_t bytes_of_halves(const ops_bytes &b, const uint16_t *from)
{
    float v[LANES];
    get8(from, SAC_F16, 0, v);
    return bytes8_of(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], b.inverse, b.zero, b.type,
                     false);
}
/* Two to the power of x; of -inf, zero. */
__device__ __forceinline__ float power_of_two(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

} // namespace ops
