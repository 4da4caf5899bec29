/* SPDX-License-Identifier: Apache-2.0 */
/* A sum of maps and the same ones gated, x + (b + c (x g)) as in the response norms of ConvNeXt V2,
 * is the maps by another gate, which is small: x (1 + c g) + b. Without x in the sum, one step
 * takes the constants and what follows them. */
#include "engine/passes/pass.h"

/* y = x (kept + scale g) + shift, numbers for each channel. */
struct gains {
    struct sac_value *x, *gate;
    int               dim; /* of the channels */
    int64_t           channels;
    float            *scale, *kept, *shift, *numbers;
    bool              keeps, scales, shifts; /* kept, and others than ones and zeros */
};

static bool is_gate(const struct gains *s, const struct sac_value *x, const struct sac_value *v)
{
    bool wide = false;
    if (v->data || v->rank != x->rank || v->dims[s->dim] != s->channels ||
        (v->dims[0] != x->dims[0] && v->dims[0] != 1))
        return false;
    for (int d = 1; d < v->rank; d++) {
        if (d != s->dim && v->dims[d] != 1)
            return false;
        wide |= x->dims[d] != v->dims[d];
    }
    return wide;
}

/* One number per channel, or one for all, into `numbers`. */
static bool take_constant(struct gains *s, const struct sac_value *v, int rank)
{
    if (s->dim == 1)
        return sac_constant_per_channel(v, rank, s->channels, s->numbers);
    const float *data = sac_constant_row(v, rank, s->channels) ? v->data : NULL;
    const bool   one = data && sac_value_elements(v) == 1;
    for (int64_t i = 0; data && i < s->channels; i++)
        s->numbers[i] = data[one ? 0 : i];
    return data != NULL;
}

/* n adds to or multiplies what is returned by constants, or adds x to it; NULL: it does not. */
static struct sac_value *take_step(struct gains *s, const struct sac_node *n)
{
    const bool add = sac_is(n, "Add");
    for (int i = 0; i < 2; i++) {
        struct sac_value *const v = n->inputs[i], *const other = n->inputs[1 - i];
        if (v->data || !sac_same_shape(v, n->outputs[0]))
            continue;
        if (add && !other->data && v->uses == 1 && other->uses > 1 && (!s->x || s->x == other)) {
            s->x = other;
            s->keeps = true;
            for (int64_t c = 0; c < s->channels; c++)
                s->kept[c] += s->scale[c];
            return v;
        }
        if (!take_constant(s, other, v->rank))
            continue;
        for (int64_t c = 0; c < s->channels; c++) {
            s->shift[c] += add ? s->scale[c] * s->numbers[c] : 0;
            s->scale[c] *= add ? 1 : s->numbers[c];
        }
        s->shifts |= add;
        s->scales |= !add;
        return v;
    }
    return NULL;
}

/* From n back to the product with the gate. */
static bool take_steps(struct gains *s, const struct sac_node *n)
{
    while (sac_is(n, "Add") || sac_is(n, "Mul")) {
        if (n->output_count != 1 || !n->outputs[0] || !n->inputs[0] || !n->inputs[1])
            return false;
        for (int i = 0; sac_is(n, "Mul") && i < 2; i++) {
            struct sac_value *const x = n->inputs[i];
            if (!x->data && sac_same_shape(x, n->outputs[0]) && (!s->x || s->x == x) &&
                is_gate(s, x, n->inputs[1 - i])) {
                s->x = x;
                s->gate = n->inputs[1 - i];
                return true;
            }
        }
        const struct sac_value *v = take_step(s, n);
        if (!v || v->uses != 1)
            return false;
        n = v->producer;
    }
    return false;
}

/* Does the only reader of n go on? It is visited later. */
static bool goes_on(struct gains *s, const struct sac_node *n)
{
    const struct sac_node *next = sac_only_reader(n, NULL);
    if (!sac_is(next, "Add") && !sac_is(next, "Mul"))
        return false;
    const struct sac_value *other = sac_other_input(next, n->outputs[0]);
    return other && ((sac_is(next, "Add") && other == s->x && other->uses > 1) ||
                     take_constant(s, other, s->x->rank));
}

/* v `op` a constant of these numbers for each channel; v itself where there are none. */
static struct sac_value *by_constant(struct sac_graph *g, const struct sac_node *n,
                                     const struct gains *s, const char *op, struct sac_value *v,
                                     const float *numbers, sac_result *res)
{
    int64_t dims[SAC_RANK_MAX];
    float  *to;
    for (int d = 0; v && d < v->rank; d++)
        dims[d] = d == s->dim ? s->channels : 1;
    if (!v || !numbers)
        return v;
    struct sac_value *c = sac_new_floats(g, v->name, v->rank, dims, &to);
    for (int64_t i = 0; c && i < s->channels; i++)
        to[i] = numbers[i];
    return sac_made_of(g, n, op, 2, (struct sac_value *const[]){v, c}, res);
}

static sac_result make(struct sac_graph *g, const struct sac_node *n, const struct gains *s)
{
    sac_result        res = SAC_OK;
    struct sac_value *v = by_constant(g, n, s, "Mul", s->gate, s->scales ? s->scale : NULL, &res);
    v = by_constant(g, n, s, "Add", v, s->kept, &res);
    if (v)
        v = sac_made_of(g, n, "Mul", 2, (struct sac_value *const[]){s->x, v}, &res);
    v = by_constant(g, n, s, "Add", v, s->shifts ? s->shift : NULL, &res);
    if (v)
        sac_graph_replace(g, n->outputs[0], v);
    return res;
}

static sac_result visit_dim(struct sac_graph *g, const struct sac_node *n, int dim, bool *changed)
{
    const int64_t count = n->outputs[0]->dims[dim];
    if (count < 1)
        return SAC_OK;
    float *numbers = sac_calloc((size_t)count * 4, sizeof *numbers);
    if (!numbers)
        return SAC_FAIL(g->ctx, SAC_ERR_MEMORY, "no memory to fold a gate's constants");
    struct gains s = {.dim = dim,
                      .channels = count,
                      .scale = numbers,
                      .kept = numbers + count,
                      .shift = numbers + 2 * count,
                      .numbers = numbers + 3 * count};
    for (int64_t c = 0; c < count; c++)
        s.scale[c] = 1;
    sac_result res = SAC_OK;
    if (take_steps(&s, n) && s.keeps && !goes_on(&s, n)) {
        *changed = true;
        res = make(g, n, &s);
    }
    sac_free(numbers);
    return res;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    if ((!sac_is(n, "Add") && !sac_is(n, "Mul")) || n->output_count != 1 || !n->outputs[0] ||
        n->outputs[0]->rank < 3 || n->outputs[0]->dtype != SAC_F32)
        return SAC_OK;
    const int  last = n->outputs[0]->rank - 1;
    sac_result res = visit_dim(g, n, 1, changed);
    return res != SAC_OK || *changed ? res : visit_dim(g, n, last, changed);
}

const struct sac_pass sac_pass_gains = {"gains", visit};
