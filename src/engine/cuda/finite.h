/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel that looks for what is not finite, as the host code sees it. */
#ifndef SAC_ENGINE_CUDA_FINITE_H
#define SAC_ENGINE_CUDA_FINITE_H

#include <stdbool.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

cudaError_t cuda_launch_find_odd(const void *numbers, int64_t count, bool half, bool nan_alone,
                                 uint32_t *odd, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
