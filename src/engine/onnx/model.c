/* SPDX-License-Identifier: Apache-2.0 */
/* ModelProto: everything around the graph, and the check that the bytes are a model at all. */
#include "engine/onnx/reader.h"

/* Each value has one origin: an input, a constant or one node. Inside functions the names alone
 * cannot tell. seen: by value id. */
static sac_result check_origins(struct sac_onnx_reader *r, const struct sac_graph *g, char *seen)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < g->input_count && res == SAC_OK; i++) {
        if (g->inputs[i]->data) /* set by a Constant in a function that was called with it */
            res = SAC_FAIL(r->ctx, SAC_ERR_FORMAT, "input '%.128s' is made inside",
                           g->inputs[i]->name);
        seen[g->inputs[i]->id] = 1;
    }
    for (size_t i = 0; i < g->node_count && res == SAC_OK; i++) {
        const struct sac_node *n = g->nodes[i];
        for (int k = 0; k < n->output_count && res == SAC_OK; k++) {
            const struct sac_value *v = n->outputs[k];
            if (v && (v->data || seen[v->id]))
                res = SAC_FAIL(r->ctx, SAC_ERR_FORMAT, "value '%.128s' is made twice", v->name);
            if (v)
                seen[v->id] = 1;
        }
        for (int a = 0; a < n->attr_count && res == SAC_OK; a++)
            if (n->attrs[a].kind == SAC_ATTR_GRAPH)
                res = check_origins(r, n->attrs[a].graph, seen);
    }
    return res;
}

static sac_result check_graph(struct sac_onnx_reader *r, struct sac_graph *g)
{
    char *seen = sac_calloc((size_t)g->id_count, 1);
    if (!seen)
        return sac_onnx_no_memory(r);
    sac_result res = check_origins(r, g, seen);
    sac_free(seen);
    return res == SAC_OK ? sac_graph_refresh(g) : res;
}

static sac_result read_metadata(struct sac_onnx_reader *r, struct sac_wire w)
{
    struct sac_wire inside;
    size_t          n = sac_wire_count_bytes(w, 14);
    r->out->metadata = sac_arena_alloc(r->arena, (n + 1) * sizeof *r->out->metadata);
    if (!r->out->metadata)
        return sac_onnx_no_memory(r);
    while (sac_wire_next_bytes(&w, 14, &inside) > 0) {
        struct sac_wire       key = sac_wire_last_bytes(inside, 1);
        struct sac_wire       value = sac_wire_last_bytes(inside, 2);
        struct sac_onnx_pair *pair = &r->out->metadata[r->out->metadata_count++];
        size_t                klen = sac_wire_left(&key), vlen = sac_wire_left(&value);
        pair->key = sac_arena_strndup(r->arena, klen ? (const char *)key.at : "", klen);
        pair->value = sac_arena_strndup(r->arena, vlen ? (const char *)value.at : "", vlen);
        if (!pair->key || !pair->value)
            return sac_onnx_no_memory(r);
    }
    return SAC_OK;
}

static sac_result list_functions(struct sac_onnx_reader *r, struct sac_wire w)
{
    struct sac_wire inside;
    size_t          count = sac_wire_count_bytes(w, 25);
    r->functions = sac_arena_alloc(r->arena, (count + 1) * sizeof *r->functions);
    if (!r->functions)
        return sac_onnx_no_memory(r);
    while (sac_wire_next_bytes(&w, 25, &inside) > 0)
        r->functions[r->function_count++] = (struct sac_onnx_function){
            inside, sac_onnx_plain_domain(sac_wire_last_bytes(inside, 10)),
            sac_wire_last_bytes(inside, 1), sac_wire_last_bytes(inside, 13)};
    return SAC_OK;
}

/* Scans the top level once for damage and for what makes it an ONNX model. */
static sac_result read_header(struct sac_onnx_reader *r, struct sac_wire w, struct sac_wire *graph)
{
    struct sac_field f;
    int              more;
    bool             found = false;
    while ((more = sac_wire_next(&w, &f)) > 0) {
        if (f.number == 1 && f.type == SAC_WIRE_VARINT)
            r->out->ir_version = (int64_t)f.value;
        if (f.number == 7 && f.type == SAC_WIRE_BYTES) {
            *graph = f.bytes;
            found = true;
        }
    }
    if (more < 0 && r->out->ir_version > 0 && w.at != r->source->bytes)
        return SAC_FAIL(r->ctx, SAC_ERR_FORMAT,
                        "it is truncated or damaged: the part at byte %zu of %zu does not end",
                        (size_t)(w.at - (const uint8_t *)r->source->bytes), r->source->size);
    if (more < 0 || !found)
        return SAC_FAIL(r->ctx, SAC_ERR_FORMAT, "it is no ONNX model");
    return SAC_OK;
}

sac_result sac_onnx_read(sac_context *ctx, const struct sac_onnx_source *source,
                         struct sac_arena *arena, struct sac_onnx *out)
{
    struct sac_wire        whole = sac_wire_of(source->bytes, source->size), graph = {0};
    struct sac_onnx_reader r = {ctx, source, arena, out, NULL, 0, 0};
    struct sac_onnx_opsets opsets = {0};
    struct sac_onnx_place  top = {.r = &r, .opsets = &opsets, .depth = -1};
    *out = (struct sac_onnx){.producer = ""};
    sac_result res = read_header(&r, whole, &graph);
    if (res == SAC_OK)
        res = sac_onnx_read_opsets(&r, whole, 8, &opsets);
    if (res == SAC_OK)
        res = read_metadata(&r, whole);
    if (res == SAC_OK)
        res = list_functions(&r, whole);
    if (res == SAC_OK)
        res = sac_onnx_name_copy(&r, sac_wire_last_bytes(whole, 2), &out->producer);
    if (res == SAC_OK && !(out->graph = sac_graph_create(ctx, arena, NULL)))
        res = SAC_ERR_MEMORY;
    if (res == SAC_OK)
        res = sac_onnx_read_graph(&top, graph, out->graph);
    if (res == SAC_OK) {
        out->opset = sac_onnx_opset_of(&opsets, (struct sac_wire){0});
        out->node_count = (int)sac_wire_count_bytes(graph, 1);
        res = check_graph(&r, out->graph);
    }
    if (res != SAC_OK)
        sac_onnx_finish(out);
    return res;
}
