/* SPDX-License-Identifier: Apache-2.0 */
/* The norms of an attention's queries and keys, whose heads one product has written beside each
 * other, are one norm of all these heads. */
#include <string.h>

#include "engine/passes/norms.h"
#include "engine/passes/strided.h"

enum { HEADS = 3, NUMBERS = SAC_VIEW_RANK, OF_HEADS = HEADS + SAC_VIEW_RANK }; /* in a view */

/* A norm of heads, and the attention's view of what it makes. */
struct heads {
    struct sac_node *norm, *attention;
    int              operand;
    const char      *name, *open_name; /* of the attention's view */
    int64_t          x[SAC_VIEW_ENTRIES], view[SAC_VIEW_ENTRIES];
};

static bool take_heads(struct sac_node *n, int operand, struct heads *h)
{
    *h = (struct heads){.norm = sac_norm_before(n, operand),
                        .attention = n,
                        .operand = operand,
                        .name = operand ? "k" : "q",
                        .open_name = operand ? "k_open" : "q_open"};
    return h->norm && sac_view_attr(h->norm, "x", h->x) && sac_view_attr(n, h->name, h->view);
}

static bool same_attr(const struct sac_node *a, const struct sac_node *b, const char *name)
{
    return sac_attr_int(a, name, 0) == sac_attr_int(b, name, 0);
}

/* Do the heads of b follow those of a in each row of one value, normalised alike? One line alone
 * has no step, and follows itself. */
static bool follow(const struct heads *a, const struct heads *b)
{
    bool same = a->norm->inputs[0] == b->norm->inputs[0] && same_attr(a->norm, b->norm, "kind") &&
                sac_attr_float(a->norm, "epsilon", -1) == sac_attr_float(b->norm, "epsilon", -1) &&
                sac_view_open(a->norm, "x_open") == sac_view_open(b->norm, "x_open") &&
                a->x[OF_HEADS] > 0 && b->x[0] == a->x[0] + a->x[HEADS] * a->x[OF_HEADS];
    for (int i = 1; i < SAC_VIEW_ENTRIES; i++)
        same &= i == HEADS || a->x[i] == b->x[i];
    return same && !(sac_view_open(a->norm, "x_open") & (1 << HEADS | 1 << OF_HEADS | 1));
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
    return sac_view_widen(h->view, sac_view_open(h->attention, h->open_name),
                          h->x[HEADS] * h->x[NUMBERS], column, wide);
}

static sac_result set_view(struct sac_graph *g, const struct heads *h, struct sac_value *y)
{
    h->attention->inputs[h->operand] = y;
    return sac_node_set_ints(g, h->attention, h->name, h->view, SAC_VIEW_ENTRIES);
}

static sac_result join(struct sac_graph *g, const struct heads *a, const struct heads *b)
{
    sac_result        res = SAC_OK;
    struct sac_node  *made = sac_line_norm_again(g, a->norm, &res);
    struct sac_value *y = made ? sac_value_like(g, a->norm->outputs[0]) : NULL;
    int64_t           x[SAC_VIEW_ENTRIES];
    if (!y)
        return SAC_ERR_MEMORY;
    memcpy(x, a->x, sizeof x);
    x[HEADS] += b->x[HEADS];
    for (int i = SAC_NORM_SCALE; i <= SAC_NORM_SHIFT && res == SAC_OK; i++)
        made->inputs[i] = both_constants(g, a, b, i, &res);
    if (res == SAC_OK)
        res = sac_node_set_ints(g, made, "x", x, SAC_VIEW_ENTRIES);
    y->dims[HEADS - 1] = x[HEADS];
    y->producer = made;
    made->outputs[0] = y;
    if (res == SAC_OK)
        res = set_view(g, a, y);
    return res == SAC_OK ? set_view(g, b, y) : res;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct heads q, k;
    if (!sac_is_fused(n, "FusedAttention") || !take_heads(n, 0, &q) || !take_heads(n, 1, &k))
        return SAC_OK;
    struct heads *a = q.x[0] < k.x[0] ? &q : &k, *b = a == &q ? &k : &q;
    const int64_t first = a->x[HEADS] * a->x[NUMBERS], wide = first + b->x[HEADS] * b->x[NUMBERS];
    if (!follow(a, b) || !is_of_heads(a->norm) || !is_of_heads(b->norm) || !widen(a, 0, wide) ||
        !widen(b, first, wide))
        return SAC_OK;
    *changed = true;
    return join(g, a, b);
}

const struct sac_pass sac_pass_norm_pair = {"norm-pair", visit};
