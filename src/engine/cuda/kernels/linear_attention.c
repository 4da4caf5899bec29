/* SPDX-License-Identifier: Apache-2.0 */
/* The row of LinearAttention. */
#include "engine/cuda/kernels/linear_attention.h"

#include "engine/cuda/kernels/kernels.h"

enum {
    PROCESSORS = 128, /* of a large card, about */
    TOKENS_MIN = 96, /* of a block that shares a head with others, where processors have no block */
    TOKENS_MANY = 512, /* and where they have one: sharing costs some microseconds */
    LENGTH_MAX = 1 << 30,
    STEP_MAX = 1 << 30
};

/* ---- layouts ---- */

static int piece_of(const struct sac_head_view *v)
{
    for (int n = 8; n > 1; n /= 2)
        if (v->dim[3] % 2 == 0 && ops_head_fits(v, 3, n))
            return n;
    return 1;
}

static bool linear_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    struct sac_linear_attention a;
    ops_want_plain(q, offer);
    if (q->precision != SAC_PRECISION_FP16 || sac_linear_attention_read(q->call, &a) != SAC_OK)
        return true;
    const struct sac_head_view *view[] = {&a.a, &a.b, &a.c};
    for (int i = 0; i < 3; i++)
        offer->in_layout[i] = ops_head_layout(&q->call->in[i], view[i], q->in_layout[i], piece_of);
    offer->out_layout[0] = ops_head_layout(&q->call->out[0], &a.y, SAC_LAYOUT_PLAIN_HALF, piece_of);
    return true;
}

/* ---- parameters ---- */

static bool in_bits(const struct sac_head_view *v)
{
    return v->dim[2] <= LENGTH_MAX && v->step[2] <= STEP_MAX;
}

static int tile_of(int64_t most)
{
    static const int tiles[] = {16, 32, 48, 64, SAC_LINEAR_SIZE_MAX};
    for (size_t i = 0; i < SAC_COUNT(tiles); i++)
        if (most <= tiles[i])
            return tiles[i];
    return 0;
}

static void choose_tile(struct ops_linear_attention *p, const struct sac_linear_attention *a)
{
    const int     pieces[] = {piece_of(&a->a), piece_of(&a->b), piece_of(&a->c), piece_of(&a->y)};
    const int64_t heads = p->batch * p->heads;
    if (heads > INT32_MAX >> OPS_LINEAR_SHIFT_MAX)
        return;
    for (size_t i = 0; i < SAC_COUNT(pieces); i++)
        if (pieces[i] < 2)
            return;
    p->tile = tile_of(SAC_MAX(a->size, a->width));
    p->piece = SAC_MIN(pieces[0], pieces[1]);
    for (; p->shift < OPS_LINEAR_SHIFT_MAX; p->shift++) {
        const int64_t blocks = heads << p->shift,
                      tokens = SAC_MAX(a->keys, a->queries) >> (p->shift + 1);
        if (blocks > 2 * PROCESSORS || tokens < (blocks < PROCESSORS ? TOKENS_MIN : TOKENS_MANY))
            break;
    }
}

static sac_result linear_fill(struct sac_kernel_plan *plan, void *params)
{
    struct ops_linear_attention *p = params;
    struct sac_linear_attention  a;
    const struct sac_op_call    *c = plan->call;
    SAC_TRY(sac_linear_attention_read(c, &a));
    struct sac_head_view *in[] = {&a.a, &a.b, &a.c};
    for (int i = 0; i < 3; i++)
        ops_head_lying(&c->in[i], plan->in_layout[i], in[i]);
    ops_head_lying(&c->out[0], plan->out_layout[0], &a.y);
    p->a = ops_head_view_of(&a.a);
    p->b = ops_head_view_of(&a.b);
    p->c = ops_head_view_of(&a.c);
    p->y = ops_head_view_of(&a.y);
    p->batch = a.batch;
    p->heads = a.heads;
    p->keys = a.keys;
    p->queries = a.queries;
    p->size = (int32_t)a.size;
    p->width = (int32_t)a.width;
    p->kind = a.kind;
    p->lengths = a.lengths;
    p->has_gain = sac_op_has(c, 3);
    p->gain_step = (int32_t)a.gain_step;
    p->scale = a.scale;
    p->epsilon = a.epsilon;
    p->a_type = ops_in_type(plan, 0);
    p->b_type = ops_in_type(plan, 1);
    p->c_type = ops_in_type(plan, 2);
    p->y_type = ops_out_type(plan, 0);
    p->gain_type = p->has_gain ? ops_in_type(plan, 3) : SAC_F32;
    if (p->a_type == SAC_F16 && p->b_type == SAC_F16 && p->c_type == SAC_F16 &&
        p->y_type == SAC_F16 && in_bits(&a.a) && in_bits(&a.b) && in_bits(&a.c) && in_bits(&a.y))
        choose_tile(p, &a);
    return SAC_OK;
}

OPS_ROW(LinearAttention, linear_layouts, linear_fill, ops_launch_linear_attention,
        ops_linear_attention)
