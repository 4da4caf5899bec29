/* SPDX-License-Identifier: Apache-2.0 */
/* Embeddings that stay where they were computed: the rows of one batch, counted by reference, since the
 * frames of a batch go their own ways.
 *
 * Work of another stream that reads them begins with stream_wait_event(dev, stream, f->ready); whoever
 * queued it keeps his reference until it is done. Writing is over with the first reference handed on.
 *
 * Where batch follows batch their rows come from a store: one piece of memory, taken before the first frame
 * and used in turn. Who wants rows while all are held waits, so nothing is allocated on the frames' way. */
#ifndef SAC_REID_FEATURES_H
#define SAC_REID_FEATURES_H

#include "device/device.h"

struct sac_feature_store;

struct sac_features {
    sac_refcount       refs;
    float             *data;  /* [count,dim] float32 of length 1, in memory of dev */
    struct sac_buffer *rows;  /* behind it; NULL: the store's */
    sac_device        *dev;   /* the buffer holds it */
    int                count, dim;
    struct sac_event  *ready; /* behind the work that fills the rows */

    struct sac_feature_store *store; /* NULL: memory of its own */
    size_t                    first; /* of the store's rows */
    bool                      held;  /* guarded by the store's lock */
};

/* Room for count rows, not filled, ready not recorded. One reference. */
sac_result           sac_features_create(sac_device *dev, int count, int dim, struct sac_features **out);
struct sac_features *sac_features_ref(struct sac_features *f);
/* The last one waits for the work that fills them; not with a store, whose rows all are filled by one stream. */
void                 sac_features_unref(struct sac_features **f);

static inline float *sac_features_data(const struct sac_features *f)
{
    return f->data;
}

/* Memory for so many rows. Rows that are out keep it; whoever fills them has ended before it is closed. */
sac_result sac_feature_store_open(sac_device *dev, size_t rows, int dim, struct sac_feature_store **out);
void       sac_feature_store_close(struct sac_feature_store **store);
/* As sac_features_create. wait: until others give rows back, so the caller must hold none and they must not
 * wait for him. false: there is no room for so many, or now. One thread. */
bool       sac_feature_store_take(struct sac_feature_store *store, int count, bool wait,
                                  struct sac_features **out);

#endif
