// SPDX-License-Identifier: Apache-2.0
// Hopper's copy engine and its barriers, as conv_tensor.cuh, conv_window.cuh and conv_stem_unit.cu
// use them. Tests without a GPU have their own.
#pragma once

#include "engine/cuda/products/conv_bytes.cuh"
#include "engine/cuda/products/conv_launch.h"

#ifdef BYTES_HOPPER
namespace conv
{

/* ---- barriers in shared memory, whose phases are counted by their parity ---- */

// count: of arrivals that end a phase, beside the bytes that are expected in it.
__device__ __forceinline__ void barrier_init(uint64_t *barrier, int count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(count));
}
// The engine sees them.
__device__ __forceinline__ void barriers_are_ready()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void barrier_arrive(uint64_t *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
                 : "memory");
}
__device__ __forceinline__ void barrier_expect(uint64_t *barrier, int bytes)
{
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
        "r"(bytes)
        : "memory");
}
// Until the phase of this parity is over; before the first phase that of 1 is.
__device__ __forceinline__ void barrier_wait(uint64_t *barrier, int parity)
{
    asm volatile("{.reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; "
                 "@p bra done; bra again; done:}" ::"r"(shared_address(barrier)),
                 "r"(parity)
                 : "memory");
}
// A group's own threads alone: of four groups at most.
__device__ __forceinline__ void group_sync(int group)
{
    switch (group) { // their number in a register would take all that there are
    case 0: asm volatile("bar.sync 1, 128;" ::: "memory"); break;
    case 1: asm volatile("bar.sync 2, 128;" ::: "memory"); break;
    case 2: asm volatile("bar.sync 3, 128;" ::: "memory"); break;
    default: asm volatile("bar.sync 4, 128;" ::: "memory"); break;
    }
}

/* ---- one thread ---- */

// True for one thread of a warp, of which the compiler knows then that it is alone.
__device__ __forceinline__ bool elected()
{
    int chosen;
    asm volatile("{.reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 %0, 1, 0, p;}"
                 : "=r"(chosen));
    return chosen != 0;
}

/* ---- registers, of which a group of four warps gives to others of its block what it has not to
 * hold ---- */

template <int COUNT> __device__ __forceinline__ void registers_give()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}
template <int COUNT> __device__ __forceinline__ void registers_take()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

/* ---- copies ---- */

__device__ __forceinline__ void copy_foresee(const conv_copy_map *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
// Pixels of a run, or for first convolutions rows of a sample, from one on.
__device__ __forceinline__ void copy_rows(uint8_t *to, const conv_copy_map *map, int c, int pixel,
                                          int run, uint64_t *barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(shared_address(to)),
                 "l"(map), "r"(c), "r"(pixel), "r"(run), "r"(shared_address(barrier))
                 : "memory");
}
// Of weights whose rows are turned by sixteens: see conv_tensor.cuh.
__device__ __forceinline__ void copy_turned(uint8_t *to, const conv_copy_map *map, int c,
                                            int sixteen, uint64_t *barrier)
{
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %3, %3, %4}], [%5];" ::"r"(shared_address(to)),
                 "l"(map), "r"(c), "r"(0), "r"(sixteen), "r"(shared_address(barrier))
                 : "memory");
}
// The pixels from (w, h) of sample n on, as many of each as the map's boxes have.
__device__ __forceinline__ void copy_part(uint8_t *to, const conv_copy_map *map, int c, int w,
                                          int h, int n, uint64_t *barrier)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(shared_address(to)),
                 "l"(map), "r"(c), "r"(w), "r"(h), "r"(n), "r"(shared_address(barrier))
                 : "memory");
}
// Of the pixels from (w, h) of sample n on, those that lie (right, down) of them.
__device__ __forceinline__ void copy_window(uint8_t *to, const conv_copy_map *map, int c, int w,
                                            int h, int n, int right, int down, uint64_t *barrier)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};" ::"r"(shared_address(to)),
        "l"(map), "r"(c), "r"(w), "r"(h), "r"(n), "r"(shared_address(barrier)),
        "h"((unsigned short)right), "h"((unsigned short)down)
        : "memory");
}
// Back, of which a thread can wait until all but the last N have been read from shared memory.
__device__ __forceinline__ void copy_back(const conv_copy_map *map, int c, int pixel, int run,
                                          const uint8_t *from)
{
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group "
                 "[%0, {%1, %2, %3}], [%4];" ::"l"(map),
                 "r"(c), "r"(pixel), "r"(run), "r"(shared_address(from))
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
template <int N> __device__ __forceinline__ void copy_back_wait()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}

} // namespace conv
#endif
