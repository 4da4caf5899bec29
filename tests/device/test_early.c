/* SPDX-License-Identifier: Apache-2.0 */
/* Who launches early, and with how much shared memory (device/cuda/early.c), with a CUDA that only
 * writes down how it is asked. */
#include <string.h>

#include "device/cuda/common.h"
#include "device/cuda/launch.h"
#include "tests/test.h"

static struct {
    int         early; /* -1: it is not said */
    unsigned    cluster;
    size_t      shared;
    const void *kernel;
    void      **params;
} asked;

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel, void **params)
{
    asked.early = -1;
    asked.cluster = 1;
    asked.shared = config->dynamicSmemBytes;
    asked.kernel = kernel;
    asked.params = params;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const cudaLaunchAttribute *attr = &config->attrs[i];
        if (attr->id == cudaLaunchAttributeClusterDimension) {
            asked.cluster = attr->val.clusterDim.x;
            assert_int_equal(attr->val.clusterDim.y * attr->val.clusterDim.z, 1);
            continue;
        }
        assert_int_equal(attr->id, cudaLaunchAttributeProgrammaticStreamSerialization);
        asked.early = attr->val.programmaticStreamSerializationAllowed;
    }
    assert_int_equal(config->gridDim.y * 10 + config->blockDim.z, 23);
    assert_ptr_equal(config->stream, &asked);
    return cudaErrorInvalidValue;
}

static struct {
    const void *kernel; /* NULL: it was not asked */
    int         bytes;
    cudaError_t answer;
} allowed;

cudaError_t cudaGetDevice(int *device)
{
    *device = 3;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
    assert_int_equal(attr, cudaDevAttrMaxSharedMemoryPerBlockOptin);
    assert_int_equal(device, 3);
    *value = 232448;
    return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attr, const void *kernel)
{
    (void)kernel;
    *attr = (struct cudaFuncAttributes){.sharedSizeBytes = 448};
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attr, int value)
{
    assert_int_equal(attr, cudaFuncAttributeMaxDynamicSharedMemorySize);
    allowed.kernel = kernel;
    allowed.bytes = value;
    return allowed.answer;
}

static void expect_early(int early)
{
    const void *const params[] = {&early};
    const dim3        grid = {1, 2, 1}, block = {1, 1, 3};
    for (unsigned cluster = 1; cluster <= 8; cluster += 7) {
        assert_int_equal(cuda_launch_kernel("kernel", grid, block, 4096, cluster, params,
                                            (cudaStream_t)(void *)&asked),
                         cudaErrorInvalidValue);
        assert_int_equal(asked.early, early);
        assert_int_equal(asked.cluster, cluster);
        assert_int_equal(asked.shared, 4096);
        assert_string_equal(asked.kernel, "kernel");
        assert_ptr_equal(asked.params[0], &early);
    }
}

/* As the device does that was entered last and not left. */
static void as_the_device_does(void **state)
{
    (void)state;
    expect_early(-1);
    cuda_early_enter(true);
    expect_early(1);
    cuda_early_enter(false);
    expect_early(-1);
    cuda_early_enter(true);
    expect_early(1);
    cuda_early_leave();
    expect_early(-1);
    cuda_early_leave();
    expect_early(1);
    cuda_early_leave();
    expect_early(-1);
}

static cudaError_t launch(size_t shared)
{
    static const char kernel[] = "kernel";
    const dim3        grid = {1, 2, 1}, block = {1, 1, 3};
    memset(&asked, 0, sizeof asked);
    allowed.kernel = NULL;
    allowed.bytes = 0;
    return cuda_launch_kernel(kernel, grid, block, shared, 1, NULL, (cudaStream_t)(void *)&asked);
}

/* All that there is beside the kernel's own, so that no thread takes from another. */
static void shared_memory_is_asked_for(void **state)
{
    (void)state;
    launch(48 << 10); /* what every kernel has */
    assert_null(allowed.kernel);
    launch((48 << 10) + 16);
    assert_int_equal(allowed.bytes, 232448 - 448);
    launch(200 << 10);
    assert_int_equal(allowed.bytes, 232448 - 448);
    assert_int_equal(asked.shared, 200 << 10);
    allowed.answer = cudaErrorNotSupported;
    assert_int_equal(launch(200 << 10), cudaErrorNotSupported);
    assert_null(asked.kernel); /* it is not launched */
    allowed.answer = cudaSuccess;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_device_does),
                                       cmocka_unit_test(shared_memory_is_asked_for)};
    return cmocka_run_group_tests_name("device/early", tests, NULL, NULL);
}
