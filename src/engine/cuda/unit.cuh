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

// The first operands of an instruction, so many; conv_bytes.cuh uses them, too. Then a thread's
// sums of eights of columns, four of each, from eight j on.
#define UNIT_OUT8        "%0,%1,%2,%3,%4,%5,%6,%7"
#define UNIT_OUT16       UNIT_OUT8 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define UNIT_OUT24       UNIT_OUT16 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define UNIT_OUT32       UNIT_OUT24 ",%24,%25,%26,%27,%28,%29,%30,%31"
#define UNIT_OUT40       UNIT_OUT32 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define UNIT_OUT48       UNIT_OUT40 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define UNIT_OUT56       UNIT_OUT48 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define UNIT_OUT64       UNIT_OUT56 ",%56,%57,%58,%59,%60,%61,%62,%63"
#define UNIT_OUT72       UNIT_OUT64 ",%64,%65,%66,%67,%68,%69,%70,%71"
#define UNIT_OUT80       UNIT_OUT72 ",%72,%73,%74,%75,%76,%77,%78,%79"
#define UNIT_OUT88       UNIT_OUT80 ",%80,%81,%82,%83,%84,%85,%86,%87"
#define UNIT_OUT96       UNIT_OUT88 ",%88,%89,%90,%91,%92,%93,%94,%95"
#define UNIT_OUT104      UNIT_OUT96 ",%96,%97,%98,%99,%100,%101,%102,%103"
#define UNIT_OUT112      UNIT_OUT104 ",%104,%105,%106,%107,%108,%109,%110,%111"
#define UNIT_OUT120      UNIT_OUT112 ",%112,%113,%114,%115,%116,%117,%118,%119"
#define UNIT_OUT128      UNIT_OUT120 ",%120,%121,%122,%123,%124,%125,%126,%127"
#define UNIT_EIGHT(j)    "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
#define UNIT_EIGHTS2(j)  UNIT_EIGHT(j), UNIT_EIGHT(j + 1)
#define UNIT_EIGHTS4(j)  UNIT_EIGHTS2(j), UNIT_EIGHTS2(j + 2)
#define UNIT_EIGHTS8(j)  UNIT_EIGHTS4(j), UNIT_EIGHTS4(j + 4)
#define UNIT_EIGHTS16(j) UNIT_EIGHTS8(j), UNIT_EIGHTS8(j + 8)
#define UNIT_MULTIPLY(columns, count, a0, a1, a2, a3, b_at, across, ...)                      \
    UNIT_ASM("{.reg .pred p; setp.eq.u32 p, 0, 0; "                                           \
             "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32.f16.f16 {" UNIT_OUT##count \
             "}, {" a0 "," a1 "," a2 "," a3 "}, " b_at ", p, 1, 1, " across ";}"              \
             : __VA_ARGS__                                                                    \
             : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"((int)ACROSS))

// d += a b: 64 rows of 16 numbers, of which each warp has 16 in registers as mma.sync's m16n8k16
// wants them, by a matrix of EIGHTS times eight columns. Its rows in memory are those columns or,
// ACROSS, the numbers of a column.
template <int EIGHTS, bool ACROSS, int ALL>
__device__ __forceinline__ void unit_multiply(float (&d)[ALL][4], const uint32_t (&a)[4],
                                              uint64_t b)
{
    if constexpr (EIGHTS == 2)
        UNIT_MULTIPLY(16, 8, "%8", "%9", "%10", "%11", "%12", "%13", UNIT_EIGHTS2(0));
    else if constexpr (EIGHTS == 4)
        UNIT_MULTIPLY(32, 16, "%16", "%17", "%18", "%19", "%20", "%21", UNIT_EIGHTS4(0));
    else if constexpr (EIGHTS == 6)
        UNIT_MULTIPLY(48, 24, "%24", "%25", "%26", "%27", "%28", "%29", UNIT_EIGHTS4(0),
                      UNIT_EIGHTS2(4));
    else if constexpr (EIGHTS == 8)
        UNIT_MULTIPLY(64, 32, "%32", "%33", "%34", "%35", "%36", "%37", UNIT_EIGHTS8(0));
    else if constexpr (EIGHTS == 14)
        UNIT_MULTIPLY(112, 56, "%56", "%57", "%58", "%59", "%60", "%61", UNIT_EIGHTS8(0),
                      UNIT_EIGHTS4(8), UNIT_EIGHTS2(12));
    else if constexpr (EIGHTS == 16)
        UNIT_MULTIPLY(128, 64, "%64", "%65", "%66", "%67", "%68", "%69", UNIT_EIGHTS16(0));
    else if constexpr (EIGHTS == 18)
        UNIT_MULTIPLY(144, 72, "%72", "%73", "%74", "%75", "%76", "%77", UNIT_EIGHTS16(0),
                      UNIT_EIGHTS2(16));
    else if constexpr (EIGHTS == 20)
        UNIT_MULTIPLY(160, 80, "%80", "%81", "%82", "%83", "%84", "%85", UNIT_EIGHTS16(0),
                      UNIT_EIGHTS4(16));
    else if constexpr (EIGHTS == 26)
        UNIT_MULTIPLY(208, 104, "%104", "%105", "%106", "%107", "%108", "%109", UNIT_EIGHTS16(0),
                      UNIT_EIGHTS8(16), UNIT_EIGHTS2(24));
    else
        static_assert(EIGHTS == 0, "not written out here");
}
#undef UNIT_MULTIPLY
#undef UNIT_EIGHTS16
#undef UNIT_EIGHTS8
#undef UNIT_EIGHTS4
#undef UNIT_EIGHTS2
#undef UNIT_EIGHT

} // namespace unit
