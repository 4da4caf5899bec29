/* SPDX-License-Identifier: Apache-2.0 */
/* What tracked objects look like: a few embeddings per object, in bounded memory.
 *
 * An object owns a slot with up to `views` embeddings of length 1. A new one is blended into the view
 * that it resembles, or starts a view of its own (front, back, half hidden); the view that was not
 * met for longest makes room. */
#ifndef SAC_TRACK_GALLERY_H
#define SAC_TRACK_GALLERY_H

#include <stdbool.h>
#include <stddef.h>

struct sac_gallery_slot {
    int  views;    /* filled */
    int  next;     /* free slots: the next one, or -1 */
};

struct sac_gallery {
    int                      dim, views_max;
    float                   *rows;     /* [slots,views_max,dim] */
    double                  *met_s;    /* [slots,views_max] when a view was last met */
    struct sac_gallery_slot *slots;
    size_t                   rows_capacity, met_capacity, slots_capacity, count;
    int                      free;     /* first free slot, or -1 */
};

void sac_gallery_init(struct sac_gallery *g, int dim, int views_max);
void sac_gallery_finish(struct sac_gallery *g);
/* Room for so many slots in use. false: no memory, nothing changed. */
bool sac_gallery_reserve(struct sac_gallery *g, size_t slots);

/* An empty slot; there must be room. */
int  sac_gallery_take(struct sac_gallery *g);
void sac_gallery_give_back(struct sac_gallery *g, int slot);

/* feat     [dim] of length 1.
 * now_s    time of the picture: views fade with seconds, not with the number of pictures. */
void sac_gallery_add(struct sac_gallery *g, int slot, const float *feat, double now_s);
/* Cosine distance, 0..2, to the nearest view; 2 when there is none. */
float sac_gallery_distance(const struct sac_gallery *g, int slot, const float *feat);
/* Whether a row is of length 1, within rounding. */
bool sac_gallery_is_unit(const struct sac_gallery *g, const float *feat);

#endif
