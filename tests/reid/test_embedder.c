/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/device.h"
#include "heads/heads.h"
#include "tests/ranges.h"
#include "tests/test.h"

static sac_device *device(void)
{
    sac_device *dev = NULL;
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &dev));
    return dev;
}

/* Upper half one colour, lower half another, so that crops differ. */
static sac_frame *picture(sac_device *dev)
{
    sac_frame *f = NULL;
    sac_frame  desc = {.format = SAC_PIXEL_RGB24, .width = 200, .height = 300};
    assert_sac_ok(sac_frame_create(dev, &desc, &f));
    for (int y = 0; y < 300; y++)
        for (int x = 0; x < 200; x++) {
            uint8_t *p = f->plane[0] + (size_t)y * f->pitch_bytes[0] + 3 * x;
            p[0] = (uint8_t)(y < 150 ? 200 : 30);
            p[1] = (uint8_t)(x % 64);
            p[2] = (uint8_t)(y < 150 ? 20 : 180);
        }
    return f;
}

static float dot(const float *a, const float *b, int n)
{
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void rows_have_length_one(void **state)
{
    (void)state;
    sac_device                *dev = device();
    sac_frame                 *frame = picture(dev);
    sac_embedder              *emb = NULL;
    struct sac_embedder_params params = {.batch_max = 2};
    struct sac_detection       boxes[5] = {{10, 10, 50, 100, 1, 0},
                                           {-40, -40, 20, 20, 1, 0},
                                           {5, 5, 5, 5, 1, 0},
                                           {150, 200, 900, 900, 1, 0},
                                           {0, 0, 200, 300, 1, 0}};
    float                      rows[5 * 16], length = 0;
    assert_sac_ok(sac_embedder_create(dev, TEST_HEADS_DIR "/embedding_nchw.onnx", &params, &emb));
    assert_int_equal(sac_embedder_dim(emb), 16);
    assert_int_equal(sac_embedder_contract(emb)->pre.order, SAC_ORDER_RGB);
    test_ranges_watch(true);
    assert_sac_ok(sac_embedder_run(emb, frame, boxes, 5, rows));
    assert_string_equal(test_ranges, "+preprocess-+inference-+head-+preprocess-+inference-+head-"
                                     "+preprocess-+inference-+head-"); /* in twos */
    test_ranges_watch(false);
    for (int i = 0; i < 16; i++)
        length += (float)((i - 5) * (i - 5));
    for (int r = 0; r < 5; r++) {
        assert_float_equal(dot(rows + 16 * r, rows + 16 * r, 16), 1, 1e-5);
        for (int i = 0; i < 16; i++) /* make.py: the row is -5, -4, ... */
            assert_float_equal(rows[16 * r + i], (float)(i - 5) / sqrtf(length), 1e-5);
    }
    assert_sac_ok(sac_embedder_run(emb, frame, NULL, 0, NULL));
    sac_embedder_destroy(&emb);
    sac_frame_unref(&frame);
    sac_device_unref(&dev);
}

/* The rows that stay on the device are those that are copied to the host. */
static void rows_stay_on_the_device(void **state)
{
    (void)state;
    sac_device                *dev = device();
    sac_frame                 *frame = picture(dev);
    sac_embedder              *emb = NULL;
    sac_tensor                *t = NULL;
    struct sac_embedder_params params = {.batch_max = 2};
    struct sac_detection       boxes[3] = {
              {10, 10, 50, 100, 1, 0}, {-40, -40, 20, 20, 1, 0}, {150, 200, 900, 900, 1, 0}};
    float rows[3 * 16], got[3 * 16];
    assert_sac_ok(sac_embedder_create(dev, TEST_HEADS_DIR "/embedding_nchw.onnx", &params, &emb));
    assert_sac_ok(sac_embedder_run(emb, frame, boxes, 3, rows));
    assert_sac_ok(sac_embedder_run_tensor(emb, frame, boxes, 3, &t));
    const struct sac_tensor_spec want = {dev, SAC_F32, 2, {3, 16}, 0};
    assert_sac_ok(sac_tensor_check(test_context(), "rows", t, &want));
    sac_embedder_destroy(&emb); /* they outlive it */
    assert_sac_ok(sac_tensor_download(t, got));
    assert_memory_equal(rows, got, sizeof rows);
    sac_tensor_unref(&t);
    assert_sac_ok(sac_embedder_create(dev, TEST_HEADS_DIR "/embedding_nchw.onnx", &params, &emb));
    assert_sac_ok(sac_embedder_run_tensor(emb, frame, NULL, 0, &t));
    assert_int_equal(sac_tensor_describe(t)->shape[0], 0);
    sac_tensor_unref(&t);
    assert_sac_error(sac_embedder_run_tensor(emb, frame, NULL, 1, &t), SAC_ERR_ARG);
    assert_sac_error(sac_embedder_run_tensor(emb, NULL, boxes, 1, &t), SAC_ERR_ARG);
    assert_null(t);
    sac_embedder_destroy(&emb);
    sac_frame_unref(&frame);
    sac_device_unref(&dev);
}

static void channels_last_means_bgr_bytes(void **state)
{
    (void)state;
    sac_device   *dev = device();
    sac_embedder *emb = NULL;
    assert_sac_ok(sac_embedder_create(dev, TEST_HEADS_DIR "/embedding_nhwc.onnx", NULL, &emb));
    const struct sac_preprocess *pre = &sac_embedder_contract(emb)->pre;
    assert_int_equal(pre->layout, SAC_TENSOR_LAYOUT_NHWC);
    assert_int_equal(pre->order, SAC_ORDER_BGR);
    assert_int_equal(pre->width, 16);
    assert_int_equal(pre->height, 32);
    assert_float_equal(pre->scale[0], 1, 0);
    sac_embedder_destroy(&emb);
    struct sac_embedder_params params = sac_embedder_params_default();
    params.preprocess = "rgb,scale=1/255";
    assert_sac_ok(sac_embedder_create(dev, TEST_HEADS_DIR "/embedding_nhwc.onnx", &params, &emb));
    assert_int_equal(sac_embedder_contract(emb)->pre.order, SAC_ORDER_RGB);
    sac_embedder_destroy(&emb);
    sac_device_unref(&dev);
}

static void refuses_detectors_and_nonsense(void **state)
{
    (void)state;
    sac_device                *dev = device();
    sac_embedder              *emb = NULL;
    struct sac_embedder_params params = {.batch_max = 0};
    assert_sac_error(sac_embedder_create(dev, TEST_HEADS_DIR "/yolov8.onnx", NULL, &emb),
                     SAC_ERR_UNSUPPORTED);
    assert_sac_error(sac_embedder_create(dev, TEST_HEADS_DIR "/embedding_nchw.onnx", &params, &emb),
                     SAC_ERR_ARG);
    params = (struct sac_embedder_params){"size=8x8", 4};
    assert_sac_error(sac_embedder_create(dev, TEST_HEADS_DIR "/embedding_nchw.onnx", &params, &emb),
                     SAC_ERR_ARG);
    assert_null(emb);
    sac_device_unref(&dev);
}

/* The real network: one by one and in batches must agree, equal crops be alike, others less so. */
static void the_real_network_tells_crops_apart(void **state)
{
    (void)state;
    const char *shared = getenv("SACCADE_SHARED");
    char        path[512];
    snprintf(path, sizeof path, "%s/data/models/person_reid_0288.onnx",
             shared ? shared : TEST_SHARED);
    FILE *file = fopen(path, "rb");
    if (!file) {
        print_message("needs %s\n", path);
        skip();
    }
    fclose(file);
    sac_device                *dev = device();
    sac_frame                 *frame = picture(dev);
    sac_embedder              *single = NULL, *batched = NULL;
    struct sac_embedder_params one = {.batch_max = 1}, three = {.batch_max = 3};
    struct sac_detection       boxes[4] = {{20, 10, 90, 140, 1, 0},
                                           {20, 10, 90, 140, 1, 0},
                                           {20, 160, 90, 290, 1, 0},
                                           {22, 12, 92, 141, 1, 0}};
    static float               a[4 * 256], b[4 * 256];
    assert_sac_ok(sac_embedder_create(dev, path, &one, &single));
    assert_sac_ok(sac_embedder_create(dev, path, &three, &batched));
    assert_int_equal(sac_embedder_dim(single), 256);
    assert_sac_ok(sac_embedder_run(single, frame, boxes, 4, a));
    assert_sac_ok(sac_embedder_run(batched, frame, boxes, 4, b));
    for (int i = 0; i < 4 * 256; i++)
        assert_float_equal(a[i], b[i], 1e-3);
    assert_float_equal(dot(a, a + 256, 256), 1, 1e-4);
    float other = dot(a, a + 512, 256), near = dot(a, a + 768, 256);
    print_message("cosine with the shifted crop %.3f, with the other half %.3f\n", (double)near,
                  (double)other);
    assert_true(near > other + 0.05f);
    sac_embedder_destroy(&single);
    sac_embedder_destroy(&batched);
    sac_frame_unref(&frame);
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_have_length_one),
        cmocka_unit_test(rows_stay_on_the_device),
        cmocka_unit_test(channels_last_means_bgr_bytes),
        cmocka_unit_test(refuses_detectors_and_nonsense),
        cmocka_unit_test(the_real_network_tells_crops_apart),
    };
    return cmocka_run_group_tests_name("reid/embedder", tests, NULL, NULL);
}
