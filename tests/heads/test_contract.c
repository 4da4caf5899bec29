/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "heads/heads.h"
#include "tests/test.h"

static sac_device *dev;

static int open_device(void **state)
{
    (void)state;
    return sac_device_open(test_context(), "cpu", NULL, &dev) == SAC_OK ? 0 : -1;
}

static int close_device(void **state)
{
    (void)state;
    sac_device_unref(&dev);
    return 0;
}

static sac_model *model(const char *path)
{
    sac_model *m = NULL;
    assert_sac_ok(sac_model_load(dev, path, NULL, &m));
    return m;
}

/* The head's defaults, for a start. */
static struct sac_model_contract start(void)
{
    struct sac_model_contract c = {.pre = sac_preprocess_default()};
    c.pre.width = c.pre.height = 64;
    c.pre.scale[0] = 0.5f;
    return c;
}

static void a_field_of_a_later_version_is_refused(void **state)
{
    (void)state;
    sac_model                *m = model(TEST_SOURCE_DIR "/contract.onnx");
    struct sac_model_contract c = start();
    char                      why[512];
    c.reserved[0] = 1;
    assert_sac_error(sac_model_contract_read(m, NULL, &c), SAC_ERR_ARG);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "contract: a field is set that"));
    sac_model_contract_finish(&c);
    sac_model_unref(&m);
}

static void the_nearer_place_wins(void **state)
{
    (void)state;
    sac_model                *m = model(TEST_SOURCE_DIR "/contract.onnx");
    struct sac_model_contract c = start();
    assert_sac_ok(sac_model_contract_read(m, "fill=1/2,mean=5", &c));
    assert_int_equal(c.pre.order, SAC_ORDER_RGB); /* YAML says bgr, the metadata rgb */
    assert_int_equal(c.order_from, SAC_FROM_METADATA);
    assert_int_equal(c.pre.fit, SAC_FIT_LETTERBOX_CENTRE);
    assert_int_equal(c.fit_from, SAC_FROM_METADATA);
    assert_float_equal(c.pre.scale[2], 0.5, 1e-6); /* std=2 */
    assert_int_equal(c.scale_from, SAC_FROM_METADATA);
    assert_float_equal(c.pre.mean[1], 5, 0); /* all three places; the user is nearest */
    assert_int_equal(c.mean_from, SAC_FROM_USER);
    assert_float_equal(c.pre.fill[0], 0.5, 1e-6);
    assert_int_equal(c.fill_from, SAC_FROM_USER);
    assert_int_equal(c.size_from, SAC_FROM_HEAD);
    assert_int_equal(c.class_count, 3);
    assert_string_equal(c.classes[1], "dog");
    assert_int_equal(c.classes_from, SAC_FROM_METADATA);
    sac_model_contract_finish(&c);

    c = start();
    assert_sac_ok(sac_model_contract_read(m, NULL, &c));
    assert_int_equal(c.fill_from, SAC_FROM_YAML);
    assert_float_equal(c.pre.fill[2], 7, 0);
    assert_float_equal(c.pre.mean[2], 3, 0);
    sac_model_contract_finish(&c);
    sac_model_unref(&m);
}

static void reads_what_ultralytics_writes(void **state)
{
    (void)state;
    sac_model                *m = model(TEST_SOURCE_DIR "/yolov8_sideways.onnx");
    struct sac_model_contract c = start();
    assert_sac_ok(sac_model_contract_read(m, NULL, &c));
    assert_int_equal(c.class_count, 3);
    assert_string_equal(c.classes[1], "barista's");
    assert_int_equal(c.size_from, SAC_FROM_METADATA);
    assert_int_equal(sac_contract_count_names(m), 3);
    sac_model_contract_finish(&c);
    sac_model_unref(&m);
}

static void refuses_text_it_does_not_know(void **state)
{
    (void)state;
    static const char *const bad[] = {"colour",
                                      "mean",
                                      "mean=",
                                      "mean=1:2",
                                      "mean=1:2:3:4",
                                      "mean=x",
                                      "mean=1x",
                                      "scale=1/0",
                                      "scale=nan",
                                      "std=0",
                                      "std=1/1e35",
                                      "std=1:1:1e-45",
                                      "letterbox=left",
                                      "order=gbr",
                                      "size=0x4",
                                      "size=4",
                                      "size=4x4x4",
                                      "size=99999x1",
                                      "size=4294967300x4",
                                      "filter=cubic",
                                      "mean=1,,fill=q",
                                      "=",
                                      "=1"};
    sac_model               *m = model(TEST_SOURCE_DIR "/yolov5.onnx");
    for (size_t i = 0; i < SAC_COUNT(bad); i++) {
        struct sac_model_contract c = start();
        assert_sac_error(sac_model_contract_read(m, bad[i], &c), SAC_ERR_ARG);
        assert_int_not_equal(c.scale_from, SAC_FROM_USER); /* no number of these is good */
        assert_int_not_equal(c.fill_from, SAC_FROM_USER);
        sac_model_contract_finish(&c);
    }
    char *endless = sac_alloc(5000);
    memset(endless, 'a', 4999);
    endless[4999] = '\0';
    struct sac_model_contract c = start();
    assert_sac_error(sac_model_contract_read(m, endless, &c), SAC_ERR_ARG);
    assert_sac_ok(sac_model_contract_read(m, "", &c));
    assert_sac_ok(sac_model_contract_read(
        m, "bgr, stretch, size=64x64, filter=area, scale=1/255:0.5:-1e-2", &c));
    assert_int_equal(c.pre.order, SAC_ORDER_BGR);
    assert_int_equal(c.pre.fit, SAC_FIT_STRETCH);
    assert_int_equal(c.pre.filter, SAC_FILTER_AREA);
    assert_float_equal(c.pre.scale[0], 1.0 / 255, 1e-7);
    sac_free(endless);
    sac_model_unref(&m);
}

/* A copy of a model with a YAML of our own beside it. */
static sac_result read_with_yaml(const char *yaml, struct sac_model_contract *c)
{
    char dir[] = "/tmp/saccade-contract-XXXXXX", onnx[64], beside[64], buf[4096];
    assert_non_null(mkdtemp(dir));
    snprintf(onnx, sizeof onnx, "%s/m.onnx", dir);
    snprintf(beside, sizeof beside, "%s/m.yaml", dir);
    FILE *in = fopen(TEST_SOURCE_DIR "/end2end.onnx", "rb"), *out = fopen(onnx, "wb"),
         *text = fopen(beside, "wb");
    assert_non_null(in);
    assert_non_null(out);
    assert_non_null(text);
    for (size_t n; (n = fread(buf, 1, sizeof buf, in)) > 0;)
        fwrite(buf, 1, n, out);
    fputs(yaml, text);
    fclose(in);
    fclose(out);
    fclose(text);
    sac_model *m = model(onnx);
    sac_result res = sac_model_contract_read(m, NULL, c);
    sac_model_unref(&m);
    unlink(onnx);
    unlink(beside);
    rmdir(dir);
    return res;
}

static void reads_yaml_in_all_its_forms(void **state)
{
    (void)state;
    struct sac_model_contract c = start();
    assert_sac_ok(read_with_yaml(
        "size: [320, 240]\nstd: [2, 4, 5]\nletterbox: none\nclasses: {2: two, 0: zero}\n", &c));
    assert_int_equal(c.pre.width, 320);
    assert_int_equal(c.pre.height, 240);
    assert_int_equal(c.size_from, SAC_FROM_YAML);
    assert_float_equal(c.pre.scale[1], 0.25, 1e-7);
    assert_int_equal(c.class_count, 3);
    assert_string_equal(c.classes[0], "zero");
    assert_string_equal(c.classes[1], "class 1");
    sac_model_contract_finish(&c);
}

static void refuses_broken_yaml(void **state)
{
    (void)state;
    static const char *const bad[] = {"a: [1, 2",
                                      "- a\n- b\n",
                                      "",
                                      "mean: {a: b}",
                                      "mean: nothing",
                                      "names: 3",
                                      "names: {x: y}",
                                      "names: [[a]]",
                                      "size: [1]",
                                      "names: {999999999999: a}",
                                      "names: {-1: a}",
                                      "\x01"};
    for (size_t i = 0; i < SAC_COUNT(bad); i++) {
        struct sac_model_contract c = start();
        char                      why[512];
        assert_sac_error(read_with_yaml(bad[i], &c), SAC_ERR_FORMAT);
        sac_context_last_error(test_context(), why, sizeof why);
        assert_non_null(strstr(why, "m.yaml"));
        sac_model_contract_finish(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_field_of_a_later_version_is_refused),
        cmocka_unit_test(the_nearer_place_wins),
        cmocka_unit_test(reads_what_ultralytics_writes),
        cmocka_unit_test(refuses_text_it_does_not_know),
        cmocka_unit_test(reads_yaml_in_all_its_forms),
        cmocka_unit_test(refuses_broken_yaml),
    };
    return cmocka_run_group_tests_name("heads/contract", tests, open_device, close_device);
}
