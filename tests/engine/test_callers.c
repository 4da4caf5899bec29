/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's streams and ours are put in order by the device: on the far one, whose work is done
 * no sooner than somebody waits for it, so a missing order shows in the numbers, and a thread that
 * waits shows in what is done by then. */
#include <stdlib.h>
#include <string.h>

#include "tests/engine/far.h"
#include "tests/test.h"

enum { N = 1024 };
static const struct sac_tensor_desc desc = {.dtype = SAC_F32, .rank = 1, .shape = {N}};

static sac_device *far(void)
{
    sac_device *dev = NULL;
    assert_sac_ok(far_open(test_context(), NULL, &dev));
    return dev;
}

static struct sac_device_stream *stream_of(sac_device *dev)
{
    struct sac_device_stream *stream = NULL;
    assert_sac_ok(dev->ops->stream_create(dev, &stream));
    return stream;
}

static sac_tensor *tensor_of(sac_device *dev, float value)
{
    sac_tensor *t = NULL;
    float       x[N];
    for (int i = 0; i < N; i++)
        x[i] = value;
    assert_sac_ok(sac_tensor_create(dev, &desc, "test", &t));
    assert_sac_ok(sac_tensor_upload(t, x));
    return t;
}

/* The caller's own work: what it queues on its stream goes past the library. */
static void queue_copy(sac_device *dev, struct sac_device_stream *stream, void *to,
                       const void *from)
{
    assert_sac_ok(dev->ops->copy(dev, stream, to, from, N * sizeof(float), SAC_COPY_ON_DEVICE));
}

static float first_of(const sac_tensor *t)
{
    float x[N];
    assert_sac_ok(sac_tensor_download(t, x));
    for (int i = 1; i < N; i++)
        assert_true(x[i] == x[0]);
    return x[0];
}

/* An event behind what is queued on a stream. To end one, the far device does all that is queued.
 */
static struct sac_event *event_behind(sac_device *dev, struct sac_device_stream *stream)
{
    struct sac_event *event = NULL;
    assert_sac_ok(dev->ops->event_create(dev, false, &event));
    assert_sac_ok(dev->ops->event_record(event, stream));
    return event;
}

static void our_work_begins_after_theirs(void **state)
{
    (void)state;
    sac_device               *dev = far();
    struct sac_device_stream *theirs = stream_of(dev);
    sac_tensor               *source = tensor_of(dev, 7), *t = tensor_of(dev, 1);
    queue_copy(dev, theirs, sac_tensor_data(t), sac_tensor_data(source));
    assert_true(first_of(t) == 1.0f); /* nobody has said it */
    assert_sac_ok(sac_tensor_written_on(t, theirs));
    assert_true(first_of(t) == 7.0f);
    sac_tensor_unref(&t);
    sac_tensor_unref(&source);
    dev->ops->stream_destroy(&theirs);
    sac_device_unref(&dev);
}

static void our_work_begins_after_their_event(void **state)
{
    (void)state;
    sac_device               *dev = far();
    struct sac_device_stream *theirs = stream_of(dev);
    sac_tensor               *source = tensor_of(dev, 7), *t = tensor_of(dev, 1);
    queue_copy(dev, theirs, sac_tensor_data(t), sac_tensor_data(source));
    struct sac_event *event = event_behind(dev, theirs);
    assert_sac_ok(sac_tensor_written_at(t, event));
    assert_true(first_of(t) == 7.0f);
    assert_sac_error(sac_tensor_written_at(t, NULL), SAC_ERR_ARG);
    dev->ops->event_destroy(&event);
    sac_tensor_unref(&t);
    sac_tensor_unref(&source);
    dev->ops->stream_destroy(&theirs);
    sac_device_unref(&dev);
}

static void their_work_begins_after_ours(void **state)
{
    (void)state;
    sac_device               *dev = far();
    struct sac_device_stream *theirs = stream_of(dev);
    sac_tensor *source = tensor_of(dev, 7), *t = tensor_of(dev, 1), *copy = tensor_of(dev, 0);
    queue_copy(dev, NULL, sac_tensor_data(t), sac_tensor_data(source)); /* as ours is queued */
    assert_sac_ok(sac_tensor_ready_on(t, theirs));
    queue_copy(dev, theirs, sac_tensor_data(copy), sac_tensor_data(t));
    struct sac_event *behind = event_behind(dev, theirs);
    assert_false(dev->ops->event_reached(behind)); /* no thread has waited */
    assert_sac_ok(dev->ops->stream_wait(theirs));
    assert_true(first_of(copy) == 7.0f);
    dev->ops->event_destroy(&behind);
    sac_tensor_unref(&copy);
    sac_tensor_unref(&t);
    sac_tensor_unref(&source);
    dev->ops->stream_destroy(&theirs);
    sac_device_unref(&dev);
}

/* Released while the caller's kernel is still to read it: its memory is not given to the next. */
static void memory_waits_for_their_work(void **state)
{
    (void)state;
    sac_device               *dev = far();
    struct sac_device_stream *theirs = stream_of(dev);
    sac_tensor               *t = tensor_of(dev, 7), *copy = tensor_of(dev, 0), *next = NULL;
    void                     *data = sac_tensor_data(t);
    assert_sac_ok(sac_tensor_ready_on(t, theirs));
    assert_sac_ok(sac_tensor_ready_on(t, theirs)); /* known */
    queue_copy(dev, theirs, sac_tensor_data(copy), data);
    struct sac_event *behind = event_behind(dev, theirs);
    sac_tensor_unref(&t);
    assert_false(dev->ops->event_reached(behind)); /* nor did the release wait */
    next = tensor_of(dev, 3);
    assert_ptr_not_equal(sac_tensor_data(next), data);
    sac_tensor_unref(&next);
    assert_sac_ok(dev->ops->stream_wait(theirs));
    assert_true(first_of(copy) == 7.0f);
    dev->ops->event_destroy(&behind);
    next = tensor_of(dev, 3); /* by now one of the two that are free */
    sac_tensor *other = tensor_of(dev, 4);
    assert_true(sac_tensor_data(next) == data || sac_tensor_data(other) == data);
    sac_tensor_unref(&other);
    sac_tensor_unref(&next);
    sac_tensor_unref(&copy);
    dev->ops->stream_destroy(&theirs);
    sac_device_unref(&dev);
}

struct owner {
    sac_device               *dev;
    struct sac_device_stream *stream;
    sac_tensor               *memory, *zeros;
    int                       released;
    struct sac_event         *behind; /* NULL: not asked for */
    bool                      was_done;
};

/* As a caching allocator does: the memory is used again on its own stream at once. */
static void use_again(void *user)
{
    struct owner *o = user;
    o->released++;
    o->was_done = o->behind && o->dev->ops->event_reached(o->behind);
    if (o->stream)
        queue_copy(o->dev, o->stream, sac_tensor_data(o->memory), sac_tensor_data(o->zeros));
}

static void wrapped_memory_goes_back_in_order(void **state)
{
    (void)state;
    sac_device               *dev = far();
    struct sac_device_stream *theirs = stream_of(dev), *work = stream_of(dev);
    struct owner owner = {dev, theirs, tensor_of(dev, 7), tensor_of(dev, 0), 0, NULL, false};
    sac_tensor  *t = NULL, *copy = tensor_of(dev, 0);
    assert_sac_ok(
        sac_tensor_wrap(dev, &desc, sac_tensor_data(owner.memory), use_again, &owner, &t));
    assert_sac_ok(sac_tensor_written_on(t, theirs));
    queue_copy(dev, work, sac_tensor_data(copy), sac_tensor_data(t)); /* a stream of the library's
                                                                       */
    sac_tensor_used(t, work);
    struct sac_event *behind = event_behind(dev, work);
    sac_tensor_unref(&t);
    assert_int_equal(owner.released, 1);
    assert_sac_ok(dev->ops->stream_wait(theirs));
    assert_true(first_of(copy) == 7.0f); /* not the zeros that came behind */
    assert_true(first_of(owner.memory) == 0.0f);
    dev->ops->event_destroy(&behind);
    sac_tensor_unref(&copy);
    sac_tensor_unref(&owner.memory);
    sac_tensor_unref(&owner.zeros);
    dev->ops->stream_destroy(&work);
    dev->ops->stream_destroy(&theirs);
    sac_device_unref(&dev);
}

/* Its owner's stream is not known, so the thread waits before it tells the owner. */
static void wrapped_memory_of_no_stream_goes_back_when_done(void **state)
{
    (void)state;
    sac_device               *dev = far();
    struct sac_device_stream *work = stream_of(dev);
    struct owner              owner = {dev, NULL, tensor_of(dev, 7), NULL, 0, NULL, false};
    sac_tensor               *t = NULL, *copy = tensor_of(dev, 0);
    assert_sac_ok(
        sac_tensor_wrap(dev, &desc, sac_tensor_data(owner.memory), use_again, &owner, &t));
    queue_copy(dev, work, sac_tensor_data(copy), sac_tensor_data(t));
    struct sac_event *behind = event_behind(dev, work);
    sac_tensor_used(t, work);
    owner.behind = behind;
    sac_tensor_unref(&t);
    assert_int_equal(owner.released, 1);
    assert_true(owner.was_done);
    dev->ops->event_destroy(&behind);
    sac_tensor_unref(&copy);
    sac_tensor_unref(&owner.memory);
    dev->ops->stream_destroy(&work);
    sac_device_unref(&dev);
}

static void views_answer_for_their_memory(void **state)
{
    (void)state;
    sac_device                  *dev = far();
    struct sac_device_stream    *theirs = stream_of(dev);
    sac_tensor                  *t = tensor_of(dev, 7), *copy = tensor_of(dev, 0), *view = NULL;
    void                        *data = sac_tensor_data(t);
    const struct sac_tensor_desc half = {.dtype = SAC_F32, .rank = 1, .shape = {N / 2}};
    assert_sac_ok(sac_tensor_view(t, 0, &half, &view));
    assert_sac_ok(sac_tensor_ready_on(view, theirs));
    queue_copy(dev, theirs, sac_tensor_data(copy), data);
    sac_tensor_unref(&view);
    sac_tensor_unref(&t);
    sac_tensor *next = tensor_of(dev, 3);
    assert_ptr_not_equal(sac_tensor_data(next), data);
    assert_sac_ok(dev->ops->stream_wait(theirs));
    assert_true(first_of(copy) == 7.0f);
    sac_tensor_unref(&next);
    sac_tensor_unref(&copy);
    dev->ops->stream_destroy(&theirs);
    sac_device_unref(&dev);
}

/* A device in host memory has done its work when a call returns, and so has the caller. */
static void the_cpu_needs_none_of_it(void **state)
{
    (void)state;
    sac_device *dev = NULL;
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &dev));
    sac_tensor *t = tensor_of(dev, 7);
    assert_sac_ok(sac_tensor_written_on(t, NULL));
    assert_sac_ok(sac_tensor_written_at(t, NULL));
    assert_sac_ok(sac_tensor_ready_on(t, NULL));
    assert_sac_error(sac_tensor_ready_on(NULL, NULL), SAC_ERR_ARG);
    assert_sac_error(sac_tensor_written_on(NULL, NULL), SAC_ERR_ARG);
    assert_sac_error(sac_tensor_written_at(NULL, NULL), SAC_ERR_ARG);
    sac_tensor_unref(&t);
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_work_begins_after_theirs),
        cmocka_unit_test(our_work_begins_after_their_event),
        cmocka_unit_test(their_work_begins_after_ours),
        cmocka_unit_test(memory_waits_for_their_work),
        cmocka_unit_test(wrapped_memory_goes_back_in_order),
        cmocka_unit_test(wrapped_memory_of_no_stream_goes_back_when_done),
        cmocka_unit_test(views_answer_for_their_memory),
        cmocka_unit_test(the_cpu_needs_none_of_it),
    };
    return cmocka_run_group_tests_name("engine/callers", tests, NULL, NULL);
}
