/* SPDX-License-Identifier: Apache-2.0 */
/* Between the product that makes queries and keys and their attention may lie norms: cosine
 * attention, norms of each head's numbers. Transposes and Splits would then have to be done before
 * them. A FusedNorm reads its lines where the product wrote them instead, through a view, and what
 * was done to the lines before is done behind it, where attention sees through it. Where others
 * than attention read it too, it writes the lines in the order that they had.
 * Lines that a Slice or a Split cuts out of longer ones are read there, too. */
#include <string.h>

#include "engine/passes/norms.h"
#include "engine/passes/strided.h"

enum { DEPTH_MAX = 24, READERS_DEPTH = 8, NUMBER = SAC_VIEW_RANK - 1, PARTS_MAX = SAC_RANK_MAX };

/* The dims of the norm's input, taken apart, in the order in which they lie in memory. */
struct lines {
    struct sac_strided from;
    struct {
        int64_t dim, step;
        int     of, order; /* a dim of the norm's input; the part's place in it */
    } part[PARTS_MAX];
    int                count;
    int                varies; /* the dim along which scale and shift differ, -1: none */
    struct sac_strided view;   /* of four dims, of which the last is the line */
    int                place;  /* in the view: of `varies` */
};

/* ---- what reads it ---- */

static bool keeps_numbers(const struct sac_node *n)
{
    return sac_is(n, "Transpose") || sac_is_reshape(n) || sac_is(n, "Expand") ||
           sac_is(n, "Tile") || sac_is(n, "Mul") || sac_is(n, "Div") ||
           sac_is_fused(n, "FusedRotary");
}

/* Is it multiplied by another value to scores that a softmax reads? */
static bool is_scored(const struct sac_value *v)
{
    bool scores = false;
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        const struct sac_node *n = sac_value_only_reader(v);
        if (!n || n->output_count != 1 || !n->outputs[0] || (scores && sac_is(n, "Softmax")))
            return n && scores && sac_is(n, "Softmax");
        if (sac_is(n, "MatMul") && !scores && !n->inputs[0]->data && !n->inputs[1]->data)
            scores = true;
        else if (!keeps_numbers(n) && !(scores && (sac_is(n, "Add") || sac_is(n, "Where"))))
            return false;
        v = n->outputs[0];
    }
    return false;
}

/* Are its lines parts of longer ones? They are read there. */
static bool is_cut(const struct sac_value *x)
{
    const struct sac_node  *n = x->producer;
    const struct sac_value *whole = n ? sac_node_input(n, 0) : NULL;
    return (sac_is(n, "Slice") || sac_is(n, "Split")) && whole && whole->rank == x->rank &&
           whole->dims[x->rank - 1] > x->dims[x->rank - 1];
}

/* Does a product with another value read it, who else may? */
static bool is_multiplied(const struct sac_value *v, int depth)
{
    for (size_t i = 0; depth < READERS_DEPTH && i < v->reader_count; i++) {
        const struct sac_node *n = v->readers[i];
        if (sac_is(n, "MatMul") && !n->inputs[0]->data && !n->inputs[1]->data)
            return true;
        if (keeps_numbers(n) && n->inputs[0] == v && n->outputs[0] &&
            is_multiplied(n->outputs[0], depth + 1))
            return true;
    }
    return false;
}

/* ---- where its lines lie ---- */

/* The parts of all dims, those with the longest steps first. False: there are too many, or a number
 * is shown twice. */
static bool take_parts(struct lines *l, int rank)
{
    const struct sac_strided *s = &l->from;
    l->count = 0;
    for (int d = 0; d < rank; d++)
        for (int i = s->first[d]; i < s->first[d + 1]; i++) {
            int at = l->count;
            if (s->part[i].dim == 1)
                continue;
            if (at == PARTS_MAX || s->part[i].step == 0)
                return false;
            for (; at > 0 && l->part[at - 1].step < s->part[i].step; at--)
                l->part[at] = l->part[at - 1];
            l->part[at].dim = s->part[i].dim;
            l->part[at].step = s->part[i].step;
            l->part[at].of = d;
            l->part[at].order = i;
            l->count++;
        }
    return l->count > 0;
}

/* The numbers of a line are neighbours: the last part, all of the last dim. */
static bool has_lines(const struct lines *l, const struct sac_value *x)
{
    const int last = l->count - 1;
    return l->part[last].of == x->rank - 1 && l->part[last].step == 1 &&
           l->part[last].dim == x->dims[x->rank - 1];
}

/* The one dim before the last along which the constants differ. */
static bool find_varying(struct lines *l, const struct sac_node *norm)
{
    const int rank = norm->inputs[0]->rank;
    l->varies = -1;
    for (int i = SAC_NORM_SCALE; i <= SAC_NORM_SHIFT; i++) {
        const struct sac_value *o = sac_node_input(norm, i);
        if (o && !sac_constant_floats(o))
            return false;
        for (int d = 0; o && d < o->rank - 1; d++) {
            const int of = rank - o->rank + d;
            if (o->dims[d] != 1 && l->varies >= 0 && l->varies != of)
                return false;
            l->varies = o->dims[d] != 1 ? of : l->varies;
        }
    }
    return l->varies < 0 || l->from.first[l->varies + 1] - l->from.first[l->varies] == 1;
}

/* Do part i and the one behind it lie as one, with the same constants? An open dim is one of its
 * own, or nobody could take it apart again. */
static bool joins(const struct lines *l, int i)
{
    return i < l->count - 2 && l->part[i].of != l->varies && l->part[i + 1].of != l->varies &&
           l->part[i].dim < SAC_STAND_IN && l->part[i + 1].dim < SAC_STAND_IN &&
           l->part[i].step == l->part[i + 1].dim * l->part[i + 1].step;
}

/* Of all parts a view of four dims, for which neighbours become one where there are more. */
static bool make_view(struct lines *l)
{
    int more = l->count - SAC_VIEW_RANK, at = SAC_VIEW_RANK;
    l->view = (struct sac_strided){.base = l->from.base,
                                   .rank = SAC_VIEW_RANK,
                                   .open = l->from.open,
                                   .offset = l->from.offset,
                                   .dim = {1, 1, 1, 1}};
    for (int i = l->count - 1; i >= 0; i--) {
        if (more > 0 && joins(l, i)) {
            l->view.dim[at] *= l->part[i].dim;
            more--;
            continue;
        }
        if (at-- == 0)
            return false;
        l->view.dim[at] = l->part[i].dim;
        l->view.step[at] = l->part[i].step;
        l->place = l->part[i].of == l->varies ? at : l->place;
    }
    return true;
}

/* Is a line moved from the base to x? */
static bool is_moved(const struct sac_value *x, const struct sac_value *base)
{
    for (; x != base; x = sac_strided_before(x))
        if (sac_is(x->producer, "Transpose"))
            return true;
    return false;
}

/* From as far before the norm's input as there are lines whose numbers are neighbours. */
static bool find_lines(const struct sac_node *norm, struct lines *l)
{
    struct sac_value *x = norm->inputs[0];
    int64_t           entry[SAC_VIEW_ENTRIES], bits;
    int               far = 0;
    for (const struct sac_value *w = sac_strided_before(x); w && far < DEPTH_MAX; far++)
        w = sac_strided_before(w);
    for (int depth = far; depth > 0; depth--) {
        *l = (struct lines){.place = -1};
        if (sac_strided_from(&l->from, x, depth) && l->from.scale == 1 && take_parts(l, x->rank) &&
            has_lines(l, x) && find_varying(l, norm) && make_view(l) &&
            sac_strided_entries(&l->view, entry, &bits))
            return true;
    }
    return false;
}

/* ---- the new node ---- */

/* The constant beside the view's dims. */
static struct sac_value *beside_view(struct sac_graph *g, const struct lines *l,
                                     const struct sac_value *o, sac_result *res)
{
    int64_t       dims[SAC_VIEW_RANK] = {1, 1, 1, 1};
    const int64_t last = o->rank > 0 ? o->dims[o->rank - 1] : 1,
                  lines = sac_value_elements(o) / last;
    float *to;
    dims[NUMBER] = last;
    if (lines > 1)
        dims[l->place] = lines;
    const int         first = lines > 1 ? l->place : NUMBER;
    struct sac_value *made = sac_new_floats(g, o->name, SAC_VIEW_RANK - first, dims + first, &to);
    if (made)
        memcpy(to, o->data, (size_t)(lines * last) * sizeof *to);
    else
        *res = SAC_ERR_MEMORY;
    return made;
}

static struct sac_node *make_norm(struct sac_graph *g, const struct sac_node *norm,
                                  const struct lines *l, sac_result *res)
{
    struct sac_node  *made = sac_line_norm_again(g, norm, res);
    struct sac_value *y = made ? sac_value_like(g, norm->outputs[0]) : NULL;
    if (!y) {
        *res = SAC_ERR_MEMORY;
        return NULL;
    }
    made->inputs[0] = l->from.base;
    for (int i = SAC_NORM_SCALE; i <= SAC_NORM_SHIFT && *res == SAC_OK; i++)
        if (made->inputs[i])
            made->inputs[i] = beside_view(g, l, made->inputs[i], res);
    if (*res == SAC_OK)
        *res = sac_strided_set_view(g, made, "x", "x_open", &l->view);
    sac_strided_set_dims(&l->view, y);
    y->producer = made;
    made->outputs[0] = y;
    return *res == SAC_OK ? made : NULL;
}

/* The lines as they lie, in the order that the norm's input has them in. */
static struct sac_value *as_before(struct sac_graph *g, const struct sac_node *norm,
                                   const struct lines *l, struct sac_value *y, sac_result *res)
{
    const struct sac_value *x = norm->inputs[0];
    int64_t                 dims[PARTS_MAX], perm[PARTS_MAX];
    int                     count = 0;
    for (int i = 0; i < l->count; i++)
        dims[i] = sac_strided_value_dim(l->part[i].dim);
    for (int order = 0; order < l->from.first[x->rank]; order++)
        for (int i = 0; i < l->count; i++)
            if (l->part[i].order == order)
                perm[count++] = i;
    y = sac_reshaped(g, norm, y, l->count, dims, res);
    if (y)
        y = sac_transposed(g, norm, y, perm, res);
    return y ? sac_reshaped(g, norm, y, x->rank, x->dims, res) : NULL;
}

/* Can the parts and the input be dims of a Reshape, of which one may be open? */
static bool can_reshape(const struct lines *l, const struct sac_value *x)
{
    int parts = 0, dims = 0;
    for (int i = 0; i < l->count; i++)
        parts += l->part[i].dim >= SAC_STAND_IN;
    for (int d = 0; d < x->rank; d++)
        dims += x->dims[d] == SAC_DIM_OPEN;
    return parts <= 1 && dims <= 1;
}

/* ---- lines in the order that they have ---- */

/* A view of the norm's input, of up to four dims, from before what moves its lines. */
static bool find_ordered(const struct sac_node *norm, struct sac_strided *view)
{
    struct sac_value *x = norm->inputs[0];
    int64_t           entry[SAC_VIEW_ENTRIES], bits, dims[SAC_VIEW_RANK] = {1, 1, 1, 1};
    int               far = 0;
    if (x->rank > SAC_VIEW_RANK)
        return false;
    for (const struct sac_value *w = sac_strided_before(x); w && far < DEPTH_MAX; far++)
        w = sac_strided_before(w);
    for (int depth = far; depth > 0; depth--) {
        bool fits = sac_strided_from(view, x, depth) && view->scale == 1 && !view->base->data;
        for (int d = 0; fits && d < x->rank; d++)
            dims[SAC_VIEW_RANK - x->rank + d] = sac_strided_dim(view, d);
        fits = fits && sac_strided_reshape(view, SAC_VIEW_RANK, dims) && sac_strided_settle(view) &&
               view->step[NUMBER] == 1;
        for (int d = 0; fits && d < NUMBER; d++)
            fits = view->dim[d] == 1 || view->step[d] > 0;
        if (fits && is_moved(x, view->base) && sac_strided_entries(view, entry, &bits))
            return true;
    }
    return false;
}

static sac_result read_ordered(struct sac_graph *g, struct sac_node *norm,
                               const struct sac_strided *view)
{
    const struct sac_value *x = norm->inputs[0];
    sac_result              res = SAC_OK;
    struct sac_node        *made = sac_line_norm_again(g, norm, &res);
    struct sac_value       *y = made ? sac_value_like(g, norm->outputs[0]) : NULL;
    if (!y)
        return SAC_ERR_MEMORY;
    made->inputs[0] = view->base;
    res = sac_strided_set_view(g, made, "x", "x_open", view);
    y->rank = SAC_VIEW_RANK;
    for (int d = 0; d < SAC_VIEW_RANK; d++)
        y->dims[d] = d < SAC_VIEW_RANK - x->rank ? 1 : x->dims[d - (SAC_VIEW_RANK - x->rank)];
    y->producer = made;
    made->outputs[0] = y;
    if (res == SAC_OK && x->rank != SAC_VIEW_RANK)
        y = sac_reshaped(g, norm, y, x->rank, x->dims, &res);
    if (y && res == SAC_OK)
        sac_graph_replace(g, norm->outputs[0], y);
    return res;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct lines       l;
    struct sac_strided view;
    sac_result         res = SAC_OK;
    int                axis;
    if (!sac_is_line_norm(n) || n->inputs[0]->data || n->outputs[0]->rank < 2 ||
        sac_node_input(n, SAC_NORM_RESIDUAL) || sac_node_attr(n, "x") ||
        !sac_axis_normalise(sac_attr_int(n, "axis", -1), n->outputs[0]->rank, &axis) ||
        axis != n->outputs[0]->rank - 1)
        return SAC_OK;
    if (!is_scored(n->outputs[0]) && is_multiplied(n->outputs[0], 0) && find_ordered(n, &view)) {
        *changed = true;
        return read_ordered(g, n, &view);
    }
    if ((!is_scored(n->outputs[0]) && !is_cut(n->inputs[0])) || !find_lines(n, &l) ||
        !can_reshape(&l, n->inputs[0]))
        return SAC_OK;
    struct sac_node  *made = make_norm(g, n, &l, &res);
    struct sac_value *y = made ? as_before(g, n, &l, made->outputs[0], &res) : NULL;
    if (!y)
        return res;
    *changed = true;
    sac_graph_replace(g, n->outputs[0], y);
    return res;
}

const struct sac_pass sac_pass_norm_heads = {"norm-heads", visit};
