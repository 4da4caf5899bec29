/* SPDX-License-Identifier: Apache-2.0 */
/* The row of FusedAttention. */
#include "engine/cuda/kernels/fused_attention.h"

#include "engine/cuda/kernels/kernels.h"

enum {
    SCORES_MAX = 4 << 20, /* floats of scratch, more than are in flight at once */
    LENGTH_MAX = 1 << 30,
    GRID_MAX = 65535,
    QUERIES_MAX = GRID_MAX * OPS_ATTENTION_PILE,
    POSITIONS_MAX = 256, /* of a query, whose room grows with their number */
    ROUND = 16           /* numbers that tensor cores multiply at a time */
};
static const float SCALE_MIN = 1e-20f; /* a mask is divided by it */

/* Are the steps from token to token of 31 bits? */
static bool in_bits(const struct sac_head_view *v)
{
    return v->step[2] <= INT32_MAX;
}

static bool in_pieces(const struct sac_head_view *v, int n)
{
    return v->dim[3] % n == 0 && ops_head_fits(v, 3, n);
}

static int piece_of(const struct sac_head_view *v)
{
    return in_pieces(v, 8) ? 8 : in_pieces(v, 4) ? 4 : in_pieces(v, 2) ? 2 : 1;
}

/* A query's relative positions of one kind, rounded up. */
static int64_t room_of(bool has, int64_t numbers)
{
    return has ? (numbers + ROUND - 1) / ROUND * ROUND : 0;
}

/* Are there tiles for its sizes? They count heads and tokens in a grid and with 31 bits. */
static bool can_tile(const struct sac_fused_attention *a)
{
    const int64_t mask = a->period ? a->queries * a->mask_step[2] : 0;
    return a->size <= OPS_ATTENTION_SIZE_MAX && a->v_size <= OPS_ATTENTION_SIZE_MAX &&
           a->keys <= LENGTH_MAX && a->queries <= QUERIES_MAX && a->heads <= GRID_MAX &&
           a->batch <= INT32_MAX && in_bits(&a->row) && in_bits(&a->column) &&
           room_of(a->by_row, a->rows) + room_of(a->by_column, a->columns) <= POSITIONS_MAX &&
           a->row_from <= LENGTH_MAX && a->column_from <= LENGTH_MAX && mask <= INT32_MAX &&
           a->scale >= SCALE_MIN && in_bits(&a->q) && in_bits(&a->k) && in_bits(&a->v) &&
           in_bits(&a->y);
}

/* Tiles need float16; a mask stays as it is, relative positions are multiplied. */
static bool attention_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    struct sac_fused_attention a;
    ops_want_plain(q, offer);
    if (q->precision != SAC_PRECISION_FP16 || sac_fused_attention_read(q->call, &a) != SAC_OK ||
        !can_tile(&a))
        return true;
    const struct sac_head_view *view[] = {&a.q, &a.k, &a.v, NULL, &a.row, &a.column};
    for (int i = 0; i < q->call->in_count; i++)
        if (view[i] && sac_op_has(q->call, i))
            offer->in_layout[i] =
                ops_head_layout(&q->call->in[i], view[i], q->in_layout[i], piece_of);
    offer->out_layout[0] = ops_head_layout(&q->call->out[0], &a.y, SAC_LAYOUT_PLAIN_HALF, piece_of);
    if (q->call->out[0].dtype != SAC_F32)
        offer->out_layout[0] = ops_with_half(offer->out_layout[0], false);
    return true;
}

static struct ops_head_view lying(const struct sac_operand *o, enum sac_layout layout,
                                  struct sac_head_view *v)
{
    ops_head_lying(o, layout, v);
    return ops_head_view_of(v);
}

static void fill_positions(const struct sac_kernel_plan *plan, struct sac_fused_attention *a,
                           struct ops_fused_attention *p)
{
    const struct sac_op_call *c = plan->call;
    p->rows = a->rows;
    p->columns = ops_divisor_of(SAC_CLAMP(a->columns, 1, INT32_MAX));
    p->query_columns.d = 0;
    if (a->query_columns)
        p->query_columns = ops_divisor_of(SAC_MIN(a->query_columns, INT32_MAX));
    p->row_from = (int32_t)SAC_MIN(a->row_from, INT32_MAX);
    p->column_from = (int32_t)SAC_MIN(a->column_from, INT32_MAX);
    p->row = a->by_row ? lying(&c->in[4], plan->in_layout[4], &a->row) : ops_head_view_of(&a->row);
    p->column = a->by_column ? lying(&c->in[5], plan->in_layout[5], &a->column)
                             : ops_head_view_of(&a->column);
    p->row_type = a->by_row ? ops_in_type(plan, 4) : 0;
    p->column_type = a->by_column ? ops_in_type(plan, 5) : 0;
    p->row_room = (int32_t)SAC_MIN(room_of(a->by_row, a->rows), INT32_MAX);
    p->column_room = (int32_t)SAC_MIN(room_of(a->by_column, a->columns), INT32_MAX);
}

static bool are_halves(const struct ops_fused_attention *p)
{
    return p->q_type == SAC_F16 && p->k_type == SAC_F16 && p->v_type == SAC_F16 &&
           p->out_type == SAC_F16 && (!p->row_type || p->row_type == SAC_F16) &&
           (!p->column_type || p->column_type == SAC_F16);
}

/* What a warp can hold, where tiles read few numbers at once or would be mostly empty. */
static bool is_few(const struct ops_fused_attention *p)
{
    const int     piece = SAC_MIN(SAC_MIN(p->q_piece, p->k_piece), p->v_piece);
    const int64_t piles = (p->queries + OPS_ATTENTION_PILE - 1) / OPS_ATTENTION_PILE;
    return p->keys > 0 &&
           p->keys <= (piece < 2 ? OPS_ATTENTION_FEW_ONES : OPS_ATTENTION_FEW_KEYS) &&
           p->size <= OPS_ATTENTION_FEW_SIZE && p->v_size <= OPS_ATTENTION_FEW_SIZE && !p->rows &&
           !p->bytes.type && (piece < 8 || p->keys <= OPS_ATTENTION_FEW) &&
           p->batch * p->heads <= INT32_MAX / SAC_MAX(piles, 1);
}

static sac_result attention_fill(struct sac_kernel_plan *plan, void *params)
{
    struct ops_fused_attention *p = params;
    struct sac_fused_attention  a;
    const struct sac_op_call   *c = plan->call;
    SAC_TRY(sac_fused_attention_read(c, &a));
    p->q = lying(&c->in[0], plan->in_layout[0], &a.q);
    p->k = lying(&c->in[1], plan->in_layout[1], &a.k);
    p->v = lying(&c->in[2], plan->in_layout[2], &a.v);
    p->y = lying(&c->out[0], plan->out_layout[0], &a.y);
    p->batch = a.batch;
    p->heads = a.heads;
    p->group = (int32_t)SAC_MIN(a.group, INT32_MAX);
    p->queries = a.queries;
    p->keys = a.keys;
    p->size = a.size;
    p->v_size = a.v_size;
    p->period = a.period;
    for (int d = 0; d < 4; d++)
        p->mask_step[d] = a.mask_step[d];
    p->scale = a.scale;
    p->q_type = ops_in_type(plan, 0);
    p->k_type = ops_in_type(plan, 1);
    p->v_type = ops_in_type(plan, 2);
    p->mask_type = ops_in_type(plan, 3);
    p->bytes = ops_bytes_of(plan);
    p->out_type = p->bytes.type ? SAC_F16 : ops_out_type(plan, 0);
    p->residual = a.residual;
    fill_positions(plan, &a, p);
    const bool tiles = are_halves(p) && can_tile(&a);
    p->q_piece = tiles ? piece_of(&a.q) : 0;
    p->k_piece = tiles ? piece_of(&a.k) : 0;
    p->v_piece = tiles ? piece_of(&a.v) : 0;
    p->y_piece = tiles ? piece_of(&a.y) : 0;
    p->few = tiles && is_few(p);
    if (tiles) {
        ops_attention_shape(p, false, &p->shape);
        ops_attention_shape(p, true, &p->hopper_shape);
    }
    const int64_t scores = OPS_ATTENTION_GROUP * a.keys,
                  groups = a.batch * a.heads *
                           ((a.queries + OPS_ATTENTION_GROUP - 1) / OPS_ATTENTION_GROUP);
    /* tiles need none, but operands at an odd address are not read by tiles */
    p->at_once = tiles ? 1 : SAC_CLAMP(SCORES_MAX / SAC_MAX(scores, 1), 1, SAC_MAX(groups, 1));
    plan->scratch_bytes = (size_t)(p->at_once * scores) * sizeof(float);
    return SAC_OK;
}

OPS_ROW(FusedAttention, attention_layouts, attention_fill, ops_launch_fused_attention,
        ops_fused_attention)
