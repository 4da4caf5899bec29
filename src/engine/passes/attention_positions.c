/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/passes/attention_positions.h"

#include "engine/passes/heads.h"
#include "engine/passes/skew.h"

enum { DEPTH_MAX = 8 }; /* sums and Reshapes of a sum */

/* The dim of v that is broadcast along dim d of the scores. */
static int64_t dim_beside(const struct sac_value *v, const struct sac_value *scores, int d)
{
    const int own = d - (scores->rank - v->rank);
    return own >= 0 ? v->dims[own] : 1;
}

/* Has v the dims of the scores but for the last two, of which the first alone may be open? */
static bool has_queries(const struct sac_value *v, const struct sac_value *scores)
{
    bool has = v->rank <= scores->rank && !v->data && v->dtype == SAC_F32;
    for (int d = 0; has && d < scores->rank - 2; d++)
        has = dim_beside(v, scores, d) == scores->dims[d] &&
              (scores->dims[d] > 0 || (d == 0 && scores->dims[0] == SAC_DIM_OPEN));
    return has;
}

/* v as numbers of rows or of columns. */
static bool add_part(struct sac_positions *p, struct sac_value *v, const struct sac_value *scores)
{
    const int rank = scores->rank;
    if (rank < 3 || !has_queries(v, scores))
        return false;
    const int64_t rows = scores->dims[rank - 2], columns = scores->dims[rank - 1],
                  own_rows = dim_beside(v, scores, rank - 2),
                  own_columns = dim_beside(v, scores, rank - 1);
    const bool         by_row = own_rows == rows && own_columns == 1;
    struct sac_value **part = by_row ? &p->row : &p->column;
    if (rows < 2 || columns < 2 || rows > p->keys || columns > p->keys ||
        rows * columns != p->keys || (p->rows && p->rows != rows) || *part ||
        (!by_row && (own_rows != 1 || own_columns != columns)))
        return false;
    p->rows = rows;
    p->columns = columns;
    *part = v;
    return true;
}

static bool add_some(struct sac_positions *p, struct sac_value *v, const struct sac_value *scores,
                     int depth)
{
    const struct sac_node *n = v->producer;
    if (add_part(p, v, scores))
        return true;
    if (depth == DEPTH_MAX || !n || !sac_same_shape(v, scores))
        return false;
    if (sac_is(n, "Add"))
        return add_some(p, n->inputs[0], v, depth + 1) && add_some(p, n->inputs[1], v, depth + 1);
    if (sac_is(n, "Expand") && sac_node_input(n, 0))
        return add_part(p, n->inputs[0], v);
    return (sac_is_reshape(n) || sac_same_dtype(n)) &&
           add_some(p, n->inputs[0], n->inputs[0], depth + 1);
}

bool sac_positions_add(struct sac_positions *p, struct sac_value *what,
                       const struct sac_value *scores)
{
    return add_some(p, what, scores, 0);
}

/* ---- numbers relative to the query's place ---- */

/* The skew that v shows, with nothing but its dims in another order. Lines of all samples are
 * counted together where they are skewed; the view is of what a Reshape makes of that, whose open
 * dim is the batch. */
static bool find_skew(struct sac_value *v, struct sac_skew *skew, struct sac_strided *view)
{
    static const char *const parts[] = {"Gather", "Slice", "Split"}; /* not all of the skewed */
    struct sac_value        *end = v, *behind = NULL;
    for (int depth = 0; depth < DEPTH_MAX && end; depth++) {
        if (sac_skew_of(skew, end)) {
            const bool reshaped = behind && sac_is_reshape(behind->producer);
            return sac_strided_from(view, v, depth - reshaped) && view->offset == 0 &&
                   view->scale == 1;
        }
        if (sac_is_any(end->producer, parts, SAC_COUNT(parts)))
            return false;
        behind = end;
        end = sac_strided_before(end);
    }
    return false;
}

static bool lies_as(const struct sac_strided *s, const int64_t step[SAC_VIEW_RANK])
{
    bool fits = true;
    for (int d = 0; d < SAC_VIEW_RANK; d++)
        fits &= s->dim[d] == 1 || s->step[d] == step[d];
    return fits;
}

/* A query's numbers for all relative places. Those for columns are skewed by the query's own
 * column, so its lines are the queries' columns; those for rows by its row, and lines of rows
 * stand column by column. */
static struct sac_value *unskewed(struct sac_graph *g, const struct sac_node *like,
                                  struct sac_positions *p, struct sac_value *v, bool by_row,
                                  const struct sac_strided *q, sac_result *res)
{
    static const int64_t swap[] = {0, 2, 1, 3};
    struct sac_skew      skew;
    struct sac_strided   s;
    const int64_t        tokens = q->dim[SAC_TOKEN];
    if (!find_skew(v, &skew, &s) || skew.columns != (by_row ? p->rows : p->columns) ||
        tokens % skew.lines != 0)
        return NULL;
    const int64_t lines = skew.lines, others = tokens / lines, line = skew.columns,
                  columns = by_row ? others : lines,
                  step[2][SAC_VIEW_RANK] = {{tokens * line, lines * line, line, 1},
                                            {tokens * line, line, lines * line, 1}};
    int64_t all = 1, dims[] = {1, by_row ? lines : others, by_row ? others : lines, line};
    for (int d = 0; d < s.rank; d++)
        all *= sac_strided_dim(&s, d);
    dims[0] = all / (tokens * line);
    if ((p->query_columns && p->query_columns != columns) ||
        !sac_strided_reshape(&s, SAC_VIEW_RANK, dims) || !sac_strided_settle(&s) ||
        !lies_as(&s, step[by_row]))
        return NULL;
    *(by_row ? &p->row_from : &p->column_from) = skew.from;
    p->query_columns = columns;
    const int64_t     lying[] = {sac_strided_value_dim(dims[0]), others, lines, skew.numbers};
    struct sac_value *x = sac_reshaped(g, like, skew.x, SAC_VIEW_RANK, lying, res);
    return x && by_row ? sac_transposed(g, like, x, swap, res) : x;
}

/* ---- views ---- */

/* As a value of four dims, so that no open dim counts batches and heads together. */
static struct sac_value *of_heads(struct sac_graph *g, const struct sac_node *like,
                                  struct sac_value *part, int64_t numbers,
                                  const struct sac_strided *q, sac_result *res)
{
    int64_t dims[] = {0, q->dim[SAC_HEAD], q->dim[SAC_TOKEN], numbers};
    bool    open;
    if (!sac_strided_entry(q->dim[SAC_BATCH], &dims[0], &open))
        return NULL;
    dims[0] = open ? SAC_DIM_OPEN : dims[0];
    return sac_reshaped(g, like, part, SAC_VIEW_RANK, dims, res);
}

static bool view_part(struct sac_graph *g, const struct sac_node *like, struct sac_value *part,
                      int64_t numbers, const struct sac_strided *q, struct sac_strided *out,
                      sac_result *res)
{
    struct sac_value *v = of_heads(g, like, part, numbers, q, res);
    return v && sac_strided_dense(out, v) && sac_strided_settle(out);
}

/* The numbers before they are skewed, read where they lie. */
static bool view_unskewed(struct sac_graph *g, const struct sac_node *like, struct sac_positions *p,
                          bool by_row, const struct sac_strided *q, sac_result *res)
{
    struct sac_value   *part = by_row ? p->row : p->column;
    struct sac_strided *out = by_row ? &p->row_view : &p->column_view;
    if (!part)
        return true;
    struct sac_value *v = unskewed(g, like, p, part, by_row, q, res);
    v = v ? of_heads(g, like, v, v->dims[SAC_VIEW_RANK - 1], q, res) : NULL;
    return v && sac_heads_operand(out, v, v, false, false, q, NULL);
}

bool sac_positions_views(struct sac_graph *g, const struct sac_node *like, struct sac_positions *p,
                         const struct sac_strided *q, sac_result *res)
{
    if (view_unskewed(g, like, p, true, q, res) && view_unskewed(g, like, p, false, q, res))
        return true;
    p->query_columns = 0;
    return *res == SAC_OK &&
           (!p->row || view_part(g, like, p->row, p->rows, q, &p->row_view, res)) &&
           (!p->column || view_part(g, like, p->column, p->columns, q, &p->column_view, res));
}
