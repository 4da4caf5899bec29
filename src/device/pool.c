/* SPDX-License-Identifier: Apache-2.0 */
/* Pooled device memory.
 *
 * A request is rounded up to a size class (four to each power of two, so at most a quarter is wasted)
 * and served from the idle buffers of that class, else from the device. A buffer comes back with its
 * last reference; one that no request wanted for long goes back to the device, so that a size which
 * came up once does not stay. Live buffers are on a list with owner and age: that is what a leak report
 * reads. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "device/device.h"

enum {
    HOST_BYTES_MAX = 512 << 20, /* page-locked memory is taken from everybody on the machine */
    CLASS_BYTES_MIN = 256,
    CLASS_BITS_MIN = 8,
    CLASSES = (48 - CLASS_BITS_MIN) * 4, /* to 256 TiB: more is refused before it gets here */
    READ_PAST_BYTES = 64,                /* vector code may read this far past the end */
    IDLE_REQUESTS_MAX = 512,             /* an idle buffer outlives so many requests: seconds of video */
    LOOK_REQUESTS = 64,                  /* how often that is looked at */
    OWNER_BYTES = 48
};

struct sac_buffer {
    sac_refcount            refs;
    struct sac_buffer_pool *pool;
    void                   *data;
    size_t                  bytes;       /* asked for */
    size_t                  class_bytes; /* taken */
    int                     class_index;
    struct sac_buffer      *next, *prev; /* in the live list, or next in an idle list */
    uint64_t                idle_since;  /* the request after which it came back */
    /* The live list's remarks. */
    int64_t                born_ns;
    bool                   keep, reported;
    char                   owner[OWNER_BYTES];
    struct sac_tensor_desc desc; /* dtype SAC_DTYPE_NONE: not described */
};

struct sac_buffer_pool {
    sac_device           *dev;
    const char           *where; /* in sentences: "cuda:0", "page-locked host memory" */
    sac_result          (*alloc)(struct sac_device *dev, size_t bytes, void **out);
    void                (*free)(struct sac_device *dev, void *p);
    uint64_t              limit_bytes; /* 0: none */
    pthread_mutex_t       lock; /* guards all below */
    pthread_cond_t        wake; /* the watcher should end */
    bool                  quit, watching;
    pthread_t             watcher;
    struct sac_buffer    *live;
    struct sac_buffer    *idle[CLASSES];
    uint64_t              requests;
    struct sac_pool_stats stats;
};

/* ---- size classes ---- */

/* Class i holds CLASS_BYTES_MIN * 2^(i/4) * (1 + (i%4)/4). */
static size_t class_size(int i)
{
    return ((size_t)CLASS_BYTES_MIN << (i / 4)) / 4 * (size_t)(4 + i % 4);
}

/* The smallest class that holds the bytes, or -1. */
static int class_of(size_t bytes)
{
    if (bytes <= CLASS_BYTES_MIN)
        return 0;
    if (bytes > class_size(CLASSES - 1))
        return -1;
    int power = 63 - __builtin_clzll(bytes); /* 2^power <= bytes */
    int i = (power - CLASS_BITS_MIN) * 4;
    while (class_size(i) < bytes)
        i++;
    return i;
}

/* ---- lists; all under the lock ---- */

static void live_insert(struct sac_buffer_pool *pool, struct sac_buffer *buf)
{
    buf->prev = NULL;
    buf->next = pool->live;
    if (buf->next)
        buf->next->prev = buf;
    pool->live = buf;
    pool->stats.bytes_live += buf->class_bytes;
    pool->stats.bytes_peak = SAC_MAX(pool->stats.bytes_peak, pool->stats.bytes_live);
}

static void live_remove(struct sac_buffer_pool *pool, struct sac_buffer *buf)
{
    if (buf->prev)
        buf->prev->next = buf->next;
    else
        pool->live = buf->next;
    if (buf->next)
        buf->next->prev = buf->prev;
    pool->stats.bytes_live -= buf->class_bytes;
}

static struct sac_buffer *idle_take(struct sac_buffer_pool *pool, int class_index)
{
    struct sac_buffer *buf = pool->idle[class_index];
    if (!buf)
        return NULL;
    pool->idle[class_index] = buf->next;
    pool->stats.bytes_idle -= buf->class_bytes;
    return buf;
}

static void idle_put(struct sac_buffer_pool *pool, struct sac_buffer *buf)
{
    buf->idle_since = pool->requests;
    buf->next = pool->idle[buf->class_index];
    pool->idle[buf->class_index] = buf;
    pool->stats.bytes_idle += buf->class_bytes;
}

/* Give back to the device what has been idle for at least so many requests. */
static void free_idle(struct sac_buffer_pool *pool, uint64_t requests)
{
    for (int i = 0; i < CLASSES; i++)
        for (struct sac_buffer **at = &pool->idle[i], *buf; (buf = *at);) {
            if (pool->requests - buf->idle_since < requests) {
                at = &buf->next;
                continue;
            }
            *at = buf->next;
            pool->stats.bytes_idle -= buf->class_bytes;
            pool->free(pool->dev, buf->data);
            sac_free(buf);
        }
}

static void trim(struct sac_buffer_pool *pool)
{
    free_idle(pool, 0);
}

void sac_device_pool_trim(sac_device *dev)
{
    struct sac_buffer_pool *pools[] = {dev->pool, dev->host_pool};
    for (size_t i = 0; i < SAC_COUNT(pools); i++) {
        if (!pools[i])
            continue;
        pthread_mutex_lock(&pools[i]->lock);
        trim(pools[i]);
        pthread_mutex_unlock(&pools[i]->lock);
    }
}

/* ---- taking and giving back ---- */

static bool over_budget(const struct sac_buffer_pool *pool, size_t more)
{
    uint64_t limit = pool->limit_bytes;
    uint64_t held = pool->stats.bytes_live + pool->stats.bytes_idle;
    return limit && (held > limit || more > limit - held);
}

/* One new buffer from the device; under the lock. */
static sac_result allocate(struct sac_buffer_pool *pool, int class_index, struct sac_buffer **out)
{
    size_t bytes = class_size(class_index);
    if (over_budget(pool, bytes))
        return SAC_ERR_LIMIT;
    struct sac_buffer *buf = sac_new(struct sac_buffer);
    if (!buf)
        return SAC_ERR_MEMORY;
    sac_result res = pool->alloc(pool->dev, bytes + READ_PAST_BYTES, &buf->data);
    if (res != SAC_OK) {
        sac_free(buf);
        return res;
    }
    buf->pool = pool;
    buf->class_index = class_index;
    buf->class_bytes = bytes;
    pool->stats.allocations++;
    *out = buf;
    return SAC_OK;
}

/* From the idle list, else new; when refused while enough bytes lie idle in other sizes, those are
 * given up and the request tried once more. */
static sac_result take(struct sac_buffer_pool *pool, int class_index, struct sac_buffer **out)
{
    if (++pool->requests % LOOK_REQUESTS == 0)
        free_idle(pool, IDLE_REQUESTS_MAX);
    *out = idle_take(pool, class_index);
    if (*out) {
        pool->stats.reuses++;
        return SAC_OK;
    }
    sac_result res = allocate(pool, class_index, out);
    if (res == SAC_OK || pool->stats.bytes_idle == 0)
        return res;
    if (pool->stats.bytes_idle >= class_size(class_index))
        pool->stats.fragmentation++;
    trim(pool);
    return allocate(pool, class_index, out);
}

static sac_result refuse(const struct sac_buffer_pool *pool, sac_result res, size_t bytes, uint64_t live,
                         const char *owner)
{
    if (res == SAC_ERR_LIMIT)
        return SAC_FAIL(pool->dev->ctx, res,
                        "%s: %zu bytes more on %s would pass its memory limit of %" PRIu64
                        " (%" PRIu64 " in use); raise the limit, or use a smaller batch",
                        owner, bytes, pool->where, pool->limit_bytes, live);
    return SAC_FAIL(pool->dev->ctx, res, "%s: no memory for %zu bytes on %s", owner, bytes, pool->where);
}

static sac_result create(struct sac_buffer_pool *pool, size_t bytes, const char *owner,
                         struct sac_buffer **out)
{
    struct sac_buffer *buf = NULL;
    int                class_index = class_of(bytes);
    if (!owner)
        owner = "buffer";
    if (class_index < 0)
        return refuse(pool, SAC_ERR_MEMORY, bytes, 0, owner);
    pthread_mutex_lock(&pool->lock);
    sac_result res = take(pool, class_index, &buf);
    if (res == SAC_OK) {
        sac_refcount_init(&buf->refs);
        buf->bytes = bytes;
        buf->born_ns = sac_time_ns();
        buf->keep = buf->reported = false;
        buf->desc = (struct sac_tensor_desc){0};
        snprintf(buf->owner, sizeof buf->owner, "%s", owner);
        live_insert(pool, buf);
    }
    uint64_t live = pool->stats.bytes_live;
    pthread_mutex_unlock(&pool->lock);
    if (res != SAC_OK)
        return refuse(pool, res, bytes, live, owner);
    sac_device_hold(pool->dev);
    *out = buf;
    return SAC_OK;
}

sac_result sac_buffer_create(sac_device *dev, size_t bytes, const char *owner, struct sac_buffer **out)
{
    return create(dev->pool, bytes, owner, out);
}

sac_result sac_host_buffer_create(sac_device *dev, size_t bytes, const char *owner,
                                  struct sac_buffer **out)
{
    return create(dev->host_pool ? dev->host_pool : dev->pool, bytes, owner, out);
}

struct sac_buffer *sac_buffer_ref(struct sac_buffer *buf)
{
    sac_refcount_inc(&buf->refs);
    return buf;
}

void sac_buffer_unref(struct sac_buffer **buf_at)
{
    struct sac_buffer *buf = buf_at ? *buf_at : NULL;
    if (!buf)
        return;
    *buf_at = NULL;
    if (!sac_refcount_dec(&buf->refs))
        return;
    struct sac_buffer_pool *pool = buf->pool;
    sac_device             *dev = pool->dev;
    pthread_mutex_lock(&pool->lock);
    live_remove(pool, buf);
    idle_put(pool, buf);
    pool->stats.returns++;
    pthread_mutex_unlock(&pool->lock);
    sac_device_release(dev); /* may close the device, and the pool with it */
}

void *sac_buffer_data(const struct sac_buffer *buf)
{
    return buf->data;
}

size_t sac_buffer_bytes(const struct sac_buffer *buf)
{
    return buf->bytes;
}

void sac_buffer_describe(struct sac_buffer *buf, const struct sac_tensor_desc *desc)
{
    pthread_mutex_lock(&buf->pool->lock);
    buf->desc = *desc;
    pthread_mutex_unlock(&buf->pool->lock);
}

void sac_buffer_keep(struct sac_buffer *buf)
{
    pthread_mutex_lock(&buf->pool->lock);
    buf->keep = true;
    pthread_mutex_unlock(&buf->pool->lock);
}

/* ---- reports ---- */

static void print_shape(const struct sac_tensor_desc *desc, char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    if (desc->dtype == SAC_DTYPE_NONE)
        return;
    at += (size_t)snprintf(out, size, ", %s [", sac_dtype_name(desc->dtype));
    for (int i = 0; i < desc->rank && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%" PRId64, i ? "," : "", desc->shape[i]);
    if (at < size)
        snprintf(out + at, size - at, "]");
}

static void print_buffer(const struct sac_buffer *buf, int64_t now_ns, char *out, size_t size)
{
    char shape[160];
    print_shape(&buf->desc, shape, sizeof shape);
    snprintf(out, size, "%s: '%s', %zu bytes%s, %.1f s old", buf->pool->where, buf->owner,
             buf->bytes, shape, (double)(now_ns - buf->born_ns) * 1e-9);
}

static void dump_live(struct sac_buffer_pool *pool, void (*fn)(void *user, const char *line), void *user)
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
                          void *user)
{
    dump_live(dev->pool, fn, user);
    if (dev->host_pool)
        dump_live(dev->host_pool, fn, user);
}

static void stats_of(struct sac_buffer_pool *pool, struct sac_pool_stats *out)
{
    pthread_mutex_lock(&pool->lock);
    *out = pool->stats;
    pthread_mutex_unlock(&pool->lock);
}

void sac_device_pool_stats(const sac_device *dev, struct sac_pool_stats *out)
{
    stats_of(dev->pool, out);
}

void sac_device_host_pool_stats(const sac_device *dev, struct sac_pool_stats *out)
{
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
        if (buf->reported || (buf->keep && !kept_too) || now_ns - buf->born_ns < age_ns)
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

/* ---- life ---- */

static sac_result pool_create(sac_device *dev, struct sac_buffer_pool preset, struct sac_buffer_pool **out)
{
    struct sac_buffer_pool *pool = sac_new(struct sac_buffer_pool);
    if (!pool)
        return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "%s: no memory for its buffer pool", dev->name);
    *pool = preset;
    pool->dev = dev;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->wake, &attr);
    pthread_condattr_destroy(&attr);
    sac_result res = SAC_OK;
    if (dev->params.leak_age_s > 0)
        res = sac_thread_start(dev->ctx, &pool->watcher, "sac-watcher", watch, pool);
    pool->watching = res == SAC_OK && dev->params.leak_age_s > 0;
    if (res == SAC_OK)
        *out = pool;
    else
        sac_buffer_pool_destroy(&pool);
    return res;
}

sac_result sac_buffer_pool_create(sac_device *dev, struct sac_buffer_pool **out)
{
    return pool_create(dev,
                       (struct sac_buffer_pool){.where = dev->name,
                                                .alloc = dev->ops->memory_alloc,
                                                .free = dev->ops->memory_free,
                                                .limit_bytes = dev->params.memory_limit_bytes},
                       out);
}

sac_result sac_host_pool_create(sac_device *dev, struct sac_buffer_pool **out)
{
    const uint64_t limit = dev->params.host_limit_bytes;
    return pool_create(dev,
                       (struct sac_buffer_pool){.where = "page-locked host memory",
                                                .alloc = dev->ops->host_alloc,
                                                .free = dev->ops->host_free,
                                                .limit_bytes = limit ? limit : HOST_BYTES_MAX},
                       out);
}

void sac_buffer_pool_destroy(struct sac_buffer_pool **pool_at)
{
    struct sac_buffer_pool *pool = pool_at ? *pool_at : NULL;
    if (!pool)
        return;
    *pool_at = NULL;
    if (pool->watching) {
        pthread_mutex_lock(&pool->lock);
        pool->quit = true;
        pthread_cond_signal(&pool->wake);
        pthread_mutex_unlock(&pool->lock);
        pthread_join(pool->watcher, NULL);
    }
    trim(pool);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    sac_free(pool);
}
