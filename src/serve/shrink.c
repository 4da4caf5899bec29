/* SPDX-License-Identifier: Apache-2.0 */
/* A batch that failed, mostly because memory ran out. */
#include "serve/collect.h"

static const int64_t SMALL_MAX_NS = 3600000000000;

static void resize(struct sac_collector *c, int size)
{
    const int before = c->limit;
    c->limit = size;
    if (c->calls->resized)
        c->calls->resized(c->user, before, size);
}

void sac_collector_shrink(struct sac_collector *c, int size)
{
    c->shrunk_ns = c->shrunk_ns ? SAC_MIN(2 * c->shrunk_ns, SMALL_MAX_NS) : c->small_ns;
    c->grow_ns = sac_time_ns() + c->shrunk_ns;
    if (size >= c->limit)
        return;
    sac_log(c->dev->ctx, SAC_LOG_WARN,
            "%s has no memory for batches of %d %s: they have up to %d now",
            sac_device_name(c->dev), c->limit, c->unit, size);
    resize(c, size);
}

void sac_collector_grow(struct sac_collector *c)
{
    if (c->grow_ns == 0 || sac_time_ns() < c->grow_ns)
        return;
    if (c->target > 0 && sac_device_memory_used(c->dev) > c->target) {
        c->grow_ns = sac_time_ns() + c->small_ns;
        return;
    }
    if (c->calls->eased)
        c->calls->eased(c->user);
    c->grow_ns = 0;
    if (c->limit >= c->most)
        return;
    resize(c, SAC_MIN(2 * c->limit, c->most));
    c->grow_ns = sac_time_ns() + c->shrunk_ns;
    sac_log(c->dev->ctx, SAC_LOG_INFO, "batches of up to %d %s are tried again", c->limit, c->unit);
}

static void halve(struct sac_collector *c, struct sac_pieces *p, int n)
{
    sac_device_pool_trim(c->dev);
    sac_collector_shrink(c, p->size = n / 2);
}

void sac_collector_retry(struct sac_collector *c, struct sac_batch *b, int n, sac_result res)
{
    const struct sac_collector_calls *calls = c->calls;
    struct sac_pieces                 p = {.n = n, .size = 1};
    if (sac_is_out_of_memory(res) && n > 1)
        halve(c, &p, n);
    if (calls->sort_out)
        calls->sort_out(c->user, b, &p);
    while (p.at < p.n) {
        const int m = SAC_MIN(p.size, p.n - p.at);
        if (calls->skips && calls->skips(c->user, p.at)) {
            p.at++;
            continue;
        }
        res = calls->again(c->user, b, p.at, m);
        const bool short_of = sac_is_out_of_memory(res);
        if (res == SAC_OK)
            p.at += m;
        else if (!short_of && m > 1)
            p.size = 1;
        else if (short_of && m > 1)
            halve(c, &p, m);
        else if (!short_of || !calls->find_room || !calls->find_room(c->user, b, &p, res))
            calls->fail(c->user, p.at++, res);
    }
}
