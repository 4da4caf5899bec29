/* SPDX-License-Identifier: Apache-2.0 */
/* An Einsum of two operands is a MatMul between Transposes and Reshapes: of the letters that both
 * have some are in the result (its batch) and some are summed; those that one has alone are rows or
 * columns. As a product it is fused, planned and computed like any other. */
#include <string.h>

#include "engine/ops/reads.h"
#include "engine/passes/pass.h"

/* Letters and their dims, in the order in which they lie side by side. */
struct letters {
    int     count;
    char    label[SAC_RANK_MAX];
    int64_t dim[SAC_RANK_MAX];
};

/* left rows x summed times summed x right columns, for each of `both`. */
struct product {
    struct sac_value *left, *right;
    struct sac_term   left_term, right_term, out;
    struct letters    both, rows, summed, columns;
};

static int find(const struct sac_term *t, char label)
{
    for (int i = 0; i < t->count; i++)
        if (t->labels[i] == label)
            return i;
    return -1;
}

static bool has_twice(const struct sac_term *t)
{
    for (int i = 0; i < t->count; i++)
        if (find(t, t->labels[i]) != i)
            return true;
    return false;
}

static void add(struct letters *l, char label, int64_t dim)
{
    l->label[l->count] = label;
    l->dim[l->count++] = dim;
}

/* ---- what it computes ---- */

static bool read_terms(const struct sac_graph *g, const struct sac_node *n, struct sac_einsum *e)
{
    struct sac_op_call c = {.ctx = g->ctx, .node = n, .in_count = n->input_count};
    for (int i = 0; i < n->input_count; i++) {
        c.in[i].rank = n->inputs[i]->rank;
        for (int d = 0; d < c.in[i].rank; d++) /* an open dim fits all */
            c.in[i].dims[d] = n->inputs[i]->dims[d] < 0 ? 1 : n->inputs[i]->dims[d];
    }
    return sac_einsum_parse(&c, e) == SAC_OK;
}

/* The operand that has the result's first letter of its own goes left, so that rows come first. */
static void choose_sides(const struct sac_node *n, const struct sac_einsum *e, struct product *p)
{
    int left = 0;
    for (int i = 0; i < e->out.count; i++) {
        const bool first = find(&e->in[0], e->out.labels[i]) >= 0,
                   second = find(&e->in[1], e->out.labels[i]) >= 0;
        if (first == second)
            continue;
        left = second;
        break;
    }
    p->left = n->inputs[left];
    p->right = n->inputs[1 - left];
    p->left_term = e->in[left];
    p->right_term = e->in[1 - left];
    p->out = e->out;
}

/* False: a letter is summed over one operand alone, or stretched, or nothing is summed, or more
 * dims would lie beside each other than a value has. Two open dims of one letter count as the same:
 * a file whose runs stretch one of them is refused then. */
static bool sort_letters(struct product *p)
{
    for (int i = 0; i < p->out.count; i++) {
        const char label = p->out.labels[i];
        const int  l = find(&p->left_term, label), r = find(&p->right_term, label);
        if (l >= 0 && r >= 0 && p->left->dims[l] != p->right->dims[r])
            return false;
        if (l >= 0)
            add(r >= 0 ? &p->both : &p->rows, label, p->left->dims[l]);
        else
            add(&p->columns, label, p->right->dims[r]);
    }
    for (int i = 0; i < p->left_term.count; i++) {
        const char label = p->left_term.labels[i];
        const int  r = find(&p->right_term, label);
        if (find(&p->out, label) >= 0)
            continue;
        if (r < 0 || p->left->dims[i] != p->right->dims[r])
            return false;
        add(&p->summed, label, p->left->dims[i]);
    }
    const int own = SAC_MAX(SAC_MAX(p->rows.count, p->columns.count), 1);
    return p->summed.count > 0 && p->both.count + own + p->summed.count <= SAC_RANK_MAX &&
           p->right_term.count == p->both.count + p->summed.count + p->columns.count;
}

/* ---- the nodes ---- */

/* The dims of letters as one; -1: open. */
static int64_t merged(const struct letters *l)
{
    int64_t dim = 1;
    for (int i = 0; i < l->count; i++) {
        if (l->dim[i] == SAC_DIM_OPEN)
            return SAC_DIM_OPEN;
        dim *= l->dim[i];
    }
    return dim;
}

/* v, whose dims are those of term, with those of parts one behind the other; a part that is
 * `merges` is one dim. */
static struct sac_value *arrange(struct sac_graph *g, const struct sac_node *like,
                                 struct sac_value *v, const struct sac_term *term,
                                 const struct letters *const *parts, const bool *merges,
                                 sac_result *res)
{
    int64_t perm[SAC_RANK_MAX], dims[SAC_RANK_MAX];
    int     count = 0, rank = 0;
    bool    turns = false, folds = false;
    for (int k = 0; k < 3; k++) {
        folds |= merges[k] && parts[k]->count != 1;
        for (int i = 0; i < parts[k]->count; i++) {
            perm[count] = find(term, parts[k]->label[i]);
            turns |= perm[count] != count;
            count++;
            if (!merges[k])
                dims[rank++] = parts[k]->dim[i];
        }
        if (merges[k])
            dims[rank++] = merged(parts[k]);
    }
    if (turns)
        v = sac_transposed(g, like, v, perm, res);
    return v && folds ? sac_reshaped(g, like, v, rank, dims, res) : v;
}

/* Its output holds batch, rows and columns; rows are merged where there is a batch. */
static struct sac_value *multiply(struct sac_graph *g, const struct sac_node *like,
                                  struct sac_value *left, struct sac_value *right, sac_result *res)
{
    struct sac_value *const in[] = {left, right};
    struct sac_value       *y = sac_made_of(g, like, "MatMul", 2, in, res);
    if (y)
        y->dims[y->rank - 1] = right->dims[right->rank - 1];
    return y;
}

/* The product's batch, rows and columns, in the order that is asked for; merges: some of
 * these are several letters as one dim. */
static struct sac_value *as_asked(struct sac_graph *g, const struct sac_node *like,
                                  const struct product *p, struct sac_value *y, bool merges,
                                  sac_result *res)
{
    struct sac_term             made = {0};
    struct letters              whole = {0}, asked = {0}, none = {0};
    const struct letters *const parts[] = {&p->both, &p->rows, &p->columns};
    const struct letters *const order[] = {&asked, &none, &none};
    const bool                  apart[] = {false, false, false};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < parts[k]->count; i++) {
            made.labels[made.count++] = parts[k]->label[i];
            add(&whole, parts[k]->label[i], parts[k]->dim[i]);
        }
    for (int i = 0; i < p->out.count; i++)
        add(&asked, p->out.labels[i], whole.dim[find(&made, p->out.labels[i])]);
    if (merges)
        y = sac_reshaped(g, like, y, whole.count, whole.dim, res);
    return y ? arrange(g, like, y, &made, order, apart, res) : NULL;
}

/* NULL, with SAC_OK: more than one dim would be open. */
static struct sac_value *make(struct sac_graph *g, const struct sac_node *like,
                              const struct product *p, sac_result *res)
{
    const struct letters *const of_left[] = {&p->both, &p->rows, &p->summed};
    const struct letters *const of_right[] = {&p->both, &p->summed, &p->columns};
    const bool                  rows = p->both.count > 0 || p->rows.count == 0; /* as one dim */
    const bool        merge_left[] = {false, rows, true}, merge_right[] = {false, true, true};
    struct sac_value *left = arrange(g, like, p->left, &p->left_term, of_left, merge_left, res);
    struct sac_value *right =
        left ? arrange(g, like, p->right, &p->right_term, of_right, merge_right, res) : NULL;
    struct sac_value *y = right ? multiply(g, like, left, right, res) : NULL;
    const bool        merges = (rows && p->rows.count != 1) || p->columns.count != 1;
    return y ? as_asked(g, like, p, y, merges, res) : NULL;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct sac_einsum e;
    struct product    p = {0};
    sac_result        res = SAC_OK;
    if (!sac_is(n, "Einsum") || n->input_count != 2 || n->outputs[0]->dtype != SAC_F32)
        return SAC_OK;
    if (!read_terms(g, n, &e) || has_twice(&e.in[0]) || has_twice(&e.in[1]))
        return SAC_OK;
    choose_sides(n, &e, &p);
    struct sac_value *y = sort_letters(&p) ? make(g, n, &p, &res) : NULL;
    if (!y)
        return res;
    sac_graph_replace(g, n->outputs[0], y);
    *changed = true;
    return res;
}

const struct sac_pass sac_pass_einsum = {"einsum", visit, NULL};
