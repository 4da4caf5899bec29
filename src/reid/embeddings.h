/* SPDX-License-Identifier: Apache-2.0 */
/* Embeddings that stay on the device that computed them: the rows of one batch, with a reference
 * count, because the frames of a batch are processed independently.
 *
 * Work on another stream that reads them begins with stream_wait_event(dev, stream, f->ready); the
 * caller that queued it keeps its reference until it is done. No work that writes rows is queued
 * after the first reference has been passed on.
 *
 * For consecutive batches the rows come from a store: one block of memory, allocated before the
 * first frame and reused in turn. A caller waits while all rows are in use, so nothing is allocated
 * per frame. */
#ifndef SAC_REID_EMBEDDINGS_H
#define SAC_REID_EMBEDDINGS_H

#include "device/device.h"

struct sac_embedding_store;

struct sac_embeddings {
    sac_refcount       refs;
    float             *data; /* [count,dim] float32 of length 1, in memory of dev */
    struct sac_buffer *rows; /* owns the data; NULL: the store does */
    sac_device        *dev;  /* the buffer holds it */
    int                count, dim;
    struct sac_event  *ready; /* recorded after the work that fills the rows */

    struct sac_embedding_store *store; /* NULL: memory of its own */
    size_t                      first; /* of the store's rows */
    bool                        held;  /* guarded by the store's lock */
};

/* Allocates count rows, not filled, with ready not recorded. One reference. */
sac_result sac_embeddings_create(sac_device *dev, int count, int dim, struct sac_embeddings **out);
struct sac_embeddings *sac_embeddings_ref(struct sac_embeddings *f);
/* Releasing the last reference waits for the work that fills the rows; not with a store, whose rows
 * are all filled by one stream. */
void sac_embeddings_unref(struct sac_embeddings **f);

static inline float *sac_embeddings_data(const struct sac_embeddings *f)
{
    return f->data;
}

/* Memory for this many rows. Rows in use keep it alive; the work that fills them is done before it
 * is closed. */
sac_result sac_embedding_store_open(sac_device *dev, size_t rows, int dim,
                                    struct sac_embedding_store **out);
void       sac_embedding_store_close(struct sac_embedding_store **store);
/* As sac_embeddings_create. wait: wait until others release rows, so the caller must hold none and
 * the others must not wait for it. false: no room for this many, or none now. One thread. */
bool sac_embedding_store_take(struct sac_embedding_store *store, int count, bool wait,
                              struct sac_embeddings **out);

#endif
