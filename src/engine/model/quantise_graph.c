/* SPDX-License-Identifier: Apache-2.0 */
/* The graph with 8-bit layers. QuantizeLinear and DequantizeLinear stand where a layer's input
 * comes from, and all readers of that read what is left of it: so it is written once, in 8 bits.
 * Where it comes through what only moves numbers (a Concat, a pool), they stand before that, with
 * one scale for all that flow together. A sum keeps float32 for what nobody else reads: the
 * convolution before it takes it in. */
#include <math.h>
#include <string.h>

#include "engine/model/quantise.h"
#include "engine/passes/pass.h"

/* ---- what can be ---- */

/* So many numbers are multiplied with each weight's column that fast kernels take them. */
static bool is_fast(const struct sac_node *n, int axis, int multiple)
{
    const struct sac_value *w = n->inputs[1];
    const int64_t           depth = sac_is(n, "Conv") ? w->dims[1] : w->dims[1 - axis];
    return depth % multiple == 0 && (multiple == 1 || sac_attr_int(n, "group", 1) == 1);
}

/* Its weights have one number for each output channel along an axis; -1: it is no layer. */
static int channel_axis(const struct sac_node *n)
{
    if (n->input_count < 2 || !n->inputs[0] || !n->inputs[1] || n->inputs[0]->dtype != SAC_F32 ||
        n->inputs[0]->data || !sac_constant_floats(n->inputs[1]) ||
        sac_value_elements(n->inputs[1]) <= 0 || !n->outputs[0])
        return -1;
    const struct sac_value *w = n->inputs[1];
    if (sac_is(n, "Conv"))
        return w->rank == 4 && (!sac_node_input(n, 2) || sac_constant_floats(n->inputs[2])) ? 0
                                                                                            : -1;
    if (sac_is(n, "MatMul"))
        return w->rank == 2 && n->inputs[0]->rank >= 2 ? 1 : -1;
    if (!sac_is(n, "Gemm") || sac_attr_int(n, "transA", 0) || w->rank != 2)
        return -1;
    return sac_attr_int(n, "transB", 0) ? 0 : 1;
}

/* How many of its first inputs are data that n only moves; 0: it does more. */
static int moves(const struct sac_node *n, bool float8)
{
    static const char *const types[] = {"Reshape",   "Transpose", "Flatten",     "Squeeze",
                                        "Unsqueeze", "Slice",     "Split",       "DepthToSpace",
                                        "Identity",  "Dropout",   "SpaceToDepth"};
    if (sac_is(n, "Concat"))
        return n->input_count;
    if (sac_is_any(n, types, SAC_COUNT(types)))
        return 1;
    if (sac_is(n, "MaxPool"))
        return !float8 && n->output_count == 1;
    return sac_is(n, "Resize") && strcmp(sac_attr_string(n, "mode", "nearest"), "nearest") == 0 &&
           strcmp(sac_attr_string(n, "coordinate_transformation_mode", "half_pixel"),
                  "tf_crop_and_resize") != 0;
}

static int stands_for(int *shared, int id)
{
    while (shared[id] != id)
        id = shared[id] = shared[shared[id]];
    return id;
}

static bool is_data(const struct sac_value *v)
{
    return v && v->dtype == SAC_F32 && !v->data;
}

/* All that flows through the node has one scale. */
static void join(struct sac_quant_map *map, const struct sac_node *n, int count)
{
    int one = -1;
    for (int i = 0; i < count; i++) /* constants among them, or other numbers: they stay apart */
        if (!is_data(n->inputs[i]))
            return;
    for (int i = 0; count > 0 && i < count + n->output_count; i++) {
        const struct sac_value *v = i < count ? n->inputs[i] : n->outputs[i - count];
        if (!is_data(v))
            continue;
        const int other = stands_for(map->shared, v->id);
        one = one < 0 ? other : one;
        map->shared[other] = one;
        map->source[v->id] &= i < count;
    }
}

sac_result sac_quant_map_init(struct sac_quant_map *map, struct sac_graph *g,
                              const struct sac_quant_rules *rules)
{
    const size_t ids = (size_t)g->id_count + 1;
    *map = (struct sac_quant_map){.graph = g};
    map->layers = sac_calloc(g->node_count + 1, sizeof *map->layers);
    map->shared = sac_calloc(ids, sizeof *map->shared);
    map->source = sac_calloc(ids, sizeof *map->source);
    if (!map->layers || !map->shared || !map->source)
        return SAC_FAIL(g->ctx, SAC_ERR_MEMORY, "no memory to quantise a network");
    for (size_t i = 0; i < ids; i++) {
        map->shared[i] = (int)i;
        map->source[i] = true;
    }
    for (size_t i = 0; i < g->node_count; i++) {
        const struct sac_node *n = g->nodes[i];
        const int              axis = n->op ? channel_axis(n) : -1;
        if (axis >= 0 && is_fast(n, axis, rules->multiple))
            map->layers[map->count++] = (struct sac_quant_layer){.node = n, .axis = axis};
        else if (n->op)
            join(map, n, moves(n, rules->float8));
    }
    for (int i = 0; i < map->count; i++)
        map->layers[i].of = stands_for(map->shared, map->layers[i].node->inputs[0]->id);
    for (int i = 0; i < g->id_count; i++)
        map->shared[i] = stands_for(map->shared, i);
    return SAC_OK;
}

void sac_quant_map_finish(struct sac_quant_map *map)
{
    sac_free(map->layers);
    sac_free(map->shared);
    sac_free(map->source);
    *map = (struct sac_quant_map){.count = 0};
}

/* ---- the graph ---- */

static struct sac_value *scalar(struct sac_graph *g, const char *name, enum sac_dtype dtype,
                                const void *data)
{
    const struct sac_tensor_desc desc = {.dtype = dtype};
    return sac_graph_constant(g, name, &desc, data);
}

/* A node of the three inputs, whose output is made like v. */
static struct sac_node *linear(struct sac_graph *g, const char *type, struct sac_value *const in[3],
                               const struct sac_value *like, enum sac_dtype dtype,
                               const struct sac_node *at)
{
    struct sac_node *n = sac_op_node(g, "", type, 3, 1, at);
    if (!n || !in[0] || !in[1] || !in[2] || !(n->outputs[0] = sac_value_like(g, like)))
        return NULL;
    memcpy(n->inputs, in, 3 * sizeof *in);
    n->name = ""; /* ONNX Runtime refuses two nodes of one name; without names there may be many */
    n->outputs[0]->dtype = dtype;
    n->outputs[0]->producer = n;
    return n;
}

/* Who reads v reads what is left of it; the model's own outputs stay as they are. */
static sac_result round_value(struct sac_graph *g, struct sac_value *v, enum sac_dtype dtype,
                              const struct sac_quant_scale *s, const struct sac_node *at)
{
    const uint8_t     zero = (uint8_t)s->zero;
    struct sac_value *scale = scalar(g, "scale", SAC_F32, &s->scale),
                     *point = scalar(g, "zero", dtype, &zero);
    struct sac_node *q =
        linear(g, "QuantizeLinear", (struct sac_value *const[]){v, scale, point}, v, dtype, at);
    struct sac_node *d =
        q ? linear(g, "DequantizeLinear", (struct sac_value *const[]){q->outputs[0], scale, point},
                   v, SAC_F32, at)
          : NULL;
    if (!d)
        return SAC_ERR_MEMORY;
    sac_graph_replace(g, v, d->outputs[0]);
    q->inputs[0] = v;
    for (int i = 0; i < g->output_count; i++)
        if (g->outputs[i] == d->outputs[0])
            g->outputs[i] = v;
    return SAC_OK;
}

/* The largest magnitude becomes the largest number. */
static float scale_of_weights(float most, enum sac_dtype dtype)
{
    const float scale = most / (dtype == SAC_F8 ? 448.0f : 127.0f);
    return scale > 1e-30f && isfinite(scale) ? scale : 1;
}

static uint8_t weight(float w, float scale, enum sac_dtype dtype)
{
    if (dtype == SAC_F8)
        return sac_float_to_f8(w / scale);
    return (uint8_t)(int8_t)SAC_CLAMP(rintf(w / scale), -127, 127);
}

static float largest_of(const struct sac_value *w)
{
    const float  *v = w->data;
    const int64_t count = sac_value_elements(w);
    float         most = 0;
    for (int64_t i = 0; i < count; i++)
        most = fmaxf(most, fabsf(v[i]));
    return most;
}

/* E4M3 has the same steps in small numbers as in large ones, so a product loses nothing by one
 * scale for all channels, which a GPU's library takes; nor do products of one input, which can then
 * be one product (passes/wide.c). Fills `most` with the largest weight for each layer that has such
 * a scale. */
static void share_largest(const struct sac_quant_map *map, const bool *use, float *most)
{
    for (int i = 0; i < map->count; i++)
        if (use[i] && !sac_is(map->layers[i].node, "Conv"))
            most[i] = largest_of(map->layers[i].node->inputs[1]);
    for (int i = 0; i < map->count; i++)
        for (int k = 0; k < i && most[i] > 0; k++)
            if (most[k] > 0 && map->layers[k].node->inputs[0] == map->layers[i].node->inputs[0])
                most[k] = most[i] = fmaxf(most[k], most[i]);
}

/* most: of the weights by which all channels are scaled; 0: each has its own scale. */
static sac_result round_weights(struct sac_graph *g, struct sac_node *n, int axis,
                                enum sac_dtype dtype, float most)
{
    const struct sac_value      *w = n->inputs[1];
    const float                 *from = w->data;
    const int64_t                channels = w->dims[axis], count = sac_value_elements(w);
    struct sac_tensor_desc       desc = {.dtype = dtype, .rank = w->rank};
    const struct sac_tensor_desc row = {.dtype = dtype, .rank = 1, .shape = {channels}};
    int64_t                      inner = 1;
    float                       *scales;
    for (int d = 0; d < w->rank; d++) {
        desc.shape[d] = w->dims[d];
        inner *= d > axis ? w->dims[d] : 1;
    }
    struct sac_value *bytes = sac_graph_constant(g, w->name, &desc, NULL),
                     *scale = sac_new_floats(g, "scales", 1, &channels, &scales),
                     *zero = sac_graph_constant(g, "zeros", &row, NULL);
    struct sac_node *d = linear(g, "DequantizeLinear",
                                (struct sac_value *const[]){bytes, scale, zero}, w, SAC_F32, n);
    if (!d || sac_node_set_int(g, d, "axis", axis) != SAC_OK)
        return SAC_ERR_MEMORY;
    memset((void *)zero->data, 0, (size_t)channels);
    memset(scales, 0, (size_t)channels * sizeof *scales);
    for (int64_t i = 0; i < count; i++)
        scales[i / inner % channels] = fmaxf(scales[i / inner % channels], fabsf(from[i]));
    for (int64_t c = 0; c < channels; c++)
        scales[c] = scale_of_weights(most > 0 ? most : scales[c], dtype);
    for (int64_t i = 0; i < count; i++)
        ((uint8_t *)bytes->data)[i] = weight(from[i], scales[i / inner % channels], dtype);
    n->inputs[1] = d->outputs[0];
    return SAC_OK;
}

sac_result sac_quant_apply(struct sac_quant_map *map, const bool *use, enum sac_dtype dtype,
                           const struct sac_quant_scale *scales)
{
    struct sac_graph *g = map->graph;
    const int         ids = g->id_count;
    const size_t      values = g->value_count;
    bool             *wanted = sac_calloc((size_t)ids + 1, sizeof *wanted);
    float            *most = sac_calloc((size_t)map->count + 1, sizeof *most);
    sac_result        res = SAC_OK;
    if (!wanted || !most)
        res = SAC_FAIL(g->ctx, SAC_ERR_MEMORY, "no memory to quantise a network");
    if (res == SAC_OK && dtype == SAC_F8)
        share_largest(map, use, most);
    for (int i = 0; i < map->count && res == SAC_OK; i++) {
        if (!use[i])
            continue;
        wanted[map->layers[i].of] = true;
        res = round_weights(g, (struct sac_node *)map->layers[i].node, map->layers[i].axis,
                            dtype == SAC_F8 ? SAC_F8 : SAC_I8, most[i]);
    }
    for (size_t i = 0; i < values && res == SAC_OK; i++) {
        struct sac_value *v = g->values[i];
        if (v->id < ids && wanted[map->shared[v->id]] && map->source[v->id] && is_data(v) &&
            v->uses > 0)
            res = round_value(g, v, dtype, &scales[map->shared[v->id]], map->layers[0].node);
    }
    sac_free(wanted);
    sac_free(most);
    return res == SAC_OK ? sac_graph_refresh(g) : res;
}
