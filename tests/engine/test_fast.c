/* SPDX-License-Identifier: Apache-2.0 */
/* The models that come with saccade and the two that its speed is measured on: the fused, fast form
 * computes what the nodes as written do, for odd batches and any number of threads, and none of its
 * steps is a slow one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <saccade/model.h>
#include <saccade/models.h>

#include "device/cpu/cpu.h"
#include "tests/test.h"

struct network {
    const char *model; /* a file of the shared test data, or the name of a model of ours */
    float       scale; /* of what it takes: 1 for pixels in 0..255 */
};
static struct network networks[] = {
    {"yolox_nano_416.onnx", 1},      {"person_reid_0288.onnx", 1}, {"person_det", 1.0f / 255},
    {"person_det_fast", 1.0f / 255}, {"person_reid", 1.0f / 255},  {"person_seg", 1.0f / 255},
    {"person_matte", 1.0f / 255},
};
enum { PORTS_MAX = 16 };

static void model_path(const struct network *n, char *buf, size_t size)
{
    const char *shared = getenv("SACCADE_SHARED");
    if (TEST_SANITIZED && !strchr(n->model, '.')) {
        print_message("left out: the plain C kernels take minutes under the sanitizer\n");
        skip();
    }
    if (strchr(n->model, '.'))
        snprintf(buf, size, "%s/data/models/%s", shared ? shared : TEST_SHARED, n->model);
    else if (sac_models_find(test_context(), n->model, buf, size) != SAC_OK)
        snprintf(buf, size, "models/%s.onnx", n->model);
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
static sac_tensor *input(sac_device *dev, const struct network *n, sac_model *model, int port,
                         int64_t batch)
{
    struct sac_tensor_desc desc = sac_model_input(model, port)->desc;
    sac_tensor            *t = NULL;
    assert_int_equal(desc.dtype, SAC_F32);
    desc.shape[0] = batch;
    assert_sac_ok(sac_tensor_create(dev, &desc, "test", &t));
    float   *x = sac_tensor_data(t);
    uint32_t state = 1;
    for (int64_t i = 0; i < sac_tensor_desc_elements(&desc); i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 24) * n->scale;
    }
    return t;
}

/* All outputs of a run with as many pictures. */
static void run_model(sac_device *dev, const struct network *n, sac_model *model, int64_t batch,
                      sac_tensor *out[PORTS_MAX])
{
    sac_tensor *in[PORTS_MAX] = {NULL};
    assert_true(sac_model_input_count(model) <= PORTS_MAX);
    assert_true(sac_model_output_count(model) <= PORTS_MAX);
    for (int i = 0; i < sac_model_input_count(model); i++)
        in[i] = input(dev, n, model, i, batch);
    assert_sac_ok(sac_model_run(model, in, out));
    for (int i = 0; i < PORTS_MAX; i++)
        sac_tensor_unref(&in[i]);
}

static void run(sac_device *dev, const struct network *n, const char *path, int64_t batch,
                bool fast, sac_tensor *out[PORTS_MAX])
{
    struct sac_model_params params = sac_model_params_default();
    sac_model              *model = NULL;
    params.optimise = fast;
    params.reference = !fast;
    assert_sac_ok(sac_model_load(dev, path, &params, &model));
    run_model(dev, n, model, batch, out);
    sac_model_unref(&model);
}

static void compare(sac_tensor *have, sac_tensor *want, float tolerance)
{
    const struct sac_tensor_desc *a = sac_tensor_describe(have), *b = sac_tensor_describe(want);
    const float                  *x = sac_tensor_data(have), *y = sac_tensor_data(want);
    assert_int_equal(a->rank, b->rank);
    assert_memory_equal(a->shape, b->shape, (size_t)a->rank * sizeof a->shape[0]);
    for (int64_t i = 0; i < sac_tensor_desc_elements(a); i++)
        if (!(fabsf(x[i] - y[i]) <= tolerance * (1 + fabsf(y[i]))))
            fail_msg("number %lld is %.7g, wanted %.7g", (long long)i, x[i], y[i]);
}

/* And let go of both. */
static void compare_all(sac_tensor *have[PORTS_MAX], sac_tensor *want[PORTS_MAX], float tolerance)
{
    for (int i = 0; i < PORTS_MAX; i++) {
        assert_int_equal(have[i] != NULL, want[i] != NULL);
        if (have[i])
            compare(have[i], want[i], tolerance);
        sac_tensor_unref(&have[i]);
        sac_tensor_unref(&want[i]);
    }
}

static void fast_equals_plain(void **state)
{
    const struct network *n = *state;
    char                  path[1024];
    model_path(n, path, sizeof path);
    sac_device *dev = open_device(2);
    for (int64_t batch = 1; batch <= 3; batch += 2) {
        sac_tensor *want[PORTS_MAX] = {NULL}, *have[PORTS_MAX] = {NULL};
        run(dev, n, path, batch, false, want);
        run(dev, n, path, batch, true, have);
        compare_all(have, want, 1e-4f);
    }
    sac_device_unref(&dev);
}

static void threads_change_nothing(void **state)
{
    const struct network *n = *state;
    char                  path[1024];
    model_path(n, path, sizeof path);
    sac_device *one = open_device(1), *three = open_device(3);
    sac_tensor *want[PORTS_MAX] = {NULL}, *have[PORTS_MAX] = {NULL};
    run(one, n, path, 1, true, want);
    run(three, n, path, 1, true, have);
    compare_all(have, want, 1e-6f);
    sac_device_unref(&one);
    sac_device_unref(&three);
}

static void check_step(void *user, const char *line)
{
    static const char *const slow[] = {"plain C", "ref:", "(convert)", "copy to the output"};
    const char             **found = user;
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
    sac_tensor           *out[PORTS_MAX] = {NULL};
    const char           *found = NULL;
    model_path(n, path, sizeof path);
    if (sac_cpu_level() < SAC_CPU_AVX2) {
        print_message("no AVX2 on this machine\n");
        skip();
    }
    sac_device *dev = open_device(1);
    assert_sac_ok(sac_model_load(dev, path, NULL, &model));
    run_model(dev, n, model, 1, out);
    sac_model_dump_steps(model, check_step, &found);
    for (int i = 0; i < PORTS_MAX; i++)
        sac_tensor_unref(&out[i]);
    sac_model_unref(&model);
    sac_device_unref(&dev);
    if (found)
        fail_msg("%s: a step is '%s'", n->model, found);
}

int main(void)
{
    static const CMUnitTestFunction checks[] = {fast_equals_plain, threads_change_nothing,
                                                no_step_is_slow};
    static const char *const        names[] = {"fast_equals_plain", "threads_change_nothing",
                                               "no_step_is_slow"};
    static struct CMUnitTest        tests[SAC_COUNT(checks) * SAC_COUNT(networks)];
    static char                     titles[SAC_COUNT(tests)][64];
    for (size_t i = 0; i < SAC_COUNT(tests); i++) {
        size_t check = i / SAC_COUNT(networks), network = i % SAC_COUNT(networks);
        snprintf(titles[i], sizeof titles[i], "%s: %s", names[check], networks[network].model);
        tests[i] = (struct CMUnitTest){
            .name = titles[i], .test_func = checks[check], .initial_state = &networks[network]};
    }
    return cmocka_run_group_tests_name("engine/fast", tests, NULL, NULL);
}
