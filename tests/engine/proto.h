/* SPDX-License-Identifier: Apache-2.0 */
/* Writes ONNX models, right and wrong ones, for the engine's tests. A message is a growing buffer;
 * nested ones are written on their own and then put in.
 *
 *     struct proto graph = {0}, model = {0};
 *     proto_node(&graph, "Add", "x y", "z", NULL);
 *     proto_input(&graph, "x", 1, "1 ? 4");
 *     proto_model(&model, &graph, 17);
 */
#ifndef SAC_TESTS_ENGINE_PROTO_H
#define SAC_TESTS_ENGINE_PROTO_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct proto {
    uint8_t *bytes;
    size_t   size, cap;
};

static inline void proto_raw(struct proto *p, const void *bytes, size_t size)
{
    if (p->size + size > p->cap) {
        p->cap = (p->size + size) * 2;
        p->bytes = realloc(p->bytes, p->cap);
    }
    if (size)
        memcpy(p->bytes + p->size, bytes, size);
    p->size += size;
}

static inline void proto_free(struct proto *p)
{
    free(p->bytes);
    *p = (struct proto){0};
}

static inline void proto_varint_bare(struct proto *p, uint64_t v)
{
    do {
        uint8_t byte = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        proto_raw(p, &byte, 1);
        v >>= 7;
    } while (v);
}

static inline void proto_int(struct proto *p, unsigned field, int64_t v)
{
    proto_varint_bare(p, field << 3);
    proto_varint_bare(p, (uint64_t)v);
}

static inline void proto_float(struct proto *p, unsigned field, float v)
{
    proto_varint_bare(p, field << 3 | 5);
    proto_raw(p, &v, 4);
}

static inline void proto_bytes(struct proto *p, unsigned field, const void *bytes, size_t size)
{
    proto_varint_bare(p, field << 3 | 2);
    proto_varint_bare(p, size);
    proto_raw(p, bytes, size);
}

static inline void proto_string(struct proto *p, unsigned field, const char *s)
{
    proto_bytes(p, field, s, strlen(s));
}

/* Puts inner in and frees it. */
static inline void proto_message(struct proto *p, unsigned field, struct proto *inner)
{
    proto_bytes(p, field, inner->bytes, inner->size);
    proto_free(inner);
}

/* Each word of a list as a string field; "-" is the empty name. */
static inline void proto_words(struct proto *p, unsigned field, const char *words)
{
    while (*words) {
        size_t len = strcspn(words, " ");
        if (len == 1 && *words == '-')
            proto_bytes(p, field, "", 0);
        else
            proto_bytes(p, field, words, len);
        words += len + (words[len] == ' ');
    }
}

/* attrs: messages of AttributeProto written before, or NULL; freed. */
static inline void proto_node(struct proto *graph, const char *op, const char *inputs,
                              const char *outputs, struct proto *attrs)
{
    struct proto node = {0};
    proto_words(&node, 1, inputs);
    proto_words(&node, 2, outputs);
    proto_string(&node, 4, op);
    if (attrs)
        proto_raw(&node, attrs->bytes, attrs->size);
    if (attrs)
        proto_free(attrs);
    proto_message(graph, 1, &node);
}

static inline void proto_attr_int(struct proto *attrs, const char *name, int64_t v)
{
    struct proto a = {0};
    proto_string(&a, 1, name);
    proto_int(&a, 3, v);
    proto_int(&a, 20, 2);
    proto_message(attrs, 5, &a);
}

static inline void proto_attr_string(struct proto *attrs, const char *name, const char *v)
{
    struct proto a = {0};
    proto_string(&a, 1, name);
    proto_string(&a, 4, v);
    proto_int(&a, 20, 3);
    proto_message(attrs, 5, &a);
}

static inline void proto_attr_ints(struct proto *attrs, const char *name, const char *numbers)
{
    struct proto a = {0};
    char        *next;
    proto_string(&a, 1, name);
    for (long v = strtol(numbers, &next, 10); next != numbers; v = strtol(numbers, &next, 10)) {
        proto_int(&a, 8, v);
        numbers = next;
    }
    proto_int(&a, 20, 7);
    proto_message(attrs, 5, &a);
}

static inline void proto_attr_graph(struct proto *attrs, const char *name, struct proto *graph)
{
    struct proto a = {0};
    proto_string(&a, 1, name);
    proto_message(&a, 6, graph);
    proto_int(&a, 20, 5);
    proto_message(attrs, 5, &a);
}

/* dims: "1 ? 4"; "?" is open. */
static inline void proto_value(struct proto *graph, unsigned field, const char *name, int type,
                               const char *dims)
{
    struct proto info = {0}, kind = {0}, tensor = {0}, shape = {0};
    while (*dims) {
        struct proto dim = {0};
        size_t       len = strcspn(dims, " ");
        if (*dims == '?')
            proto_string(&dim, 2, "n");
        else
            proto_int(&dim, 1, atoll(dims));
        proto_message(&shape, 1, &dim);
        dims += len + (dims[len] == ' ');
    }
    proto_int(&tensor, 1, type);
    proto_message(&tensor, 2, &shape);
    proto_message(&kind, 1, &tensor);
    proto_string(&info, 1, name);
    proto_message(&info, 2, &kind);
    proto_message(graph, field, &info);
}

static inline void proto_input(struct proto *graph, const char *name, int type, const char *dims)
{
    proto_value(graph, 11, name, type, dims);
}

static inline void proto_output(struct proto *graph, const char *name, int type, const char *dims)
{
    proto_value(graph, 12, name, type, dims);
}

/* A TensorProto with raw data; data NULL: without any. */
static inline void proto_tensor(struct proto *t, const char *name, int type, const char *dims,
                                const void *data, size_t size)
{
    char *next;
    for (long long v = strtoll(dims, &next, 10); next != dims; v = strtoll(dims, &next, 10)) {
        proto_int(t, 1, v);
        dims = next;
    }
    proto_int(t, 2, type);
    proto_string(t, 8, name);
    if (data)
        proto_bytes(t, 9, data, size);
}

static inline void proto_initializer(struct proto *graph, const char *name, int type,
                                     const char *dims, const void *data, size_t size)
{
    struct proto t = {0};
    proto_tensor(&t, name, type, dims, data, size);
    proto_message(graph, 5, &t);
}

/* Takes graph. */
static inline void proto_model(struct proto *model, struct proto *graph, int64_t opset)
{
    struct proto set = {0};
    proto_int(model, 1, 8);
    proto_string(model, 2, "saccade tests");
    proto_message(model, 7, graph);
    proto_string(&set, 1, "");
    proto_int(&set, 2, opset);
    proto_message(model, 8, &set);
}

#endif
