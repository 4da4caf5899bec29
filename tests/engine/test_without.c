/* SPDX-License-Identifier: Apache-2.0 */
/* Optimisations that are left out: the models of tests/models give their answers without any of
 * them, on the CPU and on the device of the tests (far.h); what is left out is not done; its plans
 * are kept apart; a name that does not exist is an error. */
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/kernel/layout.h"
#include "engine/model/model.h"
#include "tests/engine/far.h"
#include "tests/test.h"

enum { OUTPUTS_MAX = 8 };

static sac_device *cpu, *far;

static int open_devices(void **state)
{
    (void)state;
    setenv("SACCADE_CACHE", "", 1);
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &cpu));
    assert_sac_ok(far_open(test_context(), NULL, &far));
    return 0;
}

static int close_devices(void **state)
{
    (void)state;
    sac_device_unref(&far);
    sac_device_unref(&cpu);
    return 0;
}

/* NULL: nothing is left out. */
static sac_model *load(sac_device *dev, const char *path, enum sac_precision precision,
                       const char *without)
{
    struct sac_model_params params = sac_model_params_default();
    sac_model              *m = NULL;
    params.precision = precision;
    if (without)
        setenv("SACCADE_WITHOUT", without, 1);
    assert_sac_ok(sac_model_load(dev, path, &params, &m));
    unsetenv("SACCADE_WITHOUT");
    return m;
}

static sac_tensor *input_on(sac_device *dev)
{
    sac_tensor *host = NULL, *in = NULL;
    assert_sac_ok(sac_tensor_load_npy(cpu, MODELS_DIR "/input.npy", &host));
    assert_sac_ok(sac_tensor_create(dev, sac_tensor_describe(host), "test", &in));
    assert_sac_ok(sac_tensor_upload(in, sac_tensor_data(host)));
    sac_tensor_unref(&host);
    return in;
}

static void release(sac_tensor **t)
{
    for (int i = 0; i < OUTPUTS_MAX; i++)
        sac_tensor_unref(&t[i]);
}

/* Into the same tensors each time, so that a plan may be captured and launched. */
static void run(sac_model *m, int times, sac_tensor **out)
{
    sac_tensor *in = input_on(sac_model_device(m));
    for (int i = 0; i < times; i++)
        assert_sac_ok(sac_model_run_on(m, NULL, &in, out));
    assert_sac_ok(sac_device_wait(sac_model_device(m)));
    sac_tensor_unref(&in);
}

/* ---- the answers ---- */

static void compare(const char *what, const sac_tensor *got, const char *path, double limit)
{
    sac_tensor   *want = NULL;
    double        largest = 1, off = 0;
    const int64_t count = sac_tensor_desc_elements(sac_tensor_describe(got));
    assert_sac_ok(sac_tensor_load_npy(cpu, path, &want));
    assert_int_equal(sac_tensor_desc_elements(sac_tensor_describe(want)), count);
    float *a = malloc((size_t)count * sizeof *a), *b = sac_tensor_data(want);
    assert_sac_ok(sac_tensor_download(got, a));
    for (int64_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs((double)b[i]));
        off = fmax(off, fabs((double)a[i] - (double)b[i]));
    }
    free(a);
    sac_tensor_unref(&want);
    if (!(off <= limit * largest))
        fail_msg("%s: off by %g where the largest is %g", what, off, largest);
}

static void check_answers(const char *path, sac_device *dev, enum sac_precision precision,
                          const char *without)
{
    sac_model   *m = load(dev, path, precision, without);
    sac_tensor  *out[OUTPUTS_MAX] = {NULL};
    const double limit = precision == SAC_PRECISION_FP16 ? 3e-2 : 1e-4;
    run(m, dev == far ? 3 : 1, out); /* the third is launched as one */
    for (int i = 0; i < sac_model_output_count(m); i++) {
        char answer[512], what[600];
        snprintf(answer, sizeof answer, "%.*s.out%d.npy", (int)(strlen(path) - 5), path, i);
        snprintf(what, sizeof what, "%s in %s on %s without %s", path,
                 sac_precision_name(precision), sac_device_name(dev), without);
        compare(what, out[i], answer, limit);
    }
    release(out);
    sac_model_unref(&m);
}

static void without_each(void **state)
{
    struct sac_without what;
    const char        *name;
    for (int i = 0; (name = sac_without_name(i, &what)) && (what.passes || what.plan); i++) {
        check_answers(*state, cpu, SAC_PRECISION_FP32, name);
        check_answers(*state, far, SAC_PRECISION_FP16, name);
    }
    check_answers(*state, cpu, SAC_PRECISION_FP32, "fusion,channels-last in-place, memory-reuse");
}

/* ---- what is left out is not done ---- */

struct facts {
    int    steps, parts, in_place, last;
    size_t bytes;
};

static struct facts facts_on(sac_device *dev, const char *name, const char *without)
{
    char         path[256];
    struct facts f = {.steps = 0};
    sac_tensor  *out[OUTPUTS_MAX] = {NULL};
    snprintf(path, sizeof path, MODELS_DIR "/%s.onnx", name);
    sac_model *m = load(dev, path, SAC_PRECISION_FP32, without);
    run(m, 1, out);
    const struct sac_plan *plan = sac_model_latest_plan(m);
    f.steps = (int)plan->step_count;
    f.bytes = plan->activation_bytes;
    for (size_t i = 0; i < plan->step_count; i++)
        f.in_place += plan->steps[i].in_place >= 0;
    for (size_t i = 0; i < plan->slot_count; i++) {
        const struct sac_value_slot *s = &plan->slots[i];
        f.parts += s->parent >= 0;
        f.last += s->value >= 0 && plan->slot_of[s->value] == (int)i &&
                  !sac_layout_same(&s->desc, s->layout, SAC_LAYOUT_PLAIN);
    }
    release(out);
    sac_model_unref(&m);
    return f;
}

static struct facts facts_of(const char *name, const char *without)
{
    return facts_on(cpu, name, without);
}

static void what_is_left_out_is_not_done(void **state)
{
    (void)state;
    const struct facts whole = facts_of("yolov8", NULL), attention = facts_of("segformer", NULL);
    assert_true(whole.parts > 0 && attention.in_place > 0 && whole.last > 0);
    assert_int_equal(facts_of("yolov8", "concat-placement").parts, 0);
    assert_int_equal(facts_of("segformer", "in-place").in_place, 0);
    assert_int_equal(facts_of("yolov8", "channels-last").last, 0);
    assert_true(facts_of("yolov8", "memory-reuse").bytes > 2 * whole.bytes);
    assert_true(facts_of("yolov8", "fusion").steps > whole.steps);
    assert_true(facts_of("yolov8", "conv").steps > whole.steps);
    assert_true(facts_of("segformer", "attention").steps > attention.steps);
    assert_int_equal(facts_of("yolov8", " , ").steps, whole.steps);
    /* where branches are placed again, too */
    assert_int_equal(facts_on(far, "resnet50", "memory-reuse").bytes,
                     facts_on(far, "resnet50", "memory-reuse, branches").bytes);
}

static int launches_without(const char *without)
{
    sac_model  *m = load(far, MODELS_DIR "/resnet50.onnx", SAC_PRECISION_FP16, without);
    sac_tensor *out[OUTPUTS_MAX] = {NULL};
    far_counts = (struct far_counts){0};
    run(m, 4, out);
    release(out);
    sac_model_unref(&m);
    return far_counts.launches;
}

static void steps_are_queued_one_by_one(void **state)
{
    (void)state;
    assert_true(launches_without(NULL) > 0);
    assert_true(far_counts.branched > 0);
    assert_int_equal(launches_without("cuda-graph"), 0);
    assert_true(launches_without("branches") > 0);
    assert_int_equal(far_counts.branched, 0);
}

/* ---- kept plans ---- */

static int files_in(const char *folder)
{
    char   pattern[300];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*.plan", folder);
    const int count = glob(pattern, 0, NULL, &found) == 0 ? (int)found.gl_pathc : 0;
    globfree(&found);
    return count;
}

static void plans_are_kept_apart(void **state)
{
    (void)state;
    char folder[] = "/tmp/saccade-without-XXXXXX", command[64];
    assert_non_null(mkdtemp(folder));
    setenv("SACCADE_CACHE", folder, 1);
    launches_without(NULL);
    const int all = far_counts.measured;
    assert_true(all > 10);
    launches_without("channels-last, conv");
    assert_true(far_counts.measured > all); /* its own choices, of more steps */
    assert_int_equal(files_in(folder), 2);
    launches_without("conv,channels-last");
    assert_int_equal(far_counts.measured, 0);
    launches_without(NULL);
    const int told = far_counts.told;
    assert_true(told > 10);
    launches_without("in-place,memory-reuse,cuda-graph"); /* the same steps, so the same choices */
    assert_int_equal(far_counts.measured, 0);
    assert_int_equal(far_counts.told, told);
    launches_without("kernel-trials");
    assert_int_equal(far_counts.measured, 0);
    assert_int_equal(far_counts.told, 0);
    assert_int_equal(files_in(folder), 2);
    setenv("SACCADE_CACHE", "", 1);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

/* ---- names ---- */

static void names_are_read_and_written(void **state)
{
    (void)state;
    struct sac_without what = {0}, row;
    const char        *name;
    char               text[512], why[1024];
    sac_without_text(&what, text, sizeof text);
    assert_string_equal(text, "");
    for (int i = 0; (name = sac_without_name(i, &row)); i++) {
        what = (struct sac_without){0};
        assert_sac_ok(sac_without_parse(test_context(), "x", name, &what));
        sac_without_text(&what, text, sizeof text);
        if (!strcmp(name, "buffer-pool") || !strcmp(name, "page-locked") ||
            !strcmp(name, "one-launch") || !strcmp(name, "early-launch") || !strcmp(name, "mmap")) {
            assert_string_equal(text, ""); /* the device's, which is open already */
            continue;
        }
        assert_string_equal(text, name);
        assert_true(what.passes || what.plan);
    }
    what = (struct sac_without){0};
    assert_sac_ok(sac_without_parse(test_context(), "x", "norm,,in-place gelu", &what));
    sac_without_text(&what, text, sizeof text);
    assert_string_equal(text, "in-place, gelu, norm");
    setenv("SACCADE_WITHOUT", "attention,speed", 1);
    sac_model *m = NULL;
    assert_int_equal(sac_model_load(cpu, MODELS_DIR "/yolov8.onnx", NULL, &m), SAC_ERR_ARG);
    unsetenv("SACCADE_WITHOUT");
    assert_null(m);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(
        strstr(why, "SACCADE_WITHOUT: 'speed' cannot be left out; these can: fusion, "));
    assert_non_null(strstr(why, "attention"));
    assert_non_null(strstr(why, "page-locked"));
}

/* The same answers from a device that keeps no buffers and copies through any memory. There is one
 * such device at a time. */
static void a_device_does_without(void **state)
{
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        sac_device_unref(&far);
        if (turn == 0)
            setenv("SACCADE_WITHOUT", "page-locked buffer-pool", 1);
        assert_sac_ok(far_open(test_context(), NULL, &far));
        unsetenv("SACCADE_WITHOUT");
        assert_int_equal(far->without, turn == 0 ? SAC_WITHOUT_POOL | SAC_WITHOUT_PAGE_LOCKED : 0);
        check_answers(MODELS_DIR "/yolov8.onnx", far, SAC_PRECISION_FP16, NULL);
    }
}

int main(void)
{
    static struct CMUnitTest tests[32];
    int                      count = 0;
    glob_t                   found;
    if (glob(MODELS_DIR "/*.onnx", 0, NULL, &found) != 0)
        return 1;
    for (size_t i = 0; i < found.gl_pathc && count < 24; i++)
        tests[count++] = (struct CMUnitTest){strrchr(found.gl_pathv[i], '/') + 1, without_each,
                                             NULL, NULL, found.gl_pathv[i]};
    const struct CMUnitTest others[] = {
        cmocka_unit_test(what_is_left_out_is_not_done),
        cmocka_unit_test(steps_are_queued_one_by_one),
        cmocka_unit_test(plans_are_kept_apart),
        cmocka_unit_test(names_are_read_and_written),
        cmocka_unit_test(a_device_does_without),
    };
    for (size_t i = 0; i < SAC_COUNT(others); i++)
        tests[count++] = others[i];
    const int failed = _cmocka_run_group_tests("engine/without", tests, (size_t)count, open_devices,
                                               close_devices);
    globfree(&found);
    return failed;
}
