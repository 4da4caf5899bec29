/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "engine/ops/util.h"
#include "engine/passes/strided.h"

/* Of an open dim: a prime (2^31 - 1), above all that files have. */
#define STAND_IN ((int64_t)INT32_MAX)

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

/* The dims of a value whose elements are `total` in number (0: not known, an open dim is what the
 * prime stands for). */
static bool dims_of(const struct sac_value *v, int64_t total, int64_t *dims, int *open)
{
    int64_t all = 1;
    *open = -1;
    for (int d = 0; d < v->rank; d++) {
        dims[d] = v->dims[d];
        if (dims[d] == SAC_DIM_OPEN && *open >= 0)
            return false;
        if (dims[d] == SAC_DIM_OPEN) {
            *open = d;
            continue;
        }
        if (dims[d] <= 0 || all >= STAND_IN / dims[d])
            return false;
        all *= dims[d];
    }
    if (*open >= 0)
        dims[*open] = total ? total / all : STAND_IN;
    return v->rank >= 0 && (!total || (*open >= 0 ? total % all == 0 : total == all));
}

static int64_t elements_of(const struct sac_strided *s)
{
    return sac_dims_product(s->rank, s->dim);
}

bool sac_strided_dense(struct sac_strided *s, struct sac_value *v)
{
    *s = (struct sac_strided){.base = v, .rank = v->rank, .scale = 1};
    if (v->dtype != SAC_F32 || !dims_of(v, 0, s->dim, &s->open))
        return false;
    sac_dense_strides(s->rank, s->dim, s->step);
    return true;
}

/* Dims of one apart, each of the new dims is a part of an old one, or of several that lie as one:
 * groups of old and new dims with equal products are compared from the left. */
bool sac_strided_reshape(struct sac_strided *s, int rank, const int64_t *dims)
{
    int64_t old[SAC_RANK_MAX], old_step[SAC_RANK_MAX], step[SAC_RANK_MAX];
    int     count = 0, o = 0;
    if (sac_dims_product(rank, dims) != elements_of(s))
        return false;
    for (int d = 0; d < s->rank; d++)
        if (s->dim[d] != 1) {
            old[count] = s->dim[d];
            old_step[count++] = s->step[d];
        }
    for (int d = 0, end; d < rank; d = end) {
        step[d] = 0;
        end = d + 1;
        if (dims[d] == 1)
            continue;
        int64_t want = dims[d], have = 1;
        int     last = o - 1;
        while (have != want)
            if (have < want && ++last < count)
                have *= old[last];
            else if (have > want && end < rank)
                want *= dims[end++];
            else
                return false;
        for (; o < last; o++)
            if (old_step[o] != old[o + 1] * old_step[o + 1])
                return false;
        int64_t inner = old_step[o++];
        for (int k = end - 1; k >= d; k--) {
            step[k] = inner;
            inner *= dims[k];
        }
    }
    s->rank = rank;
    memcpy(s->dim, dims, (size_t)rank * sizeof *dims);
    memcpy(s->step, step, (size_t)rank * sizeof *step);
    return true;
}

static void permute(struct sac_strided *s, const int *at)
{
    const struct sac_strided from = *s;
    for (int d = 0; d < s->rank; d++) {
        s->dim[d] = from.dim[at[d]];
        s->step[d] = from.step[at[d]];
    }
}

void sac_strided_turn(struct sac_strided *s)
{
    int at[SAC_RANK_MAX];
    for (int d = 0; d < s->rank; d++)
        at[d] = d < s->rank - 2 ? d : 2 * s->rank - 3 - d;
    permute(s, at);
}

bool sac_strided_entry(int64_t number, int64_t *each, bool *open)
{
    *open = number >= STAND_IN;
    *each = *open ? number / STAND_IN : number;
    return !*open || (number % STAND_IN == 0 && *each < STAND_IN);
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
    return dims_of(v, elements_of(s), dims, &open) && sac_strided_reshape(s, v->rank, dims);
}

static bool split(struct sac_strided *s, const struct sac_node *n, const struct sac_value *v)
{
    int axis;
    if (!sac_axis_normalise(sac_attr_int(n, "axis", 0), s->rank, &axis))
        return false;
    for (int i = 0; i < n->output_count; i++) {
        const struct sac_value *part = n->outputs[i];
        if (!part || part->rank != s->rank || part->dims[axis] <= 0)
            return false;
        if (part == v) {
            s->dim[axis] = part->dims[axis];
            return true;
        }
        s->offset += part->dims[axis] * s->step[axis];
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
        if (b.step[d] < 1 || s->dim[d] >= STAND_IN || v->dims[d] <= 0)
            return false;
        b.start[d] += b.start[d] < 0 ? s->dim[d] : 0;
        s->offset += SAC_CLAMP(b.start[d], 0, s->dim[d]) * s->step[d];
        s->dim[d] = v->dims[d];
        s->step[d] *= s->dim[d] > 1 ? b.step[d] : 0; /* so small a step as the dim allows */
    }
    return true;
}

static bool gather(struct sac_strided *s, const struct sac_node *n, const struct sac_value *v)
{
    int64_t index;
    size_t  count;
    int     axis;
    if (!sac_constant_ints(sac_node_input(n, 1), &index, 1, &count) || count != 1 ||
        n->inputs[1]->rank > 1 || !sac_axis_normalise(sac_attr_int(n, "axis", 0), s->rank, &axis) ||
        s->dim[axis] >= STAND_IN)
        return false;
    index += index < 0 ? s->dim[axis] : 0;
    if (index < 0 || index >= s->dim[axis])
        return false;
    s->offset += index * s->step[axis];
    s->dim[axis] = 1;
    return reshape_like(s, v);
}

static bool is_any(const struct sac_node *n, const char *const *types, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (sac_is(n, types[i]))
            return true;
    return false;
}

static const char *const reshapes[] = {"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"};
static const char *const parts[] = {"Transpose", "Split", "Slice", "Gather"};

struct sac_value *sac_strided_before(const struct sac_value *v)
{
    double                 factor;
    const struct sac_node *n = v->producer;
    if (!n || v->data || v->rank < 0)
        return NULL;
    if (is_any(n, reshapes, SAC_COUNT(reshapes)) || is_any(n, parts, SAC_COUNT(parts)) ||
        (sac_is(n, "Cast") && n->inputs[0] && n->inputs[0]->dtype == v->dtype))
        return n->inputs[0];
    return sac_scaled(v, &factor);
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
    if (!sac_scaled(v, &factor))
        return reshape_like(s, v);
    s->scale *= factor;
    return true;
}

bool sac_strided_from(struct sac_strided *s, struct sac_value *v, int depth)
{
    if (depth == 0)
        return sac_strided_dense(s, v);
    return sac_strided_from(s, sac_strided_before(v), depth - 1) && step_through(s, v);
}

bool sac_strided_into(struct sac_strided *s, struct sac_value *v, struct sac_value *after,
                      int depth)
{
    if (!sac_strided_dense(s, after))
        return false;
    for (; depth > 0; depth--) {
        const struct sac_node *n = after->producer;
        after = n->inputs[0];
        if (!(sac_is(n, "Transpose") ? transpose(s, n, true) : reshape_like(s, after)))
            return false;
    }
    return after == v;
}
