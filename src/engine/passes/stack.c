/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over a few maps that lie behind each other on an axis of their own, as the branches of
 * selective kernels (Li et al., 2019) and the splits of ResNeSt (Zhang et al., 2020): a Reshape
 * took the channels apart, or a Concat put together what Unsqueeze had prepared. Their numbers lie
 * as those of one map with the channels of all, which is what kernels read in channels last. The
 * sum of gated ones is one GatedSum; the means of a sum are means of that map, whose layer has its
 * weights for each part; any other sum is one of slices, or of the maps themselves. */
#include <string.h>

#include "engine/passes/pass.h"

enum { PARTS_MAX = 8 };

struct stack {
    struct sac_value *whole; /* the map with the channels of all; NULL: not made yet */
    struct sac_value *part[PARTS_MAX];
    struct sac_node  *concat; /* NULL: they are parts of `whole` alone */
    int               parts;
    int64_t           channels; /* of each */
};

/* ---- what is stacked ---- */

/* v [N,parts,C,...] has the dims of x [N,channels,...] but for the channels. */
static bool takes_apart(const struct sac_value *x, const struct sac_value *v, int64_t channels)
{
    bool same = x->rank == v->rank - 1 && x->rank >= 3 && x->dtype == v->dtype &&
                x->dims[0] == v->dims[0] && x->dims[1] == channels;
    for (int d = 2; same && d < x->rank; d++)
        same = x->dims[d] >= 1 && x->dims[d] == v->dims[d + 1];
    return same;
}

static bool is_concat_of_maps(struct stack *s, const struct sac_value *v)
{
    struct sac_node *n = sac_made_by(v, "Concat");
    const int64_t    axis = n ? sac_attr_int(n, "axis", 1) : 0;
    if (!n || n->input_count != s->parts || (axis != 1 && axis != 1 - v->rank))
        return false;
    for (int i = 0; i < s->parts; i++) {
        const struct sac_node *view = n->inputs[i]->producer;
        if (!view || !sac_is_reshape(view) || n->inputs[i]->dims[1] != 1 ||
            !takes_apart(view->inputs[0], v, s->channels))
            return false;
        s->part[i] = view->inputs[0];
    }
    s->concat = n;
    return true;
}

static bool find_stack(struct stack *s, const struct sac_value *v)
{
    *s = (struct stack){0};
    if (v->rank < 4 || v->dtype != SAC_F32 || v->data || v->dims[0] == 0 || v->dims[1] < 2 ||
        v->dims[1] > PARTS_MAX || v->dims[2] < 1)
        return false;
    s->parts = (int)v->dims[1];
    s->channels = v->dims[2];
    const struct sac_node *n = sac_made_by(v, "Reshape");
    if (n && takes_apart(n->inputs[0], v, s->parts * s->channels))
        s->whole = n->inputs[0];
    return s->whole || is_concat_of_maps(s, v);
}

/* ---- the map of all channels, and parts of it ---- */

/* The Concat of the same maps along their channels that was made before. */
static struct sac_value *joined_before(const struct stack *s)
{
    const struct sac_value *first = s->part[0];
    for (size_t i = 0; i < first->reader_count; i++) {
        const struct sac_node *n = first->readers[i];
        if (sac_is(n, "Concat") && n->outputs[0] && n->outputs[0]->rank == first->rank &&
            sac_attr_int(n, "axis", 0) == 1 && n->input_count == s->parts &&
            memcmp(n->inputs, s->part, (size_t)s->parts * sizeof *s->part) == 0)
            return n->outputs[0];
    }
    return NULL;
}

static struct sac_value *whole_of(struct sac_graph *g, const struct stack *s, sac_result *res)
{
    struct sac_value *whole = s->whole ? s->whole : joined_before(s);
    if (whole)
        return whole;
    whole = sac_made_of(g, s->concat, "Concat", s->parts, s->part, res);
    if (!whole)
        return NULL;
    whole->dims[1] = s->parts * s->channels;
    *res = sac_node_set_int(g, whole->producer, "axis", 1);
    return whole;
}

static struct sac_value *part_of(struct sac_graph *g, const struct sac_node *like,
                                 const struct stack *s, int i, sac_result *res)
{
    return s->concat ? s->part[i]
                     : sac_channels_of(g, like, s->whole, i * s->channels, s->channels, res);
}

/* ---- a sum of them ---- */

/* y in n's place, which may have kept the axis. */
static sac_result put(struct sac_graph *g, struct sac_node *n, struct sac_value *y)
{
    sac_result              res = SAC_OK;
    const struct sac_value *old = n->outputs[0];
    if (y && old->rank != y->rank)
        y = sac_reshaped(g, n, y, old->rank, old->dims, &res);
    if (!y)
        return SAC_ERR_MEMORY;
    sac_graph_replace(g, n->outputs[0], y);
    return res;
}

static sac_result add_up(struct sac_graph *g, struct sac_node *n, const struct stack *s)
{
    sac_result        res = SAC_OK;
    struct sac_value *sum = part_of(g, n, s, 0, &res);
    for (int i = 1; sum && i < s->parts; i++) {
        struct sac_value *const in[] = {sum, part_of(g, n, s, i, &res)};
        sum = sac_made_of(g, n, "Add", 2, in, &res);
    }
    if (sum && sac_is(n, "ReduceMean")) {
        struct sac_value *const in[] = {sum, sac_new_number(g, 1.0f / (float)s->parts)};
        sum = sac_made_of(g, n, "Mul", 2, in, &res);
    }
    return res == SAC_OK ? put(g, n, sum) : res;
}

/* ---- the means of a sum, and the layer that reads them ---- */

static struct sac_node *layer_behind(const struct sac_node *pool)
{
    struct sac_node        *layer = pool ? sac_only_reader(pool, "Conv") : NULL;
    const struct sac_value *w = layer ? sac_node_input(layer, 1) : NULL;
    return w && layer->inputs[0] == pool->outputs[0] && sac_constant_floats(w) &&
                   w->rank == pool->outputs[0]->rank && w->dims[1] == pool->outputs[0]->dims[1] &&
                   sac_value_elements(w) == w->dims[0] * w->dims[1]
               ? layer
               : NULL;
}

/* Each part's means have the same weights. */
static struct sac_value *weights_of_all(struct sac_graph *g, const struct sac_value *w,
                                        const struct stack *s, float factor)
{
    int64_t           dims[SAC_RANK_MAX];
    const float      *from = sac_constant_floats(w);
    float            *to;
    struct sac_value *made;
    memcpy(dims, w->dims, sizeof dims);
    dims[1] = s->parts * s->channels;
    made = sac_new_floats(g, w->name, w->rank, dims, &to);
    for (int64_t i = 0; made && i < dims[0] * dims[1]; i++)
        to[i] = factor * from[i / dims[1] * s->channels + i % s->channels];
    return made;
}

static struct sac_node *copy_of(struct sac_graph *g, const struct sac_node *n,
                                struct sac_value *first)
{
    struct sac_node *made = sac_op_node(g, n->domain, n->op_type, n->input_count, 1, n);
    if (!made || !first || sac_copy_attrs(g, made, n) != SAC_OK)
        return NULL;
    for (int i = 0; i < n->input_count; i++)
        made->inputs[i] = i == 0 ? first : n->inputs[i];
    return made;
}

static sac_result take_means(struct sac_graph *g, const struct sac_node *n, struct sac_node *pool,
                             struct sac_node *layer, const struct stack *s)
{
    sac_result       res = SAC_OK;
    struct sac_node *means = copy_of(g, pool, whole_of(g, s, &res));
    if (!means || res != SAC_OK)
        return SAC_ERR_MEMORY;
    means->outputs[0] = sac_value_like(g, pool->outputs[0]);
    struct sac_node  *made = copy_of(g, layer, means->outputs[0]);
    struct sac_value *w = weights_of_all(g, layer->inputs[1], s,
                                         sac_is(n, "ReduceMean") ? 1.0f / (float)s->parts : 1);
    if (!made || !w)
        return SAC_ERR_MEMORY;
    means->outputs[0]->producer = means;
    means->outputs[0]->dims[1] = s->parts * s->channels;
    made->inputs[1] = w;
    return sac_take_over(g, made, layer);
}

/* ---- a sum of gated ones ---- */

/* A number for each channel of each part of v. */
static bool is_gate(const struct sac_value *gate, const struct sac_value *v)
{
    bool fits = gate->rank == v->rank && gate->dtype == v->dtype &&
                (gate->dims[0] == v->dims[0] || gate->dims[0] == 1);
    for (int d = 1; fits && d < v->rank; d++)
        fits = gate->dims[d] == (d < 3 ? v->dims[d] : 1);
    return fits;
}

static sac_result add_up_gated(struct sac_graph *g, struct sac_node *n, const struct stack *s,
                               struct sac_value *gate)
{
    sac_result       res = SAC_OK;
    int64_t          dims[SAC_RANK_MAX];
    struct sac_node *made = sac_op_node(g, "saccade", "GatedSum", 2, 1, n);
    const int        rank = gate->rank - 1;
    for (int d = 0; d < rank; d++)
        dims[d] = d == 0 ? gate->dims[0] : d == 1 ? s->parts * s->channels : 1;
    struct sac_value *x = whole_of(g, s, &res), *flat = sac_reshaped(g, n, gate, rank, dims, &res);
    struct sac_value *y = x ? sac_value_like(g, x) : NULL;
    if (!made || !flat || !y || res != SAC_OK)
        return SAC_ERR_MEMORY;
    made->inputs[0] = x;
    made->inputs[1] = flat;
    made->outputs[0] = y;
    y->producer = made;
    y->dims[1] = s->channels;
    res = sac_node_set_int(g, made, "parts", s->parts);
    return res == SAC_OK ? put(g, n, y) : res;
}

/* n = ReduceSum(stack * gate). */
static sac_result find_gated(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct stack            s;
    const struct sac_value *v = n->inputs[0];
    const struct sac_node  *mul = sac_made_by(v, "Mul");
    for (int i = 0; mul && v->uses == 1 && sac_is(n, "ReduceSum") && i < 2; i++) {
        struct sac_value *x = mul->inputs[i], *gate = mul->inputs[1 - i];
        if (!sac_same_shape(x, v) || !is_gate(gate, v) || !find_stack(&s, x))
            continue;
        *changed = true;
        return add_up_gated(g, n, &s, gate);
    }
    return SAC_OK;
}

static bool reduces_second_axis(const struct sac_node *n)
{
    bool reduced[SAC_RANK_MAX];
    if ((!sac_is(n, "ReduceSum") && !sac_is(n, "ReduceMean")) || !n->inputs[0] || !n->outputs[0] ||
        n->inputs[0]->rank < 4 || n->outputs[0]->rank < 0 ||
        !sac_reduce_axes(n, n->inputs[0]->rank, reduced))
        return false;
    for (int d = 0; d < n->inputs[0]->rank; d++)
        if (reduced[d] != (d == 1))
            return false;
    return true;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct stack s;
    if (!reduces_second_axis(n))
        return SAC_OK;
    if (!find_stack(&s, n->inputs[0]))
        return find_gated(g, n, changed);
    struct sac_node *pool = sac_only_reader(n, NULL);
    pool = pool && n->outputs[0]->rank == n->inputs[0]->rank - 1 && sac_takes_means(pool) ? pool
                                                                                          : NULL;
    struct sac_node *layer = layer_behind(pool);
    *changed = layer || s.concat || sac_is_map(s.whole); /* of others slices would be copies */
    if (!*changed)
        return SAC_OK;
    return layer ? take_means(g, n, pool, layer, &s) : add_up(g, n, &s);
}

const struct sac_pass sac_pass_stack = {"stack", visit};
