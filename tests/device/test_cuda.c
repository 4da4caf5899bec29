/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA device's own promises: what it says when it cannot be had, memory, streams, copies. */
#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/gpu.h"

/* ---- without a GPU ---- */

static void says_what_is_missing(void **state)
{
    (void)state;
    sac_device *dev = NULL;
    char        why[512];
    if (sac_device_open(test_context(), "cuda", NULL, &dev) == SAC_OK) {
        sac_device_unref(&dev);
        assert_sac_error(sac_device_open(test_context(), "cuda:200", NULL, &dev), SAC_ERR_DEVICE);
        sac_context_last_error(test_context(), why, sizeof why);
        assert_non_null(strstr(why, "GPU"));
    } else {
        sac_context_last_error(test_context(), why, sizeof why);
        assert_true(strstr(why, "libsaccade-cuda.so") || strstr(why, "driver") ||
                    strstr(why, "GPU"));
    }
    assert_non_null(strstr(why, "'cpu' runs everywhere"));
    assert_null(dev);
}

/* ---- with one ---- */

static void describes_itself(void **state)
{
    (void)state;
    sac_device *dev = gpu_open(NULL);
    assert_string_equal(sac_device_name(dev), "cuda:0");
    print_message("%s\n", sac_device_description(dev));
    assert_non_null(strstr(sac_device_description(dev), "GiB"));
    assert_false(dev->ops->host_memory);
    sac_device_unref(&dev);
}

static void tensors_come_back_as_they_went(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 255, 256, 257, 100003, 8000001};
    sac_device          *dev = gpu_open(NULL);
    struct sac_ledger    ledger;
    uint64_t             bytes = 0;
    for (size_t i = 0; i < SAC_COUNT(sizes); i++) {
        struct sac_tensor_desc desc = {.dtype = SAC_U8, .rank = 1, .shape = {sizes[i]}};
        sac_tensor            *t = NULL;
        uint8_t               *there = sac_alloc((size_t)sizes[i] + 1),
                *back = sac_calloc((size_t)sizes[i] + 1, 1);
        assert_true(there && back);
        for (int64_t k = 0; k <= sizes[i]; k++)
            there[k] = (uint8_t)(k * 31 + k / 256);
        assert_sac_ok(sac_tensor_create(dev, &desc, "test", &t));
        assert_sac_ok(sac_tensor_upload(t, there));
        assert_sac_ok(sac_tensor_download(t, back));
        assert_memory_equal(there, back, sizes[i]);
        assert_int_equal(back[sizes[i]], 0);
        bytes += 2 * (uint64_t)sizes[i];
        sac_tensor_unref(&t);
        sac_free(there);
        sac_free(back);
    }
    sac_device_ledger(dev, &ledger);
    assert_int_equal(ledger.reason[SAC_COPY_TENSOR_USER].bytes, bytes);
    sac_device_unref(&dev);
}

static void npy_files_go_through_the_host(void **state)
{
    (void)state;
    sac_device            *dev = gpu_open(NULL);
    struct sac_tensor_desc desc = {.dtype = SAC_F32, .rank = 2, .shape = {3, 1001}};
    sac_tensor            *t = NULL, *again = NULL;
    float                  values[3003], back[3003];
    char                   path[] = "/tmp/saccade-npy-XXXXXX";
    int                    fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (int i = 0; i < 3003; i++)
        values[i] = (float)i * 0.5f;
    assert_sac_ok(sac_tensor_create(dev, &desc, "test", &t));
    assert_sac_ok(sac_tensor_upload(t, values));
    assert_sac_ok(sac_tensor_save_npy(t, path));
    assert_sac_ok(sac_tensor_load_npy(dev, path, &again));
    assert_sac_ok(sac_tensor_download(again, back));
    assert_memory_equal(values, back, sizeof values);
    unlink(path);
    sac_tensor_unref(&t);
    sac_tensor_unref(&again);
    sac_device_unref(&dev);
}

static void strict_mode_refuses_frames(void **state)
{
    (void)state;
    struct sac_device_params params = sac_device_params_default();
    params.zero_copy_strict = 1;
    sac_device *dev = gpu_open(&params), *cpu = NULL;
    sac_frame  *here = NULL, *there = NULL,
              desc = {.format = SAC_PIXEL_NV12, .width = 33, .height = 17};
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &cpu));
    assert_sac_ok(sac_frame_create(cpu, &desc, &here));
    assert_sac_ok(sac_frame_create(dev, &desc, &there));
    assert_sac_error(sac_frame_copy(here, there), SAC_ERR_COPY);
    assert_sac_error(sac_frame_copy(there, here), SAC_ERR_COPY);
    sac_frame_unref(&here);
    sac_frame_unref(&there);
    sac_device_unref(&dev);
    sac_device_unref(&cpu);
}

/* Blocks of one size fill the budget and lie idle; a large one gets their room. */
static void a_fragmented_pool_gives_a_large_block(void **state)
{
    (void)state;
    enum { BLOCKS = 48, MIB = 1 << 20 };
    struct sac_device_params params = sac_device_params_default();
    params.memory_limit_bytes = 512 * (uint64_t)MIB;
    sac_device           *dev = gpu_open(&params);
    struct sac_buffer    *block[BLOCKS] = {NULL}, *large = NULL;
    struct sac_pool_stats stats;
    for (int i = 0; i < BLOCKS; i++)
        assert_sac_ok(sac_buffer_create(dev, 10 * MIB, "block", &block[i]));
    assert_sac_error(sac_buffer_create(dev, 256 * MIB, "large", &large), SAC_ERR_LIMIT);
    for (int i = 0; i < BLOCKS; i += 2)
        sac_buffer_unref(&block[i]);
    assert_sac_ok(sac_buffer_create(dev, 224 * MIB, "large", &large)); /* in the room of 24 x 10 */
    sac_device_pool_stats(dev, &stats);
    assert_int_equal(stats.fragmentation, 1);
    assert_in_range(stats.bytes_live + stats.bytes_idle, 1, params.memory_limit_bytes);
    sac_buffer_unref(&large);
    for (int i = 1; i < BLOCKS; i += 2)
        sac_buffer_unref(&block[i]);
    sac_device_unref(&dev);
}

/* By the card, or by the pool, which has a share of it. */
static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        sac_device        *dev = whole ? gpu_open_whole() : gpu_open(NULL);
        struct sac_buffer *huge = NULL, *small = NULL;
        assert_sac_error(sac_buffer_create(dev, (size_t)1 << 46, "huge", &huge),
                         whole ? SAC_ERR_MEMORY : SAC_ERR_LIMIT);
        assert_null(huge);
        assert_sac_ok(sac_buffer_create(dev, 1000, "small", &small)); /* and the device is well */
        sac_buffer_unref(&small);
        sac_device_unref(&dev);
    }
}

static void page_locked_memory_is_pooled_and_bounded(void **state)
{
    (void)state;
    enum { MIB = 1 << 20 };
    struct sac_device_params params = sac_device_params_default();
    params.host_limit_bytes = 32 * MIB;
    sac_device           *dev = gpu_open(&params);
    struct sac_buffer    *a = NULL, *b = NULL;
    struct sac_pool_stats stats, device;
    assert_sac_ok(sac_host_buffer_create(dev, 20 * MIB, "frame", &a));
    memset(sac_buffer_data(a), 7, 20 * MIB);
    assert_sac_error(sac_host_buffer_create(dev, 20 * MIB, "frame", &b), SAC_ERR_LIMIT);
    sac_buffer_unref(&a);
    assert_sac_ok(sac_host_buffer_create(dev, 20 * MIB, "frame", &b));
    sac_device_host_pool_stats(dev, &stats);
    sac_device_pool_stats(dev, &device);
    assert_int_equal(stats.allocations, 1);
    assert_int_equal(stats.reuses, 1);
    assert_int_equal(device.allocations, 0);
    sac_buffer_unref(&b);
    sac_device_unref(&dev);
}

static void streams_wait_for_each_other(void **state)
{
    (void)state;
    enum { BYTES = 64 << 20, ROUNDS = 20 };
    sac_device               *dev = gpu_open(NULL);
    struct sac_tensor_desc    desc = {.dtype = SAC_U8, .rank = 1, .shape = {BYTES}};
    sac_tensor               *a = NULL, *b = NULL;
    struct sac_device_stream *one = NULL, *two = NULL;
    uint8_t                  *host = sac_calloc(BYTES, 1);
    assert_non_null(host);
    assert_sac_ok(sac_tensor_create(dev, &desc, "a", &a));
    assert_sac_ok(sac_tensor_create(dev, &desc, "b", &b));
    assert_sac_ok(dev->ops->stream_create(dev, &one));
    assert_sac_ok(dev->ops->stream_create(dev, &two));
    for (int round = 0; round < ROUNDS; round++) {
        host[BYTES - 1] = (uint8_t)(round + 1);
        assert_sac_ok(sac_tensor_upload(a, host));
        assert_sac_ok(dev->ops->stream_after(dev, one, NULL));
        assert_sac_ok(sac_device_copy(dev, one, sac_tensor_data(b), sac_tensor_data(a), BYTES,
                                      SAC_COPY_ON_DEVICE, SAC_COPY_TENSOR_USER, "test"));
        assert_sac_ok(dev->ops->stream_after(dev, two, one));
        host[BYTES - 1] = 0;
        assert_sac_ok(sac_device_copy(dev, two, host + BYTES - 1,
                                      (char *)sac_tensor_data(b) + BYTES - 1, 1,
                                      SAC_COPY_DEVICE_TO_HOST, SAC_COPY_TENSOR_USER, "test"));
        assert_sac_ok(dev->ops->stream_wait(two));
        assert_int_equal(host[BYTES - 1], round + 1);
    }
    dev->ops->stream_destroy(&one);
    dev->ops->stream_destroy(&two);
    dev->ops->stream_destroy(&two);
    sac_tensor_unref(&a);
    sac_tensor_unref(&b);
    sac_free(host);
    sac_device_unref(&dev);
}

/* A copy of 256 MiB takes the device some 0.1 ms at least, and a thread that waits for it
 * sleeps. */
static void events_measure_and_wait(void **state)
{
    (void)state;
    enum { BYTES = 256 << 20, ROUNDS = 50 };
    sac_device               *dev = gpu_open(NULL);
    struct sac_tensor_desc    desc = {.dtype = SAC_U8, .rank = 1, .shape = {BYTES}};
    sac_tensor               *a = NULL, *b = NULL;
    struct sac_device_stream *stream = NULL;
    struct sac_event         *begin = NULL, *end = NULL;
    int64_t                   ns = 0;
    assert_sac_ok(sac_tensor_create(dev, &desc, "a", &a));
    assert_sac_ok(sac_tensor_create(dev, &desc, "b", &b));
    assert_sac_ok(dev->ops->stream_create_patient(dev, &stream));
    assert_sac_ok(dev->ops->event_create(dev, true, &begin));
    assert_sac_ok(dev->ops->event_create(dev, true, &end));
    assert_sac_ok(dev->ops->event_wait(end)); /* never recorded: nothing to wait for */
    assert_sac_ok(dev->ops->event_record(begin, stream));
    for (int i = 0; i < ROUNDS; i++)
        assert_sac_ok(sac_device_copy(dev, stream, sac_tensor_data(b), sac_tensor_data(a), BYTES,
                                      SAC_COPY_ON_DEVICE, SAC_COPY_TENSOR_USER, "test"));
    assert_sac_ok(dev->ops->event_record(end, stream));
    assert_sac_ok(dev->ops->stream_wait_event(dev, NULL, end));
    assert_sac_ok(dev->ops->event_wait(end));
    assert_sac_ok(dev->ops->event_elapsed(begin, end, &ns));
    assert_in_range(ns, ROUNDS * 20000, 10000000000);
    dev->ops->event_destroy(&begin);
    dev->ops->event_destroy(&end);
    dev->ops->event_destroy(&end);
    dev->ops->stream_destroy(&stream);
    sac_tensor_unref(&a);
    sac_tensor_unref(&b);
    sac_device_unref(&dev);
}

/* ---- opening again and again ---- */

static long resident_kib(void)
{
    long  pages = 0, skipped;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file || fscanf(file, "%ld %ld", &skipped, &pages) != 2)
        pages = 0;
    if (file)
        fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static int open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int  n = 0;
    for (; dir && readdir(dir);)
        n++;
    if (dir)
        closedir(dir);
    return n;
}

static void open_use_and_close(void)
{
    struct sac_device_params params = sac_device_params_default();
    params.threads = 1;
    sac_device               *dev = gpu_open(&params);
    struct sac_device_stream *stream = NULL;
    sac_frame *frame = NULL, desc = {.format = SAC_PIXEL_NV12, .width = 640, .height = 360};
    assert_sac_ok(dev->ops->stream_create(dev, &stream));
    assert_sac_ok(sac_frame_create(dev, &desc, &frame));
    dev->ops->stream_destroy(&stream);
    sac_frame_unref(&frame);
    sac_device_unref(&dev);
}

/* Of the card, for all programs. */
static int64_t free_bytes(sac_device *dev)
{
    uint64_t left = 0, total = 0;
    assert_sac_ok(dev->ops->memory_info(dev, &left, &total));
    return (int64_t)left;
}

static void a_thousand_times_leave_nothing(void **state)
{
    (void)state;
    sac_device *dev = gpu_open(NULL); /* to ask the card */
    for (int i = 0; i < 50; i++)      /* what stays with the process is there by now */
        open_use_and_close();
    long          resident = resident_kib();
    int           files = open_files();
    const int64_t left = free_bytes(dev);
    for (int i = 0; i < 1000; i++)
        open_use_and_close();
    print_message("1,000 times: %+ld KiB resident, %+ld KiB of the card\n",
                  resident_kib() - resident, (long)((left - free_bytes(dev)) / 1024));
    if (getenv("SACCADE_TEST_WHOLE_GPU")) /* else it is others' doing, too */
        assert_true(left - free_bytes(dev) <= 4 << 20);
    assert_int_equal(open_files(), files);
    if (!TEST_SANITIZED)
        assert_in_range(resident_kib(), 0, resident + 4096);
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_is_missing),
        cmocka_unit_test(describes_itself),
        cmocka_unit_test(tensors_come_back_as_they_went),
        cmocka_unit_test(npy_files_go_through_the_host),
        cmocka_unit_test(strict_mode_refuses_frames),
        cmocka_unit_test(a_fragmented_pool_gives_a_large_block),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(page_locked_memory_is_pooled_and_bounded),
        cmocka_unit_test(streams_wait_for_each_other),
        cmocka_unit_test(events_measure_and_wait),
        cmocka_unit_test(a_thousand_times_leave_nothing),
    };
    return cmocka_run_group_tests_name("device/cuda", tests, NULL, NULL);
}
