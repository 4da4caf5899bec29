/* SPDX-License-Identifier: Apache-2.0 */
/* The pool's list of live buffers, with owner and age, from which leaks are reported. */
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

/* Name the buffers that have been live for age_ns, each once. Under the lock. */
static void report_older(struct sac_buffer_pool *pool, int64_t age_ns, bool kept_too,
                         const char *remark)
{
    char    line[320];
    int64_t now_ns = sac_time_ns();
    for (struct sac_buffer *buf = pool->live; buf; buf = buf->next) {
        if (buf->own || buf->reported || (buf->keep && !kept_too) || now_ns - buf->born_ns < age_ns)
            continue;
        buf->reported = true;
        pool->stats.leaks++;
        print_buffer(buf, now_ns, line, sizeof line);
        sac_log(pool->dev->ctx, SAC_LOG_WARN, "%s: %s", remark, line);
    }
}

void sac_buffer_pool_report_held(struct sac_buffer_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    report_older(pool, 0, true, "buffer still held when its device closed");
    pthread_mutex_unlock(&pool->lock);
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
    int64_t                 age_ns = (int64_t)pool->dev->params.leak_age_s * 1000000000;
    pthread_mutex_lock(&pool->lock);
    while (wait_for_look(pool, age_ns / 4))
        report_older(pool, age_ns, false, "buffer held for long");
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
