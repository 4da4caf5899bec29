/* SPDX-License-Identifier: Apache-2.0 */
/* Merges what follows a matrix product with constant weights into it: constants per column, those
 * of a batch normalisation too, into weights and bias, an activation and a residual sum into the
 * fused node. A view that keeps the columns, or a Transpose to channels first, moves behind them. A
 * batch normalisation before the product goes into its weights as well, and so do factors of
 * constants. */
#include <math.h>
#include <string.h>

#include "engine/ops/quant.h"
#include "engine/passes/pass.h"

/* X W + B, as the nodes that compute it say it. */
struct product {
    struct sac_node  *node;
    struct sac_value *x, *w, *b, *r; /* b, r: NULL when there is none */
    struct sac_value *s;             /* a QuantMatMul's scales; NULL: it is of float32 */
    bool              turned;        /* w is [n, k] */
    float             alpha, beta;   /* of X W and of b */
    int64_t           k, n;
};

/* What reads the product, and what stands between them, or NULL. */
struct follower {
    struct sac_node  *node, *between;
    struct sac_value *v; /* what node reads */
};

static bool read_product(struct sac_node *n, struct product *p)
{
    const bool gemm = sac_is(n, "Gemm"), quantised = sac_is_fused(n, "QuantMatMul");
    const bool fused = quantised || sac_is_fused(n, "FusedMatMul");
    if ((!gemm && !fused && !sac_is(n, "MatMul")) || !n->outputs[0] ||
        n->outputs[0]->dtype != SAC_F32)
        return false;
    *p = (struct product){.node = n, .alpha = 1, .beta = 1};
    p->x = n->inputs[0];
    p->w = n->inputs[1];
    p->b = sac_node_input(n, 2);
    p->r = fused ? sac_node_input(n, SAC_RESIDUAL_INPUT) : NULL;
    p->s = quantised ? sac_node_input(n, SAC_QUANT_SCALE) : NULL;
    if (quantised ? !p->w->data || !sac_constant_floats(p->s) : !sac_constant_floats(p->w))
        return false;
    if (p->w->rank != 2 || sac_value_elements(p->w) <= 0 || p->x->rank < 2 || p->x->data)
        return false;
    if (gemm) {
        p->turned = sac_attr_int(n, "transB", 0) != 0;
        p->alpha = sac_attr_float(n, "alpha", 1);
        p->beta = sac_attr_float(n, "beta", 1);
    }
    p->k = p->w->dims[p->turned ? 1 : 0];
    p->n = p->w->dims[p->turned ? 0 : 1];
    if (gemm && sac_attr_int(n, "transA", 0))
        return false;
    /* Shared weights would be there twice. */
    if ((p->turned || p->alpha != 1) && p->w->uses != 1)
        return false;
    return !p->b || sac_constant_row(p->b, gemm ? 2 : 1, p->n);
}

static int64_t attr_of(const struct product *p, const char *name)
{
    return p->s || sac_is_fused(p->node, "FusedMatMul") ? sac_attr_int(p->node, name, 0) : 0;
}

/* Nothing was applied to the sums yet that a further sum must come before. */
static bool is_open(const struct product *p)
{
    return attr_of(p, "activation") == SAC_ACT_NONE && attr_of(p, "residual") != SAC_RESIDUAL_AFTER;
}

/* ---- what follows ---- */

static bool keeps_columns(const struct sac_node *n, int64_t columns)
{
    const struct sac_value *y = n->outputs[0];
    return sac_is_reshape(n) && y->rank >= 1 && y->dims[y->rank - 1] == columns;
}

static struct sac_node *known_reader(const struct sac_node *n)
{
    struct sac_node *reader = sac_only_reader(n, NULL);
    return reader && reader->output_count == 1 && reader->outputs[0] &&
                   reader->outputs[0]->rank >= 0
               ? reader
               : NULL;
}

static bool find_follower(const struct product *p, struct follower *f)
{
    *f = (struct follower){.node = known_reader(p->node), .v = p->node->outputs[0]};
    if (f->node && f->node->inputs[0] == f->v &&
        (sac_turns_first(f->node) || keeps_columns(f->node, p->n))) {
        f->between = f->node;
        f->v = f->between->outputs[0];
        f->node = known_reader(f->between);
    }
    return f->node && f->node->outputs[0]->rank == f->v->rank;
}

/* ---- the fused node ---- */

/* Times a number for each row and for each column (NULL: none). */
static struct sac_value *new_weights(struct sac_graph *g, const struct product *p,
                                     const float *rows, const float *columns)
{
    const int64_t     dims[2] = {p->k, p->n};
    const float      *from = p->w->data;
    float            *to;
    struct sac_value *made = sac_new_floats(g, p->w->name, 2, dims, &to);
    for (int64_t i = 0; made && i < p->k; i++)
        for (int64_t j = 0; j < p->n; j++)
            *to++ = p->alpha * (rows ? rows[i] : 1) * (columns ? columns[j] : 1) *
                    from[p->turned ? j * p->k + i : i * p->n + j];
    return made;
}

static struct sac_value *new_bias(struct sac_graph *g, const struct product *p, const float *scale,
                                  const float *shift)
{
    const float      *from = p->b ? p->b->data : NULL;
    const bool        one = from && sac_value_elements(p->b) == 1;
    float            *to;
    struct sac_value *made = sac_new_floats(g, p->b ? p->b->name : p->w->name, 1, &p->n, &to);
    for (int64_t j = 0; made && j < p->n; j++)
        to[j] = (from ? p->beta * from[one ? 0 : j] : 0) * (scale ? scale[j] : 1) +
                (shift ? shift[j] : 0);
    return made;
}

/* What stood between the product and `last` goes behind both. */
static sac_result move_behind(struct sac_graph *g, struct sac_node *made, const struct product *p,
                              const struct follower *f)
{
    const struct sac_node *between = f->between;
    made->outputs[0] = sac_value_like(g, p->node->outputs[0]);
    struct sac_node *copy =
        sac_op_node(g, between->domain, between->op_type, between->input_count, 1, between);
    if (!made->outputs[0] || !copy)
        return SAC_ERR_MEMORY;
    made->outputs[0]->producer = made;
    for (int i = 0; i < between->input_count; i++)
        copy->inputs[i] = i == 0 ? made->outputs[0] : between->inputs[i];
    sac_result res = sac_copy_attrs(g, copy, between);
    return res == SAC_OK ? sac_take_over(g, copy, f->node) : res;
}

static struct sac_value *new_scales(struct sac_graph *g, const struct product *p,
                                    const float *scale)
{
    const float      *from = p->s->data;
    float            *to;
    struct sac_value *made = sac_new_floats(g, p->s->name, 1, &p->n, &to);
    for (int64_t j = 0; made && j < p->n; j++)
        to[j] = from[j] * scale[j];
    return made;
}

/* Weights and scales, times a number for each column (NULL: none). False: no memory. */
static bool set_weights(struct sac_graph *g, struct sac_node *made, const struct product *p,
                        const float *scale)
{
    made->inputs[1] =
        !p->s && (p->turned || p->alpha != 1 || scale) ? new_weights(g, p, NULL, scale) : p->w;
    if (p->s)
        made->inputs[SAC_QUANT_SCALE] = scale ? new_scales(g, p, scale) : p->s;
    return made->inputs[1] && (!p->s || made->inputs[SAC_QUANT_SCALE]);
}

/* A FusedMatMul (or a QuantMatMul) of what p computes, times scale plus shift per column (NULL:
 * none), whose output replaces that of the follower. */
static struct sac_node *fuse(struct sac_graph *g, const struct product *p, const struct follower *f,
                             const float *scale, const float *shift)
{
    struct sac_node *made = sac_op_node(g, "saccade", p->s ? "QuantMatMul" : "FusedMatMul",
                                        p->s ? SAC_QUANT_SCALE + 1 : 4, 1, p->node);
    if (!made || !set_weights(g, made, p, scale))
        return NULL;
    made->inputs[0] = p->x;
    made->inputs[SAC_RESIDUAL_INPUT] = p->r;
    if (p->b || shift) {
        const bool as_it_is = p->b && p->b->rank == 1 && p->b->dims[0] == p->n && p->beta == 1;
        made->inputs[2] = as_it_is && !scale && !shift ? p->b : new_bias(g, p, scale, shift);
        if (!made->inputs[2])
            return NULL;
    }
    sac_result res = SAC_OK;
    if (p->s || sac_is_fused(p->node, "FusedMatMul"))
        res = sac_copy_attrs(g, made, p->node);
    if (res == SAC_OK)
        res = f->between ? move_behind(g, made, p, f) : sac_take_over(g, made, f->node);
    return res == SAC_OK ? made : NULL;
}

/* ---- y * scale + shift per column ---- */

struct affine {
    float *scale, *shift;
    bool   scales, shifts; /* which of them there are */
    bool   is_norm;
};

static bool per_column(const struct sac_value *c, const struct product *p, const struct follower *f,
                       float *out)
{
    if (f->between && sac_turns_first(f->between))
        return sac_constant_per_channel(c, f->v->rank, p->n, out);
    if (!c || !sac_constant_row(c, f->v->rank, p->n))
        return false;
    const float *data = c->data;
    const bool   one = sac_value_elements(c) == 1;
    for (int64_t j = 0; j < p->n; j++)
        out[j] = data[one ? 0 : j];
    return true;
}

/* Weights times a small number have few digits left in float16, or none. Where the result joins a
 * sum of larger numbers, as behind the scale of a layer, they are not missed. A normalisation's are
 * small where the sums are large. */
static bool keeps_digits(const struct follower *f, const struct affine *a, int64_t count)
{
    const struct sac_node *reader = known_reader(f->node);
    if (a->is_norm || (reader && sac_is(reader, "Add")))
        return true;
    for (int64_t j = 0; j < count; j++)
        if (!(fabsf(a->scale[j]) > 1e-3f))
            return false;
    return true;
}

static bool may_scale(const struct product *p, const struct follower *f, const struct affine *a)
{
    return !p->r && (p->s || (p->w->uses == 1 && keeps_digits(f, a, p->n)));
}

/* The last dimension before what turned it to the front, or of two, is the second, whose channels
 * a BatchNormalization takes. */
static bool batch_norm(const struct product *p, const struct follower *f, struct affine *a)
{
    const bool turned = f->between && sac_turns_first(f->between);
    a->scales = a->shifts = a->is_norm = true;
    return f->node->inputs[0] == f->v && (turned || f->v->rank == 2) &&
           sac_batch_norm_constants(f->node, p->n, a->scale, a->shift);
}

static bool find_affine(const struct product *p, const struct follower *f, struct affine *a)
{
    const struct sac_node *n = f->node;
    if (sac_is(n, "BatchNormalization"))
        return batch_norm(p, f, a);
    const bool add = sac_is(n, "Add"), sub = sac_is(n, "Sub"), mul = sac_is(n, "Mul"),
               div = sac_is(n, "Div");
    if (!(add || sub || mul || div) || ((sub || div) && n->inputs[0] != f->v) ||
        !per_column(sac_other_input(n, f->v), p, f, mul || div ? a->scale : a->shift))
        return false;
    a->scales = mul || div;
    a->shifts = add || sub;
    for (int64_t j = 0; j < p->n; j++) {
        a->scale[j] = div ? 1 / a->scale[j] : a->scale[j];
        a->shift[j] = sub ? -a->shift[j] : a->shift[j];
    }
    return true;
}

static sac_result absorb_affine(struct sac_graph *g, const struct product *p,
                                const struct follower *f, bool *changed)
{
    float *numbers = sac_calloc((size_t)p->n * 2, sizeof *numbers);
    if (!numbers)
        return SAC_FAIL(g->ctx, SAC_ERR_MEMORY, "no memory to fold a product's constants");
    struct affine a = {.scale = numbers, .shift = numbers + p->n};
    sac_result    res = SAC_OK;
    if (is_open(p) && find_affine(p, f, &a) && (!a.scales || may_scale(p, f, &a))) {
        *changed = true;
        if (!fuse(g, p, f, a.scales ? a.scale : NULL, a.shifts ? a.shift : NULL))
            res = SAC_ERR_MEMORY;
    }
    sac_free(numbers);
    return res;
}

/* ---- activation and residual ---- */

static sac_result absorb_activation(struct sac_graph *g, const struct product *p,
                                    const struct follower *f, bool *changed)
{
    struct sac_activation act;
    if (!is_open(p) || !sac_activation_of(f->node, &act) || f->node->inputs[0] != f->v)
        return SAC_OK;
    struct sac_node *made = fuse(g, p, f, NULL, NULL);
    *changed = true;
    return made ? sac_set_activation(g, made, &act) : SAC_ERR_MEMORY;
}

/* r in channels last. Only where that costs nothing: behind what was transposed to channels first,
 * or behind a convolution, whose maps lie in channels last. */
static struct sac_value *in_channels_last(struct sac_graph *g, const struct product *p,
                                          struct sac_value *r, sac_result *res)
{
    const struct sac_node *from = r->producer;
    int64_t                perm[SAC_RANK_MAX] = {0};
    if (from && sac_turns_first(from))
        return from->inputs[0];
    if (!from || (!sac_is(from, "Conv") && !sac_is_fused(from, "FusedConv") &&
                  !sac_is_fused(from, "QuantConv")))
        return NULL;
    for (int i = 1; i < r->rank; i++)
        perm[i] = i == r->rank - 1 ? 1 : i + 1;
    return sac_transposed(g, p->node, r, perm, res);
}

/* Without an activation so far, the residual is added before one, which may still follow. */
static sac_result absorb_residual(struct sac_graph *g, const struct product *p,
                                  const struct follower *f, bool *changed)
{
    struct sac_value       *r = sac_residual_beside(f->node, f->v);
    const struct sac_value *y = p->node->outputs[0];
    sac_result              res = SAC_OK;
    if (!r || p->r)
        return SAC_OK;
    if (f->between)
        r = sac_turns_first(f->between) ? in_channels_last(g, p, r, &res)
                                        : sac_reshaped(g, p->node, r, y->rank, y->dims, &res);
    if (!r)
        return res;
    const bool       plain = attr_of(p, "activation") == SAC_ACT_NONE;
    struct sac_node *made = fuse(g, p, f, NULL, NULL);
    if (!made)
        return SAC_ERR_MEMORY;
    made->inputs[SAC_RESIDUAL_INPUT] = r;
    *changed = true;
    return sac_node_set_int(g, made, "residual", plain ? SAC_RESIDUAL_BEFORE : SAC_RESIDUAL_AFTER);
}

/* ---- x * scale + shift before the product ---- */

/* The bias, and what W makes of the shift (NULL: none). */
static struct sac_value *shifted_bias(struct sac_graph *g, const struct product *p,
                                      const float *shift)
{
    const float      *w = p->w->data, *old = p->b ? p->b->data : NULL;
    const bool        one = old && sac_value_elements(p->b) == 1;
    float            *bias;
    struct sac_value *made = sac_new_floats(g, "bias", 1, &p->n, &bias);
    for (int64_t j = 0; made && j < p->n; j++) {
        double sum = old ? (double)p->beta * old[one ? 0 : j] : 0;
        for (int64_t i = 0; shift && i < p->k; i++)
            sum += (double)p->alpha * w[p->turned ? j * p->k + i : i * p->n + j] * shift[i];
        bias[j] = (float)sum;
    }
    return made;
}

/* W over x * scale + shift (NULL: none) is scale W over x, with what W makes of the shift in the
 * bias. */
static bool fold_before(struct sac_graph *g, const struct product *p, const float *scale,
                        const float *shift, struct sac_node *made)
{
    const bool biased = p->b || shift;
    made->inputs[1] = new_weights(g, p, scale, NULL);
    made->inputs[2] = biased ? shifted_bias(g, p, shift) : NULL;
    return made->inputs[1] && (!biased || made->inputs[2]);
}

/* The product of x, which was scaled and shifted before. */
static sac_result product_without(struct sac_graph *g, const struct product *p, struct sac_value *x,
                                  const float *scale, const float *shift)
{
    struct sac_node *made = sac_op_node(g, "saccade", "FusedMatMul", 4, 1, p->node);
    if (!made || !fold_before(g, p, scale, shift, made))
        return SAC_ERR_MEMORY;
    made->inputs[0] = x;
    made->inputs[SAC_RESIDUAL_INPUT] = p->r;
    sac_result res =
        sac_is_fused(p->node, "FusedMatMul") ? sac_copy_attrs(g, made, p->node) : SAC_OK;
    return res == SAC_OK ? sac_take_over(g, made, p->node) : res;
}

/* A BatchNormalization whose channels are the columns of x; returns its input. */
static struct sac_value *norm_before(const struct product *p, float *scale, float *shift)
{
    const struct sac_node *n = sac_made_by(p->x, "BatchNormalization");
    return n && p->x->rank == 2 && n->output_count == 1 &&
                   sac_batch_norm_constants(n, p->k, scale, shift)
               ? n->inputs[0]
               : NULL;
}

/* Constants that the columns of x are multiplied by, which leave the weights their digits in
 * float16; returns what is multiplied. */
static struct sac_value *factors_before(const struct product *p, float *scale)
{
    const struct sac_node *n = sac_made_by(p->x, "Mul");
    for (int i = 0; n && i < 2; i++) {
        const float *by =
            sac_constant_row(n->inputs[i], p->x->rank, p->k) ? n->inputs[i]->data : NULL;
        const bool one = by && sac_value_elements(n->inputs[i]) == 1;
        bool       fits = by && sac_same_shape(n->inputs[1 - i], p->x);
        for (int64_t j = 0; fits && j < p->k; j++) {
            scale[j] = by[one ? 0 : j];
            fits = fabsf(scale[j]) > 1e-3f && fabsf(scale[j]) < 1e3f;
        }
        if (fits)
            return n->inputs[1 - i];
    }
    return NULL;
}

/* What only this product reads; a normalisation also goes into each of several products (LeViT's
 * two heads). */
static sac_result absorb_before(struct sac_graph *g, const struct product *p, bool *changed)
{
    const bool only = p->x->uses == 1 || sac_made_by(p->x, "BatchNormalization");
    if (p->s || !only || p->w->uses != 1)
        return SAC_OK;
    float *numbers = sac_calloc((size_t)p->k * 2, sizeof *numbers);
    if (!numbers)
        return SAC_FAIL(g->ctx, SAC_ERR_MEMORY, "no memory to fold constants before a product");
    float            *shift = numbers + p->k;
    struct sac_value *normed = norm_before(p, numbers, shift),
                     *x = normed ? normed : factors_before(p, numbers);
    sac_result res = SAC_OK;
    if (x) {
        *changed = true;
        res = product_without(g, p, x, numbers, normed ? shift : NULL);
    }
    sac_free(numbers);
    return res;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct product  p;
    struct follower f;
    if (!read_product(n, &p))
        return SAC_OK;
    sac_result res = absorb_before(g, &p, changed);
    if (res != SAC_OK || *changed || !find_follower(&p, &f))
        return res;
    res = absorb_affine(g, &p, &f, changed);
    if (res == SAC_OK && !*changed)
        res = absorb_activation(g, &p, &f, changed);
    if (res == SAC_OK && !*changed)
        res = absorb_residual(g, &p, &f, changed);
    return res;
}

const struct sac_pass sac_pass_product = {"product", visit};
