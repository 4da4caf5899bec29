/* SPDX-License-Identifier: Apache-2.0 */
/* The boxes that a detector makes of the distances to their sides are sums of these and constants
 * of the grid (Tian et al., "FCOS", 2019). Exporters write them as Slices, Adds, Subs, Muls, Divs
 * and Concats, of corners or of centre and size. Whatever the spelling, each number is a constant
 * and the means of one pixel times constants: found by computing with such sums in the numbers'
 * place, they go into the Expectation. So do the classes that are concatenated to them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/expectation.h"
#include "engine/ops/util.h"
#include "engine/passes/pass.h"

enum { MEANS = SAC_EXPECTATION_MEANS, VALUES_MAX = 24 };
enum { ELEMENTS_MAX = 1 << 18 }; /* of a value: boxes of 65,536 pixels */

struct sum {
    int32_t pixel;         /* -1: none, it is a constant */
    double  of[MEANS + 1]; /* each mean so often; the last: a number */
};

/* What follows the means of a sample, the Expectation's own output first, as the nodes stand. */
struct cone {
    int     means, count;
    int64_t pixels;
    struct {
        struct sac_value *value;
        struct sac_node  *maker;
        int64_t           elements;
        struct sum       *sum;
    } of[VALUES_MAX];
};

static int find(const struct cone *c, const struct sac_value *v)
{
    for (int i = 0; i < c->count; i++)
        if (c->of[i].value == v)
            return i;
    return -1;
}

/* Of one sample; -1: too many, not known, or not so many samples as the means have. */
static int64_t elements_of(const struct cone *c, const struct sac_value *v)
{
    int64_t all = 1;
    if (v->rank < 2 || v->dtype != SAC_F32 || (c->count && v->dims[0] != c->of[0].value->dims[0]))
        return -1;
    for (int d = 1; d < v->rank; d++) {
        if (v->dims[d] < 1 || v->dims[d] > ELEMENTS_MAX)
            return -1;
        all *= v->dims[d];
        if (all > ELEMENTS_MAX)
            return -1;
    }
    return all;
}

/* Room for the sums of one more value; NULL: there is none. */
static struct sum *add_value(struct cone *c, struct sac_value *v)
{
    const int64_t elements = v ? elements_of(c, v) : -1;
    struct sum   *sums =
        elements > 0 && c->count < VALUES_MAX ? calloc((size_t)elements, sizeof *sums) : NULL;
    if (!sums)
        return NULL;
    c->of[c->count].value = v;
    c->of[c->count].maker = v->producer;
    c->of[c->count].elements = elements;
    c->of[c->count++].sum = sums;
    return sums;
}

static void cone_done(struct cone *c)
{
    for (int i = 0; i < c->count; i++)
        free(c->of[i].sum);
}

/* ---- what a node does to them ---- */

/* A sample of v, without its first dim. */
static void walk_sample(struct sac_walk *w, const struct sac_value *v)
{
    sac_walk_init(w, v->rank - 1, v->dims + 1);
}

/* To y, dense: element `offset` of x, and on from there by these steps. */
static void copy(const struct sum *x, const struct sac_value *like, int64_t offset,
                 const int64_t *steps, struct sum *y)
{
    struct sac_walk w;
    walk_sample(&w, like);
    const int at = sac_walk_strides(&w, offset, steps);
    for (sac_walk_start(&w); w.run; sac_walk_next(&w))
        for (int64_t i = 0; i < w.run; i++)
            *y++ = x[w.at[at] + i * w.step[at]];
}

static bool eval_reshape(struct cone *c, const struct sac_node *n, int from)
{
    if (elements_of(c, n->outputs[0]) != c->of[from].elements)
        return false;
    struct sum *y = add_value(c, n->outputs[0]);
    if (y)
        memcpy(y, c->of[from].sum, (size_t)c->of[from].elements * sizeof *y);
    return y;
}

static bool eval_transpose(struct cone *c, const struct sac_node *n, int from)
{
    int64_t        dense[SAC_RANK_MAX], steps[SAC_RANK_MAX];
    const int64_t *perm;
    const int      rank = n->inputs[0]->rank;
    if (sac_attr_ints(n, "perm", &perm) != (size_t)rank || perm[0] != 0)
        return false;
    sac_dense_strides(rank, n->inputs[0]->dims, dense);
    for (int d = 1; d < rank; d++)
        steps[d - 1] = dense[perm[d]];
    struct sum *y = add_value(c, n->outputs[0]);
    if (y)
        copy(c->of[from].sum, n->outputs[0], 0, steps, y);
    return y;
}

static bool eval_slice(struct cone *c, const struct sac_node *n, int from)
{
    const struct sac_value *x = n->inputs[0];
    struct sac_slice_bounds b;
    int64_t                 dense[SAC_RANK_MAX], steps[SAC_RANK_MAX], offset = 0;
    if (!sac_slice_constants(n, x->rank, &b) || b.start[0] != 0 || b.step[0] != 1 ||
        b.end[0] < INT32_MAX)
        return false;
    sac_dense_strides(x->rank, x->dims, dense);
    for (int d = 1; d < x->rank; d++) {
        if (b.step[d] < 1)
            return false;
        const int64_t start = b.start[d] + (b.start[d] < 0 ? x->dims[d] : 0);
        offset += SAC_CLAMP(start, 0, x->dims[d] - 1) * dense[d];
        steps[d - 1] = dense[d] * b.step[d];
    }
    struct sum *y = add_value(c, n->outputs[0]);
    if (y)
        copy(c->of[from].sum, n->outputs[0], offset, steps, y);
    return y;
}

static bool eval_split(struct cone *c, const struct sac_node *n, int from)
{
    const struct sac_value *x = n->inputs[0];
    int64_t                 dense[SAC_RANK_MAX], offset = 0;
    int                     axis;
    if (!sac_axis_normalise(sac_attr_int(n, "axis", 0), x->rank, &axis) || axis == 0)
        return false;
    sac_dense_strides(x->rank, x->dims, dense);
    for (int i = 0; i < n->output_count; i++) {
        struct sum *y = add_value(c, n->outputs[i]);
        if (!y)
            return false;
        copy(c->of[from].sum, n->outputs[i], offset, dense + 1, y);
        offset += n->outputs[i]->dims[axis] * dense[axis];
    }
    return true;
}

/* One number of an axis, which then is gone. */
static bool eval_gather(struct cone *c, const struct sac_node *n, int from)
{
    const struct sac_value *x = n->inputs[0];
    int64_t                 dense[SAC_RANK_MAX], steps[SAC_RANK_MAX], index;
    size_t                  count;
    int                     axis;
    if (!sac_axis_normalise(sac_attr_int(n, "axis", 0), x->rank, &axis) || axis == 0 ||
        n->inputs[1]->rank != 0 || !sac_constant_ints(n->inputs[1], &index, 1, &count))
        return false;
    index += index < 0 ? x->dims[axis] : 0;
    if (index < 0 || index >= x->dims[axis])
        return false;
    sac_dense_strides(x->rank, x->dims, dense);
    for (int d = 1, to = 0; d < x->rank; d++)
        if (d != axis)
            steps[to++] = dense[d];
    struct sum *y = add_value(c, n->outputs[0]);
    if (y)
        copy(c->of[from].sum, n->outputs[0], index * dense[axis], steps, y);
    return y;
}

static bool eval_concat(struct cone *c, const struct sac_node *n)
{
    const struct sac_value *out = n->outputs[0];
    int64_t                 line = 0, inner = 1, offset = 0;
    int                     axis;
    if (!sac_axis_normalise(sac_attr_int(n, "axis", 0), out->rank, &axis) || axis == 0)
        return false;
    for (int i = 0; i < n->input_count; i++)
        if (find(c, n->inputs[i]) < 0)
            return false;
    struct sum *y = add_value(c, n->outputs[0]);
    for (int d = axis + 1; y && d < out->rank; d++)
        inner *= out->dims[d];
    line = y ? out->dims[axis] * inner : 0;
    for (int i = 0; y && i < n->input_count; i++) {
        const int     from = find(c, n->inputs[i]);
        const int64_t own = n->inputs[i]->dims[axis] * inner;
        for (int64_t k = 0; k < c->of[from].elements / own; k++)
            memcpy(y + k * line + offset, c->of[from].sum + k * own, (size_t)own * sizeof *y);
        offset += own;
    }
    return y;
}

enum { ADD, SUB, MUL, DIV };

static int arithmetic_of(const struct sac_node *n)
{
    static const char *const ops[] = {[ADD] = "Add", [SUB] = "Sub", [MUL] = "Mul", [DIV] = "Div"};
    for (int i = 0; i < (int)SAC_COUNT(ops); i++)
        if (sac_is(n, ops[i]))
            return i;
    return -1;
}

/* False: the sum would be of two pixels' means, or no sum. */
static bool combine(int op, const struct sum *a, const struct sum *b, struct sum *y)
{
    const struct sum *one = op == MUL && a->pixel < 0 ? b : a, *other = one == a ? b : a;
    if (op == MUL || op == DIV) {
        const double v = other->of[MEANS];
        if (other->pixel >= 0 || (op == DIV && v == 0))
            return false;
        *y = *one;
        for (int k = 0; k <= MEANS; k++)
            y->of[k] = op == MUL ? one->of[k] * v : one->of[k] / v;
        return true;
    }
    if (a->pixel >= 0 && b->pixel >= 0 && a->pixel != b->pixel)
        return false;
    y->pixel = SAC_MAX(a->pixel, b->pixel);
    for (int k = 0; k <= MEANS; k++)
        y->of[k] = op == ADD ? a->of[k] + b->of[k] : a->of[k] - b->of[k];
    return true;
}

/* The dims of an operand beside those of a sample: of a constant, which is the same for each. */
static bool operand_of(const struct cone *c, const struct sac_value *v, int rank,
                       struct sac_operand *out)
{
    const bool made = find(c, v) >= 0;
    *out = (struct sac_operand){.dtype = SAC_F32};
    if ((!made && (!sac_constant_floats(v) || (v->rank == rank && v->dims[0] != 1))) ||
        (made && v->rank != rank) || v->rank > rank)
        return false;
    out->rank = v->rank == rank ? rank - 1 : v->rank;
    for (int d = 0; d < out->rank; d++)
        out->dims[d] = v->dims[d + (v->rank == rank)];
    return true;
}

static bool eval_arithmetic(struct cone *c, const struct sac_node *n, int op)
{
    struct sac_value  *out = n->outputs[0];
    struct sac_operand operand[2];
    struct sac_walk    w;
    int                at[2], from[2];
    if (out->rank < 1)
        return false;
    walk_sample(&w, out);
    for (int k = 0; k < 2; k++) {
        if (!operand_of(c, n->inputs[k], out->rank, &operand[k]))
            return false;
        at[k] = sac_walk_operand(&w, &operand[k]);
        from[k] = find(c, n->inputs[k]);
    }
    struct sum *y = add_value(c, out);
    if (!y)
        return false;
    for (sac_walk_start(&w); w.run; sac_walk_next(&w))
        for (int64_t i = 0; i < w.run; i++, y++) {
            struct sum side[2];
            for (int k = 0; k < 2; k++) {
                const int64_t e = w.at[at[k]] + i * w.step[at[k]];
                side[k] = (struct sum){.pixel = -1};
                if (from[k] >= 0)
                    side[k] = c->of[from[k]].sum[e];
                else
                    side[k].of[MEANS] = sac_constant_floats(n->inputs[k])[e];
            }
            if (!combine(op, &side[0], &side[1], y) || !isfinite(y->of[MEANS]))
                return false;
        }
    return true;
}

/* Adds what n makes, where that is sums of one pixel each. */
static bool eval(struct cone *c, const struct sac_node *n)
{
    const int op = arithmetic_of(n), from = find(c, sac_node_input(n, 0));
    if (op >= 0)
        return n->inputs[0] && n->inputs[1] && eval_arithmetic(c, n, op);
    if (from < 0)
        return false;
    if (sac_is_reshape(n))
        return eval_reshape(c, n, from);
    if (sac_is(n, "Transpose"))
        return eval_transpose(c, n, from);
    if (sac_is(n, "Slice"))
        return eval_slice(c, n, from);
    if (sac_is(n, "Split"))
        return eval_split(c, n, from);
    if (sac_is(n, "Gather"))
        return n->inputs[1] && eval_gather(c, n, from);
    return sac_is(n, "Concat") && eval_concat(c, n);
}

/* ---- all that follows ---- */

static bool begin(struct cone *c, const struct sac_node *n)
{
    struct sac_value *y = n->outputs[0];
    *c = (struct cone){.means = (int)y->dims[1]};
    if (y->rank < 3 || c->means < 1 || c->means > MEANS)
        return false;
    struct sum *sum = add_value(c, y);
    if (!sum)
        return false;
    c->pixels = c->of[0].elements / c->means;
    for (int64_t i = 0; i < c->of[0].elements; i++) {
        sum[i].pixel = (int32_t)(i % c->pixels);
        sum[i].of[i / c->pixels] = 1;
    }
    return true;
}

static bool reads_from(const struct cone *c, const struct sac_node *n)
{
    for (int i = 0; i < n->input_count; i++)
        if (n->inputs[i] && find(c, n->inputs[i]) >= 0)
            return true;
    return false;
}

/* The graph's nodes stand in the order in which they are computed. */
static void follow(struct cone *c, const struct sac_graph *g)
{
    for (size_t i = 0; i < g->node_count; i++) {
        const struct sac_node *n = g->nodes[i];
        const int              before = c->count;
        bool                   known = !n->gone && reads_from(c, n);
        for (int k = 0; k < n->output_count; k++)
            known &= n->outputs[k] && n->outputs[k]->rank >= 0;
        if (!known || eval(c, n))
            continue;
        while (c->count > before) /* of a Split, or of a sum that is none */
            free(c->of[--c->count].sum);
    }
}

/* Marks what value `of` is made of; is there arithmetic among it? */
static bool mark(const struct cone *c, int of, bool *used)
{
    bool sums = false;
    used[of] = true;
    for (int i = of; i > 0; i--) {
        const struct sac_node *n = c->of[i].maker;
        for (int k = 0; used[i] && k < n->input_count; k++) {
            const int from = n->inputs[k] ? find(c, n->inputs[k]) : -1;
            if (from >= 0)
                used[from] = true;
        }
        sums |= used[i] && arithmetic_of(n) >= 0;
    }
    return sums;
}

/* Does nothing else read what it is made of? */
static bool stands_alone(const struct cone *c, int of)
{
    bool used[VALUES_MAX] = {false};
    if (!mark(c, of, used))
        return false;
    for (int i = 0; i < of; i++) {
        int reads = 0;
        for (int j = 1; used[i] && j <= of; j++) {
            bool again = !used[j]; /* a Split has several outputs */
            for (int k = 1; k < j; k++)
                again |= used[k] && c->of[k].maker == c->of[j].maker;
            for (int k = 0; !again && k < c->of[j].maker->input_count; k++)
                reads += c->of[j].maker->inputs[k] == c->of[i].value;
        }
        if (used[i] && reads != c->of[i].value->uses)
            return false;
    }
    return true;
}

/* Are the pixels last, or first and the sums of each together? */
static bool lies(const struct cone *c, int of, bool turned)
{
    const int64_t count = c->of[of].elements, sums = count / c->pixels;
    if (count % c->pixels != 0)
        return false;
    for (int64_t i = 0; i < count; i++)
        if (c->of[of].sum[i].pixel >= 0 &&
            c->of[of].sum[i].pixel != (turned ? i / sums : i % c->pixels))
            return false;
    return true;
}

/* ---- the new node ---- */

static struct sac_value *make_sums(struct sac_graph *g, const struct cone *c, int of, bool turned)
{
    const int64_t sums = c->of[of].elements / c->pixels, dims[] = {sums, c->means + 1, c->pixels};
    float        *to;
    struct sac_value *m = sac_new_floats(g, c->of[of].value->name, 3, dims, &to);
    for (int64_t k = 0; m && k < sums; k++)
        for (int j = 0; j <= c->means; j++)
            for (int64_t p = 0; p < c->pixels; p++)
                *to++ = (float)c->of[of]
                            .sum[turned ? p * sums + k : k * c->pixels + p]
                            .of[j < c->means ? j : MEANS];
    return m;
}

static sac_result replace(struct sac_graph *g, struct sac_node *n, const struct cone *c, int of,
                          bool turned)
{
    static const int64_t turn[3] = {0, 2, 1};
    struct sac_value    *old = c->of[of].value;
    struct sac_node     *made = sac_op_node(g, "saccade", "Expectation", 3, 1, n);
    struct sac_value    *y = made ? sac_value_like(g, n->outputs[0]) : NULL;
    sac_result           res = SAC_OK;
    if (!y)
        return SAC_ERR_MEMORY;
    memcpy(made->inputs, n->inputs, 2 * sizeof *n->inputs);
    made->inputs[2] = make_sums(g, c, of, turned);
    made->outputs[0] = y;
    y->producer = made;
    y->dims[1] = c->of[of].elements / c->pixels;
    if (!made->inputs[2])
        return SAC_ERR_MEMORY;
    if (turned) {
        const int64_t dims[] = {y->dims[0], y->dims[1], c->pixels};
        if (y->rank != 3)
            y = sac_reshaped(g, n, y, 3, dims, &res);
        y = y && res == SAC_OK ? sac_transposed(g, n, y, turn, &res) : NULL;
    }
    if (y && res == SAC_OK && !sac_same_shape(y, old))
        y = sac_reshaped(g, n, y, old->rank, old->dims, &res);
    if (y && res == SAC_OK)
        sac_graph_replace(g, old, y);
    return y ? res : SAC_ERR_MEMORY;
}

/* The last value of sums that takes the place of all before it. */
static sac_result take_sums(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct cone c = {0};
    sac_result  res = SAC_OK;
    if (begin(&c, n))
        follow(&c, g);
    for (int i = c.count - 1; i > 0 && !*changed; i--) {
        const bool plain = lies(&c, i, false), turned = !plain && lies(&c, i, true);
        if ((!plain && !turned) || !stands_alone(&c, i))
            continue;
        *changed = true;
        res = replace(g, n, &c, i, turned);
    }
    cone_done(&c);
    return res;
}

/* ---- the channels that follow ---- */

/* Does the network end with v, or with it turned? */
static bool is_end(const struct sac_graph *g, const struct sac_value *v)
{
    const struct sac_node *next = sac_value_only_reader(v);
    for (int i = 0; i < g->output_count; i++)
        if (g->outputs[i] == v || (sac_is(next, "Transpose") && g->outputs[i] == next->outputs[0]))
            return true;
    return false;
}

/* A map like x, to be activated: act(r) is v. */
static struct sac_value *rest_of(const struct sac_graph *g, const struct sac_node *n,
                                 const struct sac_value *x, struct sac_activation *act)
{
    struct sac_value *v = n->inputs[1], *r = v;
    if (!v || v->data || v->dtype != SAC_F32)
        return NULL;
    if (v->uses == 1 && v->producer && sac_activation_of(v->producer, act) &&
        act->kind != SAC_ACT_NONE)
        r = v->producer->inputs[0];
    else if (!is_end(g, n->outputs[0])) /* else it may be written there by who makes it */
        return NULL;
    else
        *act = (struct sac_activation){SAC_ACT_NONE, 0, 0};
    for (int d = 0; d < x->rank; d++)
        if (r->rank != x->rank || (d != 1 && r->dims[d] != x->dims[d]))
            return NULL;
    return r;
}

/* A Concat of an Expectation and such a map. */
static sac_result take_rest(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct sac_activation  act;
    const struct sac_node *means = n->inputs[0] ? n->inputs[0]->producer : NULL;
    if (!sac_is_fused(means, "Expectation") || sac_node_input(means, 3) || n->inputs[0]->uses != 1)
        return SAC_OK;
    struct sac_value *r = rest_of(g, n, means->inputs[0], &act);
    struct sac_node  *made = r ? sac_op_node(g, "saccade", "Expectation", 4, 1, n) : NULL;
    if (!made)
        return r ? SAC_ERR_MEMORY : SAC_OK;
    for (int i = 0; i < 3; i++)
        made->inputs[i] = sac_node_input(means, i);
    made->inputs[3] = r;
    *changed = true;
    sac_result res = sac_set_activation(g, made, &act);
    return res == SAC_OK ? sac_take_over(g, made, n) : res;
}

/* ---- levels ---- */

static bool is_turn(const struct sac_node *n)
{
    const int64_t *perm;
    return sac_is(n, "Transpose") && sac_attr_ints(n, "perm", &perm) == 3 && perm[0] == 0 &&
           perm[1] == 2;
}

/* The Expectation that makes v, [N,G,pixels] or turned, through a Reshape of its pixels. */
static const struct sac_node *level_of(const struct sac_value *v, bool turned)
{
    const struct sac_value *at = v;
    while (turned && at && at->uses == 1 && sac_is_reshape(at->producer) &&
           sac_same_shape(at, at->producer->inputs[0]))
        at = at->producer->inputs[0];
    if (turned)
        at = at && at->uses == 1 && is_turn(at->producer) ? at->producer->inputs[0] : NULL;
    if (!at || at->rank != 3)
        return NULL;
    const int64_t groups = at->dims[1], pixels = at->dims[2];
    while (at && at->uses == 1 && sac_is_reshape(at->producer))
        at = at->producer->inputs[0];
    const struct sac_node *n = at && at->uses == 1 ? at->producer : NULL;
    if (!sac_is_fused(n, "Expectation") || n->input_count > 2 || at->dims[1] != groups ||
        pixels < 1 || at->dims[0] != v->dims[0])
        return NULL;
    int64_t own = 1;
    for (int d = 2; d < at->rank; d++)
        own *= at->dims[d] < 0 ? 0 : at->dims[d];
    return own == pixels ? n : NULL;
}

static bool same_means(const struct sac_node *a, const struct sac_node *b)
{
    const struct sac_value *x = a->inputs[1], *y = b->inputs[1];
    return sac_constant_floats(x) && sac_constant_floats(y) &&
           sac_value_elements(x) == sac_value_elements(y) &&
           a->inputs[0]->dims[1] == b->inputs[0]->dims[1] &&
           memcmp(x->data, y->data, (size_t)sac_value_elements(x) * sizeof(float)) == 0;
}

/* The bins of a level in a row, as the Concat of all levels has them. */
static struct sac_value *level_bins(struct sac_graph *g, struct sac_node *n, struct sac_value *x,
                                    int64_t pixels, sac_result *res)
{
    const int64_t dims[] = {x->dims[0], x->dims[1], pixels};
    return x->rank == 3 ? x : sac_reshaped(g, n, x, 3, dims, res);
}

/* A Concat of the means of several levels is the means of the Concat of their bins. */
static sac_result join_levels(struct sac_graph *g, struct sac_node *n, bool turned, bool *changed)
{
    static const int64_t   turn[3] = {0, 2, 1};
    const struct sac_node *first = level_of(n->inputs[0], turned);
    sac_result             res = SAC_OK;
    for (int i = 0; i < n->input_count; i++) {
        const struct sac_node *level = first ? level_of(n->inputs[i], turned) : NULL;
        if (!level || !same_means(first, level))
            return SAC_OK;
    }
    struct sac_node *bins = sac_op_node(g, "", "Concat", n->input_count, 1, n),
                    *made = sac_op_node(g, "saccade", "Expectation", 2, 1, n);
    struct sac_value *x = bins ? sac_value_like(g, n->outputs[0]) : NULL,
                     *y = made && x ? sac_value_like(g, x) : NULL;
    if (!y)
        return SAC_ERR_MEMORY;
    for (int i = 0; i < n->input_count && res == SAC_OK; i++) {
        const struct sac_node *level = level_of(n->inputs[i], turned);
        bins->inputs[i] =
            level_bins(g, n, level->inputs[0], n->inputs[i]->dims[turned ? 1 : 2], &res);
        if (!bins->inputs[i])
            return SAC_ERR_MEMORY;
    }
    const int64_t pixels = n->outputs[0]->dims[turned ? 1 : 2];
    x->dims[1] = first->inputs[0]->dims[1];
    y->dims[1] = first->outputs[0]->dims[1];
    x->dims[2] = y->dims[2] = pixels;
    bins->outputs[0] = made->inputs[0] = x;
    made->inputs[1] = first->inputs[1];
    made->outputs[0] = y;
    x->producer = bins;
    y->producer = made;
    if (res == SAC_OK)
        res = sac_node_set_int(g, bins, "axis", 2);
    if (res == SAC_OK && turned)
        y = sac_transposed(g, n, y, turn, &res);
    if (res == SAC_OK)
        sac_graph_replace(g, n->outputs[0], y);
    *changed = true;
    return res;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    int axis;
    if (n->output_count != 1 || !n->outputs[0])
        return SAC_OK;
    if (sac_is_fused(n, "Expectation") && !sac_node_input(n, 2) && !sac_node_input(n, 3))
        return take_sums(g, n, changed);
    if (!sac_is(n, "Concat") || n->input_count < 2 ||
        !sac_axis_normalise(sac_attr_int(n, "axis", 1), n->outputs[0]->rank, &axis))
        return SAC_OK;
    if (n->outputs[0]->rank == 3 && axis > 0) {
        sac_result res = join_levels(g, n, axis == 1, changed);
        if (res != SAC_OK || *changed)
            return res;
    }
    return n->input_count == 2 && axis == 1 ? take_rest(g, n, changed) : SAC_OK;
}

const struct sac_pass sac_pass_sums = {"sums", visit};
