/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "device/cpu/cpu.h"
#include "tests/test.h"

static sac_result copy(sac_device *dev, size_t bytes, enum sac_copy_reason reason)
{
    char src[64] = {1}, dst[64];
    return sac_device_copy(dev, NULL, dst, src, bytes, SAC_COPY_HOST_TO_DEVICE, reason,
                           "preprocess: frame 7");
}

/* A device with memory of its own, as far as the ledger knows. */
static sac_device *device_apart(const struct sac_device_params *params)
{
    static struct sac_device_ops ops;
    sac_device                  *dev = NULL;
    assert_sac_ok(sac_device_open(test_context(), "cpu", params, &dev));
    ops = sac_device_cpu;
    ops.host_memory = false;
    dev->ops = &ops;
    return dev;
}

static void counts_by_reason(void **state)
{
    (void)state;
    sac_device       *dev = device_apart(NULL);
    struct sac_ledger ledger;
    assert_sac_ok(copy(dev, 10, SAC_COPY_BOXES));
    assert_sac_ok(copy(dev, 20, SAC_COPY_BOXES));
    assert_sac_ok(copy(dev, 0, SAC_COPY_COMMANDS));
    assert_sac_ok(sac_device_count_copy(dev, 1000, SAC_COPY_FRAME_CONVERT, "decoder"));
    sac_device_ledger(dev, &ledger);
    for (int i = 0; i < SAC_COPY_REASON_COUNT; i++) {
        uint64_t calls =
            i == SAC_COPY_BOXES ? 2 : i == SAC_COPY_COMMANDS || i == SAC_COPY_FRAME_CONVERT;
        uint64_t bytes = i == SAC_COPY_BOXES ? 30 : i == SAC_COPY_FRAME_CONVERT ? 1000 : 0;
        assert_int_equal(ledger.reason[i].calls, calls);
        assert_int_equal(ledger.reason[i].bytes, bytes);
    }
    sac_device_unref(&dev);
}

static void strict_mode_names_the_copy(void **state)
{
    (void)state;
    struct sac_ledger        ledger;
    struct sac_device_params params = sac_device_params_default();
    char                     why[512];
    params.zero_copy_strict = 1;
    sac_device *dev = device_apart(&params);
    for (int i = 0; i < SAC_COPY_REASON_COUNT; i++) {
        bool small = i == SAC_COPY_WEIGHTS || i == SAC_COPY_BOXES || i == SAC_COPY_COMMANDS;
        assert_int_equal(copy(dev, 48, i), small ? SAC_OK : SAC_ERR_COPY);
    }
    assert_sac_error(copy(dev, 48, SAC_COPY_FRAME_UPLOAD), SAC_ERR_COPY);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_string_equal(why, "preprocess: frame 7: a copy of 48 bytes (frame-upload) on cpu, and "
                             "zero-copy is strict");
    sac_device_ledger(dev, &ledger);
    assert_int_equal(ledger.reason[SAC_COPY_FRAME_UPLOAD].calls, 0);
    sac_device_unref(&dev);
}

/* All but weights that goes between host and device, where these are two. */
static void counts_what_crosses(void **state)
{
    (void)state;
    sac_device       *dev = NULL;
    struct sac_ledger ledger;
    char              a[64] = {0}, b[64];
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &dev));
    atomic_store(&dev->strict, 1);
    assert_sac_ok(copy(dev, 10, SAC_COPY_TENSOR_DOWNLOAD));
    sac_device_ledger(dev, &ledger);
    assert_int_equal(ledger.crossed_bytes, 0);
    assert_int_equal(ledger.reason[SAC_COPY_TENSOR_DOWNLOAD].calls, 0);
    sac_device_unref(&dev);
    dev = device_apart(NULL);
    assert_sac_ok(copy(dev, 10, SAC_COPY_BOXES));
    assert_sac_ok(copy(dev, 20, SAC_COPY_WEIGHTS));
    assert_sac_ok(
        sac_device_copy(dev, NULL, b, a, 3, SAC_COPY_ON_DEVICE, SAC_COPY_TENSOR_LAYOUT, "test"));
    assert_sac_ok(sac_device_count_copy(dev, 1000, SAC_COPY_FRAME_CONVERT, "decoder"));
    assert_sac_ok(sac_device_count_copy(dev, 500, SAC_COPY_FRAME_DOWNLOAD, "decoder"));
    sac_device_ledger(dev, &ledger);
    assert_int_equal(ledger.crossed_bytes, 510);
    sac_device_unref(&dev);
}

static void checks_its_arguments(void **state)
{
    (void)state;
    sac_device *dev = device_apart(NULL);
    char        byte;
    assert_sac_error(copy(dev, 4, SAC_COPY_REASON_COUNT), SAC_ERR_ARG);
    assert_sac_error(
        sac_device_copy(dev, NULL, NULL, &byte, 1, SAC_COPY_ON_DEVICE, SAC_COPY_BOXES, "test"),
        SAC_ERR_ARG);
    for (int i = 0; i < SAC_COPY_REASON_COUNT; i++)
        assert_non_null(sac_copy_reason_name(i));
    assert_string_equal(sac_copy_reason_name(SAC_COPY_OVERLAY), "overlay-download");
    assert_string_equal(sac_copy_reason_name(SAC_COPY_DRAW), "overlay-copy");
    assert_string_equal(sac_copy_reason_name(SAC_COPY_CROP), "crop-download");
    assert_string_equal(sac_copy_reason_name(SAC_COPY_MASK), "mask-download");
    assert_string_equal(sac_copy_reason_name(SAC_COPY_REASON_COUNT), "unknown");
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_by_reason),
        cmocka_unit_test(strict_mode_names_the_copy),
        cmocka_unit_test(counts_what_crosses),
        cmocka_unit_test(checks_its_arguments),
    };
    return cmocka_run_group_tests_name("device/ledger", tests, NULL, NULL);
}
