/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/cpu/cpu.h"
#include "device/pool.h"
#include "tests/test.h"

static sac_device *open_cpu(const struct sac_device_params *params)
{
    sac_device *dev = NULL;
    assert_sac_ok(sac_device_open(test_context(), "cpu", params, &dev));
    return dev;
}

static struct sac_pool_stats stats_of(const sac_device *dev)
{
    struct sac_pool_stats stats;
    sac_device_pool_stats(dev, &stats);
    return stats;
}

static void serves_a_size_again_from_the_pool(void **state)
{
    (void)state;
    sac_device        *dev = open_cpu(NULL);
    struct sac_buffer *a = NULL, *b = NULL;
    assert_sac_ok(sac_buffer_create(dev, 100000, "a", &a));
    void *first = sac_buffer_data(a);
    assert_int_equal((uintptr_t)first % 64, 0);
    assert_int_equal(sac_buffer_bytes(a), 100000);
    uint64_t live = stats_of(dev).bytes_live;
    assert_in_range(live, 100000, 125000);
    sac_buffer_unref(&a);
    assert_null(a);
    assert_int_equal(stats_of(dev).bytes_live, 0);
    assert_int_equal(stats_of(dev).bytes_idle, live);
    /* A little smaller falls into the same class. */
    assert_sac_ok(sac_buffer_create(dev, 99000, "b", &b));
    assert_ptr_equal(sac_buffer_data(b), first);
    sac_buffer_unref(&b);
    struct sac_pool_stats stats = stats_of(dev);
    assert_int_equal(stats.allocations, 1);
    assert_int_equal(stats.reuses, 1);
    assert_int_equal(stats.returns, 2);
    assert_int_equal(stats.leaks, 0);
    assert_int_equal(stats.bytes_peak, live);
    sac_device_pool_trim(dev);
    assert_int_equal(stats_of(dev).bytes_idle, 0);
    sac_device_unref(&dev);
}

static void tells_and_gives_back_what_it_holds(void **state)
{
    (void)state;
    struct sac_device_params params = sac_device_params_default();
    struct sac_buffer       *a = NULL, *b = NULL;
    struct sac_device_memory m;
    params.memory_limit_bytes = 10 << 20;
    sac_device *dev = open_cpu(&params);
    assert_sac_ok(sac_buffer_create(dev, 100000, "a", &a));
    assert_sac_ok(sac_buffer_create(dev, 200000, "b", &b));
    sac_buffer_unref(&b);
    assert_sac_ok(sac_device_get_memory(dev, &m));
    assert_in_range(m.pool.bytes_live, 100000, 125000);
    assert_in_range(m.pool.bytes_idle, 200000, 250000);
    assert_int_equal(m.pool.bytes_peak, m.pool.bytes_live + m.pool.bytes_idle);
    assert_int_equal(m.pool.allocations, 2);
    assert_int_equal(m.bytes_limit, 10 << 20);
    assert_int_equal(m.bytes_total, 0); /* it is the host's */
    assert_int_equal(m.host_bytes_limit, 0);
    assert_int_equal(sac_device_trim(dev), m.pool.bytes_idle);
    assert_int_equal(sac_device_trim(dev), 0);
    const uint64_t live = m.pool.bytes_live;
    assert_sac_ok(sac_device_get_memory(dev, &m));
    assert_int_equal(m.pool.bytes_idle, 0);
    assert_int_equal(m.pool.bytes_live, live);
    assert_sac_ok(sac_buffer_create(dev, 200000, "b", &b)); /* from the system again */
    assert_int_equal(stats_of(dev).allocations, 3);
    assert_int_equal(stats_of(dev).reuses, 0);
    sac_buffer_unref(&a);
    sac_buffer_unref(&b);
    assert_sac_error(sac_device_get_memory(NULL, &m), SAC_ERR_ARG);
    assert_sac_error(sac_device_get_memory(dev, NULL), SAC_ERR_ARG);
    assert_int_equal(sac_device_trim(NULL), 0);
    sac_device_unref(&dev);
}

static sac_result tell_memory(struct sac_device *dev, uint64_t *free_bytes, uint64_t *total_bytes)
{
    (void)dev;
    *free_bytes = 5 << 20;
    *total_bytes = 10 << 20;
    return SAC_OK;
}

static sac_result tell_none(struct sac_device *dev, uint64_t *free_bytes, uint64_t *total_bytes)
{
    (void)free_bytes, (void)total_bytes;
    return SAC_FAIL(dev->ctx, SAC_ERR_DEVICE, "it does not answer");
}

/* The memory of a device of its own, and both of its pools. */
static void tells_what_a_gpu_has(void **state)
{
    (void)state;
    struct sac_device_ops    ops = sac_device_cpu;
    sac_device              *dev = NULL;
    struct sac_buffer       *buf = NULL, *host = NULL;
    struct sac_device_memory m;
    ops.host_memory = false;
    ops.memory_info = tell_memory;
    assert_sac_ok(sac_device_open_ops(test_context(), &ops, 0, NULL, &dev));
    assert_sac_ok(sac_buffer_create(dev, 100000, "a", &buf));
    assert_sac_ok(sac_host_buffer_create(dev, 50000, "b", &host));
    sac_buffer_unref(&buf);
    sac_buffer_unref(&host);
    assert_sac_ok(sac_device_get_memory(dev, &m));
    assert_int_equal(m.bytes_free, 5 << 20);
    assert_int_equal(m.bytes_total, 10 << 20);
    assert_int_equal(m.bytes_limit, 9 << 20); /* nine tenths, where no other limit is given */
    assert_true(m.host_bytes_limit > 0);
    assert_true(m.pool.bytes_idle >= 100000 && m.host_pool.bytes_idle >= 50000);
    assert_int_equal(sac_device_trim(dev), m.pool.bytes_idle + m.host_pool.bytes_idle);
    ops.memory_info = tell_none;
    m.bytes_free = 99;
    assert_sac_error(sac_device_get_memory(dev, &m), SAC_ERR_DEVICE);
    assert_int_equal(m.bytes_free, 99);
    sac_device_unref(&dev);
}

/* The share is of what a GPU has; a limit in bytes takes its place, and the CPU has none. */
static void a_share_is_a_limit_where_there_is_no_other(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes, vram;
        double   share;
        uint64_t want;
    } cases[] = {{0, 0, 0.5, 5 << 20},
                 {0, 0, 0, 0},
                 {3 << 20, 0, 0.5, 3 << 20},
                 {3 << 20, 4 << 20, 0.5, 4 << 20}};
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        struct sac_device_params params = sac_device_params_default();
        struct sac_device_ops    ops = sac_device_cpu;
        struct sac_device_memory m;
        sac_device              *dev = NULL;
        ops.host_memory = false;
        ops.memory_info = tell_memory;
        params.memory_limit_bytes = cases[i].bytes;
        params.vram_limit_bytes = cases[i].vram;
        params.memory_share_max = cases[i].share;
        assert_sac_ok(sac_device_open_ops(test_context(), &ops, 0, &params, &dev));
        assert_sac_ok(sac_device_get_memory(dev, &m));
        assert_int_equal(m.bytes_limit, cases[i].want);
        sac_device_unref(&dev);
    }
    sac_device *cpu = open_cpu(NULL);
    assert_true(sac_device_memory_used(cpu) == 0);
    sac_device_unref(&cpu);
}

/* What others hold counts as what the pool does; its idle buffers do not. */
static void tells_how_much_of_it_is_in_use(void **state)
{
    (void)state;
    struct sac_device_params params = sac_device_params_default();
    struct sac_device_ops    ops = sac_device_cpu;
    struct sac_buffer       *buf = NULL;
    sac_device              *dev = NULL;
    ops.host_memory = false;
    ops.memory_info = tell_memory; /* half of it is taken */
    params.vram_limit_bytes = 4 << 20;
    params.memory_share_max = 0.8;
    assert_sac_ok(sac_device_open_ops(test_context(), &ops, 0, &params, &dev));
    assert_float_equal(sac_device_memory_used(dev), 5 / 8.0, 1e-6);
    assert_sac_ok(sac_buffer_create(dev, 3 << 20, "a", &buf));
    assert_float_equal(sac_device_memory_used(dev), 3 / 4.0, 1e-6);
    sac_buffer_unref(&buf);
    assert_float_equal(sac_device_memory_used(dev), 2 / 8.0, 1e-6);
    sac_device_unref(&dev);
}

static void has_a_limit_of_buffers(void **state)
{
    (void)state;
    struct sac_device_params params = sac_device_params_default();
    struct sac_buffer       *a = NULL, *b = NULL, *c = NULL, *d = NULL;
    params.buffers_max = 3;
    sac_device *dev = open_cpu(&params);
    assert_sac_ok(sac_buffer_create(dev, 1000, "a", &a));
    assert_sac_ok(sac_buffer_create(dev, 2000, "b", &b));
    assert_sac_ok(sac_buffer_create(dev, 4000, "c", &c));
    assert_why(sac_buffer_create(dev, 8000, "d", &d), SAC_ERR_LIMIT,
               "d: cpu has 3 buffers in use, which is its limit; raise it (--pool-buffers)");
    sac_buffer_unref(&b);
    sac_buffer_unref(&a);
    assert_sac_ok(sac_buffer_create(dev, 8000, "d", &d)); /* instead of b, which came back first */
    assert_int_equal(stats_of(dev).bytes_idle, 1024);
    assert_int_equal(stats_of(dev).trims, 1);
    assert_sac_ok(sac_buffer_create(dev, 1000, "a", &a));
    assert_int_equal(stats_of(dev).allocations, 4);
    assert_int_equal(stats_of(dev).reuses, 1);
    sac_buffer_unref(&a);
    sac_buffer_unref(&c);
    sac_buffer_unref(&d);
    sac_device_unref(&dev);
}

/* What is asked for before the first frame is done is the start's; trims are counted with what they
 * gave back. */
static void counts_the_start_apart(void **state)
{
    (void)state;
    sac_device        *dev = open_cpu(NULL);
    struct sac_buffer *a = NULL;
    for (int i = 0; i < 3; i++) {
        assert_sac_ok(sac_buffer_create(dev, 1024, "a", &a));
        sac_buffer_unref(&a);
    }
    sac_device_count_frames(dev, 1);
    for (int i = 0; i < 4; i++) {
        assert_sac_ok(sac_buffer_create(dev, i < 2 ? 1024 : 2048, "a", &a));
        sac_buffer_unref(&a);
    }
    const struct sac_pool_stats s = stats_of(dev);
    assert_int_equal(s.requests_start, 3);
    assert_int_equal(s.allocations_start, 1);
    assert_int_equal(s.allocations, 2);
    assert_int_equal(s.reuses, 5);
    assert_int_equal(s.trims, 0);
    assert_int_equal(sac_device_trim(dev), 3072);
    assert_int_equal(sac_device_trim(dev), 0);
    assert_int_equal(stats_of(dev).trims, 1);
    assert_int_equal(stats_of(dev).bytes_trimmed, 3072);
    sac_device_unref(&dev);
}

/* Where the host may use the device's memory, memory for transfers is no other. */
static void host_buffers_are_its_own(void **state)
{
    (void)state;
    sac_device           *dev = open_cpu(NULL);
    struct sac_buffer    *buf = NULL;
    struct sac_pool_stats host;
    assert_sac_ok(sac_host_buffer_create(dev, 1000, "boxes", &buf));
    memset(sac_buffer_data(buf), 1, 1000);
    assert_int_equal(stats_of(dev).allocations, 1);
    sac_device_host_pool_stats(dev, &host);
    assert_int_equal(host.allocations, 0);
    sac_buffer_unref(&buf);
    sac_device_unref(&dev);
}

/* A device with its own memory whose row has no host_alloc, as any host memory will do. */
static void host_buffers_of_any_memory_are_the_hosts(void **state)
{
    (void)state;
    struct sac_device_ops ops = sac_device_cpu;
    sac_device           *dev = NULL;
    struct sac_buffer    *buf = NULL, *host = NULL;
    struct sac_mirror     mirror = {NULL, NULL};
    struct sac_pool_stats stats;
    ops.host_memory = false;
    assert_null(ops.host_alloc);
    assert_sac_ok(sac_device_open_ops(test_context(), &ops, 0, NULL, &dev));
    assert_sac_ok(sac_buffer_create(dev, 1000, "boxes", &buf));
    assert_sac_ok(sac_host_buffer_create(dev, 1000, "boxes", &host));
    assert_sac_ok(sac_mirror_open(dev, sac_buffer_data(buf), 1000, "boxes", &mirror));
    assert_ptr_not_equal(mirror.data, sac_buffer_data(buf));
    memset(mirror.data, 1, 1000);
    assert_int_equal(stats_of(dev).allocations, 1);
    sac_device_host_pool_stats(dev, &stats);
    assert_int_equal(stats.allocations, 2);
    sac_mirror_close(&mirror);
    sac_buffer_unref(&host);
    sac_buffer_unref(&buf);
    sac_device_unref(&dev);
}

/* As if there were none: what came back is freed before another one is taken. */
static void keeps_nothing_when_left_out(void **state)
{
    (void)state;
    struct sac_buffer *buf = NULL;
    setenv("SACCADE_WITHOUT", "in-place, buffer-pool", 1);
    sac_device *dev = open_cpu(NULL);
    unsetenv("SACCADE_WITHOUT");
    for (int i = 0; i < 5; i++) {
        assert_sac_ok(sac_buffer_create(dev, 100000, "a", &buf));
        assert_int_equal(stats_of(dev).bytes_idle, 0);
        sac_buffer_unref(&buf);
    }
    assert_int_equal(stats_of(dev).allocations, 5);
    assert_int_equal(stats_of(dev).reuses, 0);
    sac_device_unref(&dev);
}

static int locked_count;

static sac_result count_locked(struct sac_device *dev, size_t bytes, void **out)
{
    (void)dev;
    locked_count++;
    *out = sac_alloc_aligned(64, bytes);
    return *out ? SAC_OK : SAC_ERR_MEMORY;
}

static void free_locked(struct sac_device *dev, void *p)
{
    (void)dev;
    sac_free(p);
}

static void locks_no_pages_when_left_out(void **state)
{
    static const char *const without[] = {"buffer-pool", "page-locked", "page-locked-not"};
    struct sac_device_ops    ops = sac_device_cpu;
    (void)state;
    ops.host_memory = false;
    ops.host_alloc = count_locked;
    ops.host_free = free_locked;
    for (size_t i = 0; i < SAC_COUNT(without); i++) {
        struct sac_buffer *buf = NULL;
        sac_device        *dev = NULL;
        locked_count = 0;
        setenv("SACCADE_WITHOUT", without[i], 1);
        assert_sac_ok(sac_device_open_ops(test_context(), &ops, 0, NULL, &dev));
        unsetenv("SACCADE_WITHOUT");
        assert_sac_ok(sac_host_buffer_create(dev, 1000, "boxes", &buf));
        memset(sac_buffer_data(buf), 1, 1000);
        assert_int_equal(locked_count, i != 1);
        sac_buffer_unref(&buf);
        sac_device_unref(&dev);
    }
}

static void wastes_at_most_a_quarter(void **state)
{
    (void)state;
    sac_device *dev = open_cpu(NULL);
    for (size_t bytes = 0; bytes < 3000000; bytes = bytes + 1 + bytes / 7) {
        struct sac_buffer *buf = NULL;
        assert_sac_ok(sac_buffer_create(dev, bytes, "size", &buf));
        memset(sac_buffer_data(buf), 0x5a, bytes);
        uint64_t taken = stats_of(dev).bytes_live;
        assert_true(taken >= bytes);
        assert_true(taken <= 256 || taken <= bytes + bytes / 4);
        sac_buffer_unref(&buf);
    }
    struct sac_buffer *huge = NULL;
    assert_sac_error(sac_buffer_create(dev, SIZE_MAX, "huge", &huge), SAC_ERR_MEMORY);
    assert_null(huge);
    sac_device_unref(&dev);
}

static void forgets_a_size_that_nobody_wants(void **state)
{
    (void)state;
    sac_device        *dev = open_cpu(NULL);
    struct sac_buffer *once = NULL, *often = NULL;
    assert_sac_ok(sac_buffer_create(dev, 1 << 20, "once", &once));
    sac_buffer_unref(&once);
    for (int i = 0; i < 400; i++) {
        assert_sac_ok(sac_buffer_create(dev, 1000, "often", &often));
        sac_buffer_unref(&often);
    }
    assert_true(stats_of(dev).bytes_idle > 1 << 20); /* it may come again */
    for (int i = 0; i < 400; i++) {
        assert_sac_ok(sac_buffer_create(dev, 1000, "often", &often));
        sac_buffer_unref(&often);
    }
    assert_in_range(stats_of(dev).bytes_idle, 1000, 2000);
    assert_int_equal(stats_of(dev).allocations, 2);
    sac_device_unref(&dev);
}

/* Where frames are counted, an idle buffer stays for a whole interval, one that was taken again for
 * many. */
static void trims_by_frames(void **state)
{
    (void)state;
    struct sac_device_params params = sac_device_params_default();
    params.trim_frames = 10;
    sac_device        *dev = open_cpu(&params);
    struct sac_buffer *once = NULL, *often = NULL;
    assert_sac_ok(sac_buffer_create(dev, 1 << 20, "once", &once));
    sac_buffer_unref(&once);
    for (int i = 0; i < 2; i++) {
        assert_sac_ok(sac_buffer_create(dev, 1000, "often", &often));
        sac_buffer_unref(&often);
    }
    for (int i = 0; i < 169; i++)
        sac_device_count_frames(dev, 1);
    assert_true(stats_of(dev).bytes_idle > 1 << 20);
    sac_device_count_frames(dev, 1);
    assert_in_range(stats_of(dev).bytes_idle, 1000, 2000);
    sac_device_count_frames(dev, 3000); /* at one go it is one interval */
    for (int i = 0; i < 1006; i++)
        sac_device_count_frames(dev, 10);
    assert_in_range(stats_of(dev).bytes_idle, 1000, 2000);
    sac_device_count_frames(dev, 10);
    assert_int_equal(stats_of(dev).bytes_idle, 0);
    sac_device_unref(&dev);
}

static void trims_nothing_when_told_so(void **state)
{
    (void)state;
    struct sac_device_params params = sac_device_params_default();
    params.trim_frames = 0;
    sac_device        *dev = open_cpu(&params);
    struct sac_buffer *once = NULL, *often = NULL;
    assert_sac_ok(sac_buffer_create(dev, 1 << 20, "once", &once));
    sac_buffer_unref(&once);
    for (int i = 0; i < 2000; i++) {
        assert_sac_ok(sac_buffer_create(dev, 1000, "often", &often));
        sac_buffer_unref(&often);
        sac_device_count_frames(dev, 100);
    }
    assert_true(stats_of(dev).bytes_idle > 1 << 20);
    sac_device_unref(&dev);
}

static void counts_what_comes_late(void **state)
{
    (void)state;
    sac_device        *dev = open_cpu(NULL);
    struct sac_buffer *a = NULL, *b = NULL;
    assert_sac_ok(sac_buffer_create(dev, 1000, "a", &a));
    sac_buffer_unref(&a);
    sac_device_count_frames(dev, SAC_POOL_WARM_FRAMES - 1);
    assert_sac_ok(sac_buffer_create(dev, 1000, "a", &a));
    assert_int_equal(stats_of(dev).requests_warm, 0);
    sac_buffer_unref(&a);
    sac_device_count_frames(dev, 1);
    assert_sac_ok(sac_buffer_create(dev, 1000, "a", &a));
    assert_int_equal(stats_of(dev).requests_warm, 1);
    assert_int_equal(stats_of(dev).allocations_warm, 0);
    assert_sac_ok(sac_buffer_create(dev, 1000, "b", &b));
    assert_int_equal(stats_of(dev).requests_warm, 2);
    assert_int_equal(stats_of(dev).allocations_warm, 1);
    sac_buffer_unref(&a);
    sac_buffer_unref(&b);
    sac_device_unref(&dev);
}

/* What the device holds for itself is in the books, neither a leak nor a reason to stay open. */
static void knows_the_devices_own(void **state)
{
    (void)state;
    sac_device        *dev = open_cpu(NULL);
    struct sac_buffer *own = NULL, *buf = NULL;
    assert_sac_ok(sac_buffer_create_own(dev, 1000, "scratch", false, &own));
    assert_sac_ok(sac_buffer_create(dev, 1000, "leaked", &buf));
    assert_in_range(stats_of(dev).bytes_live, 2000, 3000);
    sac_device *still = dev; /* the buffer holds it open */
    sac_device_unref(&dev);
    assert_int_equal(stats_of(still).leaks, 1);
    sac_buffer_unref(&own);
    assert_int_equal(stats_of(still).returns, 1);
    sac_buffer_unref(&buf);
}

struct log {
    char text[4096];
    int  lines;
};

static void keep_log(void *user, enum sac_log_level level, const char *message)
{
    struct log *log = user;
    (void)level;
    size_t at = strlen(log->text);
    snprintf(log->text + at, sizeof log->text - at, "%s\n", message);
    log->lines++;
}

static void add_line(void *user, const char *line)
{
    keep_log(user, SAC_LOG_INFO, line);
}

static uint64_t live_for(const sac_device *dev, enum sac_memory_use use, uint64_t *peak)
{
    uint64_t live[SAC_MEMORY_USE_COUNT], peaks[SAC_MEMORY_USE_COUNT];
    sac_device_memory_by_use(dev, live, peaks);
    *peak = peaks[use];
    return live[use];
}

/* What the thread says it is for. */
static void knows_what_memory_is_for(void **state)
{
    (void)state;
    sac_device        *dev = open_cpu(NULL);
    struct sac_buffer *a = NULL, *b = NULL, *c = NULL;
    uint64_t           peak;
    assert_int_equal(sac_memory_use_set(SAC_MEMORY_INFERENCE), SAC_MEMORY_OTHER);
    assert_sac_ok(sac_buffer_create(dev, 1024, "person_det.onnx", &a));
    assert_int_equal(sac_memory_use_set(SAC_MEMORY_PREPROCESS), SAC_MEMORY_INFERENCE);
    assert_sac_ok(sac_buffer_create(dev, 2048, "pixels", &b));
    assert_int_equal(sac_memory_use_set(SAC_MEMORY_OTHER), SAC_MEMORY_PREPROCESS);
    assert_sac_ok(sac_buffer_create(dev, 512, "something", &c));
    assert_int_equal(live_for(dev, SAC_MEMORY_INFERENCE, &peak), 1024);
    assert_int_equal(live_for(dev, SAC_MEMORY_PREPROCESS, &peak), 2048);
    assert_int_equal(live_for(dev, SAC_MEMORY_OTHER, &peak), 512);
    sac_buffer_unref(&a);
    sac_buffer_unref(&b);
    sac_buffer_unref(&c);
    assert_int_equal(live_for(dev, SAC_MEMORY_PREPROCESS, &peak), 0);
    assert_int_equal(peak, 2048);
    sac_device_unref(&dev);
}

static enum sac_memory_use use_of_the_library(void)
{
    return SAC_MEMORY_HEAD;
}

/* A plug-in has the pool's code for itself, with a thread-local variable that nobody sets. */
static void a_plugin_asks_the_library_what_memory_is_for(void **state)
{
    (void)state;
    sac_device        *dev = open_cpu(NULL);
    struct sac_buffer *scratch = NULL;
    uint64_t           peak;
    assert_ptr_equal(dev->memory_use, sac_memory_use);
    dev->memory_use = use_of_the_library;
    assert_int_equal(sac_memory_use(), SAC_MEMORY_OTHER);
    assert_sac_ok(sac_buffer_create_own(dev, 1024, "scratch", false, &scratch));
    assert_int_equal(live_for(dev, SAC_MEMORY_HEAD, &peak), 1024);
    sac_buffer_unref(&scratch);
    sac_device_unref(&dev);
}

static void keeps_a_buffer_until_its_last_reference(void **state)
{
    (void)state;
    sac_device        *dev = open_cpu(NULL);
    struct sac_buffer *a = NULL;
    assert_sac_ok(sac_buffer_create(dev, 1000, "a", &a));
    struct sac_buffer *b = sac_buffer_ref(a);
    sac_buffer_unref(&a);
    assert_int_equal(stats_of(dev).returns, 0);
    sac_buffer_unref(&b);
    assert_int_equal(stats_of(dev).returns, 1);
    sac_buffer_unref(&b); /* accepts what is gone */
    sac_device_unref(&dev);
}

static void count_line(void *user, const char *line)
{
    *(int *)user += strstr(line, "surfaces of a.mp4") != NULL;
}

/* What a decoder takes by itself is in the same books. */
static void a_reservation_is_within_the_budget(void **state)
{
    (void)state;
    struct sac_device_params params = sac_device_params_default();
    params.memory_limit_bytes = 1 << 20;
    sac_device        *dev = open_cpu(&params);
    struct sac_buffer *a = NULL, *b = NULL, *c = NULL;
    int                lines = 0;
    assert_sac_ok(sac_buffer_create(dev, 400 << 10, "idle soon", &a));
    sac_buffer_unref(&a);
    assert_sac_ok(sac_buffer_reserve(dev, 900 << 10, "surfaces of a.mp4", &a)); /* what is idle
                                                                                   makes room */
    assert_null(sac_buffer_data(a));
    assert_int_equal(stats_of(dev).bytes_live, 900 << 10);
    assert_int_equal(stats_of(dev).bytes_idle, 0);
    sac_device_dump_live(dev, count_line, &lines);
    assert_int_equal(lines, 1);
    assert_sac_error(sac_buffer_reserve(dev, 200 << 10, "surfaces of b.mp4", &b), SAC_ERR_LIMIT);
    assert_sac_error(sac_buffer_create(dev, 200 << 10, "c", &c), SAC_ERR_LIMIT);
    sac_buffer_unref(&a);
    assert_int_equal(stats_of(dev).bytes_live, 0);
    assert_int_equal(stats_of(dev).bytes_idle, 0);
    assert_sac_ok(sac_buffer_reserve(dev, 200 << 10, "surfaces of b.mp4", &b));
    sac_buffer_unref(&b);
    sac_device_unref(&dev);
}

static void keeps_to_its_budget(void **state)
{
    (void)state;
    struct sac_device_params params = sac_device_params_default();
    params.memory_limit_bytes = 1 << 20;
    sac_device        *dev = open_cpu(&params);
    struct sac_buffer *a = NULL, *b = NULL;
    char               why[512];
    assert_sac_ok(sac_buffer_create(dev, 700 << 10, "a", &a));
    assert_sac_error(sac_buffer_create(dev, 700 << 10, "engine arena", &b), SAC_ERR_LIMIT);
    assert_null(b);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "engine arena"));
    assert_non_null(strstr(why, "memory limit of 1048576"));
    assert_int_equal(stats_of(dev).fragmentation, 0);
    /* Idle bytes of another size make room, and that is counted. */
    sac_buffer_unref(&a);
    assert_sac_ok(sac_buffer_create(dev, 500 << 10, "b", &b));
    assert_int_equal(stats_of(dev).fragmentation, 1);
    assert_int_equal(stats_of(dev).bytes_idle, 0);
    sac_buffer_unref(&b);
    sac_device_unref(&dev);
}

static sac_context *context_with(struct log *log)
{
    struct sac_context_params params = sac_context_params_default();
    sac_context              *ctx = NULL;
    params.log_fn = keep_log;
    params.log_user = log;
    params.log_level = SAC_LOG_WARN;
    assert_int_equal(sac_context_create(&params, &ctx), SAC_OK);
    return ctx;
}

static void names_what_outlives_its_device(void **state)
{
    (void)state;
    struct log             log = {0};
    sac_context           *ctx = context_with(&log);
    sac_device            *dev = NULL;
    sac_tensor            *t = NULL;
    struct sac_tensor_desc desc = {.dtype = SAC_F32, .rank = 2, .shape = {3, 5}};
    assert_int_equal(sac_device_open(ctx, "cpu", NULL, &dev), SAC_OK);
    assert_int_equal(sac_tensor_create(dev, &desc, "forgotten", &t), SAC_OK);
    sac_device_unref(&dev);
    assert_int_equal(log.lines, 1);
    assert_non_null(strstr(log.text, "'forgotten', 60 bytes, float32 [3,5]"));
    assert_int_equal(stats_of(sac_tensor_device(t)).leaks, 1);
    memset(sac_tensor_data(t), 1, 60); /* still valid */
    sac_tensor_unref(&t);
    sac_context_destroy(&ctx);
}

/* One more in each second; old ones that stay as many as they are, and such as are kept, are none.
 */
static void watcher_names_what_piles_up(void **state)
{
    (void)state;
    struct log               log = {0};
    sac_context             *ctx = context_with(&log);
    sac_device              *dev = NULL;
    struct sac_device_params params = sac_device_params_default();
    struct sac_buffer       *scratch[3] = {NULL}, *weights[16] = {NULL}, *forgotten[512] = {NULL};
    int                      n = 0;
    params.leak_age_s = 1;
    assert_int_equal(sac_device_open(ctx, "cpu", &params, &dev), SAC_OK);
    const int64_t begun = sac_time_ns();
    for (int i = 0; i < 3; i++)
        assert_int_equal(sac_buffer_create(dev, 1000, "scratch", &scratch[i]), SAC_OK);
    while (n < 512 && stats_of(dev).leaks == 0) {
        assert_int_equal(sac_buffer_create(dev, 1000, "forgotten", &forgotten[n++]), SAC_OK);
        if (n <= 16) {
            assert_int_equal(sac_buffer_create(dev, 1000, "weights", &weights[n - 1]), SAC_OK);
            sac_buffer_keep(weights[n - 1]);
        }
        usleep(300000);
    }
    assert_true(sac_time_ns() - begun > INT64_C(5000000000)); /* it takes five looks */
    assert_in_range(stats_of(dev).leaks, 5, n);
    assert_int_equal(log.lines, 1);
    assert_non_null(strstr(log.text, "of 'forgotten', 1000 bytes each, are held for longer than"));
    for (int i = 0; i < 3; i++)
        sac_buffer_unref(&scratch[i]);
    for (int i = 0; i < 16; i++)
        sac_buffer_unref(&weights[i]);
    for (int i = 0; i < n; i++)
        sac_buffer_unref(&forgotten[i]);
    sac_device_unref(&dev);
    sac_context_destroy(&ctx);
}

static void lists_the_live(void **state)
{
    (void)state;
    struct log  log = {0};
    sac_device *dev = open_cpu(NULL);
    sac_frame  *frame = NULL, desc = {.format = SAC_PIXEL_NV12, .width = 640, .height = 480};
    assert_sac_ok(sac_frame_create(dev, &desc, &frame));
    sac_device_dump_live(dev, add_line, &log);
    assert_int_equal(log.lines, 1);
    assert_non_null(strstr(log.text, "cpu: 'frame nv12', 460800 bytes, uint8 [480,640]"));
    sac_frame_unref(&frame);
    log.lines = 0;
    sac_device_dump_live(dev, add_line, &log);
    assert_int_equal(log.lines, 0);
    sac_device_unref(&dev);
}

static void knows_the_largest_by_owner(void **state)
{
    (void)state;
    sac_device            *dev = open_cpu(NULL);
    sac_tensor            *t = NULL;
    struct sac_tensor_desc desc = {.dtype = SAC_F32, .rank = 3, .shape = {3, 100, 100}};
    struct sac_buffer     *small[4] = {NULL}, *large = NULL;
    struct sac_allocation  a[SAC_ALLOCATIONS_MAX];
    assert_int_equal(sac_device_get_allocations(dev, a, 4), 0);
    const enum sac_memory_use before = sac_memory_use_set(SAC_MEMORY_REID);
    for (int i = 0; i < 4; i++) /* of one size class */
        assert_sac_ok(sac_buffer_create(dev, (size_t)(100000 - i), "crops", &small[i]));
    sac_memory_use_set(before);
    assert_sac_ok(sac_buffer_create(
        dev, 200000, "/a/folder/whose/name/is/longer/than/there/is/room/for/net.onnx", &large));
    assert_sac_ok(sac_tensor_create(dev, &desc, "input", &t));
    for (int i = 0; i < 4; i++)
        sac_buffer_unref(&small[i]);
    assert_sac_ok(sac_buffer_create(dev, 99000, "crops", &small[0]));
    assert_int_equal(sac_device_get_allocations(dev, a, SAC_ALLOCATIONS_MAX), 3);
    assert_string_equal(a[0].owner, "crops"); /* together they had the most */
    assert_string_equal(a[0].place, "cpu");
    assert_string_equal(a[0].shape, "");
    assert_int_equal(a[0].bytes, 100000);
    assert_int_equal(a[0].count, 1);
    assert_int_equal(a[0].count_peak, 4);
    assert_int_equal(a[0].requests, 5);
    assert_in_range(a[0].bytes_live, 100000, 125000);
    assert_int_equal(a[0].bytes_peak, 4 * a[0].bytes_live);
    assert_true(a[0].first_s >= 0 && a[0].first_s <= a[0].last_s && a[0].last_s < 3600);
    const size_t length = strlen(a[1].owner);
    assert_int_equal(length, sizeof a[1].owner - 1);
    assert_memory_equal(a[1].owner, "...", 3);
    assert_string_equal(a[1].owner + length - 13, "/for/net.onnx");
    assert_string_equal(a[2].owner, "input");
    assert_string_equal(a[2].shape, "float32 [3,100,100]");
    assert_int_equal(sac_device_get_allocations(dev, a, 2), 2);
    enum sac_memory_use use[2];
    assert_int_equal(sac_device_list_kinds(dev, a, use, 2), 2);
    assert_int_equal(use[0], SAC_MEMORY_REID);
    assert_int_equal(use[1], SAC_MEMORY_OTHER);
    sac_buffer_unref(&small[0]);
    sac_buffer_unref(&large);
    sac_tensor_unref(&t);
    sac_device_unref(&dev);
}

/* More kinds than there are rows: small ones that are gone make way, those in use stay. */
static void forgets_the_smallest_of_too_many(void **state)
{
    (void)state;
    enum { HELD = 8, KINDS = 3 * SAC_POOL_KINDS };
    sac_device           *dev = open_cpu(NULL);
    struct sac_buffer    *held[HELD] = {NULL}, *buf = NULL;
    struct sac_allocation a[SAC_ALLOCATIONS_MAX];
    char                  owner[32];
    for (int i = 0; i < HELD; i++) {
        snprintf(owner, sizeof owner, "held %d", i);
        assert_sac_ok(sac_buffer_create(dev, 100, owner, &held[i]));
    }
    for (int i = 0; i < KINDS; i++) {
        snprintf(owner, sizeof owner, "kind %d", i);
        assert_sac_ok(sac_buffer_create(dev, i < KINDS / 2 ? 1000 : 5000, owner, &buf));
        sac_buffer_unref(&buf);
    }
    assert_sac_ok(sac_buffer_create(dev, 1 << 20, "the largest", &buf));
    assert_int_equal(sac_device_get_allocations(dev, a, SAC_ALLOCATIONS_MAX), SAC_ALLOCATIONS_MAX);
    assert_string_equal(a[0].owner, "the largest");
    for (int i = 1; i < SAC_ALLOCATIONS_MAX; i++)
        assert_int_equal(a[i].bytes, 5000);
    sac_buffer_unref(&buf);
    for (int i = 0; i < HELD; i++) { /* their rows are still theirs */
        snprintf(owner, sizeof owner, "held %d", i);
        assert_string_equal(dev->pool->kind[held[i]->kind].owner, owner);
        sac_buffer_unref(&held[i]);
    }
    for (int i = 0; i < dev->pool->kind_count; i++)
        assert_int_equal(dev->pool->kind[i].live, 0);
    sac_device_unref(&dev);
}

static void *take_and_give(void *arg)
{
    for (int i = 0; i < 2000; i++) {
        struct sac_buffer *buf = NULL;
        if (sac_buffer_create(arg, (size_t)(i % 17) * 1000, "thread", &buf) != SAC_OK)
            return arg;
        memset(sac_buffer_data(buf), i, sac_buffer_bytes(buf));
        sac_buffer_unref(&buf);
    }
    return NULL;
}

static void serves_many_threads(void **state)
{
    (void)state;
    sac_device *dev = open_cpu(NULL);
    pthread_t   threads[4];
    for (int i = 0; i < 4; i++)
        assert_sac_ok(sac_thread_start(test_context(), &threads[i], "t", take_and_give, dev));
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    struct sac_pool_stats stats = stats_of(dev);
    assert_int_equal(stats.allocations + stats.reuses, 8000);
    assert_int_equal(stats.returns, 8000);
    assert_int_equal(stats.bytes_live, 0);
    /* A burst of threads leaves spares, the pool forgets them when they rest, the next burst
     * allocates again: how often is the scheduler's doing, so this asks only that nearly all
     * requests are served again. */
    assert_in_range(stats.allocations, 1, 8000 / 10);
    sac_device_unref(&dev);
}

static void survives_failing_allocations(void **state)
{
    (void)state;
    sac_device *dev = open_cpu(NULL);
    for (long n = 1; n <= 3; n++) {
        struct sac_tensor_desc desc = {.dtype = SAC_U8, .rank = 1, .shape = {n * 100000}};
        sac_tensor            *t = NULL;
        sac_alloc_fail_at(n);
        assert_sac_error(sac_tensor_create(dev, &desc, "t", &t), SAC_ERR_MEMORY);
        sac_alloc_fail_at(0);
        assert_null(t);
    }
    assert_int_equal(stats_of(dev).bytes_live, 0);
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reservation_is_within_the_budget),
        cmocka_unit_test(serves_a_size_again_from_the_pool),
        cmocka_unit_test(tells_and_gives_back_what_it_holds),
        cmocka_unit_test(tells_what_a_gpu_has),
        cmocka_unit_test(a_share_is_a_limit_where_there_is_no_other),
        cmocka_unit_test(tells_how_much_of_it_is_in_use),
        cmocka_unit_test(has_a_limit_of_buffers),
        cmocka_unit_test(counts_the_start_apart),
        cmocka_unit_test(host_buffers_are_its_own),
        cmocka_unit_test(host_buffers_of_any_memory_are_the_hosts),
        cmocka_unit_test(keeps_nothing_when_left_out),
        cmocka_unit_test(locks_no_pages_when_left_out),
        cmocka_unit_test(wastes_at_most_a_quarter),
        cmocka_unit_test(forgets_a_size_that_nobody_wants),
        cmocka_unit_test(trims_by_frames),
        cmocka_unit_test(trims_nothing_when_told_so),
        cmocka_unit_test(counts_what_comes_late),
        cmocka_unit_test(knows_the_devices_own),
        cmocka_unit_test(knows_what_memory_is_for),
        cmocka_unit_test(a_plugin_asks_the_library_what_memory_is_for),
        cmocka_unit_test(keeps_a_buffer_until_its_last_reference),
        cmocka_unit_test(keeps_to_its_budget),
        cmocka_unit_test(names_what_outlives_its_device),
        cmocka_unit_test(watcher_names_what_piles_up),
        cmocka_unit_test(lists_the_live),
        cmocka_unit_test(knows_the_largest_by_owner),
        cmocka_unit_test(forgets_the_smallest_of_too_many),
        cmocka_unit_test(serves_many_threads),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests_name("device/pool", tests, NULL, NULL);
}
