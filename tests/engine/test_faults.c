/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of loading, inspecting and running each small model of the fuzzing corpus fails
 * once. What comes out is an error or, where the memory was only wanted, success: no crash, no leak
 * (the address sanitizer tells), no buffer that the device's pool misses. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <saccade/model.h>

#include "base/base.h"
#include "tests/engine/device.h"
#include "tests/test.h"

enum { PORTS_MAX = 8 };

static sac_result make_inputs(const sac_model *m, sac_tensor **in)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < sac_model_input_count(m) && res == SAC_OK; i++) {
        struct sac_tensor_desc desc = sac_model_input(m, i)->desc;
        for (int d = 0; d < desc.rank; d++)
            if (desc.shape[d] == SAC_DIM_UNKNOWN)
                desc.shape[d] = 2;
        res = sac_tensor_create(device(), &desc, "test", &in[i]);
        if (res == SAC_OK)
            memset(sac_tensor_data(in[i]), desc.dtype == SAC_BOOL ? 1 : 0,
                   (size_t)sac_tensor_desc_bytes(&desc));
    }
    return res;
}

static sac_result use_model(const void *bytes, size_t size)
{
    sac_model            *m = NULL;
    sac_tensor           *in[PORTS_MAX] = {NULL}, *out[PORTS_MAX] = {NULL};
    struct sac_model_info info;
    sac_result            res = sac_model_load_memory(device(), bytes, size, "model", NULL, &m);
    if (res == SAC_OK)
        res = make_inputs(m, in);
    if (res == SAC_OK)
        sac_model_inspect(m, &info);
    if (res == SAC_OK)
        res = sac_model_run(m, in, out);
    for (int i = 0; i < PORTS_MAX; i++) {
        if (res != SAC_OK)
            assert_null(out[i]);
        sac_tensor_unref(&in[i]);
        sac_tensor_unref(&out[i]);
    }
    sac_model_unref(&m);
    return res;
}

static void fail_each(const char *name, const void *bytes, size_t size)
{
    struct sac_pool_stats before, after;
    sac_result            whole = use_model(bytes, size);
    if (whole == SAC_ERR_UNSUPPORTED)
        return;
    if (whole != SAC_OK)
        fail_msg("%s: %s", name, sac_result_name(whole));
    sac_device_pool_stats(device(), &before);
    int faults = 0, passed = 0; /* a few allocations may fail unnoticed; many in a row: none is left
                                 */
    for (long n = 1; passed < 30; n++) {
        sac_alloc_fail_at(n);
        sac_result res = use_model(bytes, size);
        sac_alloc_fail_at(0);
        if (res != SAC_OK && res != SAC_ERR_MEMORY)
            fail_msg("%s: allocation %ld failed: %s", name, n, sac_result_name(res));
        faults += res != SAC_OK;
        passed = res == SAC_OK ? passed + 1 : 0;
    }
    assert_true(faults > 20);
    sac_device_pool_stats(device(), &after);
    assert_true(after.bytes_live == before.bytes_live);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    char           path[600];
    static char    bytes[1 << 16];
    int            models = 0;
    DIR           *folder = opendir(CORPUS);
    struct dirent *entry;
    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        if (!strstr(entry->d_name, ".onnx"))
            continue;
        snprintf(path, sizeof path, "%s/%s", CORPUS, entry->d_name);
        FILE *f = fopen(path, "rb");
        assert_non_null(f);
        size_t size = fread(bytes, 1, sizeof bytes, f);
        fclose(f);
        fail_each(entry->d_name, bytes, size);
        models++;
    }
    closedir(folder);
    assert_true(models > 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("engine/faults", tests, NULL, close_device);
}
