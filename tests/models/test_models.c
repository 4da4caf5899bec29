/* SPDX-License-Identifier: Apache-2.0 */
/* The fixtures that make.py wrote: each model optimised, node by node, and on the plain kernels
 * alone, against ONNX Runtime's answer; and with two samples at once. */
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/test.h"

#include <saccade/model.h>

enum { OUTPUTS_MAX = 8 };

static sac_device *device;

static int open_device(void **state)
{
    (void)state;
    return sac_device_open(test_context(), "cpu", NULL, &device) == SAC_OK ? 0 : -1;
}

static int close_device(void **state)
{
    (void)state;
    sac_device_unref(&device);
    return 0;
}

static sac_tensor *load(const char *path)
{
    sac_tensor *t = NULL;
    assert_sac_ok(sac_tensor_load_npy(device, path, &t));
    return t;
}

/* Within 1e-4 of the largest number, which is what single precision leaves after some hundred
 * layers; or rather of 1, where all are smaller. */
static void compare(const char *what, const sac_tensor *got, const sac_tensor *want)
{
    const struct sac_tensor_desc *g = sac_tensor_describe(got), *w = sac_tensor_describe(want);
    const float                  *a = sac_tensor_data(got), *b = sac_tensor_data(want);
    assert_int_equal(g->dtype, w->dtype);
    assert_int_equal(g->rank, w->rank);
    assert_memory_equal(g->shape, w->shape, (size_t)g->rank * sizeof g->shape[0]);
    double largest = 1, off = 0;
    for (int64_t i = 0; i < sac_tensor_desc_elements(w); i++) {
        assert_true(isfinite(a[i]));
        largest = fmax(largest, fabs((double)b[i]));
        off = fmax(off, fabs((double)a[i] - (double)b[i]));
    }
    if (off > 1e-4 * largest)
        fail_msg("%s: off by %g where the largest is %g", what, off, largest);
}

static const struct mode {
    const char *name;
    int         optimise, reference;
} modes[] = {
    {"optimised", 1, 0},
    {"node by node", 0, 0},
    {"plain kernels", 1, 1},
};

struct model_case {
    const char        *path;
    const struct mode *mode;
    char               name[128];
};

static void check_model(void **state)
{
    const struct model_case *c = *state;
    struct sac_model_params  params = sac_model_params_default();
    sac_model               *model = NULL;
    sac_tensor              *out[OUTPUTS_MAX] = {NULL}, *input = load(MODELS_DIR "/input.npy");
    params.optimise = c->mode->optimise;
    params.reference = c->mode->reference;
    assert_sac_ok(sac_model_load(device, c->path, &params, &model));
    assert_in_range(sac_model_output_count(model), 1, OUTPUTS_MAX);
    assert_sac_ok(sac_model_run(model, &input, out));
    for (int i = 0; i < sac_model_output_count(model); i++) {
        char reference[512];
        int  stem = (int)(strlen(c->path) - strlen(".onnx"));
        snprintf(reference, sizeof reference, "%.*s.out%d.npy", stem, c->path, i);
        sac_tensor *want = load(reference);
        compare(reference, out[i], want);
        sac_tensor_unref(&want);
        sac_tensor_unref(&out[i]);
    }
    sac_tensor_unref(&input);
    sac_model_unref(&model);
}

/* ---- two samples at once ---- */

/* The input with its rows in reverse order. */
static sac_tensor *turned(const sac_tensor *x)
{
    const struct sac_tensor_desc *desc = sac_tensor_describe(x);
    sac_tensor                   *y = NULL;
    int64_t width = desc->shape[3], rows = sac_tensor_desc_elements(desc) / width;
    assert_sac_ok(sac_tensor_create(device, desc, "test input", &y));
    for (int64_t r = 0; r < rows; r++)
        memcpy((float *)sac_tensor_data(y) + r * width,
               (const float *)sac_tensor_data(x) + (rows - 1 - r) * width,
               (size_t)width * sizeof(float));
    return y;
}

static sac_tensor *stacked(const sac_tensor *a, const sac_tensor *b)
{
    struct sac_tensor_desc desc = *sac_tensor_describe(a);
    size_t                 bytes = (size_t)sac_tensor_desc_bytes(&desc);
    sac_tensor            *both = NULL;
    desc.shape[0] *= 2;
    assert_sac_ok(sac_tensor_create(device, &desc, "test input", &both));
    memcpy(sac_tensor_data(both), sac_tensor_data(a), bytes);
    memcpy((char *)sac_tensor_data(both) + bytes, sac_tensor_data(b), bytes);
    return both;
}

/* Whether or not the model's batch could be freed: two samples give what each gives alone. */
static void check_batch(void **state)
{
    const struct model_case *c = *state;
    sac_model               *model = NULL;
    sac_tensor *in[3] = {load(MODELS_DIR "/input.npy")}, *out[3][OUTPUTS_MAX] = {{NULL}};
    in[1] = turned(in[0]);
    in[2] = stacked(in[0], in[1]);
    assert_sac_ok(sac_model_load(device, c->path, NULL, &model));
    for (int k = 0; k < 3; k++)
        assert_sac_ok(sac_model_run(model, &in[k], out[k]));
    for (int i = 0; i < sac_model_output_count(model); i++) {
        sac_tensor *alone = stacked(out[0][i], out[1][i]);
        compare(c->name, out[2][i], alone);
        sac_tensor_unref(&alone);
        for (int k = 0; k < 3; k++)
            sac_tensor_unref(&out[k][i]);
    }
    for (int k = 0; k < 3; k++)
        sac_tensor_unref(&in[k]);
    sac_model_unref(&model);
}

enum { CASES_MAX = 128, MODES = sizeof modes / sizeof modes[0] };

int main(void)
{
    static struct model_case cases[CASES_MAX];
    static struct CMUnitTest tests[CASES_MAX];
    size_t                   n = 0;
    glob_t                   found;
    if (glob(MODELS_DIR "/*.onnx", 0, NULL, &found) != 0)
        return 1;
    for (size_t i = 0; i < found.gl_pathc; i++)
        for (int k = 0; k <= MODES && n < CASES_MAX; k++, n++) {
            cases[n] = (struct model_case){found.gl_pathv[i], k < MODES ? &modes[k] : NULL, ""};
            snprintf(cases[n].name, sizeof cases[n].name, "%s %s",
                     strrchr(found.gl_pathv[i], '/') + 1,
                     k < MODES ? modes[k].name : "two at once");
            tests[n] = (struct CMUnitTest){.name = cases[n].name,
                                           .test_func = k < MODES ? check_model : check_batch,
                                           .initial_state = &cases[n]};
        }
    int failed = _cmocka_run_group_tests("models/models", tests, n, open_device, close_device);
    globfree(&found);
    return failed;
}
