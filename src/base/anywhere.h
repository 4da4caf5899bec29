/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the host and the CUDA kernels compute by: SAC_ANYWHERE stands before each. */
#ifndef SAC_BASE_ANYWHERE_H
#define SAC_BASE_ANYWHERE_H

#ifdef __CUDACC__
#define SAC_ANYWHERE static __host__ __device__ __forceinline__
#else
#define SAC_ANYWHERE static inline __attribute__((unused))
#endif

#endif
