// SPDX-License-Identifier: Apache-2.0
// What conv_bytes.cu asks of the hardware: copies that are fetched ahead, and what the tensor cores
// of each generation do with 8-bit numbers in shared memory. Tests without a GPU have their own.
#pragma once

#include <cuda_fp8.h>
#include <stdint.h>

#include "device/cuda/launch.h"
#include "engine/cuda/products/conv_bytes.h"
#include "engine/cuda/unit.cuh"

namespace conv
{

__device__ __forceinline__ unsigned shared_address(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

// What a launch asked for: a multiple of 1024 bytes from the start.
__device__ __forceinline__ uint8_t *block_memory()
{
    extern __shared__ uint4 shared[];
    return (uint8_t *)shared + (-shared_address(shared) & 1023);
}

// The same where that is known to be the start.
__device__ __forceinline__ uint8_t *stream_block_memory()
{
    extern __shared__ __align__(1024) uint8_t stream_shared[];
    return stream_shared;
}

/* ---- fetching ahead ---- */

// 8 or 16 bytes. Other threads may read them behind this one's fetch_wait and a barrier.
template <int BYTES> __device__ __forceinline__ void fetch_run(uint8_t *to, const uint8_t *from)
{
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)),
                     "l"(from));
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(shared_address(to)),
                     "l"(from));
}
template <int BYTES>
__device__ __forceinline__ void read_run(uint32_t (&w)[BYTES / 4], const uint8_t *from)
{
    if constexpr (BYTES == 16) {
        const uint4 v = *reinterpret_cast<const uint4 *>(from);
        w[0] = v.x, w[1] = v.y, w[2] = v.z, w[3] = v.w;
    } else {
        const uint2 v = *reinterpret_cast<const uint2 *>(from);
        w[0] = v.x, w[1] = v.y;
    }
}

// near: the same bytes are wanted again soon, by the window's next taps.
__device__ __forceinline__ void fetch16(uint8_t *to, const uint8_t *from, bool inside, bool near)
{
    const int bytes = inside ? 16 : 0; // of which none are read: zeros
    if (near)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
                     "l"(from), "r"(bytes));
    else
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
                     "l"(from), "r"(bytes));
}
__device__ __forceinline__ void fetch_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
// All but the last N groups are there.
template <int N> __device__ __forceinline__ void fetch_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/* ---- E4M3 ---- */

__device__ __forceinline__ float float_of_f8(unsigned byte)
{
    return __half2float(__half(__nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)byte, __NV_E4M3)));
}
// Two of them side by side, saturated.
__device__ __forceinline__ uint32_t f8_of(float a, float b)
{
    return __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, __NV_E4M3);
}

__device__ __forceinline__ float fast_tanh(float x)
{
    float y;
    asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* ---- warps of any generation ---- */

__device__ __forceinline__ void bytes_load(uint32_t (&v)[4], const uint8_t *from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                 : "r"(shared_address(from)));
}

#define BYTES_MMA(kinds)                                                                      \
    asm volatile("mma.sync.aligned.m16n8k32.row.col." kinds " {%0,%1,%2,%3}, {%4,%5,%6,%7}, " \
                 "{%8,%9}, {%0,%1,%2,%3};"                                                    \
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                             \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))

template <int KIND>
__device__ __forceinline__ void bytes_multiply(uint32_t *d, const uint32_t (&a)[4], uint32_t b0,
                                               uint32_t b1)
{
    if constexpr (KIND == CONV_BYTES_S8)
        BYTES_MMA("s32.s8.s8.s32");
    else if constexpr (KIND == CONV_BYTES_U8)
        BYTES_MMA("s32.u8.s8.s32");
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 890
    else
        BYTES_MMA("f32.e4m3.e4m3.f32");
#endif
}
#undef BYTES_MMA

/* ---- a group of four warps of Hopper ---- */

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define BYTES_HOPPER 1

using namespace unit;

#define SUMS4(i)   "+r"(d[i]), "+r"(d[i + 1]), "+r"(d[i + 2]), "+r"(d[i + 3])
#define SUMS16(i)  SUMS4(i), SUMS4(i + 4), SUMS4(i + 8), SUMS4(i + 12)
#define SUMS32(i)  SUMS16(i), SUMS16(i + 16)
#define SUMS64(i)  SUMS32(i), SUMS32(i + 32)
#define SUMS96(i)  SUMS64(i), SUMS32(i + 64)
#define SUMS128(i) SUMS64(i), SUMS64(i + 64)

#define BYTES_WGMMA(n, count, kinds, a_at, b_at, add_at, signs)                    \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %" #add_at ", 0; "                 \
                 "wgmma.mma_async.sync.aligned.m64n" #n kinds " {" UNIT_OUT##count \
                 "}, %" #a_at ", %" #b_at ", p" signs ";}"                         \
                 : SUMS##count(0)                                                  \
                 : "l"(a), "l"(b), "r"((int)add))

#define BYTES_WGMMA_OF(n, count, a_at, b_at, add_at)                                         \
    __device__ __forceinline__ void bytes_wgmma(uint32_t(&d)[count], uint64_t a, uint64_t b, \
                                                bool add, bytes_kind<CONV_BYTES_S8>)         \
    {                                                                                        \
        BYTES_WGMMA(n, count, "k32.s32.s8.s8", a_at, b_at, add_at, "");                      \
    }                                                                                        \
    __device__ __forceinline__ void bytes_wgmma(uint32_t(&d)[count], uint64_t a, uint64_t b, \
                                                bool add, bytes_kind<CONV_BYTES_U8>)         \
    {                                                                                        \
        BYTES_WGMMA(n, count, "k32.s32.u8.s8", a_at, b_at, add_at, "");                      \
    }                                                                                        \
    __device__ __forceinline__ void bytes_wgmma(uint32_t(&d)[count], uint64_t a, uint64_t b, \
                                                bool add, bytes_kind<CONV_BYTES_F8>)         \
    {                                                                                        \
        BYTES_WGMMA(n, count, "k32.f32.e4m3.e4m3", a_at, b_at, add_at, ", 1, 1");            \
    }                                                                                        \
    __device__ __forceinline__ void bytes_wgmma(uint32_t(&d)[count], uint64_t a, uint64_t b, \
                                                bool add, bytes_kind<CONV_BYTES_F16>)        \
    {                                                                                        \
        BYTES_WGMMA(n, count, "k16.f32.f16.f16", a_at, b_at, add_at, ", 1, 1, 0, 0");        \
    }
template <int KIND> struct bytes_kind {
};
BYTES_WGMMA_OF(32, 16, 16, 17, 18)
BYTES_WGMMA_OF(64, 32, 32, 33, 34)
BYTES_WGMMA_OF(128, 64, 64, 65, 66)
BYTES_WGMMA_OF(192, 96, 96, 97, 98)
BYTES_WGMMA_OF(256, 128, 128, 129, 130)
#endif

/* ---- launching ---- */

template <class P>
static cudaError_t bytes_launch(void (*kernel)(P), dim3 blocks, unsigned threads, int shared,
                                cudaStream_t stream, const P &params)
{
    CUDA_LAUNCH_ALONE(kernel, blocks, threads, shared, stream, params);
    return cudaGetLastError();
}

} // namespace conv
