/* SPDX-License-Identifier: Apache-2.0 */
/* Names: looked up by the bytes in the file, shown to people without control characters. */
#include <string.h>

#include "engine/onnx/reader.h"

bool sac_wire_equals(struct sac_wire a, struct sac_wire b)
{
    size_t len = sac_wire_left(&a);
    return len == sac_wire_left(&b) && (len == 0 || memcmp(a.at, b.at, len) == 0);
}

bool sac_wire_is(struct sac_wire a, const char *s)
{
    return sac_wire_equals(a, sac_wire_of(s, strlen(s)));
}

const char *sac_onnx_printable(struct sac_wire s, char *buf, size_t size)
{
    size_t len = SAC_MIN(sac_wire_left(&s), size - 1);
    for (size_t i = 0; i < len; i++)
        buf[i] = s.at[i] < 0x20 || s.at[i] == 0x7f ? '?' : (char)s.at[i];
    buf[len] = '\0';
    return buf;
}

sac_result sac_onnx_name_copy(struct sac_onnx_reader *r, struct sac_wire s, const char **out)
{
    size_t len = sac_wire_left(&s);
    if (len > SAC_ONNX_NAME_MAX)
        return SAC_FAIL(r->ctx, SAC_ERR_UNSUPPORTED, "a name of %zu bytes; at most %d", len,
                        SAC_ONNX_NAME_MAX);
    char *copy = sac_arena_alloc(r->arena, len + 1);
    if (!copy)
        return SAC_FAIL(r->ctx, SAC_ERR_MEMORY, "no memory for a name");
    *out = sac_onnx_printable(s, copy, len + 1);
    return SAC_OK;
}

/* FNV-1a. */
static uint64_t hash(struct sac_wire name)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (const uint8_t *p = name.at; p < name.end; p++)
        h = (h ^ *p) * 0x100000001b3u;
    return h;
}

/* The slot that holds the name, or the free one where it belongs. */
static struct sac_onnx_name *slot_of(const struct sac_onnx_scope *s, struct sac_wire name)
{
    size_t i = (size_t)hash(name) & (s->cap - 1);
    while (s->slots[i].name.at && !sac_wire_equals(s->slots[i].name, name))
        i = (i + 1) & (s->cap - 1);
    return &s->slots[i];
}

static bool widen(struct sac_onnx_scope *s)
{
    struct sac_onnx_scope wide = {.cap = s->cap ? s->cap * 2 : 32};
    wide.slots = sac_calloc(wide.cap, sizeof *wide.slots);
    if (!wide.slots)
        return false;
    for (size_t i = 0; i < s->cap; i++)
        if (s->slots[i].name.at)
            *slot_of(&wide, s->slots[i].name) = s->slots[i];
    sac_free(s->slots);
    s->slots = wide.slots;
    s->cap = wide.cap;
    return true;
}

bool sac_onnx_scope_bind(struct sac_onnx_scope *s, struct sac_wire name, struct sac_value *v)
{
    if (s->count * 2 >= s->cap && !widen(s))
        return false;
    struct sac_onnx_name *slot = slot_of(s, name);
    s->count += slot->name.at == NULL;
    *slot = (struct sac_onnx_name){name, v};
    return true;
}

const struct sac_onnx_name *sac_onnx_scope_own(const struct sac_onnx_scope *s, struct sac_wire name)
{
    if (!s->cap)
        return NULL;
    const struct sac_onnx_name *slot = slot_of(s, name);
    return slot->name.at ? slot : NULL;
}

const struct sac_onnx_name *sac_onnx_scope_find(const struct sac_onnx_scope *s,
                                                struct sac_wire              name)
{
    for (; s; s = s->outer) {
        const struct sac_onnx_name *found = sac_onnx_scope_own(s, name);
        if (found)
            return found;
    }
    return NULL;
}

void sac_onnx_scope_finish(struct sac_onnx_scope *s)
{
    sac_free(s->slots);
    *s = (struct sac_onnx_scope){0};
}
