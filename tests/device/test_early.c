/* SPDX-License-Identifier: Apache-2.0 */
/* Who launches early (device/cuda/early.c), with a CUDA that only writes down how it is asked. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_device_does)};
    return cmocka_run_group_tests_name("device/early", tests, NULL, NULL);
}
