/* SPDX-License-Identifier: Apache-2.0 */
/* As much of CUDA as our kernels for tracking and for depthwise convolutions take, on the host: the
 * threads of a block are fibers that run in turn until each waits for the others, blocks come one
 * after another. Slow, and it finds no races; but the arithmetic, the indices and who waits for
 * whom are the kernels' own. */
#ifndef SAC_TESTS_EMULATED_CUDA_RUNTIME_API_H
#define SAC_TESTS_EMULATED_CUDA_RUNTIME_API_H

typedef enum {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorNotSupported = 801
} cudaError_t;
typedef struct emulated_stream *cudaStream_t;
typedef struct emulated_event  *cudaEvent_t;

#ifdef __cplusplus
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __shared__ static /* one block at a time */
#define __launch_bounds__(...)
#define __grid_constant__
#define __CUDACC__         1
#define cudaGetLastError() cudaSuccess
#define __expf             expf /* the C library has a function of the name */
#define __fdividef(x, y)   ((x) / (y))
#define CUDA_LAUNCH(kernel, grid, block, stream, ...) \
    ((void)(stream), emulated::launch(grid, block, [&] { kernel(__VA_ARGS__); }))
#define CUDA_LAUNCH_ALONE(kernel, grid, block, shared, stream, ...) \
    ((void)(shared), CUDA_LAUNCH(kernel, grid, block, stream, __VA_ARGS__))
#define CUDA_LAUNCH_CLUSTER(kernel, grid, block, shared, cluster, stream, ...) \
    ((void)(shared), (void)(stream),                                           \
     emulated::launch(                                                         \
         grid, block, [&] { kernel(__VA_ARGS__); }, cluster))
/* As much as any launch may ask for, of each block of a cluster. */
#define CUDA_SHARED_ROOM(type, name) type *const name = (type *)emulated::room(emulated::block())

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};
struct uint2 {
    unsigned x, y;
};
struct int2 {
    int x, y;
};
struct uint4 {
    unsigned x, y, z, w;
};
struct float2 {
    float x, y;
};
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}
static inline uint2 make_uint2(unsigned x, unsigned y)
{
    return {x, y};
}
static inline float2 make_float2(float x, float y)
{
    return {x, y};
}
template <class T> T __ldg(const T *p)
{
    if ((uintptr_t)p % sizeof(T))
        abort(); /* a GPU stops there */
    return *p;
}
extern dim3 threadIdx, blockIdx, blockDim, gridDim;

static inline int min(int a, int b)
{
    return a < b ? a : b;
}
static inline int max(int a, int b)
{
    return a > b ? a : b;
}
static inline int __popc(unsigned v)
{
    return __builtin_popcount(v);
}
static inline int __ffs(int v)
{
    return __builtin_ffs(v);
}
static inline unsigned __float_as_uint(float v)
{
    unsigned bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}
static inline unsigned atomicOr(unsigned *p, unsigned v)
{
    const unsigned old = *p;
    *p |= v;
    return old;
}
static inline int atomicMax(int *p, int v)
{
    const int old = *p;
    *p = v > old ? v : old;
    return old;
}

template <class T> T atomicAdd(T *p, T v)
{
    const T old = *p;
    *p += v;
    return old;
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, int bits)
{
    return (unsigned)(((unsigned long long)high << 32 | low) >> (bits & 31));
}
static inline unsigned __dp4a(unsigned a, unsigned b, unsigned sum)
{
    for (int i = 0; i < 32; i += 8)
        sum += (a >> i & 0xff) * (b >> i & 0xff);
    return sum;
}
static inline unsigned __dp2a_lo(unsigned a, unsigned b, unsigned sum)
{
    return sum + (a & 0xffff) * (b & 0xff) + (a >> 16) * (b >> 8 & 0xff);
}
static inline unsigned __dp2a_hi(unsigned a, unsigned b, unsigned sum)
{
    return __dp2a_lo(a, b >> 16, sum);
}
static inline unsigned __vabsdiffu4(unsigned a, unsigned b)
{
    unsigned out = 0;
    for (int i = 0; i < 32; i += 8)
        out |= (unsigned)abs((int)(a >> i & 0xff) - (int)(b >> i & 0xff)) << i;
    return out;
}
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned from)
{
    const unsigned long long both = (unsigned long long)b << 32 | a;
    unsigned                 out = 0;
    for (int i = 0; i < 4; i++)
        out |= (unsigned)(both >> (from >> 4 * i & 7) * 8 & 0xff) << 8 * i;
    return out;
}
template <class PICK> unsigned of_halves(unsigned a, unsigned b, PICK pick)
{
    unsigned out = 0;
    for (int i = 0; i < 32; i += 16)
        out |= (unsigned)(uint16_t)pick((int16_t)(a >> i), (int16_t)(b >> i)) << i;
    return out;
}
static inline unsigned __vmaxs2(unsigned a, unsigned b)
{
    return of_halves(a, b, [](int16_t x, int16_t y) { return x > y ? x : y; });
}
static inline unsigned __vmins2(unsigned a, unsigned b)
{
    return of_halves(a, b, [](int16_t x, int16_t y) { return x < y ? x : y; });
}
static inline unsigned __vsadu4(unsigned a, unsigned b)
{
    unsigned sum = 0;
    for (int i = 0; i < 32; i += 8)
        sum += (unsigned)abs((int)(a >> i & 0xff) - (int)(b >> i & 0xff));
    return sum;
}

namespace emulated
{

void run(dim3 grid, dim3 block, unsigned cluster, void (*fn)(void *), void *arg);
template <class BODY> void launch(dim3 grid, dim3 block, BODY body, unsigned cluster = 1)
{
    run(
        grid, block, cluster, [](void *arg) { (*(BODY *)arg)(); }, &body);
}
int   lane();
int   block();         /* which of its cluster */
void *room(int block); /* its shared memory */
void  wait_cluster();
void  wait_block();
void  wait_lanes(unsigned mask);
void  wait_group(int number, int threads); /* so many, whichever they are */
void  wait_turn();                         /* until all others have gone on */
/* What each lane of the warp last put here. */
unsigned long long *slots();

template <class T> T exchange(unsigned mask, T value, int from)
{
    T out;
    memcpy(&slots()[lane()], &value, sizeof value);
    wait_lanes(mask);
    memcpy(&out, &slots()[from], sizeof out);
    wait_lanes(mask);
    return out;
}

} // namespace emulated

static inline void __syncthreads()
{
    emulated::wait_block();
}
static inline void __syncwarp(unsigned mask = ~0u)
{
    emulated::wait_lanes(mask);
}
template <class T> T __shfl_sync(unsigned mask, T value, int from, int width = 32)
{
    return emulated::exchange(mask, value, emulated::lane() / width * width + from);
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int with)
{
    return emulated::exchange(mask, value, emulated::lane() ^ with);
}
/* Lanes that have none so far away get their own. */
template <class T> T __shfl_up_sync(unsigned mask, T value, int by)
{
    const int lane = emulated::lane();
    return emulated::exchange(mask, value, lane < by ? lane : lane - by);
}
template <class T> T __shfl_down_sync(unsigned mask, T value, int by)
{
    const int lane = emulated::lane();
    return emulated::exchange(mask, value, lane + by > 31 ? lane : lane + by);
}
static inline unsigned __ballot_sync(unsigned mask, int vote)
{
    unsigned votes = 0;
    emulated::slots()[emulated::lane()] = vote != 0;
    emulated::wait_lanes(mask);
    for (int i = 0; i < 32; i++)
        votes |= (mask >> i & 1 && emulated::slots()[i] ? 1u : 0u) << i;
    emulated::wait_lanes(mask);
    return votes;
}
static inline unsigned __match_any_sync(unsigned mask, unsigned value)
{
    unsigned same = 0;
    emulated::slots()[emulated::lane()] = value;
    emulated::wait_lanes(mask);
    for (int i = 0; i < 32; i++)
        same |= (mask >> i & 1 && (unsigned)emulated::slots()[i] == value ? 1u : 0u) << i;
    emulated::wait_lanes(mask);
    return same;
}
static inline int __any_sync(unsigned mask, int vote)
{
    return __ballot_sync(mask, vote) != 0;
}
#else
typedef struct dim3 {
    unsigned x, y, z;
} dim3;
typedef struct emulated_graph *cudaGraph_t, *cudaGraphExec_t;
#endif

#endif
