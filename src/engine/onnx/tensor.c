/* SPDX-License-Identifier: Apache-2.0 */
/* TensorProto: a constant, with its numbers as raw bytes, in typed fields, or in another file. */
#include <string.h>

#include "engine/onnx/reader.h"

/* onnx.proto, TensorProto.DataType. */
static const struct {
    const char    *name;
    enum sac_dtype dtype;
} types[] = {
    {"undefined", SAC_DTYPE_NONE},
    {"float32", SAC_F32},
    {"uint8", SAC_U8},
    {"int8", SAC_I8},
    {"uint16", SAC_U16},
    {"int16", SAC_I16},
    {"int32", SAC_I32},
    {"int64", SAC_I64},
    {"string", SAC_DTYPE_NONE},
    {"bool", SAC_BOOL},
    {"float16", SAC_F16},
    {"float64", SAC_F64},
    {"uint32", SAC_U32},
    {"uint64", SAC_U64},
    {"complex64", SAC_DTYPE_NONE},
    {"complex128", SAC_DTYPE_NONE},
    {"bfloat16", SAC_BF16},
    {"float8e4m3fn", SAC_F8},
    {"float8e4m3fnuz", SAC_DTYPE_NONE},
    {"float8e5m2", SAC_DTYPE_NONE},
    {"float8e5m2fnuz", SAC_DTYPE_NONE},
    {"uint4", SAC_DTYPE_NONE},
    {"int4", SAC_DTYPE_NONE},
    {"float4e2m1", SAC_DTYPE_NONE},
    {"float8e8m0", SAC_DTYPE_NONE},
    {"uint2", SAC_DTYPE_NONE},
    {"int2", SAC_DTYPE_NONE},
};

enum sac_dtype sac_onnx_dtype(uint64_t data_type)
{
    return data_type < SAC_COUNT(types) ? types[data_type].dtype : SAC_DTYPE_NONE;
}

const char *sac_onnx_dtype_name(uint64_t data_type)
{
    return data_type < SAC_COUNT(types) ? types[data_type].name : "unknown";
}

enum { /* fields of TensorProto */
       DIMS = 1,
       DATA_TYPE = 2,
       FLOAT_DATA = 4,
       INT32_DATA = 5,
       INT64_DATA = 7,
       NAME = 8,
       RAW_DATA = 9,
       DOUBLE_DATA = 10,
       UINT64_DATA = 11,
       EXTERNAL_DATA = 13,
       DATA_LOCATION = 14
};

struct tensor {
    struct sac_onnx_reader *r;
    struct sac_wire         message, name, raw, location;
    struct sac_tensor_desc  desc;
    uint64_t                data_type, offset, length;
    int64_t                 elements;
    size_t                  bytes;
    bool                    has_raw, external;
    char                    label[96]; /* the name, for messages */
};

static bool decimal(struct sac_wire s, uint64_t *out)
{
    *out = 0;
    for (; s.at < s.end; s.at++)
        if (*s.at < '0' || *s.at > '9' || __builtin_mul_overflow(*out, 10u, out) ||
            __builtin_add_overflow(*out, (uint64_t)(*s.at - '0'), out))
            return false;
    return true;
}

/* StringStringEntryProto: the location of the bytes. Other keys (checksum) are ignored. */
static bool external_entry(struct tensor *t, struct sac_wire w)
{
    struct sac_wire  key = {0}, value = {0};
    struct sac_field f;
    int              more;
    while ((more = sac_wire_next(&w, &f)) > 0) {
        if (f.number == 1 && f.type == SAC_WIRE_BYTES)
            key = f.bytes;
        if (f.number == 2 && f.type == SAC_WIRE_BYTES)
            value = f.bytes;
    }
    if (sac_wire_is(key, "location"))
        t->location = value;
    else if (sac_wire_is(key, "offset"))
        return more == 0 && decimal(value, &t->offset);
    else if (sac_wire_is(key, "length"))
        return more == 0 && decimal(value, &t->length);
    return more == 0;
}

static bool take_dims(struct tensor *t, const struct sac_field *f)
{
    size_t rank = (size_t)t->desc.rank;
    bool   ok = sac_wire_ints(f, t->desc.shape, SAC_RANK_MAX, &rank);
    t->desc.rank = (int)rank;
    return ok;
}

static bool take_field(struct tensor *t, const struct sac_field *f)
{
    switch (f->number) {
    case DIMS: return take_dims(t, f);
    case DATA_TYPE: t->data_type = f->value; return f->type == SAC_WIRE_VARINT;
    case NAME: t->name = f->bytes; return f->type == SAC_WIRE_BYTES;
    case RAW_DATA:
        t->raw = f->bytes;
        t->has_raw = true;
        return f->type == SAC_WIRE_BYTES;
    case EXTERNAL_DATA: return f->type == SAC_WIRE_BYTES && external_entry(t, f->bytes);
    case DATA_LOCATION: t->external = f->value == 1; return f->type == SAC_WIRE_VARINT;
    }
    return true;
}

static sac_result take_header(struct tensor *t)
{
    struct sac_wire  w = t->message;
    struct sac_field f;
    int              more;
    bool             ok = true;
    t->length = UINT64_MAX;
    while (ok && (more = sac_wire_next(&w, &f)) > 0)
        ok = take_field(t, &f);
    sac_onnx_printable(t->name, t->label, sizeof t->label);
    if (!ok || more < 0)
        return SAC_FAIL(t->r->ctx, SAC_ERR_FORMAT,
                        "tensor '%s' is damaged (or has more than %d dims)", t->label,
                        SAC_RANK_MAX);
    t->desc.dtype = sac_onnx_dtype(t->data_type);
    if (t->desc.dtype == SAC_DTYPE_NONE)
        return SAC_FAIL(t->r->ctx, SAC_ERR_UNSUPPORTED, "tensor '%s' is of type %s (%llu)",
                        t->label, sac_onnx_dtype_name(t->data_type),
                        (unsigned long long)t->data_type);
    t->elements = sac_tensor_desc_elements(&t->desc);
    int64_t bytes = sac_tensor_desc_bytes(&t->desc);
    if (t->elements < 0 || bytes < 0)
        return SAC_FAIL(t->r->ctx, SAC_ERR_FORMAT, "tensor '%s' has impossible dims", t->label);
    t->bytes = (size_t)bytes;
    return SAC_OK;
}

static sac_result wrong_size(const struct tensor *t, size_t have, const char *unit)
{
    return SAC_FAIL(t->r->ctx, SAC_ERR_FORMAT,
                    "tensor '%s' says %lld elements of %s (%zu bytes) but has %zu %s", t->label,
                    (long long)t->elements, sac_dtype_name(t->desc.dtype), t->bytes, have, unit);
}

static sac_result no_memory(const struct tensor *t)
{
    return SAC_FAIL(t->r->ctx, SAC_ERR_MEMORY, "no memory for tensor '%s' of %zu bytes", t->label,
                    t->bytes);
}

/* Used in place, unless unaligned or bools other than 0 and 1. */
static sac_result take_bytes(struct tensor *t, const uint8_t *at, size_t size, const void **out)
{
    if (size != t->bytes)
        return wrong_size(t, size, "bytes");
    bool fits = (uintptr_t)at % sac_dtype_bytes(t->desc.dtype) == 0 && size > 0;
    for (size_t i = 0; fits && t->desc.dtype == SAC_BOOL && i < size; i++)
        fits = at[i] <= 1;
    if (fits) {
        *out = at;
        return SAC_OK;
    }
    uint8_t *copy = sac_arena_alloc(t->r->arena, SAC_MAX(size, (size_t)1));
    if (!copy)
        return no_memory(t);
    if (size)
        memcpy(copy, at, size);
    for (size_t i = 0; t->desc.dtype == SAC_BOOL && i < size; i++)
        copy[i] = copy[i] != 0;
    *out = copy;
    return SAC_OK;
}

/* The field that holds a type's numbers, when they are not raw. */
static uint32_t typed_field(enum sac_dtype dtype)
{
    switch (dtype) {
    case SAC_F32: return FLOAT_DATA;
    case SAC_F64: return DOUBLE_DATA;
    case SAC_I64: return INT64_DATA;
    case SAC_U32:
    case SAC_U64: return UINT64_DATA;
    default: return INT32_DATA;
    }
}

/* All of the typed field's elements into out (NULL: count only). */
static bool typed_elements(const struct tensor *t, void *out, size_t *count)
{
    uint32_t         number = typed_field(t->desc.dtype);
    size_t           max = (size_t)t->elements;
    struct sac_wire  w = t->message;
    struct sac_field f;
    bool             ok = true;
    *count = 0;
    while (ok && sac_wire_next(&w, &f) > 0) {
        if (f.number != number)
            continue;
        if (number == FLOAT_DATA)
            ok = sac_wire_fixed32(&f, out, max, count);
        else if (number == DOUBLE_DATA)
            ok = sac_wire_fixed64(&f, out, max, count);
        else
            ok = sac_wire_ints(&f, out, max, count);
    }
    return ok;
}

static void narrow(enum sac_dtype dtype, const int64_t *in, size_t n, void *out)
{
    size_t size = sac_dtype_bytes(dtype);
    for (size_t i = 0; i < n; i++) {
        int64_t v = dtype == SAC_BOOL ? in[i] != 0 : in[i];
        memcpy((uint8_t *)out + i * size, &v, size); /* little-endian: the low bytes */
    }
}

static sac_result take_typed(struct tensor *t, const void **out)
{
    size_t count;
    bool   whole = typed_elements(t, NULL, &count);
    if (!whole || count != (size_t)t->elements)
        return wrong_size(t, count,
                          whole ? "elements" : "elements before it is damaged or too long");
    void *data = sac_arena_alloc(t->r->arena, SAC_MAX(t->bytes, (size_t)1));
    if (!data)
        return no_memory(t);
    uint32_t number = typed_field(t->desc.dtype);
    if (number == FLOAT_DATA || number == DOUBLE_DATA || sac_dtype_bytes(t->desc.dtype) == 8) {
        typed_elements(t, data, &count);
    } else {
        int64_t *wide = sac_realloc_array(NULL, count, sizeof *wide);
        if (!wide)
            return no_memory(t);
        typed_elements(t, wide, &count);
        narrow(t->desc.dtype, wide, count, data);
        sac_free(wide);
    }
    *out = data;
    return SAC_OK;
}

static sac_result take_external(struct tensor *t, const void **out)
{
    const uint8_t *at = NULL;
    size_t         size = 0;
    uint64_t       length = t->length == UINT64_MAX ? t->bytes : t->length;
    sac_result     res = sac_onnx_external(t->r, t->location, t->offset, length, &at, &size);
    if (res == SAC_OK)
        res = take_bytes(t, at, size, out);
    else
        res = sac_fail_prefix(t->r->ctx, res, "tensor '%s': ", t->label);
    return res;
}

sac_result sac_onnx_tensor(struct sac_onnx_reader *r, struct sac_wire w, struct sac_value *v,
                           struct sac_wire *name)
{
    struct tensor t = {.r = r, .message = w};
    const void   *data = NULL;
    sac_result    res = take_header(&t);
    if (res != SAC_OK)
        return res;
    if (t.external)
        res = take_external(&t, &data);
    else if (t.has_raw)
        res = take_bytes(&t, t.raw.at, sac_wire_left(&t.raw), &data);
    else
        res = take_typed(&t, &data);
    if (res != SAC_OK)
        return res;
    v->dtype = t.desc.dtype;
    v->rank = t.desc.rank;
    memcpy(v->dims, t.desc.shape, sizeof v->dims);
    v->data = data;
    *name = t.name;
    return SAC_OK;
}
