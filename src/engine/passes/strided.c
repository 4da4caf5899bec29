/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "engine/ops/util.h"
#include "engine/passes/strided.h"

struct sac_value *sac_scaled(const struct sac_value *v, double *factor)
{
    const struct sac_node *n = v->producer;
    const bool             divides = sac_is(n, "Div");
    float                  c;
    if (!divides && !sac_is(n, "Mul"))
        return NULL;
    for (int i = 0; i < (divides ? 1 : 2); i++) {
        struct sac_value *x = n->inputs[i], *by = n->inputs[1 - i];
        if (!x || !by || x->rank != v->rank || x->dtype != SAC_F32 || by->rank > x->rank ||
            !sac_constant_scalar(by, &c) || c == 0)
            continue;
        *factor = divides ? 1.0 / c : c;
        return x;
    }
    return NULL;
}

/* ---- dims and steps ---- */

int64_t sac_strided_dim(const struct sac_strided *s, int d)
{
    int64_t all = 1;
    for (int i = s->first[d]; i < s->first[d + 1]; i++)
        all *= s->part[i].dim;
    return all;
}

static int64_t elements_of(const struct sac_strided *s)
{
    int64_t all = 1;
    for (int d = 0; d < s->rank; d++)
        all *= sac_strided_dim(s, d);
    return all;
}

bool sac_strided_dense(struct sac_strided *s, struct sac_value *v)
{
    int64_t dims[SAC_RANK_MAX], steps[SAC_RANK_MAX];
    *s = (struct sac_strided){.base = v, .rank = v->rank, .scale = 1};
    if (!sac_stand_in_dims(v, 0, dims, &s->open))
        return false;
    sac_dense_strides(s->rank, dims, steps);
    for (int d = 0; d < s->rank; d++) {
        s->part[d] = (struct sac_strided_part){dims[d], steps[d]};
        s->first[d + 1] = d + 1;
    }
    return true;
}

/* Puts `outer` before parts that begin at to[0]; where both lie as one, they are one. */
static struct sac_strided_part *put_before(struct sac_strided_part *to, int count,
                                           struct sac_strided_part outer)
{
    if (count > 0 && outer.step == to->dim * to->step) {
        to->dim *= outer.dim;
        return to;
    }
    *--to = outer;
    return to;
}

/* The parts of dims `from` to `until`, as few as they can be, at the end of `room`; returns the
 * first. */
static struct sac_strided_part *gather_parts(const struct sac_strided *s, int from, int until,
                                             struct sac_strided_part room[SAC_STRIDED_PARTS])
{
    struct sac_strided_part *const end = room + SAC_STRIDED_PARTS, *at = end;
    for (int i = s->first[until] - 1; i >= s->first[from]; i--)
        if (s->part[i].dim != 1)
            at = put_before(at, (int)(end - at), s->part[i]);
    return at;
}

/* From the innermost on, each new dim takes parts, or what is left of one. */
bool sac_strided_reshape(struct sac_strided *s, int rank, const int64_t *dims)
{
    struct sac_strided_part        room[SAC_STRIDED_PARTS], taken[SAC_STRIDED_PARTS], rest = {1, 0};
    struct sac_strided_part       *at = room + SAC_STRIDED_PARTS;
    struct sac_strided_part *const first = gather_parts(s, 0, s->rank, room);
    int                            count = 0, end[SAC_RANK_MAX];
    if (sac_dims_product(rank, dims) != elements_of(s))
        return false;
    for (int d = rank - 1; d >= 0; d--) {
        end[d] = count;
        for (int64_t want = dims[d]; want > 1;) {
            if (rest.dim == 1 && at > first)
                rest = *--at;
            const int64_t part = want % rest.dim == 0 ? rest.dim : want;
            if (rest.dim == 1 || rest.dim % part != 0 || count == SAC_STRIDED_PARTS)
                return false;
            taken[count++] = (struct sac_strided_part){part, rest.step};
            want /= part;
            rest.dim /= part;
            rest.step *= part;
        }
    }
    for (int i = 0; i < count; i++)
        s->part[i] = taken[count - 1 - i];
    s->rank = rank;
    for (int d = 0; d < rank; d++)
        s->first[d + 1] = count - end[d];
    return true;
}

/* Can the elements be counted? */
static bool is_countable(const struct sac_strided *s)
{
    int64_t all = 1;
    for (int d = 0; d < s->rank; d++) {
        const int64_t dim = sac_strided_dim(s, d);
        if (dim <= 0 || dim > INT64_MAX / all)
            return false;
        all *= dim;
    }
    return true;
}

bool sac_strided_expand(struct sac_strided *s, int rank, const int64_t *dims)
{
    const struct sac_strided from = *s;
    const int                more = rank - from.rank;
    int                      count = 0;
    for (int d = 0; more >= 0 && d < rank; d++) {
        const int     first = d < more ? 0 : from.first[d - more];
        const int     end = d < more ? 0 : from.first[d - more + 1];
        const int64_t own = d < more ? 1 : sac_strided_dim(&from, d - more);
        const bool    again = own == 1 && dims[d] != 1;
        if ((again ? dims[d] <= 0 : dims[d] != SAC_DIM_OPEN && dims[d] != own) ||
            count + SAC_MAX(end - first, 1) > SAC_STRIDED_PARTS)
            return false;
        for (int i = first; !again && i < end; i++)
            s->part[count++] = from.part[i];
        if (again)
            s->part[count++] = (struct sac_strided_part){dims[d], 0};
        s->first[d + 1] = count;
    }
    s->rank = rank;
    return more >= 0 && is_countable(s);
}

int64_t sac_strided_join_copies(struct sac_strided *s, int d)
{
    int64_t copies = 1;
    for (int last = s->first[d + 1] - 1; last >= s->first[d] && s->part[last].step == 0; last--) {
        copies *= s->part[last].dim;
        for (int i = last; i + 1 < s->first[s->rank]; i++)
            s->part[i] = s->part[i + 1];
        for (int k = d + 1; k <= s->rank; k++)
            s->first[k]--;
    }
    return copies;
}

int64_t sac_strided_inner(const struct sac_strided *s, int d)
{
    struct sac_strided_part room[SAC_STRIDED_PARTS], *const end = room + SAC_STRIDED_PARTS;
    const struct sac_strided_part *first = gather_parts(s, d, d + 1, room);
    return end - first > 1 ? end[-1].dim : 1;
}

bool sac_strided_settle(struct sac_strided *s)
{
    for (int d = 0; d < s->rank; d++) {
        struct sac_strided_part room[SAC_STRIDED_PARTS], *const end = room + SAC_STRIDED_PARTS;
        struct sac_strided_part *first = gather_parts(s, d, d + 1, room);
        if (end - first > 1)
            return false;
        s->dim[d] = first < end ? first->dim : 1;
        s->step[d] = first < end ? first->step : 0;
    }
    return true;
}

/* The only part of a dim; NULL: it has more. */
static struct sac_strided_part *only_part(struct sac_strided *s, int d)
{
    return s->first[d + 1] - s->first[d] == 1 ? &s->part[s->first[d]] : NULL;
}

static void permute(struct sac_strided *s, const int *at)
{
    const struct sac_strided from = *s;
    for (int d = 0, count = 0; d < s->rank; d++) {
        for (int i = from.first[at[d]]; i < from.first[at[d] + 1]; i++)
            s->part[count++] = from.part[i];
        s->first[d + 1] = count;
    }
}

void sac_strided_swap(struct sac_strided *s, int a, int b)
{
    int at[SAC_RANK_MAX];
    for (int d = 0; d < s->rank; d++)
        at[d] = d == a ? b : d == b ? a : d;
    permute(s, at);
}

void sac_strided_turn(struct sac_strided *s)
{
    sac_strided_swap(s, s->rank - 2, s->rank - 1);
}

bool sac_strided_entry(int64_t number, int64_t *each, bool *open)
{
    *open = number >= SAC_STAND_IN;
    *each = *open ? number / SAC_STAND_IN : number;
    return !*open || (number % SAC_STAND_IN == 0 && *each < SAC_STAND_IN);
}

int64_t sac_strided_value_dim(int64_t number)
{
    int64_t each;
    bool    open;
    sac_strided_entry(number, &each, &open);
    return open ? SAC_DIM_OPEN : each;
}

void sac_strided_set_dims(const struct sac_strided *s, struct sac_value *y)
{
    y->rank = SAC_VIEW_RANK;
    for (int d = 0; d < SAC_VIEW_RANK; d++)
        y->dims[d] = sac_strided_value_dim(s->dim[d]);
}

bool sac_strided_entries(const struct sac_strided *s, int64_t *entry, int64_t *bits)
{
    const int64_t *part[] = {s->dim, s->step};
    bool           open, fits = sac_strided_entry(s->offset, &entry[0], &open);
    *bits = open;
    for (int i = 1; fits && i < SAC_VIEW_ENTRIES; i++) {
        fits =
            sac_strided_entry(part[i > SAC_VIEW_RANK][(i - 1) % SAC_VIEW_RANK], &entry[i], &open);
        *bits |= (int64_t)open << i;
    }
    return fits;
}

sac_result sac_strided_set_view(struct sac_graph *g, struct sac_node *n, const char *name,
                                const char *open_name, const struct sac_strided *s)
{
    int64_t entry[SAC_VIEW_ENTRIES], open[2] = {s->open};
    sac_strided_entries(s, entry, &open[1]);
    sac_result res = sac_node_set_ints(g, n, name, entry, SAC_VIEW_ENTRIES);
    if (res == SAC_OK && open[1])
        res = sac_node_set_ints(g, n, open_name, open, 2);
    return res;
}

bool sac_view_attr(const struct sac_node *n, const char *name, int64_t *view)
{
    const int64_t *from;
    const bool     has = sac_attr_ints(n, name, &from) == SAC_VIEW_ENTRIES;
    if (has)
        memcpy(view, from, SAC_VIEW_ENTRIES * sizeof *view);
    return has;
}

int64_t sac_view_open(const struct sac_node *n, const char *open_name)
{
    const int64_t *open;
    return sac_attr_ints(n, open_name, &open) == 2 ? open[1] : 0;
}

bool sac_view_widen(int64_t *view, int64_t bits, int64_t n, int64_t column, int64_t wide)
{
    int64_t last = view[0] % n;
    if (bits & 1)
        return false;
    view[0] = view[0] / n * wide + view[0] % n + column;
    for (int d = 1; d <= SAC_VIEW_RANK; d++) {
        int64_t   *step = &view[d + SAC_VIEW_RANK];
        const bool open = bits >> (d + SAC_VIEW_RANK) & 1;
        if (*step % n == 0)
            *step = *step / n * wide;
        else if (open || bits >> d & 1 || *step < 0 || *step > n || view[d] > n)
            return false;
        else
            last += SAC_MAX(view[d] - 1, 0) * *step;
    }
    return last < n;
}

/* ---- what a node does to a view ---- */

/* The input's dims that the output's have, `back`: the other way round. */
static bool transpose(struct sac_strided *s, const struct sac_node *n, bool back)
{
    const int64_t *perm;
    int            at[SAC_RANK_MAX];
    const size_t   count = sac_attr_ints(n, "perm", &perm);
    if (count != 0 && count != (size_t)s->rank)
        return false;
    for (int d = 0; d < s->rank; d++) {
        const int from = count ? (int)perm[d] : s->rank - 1 - d;
        at[back ? from : d] = back ? d : from;
    }
    permute(s, at);
    return true;
}

static bool reshape_like(struct sac_strided *s, const struct sac_value *v)
{
    int64_t dims[SAC_RANK_MAX];
    int     open;
    return sac_stand_in_dims(v, elements_of(s), dims, &open) &&
           sac_strided_reshape(s, v->rank, dims);
}

static bool split(struct sac_strided *s, const struct sac_node *n, const struct sac_value *v)
{
    int axis;
    if (!sac_axis_normalise(sac_attr_int(n, "axis", 0), s->rank, &axis) || !only_part(s, axis))
        return false;
    struct sac_strided_part *whole = only_part(s, axis);
    for (int i = 0; i < n->output_count; i++) {
        const struct sac_value *part = n->outputs[i];
        if (!part || part->rank != s->rank || part->dims[axis] <= 0)
            return false;
        if (part == v) {
            whole->dim = part->dims[axis];
            return true;
        }
        s->offset += part->dims[axis] * whole->step;
    }
    return false;
}

/* Along known dims only, forwards. */
static bool slice(struct sac_strided *s, const struct sac_node *n, const struct sac_value *v)
{
    struct sac_slice_bounds b;
    if (!sac_slice_constants(n, s->rank, &b))
        return false;
    for (int d = 0; d < s->rank; d++) {
        if (b.start[d] == 0 && b.end[d] == INT64_MAX && b.step[d] == 1)
            continue;
        struct sac_strided_part *p = only_part(s, d);
        if (b.step[d] < 1 || !p || p->dim >= SAC_STAND_IN || v->dims[d] <= 0)
            return false;
        b.start[d] += b.start[d] < 0 ? p->dim : 0;
        s->offset += SAC_CLAMP(b.start[d], 0, p->dim) * p->step;
        p->dim = v->dims[d];
        p->step *= p->dim > 1 ? b.step[d] : 0; /* so small a step as the dim allows */
    }
    return true;
}

static bool gather(struct sac_strided *s, const struct sac_node *n, const struct sac_value *v)
{
    int64_t index;
    size_t  count;
    int     axis;
    if (!sac_constant_ints(sac_node_input(n, 1), &index, 1, &count) || count != 1 ||
        n->inputs[1]->rank > 1 || !sac_axis_normalise(sac_attr_int(n, "axis", 0), s->rank, &axis))
        return false;
    struct sac_strided_part *p = only_part(s, axis);
    if (!p || p->dim >= SAC_STAND_IN)
        return false;
    index += index < 0 ? p->dim : 0;
    if (index < 0 || index >= p->dim)
        return false;
    s->offset += index * p->step;
    p->dim = 1;
    return reshape_like(s, v);
}

static const char *const parts[] = {"Transpose", "Split", "Slice", "Gather", "Expand", "Tile"};

struct sac_value *sac_strided_before(const struct sac_value *v)
{
    double                 factor;
    const struct sac_node *n = v->producer;
    if (!n || v->data || v->rank < 0)
        return NULL;
    if (sac_is_reshape(n) || sac_is_any(n, parts, SAC_COUNT(parts)) ||
        (sac_is(n, "Cast") && n->inputs[0] && n->inputs[0]->dtype == v->dtype))
        return n->inputs[0];
    return sac_scaled(v, &factor);
}

/* Does a Tile repeat an open dim, or who knows? It is open again. */
static bool repeats_open(const struct sac_node *n)
{
    const struct sac_value *y = n->outputs[0];
    int64_t                 repeats[SAC_RANK_MAX];
    size_t                  count;
    const bool known = sac_constant_ints(sac_node_input(n, 1), repeats, SAC_RANK_MAX, &count) &&
                       count == (size_t)y->rank;
    for (int d = 0; d < y->rank; d++)
        if (y->dims[d] == SAC_DIM_OPEN && !(known && repeats[d] == 1))
            return true;
    return false;
}

/* s sees the input of the node that makes v; then it sees v. */
static bool step_through(struct sac_strided *s, const struct sac_value *v)
{
    const struct sac_node *n = v->producer;
    double                 factor;
    if (sac_is(n, "Transpose"))
        return transpose(s, n, false);
    if (sac_is(n, "Split"))
        return split(s, n, v);
    if (sac_is(n, "Slice"))
        return slice(s, n, v);
    if (sac_is(n, "Gather"))
        return gather(s, n, v);
    if (sac_is(n, "Tile") && repeats_open(n))
        return false;
    if (sac_is(n, "Expand") || sac_is(n, "Tile"))
        return sac_strided_expand(s, v->rank, v->dims);
    if (!sac_scaled(v, &factor))
        return reshape_like(s, v);
    s->scale *= factor;
    return true;
}

struct sac_value *sac_strided_before_or(const struct sac_value *v, const struct sac_node *same)
{
    return same && v->producer == same ? same->inputs[0] : sac_strided_before(v);
}

bool sac_strided_through(struct sac_strided *s, struct sac_value *v, int depth,
                         const struct sac_node *same)
{
    if (depth == 0)
        return v->dtype == SAC_F32 && sac_strided_dense(s, v);
    return sac_strided_through(s, sac_strided_before_or(v, same), depth - 1, same) &&
           ((same && v->producer == same) || step_through(s, v));
}

bool sac_strided_from(struct sac_strided *s, struct sac_value *v, int depth)
{
    return sac_strided_through(s, v, depth, NULL);
}

bool sac_strided_into(struct sac_strided *s, struct sac_value *v, struct sac_value *after,
                      int depth)
{
    if (v->dtype != SAC_F32 || !sac_strided_dense(s, after))
        return false;
    for (; depth > 0; depth--) {
        const struct sac_node *n = after->producer;
        after = n->inputs[0];
        if (!(sac_is(n, "Transpose") ? transpose(s, n, true) : reshape_like(s, after)))
            return false;
    }
    return after == v;
}
