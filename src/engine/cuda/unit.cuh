// SPDX-License-Identifier: Apache-2.0
// Hopper's matrix unit, which a group of four warps asks together to multiply what lies in shared
// memory: conv_tensor.cu and its kin, attention_tiles.cuh. Tests without a GPU have their own.
#pragma once

#include <stdint.h>

namespace unit
{

// A matrix whose rows of BYTES bytes lie side by side, their pieces of 16 in the order that row
// number r turns: of 128 bytes piece p lies at p ^ r % 8, of 64 at p ^ r / 2 % 4, of 32 at
// p ^ r / 4 % 2, where r is counted over all shared memory. So rows of 128 and of 64 bytes may
// begin at any of them. The unit counts its place in sixteens of bytes: one further on is a sum.
template <int BYTES> __device__ __forceinline__ uint64_t matrix_of(unsigned address)
{
    constexpr uint64_t SWIZZLE = BYTES == 128 ? 1 : BYTES == 64 ? 2 : 3;
    return (uint64_t)(address >> 4 & 0x3fff) | 1ull << 16 | (uint64_t)(BYTES / 2) << 32 |
           SWIZZLE << 62;
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
enum { UNIT_HERE = 1 };
#define UNIT_ASM(...) asm volatile(__VA_ARGS__)
#else
enum { UNIT_HERE = 0 }; // what asks for it is not launched
#define UNIT_ASM(...) (void)0
#endif

// The unit reads what ordinary writes have written.
__device__ __forceinline__ void unit_sees()
{
    UNIT_ASM("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void unit_begin()
{
    UNIT_ASM("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void unit_commit()
{
    UNIT_ASM("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int N> __device__ __forceinline__ void unit_wait()
{
    UNIT_ASM("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

} // namespace unit
