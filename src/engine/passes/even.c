/* SPDX-License-Identifier: Apache-2.0 */
/* Where a picture is concatenated to a map, as mattes and other refinements do, the convolution
 * behind it has some channels more than a multiple of eight, which tensor cores cannot read at
 * once. The picture is padded by channels of zeros, which cost next to nothing beside that, and
 * comes last, so that the other maps are aligned too; the weights follow. */
#include <string.h>

#include "engine/passes/pass.h"

enum { MULTIPLE = 8, PARTS_MAX = 16 };

struct parts {
    const struct sac_node *concat;
    int                    order[PARTS_MAX], count;
    int64_t                first[PARTS_MAX], channels; /* of each input, as it is; of all */
};

static int64_t channels_of(const struct parts *p, int i)
{
    return p->concat->inputs[i]->dims[1];
}

/* A dense convolution of constant weights over a Concat of channels that nobody else reads. */
static bool take_parts(struct parts *p, const struct sac_node *n)
{
    const struct sac_value *x = sac_node_input(n, 0), *w = sac_node_input(n, 1);
    *p = (struct parts){.concat = x ? sac_made_by(x, "Concat") : NULL};
    if ((!sac_is(n, "Conv") && !sac_is_fused(n, "FusedConv")) || !p->concat || x->uses != 1 ||
        x->rank < 3 || x->dtype != SAC_F32 || !sac_constant_floats(w) || w->rank != x->rank ||
        sac_attr_int(n, "group", 1) != 1 || p->concat->input_count > PARTS_MAX)
        return false;
    const int64_t axis = sac_attr_int(p->concat, "axis", 1);
    if (axis != 1 && axis != 1 - x->rank)
        return false;
    p->count = p->concat->input_count;
    for (int i = 0; i < p->count; i++) {
        const struct sac_value *v = p->concat->inputs[i];
        if (!v || v->data || v->rank != x->rank || v->dims[1] < 1)
            return false;
        p->first[i] = p->channels;
        p->channels += v->dims[1];
    }
    return p->channels == w->dims[1];
}

/* The input that is padded comes last, those that are a multiple first; -1: none is small. */
static int put_in_order(struct parts *p)
{
    int small = -1, to = 0;
    for (int i = 0; i < p->count; i++)
        if (channels_of(p, i) < MULTIPLE &&
            (small < 0 || channels_of(p, i) < channels_of(p, small)))
            small = i;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < p->count; i++)
            if (i != small && (channels_of(p, i) % MULTIPLE == 0) == (pass == 0))
                p->order[to++] = i;
    if (small >= 0)
        p->order[to] = small;
    return small;
}

/* Zeros behind the channels of v. */
static struct sac_value *padded(struct sac_graph *g, const struct sac_node *like,
                                struct sac_value *v, int64_t more, sac_result *res)
{
    const struct sac_tensor_desc desc = {.dtype = SAC_I64, .rank = 1, .shape = {2 * v->rank}};
    int64_t                      pads[2 * SAC_RANK_MAX] = {0};
    const bool                   old = like->opset < 11; /* which had them as an attribute */
    struct sac_node             *n = sac_op_node(g, "", "Pad", old ? 1 : 2, 1, like);
    struct sac_value            *y = n ? sac_value_like(g, v) : NULL;
    pads[v->rank + 1] = more;
    *res = y ? SAC_OK : SAC_ERR_MEMORY;
    if (!y)
        return NULL;
    n->inputs[0] = v;
    if (old)
        *res = sac_node_set_ints(g, n, "pads", pads, (size_t)(2 * v->rank));
    else if (!(n->inputs[1] = sac_graph_constant(g, v->name, &desc, pads)))
        *res = SAC_ERR_MEMORY;
    n->outputs[0] = y;
    y->producer = n;
    y->dims[1] += more;
    return y;
}

static struct sac_value *weights_of(struct sac_graph *g, const struct parts *p,
                                    const struct sac_value *w, int64_t channels)
{
    int64_t dims[SAC_RANK_MAX], taps = 1;
    float  *to;
    memcpy(dims, w->dims, sizeof dims);
    dims[1] = channels;
    for (int d = 2; d < w->rank; d++)
        taps *= dims[d];
    struct sac_value *made = sac_new_floats(g, w->name, w->rank, dims, &to);
    if (!made)
        return NULL;
    memset(to, 0, (size_t)(dims[0] * channels * taps) * sizeof *to);
    for (int64_t k = 0; k < dims[0]; k++, to += channels * taps) {
        const float *from = sac_constant_floats(w) + k * p->channels * taps;
        int64_t      at = 0;
        for (int i = 0; i < p->count; i++) {
            const int64_t count = channels_of(p, p->order[i]) * taps;
            memcpy(to + at, from + p->first[p->order[i]] * taps, (size_t)count * sizeof *to);
            at += count;
        }
    }
    return made;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct parts p;
    sac_result   res;
    if (n->output_count != 1 || !take_parts(&p, n) || p.channels < 2 * MULTIPLE ||
        p.channels % MULTIPLE == 0)
        return SAC_OK;
    const int small = put_in_order(&p);
    if (small < 0)
        return SAC_OK;
    const int64_t     more = MULTIPLE - p.channels % MULTIPLE;
    struct sac_node  *made = sac_op_node(g, "", "Concat", p.count, 1, p.concat);
    struct sac_value *w = weights_of(g, &p, n->inputs[1], p.channels + more),
                     *y = made ? sac_value_like(g, n->inputs[0]) : NULL,
                     *last = padded(g, n, p.concat->inputs[small], more, &res);
    if (!w || !y || !last || res != SAC_OK)
        return SAC_ERR_MEMORY;
    for (int i = 0; i < p.count; i++)
        made->inputs[i] = i < p.count - 1 ? p.concat->inputs[p.order[i]] : last;
    made->outputs[0] = y;
    y->producer = made;
    y->dims[1] = p.channels + more;
    n->inputs[0] = y;
    n->inputs[1] = w;
    *changed = true;
    return sac_node_set_int(g, made, "axis", 1);
}

const struct sac_pass sac_pass_even = {"even", visit};
