/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/passes/attention_positions.h"

#include "engine/passes/heads.h"

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
    return (sac_is_reshape(n) || sac_same_dtype(n)) &&
           add_some(p, n->inputs[0], n->inputs[0], depth + 1);
}

bool sac_positions_add(struct sac_positions *p, struct sac_value *what,
                       const struct sac_value *scores)
{
    return add_some(p, what, scores, 0);
}

/* As a value of four dims, so that no open dim counts batches and heads together. */
static bool view_part(struct sac_graph *g, const struct sac_node *like, struct sac_value *part,
                      int64_t numbers, const struct sac_strided *q, struct sac_strided *out,
                      sac_result *res)
{
    int64_t dims[] = {0, q->dim[SAC_HEAD], q->dim[SAC_TOKEN], numbers};
    bool    open;
    if (!sac_strided_entry(q->dim[SAC_BATCH], &dims[0], &open))
        return false;
    dims[0] = open ? SAC_DIM_OPEN : dims[0];
    struct sac_value *v = sac_reshaped(g, like, part, SAC_VIEW_RANK, dims, res);
    return v && sac_strided_dense(out, v) && sac_strided_settle(out);
}

bool sac_positions_views(struct sac_graph *g, const struct sac_node *like, struct sac_positions *p,
                         const struct sac_strided *q, sac_result *res)
{
    return (!p->row || view_part(g, like, p->row, p->rows, q, &p->row_view, res)) &&
           (!p->column || view_part(g, like, p->column, p->columns, q, &p->column_view, res));
}
