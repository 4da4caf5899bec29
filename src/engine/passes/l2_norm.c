/* SPDX-License-Identifier: Apache-2.0 */
/* x over its length along one axis, where the length is taken for no less than a small number (the
 * normalize of PyTorch and l2_normalize of TensorFlow), is one LpNormalization with that number as
 * its `floor`. Without one, lines of zeros become NaN, which an LpNormalization does not make. */
#include <float.h>
#include <math.h>

#include "engine/passes/pass.h"

struct length {
    struct sac_value *x;
    int               axis, p;
    double            floor;
};

/* What v is at least, if it is a bound from below of what is returned, else v. */
static const struct sac_value *take_floor(const struct sac_value *v, double *floor)
{
    struct sac_activation act;
    float                 least;
    *floor = 0;
    if (sac_is(v->producer, "Clip") && sac_activation_of(v->producer, &act) &&
        act.kind == SAC_ACT_CLIP && act.alpha > 0 && act.beta >= FLT_MAX) {
        *floor = (double)act.alpha;
        return v->producer->inputs[0];
    }
    const struct sac_node *max = sac_made_by(v, "Max");
    for (int i = 0; max && max->input_count == 2 && i < 2; i++)
        if (sac_constant_scalar(max->inputs[i], &least) && least > 0) {
            *floor = (double)least;
            return max->inputs[1 - i];
        }
    return v;
}

/* Of what v is the sum, or another reduction of this type, over one axis that stays as a dim of
 * one. */
static struct sac_value *reduced_by(const struct sac_value *v, const char *type, int *axis)
{
    const struct sac_node *n = sac_made_by(v, type);
    struct sac_value      *x = n ? sac_node_input(n, 0) : NULL;
    bool                   reduced[SAC_RANK_MAX];
    int                    count = 0;
    if (!x || x->dtype != SAC_F32 || v->rank < 1 || x->rank != v->rank ||
        !sac_attr_int(n, "keepdims", 1) || !sac_reduce_axes(n, v->rank, reduced))
        return NULL;
    for (int d = 0; d < v->rank; d++) {
        *axis = reduced[d] ? d : *axis;
        count += reduced[d];
    }
    return count == 1 ? x : NULL;
}

/* v is the root of a sum of squares, which may have a floor of its own, or one over it. */
static bool take_root(struct length *l, const struct sac_value *v, bool inverse)
{
    double                 floor;
    const struct sac_node *n = v->producer;
    if (!(sac_is(n, "Sqrt") && !inverse) &&
        !(sac_is(n, "Pow") && sac_is_number(n->inputs[1], inverse ? -0.5f : 0.5f)))
        return false;
    const struct sac_value *sum = take_floor(n->inputs[0], &floor);
    struct sac_value       *squares = reduced_by(sum, "ReduceSum", &l->axis);
    l->x = squares ? sac_square_of(squares) : reduced_by(sum, "ReduceSumSquare", &l->axis);
    l->floor = fmax(l->floor, sqrt(floor));
    return l->x != NULL;
}

/* v is a length with its floor, or one over it. */
static bool take_length(struct length *l, const struct sac_value *v, bool inverse)
{
    const struct sac_node *n = v ? v->producer : NULL;
    if (inverse && sac_is(n, "Reciprocal"))
        return take_length(l, n->inputs[0], false);
    if (inverse && sac_is(n, "Div") && sac_is_number(n->inputs[0], 1))
        return take_length(l, n->inputs[1], false);
    *l = (struct length){.p = 2};
    const struct sac_value *norm = v && !inverse ? take_floor(v, &l->floor) : v;
    if (norm && take_root(l, norm, inverse))
        return true;
    if (!norm || inverse)
        return false;
    l->x = reduced_by(norm, "ReduceL2", &l->axis);
    if (!l->x && (l->x = reduced_by(norm, "ReduceL1", &l->axis)))
        l->p = 1;
    return l->x != NULL;
}

/* n is x over such a length of it. */
static bool take_quotient(struct length *l, const struct sac_node *n)
{
    if (sac_is(n, "Div"))
        return take_length(l, n->inputs[1], false) && l->x == n->inputs[0];
    for (int i = 0; sac_is(n, "Mul") && i < 2; i++)
        if (take_length(l, n->inputs[1 - i], true) && l->x == n->inputs[i])
            return true;
    return false;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct length l;
    /* one over a floor has to be a float32 */
    if (n->output_count != 1 || !n->outputs[0] || !take_quotient(&l, n) ||
        n->outputs[0]->rank != l.x->rank || !(l.floor >= (double)FLT_MIN))
        return SAC_OK;
    struct sac_node *made = sac_op_node(g, "", "LpNormalization", 1, 1, n);
    sac_result       res = made ? sac_node_set_int(g, made, "p", l.p) : SAC_ERR_MEMORY;
    if (res == SAC_OK)
        res = sac_node_set_int(g, made, "axis", l.axis);
    if (res == SAC_OK)
        res = sac_node_set_float(g, made, "floor", (float)l.floor);
    if (res != SAC_OK)
        return res;
    made->inputs[0] = l.x;
    *changed = true;
    return sac_take_over(g, made, n);
}

const struct sac_pass sac_pass_l2_norm = {"l2-norm", visit};
