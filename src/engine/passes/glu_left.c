/* SPDX-License-Identifier: Apache-2.0 */
/* Gated linear units of mixed tokens (gMixer: timm's GluMlp): halves of the rows of a product from
 * the left (left.c), of which one, activated, multiplies the other. As two products, of which the
 * second has the first as its gate, nothing is cut and no step stands behind them. */
#include <string.h>

#include "engine/passes/glu.h"
#include "engine/passes/strided.h"

enum { HALVES = 2, PIECE = 8 /* rows which kernels read at once */ };
enum { ROWS = 1 + 2, DEPTH, STEPS = 1 + SAC_VIEW_RANK, ROW_STEP = STEPS + 2 }; /* of a view */

struct tokens {
    struct sac_node      *product, *gated; /* gated: the Mul */
    struct sac_part       part[HALVES];
    struct sac_value     *half[HALVES];
    struct sac_activation act[HALVES];
    int                   axis;
    int64_t               a[SAC_VIEW_ENTRIES], y[SAC_VIEW_ENTRIES]; /* y: of a half */
};

/* The half of a product's rows that v is, behind one activation or none. */
static bool find_half(struct tokens *t, int i, struct sac_value *v)
{
    if (v->producer && v->uses == 1 && sac_activation_of(v->producer, &t->act[i]))
        v = v->producer->inputs[0];
    else
        t->act[i] = (struct sac_activation){SAC_ACT_NONE, 0, 0};
    t->half[i] = v;
    return !v->data && v->producer && v->uses == 1 && v->rank >= 2 &&
           sac_part_along(v, t->axis, &t->part[i]);
}

/* W X + B by rows, with nothing behind the sums. */
static bool is_plain(const struct tokens *t)
{
    const struct sac_node  *n = t->product;
    const struct sac_value *b = sac_node_input(n, 2);
    return sac_is_fused(n, "HeadMatMul") && sac_attr_int(n, "by_row", 0) &&
           !sac_node_input(n, SAC_RESIDUAL_INPUT) && sac_constant_floats(n->inputs[0]) &&
           (!b || sac_constant_floats(b)) &&
           sac_attr_int(n, "activation", SAC_ACT_NONE) == SAC_ACT_NONE;
}

/* Numbers from one entry of the axis to the next, in the value as it lies; 0: not known. */
static int64_t step_of(const struct sac_value *v, int axis)
{
    int64_t step = 1;
    for (int d = axis + 1; d < v->rank; d++)
        step = v->dims[d] < 0 ? 0 : step * v->dims[d];
    return step;
}

/* Where half of the rows lie by themselves, one after the other along the axis: what goes from all
 * rows to the next becomes shorter, and what stays within a row stays as it is. */
static bool view_half(struct tokens *t, const struct sac_value *whole)
{
    const int64_t rows = whole->dims[t->axis], step = step_of(whole, t->axis), all = rows * step,
                  bits = sac_view_open(t->product, "y_open");
    int64_t *y = t->y, within = 0;
    if (!step || !sac_view_attr(t->product, "a", t->a) || !sac_view_attr(t->product, "y", y) ||
        y[0] != 0 || t->a[0] != 0 || bits & 1 || (bits >> ROWS & 1) || (bits >> ROW_STEP & 1) ||
        y[ROWS] != rows || t->a[ROWS] != rows || y[ROW_STEP] != step)
        return false;
    for (int d = 0; d < SAC_VIEW_RANK; d++) {
        int64_t   *to_next = &y[STEPS + d];
        const bool open = (bits >> (1 + d) & 1) || (bits >> (STEPS + d) & 1);
        if (STEPS + d == ROW_STEP || (y[1 + d] == 1 && !open))
            continue;
        if (*to_next % all == 0)
            *to_next /= 2;
        else if (open || *to_next < 0)
            return false;
        else
            within += (y[1 + d] - 1) * *to_next;
    }
    y[ROWS] = rows / 2;
    return within < step;
}

static bool find_tokens(struct tokens *t, struct sac_node *n, int axis)
{
    *t = (struct tokens){.gated = n, .axis = axis};
    for (int i = 0; i < HALVES; i++)
        if (!find_half(t, i, n->inputs[i]))
            return false;
    const struct sac_value *whole = t->part[0].of;
    const bool              turned = t->part[0].begin != 0;
    const struct sac_part  *first = &t->part[turned], *second = &t->part[!turned];
    const int64_t           rows = whole->dims[axis];
    const bool              split = t->half[0]->producer == t->half[1]->producer;
    t->product = whole->producer;
    return t->part[1].of == whole && first->begin == 0 && first->end == second->begin &&
           second->end == rows && 2 * first->end == rows && first->end % PIECE == 0 &&
           whole->uses == (split ? 1 : HALVES) && t->product && is_plain(t) && view_half(t, whole);
}

/* Numbers from..from + count of those of v, as a constant of so many rows of so many. */
static struct sac_value *cut(struct sac_graph *g, const struct sac_value *v, int64_t from,
                             int64_t rows, int64_t columns)
{
    const int64_t     dims[] = {rows, columns};
    float            *to;
    struct sac_value *made = sac_new_floats(g, v->name, columns > 1 ? 2 : 1, dims, &to);
    if (made)
        memcpy(to, sac_constant_floats(v) + from, (size_t)(rows * columns) * sizeof *to);
    return made;
}

static sac_result set_views(struct sac_graph *g, struct sac_node *made, const struct tokens *t,
                            const struct sac_value *like)
{
    const int64_t rows = t->y[ROWS];
    int64_t       a[SAC_VIEW_ENTRIES];
    memcpy(a, t->a, sizeof a);
    a[ROWS] = rows;
    sac_result res = sac_node_set_ints(g, made, "a", a, SAC_VIEW_ENTRIES);
    if (res == SAC_OK)
        res = sac_node_set_ints(g, made, "y", t->y, SAC_VIEW_ENTRIES);
    if (res == SAC_OK)
        res = sac_node_set_ints(g, made, "shape", like->dims, (size_t)like->rank);
    return res;
}

/* What is multiplied by `gate`, NULL: the product alone. */
static struct sac_node *make_half(struct sac_graph *g, const struct tokens *t, int i,
                                  struct sac_value *gate, sac_result *res)
{
    const struct sac_node  *from = t->product;
    const struct sac_value *w = from->inputs[0], *b = sac_node_input(from, 2);
    const int64_t           rows = t->y[ROWS], pitch = t->a[ROW_STEP], first = t->part[i].begin;
    const int64_t          *open;
    struct sac_node        *made = sac_op_node(g, "saccade", "HeadMatMul", 4, 1, from);
    *res = made ? sac_copy_attrs(g, made, from) : SAC_ERR_MEMORY;
    if (*res != SAC_OK)
        return NULL;
    made->inputs[0] = cut(g, w, first * pitch, rows, pitch);
    made->inputs[1] = from->inputs[1];
    made->inputs[2] = b ? cut(g, b, first, rows, 1) : NULL;
    made->inputs[SAC_RESIDUAL_INPUT] = gate;
    *res = made->inputs[0] && (made->inputs[2] || !b) ? set_views(g, made, t, t->half[i])
                                                      : SAC_ERR_MEMORY;
    if (*res == SAC_OK)
        *res = sac_set_activation(g, made, &t->act[i]);
    if (*res == SAC_OK && gate)
        *res = sac_node_set_int(g, made, "gates", 1);
    if (*res == SAC_OK && gate)
        *res = sac_node_set_ints(g, made, "r", t->y, SAC_VIEW_ENTRIES);
    if (*res == SAC_OK && gate && sac_attr_ints(from, "y_open", &open) == 2)
        *res = sac_node_set_ints(g, made, "r_open", open, 2);
    return *res == SAC_OK ? made : NULL;
}

/* Rows of W that lie dense, as left.c makes them, and B with a number for each row. */
static bool are_rows(const struct tokens *t)
{
    const struct sac_node  *n = t->product;
    const struct sac_value *b = sac_node_input(n, 2);
    const int64_t           rows = t->a[ROWS];
    return t->a[1] == 1 && t->a[2] == 1 && t->a[ROW_STEP + 1] == 1 && !sac_view_open(n, "a_open") &&
           t->a[ROW_STEP] >= t->a[DEPTH] &&
           sac_value_elements(n->inputs[0]) == rows * t->a[ROW_STEP] &&
           (!b || sac_value_elements(b) == rows);
}

sac_result sac_glu_of_left(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct tokens t;
    bool          found = false;
    for (int axis = n->outputs[0]->rank - 1; axis > 0 && !found; axis--)
        found = find_tokens(&t, n, axis) && are_rows(&t);
    if (!found)
        return SAC_OK;
    /* The activated half is the second, as its gate has been written by then. */
    const int        second = t.act[0].kind != SAC_ACT_NONE ? 0 : 1;
    sac_result       res;
    struct sac_node *gate = make_half(g, &t, !second, NULL, &res);
    if (!gate || !(gate->outputs[0] = sac_value_like(g, t.half[!second])))
        return res == SAC_OK ? SAC_ERR_MEMORY : res;
    gate->outputs[0]->producer = gate;
    struct sac_node *made = make_half(g, &t, second, gate->outputs[0], &res);
    *changed = true;
    return made ? sac_take_over(g, made, n) : res;
}
