/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors into a detector: the boxes of the frames that they are, and of the network's input that
 * they are; on the CPU, and on the far device, whose work comes late. */
#include <stdio.h>
#include <string.h>

#include "heads/detector.h"
#include "tests/engine/far.h"
#include "tests/ranges.h"
#include "tests/vision/frames.h"

enum { IMAGES = 5, BATCH = 4 };

static sac_device *far(const struct sac_device_params *params)
{
    sac_device *dev = NULL;
    far_counts = (struct far_counts){0};
    assert_sac_ok(sac_device_open_ops(test_context(), far_ops(&far_pictures), 0, params, &dev));
    return dev;
}

/* One whose streams go on beside each other, as a GPU's. */
static sac_device *far_async(void)
{
    static struct sac_device_ops ops;
    sac_device                  *dev = NULL;
    ops = *far_ops(&far_pictures);
    ops.async = true;
    far_counts = (struct far_counts){0};
    assert_sac_ok(sac_device_open_ops(test_context(), &ops, 0, NULL, &dev));
    return dev;
}

static sac_detector *open_detector(sac_device *dev, const char *model, int batch)
{
    struct sac_detector_params params = sac_detector_params_default();
    sac_detector              *det = NULL;
    char                       path[512];
    snprintf(path, sizeof path, "%s/%s.onnx", TEST_SOURCE_DIR, model);
    params.score_min = 0.02f;
    params.batch_max = batch;
    params.precision = SAC_PRECISION_FP32;
    assert_sac_ok(sac_detector_create(dev, path, &params, &det));
    return det;
}

static void finish(struct sac_detections *lists)
{
    for (int i = 0; i < IMAGES; i++)
        sac_detections_finish(&lists[i]);
}

static void compare(const struct sac_detections *want, const struct sac_detections *got)
{
    size_t boxes = 0;
    for (int i = 0; i < IMAGES; i++) {
        if (want[i].count != got[i].count ||
            memcmp(want[i].items, got[i].items, want[i].count * sizeof *want[i].items) != 0)
            fail_msg("image %d: %zu boxes, expected %zu, or others", i, got[i].count,
                     want[i].count);
        boxes += want[i].count;
    }
    assert_true(boxes > 0);
}

static sac_tensor *upload(sac_device *dev, const struct sac_tensor_desc *desc, const void *numbers)
{
    sac_tensor *t = NULL;
    assert_sac_ok(sac_tensor_create(dev, desc, "theirs", &t));
    assert_sac_ok(sac_tensor_upload(t, numbers));
    return t;
}

/* ---- pictures ---- */

enum { WIDTH = 90, HEIGHT = 50 };
static uint8_t pixels[IMAGES][HEIGHT][WIDTH][3], planes[IMAGES][3][HEIGHT][WIDTH];
static float   shares[IMAGES][3][HEIGHT][WIDTH];

static void fill(void)
{
    for (int i = 0; i < IMAGES; i++)
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++)
                for (int c = 0; c < 3; c++) {
                    const uint8_t v = (uint8_t)test_between(0, 255);
                    pixels[i][y][x][c] = planes[i][c][y][x] = v;
                    shares[i][c][y][x] = (float)v / 255;
                }
}

static void boxes_of_frames(sac_device *dev, struct sac_detections *found)
{
    sac_detector *det = open_detector(dev, "yolov8", BATCH);
    sac_frame    *frames[IMAGES] = {NULL};
    for (int i = 0; i < IMAGES; i++) {
        frames[i] = test_frame(dev, SAC_PIXEL_RGB24, WIDTH, HEIGHT);
        for (int y = 0; y < HEIGHT; y++)
            memcpy(frames[i]->plane[0] + (size_t)y * frames[i]->pitch_bytes[0], pixels[i][y],
                   sizeof pixels[i][y]);
    }
    assert_sac_ok(sac_detector_run(det, frames, IMAGES, found));
    for (int i = 0; i < IMAGES; i++)
        sac_frame_unref(&frames[i]);
    sac_detector_destroy(&det);
}

static void check_pictures(sac_device *dev)
{
    static const struct sac_tensor_desc last = {SAC_U8, 4, {IMAGES, HEIGHT, WIDTH, 3}},
                                        first = {SAC_U8, 4, {IMAGES, 3, HEIGHT, WIDTH}},
                                        floats = {SAC_F32, 4, {IMAGES, 3, HEIGHT, WIDTH}};
    struct sac_detections want[IMAGES] = {{0}}, got[IMAGES] = {{0}};
    sac_device           *cpu = test_device();
    fill();
    boxes_of_frames(cpu, want);
    sac_detector *det = open_detector(dev, "yolov8", BATCH);
    sac_tensor   *tensors[] = {upload(dev, &last, pixels), upload(dev, &first, planes),
                               upload(dev, &floats, shares)};
    for (size_t i = 0; i < SAC_COUNT(tensors); i++) {
        struct sac_ledger ledger;
        assert_sac_ok(sac_detector_run_tensor(det, tensors[i], NULL, got));
        compare(want, got);
        sac_device_ledger(dev, &ledger);
        assert_int_equal(ledger.reason[SAC_COPY_FRAME_CONVERT].calls, i * IMAGES);
        sac_tensor_unref(&tensors[i]);
    }
    struct sac_run_times times;
    sac_detector_get_times(det, &times);
    assert_true(times.begun_ns > 0 && times.inference_ns > 0);
    sac_detector_destroy(&det);
    finish(want);
    finish(got);
    sac_device_unref(&cpu);
}

static void pictures_have_the_boxes_of_frames(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    check_pictures(dev);
    sac_device_unref(&dev);
    dev = far(NULL);
    check_pictures(dev);
    sac_device_unref(&dev);
}

/* ---- the network's input ---- */

/* What preprocessing makes of the pictures, in host memory; free() it. */
static float *prepared_of(const struct sac_model_contract *contract, struct sac_tensor_desc *desc)
{
    sac_device               *cpu = test_device();
    struct sac_preprocess_job jobs[IMAGES];
    sac_tensor               *t = NULL;
    *desc = (struct sac_tensor_desc){
        SAC_F32, 4, {IMAGES, 3, contract->pre.height, contract->pre.width}};
    float *numbers = malloc((size_t)sac_tensor_desc_bytes(desc));
    assert_non_null(numbers);
    assert_sac_ok(sac_tensor_create(cpu, desc, "input", &t));
    for (int i = 0; i < IMAGES; i++) {
        jobs[i] = (struct sac_preprocess_job){
            .frame = test_frame(cpu, SAC_PIXEL_RGB24, contract->pre.width, contract->pre.height)};
        test_fill((sac_frame *)jobs[i].frame, 0, 255, 0, 255);
    }
    assert_sac_ok(sac_preprocess_run(cpu, &contract->pre, jobs, IMAGES, t));
    assert_sac_ok(sac_tensor_download(t, numbers));
    /* Its boxes, where a frame is as large as the input: those of the frames. */
    for (int i = 0; i < IMAGES; i++) {
        sac_frame *f = (sac_frame *)jobs[i].frame;
        sac_frame_unref(&f);
    }
    sac_tensor_unref(&t);
    sac_device_unref(&cpu);
    return numbers;
}

/* The boxes of a frame as large as the input, whose numbers those are. */
static void boxes_of_inputs(const float *numbers, const struct sac_tensor_desc *desc,
                            const char *model, struct sac_detections *found)
{
    sac_device   *cpu = test_device();
    sac_detector *det = open_detector(cpu, model, 1);
    const int64_t one = 3 * desc->shape[2] * desc->shape[3];
    for (int i = 0; i < IMAGES; i++) {
        struct sac_tensor_desc    single = *desc;
        struct sac_picture_params params = sac_picture_params_default();
        single.shape[0] = 1;
        params.prepared = 1;
        sac_tensor *t = upload(cpu, &single, numbers + i * one);
        assert_sac_ok(sac_detector_run_tensor(det, t, &params, &found[i]));
        sac_tensor_unref(&t);
    }
    sac_detector_destroy(&det);
    sac_device_unref(&cpu);
}

static void check_prepared(sac_device *dev, const char *model, int batch, int streams)
{
    struct sac_detections     want[IMAGES] = {{0}}, got[IMAGES] = {{0}};
    struct sac_picture_params params = sac_picture_params_default();
    struct sac_tensor_desc    desc;
    sac_detector             *det = open_detector(dev, model, batch);
    float                    *numbers = prepared_of(sac_detector_contract(det), &desc);
    sac_tensor               *t = upload(dev, &desc, numbers);
    params.prepared = 1;
    assert_sac_ok(sac_buckets_set_streams(&det->buckets, streams));
    assert_int_equal(sac_buckets_streams(&det->buckets), dev->ops->async ? streams : 1);
    boxes_of_inputs(numbers, &desc, model, want);
    for (int round = 0; round < 3; round++) { /* twice as steps, then as one launch */
        assert_sac_ok(sac_detector_run_tensor(det, t, &params, got));
        compare(want, got);
    }
    sac_tensor_unref(&t);
    free(numbers);
    sac_detector_destroy(&det);
    finish(want);
    finish(got);
}

static void an_input_is_taken_as_it_is(void **state)
{
    (void)state;
    for (int batch = 1; batch <= BATCH; batch += BATCH - 1) { /* with a rest of one, and without */
        sac_device *dev = test_device();
        check_prepared(dev, "yolov8", batch, 2);
        check_prepared(dev, "yolox_raw", batch, 1);
        sac_device_unref(&dev);
        dev = far(NULL);
        check_prepared(dev, "yolov8", batch, 1);
        sac_device_unref(&dev);
        dev = far_async();
        check_prepared(dev, "yolov8", batch, 2);
        sac_device_unref(&dev);
    }
}

/* Two batches under way, on one stream and with streams beside the network's: far's run when they
 * are waited for, so what nothing orders comes in another order. */
static void batches_under_way(sac_device *dev, int streams, const float *numbers,
                              const struct sac_tensor_desc *desc, struct sac_detections *found)
{
    sac_detector          *det = open_detector(dev, "yolov8", BATCH);
    sac_tensor            *t = upload(dev, desc, numbers);
    struct sac_batch_times times;
    assert_sac_ok(sac_buckets_set_streams(&det->buckets, streams));
    assert_sac_ok(sac_detector_warm_up(det));
    for (int round = 0; round < 3; round++) {
        assert_sac_ok(sac_detector_begin_given(det, 0, t, 0, 3));
        assert_sac_ok(sac_detector_begin_given(det, 1, t, 3, 2));
        assert_sac_ok(sac_detector_end(det, 0, found, &times));
        assert_sac_ok(sac_detector_begin_given(det, 0, t, 0, 3));
        assert_sac_ok(sac_detector_end(det, 1, found + 3, &times));
        assert_sac_ok(sac_detector_end(det, 0, found, &times));
    }
    assert_int_equal(sac_buckets_streams(&det->buckets), streams);
    assert_int_equal(det->buckets.before != det->buckets.stream, streams > 1);
    assert_sac_ok(sac_buckets_set_streams(&det->buckets, 3 - streams));
    assert_int_equal(sac_buckets_streams(&det->buckets), 3 - streams);
    sac_tensor_unref(&t);
    sac_detector_destroy(&det);
}

static void inputs_may_have_streams_of_their_own(void **state)
{
    (void)state;
    struct sac_detections  one[IMAGES] = {{0}}, two[IMAGES] = {{0}};
    struct sac_tensor_desc desc;
    sac_device            *dev = far_async();
    sac_detector          *det = open_detector(dev, "yolov8", 1);
    float                 *numbers = prepared_of(sac_detector_contract(det), &desc);
    sac_detector_destroy(&det);
    batches_under_way(dev, 1, numbers, &desc, one);
    batches_under_way(dev, 2, numbers, &desc, two);
    compare(one, two);
    free(numbers);
    finish(one);
    finish(two);
    sac_device_unref(&dev);
}

/* A frame as large as the input has the same boxes, so the way back to its pixels is none. */
static void boxes_are_in_pixels_of_the_input(void **state)
{
    (void)state;
    sac_device                      *dev = test_device();
    sac_detector                    *det = open_detector(dev, "yolov8", 1);
    const struct sac_model_contract *contract = sac_detector_contract(det);
    struct sac_picture_params        params = sac_picture_params_default();
    struct sac_detections            want = {0}, got = {0};
    struct sac_tensor_desc desc = {SAC_F32, 4, {1, 3, contract->pre.height, contract->pre.width}};
    sac_frame *frame = test_frame(dev, SAC_PIXEL_RGB24, contract->pre.width, contract->pre.height);
    struct sac_preprocess_job job = {.frame = frame};
    sac_tensor               *t = NULL;
    test_fill(frame, 0, 255, 0, 255);
    assert_sac_ok(sac_detector_run(det, &frame, 1, &want));
    assert_sac_ok(sac_tensor_create(dev, &desc, "input", &t));
    assert_sac_ok(sac_preprocess_run(dev, &contract->pre, &job, 1, t));
    params.prepared = 1;
    assert_sac_ok(sac_detector_run_tensor(det, t, &params, &got));
    assert_true(want.count > 0 && want.count == got.count);
    assert_memory_equal(want.items, got.items, want.count * sizeof *want.items);
    sac_tensor_unref(&t);
    sac_frame_unref(&frame);
    sac_detections_finish(&want);
    sac_detections_finish(&got);
    sac_detector_destroy(&det);
    sac_device_unref(&dev);
}

static void says_what_an_input_would_be(void **state)
{
    (void)state;
    sac_device               *dev = test_device();
    sac_detector             *det = open_detector(dev, "yolov8", 1);
    struct sac_picture_params params = sac_picture_params_default();
    struct sac_detections     found = {0};
    struct sac_tensor_desc    desc = {SAC_F32, 4, {1, 3, 10, 10}};
    sac_tensor               *t = NULL;
    char                      why[512];
    assert_sac_ok(sac_tensor_create(dev, &desc, "input", &t));
    params.prepared = 1;
    assert_sac_error(sac_detector_run_tensor(det, t, &params, &found), SAC_ERR_ARG);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "float32 [1,3,10,10] on cpu; wanted float32 [?,3,"));
    sac_tensor_unref(&t);
    desc = (struct sac_tensor_desc){SAC_I32, 3, {3, 10, 10}};
    assert_sac_ok(sac_tensor_create(dev, &desc, "input", &t));
    assert_sac_error(sac_detector_run_tensor(det, t, NULL, &found), SAC_ERR_ARG);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "int32 [3,10,10], as a picture: have [H,W]"));
    assert_sac_error(sac_detector_run_tensor(det, NULL, NULL, &found), SAC_ERR_ARG);
    assert_sac_error(sac_detector_run_tensor(NULL, t, NULL, &found), SAC_ERR_ARG);
    assert_sac_error(sac_detector_run_tensor(det, t, NULL, NULL), SAC_ERR_ARG);
    sac_tensor_unref(&t);
    sac_detector_destroy(&det);
    sac_device_unref(&dev);
}

/* Of each device, so that kernels lie below the stage that queued them. */
static void stages_are_ranges_for_a_profiler(void **state)
{
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        struct sac_detections found[IMAGES] = {{0}};
        sac_device           *dev = turn ? far(NULL) : test_device();
        sac_detector         *det = open_detector(dev, "yolov8", BATCH);
        sac_tensor           *t =
            upload(dev, &(struct sac_tensor_desc){SAC_U8, 4, {IMAGES, HEIGHT, WIDTH, 3}}, pixels);
        assert_sac_ok(sac_detector_run_tensor(det, t, NULL, found)); /* plans */
        test_ranges_watch(true);
        assert_sac_ok(sac_detector_run_tensor(det, t, NULL, found));
        assert_non_null(strstr(test_ranges, "+preprocess-+inference-+head-"));
        test_ranges_watch(false);
        sac_tensor_unref(&t);
        sac_detector_destroy(&det);
        finish(found);
        sac_device_unref(&dev);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_have_the_boxes_of_frames),
        cmocka_unit_test(inputs_may_have_streams_of_their_own),
        cmocka_unit_test(an_input_is_taken_as_it_is),
        cmocka_unit_test(boxes_are_in_pixels_of_the_input),
        cmocka_unit_test(says_what_an_input_would_be),
        cmocka_unit_test(stages_are_ranges_for_a_profiler),
    };
    return cmocka_run_group_tests_name("heads/detector_tensor", tests, NULL, NULL);
}
