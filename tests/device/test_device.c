/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "device/cpu/cpu.h"
#include "tests/test.h"
#include "vision/vision.h"

static void opens_by_name(void **state)
{
    (void)state;
    static const char *const names[] = {"auto", "cpu", "cpu:0"};
    for (size_t i = 0; i < SAC_COUNT(names); i++) {
        sac_device *dev = NULL;
        assert_sac_ok(sac_device_open(test_context(), names[i], NULL, &dev));
        assert_string_equal(sac_device_name(dev), "cpu");
        assert_true(strlen(sac_device_description(dev)) > 8);
        assert_int_equal(sac_device_threads(dev), sac_threads_default());
        assert_ptr_equal(sac_device_context(dev), test_context());
        sac_device_unref(&dev);
        assert_null(dev);
    }
}

static void refuses_what_it_lacks(void **state)
{
    (void)state;
    static const char *const unknown[] = {"gpu",     "",        "cpu:1",  "cuda:", "cuda:x",
                                          "cuda:-1", "auto:0x", "auto:0", "auto:1"};
    sac_device              *dev = NULL;
    char                     why[512];
    for (size_t i = 0; i < SAC_COUNT(unknown); i++)
        assert_sac_error(sac_device_open(test_context(), unknown[i], NULL, &dev), SAC_ERR_ARG);
    assert_sac_error(sac_device_open(test_context(), NULL, NULL, &dev), SAC_ERR_ARG);
    assert_sac_error(sac_device_open(test_context(), "cuda:200", NULL, &dev), SAC_ERR_DEVICE);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "cuda:200"));
    assert_non_null(strstr(why, "'cpu' runs everywhere"));
    assert_null(dev);
}

static void counts_references(void **state)
{
    (void)state;
    sac_device              *dev = NULL;
    struct sac_device_params params = sac_device_params_default();
    params.threads = 3;
    assert_sac_ok(sac_device_open(test_context(), "cpu", &params, &dev));
    assert_int_equal(sac_device_threads(dev), 3);
    sac_device *other = sac_device_ref(dev);
    sac_device_unref(&dev);
    assert_string_equal(sac_device_name(other), "cpu");
    sac_device_unref(&other);
    sac_device_unref(&other);
}

static void runs_work_in_order_on_a_stream(void **state)
{
    (void)state;
    sac_device               *dev = NULL;
    struct sac_device_stream *stream = NULL;
    char                      src[4] = "abc", dst[4] = "";
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &dev));
    assert_sac_ok(dev->ops->stream_create(dev, &stream));
    assert_sac_ok(
        sac_device_copy(dev, stream, dst, src, 4, SAC_COPY_ON_DEVICE, SAC_COPY_BOXES, "test"));
    assert_sac_ok(dev->ops->stream_wait(stream));
    assert_string_equal(dst, "abc");
    dev->ops->stream_destroy(&stream);
    sac_device_unref(&dev);
}

/* What it says of its structs' sizes, one by one. */
static void a_plugin_of_another_build_is_refused(void **state)
{
    (void)state;
    const struct sac_device_plugin plugin =
        SAC_DEVICE_PLUGIN(sac_device_cpu, sizeof(struct sac_vision_ops));
    struct sac_device_plugin other = plugin;
    uint32_t *const          facts[] = {&other.abi,      &other.struct_size, &other.device_size,
                                        &other.ops_size, &other.vision_size, &other.frame_size};
    assert_true(sac_device_plugin_is_ours(&plugin));
    assert_false(sac_device_plugin_is_ours(NULL));
    for (size_t i = 0; i < SAC_COUNT(facts); i++) {
        *facts[i] += 8;
        assert_false(sac_device_plugin_is_ours(&other));
        *facts[i] -= 8;
    }
    assert_true(sac_device_plugin_is_ours(&other));
}

/* ---- what a device holds for itself ---- */

static struct sac_buffer *held; /* by the device of the next test, as a GPU holds scratch and lists
                                 */
static int taken;

static sac_result take_memory(struct sac_device *dev, size_t bytes, void **out)
{
    taken++;
    return sac_device_cpu.memory_alloc(dev, bytes, out);
}

static void give_memory(struct sac_device *dev, void *p)
{
    taken--;
    sac_device_cpu.memory_free(dev, p);
}

static void rest(struct sac_device *dev)
{
    (void)dev;
    sac_buffer_unref(&held);
}

static void what_it_holds_for_itself_goes_before_the_pool(void **state)
{
    (void)state;
    struct sac_device_ops ops = sac_device_cpu;
    sac_device           *dev = NULL;
    ops.memory_alloc = take_memory;
    ops.memory_free = give_memory;
    ops.rest = rest;
    assert_sac_ok(sac_device_open_ops(test_context(), &ops, 0, NULL, &dev));
    assert_sac_ok(sac_buffer_create_own(dev, 1000, "scratch", false, &held));
    assert_int_equal(taken, 1);
    sac_device_unref(&dev);
    assert_null(held);
    assert_int_equal(taken, 0);
}

static void events_tell_the_time_between_them(void **state)
{
    (void)state;
    sac_device               *dev = NULL;
    struct sac_device_stream *stream = NULL;
    struct sac_event         *begin = NULL, *end = NULL;
    int64_t                   ns = 0, started;
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &dev));
    assert_sac_ok(dev->ops->stream_create_patient(dev, &stream));
    assert_sac_ok(dev->ops->event_create(dev, true, &begin));
    assert_sac_ok(dev->ops->event_create(dev, true, &end));
    assert_sac_ok(dev->ops->event_record(begin, stream));
    for (started = sac_time_ns(); sac_time_ns() - started < 2000000;)
        ;
    assert_sac_ok(dev->ops->event_record(end, stream));
    assert_sac_ok(dev->ops->stream_wait_event(dev, NULL, end));
    assert_sac_ok(dev->ops->event_wait(end));
    assert_sac_ok(dev->ops->event_elapsed(begin, end, &ns));
    assert_true(ns >= 2000000);
    dev->ops->event_destroy(&begin);
    dev->ops->event_destroy(&end);
    dev->ops->event_destroy(&end);
    dev->ops->stream_destroy(&stream);
    sac_device_unref(&dev);
}

static void count_piece(void *arg, int piece, int worker)
{
    (void)worker;
    atomic_fetch_add((atomic_int *)arg, piece + 1);
}

static void *run_jobs(void *arg)
{
    for (int i = 0; i < 500; i++) {
        atomic_int sum = 0;
        sac_device_parallel(arg, 10, count_piece, &sum);
        if (sum != 55)
            return arg;
    }
    return NULL;
}

/* Two threads have jobs at once: the pool below takes one at a time. */
static void shares_its_workers(void **state)
{
    (void)state;
    sac_device              *dev = NULL;
    struct sac_device_params params = sac_device_params_default();
    pthread_t                threads[3];
    params.threads = 2;
    assert_sac_ok(sac_device_open(test_context(), "cpu", &params, &dev));
    for (int i = 0; i < 3; i++)
        assert_sac_ok(sac_thread_start(test_context(), &threads[i], "t", run_jobs, dev));
    for (int i = 0; i < 3; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    sac_device_unref(&dev);
}

static void *await(void *dev)
{
    return sac_device_await(dev) == SAC_OK ? dev : NULL;
}

/* How a device that somebody waits for becomes: open, or not at all. */
static void who_awaits_a_device_hears_how_it_ends(void **state)
{
    (void)state;
    for (int opens = 0; opens < 2; opens++) {
        sac_device *dev = NULL;
        pthread_t   thread;
        void       *heard = NULL;
        assert_sac_ok(sac_device_open_begin(test_context(), "cpu", NULL, &dev));
        assert_string_equal(dev->ops->name, "cpu");
        assert_sac_ok(sac_thread_start(test_context(), &thread, "t", await, dev));
        if (opens)
            assert_sac_ok(sac_device_open_end(dev));
        sac_device_open_cancel(dev); /* it is open: nothing happens */
        pthread_join(thread, &heard);
        assert_ptr_equal(heard, opens ? dev : NULL);
        assert_int_equal(sac_device_await(dev), opens ? SAC_OK : SAC_ERR_CANCELLED);
        sac_device_unref(&dev);
    }
}

static sac_result refuse(struct sac_device *dev, int index)
{
    (void)index;
    return SAC_FAIL(dev->ctx, SAC_ERR_DEVICE, "test: it does not open");
}

static void a_device_that_fails_to_open_is_not_waited_for(void **state)
{
    (void)state;
    sac_device           *dev = NULL;
    struct sac_device_ops ops;
    assert_sac_ok(sac_device_open_begin(test_context(), "cpu", NULL, &dev));
    ops = *dev->ops;
    ops.open = refuse;
    dev->ops = &ops;
    assert_sac_error(sac_device_open_end(dev), SAC_ERR_DEVICE);
    assert_int_equal(sac_device_await(dev), SAC_ERR_CANCELLED);
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_tell_the_time_between_them),
        cmocka_unit_test(opens_by_name),
        cmocka_unit_test(a_plugin_of_another_build_is_refused),
        cmocka_unit_test(refuses_what_it_lacks),
        cmocka_unit_test(counts_references),
        cmocka_unit_test(runs_work_in_order_on_a_stream),
        cmocka_unit_test(what_it_holds_for_itself_goes_before_the_pool),
        cmocka_unit_test(shares_its_workers),
        cmocka_unit_test(who_awaits_a_device_hears_how_it_ends),
        cmocka_unit_test(a_device_that_fails_to_open_is_not_waited_for),
    };
    return cmocka_run_group_tests_name("device/device", tests, NULL, NULL);
}
