/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <saccade/timer.h>

#include "base/thread.h"
#include "tests/test.h"

static sac_timers *new_timers(void)
{
    sac_timers *timers = NULL;
    assert_sac_ok(sac_timers_create(test_context(), &timers));
    return timers;
}

static void names_are_found_again(void **state)
{
    (void)state;
    sac_timers              *timers = new_timers();
    struct sac_timer_summary s[2];
    assert_int_equal(sac_timers_id(timers, "decode"), 0);
    assert_int_equal(sac_timers_id(timers, "inference"), 1);
    assert_int_equal(sac_timers_id(timers, "decode"), 0);
    assert_int_equal(sac_timers_summary(timers, s, 2), 2);
    assert_string_equal(s[1].name, "inference");
    assert_int_equal(s[1].count, 0);
    assert_int_equal(sac_timers_summary(timers, NULL, 0), 2);
    const char *long_name = "a name of more than thirty-one characters is cut";
    assert_int_equal(sac_timers_id(timers, long_name), 2);
    assert_int_equal(sac_timers_id(timers, long_name), 2);
    char name[16];
    for (int i = 3; i < 64; i++) {
        snprintf(name, sizeof name, "t%d", i);
        assert_int_equal(sac_timers_id(timers, name), i);
    }
    assert_int_equal(sac_timers_id(timers, "one too many"), -1);
    sac_timer_add(timers, -1, 5); /* goes nowhere */
    sac_timer_add(timers, 64, 5);
    sac_timers_destroy(&timers);
    sac_timers_destroy(&timers);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t exact(const int64_t *sorted, int n, double share)
{
    return sorted[SAC_MAX((int)ceil(share * n - 1e-9), 1) - 1];
}

static void assert_near(double ms, int64_t ns)
{
    if (fabs(ms * 1e6 - (double)ns) > 0.03 * (double)ns)
        fail_msg("%g ns, exact %lld ns", ms * 1e6, (long long)ns);
}

/* Durations over many orders of magnitude, against sorting them. */
static void percentiles_are_near_the_exact(void **state)
{
    (void)state;
    enum { N = 5000 };
    static int64_t ns[N];
    srand(7);
    for (int round = 1; round <= 40; round++) {
        sac_timers              *timers = new_timers();
        struct sac_timer_summary s;
        int    id = sac_timers_id(timers, "t"), n = round * round * 3; /* up to 4800 */
        double total = 0;
        for (int i = 0; i < n; i++) {
            double u = (double)rand() / RAND_MAX;
            ns[i] = (int64_t)exp(u * round); /* up to 2e17 ns at round 40; clamped below */
            ns[i] = SAC_MIN(ns[i], (int64_t)1 << 46);
            sac_timer_add(timers, id, ns[i]);
            total += (double)ns[i];
        }
        qsort(ns, (size_t)n, sizeof *ns, compare);
        assert_int_equal(sac_timers_summary(timers, &s, 1), 1);
        assert_int_equal(s.count, n);
        assert_near(s.p50_ms, exact(ns, n, 0.50));
        assert_near(s.p95_ms, exact(ns, n, 0.95));
        assert_near(s.p99_ms, exact(ns, n, 0.99));
        assert_true(s.max_ms * 1e6 >= (double)ns[n - 1] * 0.999999);
        assert_true(fabs(s.total_ms * 1e6 - total) <= total * 1e-9 + 1);
        assert_true(fabs(s.mean_ms * n - s.total_ms) <= s.total_ms * 1e-9);
        sac_timers_destroy(&timers);
    }
}

static void takes_extreme_durations(void **state)
{
    (void)state;
    sac_timers              *timers = new_timers();
    struct sac_timer_summary s;
    int                      id = sac_timers_id(timers, "t");
    sac_timer_add(timers, id, -5);
    sac_timer_add(timers, id, 0);
    sac_timer_add(timers, id, INT64_MAX);
    sac_timers_summary(timers, &s, 1);
    assert_int_equal(s.count, 3);
    assert_true(s.p50_ms == 0);
    assert_true(s.max_ms > 9e12);
    sac_timers_destroy(&timers);
}

static void records_nothing_when_off(void **state)
{
    (void)state;
    sac_timers              *timers = new_timers();
    struct sac_timer_summary s;
    int                      id = sac_timers_id(timers, "t");
    sac_timers_enable(timers, 0);
    int64_t begun = sac_timer_begin(timers);
    assert_int_equal(begun, 0);
    sac_timers_enable(timers, 1);
    sac_timer_end(timers, id, begun); /* began while off: no duration */
    sac_timers_summary(timers, &s, 1);
    assert_int_equal(s.count, 0);
    begun = sac_timer_begin(timers);
    sac_timer_end(timers, id, begun);
    sac_timers_summary(timers, &s, 1);
    assert_int_equal(s.count, 1);
    sac_timers_destroy(&timers);
}

struct job {
    sac_timers *timers;
    int         id;
};

static void *record(void *arg)
{
    struct job *job = arg;
    for (int i = 0; i < 20000; i++)
        sac_timer_add(job->timers, job->id, i);
    return NULL;
}

static void loses_nothing_between_threads(void **state)
{
    (void)state;
    struct job               job = {.timers = new_timers()};
    struct sac_timer_summary s;
    pthread_t                threads[4];
    job.id = sac_timers_id(job.timers, "t");
    for (int i = 0; i < 4; i++)
        assert_sac_ok(sac_thread_start(test_context(), &threads[i], "t", record, &job));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    sac_timers_summary(job.timers, &s, 1);
    assert_int_equal(s.count, 80000);
    assert_true(fabs(s.total_ms * 1e6 - 4.0 * 20000 * 19999 / 2) < 1);
    assert_near(s.p50_ms, 9999);
    sac_timers_destroy(&job.timers);
}

static int64_t thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* The promise is 10 microseconds a pair. This thread's own time, and the least of short rounds,
 * keep a busy machine out. */
static void a_pair_is_cheap(void **state)
{
    (void)state;
    enum { PAIRS = 1000, PROMISE_NS = 10000 };
    sac_timers *timers = new_timers();
    int         id = sac_timers_id(timers, "t");
    int64_t     best = INT64_MAX;
    for (int round = 0; round < 1000 && best / PAIRS > PROMISE_NS; round++) {
        int64_t start = thread_ns();
        for (int i = 0; i < PAIRS; i++)
            sac_timer_end(timers, id, sac_timer_begin(timers));
        best = SAC_MIN(best, thread_ns() - start);
    }
    assert_in_range(best / PAIRS, 0, PROMISE_NS);
    sac_timers_destroy(&timers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found_again),
        cmocka_unit_test(percentiles_are_near_the_exact),
        cmocka_unit_test(takes_extreme_durations),
        cmocka_unit_test(records_nothing_when_off),
        cmocka_unit_test(loses_nothing_between_threads),
        cmocka_unit_test(a_pair_is_cheap),
    };
    return cmocka_run_group_tests_name("observe/timers", tests, NULL, NULL);
}
