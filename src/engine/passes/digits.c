/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/passes/digits.h"

#include <string.h>

enum { VISITS_MAX = 256, JOINS_MAX = 4, PARTS_MAX = 16, MAKERS_MAX = 6 };
enum { DIGITS_MAX = SAC_REARRANGE_DIGITS + SAC_RANK_MAX };

static const char *const moves[] = {"Transpose", "Slice", "Split", "Concat", "Pad"};

bool sac_is_move(const struct sac_node *n)
{
    return sac_is_any(n, moves, SAC_COUNT(moves)) ||
           (sac_is_fused(n, "Rearrange") && !sac_node_input(n, 1));
}

static bool is_map(const struct sac_value *v, int depth)
{
    static const char *const makers[] = {"Conv", "MaxPool", "AveragePool"};
    static const char *const keepers[] = {
        "Concat", "Slice", "Split", "Add", "Mul", "Relu", "BatchNormalization"};
    const struct sac_node *n = v ? v->producer : NULL;
    if (!n || depth == 0 || v->rank < 3)
        return false;
    return sac_is_any(n, makers, SAC_COUNT(makers)) || sac_is_fused(n, "FusedConv") ||
           ((sac_is_any(n, keepers, SAC_COUNT(keepers)) || sac_is_fused(n, "Activation") ||
             sac_is_fused(n, "Rearrange")) &&
            (is_map(n->inputs[0], depth - 1) || is_map(n->inputs[n->input_count - 1], depth - 1)));
}

bool sac_is_map(const struct sac_value *v)
{
    return is_map(v, MAKERS_MAX);
}

bool sac_takes_map(const struct sac_node *n)
{
    const struct sac_value *x = sac_node_input(n, 0), *y = n->outputs[0];
    return sac_is_reshape(n) && sac_is_map(x) && y->rank >= 0 &&
           (y->rank < 3 || y->dims[0] != x->dims[0] || y->dims[1] != x->dims[1]);
}

/* ---- digits ---- */

/* 0: more than can be counted, as an open dim times a padding without sense is. */
static int64_t elements_of(const struct sac_digits *s)
{
    int64_t all = 1;
    for (int i = 0; i < s->count; i++)
        if (__builtin_mul_overflow(all, s->digit[i].dim, &all))
            return 0;
    return all;
}

static bool begin(struct sac_digits *s, struct sac_value *v)
{
    *s = (struct sac_digits){.base = v, .axes = v->rank, .count = v->rank, .rank = v->rank};
    int open;
    if (v->data || !sac_stand_in_dims(v, 0, s->size, &open))
        return false;
    memcpy(s->period, s->size, sizeof s->period);
    for (int d = 0; d < v->rank; d++) {
        s->digit[d] = (struct sac_digit){s->size[d], 1, d};
        s->first[d] = s->into[d] = d;
    }
    s->first[v->rank] = v->rank;
    return true;
}

/* The digits again, grouped into dims of these sizes; the innermost first. */
struct regrouped {
    struct sac_digit digit[DIGITS_MAX];
    int              count;
};

/* Takes what makes up one dim from the end of *rest on. */
static bool take_dim(struct regrouped *to, const struct sac_digits *s, int64_t want, int *at,
                     struct sac_digit *rest)
{
    while (want > 1) {
        while (rest->dim == 1 && *at > 0)
            *rest = s->digit[--*at];
        if (rest->dim == 1 || to->count == DIGITS_MAX)
            return false;
        struct sac_digit *d = &to->digit[to->count++];
        *d = *rest;
        if (want % rest->dim == 0) {
            want /= rest->dim;
            rest->dim = 1;
        } else if (rest->dim % want == 0) {
            d->dim = want;
            rest->dim /= want;
            rest->step *= want;
            want = 1;
        } else {
            return false;
        }
    }
    return true;
}

static bool regroup_as(struct sac_digits *s, const struct sac_value *v)
{
    int64_t          dims[SAC_RANK_MAX];
    const int        rank = v->rank;
    struct regrouped to = {.count = 0};
    struct sac_digit rest = {.dim = 1};
    int              at = s->count, end[SAC_RANK_MAX], open;
    const int64_t    all = elements_of(s);
    if (all == 0 || !sac_stand_in_dims(v, all, dims, &open))
        return false;
    for (int d = rank - 1; d >= 0; d--) {
        end[d] = to.count;
        if (!take_dim(&to, s, dims[d], &at, &rest))
            return false;
    }
    bool more = rest.dim > 1;
    while (at > 0)
        more |= s->digit[--at].dim > 1;
    if (more)
        return false;
    for (int i = 0; i < to.count; i++)
        s->digit[to.count - 1 - i] = to.digit[i];
    s->count = to.count;
    s->rank = rank;
    for (int d = 0; d < rank; d++)
        s->first[d + 1] = to.count - end[d];
    s->first[0] = 0;
    return true;
}

/* The digit is the whole of its axis as it lies in the base, and the only one there. */
static bool is_whole(const struct sac_digits *s, const struct sac_digit *d)
{
    int count = 0, parts = 0;
    for (int i = 0; i < s->count; i++)
        count += s->digit[i].axis == d->axis;
    for (int a = 0; a < s->axes; a++)
        parts += s->into[a] == d->axis;
    return count == 1 && parts == 1 && d->step == 1 && d->dim == s->size[d->axis] &&
           d->dim < SAC_STAND_IN && s->period[d->axis] == d->dim && s->start[d->axis] == 0;
}

/* Makes one digit of two neighbours. Such of different axes, as windows that are put together have,
 * count as one axis from here on. */
static bool join_digits(struct sac_digits *s, struct sac_digit *outer,
                        const struct sac_digit *inner)
{
    if (outer->dim >= SAC_STAND_IN || inner->dim >= SAC_STAND_IN ||
        outer->dim >= SAC_STAND_IN / inner->dim)
        return false;
    if (outer->axis != inner->axis) {
        if (outer->axis > inner->axis || !is_whole(s, outer) || !is_whole(s, inner))
            return false;
        s->into[inner->axis] = outer->axis;
        s->size[outer->axis] *= inner->dim;
        s->period[outer->axis] = s->size[outer->axis];
        s->size[inner->axis] = s->period[inner->axis] = 1;
    } else if (outer->step != inner->dim * inner->step) {
        return false;
    }
    *outer = (struct sac_digit){outer->dim * inner->dim, inner->step, outer->axis};
    return true;
}

/* The digit that dim d is, once its neighbours are put together; NULL: it is several, or none. */
static struct sac_digit *only_digit(struct sac_digits *s, int d)
{
    struct sac_digit *at = &s->digit[s->first[d]];
    while (s->first[d + 1] - s->first[d] > 1) {
        if (!join_digits(s, &at[0], &at[1]))
            return NULL;
        s->count--;
        memmove(at + 1, at + 2, (size_t)(s->count - s->first[d] - 1) * sizeof *at);
        for (int k = d + 1; k <= s->rank; k++)
            s->first[k]--;
    }
    return s->first[d + 1] > s->first[d] ? at : NULL;
}

/* The digits of an axis stay within one period. */
static bool reaches(const struct sac_digits *s, int axis)
{
    int64_t reach = 0;
    for (int i = 0; i < s->count; i++)
        if (s->digit[i].axis == axis) {
            int64_t more;
            if (__builtin_mul_overflow(s->digit[i].dim - 1, s->digit[i].step, &more) ||
                __builtin_add_overflow(reach, more, &reach))
                return false;
        }
    return reach < s->period[axis];
}

/* ---- what a node does to them ---- */

static bool transpose(struct sac_digits *s, const struct sac_node *n)
{
    const struct sac_digits from = *s;
    const int64_t          *perm;
    const size_t            listed = sac_attr_ints(n, "perm", &perm);
    if (listed != 0 && listed != (size_t)s->rank)
        return false;
    s->count = 0;
    for (int d = 0; d < s->rank; d++) {
        const int at = listed ? (int)perm[d] : s->rank - 1 - d;
        s->first[d] = s->count;
        for (int i = from.first[at]; i < from.first[at + 1]; i++)
            s->digit[s->count++] = from.digit[i];
    }
    s->first[s->rank] = s->count;
    return true;
}

static bool slice(struct sac_digits *s, const struct sac_node *n, const struct sac_value *v)
{
    struct sac_slice_bounds b;
    if (!sac_slice_constants(n, s->rank, &b))
        return false;
    for (int d = 0; d < s->rank; d++) {
        const int64_t     dim = n->inputs[0]->dims[d];
        struct sac_digit *at;
        if (b.start[d] == 0 && b.step[d] == 1 &&
            b.end[d] >= (dim == SAC_DIM_OPEN ? INT32_MAX : dim))
            continue;
        if (b.step[d] < 1 || dim == SAC_DIM_OPEN || v->dims[d] < 1 || !(at = only_digit(s, d)))
            return false;
        const int64_t start = SAC_CLAMP(b.start[d] + (b.start[d] < 0 ? dim : 0), 0, dim);
        s->start[at->axis] = (s->start[at->axis] + start * at->step) % s->period[at->axis];
        at->step *= v->dims[d] > 1 ? b.step[d] : 1;
        at->dim = v->dims[d];
    }
    return true;
}

/* The part of an axis that v is. */
static bool split(struct sac_digits *s, const struct sac_node *n, const struct sac_value *v)
{
    int     axis;
    int64_t start = 0;
    if (!sac_axis_normalise(sac_attr_int(n, "axis", 0), s->rank, &axis) ||
        n->inputs[0]->dims[axis] == SAC_DIM_OPEN)
        return false;
    for (int i = 0; i < n->output_count && n->outputs[i] != v; i++) {
        if (!n->outputs[i] || n->outputs[i]->rank != s->rank)
            return false;
        start += n->outputs[i]->dims[axis];
    }
    struct sac_digit *at = v->rank == s->rank && v->dims[axis] > 0 ? only_digit(s, axis) : NULL;
    if (!at)
        return false;
    s->start[at->axis] = (s->start[at->axis] + start * at->step) % s->period[at->axis];
    at->dim = v->dims[axis];
    return true;
}

/* Zeros around whole axes. */
static bool pad(struct sac_digits *s, const struct sac_node *n)
{
    int64_t pads[2 * SAC_RANK_MAX];
    size_t  count;
    float   zero = 0;
    if (n->input_count < 2 || n->input_count > 3 ||
        strcmp(sac_attr_string(n, "mode", "constant"), "constant") != 0 ||
        !sac_constant_ints(n->inputs[1], pads, SAC_COUNT(pads), &count) ||
        count != 2 * (size_t)s->rank ||
        (sac_node_input(n, 2) && (!sac_constant_scalar(n->inputs[2], &zero) || zero != 0)))
        return false;
    for (int d = 0; d < s->rank; d++) {
        const int64_t before = pads[d], after = pads[s->rank + d];
        if (before == 0 && after == 0)
            continue;
        struct sac_digit *at = only_digit(s, d);
        if (before < 0 || after < 0 || before > INT32_MAX || after > INT32_MAX || !at ||
            at->dim + before + after >= SAC_STAND_IN || at->step != 1 ||
            at->dim != s->size[at->axis] || s->period[at->axis] != at->dim ||
            s->start[at->axis] != 0)
            return false;
        at->dim = s->period[at->axis] += before + after;
        s->start[at->axis] = before ? at->dim - before : 0;
    }
    return true;
}

/* ---- joins ---- */

static bool same_base(const struct sac_digits *a, const struct sac_digits *b)
{
    return a->base == b->base && a->rank == b->rank && a->count == b->count &&
           memcmp(a->period, b->period, sizeof a->period) == 0 &&
           memcmp(a->into, b->into, sizeof a->into) == 0 &&
           memcmp(a->first, b->first, (size_t)(a->rank + 1) * sizeof a->first[0]) == 0;
}

/* The same digits, but for how many values the one at `but` has. */
static bool same_digits(const struct sac_digits *a, const struct sac_digits *b, int but)
{
    for (int i = 0; i < a->count; i++)
        if (a->digit[i].axis != b->digit[i].axis ||
            (i != but && a->digit[i].dim != b->digit[i].dim) ||
            (a->digit[i].dim > 1 && b->digit[i].dim > 1 && a->digit[i].step != b->digit[i].step))
            return false;
    return true;
}

/* Parts that go on where the ones before them end: a roll. */
static bool join_along(struct sac_digits *s, struct sac_digits *part, int count, int d)
{
    struct sac_digit *at = only_digit(&part[0], d);
    if (!at || at->dim >= SAC_STAND_IN)
        return false;
    const int which = part[0].first[d], axis = at->axis;
    int64_t   start = part[0].start[axis], all = 0, step = at->step;
    for (int i = 0; i < count; i++)
        if (only_digit(&part[i], d) && part[i].digit[part[i].first[d]].dim > 1)
            step = part[i].digit[part[i].first[d]].step;
    for (int i = 0; i < count; i++) {
        const struct sac_digit *own = only_digit(&part[i], d);
        if (!own || own->dim >= SAC_STAND_IN || !same_base(&part[0], &part[i]) ||
            !same_digits(&part[0], &part[i], which) || (own->dim > 1 && own->step != step))
            return false;
        for (int a = 0; a < part[0].axes; a++)
            if (part[i].start[a] != (a == axis ? start : part[0].start[a]))
                return false;
        start = (start + own->dim * step) % part[0].period[axis];
        all += own->dim;
    }
    *s = part[0];
    s->digit[which] = (struct sac_digit){all, step, axis};
    return reaches(s, axis);
}

/* The one axis on which b begins `step` further than a; -1: it is not one. */
static int shift_between(const struct sac_digits *a, const struct sac_digits *b, int64_t *step)
{
    int axis = -1;
    for (int k = 0; k < a->axes; k++)
        if (a->start[k] != b->start[k]) {
            if (axis >= 0)
                return -1;
            axis = k;
            *step = (b->start[k] - a->start[k] + a->period[k]) % a->period[k];
        }
    return axis;
}

/* How many blocks of parts follow each other with the same shift. */
static int blocks_in_a_row(const struct sac_digits *part, int count, int block, int axis,
                           int64_t step)
{
    int rows = 1;
    for (; (rows + 1) * block <= count; rows++)
        for (int i = 0; i < block; i++) {
            int64_t   own = 0;
            const int from = (rows - 1) * block + i;
            if (shift_between(&part[from], &part[from + block], &own) != axis || own != step)
                return rows;
        }
    return rows;
}

/* Parts that are alike but begin elsewhere, in regular steps: space to depth. */
static bool join_beside(struct sac_digits *s, const struct sac_digits *part, int count, int d)
{
    struct sac_digits out = part[0];
    for (int i = 1; i < count; i++)
        if (!same_base(&part[0], &part[i]) || !same_digits(&part[0], &part[i], -1))
            return false;
    for (int block = 1, rows; block < count; block *= rows) {
        int64_t   step = 0;
        const int axis = shift_between(&part[0], &part[block], &step);
        rows = axis < 0 ? 1 : blocks_in_a_row(part, count, block, axis, step);
        if (rows < 2 || count % (block * rows) != 0 || out.count == DIGITS_MAX)
            return false;
        struct sac_digit *at = &out.digit[out.first[d]];
        memmove(at + 1, at, (size_t)(out.count++ - out.first[d]) * sizeof *at);
        *at = (struct sac_digit){rows, step, axis};
        for (int k = d + 1; k <= out.rank; k++)
            out.first[k]++;
        if (!reaches(&out, axis))
            return false;
    }
    *s = out;
    return true;
}

static bool look(struct sac_digits *s, struct sac_value *v, struct sac_digits_seen *seen);

static bool concat(struct sac_digits *s, const struct sac_node *n, struct sac_digits_seen *seen)
{
    const int         rank = n->outputs[0]->rank;
    int               axis;
    struct sac_digits part[PARTS_MAX];
    if (n->input_count < 2 || n->input_count > PARTS_MAX || seen->joins++ >= JOINS_MAX ||
        !sac_axis_normalise(sac_attr_int(n, "axis", 1), rank, &axis))
        return false;
    for (int i = 0; i < n->input_count; i++)
        if (!look(&part[i], n->inputs[i], seen) || part[i].base != part[0].base)
            return false;
    return join_along(s, part, n->input_count, axis) || join_beside(s, part, n->input_count, axis);
}

/* ---- a Rearrange that is there already ---- */

/* One of a file may do to the open axis what the pass never does. */
static bool keeps_open_axis(const struct sac_digits *s)
{
    int64_t all = 1;
    for (int i = 0; i < s->count; i++) {
        const struct sac_digit *d = &s->digit[i];
        const bool              open = d->dim >= SAC_STAND_IN;
        if (d->dim < 1 || (!open && all >= SAC_STAND_IN / d->dim) ||
            open != (s->size[d->axis] >= SAC_STAND_IN) || (open && d->dim != s->size[d->axis]))
            return false;
        all *= open ? 1 : d->dim;
    }
    for (int a = 0; a < s->axes; a++)
        if (s->period[a] >= SAC_STAND_IN &&
            (s->size[a] != SAC_STAND_IN || s->period[a] != SAC_STAND_IN || s->start[a] != 0))
            return false;
    return true;
}

static bool rearranged(struct sac_digits *s, const struct sac_node *n, const struct sac_value *v)
{
    const int64_t *dim, *axis, *step, *start, *period, *into;
    const size_t   count = sac_attr_ints(n, "dims", &dim);
    if (!begin(s, n->inputs[0]) || count > DIGITS_MAX)
        return false;
    sac_attr_ints(n, "axis", &axis);
    sac_attr_ints(n, "step", &step);
    sac_attr_ints(n, "start", &start);
    sac_attr_ints(n, "period", &period);
    if (sac_attr_ints(n, "into", &into) == 0)
        into = NULL;
    for (int a = 0; a < s->axes; a++) {
        if (into && into[a] != a) {
            s->into[a] = (int)into[a];
            s->size[into[a]] *= s->size[a];
            s->size[a] = 1;
        }
    }
    for (int a = 0; a < s->axes; a++) {
        s->start[a] = start[a];
        s->period[a] = period[a] ? period[a] : s->size[a];
    }
    s->count = (int)count;
    for (int i = 0; i < s->count; i++)
        s->digit[i] =
            (struct sac_digit){dim[i] == -1 ? s->size[axis[i]] : dim[i], step[i], (int)axis[i]};
    return keeps_open_axis(s) && regroup_as(s, v);
}

/* ---- chains ---- */

static bool note(struct sac_digits_seen *seen, struct sac_node *n)
{
    for (int i = 0; i < seen->count; i++)
        if (seen->node[i] == n)
            return true;
    if (seen->count == SAC_DIGITS_SEEN_MAX)
        return false;
    seen->node[seen->count++] = n;
    return true;
}

static bool step_through(struct sac_digits *s, struct sac_value *v, struct sac_digits_seen *seen)
{
    struct sac_node *n = v->producer;
    if (v->data || !n || (n->outputs[0] != v && !sac_is(n, "Split")) || !sac_node_input(n, 0) ||
        (n->inputs[0]->rank < 0 && !sac_is(n, "Concat")))
        return false;
    if (sac_is(n, "Concat"))
        return concat(s, n, seen) && note(seen, n);
    if (sac_is_fused(n, "Rearrange") && !sac_node_input(n, 1))
        return rearranged(s, n, v) && note(seen, n);
    if (sac_is_reshape(n))
        return look(s, n->inputs[0], seen) && (s->base != n->inputs[0] || sac_takes_map(n)) &&
               regroup_as(s, v) && note(seen, n);
    if (!sac_is_any(n, moves, SAC_COUNT(moves)) || !look(s, n->inputs[0], seen))
        return false;
    return (sac_is(n, "Transpose") ? transpose(s, n)
            : sac_is(n, "Slice")   ? slice(s, n, v)
            : sac_is(n, "Split")   ? split(s, n, v)
                                   : pad(s, n)) &&
           note(seen, n);
}

static bool look(struct sac_digits *s, struct sac_value *v, struct sac_digits_seen *seen)
{
    if (!v || v->rank < 0 || v->dtype == SAC_DTYPE_NONE || seen->visits++ > VISITS_MAX)
        return false;
    const int before = seen->count;
    if (step_through(s, v, seen))
        return true;
    seen->count = before;
    return begin(s, v);
}

bool sac_digits_of(struct sac_digits *s, struct sac_value *v, struct sac_digits_seen *seen)
{
    *seen = (struct sac_digits_seen){.count = 0};
    return look(s, v, seen) && s->base != v;
}

/* ---- the node ---- */

static bool is_ring(const struct sac_digits *s, int a)
{
    int64_t reach = s->start[a];
    bool    parts = false;
    for (int i = 0; i < s->count; i++)
        if (s->digit[i].axis == a)
            reach += (s->digit[i].dim - 1) * s->digit[i].step;
    for (int k = 0; k < s->axes; k++)
        parts |= k != a && s->into[k] == a;
    return reach >= s->size[a] || parts;
}

static int64_t or_open(int64_t dim)
{
    return dim == SAC_STAND_IN ? -1 : dim;
}

struct sac_node *sac_digits_node(struct sac_graph *g, struct sac_digits *s,
                                 const struct sac_value *v, const struct sac_node *like, bool *fits)
{
    int64_t dims[DIGITS_MAX], axis[DIGITS_MAX], step[DIGITS_MAX], period[SAC_RANK_MAX],
        into[SAC_RANK_MAX], shape[SAC_RANK_MAX];
    int  count = 0, rings = 0;
    bool parts = false;
    for (int i = 0; i < s->count; i++) {
        if (s->digit[i].dim == 1)
            continue;
        dims[count] = or_open(s->digit[i].dim);
        axis[count] = s->digit[i].axis;
        step[count++] = s->digit[i].step;
    }
    for (int a = 0; a < s->axes; a++) {
        period[a] = s->period[a] == s->size[a] ? 0 : s->period[a];
        rings += is_ring(s, a);
        into[a] = s->into[a];
        parts |= into[a] != a;
    }
    for (int d = 0; d < v->rank; d++)
        shape[d] = v->dims[d] == SAC_DIM_OPEN ? -1 : v->dims[d];
    *fits = count > 0 && count <= SAC_REARRANGE_DIGITS && rings <= SAC_REARRANGE_RINGS &&
            v->rank > 0 && s->axes > 0;
    struct sac_node *n = *fits ? sac_op_node(g, "saccade", "Rearrange", 2, 1, like) : NULL;
    if (!n)
        return NULL;
    n->inputs[0] = s->base;
    sac_result res = sac_node_set_ints(g, n, "dims", dims, (size_t)count);
    if (res == SAC_OK)
        res = sac_node_set_ints(g, n, "axis", axis, (size_t)count);
    if (res == SAC_OK)
        res = sac_node_set_ints(g, n, "step", step, (size_t)count);
    if (res == SAC_OK)
        res = sac_node_set_ints(g, n, "start", s->start, (size_t)s->axes);
    if (res == SAC_OK)
        res = sac_node_set_ints(g, n, "period", period, (size_t)s->axes);
    if (res == SAC_OK && parts)
        res = sac_node_set_ints(g, n, "into", into, (size_t)s->axes);
    if (res == SAC_OK)
        res = sac_node_set_ints(g, n, "shape", shape, (size_t)v->rank);
    return res == SAC_OK ? n : NULL;
}
