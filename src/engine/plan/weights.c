/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/start.h"
#include "engine/kernel/layout.h"
#include "engine/plan/weights.h"

enum {
    ALIGN = 256,          /* the largest alignment that the GPU's libraries need */
    BLOCK_BYTES = 4 << 20 /* a network has hundreds of constants, most of them a few bytes */
};

struct sac_weight_entry {
    const void *data;
    char        form[96];
    size_t      bytes;
    void       *device;
};

struct sac_weight_block {
    struct sac_buffer *buffer;
    size_t             used;
};

static const struct sac_weight_entry *find(const struct sac_weight_store *s, const void *data,
                                           const char *form, size_t bytes)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->entries[i].data == data && s->entries[i].bytes == bytes &&
            strcmp(s->entries[i].form, form) == 0)
            return &s->entries[i];
    return NULL;
}

static sac_result no_memory(const struct sac_weight_store *s)
{
    return SAC_FAIL(s->dev->ctx, SAC_ERR_MEMORY, "no memory to list the weights");
}

static sac_result add_block(struct sac_weight_store *s, size_t bytes)
{
    struct sac_buffer *buffer = NULL;
    char               owner[48];
    snprintf(owner, sizeof owner, "weights of %.36s", s->owner);
    if (!sac_grow((void **)&s->blocks, &s->block_cap, s->block_count + 1, sizeof *s->blocks))
        return no_memory(s);
    sac_result res = sac_buffer_create(s->dev, SAC_MAX(bytes, (size_t)BLOCK_BYTES), owner, &buffer);
    if (res != SAC_OK) /* over the device's memory or budget: a smaller batch may fit */
        return res == SAC_ERR_LIMIT ? SAC_ERR_MEMORY : res;
    sac_buffer_keep(buffer);
    s->blocks[s->block_count++] = (struct sac_weight_block){.buffer = buffer};
    s->bytes += sac_buffer_bytes(buffer);
    return SAC_OK;
}

/* Allocates from the newest block, or from a new one. */
static sac_result take_room(struct sac_weight_store *s, size_t bytes, void **out)
{
    const size_t room = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (s->block_count == 0 || sac_buffer_bytes(s->blocks[s->block_count - 1].buffer) -
                                       s->blocks[s->block_count - 1].used <
                                   room) {
        sac_result res = add_block(s, room);
        if (res != SAC_OK)
            return res;
    }
    struct sac_weight_block *b = &s->blocks[s->block_count - 1];
    *out = (char *)sac_buffer_data(b->buffer) + b->used;
    b->used += room;
    return SAC_OK;
}

static sac_result upload(struct sac_weight_store *s, size_t         bytes,
                         void (*fill)(void *arg, void *host), void *arg, void *device)
{
    char  what[96];
    void *host = sac_alloc_aligned(64, bytes);
    if (!host)
        return SAC_FAIL(s->dev->ctx, SAC_ERR_MEMORY, "no memory for %zu bytes of weights", bytes);
    fill(arg, host);
    snprintf(what, sizeof what, "weights of %.80s", s->owner);
    sac_result res = sac_device_copy(s->dev, NULL, device, host, bytes, SAC_COPY_HOST_TO_DEVICE,
                                     SAC_COPY_WEIGHTS, what);
    sac_free(host);
    return res;
}

static sac_result get(struct sac_weights *w, const void *data, const char *form, size_t bytes,
                      void (*fill)(void *arg, void *host), void *arg, void **device)
{
    struct sac_weight_store *s = (struct sac_weight_store *)w;
    if (s->shared && !sac_arena_owns(s->mine, data))
        return get(&s->shared->face, data, form, bytes, fill, arg, device);
    const struct sac_weight_entry *known = find(s, data, form, bytes);
    if (known) {
        *device = known->device;
        return SAC_OK;
    }
    struct sac_weight_entry e = {.data = data, .bytes = bytes};
    if (strlen(form) >= sizeof e.form)
        return SAC_FAIL(s->dev->ctx, SAC_ERR_ARG, "weights: a form named '%s'", form);
    strcpy(e.form, form);
    if (!sac_grow((void **)&s->entries, &s->cap, s->count + 1, sizeof *s->entries))
        return no_memory(s);
    struct sac_start_span span;
    sac_start_begin(&span, SAC_START_WEIGHTS);
    sac_result res = take_room(s, bytes, &e.device);
    if (res == SAC_OK && bytes)
        res = upload(s, bytes, fill, arg, e.device);
    sac_start_end(&span);
    if (res != SAC_OK)
        return res;
    s->entries[s->count++] = e;
    *device = e.device;
    return SAC_OK;
}

static const struct sac_weights_ops ops = {.get = get};

void sac_weight_store_init(struct sac_weight_store *s, struct sac_device *dev, const char *owner,
                           struct sac_weight_store *shared, const struct sac_arena *mine)
{
    *s = (struct sac_weight_store){
        .face = {&ops}, .dev = dev, .owner = owner, .shared = shared, .mine = mine};
}

void sac_weight_store_finish(struct sac_weight_store *s)
{
    for (size_t i = 0; i < s->block_count; i++)
        sac_buffer_unref(&s->blocks[i].buffer);
    sac_free(s->blocks);
    sac_free(s->entries);
    *s = (struct sac_weight_store){0};
}

/* ---- in a layout ---- */

struct laying {
    const struct sac_operand *o;
    enum sac_layout           layout;
};

static void lay(void *arg, void *host)
{
    const struct laying *l = arg;
    sac_layout_convert(l->o, host, l->layout, l->o->data, SAC_LAYOUT_PLAIN);
}

sac_result sac_weight_upload(struct sac_weights *w, const struct sac_operand *o,
                             enum sac_layout layout, void **device)
{
    struct laying l = {o, layout};
    char          form[96];
    int64_t       pixels = 1;
    for (int i = 2; i < o->rank; i++)
        pixels *= o->dims[i];
    /* The same bytes with another shape have another order in channels last. */
    snprintf(form, sizeof form, "%s %lldx%lld", sac_layout_name(layout),
             (long long)(o->rank > 1 && sac_layout_is_last(layout) ? o->dims[1] : 1),
             (long long)(sac_layout_is_last(layout) ? pixels : 1));
    return w->ops->get(w, o->data, form, sac_layout_bytes(o, layout), lay, &l, device);
}
