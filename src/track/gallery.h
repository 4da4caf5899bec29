/* SPDX-License-Identifier: Apache-2.0 */
/* The appearance of tracked objects: a few embeddings per object, in bounded memory.
 *
 * An object owns a slot with up to `views` embeddings of length 1. A new one is blended into the
 * view that it resembles, or starts a new view (front, back, half hidden), which replaces the least
 * recently matched one.
 *
 * The slots are in host memory, or on the device that the embeddings are on: then the gallery only
 * records the additions, and a wave (track/wave.h) has the device do them. */
#ifndef SAC_TRACK_GALLERY_H
#define SAC_TRACK_GALLERY_H

#include <stdbool.h>
#include <stddef.h>

#include "device/device.h"
#include "vision/appearance.h"

struct sac_gallery_slot {
    void *memory;
    int   next;  /* free slots: the next one, or -1 */
    bool  fresh; /* it holds nothing yet */
};

struct sac_gallery {
    struct sac_appearance_shape shape;
    sac_device                 *dev; /* NULL: host memory */
    struct sac_gallery_slot    *slots;
    size_t                      slots_capacity, count;
    int                         free; /* first free slot, or -1 */
    struct sac_gallery_piece {        /* slots that were allocated together */
        void              *memory;
        struct sac_buffer *buffer; /* behind it on a device */
    } * pieces;
    size_t piece_count, pieces_capacity;
    bool   is_new; /* device memory that only the device's own stream may use so far */
    /* Additions for the device. */
    struct sac_appearance_update *updates;
    size_t                        update_count, updates_capacity;
};

void sac_gallery_init(struct sac_gallery *g, int dim, int views_max);
void sac_gallery_finish(struct sac_gallery *g);
/* Sets the device of an empty gallery; NULL: the host. The device must outlive the gallery. */
void sac_gallery_move(struct sac_gallery *g, sac_device *dev);
/* Allocates for this many slots in use. false: no memory, nothing changed. */
bool sac_gallery_reserve(struct sac_gallery *g, size_t slots);

/* An empty slot; there must be room. */
int  sac_gallery_take(struct sac_gallery *g);
void sac_gallery_give_back(struct sac_gallery *g, int slot);

/* embedding  [dim] of length 1, where the gallery is; on a device it must stay until the
 *          updates are done.
 * now_s    time of the picture: views fade with seconds, not with the number of pictures. */
void sac_gallery_add(struct sac_gallery *g, int slot, const float *embedding, double now_s);
/* In host memory: cosine distance, 0..2, to the nearest view; 2 when there is none. */
float sac_gallery_distance(const struct sac_gallery *g, int slot, const float *embedding);
/* In host memory: whether a row is of length 1, within rounding. */
bool sac_gallery_is_unit(const struct sac_gallery *g, const float *embedding);

#endif
