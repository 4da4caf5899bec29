/* SPDX-License-Identifier: Apache-2.0 */
/* FP16 on a GPU, where a network's numbers leave its range on the way. */
#include <unistd.h>

#include "tests/engine/bright.h"
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

/* A plan whose kernels are measured, with and without the picture that matters. */
static bool built_with(sac_device *dev, const char *model, const char *picture, const char *plan,
                       int *wide)
{
    struct sac_build_params params = sac_build_params_default();
    sac_model              *m = NULL;
    params.model.precision = SAC_PRECISION_FP16;
    params.batch_max = 4;
    assert_sac_ok(sac_calibration_open(test_context(), picture, NULL, &params.calibration));
    assert_sac_ok(sac_model_build(dev, model, &params, plan, NULL, NULL));
    sac_calibration_close(&params.calibration);
    assert_sac_ok(sac_model_load(dev, plan, NULL, &m));
    const bool right = bright_is_right(dev, m);
    *wide = m->wide_count;
    sac_model_unref(&m);
    return right;
}

static void a_picture_decides_what_stays_in_float32(void **state)
{
    static const char *const names[] = {"net.onnx", "grey.ppm", "white.ppm", "net.plan"};
    char                     folder[] = "/tmp/saccade-bright-XXXXXX", path[4][64];
    int                      wide = 0;
    sac_device              *dev = gpu_open(NULL);
    (void)state;
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 4; i++)
        snprintf(path[i], sizeof path[i], "%s/%s", folder, names[i]);
    setenv("SACCADE_CACHE", "", 1);
    bright_write(path[0]);
    bright_picture(path[1], 80);
    bright_picture(path[2], 255);
    /* Right or not: a card's steps may hand each other more than float16 holds (heads/calibration
     * has a device whose steps do not). */
    built_with(dev, path[0], path[1], path[3], &wide);
    assert_int_equal(wide, 0);
    assert_true(built_with(dev, path[0], path[2], path[3], &wide));
    assert_int_equal(wide, BRIGHT_WIDE);
    for (int i = 0; i < 4; i++)
        unlink(path[i]);
    rmdir(folder);
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_that_leave_the_range_stay_in_float32),
                                       cmocka_unit_test(a_picture_decides_what_stays_in_float32)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
