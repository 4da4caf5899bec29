/* SPDX-License-Identifier: Apache-2.0 */
/* x over the sum of its lines is one FusedNorm. Where x is a Softmax, which constants may scale and
 * shift (shares that are mixed with fixed ones, as in gated positional attention: d'Ascoli et al.,
 * ConViT, 2021), that is the same step: a line is read once. */
#include "engine/ops/util.h"
#include "engine/passes/norms.h"

enum { LINE_MAX = 8192 }; /* numbers that one step holds */

struct quotient {
    struct sac_value *x;
    float             epsilon;
};

/* v, or what a number is added to. */
static const struct sac_value *take_epsilon(const struct sac_value *v, float *epsilon)
{
    const struct sac_node *add = sac_made_by(v, "Add");
    *epsilon = 0;
    for (int i = 0; add && v->uses == 1 && i < 2; i++)
        if (sac_constant_scalar(add->inputs[i], epsilon))
            return add->inputs[1 - i];
    return v;
}

/* Has v the dims of x but for the last, which is one? Where one is open, so is it in x. */
static bool is_beside(const struct sac_value *v, const struct sac_value *x)
{
    int open = 0;
    if (v->rank != x->rank || v->dims[v->rank - 1] != 1)
        return false;
    for (int d = 0; d < x->rank - 1; d++) {
        open += x->dims[d] == SAC_DIM_OPEN;
        if (v->dims[d] != x->dims[d])
            return false;
    }
    return open <= 1;
}

/* Is v the sum of x over the last axis, which stays, or comes back, as a dim of one? */
static bool is_sum_of(const struct sac_value *v, const struct sac_value *x)
{
    bool reduced[SAC_RANK_MAX];
    if (v->uses != 1 || !is_beside(v, x))
        return false;
    if (sac_made_by(v, "Unsqueeze") || sac_made_by(v, "Reshape"))
        v = v->producer->inputs[0];
    const struct sac_node *sum = sac_made_by(v, "ReduceSum");
    if (!sum || v->uses != 1 || sac_node_input(sum, 0) != x ||
        !sac_reduce_axes(sum, x->rank, reduced))
        return false;
    for (int d = 0; d < x->rank; d++)
        if (reduced[d] != (d == x->rank - 1))
            return false;
    return true;
}

static bool find_quotient(const struct sac_node *n, struct quotient *q)
{
    struct sac_value *x = sac_is(n, "Div") ? n->inputs[0] : NULL;
    if (!x || x->dtype != SAC_F32 || x->rank < 1 || n->outputs[0]->rank != x->rank ||
        x->dims[x->rank - 1] < 1 || x->dims[x->rank - 1] > LINE_MAX)
        return false;
    q->x = x;
    return is_sum_of(take_epsilon(n->inputs[1], &q->epsilon), x);
}

/* The constant beside what node v of this type, read so many times, adds to or multiplies; NULL:
 * there is none. *rest becomes the other input. */
static struct sac_value *constant_of(const struct sac_value *v, const char *type, int uses,
                                     struct sac_value **rest)
{
    const struct sac_node *n = v->uses == uses ? sac_made_by(v, type) : NULL;
    for (int i = 0; n && i < 2; i++) {
        struct sac_value *c = n->inputs[i], *other = n->inputs[1 - i];
        if (!sac_constant_floats(c) || sac_value_elements(c) < 1 || !sac_fits_beside(c, other))
            continue;
        *rest = other;
        return c;
    }
    return NULL;
}

static bool is_softmax(const struct sac_value *v, int uses)
{
    const struct sac_node *n = v->uses == uses ? sac_made_by(v, "Softmax") : NULL;
    int                    axis;
    return n && n->opset >= 13 && sac_axis_normalise(sac_attr_int(n, "axis", -1), v->rank, &axis) &&
           axis == v->rank - 1;
}

/* The Softmax that x comes from, with what is done to its shares in between. */
static struct sac_value *shares_of(struct sac_value *x, struct sac_value **scale,
                                   struct sac_value **shift)
{
    int uses = 2; /* by the sum and the quotient */
    if ((*shift = constant_of(x, "Add", uses, &x)))
        uses = 1;
    if ((*scale = constant_of(x, "Mul", uses, &x)))
        uses = 1;
    return is_softmax(x, uses) ? x->producer->inputs[0] : NULL;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct quotient   q;
    struct sac_value *scale, *shift;
    if (n->output_count != 1 || !n->outputs[0] || !find_quotient(n, &q))
        return SAC_OK;
    struct sac_value *scores = shares_of(q.x, &scale, &shift);
    struct sac_node  *made = sac_op_node(g, "saccade", "FusedNorm", SAC_NORM_SHIFT + 1, 1, n);
    if (!made)
        return SAC_ERR_MEMORY;
    made->inputs[0] = scores ? scores : q.x;
    made->inputs[SAC_NORM_SCALE] = scores ? scale : NULL;
    made->inputs[SAC_NORM_SHIFT] = scores ? shift : NULL;
    sac_result res = sac_node_set_int(g, made, "kind", scores ? SAC_NORM_SHARES : SAC_NORM_SUM);
    if (res == SAC_OK)
        res = sac_node_set_float(g, made, "epsilon", q.epsilon);
    if (res == SAC_OK && scores)
        res = sac_node_set_int(g, made, "whole", 1);
    *changed = true;
    return res == SAC_OK ? sac_take_over(g, made, n) : res;
}

const struct sac_pass sac_pass_line_sum = {"line-sum", visit};
