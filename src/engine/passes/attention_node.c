/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX's own Attention, as exporters write it from opset 23 on, is spelled as the others spell it:
 * softmax(scale Q K^T + M) V of heads that are taken apart and put together. attention.c makes
 * one step of that. What has a cache, grouped heads, a cap or a window keeps its row. */
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

/* A node of one or two inputs; NULL once memory has run out. */
static struct sac_value *make(struct spelled *s, const char *type, struct sac_value *a,
                              struct sac_value *b, const int64_t *dims)
{
    struct sac_node  *n = sac_op_node(s->g, "", type, b ? 2 : 1, 1, s->n);
    struct sac_value *y = n && a ? sac_value_like(s->g, a) : NULL;
    if (!y) {
        s->res = SAC_ERR_MEMORY;
        return NULL;
    }
    n->inputs[0] = a;
    if (b)
        n->inputs[1] = b;
    n->outputs[0] = y;
    y->producer = n;
    y->rank = RANK;
    memcpy(y->dims, dims, RANK * sizeof *dims);
    return y;
}

/* condition's type, or float32. */
static struct sac_value *choose(struct spelled *s, struct sac_value *condition,
                                struct sac_value *yes, struct sac_value *no)
{
    struct sac_node  *n = sac_op_node(s->g, "", "Where", 3, 1, s->n);
    struct sac_value *y = n && condition && yes && no ? sac_value_like(s->g, condition) : NULL;
    if (!y) {
        s->res = SAC_ERR_MEMORY;
        return NULL;
    }
    n->inputs[0] = condition;
    n->inputs[1] = yes;
    n->inputs[2] = no;
    n->outputs[0] = y;
    y->producer = n;
    y->dtype = SAC_F32;
    return y;
}

static struct sac_value *number(struct spelled *s, float value)
{
    float            *data;
    struct sac_value *v = sac_new_floats(s->g, "", 0, NULL, &data);
    if (v)
        *data = value;
    return v;
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
    if (s->q.dim[HEADS] != s->k.dim[HEADS] || s->k.dim[HEADS] != s->v.dim[HEADS])
        return false;
    if (sac_attr_int(n, "is_causal", 0) && s->q.dim[TOKENS] * s->k.dim[TOKENS] > MASK_MAX)
        return false;
    return !mask || fits(mask, s->k.dim[TOKENS]);
}

/* ---- masks ---- */

/* -inf for the keys behind a query. */
static struct sac_value *causal_mask(struct spelled *s)
{
    const int64_t     dims[] = {s->q.dim[TOKENS], s->k.dim[TOKENS]};
    float            *data;
    struct sac_value *mask = sac_new_floats(s->g, "causal", 2, dims, &data);
    for (int64_t i = 0; mask && i < dims[0]; i++)
        for (int64_t j = 0; j < dims[1]; j++)
            data[i * dims[1] + j] = j > i ? -INFINITY : 0;
    return mask;
}

static struct sac_value *add_masks(struct spelled *s, struct sac_value *scores)
{
    const int64_t    *dims = scores->dims;
    struct sac_value *mask = sac_node_input(s->n, MASK);
    if (mask && mask->dtype == SAC_BOOL)
        mask = choose(s, mask, number(s, 0), number(s, -INFINITY));
    if (mask)
        scores = make(s, "Add", scores, mask, dims);
    if (scores && sac_attr_int(s->n, "is_causal", 0))
        scores = make(s, "Add", scores, causal_mask(s), dims);
    return scores;
}

/* A query of which every key is masked: zeros. */
static struct sac_value *guard(struct spelled *s, struct sac_value *shares)
{
    struct sac_value *odd = make(s, "IsNaN", shares, NULL, shares->dims);
    if (!odd)
        return NULL;
    odd->dtype = SAC_BOOL;
    return choose(s, odd, number(s, 0), shares);
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
    struct sac_value *turned = sac_transposed(s->g, s->n, k, perm, &s->res);
    struct sac_value *scores = turned ? make(s, "MatMul", q, turned, dims) : NULL;
    if (scores)
        scores = make(s, "Mul", scores, number(s, sac_attr_float(s->n, "scale", usual)), dims);
    if (scores)
        scores = add_masks(s, scores);
    struct sac_value *shares = scores ? make(s, "Softmax", scores, NULL, dims) : NULL;
    if (shares && (sac_node_input(s->n, MASK) || sac_attr_int(s->n, "is_causal", 0)))
        shares = guard(s, shares);
    return shares;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct spelled s = {.g = g, .n = n};
    if (!sac_is(n, "Attention") || !n->outputs[0] || n->outputs[0]->dtype != SAC_F32 || !read(&s))
        return SAC_OK;
    struct sac_value *q = heads_of(&s, n->inputs[Q], &s.q);
    struct sac_value *k = q ? heads_of(&s, n->inputs[K], &s.k) : NULL;
    struct sac_value *v = k ? heads_of(&s, n->inputs[V], &s.v) : NULL;
    struct sac_value *shares = v ? shares_of(&s, q, k) : NULL;
    const int64_t     dims[] = {s.q.dim[BATCH], s.q.dim[HEADS], s.q.dim[TOKENS], s.v.dim[NUMBERS]};
    struct sac_value *y = shares ? make(&s, "MatMul", shares, v, dims) : NULL;
    if (y)
        y = joined(&s, y);
    if (!y)
        return s.res;
    sac_graph_replace(g, n->outputs[0], y);
    *changed = true;
    return s.res;
}

const struct sac_pass sac_pass_attention_node = {"attention-node", visit, NULL};
