/* SPDX-License-Identifier: Apache-2.0 */
#include "track/gallery.h"

/* Slots allocated at once: on a device as many as a busy scene needs, so that processing frames
 * seldom allocates. */
enum { PIECE_HOST = 16, PIECE_DEVICE = 64, PIECE_BYTES = 1 << 20 };

static size_t piece_slots(const struct sac_gallery *g)
{
    const size_t fit = PIECE_BYTES / sac_appearance_slot_bytes(g->shape),
                 most = g->dev ? PIECE_DEVICE : PIECE_HOST;
    return SAC_CLAMP(fit, 1, most);
}

void sac_gallery_init(struct sac_gallery *g, int dim, int views_max)
{
    *g = (struct sac_gallery){.shape = {dim, views_max}, .free = -1};
}

void sac_gallery_finish(struct sac_gallery *g)
{
    for (size_t i = 0; i < g->piece_count; i++)
        if (g->pieces[i].buffer)
            sac_buffer_unref(&g->pieces[i].buffer);
        else
            sac_free(g->pieces[i].memory);
    sac_free(g->pieces);
    sac_free(g->slots);
    sac_free(g->updates);
    *g = (struct sac_gallery){.free = -1};
}

void sac_gallery_move(struct sac_gallery *g, sac_device *dev)
{
    struct sac_appearance_shape shape = g->shape;
    if (dev == g->dev)
        return;
    sac_gallery_finish(g);
    g->shape = shape;
    g->dev = dev;
}

static bool make_piece(struct sac_gallery *g, size_t slots, struct sac_gallery_piece *out)
{
    size_t bytes = slots * sac_appearance_slot_bytes(g->shape);
    *out = (struct sac_gallery_piece){0};
    if (!g->dev)
        out->memory = sac_alloc(bytes);
    else if (sac_buffer_create(g->dev, bytes, "appearance of tracks", &out->buffer) == SAC_OK) {
        sac_buffer_keep(out->buffer);
        out->memory = sac_buffer_data(out->buffer);
        g->is_new = true;
    }
    return out->memory != NULL;
}

static bool grow(struct sac_gallery *g, size_t more)
{
    if (!sac_grow((void **)&g->slots, &g->slots_capacity, g->count + more, sizeof *g->slots) ||
        !sac_grow((void **)&g->pieces, &g->pieces_capacity, g->piece_count + 1,
                  sizeof *g->pieces) ||
        (g->dev && !sac_grow((void **)&g->updates, &g->updates_capacity, g->count + more,
                             sizeof *g->updates)) ||
        !make_piece(g, more, &g->pieces[g->piece_count]))
        return false;
    char *memory = g->pieces[g->piece_count++].memory;
    for (size_t i = 0; i < more; i++, memory += sac_appearance_slot_bytes(g->shape)) {
        g->slots[g->count] = (struct sac_gallery_slot){.memory = memory, .next = g->free};
        g->free = (int)g->count++;
    }
    return true;
}

bool sac_gallery_reserve(struct sac_gallery *g, size_t slots)
{
    return g->count >= slots || grow(g, SAC_MAX(slots - g->count, piece_slots(g)));
}

int sac_gallery_take(struct sac_gallery *g)
{
    int slot = g->free;
    g->free = g->slots[slot].next;
    g->slots[slot].next = -1;
    g->slots[slot].fresh = true;
    return slot;
}

void sac_gallery_give_back(struct sac_gallery *g, int slot)
{
    g->slots[slot].next = g->free;
    g->free = slot;
}

bool sac_gallery_is_unit(const struct sac_gallery *g, const float *embedding)
{
    return sac_appearance_is_unit(sac_appearance_dot(embedding, embedding, g->shape.dim));
}

float sac_gallery_distance(const struct sac_gallery *g, int slot, const float *embedding)
{
    struct sac_appearance_slot s =
        sac_appearance_slot_of(g->slots[slot].memory, g->shape.views_max);
    int view;
    return g->slots[slot].fresh ? 2 : sac_appearance_nearest(&s, g->shape, embedding, &view);
}

void sac_gallery_add(struct sac_gallery *g, int slot, const float *embedding, double now_s)
{
    struct sac_gallery_slot *own = &g->slots[slot];
    if (g->dev) {
        g->updates[g->update_count++] = (struct sac_appearance_update){
            .slot = own->memory, .row = embedding, .now_s = now_s, .fresh = own->fresh};
    } else {
        struct sac_appearance_slot s = sac_appearance_slot_of(own->memory, g->shape.views_max);
        if (own->fresh)
            *s.views = 0;
        sac_appearance_add(&s, g->shape, embedding, now_s);
    }
    own->fresh = false;
}
