/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "engine/onnx/wire.h"

struct sac_wire sac_wire_of(const void *bytes, size_t size)
{
    return (struct sac_wire){bytes, (const uint8_t *)bytes + size};
}

size_t sac_wire_left(const struct sac_wire *w)
{
    return (size_t)(w->end - w->at);
}

bool sac_wire_varint(struct sac_wire *w, uint64_t *out)
{
    uint64_t       value = 0;
    const uint8_t *at = w->at;
    for (int shift = 0; shift < 64 && at < w->end; shift += 7) {
        uint8_t byte = *at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            w->at = at;
            *out = value;
            return true;
        }
    }
    return false;
}

/* The file is little-endian, as is every host we build for, but the bytes may be unaligned. */
static bool fixed(struct sac_wire *w, size_t size, uint64_t *out)
{
    if (sac_wire_left(w) < size)
        return false;
    *out = 0;
    for (size_t i = 0; i < size; i++)
        *out |= (uint64_t)w->at[i] << (8 * i);
    w->at += size;
    return true;
}

static bool field_value(struct sac_wire *w, struct sac_field *f)
{
    switch (f->type) {
    case SAC_WIRE_VARINT: return sac_wire_varint(w, &f->value);
    case SAC_WIRE_FIXED64: return fixed(w, 8, &f->value);
    case SAC_WIRE_FIXED32: return fixed(w, 4, &f->value);
    case SAC_WIRE_BYTES:
        if (!sac_wire_varint(w, &f->value) || f->value > sac_wire_left(w))
            return false;
        f->bytes = (struct sac_wire){w->at, w->at + f->value};
        w->at += f->value;
        return true;
    }
    return false; /* groups, which ONNX has none of, and types that do not exist */
}

int sac_wire_next(struct sac_wire *w, struct sac_field *f)
{
    struct sac_wire ahead = *w;
    uint64_t        tag;
    if (w->at == w->end)
        return 0;
    if (!sac_wire_varint(&ahead, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
        return -1;
    *f = (struct sac_field){.number = (uint32_t)(tag >> 3), .type = (enum sac_wire_type)(tag & 7)};
    if (!field_value(&ahead, f))
        return -1;
    *w = ahead;
    return 1;
}

bool sac_wire_ints(const struct sac_field *f, int64_t *out, size_t max, size_t *count)
{
    struct sac_wire w = f->bytes;
    uint64_t        value = f->value;
    if (f->type != SAC_WIRE_BYTES && f->type != SAC_WIRE_VARINT)
        return false;
    while (f->type == SAC_WIRE_VARINT || w.at < w.end) {
        if (f->type == SAC_WIRE_BYTES && !sac_wire_varint(&w, &value))
            return false;
        if (*count >= max)
            return false;
        if (out)
            out[*count] = (int64_t)value;
        ++*count;
        if (f->type == SAC_WIRE_VARINT)
            break;
    }
    return true;
}

/* Elements of a fixed size are copied unchanged. */
static bool fixed_elements(const struct sac_field *f, size_t size, enum sac_wire_type single,
                           void *out, size_t max, size_t *count)
{
    size_t n = 1;
    if (f->type == SAC_WIRE_BYTES) {
        n = sac_wire_left(&f->bytes) / size;
        if (sac_wire_left(&f->bytes) % size)
            return false;
    } else if (f->type != single) {
        return false;
    }
    if (n > max - *count)
        return false;
    if (out && n)
        memcpy((uint8_t *)out + *count * size,
               f->type == SAC_WIRE_BYTES ? (const void *)f->bytes.at : (const void *)&f->value,
               n * size);
    *count += n;
    return true;
}

bool sac_wire_fixed32(const struct sac_field *f, uint32_t *out, size_t max, size_t *count)
{
    return fixed_elements(f, 4, SAC_WIRE_FIXED32, out, max, count);
}

bool sac_wire_fixed64(const struct sac_field *f, uint64_t *out, size_t max, size_t *count)
{
    return fixed_elements(f, 8, SAC_WIRE_FIXED64, out, max, count);
}

int sac_wire_next_bytes(struct sac_wire *w, uint32_t number, struct sac_wire *out)
{
    struct sac_field f;
    int              more;
    while ((more = sac_wire_next(w, &f)) > 0)
        if (f.number == number && f.type == SAC_WIRE_BYTES) {
            *out = f.bytes;
            return 1;
        }
    return more;
}

size_t sac_wire_count_bytes(struct sac_wire w, uint32_t number)
{
    struct sac_wire inside;
    size_t          n = 0;
    while (sac_wire_next_bytes(&w, number, &inside) > 0)
        n++;
    return n;
}

struct sac_wire sac_wire_last_bytes(struct sac_wire w, uint32_t number)
{
    struct sac_wire inside, last = {0};
    while (sac_wire_next_bytes(&w, number, &inside) > 0)
        last = inside;
    return last;
}
