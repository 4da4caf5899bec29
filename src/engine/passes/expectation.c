/* SPDX-License-Identifier: Apache-2.0 */
/* The mean of constants by the shares of a Softmax is one Expectation: detectors give the distance
 * to each side of a box as a distribution over bins (Li et al., "Generalized Focal Loss", 2020).
 * Exporters take the bins apart by Reshape and Transpose, and write the mean as a convolution of
 * one pixel, as a product, or as a Mul and a ReduceSum. */
#include <string.h>

#include "engine/passes/strided.h"

enum { DEPTH_MAX = 8 };

struct spelling {
    struct sac_node *softmax;
    int              axis; /* of the bins, in the Softmax's dims */
    const float     *w;
    int64_t          bins;
};

/* Are they as many constants as there are bins, which lie along the axis? */
static bool take_constants(struct spelling *s, const struct sac_value *w, int64_t bins)
{
    s->w = sac_constant_floats(w);
    s->bins = bins;
    return s->w && bins > 1 && sac_value_elements(w) == bins;
}

/* The Softmax that makes v, which nobody else reads. */
static bool take_softmax(struct spelling *s, const struct sac_value *v)
{
    s->softmax = v ? sac_made_by(v, "Softmax") : NULL;
    return s->softmax && v->uses == 1 && v->rank >= 2 && v->dtype == SAC_F32 &&
           sac_softmax_axis(s->softmax, v->rank, &s->axis);
}

static bool is_conv(const struct sac_node *n, struct spelling *s)
{
    const int64_t *list;
    if (!sac_is(n, "Conv") || sac_node_input(n, 2) || !take_softmax(s, n->inputs[0]) ||
        s->axis != 1 || sac_attr_int(n, "group", 1) != 1)
        return false;
    for (size_t i = sac_attr_ints(n, "pads", &list); i > 0; i--)
        if (list[i - 1] != 0)
            return false;
    for (size_t i = sac_attr_ints(n, "strides", &list); i > 0; i--)
        if (list[i - 1] != 1)
            return false;
    const struct sac_value *w = n->inputs[1];
    return w->dims[0] == 1 && take_constants(s, w, n->inputs[0]->dims[1]);
}

static bool is_product(const struct sac_node *n, struct spelling *s)
{
    if (!sac_is(n, "MatMul") || !take_softmax(s, n->inputs[0]) || s->axis != n->inputs[0]->rank - 1)
        return false;
    const struct sac_value *w = n->inputs[1];
    return w->rank <= 2 && take_constants(s, w, n->inputs[0]->dims[s->axis]) &&
           w->dims[0] == s->bins;
}

static bool is_sum(const struct sac_node *n, struct spelling *s)
{
    bool                   reduced[SAC_RANK_MAX];
    const struct sac_node *mul = sac_is(n, "ReduceSum") ? sac_made_by(n->inputs[0], "Mul") : NULL;
    const int              rank = mul ? n->inputs[0]->rank : -1;
    if (!mul || n->inputs[0]->uses != 1 || !sac_reduce_axes(n, rank, reduced))
        return false;
    for (int i = 0; i < 2; i++) {
        const struct sac_value *w = mul->inputs[1 - i];
        if (!take_softmax(s, mul->inputs[i]) || mul->inputs[i]->rank != rank || !w ||
            w->rank > rank || !take_constants(s, w, mul->inputs[i]->dims[s->axis]))
            continue;
        const int at = s->axis - (rank - w->rank); /* of w */
        bool      fits = at >= 0 && w->dims[at] == s->bins;
        for (int d = 0; d < rank; d++)
            fits &= reduced[d] == (d == s->axis);
        if (fits)
            return true;
    }
    return false;
}

/* ---- where the bins lie ---- */

struct lane {
    int64_t dim, step;
};

/* Neighbours that lie as one are one; those of one number are none. */
static int joined(const struct lane *from, int count, struct lane *to)
{
    int made = 0;
    for (int i = 0; i < count; i++) {
        if (from[i].dim == 1)
            continue;
        if (made && to[made - 1].step == from[i].dim * from[i].step) {
            to[made - 1].dim *= from[i].dim;
            to[made - 1].step = from[i].step;
        } else {
            to[made++] = from[i];
        }
    }
    return made;
}

static bool same_lanes(const struct lane *a, int a_count, const struct lane *b, int b_count)
{
    struct lane x[SAC_RANK_MAX], y[SAC_RANK_MAX];
    const int   count = joined(a, a_count, x);
    if (joined(b, b_count, y) != count)
        return false;
    for (int i = 0; i < count; i++)
        if (x[i].dim != y[i].dim || x[i].step != y[i].step)
            return false;
    return true;
}

enum order { NONE, FIRST, FIRST_TURNED, LAST }; /* the base's channels; turned: the result's last */

/* How the Softmax's lines lie in the view's base, [N,C,inner...] or [N,inner,C]. */
static enum order order_of(struct sac_strided *v, const struct spelling *s)
{
    int64_t     dims[SAC_RANK_MAX];
    int         open, count = 0;
    struct lane line[SAC_RANK_MAX];
    if (v->offset != 0 || v->scale != 1 || !sac_strided_settle(v) || v->base->rank < 3 ||
        !sac_stand_in_dims(v->base, 0, dims, &open) || s->axis >= v->rank ||
        v->dim[s->axis] != s->bins)
        return NONE;
    for (int d = 0; d < v->rank; d++)
        if (d != s->axis)
            line[count++] = (struct lane){v->dim[d], v->step[d]};
    const int     rank = v->base->rank;
    const int64_t step = v->step[s->axis];
    int64_t       inner = 1;
    for (int d = 2; d < rank; d++)
        inner *= dims[d];
    if (step == inner && dims[1] < SAC_STAND_IN && dims[1] % s->bins == 0) {
        const struct lane sample = {dims[0], dims[1] * inner}, pixel = {inner, 1},
                          group = {dims[1] / s->bins, s->bins * inner},
                          plain[] = {sample, group, pixel}, turned[] = {sample, pixel, group};
        if (same_lanes(line, count, plain, 3))
            return FIRST;
        if (rank == 3 && same_lanes(line, count, turned, 3))
            return FIRST_TURNED;
    }
    if (rank == 3 && step == 1 && dims[2] < SAC_STAND_IN && dims[2] % s->bins == 0) {
        const struct lane all[] = {{dims[0] * dims[1], dims[2]}, {dims[2] / s->bins, s->bins}};
        if (same_lanes(line, count, all, 2))
            return LAST;
    }
    return NONE;
}

/* The value that has the bins as channels, as near the input as there is one. */
static enum order find_base(const struct spelling *s, struct sac_value **base)
{
    struct sac_value *v = s->softmax->inputs[0];
    enum order        found = NONE;
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        struct sac_strided      view;
        const struct sac_value *at = v;
        for (int i = 0; at && i < depth; i++)
            at = sac_strided_before(at);
        if (!at || !sac_strided_from(&view, v, depth))
            break;
        const enum order order = order_of(&view, s);
        if (order != NONE) {
            found = order;
            *base = view.base;
        }
    }
    return found;
}

static bool can_be_reshaped(const struct sac_value *v)
{
    int open = 0;
    for (int d = 0; d < v->rank; d++) {
        open += v->dims[d] == SAC_DIM_OPEN;
        if (v->dims[d] == 0)
            return false;
    }
    return v->rank > 0 && open <= 1;
}

static sac_result replace(struct sac_graph *g, struct sac_node *n, const struct spelling *s,
                          struct sac_value *base, enum order order)
{
    static const int64_t turn[3] = {0, 2, 1};
    sac_result           res = SAC_OK;
    struct sac_node     *made = sac_op_node(g, "saccade", "Expectation", 2, 1, n);
    struct sac_value    *x = order == LAST ? sac_transposed(g, n, base, turn, &res) : base;
    float               *w;
    if (!made || !x)
        return SAC_ERR_MEMORY;
    made->inputs[0] = x;
    made->inputs[1] = sac_new_floats(g, n->outputs[0]->name, 1, &s->bins, &w);
    struct sac_value *y = made->outputs[0] = sac_value_like(g, x);
    if (!made->inputs[1] || !y)
        return SAC_ERR_MEMORY;
    memcpy(w, s->w, (size_t)s->bins * sizeof *w);
    y->producer = made;
    y->dims[1] /= s->bins;
    if (order != FIRST)
        y = sac_transposed(g, n, y, turn, &res);
    if (y && res == SAC_OK)
        y = sac_reshaped(g, n, y, n->outputs[0]->rank, n->outputs[0]->dims, &res);
    if (y && res == SAC_OK)
        sac_graph_replace(g, n->outputs[0], y);
    return y ? res : SAC_ERR_MEMORY;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct spelling   s;
    struct sac_value *base = NULL;
    if (n->output_count != 1 || !n->outputs[0] ||
        (!is_conv(n, &s) && !is_product(n, &s) && !is_sum(n, &s)) ||
        !can_be_reshaped(n->outputs[0]))
        return SAC_OK;
    const enum order order = find_base(&s, &base);
    if (order == NONE)
        return SAC_OK;
    *changed = true;
    return replace(g, n, &s, base, order);
}

const struct sac_pass sac_pass_expectation = {"expectation", visit};
