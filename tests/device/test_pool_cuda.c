/* SPDX-License-Identifier: Apache-2.0 */
/* The pool on a GPU: the card's memory used up, blocks that streams still work with, what strict
 * mode refuses. */
#include <stdio.h>
#include <string.h>

#include "tests/gpu.h"
#include "vision/vision.h"

enum { MIB = 1 << 20 };
static const uint64_t GIB = 1 << 30;

static struct sac_pool_stats stats_of(const sac_device *dev)
{
    struct sac_pool_stats stats;
    sac_device_pool_stats(dev, &stats);
    return stats;
}

static sac_tensor *bytes_on(sac_device *dev, int64_t bytes, const char *owner)
{
    struct sac_tensor_desc desc = {.dtype = SAC_U8, .rank = 1, .shape = {bytes}};
    sac_tensor            *t = NULL;
    assert_sac_ok(sac_tensor_create(dev, &desc, owner, &t));
    return t;
}

/* ---- a card without room ---- */

/* Hold all of the card but about `leave` bytes, in pieces of a GiB. */
static int fill_card(sac_device *dev, uint64_t leave, struct sac_buffer **held, int room)
{
    uint64_t left = 0, total = 0;
    int      n = 0;
    assert_sac_ok(dev->ops->memory_info(dev, &left, &total));
    for (; left > leave + GIB && n < room; left -= GIB)
        if (sac_buffer_create(dev, GIB, "reserved", &held[n]) != SAC_OK)
            break;
        else
            n++;
    return n;
}

static void a_full_card_refuses_and_goes_on(void **state)
{
    (void)state;
    enum { ROOM = 512, SMALL = 32 };
    static struct sac_buffer *held[ROOM];
    struct sac_buffer        *small[ROOM], *large = NULL;
    char                      why[512];
    gpu_alone();
    sac_device *dev = gpu_open_whole();
    int         n = fill_card(dev, 2 * GIB, held, ROOM), count = 0;
    while (count < ROOM &&
           sac_buffer_create(dev, (size_t)SMALL * MIB, "small", &small[count]) == SAC_OK)
        count++;
    assert_in_range(count, 8, ROOM - 1);
    sac_context_last_error(test_context(), why, sizeof why);
    print_message("%d GiB and %d x %d MiB, then: %s\n", n, count, (int)SMALL, why);
    assert_non_null(strstr(why, "small: no memory for"));
    assert_non_null(strstr(why, "free)"));
    assert_sac_error(sac_buffer_create(dev, (size_t)256 * MIB, "large", &large), SAC_ERR_MEMORY);
    /* Idle blocks are in the way of a large one: they are given up for it. */
    const uint64_t before = stats_of(dev).fragmentation;
    for (int i = 0; i < count; i++)
        sac_buffer_unref(&small[i]);
    assert_sac_ok(
        sac_buffer_create(dev, (size_t)(count - 4) * SMALL * MIB * 4 / 5, "large", &large));
    assert_int_equal(stats_of(dev).fragmentation, before + 1);
    sac_buffer_unref(&large);
    for (int i = 0; i < n; i++)
        sac_buffer_unref(&held[i]);
    assert_int_equal(stats_of(dev).bytes_live, 0);
    sac_device_unref(&dev);
}

/* What the device itself takes for that, a list of some MB, stays with it until it closes. */
static void draw_much(sac_device *dev)
{
    enum { SHAPES = 6000 };
    struct sac_shape *boxes = sac_calloc(SHAPES, sizeof *boxes);
    sac_frame        *frame = NULL, desc = {.format = SAC_PIXEL_NV12, .width = 640, .height = 480};
    assert_non_null(boxes);
    for (int i = 0; i < SHAPES; i++)
        boxes[i] = (struct sac_shape){.kind = SAC_SHAPE_BOX,
                                      .rect = {(float)(i % 600), 10, 620, 200},
                                      .colour = {255, 0, 0},
                                      .alpha = 0.5f,
                                      .thickness = 2};
    assert_sac_ok(sac_frame_create(dev, &desc, &frame));
    assert_sac_ok(sac_frame_draw(frame, boxes, SHAPES));
    sac_frame_unref(&frame);
    sac_free(boxes);
}

/* All that was taken is the driver's again once the device is closed. */
static void nothing_stays_with_the_card(void **state)
{
    (void)state;
    uint64_t before = 0, after = 0, total;
    gpu_alone();
    sac_device *outer = gpu_open(NULL), *dev = NULL;
    draw_much(outer); /* a kernel that is loaded stays with the process */
    assert_sac_ok(outer->ops->memory_info(outer, &before, &total));
    for (int i = 0; i < 20; i++) {
        struct sac_device_stream *stream = NULL;
        dev = gpu_open(NULL);
        sac_tensor *t = bytes_on(dev, 64 * MIB, "test");
        assert_sac_ok(dev->ops->stream_create(dev, &stream));
        sac_tensor_used(t, stream);
        sac_tensor_unref(&t);
        dev->ops->stream_destroy(&stream);
        draw_much(dev);
        sac_device_unref(&dev);
    }
    assert_sac_ok(outer->ops->memory_info(outer, &after, &total));
    print_message("free before %llu, after %llu MiB\n", (unsigned long long)before / MIB,
                  (unsigned long long)after / MIB);
    assert_true(after + 4 * MIB >= before);
    sac_device_unref(&outer);
}

static void idle_blocks_go_by_frames(void **state)
{
    (void)state;
    struct sac_device_params params = sac_device_params_default();
    params.trim_frames = 5;
    sac_device *dev = gpu_open(&params);
    sac_tensor *once = bytes_on(dev, 100 * MIB, "once");
    sac_tensor_unref(&once);
    for (int i = 0; i < 100; i++) {
        sac_tensor *often = bytes_on(dev, 10 * MIB, "often");
        sac_tensor_unref(&often);
        sac_device_count_frames(dev, 1);
    }
    assert_in_range(stats_of(dev).bytes_idle, 10 * MIB, 13 * MIB);
    assert_int_equal(stats_of(dev).allocations, 2);
    sac_device_unref(&dev);
}

/* ---- streams ---- */

/* Keep a stream busy for some milliseconds. */
static void load(sac_device *dev, struct sac_device_stream *stream, sac_tensor *a, sac_tensor *b)
{
    const size_t bytes = (size_t)sac_tensor_desc_bytes(sac_tensor_describe(a));
    for (int i = 0; i < 24; i++)
        assert_sac_ok(sac_device_copy(dev, stream, sac_tensor_data(a), sac_tensor_data(b), bytes,
                                      SAC_COPY_ON_DEVICE, SAC_COPY_TENSOR_USER, "load"));
}

/* On another stream, behind much work, a buffer is copied; it is released at once, and whoever gets
 * memory of its size meanwhile writes something else there. Returns how many bytes of the copy are
 * wrong. */
static int spoiled(sac_device *dev, struct sac_device_stream *stream, sac_tensor *big[2], bool told,
                   bool *same)
{
    enum { BYTES = 4 * MIB };
    uint8_t    *host = sac_alloc(BYTES);
    sac_tensor *source = bytes_on(dev, BYTES, "source"), *copy = bytes_on(dev, BYTES, "copy");
    const void *first = sac_tensor_data(source);
    int         wrong = 0;
    assert_non_null(host);
    memset(host, 1, BYTES);
    assert_sac_ok(sac_tensor_upload(source, host));
    assert_sac_ok(dev->ops->stream_after(dev, stream, NULL));
    load(dev, stream, big[0], big[1]);
    assert_sac_ok(sac_device_copy(dev, stream, sac_tensor_data(copy), first, BYTES,
                                  SAC_COPY_ON_DEVICE, SAC_COPY_TENSOR_USER, "copy"));
    if (told)
        sac_tensor_used(source, stream);
    sac_tensor_unref(&source);
    sac_tensor *poison = bytes_on(dev, BYTES, "poison");
    *same = sac_tensor_data(poison) == first;
    memset(host, 0xee, BYTES);
    assert_sac_ok(sac_tensor_upload(poison, host));
    assert_sac_ok(dev->ops->stream_wait(stream));
    assert_sac_ok(sac_tensor_download(copy, host));
    for (int i = 0; i < BYTES; i++)
        wrong += host[i] != 1;
    sac_tensor_unref(&poison);
    sac_tensor_unref(&copy);
    sac_free(host);
    return wrong;
}

static void a_buffer_is_not_handed_out_while_a_stream_reads_it(void **state)
{
    (void)state;
    sac_device               *dev = gpu_open(NULL);
    struct sac_device_stream *stream = NULL;
    sac_tensor *big[2] = {bytes_on(dev, (int64_t)GIB, "load"), bytes_on(dev, (int64_t)GIB, "load")};
    bool        same;
    assert_sac_ok(dev->ops->stream_create(dev, &stream));
    /* What goes wrong without a word to the pool shows that this test could see it. */
    assert_true(spoiled(dev, stream, big, false, &same) > 0);
    assert_true(same);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(spoiled(dev, stream, big, true, &same), 0);
        assert_false(same);
    }
    assert_in_range(stats_of(dev).allocations, 4, 8); /* what became free was used again */
    dev->ops->stream_destroy(&stream);
    sac_tensor_unref(&big[0]);
    sac_tensor_unref(&big[1]);
    sac_device_unref(&dev);
}

/* What a program calls before code of its own reads a tensor, or a frame that was written to. */
static void waiting_is_until_all_is_done(void **state)
{
    (void)state;
    sac_device *dev = gpu_open(NULL);
    sac_tensor *big[2] = {bytes_on(dev, (int64_t)GIB, "load"), bytes_on(dev, (int64_t)GIB, "load")};
    sac_frame  *frame = NULL, desc = {.format = SAC_PIXEL_NV12, .width = 640, .height = 480};
    struct sac_event *behind = NULL;
    assert_sac_ok(dev->ops->event_create(dev, false, &behind));
    assert_sac_ok(sac_frame_create(dev, &desc, &frame));
    for (int i = 0; i < 2; i++) {
        load(dev, NULL, big[0], big[1]);
        assert_sac_ok(dev->ops->event_record(behind, NULL));
        assert_false(dev->ops->event_reached(behind)); /* else this shows nothing */
        assert_sac_ok(i == 0 ? sac_device_wait(dev) : sac_frame_wait(frame));
        assert_true(dev->ops->event_reached(behind));
    }
    dev->ops->event_destroy(&behind);
    sac_frame_unref(&frame);
    sac_tensor_unref(&big[0]);
    sac_tensor_unref(&big[1]);
    sac_device_unref(&dev);
}

struct release {
    sac_device       *dev;
    struct sac_event *behind;
    bool              called, early;
};

static void note_release(void *user)
{
    struct release *r = user;
    r->called = true;
    r->early = !r->dev->ops->event_reached(r->behind);
}

/* A decoder that gets its surface back writes the next picture there at once. */
static void a_decoders_planes_go_back_after_the_work(void **state)
{
    (void)state;
    sac_device *dev = gpu_open(NULL);
    sac_tensor *big[2] = {bytes_on(dev, (int64_t)GIB, "load"), bytes_on(dev, (int64_t)GIB, "load")};
    sac_tensor *surface = bytes_on(dev, 640 * 480 * 3 / 2, "surface"), *dst = NULL;
    sac_frame  *frame = NULL, desc = {.format = SAC_PIXEL_NV12, .width = 640, .height = 480};
    struct sac_preprocess     pre = sac_preprocess_default();
    struct sac_preprocess_job job = {0};
    struct release            r = {.dev = dev};
    pre.width = pre.height = 320;
    desc.plane[0] = sac_tensor_data(surface);
    desc.plane[1] = desc.plane[0] + 640 * 480;
    desc.pitch_bytes[0] = desc.pitch_bytes[1] = 640;
    struct sac_tensor_desc want = {.dtype = SAC_F32, .rank = 4, .shape = {1, 3, 320, 320}};
    assert_sac_ok(dev->ops->event_create(dev, false, &r.behind));
    assert_sac_ok(sac_frame_wrap(dev, &desc, note_release, &r, &frame));
    assert_sac_ok(sac_tensor_create(dev, &want, "input", &dst));
    job.frame = frame;
    /* The first launch of a kernel loads it, which takes longer than the copies. */
    assert_sac_ok(sac_preprocess_run(dev, &pre, &job, 1, dst));
    load(dev, NULL, big[0], big[1]);
    assert_sac_ok(sac_preprocess_run(dev, &pre, &job, 1, dst));
    assert_sac_ok(dev->ops->event_record(r.behind, NULL));
    assert_false(dev->ops->event_reached(r.behind)); /* else this shows nothing */
    sac_frame_unref(&frame);
    assert_true(r.called);
    assert_false(r.early);
    dev->ops->event_destroy(&r.behind);
    sac_tensor_unref(&dst);
    sac_tensor_unref(&surface);
    sac_tensor_unref(&big[0]);
    sac_tensor_unref(&big[1]);
    sac_device_unref(&dev);
}

/* ---- strict mode ---- */

#define assert_refused(call, ...)                                  \
    do {                                                           \
        char        why_[512];                                     \
        const char *words_[] = {__VA_ARGS__};                      \
        assert_sac_error(call, SAC_ERR_COPY);                      \
        sac_context_last_error(test_context(), why_, sizeof why_); \
        for (size_t w_ = 0; w_ < SAC_COUNT(words_); w_++)          \
            if (!strstr(why_, words_[w_]))                         \
                fail_msg("'%s' is not in: %s", words_[w_], why_);  \
    } while (0)

static void strict_mode_names_what_it_refuses(void **state)
{
    (void)state;
    struct sac_device_params params = sac_device_params_default();
    params.zero_copy_strict = 1;
    uint8_t     host[64] = {0};
    sac_device *dev = gpu_open(&params), *cpu = NULL;
    sac_frame  *here = NULL, *there = NULL, *other = NULL, *odd = NULL,
              desc = {
                  .format = SAC_PIXEL_NV12, .width = 32, .height = 16, .number = 7, .stream_id = 3};
    sac_tensor *t = bytes_on(dev, sizeof host, "detector output"),
               *u = bytes_on(dev, sizeof host, "head input");
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &cpu));
    assert_sac_ok(sac_frame_create(cpu, &desc, &here));
    assert_sac_ok(sac_frame_create(dev, &desc, &there));
    assert_sac_ok(sac_frame_create(dev, &desc, &other));
    desc.width = 48;
    assert_sac_ok(sac_frame_create(dev, &desc, &odd));
    assert_refused(sac_frame_copy(here, there), "frame-upload", "frame 7 of stream 3", "cuda:0");
    assert_refused(sac_frame_copy(there, here), "frame-download", "frame 7 of stream 3", "cuda:0");
    assert_refused(sac_frame_copy(there, other), "frame-convert", "frame 7 of stream 3", "cuda:0");
    assert_refused(sac_frame_convert(there, SAC_FILTER_BILINEAR, odd), "frame-convert", "cuda:0");
    assert_refused(sac_tensor_upload(t, host), "upload", "detector output", "uint8 [64]", "cuda:0");
    assert_refused(sac_tensor_download(t, host), "download", "detector output", "uint8 [64]",
                   "cuda:0");
    assert_refused(sac_device_copy(dev, NULL, sac_tensor_data(u), sac_tensor_data(t), 64,
                                   SAC_COPY_ON_DEVICE, SAC_COPY_TENSOR_LAYOUT, "head: head input"),
                   "tensor-layout", "head input", "cuda:0");
    assert_refused(sac_frame_convert_on(NULL, there, SAC_FILTER_BILINEAR, odd, SAC_COPY_OVERLAY,
                                        "overlay: frame 7"),
                   "overlay-download", "frame 7", "cuda:0");
    struct sac_ledger ledger;
    sac_device_ledger(dev, &ledger);
    for (int i = 0; i < SAC_COPY_REASON_COUNT; i++)
        assert_int_equal(ledger.reason[i].calls, 0);
    sac_tensor_unref(&t);
    sac_tensor_unref(&u);
    sac_frame_unref(&here);
    sac_frame_unref(&there);
    sac_frame_unref(&other);
    sac_frame_unref(&odd);
    sac_device_unref(&cpu);
    sac_device_unref(&dev);
}

/* ---- lists for kernels ---- */

/* More threads than there are blocks for their lists: those that come late wait, none is
 * refused. */
static void *draw_often(void *arg)
{
    sac_device      *dev = arg;
    struct sac_shape boxes[40];
    sac_frame       *frame = NULL, desc = {.format = SAC_PIXEL_NV12, .width = 640, .height = 480};
    if (sac_frame_create(dev, &desc, &frame) != SAC_OK)
        return arg;
    for (int i = 0; i < 40; i++)
        boxes[i] = (struct sac_shape){.kind = SAC_SHAPE_BOX,
                                      .rect = {(float)i, (float)i, 300 + (float)i, 200},
                                      .colour = {255, 0, 0},
                                      .alpha = 0.5f,
                                      .thickness = 2};
    sac_result res = SAC_OK;
    for (int i = 0; i < 200 && res == SAC_OK; i++)
        res = sac_frame_draw(frame, boxes, 40);
    sac_frame_unref(&frame);
    return res == SAC_OK ? NULL : arg;
}

static void many_threads_send_lists(void **state)
{
    (void)state;
    enum { THREADS = 32 };
    sac_device *dev = gpu_open(NULL);
    pthread_t   threads[THREADS];
    void       *failed;
    int         count = 0;
    for (int i = 0; i < THREADS; i++)
        assert_sac_ok(sac_thread_start(test_context(), &threads[i], "t", draw_often, dev));
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &failed);
        count += failed != NULL;
    }
    assert_int_equal(count, 0);
    sac_device_unref(&dev);
}

/* ---- planes as tensors ---- */

static void a_plane_of_a_surface_is_a_tensor(void **state)
{
    (void)state;
    sac_device *dev = gpu_open(NULL), *cpu = NULL;
    uint8_t    *host = sac_alloc(64 * 48);
    sac_frame  *here = NULL, *there = NULL,
              desc = {.format = SAC_PIXEL_GRAY8, .width = 64, .height = 48};
    sac_tensor *t = NULL;
    assert_non_null(host);
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &cpu));
    assert_sac_ok(sac_frame_create(cpu, &desc, &here));
    assert_sac_ok(sac_frame_create(dev, &desc, &there));
    for (int i = 0; i < 64 * 48; i++)
        here->plane[0][i] = (uint8_t)(i * 7);
    assert_sac_ok(sac_frame_copy(here, there));
    assert_sac_ok(sac_frame_plane_tensor(there, 0, &t));
    assert_sac_ok(sac_tensor_check(
        test_context(), "plane", t,
        &(struct sac_tensor_spec){
            .device = dev, .dtype = SAC_U8, .rank = 2, .shape = {48, 64}, .align_bytes = 64}));
    sac_frame_unref(&there);
    assert_sac_ok(sac_tensor_download(t, host));
    assert_memory_equal(host, here->plane[0], 64 * 48);
    sac_tensor_unref(&t);
    sac_frame_unref(&here);
    sac_free(host);
    sac_device_unref(&cpu);
    sac_device_unref(&dev);
}

/* ---- books ---- */

struct lines {
    char text[4096];
};

static void add_line(void *user, const char *line)
{
    struct lines *l = user;
    size_t        at = strlen(l->text);
    snprintf(l->text + at, sizeof l->text - at, "%s\n", line);
}

static void the_live_list_has_host_and_device(void **state)
{
    (void)state;
    struct lines       l = {{0}};
    sac_device        *dev = gpu_open(NULL);
    struct sac_buffer *host = NULL;
    sac_tensor        *t = bytes_on(dev, 1000, "detector input");
    assert_sac_ok(sac_host_buffer_create(dev, 500, "boxes", &host));
    sac_device_dump_live(dev, add_line, &l);
    assert_non_null(strstr(l.text, "cuda:0: 'detector input', 1000 bytes, uint8 [1000]"));
    assert_non_null(strstr(l.text, "page-locked host memory: 'boxes', 500 bytes"));
    sac_buffer_unref(&host);
    sac_tensor_unref(&t);
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_card_refuses_and_goes_on),
        cmocka_unit_test(nothing_stays_with_the_card),
        cmocka_unit_test(idle_blocks_go_by_frames),
        cmocka_unit_test(a_buffer_is_not_handed_out_while_a_stream_reads_it),
        cmocka_unit_test(waiting_is_until_all_is_done),
        cmocka_unit_test(a_decoders_planes_go_back_after_the_work),
        cmocka_unit_test(strict_mode_names_what_it_refuses),
        cmocka_unit_test(many_threads_send_lists),
        cmocka_unit_test(a_plane_of_a_surface_is_a_tensor),
        cmocka_unit_test(the_live_list_has_host_and_device),
    };
    return cmocka_run_group_tests_name("device/pool_cuda", tests, NULL, NULL);
}
