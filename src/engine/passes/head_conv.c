/* SPDX-License-Identifier: Apache-2.0 */
/* Attention that pools its queries, keys and values (MViT) takes the heads apart first, counts them
 * with the batch, [batch and head,D,H,W], and runs one depthwise convolution of D channels over all
 * of them. With its kernels repeated for each head it is one of H D channels over the map that the
 * product before has written, channels last: then nothing is moved before it, and what was behind
 * it is a view for those who read heads where they lie (heads.h). A MaxPool or AveragePool (Hiera,
 * SAM 2) is the same without a kernel; where it has the channels of all heads at once, it reads
 * part of the map instead of a copy of it. */
#include <string.h>

#include "engine/passes/strided.h"

enum { DEPTH_MAX = 16, WEIGHTS_MAX = 1 << 22 /* a file must not say how much memory they take */ };

struct pooling {
    struct sac_node   *node;            /* a depthwise Conv, or a MaxPool or AveragePool */
    int64_t            heads, channels; /* of a head */
    bool               is_pool;         /* without weights */
    struct sac_strided from;            /* [batch,heads and channels,pixels] */
    int64_t            wide;            /* channels of the whole map, one behind the other */
};

/* Channels first again? Devices that have maps channels last do nothing for that. */
static bool is_first(const struct sac_node *n)
{
    const int64_t *perm;
    const size_t   rank = sac_attr_ints(n, "perm", &perm);
    bool           first = rank > 2 && perm[0] == 0 && perm[1] == (int64_t)rank - 1;
    for (size_t i = 2; first && i < rank; i++)
        first = perm[i] == (int64_t)i - 1;
    return first;
}

static bool takes_part(const struct sac_node *n)
{
    return sac_is(n, "Slice") || sac_is(n, "Split") || sac_is(n, "Gather");
}

/* Is a number moved from the base to x, or are some taken before they are a map? */
static bool is_moved(const struct sac_value *x, const struct sac_value *base)
{
    for (const struct sac_value *v = x; v && v != base; v = sac_strided_before(v))
        if ((sac_is(v->producer, "Transpose") && !is_first(v->producer)) ||
            (v != x && takes_part(v->producer)))
            return true;
    return false;
}

static int64_t pixels_of(const struct sac_value *map)
{
    int64_t pixels = 1;
    for (int d = 2; d < map->rank; d++)
        pixels *= map->dims[d] > 0 ? map->dims[d] : 0;
    return pixels;
}

/* Is a base of the map's size all of it, or does the view leave some out? */
static bool is_whole(const struct pooling *p, int64_t pixels)
{
    const struct sac_value *base = p->from.base;
    int64_t                 has = 1, wants = p->from.dim[0];
    bool                    over = __builtin_mul_overflow(wants, pixels, &wants);
    over |= __builtin_mul_overflow(wants, p->wide, &wants);
    for (int d = 0; d < base->rank; d++)
        over |= __builtin_mul_overflow(
            has, base->dims[d] == SAC_DIM_OPEN ? SAC_STAND_IN : base->dims[d], &has);
    return !over && has == wants;
}

/* Are the channels of all heads, which are each other's neighbours, part of a line of `wide`, of
 * which the base has one for each pixel? */
static bool lies_as_map(struct pooling *p, const struct sac_value *x)
{
    const struct sac_strided *s = &p->from;
    const int64_t             pixels = pixels_of(x), all = p->heads * p->channels;
    const struct sac_value   *base = s->base;
    p->wide = base->rank > 0 ? base->dims[base->rank - 1] : 0;
    return s->scale == 1 && s->step[1] == 1 && p->wide > 0 &&
           (p->is_pool || sac_value_elements(p->node->inputs[1]) <= WEIGHTS_MAX / p->heads) &&
           s->offset + all <= p->wide && (pixels == 1 || s->step[2] == p->wide) &&
           (s->dim[0] == 1 || s->step[0] == pixels * p->wide) && is_whole(p, pixels);
}

static bool find_map(struct pooling *p)
{
    struct sac_value *x = p->node->inputs[0];
    int64_t           batch;
    bool              open;
    int               far = 0;
    for (const struct sac_value *v = x; far < DEPTH_MAX && (v = sac_strided_before(v));)
        far++;
    for (int depth = far; depth > 0; depth--) {
        if (!sac_strided_from(&p->from, x, depth) || !is_moved(x, p->from.base))
            continue;
        p->heads = sac_strided_inner(&p->from, 0);
        const int64_t dims[] = {sac_strided_dim(&p->from, 0) / p->heads, p->heads * p->channels,
                                pixels_of(x)};
        if (p->heads < SAC_STAND_IN && sac_strided_reshape(&p->from, 3, dims) &&
            sac_strided_settle(&p->from) && lies_as_map(p, x) &&
            sac_strided_entry(p->from.dim[0], &batch, &open))
            return true;
    }
    return false;
}

static bool is_depthwise(const struct sac_node *n, const struct sac_value *x)
{
    const struct sac_value *w = sac_node_input(n, 1), *bias = sac_node_input(n, 2);
    return sac_is(n, "Conv") && w && sac_constant_floats(w) && w->rank == x->rank &&
           w->dims[1] == 1 && w->dims[0] == x->dims[1] && (!bias || sac_constant_floats(bias)) &&
           sac_attr_int(n, "group", 1) == w->dims[0];
}

static bool read_pooling(struct sac_node *n, struct pooling *p)
{
    const struct sac_value *x = sac_node_input(n, 0);
    *p = (struct pooling){.node = n, .is_pool = sac_is(n, "MaxPool") || sac_is(n, "AveragePool")};
    if (!x || x->dtype != SAC_F32 || x->rank < 3 || n->output_count != 1 ||
        n->outputs[0]->rank != x->rank || x->dims[1] < 1 || pixels_of(x) == 0 ||
        pixels_of(n->outputs[0]) == 0 || !(p->is_pool || is_depthwise(n, x)))
        return false;
    p->channels = x->dims[1];
    return find_map(p);
}

/* ---- the new nodes ---- */

/* Channels first from channels last. */
static struct sac_value *map_of(struct sac_graph *g, const struct pooling *p, sac_result *res)
{
    const struct sac_value *x = p->node->inputs[0];
    int64_t                 dims[SAC_RANK_MAX], perm[SAC_RANK_MAX] = {0};
    const int               last = x->rank - 1;
    dims[0] = sac_strided_value_dim(p->from.dim[0]);
    dims[last] = p->wide;
    for (int d = 1; d < last; d++)
        dims[d] = x->dims[d + 1];
    for (int d = 1; d <= last; d++)
        perm[d] = d == 1 ? last : d - 1;
    struct sac_value *v = sac_reshaped(g, p->node, p->from.base, x->rank, dims, res);
    if (v)
        v = sac_transposed(g, p->node, v, perm, res);
    return v && p->wide > p->heads * p->channels
               ? sac_channels_of(g, p->node, v, p->from.offset, p->heads * p->channels, res)
               : v;
}

/* A constant of each channel, for each head again. */
static struct sac_value *repeated(struct sac_graph *g, const struct pooling *p,
                                  const struct sac_value *constant)
{
    int64_t       dims[SAC_RANK_MAX];
    const int64_t count = sac_value_elements(constant);
    float        *to;
    memcpy(dims, constant->dims, sizeof dims);
    dims[0] *= p->heads;
    struct sac_value *made = sac_new_floats(g, constant->name, constant->rank, dims, &to);
    for (int64_t h = 0; made && h < p->heads; h++)
        memcpy(to + h * count, constant->data, (size_t)count * sizeof *to);
    return made;
}

static struct sac_value *pooled(struct sac_graph *g, const struct pooling *p, struct sac_value *map,
                                sac_result *res)
{
    const int         inputs = p->is_pool ? 1 : sac_node_input(p->node, 2) ? 3 : 2;
    struct sac_node  *n = sac_op_node(g, "", p->node->op_type, inputs, 1, p->node);
    struct sac_value *y = n ? sac_value_like(g, p->node->outputs[0]) : NULL;
    *res = SAC_ERR_MEMORY;
    if (!y || sac_copy_attrs(g, n, p->node) != SAC_OK ||
        (!p->is_pool && sac_node_set_int(g, n, "group", p->heads * p->channels) != SAC_OK))
        return NULL;
    n->inputs[0] = map;
    for (int i = 1; i < inputs; i++)
        if (!(n->inputs[i] = repeated(g, p, p->node->inputs[i])))
            return NULL;
    n->outputs[0] = y;
    y->producer = n;
    y->dims[0] = map->dims[0];
    y->dims[1] = p->heads * p->channels;
    *res = SAC_OK;
    return y;
}

/* The map of all heads as the node had it: by way of channels last, which is how it lies. */
static struct sac_value *as_before(struct sac_graph *g, const struct pooling *p,
                                   struct sac_value *y, sac_result *res)
{
    const struct sac_value *old = p->node->outputs[0];
    int64_t                 perm[SAC_RANK_MAX] = {0}, dims[SAC_RANK_MAX];
    const int               rank = y->rank, last = rank - 1;
    for (int d = 1; d < rank; d++)
        perm[d] = d == last ? 1 : d + 1;
    y = sac_transposed(g, p->node, y, perm, res);
    if (!y)
        return NULL;
    memcpy(dims, y->dims, sizeof dims);
    dims[last] = p->heads;
    dims[rank] = p->channels;
    y = sac_reshaped(g, p->node, y, rank + 1, dims, res);
    for (int d = 1; d <= rank; d++)
        perm[d] = d <= 2 ? last + d - 1 : d - 2;
    y = y ? sac_transposed(g, p->node, y, perm, res) : NULL;
    return y ? sac_reshaped(g, p->node, y, rank, old->dims, res) : NULL;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct pooling p;
    sac_result     res = SAC_OK;
    if (!read_pooling(n, &p) || n->inputs[0]->rank == SAC_RANK_MAX)
        return SAC_OK;
    struct sac_value *y = map_of(g, &p, &res);
    y = y ? pooled(g, &p, y, &res) : NULL;
    y = y ? as_before(g, &p, y, &res) : NULL;
    if (!y)
        return res;
    *changed = true;
    sac_graph_replace(g, n->outputs[0], y);
    return SAC_OK;
}

const struct sac_pass sac_pass_head_conv = {"head-conv", visit};
