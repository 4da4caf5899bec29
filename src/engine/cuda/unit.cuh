// SPDX-License-Identifier: Apache-2.0
// Hopper's matrix unit, which a group of four warps asks together to multiply what lies in shared
// memory, or one's rows in registers by it: conv_tensor.cuh and its kin, conv_stem_unit.cu,
// attention_tiles.cuh. Tests without a GPU have their own.
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

#define UNIT_OUT8     "%0,%1,%2,%3,%4,%5,%6,%7"
#define UNIT_OUT16    UNIT_OUT8 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define UNIT_OUT24    UNIT_OUT16 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define UNIT_OUT32    UNIT_OUT24 ",%24,%25,%26,%27,%28,%29,%30,%31"
#define UNIT_EIGHT(j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
#define UNIT_SUMS8    UNIT_EIGHT(0), UNIT_EIGHT(1)
#define UNIT_SUMS16   UNIT_SUMS8, UNIT_EIGHT(2), UNIT_EIGHT(3)
#define UNIT_SUMS24   UNIT_SUMS16, UNIT_EIGHT(4), UNIT_EIGHT(5)
#define UNIT_SUMS32   UNIT_SUMS24, UNIT_EIGHT(6), UNIT_EIGHT(7)
#define UNIT_MULTIPLY(columns, sums, a0, a1, a2, a3, b_at, across)                           \
    UNIT_ASM("{.reg .pred p; setp.eq.u32 p, 0, 0; "                                          \
             "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32.f16.f16 {" UNIT_OUT##sums \
             "}, {" a0 "," a1 "," a2 "," a3 "}, " b_at ", p, 1, 1, " across ";}"             \
             : UNIT_SUMS##sums                                                               \
             : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"((int)ACROSS))

// d += a b: 64 rows of 16 numbers, of which each warp has 16 in registers as mma.sync's m16n8k16
// wants them, by a matrix of EIGHTS times eight columns. Its rows in memory are those columns or,
// ACROSS, the numbers of a column.
template <int EIGHTS, bool ACROSS, int ALL>
__device__ __forceinline__ void unit_multiply(float (&d)[ALL][4], const uint32_t (&a)[4],
                                              uint64_t b)
{
    static_assert(EIGHTS == 2 || EIGHTS == 4 || EIGHTS == 6 || EIGHTS == 8, "written out here");
    if constexpr (EIGHTS == 2)
        UNIT_MULTIPLY(16, 8, "%8", "%9", "%10", "%11", "%12", "%13");
    else if constexpr (EIGHTS == 4)
        UNIT_MULTIPLY(32, 16, "%16", "%17", "%18", "%19", "%20", "%21");
    else if constexpr (EIGHTS == 6)
        UNIT_MULTIPLY(48, 24, "%24", "%25", "%26", "%27", "%28", "%29");
    else
        UNIT_MULTIPLY(64, 32, "%32", "%33", "%34", "%35", "%36", "%37");
}
#undef UNIT_MULTIPLY
#undef UNIT_SUMS32
#undef UNIT_SUMS24
#undef UNIT_SUMS16
#undef UNIT_SUMS8
#undef UNIT_EIGHT
#undef UNIT_OUT32
#undef UNIT_OUT24
#undef UNIT_OUT16
#undef UNIT_OUT8

} // namespace unit
