/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX's own Attention, as exporters write it from opset 23 on, is spelled as the others spell it:
 * softmax(scale Q K^T + M) V of heads that are taken apart and put together. attention.c makes
 * one step of that. What has a cache, a cap or a window keeps its row. */
#include <math.h>
#include <string.h>

#include "engine/passes/pass.h"

enum { Q, K, V, MASK, CACHES };
enum { BATCH, HEADS, TOKENS, NUMBERS, RANK };
enum { MASK_MAX = 1 << 24 }; /* numbers of a causal mask */

struct head_dims {
    int64_t dim[RANK];
};

struct spelled {
    struct sac_graph *g;
    struct sac_node  *n;
    struct head_dims  q, k, v;
    sac_result        res;
};

/* ---- nodes ---- */

/* A node of one or two inputs, with these dims; NULL once memory has run out. */
static struct sac_value *make(struct spelled *s, const char *type, int inputs, struct sac_value *a,
                              struct sac_value *b, const int64_t *dims)
{
    struct sac_value *const in[] = {a, b};
    struct sac_value       *y = sac_made_of(s->g, s->n, type, inputs, in, &s->res);
    if (y) {
        y->rank = RANK;
        memcpy(y->dims, dims, RANK * sizeof *dims);
    }
    return y;
}

/* ---- what it computes ---- */

/* Batch, heads, tokens and numbers of an operand of 3 or 4 dims. */
static bool read_dims(const struct sac_node *n, int input, const char *count, struct head_dims *h)
{
    const struct sac_value *v = n->inputs[input];
    if (v->dtype != SAC_F32 || (v->rank != 3 && v->rank != RANK))
        return false;
    if (v->rank == RANK) {
        memcpy(h->dim, v->dims, sizeof h->dim);
    } else {
        const int64_t heads = sac_attr_int(n, count, 0);
        if (heads <= 0 || v->dims[2] <= 0 || v->dims[2] % heads)
            return false;
        h->dim[BATCH] = v->dims[0];
        h->dim[HEADS] = heads;
        h->dim[TOKENS] = v->dims[1];
        h->dim[NUMBERS] = v->dims[2] / heads;
    }
    for (int d = HEADS; d < RANK; d++)
        if (h->dim[d] <= 0)
            return false;
    return true;
}

static bool is_plain(const struct sac_node *n)
{
    for (int i = CACHES; i < n->input_count; i++)
        if (n->inputs[i])
            return false;
    for (int i = 1; i < n->output_count; i++)
        if (n->outputs[i] && n->outputs[i]->uses > 0)
            return false;
    return sac_attr_float(n, "softcap", 0) == 0 && sac_attr_int(n, "left_window_size", -1) < 0 &&
           sac_attr_int(n, "right_window_size", -1) < 0;
}

/* It has an entry, or one for all, for each key. */
static bool fits(const struct sac_value *mask, int64_t keys)
{
    return (mask->dtype == SAC_F32 || mask->dtype == SAC_BOOL) && mask->rank >= 1 &&
           mask->rank <= RANK && mask->dims[mask->rank - 1] == keys;
}

static bool read(struct spelled *s)
{
    const struct sac_node  *n = s->n;
    const struct sac_value *mask = sac_node_input(n, MASK);
    if (!is_plain(n) || n->inputs[K]->rank != n->inputs[Q]->rank ||
        n->inputs[V]->rank != n->inputs[Q]->rank || !read_dims(n, Q, "q_num_heads", &s->q) ||
        !read_dims(n, K, "kv_num_heads", &s->k) || !read_dims(n, V, "kv_num_heads", &s->v))
        return false;
    if (s->q.dim[HEADS] % s->k.dim[HEADS] != 0 || s->k.dim[HEADS] != s->v.dim[HEADS])
        return false;
    if (sac_attr_int(n, "is_causal", 0) && s->q.dim[TOKENS] > MASK_MAX / s->k.dim[TOKENS])
        return false;
    return !mask || fits(mask, s->k.dim[TOKENS]);
}

/* ---- masks ---- */

/* -inf for the keys behind a query. */
static struct sac_value *causal_mask(struct spelled *s)
{
    const int64_t     dims[] = {1, 1, s->q.dim[TOKENS], s->k.dim[TOKENS]};
    float            *data;
    struct sac_value *mask = sac_new_floats(s->g, "causal", RANK, dims, &data);
    for (int64_t i = 0; mask && i < dims[2]; i++)
        for (int64_t j = 0; j < dims[3]; j++)
            data[i * dims[3] + j] = j > i ? -INFINITY : 0;
    if (!mask)
        s->res = SAC_ERR_MEMORY;
    return mask;
}

/* In float32 and with four dims, as attention.c takes it where it is computed; NULL: dims that no
 * Reshape can have. */
static struct sac_value *widen_mask(struct spelled *s, struct sac_value *mask)
{
    int64_t dims[RANK] = {1, 1, 1, 1};
    if (mask->dtype == SAC_BOOL)
        mask = sac_mask_addend(s->g, s->n, mask, false, -INFINITY, &s->res);
    if (!mask || mask->rank == RANK)
        return mask;
    memcpy(dims + RANK - mask->rank, mask->dims, (size_t)mask->rank * sizeof *dims);
    if (!mask->data)
        return sac_reshaped(s->g, s->n, mask, RANK, dims, &s->res);
    mask->rank = RANK; /* a constant is ours, see mask_of */
    memcpy(mask->dims, dims, sizeof dims);
    return mask;
}

/* A mask of its own, which only the caller has. */
static struct sac_value *copy_of(struct spelled *s, const struct sac_value *mask)
{
    float            *data;
    struct sac_value *own = sac_new_floats(s->g, mask->name, mask->rank, mask->dims, &data);
    if (own)
        memcpy(data, mask->data, (size_t)sac_value_elements(mask) * sizeof *data);
    else
        s->res = SAC_ERR_MEMORY;
    return own;
}

/* Hides the keys behind each query in a constant mask of ours that has a row for each. */
static bool hide_behind(const struct sac_value *mask, int64_t queries)
{
    const int64_t keys = mask->dims[RANK - 1];
    float        *x = (float *)mask->data; /* of the arena */
    if (!x || mask->dims[RANK - 2] != queries)
        return false;
    for (int64_t row = 0, rows = sac_value_elements(mask) / keys; row < rows; row++)
        for (int64_t j = row % queries + 1; j < keys; j++)
            x[row * keys + j] = -INFINITY;
    return true;
}

static bool has_mask(const struct spelled *s)
{
    return sac_node_input(s->n, MASK) || sac_attr_int(s->n, "is_causal", 0);
}

/* All that is added to the scores; NULL: dims that no Reshape can have, or s->res. */
static struct sac_value *mask_of(struct spelled *s)
{
    struct sac_value *mask = sac_node_input(s->n, MASK);
    const bool        causal = sac_attr_int(s->n, "is_causal", 0) != 0;
    if (!mask)
        return causal_mask(s);
    if (mask->data && mask->dtype == SAC_F32)
        mask = copy_of(s, mask);
    if (mask)
        mask = widen_mask(s, mask);
    if (!mask || !causal || hide_behind(mask, s->q.dim[TOKENS]))
        return mask;
    int64_t           dims[RANK];
    struct sac_value *behind = causal_mask(s);
    for (int d = 0; behind && d < RANK; d++)
        dims[d] = mask->dims[d] == 1 ? behind->dims[d] : mask->dims[d];
    return behind ? make(s, "Add", 2, mask, behind, dims) : NULL;
}

/* Does a constant mask hide every key of some query? */
static bool hides_all(const struct sac_value *mask)
{
    const float  *x = sac_constant_floats(mask);
    const int64_t keys = mask->dims[mask->rank - 1], n = x ? sac_value_elements(mask) : 0;
    for (int64_t row = 0; row < n; row += keys) {
        int64_t hidden = 0;
        while (hidden < keys && x[row + hidden] == -INFINITY)
            hidden++;
        if (hidden == keys)
            return true;
    }
    return !x;
}

/* A query of which every key is masked: zeros. */
static struct sac_value *guard(struct spelled *s, struct sac_value *shares)
{
    struct sac_value *odd = make(s, "IsNaN", 1, shares, NULL, shares->dims);
    if (!odd)
        return NULL;
    odd->dtype = SAC_BOOL;
    struct sac_value *const in[] = {odd, sac_new_number(s->g, 0), shares};
    struct sac_value       *y = sac_made_of(s->g, s->n, "Where", 3, in, &s->res);
    if (y)
        y->dtype = SAC_F32;
    return y;
}

/* ---- all ---- */

static struct sac_value *heads_of(struct spelled *s, struct sac_value *v, const struct head_dims *h)
{
    static const int64_t perm[] = {0, 2, 1, 3};
    if (v->rank == RANK)
        return v;
    const int64_t     dims[] = {h->dim[BATCH], h->dim[TOKENS], h->dim[HEADS], h->dim[NUMBERS]};
    struct sac_value *apart = sac_reshaped(s->g, s->n, v, RANK, dims, &s->res);
    return apart ? sac_transposed(s->g, s->n, apart, perm, &s->res) : NULL;
}

/* Keys or values again for each head of a group that shares them, as exporters without the operator
 * write them, which attention.c takes out again. */
static struct sac_value *for_each_head(struct spelled *s, struct sac_value *v,
                                       const struct head_dims *h)
{
    const int64_t  group = s->q.dim[HEADS] / h->dim[HEADS];
    const int64_t *d = h->dim, apart[] = {d[BATCH], d[HEADS], 1, d[TOKENS], d[NUMBERS]},
                  times[] = {1, 1, group, 1, 1},
                  whole[] = {d[BATCH], s->q.dim[HEADS], d[TOKENS], d[NUMBERS]};
    const struct sac_tensor_desc desc = {.dtype = SAC_I64, .rank = 1, .shape = {RANK + 1}};
    if (!v || group == 1)
        return v;
    struct sac_value *const in[] = {sac_reshaped(s->g, s->n, v, RANK + 1, apart, &s->res),
                                    sac_graph_constant(s->g, v->name, &desc, times)};
    if (!in[0])
        return NULL;
    struct sac_value *more = sac_made_of(s->g, s->n, "Expand", 2, in, &s->res);
    if (!more)
        return NULL;
    more->dims[2] = group;
    return sac_reshaped(s->g, s->n, more, RANK, whole, &s->res);
}

static struct sac_value *joined(struct spelled *s, struct sac_value *y)
{
    static const int64_t    perm[] = {0, 2, 1, 3};
    const struct sac_value *like = s->n->outputs[0];
    if (like->rank == RANK)
        return y;
    struct sac_value *turned = sac_transposed(s->g, s->n, y, perm, &s->res);
    return turned ? sac_reshaped(s->g, s->n, turned, like->rank, like->dims, &s->res) : NULL;
}

static struct sac_value *shares_of(struct spelled *s, struct sac_value *q, struct sac_value *k)
{
    static const int64_t perm[] = {0, 1, 3, 2};
    const float          usual = (float)(1 / sqrt((double)s->q.dim[NUMBERS]));
    const int64_t dims[] = {s->q.dim[BATCH], s->q.dim[HEADS], s->q.dim[TOKENS], s->k.dim[TOKENS]};
    const float   scale = sac_attr_float(s->n, "scale", usual);
    struct sac_value *mask = has_mask(s) ? mask_of(s) : NULL;
    if (has_mask(s) && !mask)
        return NULL;
    struct sac_value *turned = sac_transposed(s->g, s->n, k, perm, &s->res);
    struct sac_value *shares = s->res == SAC_OK ? make(s, "MatMul", 2, q, turned, dims) : NULL;
    if (shares)
        shares = make(s, "Mul", 2, shares, sac_new_number(s->g, scale), dims);
    if (shares && mask)
        shares = make(s, "Add", 2, shares, mask, dims);
    if (shares)
        shares = make(s, "Softmax", 1, shares, NULL, dims);
    return shares && mask && hides_all(mask) ? guard(s, shares) : shares;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct spelled s = {.g = g, .n = n};
    if (!sac_is(n, "Attention") || !n->outputs[0] || n->outputs[0]->dtype != SAC_F32 || !read(&s))
        return SAC_OK;
    struct sac_value *q = heads_of(&s, n->inputs[Q], &s.q);
    struct sac_value *k = q ? for_each_head(&s, heads_of(&s, n->inputs[K], &s.k), &s.k) : NULL;
    struct sac_value *v = k ? for_each_head(&s, heads_of(&s, n->inputs[V], &s.v), &s.v) : NULL;
    struct sac_value *shares = v ? shares_of(&s, q, k) : NULL;
    const int64_t     dims[] = {s.q.dim[BATCH], s.q.dim[HEADS], s.q.dim[TOKENS], s.v.dim[NUMBERS]};
    struct sac_value *y = shares ? make(&s, "MatMul", 2, shares, v, dims) : NULL;
    if (y)
        y = joined(&s, y);
    if (!y)
        return s.res;
    sac_graph_replace(g, n->outputs[0], y);
    *changed = true;
    return s.res;
}

const struct sac_pass sac_pass_attention_node = {"attention-node", visit, NULL};
