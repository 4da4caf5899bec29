/* SPDX-License-Identifier: Apache-2.0 */
#include "reid/features.h"

/* Batches have more and fewer boxes: mostly one size, which the pool meets again. */
static size_t room_for(int count)
{
    size_t rows = 256;
    while (rows < (size_t)count)
        rows *= 2;
    return rows;
}

sac_result sac_features_create(sac_device *dev, int count, int dim, struct sac_features **out)
{
    struct sac_features *f = sac_new(struct sac_features);
    if (!f)
        return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "no memory for %d embeddings", count);
    sac_refcount_init(&f->refs);
    f->dev = dev;
    f->count = count;
    f->dim = dim;
    const size_t rows = room_for(count);
    sac_result   res = sac_buffer_create(dev, rows * (size_t)dim * sizeof(float), "embeddings", &f->rows);
    if (res == SAC_OK)
        res = dev->ops->event_create(dev, false, &f->ready);
    if (res == SAC_OK)
        *out = f;
    else
        sac_features_unref(&f);
    return res;
}

struct sac_features *sac_features_ref(struct sac_features *f)
{
    sac_refcount_inc(&f->refs);
    return f;
}

/* The buffer goes back to a pool that other streams take from: nothing may be left to write into it. */
void sac_features_unref(struct sac_features **f_at)
{
    struct sac_features *f = f_at ? *f_at : NULL;
    if (!f)
        return;
    *f_at = NULL;
    if (!sac_refcount_dec(&f->refs))
        return;
    if (f->ready) {
        f->dev->ops->event_wait(f->ready);
        f->dev->ops->event_destroy(&f->ready);
    }
    sac_buffer_unref(&f->rows);
    sac_free(f);
}
