/* SPDX-License-Identifier: Apache-2.0 */
/* Ways to compute convolutions, made ready by several threads. One whose kernel NVRTC compiles
 * takes a quarter of a second, one from the cache milliseconds, and a network has hundreds. So a
 * plan's convolutions are noted before the first of them is prepared; when that asks for its ways,
 * those of all of them are made, each thread with a cuDNN handle of its own. Nothing is measured
 * meanwhile. The thread that prepares a plan has its own list. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "engine/cuda/products/conv_kernel.h"

struct noted {
    char             key[CONV_KEY_MAX];
    struct conv_spec spec;
    enum noted_kind {
        NOTED_KNOWN,  /* one choice */
        NOTED_LIKELY, /* nothing may be measured: all are listed, and the first is made */
        NOTED_ALL     /* all are made, to be measured */
    } kind;
    struct conv_ways   list;
    bool               made;
    struct conv_ready *ready[CONV_TRIED_MAX]; /* NULL: does not run here, or was taken */
};

static _Thread_local struct {
    struct noted **items;
    size_t         count, capacity;
} ahead;

/* ---- the list ---- */

static struct noted *find(const char *key)
{
    for (size_t i = 0; i < ahead.count; i++)
        if (strcmp(ahead.items[i]->key, key) == 0)
            return ahead.items[i];
    return NULL;
}

/* NULL: no memory. */
static struct noted *note(const char *key, const struct conv_spec *spec, enum noted_kind kind)
{
    struct noted *n = sac_new(struct noted);
    if (!n ||
        !sac_grow((void **)&ahead.items, &ahead.capacity, ahead.count + 1, sizeof *ahead.items)) {
        sac_free(n);
        return NULL;
    }
    snprintf(n->key, sizeof n->key, "%s", key);
    n->spec = *spec;
    n->kind = kind;
    ahead.items[ahead.count++] = n;
    return n;
}

static void drop(struct noted *n)
{
    for (int i = 0; i < n->list.count; i++)
        conv_ready_destroy(n->ready[i]);
    for (size_t i = 0; i < ahead.count; i++)
        if (ahead.items[i] == n)
            ahead.items[i] = ahead.items[--ahead.count];
    sac_free(n);
}

static bool is_in_use(const char *key, const struct conv_choice *choice)
{
    struct conv_ready *r = conv_share(key, choice);
    const bool         used = r != NULL;
    conv_ready_unref(&r);
    return used;
}

void conv_foresee(struct sac_device *dev, const struct sac_kernel_plan *plan)
{
    struct conv_spec   spec;
    struct conv_choice choice;
    char               key[CONV_KEY_MAX], why[128];
    if (!conv_spec_read(plan, &spec, why, sizeof why) || !conv_key(dev, &spec, key) || find(key))
        return;
    if (!conv_known_choice(plan, &spec, key, &choice)) {
        if (plan->measure || !is_in_use(key, NULL))
            note(key, &spec, plan->measure ? NOTED_ALL : NOTED_LIKELY);
    } else if (choice.way <= CONV_CUDNN_PLAIN && !is_in_use(key, &choice)) {
        struct noted *n = note(key, &spec, NOTED_KNOWN); /* our own kernels need no making */
        if (n)
            n->list = (struct conv_ways){.items[0].choice = choice, .count = 1};
    }
}

void conv_forget(void)
{
    while (ahead.count > 0)
        drop(ahead.items[ahead.count - 1]);
    sac_free(ahead.items);
    ahead.items = NULL;
    ahead.capacity = 0;
}

/* ---- making ---- */

struct making {
    struct sac_device   *dev;
    struct products_gpu *gpu;
    struct noted       **items; /* [count] that were not made before */
    int                  count;
    struct way {
        struct noted *of;
        int           index;
    } * ways; /* [way_count] of all of them; under way from first on */
    int                 way_count, first;
    int                 threads;
    bool                lists, tells; /* not all choices are known; it takes long */
    atomic_int          done;
    atomic_int_fast64_t said_ns;
};

static int made_of(const struct noted *n)
{
    return n->kind == NOTED_LIKELY ? SAC_MIN(n->list.count, 1) : n->list.count;
}

static void list_ways(void *arg, int piece, int worker)
{
    const struct making *m = arg;
    struct noted        *n = m->items[piece];
    if (n->kind == NOTED_KNOWN || cuda_enter(m->dev) != SAC_OK)
        return;
    const struct products_loan loan = products_borrow(m->gpu, worker);
    conv_ways_list(&loan.cudnn, &n->spec, &n->list);
    products_give_back(m->gpu, &loan);
    cuda_leave();
}

/* Every two seconds, as the planner tells how many kernels are chosen. */
static void say_progress(struct making *m)
{
    static const int64_t EVERY_NS = 2000000000;
    const int            done = atomic_fetch_add(&m->done, 1) + 1;
    const int64_t        now = sac_time_ns();
    int_fast64_t         said = atomic_load(&m->said_ns);
    if (m->tells && now - said >= EVERY_NS &&
        atomic_compare_exchange_strong(&m->said_ns, &said, now))
        sac_log(m->dev->ctx, SAC_LOG_INFO, "%s: %d of %d kernels to choose from are ready",
                m->dev->name, done, m->way_count);
}

static void make_way(void *arg, int piece, int worker)
{
    struct making    *m = arg;
    const struct way *way = &m->ways[m->first + piece];
    struct noted     *n = way->of;
    if (cuda_enter(m->dev) != SAC_OK)
        return;
    const struct products_loan loan = products_borrow(m->gpu, worker);
    n->ready[way->index] =
        conv_ready_make(m->dev, &loan.cudnn, n->key, &n->spec, &n->list.items[way->index].choice);
    products_give_back(m->gpu, &loan);
    cuda_leave();
    say_progress(m);
}

/* With threads of its own: those of the device are for pieces of microseconds, and it works alone
 * for a while after a job whose pieces differ as these do, a precompiled way's from a compiled
 * one's. */
static void run(struct making *m, int pieces, void (*fn)(void *arg, int piece, int worker))
{
    struct sac_worker_pool *pool = NULL;
    const int               threads = SAC_MIN(m->threads, pieces);
    if (threads > 1 && sac_worker_pool_create(m->dev->ctx, threads, &pool) != SAC_OK)
        sac_error_clear(m->dev->ctx); /* without threads it takes longer */
    sac_worker_pool_run(pool, pieces, fn, m);
    sac_worker_pool_destroy(&pool);
}

/* A handle takes some milliseconds too, so each should serve several ways. At a start the CPUs have
 * little other work. */
static int threads_for(const struct making *m)
{
    const int most = SAC_MIN(sac_cpu_count(), (int)CUDNN_SPARE_HANDLES);
    return m->tells ? most : SAC_CLAMP(m->count / 6, 1, most);
}

/* Those with kernels that none before them has go first. Returns how many those are. */
static int order_ways(struct making *m)
{
    const size_t room = (size_t)m->count * CONV_TRIED_MAX;
    char       **keys = sac_calloc(room, sizeof *keys);
    int          firsts = 0;
    m->ways = sac_calloc(room, sizeof *m->ways);
    for (int i = 0; i < m->count && keys && m->ways; i++)
        for (int w = 0; w < made_of(m->items[i]); w++) {
            const struct cudnn_candidate *c = &m->items[i]->list.items[w];
            const bool                    compiles = c->runtime || m->items[i]->kind == NOTED_KNOWN;
            char *key = compiles ? cudnn_kernels_key(&m->items[i]->spec, &c->choice) : NULL;
            int   k = 0;
            m->ways[m->way_count++] = (struct way){m->items[i], w};
            while (key && k < firsts && strcmp(keys[k], key) != 0)
                k++;
            if (!key || k < firsts) {
                sac_free(key);
                continue;
            }
            keys[firsts] = key;
            m->ways[m->way_count - 1] = m->ways[firsts];
            m->ways[firsts++] = (struct way){m->items[i], w};
        }
    for (int k = 0; k < firsts; k++)
        sac_free(keys[k]);
    sac_free(keys);
    return firsts;
}

static void make(struct making *m)
{
    const int64_t began = sac_time_ns();
    atomic_init(&m->done, 0);
    atomic_init(&m->said_ns, began);
    for (int i = 0; i < m->count; i++) {
        m->lists |= m->items[i]->kind != NOTED_KNOWN;
        m->tells |= m->items[i]->kind == NOTED_ALL;
    }
    m->threads = threads_for(m);
    /* The handles are not for another plan's threads meanwhile, and these disturb what is measured.
     */
    pthread_mutex_lock(&m->gpu->tuning);
    if (m->lists)
        run(m, m->count, list_ways);
    const int64_t listed = sac_time_ns();
    /* Else all threads would wait for the first kernel, then for the next. */
    const int firsts = order_ways(m);
    run(m, firsts, make_way);
    m->first = firsts;
    run(m, m->way_count - firsts, make_way);
    pthread_mutex_unlock(&m->gpu->tuning);
    sac_log(m->dev->ctx, SAC_LOG_DEBUG,
            "products: %d ways of %d convolutions listed in %.0f ms and made in %.0f, by %d "
            "threads",
            m->way_count, m->count, (double)(listed - began) * 1e-6,
            (double)(sac_time_ns() - listed) * 1e-6, m->threads);
    sac_free(m->ways);
}

/* All that was noted since the last time. */
static void make_noted(struct sac_device *dev)
{
    struct making m = {
        .dev = dev, .gpu = products_gpu_of(dev), .items = sac_calloc(ahead.count, sizeof *m.items)};
    for (size_t i = 0; i < ahead.count && m.items; i++)
        if (!ahead.items[i]->made)
            m.items[m.count++] = ahead.items[i];
    if (m.count > 0)
        make(&m);
    for (int i = 0; i < m.count; i++)
        m.items[i]->made = true;
    sac_free(m.items);
}

/* ---- taking ---- */

struct conv_ready *conv_ahead_take(struct sac_device *dev, const char *key,
                                   const struct conv_choice *choice)
{
    struct noted      *n = find(key);
    struct conv_ready *found = NULL;
    if (!n)
        return NULL;
    if (!n->made)
        make_noted(dev);
    for (int i = 0; i < n->list.count && !found; i++)
        if (n->ready[i] && conv_choice_same(&n->ready[i]->choice, choice)) {
            found = n->ready[i];
            n->ready[i] = NULL;
        }
    return found;
}

void conv_ahead_ways(struct sac_device *dev, const char *key, const struct conv_spec *spec,
                     bool all, struct conv_ways *list, struct conv_ready *ready[CONV_TRIED_MAX])
{
    const enum noted_kind kind = all ? NOTED_ALL : NOTED_LIKELY;
    struct noted         *n = find(key);
    if (n && n->kind != kind) { /* the choice that was known does not run */
        drop(n);
        n = NULL;
    }
    *list = (struct conv_ways){.count = 0};
    n = n ? n : note(key, spec, kind);
    if (!n)
        return;
    if (!n->made)
        make_noted(dev);
    *list = n->list;
    memcpy(ready, n->ready, sizeof n->ready);
    memset(n->ready, 0, sizeof n->ready);
    drop(n);
}
