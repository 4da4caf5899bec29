/* SPDX-License-Identifier: Apache-2.0 */
/* The norms of an attention's queries and keys, whose heads one product has written beside each
 * other, are one norm of all these heads; and so are their rotary embeddings, where these turn
 * queries and keys alike. */
#include <string.h>

#include "engine/passes/norms.h"
#include "engine/passes/strided.h"

enum { HEADS = 3, NUMBERS = SAC_VIEW_RANK, OF_HEADS = HEADS + SAC_VIEW_RANK }; /* in a view */

/* A norm of heads or a rotary embedding, and the view of what it makes. */
struct heads {
    struct sac_node        *norm;
    struct sac_heads_reader by;
    int64_t                 x[SAC_VIEW_ENTRIES], view[SAC_VIEW_ENTRIES];
};

/* What makes the heads for a reader, which then is who reads its input. */
static bool take_heads(struct sac_heads_reader *by, struct heads *h)
{
    struct sac_heads_reader norm = *by;
    if (!sac_heads_reader_before(&norm))
        return false;
    *h = (struct heads){.norm = norm.node, .by = *by};
    *by = norm;
    return sac_view_attr(norm.node, "x", h->x) && sac_view_attr(h->by.node, h->by.name, h->view);
}

static bool is_rotary(const struct sac_node *n)
{
    return sac_is_fused(n, "FusedRotary");
}

static bool same_attr(const struct sac_node *a, const struct sac_node *b, const char *name)
{
    return sac_attr_int(a, name, 0) == sac_attr_int(b, name, 0);
}

/* Do the heads of b follow those of a in each row of one value, normalised alike? One line alone
 * has no step, and follows itself; nor has one head. */
static bool follow(const struct heads *a, const struct heads *b)
{
    bool same = a->norm->inputs[0] == b->norm->inputs[0] && a->norm->op == b->norm->op &&
                same_attr(a->norm, b->norm, "kind") && same_attr(a->norm, b->norm, "block") &&
                sac_attr_float(a->norm, "epsilon", -1) == sac_attr_float(b->norm, "epsilon", -1) &&
                sac_view_open(a->norm, "x_open") == sac_view_open(b->norm, "x_open") &&
                a->x[OF_HEADS] > 0 && b->x[0] == a->x[0] + a->x[HEADS] * a->x[OF_HEADS];
    for (int i = 1; i < SAC_VIEW_ENTRIES; i++)
        same &= i == HEADS || a->x[i] == b->x[i] || (i == OF_HEADS && b->x[HEADS] == 1);
    return same && !(sac_view_open(a->norm, "x_open") & (1 << HEADS | 1 << OF_HEADS | 1));
}

/* A table is that of all heads. */
static bool is_of_all(const struct sac_value *table)
{
    return table->rank < 2 || table->dims[table->rank - 2] == 1;
}

/* Tables are not joined: those of both are the same, for all heads. */
static bool share_tables(const struct sac_node *a, const struct sac_node *b)
{
    bool fits = a->input_count == b->input_count;
    for (int i = 1; fits && i < a->input_count; i++)
        fits = a->inputs[i] == b->inputs[i] && is_of_all(a->inputs[i]);
    return fits;
}

/* Have the constants at most a number for each head and number? */
static bool is_of_heads(const struct sac_node *norm)
{
    bool fits = true;
    for (int i = SAC_NORM_SCALE; i <= SAC_NORM_SHIFT; i++) {
        const struct sac_value *o = sac_node_input(norm, i);
        fits &= !o || sac_constant_floats(o);
        for (int d = 0; fits && o && d < o->rank - 2; d++)
            fits = o->dims[d] == 1;
    }
    return fits;
}

static bool has_heads(const struct sac_value *o)
{
    return o && o->rank > 1 && o->dims[o->rank - 2] > 1;
}

/* Number `at` of a head of a norm's constant, or the one in its place. */
static float number_of(const struct heads *h, int input, int64_t head, int64_t at)
{
    const struct sac_value *o = sac_node_input(h->norm, input);
    if (!o)
        return input == SAC_NORM_SCALE;
    const int64_t last = o->rank > 0 ? o->dims[o->rank - 1] : 1;
    return sac_constant_floats(o)[(has_heads(o) ? head * last : 0) + (last > 1 ? at : 0)];
}

/* The constants of both norms, one head after the other; NULL with SAC_OK: there are none. */
static struct sac_value *both_constants(struct sac_graph *g, const struct heads *a,
                                        const struct heads *b, int input, sac_result *res)
{
    struct sac_value *const of[] = {sac_node_input(a->norm, input), sac_node_input(b->norm, input)};
    int64_t                 dims[] = {a->x[HEADS] + b->x[HEADS], 1};
    float                  *to;
    for (int i = 0; i < 2; i++)
        if (of[i] && of[i]->rank > 0 && of[i]->dims[of[i]->rank - 1] > 1)
            dims[1] = a->x[NUMBERS];
    if (of[0] == of[1] && !has_heads(of[0]))
        return of[0];
    struct sac_value *made = sac_new_floats(g, "heads", 2, dims, &to);
    if (!made)
        *res = SAC_ERR_MEMORY;
    for (int64_t head = 0; made && head < dims[0]; head++)
        for (int64_t i = 0; i < dims[1]; i++)
            *to++ = head < a->x[HEADS] ? number_of(a, input, head, i)
                                       : number_of(b, input, head - a->x[HEADS], i);
    return made;
}

/* ---- the new node ---- */

/* The attention's view of b or a, rows of whose heads are now a part of those of both. */
static bool widen(struct heads *h, int64_t column, int64_t wide)
{
    return sac_view_widen(h->view, sac_view_open(h->by.node, h->by.open_name),
                          h->x[HEADS] * h->x[NUMBERS], column, wide);
}

static sac_result set_view(struct sac_graph *g, const struct heads *h, struct sac_value *y)
{
    h->by.node->inputs[h->by.input] = y;
    sac_graph_changed(g, h->by.node);
    return sac_node_set_ints(g, h->by.node, h->by.name, h->view, SAC_VIEW_ENTRIES);
}

/* The node of both, without its view. */
static struct sac_node *both(struct sac_graph *g, const struct heads *a, const struct heads *b,
                             sac_result *res)
{
    const bool       rotary = is_rotary(a->norm);
    struct sac_node *made =
        rotary ? sac_op_node(g, "saccade", "FusedRotary", a->norm->input_count, 1, a->norm)
               : sac_line_norm_again(g, a->norm, res);
    if (made && rotary)
        *res = sac_copy_attrs(g, made, a->norm);
    for (int i = 0; made && rotary && i < made->input_count; i++)
        made->inputs[i] = a->norm->inputs[i];
    for (int i = SAC_NORM_SCALE; made && !rotary && i <= SAC_NORM_SHIFT && *res == SAC_OK; i++)
        made->inputs[i] = both_constants(g, a, b, i, res);
    return made;
}

static sac_result join(struct sac_graph *g, const struct heads *a, const struct heads *b)
{
    sac_result        res = SAC_OK;
    struct sac_node  *made = both(g, a, b, &res);
    struct sac_value *y = made ? sac_value_like(g, a->norm->outputs[0]) : NULL;
    int64_t           x[SAC_VIEW_ENTRIES];
    if (!y)
        return SAC_ERR_MEMORY;
    memcpy(x, a->x, sizeof x);
    x[HEADS] += b->x[HEADS];
    if (res == SAC_OK)
        res = sac_node_set_ints(g, made, "x", x, SAC_VIEW_ENTRIES);
    y->dims[HEADS - 1] = x[HEADS];
    y->producer = made;
    made->outputs[0] = y;
    if (res == SAC_OK)
        res = set_view(g, a, y);
    return res == SAC_OK ? set_view(g, b, y) : res;
}

/* Joins two neighbours, if they are such. */
static sac_result join_neighbours(struct sac_graph *g, struct heads *q, struct heads *k,
                                  bool *changed)
{
    struct heads *a = q->x[0] < k->x[0] ? q : k, *b = a == q ? k : q;
    const int64_t first = a->x[HEADS] * a->x[NUMBERS], wide = first + b->x[HEADS] * b->x[NUMBERS];
    const bool    fit = is_rotary(a->norm) ? share_tables(a->norm, b->norm)
                                           : is_of_heads(a->norm) && is_of_heads(b->norm);
    if (!follow(a, b) || !fit || !widen(a, 0, wide) || !widen(b, first, wide))
        return SAC_OK;
    *changed = true;
    return join(g, a, b);
}

/* From the attention back: norms may stand before rotary embeddings. */
static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    if (!sac_is_fused(n, "FusedAttention"))
        return SAC_OK;
    struct sac_heads_reader by_q = sac_heads_reader_of(n, 0), by_k = sac_heads_reader_of(n, 1);
    struct heads            q, k;
    sac_result              res = SAC_OK;
    while (res == SAC_OK && !*changed && take_heads(&by_q, &q) && take_heads(&by_k, &k))
        res = join_neighbours(g, &q, &k, changed);
    return res;
}

const struct sac_pass sac_pass_norm_pair = {"norm-pair", visit};
