/* SPDX-License-Identifier: Apache-2.0 */
/* Ways to compute convolutions, made ready by several threads. One whose kernel NVRTC compiles
 * takes a quarter of a second, one from the cache milliseconds, and a network has hundreds. So a
 * plan's convolutions are noted before the first of them is prepared. When that asks for its ways,
 * what NVRTC compiles for all of them is compiled, and then those of the next few are made, each
 * thread with a cuDNN handle of its own; the others when it is their turn. So not all live at once,
 * and what was measured by then tells which are worth making. Nothing is measured meanwhile. The
 * thread that prepares a plan has its own list. */
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
    bool               listed, compiled, made;
    bool               keep[CONV_TRIED_MAX];  /* worth making */
    bool               tried[CONV_TRIED_MAX]; /* made, or does not run here */
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
    size_t i = 0;
    while (ahead.items[i] != n)
        i++;
    memmove(&ahead.items[i], &ahead.items[i + 1], (--ahead.count - i) * sizeof *ahead.items);
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
    struct conv_spec spec;
    char             why[128];
    if (conv_spec_read(plan, &spec, why, sizeof why))
        conv_foresee_spec(dev, plan, &spec);
}

void conv_foresee_spec(struct sac_device *dev, const struct sac_kernel_plan *plan,
                       const struct conv_spec *spec)
{
    struct conv_choice choice;
    char               key[CONV_KEY_MAX];
    if (!conv_key(dev, spec, key) || find(key))
        return;
    if (!conv_known_choice(plan, spec, key, &choice)) {
        if (plan->measure || !is_in_use(key, NULL))
            note(key, spec, plan->measure ? NOTED_ALL : NOTED_LIKELY);
    } else if (choice.way <= CONV_CUDNN_PLAIN && !is_in_use(key, &choice)) {
        struct noted *n = note(key, spec, NOTED_KNOWN); /* our own kernels need no making */
        if (n) {                                        /* it is compiled, for all that is known */
            n->list =
                (struct conv_ways){.items[0] = {.choice = choice, .runtime = true}, .count = 1};
            n->listed = n->keep[0] = true;
        }
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

/* Convolutions whose ways are made together: some for each thread, and up to 400 ways. */
enum { TOGETHER = 16 };

struct making {
    struct sac_device   *dev;
    struct products_gpu *gpu;
    struct noted       **items; /* [count] */
    int                  count;
    struct way {
        struct noted *of;
        int           index;
    } * ways; /* [way_count] */
    int                 way_count, compiled, threads;
    bool                tells; /* it takes long */
    atomic_int          done;
    atomic_bool         given_up;
    atomic_int_fast64_t said_ns;
};

/* Asked by the thread that prepares the plan, whose start it is. */
static bool is_given_up(struct making *m, int worker)
{
    if (worker == 0 && m->dev->given_up())
        atomic_store(&m->given_up, true);
    return atomic_load(&m->given_up);
}

static void list_ways(void *arg, int piece, int worker)
{
    struct making *m = arg;
    struct noted  *n = m->items[piece];
    if (is_given_up(m, worker) || cuda_enter(m->dev) != SAC_OK)
        return;
    const struct products_loan loan = products_borrow(m->gpu, worker);
    conv_ways_list(m->gpu, &loan.cudnn, &n->spec, &n->list);
    products_give_back(m->gpu, &loan);
    cuda_leave();
    n->listed = true;
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

static void say_way(const struct making *m, const struct way *way, int64_t began)
{
    char text[512];
    if (conv_choice_print(&way->of->list.items[way->index].choice, text, sizeof text))
        sac_log(m->dev->ctx, SAC_LOG_TRACE, "products: %s made in %.1f ms", text,
                (double)(sac_time_ns() - began) * 1e-6);
}

static void make_way(void *arg, int piece, int worker)
{
    struct making    *m = arg;
    const struct way *way = &m->ways[piece];
    struct noted     *n = way->of;
    if (is_given_up(m, worker) || cuda_enter(m->dev) != SAC_OK)
        return;
    const struct products_loan loan = products_borrow(m->gpu, worker);
    const int64_t              began = sac_time_ns();
    n->ready[way->index] =
        conv_ready_make(m->dev, &loan.cudnn, n->key, &n->spec, &n->list.items[way->index].choice);
    say_way(m, way, began);
    products_give_back(m->gpu, &loan);
    cuda_leave();
    n->tried[way->index] = true;
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
    atomic_store(&m->done, 0);
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

static void narrow(const struct making *m, struct noted *n)
{
    if (n->kind == NOTED_ALL)
        conv_near_narrow(m->dev, &n->spec, &n->list, n->keep);
    else
        n->keep[0] = n->list.count > 0;
}

/* Those that were not listed before. */
static void list_new(struct making *m)
{
    m->count = 0;
    for (size_t i = 0; i < ahead.count; i++)
        if (!ahead.items[i]->listed)
            m->items[m->count++] = ahead.items[i];
    run(m, m->count, list_ways);
    for (int i = 0; i < m->count; i++)
        narrow(m, m->items[i]);
}

static void add_way(struct making *m, struct noted *n, int index)
{
    if (n->keep[index] && !n->tried[index])
        m->ways[m->way_count++] = (struct way){n, index};
}

/* Of those that were noted since the last time, ways with kernels that none before them has: else
 * all threads would wait for the first kernel, then for the next. false: no memory. */
static bool make_firsts(struct making *m)
{
    char **keys = sac_calloc(ahead.count * CONV_TRIED_MAX, sizeof *keys);
    int    known = 0;
    m->way_count = 0;
    for (size_t i = 0; i < ahead.count && keys; i++)
        for (int w = 0; w < ahead.items[i]->list.count; w++) {
            struct noted *n = ahead.items[i];
            const bool    due = n->keep[w] && !n->compiled && n->list.items[w].runtime;
            char         *key = due ? cudnn_kernels_key(&n->spec, &n->list.items[w].choice) : NULL;
            int           k = 0;
            while (key && k < known && strcmp(keys[k], key) != 0)
                k++;
            if (!key || k < known) {
                sac_free(key);
                continue;
            }
            keys[known++] = key;
            add_way(m, n, w);
        }
    m->compiled = m->way_count;
    run(m, m->way_count, make_way);
    for (size_t i = 0; i < ahead.count && keys; i++)
        ahead.items[i]->compiled = true; /* what of it is made later may be narrowed before */
    for (int k = 0; k < known; k++)
        sac_free(keys[k]);
    sac_free(keys);
    return keys != NULL;
}

/* The wanted one and some of those behind it, as many as are measured one after the other; what is
 * not measured is all made now. */
static void make_next(struct making *m, const struct noted *wanted)
{
    bool behind = false;
    int  measured = 0;
    m->count = m->way_count = 0;
    for (size_t i = 0; i < ahead.count; i++) {
        struct noted *n = ahead.items[i];
        behind |= n == wanted;
        if (n->made || (n->kind == NOTED_ALL && (!behind || measured == TOGETHER)))
            continue;
        measured += n->kind == NOTED_ALL;
        m->items[m->count++] = n;
        narrow(m, n);
        for (int w = 0; w < n->list.count; w++)
            add_way(m, n, w);
    }
    run(m, m->way_count, make_way);
    for (int i = 0; i < m->count; i++)
        m->items[i]->made = true;
}

static void say_made(const struct making *m, int64_t began, int64_t listed, int64_t compiled)
{
    sac_log(m->dev->ctx, SAC_LOG_DEBUG,
            "products: %d ways of %d convolutions listed in %.0f ms and made in %.0f, by %d "
            "threads; before, %d with new kernels in %.0f ms",
            m->way_count, m->count, (double)(listed - began) * 1e-6,
            (double)(sac_time_ns() - compiled) * 1e-6, m->threads, m->compiled,
            (double)(compiled - listed) * 1e-6);
}

static bool make(struct making *m, const struct noted *wanted)
{
    const int64_t began = sac_time_ns();
    atomic_init(&m->done, 0);
    atomic_init(&m->given_up, false);
    atomic_init(&m->said_ns, began);
    m->count = (int)ahead.count;
    for (size_t i = 0; i < ahead.count; i++)
        m->tells |= ahead.items[i]->kind == NOTED_ALL;
    m->threads = threads_for(m);
    /* The handles are not for another plan's threads meanwhile, and these disturb what is measured.
     */
    pthread_mutex_lock(&m->gpu->tuning);
    list_new(m);
    const int64_t listed = sac_time_ns();
    const bool    good = make_firsts(m);
    const int64_t compiled = sac_time_ns();
    if (good)
        make_next(m, wanted);
    pthread_mutex_unlock(&m->gpu->tuning);
    if (good)
        say_made(m, began, listed, compiled);
    return good && !atomic_load(&m->given_up);
}

/* false: no memory, or it was given up. */
static bool make_noted(struct sac_device *dev, const struct noted *wanted)
{
    struct making m = {.dev = dev,
                       .gpu = products_gpu_of(dev),
                       .items = sac_calloc(ahead.count, sizeof *m.items),
                       .ways = sac_calloc(ahead.count * CONV_TRIED_MAX, sizeof *m.ways)};
    const bool    made = m.items && m.ways && make(&m, wanted);
    sac_free(m.items);
    sac_free(m.ways);
    return made;
}

/* ---- taking ---- */

struct conv_ready *conv_ahead_take(struct sac_device *dev, const char *key,
                                   const struct conv_choice *choice)
{
    struct noted      *n = find(key);
    struct conv_ready *found = NULL;
    if (!n || (!n->made && !make_noted(dev, n)))
        return NULL;
    for (int i = 0; i < n->list.count && !found; i++)
        if (n->ready[i] && conv_choice_same(&n->ready[i]->choice, choice)) {
            found = n->ready[i];
            n->ready[i] = NULL;
        }
    return found;
}

bool conv_ahead_ways(struct sac_device *dev, const char *key, const struct conv_spec *spec,
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
    if (!n || (!n->made && !make_noted(dev, n)))
        return false;
    *list = n->list;
    memcpy(ready, n->ready, sizeof n->ready);
    memset(n->ready, 0, sizeof n->ready);
    drop(n);
    return true;
}
