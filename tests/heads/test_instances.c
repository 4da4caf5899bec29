/* SPDX-License-Identifier: Apache-2.0 */
/* Segmenters of instance networks, on the small ones of make_instances.py: a person, the lower half
 * of a dog behind it, what NMS drops and what is unlikely; nothing in the dark. */
#include <stddef.h>
#include <string.h>

#include "tests/gpu.h"
#include "tests/heads/segmenters.h"
#include "tests/vision/frames.h"

enum { SIDE = 64 };

static sac_frame *make_frame(sac_device *dev, int width, int height, int grey, int stream_id)
{
    sac_frame *f = test_frame(dev, SAC_PIXEL_RGB24, width, height);
    for (int y = 0; y < height; y++)
        memset(f->plane[0] + (size_t)y * f->pitch_bytes[0], grey, 3 * (size_t)width);
    f->stream_id = stream_id;
    return f;
}

static const char *const families[][2] = {{"instances_yolov8", "yolov8"},
                                          {"instances_unnamed", "yolov8"},
                                          {"instances_yolov5", "yolov5"},
                                          {"instances_end2end", "end2end"},
                                          {"instances_end2end_unnamed", "end2end"}};

/* Where is what, in pixels of the network's input. */
static const struct spot {
    const char *what;
    int         x, y;
    bool        person, dog;
} spots[] = {
    {"the person", 12, 12, true, false},
    {"its other end", 36, 52, true, true},
    {"left of it", 4, 30, false, false},
    {"above it", 20, 4, false, false},
    {"below it, which NMS drops", 14, 60, false, false},
    {"the dog", 58, 60, false, true},
    {"above the dog", 58, 20, false, false},
    {"what is unlikely", 60, 2, false, false},
    {"the dog's edge", 28, 62, false, true},
};

static void check_spots(const char *model, const sac_frame *matte, bool person, bool dog)
{
    for (size_t i = 0; i < SAC_COUNT(spots); i++) {
        const struct spot *s = &spots[i];
        const bool         in = (person && s->person) || (dog && s->dog);
        const int          v = test_matte_pixel(matte, s->x, s->y);
        if (in ? v < 250 : v > 5)
            fail_msg("%s: %d at %s", model, v, s->what);
    }
}

static void mattes_are_those_of_the_wanted_boxes(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    sac_frame  *frame = make_frame(dev, SIDE, SIDE, 255, 0);
    for (size_t i = 0; i < SAC_COUNT(families); i++) {
        static const char *const        names[] = {"person", "dog", "dog, person", NULL, "all"},
                                 *const numbers[] = {"1", "2", "2,1", NULL, "all"};
        const bool                      unnamed = strstr(families[i][0], "unnamed") != NULL;
        for (int k = 0; k < 5; k++) {
            struct sac_segmenter_params p = test_plain_params();
            p.classes = (unnamed ? numbers : names)[k];
            sac_segmenter *seg = test_segmenter(dev, families[i][0], &p);
            sac_frame     *matte = test_matte_of(seg, frame);
            assert_string_equal(sac_segmenter_head_name(seg), families[i][1]);
            /* without a list it is the person, or all where nothing has a name */
            check_spots(families[i][0], matte, k != 1,
                        k == 1 || k == 2 || k == 4 || (k == 3 && unnamed));
            sac_frame_unref(&matte);
            sac_segmenter_destroy(&seg);
        }
    }
    sac_frame_unref(&frame);
    sac_device_unref(&dev);
}

/* Class numbers begin at 1, before them is the background. Where two are, it is whose share is
 * greater. */
static void maps_of_classes_begin_with_the_background(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    sac_frame  *frame = make_frame(dev, SIDE, SIDE, 255, 0);
    for (size_t i = 0; i < SAC_COUNT(families); i++) {
        struct sac_segmenter_params p = test_plain_params();
        char                        kept[64];
        p.class_map = 1;
        sac_segmenter *seg = test_segmenter(dev, families[i][0], &p);
        sac_frame     *map = test_matte_of(seg, frame);
        for (size_t k = 0; k < SAC_COUNT(spots); k++)
            if (test_matte_pixel(map, spots[k].x, spots[k].y) != (spots[k].person ? 1
                                                                  : spots[k].dog  ? 2
                                                                                  : 0))
                fail_msg("%s: class %d at %s", families[i][0],
                         test_matte_pixel(map, spots[k].x, spots[k].y), spots[k].what);
        if (!strcmp(families[i][0], "instances_yolov8")) {
            assert_int_equal(sac_segmenter_class_count(seg), 3);
            assert_string_equal(sac_segmenter_class_name(seg, 0), "background");
            assert_string_equal(sac_segmenter_class_name(seg, 2), "dog");
            sac_segmenter_describe_classes(seg, kept, sizeof kept);
            assert_string_equal(kept, "person (1 of 2)");
        }
        sac_frame_unref(&map);
        sac_segmenter_destroy(&seg);
        if (i != 0)
            continue;
        p.classes = "dog"; /* asked for, the others are not on the map */
        seg = test_segmenter(dev, families[i][0], &p);
        map = test_matte_of(seg, frame);
        assert_int_equal(test_matte_pixel(map, 36, 52), 2);
        assert_int_equal(test_matte_pixel(map, 12, 12), 0);
        sac_frame_unref(&map);
        sac_segmenter_destroy(&seg);
    }
    sac_frame_unref(&frame);
    sac_device_unref(&dev);
}

/* Frames of a batch have boxes of their own, also behind frames without any; frames of another size
 * too, which the network sees between borders. */
static void frames_of_a_batch_keep_their_masks(void **state)
{
    (void)state;
    enum { N = 6 };
    sac_device                 *dev = test_device();
    sac_frame                  *frames[N], *mattes[N];
    struct sac_segmenter_params p = test_plain_params();
    p.batch_max = 4;
    for (int i = 0; i < N; i++)
        frames[i] = make_frame(dev, i == 4 ? 128 : SIDE, SIDE, i % 3 == 1 ? 20 : 255, i);
    for (size_t k = 0; k < SAC_COUNT(families); k++) {
        if (strstr(families[k][0], "unnamed"))
            continue;
        sac_segmenter *seg = test_segmenter(dev, families[k][0], &p);
        assert_sac_ok(sac_segmenter_run(seg, frames, N, mattes));
        for (int i = 0; i < N; i++) {
            if (i % 3 == 1 && i != 4)
                for (int y = 0; y < SIDE; y++)
                    for (int x = 0; x < SIDE; x++)
                        assert_int_equal(test_matte_pixel(mattes[i], x, y), 0);
            else if (i != 4)
                check_spots(families[k][0], mattes[i], true, false);
        }
        assert_true(mattes[4]->width == 128 && mattes[4]->height == SIDE);
        for (int i = 0; i < N; i++)
            sac_frame_unref(&mattes[i]);
        sac_segmenter_destroy(&seg);
    }
    sac_segmenter *seg = test_segmenter(dev, "instances_yolov8", &p);
    sac_frame *wide = make_frame(dev, 2 * SIDE, SIDE, 255, 0), *matte = test_matte_of(seg, wide);
    /* half as large, 16 pixels below the top */
    assert_true(test_matte_pixel(matte, 40, 8) > 250 && test_matte_pixel(matte, 10, 8) < 5 &&
                test_matte_pixel(matte, 90, 8) < 5 && test_matte_pixel(matte, 70, 60) > 250);
    sac_frame_unref(&matte);
    sac_frame_unref(&wide);
    sac_segmenter_destroy(&seg);
    for (int i = 0; i < N; i++)
        sac_frame_unref(&frames[i]);
    sac_device_unref(&dev);
}

static void each_eye_has_masks_of_its_own(void **state)
{
    (void)state;
    sac_device                 *dev = test_device();
    struct sac_segmenter_params p = test_plain_params();
    p.stereo = SAC_STEREO_SBS;
    p.batch_max = 2;
    sac_segmenter *seg = test_segmenter(dev, "instances_yolov8", &p);
    sac_frame     *frame = make_frame(dev, 2 * SIDE, SIDE, 255, 0);
    for (int y = 0; y < SIDE; y++) /* the right eye sees nothing */
        memset(frame->plane[0] + (size_t)y * frame->pitch_bytes[0] + 3 * SIDE, 10, 3 * SIDE);
    sac_frame *matte = test_matte_of(seg, frame);
    check_spots("the left eye", matte, true, false);
    for (int y = 0; y < SIDE; y++)
        for (int x = SIDE; x < 2 * SIDE; x++)
            assert_int_equal(test_matte_pixel(matte, x, y), 0);
    sac_frame_unref(&matte);
    sac_frame_unref(&frame);
    sac_segmenter_destroy(&seg);
    sac_device_unref(&dev);
}

/* As on a device that must run all once before it is fast. */
static void warming_up_takes_what_runs_need(void **state)
{
    (void)state;
    sac_device                  *dev = test_device();
    const struct sac_device_ops *usual = dev->ops;
    struct sac_device_ops        ops = *usual;
    struct sac_segmenter_params  p = test_plain_params();
    ops.warm_runs = 1;
    dev->ops = &ops;
    for (size_t i = 0; i < SAC_COUNT(families); i++) {
        sac_segmenter *seg = test_segmenter(dev, families[i][0], &p);
        sac_frame     *frame = make_frame(dev, SIDE, SIDE, 255, 0);
        assert_sac_ok(sac_segmenter_warm_up(seg));
        const struct sac_buffer *found = seg->instances.found, *map = seg->instances.map;
        assert_true(found && map);
        sac_frame *matte = test_matte_of(seg, frame);
        assert_true(seg->instances.found == found && seg->instances.map == map);
        check_spots(families[i][0], matte, true, strstr(families[i][0], "unnamed") != NULL);
        sac_frame_unref(&matte);
        sac_frame_unref(&frame);
        sac_segmenter_destroy(&seg);
    }
    dev->ops = usual;
    sac_device_unref(&dev);
}

/* ---- one by one ---- */

struct each {
    sac_frame                 *matte;
    struct sac_segmenter_found found;
};

/* A batch; the frames are let go. */
static void run_each(sac_segmenter *seg, sac_frame **frames, int n, struct each *out)
{
    struct sac_segmenter_ask   asks[8] = {{0}};
    struct sac_segmenter_found found[8] = {{{{0}}}};
    sac_frame                 *mattes[8];
    struct sac_batch_times     times;
    assert_true(n <= 8);
    for (int i = 0; i < n; i++) /* they are seen all the same */
        asks[i] = (struct sac_segmenter_ask){.frame = frames[i], .keep = true};
    assert_sac_ok(sac_segmenter_begin(seg, 0, asks, n));
    assert_sac_ok(sac_segmenter_end(seg, 0, mattes, NULL, found, &times));
    for (int i = 0; i < n; i++) {
        out[i] = (struct each){mattes[i], found[i]};
        sac_frame_unref(&frames[i]);
    }
}

static void each_finish(struct each *e)
{
    sac_frame_unref(&e->matte);
    sac_segmenter_found_finish(&e->found);
}

static bool is_in(const struct sac_instance_mask *m, int x, int y)
{
    return x >= m->x0 && x < m->x1 && y >= m->y0 && y < m->y1 &&
           m->pixels[(size_t)(y - m->y0) * (size_t)(m->x1 - m->x0) + (size_t)(x - m->x0)];
}

/* The person is all of its box, the dog the lower half of its own; they overlap. */
static void check_each(const char *model, const struct sac_segmenter_found_eye *eye)
{
    static const int           boxes[2][4] = {{8, 8, 40, 56}, {24, 0, 64, 64}};
    struct sac_instance_mask   mask = {0};
    const struct sac_instance *one = eye->items;
    assert_int_equal(eye->count, 2);
    for (int k = 0; k < 2; k++) {
        const int *b = boxes[k];
        assert_int_equal(one[k].box.class_id, k);
        assert_true(one[k].box.x0 == (float)b[0] && one[k].box.y0 == (float)b[1] &&
                    one[k].box.x1 == (float)b[2] && one[k].box.y1 == (float)b[3]);
        assert_sac_ok(sac_instance_draw(test_context(), &one[k], &eye->view, &mask));
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++) {
                /* between the cells above and below the middle it is even: from 32 on */
                const bool in =
                    x >= b[0] && x < b[2] && y >= b[1] && y < b[3] && (k == 0 || y >= SIDE / 2);
                if (is_in(&mask, x, y) != in)
                    fail_msg("%s: box %d is %s at %d, %d", model, k, in ? "not" : "there", x, y);
            }
    }
    sac_instance_mask_finish(&mask);
}

static void instances_are_told_one_by_one(void **state)
{
    (void)state;
    enum { N = 3 };
    sac_device                 *dev = test_device();
    struct sac_segmenter_params p = test_plain_params();
    p.classes = "all";
    p.batch_max = 4;
    for (size_t i = 0; i < SAC_COUNT(families); i++) {
        sac_segmenter *seg = test_segmenter(dev, families[i][0], &p);
        sac_frame     *frames[N];
        struct each    out[N];
        assert_sac_ok(sac_segmenter_show_instances(seg));
        for (int k = 0; k < N; k++) /* nothing in the dark */
            frames[k] = make_frame(dev, SIDE, SIDE, k == 1 ? 20 : 255, 0);
        run_each(seg, frames, N, out);
        check_each(families[i][0], &out[0].found.eye[0]);
        assert_int_equal(out[1].found.eye[0].count, 0);
        assert_null(out[1].found.eye[0].sums);
        check_each(families[i][0], &out[2].found.eye[0]);
        check_spots(families[i][0], out[2].matte, true, true);
        for (int k = 0; k < N; k++)
            each_finish(&out[k]);
        sac_segmenter_destroy(&seg);
    }
    sac_device_unref(&dev);
}

static void instances_of_each_eye_are_told(void **state)
{
    (void)state;
    sac_device                 *dev = test_device();
    struct sac_segmenter_params p = test_plain_params();
    p.classes = "all";
    p.batch_max = 4;
    for (int k = 0; k < 2; k++) {
        struct each out;
        p.stereo = k ? SAC_STEREO_TB : SAC_STEREO_SBS;
        sac_segmenter *seg = test_segmenter(dev, "instances_yolov8", &p);
        sac_frame     *frame = make_frame(dev, k ? SIDE : 2 * SIDE, k ? 2 * SIDE : SIDE, 255, 0);
        assert_sac_ok(sac_segmenter_show_instances(seg));
        run_each(seg, &frame, 1, &out);
        for (int eye = 0; eye < 2; eye++) {
            const struct sac_segmenter_found_eye *e = &out.found.eye[eye];
            check_each("an eye", e);
            assert_true(e->left == (k ? 0 : eye * SIDE) && e->top == (k ? eye * SIDE : 0));
        }
        each_finish(&out);
        sac_segmenter_destroy(&seg);
    }
    sac_device_unref(&dev);
}

/* Pixels farther apart than cells, borders around the frame, a part of it: masks are cut at the
 * frame's pixels. */
static void masks_have_the_frames_pixels(void **state)
{
    (void)state;
    static const struct {
        int             width, height;
        struct sac_rect region;
        int             x0, y0, x1, y1; /* of the person */
    } cases[] = {{8, 8, {0}, 1, 1, 5, 7},
                 {640, 640, {0}, 80, 80, 400, 560},
                 {128, 64, {0}, 16, 0, 80, 64}, /* half as large, 16 pixels below the top */
                 {200, 100, {20, 10, 84, 74}, 28, 18, 60, 66},
                 {1, 1, {0}, 1, 1, 1, 1}};
    sac_device                 *dev = test_device();
    struct sac_segmenter_params p = test_plain_params();
    sac_segmenter              *seg = test_segmenter(dev, "instances_yolov8", &p);
    struct sac_instance_mask    m = {0};
    assert_sac_ok(sac_segmenter_show_instances(seg));
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        sac_frame *frame = make_frame(dev, cases[i].width, cases[i].height, 255, 0), *matte = NULL;
        struct sac_segmenter_ask   ask = {.frame = frame, .region = cases[i].region};
        struct sac_segmenter_found found = {{{0}}};
        struct sac_batch_times     times;
        assert_sac_ok(sac_segmenter_begin(seg, 0, &ask, 1));
        assert_sac_ok(sac_segmenter_end(seg, 0, &matte, NULL, &found, &times));
        assert_int_equal(found.eye[0].count, 1);
        assert_sac_ok(
            sac_instance_draw(test_context(), found.eye[0].items, &found.eye[0].view, &m));
        if (m.x0 != cases[i].x0 || m.y0 != cases[i].y0 || m.x1 != cases[i].x1 ||
            m.y1 != cases[i].y1)
            if (cases[i].width > 1 || (m.x0 < m.x1 && m.y0 < m.y1))
                fail_msg("case %zu: %d, %d to %d, %d", i, m.x0, m.y0, m.x1, m.y1);
        for (int y = m.y0; y < m.y1; y++)
            for (int x = m.x0; x < m.x1; x++)
                assert_true(is_in(&m, x, y));
        sac_segmenter_found_finish(&found);
        sac_frame_unref(&matte);
        sac_frame_unref(&frame);
    }
    sac_instance_mask_finish(&m);
    sac_segmenter_destroy(&seg);
    sac_device_unref(&dev);
}

/* ---- the GPU ---- */

enum { MIXED = 7 };

/* Light and dark ones of several sizes, the same on every device. */
static void make_mixed(sac_device *dev, sac_device *cpu, sac_frame *frames[MIXED])
{
    static const int sizes[MIXED][2] = {{64, 64}, {64, 64}, {128, 64}, {64, 64},
                                        {50, 70}, {2, 2},   {640, 480}};
    for (int i = 0; i < MIXED; i++) {
        const int  luma = i == 1 ? 30 : 235;
        sac_frame *f = test_frame(cpu, SAC_PIXEL_NV12, sizes[i][0], sizes[i][1]);
        test_fill(f, luma, luma, 128, 128);
        f->stream_id = i;
        frames[i] = f;
        if (dev == cpu)
            continue;
        frames[i] = test_frame(dev, SAC_PIXEL_NV12, sizes[i][0], sizes[i][1]);
        assert_sac_ok(sac_frame_copy(f, frames[i]));
        frames[i]->stream_id = i;
        sac_frame_unref(&f);
    }
}

static void run_mixed(sac_device *dev, sac_device *cpu, const char *model,
                      const struct sac_segmenter_params *p, sac_frame *mattes[MIXED])
{
    sac_frame     *frames[MIXED], *theirs[MIXED];
    sac_segmenter *seg = test_segmenter(dev, model, p);
    make_mixed(dev, cpu, frames);
    assert_sac_ok(sac_segmenter_run(seg, frames, MIXED, theirs));
    for (int i = 0; i < MIXED; i++) {
        mattes[i] = test_frame(cpu, SAC_PIXEL_GRAY8, theirs[i]->width, theirs[i]->height);
        assert_sac_ok(sac_frame_copy(theirs[i], mattes[i]));
        sac_frame_unref(&theirs[i]);
        sac_frame_unref(&frames[i]);
    }
    sac_segmenter_destroy(&seg);
}

/* The networks here are exact in any precision, so the mattes are equal to the last bit. */
static void the_gpu_makes_the_mattes_of_the_cpu(void **state)
{
    (void)state;
    sac_device *gpu = gpu_open(NULL), *cpu = test_device();
    for (size_t k = 0; k < 2 * SAC_COUNT(families); k++) {
        const char                 *model = families[k / 2][0];
        struct sac_segmenter_params p = sac_segmenter_params_default();
        sac_frame                  *want[MIXED], *got[MIXED];
        p.class_map = k % 2;
        p.batch_max = 4;
        run_mixed(cpu, cpu, model, &p, want);
        run_mixed(gpu, cpu, model, &p, got);
        for (int i = 0; i < MIXED; i++) {
            for (int y = 0; y < want[i]->height; y++)
                for (int x = 0; x < want[i]->width; x++)
                    if (test_matte_pixel(want[i], x, y) != test_matte_pixel(got[i], x, y))
                        fail_msg("%s, frame %d at %d, %d: %d, the CPU has %d", model, i, x, y,
                                 test_matte_pixel(got[i], x, y), test_matte_pixel(want[i], x, y));
            sac_frame_unref(&want[i]);
            sac_frame_unref(&got[i]);
        }
    }
    sac_device_unref(&gpu);
    sac_device_unref(&cpu);
}

static void run_each_of_mixed(sac_device *dev, sac_device *cpu, const char *model,
                              struct each out[MIXED])
{
    struct sac_segmenter_params p = sac_segmenter_params_default();
    sac_frame                  *frames[MIXED];
    p.classes = "all";
    sac_segmenter *seg = test_segmenter(dev, model, &p);
    assert_sac_ok(sac_segmenter_show_instances(seg));
    make_mixed(dev, cpu, frames);
    run_each(seg, frames, MIXED, out);
    sac_segmenter_destroy(&seg);
}

static void expect_same_eye(const struct sac_segmenter_found_eye *a,
                            const struct sac_segmenter_found_eye *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t k = 0; k < a->count; k++) {
        const struct sac_instance *x = &a->items[k], *y = &b->items[k];
        assert_memory_equal(&x->box, &y->box, offsetof(struct sac_detection, score));
        assert_float_equal(x->box.score, y->box.score, 1e-6f); /* a network's sigmoid */
        assert_int_equal(x->box.class_id, y->box.class_id);
        assert_memory_equal(&x->window, &y->window, sizeof x->window);
        assert_memory_equal(x->sums, y->sums,
                            (size_t)sac_instances_area(&x->window) * sizeof(float));
    }
}

/* Likewise, and of what crosses the masks are counted for themselves: the windows' sums. */
static void the_gpu_tells_the_instances_of_the_cpu(void **state)
{
    (void)state;
    sac_device *gpu = gpu_open(NULL), *cpu = test_device();
    for (size_t k = 0; k < SAC_COUNT(families); k++) {
        struct each       want[MIXED], got[MIXED];
        struct sac_ledger ledger[2];
        uint64_t          bytes = 0;
        run_each_of_mixed(cpu, cpu, families[k][0], want);
        sac_device_ledger(gpu, &ledger[0]);
        run_each_of_mixed(gpu, cpu, families[k][0], got);
        sac_device_ledger(gpu, &ledger[1]);
        for (int i = 0; i < MIXED; i++) {
            const struct sac_segmenter_found_eye *e = &got[i].found.eye[0];
            expect_same_eye(&want[i].found.eye[0], e);
            assert_true(i == 1 ? e->count == 0 : e->count == 2);
            for (size_t n = 0; n < e->count; n++)
                bytes += (uint64_t)sac_instances_area(&e->items[n].window) * sizeof(float);
            each_finish(&want[i]);
            each_finish(&got[i]);
        }
        assert_int_equal(ledger[1].reason[SAC_COPY_MASK].bytes -
                             ledger[0].reason[SAC_COPY_MASK].bytes,
                         gpu->ops->host_memory ? 0 : bytes);
    }
    sac_device_unref(&gpu);
    sac_device_unref(&cpu);
}

static void it_says_what_it_reads(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    for (size_t i = 0; i < SAC_COUNT(families); i++) {
        struct sac_segmenter_info info;
        sac_segmenter            *seg = test_segmenter(dev, families[i][0], NULL);
        sac_segmenter_inspect(seg, &info);
        assert_string_equal(info.output, "output1");
        assert_string_equal(info.form, "boxes' coefficients");
        assert_true(info.width == 16 && info.height == 16 && info.states == 0);
        assert_string_equal(sac_head_prototypes(sac_segmenter_model(seg)), "output1");
        assert_string_equal(sac_head_recognise(sac_segmenter_model(seg)), families[i][1]);
        sac_segmenter_destroy(&seg);
    }
    assert_null(sac_head_prototypes(NULL));
    sac_device_unref(&dev);
}

static void boxes_alone_are_a_detectors(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    sac_frame  *frame = make_frame(dev, SIDE, SIDE, 255, 0);
    for (size_t i = 0; i < SAC_COUNT(families); i++) {
        struct sac_detections found = {0};
        sac_detector         *det = NULL;
        assert_sac_ok(sac_detector_create(dev, test_network(families[i][0]), NULL, &det));
        assert_sac_ok(sac_detector_run(det, &frame, 1, &found));
        assert_int_equal(found.count, 3); /* also what is unlikely */
        assert_true(found.items[0].x0 == 8 && found.items[0].y1 == 56 &&
                    found.items[1].class_id == 1);
        sac_detections_finish(&found);
        sac_detector_destroy(&det);
    }
    sac_frame_unref(&frame);
    sac_device_unref(&dev);
}

static void what_lacks_something_is_told_so(void **state)
{
    (void)state;
    static const struct test_segmenter_case cases[] = {
        {"instances_orphans", NULL, NULL, NULL, 0, SAC_ERR_UNSUPPORTED,
         "it is a detector (head 'yolov8') with mask coefficients, but no output has the "
         "prototypes "
         "that they weigh, [coefficients,h,w]: export it with both; saccade track uses its boxes"},
        {"instances_coarse", NULL, NULL, NULL, 0, SAC_ERR_FORMAT,
         "and prototypes [coefficients,h,w] in the picture's proportions; the outputs of one "
         "picture of 64x64 are output0 [14,84], output1 [8,3,3]"},
        {"instances_unequal", NULL, NULL, NULL, 0, SAC_ERR_FORMAT,
         "the outputs of one picture of 64x64 are output0 [10,16], output1 [8,16,16]"},
        {"instances_yolov8", "yolov5", NULL, NULL, 0, SAC_ERR_FORMAT, "head 'yolov5' wants"},
        {"instances_yolov8", "yolox", NULL, NULL, 0, SAC_ERR_ARG,
         "no head 'yolox' that gives mattes; have yolov5, yolov8, end2end, recurrent, matte, "
         "semantic"},
        {"instances_yolov8", "yolov8", "cat", NULL, 0, SAC_ERR_ARG, "cat"},
        {"instances_yolov8", NULL, "background, dog", NULL, 0, SAC_ERR_ARG,
         "class 0 is the background, of which it gives no mask; classes count from 1"},
        {"instances_yolov8", "yolov8", NULL, NULL, 0, SAC_OK, NULL},
    };
    test_segmenter_cases(cases, SAC_COUNT(cases));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mattes_are_those_of_the_wanted_boxes),
        cmocka_unit_test(maps_of_classes_begin_with_the_background),
        cmocka_unit_test(frames_of_a_batch_keep_their_masks),
        cmocka_unit_test(each_eye_has_masks_of_its_own),
        cmocka_unit_test(warming_up_takes_what_runs_need),
        cmocka_unit_test(instances_are_told_one_by_one),
        cmocka_unit_test(instances_of_each_eye_are_told),
        cmocka_unit_test(masks_have_the_frames_pixels),
        cmocka_unit_test(the_gpu_makes_the_mattes_of_the_cpu),
        cmocka_unit_test(the_gpu_tells_the_instances_of_the_cpu),
        cmocka_unit_test(it_says_what_it_reads),
        cmocka_unit_test(boxes_alone_are_a_detectors),
        cmocka_unit_test(what_lacks_something_is_told_so),
    };
    test_without_onednn();
    return cmocka_run_group_tests_name("heads/instances", tests, NULL, NULL);
}
