/* SPDX-License-Identifier: Apache-2.0 */
/* Pooled device memory.
 *
 * A request is rounded up to a size class (four to each power of two, so at most a quarter is
 * wasted) and served from the idle buffers of that class, else from the device. A buffer returns
 * with its last reference, and is reused once the streams that it was used on are done with it. A
 * buffer that stays idle for long is freed, so that a size which was needed once does not stay. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "device/pool.h"

enum {
    HOST_BYTES_MAX = 512 << 20, /* page-locked memory is lost to all other programs */
    READ_PAST_BYTES = 64,       /* vector code may read this far past the end */
    /* How long an idle buffer stays. Buffers that the frame path uses repeatedly must not be freed
     * in between:
     * a new one costs a wait for all of the GPU. */
    IDLE_INTERVALS = 16,          /* minutes of a camera, a second of 32 files at full speed */
    IDLE_INTERVALS_REUSED = 1024, /* hours of a camera, a minute of 32 files */
    IDLE_REQUESTS_MAX = 512,      /* where no frames are counted */
    LOOK_REQUESTS = 64            /* how often that is looked at */
};

/* ---- size classes ---- */

/* Class i holds SAC_POOL_CLASS_BYTES_MIN * 2^(i/4) * (1 + (i%4)/4). */
static size_t class_size(int i)
{
    return ((size_t)SAC_POOL_CLASS_BYTES_MIN << (i / 4)) / 4 * (size_t)(4 + i % 4);
}

/* The smallest class that holds the bytes, or -1. */
static int class_of(size_t bytes)
{
    if (bytes <= SAC_POOL_CLASS_BYTES_MIN)
        return 0;
    if (bytes > class_size(SAC_POOL_CLASSES - 1))
        return -1;
    int power = 63 - __builtin_clzll(bytes); /* 2^power <= bytes */
    int i = (power - SAC_POOL_CLASS_BITS_MIN) * 4;
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
    uint64_t *use_live = &pool->use_live[buf->use], *use_peak = &pool->use_peak[buf->use];
    *use_live += buf->class_bytes;
    *use_peak = SAC_MAX(*use_peak, *use_live);
    sac_pool_kind_enter(pool, buf);
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
    pool->use_live[buf->use] -= buf->class_bytes;
    sac_pool_kind_leave(pool, buf);
}

/* The first idle buffer of the class that no stream works with, or NULL. wait: if there is none,
 * wait for the one that was released first. */
static struct sac_buffer *idle_take(struct sac_buffer_pool *pool, int class_index, bool wait)
{
    struct sac_buffer **at = &pool->idle[class_index], **found = NULL;
    for (; *at; at = &(*at)->next) {
        if (sac_uses_done(pool->dev, &(*at)->uses)) {
            found = at;
            break;
        }
        if (wait)
            found = at;
    }
    struct sac_buffer *buf = found ? *found : NULL;
    if (!buf)
        return NULL;
    sac_uses_wait(pool->dev, &buf->uses);
    *found = buf->next;
    buf->reused = true;
    pool->stats.bytes_idle -= buf->class_bytes;
    pool->stats.reuses++;
    return buf;
}

static void idle_put(struct sac_buffer_pool *pool, struct sac_buffer *buf)
{
    buf->idle_request = pool->requests;
    buf->idle_interval = pool->intervals;
    buf->idle_return = pool->stats.returns;
    buf->next = pool->idle[buf->class_index];
    pool->idle[buf->class_index] = buf;
    pool->stats.bytes_idle += buf->class_bytes;
}

/* ---- giving back to the device; all under the lock ---- */

static bool any(const struct sac_buffer_pool *pool, const struct sac_buffer *buf)
{
    (void)pool, (void)buf;
    return true;
}

static bool unwanted_by_requests(const struct sac_buffer_pool *pool, const struct sac_buffer *buf)
{
    return pool->requests - buf->idle_request >= IDLE_REQUESTS_MAX;
}

static bool unwanted_by_frames(const struct sac_buffer_pool *pool, const struct sac_buffer *buf)
{
    return pool->intervals - buf->idle_interval >
           (uint64_t)(buf->reused ? IDLE_INTERVALS_REUSED : IDLE_INTERVALS);
}

/* Take it out of its list and give it back. */
static void free_at(struct sac_buffer_pool *pool, struct sac_buffer **at)
{
    struct sac_buffer *buf = *at;
    *at = buf->next;
    pool->stats.bytes_idle -= buf->class_bytes;
    pool->stats.bytes_trimmed += buf->class_bytes;
    pool->buffers--;
    sac_uses_wait(pool->dev, &buf->uses);
    sac_uses_finish(pool->dev, &buf->uses);
    pool->free(pool->dev, buf->data);
    sac_free(buf);
}

static void free_idle(struct sac_buffer_pool *pool,
                      bool (*which)(const struct sac_buffer_pool *pool,
                                    const struct sac_buffer      *buf))
{
    const uint64_t before = pool->stats.bytes_trimmed;
    for (int i = 0; i < SAC_POOL_CLASSES; i++)
        for (struct sac_buffer **at = &pool->idle[i], *buf; (buf = *at);)
            if (which(pool, buf))
                free_at(pool, at);
            else
                at = &buf->next;
    pool->stats.trims += pool->stats.bytes_trimmed > before;
}

/* The one that has been idle for the longest. */
static void free_oldest(struct sac_buffer_pool *pool)
{
    struct sac_buffer **oldest = NULL;
    for (int i = 0; i < SAC_POOL_CLASSES; i++)
        for (struct sac_buffer **at = &pool->idle[i]; *at; at = &(*at)->next)
            if (!oldest || (*at)->idle_return < (*oldest)->idle_return)
                oldest = at;
    if (!oldest)
        return;
    free_at(pool, oldest);
    pool->stats.trims++;
}

static void end_interval(struct sac_buffer_pool *pool)
{
    pool->intervals++;
    free_idle(pool, unwanted_by_frames);
}

static void trim(struct sac_buffer_pool *pool)
{
    free_idle(pool, any);
}

static void for_each_pool(sac_device *dev, void (*fn)(struct sac_buffer_pool *pool))
{
    struct sac_buffer_pool *pools[] = {dev->pool, dev->host_pool};
    for (size_t i = 0; i < SAC_COUNT(pools); i++) {
        if (!pools[i])
            continue;
        pthread_mutex_lock(&pools[i]->lock);
        fn(pools[i]);
        pthread_mutex_unlock(&pools[i]->lock);
    }
}

void sac_device_pool_trim(sac_device *dev)
{
    for_each_pool(dev, trim);
}

uint64_t sac_device_trim(sac_device *dev)
{
    uint64_t bytes = 0;
    if (!dev)
        return 0;
    struct sac_buffer_pool *pools[] = {dev->pool, dev->host_pool};
    for (size_t i = 0; i < SAC_COUNT(pools); i++) {
        if (!pools[i])
            continue;
        pthread_mutex_lock(&pools[i]->lock);
        bytes += pools[i]->stats.bytes_idle;
        trim(pools[i]);
        pthread_mutex_unlock(&pools[i]->lock);
    }
    return bytes;
}

sac_result sac_device_get_memory(const sac_device *dev, struct sac_device_memory *out)
{
    SAC_NEEDS(NULL, dev);
    SAC_NEEDS(dev->ctx, out);
    struct sac_device_memory m = {.bytes_limit = dev->pool->limit_bytes};
    sac_device_pool_stats(dev, &m.pool);
    sac_device_host_pool_stats(dev, &m.host_pool);
    if (dev->host_pool)
        m.host_bytes_limit = dev->host_pool->limit_bytes;
    sac_result res = SAC_OK;
    if (dev->ops->memory_info)
        res = dev->ops->memory_info((sac_device *)dev, &m.bytes_free, &m.bytes_total);
    if (res == SAC_OK)
        *out = m;
    return res;
}

double sac_device_memory_used(sac_device *dev)
{
    struct sac_device_memory m;
    if (sac_device_get_memory(dev, &m) != SAC_OK)
        return 0;
    const double share = dev->params.memory_share_max > 0 ? dev->params.memory_share_max : 1;
    const double taken = (double)m.bytes_total - (double)m.bytes_free - (double)m.pool.bytes_idle;
    const double own = m.bytes_limit ? (double)m.pool.bytes_live / (double)m.bytes_limit : 0;
    const double all = m.bytes_total ? taken / (share * (double)m.bytes_total) : 0;
    return SAC_MAX(own, all);
}

void sac_device_count_frames(sac_device *dev, int n)
{
    const uint64_t every = (uint64_t)SAC_MAX(dev->params.trim_frames, 0);
    const uint64_t before =
        atomic_fetch_add_explicit(&dev->frames, (uint64_t)n, memory_order_relaxed);
    if (every && before / every != (before + (uint64_t)n) / every)
        for_each_pool(dev, end_interval);
}

/* ---- taking and giving back ---- */

static bool over_budget(const struct sac_buffer_pool *pool, uint64_t more)
{
    uint64_t limit = pool->limit_bytes;
    uint64_t held = pool->stats.bytes_live + pool->stats.bytes_idle;
    return limit && (held > limit || more > limit - held);
}

static uint64_t frames_of(const struct sac_buffer_pool *pool)
{
    return atomic_load_explicit(&pool->dev->frames, memory_order_relaxed);
}

static bool is_crowded(const struct sac_buffer_pool *pool)
{
    return pool->buffers_max && pool->buffers >= pool->buffers_max;
}

/* One new buffer from the device; under the lock. */
static sac_result allocate(struct sac_buffer_pool *pool, int class_index, struct sac_buffer **out)
{
    size_t bytes = class_size(class_index);
    if (is_crowded(pool))
        free_oldest(pool);
    if (is_crowded(pool) || over_budget(pool, bytes))
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
    pool->buffers++;
    pool->stats.allocations++;
    pool->stats.allocations_start += frames_of(pool) == 0;
    pool->stats.allocations_warm += frames_of(pool) >= SAC_POOL_WARM_FRAMES;
    *out = buf;
    return SAC_OK;
}

/* Take a buffer from the idle list, else a new one; if that fails, wait for one of this size that a
 * stream still uses; if other sizes have enough idle bytes, free those and try once more. After the
 * first frames waiting comes before a new buffer, which would wait for all of the GPU. */
static sac_result take(struct sac_buffer_pool *pool, int class_index, struct sac_buffer **out)
{
    *out = NULL;
    if (pool->dev->without & SAC_WITHOUT_POOL)
        trim(pool);
    else
        *out = idle_take(pool, class_index, frames_of(pool) >= SAC_POOL_WARM_FRAMES);
    if (*out)
        return SAC_OK;
    sac_result res = allocate(pool, class_index, out);
    if (res != SAC_OK)
        *out = idle_take(pool, class_index, true);
    if (*out || pool->stats.bytes_idle == 0)
        return *out ? SAC_OK : res;
    if (pool->stats.bytes_idle >= class_size(class_index))
        pool->stats.fragmentation++;
    trim(pool);
    return allocate(pool, class_index, out);
}

static void count_request(struct sac_buffer_pool *pool)
{
    const uint64_t frames = frames_of(pool);
    pool->stats.requests_start += frames == 0;
    pool->stats.requests_warm += frames >= SAC_POOL_WARM_FRAMES;
    if (++pool->requests % LOOK_REQUESTS == 0 && frames == 0 && pool->dev->params.trim_frames > 0)
        free_idle(pool, unwanted_by_requests);
}

/* live: bytes in use; crowded: with as many buffers as there may be. */
static sac_result refuse(const struct sac_buffer_pool *pool, sac_result res, size_t bytes,
                         uint64_t live, bool crowded, const char *owner)
{
    if (res == SAC_ERR_LIMIT && crowded)
        return SAC_FAIL(pool->dev->ctx, res,
                        "%s: %s has %" PRIu64 " buffers in use, which is its limit; raise it "
                        "(--pool-buffers), or use a smaller batch",
                        owner, pool->where, pool->buffers_max);
    if (res == SAC_ERR_LIMIT)
        return SAC_FAIL(pool->dev->ctx, res,
                        "%s: %zu bytes more on %s would pass its memory limit of %" PRIu64
                        " (%" PRIu64 " in use); %s",
                        owner, bytes, pool->where, pool->limit_bytes, live,
                        pool == pool->dev->host_pool ? "raise it (--host-limit)"
                                                     : "raise the limit, or use a smaller batch");
    uint64_t left = 0, total = 0;
    char     room[64] = "";
    if (pool == pool->dev->pool && pool->dev->ops->memory_info &&
        pool->dev->ops->memory_info(pool->dev, &left, &total) == SAC_OK)
        snprintf(room, sizeof room, ", %" PRIu64 " of %" PRIu64 " free", left, total);
    return SAC_FAIL(pool->dev->ctx, res,
                    "%s: no memory for %zu bytes on %s (%" PRIu64 " in use by this run%s)", owner,
                    bytes, pool->where, live, room);
}

/* Of a file's path that is too long the end says most. */
static void name_owner(struct sac_buffer *buf, const char *owner)
{
    const size_t length = strlen(owner), room = sizeof buf->owner - 1;
    if (length <= room)
        memcpy(buf->owner, owner, length + 1);
    else
        snprintf(buf->owner, sizeof buf->owner, "...%s", owner + length - (room - 3));
}

/* Set the buffer up for its holder, before it joins the live list. */
static void enter_books(struct sac_buffer *buf, size_t bytes, const char *owner, bool own)
{
    sac_refcount_init(&buf->refs);
    buf->bytes = bytes;
    buf->born_ns = sac_time_ns();
    buf->own = buf->keep = own;
    buf->desc = (struct sac_tensor_desc){0};
    buf->use = buf->pool->dev->memory_use();
    name_owner(buf, owner);
    live_insert(buf->pool, buf);
}

static sac_result create(struct sac_buffer_pool *pool, size_t bytes, const char *owner, bool own,
                         struct sac_buffer **out)
{
    struct sac_buffer *buf = NULL;
    int                class_index = class_of(bytes);
    if (!owner)
        owner = "buffer";
    if (class_index < 0)
        return refuse(pool, SAC_ERR_MEMORY, bytes, 0, false, owner);
    pthread_mutex_lock(&pool->lock);
    const uint64_t late_before = pool->stats.allocations_warm;
    count_request(pool);
    sac_result res = take(pool, class_index, &buf);
    if (res == SAC_OK)
        enter_books(buf, bytes, owner, own);
    uint64_t   live = pool->stats.bytes_live;
    const bool late = pool->stats.allocations_warm > late_before, crowded = is_crowded(pool);
    pthread_mutex_unlock(&pool->lock);
    if (res != SAC_OK)
        return refuse(pool, res, bytes, live, crowded, owner);
    if (late)
        sac_log(pool->dev->ctx, SAC_LOG_DEBUG, "%s: new after the first %d frames: '%s', %zu bytes",
                pool->where, SAC_POOL_WARM_FRAMES, owner, bytes);
    if (!own)
        sac_device_hold(pool->dev);
    *out = buf;
    return SAC_OK;
}

sac_result sac_buffer_reserve(sac_device *dev, uint64_t bytes, const char *owner,
                              struct sac_buffer **out)
{
    struct sac_buffer_pool *pool = dev->pool;
    struct sac_buffer      *buf = sac_new(struct sac_buffer);
    if (!buf)
        return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "%s: no memory for its place in the books",
                        owner);
    buf->pool = pool;
    buf->class_bytes = bytes;
    pthread_mutex_lock(&pool->lock);
    if (over_budget(pool, bytes))
        trim(pool);
    const bool refused = over_budget(pool, bytes);
    if (!refused)
        enter_books(buf, bytes, owner, false);
    buf->keep = true;
    uint64_t live = pool->stats.bytes_live;
    pthread_mutex_unlock(&pool->lock);
    if (refused) {
        sac_free(buf);
        return refuse(pool, SAC_ERR_LIMIT, bytes, live, false, owner);
    }
    sac_device_hold(dev);
    *out = buf;
    return SAC_OK;
}

sac_result sac_buffer_create(sac_device *dev, size_t bytes, const char *owner,
                             struct sac_buffer **out)
{
    return create(dev->pool, bytes, owner, false, out);
}

sac_result sac_host_buffer_create(sac_device *dev, size_t bytes, const char *owner,
                                  struct sac_buffer **out)
{
    return create(dev->host_pool ? dev->host_pool : dev->pool, bytes, owner, false, out);
}

sac_result sac_mirror_open(sac_device *dev, void *at, size_t bytes, const char *owner,
                           struct sac_mirror *out)
{
    struct sac_buffer *buf = NULL;
    sac_result         res = SAC_OK;
    if (dev->host_pool)
        res = sac_host_buffer_create(dev, bytes, owner, &buf);
    if (res == SAC_OK)
        *out = (struct sac_mirror){buf ? sac_buffer_data(buf) : at, buf};
    return res;
}

void sac_mirror_close(struct sac_mirror *mirror)
{
    sac_buffer_unref(&mirror->buf);
    mirror->data = NULL;
}

sac_result sac_buffer_create_own(sac_device *dev, size_t bytes, const char *owner, bool host,
                                 struct sac_buffer **out)
{
    return create(host && dev->host_pool ? dev->host_pool : dev->pool, bytes, owner, true, out);
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
    sac_uses_settle(dev, &buf->uses); /* others wait for it under the lock */
    pthread_mutex_lock(&pool->lock);
    const bool own = buf->own;
    live_remove(pool, buf);
    if (buf->data) {
        pool->stats.returns++;
        idle_put(pool, buf);
    } else {
        sac_free(buf); /* reserved */
    }
    pthread_mutex_unlock(&pool->lock);
    if (!own)
        sac_device_release(dev); /* may close the device, and the pool with it */
}

bool sac_buffer_is_free(struct sac_buffer *buf, bool wait)
{
    if (atomic_load_explicit(&buf->refs.count, memory_order_acquire) != 1)
        return false;
    pthread_mutex_lock(&buf->pool->lock);
    bool done = sac_uses_done(buf->pool->dev, &buf->uses);
    if (!done && wait) {
        sac_uses_wait(buf->pool->dev, &buf->uses);
        done = true;
    }
    pthread_mutex_unlock(&buf->pool->lock);
    return done;
}

void *sac_buffer_data(const struct sac_buffer *buf)
{
    return buf->data;
}

size_t sac_buffer_bytes(const struct sac_buffer *buf)
{
    return buf->bytes;
}

void sac_buffer_used(struct sac_buffer *buf, struct sac_device_stream *stream)
{
    if (!stream)
        return;
    pthread_mutex_lock(&buf->pool->lock);
    sac_uses_add(buf->pool->dev, &buf->uses, stream);
    pthread_mutex_unlock(&buf->pool->lock);
}

/* ---- life ---- */

static sac_result pool_create(sac_device *dev, struct sac_buffer_pool preset,
                              struct sac_buffer_pool **out)
{
    struct sac_buffer_pool *pool = sac_new(struct sac_buffer_pool);
    if (!pool)
        return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "%s: no memory for its buffer pool", dev->name);
    *pool = preset;
    pool->dev = dev;
    pool->begun_ns = sac_time_ns();
    pthread_mutex_init(&pool->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->wake, &attr);
    pthread_condattr_destroy(&attr);
    sac_result res = sac_pool_watch(pool);
    if (res == SAC_OK)
        *out = pool;
    else
        sac_buffer_pool_destroy(&pool);
    return res;
}

/* The budget that was given; else a GPU's is a share of what it has, so that the driver and others
 * find room beside it. */
static uint64_t limit_of(sac_device *dev)
{
    const struct sac_device_params *p = &dev->params;
    uint64_t                        left, total;
    if (!dev->ops->host_memory && p->vram_limit_bytes)
        return p->vram_limit_bytes;
    if (p->memory_limit_bytes || p->memory_share_max <= 0 || !dev->ops->memory_info ||
        dev->ops->memory_info(dev, &left, &total) != SAC_OK)
        return p->memory_limit_bytes;
    return (uint64_t)(p->memory_share_max * (double)total);
}

sac_result sac_buffer_pool_create(sac_device *dev, struct sac_buffer_pool **out)
{
    return pool_create(dev,
                       (struct sac_buffer_pool){.where = dev->name,
                                                .alloc = dev->ops->memory_alloc,
                                                .free = dev->ops->memory_free,
                                                .limit_bytes = limit_of(dev),
                                                .buffers_max = dev->params.buffers_max},
                       out);
}

/* Of a device that copies from any host memory. */
static sac_result plain_alloc(struct sac_device *dev, size_t bytes, void **out)
{
    (void)dev;
    *out = sac_alloc_aligned(64, bytes);
    return *out ? SAC_OK : SAC_ERR_MEMORY;
}

static void plain_free(struct sac_device *dev, void *p)
{
    (void)dev;
    sac_free(p);
}

sac_result sac_host_pool_create(sac_device *dev, struct sac_buffer_pool **out)
{
    const uint64_t limit = dev->params.host_limit_bytes;
    const bool     locked = dev->ops->host_alloc && !(dev->without & SAC_WITHOUT_PAGE_LOCKED);
    return pool_create(
        dev,
        (struct sac_buffer_pool){.where = locked ? "page-locked host memory" : "host memory",
                                 .alloc = locked ? dev->ops->host_alloc : plain_alloc,
                                 .free = locked ? dev->ops->host_free : plain_free,
                                 .limit_bytes = limit ? limit : HOST_BYTES_MAX},
        out);
}

void sac_buffer_pool_destroy(struct sac_buffer_pool **pool_at)
{
    struct sac_buffer_pool *pool = pool_at ? *pool_at : NULL;
    if (!pool)
        return;
    *pool_at = NULL;
    sac_pool_unwatch(pool);
    trim(pool);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    sac_free(pool);
}
