/* SPDX-License-Identifier: Apache-2.0 */
/* AttributeProto, and the references to the call's attributes in the bodies of functions. */
#include <string.h>

#include "engine/onnx/reader.h"

enum { /* fields of AttributeProto */
       A_NAME = 1,
       A_F = 2,
       A_I = 3,
       A_S = 4,
       A_T = 5,
       A_G = 6,
       A_FLOATS = 7,
       A_INTS = 8,
       A_STRINGS = 9,
       A_TYPE = 20,
       A_REF = 21
};
enum { NODE_ATTRIBUTE = 5 }; /* the list in a NodeProto */

static sac_result attr_string(const struct sac_onnx_place *p, struct sac_wire s, struct sac_attr *a)
{
    a->count = sac_wire_left(&s);
    a->s = sac_arena_strndup(p->r->arena, a->count ? (const char *)s.at : "", a->count);
    return a->s ? SAC_OK : sac_onnx_no_memory(p->r);
}

static sac_result attr_strings(const struct sac_onnx_place *p, struct sac_wire w,
                               struct sac_attr *a)
{
    struct sac_wire s;
    size_t          n = sac_wire_count_bytes(w, A_STRINGS);
    char          **list = sac_arena_alloc(p->r->arena, (n + 1) * sizeof *list);
    if (!list)
        return sac_onnx_no_memory(p->r);
    while (sac_wire_next_bytes(&w, A_STRINGS, &s) > 0) {
        size_t len = sac_wire_left(&s);
        list[a->count] = sac_arena_strndup(p->r->arena, len ? (const char *)s.at : "", len);
        if (!list[a->count++])
            return sac_onnx_no_memory(p->r);
    }
    a->strings = (const char *const *)list;
    return SAC_OK;
}

/* ints or floats: counted, then copied. */
static sac_result attr_numbers(const struct sac_onnx_place *p, struct sac_wire message,
                               struct sac_attr *a)
{
    bool             ints = a->kind == SAC_ATTR_INTS;
    void            *data = NULL;
    struct sac_field f;
    for (int pass = 0; pass < 2; pass++) {
        struct sac_wire w = message;
        size_t          max = pass ? a->count : SIZE_MAX / 8, n = 0;
        while (sac_wire_next(&w, &f) > 0) {
            bool ok = true;
            if (ints && f.number == A_INTS)
                ok = sac_wire_ints(&f, data, max, &n);
            else if (!ints && f.number == A_FLOATS)
                ok = sac_wire_fixed32(&f, data, max, &n);
            if (!ok)
                return sac_onnx_damaged(p->r, "an attribute", &w);
        }
        a->count = n;
        if (pass == 0 && !(data = sac_arena_alloc(p->r->arena, (n + 1) * (ints ? 8 : 4))))
            return sac_onnx_no_memory(p->r);
    }
    if (ints)
        a->ints = data;
    else
        a->floats = data;
    return SAC_OK;
}

static sac_result attr_tensor(const struct sac_onnx_place *p, struct sac_wire t, struct sac_attr *a)
{
    struct sac_wire   name;
    struct sac_value *v = sac_arena_alloc(p->r->arena, sizeof *v);
    if (!v)
        return sac_onnx_no_memory(p->r);
    v->id = -1;
    v->name = a->name;
    a->tensor = v;
    return sac_onnx_tensor(p->r, t, v, &name);
}

static sac_result attr_graph(const struct sac_onnx_place *p, struct sac_wire g, struct sac_attr *a)
{
    if (p->depth >= SAC_ONNX_DEPTH_MAX)
        return SAC_FAIL(p->r->ctx, SAC_ERR_UNSUPPORTED, "graphs nested deeper than %d",
                        SAC_ONNX_DEPTH_MAX);
    a->graph = sac_graph_create(p->r->ctx, p->r->arena, p->g);
    return a->graph ? sac_onnx_read_graph(p, g, a->graph) : SAC_ERR_MEMORY;
}

/* Scalars and the kind. A missing kind (files before 2017) is derived from the field. */
static bool attr_scalars(struct sac_wire w, struct sac_attr *a, uint64_t *kind)
{
    static const uint8_t kind_of_field[] = {
        [A_F] = SAC_ATTR_FLOAT,   [A_I] = SAC_ATTR_INT,          [A_S] = SAC_ATTR_STRING,
        [A_T] = SAC_ATTR_TENSOR,  [A_G] = SAC_ATTR_GRAPH,        [A_FLOATS] = SAC_ATTR_FLOATS,
        [A_INTS] = SAC_ATTR_INTS, [A_STRINGS] = SAC_ATTR_STRINGS};
    struct sac_field f;
    uint64_t         guess = 0;
    int              more;
    *kind = 0;
    while ((more = sac_wire_next(&w, &f)) > 0) {
        if (f.number == A_TYPE)
            *kind = f.value;
        else if (f.number < SAC_COUNT(kind_of_field) && kind_of_field[f.number])
            guess = kind_of_field[f.number];
    }
    if (*kind == 0)
        *kind = guess;
    a->kind = (enum sac_attr_kind)(*kind <= SAC_ATTR_STRINGS ? *kind : 0);
    return more == 0;
}

static void attr_number(struct sac_wire w, struct sac_attr *a)
{
    struct sac_field f;
    while (sac_wire_next(&w, &f) > 0)
        if (f.number == A_I && a->kind == SAC_ATTR_INT && f.type == SAC_WIRE_VARINT) {
            a->i = (int64_t)f.value;
        } else if (f.number == A_F && a->kind == SAC_ATTR_FLOAT && f.type == SAC_WIRE_FIXED32) {
            uint32_t bits = (uint32_t)f.value;
            memcpy(&a->f, &bits, sizeof a->f);
        }
}

/* Fills *a; kind stays 0 for kinds that no operator of ours takes (types, lists of graphs). */
static sac_result read_attr(const struct sac_onnx_place *p, struct sac_wire w, struct sac_attr *a)
{
    uint64_t   kind;
    sac_result res = sac_onnx_name_copy(p->r, sac_wire_last_bytes(w, A_NAME), &a->name);
    if (res != SAC_OK)
        return res;
    if (!attr_scalars(w, a, &kind))
        return sac_onnx_damaged(p->r, "an attribute", &w);
    switch (a->kind) {
    case SAC_ATTR_STRING: return attr_string(p, sac_wire_last_bytes(w, A_S), a);
    case SAC_ATTR_TENSOR: return attr_tensor(p, sac_wire_last_bytes(w, A_T), a);
    case SAC_ATTR_GRAPH: return attr_graph(p, sac_wire_last_bytes(w, A_G), a);
    case SAC_ATTR_STRINGS: return attr_strings(p, w, a);
    case SAC_ATTR_FLOATS:
    case SAC_ATTR_INTS: return attr_numbers(p, w, a);
    case SAC_ATTR_FLOAT:
    case SAC_ATTR_INT: attr_number(w, a); break;
    }
    return SAC_OK;
}

/* In a function's body an attribute may refer to one of the call's, or to the function's
 * default. */
static sac_result read_reference(const struct sac_onnx_place *p, struct sac_wire w,
                                 struct sac_wire target, struct sac_attr *a)
{
    const char     *own_name, *name;
    struct sac_wire list = p->function ? *p->function : (struct sac_wire){0}, inside;
    sac_result      res = sac_onnx_name_copy(p->r, sac_wire_last_bytes(w, A_NAME), &own_name);
    if (res == SAC_OK)
        res = sac_onnx_name_copy(p->r, target, &name);
    if (res != SAC_OK)
        return res;
    const struct sac_attr *given = p->caller ? sac_node_attr(p->caller, name) : NULL;
    if (given)
        *a = *given;
    while (!given && sac_wire_next_bytes(&list, 11, &inside) > 0)
        if (sac_wire_equals(sac_wire_last_bytes(inside, A_NAME), target))
            res = read_attr(p, inside, a);
    a->name = own_name;
    a->shared = given != NULL;
    return res;
}

sac_result sac_onnx_read_attrs(const struct sac_onnx_place *p, struct sac_wire w,
                               struct sac_node *n)
{
    struct sac_wire inside;
    n->attrs = sac_arena_alloc(p->r->arena,
                               (sac_wire_count_bytes(w, NODE_ATTRIBUTE) + 1) * sizeof *n->attrs);
    if (!n->attrs)
        return sac_onnx_no_memory(p->r);
    while (sac_wire_next_bytes(&w, NODE_ATTRIBUTE, &inside) > 0) {
        struct sac_attr *a = &n->attrs[n->attr_count];
        struct sac_wire  target = sac_wire_last_bytes(inside, A_REF);
        sac_result       res =
            sac_wire_left(&target) ? read_reference(p, inside, target, a) : read_attr(p, inside, a);
        if (res != SAC_OK)
            return res;
        n->attr_count += a->kind != 0;
    }
    return SAC_OK;
}
