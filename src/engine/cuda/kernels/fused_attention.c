/* SPDX-License-Identifier: Apache-2.0 */
/* The row of FusedAttention. */
#include "engine/cuda/kernels/fused_attention.h"

#include "engine/cuda/kernels/kernels.h"

enum {
    SCORES_MAX = 4 << 20, /* floats of scratch, more than are in flight at once */
    LENGTH_MAX = 1 << 30
};

static struct ops_head_view view_of(const struct sac_head_view *v)
{
    return (struct ops_head_view){v->offset, {v->step[0], v->step[1], v->step[2], v->step[3]}};
}

/* Do all heads and tokens of a view begin at a multiple of n numbers, and its numbers lie dense? */
static bool in_pieces(const struct sac_head_view *v, int n)
{
    bool fits = v->offset % n == 0 && v->dim[3] % n == 0 && v->step[3] == 1;
    for (int d = 0; d < 3; d++)
        fits &= v->dim[d] == 1 || v->step[d] % n == 0;
    return fits;
}

static int piece_of(const struct sac_fused_attention *a)
{
    if (a->size > OPS_ATTENTION_SIZE_MAX || a->v_size > OPS_ATTENTION_SIZE_MAX ||
        a->keys > LENGTH_MAX || a->queries > LENGTH_MAX ||
        a->batch * a->heads > INT32_MAX / (a->queries / 32 + 1))
        return 0;
    for (int n = 8; n >= 4; n /= 2)
        if (in_pieces(&a->q, n) && in_pieces(&a->k, n) && in_pieces(&a->v, n) &&
            in_pieces(&a->y, n))
            return n;
    return 0;
}

/* Tiles need float16; a mask stays as it is. */
static bool attention_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    struct sac_fused_attention a;
    ops_want_plain(q, offer);
    if (q->precision == SAC_PRECISION_FP16 && sac_fused_attention_read(q->call, &a) == SAC_OK &&
        piece_of(&a))
        for (int i = 0; i < 3; i++)
            offer->in_layout[i] = SAC_LAYOUT_PLAIN_HALF;
    return true;
}

static sac_result attention_fill(struct sac_kernel_plan *plan, void *params)
{
    struct ops_fused_attention *p = params;
    struct sac_fused_attention  a;
    SAC_TRY(sac_fused_attention_read(plan->call, &a));
    p->q = view_of(&a.q);
    p->k = view_of(&a.k);
    p->v = view_of(&a.v);
    p->y = view_of(&a.y);
    p->batch = a.batch;
    p->heads = a.heads;
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
    p->out_type = ops_out_type(plan, 0);
    const bool half = p->q_type == SAC_F16 && p->k_type == SAC_F16 && p->v_type == SAC_F16 &&
                      p->out_type == SAC_F16;
    p->piece = half ? piece_of(&a) : 0;
    const int64_t scores = OPS_ATTENTION_GROUP * a.keys,
                  groups = a.batch * a.heads *
                           ((a.queries + OPS_ATTENTION_GROUP - 1) / OPS_ATTENTION_GROUP);
    /* tiles need none, but operands at an odd address are not read by tiles */
    p->at_once = p->piece ? 1 : SAC_CLAMP(SCORES_MAX / scores, 1, SAC_MAX(groups, 1));
    plan->scratch_bytes = (size_t)(p->at_once * scores) * sizeof(float);
    return SAC_OK;
}

OPS_ROW(FusedAttention, attention_layouts, attention_fill, ops_launch_fused_attention,
        ops_fused_attention)
