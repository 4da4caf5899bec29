/* SPDX-License-Identifier: Apache-2.0 */
#include <gnu/libc-version.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <saccade/stacks.h>

#include "base/thread.h"
#include "observe/symbols.h"
#include "tests/test.h"

/* CPU time of the calling thread. */
static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static volatile double sink;

__attribute__((noinline)) static void burn_the_inner(void)
{
    for (int i = 0; i < 100000; i++)
        sink = sink * 1.0000001 + 1e-9;
}

__attribute__((noinline)) static void burn_the_outer(double seconds)
{
    for (const double end = cpu_s() + seconds; cpu_s() < end;)
        burn_the_inner();
    sink++; /* so that the last call is one */
}

static void *burn(void *seconds)
{
    burn_the_outer(*(double *)seconds);
    sink++;
    return NULL;
}

static void *wait_for_word(void *lock)
{
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
    return NULL;
}

static sac_stacks *start(void)
{
    sac_stacks *stacks = NULL;
    assert_sac_ok(sac_stacks_start(test_context(), NULL, &stacks));
    return stacks;
}

/* Samples of the stacks that begin with one text and have another. */
static uint64_t samples_of(const sac_stacks *stacks, const char *begin, const char *part)
{
    uint64_t         sum = 0;
    struct sac_stack s;
    for (int i = 0; i < sac_stacks_count(stacks); i++) {
        assert_sac_ok(sac_stacks_get(stacks, i, &s));
        if (strncmp(s.text, begin, strlen(begin)) == 0 && strstr(s.text, part))
            sum += s.samples;
    }
    return sum;
}

static void finds_where_the_time_goes(void **state)
{
    (void)state;
    enum { OURS = 50 }; /* at 10 ms */
    double          seconds = 0.4;
    pthread_t       busy, idle;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    sac_stacks     *stacks = start();
    pthread_mutex_lock(&lock);
    assert_sac_ok(sac_thread_start(test_context(), &busy, "sac busy;one", burn, &seconds));
    assert_sac_ok(sac_thread_start(test_context(), &idle, "sac-idle", wait_for_word, &lock));
    burn_the_outer(0.5);
    pthread_join(busy, NULL);
    assert_int_equal(sac_stacks_count(stacks), 0); /* it goes on */
    struct sac_stacks_summary before, sum;
    sac_stacks_get_summary(stacks, &before);
    assert_sac_ok(sac_stacks_stop(stacks));
    assert_sac_ok(sac_stacks_stop(stacks));
    pthread_mutex_unlock(&lock);
    pthread_join(idle, NULL);
    burn_the_outer(0.05); /* no more */
    sac_stacks_get_summary(stacks, &sum);
    assert_true(sum.samples >= before.samples && sum.elapsed_s >= before.elapsed_s);
    assert_int_equal(sum.interval_us, 10000);
    assert_int_equal(sum.lost, 0);
    assert_int_equal(sum.other, 0);
    assert_string_equal(sum.note, "");
    assert_true(sum.cpu_s >= 0.9 && sum.cost_s > 0 && sum.cost_s < sum.cpu_s);
    assert_in_range(sum.samples, OURS, 200); /* 90, less what a thread did before its timer */
    assert_int_equal(samples_of(stacks, "", ""), sum.samples);
    assert_in_range(samples_of(stacks, "sac_busy_one;", ";burn;burn_the_outer"), OURS / 4,
                    sum.samples);
    assert_in_range(samples_of(stacks, "", ";main;"), OURS / 2, sum.samples);
    assert_in_range(samples_of(stacks, "", ";burn_the_outer;burn_the_inner"), OURS, sum.samples);
    assert_int_equal(samples_of(stacks, "sac-idle", ""), 0);
    struct sac_stack last = {.samples = UINT64_MAX}, s;
    for (int i = 0; i < sac_stacks_count(stacks); i++, last = s) {
        assert_sac_ok(sac_stacks_get(stacks, i, &s));
        assert_true(s.samples > 0 && s.samples <= last.samples && !strchr(s.text, '\n'));
    }
    assert_sac_error(sac_stacks_get(stacks, sac_stacks_count(stacks), &s), SAC_ERR_ARG);
    sac_stacks_destroy(&stacks);
    assert_null(stacks);
}

static void there_is_one_at_a_time(void **state)
{
    (void)state;
    struct sac_stacks_params params = sac_stacks_params_default();
    sac_stacks              *one = start(), *two = NULL;
    assert_sac_error(sac_stacks_start(test_context(), NULL, &two), SAC_ERR_ARG);
    assert_null(two);
    sac_stacks_destroy(&one);
    params.interval_us = 999;
    assert_sac_error(sac_stacks_start(test_context(), &params, &one), SAC_ERR_ARG);
    params.interval_us = 1000;
    assert_sac_ok(sac_stacks_start(test_context(), &params, &one));
    burn_the_outer(0.2);
    assert_sac_ok(sac_stacks_stop(one));
    assert_in_range(samples_of(one, "", "burn_the_outer"), 20, 400);
    sac_stacks_destroy(&one);
}

/* A signal that comes late, when nothing samples, is nothing. */
static void its_signal_is_handled_for_good(void **state)
{
    (void)state;
    sac_stacks *stacks = start();
    raise(SIGPROF); /* not a timer's */
    assert_sac_ok(sac_stacks_stop(stacks));
    sac_stacks_destroy(&stacks);
    raise(SIGPROF);
}

static void memory_that_is_missing_is_told(void **state)
{
    (void)state;
    sac_stacks *stacks = NULL;
    char        why[256];
    for (long n = 1; n <= 3; n++) {
        sac_alloc_fail_at(n);
        assert_sac_error(sac_stacks_start(test_context(), NULL, &stacks), SAC_ERR_MEMORY);
        sac_alloc_fail_at(0);
        assert_null(stacks);
        sac_context_last_error(test_context(), why, sizeof why);
        assert_non_null(strstr(why, "call stacks: no memory for samples"));
    }
    stacks = start();
    burn_the_outer(0.3); /* so that all symbols are there */
    sac_alloc_fail_at(1);
    const sac_result res = sac_stacks_stop(stacks);
    sac_alloc_fail_at(0);
    struct sac_stacks_summary sum;
    sac_stacks_get_summary(stacks, &sum);
    assert_int_equal(res, SAC_ERR_MEMORY);
    assert_int_equal(sac_stacks_count(stacks), 0);
    assert_string_equal(sum.note, "no memory for their list");
    assert_true(sum.samples > 10);
    sac_stacks_destroy(&stacks);
}

/* ---- names ---- */

static void name_at(struct sac_symbols *s, uintptr_t address, char name[64])
{
    sac_symbols_name(s, sac_symbols_find(s, address), name, 64);
}

static uintptr_t address_of(void (*fn)(void))
{
    return (uintptr_t)fn;
}

static void names_what_is_not_exported(void **state)
{
    (void)state;
    struct sac_symbols *s = sac_symbols_create();
    char                name[64];
    const uintptr_t     inner = address_of(burn_the_inner);
    assert_non_null(s);
    name_at(s, inner, name);
    assert_string_equal(name, "burn_the_inner");
    assert_int_equal(sac_symbols_find(s, inner + 1), sac_symbols_find(s, inner));
    const uintptr_t libc = address_of((void (*)(void))gnu_get_libc_version);
    name_at(s, libc, name);
    assert_string_equal(name, "gnu_get_libc_version");
    assert_true(sac_symbols_is_root(s, libc));
    assert_false(sac_symbols_is_root(s, inner));
    int here;
    assert_int_equal(sac_symbols_find(s, (uintptr_t)&here), SAC_SYMBOL_GENERATED);
    name_at(s, (uintptr_t)&here, name);
    assert_string_equal(name, "[generated]");
    assert_string_equal(sac_symbols_note(s), "");
    sac_symbols_destroy(&s);
    assert_null(s);
    sac_symbols_destroy(&s);
}

static void a_file_without_room_for_its_names_is_one(void **state)
{
    (void)state;
    char name[64];
    for (long n = 1; n <= 3; n++) {
        struct sac_symbols *s = sac_symbols_create();
        sac_alloc_fail_at(n); /* the program is the first that is loaded */
        name_at(s, address_of(burn_the_inner), name);
        sac_alloc_fail_at(0);
        assert_string_equal(name, "[test_observe_stacks]");
        assert_non_null(strstr(sac_symbols_note(s), "no memory for the names of functions in '/"));
        sac_symbols_destroy(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_where_the_time_goes),
        cmocka_unit_test(there_is_one_at_a_time),
        cmocka_unit_test(its_signal_is_handled_for_good),
        cmocka_unit_test(memory_that_is_missing_is_told),
        cmocka_unit_test(names_what_is_not_exported),
        cmocka_unit_test(a_file_without_room_for_its_names_is_one),
    };
    return cmocka_run_group_tests_name("observe/stacks", tests, NULL, NULL);
}
