/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <unistd.h>

#include "observe/gpu.h"
#include "tests/test.h"

static void figures_are_means_over_the_run(void **state)
{
    (void)state;
    struct sac_gpu_stats  stats;
    struct sac_gpu_watch *watch = sac_gpu_watch_start(test_context(), "0000:3B:00.0", 0, FAKE_NVML);
    assert_non_null(watch);
    for (int i = 0; i < 1200; i++) { /* four a second are taken, memory of one of them */
        sac_gpu_watch_get(watch, &stats);
        if (stats.samples >= 6)
            break;
        usleep(50000);
    }
    assert_true(stats.known);
    assert_string_equal(stats.name, "Card 1");
    assert_true(stats.samples >= 6);
    double whole = (double)((stats.samples + 1) / 2), half = (double)(stats.samples / 2);
    double mean = (whole + half / 2) / stats.samples;
    assert_true(stats.utilisation > mean - 1e-9 && stats.utilisation < mean + 1e-9);
    assert_true(stats.decoder_load > 0.4 - 1e-9 && stats.decoder_load < 0.4 + 1e-9);
    assert_true(stats.utilisation_1m > mean - 1e-9 && stats.utilisation_1m < mean + 1e-9); /* no
                                                                                              minute
                                                                                              yet */
    assert_true(stats.utilisation_5m > mean - 1e-9 && stats.utilisation_5m < mean + 1e-9);
    assert_true(stats.decoder_load_1m > 0.4 - 1e-9 && stats.decoder_load_5m < 0.4 + 1e-9);
    assert_true(stats.encoder_load == 0);
    assert_int_equal(stats.memory_bytes, 400);
    assert_int_equal(stats.memory_peak_bytes, 600);
    assert_int_equal(stats.memory_total_bytes, 1000);
    struct sac_nvml_process process[2];
    assert_int_equal(sac_gpu_watch_processes(watch, process, 2), 1);
    assert_true(process[0].pid == getpid() && process[0].memory_bytes == 600000000);
    assert_int_equal(sac_gpu_watch_processes(NULL, process, 2), 0);
    for (int i = 0; i < 100 && (i == 0 || stats.samples > 1); i++) { /* held up in between? */
        sac_gpu_watch_restart(watch);
        sac_gpu_watch_get(watch, &stats);
    }
    assert_in_range(stats.samples, 0, 1);
    assert_int_equal(stats.memory_peak_bytes, 600); /* memory was held before the run, too */
    sac_gpu_watch_stop(&watch);
    assert_null(watch);
}

static void no_gpu_is_no_noise(void **state)
{
    (void)state;
    struct sac_gpu_stats stats;
    char                 before[512], after[512];
    sac_context_last_error(test_context(), before, sizeof before);
    assert_null(sac_gpu_watch_start(test_context(), "", 0, FAKE_NVML));
    assert_null(sac_gpu_watch_start(test_context(), "0000:00:00.0", 0, FAKE_NVML));
    assert_null(
        sac_gpu_watch_start(test_context(), "0000:3B:00.0", 0, "/nowhere/libnvidia-ml.so.1"));
    assert_null(sac_gpu_watch_start(test_context(), "0000:3B:00.0", 0, "libm.so.6")); /* opens, is
                                                                                       * none
                                                                                       */
    sac_context_last_error(test_context(), after, sizeof after);
    assert_string_equal(before, after);
    sac_gpu_watch_get(NULL, &stats);
    assert_false(stats.known);
}

/* Every start has its end, also where the card was not found. */
static void it_is_shut_down(void **state)
{
    (void)state;
    void *library = dlopen(FAKE_NVML, RTLD_NOW);
    assert_non_null(library);
    int (*initialised)(void);
    *(void **)&initialised = dlsym(library, "fake_nvml_initialised");
    assert_non_null(initialised);
    struct sac_gpu_watch *watch = sac_gpu_watch_start(test_context(), "0000:3B:00.0", 0, FAKE_NVML);
    assert_int_equal(initialised(), 1);
    sac_gpu_watch_stop(&watch);
    sac_gpu_watch_start(test_context(), "0000:00:00.0", 0, FAKE_NVML);
    assert_int_equal(initialised(), 0);
    dlclose(library);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_means_over_the_run),
        cmocka_unit_test(no_gpu_is_no_noise),
        cmocka_unit_test(it_is_shut_down),
    };
    return cmocka_run_group_tests_name("observe/gpu", tests, NULL, NULL);
}
