/* SPDX-License-Identifier: Apache-2.0 */
/* FP16 on a GPU, where a network's numbers leave its range on the way. */
#include "tests/engine/ratio.h"
#include "tests/gpu.h"

static bool run(sac_device *dev, bool watched, int64_t *wide)
{
    struct sac_model_info info;
    sac_model            *m = ratio_load(dev, 30, watched);
    sac_tensor           *x = ratio_input(dev), *y = NULL;
    assert_sac_ok(sac_model_run(m, &x, &y));
    const bool right = ratio_is_right(y);
    sac_model_inspect(m, &info);
    *wide = info.wide_step_count;
    sac_tensor_unref(&x);
    sac_tensor_unref(&y);
    sac_model_unref(&m);
    return right;
}

static void steps_that_leave_the_range_stay_in_float32(void **state)
{
    int64_t     wide = 0;
    sac_device *dev = gpu_open(NULL);
    (void)state;
    assert_false(run(dev, true, &wide)); /* or this test says nothing */
    assert_int_equal(wide, 0);
    assert_true(run(dev, false, &wide));
    assert_int_equal(wide, 4); /* MatMul, MatMul, Add, Div: not Mul, not Tanh */
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_that_leave_the_range_stay_in_float32)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
