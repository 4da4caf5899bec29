/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "device/device.h"
#include "heads/heads.h"
#include "tests/test.h"

static sac_result open_detector(sac_device *dev, const char *plugin, const char *model,
                                sac_detector **out)
{
    struct sac_detector_params params = sac_detector_params_default();
    params.head = plugin;
    return sac_detector_create(dev, model, &params, out);
}

static sac_device *device(void)
{
    sac_device *dev = NULL;
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &dev));
    return dev;
}

static void decodes_like_a_row_of_ours(void **state)
{
    (void)state;
    sac_device           *dev = device();
    sac_detector         *det = NULL;
    sac_frame            *frame = NULL;
    sac_frame             desc = {.format = SAC_PIXEL_GRAY8, .width = 128, .height = 64};
    struct sac_detections found = {0}, plain = {0};
    assert_sac_ok(sac_frame_create(dev, &desc, &frame));
    memset(frame->plane[0], 0, frame->pitch_bytes[0] * 64);
    assert_sac_ok(open_detector(dev, NULL, TEST_SOURCE_DIR "/end2end.onnx", &det));
    assert_sac_ok(sac_detector_run(det, &frame, 1, &plain));
    sac_detector_destroy(&det);
    assert_sac_ok(open_detector(dev, TEST_PLUGIN_GOOD, TEST_SOURCE_DIR "/end2end.onnx", &det));
    assert_string_equal(sac_detector_head_name(det), "halves");
    assert_int_equal(sac_detector_contract(det)->pre.order, SAC_ORDER_BGR);
    assert_sac_ok(sac_detector_run(det, &frame, 1, &found));
    assert_true(plain.count > 0);
    assert_int_equal(found.count, plain.count);
    for (size_t i = 0; i < found.count; i++) {
        assert_float_equal(found.items[i].score, plain.items[i].score / 2, 1e-6);
        assert_int_equal(found.items[i].class_id, plain.items[i].class_id);
    }
    sac_detections_finish(&found);
    sac_detections_finish(&plain);
    sac_detector_destroy(&det);
    sac_frame_unref(&frame);
    sac_device_unref(&dev);
}

static void its_refusal_becomes_a_sentence(void **state)
{
    (void)state;
    sac_device           *dev = device();
    sac_detector         *det = NULL;
    sac_frame            *frame = NULL;
    sac_frame             desc = {.format = SAC_PIXEL_GRAY8, .width = 8, .height = 8};
    struct sac_detections found = {0};
    assert_sac_ok(sac_frame_create(dev, &desc, &frame));
    memset(frame->plane[0], 0, frame->pitch_bytes[0] * 8);
    assert_sac_ok(open_detector(dev, TEST_PLUGIN_GOOD, TEST_SOURCE_DIR "/yolov5.onnx", &det));
    assert_sac_error(sac_detector_run(det, &frame, 1, &found), SAC_ERR_FORMAT);
    sac_detections_finish(&found);
    sac_detector_destroy(&det);
    sac_frame_unref(&frame);
    sac_device_unref(&dev);
}

static void other_objects_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        sac_result  res;
        const char *word;
    } bad[] = {{TEST_PLUGIN_OLD, SAC_ERR_UNSUPPORTED, "rebuild"},
               {TEST_PLUGIN_NOTHING, SAC_ERR_FORMAT, "sac_head_plugin"},
               {TEST_SOURCE_DIR "/end2end.onnx", SAC_ERR_IO, "end2end.onnx"}};
    sac_device *dev = device();
    for (size_t i = 0; i < SAC_COUNT(bad); i++) {
        sac_detector *det = NULL;
        char          why[512];
        assert_sac_error(open_detector(dev, bad[i].path, TEST_SOURCE_DIR "/end2end.onnx", &det),
                         bad[i].res);
        sac_context_last_error(test_context(), why, sizeof why);
        assert_non_null(strstr(why, bad[i].word));
        assert_null(det);
    }
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_like_a_row_of_ours),
        cmocka_unit_test(its_refusal_becomes_a_sentence),
        cmocka_unit_test(other_objects_are_refused),
    };
    return cmocka_run_group_tests_name("heads/plugin", tests, NULL, NULL);
}
