/* SPDX-License-Identifier: Apache-2.0 */
/* A FusedRotary reads its heads where the product, or the norm, before them wrote them, and writes
 * them in that order: the Transposes and Splits between them are done behind it, where attention
 * sees through them. */
#include <string.h>

#include "engine/passes/heads.h"
#include "engine/passes/rotary_terms.h"

enum { COSINE = 1, SINE, TABLES_END };

/* [batch,head,token,number], or tokens before heads where they lie so. */
struct lying {
    struct sac_strided view;
    bool               turned; /* tokens before heads */
};

/* ---- the view ---- */

/* Four dims of what x, of up to four, sees of what lies `depth` nodes before it. */
static bool see(struct sac_strided *s, struct sac_value *x, int depth)
{
    int64_t   entry[SAC_VIEW_ENTRIES], bits, dims[SAC_VIEW_RANK] = {1, 1, 1, 1};
    const int more = SAC_VIEW_RANK - x->rank;
    if (!sac_strided_from(s, x, depth) || s->base->data)
        return false;
    for (int d = 0; d < x->rank; d++)
        dims[more + d] = sac_strided_dim(s, d);
    bool fits = sac_strided_reshape(s, SAC_VIEW_RANK, dims) && sac_strided_settle(s) &&
                s->step[SAC_NUMBER] == 1 && sac_strided_entries(s, entry, &bits);
    for (int d = 0; fits && d < SAC_NUMBER; d++)
        fits = s->dim[d] == 1 || s->step[d] > 0;
    return fits;
}

static bool find_view(struct sac_value *x, struct lying *l)
{
    int far = 0;
    for (const struct sac_value *v = sac_strided_before(x); v && far < SAC_HEADS_DEPTH; far++)
        v = sac_strided_before(v);
    for (int depth = far; depth > 0; depth--)
        if (see(&l->view, x, depth)) {
            l->turned = l->view.step[SAC_HEAD] < l->view.step[SAC_TOKEN];
            return true;
        }
    return false;
}

/* ---- tables beside it ---- */

static bool table_dims(const struct sac_value *t, int64_t *dims)
{
    bool known = t->rank <= SAC_VIEW_RANK;
    for (int d = 0; d < SAC_VIEW_RANK; d++) {
        const int own = d - (SAC_VIEW_RANK - t->rank);
        dims[d] = !known || own < 0 ? 1 : t->dims[own];
    }
    return known;
}

static struct sac_value *turned_constant(struct sac_graph *g, const struct sac_value *t,
                                         const int64_t *dims, sac_result *res)
{
    const int64_t heads = dims[SAC_HEAD], tokens = dims[SAC_TOKEN], numbers = dims[SAC_NUMBER],
                  turned[] = {dims[SAC_BATCH], tokens, heads, numbers};
    const float      *from = sac_constant_floats(t);
    float            *to;
    struct sac_value *made = sac_new_floats(g, t->name, SAC_VIEW_RANK, turned, &to);
    if (!made)
        *res = SAC_ERR_MEMORY;
    for (int64_t b = 0; made && b < dims[SAC_BATCH]; b++)
        for (int64_t i = 0; i < tokens; i++)
            for (int64_t h = 0; h < heads; h++, to += numbers)
                memcpy(to, from + ((b * heads + h) * tokens + i) * numbers,
                       (size_t)numbers * sizeof *to);
    return sac_rotary_shared_table(g, made);
}

static int open_dims(const struct sac_value *v)
{
    int open = 0;
    for (int d = 0; d < v->rank; d++)
        open += v->dims[d] == SAC_DIM_OPEN;
    return open;
}

/* A Reshape of the table that was made before. */
static struct sac_value *turned_before(const struct sac_value *t, const int64_t *dims)
{
    for (size_t i = 0; i < t->reader_count; i++) {
        const struct sac_node *n = t->readers[i];
        if (sac_is(n, "Reshape") && n->outputs[0] && n->outputs[0]->rank == SAC_VIEW_RANK &&
            open_dims(n->outputs[0]) <= 1 &&
            memcmp(n->outputs[0]->dims, dims, SAC_VIEW_RANK * sizeof *dims) == 0)
            return n->outputs[0];
    }
    return NULL;
}

/* The table with tokens before heads; NULL with SAC_OK: it would have to be moved in each run. */
static struct sac_value *turned_table(struct sac_graph *g, const struct sac_node *like,
                                      struct sac_value *t, sac_result *res)
{
    int64_t dims[SAC_VIEW_RANK];
    if (!table_dims(t, dims))
        return NULL;
    if (dims[SAC_HEAD] == 1 && dims[SAC_TOKEN] == 1)
        return t;
    if (sac_constant_floats(t))
        return turned_constant(g, t, dims, res);
    if (dims[SAC_HEAD] != 1)
        return NULL;
    dims[SAC_HEAD] = dims[SAC_TOKEN];
    dims[SAC_TOKEN] = 1;
    struct sac_value *before = turned_before(t, dims);
    return before ? before : sac_reshaped(g, like, t, SAC_VIEW_RANK, dims, res);
}

/* ---- the node ---- */

static struct sac_node *make_node(struct sac_graph *g, const struct sac_node *n, struct lying *l,
                                  struct sac_value *const *table, sac_result *res)
{
    struct sac_node  *made = sac_op_node(g, "saccade", "FusedRotary", TABLES_END, 1, n);
    struct sac_value *y = made ? sac_value_like(g, n->outputs[0]) : NULL;
    if (!y) {
        *res = SAC_ERR_MEMORY;
        return NULL;
    }
    if (l->turned) {
        sac_strided_swap(&l->view, SAC_HEAD, SAC_TOKEN);
        sac_strided_settle(&l->view);
    }
    made->inputs[0] = l->view.base;
    made->inputs[COSINE] = table[COSINE];
    made->inputs[SINE] = table[SINE];
    *res = sac_copy_attrs(g, made, n);
    if (*res == SAC_OK)
        *res = sac_strided_set_view(g, made, "x", "x_open", &l->view);
    sac_strided_set_dims(&l->view, y);
    y->producer = made;
    made->outputs[0] = y;
    return *res == SAC_OK ? made : NULL;
}

/* What the node made, as its readers know it. */
static struct sac_value *as_before(struct sac_graph *g, const struct sac_node *n,
                                   const struct lying *l, struct sac_value *y, sac_result *res)
{
    static const int64_t    perm[] = {SAC_BATCH, SAC_TOKEN, SAC_HEAD, SAC_NUMBER};
    const struct sac_value *old = n->outputs[0];
    if (l->turned)
        y = sac_transposed(g, n, y, perm, res);
    if (y && old->rank != SAC_VIEW_RANK)
        y = sac_reshaped(g, n, y, old->rank, old->dims, res);
    if (!y || l->view.scale == 1)
        return y;
    struct sac_value *const in[] = {y, sac_new_number(g, (float)l->view.scale)};
    return sac_made_of(g, n, "Mul", 2, in, res);
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct lying      l;
    sac_result        res = SAC_OK;
    struct sac_value *table[TABLES_END] = {NULL};
    if (!sac_is_fused(n, "FusedRotary") || sac_node_attr(n, "x") || n->inputs[0]->data ||
        n->inputs[0]->rank < 2 || n->inputs[0]->rank > SAC_VIEW_RANK ||
        open_dims(n->inputs[0]) > 1 || !find_view(n->inputs[0], &l))
        return SAC_OK;
    for (int i = COSINE; i < TABLES_END; i++) {
        table[i] = l.turned ? turned_table(g, n, n->inputs[i], &res) : n->inputs[i];
        if (!table[i])
            return res;
    }
    struct sac_node  *made = make_node(g, n, &l, table, &res);
    struct sac_value *y = made ? as_before(g, n, &l, made->outputs[0], &res) : NULL;
    if (!y)
        return res;
    *changed = true;
    sac_graph_replace(g, n->outputs[0], y);
    return res;
}

const struct sac_pass sac_pass_rotary_heads = {"rotary-heads", visit, NULL};
