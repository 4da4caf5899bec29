/* SPDX-License-Identifier: Apache-2.0 */
/* A file that computes in 16 bits (float16 or bfloat16) becomes its float32 twin, as all that is
 * fused, planned and tuned is for values of float32, which a GPU holds in float16 where that is
 * asked for. Inputs and outputs keep their types: a Cast stands between. What the file rounds to 16
 * bits behind each layer, or by a Cast, is not rounded any more: a number beyond float16 is not
 * infinite then. The weights take twice the memory that they have in the file. */
#include "engine/ops/op.h"
#include "engine/passes/pass.h"

enum { ONNX_FLOAT = 1, ONNX_FLOAT16 = 10, ONNX_BFLOAT16 = 16, CAST_OPSET = 6 };

static bool is_half(enum sac_dtype t)
{
    return t == SAC_F16 || t == SAC_BF16;
}

/* ---- which files ---- */

static const char *const layers[] = {"Conv",   "ConvTranspose", "DequantizeLinear",
                                     "MatMul", "Gemm",          "LayerNormalization"};
/* They show the bits of a number, or declare types of their own. */
static bool is_fixed(const struct sac_node *n)
{
    return sac_node_has_subgraph(n) || sac_is(n, "BitCast") || n->domain[0];
}

/* A layer that computes in 16 bits; NULL: none, or the file has what such numbers stay for. */
static const struct sac_node *half_layer(const struct sac_graph *g)
{
    const struct sac_node *found = NULL;
    for (size_t i = 0; i < g->node_count; i++) {
        const struct sac_node *n = g->nodes[i];
        if (is_fixed(n))
            return NULL;
        for (int k = 0; k < n->output_count; k++)
            if (n->outputs[k] && n->outputs[k]->dtype == SAC_DTYPE_NONE)
                return NULL;
        if (sac_is_any(n, layers, SAC_COUNT(layers)) && n->outputs[0] &&
            is_half(n->outputs[0]->dtype) && n->opset >= CAST_OPSET)
            found = n;
    }
    return found;
}

/* ---- constants ---- */

static sac_result widen_constant(struct sac_graph *g, struct sac_value *v)
{
    const int64_t count = sac_value_elements(v);
    if (!v->data || !is_half(v->dtype) || count < 0)
        return SAC_OK;
    const uint16_t *from = v->data;
    float          *to = sac_arena_alloc(g->arena, (size_t)(count + 1) * sizeof *to);
    if (!to)
        return SAC_FAIL(g->ctx, SAC_ERR_MEMORY, "no memory for the weights as float32");
    for (int64_t i = 0; i < count; i++)
        to[i] = v->dtype == SAC_F16 ? sac_half_to_float(from[i]) : sac_bf16_to_float(from[i]);
    v->data = to;
    v->dtype = SAC_F32;
    return SAC_OK;
}

/* Types that a node names. */
static sac_result widen_attributes(struct sac_graph *g, struct sac_node *n)
{
    static const char *const types[] = {"to", "dtype", "output_dtype", "output_datatype"};
    sac_result               res = SAC_OK;
    for (int i = 0; i < n->attr_count && res == SAC_OK; i++)
        if (n->attrs[i].kind == SAC_ATTR_TENSOR)
            res = widen_constant(g, n->attrs[i].tensor);
    for (size_t i = 0; i < SAC_COUNT(types) && res == SAC_OK; i++) {
        const int64_t type = sac_attr_int(n, types[i], 0);
        if (type == ONNX_FLOAT16 || type == ONNX_BFLOAT16)
            res = sac_node_set_int(g, n, types[i], ONNX_FLOAT);
    }
    return res;
}

/* ---- inputs and outputs ---- */

/* v in another type. */
static struct sac_value *cast(struct sac_graph *g, const struct sac_node *like, struct sac_value *v,
                              enum sac_dtype dtype, sac_result *res)
{
    const int64_t     to = dtype == SAC_F16    ? ONNX_FLOAT16
                           : dtype == SAC_BF16 ? ONNX_BFLOAT16
                                               : ONNX_FLOAT;
    struct sac_value *out = sac_made_of(g, like, "Cast", 1, &v, res);
    if (!out)
        return NULL;
    out->dtype = dtype;
    *res = sac_node_set_int(g, out->producer, "to", to);
    return *res == SAC_OK ? out : NULL;
}

static sac_result widen_inputs(struct sac_graph *g, const struct sac_node *like)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < g->input_count; i++) {
        struct sac_value *v = g->inputs[i];
        if (!is_half(v->dtype))
            continue;
        struct sac_value *wide = cast(g, like, v, SAC_F32, &res);
        if (!wide)
            return res;
        sac_graph_replace(g, v, wide);
        wide->producer->inputs[0] = v;
    }
    return res;
}

static sac_result narrow_outputs(struct sac_graph *g, const struct sac_node *like,
                                 const enum sac_dtype *types)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < g->output_count; i++) {
        if (!is_half(types[i]))
            continue;
        struct sac_value *out = cast(g, like, g->outputs[i], types[i], &res);
        if (!out)
            return res;
        g->outputs[i] = out;
    }
    return res;
}

static sac_result widen(struct sac_graph *g)
{
    const struct sac_node *like = half_layer(g);
    sac_result             res = SAC_OK;
    if (!like)
        return SAC_OK;
    enum sac_dtype *types =
        sac_arena_alloc(g->arena, (size_t)(g->output_count + 1) * sizeof *types);
    if (!types)
        return SAC_FAIL(g->ctx, SAC_ERR_MEMORY, "no memory for the types of outputs");
    for (int i = 0; i < g->output_count; i++)
        types[i] = g->outputs[i]->dtype;
    for (size_t i = 0; i < g->value_count && res == SAC_OK; i++) {
        res = widen_constant(g, g->values[i]);
        if (g->values[i]->producer && is_half(g->values[i]->dtype))
            g->values[i]->dtype = SAC_F32;
    }
    for (size_t i = 0; i < g->node_count && res == SAC_OK; i++)
        res = widen_attributes(g, g->nodes[i]);
    if (res == SAC_OK)
        res = widen_inputs(g, like);
    if (res == SAC_OK)
        res = narrow_outputs(g, like, types);
    return res == SAC_OK ? sac_graph_refresh(g) : res;
}

const struct sac_pass sac_pass_halves = {.name = "halves", .whole = widen};
