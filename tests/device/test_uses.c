/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that streams still work with, on a device whose streams move when the test says so. */
#include <string.h>

#include "device/cpu/cpu.h"
#include "device/uses.h"
#include "tests/test.h"

/* ---- the device: a stream is how much was queued, and how much of that is done ---- */

struct sac_device_stream {
    int queued, done;
};
struct sac_event {
    struct sac_device_stream *stream;
    int                       behind;
};

static struct sac_device_stream own;
static int                      waits, events;

static sac_result event_create(struct sac_device *dev, bool timed, struct sac_event **out)
{
    (void)dev, (void)timed;
    *out = sac_new(struct sac_event);
    events += *out != NULL;
    return *out ? SAC_OK : SAC_ERR_MEMORY;
}

static void event_destroy(struct sac_event **event)
{
    events--;
    sac_free(*event);
    *event = NULL;
}

static sac_result event_record(struct sac_event *event, struct sac_device_stream *stream)
{
    event->stream = stream ? stream : &own;
    event->behind = event->stream->queued;
    return SAC_OK;
}

static bool event_reached(struct sac_event *event)
{
    return event->stream->done >= event->behind;
}

static sac_result event_wait(struct sac_event *event)
{
    waits += !event_reached(event);
    event->stream->done = SAC_MAX(event->stream->done, event->behind);
    return SAC_OK;
}

static sac_result stream_wait(struct sac_device_stream *stream)
{
    stream->done = stream->queued;
    return SAC_OK;
}

static sac_device *open_fake(const struct sac_device_params *params)
{
    static struct sac_device_ops ops;
    sac_device                  *dev = NULL;
    ops = sac_device_cpu;
    ops.host_memory = false;
    ops.event_create = event_create;
    ops.event_destroy = event_destroy;
    ops.event_record = event_record;
    ops.event_reached = event_reached;
    ops.event_wait = event_wait;
    ops.stream_wait = stream_wait;
    assert_sac_ok(sac_device_open(test_context(), "cpu", params, &dev));
    dev->ops = &ops;
    own = (struct sac_device_stream){0};
    waits = events = 0;
    return dev;
}

static void close_fake(sac_device **dev)
{
    sac_device_unref(dev);
    assert_int_equal(events, 0);
}

static struct sac_buffer *take(sac_device *dev, size_t bytes)
{
    struct sac_buffer *buf = NULL;
    assert_sac_ok(sac_buffer_create(dev, bytes, "test", &buf));
    return buf;
}

/* ---- buffers ---- */

static void a_buffer_in_use_is_not_handed_out(void **state)
{
    (void)state;
    struct sac_device_stream s = {.queued = 1};
    sac_device              *dev = open_fake(NULL);
    struct sac_buffer       *a = take(dev, 1000);
    const void              *first = sac_buffer_data(a);
    sac_buffer_used(a, &s);
    sac_buffer_unref(&a);
    struct sac_buffer *b = take(dev, 1000);
    assert_ptr_not_equal(sac_buffer_data(b), first);
    assert_int_equal(waits, 0);
    s.done = 1;
    struct sac_buffer *c = take(dev, 1000);
    assert_ptr_equal(sac_buffer_data(c), first);
    sac_buffer_unref(&b);
    sac_buffer_unref(&c);
    close_fake(&dev);
}

/* On the device's own stream the next owner's work comes behind anyway. */
static void the_devices_own_stream_needs_no_wait(void **state)
{
    (void)state;
    sac_device        *dev = open_fake(NULL);
    struct sac_buffer *a = take(dev, 1000);
    const void        *first = sac_buffer_data(a);
    own.queued = 1;
    sac_buffer_used(a, NULL);
    sac_buffer_unref(&a);
    a = take(dev, 1000);
    assert_ptr_equal(sac_buffer_data(a), first);
    assert_int_equal(events, 0);
    sac_buffer_unref(&a);
    close_fake(&dev);
}

/* The latest use counts, of each stream, however many there are. */
static void all_streams_must_be_done(void **state)
{
    (void)state;
    enum { STREAMS = SAC_USES_MAX + 2 };
    struct sac_device_stream s[STREAMS];
    sac_device              *dev = open_fake(NULL);
    struct sac_buffer       *a = take(dev, 1000), *b = NULL;
    const void              *first = sac_buffer_data(a);
    for (int i = 0; i < STREAMS; i++) {
        s[i] = (struct sac_device_stream){.queued = 1};
        sac_buffer_used(a, &s[i]);
    }
    assert_int_equal(waits, STREAMS - SAC_USES_MAX);
    s[STREAMS - 1].queued = 2;
    sac_buffer_used(a, &s[STREAMS - 1]);
    sac_buffer_unref(&a);
    for (int i = 0; i < STREAMS; i++) {
        b = take(dev, 1000);
        assert_ptr_not_equal(sac_buffer_data(b), first);
        sac_buffer_unref(&b);
        s[i].done = 1;
    }
    s[STREAMS - 1].done = 2;
    b = take(dev, 1000);
    struct sac_buffer *c = take(dev, 1000);
    assert_true(sac_buffer_data(b) == first || sac_buffer_data(c) == first);
    sac_buffer_unref(&b);
    sac_buffer_unref(&c);
    close_fake(&dev);
}

static void over_the_budget_it_waits_for_the_oldest(void **state)
{
    (void)state;
    struct sac_device_params params = sac_device_params_default();
    params.memory_limit_bytes = 2048;
    struct sac_device_stream s = {0};
    sac_device              *dev = open_fake(&params);
    struct sac_buffer       *a = take(dev, 1000), *b = take(dev, 1000);
    const void              *first = sac_buffer_data(a);
    s.queued = 1;
    sac_buffer_used(a, &s);
    sac_buffer_unref(&a);
    s.queued = 2;
    sac_buffer_used(b, &s);
    sac_buffer_unref(&b);
    a = take(dev, 1000);
    assert_ptr_equal(sac_buffer_data(a), first);
    assert_int_equal(waits, 1);
    assert_int_equal(s.done, 1);
    b = take(dev, 500); /* another size: what lies idle goes back to the system, when it may */
    assert_int_equal(waits, 2);
    assert_int_equal(s.done, 2);
    sac_buffer_unref(&a);
    sac_buffer_unref(&b);
    close_fake(&dev);
}

/* ---- frames and tensors ---- */

static void note(void *user)
{
    *(int *)user = own.done;
}

static void wrapped_planes_go_back_when_the_work_is_done(void **state)
{
    (void)state;
    static uint8_t pixels[64 * 48];
    sac_device    *dev = open_fake(NULL);
    sac_frame     *frame = NULL, desc = {.format = SAC_PIXEL_GRAY8, .width = 64, .height = 48};
    int            released = -1;
    desc.plane[0] = pixels;
    desc.pitch_bytes[0] = 64;
    assert_sac_ok(sac_frame_wrap(dev, &desc, note, &released, &frame));
    own.queued = 3;
    sac_frame_used(frame, NULL);
    sac_frame_unref(&frame);
    assert_int_equal(released, 3);
    assert_int_equal(waits, 1);
    close_fake(&dev);
}

/* Who reads the planes by himself: converting and drawing only queue what fills them. */
static void waiting_for_a_frame_waits_for_what_was_queued(void **state)
{
    (void)state;
    static uint8_t pixels[64 * 48];
    sac_device    *dev = open_fake(NULL);
    sac_frame     *ours = NULL, *others = NULL,
              desc = {.format = SAC_PIXEL_GRAY8, .width = 64, .height = 48};
    assert_sac_ok(sac_frame_create(dev, &desc, &ours));
    desc.plane[0] = pixels;
    desc.pitch_bytes[0] = 64;
    assert_sac_ok(sac_frame_wrap(dev, &desc, NULL, NULL, &others));
    own.queued = 2;
    assert_sac_ok(sac_frame_wait(others)); /* nobody here writes to it */
    assert_int_equal(own.done, 0);
    assert_sac_ok(sac_frame_wait(ours));
    assert_int_equal(own.done, 2);
    own.queued = 4;
    assert_sac_ok(sac_device_wait(dev));
    assert_int_equal(own.done, 4);
    sac_frame_unref(&ours);
    sac_frame_unref(&others);
    close_fake(&dev);
}

static void wrapped_memory_goes_back_when_the_work_is_done(void **state)
{
    (void)state;
    static float           numbers[4];
    struct sac_tensor_desc desc = {.dtype = SAC_F32, .rank = 1, .shape = {4}},
                           half = {.dtype = SAC_F32, .rank = 1, .shape = {2}};
    sac_device *dev = open_fake(NULL);
    sac_tensor *t = NULL, *view = NULL;
    int         released = -1;
    assert_sac_ok(sac_tensor_wrap(dev, &desc, numbers, note, &released, &t));
    assert_sac_ok(sac_tensor_view(t, 8, &half, &view));
    own.queued = 5;
    sac_tensor_used(view, NULL);
    sac_tensor_unref(&t);
    assert_int_equal(released, -1);
    sac_tensor_unref(&view);
    assert_int_equal(released, 5);
    close_fake(&dev);
}

static void a_views_buffer_is_meant(void **state)
{
    (void)state;
    struct sac_device_stream s = {.queued = 1};
    struct sac_tensor_desc   whole = {.dtype = SAC_U8, .rank = 1, .shape = {1000}},
                           part = {.dtype = SAC_U8, .rank = 1, .shape = {10}};
    sac_device *dev = open_fake(NULL);
    sac_tensor *t = NULL, *view = NULL;
    assert_sac_ok(sac_tensor_create(dev, &whole, "test", &t));
    assert_sac_ok(sac_tensor_view(t, 500, &part, &view));
    const void *first = sac_tensor_data(t);
    sac_tensor_used(view, &s);
    sac_tensor_unref(&view);
    sac_tensor_unref(&t);
    assert_sac_ok(sac_tensor_create(dev, &whole, "test", &t));
    assert_ptr_not_equal(sac_tensor_data(t), first);
    sac_tensor_unref(&t);
    close_fake(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_buffer_in_use_is_not_handed_out),
        cmocka_unit_test(the_devices_own_stream_needs_no_wait),
        cmocka_unit_test(all_streams_must_be_done),
        cmocka_unit_test(over_the_budget_it_waits_for_the_oldest),
        cmocka_unit_test(wrapped_planes_go_back_when_the_work_is_done),
        cmocka_unit_test(waiting_for_a_frame_waits_for_what_was_queued),
        cmocka_unit_test(wrapped_memory_goes_back_when_the_work_is_done),
        cmocka_unit_test(a_views_buffer_is_meant),
    };
    return cmocka_run_group_tests_name("device/uses", tests, NULL, NULL);
}
