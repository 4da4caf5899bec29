/* SPDX-License-Identifier: Apache-2.0 */
/* Embeddings that stay where they were computed: the rows of one batch, counted by reference, since the
 * frames of a batch go their own ways.
 *
 * Work of another stream that reads them begins with stream_wait_event(dev, stream, f->ready); whoever
 * queued it keeps his reference until it is done. Writing is over with the first reference handed on. */
#ifndef SAC_REID_FEATURES_H
#define SAC_REID_FEATURES_H

#include "device/device.h"

struct sac_features {
    sac_refcount       refs;
    struct sac_buffer *rows;  /* [count,dim] float32 of length 1, in memory of dev */
    sac_device        *dev;   /* the buffer holds it */
    int                count, dim;
    struct sac_event  *ready; /* behind the work that fills the rows */
};

/* The rows of one frame's detections. */
struct sac_feature_rows {
    struct sac_features *of;  /* NULL: none */
    const int32_t       *row; /* [detections]; -1: no embedding of this one */
};

/* Room for count rows, not filled, ready not recorded. One reference. */
sac_result           sac_features_create(sac_device *dev, int count, int dim, struct sac_features **out);
struct sac_features *sac_features_ref(struct sac_features *f);
/* The last one waits for the work that fills them. */
void                 sac_features_unref(struct sac_features **f);

static inline const float *sac_features_data(const struct sac_features *f)
{
    return sac_buffer_data(f->rows);
}

#endif
