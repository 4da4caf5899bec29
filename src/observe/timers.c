/* SPDX-License-Identifier: Apache-2.0 */
/* Timers over histograms whose buckets grow with the value: 32 to each power of two, so a bucket is
 * at most 1/32 of its value wide and its middle at most 1.6 % off. Everything is an atomic counter:
 * any thread records without a lock. */
#include "observe/timers.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

enum {
    TIMERS_MAX = 64,
    SUB_BITS = SAC_TIMER_SUB_BITS,
    SUB = SAC_TIMER_SUB,
    POWERS = SAC_TIMER_POWERS,
    BUCKETS = SAC_TIMER_BUCKETS
};

struct timer {
    char                 name[32];
    atomic_uint_fast64_t count, total_ns, max_ns;
    atomic_uint_fast64_t bucket[BUCKETS];
};

struct sac_timers {
    sac_context    *ctx;
    atomic_int      on;
    pthread_mutex_t lock; /* held to add a timer */
    atomic_int      count;
    struct timer   *timer[TIMERS_MAX]; /* [count], written before count */
};

sac_result sac_timers_create(sac_context *ctx, sac_timers **out)
{
    SAC_NEEDS(ctx, out);
    sac_timers *timers = sac_new(sac_timers);
    if (!timers)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for a set of timers");
    timers->ctx = ctx;
    atomic_init(&timers->on, 1);
    pthread_mutex_init(&timers->lock, NULL);
    *out = timers;
    return SAC_OK;
}

void sac_timers_destroy(sac_timers **timers)
{
    if (!timers || !*timers)
        return;
    for (int i = 0; i < (*timers)->count; i++)
        sac_free((*timers)->timer[i]);
    pthread_mutex_destroy(&(*timers)->lock);
    sac_free(*timers);
    *timers = NULL;
}

void sac_timers_enable(sac_timers *timers, int on)
{
    if (!timers)
        return;
    atomic_store(&timers->on, on);
}

static int find(const sac_timers *timers, const char *name)
{
    int count = atomic_load_explicit(&timers->count, memory_order_acquire);
    for (int i = 0; i < count; i++)
        if (!strncmp(timers->timer[i]->name, name, sizeof timers->timer[i]->name - 1))
            return i;
    return -1;
}

/* Under the lock. */
static int add(sac_timers *timers, const char *name)
{
    int           count = atomic_load(&timers->count);
    struct timer *timer = count < TIMERS_MAX ? sac_new(struct timer) : NULL;
    if (!timer)
        return -1;
    snprintf(timer->name, sizeof timer->name, "%s", name);
    timers->timer[count] = timer;
    atomic_store_explicit(&timers->count, count + 1, memory_order_release);
    return count;
}

int sac_timers_id(sac_timers *timers, const char *name)
{
    if (!timers || !name)
        return -1;
    pthread_mutex_lock(&timers->lock);
    int id = find(timers, name);
    if (id < 0)
        id = add(timers, name);
    pthread_mutex_unlock(&timers->lock);
    return id;
}

/* ---- recording ---- */

int64_t sac_timer_begin(sac_timers *timers)
{
    if (!timers)
        return 0;
    return atomic_load_explicit(&timers->on, memory_order_relaxed) ? sac_time_ns() : 0;
}

void sac_timer_end(sac_timers *timers, int id, int64_t begun)
{
    if (!timers)
        return;
    if (begun)
        sac_timer_add(timers, id, sac_time_ns() - begun);
}

static int bucket_of(uint64_t ns)
{
    if (ns < SUB)
        return (int)ns;
    int power = 63 - __builtin_clzll(ns); /* at least SUB_BITS */
    if (power >= SUB_BITS + POWERS)
        return BUCKETS - 1;
    int shift = power - SUB_BITS;
    return SUB * (shift + 1) + (int)(ns >> shift) - SUB;
}

/* The middle of a bucket. */
static double bucket_ns(int i)
{
    if (i < SUB)
        return i;
    int shift = i / SUB - 1;
    return ((double)(SUB + i % SUB) + 0.5) * (double)((uint64_t)1 << shift);
}

static void raise_to(atomic_uint_fast64_t *max, uint64_t value)
{
    uint64_t seen = atomic_load_explicit(max, memory_order_relaxed);
    while (value > seen && !atomic_compare_exchange_weak_explicit(
                               max, &seen, value, memory_order_relaxed, memory_order_relaxed))
        ;
}

void sac_timer_add(sac_timers *timers, int id, int64_t duration_ns)
{
    if (!timers)
        return;
    if (!atomic_load_explicit(&timers->on, memory_order_relaxed) || id < 0 ||
        id >= atomic_load_explicit(&timers->count, memory_order_acquire))
        return;
    struct timer *timer = timers->timer[id];
    uint64_t      ns = duration_ns > 0 ? (uint64_t)duration_ns : 0;
    atomic_fetch_add_explicit(&timer->bucket[bucket_of(ns)], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&timer->total_ns, ns, memory_order_relaxed);
    raise_to(&timer->max_ns, ns);
    atomic_fetch_add_explicit(&timer->count, 1, memory_order_release);
}

/* ---- reading ---- */

/* The values at the given ranks (1 is the smallest), ranks growing; one walk over the buckets. */
static void values_at(const struct timer *timer, const uint64_t *rank, double *ns, int n)
{
    uint64_t seen = 0;
    int      next = 0;
    for (int i = 0; i < BUCKETS && next < n; i++) {
        seen += atomic_load_explicit(&timer->bucket[i], memory_order_relaxed);
        while (next < n && seen >= rank[next])
            ns[next++] = bucket_ns(i);
    }
}

/* Nearest rank: the smallest value that at least this share of the values does not exceed. */
static uint64_t rank_of(uint64_t count, int percent)
{
    return SAC_MAX((count * (uint64_t)percent + 99) / 100, 1);
}

static void summarise(const struct timer *timer, struct sac_timer_summary *out)
{
    uint64_t count = atomic_load_explicit(&timer->count, memory_order_acquire);
    double   total_ns = (double)atomic_load(&timer->total_ns);
    double   max_ns = (double)atomic_load(&timer->max_ns), ns[3] = {0};
    *out = (struct sac_timer_summary){.count = (int64_t)count};
    memcpy(out->name, timer->name, sizeof out->name);
    if (count == 0)
        return;
    values_at(timer, (uint64_t[]){rank_of(count, 50), rank_of(count, 95), rank_of(count, 99)}, ns,
              3);
    out->total_ms = total_ns * 1e-6;
    out->mean_ms = out->total_ms / (double)count;
    /* A bucket's middle may lie past the greatest value in it. */
    out->p50_ms = SAC_MIN(ns[0], max_ns) * 1e-6;
    out->p95_ms = SAC_MIN(ns[1], max_ns) * 1e-6;
    out->p99_ms = SAC_MIN(ns[2], max_ns) * 1e-6;
    out->max_ms = max_ns * 1e-6;
}

int sac_timers_summary(sac_timers *timers, struct sac_timer_summary *out, int max)
{
    int count = timers ? atomic_load_explicit(&timers->count, memory_order_acquire) : 0;
    for (int i = 0; out && i < SAC_MIN(count, max); i++)
        summarise(timers->timer[i], &out[i]);
    return count;
}

/* ---- between two looks ---- */

void sac_timer_get_counts(const sac_timers *timers, int id, struct sac_timer_counts *out)
{
    *out = (struct sac_timer_counts){0};
    if (!timers || id < 0 || id >= atomic_load_explicit(&timers->count, memory_order_acquire))
        return;
    const struct timer *timer = timers->timer[id];
    for (int i = 0; i < BUCKETS; i++) {
        out->bucket[i] = (uint32_t)atomic_load_explicit(&timer->bucket[i], memory_order_relaxed);
        out->count += out->bucket[i];
    }
}

double sac_timer_percentile_since(const struct sac_timer_counts *now,
                                  const struct sac_timer_counts *before, int percent)
{
    const uint32_t count = now->count - before->count;
    uint64_t above = count - (count ? rank_of(count, percent) : 0); /* its rank from the top */
    for (int i = BUCKETS - 1; i >= 0 && count; i--) {
        const uint32_t n = now->bucket[i] - before->bucket[i];
        if (n > above)
            return bucket_ns(i) * 1e-6;
        above -= n;
    }
    return NAN;
}
