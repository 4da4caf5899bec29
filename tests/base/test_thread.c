/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "base/thread.h"
#include "tests/test.h"

enum { ITEMS = 10000 };

static void *produce(void *arg)
{
    for (uintptr_t i = 1; i <= ITEMS; i++)
        if (sac_queue_push_wait(arg, (void *)i) != SAC_OK)
            break;
    sac_queue_close(arg);
    return NULL;
}

static void queue_passes_all_items_in_order(void **state)
{
    (void)state;
    struct sac_queue *q = NULL;
    pthread_t         producer;
    assert_sac_ok(sac_queue_create(test_context(), 3, &q));
    assert_sac_ok(sac_thread_start(test_context(), &producer, "producer", produce, q));
    void      *item;
    uintptr_t  expect = 1;
    sac_result res;
    while ((res = sac_queue_pop_wait(q, -1, &item)) == SAC_OK)
        assert_int_equal((uintptr_t)item, expect++);
    assert_int_equal(res, SAC_EOS);
    assert_int_equal(expect, ITEMS + 1);
    pthread_join(producer, NULL);
    struct sac_queue_stats stats;
    sac_queue_stats(q, &stats);
    assert_int_equal(stats.pushed, ITEMS);
    assert_int_equal(stats.popped, ITEMS);
    assert_true(stats.length_max <= 3);
    sac_queue_destroy(&q);
}

static void queue_waits_end(void **state)
{
    (void)state;
    struct sac_queue *q = NULL;
    void             *item;
    assert_sac_ok(sac_queue_create(test_context(), 2, &q));
    assert_sac_ok(sac_queue_push_wait(q, (void *)1));
    assert_sac_ok(sac_queue_pop_wait(q, 0, &item));
    assert_int_equal(sac_queue_pop_wait(q, 1000000, &item), SAC_AGAIN);
    sac_queue_abort(q);
    assert_int_equal(sac_queue_pop_wait(q, -1, &item), SAC_ERR_CANCELLED);
    assert_int_equal(sac_queue_push_wait(q, item), SAC_ERR_CANCELLED);
    sac_queue_destroy(&q);
}

static uintptr_t drained;

static bool drain_item(void *user, void *item)
{
    (void)user;
    drained += (uintptr_t)item;
    return true;
}

static bool drain_odd(void *user, void *item)
{
    return (uintptr_t)item % 2 && drain_item(user, item);
}

/* Items 3 to 6 of a ring of four, which therefore lie around its end. */
static void queue_is_sifted_in_order(void **state)
{
    (void)state;
    struct sac_queue      *q = NULL;
    struct sac_queue_stats stats;
    void                  *item;
    drained = 0;
    assert_sac_ok(sac_queue_create(test_context(), 4, &q));
    for (uintptr_t i = 1; i <= 6; i++) {
        if (i > 4)
            assert_sac_ok(sac_queue_pop_wait(q, 0, &item));
        assert_sac_ok(sac_queue_push_wait(q, (void *)i));
    }
    sac_queue_sift(q, drain_odd, NULL);
    assert_int_equal(drained, 3 + 5);
    assert_sac_ok(sac_queue_push_wait(q, (void *)7)); /* there is room now */
    for (uintptr_t want = 4; want <= 7; want += want == 6 ? 1 : 2) {
        assert_sac_ok(sac_queue_pop_wait(q, 0, &item));
        assert_int_equal((uintptr_t)item, want);
    }
    sac_queue_stats(q, &stats);
    assert_int_equal(stats.length, 0);
    assert_int_equal(stats.pushed, stats.popped);
    sac_queue_destroy(&q);
}

static void queue_drains_after_abort(void **state)
{
    (void)state;
    struct sac_queue *q = NULL;
    drained = 0;
    assert_sac_ok(sac_queue_create(test_context(), 4, &q));
    for (uintptr_t i = 1; i <= 4; i++)
        assert_sac_ok(sac_queue_push_wait(q, (void *)i));
    sac_queue_abort(q);
    sac_queue_sift(q, drain_item, NULL);
    assert_int_equal(drained, 1 + 2 + 3 + 4);
    sac_queue_destroy(&q);
}

static void add_piece(void *arg, int piece, int worker)
{
    (void)worker;
    atomic_fetch_add((atomic_int *)arg, piece);
}

static void pool_runs_every_piece_once(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        struct sac_worker_pool *pool = NULL;
        assert_sac_ok(sac_worker_pool_create(test_context(), threads, &pool));
        for (int job = 0; job < 200; job++) {
            atomic_int sum = 0;
            sac_worker_pool_run(pool, job, add_piece, &sum);
            assert_int_equal(sum, job * (job - 1) / 2);
        }
        sac_worker_pool_destroy(&pool);
    }
}

struct placed {
    cpu_set_t  cpus; /* that each thread may run on */
    int        caller_cpu;
    atomic_int by_helper, elsewhere, bound;
};

static void note_cpu(void *arg, int piece, int worker)
{
    struct placed *p = arg;
    cpu_set_t      cpus;
    (void)piece;
    for (int64_t end = sac_time_ns() + 500000; sac_time_ns() < end;)
        ;
    if (worker == 0)
        return;
    sched_getaffinity(0, sizeof cpus, &cpus);
    atomic_fetch_add(&p->by_helper, 1);
    atomic_fetch_add(&p->elsewhere, sched_getcpu() != p->caller_cpu);
    atomic_fetch_add(&p->bound, !CPU_EQUAL(&cpus, &p->cpus));
}

/* The caller stays on one CPU; a helper that slept is woken on another one, and may then run on all
 * of them as before. */
static void woken_helper_leaves_the_callers_cpu(void **state)
{
    (void)state;
    struct placed           p = {0};
    struct sac_worker_pool *pool = NULL;
    cpu_set_t               one;
    const struct timespec   pause = {0, 2000000};
    if (sac_cpu_count() < 2)
        skip();
    sched_getaffinity(0, sizeof p.cpus, &p.cpus);
    assert_sac_ok(sac_worker_pool_create(test_context(), 2, &pool));
    p.caller_cpu = sched_getcpu();
    CPU_ZERO(&one);
    CPU_SET(p.caller_cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    for (int job = 0; job < 40; job++) {
        nanosleep(&pause, NULL);
        sac_worker_pool_run(pool, 2, note_cpu, &p);
    }
    sched_setaffinity(0, sizeof p.cpus, &p.cpus);
    sac_worker_pool_destroy(&pool);
    assert_true(p.by_helper > 0);
    assert_true(p.elsewhere >= p.by_helper * 3 / 4); /* the kernel may move it later */
    assert_int_equal(p.bound, 0);
}

static void held_pool_runs_jobs_back_to_back(void **state)
{
    (void)state;
    struct sac_worker_pool *pool = NULL;
    assert_sac_ok(sac_worker_pool_create(test_context(), 3, &pool));
    for (int burst = 0; burst < 20; burst++) {
        sac_worker_pool_hold(pool);
        for (int job = 0; job < 500; job++) {
            atomic_int sum = 0;
            sac_worker_pool_run(pool, 2 + job % 7, add_piece, &sum);
            assert_int_equal(sum, (2 + job % 7) * (1 + job % 7) / 2);
        }
        sac_worker_pool_release(pool);
    }
    sac_worker_pool_destroy(&pool);
}

struct caller {
    struct sac_worker_pool *pool;
    int                     wrong;
};

static void *call_pool(void *arg)
{
    struct caller *c = arg;
    for (int job = 0; job < 2000; job++) {
        atomic_int sum = 0;
        sac_worker_pool_run(c->pool, 5, add_piece, &sum);
        c->wrong += sum != 10;
    }
    return NULL;
}

static void pool_serves_two_callers(void **state)
{
    (void)state;
    struct sac_worker_pool *pool = NULL;
    assert_sac_ok(sac_worker_pool_create(test_context(), 2, &pool));
    struct caller callers[2] = {{.pool = pool}, {.pool = pool}};
    pthread_t     threads[2];
    for (int i = 0; i < 2; i++)
        assert_sac_ok(
            sac_thread_start(test_context(), &threads[i], "caller", call_pool, &callers[i]));
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(callers[i].wrong, 0);
    }
    sac_worker_pool_destroy(&pool);
}

static void *held_back(void *arg)
{
    pthread_sigmask(SIG_SETMASK, NULL, arg);
    return NULL;
}

/* All signals are the program's, but for those that a thread causes, unless the program holds these
 * back itself. */
static void threads_hold_signals_back(void **state)
{
    (void)state;
    for (int program_does = 0; program_does < 2; program_does++) {
        sigset_t  faults, before, now;
        pthread_t thread;
        sigemptyset(&faults);
        sigaddset(&faults, SIGBUS);
        pthread_sigmask(program_does ? SIG_BLOCK : SIG_UNBLOCK, &faults, &before);
        assert_sac_ok(sac_thread_start(test_context(), &thread, "masked", held_back, &now));
        pthread_join(thread, NULL);
        assert_int_equal(sigismember(&now, SIGBUS), program_does);
        assert_int_equal(sigismember(&now, SIGSEGV), 0);
        assert_int_equal(sigismember(&now, SIGINT), 1);
        pthread_sigmask(SIG_SETMASK, &before, &faults);
        assert_int_equal(sigismember(&faults, SIGBUS), program_does);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queue_passes_all_items_in_order),
        cmocka_unit_test(queue_waits_end),
        cmocka_unit_test(queue_is_sifted_in_order),
        cmocka_unit_test(queue_drains_after_abort),
        cmocka_unit_test(pool_runs_every_piece_once),
        cmocka_unit_test(woken_helper_leaves_the_callers_cpu),
        cmocka_unit_test(held_pool_runs_jobs_back_to_back),
        cmocka_unit_test(pool_serves_two_callers),
        cmocka_unit_test(threads_hold_signals_back),
    };
    return cmocka_run_group_tests_name("base/thread", tests, NULL, NULL);
}
