/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels by tiles ask of the hardware (attention_tiles.cuh, head_matmul_tiles.cuh): copies
 * that are fetched ahead, and the tensor cores' float16. Tests without a GPU have their own. */
#pragma once

#include <cuda_fp16.h>
#include <stdint.h>

#include "device/cuda/launch.h"

namespace ops
{

/* ---- shared memory, fetched ahead ---- */

/* What the launch asked for. */
__device__ __forceinline__ uint16_t *tile_memory()
{
    extern __shared__ __align__(1024) uint4 tile_shared[];
    return reinterpret_cast<uint16_t *>(tile_shared);
}

__device__ __forceinline__ unsigned shared_place(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

/* 16 or 8 bytes, of which the first `bytes` are read and the others zeros. */
template <int BYTES>
__device__ __forceinline__ void fetch_first(uint16_t *to, const uint16_t *from, int bytes)
{
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_place(to)),
                     "l"(from), "r"(bytes));
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(shared_place(to)),
                     "l"(from), "r"(bytes));
}
/* Zeros where `in` is false. */
template <int BYTES>
__device__ __forceinline__ void fetch(uint16_t *to, const uint16_t *from, bool in)
{
    fetch_first<BYTES>(to, from, in ? BYTES : 0);
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
/* A matrix of 8 x 8, of which a lane has numbers 2 t and 2 t + 1 of row g, as `load` leaves it:
 * turned. */
__device__ __forceinline__ uint32_t turned(uint32_t v)
{
    uint32_t to;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(to) : "r"(v));
    return to;
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

/* ---- numbers ---- */

__device__ __forceinline__ uint32_t pair_of(float low, float high)
{
    const __half2 h = __floats2half2_rn(low, high);
    return *reinterpret_cast<const uint32_t *>(&h);
}

/* ---- launching ---- */

template <class P>
int tile_launch(void (*kernel)(P), dim3 blocks, dim3 threads, int shared, void *stream,
                const P &params)
{
    CUDA_LAUNCH_ALONE(kernel, blocks, threads, (size_t)shared, (cudaStream_t)stream, params);
    return (int)cudaGetLastError();
}

} // namespace ops
