/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN, and a GPU that is only described to it: since 9.8 it plans for such a one. */
#ifndef SAC_TESTS_ENGINE_CUDA_DESCRIBED_H
#define SAC_TESTS_ENGINE_CUDA_DESCRIBED_H

#include <dlfcn.h>
#include <stdio.h>

#include "engine/cuda/products/cudnn_conv.h"
#include "tests/test.h"

/* Of an H200, as its driver tells them. */
static const char properties[] =
    "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":"
    "65536,\"multiProcessorCount\":132,\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,"
    "\"maxSharedMemoryPerBlockOptin\":232448,\"reservedSharedMemoryPerBlock\":1024,"
    "\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,"
    "\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,"
    "\"smClockRateKHz\":1980000,\"memClockRateKHz\":3201000,\"l2CacheSize\":62914560,"
    "\"deviceName\":\"NVIDIA "
    "H200\",\"cudaDeviceId\":0,\"deviceVer\":900,\"driverVer\":13000,\"totalGlobalMem\":"
    "150109880320}";

static struct cudnn_api    api;
static struct cudnn_set    device;
static struct cudnn_target target;

/* Leaves target.device NULL, and says why, where cuDNN is not there. */
static int open_cudnn(void **state)
{
    struct sac_nvidia_library all[SAC_NVIDIA_COUNT];
    (void)state, (void)all, (void)api, (void)properties;
#if CUDNN_VERSION >= 90800 && !TEST_SANITIZED /* its own memory is not ours to judge */
    sac_nvidia_open_all(0, all);
    const struct sac_nvidia_library *lib = &all[SAC_NVIDIA_CUDNN];
    if (!lib->handle || lib->version[0] * 100 + lib->version[1] < 908) {
        print_message("skipped: %s\n", lib->handle ? "cuDNN is older than 9.8" : lib->missing);
        return 0;
    }
    assert_null(cudnn_api_read(lib->handle, &api));
    device = (struct cudnn_set){.api = &api};
    cudnn_desc d = cudnn_make(&device, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "describe a GPU");
    cudnn_put(&device, d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
              sizeof properties, properties);
    cudnn_done(&device, d);
    if (!cudnn_good(&device) && !dlopen("libcuda.so.1", RTLD_LAZY)) { /* of 9.28 a part is linked to
                                                                         it */
        print_message("skipped: cuDNN %d.%d plans nothing without a driver\n", lib->version[0],
                      lib->version[1]);
        return 0;
    }
    assert_true(cudnn_good(&device));
    target = (struct cudnn_target){.api = &api, .device = d};
#endif
    return 0;
}

static int close_cudnn(void **state)
{
    (void)state;
    cudnn_set_finish(&device);
    return 0;
}

#endif
