/* SPDX-License-Identifier: Apache-2.0 */
/* Attention as exporters spell it, softmax(scale Q K^T + masks) V with the heads taken apart and
 * put together around it, is one FusedAttention, which reads and writes them where they lie. */
#include <string.h>

#include "engine/passes/attention_mask.h"
#include "engine/passes/attention_positions.h"
#include "engine/passes/heads.h"

enum {
    DEPTH_MAX = SAC_HEADS_DEPTH,
    ADDS_MAX = 4,
    /* Of a wider head the scores are small beside what they are made of, as where channels attend
     * to channels: nothing is saved, and kernels hold no such head. */
    WIDTH_MAX = 128,
};
enum { MASK = 3, ROWS, COLUMNS, INPUTS }; /* behind Q, K and V */
struct spelling {
    struct sac_node *scores, *mix; /* the two products */
    bool             turned;       /* mix is V^T P^T */
    double           scale;
    struct {
        struct sac_value *what, *scores; /* added, and the sum */
        double            factor;        /* of the scalings after it */
    } add[ADDS_MAX];
    int                  adds;
    struct sac_strided   q, k, v, y;
    int64_t              group; /* neighbouring heads with one head of keys and values */
    struct sac_value    *out, *mask;
    struct sac_positions positions;
    bool                 residual; /* queries are added to the result */
    struct sac_node *rounds; /* a QuantizeLinear of all by one scale between mix and out, or NULL */
};

/* ---- from the softmax on ---- */

/* Where(IsNaN(v), 0, v): what exporters add for a row with every key masked, which FusedAttention
 * makes zeros of. */
static struct sac_value *after_guard(const struct sac_value *v)
{
    float zero;
    for (size_t i = 0; v->uses == 2 && i < v->reader_count; i++) {
        const struct sac_node *n = v->readers[i], *is_nan;
        if (!sac_is(n, "Where") || sac_node_input(n, 2) != v)
            continue;
        is_nan = sac_made_by(n->inputs[0], "IsNaN");
        if (is_nan && is_nan->inputs[0] == v && is_nan->outputs[0]->uses == 1 &&
            sac_constant_scalar(n->inputs[1], &zero) && zero == 0 &&
            sac_same_shape(n->outputs[0], v))
            return n->outputs[0];
    }
    return NULL;
}

/* The product that mixes the values, which alone reads the shares v. */
static bool find_mix(struct sac_value *v, struct spelling *s)
{
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        struct sac_value *guarded = after_guard(v);
        struct sac_node  *n = guarded ? NULL : sac_value_only_reader(v);
        if (guarded) {
            v = guarded;
            continue;
        }
        if (sac_is(n, "MatMul") && n->input_count == 2 && n->inputs[s->turned] == v) {
            s->mix = n;
            return n->outputs[0]->rank >= 2;
        }
        if (!n || n->inputs[0] != v || (!sac_same_dtype(n) && !sac_turns_last_two(n)))
            return false;
        s->turned ^= sac_turns_last_two(n);
        v = n->outputs[0];
    }
    return false;
}

/* ---- back from the softmax ---- */

static bool only_reshapes(const struct sac_node *n)
{
    return sac_is(n, "Reshape") || sac_is(n, "Squeeze") || sac_is(n, "Unsqueeze");
}

/* Of what an Add adds, the scores: what a product makes, scaled, reshaped or added to before. */
static bool are_scores(const struct sac_value *v, int left)
{
    double factor;
    for (; v && v->uses == 1 && left > 0; left--) {
        const struct sac_node *n = v->producer;
        if (sac_is(n, "MatMul"))
            return !n->inputs[0]->data && !n->inputs[1]->data;
        if (sac_is(n, "Add"))
            return are_scores(n->inputs[0], left - 1) || are_scores(n->inputs[1], left - 1);
        v = n && (sac_same_dtype(n) || only_reshapes(n)) ? n->inputs[0] : sac_scaled(v, &factor);
    }
    return false;
}

/* The scores before an Add, which is noted. */
static struct sac_value *before_add(const struct sac_node *n, struct spelling *s)
{
    for (int i = 0; s->adds < ADDS_MAX && i < 2; i++) {
        struct sac_value *x = n->inputs[i], *what = n->inputs[1 - i];
        if (!x || !what || !sac_same_shape(x, n->outputs[0]) || !are_scores(x, DEPTH_MAX))
            continue;
        s->add[s->adds].what = what;
        s->add[s->adds].scores = n->outputs[0];
        s->add[s->adds++].factor = s->scale;
        return x;
    }
    return NULL;
}

static bool find_scores(struct sac_value *v, struct spelling *s)
{
    for (int depth = 0; v && v->uses == 1 && depth < DEPTH_MAX; depth++) {
        const struct sac_node *n = v->producer;
        double                 factor = 1;
        if (sac_is(n, "MatMul")) {
            s->scores = v->producer;
            return v->rank >= 2;
        }
        if (sac_is(n, "Add"))
            v = before_add(n, s);
        else
            v = n && (sac_same_dtype(n) || only_reshapes(n)) ? n->inputs[0]
                                                             : sac_scaled(v, &factor);
        s->scale *= factor;
    }
    return false;
}

/* ---- where the heads lie ---- */

static bool find_heads(struct spelling *s)
{
    struct sac_value *q = s->scores->inputs[0], *k = s->scores->inputs[1],
                     *shares = s->mix->inputs[s->turned], *v = s->mix->inputs[!s->turned];
    int64_t group;
    if (!sac_heads_leading(q, k) || !sac_heads_leading(shares, v) ||
        !sac_heads_operand(&s->q, q, q, false, false, NULL, NULL) ||
        !sac_heads_operand(&s->k, k, q, true, false, &s->q, &s->group) ||
        !sac_heads_operand(&s->v, v, shares, s->turned, false, &s->q, &group) ||
        group != s->group ||
        !sac_heads_result(&s->y, s->mix->outputs[0], s->turned, false, &s->q, &s->out, &s->rounds))
        return false;
    s->scale *= s->q.scale * s->k.scale;
    if (s->q.dim[SAC_NUMBER] > WIDTH_MAX || s->v.dim[SAC_NUMBER] > WIDTH_MAX)
        return false;
    return s->k.dim[SAC_NUMBER] == s->q.dim[SAC_NUMBER] &&
           s->v.dim[SAC_TOKEN] == s->k.dim[SAC_TOKEN] &&
           s->y.dim[SAC_TOKEN] == s->q.dim[SAC_TOKEN] &&
           s->y.dim[SAC_NUMBER] == s->v.dim[SAC_NUMBER] && s->v.scale == 1;
}

/* ---- masks ---- */

/* Are the scores, to which a mask is added, the product's, with heads of their own or, in the
 * product, counted with the batch? */
static bool are_of_heads(const struct spelling *s, const struct sac_value *scores)
{
    const struct sac_value *product = s->scores->outputs[0];
    if (product->rank == 4)
        return sac_same_shape(scores, product);
    return product->rank == 3 && scores->rank == 4 && scores->dims[1] == s->q.dim[SAC_HEAD] &&
           scores->dims[2] == product->dims[1] && scores->dims[3] == product->dims[2];
}

/* A mask that is computed is taken as it is: the only one, added last, of four dims. */
static bool computed_mask(struct spelling *s)
{
    struct sac_value       *m = s->add[0].what;
    const struct sac_value *scores = s->add[0].scores;
    if (s->adds != 1 || s->add[0].factor != 1 || m->rank != 4 || m->dtype != SAC_F32 ||
        !are_of_heads(s, scores) || m->dims[3] <= 0 || m->dims[3] != scores->dims[3])
        return false;
    for (int d = 0; d < 3; d++)
        if (m->dims[d] != 1 && (m->dims[d] != scores->dims[d] || (d > 0 && m->dims[d] <= 0)))
            return false;
    s->mask = m;
    return true;
}

static bool is_known(int64_t dim, int64_t *number)
{
    bool open;
    return sac_strided_entry(dim, number, &open) && !open && *number > 0;
}

/* All that is added may be relative positions. */
static bool find_positions(struct sac_graph *g, struct spelling *s, sac_result *res)
{
    struct sac_positions p = {0};
    int64_t              number;
    bool fits = is_known(s->q.dim[SAC_HEAD], &number) && is_known(s->q.dim[SAC_TOKEN], &number) &&
                is_known(s->k.dim[SAC_TOKEN], &p.keys);
    for (int i = 0; fits && i < s->adds; i++)
        fits = s->add[i].factor == 1 && sac_positions_add(&p, s->add[i].what, s->add[i].scores);
    if (!fits || !sac_positions_views(g, s->mix, &p, &s->q, res))
        return false;
    s->positions = p;
    return true;
}

/* False: nothing changes, or with a result that is not SAC_OK. */
static bool find_mask(struct sac_graph *g, struct spelling *s, sac_result *res)
{
    struct sac_mask_sum sum = {
        .heads = s->q.dim[SAC_HEAD], .queries = s->q.dim[SAC_TOKEN], .keys = s->k.dim[SAC_TOKEN]};
    int64_t number;
    bool    fits = true;
    if (s->adds == 0 || find_positions(g, s, res) || (!s->add[0].what->data && computed_mask(s)))
        return *res == SAC_OK;
    if (!is_known(sum.heads, &number) || !is_known(sum.queries, &number) ||
        !is_known(sum.keys, &number))
        return false;
    for (int i = 0; fits && i < s->adds; i++)
        fits = sac_mask_add(&sum, s->add[i].what, s->add[i].scores, s->add[i].factor);
    if (fits)
        *res = sac_mask_value(g, &sum, &s->mask);
    sac_mask_finish(&sum);
    return fits && *res == SAC_OK;
}

/* ---- a residual ---- */

/* Are these the queries, not scaled, as attention reads them? */
static bool are_queries(const struct spelling *s, struct sac_value *v)
{
    struct sac_strided t;
    int                far = 0;
    for (const struct sac_value *w = v; far < DEPTH_MAX && (w = sac_strided_before(w));)
        far++;
    for (int depth = far; depth >= 0; depth--)
        if (sac_strided_from(&t, v, depth) && t.base == s->q.base && t.scale == 1 &&
            sac_heads_shape(&t, false, &s->q, NULL) && t.offset == s->q.offset &&
            memcmp(t.dim, s->q.dim, SAC_VIEW_RANK * sizeof *t.dim) == 0 &&
            memcmp(t.step, s->q.step, SAC_VIEW_RANK * sizeof *t.step) == 0)
            return true;
    return false;
}

/* Attention that pools its queries adds these to its result (MViTv2). */
static void find_residual(struct spelling *s)
{
    struct sac_value  *y = s->mix->outputs[0], *out;
    struct sac_node   *n = sac_value_only_reader(y);
    struct sac_strided view;
    if (s->mask || s->turned || !sac_is(n, "Add") || s->out != y ||
        s->v.dim[SAC_NUMBER] != s->q.dim[SAC_NUMBER] || !sac_same_shape(y, n->outputs[0]))
        return;
    struct sac_value *beside = sac_other_input(n, y);
    if (!beside || !sac_same_shape(beside, y) || !are_queries(s, beside) ||
        !sac_heads_result(&view, n->outputs[0], false, false, &s->q, &out, NULL) ||
        memcmp(view.dim, s->y.dim, SAC_VIEW_RANK * sizeof *view.dim) != 0)
        return;
    s->y = view;
    s->out = out;
    s->residual = true;
}

/* ---- the new node ---- */

/* n's result in float32, and in 8 bits what reads the spelling's. */
static sac_result round_behind(struct sac_graph *g, const struct spelling *s, struct sac_node *n)
{
    const struct sac_node *old = s->rounds;
    struct sac_node       *made = sac_op_node(g, "", old->op_type, old->input_count, 1, old);
    if (!made || !(n->outputs[0] = sac_value_like(g, s->out)) ||
        sac_copy_attrs(g, made, old) != SAC_OK)
        return SAC_ERR_MEMORY;
    n->outputs[0]->dtype = SAC_F32;
    n->outputs[0]->producer = n;
    for (int i = 0; i < old->input_count; i++)
        made->inputs[i] = i == 0 ? n->outputs[0] : old->inputs[i];
    return sac_take_over(g, made, s->out->producer);
}

static sac_result set_positions(struct sac_graph *g, struct sac_node *n,
                                const struct sac_positions *p)
{
    sac_result res = SAC_OK;
    n->inputs[ROWS] = p->row_view.base;
    n->inputs[COLUMNS] = p->column_view.base;
    if (p->row)
        res = sac_strided_set_view(g, n, "rows", "rows_open", &p->row_view);
    if (res == SAC_OK && p->column)
        res = sac_strided_set_view(g, n, "columns", "columns_open", &p->column_view);
    const int64_t relative[] = {p->rows, p->columns, p->query_columns, p->row_from, p->column_from};
    if (res == SAC_OK && p->query_columns)
        res = sac_node_set_ints(g, n, "relative", relative, SAC_COUNT(relative));
    return res;
}

static sac_result make(struct sac_graph *g, const struct spelling *s)
{
    const int        inputs = s->positions.keys ? INPUTS : s->mask ? MASK + 1 : MASK;
    struct sac_node *n = sac_op_node(g, "saccade", "FusedAttention", inputs, 1, s->mix);
    if (!n)
        return SAC_ERR_MEMORY;
    n->inputs[0] = s->q.base;
    n->inputs[1] = s->k.base;
    n->inputs[2] = s->v.base;
    if (s->mask)
        n->inputs[MASK] = s->mask;
    sac_result res = sac_strided_set_view(g, n, "q", "q_open", &s->q);
    if (res == SAC_OK)
        res = sac_strided_set_view(g, n, "k", "k_open", &s->k);
    if (res == SAC_OK)
        res = sac_strided_set_view(g, n, "v", "v_open", &s->v);
    if (res == SAC_OK)
        res = sac_strided_set_view(g, n, "y", "y_open", &s->y);
    if (res == SAC_OK && s->positions.keys)
        res = set_positions(g, n, &s->positions);
    if (res == SAC_OK)
        res = sac_node_set_float(g, n, "scale", (float)s->scale);
    if (res == SAC_OK && s->residual)
        res = sac_node_set_int(g, n, "residual", 1);
    if (res == SAC_OK && s->group > 1)
        res = sac_node_set_int(g, n, "group", s->group);
    if (res == SAC_OK)
        res = sac_node_set_ints(g, n, "shape", s->out->dims, (size_t)s->out->rank);
    if (res == SAC_OK && s->rounds)
        return round_behind(g, s, n);
    return res == SAC_OK ? sac_take_over(g, n, s->out->producer) : res;
}

static bool along_last_axis(const struct sac_node *n)
{
    const int rank = n->inputs[0]->rank;
    int       axis;
    return n->inputs[0]->dtype == SAC_F32 && sac_softmax_axis(n, rank, &axis) && axis == rank - 1;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct spelling s = {.scale = 1};
    sac_result      res = SAC_OK;
    if (!sac_is(n, "Softmax") || !along_last_axis(n) || !find_scores(n->inputs[0], &s) ||
        !find_mix(n->outputs[0], &s) || !find_heads(&s) || !find_mask(g, &s, &res))
        return res;
    find_residual(&s);
    *changed = true;
    return make(g, &s);
}

const struct sac_pass sac_pass_attention = {"attention", visit};
