/* SPDX-License-Identifier: Apache-2.0 */
/* The k best numbers of a line, best first, found by a block of threads: digit by digit from the
 * top, numbers are counted by digit until those that may be among the best fit shared memory, where
 * they are sorted. Equal numbers keep their order. Includes nothing of CUDA, so that a test runs
 * it with emulated threads. */
#pragma once

#include <stdint.h>

namespace ops
{

enum { TOPK_MAX = 2048 }; /* that are sorted; a power of two */

struct topk_room { /* shared memory */
    uint64_t item[TOPK_MAX];
    uint32_t count[256], of_warp[32];
    uint32_t prefix, need, bin, taken;
};

/* A number's key of `width` bits at the top of the result: the larger, the better. NaN is the
 * largest number and both zeros are the same. */
__device__ __forceinline__ uint32_t topk_key(uint32_t bits, int width, uint32_t infinity,
                                             bool least)
{
    const uint32_t sign = 1u << (width - 1), all = sign | (sign - 1), size = bits & (sign - 1);
    const uint32_t key = size > infinity ? all
                         : size == 0     ? sign
                         : bits & sign   ? ~bits & all
                                         : bits | sign;
    return (least ? ~key & all : key) << (32 - width);
}

/* What of a line the digits found so far leave. */
struct topk_cut {
    uint32_t mask, prefix; /* the best have (key & mask) >= prefix */
    uint32_t need, bin;    /* numbers wanted of those that have the prefix; how many have it */
};

/* visit(key, index, is there one) in every thread, for the line's numbers; some loads are under way
 * before the first is waited for. */
template <class KEY, class VISIT>
__device__ __forceinline__ void topk_each(const KEY &key, int n, const VISIT &visit)
{
    constexpr int TURNS = 4;
    const int     threads = (int)blockDim.x, own = (int)threadIdx.x;
    for (int64_t first = 0; first < n; first += TURNS * threads) {
        uint32_t keys[TURNS];
#pragma unroll
        for (int t = 0; t < TURNS; t++) {
            const int64_t j = first + t * threads + own;
            keys[t] = j < n ? key((int)j) : 0;
        }
#pragma unroll
        for (int t = 0; t < TURNS; t++) {
            const int64_t j = first + t * threads + own;
            if (first + t * threads < n) /* the same for all threads */
                visit(keys[t], (int)j, j < n);
        }
    }
}

/* One more digit of 8 bits. */
template <class KEY>
__device__ __forceinline__ topk_cut topk_narrow(const KEY &key, int n, const topk_cut &cut,
                                                int shift, topk_room &room)
{
    const int lane = (int)threadIdx.x % 32;
    for (int i = (int)threadIdx.x; i < 256; i += (int)blockDim.x)
        room.count[i] = 0;
    __syncthreads();
    topk_each(key, n, [&](uint32_t own, int, bool is) {
        const bool     on = is && (own & cut.mask) == cut.prefix;
        const uint32_t digit = own >> shift & 0xff;
        const uint32_t same = __match_any_sync(~0u, on ? digit : 256u);
        if (on && lane == __ffs((int)same) - 1) /* one addition for all lanes of the digit */
            atomicAdd(&room.count[digit], (uint32_t)__popc(same));
    });
    __syncthreads();
    if (threadIdx.x < 32) { /* a lane has eight digits, from the largest down */
        uint32_t sum = 0, upto;
        for (int e = 0; e < 8; e++)
            sum += room.count[255 - lane * 8 - e];
        upto = sum;
        for (int d = 1; d < 32; d *= 2) {
            const uint32_t below = __shfl_up_sync(~0u, upto, d);
            upto += lane >= d ? below : 0;
        }
        uint32_t before = upto - sum;
        for (int e = 0; e < 8; e++) {
            const uint32_t digit = 255u - (uint32_t)(lane * 8 + e), count = room.count[digit];
            if (before < cut.need && before + count >= cut.need) {
                room.prefix = cut.prefix | digit << shift;
                room.need = cut.need - before;
                room.bin = count;
            }
            before += count;
        }
    }
    __syncthreads();
    return topk_cut{cut.mask | 0xffu << shift, room.prefix, room.need, room.bin};
}

__device__ __forceinline__ uint64_t topk_item(uint32_t key, int index)
{
    return (uint64_t)key << 32 | (uint32_t)~index;
}

/* All whose masked key is at least so large, in any order. */
template <class KEY>
__device__ __forceinline__ void topk_collect(const KEY &key, int n, uint32_t mask, uint32_t least,
                                             topk_room &room)
{
    const int lane = (int)threadIdx.x % 32;
    topk_each(key, n, [&](uint32_t own, int j, bool is) {
        const bool     on = is && (own & mask) >= least;
        const uint32_t votes = __ballot_sync(~0u, on);
        uint32_t       slot = 0;
        if (votes == 0)
            return;
        if (lane == 0)
            slot = atomicAdd(&room.taken, (uint32_t)__popc(votes));
        slot = __shfl_sync(~0u, slot, 0) + (uint32_t)__popc(votes & ((1u << lane) - 1));
        if (on)
            room.item[slot] = topk_item(own, j);
    });
}

/* The first `need` whose masked key is the prefix, from item `at` on. */
template <class KEY>
__device__ __forceinline__ void topk_first(const KEY &key, int n, const topk_cut &cut, int at,
                                           topk_room &room)
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    uint32_t  before = 0;
    for (int64_t first = 0; first < n && before < cut.need; first += blockDim.x) {
        const int64_t  j = first + threadIdx.x;
        const uint32_t own = j < n ? key((int)j) : 0;
        const bool     on = j < n && (own & cut.mask) == cut.prefix;
        const uint32_t votes = __ballot_sync(~0u, on);
        uint32_t       slot = before + (uint32_t)__popc(votes & ((1u << lane) - 1));
        if (lane == 0)
            room.of_warp[warp] = (uint32_t)__popc(votes);
        __syncthreads();
        for (int w = 0; w < (int)blockDim.x / 32; w++) {
            slot += w < warp ? room.of_warp[w] : 0;
            before += room.of_warp[w];
        }
        if (on && slot < cut.need)
            room.item[at + (int)slot] = topk_item(own, (int)j);
        __syncthreads();
    }
}

/* Largest first (Batcher, 1968). A warp has 64 neighbouring items, so short steps wait for the warp
 * only. */
__device__ __forceinline__ void topk_sort(uint64_t *item, int n)
{
    for (int size = 2; size <= n; size *= 2)
        for (int step = size / 2; step > 0; step /= 2) {
            for (int t = (int)threadIdx.x; t < n / 2; t += (int)blockDim.x) {
                const int      a = 2 * t - (t & (step - 1));
                const uint64_t x = item[a], y = item[a + step];
                if ((x < y) == ((a & size) == 0)) {
                    item[a] = y;
                    item[a + step] = x;
                }
            }
            if (step > 32 || (step == 1 && size > 32))
                __syncthreads();
            else
                __syncwarp();
        }
    __syncthreads();
}

/* The k best of n numbers, in order, into the room's items: ~index in the lower half. key(j) has
 * `width` bits at the top. Whole warps of threads; k from 1 to TOPK_MAX and at most n. */
template <class KEY>
__device__ __forceinline__ void topk_best(const KEY &key, int n, int k, int width, topk_room &room)
{
    topk_cut cut = {0, 0, (uint32_t)k, (uint32_t)n};
    __syncthreads(); /* nobody reads the last line's items any more */
    if (threadIdx.x == 0)
        room.taken = 0;
    for (int shift = 24; shift >= 32 - width && (uint32_t)k - cut.need + cut.bin > TOPK_MAX;
         shift -= 8)
        cut = topk_narrow(key, n, cut, shift, room);
    __syncthreads();
    const uint32_t above = (uint32_t)k - cut.need;
    uint32_t       count = above + cut.bin;
    if (count <= TOPK_MAX)
        topk_collect(key, n, cut.mask, cut.prefix, room);
    else { /* of too many equal numbers the first */
        if (above > 0)
            topk_collect(key, n, cut.mask, cut.prefix + 1, room);
        topk_first(key, n, cut, (int)above, room);
        count = (uint32_t)k;
    }
    int sorted = 64;
    while (sorted < (int)count)
        sorted *= 2;
    for (int i = (int)(count + threadIdx.x); i < sorted; i += (int)blockDim.x)
        room.item[i] = 0;
    __syncthreads();
    topk_sort(room.item, sorted);
}

} // namespace ops
