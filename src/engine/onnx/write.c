/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/onnx/reader.h"
#include "engine/onnx/write.h"

/* ---- protobuf ---- */

/* A message that grows. */
struct message {
    uint8_t *bytes;
    size_t   size, cap;
    bool     failed; /* there was no memory: nothing more is added */
};

static void put_bytes(struct message *m, const void *bytes, size_t size)
{
    if (m->failed || (m->failed = !sac_grow((void **)&m->bytes, &m->cap, m->size + size + 1, 1)))
        return;
    if (size)
        memcpy(m->bytes + m->size, bytes, size);
    m->size += size;
}

static void put_bare(struct message *m, uint64_t v)
{
    uint8_t bytes[10];
    size_t  n = 0;
    do {
        bytes[n++] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        v >>= 7;
    } while (v);
    put_bytes(m, bytes, n);
}

static void put_int(struct message *m, unsigned field, int64_t v)
{
    put_bare(m, field << 3);
    put_bare(m, (uint64_t)v);
}

static void put_float(struct message *m, unsigned field, float v)
{
    put_bare(m, field << 3 | 5);
    put_bytes(m, &v, sizeof v);
}

static void put_block(struct message *m, unsigned field, const void *bytes, size_t size)
{
    put_bare(m, field << 3 | 2);
    put_bare(m, size);
    put_bytes(m, bytes, size);
}

static void put_string(struct message *m, unsigned field, const char *s)
{
    put_block(m, field, s, strlen(s));
}

/* Puts it in and frees it. */
static void put_message(struct message *m, unsigned field, struct message *inside)
{
    m->failed |= inside->failed;
    put_block(m, field, inside->bytes, inside->size);
    sac_free(inside->bytes);
    *inside = (struct message){0};
}

/* ---- names ---- */

/* Each value's, by its id; those that have one another's get a number. */
struct names {
    char **of; /* [count], NULL: of no value */
    int    count;
};

struct named {
    const struct sac_value *v;
    bool                    port;
};

static int by_name(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    const int           order = strcmp(x->v->name, y->v->name);
    return order ? order : x->port != y->port ? y->port - x->port : x->v->id - y->v->id;
}

static bool is_port(const struct sac_graph *g, const struct sac_value *v)
{
    for (int i = 0; i < g->input_count; i++)
        if (g->inputs[i] == v)
            return true;
    for (int i = 0; i < g->output_count; i++)
        if (g->outputs[i] == v)
            return true;
    return false;
}

static bool list_values(const struct sac_graph *g, struct named **list, size_t *cap, size_t *count)
{
    for (size_t i = 0; i < g->value_count; i++) {
        if (!sac_grow((void **)list, cap, *count + 1, sizeof **list))
            return false;
        (*list)[(*count)++] = (struct named){g->values[i], is_port(g, g->values[i])};
    }
    for (size_t i = 0; i < g->node_count; i++)
        for (int a = 0; a < g->nodes[i]->attr_count; a++)
            if (g->nodes[i]->attrs[a].kind == SAC_ATTR_GRAPH &&
                !list_values(g->nodes[i]->attrs[a].graph, list, cap, count))
                return false;
    return true;
}

static bool name_values(const struct sac_graph *g, struct names *names)
{
    struct named *list = NULL;
    size_t        cap = 0, count = 0;
    names->count = g->id_count;
    names->of = sac_calloc((size_t)g->id_count + 1, sizeof *names->of);
    bool good = names->of && list_values(g, &list, &cap, &count);
    if (good && count)
        qsort(list, count, sizeof *list, by_name);
    for (size_t i = 0; i < count && good; i++) {
        const struct sac_value *v = list[i].v;
        const bool first = v->name[0] && (i == 0 || strcmp(v->name, list[i - 1].v->name) != 0);
        names->of[v->id] = first ? sac_strdup(v->name) : sac_asprintf("%s__%d", v->name, v->id);
        good = names->of[v->id] != NULL;
    }
    sac_free(list);
    return good;
}

static void forget_names(struct names *names)
{
    for (int i = 0; names->of && i < names->count; i++)
        sac_free(names->of[i]);
    sac_free(names->of);
}

static const char *name_of(const struct names *names, const struct sac_value *v)
{
    return v ? names->of[v->id] : "";
}

/* ---- tensors and values ---- */

static int64_t type_of(enum sac_dtype dtype)
{
    enum { TYPES = 32 };
    for (int64_t type = 1; type < TYPES; type++)
        if (dtype != SAC_DTYPE_NONE && sac_onnx_dtype((uint64_t)type) == dtype)
            return type;
    return 0;
}

static void put_tensor(struct message *m, unsigned field, const char *name,
                       const struct sac_value *v)
{
    struct message         t = {0};
    struct sac_tensor_desc desc = {.dtype = v->dtype, .rank = v->rank};
    memcpy(desc.shape, v->dims, sizeof desc.shape);
    for (int d = 0; d < v->rank; d++)
        put_int(&t, 1, v->dims[d]);
    put_int(&t, 2, type_of(v->dtype));
    put_string(&t, 8, name);
    put_block(&t, 9, v->data, (size_t)sac_tensor_desc_bytes(&desc));
    put_message(m, field, &t);
}

static void put_port(struct message *m, unsigned field, const char *name, const struct sac_value *v)
{
    struct message info = {0}, kind = {0}, tensor = {0}, shape = {0};
    for (int d = 0; d < v->rank; d++) {
        struct message dim = {0};
        char           open[16];
        snprintf(open, sizeof open, d ? "dim%d" : "batch", d);
        if (v->dims[d] == SAC_DIM_OPEN)
            put_string(&dim, 2, open);
        else
            put_int(&dim, 1, v->dims[d]);
        put_message(&shape, 1, &dim);
    }
    put_int(&tensor, 1, type_of(v->dtype));
    if (v->rank >= 0)
        put_message(&tensor, 2, &shape);
    put_message(&kind, 1, &tensor);
    put_string(&info, 1, name);
    if (v->dtype != SAC_DTYPE_NONE)
        put_message(&info, 2, &kind);
    put_message(m, field, &info);
    sac_free(shape.bytes);
    sac_free(kind.bytes);
}

/* ---- nodes and graphs ---- */

static void put_graph(struct message *m, unsigned field, const struct sac_graph *g,
                      const struct names *names);

static void put_attr(struct message *m, const struct sac_attr *attr, const struct names *names)
{
    struct message a = {0};
    put_string(&a, 1, attr->name);
    put_int(&a, 20, attr->kind);
    switch (attr->kind) {
    case SAC_ATTR_FLOAT: put_float(&a, 2, attr->f); break;
    case SAC_ATTR_INT: put_int(&a, 3, attr->i); break;
    case SAC_ATTR_STRING: put_block(&a, 4, attr->s, attr->count); break;
    case SAC_ATTR_TENSOR: put_tensor(&a, 5, "", attr->tensor); break;
    case SAC_ATTR_GRAPH: put_graph(&a, 6, attr->graph, names); break;
    case SAC_ATTR_FLOATS:
        for (size_t i = 0; i < attr->count; i++)
            put_float(&a, 7, attr->floats[i]);
        break;
    case SAC_ATTR_INTS:
        for (size_t i = 0; i < attr->count; i++)
            put_int(&a, 8, attr->ints[i]);
        break;
    case SAC_ATTR_STRINGS:
        for (size_t i = 0; i < attr->count; i++)
            put_string(&a, 9, attr->strings[i]);
        break;
    }
    put_message(m, 5, &a);
}

static void put_node(struct message *m, const struct sac_node *n, const struct names *names)
{
    struct message node = {0};
    for (int i = 0; i < n->input_count; i++)
        put_string(&node, 1, name_of(names, n->inputs[i]));
    for (int i = 0; i < n->output_count; i++)
        put_string(&node, 2, name_of(names, n->outputs[i]));
    put_string(&node, 3, n->name);
    put_string(&node, 4, n->op_type);
    for (int a = 0; a < n->attr_count; a++)
        put_attr(&node, &n->attrs[a], names);
    put_string(&node, 7, n->domain);
    put_message(m, 1, &node);
}

/* Constants that something reads; a rewritten graph has others too. */
static void put_constants(struct message *m, const struct sac_graph *g, const struct names *names)
{
    for (size_t i = 0; i < g->value_count; i++)
        if (g->values[i]->data && g->values[i]->uses > 0)
            put_tensor(m, 5, name_of(names, g->values[i]), g->values[i]);
}

static void put_graph(struct message *m, unsigned field, const struct sac_graph *g,
                      const struct names *names)
{
    struct message graph = {0};
    for (size_t i = 0; i < g->node_count; i++)
        put_node(&graph, g->nodes[i], names);
    put_string(&graph, 2, g->name && g->name[0] ? g->name : "graph");
    put_constants(&graph, g, names);
    for (int i = 0; i < g->input_count; i++)
        put_port(&graph, 11, name_of(names, g->inputs[i]), g->inputs[i]);
    for (int i = 0; i < g->output_count; i++)
        put_port(&graph, 12, name_of(names, g->outputs[i]), g->outputs[i]);
    put_message(m, field, &graph);
}

/* ---- the model ---- */

static void put_opset(struct message *m, const char *domain, int64_t version)
{
    struct message set = {0};
    put_string(&set, 1, domain);
    put_int(&set, 2, version);
    put_message(m, 8, &set);
}

static bool seen_before(const struct sac_graph *g, size_t node)
{
    for (size_t i = 0; i < node; i++)
        if (strcmp(g->nodes[i]->domain, g->nodes[node]->domain) == 0)
            return true;
    return false;
}

static void put_opsets(struct message *m, const struct sac_onnx *file)
{
    const struct sac_graph *g = file->graph;
    put_opset(m, "", file->opset);
    for (size_t i = 0; i < g->node_count; i++)
        if (g->nodes[i]->domain[0] && !seen_before(g, i))
            put_opset(m, g->nodes[i]->domain, g->nodes[i]->opset);
}

static void put_pair(struct message *m, const struct sac_onnx_pair *p)
{
    struct message pair = {0};
    put_string(&pair, 1, p->key);
    put_string(&pair, 2, p->value);
    put_message(m, 14, &pair);
}

static bool is_replaced(const struct sac_onnx_pair *p, const struct sac_onnx_pair *more, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(p->key, more[i].key) == 0)
            return true;
    return false;
}

sac_result sac_onnx_write(const struct sac_onnx *file, const struct sac_onnx_pair *more, int count,
                          uint8_t **out, size_t *size)
{
    enum { IR_LEAST = 8 }; /* weights need not be inputs; float8 came with 9 */
    struct names   names = {0};
    struct message m = {0};
    m.failed = !name_values(file->graph, &names);
    put_int(&m, 1, SAC_MAX(file->ir_version, IR_LEAST));
    put_string(&m, 2, "saccade");
    if (!m.failed)
        put_graph(&m, 7, file->graph, &names);
    put_opsets(&m, file);
    for (int i = 0; i < file->metadata_count; i++)
        if (!is_replaced(&file->metadata[i], more, count))
            put_pair(&m, &file->metadata[i]);
    for (int i = 0; i < count; i++)
        put_pair(&m, &more[i]);
    forget_names(&names);
    if (m.failed) {
        sac_free(m.bytes);
        return SAC_FAIL(file->graph->ctx, SAC_ERR_MEMORY, "no memory to write a model");
    }
    *out = m.bytes;
    *size = m.size;
    return SAC_OK;
}
