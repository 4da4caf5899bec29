/* SPDX-License-Identifier: Apache-2.0 */
/* Is all here that a run on a GPU needs? */
#include <stdio.h>

#include "device/cuda/common.h"
#include "engine/cuda/libraries.h"

enum sac_device_service cuda_service(char *missing, size_t size)
{
    int         version = 0, count = 0, major = 0, minor = 0;
    cudaError_t res = cudaDriverGetVersion(&version);
    if (res != cudaSuccess || version == 0 || cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        snprintf(missing, size, "%s", version ? "the driver sees no NVIDIA GPU" : "there is no NVIDIA driver");
        return SAC_SERVICE_NONE;
    }
    res = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
    if (res == cudaSuccess)
        res = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0);
    if (version / 1000 < CUDART_VERSION / 1000)
        snprintf(missing, size, "its driver is for CUDA %d.%d, this build for %d.%d", version / 1000,
                 version % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    else if (res != cudaSuccess || major * 10 + minor < CUDA_COMPUTE_MIN)
        snprintf(missing, size, "its compute capability is %d.%d, the kernels need %d.%d", major, minor,
                 CUDA_COMPUTE_MIN / 10, CUDA_COMPUTE_MIN % 10);
    else if (!cuda_libraries()->has_cudnn)
        snprintf(missing, size, "a GPU is there, but not cuDNN, which networks need (saccade doctor says more)");
    else
        return SAC_SERVICE_WHOLE;
    return SAC_SERVICE_PARTLY;
}
