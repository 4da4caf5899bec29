/* SPDX-License-Identifier: Apache-2.0 */
/* Networks from a channels-last framework are full of Transposes. Those to channels last are moved
 * down through elementwise operators, those back to channels first are moved up, until they meet
 * and cancel or reach the border of the graph, where the memory layout makes them free.
 *
 * In what follows `last` is the permutation 0,2,..,r-1,1 and `first` its inverse 0,r-1,1,..,r-2. */
#include <string.h>

#include "engine/passes/pass.h"

struct perm {
    int rank, at[SAC_RANK_MAX]; /* dim i of the output is dim at[i] of the input */
};

static struct perm perm_last(int rank)
{
    struct perm p = {.rank = rank};
    for (int i = 1; i < rank; i++)
        p.at[i] = i == rank - 1 ? 1 : i + 1;
    return p;
}

static struct perm perm_first(int rank)
{
    struct perm p = {.rank = rank};
    for (int i = 1; i < rank; i++)
        p.at[i] = i == 1 ? rank - 1 : i - 1;
    return p;
}

static bool perm_same(const struct perm *a, const struct perm *b)
{
    return a->rank == b->rank && memcmp(a->at, b->at, (size_t)a->rank * sizeof a->at[0]) == 0;
}

/* The permutation of a Transpose node whose input's rank is known and at least 3. */
static bool perm_of(const struct sac_node *n, struct perm *out)
{
    const int64_t *perm;
    if (!n || !sac_is(n, "Transpose") || n->inputs[0]->rank < 3)
        return false;
    out->rank = n->inputs[0]->rank;
    if (sac_attr_ints(n, "perm", &perm) != (size_t)out->rank)
        return false;
    for (int i = 0; i < out->rank; i++)
        out->at[i] = (int)perm[i];
    return true;
}

static bool transposed_by(const struct sac_value *v, const struct perm *wanted)
{
    struct perm p;
    return v && perm_of(v->producer, &p) && perm_same(&p, wanted);
}

/* ---- making nodes ---- */

static void permute_dims(struct sac_value *v, const struct sac_value *from, const struct perm *p)
{
    for (int i = 0; i < p->rank; i++)
        v->dims[i] = from->dims[p->at[i]];
}

/* A Transpose of v, or v's input when v is the inverse Transpose. */
static struct sac_value *transpose(struct sac_graph *g, struct sac_value *v, const struct perm *p,
                                   const struct sac_node *like)
{
    int64_t          perm[SAC_RANK_MAX];
    struct sac_node *n = sac_op_node(g, "", "Transpose", 1, 1, like);
    for (int i = 0; i < p->rank; i++)
        perm[i] = p->at[i];
    if (!n || sac_node_set_ints(g, n, "perm", perm, (size_t)p->rank) != SAC_OK)
        return NULL;
    n->inputs[0] = v;
    n->outputs[0] = sac_value_like(g, v);
    if (!n->outputs[0])
        return NULL;
    permute_dims(n->outputs[0], v, p);
    n->outputs[0]->producer = n;
    return n->outputs[0];
}

static struct sac_node *copy_node(struct sac_graph *g, const struct sac_node *n)
{
    struct sac_node *copy =
        sac_op_node(g, n->domain, n->op_type, n->input_count, n->output_count, n);
    if (copy && sac_copy_attrs(g, copy, n) != SAC_OK)
        return NULL;
    for (int i = 0; copy && i < n->input_count; i++)
        copy->inputs[i] = n->inputs[i];
    return copy;
}

/* A constant, extended to the rank with leading ones and permuted. */
static struct sac_value *permuted_constant(struct sac_graph *g, const struct sac_value *v,
                                           const struct perm *p)
{
    int64_t from[SAC_RANK_MAX], step[SAC_RANK_MAX], index[SAC_RANK_MAX] = {0}, all = 1;
    struct sac_tensor_desc desc = {.dtype = v->dtype, .rank = p->rank};
    for (int d = p->rank - 1; d >= 0; d--) {
        const int own = d - (p->rank - v->rank);
        from[d] = own >= 0 ? v->dims[own] : 1;
        step[d] = all;
        all *= from[d];
    }
    for (int d = 0; d < p->rank; d++)
        desc.shape[d] = from[p->at[d]];
    struct sac_value *made = sac_graph_constant(g, v->name, &desc, NULL);
    const size_t      size = sac_dtype_bytes(v->dtype);
    for (int64_t i = 0; made && i < all; i++) {
        int64_t at = 0;
        for (int d = 0; d < p->rank; d++)
            at += index[d] * step[p->at[d]];
        memcpy((char *)made->data + (size_t)i * size, (const char *)v->data + (size_t)at * size,
               size);
        for (int d = p->rank - 1; d >= 0 && ++index[d] == desc.shape[d]; d--)
            index[d] = 0;
    }
    return made;
}

/* ---- one node's inputs in the other order ---- */

static bool is_elementwise(const struct sac_node *n)
{
    return n->op && (n->op->flags & SAC_OP_ELEMENTWISE) && n->output_count == 1 && n->outputs[0];
}

/* One number per channel (or fewer), channels last: cheap to move. */
static bool is_narrow(const struct sac_value *v, int channel_dim)
{
    for (int d = 1; d < v->rank; d++)
        if (d != channel_dim && v->dims[d] != 1)
            return false;
    return v->rank >= 3;
}

/* The value to read instead of v when all operands are permuted by `by`; `undo` is its inverse.
 * NULL and *fits false: there is no cheap one. */
static struct sac_value *moved_input(struct sac_graph *g, struct sac_value *v,
                                     const struct perm *by, const struct perm *undo,
                                     int channel_dim, const struct sac_node *like, bool commit,
                                     bool *fits)
{
    *fits = true;
    if (!v || (v->data && sac_value_elements(v) == 1))
        return v;
    if (v->data) {
        *fits = v->rank <= by->rank;
        return *fits && commit ? permuted_constant(g, v, by) : v;
    }
    if (transposed_by(v, undo))
        return v->producer->inputs[0];
    *fits = v->rank == by->rank && is_narrow(v, channel_dim);
    return *fits && commit ? transpose(g, v, by, like) : v;
}

/* ---- the rules ---- */

/* Elementwise after Transpose `last`: the node works on channels first, one Transpose follows
 * it. */
static sac_result sink(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    const int   rank = n->outputs[0]->rank;
    struct perm last = perm_last(rank), first = perm_first(rank);
    bool        any = false, fits = true;
    for (int i = 0; i < n->input_count && fits; i++) {
        any |= transposed_by(n->inputs[i], &last);
        moved_input(g, n->inputs[i], &first, &last, rank - 1, n, false, &fits);
    }
    if (!any || !fits)
        return SAC_OK;
    struct sac_node *inner = copy_node(g, n);
    if (!inner)
        return SAC_ERR_MEMORY;
    for (int i = 0; i < n->input_count; i++) {
        inner->inputs[i] = moved_input(g, n->inputs[i], &first, &last, rank - 1, n, true, &fits);
        if (n->inputs[i] && !inner->inputs[i])
            return SAC_ERR_MEMORY;
    }
    struct sac_value *out = inner->outputs[0] = sac_value_like(g, n->outputs[0]);
    if (!out)
        return SAC_ERR_MEMORY;
    permute_dims(out, n->outputs[0], &first);
    out->producer = inner;
    struct sac_value *after = transpose(g, out, &last, n);
    if (!after)
        return SAC_ERR_MEMORY;
    sac_graph_replace(g, n->outputs[0], after);
    *changed = true;
    return SAC_OK;
}

/* Transpose `first` of an elementwise result that nobody else reads: its operands are permuted
 * instead. */
static sac_result rise(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct perm      p;
    struct sac_node *maker = n->inputs[0]->producer;
    if (!perm_of(n, &p) || !maker || !is_elementwise(maker) || n->inputs[0]->uses != 1)
        return SAC_OK;
    struct perm first = perm_first(p.rank), last = perm_last(p.rank);
    if (!perm_same(&p, &first))
        return SAC_OK;
    struct sac_value *wide = NULL;
    for (int i = 0; i < maker->input_count; i++) {
        struct sac_value *v = maker->inputs[i];
        bool              fits;
        moved_input(g, v, &first, &last, p.rank - 1, n, false, &fits);
        if (fits && !(v && sac_same_shape(v, n->inputs[0])))
            continue;
        if ((wide && wide != v) || !sac_same_shape(v, n->inputs[0]))
            return SAC_OK;
        wide = v;
    }
    struct sac_node  *inner = copy_node(g, maker);
    struct sac_value *turned = wide ? transpose(g, wide, &first, n) : NULL;
    if (!inner || (wide && !turned))
        return SAC_ERR_MEMORY;
    for (int i = 0; i < maker->input_count; i++) {
        bool              fits;
        struct sac_value *v = maker->inputs[i];
        inner->inputs[i] =
            v && v == wide ? turned : moved_input(g, v, &first, &last, p.rank - 1, n, true, &fits);
        if (v && !inner->inputs[i])
            return SAC_ERR_MEMORY;
    }
    *changed = true;
    return sac_take_over(g, inner, n);
}

/* The same through a Concat of pieces of one Split (channels in another order). */
static sac_result rise_through_split(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct perm      p;
    struct sac_node *concat = sac_made_by(n->inputs[0], "Concat");
    struct sac_node *split =
        concat && concat->inputs[0] ? sac_made_by(concat->inputs[0], "Split") : NULL;
    if (!perm_of(n, &p) || !split || n->inputs[0]->uses != 1)
        return SAC_OK;
    struct perm   first = perm_first(p.rank);
    const int64_t axis = sac_attr_int(split, "axis", 0), other = sac_attr_int(concat, "axis", 0);
    if (!perm_same(&p, &first) || (axis != p.rank - 1 && axis != -1) ||
        (other != p.rank - 1 && other != -1))
        return SAC_OK;
    for (int i = 0; i < concat->input_count; i++)
        if (!concat->inputs[i] || concat->inputs[i]->producer != split)
            return SAC_OK;
    struct sac_value *turned = transpose(g, split->inputs[0], &first, n);
    struct sac_node  *new_split = copy_node(g, split), *new_concat = copy_node(g, concat);
    if (!turned || !new_split || !new_concat ||
        sac_node_set_int(g, new_split, "axis", 1) != SAC_OK ||
        sac_node_set_int(g, new_concat, "axis", 1) != SAC_OK)
        return SAC_ERR_MEMORY;
    new_split->inputs[0] = turned;
    for (int k = 0; k < split->output_count; k++) {
        struct sac_value *v = new_split->outputs[k] = sac_value_like(g, split->outputs[k]);
        if (!v)
            return SAC_ERR_MEMORY;
        v->producer = new_split;
        permute_dims(v, split->outputs[k], &first);
        for (int i = 0; i < concat->input_count; i++)
            if (concat->inputs[i] == split->outputs[k])
                new_concat->inputs[i] = v;
    }
    *changed = true;
    return sac_take_over(g, new_concat, n);
}

/* Is v turned to channels first for a convolution? */
static bool feeds_conv(const struct sac_value *v)
{
    for (size_t i = 0; v && i < v->reader_count; i++) {
        const struct sac_node *n = v->readers[i];
        if (sac_turns_first(n) && sac_is(sac_only_reader(n, NULL), "Conv"))
            return true;
    }
    return false;
}

static bool is_along_last(const struct sac_node *n, int rank)
{
    const int64_t axis = sac_attr_int(n, "axis", 0);
    return rank >= 3 && (axis == rank - 1 || axis == -1);
}

/* A Split of channels last, of which a part goes to a convolution, takes its parts channels first:
 * these are read where they lie. What others read is turned back. */
static sac_result split_first(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct sac_value *x = sac_node_input(n, 0);
    bool              any = false;
    if (!sac_is(n, "Split") || !x || x->data || !is_along_last(n, x->rank))
        return SAC_OK;
    for (int i = 0; i < n->output_count; i++)
        any |= feeds_conv(n->outputs[i]);
    if (!any)
        return SAC_OK;
    const struct perm first = perm_first(x->rank), last = perm_last(x->rank);
    struct sac_value *turned = transpose(g, x, &first, n);
    struct sac_node  *inner = copy_node(g, n);
    if (!turned || !inner || sac_node_set_int(g, inner, "axis", 1) != SAC_OK)
        return SAC_ERR_MEMORY;
    inner->inputs[0] = turned;
    *changed = true;
    for (int i = 0; i < n->output_count; i++) {
        struct sac_value *old = n->outputs[i], *v = old ? sac_value_like(g, old) : NULL;
        if (!old)
            continue;
        if (!v)
            return SAC_ERR_MEMORY;
        permute_dims(v, old, &first);
        v->producer = inner;
        inner->outputs[i] = v;
        struct sac_value *back = transpose(g, v, &last, n);
        if (!back)
            return SAC_ERR_MEMORY;
        sac_graph_replace(g, old, back);
    }
    return SAC_OK;
}

/* A Concat of what was turned to channels last puts the channels together first. */
static sac_result sink_concat(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    const struct sac_value *y = n->outputs[0];
    if (!sac_is(n, "Concat") || !is_along_last(n, y->rank))
        return SAC_OK;
    const struct perm first = perm_first(y->rank), last = perm_last(y->rank);
    for (int i = 0; i < n->input_count; i++)
        if (!transposed_by(n->inputs[i], &last))
            return SAC_OK;
    struct sac_node  *inner = copy_node(g, n);
    struct sac_value *out = inner ? sac_value_like(g, y) : NULL;
    if (!out || sac_node_set_int(g, inner, "axis", 1) != SAC_OK)
        return SAC_ERR_MEMORY;
    for (int i = 0; i < n->input_count; i++)
        inner->inputs[i] = n->inputs[i]->producer->inputs[0];
    permute_dims(out, y, &first);
    out->producer = inner;
    inner->outputs[0] = out;
    struct sac_value *after = transpose(g, out, &last, n);
    if (!after)
        return SAC_ERR_MEMORY;
    sac_graph_replace(g, n->outputs[0], after);
    *changed = true;
    return SAC_OK;
}

/* A reduction that keeps its dims, after a Transpose: reduces the original axes instead. */
static sac_result reduce_before(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct perm p;
    bool        reduced[SAC_RANK_MAX];
    int64_t     axes[SAC_RANK_MAX];
    size_t      count = 0;
    const bool  known = sac_is(n, "ReduceMean") || sac_is(n, "ReduceSum") || sac_is(n, "ReduceMax");
    if (!known || !sac_attr_int(n, "keepdims", 1) || !perm_of(n->inputs[0]->producer, &p) ||
        !sac_reduce_axes(n, p.rank, reduced))
        return SAC_OK;
    for (int d = 0; d < p.rank; d++)
        if (reduced[d])
            axes[count++] = p.at[d];
    struct sac_node *inner = copy_node(g, n);
    if (!inner)
        return SAC_ERR_MEMORY;
    inner->inputs[0] = n->inputs[0]->producer->inputs[0];
    sac_result res = SAC_OK;
    if (sac_node_input(n, 1)) {
        struct sac_tensor_desc desc = {.dtype = SAC_I64, .rank = 1, .shape = {(int64_t)count}};
        inner->inputs[1] = sac_graph_constant(g, n->inputs[1]->name, &desc, axes);
        res = inner->inputs[1] ? SAC_OK : SAC_ERR_MEMORY;
    } else {
        res = sac_node_set_ints(g, inner, "axes", axes, count);
    }
    struct sac_value *out = inner->outputs[0] = sac_value_like(g, n->outputs[0]);
    if (res != SAC_OK || !out)
        return SAC_ERR_MEMORY;
    for (int i = 0; i < p.rank; i++)
        out->dims[p.at[i]] = n->outputs[0]->dims[i];
    out->producer = inner;
    struct sac_value *after = transpose(g, out, &p, n);
    if (!after)
        return SAC_ERR_MEMORY;
    sac_graph_replace(g, n->outputs[0], after);
    *changed = true;
    return SAC_OK;
}

static sac_result merge_pair(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct perm a, b;
    bool        nothing = true;
    if (!perm_of(n, &b) || !perm_of(n->inputs[0]->producer, &a))
        return SAC_OK;
    struct sac_value *source = n->inputs[0]->producer->inputs[0];
    struct perm       both = {.rank = a.rank};
    for (int i = 0; i < a.rank; i++) {
        both.at[i] = a.at[b.at[i]];
        nothing &= both.at[i] == i;
    }
    struct sac_value *out = nothing ? source : transpose(g, source, &both, n);
    if (!out)
        return SAC_ERR_MEMORY;
    sac_graph_replace(g, n->outputs[0], out);
    *changed = true;
    return SAC_OK;
}

/* A Transpose that only moves dims of one is a Reshape, which costs nothing. */
static sac_result moves_only_ones(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct perm p;
    int64_t     target[SAC_RANK_MAX];
    int         last = -1, open = 0;
    if (!perm_of(n, &p))
        return SAC_OK;
    for (int i = 0; i < p.rank; i++) {
        const int64_t dim = n->inputs[0]->dims[p.at[i]];
        if (dim != 1 && p.at[i] < last)
            return SAC_OK;
        if (dim != 1)
            last = p.at[i];
        open += dim == SAC_DIM_OPEN;
        target[i] = dim == SAC_DIM_OPEN ? -1 : dim;
        if (dim == 0)
            return SAC_OK;
    }
    if (open > 1)
        return SAC_OK;
    struct sac_tensor_desc desc = {.dtype = SAC_I64, .rank = 1, .shape = {p.rank}};
    struct sac_node       *view = sac_op_node(g, "", "Reshape", 2, 1, n);
    struct sac_value      *shape = sac_graph_constant(g, "shape", &desc, target);
    if (!view || !shape)
        return SAC_ERR_MEMORY;
    view->inputs[0] = n->inputs[0];
    view->inputs[1] = shape;
    *changed = true;
    return sac_take_over(g, view, n);
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    sac_result res = split_first(g, n, changed);
    if (res != SAC_OK || *changed || n->output_count != 1 || !n->outputs[0] || n->input_count < 1 ||
        !n->inputs[0])
        return res;
    if (sac_is(n, "Transpose")) {
        res = merge_pair(g, n, changed);
        if (res == SAC_OK && !*changed)
            res = moves_only_ones(g, n, changed);
        if (res == SAC_OK && !*changed)
            res = rise(g, n, changed);
        if (res == SAC_OK && !*changed)
            res = rise_through_split(g, n, changed);
        return res;
    }
    if (is_elementwise(n) && n->outputs[0]->rank >= 3)
        res = sink(g, n, changed);
    if (res == SAC_OK && !*changed)
        res = sink_concat(g, n, changed);
    if (res == SAC_OK && !*changed)
        res = reduce_before(g, n, changed);
    return res;
}

const struct sac_pass sac_pass_transpose = {"transpose", visit};
