/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's files, as they might be. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "observe/machine.h"
#include "tests/test.h"

static char folder[512];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/saccade-machine-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[600];
    (void)state;
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command);
}

static void write_text(const char *name, const char *text)
{
    char path[700];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void make(const char *name)
{
    char path[700];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    mkdir(path, 0700);
}

static void loads_are_of_the_time_between(void **state)
{
    (void)state;
    struct sac_machine      m = {.proc = folder};
    struct sac_machine_load load;
    char                    held[600];
    snprintf(held, sizeof held, "%s/cpu.stat", folder);
    m.cpu_stat = held;
    write_text("stat", "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 2 3 4\n");
    write_text("meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    250 kB\n");
    write_text("cpu.stat", "usage_usec 5\nnr_throttled 1\nthrottled_usec 1000\n");
    sac_machine_look(&m, &load);
    assert_true(isnan(load.cpu) && isnan(load.held)); /* nothing to compare with */
    assert_true(isnan(load.disk));
    assert_true(fabs(load.memory - 0.75) < 1e-9);
    write_text("stat", "cpu  160 0 115 825 0 0 0 0 0 0\n"); /* 75 of 100 ticks */
    write_text("cpu.stat", "throttled_usec 999999999999\n");
    usleep(1000);
    sac_machine_look(&m, &load);
    assert_true(fabs(load.cpu - 0.75) < 1e-9);
    assert_true(load.held == 1);
    assert_true(isnan(load.disk)); /* an old kernel does not tell */
}

static void what_is_missing_is_not_known(void **state)
{
    (void)state;
    struct sac_machine      m = {.proc = "/nowhere", .cpu_stat = "/nowhere/cpu.stat"};
    struct sac_machine_load load;
    sac_machine_look(&m, &load);
    sac_machine_look(&m, &load);
    assert_true(isnan(load.cpu) && isnan(load.memory) && isnan(load.held) && isnan(load.disk));
}

static const struct sac_thread_group *group_of(const struct sac_threads *t, const char *name)
{
    for (int i = 0; i < t->group_count; i++)
        if (strcmp(t->group[i].name, name) == 0)
            return &t->group[i];
    return NULL;
}

static void threads_of_a_name_are_added_up(void **state)
{
    (void)state;
    static struct sac_threads t;
    static const char *const  tasks[] = {"11", "12", "13"};
    t = (struct sac_threads){.task = folder};
    for (int i = 0; i < 3; i++)
        make(tasks[i]);
    write_text("11/comm", "sac-sink-1\n");
    write_text("12/comm", "sac-sink-12\n");
    write_text("13/comm", "a ) b\n");
    write_text("11/schedstat", "0 0 1\n");
    write_text("12/schedstat", "0 0 1\n");
    write_text("13/stat", "13 (a ) b) S 1 1 1 0 -1 1 0 0 0 0 5 6 0 0 20\n"); /* an old kernel */
    sac_threads_look(&t);
    assert_int_equal(t.group_count, 2);
    const struct sac_thread_group *sinks = group_of(&t, "sac-sink");
    assert_non_null(sinks);
    assert_int_equal(sinks->threads, 2);
    assert_true(sinks->cores == 0);
    assert_non_null(group_of(&t, "a ) b"));
    t.looked_ns = sac_time_ns() - 1000000000; /* a second ago */
    write_text("11/schedstat", "250000000 700000000 1\n");
    write_text("12/schedstat", "500000000 100000000 1\n");
    sac_threads_look(&t);
    sinks = group_of(&t, "sac-sink");
    assert_true(sinks->cores > 0.6 && sinks->cores <= 0.75 + 1e-6);
    assert_true(sinks->waiting > 0.6 && sinks->waiting <= 0.7 + 1e-6);
    assert_true(fabs(sinks->stretch - (1 + 0.7 / 0.25)) < 1e-6); /* the first one's */
}

/* Of this process: a thread that works is seen to. */
static void *work(void *arg)
{
    prctl(PR_SET_NAME, "busy-7");
    while (!atomic_load((atomic_bool *)arg))
        ;
    return NULL;
}

static void a_busy_thread_is_seen(void **state)
{
    (void)state;
    static struct sac_threads t;
    atomic_bool               ended;
    pthread_t                 thread;
    double                    most = 0;
    atomic_init(&ended, false);
    assert_int_equal(pthread_create(&thread, NULL, work, &ended), 0);
    usleep(50000);
    for (int i = 0; i < 100 && most < 0.05; i++) { /* others may have the CPUs for a while */
        sac_threads_look(&t);
        const struct sac_thread_group *busy = group_of(&t, "busy");
        most = busy ? SAC_MAX(most, busy->cores) : most;
        usleep(100000);
    }
    atomic_store(&ended, true);
    pthread_join(thread, NULL);
    assert_true(most >= 0.05);
    sac_threads_look(&t);
    const struct sac_thread_group *gone = group_of(&t, "busy");
    assert_int_equal(gone->threads, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads_are_of_the_time_between),
        cmocka_unit_test(what_is_missing_is_not_known),
        cmocka_unit_test(threads_of_a_name_are_added_up),
        cmocka_unit_test(a_busy_thread_is_seen),
    };
    return cmocka_run_group_tests_name("observe/machine", tests, make_folder, remove_folder);
}
