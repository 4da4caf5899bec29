/* SPDX-License-Identifier: Apache-2.0 */
/* Segmenters on the small networks of make_maps.py, which mark what is bright, and on person_seg.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <saccade/source.h>

#include "tests/heads/segmenters.h"
#include "tests/vision/frames.h"

enum { SIDE = 64, FRAMES = 6 };

/* Grey, brighter than half on the right. */
static sac_frame *make_frame(sac_device *dev, int width, int height, int stream_id)
{
    sac_frame *f = test_frame(dev, SAC_PIXEL_RGB24, width, height);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            memset(f->plane[0] + (size_t)y * f->pitch_bytes[0] + 3 * (size_t)x,
                   x < width / 2 ? 40 : 220, 3);
    f->stream_id = stream_id;
    return f;
}

/* ---- every family ---- */

static const struct family {
    const char         *model, *head;
    enum sac_matte_form form;
    int                 cells, classes; /* cells: of a side */
    const char         *kept;           /* as text; NULL: one number a pixel */
} families[] = {
    {"maps_matte", "matte", SAC_MATTE_SHARE, 64, 0, NULL},
    {"maps_logit", "matte", SAC_MATTE_LOGIT, 16, 0, NULL},
    {"maps_inside", "matte", SAC_MATTE_SHARE, 64, 0, NULL},
    {"maps_torchvision", "semantic", SAC_MATTE_CLASS_LOGITS, 16, 21, "person (1 of 21)"},
    {"maps_last", "semantic", SAC_MATTE_CLASS_SHARES, 64, 2, "class 1 (1 of 2)"},
    {"maps_label", "semantic", SAC_MATTE_LABEL, 64, 19, "person, rider (2 of 19)"},
    {"maps_label_real", "semantic", SAC_MATTE_LABEL, 64, 19, "person, rider (2 of 19)"},
};

static void check_family(sac_device *dev, const struct family *f)
{
    const struct sac_segmenter_params params = test_plain_params();
    sac_segmenter                    *seg = test_segmenter(dev, f->model, &params);
    sac_frame                        *frame = make_frame(dev, 200, 120, 3);
    char                              kept[64] = "";
    frame->pts_us = 40000;
    frame->duration_us = 20000;
    frame->number = 2;
    sac_frame *matte = test_matte_of(seg, frame);
    assert_string_equal(sac_segmenter_head_name(seg), f->head);
    if (seg->spec.form != f->form || seg->spec.width != f->cells || seg->spec.height != f->cells)
        fail_msg("%s: form %d of %dx%d cells", f->model, (int)seg->spec.form, seg->spec.width,
                 seg->spec.height);
    assert_int_equal(sac_segmenter_class_count(seg), f->classes);
    sac_segmenter_describe_classes(seg, kept, sizeof kept);
    if (f->kept)
        assert_string_equal(kept, f->kept);
    assert_int_equal(matte->format, SAC_PIXEL_GRAY8);
    assert_true(matte->width == 200 && matte->height == 120 && matte->device == dev);
    assert_true(matte->pts_us == 40000 && matte->duration_us == 20000 && matte->number == 2 &&
                matte->stream_id == 3);
    for (int y = 5; y < 120; y += 20)
        if (test_matte_pixel(matte, 30, y) > 8 || test_matte_pixel(matte, 170, y) < 247)
            fail_msg("%s: %d where it is dark, %d where it is bright", f->model,
                     test_matte_pixel(matte, 30, y), test_matte_pixel(matte, 170, y));
    sac_frame_unref(&matte);
    sac_frame_unref(&frame);
    sac_segmenter_destroy(&seg);
}

static void every_family_marks_what_it_was_made_for(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    for (size_t i = 0; i < SAC_COUNT(families); i++)
        check_family(dev, &families[i]);
    sac_device_unref(&dev);
}

static void the_classes_can_be_chosen(void **state)
{
    (void)state;
    struct sac_segmenter_params p = test_plain_params();
    sac_device                 *dev = test_device();
    sac_frame                  *frame = make_frame(dev, SIDE, SIDE, 0);
    p.classes = "0, cow";
    sac_segmenter *seg = test_segmenter(dev, "maps_torchvision", &p);
    sac_frame     *matte = test_matte_of(seg, frame);
    assert_int_equal(sac_segmenter_kept_classes(seg), 2);
    assert_true(test_matte_pixel(matte, 10, 30) > 247 && test_matte_pixel(matte, 50, 30) < 8);
    sac_frame_unref(&matte);
    sac_segmenter_destroy(&seg);
    p.classes = "all"; /* but the background */
    seg = test_segmenter(dev, "maps_torchvision", &p);
    matte = test_matte_of(seg, frame);
    assert_int_equal(sac_segmenter_kept_classes(seg), 20);
    assert_true(test_matte_pixel(matte, 10, 30) < 8 && test_matte_pixel(matte, 50, 30) > 247);
    sac_frame_unref(&matte);
    sac_segmenter_destroy(&seg);
    p.classes = NULL;
    p.class_map = 1;
    seg = test_segmenter(dev, "maps_torchvision", &p);
    matte = test_matte_of(seg, frame);
    assert_int_equal(test_matte_pixel(matte, 10, 30), 0);
    assert_int_equal(test_matte_pixel(matte, 50, 30), 15);
    assert_string_equal(sac_segmenter_class_name(seg, 15), "person");
    assert_string_equal(sac_segmenter_class_name(seg, 21), "unknown");
    sac_frame_unref(&matte);
    sac_segmenter_destroy(&seg);
    sac_frame_unref(&frame);
    sac_device_unref(&dev);
}

/* Graphs as published networks have them (tests/models), with random weights. */
static void knows_whole_networks(void **state)
{
    (void)state;
    static const struct {
        const char         *model, *head, *output;
        enum sac_matte_form form;
        int                 cells;
    } cases[] = {
        {"deeplabv3plus", "semantic", "resize_161", SAC_MATTE_CLASS_LOGITS, 64},
        {"segformer", "semantic", "conv_548", SAC_MATTE_CLASS_LOGITS, 16},
        {"modnet", "matte", "sigmoid_444", SAC_MATTE_SHARE, 64},
        {"person_seg", "matte", "matte", SAC_MATTE_SHARE, 320},
    };
    sac_device *dev = test_device();
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        char                      path[512];
        sac_segmenter            *seg = NULL;
        struct sac_segmenter_info info;
        snprintf(path, sizeof path, "%s/../%s/%s.onnx", TEST_SOURCE_DIR,
                 i < 3 ? "models" : "../models", cases[i].model);
        assert_sac_ok(sac_segmenter_create(dev, path, NULL, &seg));
        sac_segmenter_inspect(seg, &info);
        assert_string_equal(sac_segmenter_head_name(seg), cases[i].head);
        assert_string_equal(info.output, cases[i].output);
        assert_true(info.width == cases[i].cells && info.height == cases[i].cells);
        assert_int_equal(seg->spec.form, cases[i].form);
        sac_frame *frame = make_frame(dev, 96, 64, 0), *matte = test_matte_of(seg, frame);
        sac_frame_unref(&matte);
        sac_frame_unref(&frame);
        sac_segmenter_destroy(&seg);
    }
    sac_device_unref(&dev);
}

/* A person stands at 322,12 to 429,333 of 640x360, as annotated: the matte is there and hardly
 * anywhere else. */
static void person_seg_marks_a_person(void **state)
{
    (void)state;
    const char    *shared = getenv("SACCADE_SHARED");
    sac_device    *dev = test_device();
    sac_source    *src = NULL;
    sac_segmenter *seg = NULL;
    sac_frame     *frame = NULL;
    char           path[512];
    double         inside = 0, outside = 0;
    snprintf(path, sizeof path, "%s/data/train/detect/images/intel/onebyone_0067.jpg",
             shared ? shared : TEST_SHARED);
    if (access(path, R_OK) != 0) {
        sac_device_unref(&dev);
        skip();
    }
    assert_sac_ok(sac_source_open(dev, path, NULL, &src));
    assert_sac_ok(sac_source_read_wait(src, &frame));
    assert_sac_ok(
        sac_segmenter_create(dev, TEST_SOURCE_DIR "/../../models/person_seg.onnx", NULL, &seg));
    sac_frame *matte = test_matte_of(seg, frame);
    for (int y = 0; y < matte->height; y++)
        for (int x = 0; x < matte->width; x++) {
            const bool in = x >= 315 && x < 437 && y >= 5 && y < 340;
            *(in ? &inside : &outside) += test_matte_pixel(matte, x, y) / 255.0;
        }
    const double box = 106.7 * 320.8;
    if (inside < 0.35 * box || inside > 0.8 * box || outside > 0.1 * inside)
        fail_msg("%.0f pixels in the box, %.0f outside", inside, outside);
    assert_int_equal(test_matte_pixel(matte, 375, 150), 255); /* the trunk */
    assert_int_equal(test_matte_pixel(matte, 100, 100), 0);
    sac_frame_unref(&matte);
    sac_frame_unref(&frame);
    sac_source_close(&src);
    sac_segmenter_destroy(&seg);
    sac_device_unref(&dev);
}

/* ---- what is refused ---- */

static void says_what_a_network_is_instead(void **state)
{
    (void)state;
    static const struct test_segmenter_case cases[] = {
        {"yolov8", NULL, NULL, NULL, 0, SAC_ERR_UNSUPPORTED,
         "it is a detector (head 'yolov8') and gives boxes: saccade track runs it"},
        {"yolov8_pose", NULL, NULL, NULL, 0, SAC_ERR_UNSUPPORTED,
         "it is a detector (head 'yolov8') with keypoints, which a segmenter does not read: "
         "saccade track uses its boxes"},
        {"embedding_nchw", NULL, NULL, NULL, 0, SAC_ERR_UNSUPPORTED,
         "it gives one row of numbers for a picture"},
        {"classifier", NULL, NULL, NULL, 0, SAC_ERR_UNSUPPORTED,
         "as embeddings and classifiers do"},
        {"maps_depth", NULL, NULL, NULL, 0, SAC_ERR_UNSUPPORTED,
         "its outputs, of one picture output [1,64,64], are no map of classes or of a matte that "
         "can be told from other maps; --head takes yolov5, yolov8, end2end, recurrent, matte, "
         "semantic"},
        {"maps_depth", "matte", NULL, NULL, 0, SAC_OK, NULL},
        {"maps_larger", NULL, NULL, NULL, 0, SAC_ERR_UNSUPPORTED, "can be told from other maps"},
        {"maps_larger", "semantic", NULL, NULL, 0, SAC_ERR_FORMAT,
         "head 'semantic' wants [classes,h,w], [h,w,classes] or [h,w] of class numbers, in the "
         "picture's proportions; the outputs of one picture of 64x64 are picture [3,128,128]"},
        {"maps_bytes", NULL, NULL, NULL, 0, SAC_ERR_UNSUPPORTED,
         "output 'labels' is uint8; have float32, float16, int32, int64"},
        {"maps_outside", NULL, NULL, NULL, 0, SAC_ERR_UNSUPPORTED,
         "the numbers of output 'mask' go from "},
        {"maps_matte", "semantic", NULL, NULL, 0, SAC_ERR_FORMAT, "head 'semantic' wants"},
        {"maps_matte", "yolov8", NULL, NULL, 0, SAC_ERR_FORMAT, "head 'yolov8' wants"},
        {"maps_matte", "yolox", NULL, NULL, 0, SAC_ERR_ARG,
         "no head 'yolox' that gives mattes; have yolov5, yolov8, end2end, recurrent, matte, "
         "semantic"},
        {"maps_matte", NULL, "dog", NULL, 0, SAC_ERR_ARG, "there are no classes to choose"},
        {"maps_matte", NULL, NULL, NULL, 1, SAC_ERR_ARG, "there are no classes to map"},
        {"maps_matte", NULL, NULL, "size=32x32", 0, SAC_ERR_ARG, "is fixed to 64x64"},
        {"maps_torchvision", NULL, "persn", NULL, 0, SAC_ERR_ARG, "did you mean 'person'?"},
        {"maps_matte", NULL, NULL, "state=r1i:r1o", 0, SAC_ERR_ARG, "has no input 'r1i'"},
        {"maps_recurrent", NULL, NULL, "state=r1i", 0, SAC_ERR_ARG, "it takes INPUT:OUTPUT"},
        {"maps_recurrent", NULL, NULL, "state=r9i:r1o", 0, SAC_ERR_ARG, "has no input 'r9i'"},
    };
    test_segmenter_cases(cases, SAC_COUNT(cases));
}

static void a_detector_says_what_a_segmenter_is(void **state)
{
    (void)state;
    static const struct {
        const char *model, *head, *why;
    } cases[] = {
        {"maps_matte", NULL, "it is a segmenting network (head 'matte')"},
        {"maps_torchvision", NULL, "it is a segmenting network (head 'semantic')"},
        {"maps_recurrent", NULL, "it is a segmenting network (head 'recurrent')"},
        {"maps_matte", "matte", "it is a segmenting network"},
        {"maps_recurrent", "yolov8", "input 'r1i' is a state"},
    };
    sac_device *dev = test_device();
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        struct sac_detector_params p = sac_detector_params_default();
        sac_detector              *det = NULL;
        char                       why[1024] = "", names[256];
        p.head = cases[i].head;
        assert_sac_error(sac_detector_create(dev, test_network(cases[i].model), &p, &det),
                         SAC_ERR_UNSUPPORTED);
        sac_context_last_error(test_context(), why, sizeof why);
        if (!strstr(why, cases[i].why))
            fail_msg("%s: '%s'", cases[i].model, why);
        sac_head_names(false, names, sizeof names);
        assert_null(strstr(names, "matte"));
    }
    sac_device_unref(&dev);
}

static void numbers_are_checked(void **state)
{
    (void)state;
    sac_device    *dev = test_device();
    sac_segmenter *seg = NULL;
    for (int i = 0; i < 12; i++) {
        struct sac_segmenter_params p = sac_segmenter_params_default();
        switch (i) {
        case 0: p.batch_max = 0; break;
        case 1: p.guide = 9; break;
        case 2: p.guide_noise = -1; break;
        case 3: p.smooth = 0.96f; break;
        case 4: p.smooth = -0.1f; break;
        case 5: p.hole = -1; break;
        case 6: p.feather_low = 0.9f; break;
        case 7: p.feather_high = 1.1f; break;
        case 8: p.class_map = 2; break;
        case 9: p.feather_low = 0.0f / 0.0f; break;
        case 10: p.stereo = (enum sac_stereo)3; break;
        default: p.reserved[3] = 1; break;
        }
        const sac_result res = sac_segmenter_create(dev, test_network("maps_matte"), &p, &seg);
        if (res != SAC_ERR_ARG || seg)
            fail_msg("case %d: %s", i, sac_result_name(res));
    }
    sac_device_unref(&dev);
}

static void a_device_without_mattes_says_so(void **state)
{
    (void)state;
    static struct sac_device_ops ops;
    static struct sac_vision_ops vision;
    sac_device                  *dev = test_device();
    sac_segmenter               *seg = NULL;
    char                         why[512] = "";
    ops = *dev->ops;
    vision = *ops.vision;
    vision.matte = NULL;
    ops.vision = &vision;
    dev->ops = &ops;
    assert_sac_error(sac_segmenter_create(dev, test_network("maps_matte"), NULL, &seg),
                     SAC_ERR_UNSUPPORTED);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_string_equal(why, "cpu cannot make mattes; use --device cpu");
    sac_device_unref(&dev);
}

/* ---- batches and streams ---- */

/* Frames of three streams and several sizes, with noise, so that smoothing has what to do. */
static void make_frames(sac_device *dev, sac_frame *frames[FRAMES])
{
    static const struct {
        int width, height, stream_id;
    } of[FRAMES] = {{96, 64, 0}, {80, 80, 1}, {96, 64, 0}, {64, 48, 2}, {96, 64, 0}, {80, 80, 1}};
    for (int i = 0; i < FRAMES; i++) {
        frames[i] = test_frame(dev, SAC_PIXEL_I420, of[i].width, of[i].height);
        test_fill(frames[i], 60, 200, 120, 136);
        frames[i]->stream_id = of[i].stream_id;
    }
}

static void compare(const sac_frame *want, const sac_frame *got, int i)
{
    assert_true(want->width == got->width && want->height == got->height);
    for (int y = 0; y < want->height; y++)
        if (memcmp(want->plane[0] + (size_t)y * want->pitch_bytes[0],
                   got->plane[0] + (size_t)y * got->pitch_bytes[0], (size_t)want->width) != 0)
            fail_msg("frame %d differs in row %d", i, y);
}

static void unref_all(sac_frame **frames)
{
    for (int i = 0; i < FRAMES; i++)
        sac_frame_unref(&frames[i]);
}

/* One after the other, in one batch of four and one of two, in two that are under way at once. */
static void batches_give_what_single_frames_give(void **state)
{
    (void)state;
    static const char *const    models[] = {"maps_matte", "maps_logit", "maps_torchvision",
                                            "maps_label_real"};
    struct sac_segmenter_params p = sac_segmenter_params_default();
    sac_device                 *dev = test_device();
    sac_frame                  *frames[FRAMES], *want[FRAMES], *got[FRAMES];
    struct sac_segmenter_ask    asks[FRAMES];
    struct sac_batch_times      times;
    make_frames(dev, frames);
    for (size_t m = 0; m < SAC_COUNT(models); m++) {
        p.batch_max = 1;
        sac_segmenter *one = test_segmenter(dev, models[m], &p);
        p.batch_max = 4;
        sac_segmenter *four = test_segmenter(dev, models[m], &p);
        assert_int_equal(four->batch, 4);
        for (int i = 0; i < FRAMES; i++)
            want[i] = test_matte_of(one, frames[i]);
        assert_sac_ok(sac_segmenter_run(four, frames, FRAMES, got));
        for (int i = 0; i < FRAMES; i++)
            compare(want[i], got[i], i);
        unref_all(got);
        for (int s = 0; s < 3; s++)
            sac_segmenter_forget(four, s);
        assert_int_equal(four->stream_count, 0);
        assert_sac_ok(sac_segmenter_warm_up(four));
        assert_sac_ok(sac_buckets_time(&four->buckets, true));
        for (int i = 0; i < FRAMES; i++)
            asks[i] = (struct sac_segmenter_ask){.frame = frames[i]};
        assert_sac_ok(sac_segmenter_begin(four, 0, asks, 3));
        assert_sac_ok(sac_segmenter_begin(four, 1, asks + 3, 3));
        assert_true(sac_segmenter_arrived(four, 0));
        assert_sac_ok(sac_segmenter_end(four, 0, got, NULL, NULL, &times));
        assert_true(times.gpu_ns[0] > 0 && times.gpu_ns[1] > 0 && times.gpu_ns[2] > 0);
        assert_sac_ok(sac_segmenter_end(four, 1, got + 3, NULL, NULL, &times));
        for (int i = 0; i < FRAMES; i++)
            compare(want[i], got[i], i);
        unref_all(got);
        unref_all(want);
        sac_segmenter_destroy(&one);
        sac_segmenter_destroy(&four);
    }
    unref_all(frames);
    sac_device_unref(&dev);
}

/* The matte of stream 0 after other frames of it differs from its first: it is smoothed. Forgotten,
 * or of another size, it begins anew. */
static void a_stream_is_smoothed_until_it_is_forgotten(void **state)
{
    (void)state;
    struct sac_segmenter_params p = sac_segmenter_params_default();
    sac_device                 *dev = test_device();
    p.smooth = 0.9f;
    p.feather_low = 0;
    p.feather_high = 1;
    sac_segmenter *seg = test_segmenter(dev, "maps_matte", &p);
    sac_frame     *grey = test_frame(dev, SAC_PIXEL_GRAY8, SIDE, SIDE),
              *other = test_frame(dev, SAC_PIXEL_GRAY8, SIDE, SIDE);
    /* As bright to the eye of smoothing; the network is unsure of both. */
    memset(grey->plane[0], 126, grey->pitch_bytes[0] * SIDE);
    memset(other->plane[0], 127, other->pitch_bytes[0] * SIDE);
    for (int y = 0; y < SIDE; y++)
        memset(grey->plane[0] + (size_t)y * grey->pitch_bytes[0], 124, SIDE);
    sac_frame *first = test_matte_of(seg, other), *before = NULL, *after = NULL, *anew = NULL;
    sac_segmenter_forget(seg, 0);
    before = test_matte_of(seg, grey);
    after = test_matte_of(seg, other);
    if (test_matte_pixel(after, 32, 32) == test_matte_pixel(first, 32, 32))
        fail_msg("%d after %d: not smoothed", test_matte_pixel(after, 32, 32),
                 test_matte_pixel(before, 32, 32));
    sac_segmenter_forget(seg, 0);
    anew = test_matte_of(seg, other);
    compare(first, anew, 0);
    sac_frame_unref(&anew);
    anew = test_matte_of(seg, grey);
    sac_frame_unref(&anew);
    other->stream_id = 7; /* another stream's first frame */
    anew = test_matte_of(seg, other);
    compare(first, anew, 1);
    sac_frame_unref(&first);
    sac_frame_unref(&before);
    sac_frame_unref(&after);
    sac_frame_unref(&anew);
    sac_frame_unref(&grey);
    sac_frame_unref(&other);
    sac_segmenter_destroy(&seg);
    sac_device_unref(&dev);
}

static void so_many_streams_are_kept(void **state)
{
    (void)state;
    sac_device    *dev = test_device();
    sac_segmenter *seg = test_segmenter(dev, "maps_logit", NULL);
    sac_frame     *frame = make_frame(dev, 16, 16, 0);
    for (int i = 0; i < SAC_SEGMENTER_STREAMS_MAX + 20; i++) {
        frame->stream_id = i;
        sac_frame *matte = test_matte_of(seg, frame);
        sac_frame_unref(&matte);
    }
    assert_int_equal(seg->stream_count, SAC_SEGMENTER_STREAMS_MAX);
    sac_frame_unref(&frame);
    sac_segmenter_destroy(&seg);
    sac_device_unref(&dev);
}

/* ---- what is asked for a frame ---- */

static sac_frame *run_ask(sac_segmenter *seg, struct sac_segmenter_ask ask,
                          struct sac_segmenter_summary *summary)
{
    struct sac_batch_times times;
    sac_frame             *matte = NULL;
    assert_sac_ok(sac_segmenter_begin(seg, 0, &ask, 1));
    assert_sac_ok(sac_segmenter_end(seg, 0, &matte, summary, NULL, &times));
    return matte;
}

/* The part of a frame that the network sees gives what a frame of that part alone gives, and the
 * rest is 0. */
static void only_the_region_is_seen(void **state)
{
    (void)state;
    static const struct sac_rect regions[] = {
        {40, 16, 104, 80}, {0, 0, 64, 64}, {96.4f, 30.2f, 127.2f, 61.9f}, {40, -9, 300, 300}};
    const struct sac_segmenter_params params = test_plain_params();
    sac_device                       *dev = test_device();
    sac_segmenter                    *seg = test_segmenter(dev, "maps_matte", &params);
    sac_frame                        *frame = test_frame(dev, SAC_PIXEL_RGB24, 160, 120);
    for (size_t i = 0; i < SAC_COUNT(regions); i++) {
        const struct sac_rect r = {
            SAC_MAX(floorf(regions[i].x0), 0), SAC_MAX(floorf(regions[i].y0), 0),
            SAC_MIN(ceilf(regions[i].x1), 160), SAC_MIN(ceilf(regions[i].y1), 120)};
        const int  x0 = (int)r.x0, y0 = (int)r.y0;
        sac_frame *part = test_frame(dev, SAC_PIXEL_RGB24, (int)r.x1 - x0, (int)r.y1 - y0);
        test_fill(frame, 60, 200, 128, 128);
        memset(frame->plane[0], 200, frame->pitch_bytes[0]); /* bright outside too */
        for (int y = 0; y < part->height; y++)
            memcpy(part->plane[0] + (size_t)y * part->pitch_bytes[0],
                   frame->plane[0] + (size_t)(y0 + y) * frame->pitch_bytes[0] + 3 * (size_t)x0,
                   3 * (size_t)part->width);
        frame->stream_id = 0;
        part->stream_id = 1;
        sac_frame *want = test_matte_of(seg, part);
        sac_frame *got =
            run_ask(seg, (struct sac_segmenter_ask){.frame = frame, .region = regions[i]}, NULL);
        for (int y = 0; y < 120; y++)
            for (int x = 0; x < 160; x++) {
                const bool in = x >= x0 && x < (int)r.x1 && y >= y0 && y < (int)r.y1;
                const int  wanted = in ? test_matte_pixel(want, x - x0, y - y0) : 0;
                /* Where it is enlarged, the edge of the region is read beyond it. */
                const bool edge =
                    in && (x < x0 + 2 || x + 2 >= (int)r.x1 || y < y0 + 2 || y + 2 >= (int)r.y1);
                if (!edge && abs(test_matte_pixel(got, x, y) - wanted) > in)
                    fail_msg("region %zu at %d,%d: %d, expected %d", i, x, y,
                             test_matte_pixel(got, x, y), wanted);
            }
        sac_frame_unref(&want);
        sac_frame_unref(&got);
        sac_frame_unref(&part);
    }
    sac_frame_unref(&frame);
    sac_segmenter_destroy(&seg);
    sac_device_unref(&dev);
}

/* Where it moves, the stream begins anew; where it stays, it is smoothed. */
static void another_region_begins_anew(void **state)
{
    (void)state;
    const struct sac_rect       here = {8, 8, 40, 40}, there = {9, 8, 41, 40};
    struct sac_segmenter_params p = sac_segmenter_params_default();
    sac_device                 *dev = test_device();
    sac_segmenter              *seg = test_segmenter(dev, "maps_matte", &p);
    sac_frame                  *frame = make_frame(dev, SIDE, SIDE, 0);
    static const bool           follows[] = {false, true, false, true, false, false};
    for (int i = 0; i < 6; i++) {
        const struct sac_segmenter_ask ask = {.frame = frame,
                                              .region = i == 5       ? (struct sac_rect){0}
                                                        : i / 2 == 1 ? there
                                                                     : here};
        const unsigned before = seg->stream_count ? seg->streams[0].eye[0].state.turn : 0;
        sac_frame     *matte = run_ask(seg, ask, NULL);
        if (seg->slots[0].jobs[0].state.has_before != follows[i])
            fail_msg("frame %d %s", i, follows[i] ? "begins anew" : "is smoothed");
        assert_int_equal(seg->streams[0].eye[0].state.turn, before + 1);
        sac_frame_unref(&matte);
    }
    sac_frame_unref(&frame);
    sac_segmenter_destroy(&seg);
    sac_device_unref(&dev);
}

/* Frames of two streams, of which the network sees some: one after the other or in batches, that
 * take no place for those that are kept. */
static void kept_frames_are_not_run(void **state)
{
    (void)state;
    enum { COUNT = 8 };
    static const bool           keep[COUNT] = {true, true, true, false, true, true, false, true};
    static const int            of[COUNT] = {0, 0, 1, 0, 0, 1, 1, 1};
    static const bool           kept[COUNT] = {false, true, false, false, true, true, false, true};
    struct sac_segmenter_params p = sac_segmenter_params_default();
    sac_device                 *dev = test_device();
    struct sac_batch_times      times;
    p.batch_max = 1;
    sac_segmenter *one = test_segmenter(dev, "maps_matte", &p);
    p.batch_max = COUNT;
    sac_segmenter           *all = test_segmenter(dev, "maps_matte", &p);
    sac_frame               *want[COUNT], *got[COUNT];
    struct sac_segmenter_ask asks[COUNT];
    for (int i = 0; i < COUNT; i++) {
        asks[i] = (struct sac_segmenter_ask){.frame = test_frame(dev, SAC_PIXEL_I420, 96, 64),
                                             .keep = keep[i]};
        test_fill(asks[i].frame, 60, 200, 120, 136);
        asks[i].frame->stream_id = of[i];
        struct sac_segmenter_summary summary;
        want[i] = run_ask(one, asks[i], &summary);
        if (summary.kept != kept[i] || (one->slots[0].batch.part_count == 0) != kept[i])
            fail_msg("frame %d is %skept", i, summary.kept ? "" : "not ");
    }
    assert_sac_ok(sac_buckets_time(&all->buckets, true));
    assert_sac_ok(sac_segmenter_begin(all, 0, asks, COUNT));
    assert_int_equal(all->slots[0].batch.part_count, 1);
    assert_int_equal(all->slots[0].batch.parts[0].bucket->size, 4);
    assert_sac_ok(sac_segmenter_end(all, 0, got, NULL, NULL, &times));
    for (int i = 0; i < COUNT; i++) {
        compare(want[i], got[i], i);
        sac_frame_unref(&want[i]);
        sac_frame_unref(&got[i]);
    }
    assert_sac_ok(sac_segmenter_begin(all, 0, asks, 1)); /* nothing is run */
    assert_int_equal(all->slots[0].batch.part_count, 0);
    assert_sac_ok(sac_segmenter_end(all, 0, got, NULL, NULL, &times));
    assert_int_equal(times.gpu_ns[1], 0);
    sac_frame_unref(&got[0]);
    for (int i = 0; i < COUNT; i++)
        sac_frame_unref(&asks[i].frame);
    sac_segmenter_destroy(&one);
    sac_segmenter_destroy(&all);
    sac_device_unref(&dev);
}

static void some_frames_cannot_be_kept(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        int         class_map, width;
        float       left; /* of the region; 0: none */
        bool        kept;
    } cases[] = {
        {"maps_matte", 0, SIDE, 0, true},        {"maps_matte", 0, SIDE + 2, 0, false},
        {"maps_matte", 0, SIDE, 8, false},       {"maps_recurrent_fixed", 0, SIDE, 0, false},
        {"maps_torchvision", 1, SIDE, 0, false}, {"maps_torchvision", 0, SIDE, 0, true},
    };
    sac_device *dev = test_device();
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        struct sac_segmenter_params  p = sac_segmenter_params_default();
        struct sac_segmenter_summary summary = {0};
        p.class_map = cases[i].class_map;
        sac_segmenter *seg = test_segmenter(dev, cases[i].model, &p);
        sac_segmenter_summarise(seg, true);
        sac_frame               *first = make_frame(dev, SIDE, SIDE, 0), *next;
        struct sac_segmenter_ask ask = {.frame = make_frame(dev, cases[i].width, SIDE, 0),
                                        .keep = true};
        if (cases[i].left > 0)
            ask.region = (struct sac_rect){cases[i].left, 0, SIDE, SIDE};
        sac_frame *matte = test_matte_of(seg, first);
        next = run_ask(seg, ask, &summary);
        if (summary.kept != cases[i].kept)
            fail_msg("case %zu is %skept", i, summary.kept ? "" : "not ");
        sac_frame_unref(&matte);
        sac_frame_unref(&next);
        sac_frame_unref(&first);
        sac_frame_unref(&ask.frame);
        sac_segmenter_destroy(&seg);
    }
    sac_device_unref(&dev);
}

/* Bright on the right: where that is, in the frame's pixels, whatever was seen of it. */
static void summaries_tell_where_something_is(void **state)
{
    (void)state;
    static const struct {
        struct sac_rect region, found;
    } cases[] = {
        {{0, 0, 0, 0}, {100, 0, 200, 120}},
        {{50, 20, 150, 100}, {100, 20, 150, 100}},
        {{0, 0, 80, 120}, {0, 0, 0, 0}},
        {{150, 30, 200, 120}, {150, 30, 200, 120}},
    };
    const struct sac_segmenter_params p = test_plain_params();
    sac_device                       *dev = test_device();
    sac_segmenter                    *seg = test_segmenter(dev, "maps_inside", &p);
    sac_frame                        *frame = make_frame(dev, 200, 120, 0);
    sac_segmenter_summarise(seg, true);
    for (size_t i = 0; i < SAC_COUNT(cases); i++)
        for (int keep = 0; keep < 2; keep++) {
            struct sac_segmenter_summary   s = {0};
            const struct sac_rect         *want = &cases[i].found;
            const struct sac_segmenter_ask ask = {
                .frame = frame, .keep = keep, .region = cases[i].region};
            sac_frame  *matte = run_ask(seg, ask, &s);
            const float slack = 200.0f / 64 + 1; /* a cell */
            if (fabsf(s.found.x0 - want->x0) > slack || fabsf(s.found.y0 - want->y0) > slack ||
                fabsf(s.found.x1 - want->x1) > slack || fabsf(s.found.y1 - want->y1) > slack)
                fail_msg("case %zu, %d: found at %g,%g to %g,%g", i, keep, (double)s.found.x0,
                         (double)s.found.y0, (double)s.found.x1, (double)s.found.y1);
            if (s.kept != keep || s.unsure < 0 || s.unsure > 0.2f)
                fail_msg("case %zu, %d: kept %d, unsure %g", i, keep, s.kept, (double)s.unsure);
            sac_frame_unref(&matte);
        }
    sac_frame_unref(&frame);
    sac_segmenter_destroy(&seg);
    sac_device_unref(&dev);
}

/* ---- states ---- */

/* The network counts the frames before; states that change places would show as another number. */
static void check_states(sac_device *dev, const char *model, const char *preprocess)
{
    struct sac_segmenter_params p = test_plain_params();
    p.preprocess = preprocess;
    sac_segmenter *seg = test_segmenter(dev, model, &p);
    assert_string_equal(sac_segmenter_head_name(seg), "recurrent");
    assert_int_equal(seg->batch, 1);
    struct sac_segmenter_info info;
    sac_segmenter_inspect(seg, &info);
    assert_int_equal(info.states, 2);
    assert_int_equal(info.width, SIDE / 4); /* before any run, whatever the network shrinks by */
    assert_false(sac_feed_has(&seg->view.feed, SAC_FEED_RATIO));
    assert_true(sac_feed_ratio(1080, 1920) == 512.0 / 1920 && sac_feed_ratio(320, 200) == 1);
    assert_non_null(sac_segmenter_state_input(seg, 1));
    assert_non_null(sac_segmenter_state_output(seg, 1));
    assert_null(sac_segmenter_state_input(seg, 2));
    static const struct {
        int stream_id, before, width;
    } cases[] = {{0, 0, 64},  {0, 1, 64}, {1, 0, 64},  {0, 2, 64},  {1, 1, 64},
                 {0, 3, 64},  {1, 2, 64}, {0, 4, 64},  {0, 0, 128}, {1, 3, 64},
                 {0, 1, 128}, {-1, 0, 0}, {0, 0, 128}, {1, 4, 64},  {0, 1, 128}};
    const sac_tensor *seen[3] = {NULL};
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        if (cases[i].stream_id < 0) {
            sac_segmenter_forget(seg, 0);
            continue;
        }
        sac_frame *frame = make_frame(dev, cases[i].width, 64, cases[i].stream_id);
        sac_frame *matte = test_matte_of(seg, frame);
        const int  bright = test_matte_pixel(matte, cases[i].width * 3 / 4, 30);
        if (abs(bright - 255 * cases[i].before / 10) > 2)
            fail_msg("%s, case %zu: %d, expected that of %d frames before", model, i, bright,
                     cases[i].before);
        sac_frame_unref(&matte);
        sac_frame_unref(&frame);
        seen[i % 3] = seg->streams[0].eye[0].states[0].given[0];
    }
    assert_non_null(seen[0]);
    sac_segmenter_destroy(&seg);
}

static void states_belong_to_their_stream(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    check_states(dev, "maps_recurrent", NULL);
    check_states(dev, "maps_recurrent", "state=r1i:r1o,state=r2i:r2o");
    check_states(dev, "maps_recurrent_published", NULL);
    check_states(dev, "maps_recurrent_fixed", NULL);
    check_states(dev, "maps_recurrent_named", NULL);
    sac_device_unref(&dev);
}

/* A frame for whose matte there was no memory is tried again: its state went no further meanwhile.
 */
static void states_wait_for_a_frame_that_is_tried_again(void **state)
{
    (void)state;
    enum { WIDTH = 2000, HEIGHT = 1000, BEFORE = 3 };
    struct sac_device_params          limited = sac_device_params_default();
    const struct sac_segmenter_params p = test_plain_params();
    sac_device                       *dev = NULL;
    sac_frame                        *matte = NULL, *held[64] = {NULL};
    limited.memory_limit_bytes = 64 << 20;
    assert_sac_ok(sac_device_open(test_context(), "cpu", &limited, &dev));
    sac_segmenter *seg = test_segmenter(dev, "maps_recurrent_fixed", &p);
    sac_frame     *frame = make_frame(dev, WIDTH, HEIGHT, 0);
    for (int i = 0; i < BEFORE; i++)
        held[i] = test_matte_of(seg, frame);
    for (size_t i = BEFORE; i < SAC_COUNT(held); i++)
        if (sac_frame_create(dev, held[0], &held[i]) != SAC_OK)
            break;
    assert_null(held[SAC_COUNT(held) - 1]);
    for (int i = 0; i < 2; i++)
        assert_sac_error(sac_segmenter_run(seg, &frame, 1, &matte), SAC_ERR_LIMIT);
    for (size_t i = 0; i < SAC_COUNT(held); i++)
        sac_frame_unref(&held[i]);
    matte = test_matte_of(seg, frame);
    if (abs(test_matte_pixel(matte, WIDTH * 3 / 4, 30) - 255 * BEFORE / 10) > 2)
        fail_msg("%d, expected that of %d frames before",
                 test_matte_pixel(matte, WIDTH * 3 / 4, 30), BEFORE);
    sac_frame_unref(&matte);
    sac_frame_unref(&frame);
    sac_segmenter_destroy(&seg);
    sac_device_unref(&dev);
}

/* In the long run two sets of tensors change places: no more are taken. */
static void states_are_the_tensors_that_it_gave(void **state)
{
    (void)state;
    sac_device    *dev = test_device();
    sac_segmenter *seg = test_segmenter(dev, "maps_recurrent_fixed", NULL);
    sac_frame     *frame = make_frame(dev, SIDE, SIDE, 0);
    const void    *at[6];
    for (int i = 0; i < 6; i++) {
        sac_frame *matte = test_matte_of(seg, frame);
        sac_frame_unref(&matte);
        at[i] = sac_tensor_data(seg->streams[0].eye[0].states[0].given[0]);
    }
    assert_true(at[3] != at[4] && at[3] == at[5] && at[2] == at[4]);
    sac_frame_unref(&frame);
    sac_segmenter_destroy(&seg);
    sac_device_unref(&dev);
}

static void wrong_calls_are_refused(void **state)
{
    (void)state;
    sac_device    *dev = test_device(), *other = test_device();
    sac_segmenter *seg = test_segmenter(dev, "maps_matte", NULL);
    sac_frame *mine = make_frame(dev, SIDE, SIDE, 0), *theirs = make_frame(other, SIDE, SIDE, 0);
    sac_frame *frames[2] = {mine, theirs}, *mattes[2];
    assert_sac_error(sac_segmenter_run(seg, frames, 2, mattes), SAC_ERR_ARG);
    assert_true(!mattes[0] && !mattes[1]);
    frames[1] = NULL;
    assert_sac_error(sac_segmenter_run(seg, frames, 2, mattes), SAC_ERR_ARG);
    assert_sac_error(sac_segmenter_run(NULL, frames, 1, mattes), SAC_ERR_ARG);
    assert_sac_ok(sac_segmenter_run(seg, frames, 1, mattes)); /* the slot was not lost */
    sac_frame_unref(&mattes[0]);
    sac_segmenter_forget(seg, 99);
    sac_frame_unref(&mine);
    sac_frame_unref(&theirs);
    sac_segmenter_destroy(&seg);
    sac_segmenter_destroy(&seg);
    sac_device_unref(&dev);
    sac_device_unref(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_marks_what_it_was_made_for),
        cmocka_unit_test(knows_whole_networks),
        cmocka_unit_test(person_seg_marks_a_person),
        cmocka_unit_test(the_classes_can_be_chosen),
        cmocka_unit_test(says_what_a_network_is_instead),
        cmocka_unit_test(a_detector_says_what_a_segmenter_is),
        cmocka_unit_test(numbers_are_checked),
        cmocka_unit_test(a_device_without_mattes_says_so),
        cmocka_unit_test(batches_give_what_single_frames_give),
        cmocka_unit_test(a_stream_is_smoothed_until_it_is_forgotten),
        cmocka_unit_test(so_many_streams_are_kept),
        cmocka_unit_test(only_the_region_is_seen),
        cmocka_unit_test(another_region_begins_anew),
        cmocka_unit_test(kept_frames_are_not_run),
        cmocka_unit_test(some_frames_cannot_be_kept),
        cmocka_unit_test(summaries_tell_where_something_is),
        cmocka_unit_test(states_belong_to_their_stream),
        cmocka_unit_test(states_wait_for_a_frame_that_is_tried_again),
        cmocka_unit_test(states_are_the_tensors_that_it_gave),
        cmocka_unit_test(wrong_calls_are_refused),
    };
    test_without_onednn();
    return cmocka_run_group_tests_name("heads/segmenter", tests, NULL, NULL);
}
