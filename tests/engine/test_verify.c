/* SPDX-License-Identifier: Apache-2.0 */
/* The check of each step, on the tests' own device: of right kernels it finds nothing, a wrong one
 * it names. */
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "engine/model/model.h"
#include "tests/engine/far.h"
#include "tests/test.h"

enum { OUTPUTS_MAX = 8 };

struct seen {
    int    steps, wrong;
    double worst;
};

static void look(void *user, const struct sac_step_check *check)
{
    struct seen *seen = user;
    seen->steps++;
    seen->wrong += check->off > 5e-3;
    seen->worst = check->off > seen->worst ? check->off : seen->worst;
}

static struct seen verify(const char *path, enum sac_precision precision, bool wrong)
{
    struct sac_model_params   params = sac_model_params_default();
    struct seen               seen = {0};
    sac_device               *far = NULL, *cpu = NULL;
    sac_model                *m = NULL;
    struct sac_device_stream *stream = NULL;
    sac_tensor               *host = NULL, *in = NULL, *out[OUTPUTS_MAX] = {NULL};
    params.precision = precision;
    params.tune = 0;
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &cpu));
    assert_sac_ok(far_open(test_context(), NULL, &far));
    assert_sac_ok(sac_tensor_load_npy(cpu, MODELS_DIR "/input.npy", &host));
    assert_sac_ok(sac_model_load(far, path, &params, &m));
    assert_sac_ok(sac_tensor_create(far, sac_tensor_describe(host), "test", &in));
    assert_sac_ok(sac_tensor_upload(in, sac_tensor_data(host)));
    assert_sac_ok(far->ops->stream_create(far, &stream));
    assert_sac_ok(sac_model_run_on(m, stream, &in, out));
    far_counts.wrong = wrong;
    for (int i = 0; i < SAC_PLANS_MAX; i++)
        if (m->plans[i])
            assert_sac_ok(sac_plan_verify(m->plans[i], stream, cpu, look, &seen));
    far_counts.wrong = false;
    for (int i = 0; i < OUTPUTS_MAX; i++)
        sac_tensor_unref(&out[i]);
    far->ops->stream_destroy(&stream);
    sac_tensor_unref(&in);
    sac_tensor_unref(&host);
    sac_model_unref(&m);
    sac_device_unref(&far);
    sac_device_unref(&cpu);
    return seen;
}

static void right_steps_are_found_right(void **state)
{
    glob_t found = {0};
    (void)state;
    assert_int_equal(glob(MODELS_DIR "/*.onnx", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        for (int half = 0; half < 2; half++) {
            struct seen seen =
                verify(found.gl_pathv[i], half ? SAC_PRECISION_FP16 : SAC_PRECISION_FP32, false);
            if (seen.wrong)
                fail_msg("%s: %d of %d steps, %g", found.gl_pathv[i], seen.wrong, seen.steps,
                         seen.worst);
            assert_true(seen.steps > 0);
        }
    globfree(&found);
}

static void wrong_steps_are_found_wrong(void **state)
{
    (void)state;
    struct seen seen = verify(MODELS_DIR "/yolov8.onnx", SAC_PRECISION_FP16, true);
    assert_true(seen.wrong > seen.steps / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_steps_are_found_right),
        cmocka_unit_test(wrong_steps_are_found_wrong),
    };
    return cmocka_run_group_tests_name("engine/verify", tests, NULL, NULL);
}
