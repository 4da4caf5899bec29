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
    {"yolox_raw", "yolox", 1e-3f},        {"yolox_decoded", "yolox", 1e-3f},
    {"yolov5", "yolov5", 1e-3f},          {"yolov8", "yolov8", 1e-3f},
    {"yolov8_sideways", "yolov8", 1e-3f}, {"yolov8_half", "yolov8", 0.04f},
    {"end2end", "end2end", 1e-3f},        {"detr_sigmoid", "detr", 1e-3f},
    {"detr_softmax", "detr", 1e-3f},      {"detr_one", "detr", 1e-3f},
    {"nanodet_plus", "nanodet", 1e-2f},   {"nanodet_split", "nanodet", 1e-2f},
    {"ssd_rows", "ssd", 1e-3f},           {"ssd_trio", "ssd", 1e-3f},
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
                                        "end2end", "ssd",    "detr"};
    sac_device              *dev = device();
    sac_frame               *frame = grey_frame(dev, SIZE, SIZE);
    int                      refused = 0;
    for (size_t i = 0; i < SAC_COUNT(families); i++)
        for (size_t k = 0; k < SAC_COUNT(names); k++) {
            sac_detector         *det = detector(dev, families[i].model, names[k], NULL);
            struct sac_detections found = {0};
            sac_result            res = sac_detector_run(det, &frame, 1, &found);
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

/* What describe says of `classes` of a model; the sentence of a refusal where it knows no such class. */
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
    assert_string_equal(described("detr_sigmoid", "2, 5,car"), "car, bus (2 of 80)"); /* each once */
    assert_string_equal(described("detr_sigmoid", "all"), "all 80");
    assert_string_equal(described("yolov8_sideways", "auto"), "all 3");
    assert_string_equal(described("end2end", NULL), "all"); /* names none */
    assert_string_equal(described("end2end", "7"), "class 7");
}

static void an_unknown_class_brings_those_that_are_near(void **state)
{
    (void)state;
    const char *why = described("detr_sigmoid", "persn");
    assert_non_null(strstr(why, "has no class 'persn'; did you mean 'person'? it has 80: person, bicycle, "));
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

static void names_the_80_classes_of_coco(void **state)
{
    (void)state;
    sac_device   *dev = device();
    sac_detector *det = detector(dev, "detr_sigmoid", NULL, NULL);
    assert_string_equal(sac_detector_class_name(det, 0), "person");
    assert_string_equal(sac_detector_class_name(det, 79), "toothbrush");
    sac_detector_destroy(&det);
    det = detector(dev, "detr_softmax", NULL, NULL);
    assert_int_equal(sac_detector_contract(det)->class_count, 91);
    assert_string_equal(sac_detector_class_name(det, 90), "class 90");
    sac_detector_destroy(&det);
    sac_device_unref(&dev);
}

enum { PER_FAMILY = 2, OTHERS = 9 };

int main(void)
{
    struct CMUnitTest tests[PER_FAMILY * SAC_COUNT(families) + OTHERS] = {
        cmocka_unit_test(refuses_the_outputs_of_others), cmocka_unit_test(says_what_it_cannot_take),
        cmocka_unit_test(keeps_the_classes_asked_for),   cmocka_unit_test(survives_without_memory),
        cmocka_unit_test(names_the_80_classes_of_coco), cmocka_unit_test(names_classes),
        cmocka_unit_test(auto_keeps_the_persons_of_a_model_that_knows_them),
        cmocka_unit_test(says_which_classes_it_keeps),
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
