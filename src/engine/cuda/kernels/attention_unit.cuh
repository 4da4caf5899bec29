/* SPDX-License-Identifier: Apache-2.0 */
/* What attention by tiles asks of the hardware: copies that are fetched ahead, the tensor cores'
 * float16, and numbers in 8 bits. Tests without a GPU have their own. */
#pragma once

#include <cuda_fp16.h>
#include <stdint.h>

#include "device/cuda/launch.h"
#include "engine/cuda/kernels/bytes.cuh"
#include "engine/cuda/unit.cuh"

namespace ops
{

/* ---- shared memory, fetched ahead ---- */

/* What the launch asked for. */
__device__ __forceinline__ uint16_t *attention_memory()
{
    extern __shared__ __align__(1024) uint4 attention_shared[];
    return reinterpret_cast<uint16_t *>(attention_shared);
}

__device__ __forceinline__ unsigned shared_place(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

/* 16 or 8 bytes; zeros where `in` is false. */
template <int BYTES>
__device__ __forceinline__ void fetch(uint16_t *to, const uint16_t *from, bool in)
{
    const int bytes = in ? BYTES : 0; /* of which none are read: zeros */
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_place(to)),
                     "l"(from), "r"(bytes));
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(shared_place(to)),
                     "l"(from), "r"(bytes));
}
__device__ __forceinline__ void fetch_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
/* All but the last N groups are there. */
template <int N> __device__ __forceinline__ void fetch_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/* ---- tensor cores ---- */

/* Four matrices of 8 x 8, of which lane 8 j + r names row r of matrix j; as they lie, and turned.
 */
__device__ __forceinline__ void load(uint32_t (&v)[4], const uint16_t *from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                 : "r"(shared_place(from)));
}
__device__ __forceinline__ void load_turned(uint32_t (&v)[4], const uint16_t *from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                 : "r"(shared_place(from)));
}
/* d += a b, of 16 x 16 and 16 x 8 numbers. */
__device__ __forceinline__ void multiply_halves(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                                uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                 "{%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* ---- the unit of four warps ---- */

using namespace unit;

/* A matrix of rows of WIDTH numbers in shared memory, from one of its numbers on. */
template <int WIDTH> __device__ __forceinline__ uint64_t unit_matrix(const uint16_t *from)
{
    return unit::matrix_of<2 * WIDTH>(shared_place(from));
}

/* ---- numbers ---- */

__device__ __forceinline__ uint32_t pair_of(float low, float high)
{
    const __half2 h = __floats2half2_rn(low, high);
    return *reinterpret_cast<const uint32_t *>(&h);
}
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

/* ---- launching ---- */

template <class P>
int attention_launch(void (*kernel)(P), dim3 blocks, dim3 threads, int shared, void *stream,
                     const P &params)
{
    CUDA_LAUNCH_ALONE(kernel, blocks, threads, (size_t)shared, (cudaStream_t)stream, params);
    return (int)cudaGetLastError();
}

} // namespace ops
