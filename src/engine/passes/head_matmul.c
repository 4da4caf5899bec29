/* SPDX-License-Identifier: Apache-2.0 */
/* A product of two values that are computed, with the heads taken apart and put together around it
 * by Transposes, Splits and their like, is one HeadMatMul, which reads and writes them where they
 * lie: channels that attend to channels, talking heads, linear attention. What is one
 * FusedAttention is that by now. */
#include "engine/passes/heads.h"

/* Multiplications and additions for each number that is read or written, from which on the time is
 * the arithmetic's: kernels for dense matrices are faster then by more than the moves cost. */
enum { DENSE_WORK = 200 };

struct product {
    struct sac_node   *node;
    struct sac_strided a, b, y;
    struct sac_value  *out;
};

static bool moves(const struct sac_node *n)
{
    static const char *const types[] = {"Transpose", "Slice", "Split", "Gather"};
    return sac_is_any(n, types, SAC_COUNT(types));
}

/* Is a number moved from base to v? */
static bool is_moved(const struct sac_value *v, const struct sac_value *base)
{
    bool moved = false;
    for (; v && v != base; v = sac_strided_before(v))
        moved |= moves(v->producer);
    return moved;
}

static bool is_known(int64_t dim)
{
    int64_t each;
    bool    open;
    return sac_strided_entry(dim, &each, &open) && !open;
}

static bool is_dense_work(const struct product *p)
{
    const int64_t rows = p->y.dim[SAC_TOKEN], columns = p->y.dim[SAC_NUMBER],
                  depth = p->a.dim[SAC_NUMBER];
    if (!is_known(rows) || !is_known(columns) || !is_known(depth))
        return false;
    const double numbers = (double)rows * (double)depth + (double)depth * (double)columns +
                           (double)rows * (double)columns;
    return 2.0 * (double)rows * (double)columns * (double)depth > DENSE_WORK * numbers;
}

/* ---- rows of a map, each of which has its own matrix ---- */

/* b as a matrix for each of the leading dims, which all batches share. */
static bool read_shared(struct product *p, struct sac_value *b)
{
    int64_t entry[SAC_VIEW_ENTRIES], bits;
    int     far = 0;
    for (const struct sac_value *v = b; far < SAC_HEADS_DEPTH && (v = sac_strided_before(v));)
        far++;
    for (int depth = far; depth >= 0; depth--) {
        if (!sac_strided_from(&p->b, b, depth))
            continue;
        int64_t dims[] = {1, 1, sac_strided_dim(&p->b, b->rank - 2),
                          sac_strided_dim(&p->b, b->rank - 1)};
        for (int d = 0; d < b->rank - 2; d++)
            dims[SAC_HEAD] *= sac_strided_dim(&p->b, d);
        if (sac_strided_reshape(&p->b, SAC_VIEW_RANK, dims) && sac_strided_settle(&p->b) &&
            sac_strided_entries(&p->b, entry, &bits))
            return true;
    }
    return false;
}

/* Relative positions multiply the pixels of each row of a map by a matrix of their own: exporters
 * turn the map, so that the rows come first, and its rows of products back. Where its samples are
 * the batch, and its rows are heads, nothing is turned. */
static bool read_apart(struct sac_node *n, struct product *p)
{
    struct sac_value *a = n->inputs[0], *b = n->inputs[1], *y = n->outputs[0];
    int               far = 0;
    if (a->rank < 3 || a->rank != b->rank)
        return false;
    for (int d = 0; d < a->rank - 2; d++)
        if (a->dims[d] != b->dims[d])
            return false;
    for (const struct sac_value *v = a; far < SAC_HEADS_DEPTH && (v = sac_strided_before(v));)
        far++;
    for (int depth = far; depth > 0; depth--) {
        if (!sac_strided_from(&p->a, a, depth) || !is_moved(a, p->a.base))
            continue;
        const int64_t inner = sac_strided_inner(&p->a, a->rank - 2);
        if (inner > 1 && sac_heads_apart(&p->a, inner) && read_shared(p, b) &&
            sac_heads_result_apart(&p->y, y, inner, &p->out))
            return p->b.dim[SAC_HEAD] == p->a.dim[SAC_HEAD];
    }
    return false;
}

/* ---- the node ---- */

static bool read_ordinary(struct sac_node *n, struct product *p)
{
    struct sac_value *a = n->inputs[0], *b = n->inputs[1], *y = n->outputs[0];
    return sac_heads_leading(a, b) && sac_heads_operand(&p->a, a, a, false, true, NULL, NULL) &&
           sac_heads_operand(&p->b, b, a, false, true, &p->a, NULL) &&
           sac_heads_result(&p->y, y, false, true, &p->a, &p->out, NULL);
}

static bool read_product(struct sac_node *n, struct product *p)
{
    if (!sac_is(n, "MatMul"))
        return false;
    struct sac_value *a = n->inputs[0], *b = n->inputs[1], *y = n->outputs[0];
    struct product    apart = {.node = n};
    *p = (struct product){.node = n};
    if (y->dtype != SAC_F32 || y->rank < 3 || a->data)
        return false;
    const bool ordinary = !b->data && read_ordinary(n, p);
    if ((!ordinary || !is_moved(a, p->a.base)) && read_apart(n, &apart))
        *p = apart;
    else if (!ordinary)
        return false;
    return p->b.dim[SAC_TOKEN] == p->a.dim[SAC_NUMBER] &&
           p->y.dim[SAC_TOKEN] == p->a.dim[SAC_TOKEN] &&
           p->y.dim[SAC_NUMBER] == p->b.dim[SAC_NUMBER] && !is_dense_work(p) &&
           (is_moved(a, p->a.base) || is_moved(b, p->b.base) || is_moved(p->out, y));
}

/* The factor of a Mul or Div by a number behind the product, which takes it; else 1. */
static double scale_behind(struct product *p)
{
    double                 factor = 1;
    const struct sac_node *reader = sac_value_only_reader(p->out);
    if (!reader || reader->output_count != 1 || sac_scaled(reader->outputs[0], &factor) != p->out)
        return 1;
    p->out = reader->outputs[0];
    return factor;
}

static sac_result visit(struct sac_graph *g, struct sac_node *n, bool *changed)
{
    struct product p;
    if (!read_product(n, &p))
        return SAC_OK;
    const double     scale = p.a.scale * p.b.scale * scale_behind(&p);
    struct sac_node *made = sac_op_node(g, "saccade", "HeadMatMul", 2, 1, n);
    if (!made)
        return SAC_ERR_MEMORY;
    made->inputs[0] = p.a.base;
    made->inputs[1] = p.b.base;
    sac_result res = sac_strided_set_view(g, made, "a", "a_open", &p.a);
    if (res == SAC_OK)
        res = sac_strided_set_view(g, made, "b", "b_open", &p.b);
    if (res == SAC_OK)
        res = sac_strided_set_view(g, made, "y", "y_open", &p.y);
    if (res == SAC_OK)
        res = sac_node_set_float(g, made, "scale", (float)scale);
    if (res == SAC_OK)
        res = sac_node_set_ints(g, made, "shape", p.out->dims, (size_t)p.out->rank);
    *changed = true;
    return res == SAC_OK ? sac_take_over(g, made, p.out->producer) : res;
}

const struct sac_pass sac_pass_head_matmul = {"head-matmul", visit, NULL};
