/* SPDX-License-Identifier: Apache-2.0 */
/* Batches against single frames on the CPU, to the last bit, and the GPU against the CPU. Every
 * head, batches that are cut, two of them under way. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "heads/detector.h"
#include "tests/gpu.h"
#include "tests/vision/frames.h"

enum { FRAMES = 7, BATCH = 8 };

static const char *const models[] = {
    "yolox_raw",      "yolox_decoded",   "yolov5",       "yolov8",       "yolov8_sideways",
    "yolov8_half",    "end2end",         "detr_sigmoid", "detr_softmax", "detr_one",
    "nanodet_plus",   "nanodet_split",   "ssd_rows",     "boxes_trio",   "yolov8_seg",
    "yolov8_pose",    "yolov5_seg",      "end2end_seg",  "end2end_pose", "end2end_numbered",
    "end2end_paddle", "detr_rf",         "detr_masked",  "boxes_sized",  "boxes_torch",
    "boxes_scored",   "boxes_tensorflow"};

static sac_detector *open_detector(sac_device *dev, const char *model, const char *head)
{
    struct sac_detector_params params = sac_detector_params_default();
    sac_detector              *det = NULL;
    char                       path[512];
    snprintf(path, sizeof path, "%s/%s.onnx", TEST_SOURCE_DIR, model);
    params.head = head;
    params.score_min = 0.02f;
    params.batch_max = BATCH;
    assert_sac_ok(sac_detector_create(dev, path, &params, &det));
    return det;
}

/* Frames of several sizes with random pixels; the same on every device. */
static void make_frames(sac_device *dev, sac_device *cpu, sac_frame *frames[FRAMES],
                        sac_frame *mine[FRAMES])
{
    static const int sizes[FRAMES][2] = {{64, 64}, {128, 192}, {640, 32},   {64, 64},
                                         {50, 70}, {1, 1},     {1920, 1080}};
    for (int i = 0; i < FRAMES; i++) {
        frames[i] = test_frame(cpu, SAC_PIXEL_NV12, sizes[i][0] + sizes[i][0] % 2,
                               sizes[i][1] + sizes[i][1] % 2);
        test_fill(frames[i], 0, 255, 0, 255);
        mine[i] = NULL;
        if (dev == cpu) {
            mine[i] = sac_frame_ref(frames[i]);
            continue;
        }
        mine[i] = test_frame(dev, SAC_PIXEL_NV12, frames[i]->width, frames[i]->height);
        assert_sac_ok(sac_frame_copy(frames[i], mine[i]));
    }
}

static void release_frames(sac_frame *frames[FRAMES], sac_frame *mine[FRAMES])
{
    for (int i = 0; i < FRAMES; i++) {
        sac_frame_unref(&frames[i]);
        sac_frame_unref(&mine[i]);
    }
}

static void finish_all(struct sac_detections list[FRAMES])
{
    for (int i = 0; i < FRAMES; i++)
        sac_detections_finish(&list[i]);
}

/* pixels 0: the same bits. Else of equal scores the order may differ; so the likeliest box is
 * looked at. */
static void compare(const char *model, int frame, const struct sac_detections *want,
                    const struct sac_detections *got, float pixels)
{
    if (pixels == 0 && (want->count != got->count ||
                        memcmp(want->items, got->items, want->count * sizeof *want->items) != 0))
        fail_msg("%s, frame %d: %zu boxes, expected %zu, or others", model, frame, got->count,
                 want->count);
    if (pixels == 0)
        return;
    if (!want->count != !got->count)
        fail_msg("%s, frame %d: %zu boxes, expected %zu", model, frame, got->count, want->count);
    if (want->count && fabsf(want->items[0].score - got->items[0].score) > 0.02f)
        fail_msg("%s, frame %d: a score of %g, expected %g", model, frame,
                 (double)got->items[0].score, (double)want->items[0].score);
}

static void check(sac_device *dev, sac_device *cpu, float pixels)
{
    sac_frame *frames[FRAMES], *mine[FRAMES];
    size_t     boxes = 0;
    make_frames(dev, cpu, frames, mine);
    for (size_t m = 0; m < SAC_COUNT(models); m++) {
        struct sac_detections want[FRAMES] = {{0}}, got[FRAMES] = {{0}};
        sac_detector         *plain = open_detector(cpu, models[m], NULL),
                     *det = open_detector(dev, models[m], NULL);
        for (int i = 0; i < FRAMES; i++)
            assert_sac_ok(sac_detector_run(plain, &frames[i], 1, &want[i]));
        for (int round = 0; round < 2; round++)
            assert_sac_ok(sac_detector_run(det, mine, FRAMES, got));
        assert_false(det->on_host);
        for (int i = 0; i < FRAMES; i++) {
            compare(models[m], i, &want[i], &got[i], pixels);
            boxes += want[i].count;
        }
        finish_all(want);
        finish_all(got);
        sac_detector_destroy(&plain);
        sac_detector_destroy(&det);
    }
    assert_true(boxes > 100);
    release_frames(frames, mine);
}

static void a_batch_gives_the_boxes_of_its_frames(void **state)
{
    (void)state;
    sac_device *cpu = test_device();
    check(cpu, cpu, 0);
    sac_device_unref(&cpu);
}

static void the_cpu_decodes_what_has_no_room(void **state)
{
    (void)state;
    static struct sac_device_ops ops;
    sac_device                  *cpu = test_device(), *small = test_device();
    sac_frame                   *frames[FRAMES], *mine[FRAMES];
    struct sac_detections        want[FRAMES] = {{0}}, got[FRAMES] = {{0}};
    ops = *small->ops;
    ops.detect_cells_max = 10;
    small->ops = &ops;
    make_frames(small, cpu, frames, mine);
    sac_detector *plain = open_detector(cpu, "yolov8_half", NULL);
    sac_detector *det = open_detector(small, "yolov8_half", NULL);
    assert_sac_ok(sac_detector_run(plain, frames, FRAMES, want));
    assert_sac_ok(sac_detector_run(det, mine, FRAMES, got));
    assert_true(det->on_host && want[0].count > 0);
    for (int i = 0; i < FRAMES; i++)
        compare("yolov8_half", i, &want[i], &got[i], 0);
    finish_all(want);
    finish_all(got);
    sac_detector_destroy(&plain);
    sac_detector_destroy(&det);
    release_frames(frames, mine);
    sac_device_unref(&small);
    sac_device_unref(&cpu);
}

static void so_does_the_gpu(void **state)
{
    (void)state;
    sac_device *gpu = gpu_open(NULL), *cpu = test_device();
    check(gpu, cpu, 0.5f);
    sac_device_unref(&gpu);
    sac_device_unref(&cpu);
}

/* Begin two batches, end them in turn; what the second does must not touch the first. */
static void check_two(sac_device *dev, sac_device *cpu, int streams)
{
    sac_frame             *frames[FRAMES], *mine[FRAMES];
    struct sac_detections  want[FRAMES] = {{0}}, got[FRAMES] = {{0}};
    struct sac_batch_times times;
    sac_detector          *det = open_detector(dev, "yolov8", NULL);
    make_frames(dev, cpu, frames, mine);
    assert_sac_ok(sac_buckets_set_streams(&det->buckets, streams));
    assert_int_equal(sac_buckets_streams(&det->buckets), dev == cpu ? 1 : streams);
    assert_sac_ok(sac_detector_warm_up(det));
    assert_sac_ok(sac_buckets_time(&det->buckets, true));
    assert_sac_ok(sac_detector_run(det, mine, FRAMES, want));
    for (int round = 0; round < 20; round++) {
        assert_sac_ok(sac_detector_begin(det, 0, mine, NULL, 3));
        assert_sac_ok(sac_detector_begin(det, 1, mine + 3, NULL, FRAMES - 3));
        assert_sac_ok(sac_detector_end(det, 0, got, &times));
        assert_true(times.gpu_ns[0] > 0 && times.gpu_ns[1] > 0 && times.gpu_ns[2] > 0);
        assert_in_range(times.gpu_begun_ns[0], times.begun_ns - 100000000,
                        times.arrived_ns + 100000000);
        assert_true(times.begun_ns <= times.prepared_ns && times.prepared_ns <= times.queued_ns &&
                    times.waited_ns <= times.arrived_ns && times.arrived_ns <= times.ended_ns);
        assert_sac_ok(sac_detector_end(det, 1, got + 3, &times));
        for (int i = 0; i < FRAMES; i++)
            compare("yolov8", i, &want[i], &got[i], 0);
    }
    assert_true(want[0].count > 0);
    finish_all(want);
    finish_all(got);
    sac_detector_destroy(&det);
    release_frames(frames, mine);
}

static void two_batches_are_under_way(void **state)
{
    (void)state;
    sac_device *cpu = test_device();
    check_two(cpu, cpu, 1);
    check_two(cpu, cpu, 2);
    sac_device_unref(&cpu);
}

enum { IMAGE_BYTES = 3 * 64 * 64 * 4 };

struct made {
    char *pixels; /* [FRAMES][IMAGE_BYTES] */
    int   count, first;
};

static void keep(void *user, int image, const void *pixels)
{
    struct made *made = user;
    memcpy(made->pixels + (size_t)(made->first + image) * IMAGE_BYTES, pixels, IMAGE_BYTES);
    made->count++;
}

/* Images of an earlier batch take the place of frames, and say how large those were; a batch that
 * is cut into runs has both. */
static void images_are_kept_and_taken(void **state)
{
    (void)state;
    sac_device            *cpu = test_device();
    sac_frame             *frames[FRAMES], *mine[FRAMES], *some[FRAMES];
    struct sac_detections  want[FRAMES] = {{0}}, got[FRAMES] = {{0}};
    struct sac_kept_image  none[FRAMES] = {{0}}, kept[FRAMES] = {{0}};
    struct made            made = {.pixels = sac_alloc((size_t)FRAMES * IMAGE_BYTES)};
    struct sac_batch_times times;
    sac_detector          *det = open_detector(cpu, "yolov8", NULL);
    make_frames(cpu, cpu, frames, mine);
    const struct sac_batch_images making = {none, keep, &made}, taking = {kept, keep, &made};
    assert_int_equal(det->buckets.pre.width * det->buckets.pre.height * 3 * 4, IMAGE_BYTES);
    assert_sac_ok(sac_detector_run(det, frames, FRAMES, want));
    assert_sac_ok(sac_detector_begin(det, 0, frames, &making, FRAMES));
    assert_sac_ok(sac_detector_end(det, 0, got, &times));
    assert_int_equal(made.count, FRAMES);
    for (int frames_left = 0; frames_left <= FRAMES; frames_left++) {
        for (int i = 0; i < FRAMES; i++) {
            kept[i] = (struct sac_kept_image){made.pixels + (size_t)i * IMAGE_BYTES,
                                              frames[i]->width, frames[i]->height};
            some[i] = i < frames_left ? frames[i] : NULL;
            if (i < frames_left)
                kept[i].pixels = NULL;
        }
        made.count = 0;
        assert_sac_ok(sac_detector_begin(det, 1, some, &taking, FRAMES));
        assert_sac_ok(sac_detector_end(det, 1, got, &times));
        assert_int_equal(made.count, frames_left);
        for (int i = 0; i < FRAMES; i++)
            compare("yolov8", i, &want[i], &got[i], 0);
    }
    assert_true(want[0].count > 0);
    finish_all(want);
    finish_all(got);
    sac_free(made.pixels);
    sac_detector_destroy(&det);
    release_frames(frames, mine);
    sac_device_unref(&cpu);
}

/* A network that suppresses by itself: a darker picture has fewer rows. */
static void rows_that_only_the_data_counts(sac_device *dev, sac_device *cpu)
{
    static const struct {
        int    grey;
        size_t rows;
    } cases[] = {{255, 5}, {100, 2}, {200, 4}, {0, 0}, {90, 1}, {255, 5}, {130, 3}};
    sac_detector *det = open_detector(dev, "end2end_counted", "end2end");
    assert_sac_ok(sac_detector_warm_up(det));
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        struct sac_detections found = {0};
        sac_frame *frame = test_frame(cpu, SAC_PIXEL_RGB24, 64, 64), *mine = sac_frame_ref(frame);
        memset(frame->plane[0], cases[i].grey, frame->pitch_bytes[0] * 64);
        if (dev != cpu) {
            sac_frame_unref(&mine);
            mine = test_frame(dev, SAC_PIXEL_RGB24, 64, 64);
            assert_sac_ok(sac_frame_copy(frame, mine));
        }
        assert_sac_ok(sac_detector_run(det, &mine, 1, &found));
        if (found.count != cases[i].rows)
            fail_msg("grey %d: %zu rows, expected %zu", cases[i].grey, found.count, cases[i].rows);
        sac_detections_finish(&found);
        sac_frame_unref(&frame);
        sac_frame_unref(&mine);
    }
    assert_false(det->on_host);
    sac_detector_destroy(&det);
}

static void rows_may_be_counted_by_the_network(void **state)
{
    (void)state;
    sac_device *cpu = test_device();
    rows_that_only_the_data_counts(cpu, cpu);
    sac_device_unref(&cpu);
}

static void on_the_gpu_as_well(void **state)
{
    (void)state;
    sac_device *gpu = gpu_open(NULL), *cpu = test_device();
    rows_that_only_the_data_counts(gpu, cpu);
    sac_device_unref(&gpu);
    sac_device_unref(&cpu);
}

/* What each stage holds: the network's input is preprocessing's. */
static void its_memory_is_told_by_stage(void **state)
{
    (void)state;
    sac_device   *cpu = test_device();
    sac_detector *det = open_detector(cpu, "yolov8", NULL);
    uint64_t before[SAC_MEMORY_USE_COUNT], after[SAC_MEMORY_USE_COUNT], peak[SAC_MEMORY_USE_COUNT];
    sac_frame            *frames[FRAMES], *mine[FRAMES];
    struct sac_detections found[FRAMES] = {{0}};
    make_frames(cpu, cpu, frames, mine);
    sac_device_memory_by_use(cpu, before, peak);
    assert_sac_ok(sac_detector_run(det, mine, FRAMES, found));
    sac_device_memory_by_use(cpu, after, peak);
    assert_true(after[SAC_MEMORY_PREPROCESS] >=
                before[SAC_MEMORY_PREPROCESS] + FRAMES * 3 * 64 * 64 * sizeof(float));
    assert_true(after[SAC_MEMORY_HEAD] > before[SAC_MEMORY_HEAD]);
    finish_all(found);
    release_frames(frames, mine);
    sac_detector_destroy(&det);
    sac_device_unref(&cpu);
}

static void also_on_the_gpu(void **state)
{
    (void)state;
    sac_device *gpu = gpu_open(NULL), *cpu = test_device();
    check_two(gpu, cpu, 1);
    check_two(gpu, cpu, 2);
    sac_device_unref(&gpu);
    sac_device_unref(&cpu);
}

static double us_a_batch(sac_detector *det, sac_frame **frame, bool timed)
{
    enum { ROUNDS = 20 };
    struct sac_detections  found = {0};
    struct sac_batch_times times;
    assert_sac_ok(sac_buckets_time(&det->buckets, timed));
    const int64_t begun = sac_time_ns();
    for (int i = 0; i < ROUNDS; i++) {
        assert_sac_ok(sac_detector_begin(det, 0, frame, NULL, 1));
        assert_sac_ok(sac_detector_end(det, 0, &found, &times));
    }
    sac_detections_finish(&found);
    return (double)(sac_time_ns() - begun) / 1e3 / ROUNDS;
}

/* Under 10 us a stage: preprocess, inference, head. The least of many short rounds in turns: others
 * use the host, which made each call into the driver twice as long for a second. */
static void the_gpus_own_times_cost_little(void **state)
{
    (void)state;
    sac_device   *gpu = gpu_open(NULL), *cpu = test_device();
    sac_frame    *frames[FRAMES], *mine[FRAMES];
    sac_detector *det = open_detector(gpu, "yolov8", NULL);
    double        on = 1e9, off = 1e9;
    make_frames(gpu, cpu, frames, mine);
    assert_sac_ok(sac_detector_warm_up(det));
    for (int round = 0; round < 2000 && (round < 200 || on - off >= 30); round++) {
        on = fmin(on, us_a_batch(det, mine, true));
        off = fmin(off, us_a_batch(det, mine, false));
    }
    print_message("a batch of one frame: %.1f us with the device's times, %.1f without\n", on, off);
    assert_true(on - off < 30);
    sac_detector_destroy(&det);
    release_frames(frames, mine);
    sac_device_unref(&gpu);
    sac_device_unref(&cpu);
}

/* A plug-in decodes on the host: said, counted as tensor data, refused in strict mode. */
static void check_plugin(sac_device *dev, sac_device *cpu)
{
    sac_frame            *frames[FRAMES], *mine[FRAMES];
    struct sac_detections want[FRAMES] = {{0}}, got[FRAMES] = {{0}};
    sac_detector         *plain = open_detector(cpu, "end2end", TEST_PLUGIN_GOOD);
    sac_detector         *det = open_detector(dev, "end2end", TEST_PLUGIN_GOOD);
    struct sac_ledger     ledger;
    make_frames(dev, cpu, frames, mine);
    assert_true(det->on_host);
    assert_sac_ok(sac_detector_run(plain, frames, FRAMES, want));
    assert_sac_ok(sac_detector_run(det, mine, FRAMES, got));
    for (int i = 0; i < FRAMES; i++)
        compare("a plug-in", i, &want[i], &got[i], dev == cpu ? 0 : 0.5f);
    assert_true(want[0].count > 0);
    sac_device_ledger(dev, &ledger);
    if (dev != cpu) {
        assert_true(ledger.reason[SAC_COPY_TENSOR_DOWNLOAD].bytes > 0);
        atomic_store(&dev->strict, 1);
        assert_sac_error(sac_detector_run(det, mine, 1, got), SAC_ERR_COPY);
        atomic_store(&dev->strict, 0);
        assert_sac_ok(sac_detector_run(det, mine, 1, got)); /* the slot was not lost */
    }
    finish_all(want);
    finish_all(got);
    sac_detector_destroy(&plain);
    sac_detector_destroy(&det);
    release_frames(frames, mine);
}

static void a_plug_in_decodes_on_the_host(void **state)
{
    (void)state;
    sac_device *cpu = test_device();
    check_plugin(cpu, cpu);
    sac_device_unref(&cpu);
}

static void which_strict_mode_refuses(void **state)
{
    (void)state;
    sac_device *gpu = gpu_open(NULL), *cpu = test_device();
    check_plugin(gpu, cpu);
    sac_device_unref(&gpu);
    sac_device_unref(&cpu);
}

struct cut {
    int left, n, size;
};

static void check_cuts(sac_device *dev, enum sac_batch_padding padding, int buckets,
                       const struct cut *cuts, size_t count)
{
    struct sac_preprocess pre = sac_preprocess_default();
    struct sac_buckets    b;
    assert_sac_ok(sac_buckets_init(&b, dev, NULL, &pre, NULL, 32, true, "test", SAC_MEMORY_OTHER));
    assert_sac_ok(sac_buckets_pad(&b, padding, NULL));
    assert_int_equal(b.sizes.count, buckets);
    for (size_t i = 0; i < count; i++) {
        int                n = 0;
        struct sac_bucket *bucket = sac_buckets_next(&b, cuts[i].left, &n);
        if (n != cuts[i].n || bucket->size != cuts[i].size)
            fail_msg("%d images: %d in a run of %d", cuts[i].left, n, bucket->size);
    }
    sac_buckets_finish(&b);
}

/* The CPU computes no image that nobody asked for; where a run has a cost of its own, that may be
 * cheaper. */
static void batches_are_cut_at_the_least_cost(void **state)
{
    (void)state;
    static const struct cut      exact[] = {{40, 32, 32}, {32, 32, 32}, {31, 16, 16}, {9, 8, 8},
                                            {7, 4, 4},    {3, 2, 2},    {1, 1, 1}};
    static const struct cut      filled[] = {{40, 32, 32}, {32, 32, 32}, {31, 31, 32}, {25, 25, 32},
                                             {9, 8, 8},    {8, 8, 8},    {7, 7, 8},    {5, 5, 8},
                                             {3, 3, 8},    {2, 1, 1},    {1, 1, 1}};
    static struct sac_device_ops ops;
    sac_device                  *dev = test_device();
    check_cuts(dev, SAC_BATCH_PADDING_AUTO, 6, exact, SAC_COUNT(exact)); /* 1, 2, 4, 8, 16, 32 */
    ops = *dev->ops;
    ops.batch_step = 4;
    ops.run_cost = 3;
    dev->ops = &ops;
    check_cuts(dev, SAC_BATCH_PADDING_AUTO, 3, filled, SAC_COUNT(filled)); /* 1, 8, 32 */
    sac_device_unref(&dev);
}

/* Each policy as it says, whatever a device's runs cost. */
static void batches_are_filled_up_as_asked(void **state)
{
    (void)state;
    static const struct cut none[] = {{40, 32, 32}, {31, 31, 31}, {9, 9, 9}, {1, 1, 1}},
                            power[] = {{40, 32, 32},
                                       {31, 31, 32},
                                       {9, 9, 16},
                                       {3, 3, 4},
                                       {1, 1, 1}},
                            full[] = {{40, 32, 32}, {31, 31, 32}, {9, 9, 32}, {1, 1, 32}};
    static struct sac_device_ops ops;
    sac_device                  *dev = test_device();
    ops = *dev->ops;
    ops.batch_step = 4;
    ops.run_cost = 3;
    dev->ops = &ops;
    check_cuts(dev, SAC_BATCH_PADDING_NONE, 32, none, SAC_COUNT(none));
    check_cuts(dev, SAC_BATCH_PADDING_POWER, 6, power, SAC_COUNT(power));
    check_cuts(dev, SAC_BATCH_PADDING_FULL, 1, full, SAC_COUNT(full));
    dev->params.deterministic = 1; /* sizes have kernels of their own, and other last bits */
    check_cuts(dev, SAC_BATCH_PADDING_AUTO, 1, full, SAC_COUNT(full));
    check_cuts(dev, SAC_BATCH_PADDING_NONE, 1, full, SAC_COUNT(full));
    sac_device_unref(&dev);
}

/* ---- a start that is short of memory ---- */

static const struct sac_bucket     *smallest;
static const struct sac_device_ops *usual;
static int                          refusals;

/* Once, when the smallest batch is made ready, the last. */
static sac_result refuse_smallest(struct sac_device *dev, struct sac_device_stream *stream,
                                  struct sac_device_stream *other)
{
    if (smallest && smallest->in && refusals++ == 0)
        return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "no memory for the smallest batch");
    return usual->stream_after(dev, stream, other);
}

/* The largest batch is dropped for the smallest; those between are ready all the same. */
static void every_batch_left_is_ready(void **state)
{
    (void)state;
    static struct sac_device_ops ops;
    sac_device                  *dev = test_device();
    usual = dev->ops;
    ops = *usual;
    ops.warm_runs = 1;
    ops.stream_after = refuse_smallest;
    dev->ops = &ops;
    sac_detector *det = open_detector(dev, "yolov8", NULL);
    const int     count = det->buckets.sizes.count;
    smallest = &det->buckets.list[0];
    assert_sac_ok(sac_detector_warm_up(det));
    assert_true(refusals > 0);
    assert_int_equal(det->buckets.sizes.count, count - 1);
    for (int i = 0; i < det->buckets.sizes.count; i++)
        assert_non_null(det->buckets.list[i].out[0]);
    smallest = NULL;
    sac_detector_destroy(&det);
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_are_cut_at_the_least_cost),
        cmocka_unit_test(batches_are_filled_up_as_asked),
        cmocka_unit_test(a_batch_gives_the_boxes_of_its_frames),
        cmocka_unit_test(the_cpu_decodes_what_has_no_room),
        cmocka_unit_test(two_batches_are_under_way),
        cmocka_unit_test(images_are_kept_and_taken),
        cmocka_unit_test(a_plug_in_decodes_on_the_host),
        cmocka_unit_test(so_does_the_gpu),
        cmocka_unit_test(rows_may_be_counted_by_the_network),
        cmocka_unit_test(on_the_gpu_as_well),
        cmocka_unit_test(its_memory_is_told_by_stage),
        cmocka_unit_test(also_on_the_gpu),
        cmocka_unit_test(which_strict_mode_refuses),
        cmocka_unit_test(the_gpus_own_times_cost_little),
        cmocka_unit_test(every_batch_left_is_ready),
    };
    return cmocka_run_group_tests_name("heads/detector_batch", tests, NULL, NULL);
}
