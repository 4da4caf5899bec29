/* SPDX-License-Identifier: Apache-2.0 */
/* Who makes and who reads a value. A pass may rewrite thousands of places of a graph of thousands
 * of nodes, so what a rewrite does not touch must cost it nothing: each node remembers among whose
 * readers it is (read), which an update compares with what it reads now. */
#include <string.h>

#include "engine/graph/links.h"

/* Room for one more pointer; what the array had before is freed with the arena. */
static bool make_room(struct sac_graph *g, void ***items, size_t count, size_t *cap)
{
    if (count < *cap)
        return true;
    const size_t room = *cap ? *cap * 2 : 2;
    void       **grown = sac_arena_alloc(g->arena, room * sizeof *grown);
    if (!grown)
        return false;
    if (count)
        memcpy(grown, *items, count * sizeof *grown);
    *items = grown;
    *cap = room;
    return true;
}

static sac_result no_memory(const struct sac_graph *g)
{
    return SAC_FAIL(g->ctx, SAC_ERR_MEMORY, "no memory for the links of the graph");
}

/* ---- one node ---- */

struct link {
    struct sac_graph *g;
    struct sac_node  *n;
    bool              failed;
};

static void link_read(void *user, struct sac_value *v)
{
    struct link     *l = user;
    struct sac_node *n = l->n;
    if (l->failed || !make_room(l->g, (void ***)&n->read, n->read_count, &n->read_cap) ||
        !make_room(l->g, (void ***)&v->readers, v->reader_count, &v->reader_cap)) {
        l->failed = true;
        return;
    }
    n->read[n->read_count++] = v;
    v->readers[v->reader_count++] = n;
    v->uses++;
}

static void set_producers(struct sac_node *n)
{
    for (int k = 0; k < n->output_count; k++)
        if (n->outputs[k])
            n->outputs[k]->producer = n;
    for (int a = 0; a < n->attr_count; a++)
        for (size_t i = 0; n->attrs[a].kind == SAC_ATTR_GRAPH && i < n->attrs[a].graph->node_count;
             i++)
            set_producers(n->attrs[a].graph->nodes[i]);
}

static sac_result link_node(struct sac_graph *g, struct sac_node *n)
{
    struct link l = {g, n, false};
    set_producers(n);
    sac_node_each_read(n, link_read, &l);
    return l.failed ? no_memory(g) : SAC_OK;
}

static void unlink_read(struct sac_value *v, const struct sac_node *n)
{
    size_t at = 0;
    while (at < v->reader_count && v->readers[at] != n)
        at++;
    if (at == v->reader_count)
        return;
    v->reader_count--;
    v->uses--;
    memmove(v->readers + at, v->readers + at + 1, (v->reader_count - at) * sizeof *v->readers);
}

static bool is_unused(const struct sac_node *n)
{
    for (int k = 0; k < n->output_count; k++)
        if (n->outputs[k] && n->outputs[k]->uses > 0)
            return false;
    return true;
}

void sac_graph_changed(struct sac_graph *g, struct sac_node *n)
{
    if (!n || n->waits || n->gone)
        return;
    n->waits = true;
    n->next_waiting = NULL;
    if (g->first_waiting)
        g->last_waiting->next_waiting = n;
    else
        g->first_waiting = n;
    g->last_waiting = n;
}

/* Forgets the first `count` values that n read. Who makes one that nobody uses now joins those that
 * wait. */
static void unlink_reads(struct sac_graph *g, struct sac_node *n, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unlink_read(n->read[i], n);
        if (n->read[i]->uses == 0)
            sac_graph_changed(g, n->read[i]->producer);
    }
    n->read_count -= count;
    if (n->read_count)
        memmove(n->read, n->read + count, n->read_count * sizeof *n->read);
}

/* ---- the graph ---- */

static void renew(struct sac_graph *g)
{
    for (size_t i = 0; i < g->value_count; i++) {
        g->values[i]->producer = NULL;
        g->values[i]->uses = 0;
        g->values[i]->reader_count = 0;
    }
    for (size_t i = 0; i < g->node_count; i++) {
        g->nodes[i]->read_count = 0;
        g->nodes[i]->waits = false;
        for (int a = 0; a < g->nodes[i]->attr_count; a++)
            if (g->nodes[i]->attrs[a].kind == SAC_ATTR_GRAPH)
                renew(g->nodes[i]->attrs[a].graph);
    }
}

sac_result sac_graph_link(struct sac_graph *g)
{
    sac_result res = SAC_OK;
    renew(g);
    for (size_t i = 0; i < g->node_count && res == SAC_OK; i++)
        res = link_node(g, g->nodes[i]);
    for (int i = 0; i < g->output_count; i++)
        g->outputs[i]->uses++;
    g->linked_count = g->node_count;
    g->first_waiting = NULL;
    for (size_t i = 0; i < g->value_count && res == SAC_OK; i++)
        if (g->values[i]->uses == 0)
            sac_value_forget(g, g->values[i]);
    return res;
}

/* New reads are entered before old ones are forgotten, for all that wait: a value that only changes
 * its reader is never without one. */
sac_result sac_graph_update(struct sac_graph *g, struct sac_node *n)
{
    sac_result res = SAC_OK;
    sac_graph_changed(g, n);
    for (; g->linked_count < g->node_count; g->linked_count++)
        sac_graph_changed(g, g->nodes[g->linked_count]);
    struct sac_node *const last = g->last_waiting;
    for (n = g->first_waiting; n && res == SAC_OK; n = n == last ? NULL : n->next_waiting) {
        n->old_count = n->read_count;
        res = link_node(g, n);
    }
    for (n = g->first_waiting; n && res == SAC_OK; n = n == last ? NULL : n->next_waiting)
        unlink_reads(g, n, n->old_count);
    for (n = g->first_waiting; n && res == SAC_OK; n = n->next_waiting) {
        n->waits = false;
        n->gone = is_unused(n);
        if (n->gone)
            unlink_reads(g, n, n->read_count);
    }
    g->first_waiting = NULL;
    return res;
}

/* ---- rewriting ---- */

static void replace_in(struct sac_value **list, int count, const struct sac_value *from,
                       struct sac_value *to)
{
    for (int i = 0; i < count; i++)
        if (list[i] == from)
            list[i] = to;
}

static void replace_read(struct sac_node *n, const struct sac_value *from, struct sac_value *to)
{
    replace_in(n->inputs, n->input_count, from, to);
    for (int a = 0; a < n->attr_count; a++) {
        if (n->attrs[a].kind != SAC_ATTR_GRAPH)
            continue;
        struct sac_graph *sub = n->attrs[a].graph;
        for (size_t i = 0; i < sub->node_count; i++)
            replace_read(sub->nodes[i], from, to);
        replace_in(sub->outputs, sub->output_count, from, to);
    }
}

void sac_graph_replace(struct sac_graph *g, struct sac_value *from, struct sac_value *to)
{
    for (size_t i = 0; i < from->reader_count; i++) {
        replace_read(from->readers[i], from, to);
        sac_graph_changed(g, from->readers[i]);
    }
    for (struct sac_node *n = g->first_waiting; n; n = n->next_waiting)
        replace_read(n, from, to);
    for (size_t i = g->linked_count; i < g->node_count; i++)
        replace_read(g->nodes[i], from, to);
    for (int i = 0; i < g->output_count; i++)
        if (g->outputs[i] == from) {
            g->outputs[i] = to;
            from->uses--;
            to->uses++;
        }
    sac_graph_changed(g, from->producer);
}

struct sac_node *sac_value_only_reader(const struct sac_value *v)
{
    struct sac_node *n = v->uses == 1 && v->reader_count == 1 ? v->readers[0] : NULL;
    for (int k = 0; n && k < n->input_count; k++)
        if (n->inputs[k] == v)
            return n;
    return NULL;
}

/* ---- is it right? ---- */

static void count_read(void *user, struct sac_value *v)
{
    ((int *)user)[v->id]++;
}

static bool has_producer(const struct sac_node *n)
{
    for (int k = 0; k < n->output_count; k++)
        if (n->outputs[k] && n->outputs[k]->producer != n)
            return false;
    return true;
}

bool sac_graph_is_linked(struct sac_graph *g)
{
    int *uses = sac_calloc((size_t)sac_graph_root(g)->id_count, sizeof *uses);
    bool good = true;
    if (!uses)
        return true; /* who can tell? */
    for (size_t i = 0; good && i < g->linked_count; i++) {
        if (g->nodes[i]->gone)
            continue;
        sac_node_each_read(g->nodes[i], count_read, uses);
        good = has_producer(g->nodes[i]);
    }
    for (int i = 0; good && i < g->output_count; i++)
        uses[g->outputs[i]->id]++;
    for (size_t i = 0; good && i < g->value_count; i++)
        good = g->values[i]->uses == uses[g->values[i]->id];
    sac_free(uses);
    return good;
}
