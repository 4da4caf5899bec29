/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>

#include "engine/onednn/worker.h"

/* Both sides spin for this long before they sleep: the next layer, or its end, usually comes
 * soon. */
enum { WATCH_NS = 30000 };

static struct {
    pthread_mutex_t call_lock; /* held by the caller, and while starting */
    bool            started;
    int             threads, team; /* wanted by the caller; as it is set */
    pthread_mutex_t lock;          /* for sleeping on the conditions */
    pthread_cond_t  work, done;
    void (*fn)(void *arg);
    void      *arg;
    atomic_int state; /* one of the below */
} worker = {.call_lock = PTHREAD_MUTEX_INITIALIZER,
            .lock = PTHREAD_MUTEX_INITIALIZER,
            .work = PTHREAD_COND_INITIALIZER,
            .done = PTHREAD_COND_INITIALIZER};

enum { IDLE = 0, CALLED, FINISHED };

/* Wait until the state is no longer `from`. */
static void await_change(int from, pthread_cond_t *cond)
{
    for (int64_t until = sac_time_ns() + WATCH_NS; sac_time_ns() < until;)
        if (atomic_load(&worker.state) != from)
            return;
    pthread_mutex_lock(&worker.lock);
    while (atomic_load(&worker.state) == from)
        pthread_cond_wait(cond, &worker.lock);
    pthread_mutex_unlock(&worker.lock);
}

static void change(int to, pthread_cond_t *cond)
{
    pthread_mutex_lock(&worker.lock);
    atomic_store(&worker.state, to);
    pthread_cond_signal(cond);
    pthread_mutex_unlock(&worker.lock);
}

/* The number applies only to the calling thread: a program's own OpenMP regions are not affected.
 * The runtime is the one that oneDNN loaded. */
static void set_team(int threads)
{
    void *runtime = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD);
    void (*set)(int) = NULL;
    if (runtime)
        *(void **)&set = dlsym(runtime, "omp_set_num_threads");
    if (set)
        set(threads);
    if (runtime)
        dlclose(runtime);
}

static void *worker_main(void *unused)
{
    (void)unused;
    for (;;) {
        await_change(IDLE, &worker.work);
        if (worker.team != worker.threads)
            set_team(worker.team = worker.threads);
        worker.fn(worker.arg);
        change(FINISHED, &worker.done);
        await_change(FINISHED, &worker.work);
    }
    return NULL;
}

sac_result worker_start(sac_context *ctx)
{
    sac_result res = SAC_OK;
    pthread_t  thread;
    pthread_mutex_lock(&worker.call_lock);
    if (!worker.started) {
        res = sac_thread_start(ctx, &thread, "sac-onednn", worker_main, NULL);
        worker.started = res == SAC_OK;
        if (worker.started)
            pthread_detach(thread);
    }
    pthread_mutex_unlock(&worker.call_lock);
    return res;
}

void worker_call(int threads, void (*fn)(void *arg), void *arg)
{
    pthread_mutex_lock(&worker.call_lock);
    worker.threads = threads;
    worker.fn = fn;
    worker.arg = arg;
    change(CALLED, &worker.work);
    await_change(CALLED, &worker.done);
    change(IDLE, &worker.work);
    pthread_mutex_unlock(&worker.call_lock);
}
