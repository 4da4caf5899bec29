/* SPDX-License-Identifier: Apache-2.0 */
/* What a pool's memory was used for at most, by owner and size. It costs a request a sum over the
 * owner's name and a look through the sums of all rows, which lie side by side: about 10 ns of 100
 * with 60 rows (one core of an AMD EPYC, 2026-11-27), so it is always on. */
#include <stdio.h>
#include <string.h>

#include "device/pool.h"

/* FNV-1a over the name, then the size. */
static uint32_t hash_of(const struct sac_buffer *buf)
{
    uint32_t hash = 2166136261u;
    for (const char *c = buf->owner; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 16777619u;
    return (hash ^ (uint32_t)(buf->class_bytes ^ (buf->class_bytes >> 32))) * 16777619u;
}

static uint64_t bytes_peak(const struct sac_pool_kind *kind)
{
    return kind->most * kind->class_bytes;
}

static int find(const struct sac_buffer_pool *pool, const struct sac_buffer *buf, uint32_t hash)
{
    for (int i = 0; i < pool->kind_count; i++)
        if (pool->kind_hash[i] == hash && pool->kind[i].class_bytes == buf->class_bytes &&
            strcmp(pool->kind[i].owner, buf->owner) == 0)
            return i;
    return -1;
}

/* A row that none has yet, or that of the smallest kind that is not in use; -1: all are larger. */
static int find_room(struct sac_buffer_pool *pool, const struct sac_buffer *buf)
{
    int least = -1;
    if (pool->kind_count < SAC_POOL_KINDS)
        return pool->kind_count++;
    for (int i = 0; i < pool->kind_count; i++)
        if (!pool->kind[i].live && bytes_peak(&pool->kind[i]) < buf->class_bytes &&
            (least < 0 || bytes_peak(&pool->kind[i]) < bytes_peak(&pool->kind[least])))
            least = i;
    return least;
}

static int add(struct sac_buffer_pool *pool, const struct sac_buffer *buf, uint32_t hash)
{
    const int at = find_room(pool, buf);
    if (at < 0)
        return -1;
    pool->kind_hash[at] = hash;
    pool->kind[at] = (struct sac_pool_kind){
        .use = buf->use, .class_bytes = buf->class_bytes, .first_ns = buf->born_ns};
    memcpy(pool->kind[at].owner, buf->owner, sizeof buf->owner);
    return at;
}

void sac_pool_kind_enter(struct sac_buffer_pool *pool, struct sac_buffer *buf)
{
    const uint32_t hash = hash_of(buf);
    buf->kind = find(pool, buf, hash);
    if (buf->kind < 0)
        buf->kind = add(pool, buf, hash);
    if (buf->kind < 0)
        return;
    struct sac_pool_kind *kind = &pool->kind[buf->kind];
    kind->live++;
    kind->requests++;
    kind->most = SAC_MAX(kind->most, kind->live);
    kind->bytes = SAC_MAX(kind->bytes, buf->bytes);
    kind->last_ns = buf->born_ns;
}

void sac_pool_kind_leave(struct sac_buffer_pool *pool, const struct sac_buffer *buf)
{
    if (buf->kind >= 0)
        pool->kind[buf->kind].live--;
}

void sac_pool_kind_describe(struct sac_buffer_pool *pool, const struct sac_buffer *buf)
{
    if (buf->kind >= 0)
        pool->kind[buf->kind].desc = buf->desc;
}

/* ---- the list ---- */

static void fill(const struct sac_buffer_pool *pool, const struct sac_pool_kind *kind,
                 struct sac_allocation *out)
{
    *out = (struct sac_allocation){
        .bytes = kind->bytes,
        .count = kind->live,
        .count_peak = kind->most,
        .bytes_live = kind->live * kind->class_bytes,
        .bytes_peak = bytes_peak(kind),
        .requests = kind->requests,
        .first_s = (double)(kind->first_ns - pool->begun_ns) * 1e-9,
        .last_s = (double)(kind->last_ns - pool->begun_ns) * 1e-9,
    };
    snprintf(out->owner, sizeof out->owner, "%s", kind->owner);
    snprintf(out->place, sizeof out->place, "%s", pool->where);
    if (kind->desc.dtype != SAC_DTYPE_NONE)
        sac_tensor_desc_print(&kind->desc, out->shape, sizeof out->shape);
}

/* Keep the list of n in order; returns its new length. */
static int insert(struct sac_allocation *out, enum sac_memory_use *use, int n, int max,
                  const struct sac_buffer_pool *pool, const struct sac_pool_kind *kind)
{
    int at = n;
    while (at > 0 && out[at - 1].bytes_peak < bytes_peak(kind))
        at--;
    if (at == max)
        return n;
    const int moved = SAC_MIN(n, max - 1) - at;
    memmove(&out[at + 1], &out[at], (size_t)moved * sizeof *out);
    memmove(&use[at + 1], &use[at], (size_t)moved * sizeof *use);
    fill(pool, kind, &out[at]);
    use[at] = kind->use;
    return SAC_MIN(n + 1, max);
}

int sac_device_list_kinds(const sac_device *dev, struct sac_allocation *out,
                          enum sac_memory_use *use, int max)
{
    struct sac_buffer_pool *pools[] = {dev->pool, dev->host_pool};
    int                     n = 0;
    for (size_t i = 0; i < SAC_COUNT(pools); i++) {
        if (!pools[i])
            continue;
        pthread_mutex_lock(&pools[i]->lock);
        for (int k = 0; k < pools[i]->kind_count; k++)
            n = insert(out, use, n, max, pools[i], &pools[i]->kind[k]);
        pthread_mutex_unlock(&pools[i]->lock);
    }
    return n;
}

int sac_device_get_allocations(const sac_device *dev, struct sac_allocation *out, int max)
{
    enum sac_memory_use use[SAC_ALLOCATIONS_MAX];
    if (!dev || !out || max < 1)
        return 0;
    return sac_device_list_kinds(dev, out, use, SAC_MIN(max, (int)SAC_ALLOCATIONS_MAX));
}
