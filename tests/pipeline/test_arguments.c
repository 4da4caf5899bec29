/* SPDX-License-Identifier: Apache-2.0 */
/* A caller's mistakes: NULL where a pointer is required, NaN and numbers out of range. Every public
 * function that takes a pointer has its line here (test_arguments.py counts them); none may crash,
 * and each error has a sentence. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <saccade/saccade.h>

#include "base/base.h"
#include "tests/test.h"

static sac_context *ctx;
static sac_device  *dev;

/* The sentence names the function, so that a log tells whose call it was. */
#define REFUSED(call)                                                     \
    do {                                                                  \
        char why_[256];                                                   \
        sac_error_clear(ctx);                                             \
        const sac_result res_ = (call);                                   \
        sac_context_last_error(ctx, why_, sizeof why_);                   \
        if (res_ != SAC_ERR_ARG || !why_[0])                              \
            fail_msg("%s: %s: '%s'", #call, sac_result_name(res_), why_); \
    } while (0)
/* Where no context can be reached, there is no place for a sentence. */
#define REFUSED_SILENTLY(call)                                \
    do {                                                      \
        const sac_result res_ = (call);                       \
        if (res_ != SAC_ERR_ARG)                              \
            fail_msg("%s: %s", #call, sac_result_name(res_)); \
    } while (0)

static const struct sac_tensor_desc numbers = {.dtype = SAC_F32, .rank = 2, .shape = {2, 3}};
static const sac_frame              grey = {.format = SAC_PIXEL_GRAY8, .width = 8, .height = 8};

static sac_tensor *some_tensor(void)
{
    sac_tensor *t = NULL;
    assert_sac_ok(sac_tensor_create(dev, &numbers, "test", &t));
    return t;
}

static sac_frame *some_frame(void)
{
    sac_frame *f = NULL;
    assert_sac_ok(sac_frame_create(dev, &grey, &f));
    return f;
}

static void contexts_and_texts(void **state)
{
    (void)state;
    char buf[8];
    REFUSED_SILENTLY(sac_context_create(NULL, NULL));
    sac_context_destroy(NULL);
    sac_context_set_log_level(NULL, SAC_LOG_INFO);
    assert_int_equal(sac_context_last_error(NULL, buf, sizeof buf), 0);
    sac_context_last_error(ctx, NULL, 8);
    assert_int_equal(sac_hide_secrets(NULL, buf, sizeof buf), 0);
    assert_int_equal(sac_hide_secrets("abc", NULL, 8), 3);
    REFUSED_SILENTLY(sac_labels_parse(NULL, &(unsigned){0}));
    REFUSED_SILENTLY(sac_labels_parse("id", NULL));
    REFUSED_SILENTLY(sac_precision_parse(NULL, &(enum sac_precision){0}));
    REFUSED_SILENTLY(sac_precision_parse("fp16", NULL));
    REFUSED_SILENTLY(sac_tracker_kind_parse(NULL, &(enum sac_tracker_kind){0}));
    REFUSED_SILENTLY(sac_tracker_kind_parse("sort", NULL));
    sac_doctor_run(ctx, NULL, NULL);
    sac_models_list(NULL, NULL);
    sac_head_list(NULL, NULL);
    sac_tracker_list(NULL, NULL);
    REFUSED(sac_models_find(ctx, NULL, buf, sizeof buf));
    REFUSED(sac_models_find(ctx, "person_det", NULL, 8));
    REFUSED(sac_files_check(ctx, NULL, 1, NULL, 0));
    REFUSED(sac_files_check(ctx, NULL, 0, NULL, 1));
    assert_int_equal(sac_text_width(NULL, 10), 0);
}

static void devices(void **state)
{
    (void)state;
    sac_device              *none = NULL;
    struct sac_device_params params = sac_device_params_default();
    struct sac_pool_stats    pool;
    struct sac_ledger        ledger;
    struct sac_device_memory memory;
    REFUSED(sac_device_open(ctx, NULL, NULL, &none));
    REFUSED(sac_device_open(ctx, "cpu", NULL, NULL));
    REFUSED_SILENTLY(sac_device_open(NULL, "cpu", NULL, &none));
    params.threads = -3;
    REFUSED(sac_device_open(ctx, "cpu", &params, &none));
    params.threads = 1 << 30;
    REFUSED(sac_device_open(ctx, "cpu", &params, &none));
    assert_null(sac_device_ref(NULL));
    sac_device_unref(NULL);
    sac_device_unref(&none);
    assert_null(sac_device_name(NULL));
    assert_null(sac_device_description(NULL));
    assert_null(sac_device_context(NULL));
    assert_int_equal(sac_device_threads(NULL), 0);
    REFUSED_SILENTLY(sac_device_wait(NULL));
    sac_device_pool_stats(NULL, &pool);
    sac_device_pool_stats(dev, NULL);
    sac_device_host_pool_stats(NULL, &pool);
    sac_device_host_pool_stats(dev, NULL);
    sac_device_ledger(NULL, &ledger);
    sac_device_ledger(dev, NULL);
    sac_device_dump_live(NULL, NULL, NULL);
    sac_device_dump_live(dev, NULL, NULL);
    struct sac_allocation held;
    assert_int_equal(sac_device_get_allocations(NULL, &held, 1), 0);
    assert_int_equal(sac_device_get_allocations(dev, NULL, 1), 0);
    assert_int_equal(sac_device_get_allocations(dev, &held, 0), 0);
    REFUSED_SILENTLY(sac_device_get_memory(NULL, &memory));
    REFUSED(sac_device_get_memory(dev, NULL));
    sac_device_trim(NULL);
}

static void tensors(void **state)
{
    (void)state;
    float                  data[6] = {0};
    sac_tensor            *t = some_tensor(), *none = NULL;
    struct sac_tensor_spec spec = {0};
    assert_int_equal(sac_tensor_desc_elements(NULL), -1);
    assert_int_equal(sac_tensor_desc_bytes(NULL), -1);
    REFUSED_SILENTLY(sac_tensor_create(NULL, &numbers, "a", &none));
    REFUSED(sac_tensor_create(dev, NULL, "a", &none));
    REFUSED(sac_tensor_create(dev, &numbers, "a", NULL));
    REFUSED_SILENTLY(sac_tensor_wrap(NULL, &numbers, data, NULL, NULL, &none));
    REFUSED(sac_tensor_wrap(dev, NULL, data, NULL, NULL, &none));
    REFUSED(sac_tensor_wrap(dev, &numbers, NULL, NULL, NULL, &none));
    REFUSED(sac_tensor_wrap(dev, &numbers, data, NULL, NULL, NULL));
    REFUSED_SILENTLY(sac_tensor_view(NULL, 0, &numbers, &none));
    REFUSED(sac_tensor_view(t, 0, NULL, &none));
    REFUSED(sac_tensor_view(t, 0, &numbers, NULL));
    assert_null(sac_tensor_ref(NULL));
    sac_tensor_unref(NULL);
    assert_null(sac_tensor_describe(NULL));
    assert_null(sac_tensor_data(NULL));
    assert_null(sac_tensor_device(NULL));
    REFUSED_SILENTLY(sac_tensor_upload(NULL, data));
    REFUSED(sac_tensor_upload(t, NULL));
    REFUSED_SILENTLY(sac_tensor_download(NULL, data));
    REFUSED(sac_tensor_download(t, NULL));
    REFUSED(sac_tensor_check(ctx, NULL, t, &spec));
    REFUSED(sac_tensor_check(ctx, "x", NULL, &spec));
    REFUSED(sac_tensor_check(ctx, "x", t, NULL));
    REFUSED_SILENTLY(sac_tensor_load_npy(NULL, "x.npy", &none));
    REFUSED(sac_tensor_load_npy(dev, NULL, &none));
    REFUSED(sac_tensor_load_npy(dev, "x.npy", NULL));
    REFUSED_SILENTLY(sac_tensor_save_npy(NULL, "x.npy"));
    REFUSED(sac_tensor_save_npy(t, NULL));
    assert_null(none);
    sac_tensor_unref(&t);
}

static void tensors_of_others(void **state)
{
    (void)state;
    sac_tensor                      *t = some_tensor(), *none = NULL;
    sac_frame                       *frame = NULL;
    struct sac_tensor_spec           spec = {0};
    struct DLManagedTensor          *plain = NULL;
    struct DLManagedTensorVersioned *versioned = NULL;
    assert_sac_ok(sac_tensor_to_dlpack(t, &plain));
    assert_sac_ok(sac_tensor_to_dlpack_versioned(t, &versioned));
    REFUSED_SILENTLY(sac_tensor_from_dlpack(NULL, plain, &none));
    REFUSED(sac_tensor_from_dlpack(dev, NULL, &none));
    REFUSED(sac_tensor_from_dlpack(dev, plain, NULL));
    REFUSED_SILENTLY(sac_tensor_from_dlpack_versioned(NULL, versioned, &none));
    REFUSED(sac_tensor_from_dlpack_versioned(dev, NULL, &none));
    REFUSED(sac_tensor_from_dlpack_versioned(dev, versioned, NULL));
    REFUSED_SILENTLY(sac_tensor_to_dlpack(NULL, &plain));
    REFUSED(sac_tensor_to_dlpack(t, NULL));
    REFUSED_SILENTLY(sac_tensor_to_dlpack_versioned(NULL, &versioned));
    REFUSED(sac_tensor_to_dlpack_versioned(t, NULL));
    assert_sac_ok(sac_tensor_from_dlpack(dev, plain, &none)); /* which ends both */
    sac_tensor_unref(&none);
    assert_sac_ok(sac_tensor_from_dlpack_versioned(dev, versioned, &none));
    sac_tensor_unref(&none);
    REFUSED_SILENTLY(sac_tensor_written_on(NULL, NULL));
    REFUSED_SILENTLY(sac_tensor_written_at(NULL, NULL));
    REFUSED_SILENTLY(sac_tensor_ready_on(NULL, NULL));
    REFUSED(sac_tensor_admit(ctx, NULL, t, &spec, NULL, &none));
    REFUSED(sac_tensor_admit(ctx, "x", NULL, &spec, NULL, &none));
    REFUSED(sac_tensor_admit(ctx, "x", t, NULL, NULL, &none));
    REFUSED(sac_tensor_admit(ctx, "x", t, &spec, NULL, NULL));
    assert_int_equal(sac_picture_count(NULL, NULL), 0);
    REFUSED_SILENTLY(sac_frame_from_tensor(NULL, 0, NULL, &frame));
    REFUSED(sac_frame_from_tensor(t, 0, NULL, NULL));
    REFUSED(sac_frame_from_tensor(t, -1, NULL, &frame));
    assert_null(frame);
    sac_tensor_unref(&t);
}

static void frames(void **state)
{
    (void)state;
    sac_frame  *f = some_frame(), *none = NULL;
    sac_frame   bare = grey; /* made by nobody: without an owner and a device */
    sac_tensor *plane = NULL;
    REFUSED_SILENTLY(sac_frame_create(NULL, &grey, &none));
    REFUSED(sac_frame_create(dev, NULL, &none));
    REFUSED(sac_frame_create(dev, &grey, NULL));
    REFUSED_SILENTLY(sac_frame_wrap(NULL, f, NULL, NULL, &none));
    REFUSED(sac_frame_wrap(dev, NULL, NULL, NULL, &none));
    REFUSED(sac_frame_wrap(dev, f, NULL, NULL, NULL));
    REFUSED(sac_frame_wrap(dev, &grey, NULL, NULL, &none));
    assert_null(sac_frame_ref(NULL));
    assert_null(sac_frame_ref(&bare));
    sac_frame_unref(NULL);
    assert_false(sac_frame_is_writable(NULL));
    assert_false(sac_frame_is_writable(&bare));
    REFUSED_SILENTLY(sac_frame_wait(NULL));
    REFUSED_SILENTLY(sac_frame_plane_tensor(NULL, 0, &plane));
    REFUSED_SILENTLY(sac_frame_plane_tensor(&bare, 0, &plane));
    REFUSED(sac_frame_plane_tensor(f, 0, NULL));
    REFUSED(sac_frame_copy(NULL, f));
    REFUSED(sac_frame_copy(f, NULL));
    REFUSED(sac_frame_copy(&bare, f));
    REFUSED(sac_frame_copy(f, &bare));
    REFUSED(sac_frame_convert(NULL, SAC_FILTER_BILINEAR, f));
    REFUSED(sac_frame_convert(f, SAC_FILTER_BILINEAR, NULL));
    REFUSED(sac_frame_convert(&bare, SAC_FILTER_BILINEAR, f));
    REFUSED(sac_frame_convert(f, SAC_FILTER_BILINEAR, &bare));
    REFUSED_SILENTLY(sac_frame_draw(NULL, NULL, 0));
    REFUSED_SILENTLY(sac_frame_draw(&bare, NULL, 0));
    REFUSED(sac_frame_draw(f, NULL, 2));
    assert_null(none);
    sac_frame_unref(&f);
}

static void preprocessing(void **state)
{
    (void)state;
    sac_frame                      *f = some_frame();
    sac_frame                       bare = grey;
    sac_tensor                     *dst = NULL;
    struct sac_preprocess           pre = sac_preprocess_default();
    const struct sac_tensor_desc    desc = {.dtype = SAC_F32, .rank = 4, .shape = {1, 3, 4, 4}};
    const struct sac_preprocess_job job = {.frame = f}, lost = {.frame = NULL},
                                    foreign = {.frame = &bare};
    struct sac_preprocess_job far = {.frame = f, .crop = {0, 0, NAN, 4}};
    pre.width = pre.height = 4;
    assert_sac_ok(sac_tensor_create(dev, &desc, "images", &dst));
    assert_sac_ok(sac_preprocess_run(dev, &pre, &job, 1, dst));
    REFUSED_SILENTLY(sac_preprocess_run(NULL, &pre, &job, 1, dst));
    REFUSED(sac_preprocess_run(dev, NULL, &job, 1, dst));
    REFUSED(sac_preprocess_run(dev, &pre, NULL, 1, dst));
    REFUSED(sac_preprocess_run(dev, &pre, &job, 1, NULL));
    REFUSED(sac_preprocess_run(dev, &pre, &lost, 1, dst));
    REFUSED(sac_preprocess_run(dev, &pre, &foreign, 1, dst));
    REFUSED(sac_preprocess_run(dev, &pre, &far, 1, dst));
    pre.mean[1] = NAN;
    REFUSED(sac_preprocess_run(dev, &pre, &job, 1, dst));
    pre.mean[1] = 0;
    pre.fit = (enum sac_fit)99;
    REFUSED(sac_preprocess_run(dev, &pre, &job, 1, dst));
    sac_fit_map_of(NULL, &(struct sac_rect){0, 0, 1, 1});
    sac_fit_map_of(&pre, NULL);
    sac_tensor_unref(&dst);
    sac_frame_unref(&f);
}

static void models(void **state)
{
    (void)state;
    const char               *path = TEST_HEADS "/yolov8.onnx";
    sac_model                *m = NULL, *none = NULL;
    sac_tensor               *out[8] = {NULL}, *in[1] = {NULL};
    struct sac_model_info     info;
    struct sac_model_times    times;
    struct sac_device_rates   rates;
    struct sac_model_contract contract = {0};
    assert_sac_ok(sac_model_load(dev, path, NULL, &m));
    REFUSED_SILENTLY(sac_model_load(NULL, path, NULL, &none));
    REFUSED(sac_model_load(dev, NULL, NULL, &none));
    REFUSED(sac_model_load(dev, path, NULL, NULL));
    REFUSED_SILENTLY(sac_model_open_for_inspection(NULL, path, NULL, &none));
    REFUSED(sac_model_open_for_inspection(dev, NULL, NULL, &none));
    REFUSED(sac_model_open_for_inspection(dev, path, NULL, NULL));
    REFUSED_SILENTLY(sac_model_load_memory(NULL, "x", 1, "x", NULL, &none));
    REFUSED(sac_model_load_memory(dev, NULL, 1, "x", NULL, &none));
    REFUSED(sac_model_load_memory(dev, "x", 1, NULL, NULL, &none));
    REFUSED(sac_model_load_memory(dev, "x", 1, "x", NULL, NULL));
    assert_null(sac_model_ref(NULL));
    sac_model_unref(NULL);
    assert_int_equal(sac_model_input_count(NULL), 0);
    assert_int_equal(sac_model_output_count(NULL), 0);
    assert_null(sac_model_input(NULL, 0));
    assert_null(sac_model_output(NULL, 0));
    assert_null(sac_model_input(m, 99));
    assert_null(sac_model_output(m, -1));
    assert_int_equal(sac_model_batches(NULL), 0);
    REFUSED_SILENTLY(sac_model_run(NULL, in, out));
    REFUSED(sac_model_run(m, NULL, out));
    REFUSED(sac_model_run(m, in, NULL));
    REFUSED(sac_model_run(m, in, out));
    REFUSED_SILENTLY(sac_model_queue(NULL, in, out));
    REFUSED(sac_model_queue(m, NULL, out));
    REFUSED(sac_model_queue(m, in, NULL));
    REFUSED(sac_model_queue(m, in, out));
    assert_null(sac_model_metadata(NULL, "a"));
    assert_null(sac_model_metadata(m, NULL));
    assert_null(sac_model_path(NULL));
    assert_null(sac_model_file(NULL, 0));
    assert_null(sac_model_device(NULL));
    assert_int_equal(sac_model_precision(NULL), SAC_PRECISION_DEFAULT);
    REFUSED_SILENTLY(sac_model_build(NULL, path, NULL, "x.plan", NULL, NULL));
    REFUSED(sac_model_build(dev, NULL, NULL, "x.plan", NULL, NULL));
    REFUSED(sac_model_build(dev, path, NULL, NULL, NULL, NULL));
    sac_model_inspect(NULL, &info);
    sac_model_inspect(m, NULL);
    sac_model_dump_steps(NULL, NULL, NULL);
    sac_model_dump_steps(m, NULL, NULL);
    sac_model_profile(NULL, 1);
    sac_model_list_steps(NULL, NULL, NULL);
    sac_model_list_steps(m, NULL, NULL);
    REFUSED_SILENTLY(sac_model_time(NULL, in, 0.01, &times));
    REFUSED(sac_model_time(m, NULL, 0.01, &times));
    REFUSED(sac_model_time(m, in, 0.01, &times));
    REFUSED(sac_model_time(m, in, 0.01, NULL));
    REFUSED_SILENTLY(sac_device_measure(NULL, SAC_PRECISION_DEFAULT, &rates));
    REFUSED(sac_device_measure(dev, SAC_PRECISION_DEFAULT, NULL));
    assert_null(sac_head_recognise(NULL));
    assert_null(sac_head_prototypes(NULL));
    REFUSED_SILENTLY(sac_model_contract_read(NULL, NULL, &contract));
    REFUSED(sac_model_contract_read(m, NULL, NULL));
    sac_model_contract_finish(NULL);
    sac_model_unref(&m);
}

static void calibrations(void **state)
{
    (void)state;
    struct sac_calibration_params params = sac_calibration_params_default();
    sac_calibration              *none = NULL;
    REFUSED_SILENTLY(sac_calibration_method_parse(NULL, &(enum sac_calibration_method){0}));
    REFUSED_SILENTLY(sac_calibration_method_parse("entropy", NULL));
    REFUSED_SILENTLY(sac_calibration_open(NULL, "pictures", NULL, &none));
    REFUSED(sac_calibration_open(ctx, NULL, NULL, &none));
    REFUSED(sac_calibration_open(ctx, "pictures", NULL, NULL));
    params.sample_max = 0;
    assert_int_equal(sac_calibration_open(ctx, "pictures", &params, &none), SAC_ERR_ARG);
    params = sac_calibration_params_default();
    params.reserved[3] = 1;
    assert_int_equal(sac_calibration_open(ctx, "pictures", &params, &none), SAC_ERR_ARG);
    assert_null(none);
    sac_calibration_close(NULL);
    sac_calibration_close(&none);
}

static void detectors(void **state)
{
    (void)state;
    const char                *path = TEST_HEADS "/yolov8.onnx";
    struct sac_detector_params params = sac_detector_params_default();
    struct sac_detections      found = {0};
    struct sac_run_times       times;
    char                       text[32];
    sac_tensor                *t = some_tensor();
    sac_detector              *det = NULL, *none = NULL;
    sac_frame                 *lost = NULL, *f = some_frame();
    assert_sac_ok(sac_detector_create(dev, path, NULL, &det));
    REFUSED_SILENTLY(sac_detector_create(NULL, path, NULL, &none));
    REFUSED(sac_detector_create(dev, NULL, NULL, &none));
    REFUSED(sac_detector_create(dev, path, NULL, NULL));
    params.score_min = NAN;
    REFUSED(sac_detector_create(dev, path, &params, &none));
    params = sac_detector_params_default();
    params.nms_iou = -INFINITY;
    REFUSED(sac_detector_create(dev, path, &params, &none));
    params = sac_detector_params_default();
    params.batch_max = INT32_MIN;
    REFUSED(sac_detector_create(dev, path, &params, &none));
    REFUSED_SILENTLY(sac_detector_run(NULL, &f, 1, &found));
    REFUSED(sac_detector_run(det, NULL, 1, &found));
    REFUSED(sac_detector_run(det, &f, 1, NULL));
    REFUSED(sac_detector_run(det, &lost, 1, &found));
    REFUSED_SILENTLY(sac_detector_run_tensor(NULL, t, NULL, &found));
    REFUSED(sac_detector_run_tensor(det, NULL, NULL, &found));
    REFUSED(sac_detector_run_tensor(det, t, NULL, NULL));
    sac_detector_get_times(NULL, &times);
    sac_detector_get_times(det, NULL);
    assert_string_equal(sac_detector_class_name(NULL, 0), "unknown");
    assert_string_equal(sac_detector_class_name(det, -1), "unknown");
    assert_int_equal(sac_detector_kept_classes(NULL), 0);
    sac_detector_describe_classes(NULL, text, sizeof text);
    sac_detector_describe_classes(det, NULL, 8);
    assert_int_equal(sac_detector_keeps_only(NULL, "person"), 0);
    assert_int_equal(sac_detector_keeps_only(det, NULL), 0);
    assert_null(sac_detector_head_name(NULL));
    assert_null(sac_detector_contract(NULL));
    assert_null(sac_detector_model(NULL));
    sac_detector_destroy(NULL);
    sac_detections_finish(NULL);
    sac_detections_finish(&found);
    sac_detector_destroy(&det);
    sac_tensor_unref(&t);
    sac_frame_unref(&f);
}

static void segmenters(void **state)
{
    (void)state;
    const char                 *path = TEST_HEADS "/maps_matte.onnx";
    struct sac_segmenter_params params = sac_segmenter_params_default();
    struct sac_run_times        times;
    struct sac_segmenter_info   info;
    sac_segmenter              *seg = NULL, *none = NULL;
    sac_frame                  *lost = NULL, *matte = NULL, *f = some_frame();
    assert_sac_ok(sac_segmenter_create(dev, path, NULL, &seg));
    REFUSED_SILENTLY(sac_segmenter_create(NULL, path, NULL, &none));
    REFUSED(sac_segmenter_create(dev, NULL, NULL, &none));
    REFUSED(sac_segmenter_create(dev, path, NULL, NULL));
    params.smooth = NAN;
    REFUSED(sac_segmenter_create(dev, path, &params, &none));
    params = sac_segmenter_params_default();
    params.hole = INT32_MAX;
    REFUSED(sac_segmenter_create(dev, path, &params, &none));
    REFUSED_SILENTLY(sac_segmenter_run(NULL, &f, 1, &matte));
    REFUSED(sac_segmenter_run(seg, NULL, 1, &matte));
    REFUSED(sac_segmenter_run(seg, &f, 1, NULL));
    REFUSED(sac_segmenter_run(seg, &lost, 1, &matte));
    sac_segmenter_get_times(NULL, &times);
    sac_segmenter_get_times(seg, NULL);
    sac_segmenter_forget(NULL, 0);
    assert_int_equal(sac_segmenter_class_count(NULL), 0);
    assert_string_equal(sac_segmenter_class_name(NULL, 0), "unknown");
    assert_string_equal(sac_segmenter_class_name(seg, -1), "unknown");
    assert_null(sac_segmenter_head_name(NULL));
    assert_null(sac_segmenter_contract(NULL));
    assert_null(sac_segmenter_model(NULL));
    sac_segmenter_inspect(NULL, &info);
    sac_segmenter_inspect(seg, NULL);
    assert_null(sac_segmenter_state_input(NULL, 0));
    assert_null(sac_segmenter_state_output(NULL, 0));
    assert_null(sac_segmenter_state_input(seg, -1));
    assert_int_equal(sac_head_kind_of(NULL), SAC_HEAD_UNKNOWN);
    sac_segmenter_destroy(NULL);
    sac_segmenter_destroy(&seg);
    sac_frame_unref(&f);
}

static void embedders(void **state)
{
    (void)state;
    const char                *path = TEST_HEADS "/embedding_nchw.onnx";
    struct sac_embedder_params params = sac_embedder_params_default();
    struct sac_detection       box = {0, 0, 8, 8, 1, 0};
    struct sac_run_times       times;
    float                      row[4096];
    sac_tensor                *rows = NULL;
    sac_embedder              *emb = NULL, *none = NULL;
    sac_frame                 *f = some_frame();
    assert_sac_ok(sac_embedder_create(dev, path, NULL, &emb));
    REFUSED_SILENTLY(sac_embedder_create(NULL, path, NULL, &none));
    REFUSED(sac_embedder_create(dev, NULL, NULL, &none));
    REFUSED(sac_embedder_create(dev, path, NULL, NULL));
    params.batch_max = -1;
    REFUSED(sac_embedder_create(dev, path, &params, &none));
    REFUSED_SILENTLY(sac_embedder_run(NULL, f, &box, 1, row));
    REFUSED(sac_embedder_run(emb, NULL, &box, 1, row));
    REFUSED(sac_embedder_run(emb, f, NULL, 1, row));
    REFUSED(sac_embedder_run(emb, f, &box, 1, NULL));
    REFUSED_SILENTLY(sac_embedder_run_tensor(NULL, f, &box, 1, &rows));
    REFUSED(sac_embedder_run_tensor(emb, NULL, &box, 1, &rows));
    REFUSED(sac_embedder_run_tensor(emb, f, NULL, 1, &rows));
    REFUSED(sac_embedder_run_tensor(emb, f, &box, 1, NULL));
    assert_int_equal(sac_embedder_dim(NULL), 0);
    sac_embedder_get_times(NULL, &times);
    sac_embedder_get_times(emb, NULL);
    assert_null(sac_embedder_contract(NULL));
    assert_null(sac_embedder_model(NULL));
    sac_embedder_destroy(NULL);
    sac_embedder_destroy(&emb);
    sac_frame_unref(&f);
}

static void trackers(void **state)
{
    (void)state;
    struct sac_detection      box = {0, 0, 8, 8, 1, 0};
    struct sac_track_view     view;
    sac_tracker              *trk = NULL, *none = NULL;
    struct sac_tracker_params params = sac_tracker_params_default(SAC_TRACKER_SORT);
    float *const numbers_of[] = {&params.score_high,       &params.score_low,  &params.score_new,
                                 &params.match_iou,        &params.lost_max_s, &params.confirm_s,
                                 &params.reid_distance_max};
    const float  wrong[] = {NAN, INFINITY, -INFINITY, -1, 1e30f};
    assert_sac_ok(sac_tracker_create(ctx, NULL, &trk));
    REFUSED_SILENTLY(sac_tracker_create(NULL, NULL, &none));
    REFUSED(sac_tracker_create(ctx, NULL, NULL));
    for (size_t i = 0; i < SAC_COUNT(numbers_of); i++)
        for (size_t k = 0; k < SAC_COUNT(wrong); k++) {
            params = sac_tracker_params_default(SAC_TRACKER_SORT);
            *numbers_of[i] = wrong[k];
            REFUSED(sac_tracker_create(ctx, &params, &none));
        }
    params = sac_tracker_params_default(SAC_TRACKER_SORT);
    params.kind = (enum sac_tracker_kind)77;
    REFUSED(sac_tracker_create(ctx, &params, &none));
    REFUSED_SILENTLY(sac_tracker_update(NULL, &box, 1, NULL, NULL, 0, &view));
    REFUSED(sac_tracker_update(trk, NULL, 1, NULL, NULL, 0, &view));
    REFUSED(sac_tracker_update(trk, &box, 1, NULL, NULL, 0, NULL));
    REFUSED_SILENTLY(sac_tracker_update_tensor(NULL, &box, 1, NULL, NULL, NULL, 0, &view));
    REFUSED(sac_tracker_update_tensor(trk, NULL, 1, NULL, NULL, NULL, 0, &view));
    REFUSED(sac_tracker_update_tensor(trk, &box, 1, NULL, NULL, NULL, 0, NULL));
    assert_int_equal(sac_tracker_wants_embeddings(NULL), 0);
    sac_tracker_destroy(NULL);
    sac_tracker_destroy(&trk);
}

static void scores(void **state)
{
    (void)state;
    const struct sac_mot_file none = {0}, lost = {.rows = NULL, .count = 3, .frame_max = 1};
    struct sac_mot_file       file;
    struct sac_mot_seqinfo    info;
    struct sac_eval_result    r;
    REFUSED(sac_mot_read(ctx, NULL, &file));
    REFUSED(sac_mot_read(ctx, "a.txt", NULL));
    REFUSED(sac_mot_read_seqinfo(ctx, NULL, &info));
    REFUSED(sac_mot_read_seqinfo(ctx, "seqinfo.ini", NULL));
    sac_mot_finish(NULL);
    REFUSED(sac_eval_sequence(ctx, NULL, &none, &none, NULL, &r));
    REFUSED(sac_eval_sequence(ctx, "s", NULL, &none, NULL, &r));
    REFUSED(sac_eval_sequence(ctx, "s", &none, NULL, NULL, &r));
    REFUSED(sac_eval_sequence(ctx, "s", &none, &none, NULL, NULL));
    REFUSED(sac_eval_sequence(ctx, "s", &lost, &none, NULL, &r));
    REFUSED(sac_eval_sequence(ctx, "s", &none, &lost, NULL, &r));
    sac_eval_combine(NULL, 3, &r);
    assert_int_equal(r.frames, 0);
    sac_eval_combine(&r, 1, NULL);
}

static void masks_and_their_scores(void **state)
{
    (void)state;
    struct sac_mask_scores scores;
    sac_mask_report       *report = NULL;
    sac_frame             *frame = some_frame();
    size_t                 count = 7;
    REFUSED(sac_mask_score(ctx, NULL, frame, NULL, &scores));
    REFUSED(sac_mask_score(ctx, frame, NULL, NULL, &scores));
    REFUSED(sac_mask_score(ctx, frame, frame, NULL, NULL));
    sac_mask_combine(NULL, 3, &scores);
    assert_int_equal(scores.pictures, 0);
    sac_mask_combine(&scores, 1, NULL);
    REFUSED(sac_mask_evaluate(ctx, "a", NULL, NULL, &report));
    REFUSED(sac_mask_evaluate(ctx, "a", "b", NULL, NULL));
    sac_mask_report_destroy(NULL);
    sac_mask_report_destroy(&report);
    assert_null(sac_mask_report_combined(NULL));
    assert_null(sac_mask_report_list(NULL, SAC_MASK_PICTURES, &count));
    assert_int_equal(count, 0);
    sac_mask_report_list(NULL, SAC_MASK_PICTURES, NULL);
    assert_int_equal(sac_mask_report_missing(NULL).gt, 0);
    sac_frame_unref(&frame);
}

static void sources_and_sinks(void **state)
{
    (void)state;
    struct sac_source_params params = sac_source_params_default();
    struct sac_sink_params   sink_params = sac_sink_params_default();
    struct sac_source_info   info;
    struct sac_source_stats  stats;
    sac_source              *src = NULL;
    sac_sink                *sink = NULL;
    sac_frame               *frame = NULL;
    const double             wrong[] = {NAN, INFINITY, -1, 1e300};
    REFUSED_SILENTLY(sac_source_open(NULL, "a.mp4", NULL, &src));
    REFUSED(sac_source_open(dev, NULL, NULL, &src));
    REFUSED(sac_source_open(dev, "a.mp4", NULL, NULL));
    for (size_t i = 0; i < SAC_COUNT(wrong); i++) {
        params.fps = wrong[i];
        REFUSED(sac_source_open(dev, "a.mp4", &params, &src));
    }
    params = sac_source_params_default();
    params.prefetch = -1;
    REFUSED(sac_source_open(dev, "a.mp4", &params, &src));
    sac_source_close(NULL);
    sac_source_close(&src);
    sac_source_describe(NULL, &info);
    sac_source_get_stats(NULL, &stats);
    assert_int_equal(sac_source_streams(NULL, NULL, 4), 0);
    REFUSED_SILENTLY(sac_source_read_wait(NULL, &frame));
    sac_source_cancel(NULL);
    assert_int_equal(sac_name_is_picture(NULL), 0);
    assert_int_equal(sac_name_is_video(NULL), 0);
    REFUSED(sac_sink_check_path(ctx, NULL));
    REFUSED_SILENTLY(sac_sink_create(NULL, "a.mp4", NULL, NULL, &sink));
    REFUSED(sac_sink_create(dev, NULL, NULL, NULL, &sink));
    REFUSED(sac_sink_create(dev, "a.mp4", NULL, NULL, NULL));
    sink_params.threads = -7;
    REFUSED(sac_sink_create(dev, "a.mp4", NULL, &sink_params, &sink));
    REFUSED(sac_sink_check(ctx, NULL, NULL));
    REFUSED(sac_sink_check(ctx, "a.mp4", &sink_params));
    REFUSED_SILENTLY(sac_sink_write_wait(NULL, frame));
    REFUSED_SILENTLY(sac_sink_write_alpha_wait(NULL, frame, frame));
    REFUSED_SILENTLY(sac_sink_finish(NULL));
    sac_sink_destroy(NULL);
    sac_sink_destroy(&sink);
    assert_null(sac_sink_encoder(NULL));
}

static void timers(void **state)
{
    (void)state;
    sac_timers              *set = NULL;
    struct sac_timer_summary summary;
    REFUSED(sac_timers_create(ctx, NULL));
    assert_sac_ok(sac_timers_create(ctx, &set));
    assert_int_equal(sac_timers_id(NULL, "a"), -1);
    assert_int_equal(sac_timers_id(set, NULL), -1);
    sac_timers_enable(NULL, 1);
    assert_int_equal(sac_timer_begin(NULL), 0);
    sac_timer_end(NULL, 0, 1);
    sac_timer_add(NULL, 0, 1);
    sac_timer_add(set, 99, 1);
    assert_int_equal(sac_timers_summary(NULL, &summary, 1), 0);
    sac_timers_id(set, "a");
    assert_int_equal(sac_timers_summary(set, NULL, 1), 1);
    sac_timers_destroy(NULL);
    sac_timers_destroy(&set);
}

static void servers(void **state)
{
    (void)state;
    struct sac_server_params  params = sac_server_params_default();
    struct sac_request_params request = sac_request_params_default();
    struct sac_server_stats   stats;
    sac_model                *m = NULL;
    sac_server               *server = NULL, *none = NULL;
    sac_tensor               *lost[1] = {NULL};
    sac_frame                *f = some_frame();
    assert_sac_ok(sac_model_load(dev, TEST_HEADS "/embedding_nchw.onnx", NULL, &m));
    REFUSED_SILENTLY(sac_server_create(NULL, &params, &none));
    REFUSED(sac_server_create(m, &params, NULL));
    params.batch_max = -1;
    REFUSED(sac_server_create(m, &params, &none));
    params = sac_server_params_default();
    params.goal_ms = NAN;
    params.goal = SAC_GOAL_LATENCY;
    REFUSED(sac_server_create(m, &params, &none));
    assert_sac_ok(sac_server_create(m, NULL, &server));
    assert_null(sac_server_input(NULL, 0));
    assert_null(sac_server_input(server, -1));
    REFUSED_SILENTLY(sac_server_submit(NULL, lost, NULL, NULL));
    REFUSED(sac_server_submit(server, NULL, NULL, NULL));
    REFUSED(sac_server_submit(server, lost, NULL, NULL));
    REFUSED_SILENTLY(sac_server_submit_frame(NULL, f, NULL, NULL));
    REFUSED(sac_server_submit_frame(server, NULL, NULL, NULL));
    request.priority = INT32_MAX;
    REFUSED(sac_server_submit_frame(server, f, &request, NULL));
    REFUSED_SILENTLY(sac_request_wait(NULL, 0, NULL));
    assert_null(sac_request_ref(NULL));
    sac_request_unref(NULL);
    sac_server_get_stats(NULL, &stats);
    sac_server_get_stats(server, NULL);
    sac_server_end(NULL);
    sac_server_destroy(NULL);
    sac_server_destroy(&none);
    sac_server_destroy(&server);
    sac_model_unref(&m);
    sac_frame_unref(&f);
}

static void monitors(void **state)
{
    (void)state;
    struct sac_monitor_params params = sac_monitor_params_default();
    struct sac_monitor_figure figure;
    struct sac_monitor_event  event;
    sac_monitor              *mon = NULL, *none = NULL;
    REFUSED_SILENTLY(sac_monitor_create(NULL, &params, &none));
    REFUSED(sac_monitor_create(ctx, &params, NULL));
    params.interval_ms = -1;
    REFUSED(sac_monitor_create(ctx, &params, &none));
    assert_sac_ok(sac_monitor_create(ctx, NULL, &mon));
    sac_monitor_format(NAN, NULL, NULL, 8);
    sac_monitor_sample(NULL);
    assert_null(sac_monitor_gpu_name(NULL, 0));
    assert_null(sac_monitor_gpu_name(mon, -1));
    struct sac_monitor_process process;
    assert_int_equal(sac_monitor_get_processes(NULL, 0, &process, 1), 0);
    assert_int_equal(sac_monitor_get_processes(mon, -1, &process, 1), 0);
    assert_int_equal(sac_monitor_get_processes(mon, 0, NULL, 1), 0);
    assert_int_equal(sac_monitor_get_processes(mon, 0, &process, -1), 0);
    assert_int_equal(sac_monitor_figure_count(NULL), 0);
    assert_int_equal(sac_monitor_event_count(NULL), 0);
    REFUSED_SILENTLY(sac_monitor_get_figure(NULL, 0, &figure));
    REFUSED(sac_monitor_get_figure(mon, -1, &figure));
    REFUSED(sac_monitor_get_figure(mon, 0, NULL));
    REFUSED_SILENTLY(sac_monitor_get_event(NULL, 0, &event));
    REFUSED(sac_monitor_get_event(mon, 0, &event));
    assert_true(sac_monitor_cost(NULL) <= 0);
    REFUSED(sac_monitor_list_runs(ctx, NULL, NULL));
    assert_null(sac_pipeline_monitor(NULL));
    assert_null(sac_session_monitor(NULL));
    sac_monitor_destroy(NULL);
    sac_monitor_destroy(&none);
    sac_monitor_destroy(&mon);
}

static void caches(void **state)
{
    (void)state;
    sac_cache                   *cache = NULL, *none = NULL;
    sac_cached                  *cached = NULL;
    char                         folder[] = "/tmp/saccade-cache-XXXXXX";
    const struct sac_cache_label label = {.key = "k"}, nameless = {.kind = "x"};
    struct sac_cache_params      params = sac_cache_params_default();
    size_t                       size;
    assert_non_null(mkdtemp(folder));
    params.folder = folder;
    REFUSED_SILENTLY(sac_cache_open(NULL, &params, &cache));
    REFUSED(sac_cache_open(ctx, &params, NULL));
    assert_sac_ok(sac_cache_open(ctx, &params, &cache));
    REFUSED_SILENTLY(sac_cache_get(NULL, "k", &cached));
    REFUSED(sac_cache_get(cache, NULL, &cached));
    REFUSED(sac_cache_get(cache, "k", NULL));
    REFUSED_SILENTLY(sac_cache_put(NULL, &label, "x", 1));
    REFUSED(sac_cache_put(cache, NULL, "x", 1));
    REFUSED(sac_cache_put(cache, &nameless, "x", 1));
    REFUSED(sac_cache_put(cache, &label, NULL, 1));
    assert_null(sac_cached_bytes(NULL, &size));
    sac_cached_release(NULL);
    sac_cached_release(&cached);
    REFUSED_SILENTLY(sac_cache_list(NULL, NULL, NULL));
    REFUSED(sac_cache_list(cache, NULL, NULL));
    REFUSED_SILENTLY(sac_cache_clear(NULL, 0, NULL, NULL));
    REFUSED(sac_cache_clear(cache, NAN, NULL, NULL));
    REFUSED(sac_cache_clear(cache, -1, NULL, NULL));
    assert_null(sac_cache_folder_of(NULL));
    sac_cache_close(NULL);
    sac_cache_close(&none);
    sac_cache_close(&cache);
    assert_int_equal(rmdir(folder), 0);
}

static void call_stacks(void **state)
{
    (void)state;
    struct sac_stacks_params  params = sac_stacks_params_default();
    struct sac_stacks_summary sum;
    struct sac_stack          stack;
    sac_stacks               *stacks = NULL, *none = NULL;
    REFUSED_SILENTLY(sac_stacks_start(NULL, &params, &none));
    REFUSED(sac_stacks_start(ctx, &params, NULL));
    params.reserved[0] = 1;
    REFUSED(sac_stacks_start(ctx, &params, &none));
    params.reserved[0] = 0;
    params.interval_us = -1;
    REFUSED(sac_stacks_start(ctx, &params, &none));
    REFUSED_SILENTLY(sac_stacks_stop(NULL));
    assert_int_equal(sac_stacks_count(NULL), 0);
    REFUSED_SILENTLY(sac_stacks_get(NULL, 0, &stack));
    sac_stacks_get_summary(NULL, &sum);
    assert_sac_ok(sac_stacks_start(ctx, NULL, &stacks));
    sac_stacks_get_summary(stacks, NULL);
    REFUSED(sac_stacks_get(stacks, 0, NULL));
    REFUSED(sac_stacks_get(stacks, 0, &stack));
    REFUSED(sac_stacks_get(stacks, -1, &stack));
    sac_stacks_destroy(NULL);
    sac_stacks_destroy(&none);
    sac_stacks_destroy(&stacks);
}

static void pipelines(void **state)
{
    (void)state;
    sac_pipeline              *pipe = NULL;
    struct sac_pipeline_params params = sac_pipeline_params_default();
    struct sac_pipeline_stats  stats;
    struct sac_stream_stats    stream;
    const char *const          lost[] = {NULL};
    const float                wrong[] = {NAN, INFINITY, -1, 1e30f};
    REFUSED_SILENTLY(sac_pipeline_create(NULL, &params, &pipe));
    REFUSED(sac_pipeline_create(ctx, NULL, &pipe)); /* the defaults name no input */
    REFUSED(sac_pipeline_create(ctx, &params, NULL));
    params.input = "none.mp4";
    for (size_t i = 0; i < SAC_COUNT(wrong); i++) {
        params.trail_s = wrong[i];
        REFUSED(sac_pipeline_create(ctx, &params, &pipe));
        params.trail_s = 2;
        params.fps = (double)wrong[i];
        REFUSED(sac_pipeline_create(ctx, &params, &pipe));
        params.fps = 0;
    }
    params.disk_cache_frames = 2;
    REFUSED(sac_pipeline_create(ctx, &params, &pipe));
    params.disk_cache_frames = 0;
    params.stream_count = 2;
    REFUSED(sac_pipeline_create(ctx, &params, &pipe));
    REFUSED(sac_pipeline_check_files(ctx, &params));
    params.stream_count = -2;
    REFUSED(sac_pipeline_create(ctx, &params, &pipe));
    params.stream_count = 0;
    params.read_count = 1;
    REFUSED(sac_pipeline_create(ctx, &params, &pipe));
    REFUSED(sac_pipeline_check_files(ctx, &params));
    params.read_count = 0;
    params.device_count = 1;
    REFUSED(sac_pipeline_create(ctx, &params, &pipe));
    params.devices = lost;
    REFUSED(sac_pipeline_create(ctx, &params, &pipe));
    params.device_count = 0;
    params.job.device = NULL;
    REFUSED(sac_pipeline_create(ctx, &params, &pipe));
    params.job.device = "cpu";
    params.job.batches_ahead = -1;
    REFUSED(sac_pipeline_create(ctx, &params, &pipe));
    REFUSED(sac_pipeline_check_files(ctx, NULL));
    REFUSED_SILENTLY(sac_pipeline_run(NULL));
    sac_pipeline_stop(NULL);
    sac_pipeline_get_stats(NULL, &stats);
    sac_stats_lines(NULL, 0, NULL, NULL);
    sac_stats_lines(&stats, 1, NULL, NULL);
    sac_pipeline_get_stream_stats(NULL, 0, &stream);
    assert_null(sac_pipeline_class_name(NULL, 0));
    sac_pipeline_dump_live(NULL, NULL, NULL);
    struct sac_allocation held;
    assert_int_equal(sac_pipeline_get_allocations(NULL, &held, 1), 0);
    sac_pipeline_destroy(NULL);
    assert_null(pipe);
}

static void sessions(void **state)
{
    (void)state;
    sac_session              *s = NULL, *none = NULL;
    struct sac_session_params params = sac_session_params_default();
    struct sac_session_result result = {0};
    struct sac_pipeline_stats stats;
    sac_frame                 bare = grey, *f = some_frame();
    REFUSED_SILENTLY(sac_session_create(NULL, &params, &none));
    REFUSED(sac_session_create(ctx, &params, NULL));
    params.job.device = NULL;
    REFUSED(sac_session_create(ctx, &params, &none));
    params.job.device = "cpu";
    params.job.timeout_ms = -1;
    REFUSED(sac_session_create(ctx, &params, &none));
    params.job.timeout_ms = 1;
    params.job.inference_batch_min = -1;
    REFUSED(sac_session_create(ctx, &params, &none));
    params.job.inference_batch_min = 0;
    params.job.preprocess_streams = 3;
    REFUSED(sac_session_create(ctx, &params, &none));
    params.job.preprocess_streams = 0;
    params.job.postprocess_threads = 65;
    REFUSED(sac_session_create(ctx, &params, &none));
    params.job.postprocess_threads = 0;
    params.job.detector = TEST_HEADS "/yolov8.onnx";
    params.job.reid = NULL;
    assert_sac_ok(sac_session_create(ctx, &params, &s));
    REFUSED_SILENTLY(sac_session_start(NULL));
    assert_sac_ok(sac_session_start(s));
    REFUSED_SILENTLY(sac_session_submit(NULL, f, 1));
    REFUSED(sac_session_submit(s, NULL, 1));
    REFUSED(sac_session_submit(s, &bare, 1));
    REFUSED_SILENTLY(sac_session_result_wait(NULL, 0, &result));
    REFUSED(sac_session_result_wait(s, 0, NULL));
    assert_null(sac_session_device(NULL));
    assert_null(sac_session_class_name(NULL, 0));
    sac_session_get_stats(NULL, &stats);
    sac_session_get_stats(s, NULL);
    sac_session_end(NULL);
    sac_session_result_finish(NULL);
    sac_session_result_finish(&result);
    sac_session_end(s);
    sac_session_destroy(NULL);
    sac_session_destroy(&s);
    sac_frame_unref(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contexts_and_texts),
        cmocka_unit_test(devices),
        cmocka_unit_test(tensors),
        cmocka_unit_test(tensors_of_others),
        cmocka_unit_test(frames),
        cmocka_unit_test(preprocessing),
        cmocka_unit_test(models),
        cmocka_unit_test(calibrations),
        cmocka_unit_test(detectors),
        cmocka_unit_test(segmenters),
        cmocka_unit_test(embedders),
        cmocka_unit_test(trackers),
        cmocka_unit_test(scores),
        cmocka_unit_test(masks_and_their_scores),
        cmocka_unit_test(sources_and_sinks),
        cmocka_unit_test(timers),
        cmocka_unit_test(servers),
        cmocka_unit_test(monitors),
        cmocka_unit_test(caches),
        cmocka_unit_test(call_stacks),
        cmocka_unit_test(pipelines),
        cmocka_unit_test(sessions),
    };
    ctx = test_context();
    if (sac_device_open(ctx, "cpu", NULL, &dev) != SAC_OK)
        return 1;
    int failed = cmocka_run_group_tests_name("pipeline/arguments", tests, NULL, NULL);
    sac_device_unref(&dev);
    return failed;
}
