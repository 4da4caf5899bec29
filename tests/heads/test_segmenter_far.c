/* SPDX-License-Identifier: Apache-2.0 */
/* A segmenter on a device whose streams go on only where somebody waits for them: inputs, networks
 * and mattes are on three, and what waits for what is told by events alone. */
#include "tests/engine/far.h"
#include "tests/heads/segmenters.h"
#include "tests/ranges.h"

enum { FRAMES = 7, PARTS = 4, WIDTH = 96, HEIGHT = 64 };

static sac_device *open_far_with(const struct sac_device_params *params)
{
    static struct sac_device_ops ops;
    sac_device                  *dev = NULL;
    ops = *far_ops(&far_pictures);
    ops.async = true;
    ops.warm_runs = 2;
    ops.batch_step = 4;
    assert_sac_ok(sac_device_open_ops(test_context(), &ops, 0, params, &dev));
    return dev;
}

static sac_device *open_far(void)
{
    return open_far_with(NULL);
}

/* Of two streams, with noise, so that a matte tells its frame, and smoothing the one before. */
static void make_frames(sac_device *cpu, sac_device *dev, sac_frame *frames[FRAMES])
{
    for (int i = 0; i < FRAMES; i++) {
        sac_frame *near = test_frame(cpu, SAC_PIXEL_I420, WIDTH, HEIGHT);
        test_fill(near, 20 + 20 * i, 255 - 20 * i, 120, 136);
        near->stream_id = i % 2;
        assert_sac_ok(sac_frame_create(dev, near, &frames[i]));
        assert_sac_ok(sac_frame_copy(near, frames[i]));
        assert_sac_ok(sac_device_wait(dev));
        sac_frame_unref(&near);
    }
}

static void expect_same(sac_device *cpu, sac_frame *const *want, sac_frame *const *got, int n)
{
    for (int i = 0; i < n; i++) {
        sac_frame *a = NULL, *b = NULL;
        assert_sac_ok(sac_frame_create(cpu, want[i], &a));
        assert_sac_ok(sac_frame_create(cpu, got[i], &b));
        assert_sac_ok(sac_frame_copy(want[i], a));
        assert_sac_ok(sac_frame_copy(got[i], b));
        for (int y = 0; y < HEIGHT; y++)
            if (memcmp(a->plane[0] + (size_t)y * a->pitch_bytes[0],
                       b->plane[0] + (size_t)y * b->pitch_bytes[0], WIDTH) != 0)
                fail_msg("frame %d differs in row %d", i, y);
        sac_frame_unref(&a);
        sac_frame_unref(&b);
    }
}

static void unref_all(sac_frame **frames)
{
    for (int i = 0; i < FRAMES; i++)
        sac_frame_unref(&frames[i]);
}

static void ask(sac_frame *const *frames, struct sac_segmenter_ask *asks)
{
    for (int i = 0; i < FRAMES; i++)
        asks[i] = (struct sac_segmenter_ask){.frame = frames[i]};
}

/* A batch of one-image runs, of which the third needs the places of the first, behind it another
 * one. The streams go on in an order that favours who does not wait: all inputs that can be made,
 * then all networks that can run, and mattes last. */
static void runs_wait_for_what_they_need_alone(void **state)
{
    (void)state;
    static const char *const    models[] = {"maps_matte", "maps_torchvision"};
    struct sac_segmenter_params p = sac_segmenter_params_default();
    sac_device                 *cpu = test_device(), *dev = open_far();
    sac_frame                  *frames[FRAMES], *want[FRAMES], *got[FRAMES];
    struct sac_segmenter_ask    asks[FRAMES];
    struct sac_batch_times      times;
    make_frames(cpu, dev, frames);
    ask(frames, asks);
    p.batch_max = PARTS;
    for (size_t m = 0; m < SAC_COUNT(models); m++) {
        sac_segmenter *one = test_segmenter(dev, models[m], &p);
        sac_segmenter *seg = test_segmenter(dev, models[m], &p);
        for (int i = 0; i < FRAMES; i++)
            want[i] = test_matte_of(one, frames[i]);
        assert_sac_ok(sac_segmenter_warm_up(seg));
        struct sac_buckets *b = &seg->buckets;
        const int           count = b->sizes.count;
        assert_true(b->before != b->stream && b->stream != b->behind);
        assert_int_equal(b->list[0].size, 1);
        assert_ptr_not_equal(b->list[0].out[0], b->twins[0].out[0]);
        b->sizes.count = 1;
        const int launches = far_counts.launches;
        assert_sac_ok(sac_segmenter_begin(seg, 0, asks, PARTS));
        assert_int_equal(seg->slots[0].batch.part_count, PARTS);
        assert_sac_ok(sac_segmenter_begin(seg, 1, asks + PARTS, FRAMES - PARTS));
        assert_sac_ok(sac_buckets_wait(b));
        assert_sac_ok(sac_segmenter_end(seg, 0, got, NULL, NULL, &times));
        assert_sac_ok(sac_segmenter_end(seg, 1, got + PARTS, NULL, NULL, &times));
        /* Each of a pair has its graph; a network of one step has none. */
        assert_int_equal(far_counts.launches - launches, m == 0 ? 0 : FRAMES);
        expect_same(cpu, want, got, FRAMES);
        b->sizes.count = count;
        unref_all(want);
        unref_all(got);
        sac_segmenter_destroy(&one);
        sac_segmenter_destroy(&seg);
    }
    unref_all(frames);
    sac_device_unref(&dev);
    sac_device_unref(&cpu);
}

/* A batch whose mattes nobody waited for is behind a network that is done. */
static void mattes_do_not_hold_up_the_next_network(void **state)
{
    (void)state;
    struct sac_segmenter_params p = sac_segmenter_params_default();
    sac_device                 *cpu = test_device(), *dev = open_far();
    sac_frame                  *frames[FRAMES], *got[FRAMES] = {NULL};
    struct sac_segmenter_ask    asks[FRAMES];
    struct sac_batch_times      times;
    make_frames(cpu, dev, frames);
    ask(frames, asks);
    p.batch_max = PARTS;
    sac_segmenter *seg = test_segmenter(dev, "maps_matte", &p);
    assert_sac_ok(sac_segmenter_warm_up(seg));
    assert_sac_ok(sac_segmenter_begin(seg, 0, asks, 1));
    assert_sac_ok(sac_segmenter_begin(seg, 1, asks + 1, 1));
    const int kernels = far_counts.kernels;
    assert_sac_ok(dev->ops->stream_wait(seg->buckets.stream));
    assert_true(far_counts.kernels > kernels);
    assert_false(sac_segmenter_arrived(seg, 0));
    assert_sac_ok(sac_segmenter_end(seg, 0, got, NULL, NULL, &times));
    assert_false(sac_segmenter_arrived(seg, 1));
    assert_sac_ok(sac_segmenter_end(seg, 1, got + 1, NULL, NULL, &times));
    unref_all(got);
    unref_all(frames);
    sac_segmenter_destroy(&seg);
    sac_device_unref(&dev);
    sac_device_unref(&cpu);
}

/* Each frame is seen `looks` times, in runs of one image each; its maps are put together behind the
 * last of them, beside those of the next. */
static void check_looks(const struct sac_segmenter_params *p, int looks)
{
    sac_device              *cpu = test_device(), *dev = open_far();
    sac_frame               *frames[FRAMES], *want[FRAMES], *got[FRAMES];
    struct sac_segmenter_ask asks[FRAMES];
    struct sac_batch_times   times;
    make_frames(cpu, dev, frames);
    ask(frames, asks);
    sac_segmenter *one = test_segmenter(dev, "maps_torchvision", p);
    sac_segmenter *seg = test_segmenter(dev, "maps_torchvision", p);
    one->buckets.sizes.count = 1;
    for (int i = 0; i < FRAMES; i++)
        want[i] = test_matte_of(one, frames[i]);
    assert_sac_ok(sac_segmenter_warm_up(seg));
    const int sizes = seg->buckets.sizes.count;
    seg->buckets.sizes.count = 1;
    assert_sac_ok(sac_segmenter_begin(seg, 0, asks, PARTS));
    assert_int_equal(seg->slots[0].batch.part_count, PARTS * looks);
    assert_sac_ok(sac_segmenter_begin(seg, 1, asks + PARTS, FRAMES - PARTS));
    assert_sac_ok(sac_buckets_wait(&seg->buckets));
    assert_sac_ok(sac_segmenter_end(seg, 0, got, NULL, NULL, &times));
    assert_sac_ok(sac_segmenter_end(seg, 1, got + PARTS, NULL, NULL, &times));
    expect_same(cpu, want, got, FRAMES);
    unref_all(want);
    unref_all(got);
    unref_all(frames);
    seg->buckets.sizes.count = sizes; /* they are released too */
    sac_segmenter_destroy(&one);
    sac_segmenter_destroy(&seg);
    sac_device_unref(&dev);
    sac_device_unref(&cpu);
}

static void facets_wait_for_what_they_need_alone(void **state)
{
    (void)state;
    struct sac_segmenter_params p = sac_segmenter_params_default();
    p.projection = SAC_PROJECTION_EQUIRECT180;
    p.facets = SAC_FACETS_ALL;
    p.batch_max = PARTS * SAC_FACETS_MAX;
    check_looks(&p, SAC_FACETS_MAX);
}

/* Where there is no memory to fill a table, there is none. */
static void a_table_that_was_not_filled_is_not_kept(void **state)
{
    (void)state;
    struct sac_segmenter_params p = test_plain_params();
    sac_device                 *cpu = test_device(), *dev = open_far();
    sac_frame                  *frames[FRAMES], *want, *got;
    long                        n = 0;
    make_frames(cpu, dev, frames);
    p.projection = SAC_PROJECTION_EQUIRECT180;
    p.facets = SAC_FACETS_ALL;
    sac_segmenter *seg = test_segmenter(dev, "maps_matte", &p);
    want = test_matte_of(seg, frames[0]);
    sac_buffer_unref(&seg->facets.cells);
    for (sac_result res = SAC_ERR_MEMORY; res != SAC_OK;) {
        assert_null(seg->facets.cells);
        sac_device_pool_trim(dev); /* no other memory is used again */
        sac_alloc_fail_at(++n);
        res = sac_segmenter_lay_out_facets(seg);
        sac_alloc_fail_at(0);
    }
    assert_true(n > 3); /* the table, and where it is filled */
    got = test_matte_of(seg, frames[0]);
    expect_same(cpu, &want, &got, 1);
    sac_frame_unref(&want);
    sac_frame_unref(&got);
    unref_all(frames);
    sac_segmenter_destroy(&seg);
    sac_device_unref(&dev);
    sac_device_unref(&cpu);
}

/* Crops of the frame. */
static void scales_wait_for_what_they_need_alone(void **state)
{
    (void)state;
    struct sac_segmenter_params p = sac_segmenter_params_default();
    p.scales[0] = 0.5f;
    p.scales[1] = 1;
    p.scales[2] = 1.5f;
    p.batch_max = PARTS * 6;
    check_looks(&p, 6);
}

/* Public calls queue their work on the device's own stream and return; the next call sees it. */
static void what_was_just_queued_is_seen(void **state)
{
    (void)state;
    const struct sac_segmenter_params p = test_plain_params();
    sac_device                       *cpu = test_device(), *dev = open_far();
    sac_frame                        *near = test_frame(cpu, SAC_PIXEL_I420, WIDTH, HEIGHT);
    sac_frame                        *bright = NULL, *want, *got;
    sac_segmenter                    *seg = test_segmenter(dev, "maps_matte", &p);
    assert_sac_ok(sac_segmenter_warm_up(seg));
    test_fill(near, 235, 235, 128, 128);
    assert_sac_ok(sac_frame_create(dev, near, &bright));
    assert_sac_ok(sac_frame_copy(near, bright));
    assert_sac_ok(sac_device_wait(dev));
    want = test_matte_of(seg, bright);
    for (int how = 0; how < 2; how++) {
        sac_frame *fresh = NULL, *dark = test_frame(cpu, SAC_PIXEL_I420, WIDTH, HEIGHT);
        test_fill(dark, 16, 16, 128, 128);
        assert_sac_ok(sac_frame_create(dev, near, &fresh));
        assert_sac_ok(sac_frame_copy(dark, fresh));
        assert_sac_ok(sac_device_wait(dev));
        if (how == 0)
            assert_sac_ok(sac_frame_convert(bright, SAC_FILTER_BILINEAR, fresh));
        else
            assert_sac_ok(sac_frame_copy(bright, fresh));
        got = test_matte_of(seg, fresh);
        expect_same(cpu, &want, &got, 1);
        sac_frame_unref(&got);
        sac_frame_unref(&fresh);
        sac_frame_unref(&dark);
    }
    sac_frame_unref(&want);
    sac_frame_unref(&bright);
    sac_frame_unref(&near);
    sac_segmenter_destroy(&seg);
    sac_device_unref(&dev);
    sac_device_unref(&cpu);
}

/* The lists of boxes arrive with their batch; the masks are copied when it ends, while the next one
 * is under way, which has its own. */
static void masks_arrive_with_their_batch(void **state)
{
    (void)state;
    struct sac_segmenter_params p = sac_segmenter_params_default();
    sac_device                 *cpu = test_device(), *dev = open_far();
    sac_frame                  *frames[FRAMES], *got[FRAMES];
    struct sac_segmenter_ask    asks[FRAMES];
    struct sac_segmenter_found  found[FRAMES] = {{{{0}}}};
    struct sac_batch_times      times;
    struct sac_ledger           before, after;
    uint64_t                    bytes = 0, boxes = 0;
    for (int i = 0; i < FRAMES; i++) {
        sac_frame *near = test_frame(cpu, SAC_PIXEL_I420, WIDTH, HEIGHT);
        test_fill(near, i % 3 ? 235 : 16, i % 3 ? 235 : 16, 128, 128); /* nothing in the dark */
        assert_sac_ok(sac_frame_create(dev, near, &frames[i]));
        assert_sac_ok(sac_frame_copy(near, frames[i]));
        assert_sac_ok(sac_device_wait(dev));
        sac_frame_unref(&near);
    }
    ask(frames, asks);
    p.batch_max = PARTS;
    p.classes = "all";
    sac_segmenter *seg = test_segmenter(dev, "instances_yolov8", &p);
    assert_sac_ok(sac_segmenter_show_instances(seg));
    assert_sac_ok(sac_segmenter_warm_up(seg));
    sac_device_ledger(dev, &before);
    const int sizes = seg->buckets.sizes.count;
    seg->buckets.sizes.count = 1;
    assert_sac_ok(sac_segmenter_begin(seg, 0, asks, PARTS));
    assert_sac_ok(sac_segmenter_begin(seg, 1, asks + PARTS, FRAMES - PARTS));
    assert_sac_ok(sac_segmenter_end(seg, 0, got, NULL, found, &times));
    assert_sac_ok(sac_segmenter_end(seg, 1, got + PARTS, NULL, found + PARTS, &times));
    sac_device_ledger(dev, &after);
    for (int i = 0; i < FRAMES; i++) {
        const struct sac_segmenter_found_eye *e = &found[i].eye[0];
        assert_int_equal(e->count, i % 3 ? 2 : 0);
        boxes += e->count;
        for (size_t k = 0; k < e->count; k++) {
            const struct sac_instance *one = &e->items[k];
            const int                  cells = (int)sac_instances_area(&one->window);
            bytes += (uint64_t)cells * sizeof(float);
            for (int c = 0; c < cells; c++) /* the person's; the dog's above and below */
                assert_true(k == 0 ? one->sums[c] == 6 : fabsf(one->sums[c]) == 5);
        }
        sac_segmenter_found_finish(&found[i]);
    }
    assert_int_equal(boxes, 8);
    assert_int_equal(after.reason[SAC_COPY_MASK].bytes - before.reason[SAC_COPY_MASK].bytes, bytes);
    assert_int_equal(after.reason[SAC_COPY_MASK].calls - before.reason[SAC_COPY_MASK].calls, 4);
    assert_int_equal(after.reason[SAC_COPY_OVERLAY].calls, 0);
    seg->buckets.sizes.count = sizes; /* they are released too */
    unref_all(got);
    unref_all(frames);
    sac_segmenter_destroy(&seg);
    sac_device_unref(&dev);
    sac_device_unref(&cpu);
}

/* The network is a launch of its own, and a part of the other one where all is gathered; the
 * composite too. */
static void a_composite_is_in_the_one_launch(void **state)
{
    (void)state;
    const struct sac_segmenter_params p = sac_segmenter_params_default();
    const struct sac_composite_job    tint = {
           .kind = SAC_COMPOSITE_TINT, .strength = 0.5f, .colour = {{0, 200, 90}}, .colours = 1};
    sac_device              *cpu = test_device(), *dev = open_far();
    sac_frame               *frames[FRAMES], *want[FRAMES] = {NULL}, *got[FRAMES] = {NULL};
    struct sac_segmenter_ask asks[FRAMES];
    struct sac_batch_times   times;
    atomic_uint_fast64_t     united = 0;
    make_frames(cpu, dev, frames);
    ask(frames, asks);
    sac_segmenter *one = test_segmenter(dev, "maps_torchvision", &p);
    sac_segmenter *seg = test_segmenter(dev, "maps_torchvision", &p);
    assert_sac_ok(sac_buckets_unite(&seg->buckets, &united));
    assert_sac_ok(sac_segmenter_warm_up(seg));
    for (int i = 0; i < FRAMES; i++) {
        struct sac_composite_job job = tint;
        sac_frame               *matte = test_matte_of(one, frames[i]);
        assert_sac_ok(sac_frame_create(dev, frames[i], &want[i]));
        assert_sac_ok(sac_frame_create(dev, frames[i], &got[i]));
        job.frame = frames[i];
        job.matte = matte;
        job.out = want[i];
        assert_sac_ok(sac_composite_run_on(dev, NULL, &job));
        assert_sac_ok(sac_device_wait(dev));
        sac_frame_unref(&matte);
        job = tint;
        job.out = got[i];
        asks[i].composite = &job;
        const int launches = far_counts.launches, gathered = far_counts.united;
        assert_sac_ok(sac_segmenter_begin(seg, i % 2, &asks[i], 1));
        assert_int_equal(far_counts.launches - launches, 1);
        assert_int_equal(far_counts.united - gathered, 1);
        assert_sac_ok(sac_segmenter_end(seg, i % 2, &matte, NULL, NULL, &times));
        sac_frame_unref(&matte);
    }
    expect_same(cpu, want, got, FRAMES);
    assert_int_equal(atomic_load(&united), FRAMES);
    assert_in_range(far_counts.united_made, 1, 2); /* with motion to look for, and without */
    unref_all(want);
    unref_all(got);
    unref_all(frames);
    sac_segmenter_destroy(&one);
    sac_segmenter_destroy(&seg);
    sac_device_unref(&dev);
    sac_device_unref(&cpu);
}

static void stages_are_ranges_for_a_profiler(void **state)
{
    (void)state;
    struct sac_segmenter_params p = sac_segmenter_params_default();
    sac_device                 *cpu = test_device(), *dev = open_far();
    sac_frame                  *frames[FRAMES], *got[FRAMES] = {NULL};
    struct sac_segmenter_ask    asks[FRAMES];
    struct sac_batch_times      times;
    make_frames(cpu, dev, frames);
    ask(frames, asks);
    p.batch_max = PARTS;
    sac_segmenter *seg = test_segmenter(dev, "maps_matte", &p);
    test_ranges_watch(true);
    assert_sac_ok(sac_segmenter_begin(seg, 0, asks, 1));
    assert_sac_ok(sac_segmenter_end(seg, 0, got, NULL, NULL, &times));
    assert_non_null(strstr(test_ranges, "+preprocess-+inference-+matte-"));
    test_ranges_watch(false);
    unref_all(got);
    unref_all(frames);
    sac_segmenter_destroy(&seg);
    sac_device_unref(&dev);
    sac_device_unref(&cpu);
}

/* ---- what classes hide ---- */

/* Whether it was said, after a run of n grey pictures. */
static bool is_said_of(sac_segmenter *seg, sac_device *cpu, sac_device *dev, int n, int grey)
{
    sac_frame *near = test_frame(cpu, SAC_PIXEL_I420, WIDTH, HEIGHT), *frame[PARTS] = {NULL},
              *matte[PARTS] = {NULL};
    test_fill(near, grey, grey, 128, 128);
    for (int i = 0; i < n; i++) {
        assert_sac_ok(sac_frame_create(dev, near, &frame[i]));
        assert_sac_ok(sac_frame_copy(near, frame[i]));
    }
    assert_sac_ok(sac_segmenter_run(seg, frame, n, matte));
    assert_sac_ok(sac_device_wait(dev));
    sac_model_say_not_finite(seg->model);
    for (int i = 0; i < n; i++) {
        sac_frame_unref(&matte[i]);
        sac_frame_unref(&frame[i]);
    }
    sac_frame_unref(&near);
    return seg->model->finite.said;
}

/* The first network has no numbers below 0, which is what the far device's new memory has; the
 * second none of zeros, which it is warmed up with. */
static void only_pictures_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        int         n, good, bad; /* pictures in places of four, greys */
    } cases[] = {{"maps_label_below", 1, 60, 220}, {"maps_label_above", PARTS, 120, 20}};
    struct sac_segmenter_params p = sac_segmenter_params_default();
    struct sac_device_params    one_size = sac_device_params_default();
    one_size.deterministic = 1;
    sac_device *cpu = test_device(), *dev = open_far_with(&one_size);
    p.batch_max = PARTS;
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        sac_segmenter *seg = test_segmenter(dev, cases[i].model, &p);
        assert_sac_ok(sac_segmenter_warm_up(seg));
        assert_int_equal(seg->buckets.sizes.count, 1);
        assert_int_equal(seg->buckets.sizes.size[0], PARTS);
        sac_model_say_not_finite(seg->model);
        assert_false(seg->model->finite.said);
        assert_false(is_said_of(seg, cpu, dev, cases[i].n, cases[i].good));
        assert_true(is_said_of(seg, cpu, dev, cases[i].n, cases[i].bad));
        sac_segmenter_destroy(&seg);
    }
    sac_device_unref(&dev);
    sac_device_unref(&cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_wait_for_what_they_need_alone),
        cmocka_unit_test(mattes_do_not_hold_up_the_next_network),
        cmocka_unit_test(facets_wait_for_what_they_need_alone),
        cmocka_unit_test(a_table_that_was_not_filled_is_not_kept),
        cmocka_unit_test(scales_wait_for_what_they_need_alone),
        cmocka_unit_test(what_was_just_queued_is_seen),
        cmocka_unit_test(masks_arrive_with_their_batch),
        cmocka_unit_test(a_composite_is_in_the_one_launch),
        cmocka_unit_test(stages_are_ranges_for_a_profiler),
        cmocka_unit_test(only_pictures_are_checked),
    };
    test_without_onednn();
    return cmocka_run_group_tests_name("heads/segmenter_far", tests, NULL, NULL);
}
