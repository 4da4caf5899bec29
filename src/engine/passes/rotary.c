/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary position embeddings as exporters spell them, x cos + turned(x) sin, where x is turned by
 * Slices, Neg and Concat, of halves or of pairs, perhaps of a part of each head or behind some
 * tokens that have no position, are one FusedRotary with its tables. What they compute is found
 * and not how it is spelled (rotary_terms.h). rotary_heads.c then reads the heads where they lie.
 */
#include <string.h>

#include "engine/ops/util.h"
#include "engine/passes/rotary_terms.h"

enum {
    SIZE_MAX_HEAD = 256,
    CANDIDATES = 32,
    PARTS_MAX = 4,      /* of the tokens */
    TABLE_MAX = 1 << 24 /* numbers of one that is made */
};
enum { COSINE, SINE, TABLES };

struct spelling {
    struct sac_value      *base;
    int64_t                size, half;
    struct sac_rotary_term term[TABLES][SIZE_MAX_HEAD]; /* sines: of the base's other number */
};

/* ---- what is computed ---- */

static bool same_dims(const struct sac_value *a, const struct sac_value *b)
{
    return a->rank == b->rank && a->dtype == SAC_F32 &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

/* The two terms of number i: of itself, and of the other of its pair. */
static bool take_terms(struct spelling *s, int64_t i, const struct sac_rotary_number *number)
{
    s->term[COSINE][i] = s->term[SINE][i] = (struct sac_rotary_term){.of = -1};
    for (int k = 0; k < number->count; k++) {
        struct sac_rotary_term *to = &s->term[number->term[k].of == i ? COSINE : SINE][i];
        if (to->of >= 0)
            return false;
        *to = number->term[k];
    }
    const int64_t other = s->term[SINE][i].of, apart = other > i ? other - i : i - other;
    if (other >= 0 && s->half == 0)
        s->half = apart;
    return other < 0 || apart == s->half;
}

/* Is each number's other in the same block, before or behind it? Where numbers are moved and
 * nothing is added to them, there is more to come. */
static bool are_pairs(const struct spelling *s)
{
    const int64_t block = 2 * s->half;
    bool          pairs = s->half > 0 && s->size % block == 0;
    for (int64_t i = 0; pairs && i < s->size; i++) {
        const int64_t other = s->term[SINE][i].of;
        pairs = other < 0 || (s->term[COSINE][i].of >= 0 &&
                              other == (i % block < s->half ? i + s->half : i - s->half));
    }
    return pairs;
}

static bool find_terms(struct spelling *s, const struct sac_value *v)
{
    struct sac_rotary_number number;
    for (int64_t i = 0; i < s->size; i++)
        if (!sac_rotary_number_of(s->base, v, i, &number) || !take_terms(s, i, &number))
            return false;
    return are_pairs(s);
}

/* The nearest value before v of which its lines are made. */
static bool find_base(struct spelling *s, const struct sac_value *v)
{
    struct sac_value       *seen[CANDIDATES];
    int                     count = 0, inputs;
    const struct sac_value *from = v;
    for (int next = 0;; from = seen[next++]) {
        const struct sac_node *n = from->data ? NULL : from->producer;
        if (from != v && !from->data && same_dims(from, v)) {
            *s = (struct spelling){.base = (struct sac_value *)from, .size = v->dims[v->rank - 1]};
            if (find_terms(s, v))
                return true;
        }
        for (int i = 0; n && sac_rotary_is_seen_through(n, &inputs) && i < inputs; i++)
            if (count < CANDIDATES && n->inputs[i])
                seen[count++] = n->inputs[i];
        if (next == count)
            return false;
    }
}

/* ---- tables ---- */

/* What number i of a table of the node is, but for the sign that it takes of it. */
static double factor_of(const struct spelling *s, int which, int64_t i)
{
    const struct sac_rotary_term *t = &s->term[which][i];
    if (t->of < 0)
        return 0;
    return which == SINE && i % (2 * s->half) < s->half ? -t->factor : t->factor;
}

/* The table that the spelling has, if the node can take it as it is. */
static struct sac_value *table_as_it_is(const struct spelling *s, int which)
{
    struct sac_value *table = s->term[which][0].table;
    bool              same = table && table->rank >= 1 && table->dims[table->rank - 1] == s->size;
    for (int64_t i = 0; same && i < s->size; i++) {
        const struct sac_rotary_term *t = &s->term[which][i];
        same = t->table == table && t->tail == 1 && t->at == i && factor_of(s, which, i) == 1;
    }
    return same ? table : NULL;
}

/* A table's dim beside the leading dim d of the base. */
static int64_t dim_beside(const struct sac_rotary_term *t, int lead, int d)
{
    const int own = d - (lead - (t->table->rank - t->tail));
    return own < 0 ? 1 : t->table->dims[own];
}

/* The dims of a table that is made of constants; false: not all are. */
static bool dims_of_table(const struct spelling *s, int which, int64_t *dims)
{
    const int lead = s->base->rank - 1;
    for (int d = 0; d < lead; d++)
        dims[d] = 1;
    dims[lead] = s->size;
    for (int64_t i = 0; i < s->size; i++) {
        const struct sac_rotary_term *t = &s->term[which][i];
        if (t->of < 0 || !t->table)
            continue;
        if (!sac_constant_floats(t->table))
            return false;
        for (int d = 0; d < lead; d++)
            dims[d] = SAC_MAX(dims[d], dim_beside(t, lead, d));
    }
    int64_t all = 1;
    for (int d = 0; d <= lead; d++)
        if ((all *= dims[d]) > TABLE_MAX)
            return false;
    return true;
}

/* The number of a term for a line of the table that is made. */
static double number_of_line(const struct sac_rotary_term *t, const int64_t *dims, int lead,
                             int64_t line)
{
    int64_t at = t->at, step = 1;
    if (!t->table)
        return 1;
    for (int d = t->table->rank - t->tail; d < t->table->rank; d++)
        step *= t->table->dims[d];
    for (int d = lead - 1; d >= 0; d--) {
        const int64_t own = dim_beside(t, lead, d), index = line % dims[d];
        line /= dims[d];
        at += own == 1 ? 0 : index * step;
        step *= own;
    }
    return sac_constant_floats(t->table)[at];
}

static struct sac_value *new_table(struct sac_graph *g, const struct spelling *s, int which,
                                   const int64_t *dims, sac_result *res)
{
    const int         lead = s->base->rank - 1;
    const int64_t     lines = sac_dims_product(lead, dims);
    float            *to;
    struct sac_value *made =
        sac_new_floats(g, which == COSINE ? "cosines" : "sines", lead + 1, dims, &to);
    if (!made)
        *res = SAC_ERR_MEMORY;
    for (int64_t line = 0; made && line < lines; line++)
        for (int64_t i = 0; i < s->size; i++) {
            const double factor = factor_of(s, which, i);
            *to++ = factor == 0
                        ? 0
                        : (float)(factor * number_of_line(&s->term[which][i], dims, lead, line));
        }
    return made;
}

/* NULL, with SAC_OK: the node has no such table. */
static struct sac_value *table_of(struct sac_graph *g, const struct spelling *s, int which,
                                  sac_result *res)
{
    int64_t           dims[SAC_RANK_MAX];
    struct sac_value *table = table_as_it_is(s, which);
    if (!table && dims_of_table(s, which, dims))
        table = new_table(g, s, which, dims, res);
    return sac_rotary_shared_table(g, table);
}

/* ---- the new node ---- */

static sac_result make(struct sac_graph *g, struct sac_node *n, struct sac_value *base,
                       struct sac_value *const *table, int64_t block)
{
    struct sac_node *made = sac_op_node(g, "saccade", "FusedRotary", 1 + TABLES, 1, n);
    if (!made)
        return SAC_ERR_MEMORY;
    made->inputs[0] = base;
    made->inputs[1 + COSINE] = table[COSINE];
    made->inputs[1 + SINE] = table[SINE];
    sac_result res = sac_node_set_int(g, made, "block", block);
    return res == SAC_OK ? sac_take_over(g, made, n) : res;
}

static sac_result find_lines(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct spelling s;
    sac_result      res = SAC_OK;
    if (!find_base(&s, n->outputs[0]))
        return SAC_OK;
    struct sac_value *table[TABLES] = {table_of(g, &s, COSINE, &res)};
    table[SINE] = table[COSINE] ? table_of(g, &s, SINE, &res) : NULL;
    if (!table[SINE])
        return res;
    *changed = true;
    return make(g, n, s.base, table, 2 * s.half);
}

/* ---- some tokens that are not turned ---- */

/* A stretch of an axis of the base, turned by tables or not. */
struct stretch {
    const struct sac_node *rotary; /* NULL: left as it is */
    int64_t                length;
};
struct stretches {
    struct sac_value *base;
    int               axis, count, turned; /* turned: one of them that is */
    int64_t           block;
    struct stretch    part[PARTS_MAX];
};

static struct sac_value *base_of(const struct sac_value *v)
{
    return sac_made_by(v, "Slice") || sac_made_by(v, "Split") ? v->producer->inputs[0] : NULL;
}

/* What is concatenated are all stretches of one value, in their order. */
static bool find_stretches(struct stretches *s, const struct sac_node *n)
{
    int64_t end = 0;
    *s = (struct stretches){.turned = -1};
    if (n->input_count < 2 || n->input_count > PARTS_MAX ||
        !sac_axis_normalise(sac_attr_int(n, "axis", 0), n->outputs[0]->rank, &s->axis))
        return false;
    for (int i = 0; i < n->input_count; i++) {
        const struct sac_value *v = n->inputs[i];
        const struct sac_node  *rotary =
            v && v->producer && sac_is_fused(v->producer, "FusedRotary") ? v->producer : NULL;
        struct sac_part part;
        const int64_t   block = rotary ? sac_attr_int(rotary, "block", 0) : s->block;
        if (rotary && (sac_node_attr(rotary, "x") || (s->turned >= 0 && s->block != block)))
            return false;
        v = rotary ? rotary->inputs[0] : v;
        struct sac_value *base = v && !v->data ? base_of(v) : NULL;
        if (!base || (s->base && base != s->base) || v->rank != n->outputs[0]->rank ||
            !sac_part_along(v, s->axis, &part) || part.begin != end)
            return false;
        end = part.end;
        s->base = base;
        s->block = block;
        s->turned = rotary ? i : s->turned;
        s->part[s->count++] = (struct stretch){rotary, part.end - part.begin};
    }
    return s->turned >= 0 && s->axis < s->base->rank - 1 && end == s->base->dims[s->axis];
}

/* The tables of a stretch that is turned have no other dims than those of the others. */
static bool dims_of_whole(const struct stretches *s, int which, int64_t *dims)
{
    const int rank = s->base->rank;
    int64_t   all = 1;
    for (int d = 0; d < rank; d++)
        dims[d] = d == s->axis || d == rank - 1 ? s->base->dims[d] : 1;
    for (int i = 0; i < s->count; i++) {
        const struct sac_node  *n = s->part[i].rotary;
        const struct sac_value *t = n ? n->inputs[1 + which] : NULL;
        if (n && !sac_constant_floats(t))
            return false;
        for (int d = 0; n && d < t->rank; d++)
            if (d + rank - t->rank != s->axis)
                dims[d + rank - t->rank] = SAC_MAX(dims[d + rank - t->rank], t->dims[d]);
    }
    for (int d = 0; d < rank; d++)
        if (dims[d] <= 0 || (all *= dims[d]) > TABLE_MAX)
            return false;
    return true;
}

static float number_of_stretch(const struct stretches *s, int which, const int64_t *index)
{
    int64_t token = index[s->axis], at = 0, step = 1;
    int     i = 0;
    for (; token >= s->part[i].length; i++)
        token -= s->part[i].length;
    if (!s->part[i].rotary)
        return which == COSINE;
    const struct sac_value *t = s->part[i].rotary->inputs[1 + which];
    for (int d = t->rank - 1; d >= 0; d--) {
        const int of = d + s->base->rank - t->rank;
        at += t->dims[d] == 1 ? 0 : (of == s->axis ? token : index[of]) * step;
        step *= t->dims[d];
    }
    return sac_constant_floats(t)[at];
}

static struct sac_value *whole_table(struct sac_graph *g, const struct stretches *s, int which,
                                     const int64_t *dims)
{
    const int         rank = s->base->rank;
    float            *to;
    struct sac_value *made = sac_new_floats(g, "table", rank, dims, &to);
    for (int64_t i = 0, count = made ? sac_value_elements(made) : 0; i < count; i++) {
        int64_t index[SAC_RANK_MAX], rest = i;
        for (int d = rank - 1; d >= 0; d--) {
            index[d] = rest % dims[d];
            rest /= dims[d];
        }
        to[i] = number_of_stretch(s, which, index);
    }
    return sac_rotary_shared_table(g, made);
}

/* ---- such tables where they are computed ---- */

/* The axis of a table that has a line for each token of its stretch; -1: it has not. */
static int tokens_of(const struct stretches *s, const struct stretch *part,
                     const struct sac_value *table)
{
    const int axis = s->axis - (s->base->rank - table->rank);
    for (int d = 0; d < table->rank; d++)
        if (table->dims[d] <= 0)
            return -1;
    return axis >= 0 && table->dims[axis] == part->length ? axis : -1;
}

/* Ones or zeros for a stretch that is not turned, beside the tables of another. */
static struct sac_value *still_table(struct sac_graph *g, const struct sac_value *like, int axis,
                                     int64_t length, float number)
{
    int64_t dims[SAC_RANK_MAX];
    float  *to;
    memcpy(dims, like->dims, sizeof dims);
    dims[axis] = length;
    struct sac_value *made = sac_new_floats(g, "still", like->rank, dims, &to);
    for (int64_t i = 0, count = made ? sac_value_elements(made) : 0; i < count; i++)
        to[i] = number;
    return made;
}

/* A Concat of such a table with constants of one number, as another layer has made it. */
static struct sac_value *joined_before(const struct sac_value *table, int axis, int parts,
                                       int place, struct sac_value *const *part)
{
    int own;
    for (size_t i = 0; i < table->reader_count; i++) {
        const struct sac_node *n = table->readers[i];
        bool same = sac_is(n, "Concat") && n->input_count == parts && n->inputs[place] == table &&
                    n->output_count == 1 && n->outputs[0] &&
                    sac_axis_normalise(sac_attr_int(n, "axis", 0), table->rank, &own) &&
                    own == axis;
        for (int k = 0; same && k < parts; k++)
            same = k == place || sac_rotary_same_constant(n->inputs[k], part[k]);
        if (same)
            return n->outputs[0];
    }
    return NULL;
}

/* One computed table, and constants for the tokens that are not turned. NULL with SAC_OK: it is
 * broadcast over the tokens, or there are several. */
static struct sac_value *joined_table(struct sac_graph *g, const struct sac_node *like,
                                      const struct stretches *s, int which, sac_result *res)
{
    struct sac_value *part[PARTS_MAX], *table = s->part[s->turned].rotary->inputs[1 + which];
    const int         axis = tokens_of(s, &s->part[s->turned], table);
    if (axis < 0)
        return NULL;
    for (int i = 0; i < s->count; i++) {
        if (i != s->turned && s->part[i].rotary)
            return NULL;
        part[i] = i == s->turned ? table
                                 : still_table(g, table, axis, s->part[i].length, which == COSINE);
    }
    struct sac_value *made = joined_before(table, axis, s->count, s->turned, part);
    if (made)
        return made;
    made = sac_made_of(g, like, "Concat", s->count, part, res);
    if (!made)
        return NULL;
    made->dims[axis] = s->base->dims[s->axis];
    *res = sac_node_set_int(g, made->producer, "axis", axis);
    return made;
}

static sac_result join_stretches(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct stretches  s;
    sac_result        res = SAC_OK;
    struct sac_value *table[TABLES] = {NULL};
    int64_t           dims[SAC_RANK_MAX];
    if (!find_stretches(&s, n))
        return SAC_OK;
    for (int which = 0; which < TABLES && res == SAC_OK; which++) {
        table[which] = dims_of_whole(&s, which, dims) ? whole_table(g, &s, which, dims)
                                                      : joined_table(g, n, &s, which, &res);
        if (!table[which])
            return res;
    }
    *changed = true;
    return res == SAC_OK ? make(g, n, s.base, table, s.block) : res;
}

/* ---- where to look ---- */

/* A sum of products, or parts that are put together: what a spelling may end with. */
static bool may_end(const struct sac_node *n)
{
    if (sac_is(n, "Add") || sac_is(n, "Sub"))
        return sac_made_by(n->inputs[0], "Mul") && sac_made_by(n->inputs[1], "Mul");
    return sac_is(n, "Concat") || sac_made_by(n->inputs[0], "Concat");
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    int                     inputs;
    const struct sac_value *v = n->output_count == 1 ? n->outputs[0] : NULL;
    if (!v || v->dtype != SAC_F32 || v->rank < 1 || v->data || n->input_count < 1 ||
        !n->inputs[0] || !sac_rotary_is_seen_through(n, &inputs) ||
        sac_is_fused(n, "FusedRotary") || (inputs > 1 && !n->inputs[1]) || !may_end(n))
        return SAC_OK;
    const int64_t size = v->dims[v->rank - 1];
    if (size < 2 || size > SIZE_MAX_HEAD || size % 2 != 0)
        return SAC_OK;
    sac_result res = find_lines(g, n, changed);
    if (res == SAC_OK && !*changed && sac_is(n, "Concat"))
        res = join_stretches(g, n, changed);
    return res;
}

const struct sac_pass sac_pass_rotary = {"rotary", visit, NULL};
