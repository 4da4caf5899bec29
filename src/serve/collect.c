/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/collect.h"

#include <limits.h>

/* How often to check whether a batch has arrived, while no item comes. */
static const int64_t LOOK_NS = 200000;

struct sac_batch *sac_collector_batch(struct sac_collector *c, int n)
{
    return &c->ring[(c->first + n) % (int)SAC_COUNT(c->ring)];
}

static bool add(struct sac_batch *b, const struct sac_collected *got)
{
    if (!sac_grow((void **)&b->items, &b->capacity, b->count + 1, sizeof(*b->items)))
        return false;
    b->items[b->count++] = got->item;
    b->size += got->size;
    return true;
}

/* The oldest batch under way. */
static void land(struct sac_collector *c)
{
    struct sac_batch *b = sac_collector_batch(c, 0);
    c->calls->land(c->user, b);
    b->count = 0;
    b->size = 0;
    c->first = (c->first + 1) % (int)SAC_COUNT(c->ring);
    c->under_way--;
}

static void land_all(struct sac_collector *c)
{
    while (c->under_way > 0)
        land(c);
}

static bool has_arrived(const struct sac_collector *c)
{
    const struct sac_batch *b = &c->ring[c->first];
    return c->under_way > 0 && (b->begun != SAC_OK || c->calls->arrived(c->user, b));
}

/* Enough for the device as it is: none waits for another. */
static bool is_enough(const struct sac_collector *c, const struct sac_batch *b)
{
    if (b->size == 0 || c->under_way >= c->depth)
        return false;
    return (c->preferred > 0 && b->size >= c->preferred) ||
           (c->under_way < SAC_MAX(c->idle, 1) && c->least > 0 && b->size >= c->least);
}

/* How long to wait for an item. Never long while a batch is under way. */
static int64_t patience(const struct sac_collector *c, const struct sac_batch *b, int64_t until_ns)
{
    const int64_t left = b->size ? SAC_MAX(until_ns - sac_time_ns(), 0) : -1;
    if (is_enough(c, b))
        return 0;
    if (c->under_way == 0)
        return left;
    return left < 0 || c->under_way >= c->depth ? LOOK_NS : SAC_MIN(left, LOOK_NS);
}

/* Every item that may be inside is in this batch or under way: no other comes before one of those
 * is done. */
static bool has_all(struct sac_collector *c, const struct sac_batch *b)
{
    const int64_t room = c->calls->room ? c->calls->room(c->user) : 0;
    int64_t       held = b->size;
    for (int i = 0; i < c->under_way; i++)
        held += sac_collector_batch(c, i)->size;
    return room > 0 && held >= room;
}

/* A mark without items before it in this batch: after the batches under way, or at once. */
static void pass_mark(struct sac_collector *c, const struct sac_collected *mark)
{
    if (c->under_way == 0 || !add(sac_collector_batch(c, c->under_way - 1), mark)) {
        land_all(c);
        c->calls->alone(c->user, mark->item, SAC_OK);
    }
}

static void take(struct sac_collector *c, struct sac_batch *b, const struct sac_collected *got)
{
    if (c->calls->refuses && c->calls->refuses(c->user, got->item))
        return;
    if (got->size == 0 && b->size == 0) {
        pass_mark(c, got);
    } else if (!add(b, got)) {
        land_all(c);
        c->calls->alone(c->user, got->item, SAC_ERR_MEMORY);
    }
}

/* Fill the next batch until it is full, its time is over, no more can come for now, there are
 * enough, or a mark comes while the device has nothing to do. Batches that arrive meanwhile are
 * landed. false: no more items will come. */
static bool collect(struct sac_collector *c, struct sac_batch *b)
{
    int64_t until_ns = 0;
    bool    marked = false;
    sac_collector_grow(c);
    while (b->size < c->limit) {
        struct sac_collected got;
        if (has_arrived(c) || (c->late && c->under_way >= c->depth))
            land(c);
        if (b->size &&
            ((marked && c->under_way == 0) || (c->under_way < c->depth && has_all(c, b))))
            return true;
        const int  room = b->size ? c->limit - b->size : INT_MAX;
        sac_result res = c->calls->next_wait(c->user, room, patience(c, b, until_ns), &got);
        if (res == SAC_OK) {
            const int64_t own_ns = got.since_ns + c->timeout_ns;
            until_ns = b->size ? SAC_MIN(until_ns, own_ns) : own_ns;
            take(c, b, &got);
            marked |= got.size == 0 && b->size;
        } else if (res == SAC_ERR_LIMIT) {
            return true;
        } else if (res != SAC_AGAIN) {
            return false;
        } else if (is_enough(c, b) ||
                   (b->size && sac_time_ns() >= until_ns && c->under_way < c->depth)) {
            return true;
        }
    }
    return true;
}

void sac_collector_run(struct sac_collector *c)
{
    c->limit = c->most;
    for (bool more = true; more;) {
        struct sac_batch *b = sac_collector_batch(c, c->under_way);
        more = collect(c, b);
        if (b->size == 0)
            continue;
        while (c->under_way >= c->depth)
            land(c);
        b->slot = (int)(c->turn++ % (unsigned)c->slots);
        b->begun = c->calls->begin(c->user, b);
        c->under_way++;
    }
    land_all(c);
}

void sac_collector_finish(struct sac_collector *c)
{
    for (size_t i = 0; i < SAC_COUNT(c->ring); i++) {
        sac_free(c->ring[i].items);
        c->ring[i] = (struct sac_batch){0};
    }
}
