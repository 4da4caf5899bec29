/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "engine/graph/graph.h"
#include "engine/graph/links.h"

struct sac_graph *sac_graph_root(struct sac_graph *g)
{
    while (g->outer)
        g = g->outer;
    return g;
}

static void *no_memory(struct sac_graph *g, const char *what)
{
    SAC_FAIL(g->ctx, SAC_ERR_MEMORY, "no memory for %s of the graph", what);
    return NULL;
}

static void *graph_alloc(struct sac_graph *g, size_t count, size_t size, const char *what)
{
    size_t bytes;
    void  *p = NULL;
    if (!__builtin_mul_overflow(count, size, &bytes))
        p = sac_arena_alloc(g->arena, bytes);
    return p ? p : no_memory(g, what);
}

/* Arrays of pointers are in the arena too: growing one abandons its old memory, which is freed with
 * the arena. */
static bool append(struct sac_graph *g, void ***items, size_t *count, size_t *cap, void *item)
{
    if (*count == *cap) {
        size_t room = *cap ? *cap * 2 : 16;
        void **grown = graph_alloc(g, room, sizeof *grown, "the lists");
        if (!grown)
            return false;
        if (*count)
            memcpy(grown, *items, *count * sizeof *grown);
        *items = grown;
        *cap = room;
    }
    (*items)[(*count)++] = item;
    return true;
}

struct sac_graph *sac_graph_create(sac_context *ctx, struct sac_arena *arena,
                                   struct sac_graph *outer)
{
    struct sac_graph *g = sac_arena_alloc(arena, sizeof *g);
    if (!g) {
        SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for a graph");
        return NULL;
    }
    *g = (struct sac_graph){.ctx = ctx, .arena = arena, .outer = outer, .name = ""};
    return g;
}

struct sac_value *sac_graph_value(struct sac_graph *g, const char *name)
{
    struct sac_graph *root = sac_graph_root(g);
    struct sac_value *v = graph_alloc(g, 1, sizeof *v, "a value");
    if (!v)
        return NULL;
    *v = (struct sac_value){.id = root->id_count, .rank = -1};
    v->name = sac_arena_strndup(g->arena, name, strlen(name));
    if (!v->name)
        return no_memory(g, "a name");
    if (!append(g, (void ***)&g->values, &g->value_count, &g->value_cap, v))
        return NULL;
    root->id_count++;
    return v;
}

struct sac_value *sac_graph_constant(struct sac_graph *g, const char *name,
                                     const struct sac_tensor_desc *desc, const void *data)
{
    struct sac_value *v = sac_graph_value(g, name);
    if (!v)
        return NULL;
    int64_t bytes = sac_tensor_desc_bytes(desc);
    void   *copy = bytes < 0 ? NULL : sac_arena_alloc(g->arena, SAC_MAX((size_t)bytes, (size_t)1));
    if (!copy)
        return no_memory(g, "a constant");
    if (data)
        memcpy(copy, data, (size_t)bytes);
    v->dtype = desc->dtype;
    v->rank = desc->rank;
    memcpy(v->dims, desc->shape, sizeof v->dims);
    v->data = copy;
    return v;
}

void sac_value_forget(struct sac_graph *g, struct sac_value *v)
{
    size_t bytes = v->data ? sac_dtype_bytes(v->dtype) : 0;
    for (int d = 0; d < v->rank; d++)
        bytes *= (size_t)v->dims[d];
    if (v->data && !v->shared && sac_arena_free(g->arena, v->data, bytes))
        v->data = NULL;
}

struct sac_node *sac_graph_node(struct sac_graph *g, const char *domain, const char *op_type,
                                int inputs, int outputs, const struct sac_node *like)
{
    struct sac_node *n = graph_alloc(g, 1, sizeof *n, "a node");
    if (!n)
        return NULL;
    *n = (struct sac_node){.input_count = inputs, .output_count = outputs, .name = ""};
    n->op_type = sac_arena_strndup(g->arena, op_type, strlen(op_type));
    n->domain = sac_arena_strndup(g->arena, domain, strlen(domain));
    n->inputs = graph_alloc(g, (size_t)inputs, sizeof(void *), "a node");
    n->outputs = graph_alloc(g, (size_t)outputs, sizeof(void *), "a node");
    if (!n->op_type || !n->domain || !n->inputs || !n->outputs)
        return no_memory(g, "a node");
    if (like) {
        n->name = like->name;
        n->opset = like->opset;
        n->index = like->index;
    }
    return append(g, (void ***)&g->nodes, &g->node_count, &g->node_cap, n) ? n : NULL;
}

/* ---- attributes ---- */

const struct sac_attr *sac_node_attr(const struct sac_node *n, const char *name)
{
    for (int i = 0; i < n->attr_count; i++)
        if (strcmp(n->attrs[i].name, name) == 0)
            return &n->attrs[i];
    return NULL;
}

static const struct sac_attr *attr_of_kind(const struct sac_node *n, const char *name,
                                           enum sac_attr_kind kind)
{
    const struct sac_attr *a = sac_node_attr(n, name);
    return a && a->kind == kind ? a : NULL;
}

int64_t sac_attr_int(const struct sac_node *n, const char *name, int64_t fallback)
{
    const struct sac_attr *a = attr_of_kind(n, name, SAC_ATTR_INT);
    return a ? a->i : fallback;
}

float sac_attr_float(const struct sac_node *n, const char *name, float fallback)
{
    const struct sac_attr *a = attr_of_kind(n, name, SAC_ATTR_FLOAT);
    return a ? a->f : fallback;
}

const char *sac_attr_string(const struct sac_node *n, const char *name, const char *fallback)
{
    const struct sac_attr *a = attr_of_kind(n, name, SAC_ATTR_STRING);
    return a ? a->s : fallback;
}

size_t sac_attr_ints(const struct sac_node *n, const char *name, const int64_t **out)
{
    const struct sac_attr *a = attr_of_kind(n, name, SAC_ATTR_INTS);
    *out = a ? a->ints : NULL;
    return a ? a->count : 0;
}

size_t sac_attr_floats(const struct sac_node *n, const char *name, const float **out)
{
    const struct sac_attr *a = attr_of_kind(n, name, SAC_ATTR_FLOATS);
    *out = a ? a->floats : NULL;
    return a ? a->count : 0;
}

/* Returns the entry for an attribute of that name; an existing one is overwritten. */
static struct sac_attr *attr_slot(struct sac_graph *g, struct sac_node *n, const char *name)
{
    for (int i = 0; i < n->attr_count; i++)
        if (strcmp(n->attrs[i].name, name) == 0)
            return &n->attrs[i];
    struct sac_attr *grown = graph_alloc(g, (size_t)n->attr_count + 1, sizeof *grown, "attributes");
    char            *copy = sac_arena_strndup(g->arena, name, strlen(name));
    if (!grown || !copy)
        return NULL;
    if (n->attr_count)
        memcpy(grown, n->attrs, (size_t)n->attr_count * sizeof *grown);
    n->attrs = grown;
    grown[n->attr_count].name = copy;
    return &grown[n->attr_count++];
}

sac_result sac_node_set_int(struct sac_graph *g, struct sac_node *n, const char *name, int64_t v)
{
    struct sac_attr *a = attr_slot(g, n, name);
    if (!a)
        return SAC_ERR_MEMORY;
    a->kind = SAC_ATTR_INT;
    a->i = v;
    return SAC_OK;
}

sac_result sac_node_set_float(struct sac_graph *g, struct sac_node *n, const char *name, float v)
{
    struct sac_attr *a = attr_slot(g, n, name);
    if (!a)
        return SAC_ERR_MEMORY;
    a->kind = SAC_ATTR_FLOAT;
    a->f = v;
    return SAC_OK;
}

sac_result sac_node_set_string(struct sac_graph *g, struct sac_node *n, const char *name,
                               const char *v)
{
    struct sac_attr *a = attr_slot(g, n, name);
    const char      *copy = a ? sac_arena_strndup(g->arena, v, strlen(v)) : NULL;
    if (!copy)
        return SAC_ERR_MEMORY;
    a->kind = SAC_ATTR_STRING;
    a->count = strlen(v);
    a->s = copy;
    return SAC_OK;
}

sac_result sac_node_set_ints(struct sac_graph *g, struct sac_node *n, const char *name,
                             const int64_t *v, size_t count)
{
    struct sac_attr *a = attr_slot(g, n, name);
    int64_t         *copy = graph_alloc(g, count, sizeof *copy, "attributes");
    if (!a || !copy)
        return SAC_ERR_MEMORY;
    if (count)
        memcpy(copy, v, count * sizeof *copy);
    a->kind = SAC_ATTR_INTS;
    a->count = count;
    a->ints = copy;
    return SAC_OK;
}

sac_result sac_node_set_floats(struct sac_graph *g, struct sac_node *n, const char *name,
                               const float *v, size_t count)
{
    struct sac_attr *a = attr_slot(g, n, name);
    float           *copy = graph_alloc(g, count, sizeof *copy, "attributes");
    if (!a || !copy)
        return SAC_ERR_MEMORY;
    if (count)
        memcpy(copy, v, count * sizeof *copy);
    a->kind = SAC_ATTR_FLOATS;
    a->count = count;
    a->floats = copy;
    return SAC_OK;
}

sac_result sac_node_copy_attr(struct sac_graph *g, struct sac_node *n, const char *name,
                              const struct sac_node *from)
{
    const struct sac_attr *source = sac_node_attr(from, name);
    if (!source)
        return SAC_OK;
    struct sac_attr *a = attr_slot(g, n, name);
    if (!a)
        return SAC_ERR_MEMORY;
    *a = *source;
    return SAC_OK;
}

/* ---- walking ---- */

bool sac_node_has_subgraph(const struct sac_node *n)
{
    for (int i = 0; i < n->attr_count; i++)
        if (n->attrs[i].kind == SAC_ATTR_GRAPH)
            return true;
    return false;
}

void sac_node_each_read(const struct sac_node *n, void (*fn)(void *user, struct sac_value *v),
                        void                  *user)
{
    for (int i = 0; i < n->input_count; i++)
        if (n->inputs[i])
            fn(user, n->inputs[i]);
    for (int a = 0; a < n->attr_count; a++) {
        if (n->attrs[a].kind != SAC_ATTR_GRAPH)
            continue;
        const struct sac_graph *sub = n->attrs[a].graph;
        for (size_t i = 0; i < sub->node_count; i++)
            sac_node_each_read(sub->nodes[i], fn, user);
        for (int i = 0; i < sub->output_count; i++)
            fn(user, sub->outputs[i]);
    }
}

const char *sac_node_label(const struct sac_node *n, char *buf, size_t size)
{
    if (n->name && n->name[0])
        snprintf(buf, size, "layer %d (%.64s '%.128s')", n->index, n->op_type, n->name);
    else
        snprintf(buf, size, "layer %d (%.64s)", n->index, n->op_type);
    return buf;
}

struct sac_value *sac_node_result(const struct sac_node *n)
{
    for (int i = 0; i < n->output_count; i++)
        if (n->outputs[i])
            return n->outputs[i];
    return NULL;
}

/* ---- refresh ---- */

/* The dependencies between the nodes of one graph as a flat list: node i reads results of the nodes
 * reads[start[i]..start[i+1]). */
struct order {
    struct sac_graph *g;
    int              *maker; /* value id -> node of g that computes it, -1 */
    size_t           *start;
    int              *reads;
    size_t            read_count, read_cap;
    char             *state; /* 0 not seen, 1 on the stack, 2 placed */
    int              *stack;
    struct sac_node **sorted;
    size_t            sorted_count;
    bool              failed;
};

static void note_read(void *user, struct sac_value *v)
{
    struct order *o = user;
    if (o->maker[v->id] < 0 || o->failed)
        return;
    if (!sac_grow((void **)&o->reads, &o->read_cap, o->read_count + 1, sizeof *o->reads))
        o->failed = true;
    else
        o->reads[o->read_count++] = o->maker[v->id];
}

static sac_result order_init(struct order *o, struct sac_graph *g)
{
    size_t n = g->node_count, ids = (size_t)sac_graph_root(g)->id_count;
    *o = (struct order){.g = g};
    o->maker = sac_realloc_array(NULL, ids, sizeof *o->maker);
    o->start = sac_calloc(n + 1, sizeof *o->start);
    o->state = sac_calloc(n, 1);
    o->stack = sac_calloc(n + 1, sizeof *o->stack);
    o->sorted = sac_calloc(n, sizeof *o->sorted);
    if (!o->maker || !o->start || !o->state || !o->stack || !o->sorted)
        return SAC_FAIL(g->ctx, SAC_ERR_MEMORY, "no memory to order the graph");
    memset(o->maker, 0xff, ids * sizeof *o->maker);
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < g->nodes[i]->output_count; k++)
            if (g->nodes[i]->outputs[k])
                o->maker[g->nodes[i]->outputs[k]->id] = (int)i;
    for (size_t i = 0; i < n; i++) {
        o->start[i] = o->read_count;
        sac_node_each_read(g->nodes[i], note_read, o);
    }
    o->start[n] = o->read_count;
    return o->failed ? SAC_FAIL(g->ctx, SAC_ERR_MEMORY, "no memory to order the graph") : SAC_OK;
}

static void order_finish(struct order *o)
{
    sac_free(o->maker);
    sac_free(o->start);
    sac_free(o->reads);
    sac_free(o->state);
    sac_free(o->stack);
    sac_free(o->sorted);
}

/* Places a node after all its dependencies. Uses a stack of its own, since recursion over a long
 * chain would overflow the C stack. start[] advances along each node's reads, so each is visited
 * once. */
static sac_result place(struct order *o, int node, const size_t *end)
{
    int depth = 0;
    if (o->state[node])
        return SAC_OK;
    o->stack[depth++] = node;
    o->state[node] = 1;
    while (depth > 0) {
        int at = o->stack[depth - 1];
        if (o->start[at] < end[at]) {
            int need = o->reads[o->start[at]++];
            if (o->state[need] == 1) {
                char label[256];
                return SAC_FAIL(o->g->ctx, SAC_ERR_FORMAT, "%s needs its own result: a cycle",
                                sac_node_label(o->g->nodes[need], label, sizeof label));
            }
            if (o->state[need] == 0) {
                o->state[need] = 1;
                o->stack[depth++] = need;
            }
            continue;
        }
        o->state[at] = 2;
        o->sorted[o->sorted_count++] = o->g->nodes[at];
        depth--;
    }
    return SAC_OK;
}

/* Marks the nodes that the outputs need in state[]. */
static void mark_needed(struct order *o, const size_t *end)
{
    int depth = 0;
    for (int i = 0; i < o->g->output_count; i++) {
        int maker = o->maker[o->g->outputs[i]->id];
        if (maker < 0 || o->state[maker])
            continue;
        o->state[maker] = 1;
        o->stack[depth++] = maker;
        while (depth > 0) {
            int at = o->stack[--depth];
            for (size_t r = o->start[at]; r < end[at]; r++)
                if (!o->state[o->reads[r]]) {
                    o->state[o->reads[r]] = 1;
                    o->stack[depth++] = o->reads[r];
                }
        }
    }
}

static sac_result sort_needed(struct order *o)
{
    size_t     n = o->g->node_count;
    size_t    *end = sac_calloc(n + 1, sizeof *end);
    char      *needed = sac_calloc(n, 1);
    sac_result res = SAC_OK;
    if (!end || !needed)
        res = SAC_FAIL(o->g->ctx, SAC_ERR_MEMORY, "no memory to order the graph");
    if (res == SAC_OK) {
        memcpy(end, o->start + 1, n * sizeof *end);
        mark_needed(o, end);
        memcpy(needed, o->state, n);
        memset(o->state, 0, n);
    }
    for (size_t i = 0; i < n && res == SAC_OK; i++)
        if (needed[i])
            res = place(o, (int)i, end);
    sac_free(end);
    sac_free(needed);
    return res;
}

static sac_result refresh_order(struct sac_graph *g)
{
    struct order o;
    sac_result   res = SAC_OK;
    for (size_t i = 0; i < g->node_count && res == SAC_OK; i++)
        for (int a = 0; a < g->nodes[i]->attr_count && res == SAC_OK; a++)
            if (g->nodes[i]->attrs[a].kind == SAC_ATTR_GRAPH)
                res = refresh_order(g->nodes[i]->attrs[a].graph);
    if (res != SAC_OK)
        return res;
    res = order_init(&o, g);
    if (res == SAC_OK)
        res = sort_needed(&o);
    if (res == SAC_OK && o.sorted_count)
        memcpy(g->nodes, o.sorted, o.sorted_count * sizeof *g->nodes);
    if (res == SAC_OK)
        g->node_count = o.sorted_count;
    order_finish(&o);
    return res;
}

sac_result sac_graph_refresh(struct sac_graph *g)
{
    sac_result res = refresh_order(g);
    return res == SAC_OK ? sac_graph_link(g) : res;
}
