/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a cluster, which see each other's shared memory: from compute capability 9.0 on.
 * Kernels with clusters are compiled for other cards too, and never launched there. */
#pragma once

#include <cooperative_groups.h>
#include <cuda_runtime_api.h>

namespace ops
{

struct cluster {
    /* Where block k has what this one has at `own`. */
    template <class T> static __device__ __forceinline__ T *of(T *own, [[maybe_unused]] int k)
    {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
        return cooperative_groups::this_cluster().map_shared_rank(own, k);
#else
        return own;
#endif
    }
    /* Nobody goes on before all threads have got here, or on from wait() before all have got to
     * arrive(). */
    static __device__ __forceinline__ void sync()
    {
        arrive();
        wait();
    }
    static __device__ __forceinline__ void arrive()
    {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
        cooperative_groups::cluster_group::barrier_arrive();
#endif
    }
    static __device__ __forceinline__ void wait()
    {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
        cooperative_groups::cluster_group::barrier_wait();
#endif
    }
};

inline bool has_clusters()
{
    int device, major;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) ==
               cudaSuccess &&
           major >= 9;
}

} // namespace ops
