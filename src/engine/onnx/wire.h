/* SPDX-License-Identifier: Apache-2.0 */
/* The part of protobuf's wire format that ONNX needs: a message is a sequence of fields, each a
 * number, a type and a value. Nothing is copied; no read goes past the end of the outer message.
 *
 *     struct sac_wire  w = sac_wire_of(bytes, size);
 *     struct sac_field f;
 *     int more;
 *     while ((more = sac_wire_next(&w, &f)) > 0)
 *         if (f.number == 1 && f.type == SAC_WIRE_BYTES)
 *             ...
 *     if (more < 0)
 *         damaged, at byte w.at
 *
 * Source: protobuf.dev, "Encoding".
 */
#ifndef SAC_ENGINE_ONNX_WIRE_H
#define SAC_ENGINE_ONNX_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sac_wire_type {
    SAC_WIRE_VARINT = 0,
    SAC_WIRE_FIXED64 = 1,
    SAC_WIRE_BYTES = 2, /* strings, messages, packed arrays */
    SAC_WIRE_FIXED32 = 5
};

struct sac_wire {
    const uint8_t *at, *end;
};

struct sac_field {
    uint32_t           number;
    enum sac_wire_type type;
    uint64_t           value; /* of VARINT, FIXED64, FIXED32 */
    struct sac_wire    bytes; /* of BYTES: the contents, for another sac_wire_next */
};

struct sac_wire sac_wire_of(const void *bytes, size_t size);
size_t          sac_wire_left(const struct sac_wire *w);

/* 1: a field; 0: the end; -1: damaged (w stays at the field's first byte). */
int  sac_wire_next(struct sac_wire *w, struct sac_field *f);
bool sac_wire_varint(struct sac_wire *w, uint64_t *out);

/* The next field of that number and type BYTES; others are passed over. As sac_wire_next. */
int    sac_wire_next_bytes(struct sac_wire *w, uint32_t number, struct sac_wire *out);
size_t sac_wire_count_bytes(struct sac_wire w, uint32_t number);
/* The last of them, as protobuf requires for fields that are not repeated; empty when there is
 * none. */
struct sac_wire sac_wire_last_bytes(struct sac_wire w, uint32_t number);

/* Repeated numbers come packed (one BYTES field) or one by one (a field each): append what f holds.
 * out may be NULL to count only. *count grows; false when damaged or when more than max would be
 * there. Varints for ints; FIXED32 and FIXED64 take elements of 4 and 8 bytes. */
bool sac_wire_ints(const struct sac_field *f, int64_t *out, size_t max, size_t *count);
bool sac_wire_fixed32(const struct sac_field *f, uint32_t *out, size_t max, size_t *count);
bool sac_wire_fixed64(const struct sac_field *f, uint64_t *out, size_t max, size_t *count);

#endif
