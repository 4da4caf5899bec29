/* SPDX-License-Identifier: Apache-2.0 */
/* What a GPU is measured to do at best. */
#include <saccade/model.h>

#include "tests/gpu.h"

/* Within what any card has had by now, so that a wrong unit or an idle clock is noticed. */
static void a_card_is_measured(void **state)
{
    struct sac_device_rates full = {0}, half = {0};
    sac_device             *dev = gpu_open(NULL);
    (void)state;
    assert_sac_ok(sac_device_measure(dev, SAC_PRECISION_FP32, &full));
    assert_sac_ok(sac_device_measure(dev, SAC_PRECISION_FP16, &half));
    print_message("%.0f GB/s, %.1f TFLOP/s in fp32, %.1f in fp16, %.2f us a step\n",
                  half.bytes_per_s / 1e9, full.flops_per_s / 1e12, half.flops_per_s / 1e12,
                  half.step_ms * 1e3);
    assert_true(half.bytes_per_s > 5e10 && half.bytes_per_s < 5e13);
    assert_true(full.flops_per_s > 5e11);
    assert_true(half.flops_per_s > full.flops_per_s && half.flops_per_s < 1e16);
    assert_true(half.step_ms > 0 && half.step_ms < 0.1);
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_card_is_measured)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
