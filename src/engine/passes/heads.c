/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/passes/heads.h"

#include "engine/ops/reads.h"

bool sac_same_dtype(const struct sac_node *n)
{
    return sac_is(n, "Identity") ||
           (sac_is(n, "Cast") && n->inputs[0] && n->inputs[0]->dtype == n->outputs[0]->dtype);
}

/* b has the batches and heads of a, or is broadcast over them: two open dims count as one. */
bool sac_heads_leading(const struct sac_value *a, const struct sac_value *b)
{
    bool fits = a->rank == b->rank;
    for (int d = 0; fits && d < a->rank - 2; d++)
        fits = a->dims[d] == b->dims[d] || (b->dims[d] == 1 && a->dims[d] > 1);
    return fits;
}

/* ---- views ---- */

/* The same batches, as far as can be known: an open number of them is counted in each view's own
 * base. */
static bool same_batch(int64_t a, int64_t b)
{
    int64_t each;
    bool    open_a, open_b;
    return a == b || (sac_strided_entry(a, &each, &open_a) &&
                      sac_strided_entry(b, &each, &open_b) && open_a && open_b);
}

/* Of [batch,head,token,number], or [batch and head,token,number]. */
static int64_t heads_of(const struct sac_strided *s, int rank)
{
    if (rank > 3)
        return sac_strided_dim(s, rank - 3);
    return rank == 3 && s->first[1] > 1 ? s->part[s->first[1] - 1].dim : 1;
}

static bool shows_again(const struct sac_strided *s)
{
    for (int d = 0; d < s->rank; d++)
        if (s->dim[d] > 1 && s->step[d] == 0)
            return true;
    return false;
}

bool sac_heads_shape(struct sac_strided *s, bool turn, const struct sac_strided *like,
                     int64_t *group)
{
    int64_t   dims[SAC_VIEW_RANK] = {1, 1}, entry[SAC_VIEW_ENTRIES], bits, leading = 1;
    const int r = s->rank;
    if (r < 2)
        return false;
    if (turn)
        sac_strided_turn(s);
    for (int d = 0; d < r - 2; d++)
        leading *= sac_strided_dim(s, d);
    dims[SAC_HEAD] = like ? like->dim[SAC_HEAD] : heads_of(s, r);
    dims[SAC_BATCH] = leading / dims[SAC_HEAD];
    dims[SAC_TOKEN] = sac_strided_dim(s, r - 2);
    dims[SAC_NUMBER] = sac_strided_dim(s, r - 1);
    if (leading % dims[SAC_HEAD] != 0 ||
        (like && !same_batch(dims[SAC_BATCH], like->dim[SAC_BATCH])) ||
        !sac_strided_reshape(s, SAC_VIEW_RANK, dims))
        return false;
    if (group)
        *group = sac_strided_join_copies(s, SAC_HEAD);
    return sac_strided_settle(s) && !shows_again(s) && sac_strided_entries(s, entry, &bits);
}

/* The view of a product's operand as it is broadcast over the other's batches and heads. */
static bool broadcast(struct sac_strided *s, const struct sac_value *v,
                      const struct sac_value *beside)
{
    int64_t dims[SAC_RANK_MAX];
    for (int d = 0; d < v->rank; d++)
        dims[d] = d < v->rank - 2 ? beside->dims[d] : v->dims[d];
    return sac_strided_expand(s, v->rank, dims);
}

/* Do the numbers of a head lie side by side, or if it may be either its tokens? */
static bool has_run(const struct sac_strided *s, bool either)
{
    return s->step[SAC_NUMBER] == 1 || (either && s->step[SAC_TOKEN] == 1);
}

/* They are channels of a map [N,C,...]. */
static bool has_channels(const struct sac_strided *s)
{
    const struct sac_value *base = s->base;
    int64_t                 pixels = base->rank > 2;
    for (int d = 2; d < base->rank; d++)
        pixels *= base->dims[d] > 0 ? base->dims[d] : 0;
    return pixels > 0 && s->step[SAC_NUMBER] == pixels;
}

/* A convolution makes v, or several do, side by side: devices have such maps channels last. */
static bool is_convolved(const struct sac_value *v)
{
    const struct sac_node *n = sac_made_by(v, "Concat");
    if (!n || sac_attr_int(n, "axis", 0) != 1)
        return sac_made_by(v, "Conv") != NULL;
    for (int i = 0; i < n->input_count; i++)
        if (!sac_made_by(n->inputs[i], "Conv"))
            return false;
    return true;
}

static bool has_neighbours(const struct sac_strided *s, bool either)
{
    return has_run(s, either) || (has_channels(s) && is_convolved(s->base));
}

bool sac_heads_are_neighbours(const struct sac_strided *s)
{
    return is_convolved(s->base) ? has_channels(s) : has_run(s, false);
}

/* How many nodes can be looked through before v, and from how many on `same` is one of them. */
static int depth_of(const struct sac_value *v, const struct sac_node *same, int *least)
{
    double factor;
    int    depth = 0;
    *least = same ? SAC_HEADS_DEPTH + 1 : 0;
    for (; depth < SAC_HEADS_DEPTH; depth++) {
        const bool              within = same && depth >= *least;
        const struct sac_value *before = sac_strided_before_or(v, same);
        if (!before || (within && sac_scaled(v, &factor)))
            break;
        if (same && v->producer == same)
            *least = depth + 1;
        v = before;
    }
    return depth;
}

bool sac_heads_operand_through(struct sac_strided *out, struct sac_value *v,
                               const struct sac_value *beside, bool turn, bool either,
                               const struct sac_strided *like, int64_t *group,
                               const struct sac_node *same)
{
    int least;
    if (!v || v->data)
        return false;
    const int far = depth_of(v, same, &least);
    for (int any = 0; any < 2; any++)
        for (int depth = far; depth >= least; depth--)
            if (sac_strided_through(out, v, depth, same) && broadcast(out, v, beside) &&
                sac_heads_shape(out, turn, like, group) && (any || has_neighbours(out, either)))
                return true;
    return false;
}

bool sac_heads_operand(struct sac_strided *out, struct sac_value *v, const struct sac_value *beside,
                       bool turn, bool either, const struct sac_strided *like, int64_t *group)
{
    return sac_heads_operand_through(out, v, beside, turn, either, like, group, NULL);
}

static bool moves(const struct sac_node *n)
{
    return sac_is(n, "Transpose") || sac_is_reshape(n) || sac_same_dtype(n);
}

/* ---- results ---- */

static bool is_rounder(const struct sac_node *n)
{
    return sac_is(n, "QuantizeLinear") && sac_value_elements(sac_node_input(n, 1)) == 1;
}

/* Do convolutions alone read v? They have such maps channels last. */
static bool feeds_conv(const struct sac_value *v)
{
    const struct sac_node *n = sac_value_only_reader(v);
    return sac_is(n, "Conv") && n->inputs[0] == v;
}

/* What only moves nodes make of v, one after the other, after[0] being v; rounds: one of them may
 * round. */
struct results {
    struct sac_value *after[SAC_HEADS_DEPTH];
    struct sac_node  *rounder;
    int               far, rounded; /* the last; the first behind the rounder */
};

static void follow(struct results *r, struct sac_value *v, bool rounds)
{
    *r = (struct results){.after = {v}, .rounded = SAC_HEADS_DEPTH};
    for (struct sac_node *n; r->far + 1 < SAC_HEADS_DEPTH; r->after[++r->far] = n->outputs[0]) {
        n = sac_value_only_reader(r->after[r->far]);
        const bool first = n && rounds && !r->rounder && is_rounder(n);
        if (!n || (!moves(n) && !first) || n->inputs[0] != r->after[r->far] ||
            n->outputs[0]->rank < 0)
            break;
        r->rounder = first ? n : r->rounder;
        r->rounded = first ? r->far + 1 : r->rounded;
    }
}

bool sac_heads_result(struct sac_strided *out, struct sac_value *v, bool turned, bool either,
                      const struct sac_strided *like, struct sac_value **to,
                      struct sac_node **rounds)
{
    struct results r;
    follow(&r, v, rounds != NULL);
    for (int any = 0; any < 2; any++)
        for (int depth = r.far; depth >= 0; depth--)
            if (sac_strided_into(out, v, r.after[depth], depth) &&
                sac_heads_shape(out, turned, like, NULL) &&
                (any || has_run(out, either) ||
                 (has_channels(out) && feeds_conv(r.after[depth])))) {
                *to = r.after[depth];
                if (rounds)
                    *rounds = depth < r.rounded ? NULL : r.rounder;
                return true;
            }
    return false;
}

/* ---- tokens in runs ---- */

bool sac_heads_apart(struct sac_strided *s, int64_t inner)
{
    const int     r = s->rank;
    const int64_t tokens = sac_strided_dim(s, r - 2);
    int64_t       dims[] = {1, tokens / inner, inner, sac_strided_dim(s, r - 1)};
    int64_t       entry[SAC_VIEW_ENTRIES], bits;
    for (int d = 0; d < r - 2; d++)
        dims[0] *= sac_strided_dim(s, d);
    if (tokens % inner != 0 || !sac_strided_reshape(s, SAC_VIEW_RANK, dims))
        return false;
    sac_strided_swap(s, SAC_BATCH, SAC_HEAD);
    return sac_strided_settle(s) && !shows_again(s) && has_run(s, true) &&
           sac_strided_entries(s, entry, &bits);
}

bool sac_heads_result_apart(struct sac_strided *out, struct sac_value *v, int64_t inner,
                            struct sac_value **to)
{
    struct results r;
    follow(&r, v, false);
    for (int depth = r.far; depth >= 0; depth--)
        if (sac_strided_into(out, v, r.after[depth], depth) && sac_heads_apart(out, inner)) {
            *to = r.after[depth];
            return true;
        }
    return false;
}
