/* SPDX-License-Identifier: Apache-2.0 */
/* Quantised networks as ONNX writes them, DequantizeLinear before and QuantizeLinear behind what
 * computes in float32, become nodes of 8-bit numbers: convolutions and products with constant
 * weights (engine/ops/quant.h), which conv.c and product.c then let take normalisation, activation
 * and residual in; and what only moves numbers moves them in 8 bits. */
#include <math.h>
#include <string.h>

#include "engine/ops/quant.h"
#include "engine/passes/pass.h"

/* ---- reading QuantizeLinear and DequantizeLinear ---- */

static int zero_at(const struct sac_value *v, int64_t i)
{
    return v->dtype == SAC_I8   ? ((const int8_t *)v->data)[i]
           : v->dtype == SAC_U8 ? ((const uint8_t *)v->data)[i]
                                : 0;
}

/* The zero point, which a node may leave out; false: it is not constant, or float8 with one. */
static bool zero_fits(const struct sac_value *zero, enum sac_dtype t, int64_t count)
{
    if (!zero)
        return true;
    if (!zero->data || zero->dtype != t || sac_value_elements(zero) != count)
        return false;
    for (int64_t i = 0; t == SAC_F8 && i < count; i++)
        if (((const uint8_t *)zero->data)[i] & 0x7f)
            return false;
    return true;
}

/* One scale, positive and of use. */
static bool read_scaling(const struct sac_node *n, enum sac_dtype t, struct sac_to_bytes *out)
{
    const struct sac_value *zero = sac_node_input(n, 2);
    if (!sac_dtype_is_quantised(t) || !sac_constant_scalar(sac_node_input(n, 1), &out->scale) ||
        n->inputs[1]->rank > 1 || !zero_fits(zero, t, 1) || !(out->scale > 0) ||
        !isfinite(out->scale) || !isfinite(1 / out->scale))
        return false;
    out->zero = zero ? zero_at(zero, 0) : 0;
    out->dtype = t;
    return true;
}

bool sac_makes_bytes(const struct sac_node *n, struct sac_to_bytes *out)
{
    return sac_is(n, "QuantizeLinear") && n->inputs[0]->dtype == SAC_F32 && n->outputs[0] &&
           read_scaling(n, n->outputs[0]->dtype, out);
}

/* v is float32 made of 8 bits: the node that does. */
static struct sac_node *dequantiser(const struct sac_value *v, struct sac_to_bytes *out)
{
    struct sac_node *n = sac_made_by(v, "DequantizeLinear");
    return n && v->dtype == SAC_F32 && n->inputs[0] && !n->inputs[0]->data &&
                   read_scaling(n, n->inputs[0]->dtype, out)
               ? n
               : NULL;
}

static bool same_scaling(const struct sac_to_bytes *a, const struct sac_to_bytes *b)
{
    return a->scale == b->scale && a->zero == b->zero && a->dtype == b->dtype;
}

/* ---- weights ---- */

struct weights {
    const struct sac_value *value, *scale, *zero; /* zero: NULL, there is none */
    int                     axis;                 /* of the output's channels */
    int64_t                 channels;
};

static bool read_weights(const struct sac_value *v, int axis, enum sac_dtype x, struct weights *w)
{
    const struct sac_node *n = sac_made_by(v, "DequantizeLinear");
    if (!n || v->dtype != SAC_F32 || v->rank <= axis)
        return false;
    *w = (struct weights){.value = n->inputs[0],
                          .scale = sac_node_input(n, 1),
                          .zero = sac_node_input(n, 2),
                          .axis = axis};
    const struct sac_value *value = w->value;
    if (!value || !value->data || sac_value_elements(value) <= 0 ||
        !sac_constant_floats(w->scale) || w->scale->rank > 1)
        return false;
    const bool    real = x == SAC_F8;
    const int64_t count = sac_value_elements(w->scale);
    int64_t       along = sac_attr_int(n, "axis", 1);
    along += along < 0 ? value->rank : 0;
    w->channels = value->dims[axis];
    return (real ? value->dtype == SAC_F8 : value->dtype == SAC_I8 || value->dtype == SAC_U8) &&
           (count == 1 || (count == w->channels && along == axis)) &&
           zero_fits(w->zero, value->dtype, count);
}

/* How far apart weights of one channel's neighbours lie, and how many lie together. */
static int64_t inner_of(const struct weights *w)
{
    int64_t inner = 1;
    for (int d = w->axis + 1; d < w->value->rank; d++)
        inner *= w->value->dims[d];
    return inner;
}

static int zero_of(const struct weights *w, int64_t channel)
{
    return w->zero ? zero_at(w->zero, sac_value_elements(w->zero) == 1 ? 0 : channel) : 0;
}

/* Less their zero points they are int8. */
static bool weights_fit(const struct weights *w)
{
    const int64_t count = sac_value_elements(w->value), inner = inner_of(w);
    for (int64_t i = 0; w->value->dtype != SAC_F8 && i < count; i++) {
        const int v = zero_at(w->value, i) - zero_of(w, i / inner % w->channels);
        if (v < INT8_MIN || v > INT8_MAX)
            return false;
    }
    return true;
}

/* As the fused nodes have them: without zero points, and [k,n] of [n,k] that is turned. */
static struct sac_value *made_weights(struct sac_graph *g, const struct weights *w, bool turned)
{
    const struct sac_value *v = w->value;
    bool                    as_it_is = !turned && v->dtype != SAC_U8;
    for (int64_t c = 0; c < w->channels; c++)
        as_it_is &= zero_of(w, c) == 0;
    if (as_it_is)
        return (struct sac_value *)v;
    struct sac_tensor_desc desc = {.dtype = v->dtype == SAC_F8 ? SAC_F8 : SAC_I8, .rank = v->rank};
    for (int d = 0; d < v->rank; d++)
        desc.shape[d] = v->dims[turned ? 1 - d : d];
    struct sac_value *made = sac_graph_constant(g, v->name, &desc, NULL);
    const int64_t     count = sac_value_elements(v), inner = inner_of(w);
    const uint8_t    *from = v->data;
    uint8_t          *to = made ? (uint8_t *)made->data : NULL; /* fresh from the arena */
    for (int64_t i = 0; made && i < count; i++) {
        const int64_t at = turned ? i % v->dims[1] * v->dims[0] + i / v->dims[1] : i;
        to[at] = v->dtype == SAC_F8
                     ? from[i]
                     : (uint8_t)(zero_at(v, i) - zero_of(w, i / inner % w->channels));
    }
    return made;
}

/* What a step of the sum is worth, for each channel. */
static struct sac_value *made_scales(struct sac_graph *g, const struct weights *w, float factor)
{
    const float      *from = w->scale->data;
    const bool        one = sac_value_elements(w->scale) == 1;
    float            *to;
    struct sac_value *made = sac_new_floats(g, w->scale->name, 1, &w->channels, &to);
    for (int64_t c = 0; made && c < w->channels; c++)
        to[c] = from[one ? 0 : c] * factor;
    return made;
}

/* ---- DequantizeLinear, and a convolution or product ---- */

/* A fused node in n's place, all but its attributes and bias. */
static struct sac_node *fused_in_place(struct sac_graph *g, struct sac_node *n, const char *type,
                                       const struct weights *w, float factor, bool turned)
{
    struct sac_to_bytes    x;
    const struct sac_node *from = dequantiser(n->inputs[0], &x);
    struct sac_node       *made = sac_op_node(g, "saccade", type, 5, 1, n);
    if (!from || !made)
        return NULL;
    made->inputs[0] = from->inputs[0];
    made->inputs[1] = made_weights(g, w, turned);
    made->inputs[SAC_QUANT_SCALE] = made_scales(g, w, x.scale * factor);
    if (!made->inputs[1] || !made->inputs[SAC_QUANT_SCALE] ||
        sac_node_set_int(g, made, "x_zero", x.zero) != SAC_OK ||
        sac_take_over(g, made, n) != SAC_OK)
        return NULL;
    return made;
}

static sac_result fuse_conv(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct sac_to_bytes x;
    struct weights      w;
    struct sac_value   *bias = sac_node_input(n, 2);
    if (!sac_is(n, "Conv") || !dequantiser(n->inputs[0], &x) ||
        !read_weights(n->inputs[1], 0, x.dtype, &w) || !weights_fit(&w) ||
        (bias && (!sac_constant_floats(bias) || bias->rank != 1)))
        return SAC_OK;
    *changed = true;
    struct sac_node *made = fused_in_place(g, n, "QuantConv", &w, 1, false);
    if (!made)
        return SAC_ERR_MEMORY;
    made->inputs[SAC_QUANT_BIAS] = bias;
    return sac_copy_attrs(g, made, n);
}

/* beta times a Gemm's constant; NULL: no memory. */
static struct sac_value *made_bias(struct sac_graph *g, struct sac_value *b, float beta, int64_t n)
{
    if (beta == 1 && b->rank == 1 && sac_value_elements(b) == n)
        return b;
    const float      *from = b->data;
    const bool        one = sac_value_elements(b) == 1;
    float            *to;
    struct sac_value *made = sac_new_floats(g, b->name, 1, &n, &to);
    for (int64_t i = 0; made && i < n; i++)
        to[i] = beta * from[one ? 0 : i];
    return made;
}

static sac_result fuse_product(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    const bool gemm = sac_is(n, "Gemm");
    if (!gemm && !sac_is(n, "MatMul"))
        return SAC_OK;
    const bool          turned = gemm && sac_attr_int(n, "transB", 0);
    struct sac_value   *b = gemm ? sac_node_input(n, 2) : NULL;
    struct sac_to_bytes x;
    struct weights      w;
    if (!dequantiser(n->inputs[0], &x) || n->inputs[0]->rank < 2 ||
        !read_weights(n->inputs[1], turned ? 0 : 1, x.dtype, &w) || n->inputs[1]->rank != 2 ||
        !weights_fit(&w) || (gemm && sac_attr_int(n, "transA", 0)) ||
        (b && !sac_constant_row(b, 2, w.channels)))
        return SAC_OK;
    *changed = true;
    struct sac_node *made =
        fused_in_place(g, n, "QuantMatMul", &w, gemm ? sac_attr_float(n, "alpha", 1) : 1, turned);
    if (made && b)
        made->inputs[SAC_QUANT_BIAS] = made_bias(g, b, sac_attr_float(n, "beta", 1), w.channels);
    return made && (!b || made->inputs[SAC_QUANT_BIAS]) ? SAC_OK : SAC_ERR_MEMORY;
}

/* ---- QuantizeLinear behind it, DequantizeLinear before its residual ---- */

static bool is_quant(const struct sac_node *n)
{
    return (sac_is_fused(n, "QuantConv") || sac_is_fused(n, "QuantMatMul")) && n->outputs[0];
}

sac_result sac_set_bytes(struct sac_graph *g, struct sac_node *n, const struct sac_to_bytes *y)
{
    const enum sac_quant_type type = y->dtype == SAC_I8   ? SAC_QUANT_INT8
                                     : y->dtype == SAC_U8 ? SAC_QUANT_UINT8
                                                          : SAC_QUANT_FLOAT8;
    sac_result                res = sac_node_set_int(g, n, "y_type", type);
    if (res == SAC_OK)
        res = sac_node_set_float(g, n, "y_scale", y->scale);
    return res == SAC_OK ? sac_node_set_int(g, n, "y_zero", y->zero) : res;
}

/* A node like n, whose output takes the place of last's. */
static struct sac_node *again(struct sac_graph *g, const struct sac_node *n, struct sac_node *last)
{
    struct sac_node *made =
        sac_op_node(g, n->domain, n->op_type, n->input_count, n->output_count, n);
    if (!made || sac_copy_attrs(g, made, n) != SAC_OK || sac_take_over(g, made, last) != SAC_OK)
        return NULL;
    for (int i = 0; i < n->input_count; i++)
        made->inputs[i] = n->inputs[i];
    return made;
}

static sac_result absorb_quantise(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct sac_to_bytes y;
    struct sac_node    *reader = sac_only_reader(n, "QuantizeLinear");
    if (!is_quant(n) || n->outputs[0]->dtype != SAC_F32 || !reader ||
        reader->inputs[0] != n->outputs[0] || !sac_makes_bytes(reader, &y))
        return SAC_OK;
    struct sac_node *made = again(g, n, reader);
    *changed = true;
    return made ? sac_set_bytes(g, made, &y) : SAC_ERR_MEMORY;
}

static sac_result absorb_residual(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct sac_to_bytes     r;
    const struct sac_value *other = is_quant(n) ? sac_node_input(n, SAC_RESIDUAL_INPUT) : NULL;
    const struct sac_node  *from = other ? dequantiser(other, &r) : NULL;
    if (!from)
        return SAC_OK;
    n->inputs[SAC_RESIDUAL_INPUT] = from->inputs[0];
    *changed = true;
    sac_result res = sac_node_set_float(g, n, "r_scale", r.scale);
    return res == SAC_OK ? sac_node_set_int(g, n, "r_zero", r.zero) : res;
}

/* ---- what only moves numbers ---- */

/* A Resize that takes the nearest number, of none outside. */
static bool takes_nearest(const struct sac_node *n)
{
    return sac_is(n, "Resize") && strcmp(sac_attr_string(n, "mode", "nearest"), "nearest") == 0 &&
           strcmp(sac_attr_string(n, "coordinate_transformation_mode", "half_pixel"),
                  "tf_crop_and_resize") != 0;
}

/* The largest of several is the largest in 8 bits. Padding is never it; float8's order is not that
 * of its bytes. */
static bool takes_largest(const struct sac_node *n, enum sac_dtype t)
{
    return sac_is(n, "MaxPool") && t != SAC_F8 && n->output_count == 1;
}

/* Its first inputs are data, all of a Concat's; 0: it does more than move them. */
static int moved_inputs(const struct sac_node *n, enum sac_dtype t)
{
    static const char *const types[] = {"Reshape",      "Transpose", "Flatten", "Squeeze",
                                        "Unsqueeze",    "Slice",     "Split",   "DepthToSpace",
                                        "SpaceToDepth", "Gather",    "Expand",  "Tile"};
    if (sac_is(n, "Concat"))
        return n->input_count;
    return sac_is_any(n, types, SAC_COUNT(types)) || takes_nearest(n) || takes_largest(n, t);
}

/* float32 of what n made, for those that read it. */
static sac_result dequantise_behind(struct sac_graph *g, struct sac_node *n, int k,
                                    const struct sac_node *like, enum sac_dtype t)
{
    struct sac_value *y = n->outputs[k];
    struct sac_node  *made = sac_op_node(g, "", "DequantizeLinear", 3, 1, like);
    struct sac_value *bytes = sac_value_like(g, y);
    if (!made || !bytes)
        return SAC_ERR_MEMORY;
    bytes->dtype = t;
    bytes->producer = n;
    n->outputs[k] = bytes;
    made->inputs[0] = bytes;
    made->inputs[1] = sac_node_input(like, 1);
    made->inputs[2] = sac_node_input(like, 2);
    made->outputs[0] = sac_value_like(g, y);
    if (!made->outputs[0])
        return SAC_ERR_MEMORY;
    made->outputs[0]->producer = made;
    sac_graph_replace(g, y, made->outputs[0]);
    return SAC_OK;
}

/* All data that n moves comes from DequantizeLinear with one scaling: it does so behind n. */
static sac_result move_bytes(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct sac_to_bytes    s, other;
    const struct sac_node *from = n->input_count > 0 ? dequantiser(n->inputs[0], &s) : NULL;
    const int              count = from ? moved_inputs(n, s.dtype) : 0;
    for (int i = 1; i < count; i++)
        if (!n->inputs[i] || !dequantiser(n->inputs[i], &other) || !same_scaling(&s, &other))
            return SAC_OK;
    if (count == 0)
        return SAC_OK;
    *changed = true;
    for (int i = 0; i < count; i++)
        n->inputs[i] = n->inputs[i]->producer->inputs[0];
    sac_result res = SAC_OK;
    for (int k = 0; k < n->output_count && res == SAC_OK; k++)
        if (n->outputs[k])
            res = dequantise_behind(g, n, k, from, s.dtype);
    return res;
}

/* It gives the same numbers in another order or shape. */
static bool reorders(const struct sac_node *n)
{
    return sac_is(n, "Transpose") || sac_is_reshape(n);
}

/* What is rounded behind a Transpose or Reshape is rounded before it, where the step that makes the
 * numbers can do so, and bytes are moved. */
static sac_result quantise_before(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct sac_to_bytes s;
    struct sac_node    *from = n->inputs[0] ? n->inputs[0]->producer : NULL;
    if (!sac_makes_bytes(n, &s) || !from || !reorders(from) || from->inputs[0]->data ||
        sac_only_reader(from, "QuantizeLinear") != n)
        return SAC_OK;
    struct sac_node  *rounds = sac_op_node(g, "", "QuantizeLinear", n->input_count, 1, n);
    struct sac_value *bytes = sac_value_like(g, from->inputs[0]);
    struct sac_node  *moves = again(g, from, n);
    if (!rounds || !bytes || !moves || sac_copy_attrs(g, rounds, n) != SAC_OK)
        return SAC_ERR_MEMORY;
    bytes->dtype = s.dtype;
    bytes->producer = rounds;
    for (int i = 0; i < n->input_count; i++)
        rounds->inputs[i] = i == 0 ? from->inputs[0] : n->inputs[i];
    rounds->outputs[0] = bytes;
    moves->inputs[0] = bytes;
    *changed = true;
    return SAC_OK;
}

/* Steps behind a product that end it: normalisation, residual, activation and what these are
 * spelled as. */
enum { ENDING_MAX = 8 };

/* Can what makes v round it too, when the passes are through: a product of 8-bit numbers with its
 * ending, a norm, attention? */
static bool is_of_bytes(const struct sac_value *v, int steps)
{
    static const char *const products[] = {"Conv", "ConvTranspose", "Gemm", "MatMul"};
    static const char *const writers[] = {"LayerNormalization", "RMSNormalization"};
    struct sac_to_bytes      s;
    const struct sac_node   *n = v ? v->producer : NULL;
    if (!n || steps == 0)
        return false;
    if (is_quant(n) || sac_is_fused(n, "FusedAttention") || sac_is_fused(n, "FusedNorm") ||
        sac_is_any(n, writers, SAC_COUNT(writers)))
        return true;
    if (sac_is_any(n, products, SAC_COUNT(products)))
        return dequantiser(n->inputs[0], &s) != NULL;
    const bool sums = sac_is(n, "Add") || sac_is(n, "Mul");
    return (n->input_count > 0 && is_of_bytes(n->inputs[0], steps - 1)) ||
           (sums && is_of_bytes(n->inputs[1], steps - 1));
}

static bool is_smaller(const struct sac_value *v, const struct sac_value *than)
{
    for (int d = 2; d < v->rank; d++)
        if (v->dims[d] < than->dims[d])
            return true;
    return false;
}

/* What a step of floats makes is rounded behind a pool that leaves less to round. */
static sac_result quantise_behind(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct sac_to_bytes    s;
    const struct sac_node *from = n->inputs[0] ? n->inputs[0]->producer : NULL;
    if (!from || !sac_makes_bytes(from, &s) || !takes_largest(n, s.dtype) ||
        sac_only_reader(from, "MaxPool") != n || !is_smaller(n->outputs[0], n->inputs[0]) ||
        is_of_bytes(from->inputs[0], ENDING_MAX))
        return SAC_OK;
    struct sac_node  *pools = sac_op_node(g, n->domain, n->op_type, n->input_count, 1, n);
    struct sac_value *floats = sac_value_like(g, n->outputs[0]);
    struct sac_node  *rounds = again(g, from, n);
    if (!pools || !floats || !rounds || sac_copy_attrs(g, pools, n) != SAC_OK)
        return SAC_ERR_MEMORY;
    floats->dtype = from->inputs[0]->dtype;
    floats->producer = pools;
    pools->inputs[0] = from->inputs[0];
    pools->outputs[0] = floats;
    rounds->inputs[0] = floats;
    *changed = true;
    return SAC_OK;
}

/* ---- pairs, and the same twice ---- */

static sac_result drop_pair(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct sac_to_bytes    q, d;
    const struct sac_node *from = sac_makes_bytes(n, &q) ? dequantiser(n->inputs[0], &d) : NULL;
    if (!from || !same_scaling(&q, &d))
        return SAC_OK;
    sac_graph_replace(g, n->outputs[0], from->inputs[0]);
    *changed = true;
    return SAC_OK;
}

static bool scales(const struct sac_node *n, struct sac_to_bytes *out)
{
    return sac_makes_bytes(n, out) ||
           (n->output_count == 1 && n->outputs[0] && dequantiser(n->outputs[0], out));
}

/* Exporters write one for each reader. */
static sac_result drop_twin(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct sac_to_bytes s, other;
    if (n->inputs[0] == NULL || n->inputs[0]->uses < 2 || !scales(n, &s))
        return SAC_OK;
    const struct sac_value *x = n->inputs[0];
    for (size_t i = 0; i < x->reader_count && x->readers[i] != n; i++) {
        struct sac_node *twin = x->readers[i];
        if (twin->op != n->op || twin->inputs[0] != n->inputs[0] || !scales(twin, &other) ||
            !same_scaling(&s, &other))
            continue;
        sac_graph_replace(g, n->outputs[0], twin->outputs[0]);
        *changed = true;
        return SAC_OK;
    }
    return SAC_OK;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    static sac_result (*const steps[])(struct sac_graph *, struct sac_node *, bool *) = {
        fuse_conv,  fuse_product,    absorb_quantise, absorb_residual,
        move_bytes, quantise_before, quantise_behind, drop_pair};
    sac_result res = SAC_OK;
    if (n->output_count < 1 || n->input_count < 1)
        return SAC_OK;
    for (size_t i = 0; i < SAC_COUNT(steps) && res == SAC_OK && !*changed; i++)
        res = steps[i](g, n, changed);
    if (res == SAC_OK && !*changed &&
        (sac_is(n, "QuantizeLinear") || sac_is(n, "DequantizeLinear")))
        res = drop_twin(g, n, changed);
    return res;
}

const struct sac_pass sac_pass_quantised = {"quantised", visit};
