/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/thread.h"

struct start {
    void *(*fn)(void *);
    void *arg;
    char  name[16];
};

static atomic_int admitted;

void sac_thread_admit(int signal)
{
    atomic_store(&admitted, signal);
}

/* A thread names itself: it may read its name before pthread_create returns. */
static void *run_named(void *arg)
{
    struct start start = *(struct start *)arg;
    sac_free(arg);
    pthread_setname_np(pthread_self(), start.name);
    return start.fn(start.arg);
}

sac_result sac_thread_start(sac_context *ctx, pthread_t *out, const char *name, void *(*fn)(void *),
                            void *arg)
{
    struct start *start = sac_new(struct start);
    if (!start)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory to start thread '%s'", name);
    *start = (struct start){.fn = fn, .arg = arg};
    snprintf(start->name, sizeof start->name, "%s", name);
    /* Signals are the program's: a handler that ran here could outlive what it looks at. Those that
     * a thread causes itself are not held back, where the program does not: they would end it
     * without its handler. */
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigset_t         all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!sigismember(&before, own[i]))
            sigdelset(&all, own[i]);
    if (atomic_load(&admitted))
        sigdelset(&all, atomic_load(&admitted));
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    int err = pthread_create(out, NULL, run_named, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!err)
        return SAC_OK;
    sac_free(start);
    return SAC_FAIL(ctx, SAC_ERR_MEMORY, "cannot start thread '%s': %s", name, strerror(err));
}

void sac_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

bool sac_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t end_ns)
{
    const struct timespec ts = {end_ns / 1000000000, end_ns % 1000000000};
    if (end_ns < 0)
        return pthread_cond_wait(cond, lock) == 0;
    return pthread_cond_timedwait(cond, lock, &ts) == 0;
}

int sac_cpu_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return SAC_MAX(CPU_COUNT(&set), 1);
    return 1;
}

int sac_threads_default(void)
{
    return SAC_MAX(sac_cpu_count() / 2, 1);
}

/* ---- queue ---- */

struct sac_queue {
    pthread_mutex_t        lock; /* guards all below */
    pthread_cond_t         not_full, not_empty;
    void                 **items;
    size_t                 first;
    bool                   closed, aborted;
    struct sac_queue_stats stats; /* length and capacity live here */
};

sac_result sac_queue_create(sac_context *ctx, size_t capacity, struct sac_queue **out)
{
    struct sac_queue *q = sac_new(struct sac_queue);
    if (q)
        q->items = sac_calloc(SAC_MAX(capacity, 1), sizeof *q->items);
    if (!q || !q->items) {
        sac_free(q);
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for a queue of %zu", capacity);
    }
    pthread_mutex_init(&q->lock, NULL);
    sac_cond_init(&q->not_full);
    sac_cond_init(&q->not_empty);
    q->stats.capacity = SAC_MAX(capacity, 1);
    *out = q;
    return SAC_OK;
}

void sac_queue_destroy(struct sac_queue **q)
{
    if (!q || !*q)
        return;
    pthread_mutex_destroy(&(*q)->lock);
    pthread_cond_destroy(&(*q)->not_full);
    pthread_cond_destroy(&(*q)->not_empty);
    sac_free((*q)->items);
    sac_free(*q);
    *q = NULL;
}

static void *take(struct sac_queue *q)
{
    void *item = q->items[q->first];
    q->first = (q->first + 1) % q->stats.capacity;
    q->stats.length--;
    return item;
}

static void put(struct sac_queue *q, void *item)
{
    q->items[(q->first + q->stats.length) % q->stats.capacity] = item;
    q->stats.length++;
    q->stats.length_max = SAC_MAX(q->stats.length_max, q->stats.length);
    q->stats.pushed++;
    pthread_cond_signal(&q->not_empty);
}

static sac_result push_state(const struct sac_queue *q)
{
    return q->aborted ? SAC_ERR_CANCELLED : q->closed ? SAC_EOS : SAC_OK;
}

sac_result sac_queue_push_wait(struct sac_queue *q, void *item)
{
    pthread_mutex_lock(&q->lock);
    if (q->stats.length == q->stats.capacity && push_state(q) == SAC_OK) {
        int64_t start = sac_time_ns();
        q->stats.push_waits++;
        while (q->stats.length == q->stats.capacity && push_state(q) == SAC_OK)
            pthread_cond_wait(&q->not_full, &q->lock);
        q->stats.push_wait_ns += sac_time_ns() - start;
    }
    sac_result res = push_state(q);
    if (res == SAC_OK)
        put(q, item);
    pthread_mutex_unlock(&q->lock);
    return res;
}

/* Wait for an item under the lock; false on time-out. */
static bool wait_item(struct sac_queue *q, int64_t timeout_ns)
{
    const int64_t end_ns = timeout_ns < 0 ? -1 : sac_time_ns() + timeout_ns;
    while (q->stats.length == 0 && !q->closed && !q->aborted)
        if (!sac_cond_wait_until(&q->not_empty, &q->lock, end_ns))
            return q->stats.length > 0 || q->closed || q->aborted;
    return true;
}

sac_result sac_queue_pop_wait(struct sac_queue *q, int64_t timeout_ns, void **item)
{
    sac_result res = SAC_OK;
    pthread_mutex_lock(&q->lock);
    if (q->stats.length == 0 && !q->closed && !q->aborted) {
        int64_t start = sac_time_ns();
        q->stats.pop_waits++;
        if (!wait_item(q, timeout_ns))
            res = SAC_AGAIN;
        q->stats.pop_wait_ns += sac_time_ns() - start;
    }
    if (q->aborted)
        res = SAC_ERR_CANCELLED;
    else if (q->stats.length > 0) {
        *item = take(q);
        q->stats.popped++;
        pthread_cond_signal(&q->not_full);
        res = SAC_OK;
    } else if (q->closed)
        res = SAC_EOS;
    pthread_mutex_unlock(&q->lock);
    return res;
}

void sac_queue_sift(struct sac_queue *q, bool (*wanted)(void *user, void *item), void *user)
{
    pthread_mutex_lock(&q->lock);
    const size_t length = q->stats.length;
    size_t       kept = 0;
    for (size_t i = 0; i < length; i++) {
        void *item = q->items[(q->first + i) % q->stats.capacity];
        if (!wanted(user, item))
            q->items[(q->first + kept++) % q->stats.capacity] = item;
    }
    q->stats.length = kept;
    q->stats.popped += length - kept;
    pthread_cond_broadcast(&q->not_full);
    pthread_mutex_unlock(&q->lock);
}

static void end(struct sac_queue *q, bool *flag)
{
    pthread_mutex_lock(&q->lock);
    *flag = true;
    pthread_cond_broadcast(&q->not_full);
    pthread_cond_broadcast(&q->not_empty);
    pthread_mutex_unlock(&q->lock);
}

void sac_queue_close(struct sac_queue *q)
{
    end(q, &q->closed);
}

void sac_queue_abort(struct sac_queue *q)
{
    end(q, &q->aborted);
}

void sac_queue_stats(struct sac_queue *q, struct sac_queue_stats *out)
{
    pthread_mutex_lock(&q->lock);
    *out = q->stats;
    pthread_mutex_unlock(&q->lock);
}

/* ---- pool ---- */

/* How long a helper watches for the next job while the pool is held, and the caller for the last
 * piece, before they sleep: a few layers' worth. Waking costs about 5 microseconds on either
 * side. */
enum { WATCH_NS = 60000, SPINS_PER_CLOCK = 64 };

/* A helper that loses its CPU in the middle of a piece holds the caller up for a scheduler's round,
 * milliseconds, far longer than the job took. Where that happens, others want the CPUs: the caller
 * then works alone for a while, longer each time it happens again. */
enum { ALONE_MIN_NS = 1000000, ALONE_MAX_NS = 64000000, HELD_UP_TIMES = 2 };

/* At most so often does a helper leave the caller's CPU by itself: where several callers take turns
 * it would do nothing else. */
enum { LEAVE_EVERY_NS = 1000000, BARRING_CPUS_MAX = 4 };

/* A job is published by its tickets, one per thread: the generation in the high half, in the low
 * half how many pieces of that thread's share nobody took yet. Taking one is a compare-and-swap
 * that fails as soon as the generation is over, so a helper that comes late can neither run a stale
 * function nor take a piece of the next job with it; fn, arg and pieces are only rewritten once
 * every piece of the generation was finished.
 *
 * A thread takes its own share first, then what others left. Layer after layer it so works on the
 * same part of the maps, which lies in its core's cache: with pieces dealt out as they come, two
 * cores were no faster than one (EPYC, Zen 5, yolox_nano_416). */
struct share {
    _Atomic(uint64_t) ticket;
    char              apart[64 - sizeof(uint64_t)]; /* a cache line each */
};

struct sac_worker_pool {
    struct share                                       *shares; /* [threads] */
    uint32_t                                            generation;
    _Atomic(void (*)(void *arg, int piece, int worker)) fn;
    _Atomic(void *)                                     arg;
    atomic_int                                          pieces;
    atomic_int                                          unfinished;
    atomic_flag     taken; /* by the thread whose job is under way; it owns the next two */
    int64_t         alone_ns, alone_until; /* 0: not alone */
    atomic_int      held;
    atomic_int      caller_cpu;
    atomic_int      sleepers, caller_sleeps;
    atomic_bool     quit;
    pthread_mutex_t lock; /* for sleeping, and what says so of a helper */
    pthread_cond_t  start, done;
    int             threads, started; /* started: of the helpers */
    bool            bars;             /* helpers from the caller's CPU */
    struct helper {
        struct sac_worker_pool *pool;
        pthread_t               thread;
        int                     worker;
        int64_t                 stays_until; /* its own; LEAVE_EVERY_NS */
        bool                    asleep, barred;
        cpu_set_t               cpus; /* barred: those it had before */
    } * helpers;                      /* [threads - 1] */
};

static void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static bool has_pieces(const struct sac_worker_pool *pool)
{
    for (int w = 0; w < pool->threads; w++)
        if ((uint32_t)atomic_load(&pool->shares[w].ticket) > 0)
            return true;
    return false;
}

/* The first piece of a worker's share of n. */
static int share_begin(const struct sac_worker_pool *pool, int n, int worker)
{
    return (int)((int64_t)n * worker / pool->threads);
}

static void finish_piece(struct sac_worker_pool *pool)
{
    if (atomic_fetch_sub(&pool->unfinished, 1) == 1 && atomic_load(&pool->caller_sleeps)) {
        pthread_mutex_lock(&pool->lock);
        pthread_cond_signal(&pool->done);
        pthread_mutex_unlock(&pool->lock);
    }
}

/* Take pieces of one share until there are none. */
static void work_on(struct sac_worker_pool *pool, int share, int worker)
{
    _Atomic(uint64_t) *ticket = &pool->shares[share].ticket;
    uint64_t           seen = atomic_load(ticket);
    while ((uint32_t)seen > 0) {
        void (*fn)(void *, int, int) = atomic_load_explicit(&pool->fn, memory_order_relaxed);
        void *arg = atomic_load_explicit(&pool->arg, memory_order_relaxed);
        int   pieces = atomic_load_explicit(&pool->pieces, memory_order_relaxed);
        int   piece = share_begin(pool, pieces, share + 1) - (int)(uint32_t)seen;
        if (!atomic_compare_exchange_weak(ticket, &seen, seen - 1))
            continue;
        fn(arg, piece, worker);
        finish_piece(pool);
        seen = atomic_load(ticket);
    }
}

static void work(struct sac_worker_pool *pool, int worker)
{
    for (int i = 0; i < pool->threads; i++)
        work_on(pool, (worker + i) % pool->threads, worker);
}

static bool job_finished(const struct sac_worker_pool *pool)
{
    return atomic_load(&pool->unfinished) == 0;
}

/* Spin until ready or the time is up; true when ready. */
static bool watch(const struct sac_worker_pool *pool,
                  bool (*ready)(const struct sac_worker_pool *pool))
{
    int64_t until = sac_time_ns() + WATCH_NS;
    do {
        for (int i = 0; i < SPINS_PER_CLOCK; i++) {
            if (ready(pool))
                return true;
            cpu_relax();
        }
    } while (sac_time_ns() < until);
    return false;
}

/* A helper belongs on another CPU than the caller. The kernel does not see to it in a virtual
 * machine: a CPU that idles in the host looks to the guest as if it were taken from it, so a woken
 * thread is put beside the one that woke it, and there they take turns. After a pause of 100 ms
 * two threads so were slower than one for 5 ms and more (a Xeon under KVM, 2 CPUs, 2026-11-24).
 * With more than BARRING_CPUS_MAX one that is late matters less, and to bar each is system calls
 * for each: the caller would be busy with them. True: the thread may not run on `cpu` from now on;
 * its CPUs until now are in *before. */
static bool bar_cpu(pthread_t thread, int cpu, cpu_set_t *before)
{
    if (cpu < 0 || cpu >= CPU_SETSIZE ||
        pthread_getaffinity_np(thread, sizeof *before, before) != 0 || !CPU_ISSET(cpu, before) ||
        CPU_COUNT(before) < 2)
        return false;
    cpu_set_t rest = *before;
    CPU_CLR(cpu, &rest);
    return pthread_setaffinity_np(thread, sizeof rest, &rest) == 0;
}

/* For a helper that the caller, once it slept, was put beside. Afterwards all CPUs are allowed
 * again: the scheduler knows more than this. */
static void leave_callers_cpu(struct helper *h)
{
    const int cpu = sched_getcpu();
    cpu_set_t before;
    if (cpu != atomic_load_explicit(&h->pool->caller_cpu, memory_order_relaxed))
        return;
    const int64_t now = sac_time_ns();
    if (now < h->stays_until)
        return;
    h->stays_until = now + LEAVE_EVERY_NS;
    if (bar_cpu(pthread_self(), cpu, &before))
        pthread_setaffinity_np(pthread_self(), sizeof before, &before);
}

static void sleep_until_job(struct helper *h)
{
    struct sac_worker_pool *pool = h->pool;
    cpu_set_t               cpus;
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->sleepers, 1);
    h->asleep = true;
    while (!has_pieces(pool) && !atomic_load(&pool->quit))
        pthread_cond_wait(&pool->start, &pool->lock);
    atomic_fetch_sub(&pool->sleepers, 1);
    h->asleep = false;
    const bool barred = h->barred;
    cpus = h->cpus;
    h->barred = false;
    pthread_mutex_unlock(&pool->lock);
    if (barred)
        pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus);
}

static void *helper_main(void *arg)
{
    struct helper          *h = arg;
    struct sac_worker_pool *pool = h->pool;
    while (!atomic_load(&pool->quit)) {
        if (pool->bars && has_pieces(pool))
            leave_callers_cpu(h);
        const bool held = atomic_load_explicit(&pool->held, memory_order_relaxed) != 0;
        work(pool, h->worker);
        if (!held || !watch(pool, has_pieces))
            sleep_until_job(h);
    }
    return NULL;
}

sac_result sac_worker_pool_create(sac_context *ctx, int threads, struct sac_worker_pool **out)
{
    struct sac_worker_pool *pool = sac_new(struct sac_worker_pool);
    if (!pool)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for a thread pool");
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->start, NULL);
    pthread_cond_init(&pool->done, NULL);
    atomic_flag_clear(&pool->taken);
    pool->threads = SAC_MAX(threads, 1);
    pool->bars = sac_cpu_count() <= BARRING_CPUS_MAX;
    pool->helpers = sac_calloc((size_t)pool->threads, sizeof *pool->helpers);
    pool->shares = sac_alloc_aligned(64, (size_t)pool->threads * sizeof *pool->shares);
    sac_result res = pool->helpers && pool->shares
                         ? SAC_OK
                         : SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for threads");
    for (int w = 0; res == SAC_OK && w < pool->threads; w++)
        atomic_init(&pool->shares[w].ticket, 0);
    for (int i = 0; res == SAC_OK && i < pool->threads - 1; i++) {
        pool->helpers[i] = (struct helper){.pool = pool, .worker = i + 1};
        res = sac_thread_start(ctx, &pool->helpers[i].thread, "sac-worker", helper_main,
                               &pool->helpers[i]);
        pool->started += res == SAC_OK;
    }
    if (res == SAC_OK)
        *out = pool;
    else
        sac_worker_pool_destroy(&pool);
    return res;
}

void sac_worker_pool_destroy(struct sac_worker_pool **pool_at)
{
    struct sac_worker_pool *pool = pool_at ? *pool_at : NULL;
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    atomic_store(&pool->quit, true);
    pthread_cond_broadcast(&pool->start);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->started; i++)
        pthread_join(pool->helpers[i].thread, NULL);
    pthread_cond_destroy(&pool->start);
    pthread_cond_destroy(&pool->done);
    pthread_mutex_destroy(&pool->lock);
    sac_free(pool->shares);
    sac_free(pool->helpers);
    sac_free(pool);
    *pool_at = NULL;
}

int sac_worker_pool_threads(const struct sac_worker_pool *pool)
{
    return pool ? pool->threads : 1;
}

void sac_worker_pool_hold(struct sac_worker_pool *pool)
{
    if (pool)
        atomic_fetch_add(&pool->held, 1);
}

void sac_worker_pool_release(struct sac_worker_pool *pool)
{
    if (pool)
        atomic_fetch_sub(&pool->held, 1);
}

static void publish(struct sac_worker_pool *pool, int                   n,
                    void (*fn)(void *arg, int piece, int worker), void *arg)
{
    const int cpu = pool->bars ? sched_getcpu() : -1;
    atomic_store_explicit(&pool->fn, fn, memory_order_relaxed);
    atomic_store_explicit(&pool->arg, arg, memory_order_relaxed);
    atomic_store_explicit(&pool->pieces, n, memory_order_relaxed);
    atomic_store(&pool->unfinished, n);
    atomic_store_explicit(&pool->caller_cpu, cpu, memory_order_relaxed);
    pool->generation++;
    for (int w = 0; w < pool->threads; w++) {
        int count = share_begin(pool, n, w + 1) - share_begin(pool, n, w);
        atomic_store(&pool->shares[w].ticket, (uint64_t)pool->generation << 32 | (uint32_t)count);
    }
    if (atomic_load(&pool->sleepers) > 0) {
        pthread_mutex_lock(&pool->lock);
        for (int i = 0; i < pool->started && pool->bars; i++) {
            struct helper *h = &pool->helpers[i];
            if (h->asleep && !h->barred)
                h->barred = bar_cpu(h->thread, cpu, &h->cpus);
        }
        pthread_cond_broadcast(&pool->start);
        pthread_mutex_unlock(&pool->lock);
    }
}

/* A helper may have lost its CPU in the middle of a piece: sleeping frees ours for it. */
static void await_last_piece(struct sac_worker_pool *pool, int64_t worked_ns)
{
    const int64_t begun = sac_time_ns();
    if (watch(pool, job_finished)) {
        pool->alone_ns -= pool->alone_ns / 16;
        return;
    }
    pthread_mutex_lock(&pool->lock);
    atomic_store(&pool->caller_sleeps, 1);
    while (!job_finished(pool))
        pthread_cond_wait(&pool->done, &pool->lock);
    atomic_store(&pool->caller_sleeps, 0);
    pthread_mutex_unlock(&pool->lock);
    const int64_t now = sac_time_ns();
    if (now - begun <= HELD_UP_TIMES * worked_ns)
        return; /* just an uneven job */
    pool->alone_ns = SAC_CLAMP(2 * pool->alone_ns, ALONE_MIN_NS, ALONE_MAX_NS);
    pool->alone_until = now + pool->alone_ns;
}

static bool works_alone(struct sac_worker_pool *pool)
{
    if (pool->alone_until && sac_time_ns() >= pool->alone_until)
        pool->alone_until = 0;
    return pool->alone_until != 0;
}

void sac_worker_pool_run(struct sac_worker_pool *pool, int                   n,
                         void (*fn)(void *arg, int piece, int worker), void *arg)
{
    const bool mine = pool && pool->threads > 1 && n > 1 && !atomic_flag_test_and_set(&pool->taken);
    if (mine && !works_alone(pool)) {
        const int64_t begun = sac_time_ns();
        publish(pool, n, fn, arg);
        work(pool, 0);
        await_last_piece(pool, sac_time_ns() - begun);
    } else {
        for (int i = 0; i < n; i++)
            fn(arg, i, 0);
    }
    if (mine)
        atomic_flag_clear(&pool->taken);
}
