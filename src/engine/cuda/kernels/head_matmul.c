/* SPDX-License-Identifier: Apache-2.0 */
/* The row of HeadMatMul. */
#include "engine/cuda/kernels/head_matmul.h"

#include "engine/cuda/kernels/kernels.h"

enum {
    PROCESSORS = 132,         /* of a large card: with fewer blocks, each has one for itself */
    DEEP = 2 * OPS_HEAD_TURN, /* worth more warps of a block */
    LENGTH_MAX = 1 << 30,
    STEP_MAX = 1 << 23 /* a tile's own offsets are counted in 31 bits */
};

/* ---- layouts ---- */

/* Along d: larger pieces where they fit. */
static int piece_along(const struct sac_head_view *v, int d)
{
    return ops_head_fits(v, d, 8) ? 8 : ops_head_fits(v, d, 4) ? 4 : 1;
}

static int piece_of(const struct sac_head_view *v)
{
    return SAC_MAX(piece_along(v, 2), piece_along(v, 3));
}

static bool matmul_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    struct sac_head_matmul m;
    ops_want_plain(q, offer);
    offer->in_layout[2] = SAC_LAYOUT_PLAIN;
    if (q->precision != SAC_PRECISION_FP16 || sac_head_matmul_read(q->call, &m) != SAC_OK)
        return true;
    offer->in_layout[0] = ops_head_layout(&q->call->in[0], &m.a, q->in_layout[0], piece_of);
    offer->in_layout[1] = ops_head_layout(&q->call->in[1], &m.b, q->in_layout[1], piece_of);
    offer->out_layout[0] = ops_head_layout(&q->call->out[0], &m.y, SAC_LAYOUT_PLAIN_HALF, piece_of);
    if (m.has_other)
        offer->in_layout[3] = ops_head_layout(&q->call->in[3], &m.r, q->in_layout[3], piece_of);
    return true;
}

/* ---- parameters ---- */

/* Do the indices of dim 2 lie closer together than those of dim 3? Where there is one index alone,
 * the other dim is that with neighbours. */
static bool is_turned(const struct sac_head_view *v)
{
    return v->dim[2] > 1 && (v->dim[3] <= 1 || v->step[2] < v->step[3]);
}

/* The steps of dims of one are nobody's. */
static void settle_steps(struct sac_head_view *v)
{
    for (int d = 0; d < SAC_VIEW_RANK; d++)
        if (v->dim[d] <= 1)
            v->step[d] = 0;
}

static int64_t parts_of(int64_t whole, int64_t part)
{
    return (whole + part - 1) / part;
}

static bool in_bits(const struct sac_head_view *v)
{
    return v->dim[2] <= LENGTH_MAX && v->dim[3] <= LENGTH_MAX && v->step[2] <= STEP_MAX &&
           v->step[3] <= STEP_MAX;
}

static int64_t tiles_of(const struct ops_head_matmul *p, int rows, int columns)
{
    return parts_of(p->rows, rows) * parts_of(p->columns, columns);
}

/* Where a few tiles leave most of the card without one, smaller ones take less time each. */
static void choose_tile(struct ops_head_matmul *p)
{
    int rows = p->rows <= OPS_HEAD_SMALL_TILE ? OPS_HEAD_SMALL_TILE : OPS_HEAD_TILE,
        columns = p->columns <= OPS_HEAD_SMALL_TILE ? OPS_HEAD_SMALL_TILE : OPS_HEAD_TILE;
    const int64_t products = p->batch * p->heads, few = PROCESSORS * 3 / 4;
    if (products && tiles_of(p, rows, columns) > INT32_MAX / 4 / products)
        return;
    if (products * tiles_of(p, rows, columns) <= few)
        columns = OPS_HEAD_SMALL_TILE;
    if (products * tiles_of(p, rows, columns) <= few)
        rows = OPS_HEAD_SMALL_TILE;
    const int64_t tiles = products * tiles_of(p, rows, columns);
    p->tile_rows = rows;
    p->tile_columns = columns;
    p->deep = p->depth >= DEEP && tiles <= 2 * PROCESSORS;
    /* What is added or multiplied takes the shared memory of the wider one. */
    const bool wide = p->columns > OPS_HEAD_TILE && tiles >= 4 * PROCESSORS && !p->r_type;
    if (rows == OPS_HEAD_TILE && columns == OPS_HEAD_TILE && !p->deep)
        p->unit_columns = wide ? 2 * OPS_HEAD_TILE : OPS_HEAD_TILE;
}

/* What is behind the product, whose rows are the node's columns where it is swapped. */
static void fill_ending(const struct sac_kernel_plan *plan, const struct sac_head_matmul *m,
                        bool swapped, const struct sac_head_view *r, struct ops_head_matmul *p)
{
    double x, y;
    p->act = ops_activation_fn(&m->act, &x, &y);
    p->act_a = (float)x;
    p->act_b = (float)y;
    p->bias_type = ops_in_type(plan, 2);
    p->by_row = m->by_row != swapped;
    p->r_type = ops_in_type(plan, 3);
    p->gates = m->gates;
    if (m->has_other) {
        p->r = ops_head_view_of(r);
        p->r_piece = piece_along(r, 3) == 8 ? 8 : 1;
    }
}

/* Types and steps that tiles on the tensor cores can do with. */
static bool suits_tiles(const struct ops_head_matmul *p, const struct sac_head_matmul *m)
{
    return p->a_type == SAC_F16 && p->b_type == SAC_F16 && p->y_type == SAC_F16 &&
           (!m->has_bias || p->bias_type == SAC_F32) && (!m->has_other || p->r_type == SAC_F16) &&
           in_bits(&m->a) && in_bits(&m->b) && in_bits(&m->y) && (!m->has_other || in_bits(&m->r));
}

static bool is_vector_type(int32_t type)
{
    return type == SAC_F32 || type == SAC_F16;
}

/* As many columns at once as lie side by side in b and y; of deep ones fewer, for their registers.
 */
static int few_of(const struct ops_head_matmul *p)
{
    const int64_t products = p->batch * p->heads;
    if (p->rows > OPS_HEAD_FEW || p->depth > OPS_HEAD_FEW || p->columns < OPS_HEAD_TILE ||
        p->b.step[2] != 1 || p->y.step[3] != 1 || products > INT32_MAX / p->columns)
        return 0;
    if (p->columns % 8 || p->b_piece != 8 || p->y_piece != 8 || !is_vector_type(p->b_type) ||
        !is_vector_type(p->y_type))
        return 1;
    return p->depth <= 8 ? 8 : 4;
}

/* Do the numbers of head after head lie side by side along d as those of one head do? */
static bool runs_on(const struct sac_head_view *v, int d)
{
    return v->step[1] == v->dim[d] * v->step[d];
}

static void run_on(struct sac_head_view *v, int d)
{
    v->dim[d] *= v->dim[1];
    v->dim[1] = 1;
    settle_steps(v);
}

/* Heads that share a, and whose columns follow each other, are one head with more columns. */
static void join_heads(struct sac_head_view *a, struct sac_head_view *b, struct sac_head_view *y,
                       struct sac_head_view *r)
{
    if (y->dim[1] < 2 || a->step[1] || !runs_on(b, 2) || !runs_on(y, 3) || (r && !runs_on(r, 3)) ||
        y->dim[3] > LENGTH_MAX / y->dim[1])
        return;
    a->dim[1] = 1;
    run_on(b, 2);
    run_on(y, 3);
    if (r)
        run_on(r, 3);
}

/* Where the numbers lie: columns are y's neighbours in memory. */
static void fill_views(const struct sac_head_matmul *m, bool swapped, struct sac_head_view *r,
                       struct ops_head_matmul *p)
{
    struct sac_head_view a = swapped ? sac_head_view_turned(&m->b) : m->a,
                         b = swapped ? m->a : sac_head_view_turned(&m->b),
                         y = swapped ? sac_head_view_turned(&m->y) : m->y;
    *r = swapped ? sac_head_view_turned(&m->r) : m->r;
    settle_steps(&a);
    settle_steps(&b);
    settle_steps(&y);
    settle_steps(r);
    if (!m->has_bias || m->by_row != swapped)
        join_heads(&a, &b, &y, m->has_other ? r : NULL);
    p->a = ops_head_view_of(&a);
    p->b = ops_head_view_of(&b);
    p->y = ops_head_view_of(&y);
    p->batch = y.dim[0];
    p->heads = y.dim[1];
    p->rows = y.dim[2];
    p->columns = y.dim[3];
    p->a_turned = is_turned(&a);
    p->b_turned = is_turned(&b);
    p->a_piece = piece_along(&a, p->a_turned ? 2 : 3);
    p->b_piece = piece_along(&b, p->b_turned ? 2 : 3);
    p->y_piece = piece_along(&y, 3);
}

static sac_result matmul_fill(struct sac_kernel_plan *plan, void *params)
{
    struct ops_head_matmul   *p = params;
    struct sac_head_matmul    m;
    struct sac_head_view      r;
    const struct sac_op_call *c = plan->call;
    SAC_TRY(sac_head_matmul_read(c, &m));
    ops_head_lying(&c->in[0], plan->in_layout[0], &m.a);
    ops_head_lying(&c->in[1], plan->in_layout[1], &m.b);
    ops_head_lying(&c->out[0], plan->out_layout[0], &m.y);
    if (m.has_other)
        ops_head_lying(&c->in[3], plan->in_layout[3], &m.r);
    const bool swapped = is_turned(&m.y);
    fill_views(&m, swapped, &r, p);
    p->depth = m.depth;
    p->scale = m.scale;
    p->a_port = swapped;
    p->b_port = !swapped;
    p->a_type = ops_in_type(plan, p->a_port);
    p->b_type = ops_in_type(plan, p->b_port);
    p->y_type = ops_out_type(plan, 0);
    fill_ending(plan, &m, swapped, &r, p);
    p->few = few_of(p);
    if (m.depth && suits_tiles(p, &m))
        choose_tile(p);
    return SAC_OK;
}

OPS_ROW(HeadMatMul, matmul_layouts, matmul_fill, ops_launch_head_matmul, ops_head_matmul)
