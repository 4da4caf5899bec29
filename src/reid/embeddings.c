/* SPDX-License-Identifier: Apache-2.0 */
#include "reid/embeddings.h"

/* ---- embeddings with memory of their own ---- */

/* The number of boxes varies: sizes are rounded so that the pool can reuse the memory. */
static size_t room_for(int count)
{
    size_t rows = 256;
    while (rows < (size_t)count)
        rows *= 2;
    return rows;
}

sac_result sac_embeddings_create(sac_device *dev, int count, int dim, struct sac_embeddings **out)
{
    struct sac_embeddings *f = sac_new(struct sac_embeddings);
    if (!f)
        return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "no memory for %d embeddings", count);
    sac_refcount_init(&f->refs);
    f->dev = dev;
    f->count = count;
    f->dim = dim;
    const size_t rows = room_for(count);
    sac_result   res =
        sac_buffer_create(dev, rows * (size_t)dim * sizeof(float), "embeddings", &f->rows);
    if (res == SAC_OK)
        res = dev->ops->event_create(dev, false, &f->ready);
    if (res == SAC_OK) {
        f->data = sac_buffer_data(f->rows);
        *out = f;
    } else {
        sac_embeddings_unref(&f);
    }
    return res;
}

/* ---- memory of a store ---- */

enum { OUT_MAX = 128 }; /* batches whose rows are in use at once */

/* A ring, because rows are taken and released nearly in order. The oldest piece is freed once it is
 * released. */
struct sac_embedding_store {
    sac_refcount          refs; /* its owner's, and one for each piece in use */
    sac_device           *dev;
    struct sac_buffer    *memory;
    int                   dim;
    size_t                rows;
    pthread_mutex_t       lock; /* guards what follows, and whether a piece is held */
    pthread_cond_t        returned;
    unsigned              first, count; /* index of the oldest piece, and number of pieces */
    struct sac_embeddings piece[OUT_MAX];
};

sac_result sac_embedding_store_open(sac_device *dev, size_t rows, int dim,
                                    struct sac_embedding_store **out)
{
    struct sac_embedding_store *s = sac_new(struct sac_embedding_store);
    if (!s)
        return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "no memory for %zu embeddings", rows);
    sac_refcount_init(&s->refs);
    s->dev = dev;
    s->dim = dim;
    s->rows = rows;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->returned, NULL);
    sac_result res =
        sac_buffer_create(dev, rows * (size_t)dim * sizeof(float), "embeddings", &s->memory);
    for (int i = 0; i < OUT_MAX && res == SAC_OK; i++)
        res = dev->ops->event_create(dev, false, &s->piece[i].ready);
    if (res == SAC_OK) {
        sac_buffer_keep(s->memory);
        *out = s;
    } else {
        sac_embedding_store_close(&s);
    }
    return res;
}

static void store_unref(struct sac_embedding_store *s)
{
    if (!sac_refcount_dec(&s->refs))
        return;
    for (int i = 0; i < OUT_MAX; i++)
        if (s->piece[i].ready)
            s->dev->ops->event_destroy(&s->piece[i].ready);
    pthread_cond_destroy(&s->returned);
    pthread_mutex_destroy(&s->lock);
    sac_buffer_unref(&s->memory); /* may close the device */
    sac_free(s);
}

void sac_embedding_store_close(struct sac_embedding_store **store)
{
    if (*store)
        store_unref(*store);
    *store = NULL;
}

static struct sac_embeddings *nth(struct sac_embedding_store *s, unsigned n)
{
    return &s->piece[(s->first + n) % OUT_MAX];
}

/* Finds room for this many rows after the newest piece or before the oldest. The lock is held. */
static bool find_room(struct sac_embedding_store *s, size_t rows, size_t *at)
{
    *at = 0;
    if (s->count == 0)
        return rows <= s->rows;
    if (s->count == OUT_MAX)
        return false;
    const struct sac_embeddings *oldest = nth(s, 0), *newest = nth(s, s->count - 1);
    const size_t                 end = newest->first + (size_t)newest->count;
    const bool                   wrapped = newest->first < oldest->first;
    if ((wrapped ? oldest->first : s->rows) - end >= rows) {
        *at = end;
        return true;
    }
    return !wrapped && oldest->first >= rows;
}

bool sac_embedding_store_take(struct sac_embedding_store *s, int count, bool wait,
                              struct sac_embeddings **out)
{
    size_t at = 0;
    bool   fits = (size_t)count <= s->rows;
    if (!fits)
        return false;
    pthread_mutex_lock(&s->lock);
    while (!(fits = find_room(s, (size_t)count, &at)) && wait)
        pthread_cond_wait(&s->returned, &s->lock);
    struct sac_embeddings *f = fits ? nth(s, s->count++) : NULL;
    if (f)
        *f = (struct sac_embeddings){.data =
                                         (float *)sac_buffer_data(s->memory) + at * (size_t)s->dim,
                                     .dev = s->dev,
                                     .count = count,
                                     .dim = s->dim,
                                     .ready = f->ready,
                                     .store = s,
                                     .first = at,
                                     .held = true};
    pthread_mutex_unlock(&s->lock);
    if (!f)
        return false;
    sac_refcount_init(&f->refs);
    sac_refcount_inc(&s->refs);
    *out = f;
    return true;
}

static void give_back(struct sac_embeddings *f)
{
    struct sac_embedding_store *s = f->store;
    pthread_mutex_lock(&s->lock);
    f->held = false;
    for (; s->count && !nth(s, 0)->held; s->count--)
        s->first = (s->first + 1) % OUT_MAX;
    pthread_cond_signal(&s->returned);
    pthread_mutex_unlock(&s->lock);
    store_unref(s);
}

/* ---- references ---- */

struct sac_embeddings *sac_embeddings_ref(struct sac_embeddings *f)
{
    sac_refcount_inc(&f->refs);
    return f;
}

/* The buffer returns to a pool that other streams allocate from, so no queued work may still write
 * to it. */
void sac_embeddings_unref(struct sac_embeddings **f_at)
{
    struct sac_embeddings *f = f_at ? *f_at : NULL;
    if (!f)
        return;
    *f_at = NULL;
    if (!sac_refcount_dec(&f->refs))
        return;
    if (f->store) {
        give_back(f);
        return;
    }
    if (f->ready) {
        f->dev->ops->event_wait(f->ready);
        f->dev->ops->event_destroy(&f->ready);
    }
    sac_buffer_unref(&f->rows);
    sac_free(f);
}
