/* SPDX-License-Identifier: Apache-2.0 */
/* Is all here that a run on a GPU needs? */
#include <stdio.h>

#include "device/cuda/common.h"
#include "engine/cuda/products/libraries.h"

enum sac_device_service cuda_service(char *missing, size_t size)
{
    int         version = 0, count = 0, major = 0, minor = 0;
    cudaError_t res = cudaDriverGetVersion(&version);
    if (res != cudaSuccess || version == 0) {
        snprintf(missing, size, "there is no NVIDIA driver");
        return SAC_SERVICE_NONE;
    }
    if (!cuda_driver_serves(&cuda_build, version, missing, size))
        return SAC_SERVICE_PARTLY; /* this build cannot ask it which GPUs there are */
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        snprintf(missing, size, "the driver sees no NVIDIA GPU");
        return SAC_SERVICE_NONE;
    }
    res = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
    if (res == cudaSuccess)
        res = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0);
    if (res != cudaSuccess)
        snprintf(missing, size, "the driver does not answer: %s", cudaGetErrorString(res));
    else if (!cuda_card_serves(&cuda_build, version, "it", major, minor, missing, size))
        return SAC_SERVICE_PARTLY;
    else if (!cuda_libraries()->has_cudnn)
        snprintf(missing, size,
                 "a GPU is there, but not cuDNN, which networks need (saccade doctor says more)");
    else
        return SAC_SERVICE_WHOLE;
    return SAC_SERVICE_PARTLY;
}
