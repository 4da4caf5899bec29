/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>

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

/* OpenMP's functions, of the runtime that oneDNN loaded; NULL: it runs on another. */
static struct {
    pthread_once_t once;
    void (*set)(int);
    int (*get)(void);
} openmp = {.once = PTHREAD_ONCE_INIT};

static void find_openmp(void)
{
    void *runtime = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!runtime)
        return;
    *(void **)&openmp.set = dlsym(runtime, "omp_set_num_threads");
    *(void **)&openmp.get = dlsym(runtime, "omp_get_max_threads");
    dlclose(runtime); /* oneDNN keeps it */
}

/* The number applies only to the calling thread: a program's own OpenMP regions are not affected.
 */
static void set_team(int threads)
{
    pthread_once(&openmp.once, find_openmp);
    if (openmp.set)
        openmp.set(threads);
}

bool worker_can_be_alone(void)
{
    const unsigned runtime = dnnl_version()->cpu_runtime;
    pthread_once(&openmp.once, find_openmp);
    return runtime == DNNL_RUNTIME_SEQ || (runtime == DNNL_RUNTIME_OMP && openmp.set && openmp.get);
}

int worker_alone_begin(void)
{
    const int team = openmp.get ? openmp.get() : 1;
    if (team != 1)
        openmp.set(1);
    return team;
}

void worker_alone_end(int team)
{
    if (team != 1)
        openmp.set(team);
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
