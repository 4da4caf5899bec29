/* SPDX-License-Identifier: Apache-2.0 */
/* How a kernel's body is run. A body is a struct with its parameters and a call operator over an
 * index, which it may be given in any order. Compiled by nvcc it becomes a kernel; compiled as
 * plain C++ a loop, so that tests without a GPU run the very same bodies. */
#pragma once

#include <stddef.h>

#include "engine/cuda/kernels/types.h"

#ifdef __CUDACC__
#include <cuda_runtime.h>

#include "device/cuda/launch.h"
#define OPS_BODY        __device__ __forceinline__
#define OPS_APART       static __device__ __noinline__ /* code that is there once */
#define OPS_UNROLL      _Pragma("unroll")
#define OPS_UNROLL_SOME _Pragma("unroll 8") /* so that several loads are in flight at once */
#else
#define OPS_BODY  inline __attribute__((always_inline))
#define OPS_APART static inline
#define OPS_UNROLL
#define OPS_UNROLL_SOME
#endif

namespace ops
{

constexpr int     THREADS = 256;
constexpr int64_t BLOCKS_MAX = 1 << 20;

#ifdef __CUDACC__
template <class BODY>
__global__ void __launch_bounds__(THREADS) each_kernel(const __grid_constant__ BODY body, int64_t n)
{
    early_begin();
    const int64_t stride = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += stride)
        body(i);
}

/* body(i) for all i below n. */
template <class BODY> int each(const BODY &body, int64_t n, void *stream)
{
    const int64_t blocks = (n + THREADS - 1) / THREADS;
    if (n <= 0)
        return 0;
    CUDA_LAUNCH_ALONE(each_kernel<BODY>, (unsigned)(blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX),
                      THREADS, 0, (cudaStream_t)stream, body, n);
    return (int)cudaGetLastError();
}
#else
template <class BODY> int each(const BODY &body, int64_t n, void *)
{
    for (int64_t i = 0; i < n; i++)
        body(i);
    return 0;
}
#endif

/* ---- from parameters to types: launch(a number of the type) ---- */

/* Of so many bytes, for what is only moved. */
template <class LAUNCH> int by_bytes(size_t bytes, const LAUNCH &launch)
{
    switch (bytes) {
    case 1: return launch(uint8_t());
    case 2: return launch(uint16_t());
    case 4: return launch(uint32_t());
    default: return launch(uint64_t());
    }
}

/* That a class is computed in. */
template <class LAUNCH> int by_class(enum ops_class type, const LAUNCH &launch)
{
    switch (type) {
    case OPS_FLOAT: return launch(float());
    case OPS_DOUBLE: return launch(double());
    case OPS_INT64: return launch(int64_t());
    default: return launch(uint64_t());
    }
}

inline bool fits16(const void *p)
{
    return (uintptr_t)p % 16 == 0;
}

/* ---- places ---- */

OPS_BODY uint32_t divide(uint32_t n, const ops_divisor &d)
{
#ifdef __CUDA_ARCH__
    return (__umulhi(n, d.factor) + n) >> d.shift;
#else
    return (uint32_t)((((uint64_t)n * d.factor) >> 32) + n) >> d.shift;
#endif
}

/* The offset of index i of the view in each of N operands. */
template <int N> OPS_BODY void place(const ops_view &v, int64_t i, int64_t (&at)[N])
{
    OPS_UNROLL
    for (int k = 0; k < N; k++)
        at[k] = v.start[k];
    if (!v.wide) {
        uint32_t rest = (uint32_t)i;
        for (int d = v.rank - 1; d > 0; d--) {
            const uint32_t above = divide(rest, v.dim[d]), index = rest - above * v.dim[d].d;
            OPS_UNROLL
            for (int k = 0; k < N; k++)
                at[k] += index * v.step[k][d];
            rest = above;
        }
        OPS_UNROLL
        for (int k = 0; k < N; k++)
            at[k] += rest * v.step[k][0];
        return;
    }
    for (int d = v.rank - 1; d >= 0; d--) {
        const int64_t above = d ? i / v.size[d] : 0, index = i - above * v.size[d];
        OPS_UNROLL
        for (int k = 0; k < N; k++)
            at[k] += index * v.step[k][d];
        i = above;
    }
}

template <int K = 0> OPS_BODY int64_t place_of(const ops_view &v, int64_t i)
{
    int64_t at[K + 1];
    place(v, i, at);
    return at[K];
}

} // namespace ops
