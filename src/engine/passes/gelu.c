/* SPDX-License-Identifier: Apache-2.0 */
/* GELU as exporters spell it: x, 1/2 and 1 + erf(x / sqrt(2)), or 1 + tanh(sqrt(2 / pi) (x +
 * 0.044715 x^3)), multiplied in any order, are one Gelu; so is the latter with x as a factor. */
#include <math.h>

#include "engine/passes/pass.h"

enum { FACTORS_MAX = 4, DEPTH_MAX = 4 };

/* A product, taken apart: constants are gathered in scale. */
struct factors {
    const struct sac_value *v[FACTORS_MAX];
    int                     count;
    double                  scale;
};

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-5 * fabs(b);
}

/* False: too many factors. x is one, whatever it is made of. */
static bool gather(struct factors *f, const struct sac_value *v, const struct sac_value *x,
                   int depth)
{
    const struct sac_node *n = v->producer;
    float                  c;
    if (sac_constant_scalar(v, &c)) {
        f->scale *= c;
        return true;
    }
    const bool two =
        v != x && depth < DEPTH_MAX && n && n->input_count == 2 && n->inputs[0] && n->inputs[1];
    if (two && sac_is(n, "Mul"))
        return gather(f, n->inputs[0], x, depth + 1) && gather(f, n->inputs[1], x, depth + 1);
    if (two && sac_is(n, "Div") && sac_constant_scalar(n->inputs[1], &c) && c != 0) {
        f->scale /= c;
        return gather(f, n->inputs[0], x, depth + 1);
    }
    int copies = 1;
    if (two && sac_is(n, "Pow") && n->inputs[0] == x && sac_constant_scalar(n->inputs[1], &c) &&
        (c == 2 || c == 3)) {
        copies = (int)c;
        v = x;
    }
    for (; copies > 0 && f->count < FACTORS_MAX; copies--)
        f->v[f->count++] = v;
    return copies == 0;
}

static struct factors factors_of(const struct sac_value *v, const struct sac_value *x)
{
    struct factors f = {.scale = 1};
    if (!gather(&f, v, x, 0))
        f.count = -1;
    return f;
}

/* Is v = scale x^power? */
static bool is_power(const struct sac_value *v, const struct sac_value *x, int power, double scale)
{
    const struct factors f = factors_of(v, x);
    bool                 same = f.count == power && near(f.scale, scale);
    for (int i = 0; same && i < power; i++)
        same = f.v[i] == x;
    return same;
}

/* Is v = x + 0.044715 x^3, or that over x? */
static bool is_bent_sum(const struct sac_value *v, const struct sac_value *x, bool over_x)
{
    const struct sac_node *sum = sac_made_by(v, "Add");
    for (int i = 0; sum && i < 2; i++) {
        const bool first = over_x ? sac_is_number(sum->inputs[i], 1) : sum->inputs[i] == x;
        if (first && is_power(sum->inputs[1 - i], x, over_x ? 2 : 3, 0.044715))
            return true;
    }
    return false;
}

/* Is v = sqrt(2 / pi) (x + 0.044715 x^3), or sqrt(2 / pi) x (1 + 0.044715 x^2)? */
static bool is_bent(const struct sac_value *v, const struct sac_value *x)
{
    const struct factors f = factors_of(v, x);
    if (!near(f.scale, 0.7978845608))
        return false;
    return (f.count == 1 && is_bent_sum(f.v[0], x, false)) ||
           (f.count == 2 && f.v[0] == x && is_bent_sum(f.v[1], x, true)) ||
           (f.count == 2 && f.v[1] == x && is_bent_sum(f.v[0], x, true));
}

/* Is v = 1 + erf(x / sqrt(2)), or 1 + tanh(...)? */
static bool is_bell(const struct sac_value *v, const struct sac_value *x, bool *tanh_like)
{
    const struct sac_node *sum = sac_made_by(v, "Add");
    float                  one;
    for (int i = 0; sum && i < 2; i++) {
        if (!sac_constant_scalar(sum->inputs[1 - i], &one) || one != 1)
            continue;
        const struct sac_node *erf = sac_made_by(sum->inputs[i], "Erf");
        const struct sac_node *tanh = sac_made_by(sum->inputs[i], "Tanh");
        *tanh_like = tanh != NULL;
        return (erf && is_power(erf->inputs[0], x, 1, 0.7071067812)) ||
               (tanh && is_bent(tanh->inputs[0], x));
    }
    return false;
}

/* The x of what n multiplies: a factor that others are made of. */
static struct sac_value *spelled_gelu(const struct sac_node *n, bool *tanh_like)
{
    struct sac_value *tried[2 * FACTORS_MAX];
    int               count = 0;
    for (int i = 0; i < 2; i++) {
        const struct sac_node *inner = sac_made_by(n->inputs[i], "Mul");
        tried[count++] = n->inputs[i];
        for (int k = 0; inner && k < 2; k++)
            tried[count++] = inner->inputs[k];
    }
    for (int i = 0; i < count; i++) {
        struct sac_value    *x = tried[i];
        const struct factors f = factors_of(n->outputs[0], x);
        if (x->data || f.count != 2 || !near(f.scale, 0.5))
            continue;
        for (int k = 0; k < 2; k++)
            if (f.v[k] == x && is_bell(f.v[1 - k], x, tanh_like))
                return x;
    }
    return NULL;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    bool tanh_like = false;
    if (!sac_is(n, "Mul") || !n->inputs[0] || !n->inputs[1] || n->outputs[0]->dtype != SAC_F32)
        return SAC_OK;
    struct sac_value *x = spelled_gelu(n, &tanh_like);
    if (!x || x->rank != n->outputs[0]->rank)
        return SAC_OK;
    struct sac_node *made = sac_op_node(g, "", "Gelu", 1, 1, n);
    if (!made)
        return SAC_ERR_MEMORY;
    made->inputs[0] = x;
    *changed = true;
    sac_result res = tanh_like ? sac_node_set_string(g, made, "approximate", "tanh") : SAC_OK;
    return res == SAC_OK ? sac_take_over(g, made, n) : res;
}

const struct sac_pass sac_pass_gelu = {"gelu", visit};
