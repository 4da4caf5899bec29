/* SPDX-License-Identifier: Apache-2.0 */
/* Every head on a small network of its family (make.py): recognised, and its hidden boxes found. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/device.h"
#include "heads/heads.h"
#include "tests/test.h"

enum { SIZE = 64, BOXES_MAX = 16 };

static const struct family {
    const char *model, *head;
    float       tolerance; /* pixels; ten times that of scores */
} families[] = {
    {"yolox_raw", "yolox", 1e-3f},
    {"yolox_decoded", "yolox", 1e-3f},
    {"yolov5", "yolov5", 1e-3f},
    {"yolov8", "yolov8", 1e-3f},
    {"yolov8_sideways", "yolov8", 1e-3f},
    {"yolov8_half", "yolov8", 0.04f},
    {"end2end", "end2end", 1e-3f},
    {"detr_sigmoid", "detr", 1e-3f},
    {"detr_softmax", "detr", 1e-3f},
    {"detr_one", "detr", 1e-3f},
    {"nanodet_plus", "nanodet", 1e-2f},
    {"nanodet_split", "nanodet", 1e-2f},
    {"ssd_rows", "ssd", 1e-3f},
    {"boxes_trio", "boxes", 1e-3f},
    {"yolov8_seg", "yolov8", 1e-3f},
    {"yolov8_seg_bare", "yolov8", 1e-3f},
    {"yolov8_pose", "yolov8", 1e-3f},
    {"yolov5_seg", "yolov5", 1e-3f},
    {"end2end_seg", "end2end", 1e-3f},
    {"end2end_pose", "end2end", 1e-3f},
    {"end2end_numbered", "end2end", 1e-3f},
    {"end2end_paddle", "end2end", 1e-3f},
    {"end2end_queries", "end2end", 1e-3f},
    {"detr_rf", "detr", 1e-3f},
    {"detr_masked", "detr", 1e-3f},
    {"boxes_sized", "boxes", 1e-3f},
    {"boxes_torch", "boxes", 1e-3f},
    {"boxes_torch_one", "boxes", 1e-3f},
    {"boxes_scored", "boxes", 1e-3f},
    {"boxes_tensorflow", "boxes", 1e-3f},
};

static sac_device *device(void)
{
    sac_device *dev = NULL;
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &dev));
    return dev;
}

static const char *path_of(const char *model)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s.onnx", TEST_SOURCE_DIR, model);
    return path;
}

static sac_frame *grey_frame(sac_device *dev, int width, int height)
{
    sac_frame *f = NULL;
    sac_frame  desc = {.format = SAC_PIXEL_RGB24, .width = width, .height = height};
    assert_sac_ok(sac_frame_create(dev, &desc, &f));
    for (int y = 0; y < height; y++)
        memset(f->plane[0] + (size_t)y * f->pitch_bytes[0], 128, (size_t)width * 3);
    return f;
}

static int golden_of(const char *model, struct sac_detection *out)
{
    char  line[256], name[64];
    int   n = 0;
    FILE *file = fopen(TEST_SOURCE_DIR "/golden.txt", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        struct sac_detection d;
        if (sscanf(line, "%63s %d %f %f %f %f %f", name, &d.class_id, &d.score, &d.x0, &d.y0, &d.x1,
                   &d.y1) == 7 &&
            !strcmp(name, model) && n < BOXES_MAX)
            out[n++] = d;
    }
    fclose(file);
    return n;
}

/* Boxes of the golden list, scaled, are those found: no more, no fewer. */
static void check_boxes(const struct family *f, const struct sac_detections *found, float scale_x,
                        float scale_y)
{
    struct sac_detection want[BOXES_MAX];
    int                  n = golden_of(f->model, want);
    assert_true(n > 0);
    assert_int_equal(found->count, n);
    for (int i = 0; i < n; i++) {
        bool seen = false;
        for (size_t k = 0; k < found->count; k++) {
            const struct sac_detection *d = &found->items[k];
            assert_true(k == 0 || found->items[k - 1].score >= d->score);
            seen = seen || (d->class_id == want[i].class_id &&
                            fabsf(d->score - want[i].score) < 0.1f * f->tolerance &&
                            fabsf(d->x0 - want[i].x0 * scale_x) < f->tolerance * scale_x &&
                            fabsf(d->y0 - want[i].y0 * scale_y) < f->tolerance * scale_y &&
                            fabsf(d->x1 - want[i].x1 * scale_x) < f->tolerance * scale_x &&
                            fabsf(d->y1 - want[i].y1 * scale_y) < f->tolerance * scale_y);
        }
        if (!seen)
            fail_msg("%s: box %d (class %d, %.4f at %.2f,%.2f) is not found", f->model, i,
                     want[i].class_id, (double)want[i].score, (double)want[i].x0,
                     (double)want[i].y0);
    }
}

static sac_detector *detector(sac_device *dev, const char *model, const char *head,
                              const char *preprocess)
{
    struct sac_detector_params params = sac_detector_params_default();
    sac_detector              *det = NULL;
    params.head = head;
    params.preprocess = preprocess;
    params.score_min = 0.25f;
    params.batch_max = 2;
    assert_sac_ok(sac_detector_create(dev, path_of(model), &params, &det));
    return det;
}

static void finds_the_hidden_boxes(void **state)
{
    const struct family  *f = *state;
    sac_device           *dev = device();
    sac_frame            *frame = grey_frame(dev, SIZE, SIZE);
    struct sac_detections found = {0};
    sac_detector         *det = detector(dev, f->model, NULL, NULL);
    assert_string_equal(sac_detector_head_name(det), f->head);
    assert_string_equal(sac_head_recognise(sac_detector_model(det)), f->head);
    assert_sac_ok(sac_detector_run(det, &frame, 1, &found));
    check_boxes(f, &found, 1, 1);
    sac_detections_finish(&found);
    sac_detector_destroy(&det);
    sac_frame_unref(&frame);
    sac_device_unref(&dev);
}

/* Three frames of different sizes, two in one run: boxes come back in each frame's own pixels. */
static void batches_and_scales(void **state)
{
    const struct family  *f = *state;
    static const int      sizes[3][2] = {{64, 64}, {128, 192}, {640, 32}};
    sac_device           *dev = device();
    sac_frame            *frames[3];
    struct sac_detections found[3] = {{0}};
    struct sac_run_times  times;
    sac_detector         *det = detector(dev, f->model, f->head, "stretch");
    for (int i = 0; i < 3; i++)
        frames[i] = grey_frame(dev, sizes[i][0], sizes[i][1]);
    for (int round = 0; round < 2; round++) /* lists are used again */
        assert_sac_ok(sac_detector_run(det, frames, 3, found));
    sac_detector_get_times(det, &times);
    assert_true(times.preprocess_ns > 0 && times.inference_ns > 0 && times.head_ns > 0);
    for (int i = 0; i < 3; i++) {
        check_boxes(f, &found[i], (float)sizes[i][0] / SIZE, (float)sizes[i][1] / SIZE);
        sac_detections_finish(&found[i]);
        sac_frame_unref(&frames[i]);
    }
    sac_detector_destroy(&det);
    sac_device_unref(&dev);
}

/* Whatever head is forced on whatever network: boxes or a sentence, never a crash. */
static void refuses_the_outputs_of_others(void **state)
{
    (void)state;
    static const char *const names[] = {"yolox",   "yolov5", "yolov8", "nanodet",
                                        "end2end", "ssd",    "boxes",  "detr"};
    sac_device              *dev = device();
    sac_frame               *frame = grey_frame(dev, SIZE, SIZE);
    int                      refused = 0;
    for (size_t i = 0; i < SAC_COUNT(families); i++)
        for (size_t k = 0; k < SAC_COUNT(names); k++) {
            sac_detector              *det = NULL;
            struct sac_detections      found = {0};
            struct sac_detector_params params = sac_detector_params_default();
            params.head = names[k];
            sac_result res = sac_detector_create(dev, path_of(families[i].model), &params, &det);
            if (res == SAC_OK)
                res = sac_detector_run(det, &frame, 1, &found);
            if (!strcmp(names[k], families[i].head))
                assert_int_equal(res, SAC_OK);
            else if (res != SAC_OK) {
                char why[512];
                sac_context_last_error(test_context(), why, sizeof why);
                assert_int_equal(res, SAC_ERR_FORMAT);
                assert_non_null(strstr(why, "wants"));
                refused++;
            }
            sac_detections_finish(&found);
            sac_detector_destroy(&det);
        }
    assert_true(refused > 50);
    sac_frame_unref(&frame);
    sac_device_unref(&dev);
}

/* Models that are no detectors, or none of upright boxes, say what they are; so do heads forced on
 * them. */
static void says_what_a_model_is_instead(void **state)
{
    (void)state;
    static const struct {
        const char *model, *head, *why;
    } cases[] = {
        {"oriented", NULL, "its boxes have an angle (its metadata says task obb)"},
        {"oriented", "yolov8", "its boxes have an angle"},
        {"classifier", NULL, "it is a classifier by its metadata"},
        {"classifier", "yolov8", "it is a classifier"},
        {"embedding_nchw", NULL, "as embeddings and classifiers do, and no boxes"},
        {"tokens", NULL,
         "its outputs, of one picture last_hidden_state [257,16], are not those of a known "
         "network; "
         "--head takes yolox, "},
        {"tokens", "detr", NULL}, /* what the user says */
        {"tokens", "yolov8", "head 'yolov8' wants [4 + classes"},
        {"miscounted", NULL, "it is 'yolov8' with 5 classes, but it has 3 class names"},
        {"miscounted", "yolov8", "head 'yolov8' wants"},
        {"fifth_wheel", NULL, "input 'prompt', float32 [1,7], is none that a network is fed"},
        {"yolov8_seg", "yolov5", "head 'yolov5' wants"},
        {"open_masks", NULL, "its outputs, of one picture output0 [15,?], are not"},
        {"open_masks", "yolov8", "the outputs of one picture are output0 [15,6400]"}, /* at 640x640
                                                                                       */
    };
    sac_device *dev = device();
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        struct sac_detector_params params = sac_detector_params_default();
        sac_detector              *det = NULL;
        char                       why[1024] = "";
        params.head = cases[i].head;
        sac_result res = sac_detector_create(dev, path_of(cases[i].model), &params, &det);
        assert_int_equal(res == SAC_OK, cases[i].why == NULL);
        sac_context_last_error(test_context(), why, sizeof why);
        if (cases[i].why && !strstr(why, cases[i].why))
            fail_msg("%s: '%s' lacks '%s'", cases[i].model, why, cases[i].why);
        sac_detector_destroy(&det);
    }
    sac_device_unref(&dev);
}

/* A forced head reads what it would read if it had been recognised. */
static void a_forced_head_reads_no_masks_as_classes(void **state)
{
    (void)state;
    static const char *const models[][2] = {{"yolov8_seg", "yolov8"},
                                            {"yolov8_seg_bare", "yolov8"},
                                            {"yolov8_pose", "yolov8"},
                                            {"yolov5_seg", "yolov5"}};
    sac_device              *dev = device();
    sac_frame               *frame = grey_frame(dev, SIZE, SIZE);
    for (size_t i = 0; i < SAC_COUNT(models); i++) {
        const struct family   f = {models[i][0], models[i][1], 1e-3f};
        struct sac_detections found = {0};
        sac_detector         *det = detector(dev, models[i][0], models[i][1], NULL);
        assert_sac_ok(sac_detector_run(det, &frame, 1, &found));
        check_boxes(&f, &found, 1, 1);
        sac_detections_finish(&found);
        sac_detector_destroy(&det);
    }
    sac_frame_unref(&frame);
    sac_device_unref(&dev);
}

static void assert_channels(const float *have, float a, float b, float c)
{
    const float want[3] = {a, b, c};
    for (int i = 0; i < 3; i++)
        assert_true(fabsf(have[i] - want[i]) < 1e-4f * SAC_MAX(fabsf(want[i]), 1.0f));
}

/* As their projects publish it. */
static void pixels_enter_as_each_family_was_trained(void **state)
{
    (void)state;
    static const float r = 123.675f, g = 116.28f, b = 103.53f, one = 1 / 255.0f;
    static const struct {
        const char  *model;
        enum sac_fit fit;
        float        mean[3], scale[3];
        int          width;
    } cases[] = {
        {"detr_rf", SAC_FIT_STRETCH, {r, g, b}, {1 / 58.395f, 1 / 57.12f, 1 / 57.375f}, 64},
        {"detr_masked", SAC_FIT_STRETCH, {r, g, b}, {1 / 58.395f, 1 / 57.12f, 1 / 57.375f}, 64},
        {"detr_sigmoid", SAC_FIT_STRETCH, {0, 0, 0}, {one, one, one}, 64},
        {"end2end_queries", SAC_FIT_STRETCH, {0, 0, 0}, {one, one, one}, 64},
        {"boxes_sized", SAC_FIT_STRETCH, {0, 0, 0}, {one, one, one}, 64},
        {"boxes_torch", SAC_FIT_LETTERBOX_TOPLEFT, {0, 0, 0}, {one, one, one}, 64},
        {"boxes_scored",
         SAC_FIT_LETTERBOX_TOPLEFT,
         {r, g, b},
         {1 / 58.395f, 1 / 57.12f, 1 / 57.375f},
         64},
        {"boxes_tensorflow", SAC_FIT_STRETCH, {0, 0, 0}, {1, 1, 1}, 64},
        {"end2end_paddle", SAC_FIT_STRETCH, {r, g, b}, {1 / 58.395f, 1 / 57.12f, 1 / 57.375f}, 64},
        {"yolov8_seg", SAC_FIT_LETTERBOX_CENTRE, {0, 0, 0}, {one, one, one}, 64},
        {"normalised",
         SAC_FIT_LETTERBOX_CENTRE,
         {127.5f, 63.75f, 191.25f},
         {1 / 127.5f, one, 1 / 63.75f},
         64},
    };
    sac_device *dev = device();
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        sac_detector                *det = detector(dev, cases[i].model, NULL, NULL);
        const struct sac_preprocess *pre = &sac_detector_contract(det)->pre;
        if (pre->fit != cases[i].fit || pre->width != cases[i].width)
            fail_msg("%s: fit %d, width %d", cases[i].model, (int)pre->fit, pre->width);
        assert_int_equal(pre->order, SAC_ORDER_RGB);
        assert_channels(pre->mean, cases[i].mean[0], cases[i].mean[1], cases[i].mean[2]);
        assert_channels(pre->scale, cases[i].scale[0], cases[i].scale[1], cases[i].scale[2]);
        sac_detector_destroy(&det);
    }
    sac_device_unref(&dev);
}

static void says_what_it_cannot_take(void **state)
{
    (void)state;
    sac_device                *dev = device();
    sac_detector              *det = NULL;
    struct sac_detector_params params = sac_detector_params_default();
    char                       why[512];
    assert_sac_error(sac_detector_create(dev, path_of("none"), NULL, &det), SAC_ERR_UNSUPPORTED);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "--head"));
    assert_sac_error(sac_detector_create(dev, path_of("embedding_nchw"), NULL, &det),
                     SAC_ERR_UNSUPPORTED);
    params.head = "yolo9000";
    assert_sac_error(sac_detector_create(dev, path_of("yolov8"), &params, &det), SAC_ERR_ARG);
    params.head = "./no-such-head.so";
    assert_sac_error(sac_detector_create(dev, path_of("yolov8"), &params, &det), SAC_ERR_IO);
    params.head = NULL;
    params.score_min = 2;
    assert_sac_error(sac_detector_create(dev, path_of("yolov8"), &params, &det), SAC_ERR_ARG);
    params.score_min = 0.1f;
    params.classes = "person,unicorn";
    assert_sac_error(sac_detector_create(dev, path_of("end2end"), &params, &det), SAC_ERR_ARG);
    params.classes = "80";
    assert_sac_error(sac_detector_create(dev, path_of("detr_sigmoid"), &params, &det), SAC_ERR_ARG);
    params.classes = NULL;
    params.preprocess = "size=32x32";
    assert_sac_error(sac_detector_create(dev, path_of("yolov8"), &params, &det), SAC_ERR_ARG);
    assert_null(det);
    sac_device_unref(&dev);
}

/* How many of the golden boxes of `model` are found when `classes` are asked for. */
static int count_found(const char *model, const char *classes)
{
    sac_device                *dev = device();
    sac_frame                 *frame = grey_frame(dev, SIZE, SIZE);
    sac_detector              *det = NULL;
    struct sac_detections      found = {0};
    struct sac_detector_params params = sac_detector_params_default();
    params.classes = classes;
    params.score_min = 0.25f;
    assert_sac_ok(sac_detector_create(dev, path_of(model), &params, &det));
    assert_sac_ok(sac_detector_run(det, &frame, 1, &found));
    int count = (int)found.count;
    sac_detections_finish(&found);
    sac_detector_destroy(&det);
    sac_frame_unref(&frame);
    sac_device_unref(&dev);
    return count;
}

static void keeps_the_classes_asked_for(void **state)
{
    (void)state;
    struct sac_detection want[BOXES_MAX];
    int                  n = golden_of("yolov8_sideways", want), kept = 0;
    for (int i = 0; i < n; i++)
        kept += want[i].class_id != 2;
    assert_true(kept > 0 && kept < n);
    assert_int_equal(count_found("yolov8_sideways", "barista's,0"), kept);
    assert_int_equal(count_found("yolov8_sideways", "all"), n);
    assert_int_equal(count_found("yolov8_sideways", NULL), n);
    assert_int_equal(count_found("yolov8_sideways", "auto"), n); /* it knows no person */
}

static void auto_keeps_the_persons_of_a_model_that_knows_them(void **state)
{
    (void)state;
    assert_int_equal(count_found("detr_sigmoid", "auto"), count_found("detr_sigmoid", "person"));
    assert_true(count_found("detr_sigmoid", "auto") < count_found("detr_sigmoid", "all"));
}

/* What describe says of `classes` of a model; the sentence of a refusal where it knows no such
 * class. */
static const char *described(const char *model, const char *classes)
{
    static char                text[1024];
    sac_device                *dev = device();
    sac_detector              *det = NULL;
    struct sac_detector_params params = sac_detector_params_default();
    params.classes = classes;
    if (sac_detector_create(dev, path_of(model), &params, &det) == SAC_OK)
        sac_detector_describe_classes(det, text, sizeof text);
    else
        sac_context_last_error(test_context(), text, sizeof text);
    sac_detector_destroy(&det);
    sac_device_unref(&dev);
    return text;
}

static void says_which_classes_it_keeps(void **state)
{
    (void)state;
    assert_string_equal(described("detr_sigmoid", "auto"), "person (1 of 80)");
    assert_string_equal(described("detr_sigmoid", "2, 5,car"), "car, bus (2 of 80)"); /* each once
                                                                                       */
    assert_string_equal(described("detr_sigmoid", "all"), "all 80");
    assert_string_equal(described("yolov8_sideways", "auto"), "all 3");
    assert_string_equal(described("end2end", NULL), "all"); /* names none */
    assert_string_equal(described("end2end", "7"), "class 7");
}

static void an_unknown_class_brings_those_that_are_near(void **state)
{
    (void)state;
    const char *why = described("detr_sigmoid", "persn");
    assert_non_null(
        strstr(why, "has no class 'persn'; did you mean 'person'? it has 80: person, bicycle, "));
    assert_non_null(strstr(described("detr_sigmoid", "Phone"), "did you mean 'cell phone'?"));
    assert_non_null(strstr(described("detr_sigmoid", "bear,bat"), "'baseball bat'"));
    assert_non_null(strstr(described("detr_sigmoid", "quark"), "no class 'quark'; it has 80: "));
    assert_non_null(strstr(described("end2end", "person"), "it names none: give numbers"));
}

static void names_classes(void **state)
{
    (void)state;
    sac_device   *dev = device();
    sac_detector *det = detector(dev, "yolov8_sideways", NULL, NULL);
    assert_string_equal(sac_detector_class_name(det, 1), "barista's");
    assert_string_equal(sac_detector_class_name(det, 3), "unknown");
    sac_detector_destroy(&det);
    sac_device_unref(&dev);
}

/* Let each allocation of a detector's life fail in turn: an error code, no crash, nothing lost (the
 * address sanitizer counts). */
static void survives_without_memory(void **state)
{
    (void)state;
    sac_device *dev = device();
    sac_frame  *frame = grey_frame(dev, SIZE, SIZE);
    sac_result  res = SAC_ERR_MEMORY;
    int         n = 0;
    while (res != SAC_OK && n < 5000) {
        struct sac_detector_params params = sac_detector_params_default();
        sac_detector              *det = NULL;
        struct sac_detections      found = {0};
        params.classes = "cup";
        sac_alloc_fail_at(++n);
        res = sac_detector_create(dev, path_of("yolov8_sideways"), &params, &det);
        if (res == SAC_OK)
            res = sac_detector_run(det, &frame, 1, &found);
        sac_alloc_fail_at(0);
        sac_detections_finish(&found);
        sac_detector_destroy(&det);
    }
    assert_true(n > 20 && n < 5000);
    sac_frame_unref(&frame);
    sac_device_unref(&dev);
}

static void names_the_classes_of_coco(void **state)
{
    (void)state;
    sac_device   *dev = device();
    sac_detector *det = detector(dev, "detr_sigmoid", NULL, NULL);
    assert_string_equal(sac_detector_class_name(det, 0), "person");
    assert_string_equal(sac_detector_class_name(det, 79), "toothbrush");
    sac_detector_destroy(&det);
    det = detector(dev, "detr_softmax", NULL, NULL);
    assert_int_equal(sac_detector_contract(det)->class_count, 91);
    assert_string_equal(sac_detector_class_name(det, 0), "background"); /* by COCO's own numbers */
    assert_string_equal(sac_detector_class_name(det, 1), "person");
    assert_string_equal(sac_detector_class_name(det, 12), "N/A");
    assert_string_equal(sac_detector_class_name(det, 13), "stop sign");
    assert_string_equal(sac_detector_class_name(det, 44), "bottle");
    assert_string_equal(sac_detector_class_name(det, 67), "dining table");
    assert_string_equal(sac_detector_class_name(det, 90), "toothbrush");
    sac_detector_destroy(&det);
    assert_int_equal(sac_coco_number("person"), 1);
    assert_int_equal(sac_coco_number("toothbrush"), 90);
    assert_int_equal(sac_coco_number("N/A"), 0);
    static const char *const published[][2] = {{"detr_rf", "person (1 of 91)"},
                                               {"boxes_torch", "person (1 of 91)"},
                                               {"boxes_sized", "person (1 of 80)"},
                                               {"boxes_tensorflow", "person (1 of 91)"},
                                               {"boxes_scored", "all"},
                                               {"yolov8_seg", "all 3"}};
    for (size_t i = 0; i < SAC_COUNT(published); i++)
        assert_string_equal(described(published[i][0], "auto"), published[i][1]);
    sac_device_unref(&dev);
}

enum { PER_FAMILY = 2, OTHERS = 12 };

int main(void)
{
    struct CMUnitTest tests[PER_FAMILY * SAC_COUNT(families) + OTHERS] = {
        cmocka_unit_test(refuses_the_outputs_of_others),
        cmocka_unit_test(says_what_it_cannot_take),
        cmocka_unit_test(keeps_the_classes_asked_for),
        cmocka_unit_test(survives_without_memory),
        cmocka_unit_test(names_the_classes_of_coco),
        cmocka_unit_test(names_classes),
        cmocka_unit_test(auto_keeps_the_persons_of_a_model_that_knows_them),
        cmocka_unit_test(says_which_classes_it_keeps),
        cmocka_unit_test(says_what_a_model_is_instead),
        cmocka_unit_test(a_forced_head_reads_no_masks_as_classes),
        cmocka_unit_test(pixels_enter_as_each_family_was_trained),
        cmocka_unit_test(an_unknown_class_brings_those_that_are_near),
    };
    static char names[PER_FAMILY * SAC_COUNT(families)][64];
    for (size_t i = 0; i < SAC_COUNT(families); i++)
        for (size_t k = 0; k < PER_FAMILY; k++) {
            char *name = names[PER_FAMILY * i + k];
            snprintf(name, sizeof names[0], "%s: %s", families[i].model,
                     k ? "batches and scales" : "finds the boxes");
            tests[OTHERS + PER_FAMILY * i + k] =
                (struct CMUnitTest){name, k ? batches_and_scales : finds_the_hidden_boxes, NULL,
                                    NULL, (void *)(uintptr_t)&families[i]};
        }
    return cmocka_run_group_tests_name("heads/heads", tests, NULL, NULL);
}
