/* SPDX-License-Identifier: Apache-2.0 */
/* The two models that the project's speed is measured on: the fused, fast form computes what the nodes
 * as written do, for odd batches and any number of threads, and none of its steps is a slow one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <saccade/model.h>

#include "device/device.h"
#include "tests/test.h"

struct network {
    const char *file;
    int64_t     shape[4];
};
static struct network networks[] = {{"yolox_nano_416.onnx", {1, 3, 416, 416}},
                                    {"person_reid_0288.onnx", {1, 256, 128, 3}}};

static void model_path(const struct network *n, char *buf, size_t size)
{
    const char *shared = getenv("SACCADE_SHARED");
    snprintf(buf, size, "%s/data/models/%s", shared ? shared : TEST_SHARED, n->file);
    FILE *f = fopen(buf, "rb");
    if (!f) {
        print_message("%s is not there\n", buf);
        skip();
    }
    fclose(f);
}

static sac_device *open_device(int threads)
{
    struct sac_device_params params = sac_device_params_default();
    sac_device              *dev = NULL;
    params.threads = threads;
    assert_sac_ok(sac_device_open(test_context(), "cpu", &params, &dev));
    return dev;
}

/* Pixel-like numbers that depend on their place alone. */
static sac_tensor *input(sac_device *dev, const struct network *n, int64_t batch)
{
    struct sac_tensor_desc desc = {.dtype = SAC_F32, .rank = 4};
    sac_tensor            *t = NULL;
    memcpy(desc.shape, n->shape, sizeof n->shape);
    desc.shape[0] = batch;
    assert_sac_ok(sac_tensor_create(dev, &desc, "test", &t));
    float   *x = sac_tensor_data(t);
    uint32_t state = 1;
    for (int64_t i = 0; i < sac_tensor_desc_elements(&desc); i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 24);
    }
    return t;
}

static sac_tensor *run(sac_device *dev, const struct network *n, const char *path, int64_t batch,
                       bool fast)
{
    struct sac_model_params params = sac_model_params_default();
    sac_model              *model = NULL;
    sac_tensor             *in = input(dev, n, batch), *out[1] = {NULL};
    params.optimise = fast;
    params.reference = !fast;
    assert_sac_ok(sac_model_load(dev, path, &params, &model));
    assert_sac_ok(sac_model_run(model, &in, out));
    sac_model_unref(&model);
    sac_tensor_unref(&in);
    return out[0];
}

static void compare(sac_tensor *have, sac_tensor *want, float tolerance)
{
    const struct sac_tensor_desc *a = sac_tensor_describe(have), *b = sac_tensor_describe(want);
    const float *x = sac_tensor_data(have), *y = sac_tensor_data(want);
    assert_int_equal(a->rank, b->rank);
    assert_memory_equal(a->shape, b->shape, (size_t)a->rank * sizeof a->shape[0]);
    for (int64_t i = 0; i < sac_tensor_desc_elements(a); i++)
        if (!(fabsf(x[i] - y[i]) <= tolerance * (1 + fabsf(y[i]))))
            fail_msg("number %lld is %.7g, wanted %.7g", (long long)i, x[i], y[i]);
}

static void fast_equals_plain(void **state)
{
    const struct network *n = *state;
    char                  path[1024];
    model_path(n, path, sizeof path);
    sac_device *dev = open_device(2);
    for (int64_t batch = 1; batch <= 3; batch += 2) {
        sac_tensor *want = run(dev, n, path, batch, false), *have = run(dev, n, path, batch, true);
        compare(have, want, 1e-4f);
        sac_tensor_unref(&want);
        sac_tensor_unref(&have);
    }
    sac_device_unref(&dev);
}

static void threads_change_nothing(void **state)
{
    const struct network *n = *state;
    char                  path[1024];
    model_path(n, path, sizeof path);
    sac_device *one = open_device(1), *three = open_device(3);
    sac_tensor *want = run(one, n, path, 1, true), *have = run(three, n, path, 1, true);
    compare(have, want, 1e-6f);
    sac_tensor_unref(&want);
    sac_tensor_unref(&have);
    sac_device_unref(&one);
    sac_device_unref(&three);
}

static void check_step(void *user, const char *line)
{
    static const char *const slow[] = {"plain C", "ref:", "(convert)", "copy to the output"};
    const char **found = user;
    for (size_t i = 0; i < SAC_COUNT(slow); i++)
        if (strstr(line, slow[i])) {
            print_message("%s\n", line);
            *found = slow[i];
        }
}

/* A step that falls back to the plain kernel, to oneDNN's reference, or between layouts costs more
 * than all that is won elsewhere. */
static void no_step_is_slow(void **state)
{
    const struct network *n = *state;
    char                  path[1024];
    sac_model            *model = NULL;
    sac_tensor           *out[1] = {NULL};
    const char           *found = NULL;
    model_path(n, path, sizeof path);
    if (sac_cpu_level() < SAC_CPU_AVX2) {
        print_message("no AVX2 on this machine\n");
        skip();
    }
    sac_device *dev = open_device(1);
    sac_tensor *in = input(dev, n, 1);
    assert_sac_ok(sac_model_load(dev, path, NULL, &model));
    assert_sac_ok(sac_model_run(model, &in, out));
    sac_model_dump_steps(model, check_step, &found);
    sac_tensor_unref(&in);
    sac_tensor_unref(&out[0]);
    sac_model_unref(&model);
    sac_device_unref(&dev);
    if (found)
        fail_msg("%s: a step is '%s'", n->file, found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(fast_equals_plain, &networks[0]),
        cmocka_unit_test_prestate(fast_equals_plain, &networks[1]),
        cmocka_unit_test_prestate(threads_change_nothing, &networks[0]),
        cmocka_unit_test_prestate(threads_change_nothing, &networks[1]),
        cmocka_unit_test_prestate(no_step_is_slow, &networks[0]),
        cmocka_unit_test_prestate(no_step_is_slow, &networks[1]),
    };
    return cmocka_run_group_tests_name("engine/fast", tests, NULL, NULL);
}
