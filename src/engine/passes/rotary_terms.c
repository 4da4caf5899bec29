/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/passes/rotary_terms.h"

#include <string.h>

#include "engine/ops/util.h"

/* Nodes that are looked at for one number: a spelling has up to about twenty. */
enum { NODES_MAX = 64 };

struct search {
    const struct sac_value *base;
    int                     lead, nodes; /* leading dims; nodes that may still be looked at */
};

static bool number_of(struct search *s, const struct sac_value *v, int64_t i,
                      struct sac_rotary_number *out);

bool sac_rotary_is_seen_through(const struct sac_node *n, int *inputs)
{
    static const char *const of_one[] = {"Neg", "Slice", "Split", "Gather"};
    static const char *const of_two[] = {"Mul", "Div", "Add", "Sub"};
    *inputs = sac_is(n, "Concat")                        ? n->input_count
              : sac_is_any(n, of_two, SAC_COUNT(of_two)) ? 2
                                                         : 1;
    return *inputs > 1 || sac_is_any(n, of_one, SAC_COUNT(of_one)) || sac_is_reshape(n) ||
           sac_is(n, "Concat") || sac_is_fused(n, "FusedRotary");
}

/* ---- dims ---- */

/* v has the base's leading dims, and a line behind them. */
static bool has_lines(const struct search *s, const struct sac_value *v)
{
    bool has = v && v->rank > s->lead && v->dtype == SAC_F32;
    for (int d = 0; has && d < v->rank; d++)
        has = d < s->lead ? v->dims[d] == s->base->dims[d] : v->dims[d] > 0;
    return has;
}

static int64_t numbers_behind(const struct sac_value *v, int first)
{
    return sac_dims_product(v->rank - first, v->dims + first);
}

/* Number i of a line apart: how many entries of the axis lie before, which one it is, and the place
 * in it. */
struct place {
    int64_t outer, index, rest, inner;
};
static struct place place_of(const struct sac_value *v, int axis, int64_t i)
{
    const int64_t inner = numbers_behind(v, axis + 1);
    return (struct place){i / inner / v->dims[axis], i / inner % v->dims[axis], i % inner, inner};
}
/* The same, of another value with so many entries. */
static int64_t back_at(const struct place *p, int64_t index, int64_t entries)
{
    return (p->outer * entries + index) * p->inner + p->rest;
}

/* An axis of the line. */
static bool line_axis(const struct search *s, const struct sac_node *n, int rank, int64_t otherwise,
                      int *axis)
{
    return sac_axis_normalise(sac_attr_int(n, "axis", otherwise), rank, axis) && *axis >= s->lead;
}

/* ---- what only moves numbers ---- */

/* The same line, unless numbers go from one to another. */
static bool of_reshape(struct search *s, const struct sac_node *n, const struct sac_value *v,
                       int64_t i, struct sac_rotary_number *out)
{
    const struct sac_value *x = n->inputs[0];
    int                     open = 0;
    for (int d = 0; d < s->lead; d++)
        open += s->base->dims[d] == SAC_DIM_OPEN;
    return open <= 1 && has_lines(s, x) &&
           numbers_behind(x, s->lead) == numbers_behind(v, s->lead) && number_of(s, x, i, out);
}

static bool of_slice(struct search *s, const struct sac_node *n, const struct sac_value *v,
                     int64_t i, struct sac_rotary_number *out)
{
    const struct sac_value *x = n->inputs[0];
    struct sac_slice_bounds b;
    if (!has_lines(s, x) || !sac_slice_constants(n, x->rank, &b))
        return false;
    for (int d = 0; d < x->rank; d++) {
        const int64_t dim = x->dims[d];
        if (b.start[d] == 0 && b.end[d] == INT64_MAX && b.step[d] == 1)
            continue;
        if (d < s->lead || b.step[d] < 1)
            return false;
        const struct place p = place_of(v, d, i);
        const int64_t first = SAC_CLAMP(b.start[d] < 0 ? b.start[d] + dim : b.start[d], 0, dim);
        i = back_at(&p, first + p.index * b.step[d], dim);
        for (int other = d + 1; other < x->rank; other++)
            if (x->dims[other] != v->dims[other])
                return false; /* places are told for one axis */
    }
    return number_of(s, x, i, out);
}

static bool of_split(struct search *s, const struct sac_node *n, const struct sac_value *v,
                     int64_t i, struct sac_rotary_number *out)
{
    const struct sac_value *x = n->inputs[0];
    int                     axis;
    int64_t                 first = 0;
    if (!has_lines(s, x) || !line_axis(s, n, x->rank, 0, &axis))
        return false;
    for (int k = 0; k < n->output_count; k++) {
        if (!has_lines(s, n->outputs[k]))
            return false;
        if (n->outputs[k] == v)
            break;
        first += n->outputs[k]->dims[axis];
    }
    const struct place p = place_of(v, axis, i);
    return number_of(s, x, back_at(&p, first + p.index, x->dims[axis]), out);
}

static bool of_gather(struct search *s, const struct sac_node *n, int64_t i,
                      struct sac_rotary_number *out)
{
    const struct sac_value *x = n->inputs[0];
    int64_t                 index;
    size_t                  count;
    int                     axis;
    if (!has_lines(s, x) || !line_axis(s, n, x->rank, 0, &axis) || n->inputs[1]->rank != 0 ||
        !sac_constant_ints(n->inputs[1], &index, 1, &count))
        return false;
    const int64_t inner = numbers_behind(x, axis + 1), dim = x->dims[axis];
    index += index < 0 ? dim : 0;
    if (index < 0 || index >= dim)
        return false; /* which the shape function does not look at */
    return number_of(s, x, (i / inner * dim + index) * inner + i % inner, out);
}

static bool of_concat(struct search *s, const struct sac_node *n, const struct sac_value *v,
                      int64_t i, struct sac_rotary_number *out)
{
    int axis;
    if (!line_axis(s, n, v->rank, 1, &axis))
        return false;
    struct place p = place_of(v, axis, i);
    for (int k = 0; k < n->input_count; k++) {
        const struct sac_value *x = n->inputs[k];
        if (!has_lines(s, x))
            return false;
        if (p.index < x->dims[axis])
            return number_of(s, x, back_at(&p, p.index, x->dims[axis]), out);
        p.index -= x->dims[axis];
    }
    return false;
}

/* ---- sums and products ---- */

static void multiply(struct sac_rotary_number *number, double factor)
{
    for (int k = 0; k < number->count; k++)
        number->term[k].factor *= factor;
}

static bool add(struct sac_rotary_number *to, const struct sac_rotary_number *more, double factor)
{
    if (to->count + more->count > SAC_ROTARY_TERMS)
        return false;
    for (int k = 0; k < more->count; k++) {
        to->term[to->count] = more->term[k];
        to->term[to->count++].factor *= factor;
    }
    return true;
}

/* Where a table that is broadcast over v has number i of its lines; false: it is not. */
static bool find_in_table(const struct search *s, struct sac_value *table,
                          const struct sac_value *v, int64_t i, struct sac_rotary_term *term)
{
    int64_t   at = 0, step = 1;
    const int missing = v->rank - table->rank;
    if (missing < 0 || table->dtype != SAC_F32 || term->table)
        return false;
    for (int d = v->rank - 1; d >= missing; d--) {
        const int64_t dim = table->dims[d - missing];
        if (dim != 1 && dim != v->dims[d])
            return false;
        if (d < s->lead)
            continue;
        at += dim == 1 ? 0 : i % v->dims[d] * step;
        step *= dim;
        i /= v->dims[d];
    }
    term->table = table;
    term->at = at;
    term->tail = SAC_MIN(v->rank - s->lead, table->rank);
    return true;
}

static bool multiply_by(const struct search *s, struct sac_value *by, const struct sac_value *v,
                        int64_t i, struct sac_rotary_number *number)
{
    float factor;
    if (sac_constant_scalar(by, &factor) && by->rank <= v->rank) {
        multiply(number, factor);
        return true;
    }
    for (int k = 0; k < number->count; k++)
        if (!find_in_table(s, by, v, i, &number->term[k]))
            return false;
    return true;
}

static bool of_product(struct search *s, const struct sac_node *n, const struct sac_value *v,
                       int64_t i, struct sac_rotary_number *out)
{
    for (int k = 0; k < 2; k++) {
        const struct sac_value *x = n->inputs[k];
        if (!x->data && x->rank == v->rank && has_lines(s, x) &&
            numbers_behind(x, s->lead) == numbers_behind(v, s->lead) && number_of(s, x, i, out))
            return multiply_by(s, n->inputs[1 - k], v, i, out);
    }
    return false;
}

static bool of_sum(struct search *s, const struct sac_node *n, const struct sac_value *v, int64_t i,
                   double sign, struct sac_rotary_number *out)
{
    struct sac_rotary_number more;
    for (int k = 0; k < 2; k++) {
        const struct sac_value *x = n->inputs[k];
        if (x->rank != v->rank || !has_lines(s, x) ||
            numbers_behind(x, s->lead) != numbers_behind(v, s->lead))
            return false;
    }
    return number_of(s, n->inputs[0], i, out) && number_of(s, n->inputs[1], i, &more) &&
           add(out, &more, sign);
}

/* What has been found to be one before, of a part of the line. */
static bool of_rotary(struct search *s, const struct sac_node *n, const struct sac_value *v,
                      int64_t i, struct sac_rotary_number *out)
{
    const int64_t            half = sac_attr_int(n, "block", 0) / 2;
    const bool               first = half > 0 && i % (2 * half) < half;
    struct sac_rotary_number other;
    if (half < 1 || sac_node_attr(n, "x") || v->rank != s->lead + 1 || !has_lines(s, n->inputs[0]))
        return false;
    return number_of(s, n->inputs[0], i, out) &&
           number_of(s, n->inputs[0], first ? i + half : i - half, &other) &&
           multiply_by(s, n->inputs[1], v, i, out) && multiply_by(s, n->inputs[2], v, i, &other) &&
           add(out, &other, first ? -1 : 1);
}

static bool number_of(struct search *s, const struct sac_value *v, int64_t i,
                      struct sac_rotary_number *out)
{
    const struct sac_node *n = v->producer;
    float                  by;
    if (v == s->base) {
        *out = (struct sac_rotary_number){1, {{.of = i, .factor = 1}}};
        return true;
    }
    if (!n || !n->op || v->data || !has_lines(s, v) || s->nodes-- <= 0)
        return false;
    if (sac_is_reshape(n))
        return of_reshape(s, n, v, i, out);
    if (sac_is(n, "Slice"))
        return of_slice(s, n, v, i, out);
    if (sac_is(n, "Split"))
        return of_split(s, n, v, i, out);
    if (sac_is(n, "Gather"))
        return of_gather(s, n, i, out);
    if (sac_is(n, "Concat"))
        return of_concat(s, n, v, i, out);
    if (sac_is(n, "Mul"))
        return of_product(s, n, v, i, out);
    if (sac_is(n, "Add") || sac_is(n, "Sub"))
        return of_sum(s, n, v, i, sac_is(n, "Add") ? 1 : -1, out);
    if (sac_is_fused(n, "FusedRotary"))
        return of_rotary(s, n, v, i, out);
    const bool negates = sac_is(n, "Neg");
    if (!negates && !(sac_is(n, "Div") && sac_constant_scalar(n->inputs[1], &by) && by != 0))
        return false;
    if (!number_of(s, n->inputs[0], i, out))
        return false;
    multiply(out, negates ? -1 : 1.0 / by);
    return true;
}

bool sac_rotary_number_of(const struct sac_value *base, const struct sac_value *v, int64_t i,
                          struct sac_rotary_number *out)
{
    struct search s = {base, base->rank - 1, NODES_MAX};
    return number_of(&s, v, i, out);
}

/* ---- tables ---- */

bool sac_rotary_same_constant(const struct sac_value *a, const struct sac_value *b)
{
    return sac_constant_floats(a) && sac_constant_floats(b) && a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0 &&
           memcmp(a->data, b->data, (size_t)sac_value_elements(a) * sizeof(float)) == 0;
}

struct sac_value *sac_rotary_shared_table(const struct sac_graph *g, struct sac_value *table)
{
    for (size_t i = 0; table && table->data && i < g->node_count; i++) {
        const struct sac_node *n = g->nodes[i];
        for (int k = 1; !n->gone && sac_is_fused(n, "FusedRotary") && k < n->input_count; k++)
            if (n->inputs[k] && sac_rotary_same_constant(n->inputs[k], table))
                return n->inputs[k];
    }
    return table;
}
