/* SPDX-License-Identifier: Apache-2.0 */
/* The pool's list of live buffers, with owner and age, from which leaks are reported. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "device/pool.h"

const char *sac_buffer_owner(const struct sac_buffer *buf)
{
    return buf->owner;
}

void sac_buffer_describe(struct sac_buffer *buf, const struct sac_tensor_desc *desc)
{
    pthread_mutex_lock(&buf->pool->lock);
    buf->desc = *desc;
    sac_pool_kind_describe(buf->pool, buf);
    pthread_mutex_unlock(&buf->pool->lock);
}

void sac_buffer_keep(struct sac_buffer *buf)
{
    pthread_mutex_lock(&buf->pool->lock);
    buf->keep = true;
    pthread_mutex_unlock(&buf->pool->lock);
}

/* ---- reports ---- */

static void print_buffer(const struct sac_buffer *buf, int64_t now_ns, char *out, size_t size)
{
    char shape[160] = "";
    if (buf->desc.dtype != SAC_DTYPE_NONE)
        sac_tensor_desc_print(&buf->desc, shape, sizeof shape);
    snprintf(out, size, "%s: '%s', %zu bytes%s%s, %.1f s old", buf->pool->where, buf->owner,
             buf->bytes, shape[0] ? ", " : "", shape, (double)(now_ns - buf->born_ns) * 1e-9);
}

static void dump_live(struct sac_buffer_pool *pool, void (*fn)(void *user, const char *line),
                      void                   *user)
{
    char line[320];
    pthread_mutex_lock(&pool->lock);
    for (const struct sac_buffer *buf = pool->live; buf; buf = buf->next) {
        print_buffer(buf, sac_time_ns(), line, sizeof line);
        fn(user, line);
    }
    pthread_mutex_unlock(&pool->lock);
}

void sac_device_dump_live(const sac_device *dev, void (*fn)(void *user, const char *line),
                          void             *user)
{
    if (!dev || !fn)
        return;
    dump_live(dev->pool, fn, user);
    if (dev->host_pool)
        dump_live(dev->host_pool, fn, user);
}

/* ---- what it is held for ---- */

static _Thread_local enum sac_memory_use thread_use;

enum sac_memory_use sac_memory_use_set(enum sac_memory_use use)
{
    enum sac_memory_use before = thread_use;
    thread_use = use;
    return before;
}

enum sac_memory_use sac_memory_use(void)
{
    return thread_use;
}

void sac_device_memory_by_use(const sac_device *dev, uint64_t live[SAC_MEMORY_USE_COUNT],
                              uint64_t peak[SAC_MEMORY_USE_COUNT])
{
    struct sac_buffer_pool *pool = dev->pool;
    pthread_mutex_lock(&pool->lock);
    memcpy(live, pool->use_live, sizeof pool->use_live);
    memcpy(peak, pool->use_peak, sizeof pool->use_peak);
    pthread_mutex_unlock(&pool->lock);
}

/* ---- the rest of the books ---- */

static void stats_of(struct sac_buffer_pool *pool, struct sac_pool_stats *out)
{
    pthread_mutex_lock(&pool->lock);
    *out = pool->stats;
    pthread_mutex_unlock(&pool->lock);
}

void sac_device_pool_stats(const sac_device *dev, struct sac_pool_stats *out)
{
    if (!dev || !out)
        return;
    stats_of(dev->pool, out);
}

void sac_device_host_pool_stats(const sac_device *dev, struct sac_pool_stats *out)
{
    if (!dev || !out)
        return;
    *out = (struct sac_pool_stats){0};
    if (dev->host_pool)
        stats_of(dev->host_pool, out);
}

/* Those that piled up are counted already. Under the lock. */
static void count_leak(struct sac_buffer_pool *pool, const struct sac_buffer *buf)
{
    if (buf->kind >= 0 && pool->kind[buf->kind].leaks > 0)
        pool->kind[buf->kind].leaks--;
    else
        pool->stats.leaks++;
}

/* Under the lock. */
static void report_all(struct sac_buffer_pool *pool)
{
    char          line[320];
    const int64_t now_ns = sac_time_ns();
    for (struct sac_buffer *buf = pool->live; buf; buf = buf->next) {
        if (buf->own)
            continue;
        count_leak(pool, buf);
        print_buffer(buf, now_ns, line, sizeof line);
        sac_log(pool->dev->ctx, SAC_LOG_WARN, "buffer still held when its device closed: %s", line);
    }
}

void sac_buffer_pool_report_held(struct sac_buffer_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    report_all(pool);
    pthread_mutex_unlock(&pool->lock);
}

/* ---- what piles up ---- */

/* A buffer that is old is no leak: an object may hold its scratch for as long as it lives, and the
 * pool does not see who still works with it. What is forgotten becomes ever more. So the number of
 * old ones of a kind must have risen at so many looks since it last fell: once when the scratch
 * of the first frames has its age, and a few times for what is taken when it is first needed. */
enum { RISES_MIN = 5 };

/* How many of each kind were born before; kept ones do not count. Under the lock. */
static void count_old(struct sac_buffer_pool *pool, int64_t before_ns)
{
    for (int i = 0; i < pool->kind_count; i++) {
        pool->kind[i].old_last = pool->kind[i].old;
        pool->kind[i].old = 0;
    }
    for (const struct sac_buffer *buf = pool->live; buf; buf = buf->next)
        if (buf->kind >= 0 && !buf->own && !buf->keep && buf->born_ns <= before_ns)
            pool->kind[buf->kind].old++;
}

static void tell_pile(const struct sac_buffer_pool *pool, const struct sac_pool_kind *kind)
{
    char shape[160] = "";
    if (kind->desc.dtype != SAC_DTYPE_NONE)
        sac_tensor_desc_print(&kind->desc, shape, sizeof shape);
    sac_log(pool->dev->ctx, SAC_LOG_WARN,
            "buffers pile up: %s: %" PRIu64 " of '%s', %zu bytes%s%s each, are held for longer "
            "than %d s, and ever more",
            pool->where, kind->old, kind->owner, kind->bytes, shape[0] ? ", " : "", shape,
            pool->dev->params.leak_age_s);
}

/* Under the lock. */
static void judge_pile(struct sac_buffer_pool *pool, struct sac_pool_kind *kind)
{
    if (kind->old < kind->old_last)
        kind->rises = 0;
    kind->rises += kind->old > kind->old_last;
    if (kind->rises < RISES_MIN || kind->old <= kind->leaks)
        return;
    pool->stats.leaks += kind->old - kind->leaks;
    kind->leaks = kind->old;
    if (kind->old < 2 * kind->told)
        return; /* told again when there are twice as many */
    kind->told = kind->old;
    tell_pile(pool, kind);
}

/* ---- the watcher ---- */

/* Wait until the next look is due; false when the pool closes. Under the lock. */
static bool wait_for_look(struct sac_buffer_pool *pool, int64_t interval_ns)
{
    int64_t         due = sac_time_ns() + interval_ns;
    struct timespec ts = {due / 1000000000, due % 1000000000};
    while (!pool->quit)
        if (pthread_cond_timedwait(&pool->wake, &pool->lock, &ts) != 0)
            return !pool->quit;
    return false;
}

static void *watch(void *arg)
{
    struct sac_buffer_pool *pool = arg;
    const int64_t           age_ns = (int64_t)pool->dev->params.leak_age_s * 1000000000;
    pthread_mutex_lock(&pool->lock);
    while (wait_for_look(pool, age_ns)) {
        count_old(pool, sac_time_ns() - age_ns);
        for (int i = 0; i < pool->kind_count; i++)
            judge_pile(pool, &pool->kind[i]);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

sac_result sac_pool_watch(struct sac_buffer_pool *pool)
{
    if (pool->dev->params.leak_age_s <= 0)
        return SAC_OK;
    sac_result res = sac_thread_start(pool->dev->ctx, &pool->watcher, "sac-watcher", watch, pool);
    pool->watching = res == SAC_OK;
    return res;
}

void sac_pool_unwatch(struct sac_buffer_pool *pool)
{
    if (!pool->watching)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->quit = true;
    pthread_cond_signal(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    pthread_join(pool->watcher, NULL);
}
