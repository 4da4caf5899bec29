/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that are one launch from frames to mattes: the same bits as launches one by one, on a GPU
 * and, as heads/united_far, on the device of tests/engine/far.h. */
#include "tests/gpu.h"
#include "tests/heads/segmenters.h"

enum { FRAMES = 12, WIDTH = 96, HEIGHT = 64 };

/* What is asked of a segmenter for each frame, and what comes of it. */
struct run {
    sac_frame                   *frames[FRAMES];
    struct sac_segmenter_ask     asks[FRAMES];
    sac_frame                   *mattes[FRAMES];
    struct sac_segmenter_summary came_to[FRAMES];
};

static sac_frame *upload(sac_device *cpu, sac_device *dev, int i, int width, int height)
{
    sac_frame *near = test_frame(cpu, SAC_PIXEL_I420, width, height), *frame = NULL;
    test_fill(near, 20 + 15 * i, 255 - 15 * i, 120, 136);
    near->stream_id = i % 2;
    assert_sac_ok(sac_frame_create(dev, near, &frame));
    assert_sac_ok(sac_frame_copy(near, frame));
    assert_sac_ok(sac_device_wait(dev));
    sac_frame_unref(&near);
    return frame;
}

static void begin_run(sac_device *cpu, sac_device *dev, struct run *r)
{
    *r = (struct run){.frames = {NULL}};
    for (int i = 0; i < FRAMES; i++) {
        r->frames[i] = upload(cpu, dev, i, WIDTH, HEIGHT);
        r->asks[i] = (struct sac_segmenter_ask){.frame = r->frames[i]};
    }
}

/* Frame by frame, two under way at once. */
static void run_all(sac_segmenter *seg, struct run *r)
{
    struct sac_batch_times times;
    for (int i = 0; i <= FRAMES; i++) {
        if (i < FRAMES)
            assert_sac_ok(sac_segmenter_begin(seg, i % 2, &r->asks[i], 1));
        if (i > 0)
            assert_sac_ok(sac_segmenter_end(seg, (i - 1) % 2, &r->mattes[i - 1], &r->came_to[i - 1],
                                            NULL, &times));
        if (i > 0 && seg->buckets.timed && r->mattes[i - 1])
            assert_true(times.gpu_ns[SAC_MARK_RUN / 2] > 0 || r->asks[i - 1].keep);
    }
}

static void expect_same(sac_device *cpu, const sac_frame *want, const sac_frame *got, int number)
{
    sac_frame *a = NULL, *b = NULL;
    assert_sac_ok(sac_frame_create(cpu, want, &a));
    assert_sac_ok(sac_frame_create(cpu, got, &b));
    assert_sac_ok(sac_frame_copy(want, a));
    assert_sac_ok(sac_frame_copy(got, b));
    for (int y = 0; y < a->height; y++)
        if (memcmp(a->plane[0] + (size_t)y * a->pitch_bytes[0],
                   b->plane[0] + (size_t)y * b->pitch_bytes[0], (size_t)a->width) != 0)
            fail_msg("frame %d differs in row %d", number, y);
    sac_frame_unref(&a);
    sac_frame_unref(&b);
}

static sac_segmenter *open_one(sac_device *dev, const char *model,
                               const struct sac_segmenter_params *p, atomic_uint_fast64_t *united)
{
    sac_segmenter *seg = test_segmenter(dev, model, p);
    if (united)
        assert_sac_ok(sac_buckets_unite(&seg->buckets, united));
    assert_sac_ok(sac_segmenter_warm_up(seg));
    return seg;
}

static void free_mattes(struct run *r)
{
    for (int i = 0; i < FRAMES; i++)
        sac_frame_unref(&r->mattes[i]);
}

/* Returns how many batches were one launch. */
static int check(sac_device *cpu, sac_device *dev, const char *model,
                 const struct sac_segmenter_params *p, struct run *r, int rounds, bool summaries,
                 bool timed)
{
    atomic_uint_fast64_t united = 0;
    sac_segmenter       *apart = open_one(dev, model, p, NULL);
    sac_segmenter       *one = open_one(dev, model, p, &united);
    struct run           other = *r;
    sac_segmenter_summarise(apart, summaries);
    sac_segmenter_summarise(one, summaries);
    if (timed)
        assert_sac_ok(sac_buckets_time(&one->buckets, true));
    for (int k = 0; k < rounds; k++) {
        run_all(apart, r);
        run_all(one, &other);
        for (int i = 0; i < FRAMES; i++) {
            expect_same(cpu, r->mattes[i], other.mattes[i], i);
            if (summaries)
                assert_memory_equal(&r->came_to[i], &other.came_to[i], sizeof r->came_to[i]);
            assert_int_equal(r->came_to[i].kept, other.came_to[i].kept);
        }
        free_mattes(r);
        free_mattes(&other);
    }
    sac_segmenter_destroy(&apart);
    sac_segmenter_destroy(&one);
    return (int)atomic_load(&united);
}

static void end_run(sac_device **cpu, sac_device **dev, struct run *r)
{
    for (int i = 0; i < FRAMES; i++)
        sac_frame_unref(&r->frames[i]);
    sac_device_unref(dev);
    sac_device_unref(cpu);
}

static struct sac_segmenter_params params_of(int batch_max)
{
    struct sac_segmenter_params p = sac_segmenter_params_default();
    p.precision = SAC_PRECISION_FP32;
    p.batch_max = batch_max;
    return p;
}

/* A network's first run on a GPU is no graph yet: with two batches under way that is two runs. */
static void expect_united(int united, int batches)
{
    assert_in_range(united, batches - 2, batches);
}

static void a_batch_is_one_launch(void **state)
{
    (void)state;
    sac_device                       *dev = gpu_open(NULL), *cpu = test_device();
    const struct sac_segmenter_params p = params_of(1);
    struct run                        r;
    begin_run(cpu, dev, &r);
    for (int timed = 0; timed < 2; timed++)
        expect_united(check(cpu, dev, "maps_torchvision", &p, &r, 2, false, timed), 2 * FRAMES);
    end_run(&cpu, &dev, &r);
}

/* Both eyes in one launch, in one run of the network or in two. */
static void both_eyes_are_one_launch(void **state)
{
    (void)state;
    sac_device                 *dev = gpu_open(NULL), *cpu = test_device();
    struct sac_segmenter_params p = params_of(1);
    struct run                  r;
    begin_run(cpu, dev, &r);
    p.stereo = SAC_STEREO_SBS;
    expect_united(check(cpu, dev, "maps_torchvision", &p, &r, 1, false, false), FRAMES);
    end_run(&cpu, &dev, &r);
}

/* Facets are made, and their maps put together, in the same launch. */
static void facets_are_in_it(void **state)
{
    (void)state;
    sac_device                 *dev = gpu_open(NULL), *cpu = test_device();
    struct sac_segmenter_params p = params_of(1);
    struct run                  r;
    begin_run(cpu, dev, &r);
    p.projection = SAC_PROJECTION_EQUIRECT180;
    p.facets = SAC_FACETS_ALL;
    expect_united(check(cpu, dev, "maps_torchvision", &p, &r, 1, false, false), FRAMES);
    end_run(&cpu, &dev, &r);
}

/* Larger frames want more scratch between kernels, which is taken one by one; the next one is one
 * launch again. */
static void sizes_change(void **state)
{
    (void)state;
    static const int                  sizes[][2] = {{WIDTH, HEIGHT}, {640, 360}, {33, 17}, {1, 1}};
    sac_device                       *dev = gpu_open(NULL), *cpu = test_device();
    const struct sac_segmenter_params p = params_of(1);
    struct run                        r;
    begin_run(cpu, dev, &r);
    for (int i = 0; i < FRAMES; i++) {
        const int *size = sizes[i / 3 % SAC_COUNT(sizes)];
        sac_frame_unref(&r.frames[i]);
        r.asks[i].frame = r.frames[i] = upload(cpu, dev, i, size[0], size[1]);
    }
    assert_in_range(check(cpu, dev, "maps_torchvision", &p, &r, 3, false, false), 3 * FRAMES - 4,
                    3 * FRAMES);
    end_run(&cpu, &dev, &r);
}

/* What a recurrent network is given takes turns: a graph for each. */
static void states_are_carried(void **state)
{
    (void)state;
    sac_device                       *dev = gpu_open(NULL), *cpu = test_device();
    const struct sac_segmenter_params p = params_of(1);
    struct run                        r;
    begin_run(cpu, dev, &r);
    check(cpu, dev, "maps_recurrent_fixed", &p, &r, 3, false, false);
    end_run(&cpu, &dev, &r);
}

/* Regions, frames that the network does not see, boxes, numbers for the host. */
static void the_rest_comes_one_by_one(void **state)
{
    (void)state;
    sac_device                       *dev = gpu_open(NULL), *cpu = test_device();
    const struct sac_segmenter_params p = params_of(1);
    struct run                        r;
    begin_run(cpu, dev, &r);
    for (int i = 0; i < FRAMES; i++) {
        r.asks[i].keep = i % 3 == 1;
        if (i >= FRAMES / 2)
            r.asks[i].region = (struct sac_rect){8.0f, 4.0f, 60.0f + (float)i, 50.0f};
    }
    check(cpu, dev, "maps_torchvision", &p, &r, 2, true, false);
    check(cpu, dev, "maps_matte", &p, &r, 1, false, false);
    check(cpu, dev, "instances_yolov8", &p, &r, 1, false, false);
    end_run(&cpu, &dev, &r);
}

static void it_can_be_left_out(void **state)
{
    (void)state;
    const struct sac_segmenter_params p = params_of(1);
    struct run                        r;
    sac_device_unref(&(sac_device *){gpu_open(NULL)}); /* skips where there is none */
    sac_device *cpu = test_device();
    setenv("SACCADE_WITHOUT", "one-launch", 1);
    sac_device *dev = gpu_open(NULL);
    unsetenv("SACCADE_WITHOUT");
    begin_run(cpu, dev, &r);
    assert_int_equal(check(cpu, dev, "maps_torchvision", &p, &r, 1, false, false), 0);
    end_run(&cpu, &dev, &r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_is_one_launch), cmocka_unit_test(both_eyes_are_one_launch),
        cmocka_unit_test(facets_are_in_it),      cmocka_unit_test(sizes_change),
        cmocka_unit_test(states_are_carried),    cmocka_unit_test(the_rest_comes_one_by_one),
        cmocka_unit_test(it_can_be_left_out),
    };
    test_without_onednn();
    return cmocka_run_group_tests_name("heads/united", tests, NULL, NULL);
}
