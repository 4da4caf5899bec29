/* SPDX-License-Identifier: Apache-2.0 */
/* Two products, of which the first sums up over the tokens what two numbers of a head have in
 * common, and the second reads that small matrix: one LinearAttention (engine/ops/fused.h), with
 * what exporters write before, between and behind them. Its state stays on the chip, and heads are
 * read and written where they lie.
 *
 * An attention of tokens to tokens is spelled alike, with the numbers of a head in the place of
 * tokens. Which of the two lie side by side tells them apart. */
#include <string.h>

#include "engine/ops/util.h"
#include "engine/passes/heads.h"
#include "engine/passes/norms.h"

struct attention {
    enum sac_linear_kind    kind;
    struct sac_strided      a, b, c, y;
    const struct sac_value *read; /* by the second product: operand `side` */
    int                     side;
    bool                    turned; /* the state there is [size,width] */
    struct sac_value       *values, *keys, *queries, *result, *out, *gain;
    bool                    lengths;
    double                  scale, epsilon, after; /* after: a factor behind the softmax */
};

/* ---- the state between the two products ---- */

/* One number, or one a head: [heads,1,1] beside [...,heads,rows,columns]. */
static bool is_gain(const struct sac_value *c, const struct sac_value *v)
{
    const int64_t count = sac_constant_floats(c) ? sac_value_elements(c) : 0;
    return count == 1 || (count > 1 && c->rank >= 3 && c->rank <= v->rank && v->rank >= 4 &&
                          count == c->dims[c->rank - 3] && count == v->dims[v->rank - 3]);
}

/* What stands between the state and the first product: Transposes, factors, a softmax of rows. */
static struct sac_node *take_between(struct attention *a, const struct sac_value *v)
{
    bool softmax = false;
    a->scale = a->after = 1;
    a->turned = a->side == 1;
    for (struct sac_node *n = v->producer;; n = v->producer) {
        double factor;
        int    axis;
        if (!n || v->uses != 1 || v->dtype != SAC_F32)
            return NULL;
        if (sac_is(n, "MatMul"))
            break;
        if (sac_turns_last_two(n)) {
            a->turned = !a->turned;
            v = n->inputs[0];
        } else if (sac_scaled(v, &factor)) {
            *(softmax ? &a->scale : &a->after) *= factor;
            v = sac_scaled(v, &factor);
        } else if (sac_is(n, "Softmax") && !softmax) {
            if (!sac_softmax_axis(n, v->rank, &axis) || axis != v->rank - (a->turned ? 2 : 1))
                return NULL;
            softmax = true;
            v = n->inputs[0];
        } else if (sac_is(n, "Mul") && softmax && !a->gain) {
            const int i = is_gain(n->inputs[1], v) ? 1 : 0;
            if (!is_gain(n->inputs[i], v) || !sac_same_shape(n->inputs[1 - i], v))
                return NULL;
            a->gain = n->inputs[i];
            v = n->inputs[1 - i];
        } else
            return NULL;
    }
    a->kind = softmax ? SAC_LINEAR_SHARES : SAC_LINEAR_TOKENS;
    return v->producer;
}

/* The products of what `read` is made of, in either order. */
static bool take_state(struct attention *a, struct sac_value *const *operands, int side)
{
    a->side = side;
    a->gain = NULL;
    a->read = operands[side];
    a->queries = operands[1 - side];
    const struct sac_node *first = take_between(a, a->read);
    if (!first || a->queries->data || first->inputs[0]->data || first->inputs[1]->data)
        return false;
    a->values = first->inputs[a->turned];
    a->keys = first->inputs[!a->turned];
    return sac_heads_leading(first->inputs[0], first->inputs[1]);
}

/* ---- what is done to keys, queries and values before ---- */

/* The node before v and what moves numbers. */
static struct sac_node *before(const struct sac_value *v)
{
    for (const struct sac_value *w; (w = sac_strided_before(v));)
        v = w;
    return v->producer;
}

/* Axis of n's output along which v, [...,tokens,numbers] or turned, has its tokens. The nodes
 * between keep the last two dims, or turn them. */
static bool is_along_tokens(const struct sac_node *n, const struct sac_value *v, bool turned,
                            int axis)
{
    bool tokens_last = turned;
    for (; v->producer != n; v = v->producer->inputs[0]) {
        const struct sac_node *m = v->producer;
        double                 factor;
        if (sac_turns_last_two(m))
            tokens_last = !tokens_last;
        else if (!sac_same_dtype(m) && !(sac_scaled(v, &factor) == m->inputs[0]))
            return false;
    }
    return axis == v->rank - (tokens_last ? 1 : 2);
}

/* n makes lines one in length, and then perhaps multiplies them by one number a head. */
static bool takes_lengths(const struct sac_node *n, double *least, struct sac_value **gain)
{
    *gain = NULL;
    if (sac_is(n, "LpNormalization")) {
        *least = (double)sac_attr_float(n, "floor", 0);
        return sac_attr_int(n, "p", 2) == 2;
    }
    if (!sac_is_fused(n, "FusedNorm") || !sac_is_line_norm(n) || sac_node_attr(n, "x") ||
        sac_attr_int(n, "kind", 0) != SAC_NORM_L2 || sac_node_input(n, SAC_NORM_SHIFT) ||
        sac_node_input(n, SAC_NORM_RESIDUAL))
        return false;
    *least = (double)sac_attr_float(n, "epsilon", 1e-5f);
    *gain = sac_node_input(n, SAC_NORM_SCALE);
    return !*gain || is_gain(*gain, n->outputs[0]);
}

/* Each of v's columns, over all tokens, is over its length. */
static const struct sac_node *length_before(const struct sac_value *v, bool turned, double *least,
                                            struct sac_value **gain)
{
    const struct sac_node *n = before(v);
    int                    axis;
    return takes_lengths(n, least, gain) &&
                   sac_axis_normalise(sac_attr_int(n, "axis", -1), n->outputs[0]->rank, &axis) &&
                   is_along_tokens(n, v, turned, axis)
               ? n
               : NULL;
}

static const struct sac_node *softmax_before(const struct sac_value *v, bool turned)
{
    const struct sac_node *n = before(v);
    int                    axis;
    return sac_is(n, "Softmax") && sac_softmax_axis(n, n->outputs[0]->rank, &axis) &&
                   is_along_tokens(n, v, turned, axis)
               ? n
               : NULL;
}

/* ---- the views ---- */

/* One state for each head of queries: it is not broadcast over them. */
static bool same_leading(const struct sac_value *a, const struct sac_value *b)
{
    bool same = a->rank == b->rank;
    for (int d = 0; same && d < a->rank - 2; d++)
        same = a->dims[d] == b->dims[d];
    return same;
}

static bool read_views(struct attention *a, const struct sac_node *for_values,
                       const struct sac_node *for_keys, const struct sac_node *for_queries)
{
    struct sac_value *y = a->result;
    /* [width,tokens] [tokens,size], or [size,tokens] [tokens,width]; then [tokens,size]
     * [size,width], or [width,size] [size,tokens] */
    const bool turn = a->side == 0;
    return y->rank >= 3 && same_leading(a->queries, a->read) &&
           sac_heads_operand_through(&a->a, a->values, a->values, !a->turned, false, NULL, NULL,
                                     for_values) &&
           sac_heads_operand_through(&a->b, a->keys, a->values, a->turned, false, &a->a, NULL,
                                     for_keys) &&
           sac_heads_operand_through(&a->c, a->queries, a->queries, turn, false, &a->a, NULL,
                                     for_queries) &&
           sac_heads_result(&a->y, y, turn, false, &a->a, &a->out, NULL) &&
           sac_heads_are_neighbours(&a->a) && sac_heads_are_neighbours(&a->b) &&
           sac_heads_are_neighbours(&a->c);
}

static bool is_size(int64_t dim)
{
    int64_t each;
    bool    open;
    return sac_strided_entry(dim, &each, &open) && !open && dim > 0 && dim <= SAC_LINEAR_SIZE_MAX;
}

/* As many tokens as a head has numbers, or who knows? Fewer are the numbers of heads that lie in
 * maps, where tokens are neighbours. */
static bool has_tokens(const struct attention *a)
{
    int64_t    tokens;
    bool       open;
    const bool known = sac_strided_entry(a->a.dim[SAC_TOKEN], &tokens, &open);
    return known && (open || (tokens >= a->a.dim[SAC_NUMBER] && tokens >= a->b.dim[SAC_NUMBER]));
}

static bool fits(const struct attention *a)
{
    return has_tokens(a) && a->a.dim[SAC_TOKEN] == a->b.dim[SAC_TOKEN] &&
           a->c.dim[SAC_TOKEN] == a->y.dim[SAC_TOKEN] &&
           a->c.dim[SAC_NUMBER] == a->b.dim[SAC_NUMBER] &&
           a->y.dim[SAC_NUMBER] == a->a.dim[SAC_NUMBER] && is_size(a->b.dim[SAC_NUMBER]) &&
           is_size(a->a.dim[SAC_NUMBER]);
}

static bool read_shares(struct attention *a)
{
    double                 least[2] = {0};
    struct sac_value      *gain[2];
    const struct sac_node *n[] = {length_before(a->values, !a->turned, &least[0], &gain[0]),
                                  length_before(a->keys, a->turned, &least[1], &gain[1])};
    a->lengths = n[0] && n[1] && least[0] == least[1] && !(gain[0] && gain[1]) &&
                 !(a->gain && (gain[0] || gain[1]));
    if (a->lengths) {
        a->epsilon = least[0];
        a->gain = gain[0] ? gain[0] : gain[1] ? gain[1] : a->gain;
    }
    if (!read_views(a, a->lengths ? n[0] : NULL, a->lengths ? n[1] : NULL, NULL) ||
        a->c.scale != 1 || a->after != 1)
        return false;
    a->scale *= a->a.scale * a->b.scale;
    return true;
}

static bool read_tokens(struct attention *a)
{
    double                 factor;
    const struct sac_node *softmax = softmax_before(a->keys, a->turned);
    struct sac_node       *behind = sac_value_only_reader(a->result);
    if (!softmax || a->gain)
        return false;
    if (behind && behind->output_count == 1 &&
        sac_scaled(behind->outputs[0], &factor) == a->result) {
        a->result = behind->outputs[0];
        a->scale *= factor;
    }
    if (!read_views(a, NULL, softmax, NULL))
        return false;
    a->scale *= a->after * a->a.scale * a->b.scale * a->c.scale;
    return true;
}

/* ---- with the sum of the keys beside the values ---- */

/* Numbers from..until - 1 along the axis are all that n, a Slice, takes. */
static bool slices(const struct sac_node *n, int axis, int64_t from, int64_t until)
{
    struct sac_slice_bounds b;
    const struct sac_value *x = sac_node_input(n, 0);
    if (!sac_is(n, "Slice") || !sac_slice_constants(n, x->rank, &b))
        return false;
    for (int d = 0; d < x->rank; d++) {
        if (b.step[d] != 1)
            return false;
        if (d != axis && (b.start[d] != 0 || b.end[d] != INT64_MAX))
            return false;
    }
    const int64_t size = x->dims[axis], start = b.start[axis] + (b.start[axis] < 0 ? size : 0),
                  end = b.end[axis] < 0 ? b.end[axis] + size : SAC_MIN(b.end[axis], size);
    return size > 0 && start == from && end == until;
}

/* v has a row, or column, of ones behind those of what is returned. */
static struct sac_value *ones_behind(const struct sac_value *v, int axis)
{
    const struct sac_node *n = v->producer;
    int64_t                pads[2 * SAC_RANK_MAX];
    size_t                 count;
    if (!sac_is(n, "Pad") || v->uses != 1 || sac_node_input(n, 3) ||
        !sac_is_number(sac_node_input(n, 2), 1) ||
        strcmp(sac_attr_string(n, "mode", "constant"), "constant") != 0 ||
        !sac_constant_ints(sac_node_input(n, 1), pads, SAC_COUNT(pads), &count) ||
        count != 2 * (size_t)v->rank)
        return NULL;
    for (int d = 0; d < 2 * v->rank; d++)
        if (pads[d] != (d == v->rank + axis))
            return NULL;
    return n->inputs[0];
}

static const struct sac_node *relu_before(const struct sac_value *v)
{
    const struct sac_node *n = before(v);
    return sac_is(n, "Relu") ? n : NULL;
}

/* n is a quotient of two parts of one product: its numbers, and the last of them with epsilon. */
static struct sac_value *quotient_of(const struct sac_node *n, int *axis, double *epsilon)
{
    const struct sac_value *sum = sac_node_input(n, 1);
    const struct sac_node  *add = sac_made_by(sum, "Add"), *top = n->inputs[0]->producer;
    float                   more = 0;
    if (add) {
        const int i = sac_constant_scalar(add->inputs[1], &more) ? 0 : 1;
        if (!sac_constant_scalar(add->inputs[1 - i], &more) || sum->uses != 1)
            return NULL;
        sum = add->inputs[i];
    }
    struct sac_value *y = sac_is(top, "Slice") ? top->inputs[0] : NULL;
    if (!y || y->uses != 2 || !sac_made_by(y, "MatMul") || !sac_made_by(sum, "Slice") ||
        sum->producer->inputs[0] != y || sum->uses != 1 || n->inputs[0]->uses != 1 || more < 0)
        return NULL;
    *epsilon = (double)more;
    for (*axis = y->rank - 2; *axis < y->rank; ++*axis) {
        const int64_t size = *axis >= 0 ? y->dims[*axis] : 0;
        if (size > 1 && slices(top, *axis, 0, size - 1) &&
            slices(sum->producer, *axis, size - 1, size))
            return y;
    }
    return NULL;
}

static bool read_ratio(struct attention *a, const struct sac_node *n)
{
    int               axis;
    double            epsilon;
    struct sac_value *y = quotient_of(n, &axis, &epsilon);
    const int         side = y && axis == y->rank - 1; /* which operand has the numbers of y */
    if (!y || !take_state(a, y->producer->inputs, side) || a->kind != SAC_LINEAR_TOKENS || a->gain)
        return false;
    struct sac_value *padded = a->values;
    a->values = ones_behind(padded, padded->rank - (a->turned ? 1 : 2));
    const struct sac_node *keys = relu_before(a->keys), *queries = relu_before(a->queries);
    if (!a->values || !keys || !queries || a->after <= 0)
        return false;
    a->kind = SAC_LINEAR_RATIO;
    a->epsilon = epsilon / a->after; /* a factor of the state is one of the sum too */
    a->result = n->outputs[0];
    if (!read_views(a, NULL, keys, queries) || a->b.scale != 1 || a->c.scale != 1)
        return false;
    a->scale *= a->a.scale;
    return true;
}

/* ---- the pass ---- */

static bool read_attention(struct attention *a, struct sac_node *n)
{
    *a = (struct attention){.epsilon = 0};
    if (n->output_count != 1 || !n->outputs[0] || n->outputs[0]->dtype != SAC_F32)
        return false;
    if (sac_is(n, "Div"))
        return read_ratio(a, n) && fits(a);
    if (!sac_is(n, "MatMul"))
        return false;
    for (int side = 0; side < 2; side++) {
        a->result = n->outputs[0];
        if (take_state(a, n->inputs, side) &&
            (a->kind == SAC_LINEAR_SHARES ? read_shares(a) : read_tokens(a)) && fits(a))
            return true;
    }
    return false;
}

static sac_result set_attributes(struct sac_graph *g, struct sac_node *made,
                                 const struct attention *a)
{
    sac_result res = sac_strided_set_view(g, made, "a", "a_open", &a->a);
    if (res == SAC_OK)
        res = sac_strided_set_view(g, made, "b", "b_open", &a->b);
    if (res == SAC_OK)
        res = sac_strided_set_view(g, made, "c", "c_open", &a->c);
    if (res == SAC_OK)
        res = sac_strided_set_view(g, made, "y", "y_open", &a->y);
    if (res == SAC_OK)
        res = sac_node_set_int(g, made, "kind", a->kind);
    if (res == SAC_OK)
        res = sac_node_set_int(g, made, "lengths", a->lengths);
    if (res == SAC_OK)
        res = sac_node_set_float(g, made, "scale", (float)a->scale);
    if (res == SAC_OK)
        res = sac_node_set_float(g, made, "epsilon", (float)a->epsilon);
    return res == SAC_OK ? sac_node_set_ints(g, made, "shape", a->out->dims, (size_t)a->out->rank)
                         : res;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct attention a;
    if (!read_attention(&a, n))
        return SAC_OK;
    struct sac_node *made = sac_op_node(g, "saccade", "LinearAttention", a.gain ? 4 : 3, 1, n);
    if (!made)
        return SAC_ERR_MEMORY;
    made->inputs[0] = a.a.base;
    made->inputs[1] = a.b.base;
    made->inputs[2] = a.c.base;
    if (a.gain)
        made->inputs[3] = a.gain;
    const sac_result res = set_attributes(g, made, &a);
    *changed = true;
    return res == SAC_OK ? sac_take_over(g, made, a.out->producer) : res;
}

const struct sac_pass sac_pass_linear = {"linear-attention", visit, NULL};
