/* SPDX-License-Identifier: Apache-2.0 */
/* Calibration with pictures, on the device of the tests (far.h), which has FP16: what a picture
 * shows decides which steps stay in float32; the plan keeps and tells it, on every device; who
 * gives no pictures is told so. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/engine/bright.h"
#include "tests/engine/far.h"

static sac_context *ctx;
static sac_device  *cpu, *far;
static char         said[1 << 16], folder[64], model_path[128], out[128], dark[128], all[128];

static void keep(void *user, enum sac_log_level level, const char *message)
{
    (void)user;
    if (level <= SAC_LOG_INFO && strlen(said) + strlen(message) + 2 < sizeof said)
        strcat(strcat(said, message), "\n");
}

static void ok(sac_result res)
{
    char why[1024];
    sac_context_last_error(ctx, why, sizeof why);
    if (res != SAC_OK)
        fail_msg("%s: %s", sac_result_name(res), why);
}

static void expect_said(const char *words)
{
    if (!strstr(said, words))
        fail_msg("'%s' does not say '%s'", said, words);
}

static void picture(const char *of, const char *name, int grey)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", of, name);
    bright_picture(path, grey);
}

static int begin(void **state)
{
    struct sac_context_params params = sac_context_params_default();
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/saccade-calibration-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(model_path, sizeof model_path, "%s/net.onnx", folder);
    snprintf(out, sizeof out, "%s/net.plan", folder);
    snprintf(dark, sizeof dark, "%s/dark", folder);
    snprintf(all, sizeof all, "%s/all", folder);
    mkdir(dark, 0777);
    mkdir(all, 0777);
    bright_write(model_path);
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d.ppm", i);
        picture(dark, name, 60 + 10 * i);
        picture(all, name, 60 + 10 * i);
    }
    picture(all, "night.ppm", 255);
    setenv("SACCADE_CACHE", "", 1); /* what is kept is in the .plan alone */
    params.log_fn = keep;
    said[0] = '\0';
    return sac_context_create(&params, &ctx) == SAC_OK &&
                   sac_device_open(ctx, "cpu", NULL, &cpu) == SAC_OK &&
                   far_open(ctx, NULL, &far) == SAC_OK
               ? 0
               : -1;
}

static int end(void **state)
{
    char command[128];
    (void)state;
    sac_device_unref(&far);
    sac_device_unref(&cpu);
    sac_context_destroy(&ctx);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

/* ---- building ---- */

static struct sac_calibration_params params_of_data;

static sac_result build_with(const char *data, int batch_max)
{
    struct sac_build_params params = sac_build_params_default();
    params.model.precision = SAC_PRECISION_FP16;
    params.batch_max = batch_max;
    said[0] = '\0';
    unlink(out);
    sac_result res =
        data ? sac_calibration_open(ctx, data, &params_of_data, &params.calibration) : SAC_OK;
    if (res == SAC_OK)
        res = sac_model_build(far, model_path, &params, out, NULL, NULL);
    sac_calibration_close(&params.calibration);
    return res;
}

static sac_result build(const char *data)
{
    params_of_data = sac_calibration_params_default();
    return build_with(data, 1);
}

static sac_model *load(sac_device *dev, const char *path)
{
    sac_model *m = NULL;
    ok(sac_model_load(dev, path, NULL, &m));
    return m;
}

static void a_picture_decides_what_stays_in_float32(void **state)
{
    const char *const not_enough[] = {NULL, dark};
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(not_enough); i++) { /* or this test says nothing */
        ok(build(not_enough[i]));
        sac_model *m = load(far, out);
        assert_false(bright_is_right(far, m));
        assert_int_equal(m->wide_count, 0);
        sac_model_unref(&m);
        expect_said("NaN or infinite in FP16");
        expect_said("--calibrate");
    }
    ok(build(all));
    expect_said("3 of ");
    expect_said("calibrated on the CPU with 4 samples of ");
    said[0] = '\0';
    sac_model *m = load(far, out);
    assert_true(bright_is_right(far, m));
    assert_int_equal(m->wide_count, BRIGHT_WIDE);
    assert_string_equal(said, "");
    sac_model_unref(&m);
}

/* More images than samples: those are shown again. The check is made with the worst. */
static void batches_are_filled_with_samples(void **state)
{
    (void)state;
    params_of_data = sac_calibration_params_default();
    ok(build_with(all, 8));
    sac_model *m = load(far, out);
    assert_non_null(sac_book_find(&m->book, "float32[8,3,32,32]"));
    assert_true(bright_is_right(far, m));
    sac_model_unref(&m);
    sac_calibration        *cal = NULL; /* used before, and again */
    struct sac_build_params params = sac_build_params_default();
    ok(sac_calibration_open(ctx, all, NULL, &cal));
    params.calibration = cal;
    params.model.precision = SAC_PRECISION_FP16;
    for (int turn = 0; turn < 2; turn++) {
        said[0] = '\0';
        ok(sac_model_build(far, model_path, &params, out, NULL, NULL));
        expect_said("with 4 samples of ");
    }
    sac_calibration_close(&cal);
}

static void samples_are_spread_over_the_data(void **state)
{
    char name[16];
    (void)state;
    params_of_data = sac_calibration_params_default();
    params_of_data.sample_max = 3;
    for (int i = 10; i < 14; i++) { /* behind the others: every second of eight */
        snprintf(name, sizeof name, "%d.ppm", i);
        picture(all, name, 50);
    }
    ok(build_with(all, 1));
    sac_model                  *m = load(far, out);
    const struct sac_book_page *page = sac_book_find(&m->book, SAC_BOOK_CALIBRATION);
    assert_non_null(page);
    assert_int_equal(page->count, 4);
    assert_non_null(strstr(page->choices[1], "/0.ppm"));
    assert_non_null(strstr(page->choices[2], "/2.ppm"));
    assert_non_null(strstr(page->choices[3], "/11.ppm"));
    sac_model_unref(&m);
    params_of_data.sample_max = 5; /* not the first five of eight */
    ok(build_with(all, 1));
    m = load(far, out);
    page = sac_book_find(&m->book, SAC_BOOK_CALIBRATION);
    assert_int_equal(page->count, 6);
    assert_non_null(strstr(page->choices[1], "/0.ppm"));
    assert_non_null(strstr(page->choices[5], "/13.ppm"));
    sac_model_unref(&m);
}

/* ---- what a plan keeps ---- */

static void expect_told(sac_device *dev, bool wide)
{
    struct sac_model_info   info;
    struct sac_model_params params = sac_model_params_default();
    sac_model              *m = NULL;
    ok(sac_model_open_for_inspection(dev, out, &params, &m));
    sac_model_inspect(m, &info);
    assert_non_null(info.calibration);
    assert_non_null(strstr(info.calibration, wide ? "4 samples of " : "3 samples of "));
    assert_int_equal(info.wide_step_count, wide ? BRIGHT_WIDE : 0);
    assert_int_equal(info.wide_steps != NULL, wide);
    for (int i = 0; i < info.wide_step_count; i++)
        assert_non_null(strstr(info.wide_steps[i], "e+04 in "));
    if (wide) {
        assert_non_null(strstr(info.wide_steps[0], "Conv"));
        assert_non_null(strstr(info.wide_steps[0], "/night.ppm,"));
    }
    sac_model_unref(&m);
}

static void a_plan_tells_it_on_every_device(void **state)
{
    (void)state;
    ok(build(all));
    expect_told(far, true);
    expect_told(cpu, true);
    ok(build(dark));
    expect_told(far, false);
    expect_told(cpu, false);
    ok(build(NULL));
    struct sac_model_info info;
    sac_model            *m = load(far, out);
    sac_model_inspect(m, &info);
    assert_null(info.calibration);
    sac_model_unref(&m);
}

/* The plan with another value of a key. */
static void rewrite(enum sac_book_key key, const char *value)
{
    struct sac_mapped_file file = {0};
    struct sac_plan_book   book = {.count = 0};
    char                   why[160];
    size_t                 model = 0, size = 0;
    ok(sac_file_map(ctx, out, &file));
    assert_true(sac_book_parse(file.bytes, file.size, &book, &model, why, sizeof why));
    assert_true(sac_book_set_key(&book, key, value));
    char *text = sac_book_text(&book, file.size - model, &size);
    unlink(out);
    FILE *f = fopen(out, "wb");
    assert_non_null(f);
    fwrite(text, 1, size, f);
    fwrite((const char *)file.bytes + model, 1, file.size - model, f);
    fclose(f);
    free(text);
    sac_file_unmap(&file);
    sac_book_finish(&book);
}

/* Kernels are chosen anew there, but what numbers the network has does not depend on the device. */
static void another_gpu_needs_no_pictures(void **state)
{
    (void)state;
    ok(build(all));
    rewrite(SAC_BOOK_DEVICE, "another one");
    said[0] = '\0';
    sac_model *m = load(far, out);
    assert_true(bright_is_right(far, m));
    expect_said("made for another device");
    expect_said("trying kernels");
    assert_int_equal(m->wide_count, BRIGHT_WIDE);
    sac_model_unref(&m);
    rewrite(SAC_BOOK_OPTIONS, "others"); /* other steps: they are watched */
    m = load(far, out);
    assert_false(bright_is_right(far, m));
    sac_model_unref(&m);
}

/* Who runs the model itself did not ask for what a plan of it says. */
static void the_cache_does_not_keep_it(void **state)
{
    (void)state;
    ok(build(all));
    setenv("SACCADE_CACHE", folder, 1);
    rewrite(SAC_BOOK_DEVICE, "another one"); /* so that something is kept */
    sac_model *m = load(far, out);
    assert_true(bright_is_right(far, m));
    assert_non_null(sac_book_find(&m->book, SAC_BOOK_CALIBRATED));
    sac_model_unref(&m);
    m = load(far, out); /* beside the file that is in the cache by now */
    assert_true(bright_is_right(far, m));
    sac_model_unref(&m);
    m = load(far, model_path);
    assert_null(sac_book_find(&m->book, "float32[1,3,32,32]")); /* chosen for other steps */
    assert_null(sac_book_find(&m->book, SAC_BOOK_CALIBRATION));
    assert_null(sac_book_find(&m->book, SAC_BOOK_CALIBRATED));
    assert_false(bright_is_right(far, m));
    sac_model_unref(&m);
    m = load(far, model_path);
    assert_non_null(sac_book_find(&m->book, "float32[1,3,32,32]")); /* its own */
    sac_model_unref(&m);
    for (int turn = 0; turn < 2; turn++) { /* a build measures beside that, then finds its own */
        said[0] = '\0';
        ok(build(dark));
        assert_int_equal(strstr(said, "trying kernels for") != NULL, turn == 0);
    }
    setenv("SACCADE_CACHE", "", 1);
}

/* Pictures that become other numbers than they were. */
static void another_contract_is_not_calibrated(void **state)
{
    float low, high;
    (void)state;
    ok(build(all));
    for (int turn = 0; turn < 2; turn++) {
        sac_model *m = load(far, out);
        said[0] = '\0';
        const struct sac_book_page *page = sac_book_find(&m->book, SAC_BOOK_CALIBRATION);
        assert_int_equal(sscanf(page->choices[0], "%f %f", &low, &high), 2);
        sac_model_expect(m, turn ? 0 : low, turn ? 1 : high);
        assert_int_equal(bright_is_right(far, m), turn == 0);
        if (turn)
            expect_said("it was calibrated with pictures as numbers from -2.1179 to 2.64, and they "
                        "are from 0 to 1 now");
        sac_model_unref(&m);
    }
}

/* ---- sentences ---- */

static void expect_refused(sac_result res, sac_result wanted, const char *words)
{
    char why[1024];
    sac_context_last_error(ctx, why, sizeof why);
    if (res != wanted || !strstr(why, words))
        fail_msg("%s: '%s' does not say '%s'", sac_result_name(res), why, words);
    assert_int_not_equal(access(out, F_OK), 0);
}

static void what_is_no_data_is_told(void **state)
{
    char path[128];
    (void)state;
    snprintf(path, sizeof path, "%s/none", folder);
    expect_refused(build(path), SAC_ERR_IO, "none: No such file");
    mkdir(path, 0777);
    expect_refused(build(path), SAC_ERR_FORMAT, "none: no image in this folder");
    expect_refused(build("-"), SAC_ERR_ARG, "standard input can be read once only");
    params_of_data = sac_calibration_params_default();
    params_of_data.sample_max = 0;
    expect_refused(build_with(all, 1), SAC_ERR_ARG, "sample_max is 0; have 1 to 10000");
    params_of_data = sac_calibration_params_default();
    params_of_data.preprocess = "size=64x64";
    expect_refused(build_with(all, 1), SAC_ERR_ARG, "calibration: preprocess: size 64x64");
    params_of_data.preprocess = NULL;
    params_of_data.head = "nobody";
    expect_refused(build_with(all, 1), SAC_ERR_ARG, "calibration: no head 'nobody'; have ");
}

static void damaged_pictures_are_left_out(void **state)
{
    char path[256];
    (void)state;
    snprintf(path, sizeof path, "%s/a.png", all);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs("no picture", f);
    fclose(f);
    ok(build(all));
    expect_said("calibration: 1 picture of ");
    expect_said("cannot be read, and is left out");
    expect_said("with 4 samples of ");
}

static void a_network_without_pictures_is_told(void **state)
{
    struct proto graph = {0}, model = {0};
    (void)state;
    proto_node(&graph, "Relu", "words", "y", NULL);
    proto_input(&graph, "words", 1, "1 64");
    proto_output(&graph, "y", 1, "1 64");
    proto_model(&model, &graph, 17);
    FILE *f = fopen(model_path, "wb");
    assert_int_equal(fwrite(model.bytes, 1, model.size, f), model.size);
    fclose(f);
    proto_free(&model);
    expect_refused(build(all), SAC_ERR_UNSUPPORTED, "calibration needs pictures: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_picture_decides_what_stays_in_float32, begin, end),
        cmocka_unit_test_setup_teardown(batches_are_filled_with_samples, begin, end),
        cmocka_unit_test_setup_teardown(samples_are_spread_over_the_data, begin, end),
        cmocka_unit_test_setup_teardown(a_plan_tells_it_on_every_device, begin, end),
        cmocka_unit_test_setup_teardown(another_gpu_needs_no_pictures, begin, end),
        cmocka_unit_test_setup_teardown(the_cache_does_not_keep_it, begin, end),
        cmocka_unit_test_setup_teardown(another_contract_is_not_calibrated, begin, end),
        cmocka_unit_test_setup_teardown(what_is_no_data_is_told, begin, end),
        cmocka_unit_test_setup_teardown(damaged_pictures_are_left_out, begin, end),
        cmocka_unit_test_setup_teardown(a_network_without_pictures_is_told, begin, end),
    };
    return cmocka_run_group_tests_name("heads/calibration", tests, NULL, NULL);
}
