/* SPDX-License-Identifier: Apache-2.0 */
/* The row of DeformAttention. */
#include "engine/cuda/kernels/deform_attention.h"

#include "engine/cuda/kernels/kernels.h"
#include "engine/ops/deform_attention.h"

static bool deform_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    ops_want_plain(q, offer);
    for (int i = 0; i < q->call->in_count; i++)
        if (sac_operand_elements(&q->call->in[i]) >= INT32_MAX)
            return ops_refuse(offer, "more than 2^31 numbers");
    return ops_small_enough(q, offer);
}

static sac_result deform_attention_fill(struct sac_kernel_plan *plan, void *params)
{
    struct ops_deform_attention *p = params;
    struct sac_deform_attention  a;
    SAC_TRY(sac_deform_attention_read(plan->call, &a));
    _Static_assert((int)OPS_DEFORM_LEVELS == (int)SAC_DEFORM_LEVELS, "one for each");
    for (int i = 0; i < a.levels; i++) {
        const struct sac_deform_level *l = &a.level[i];
        p->level[i] = (struct ops_deform_level){l->start * a.heads * a.size, (int32_t)l->height,
                                                (int32_t)l->width, (int32_t)l->points};
    }
    p->levels = a.levels;
    p->queries = ops_divisor_of(SAC_MAX(a.queries, 1));
    p->heads = ops_divisor_of(a.heads);
    for (int i = 0; i < 3; i++)
        p->pieces[i] = ops_divisor_of(SAC_MAX(a.size / (i == 0 ? 8 : i == 1 ? 4 : 1), 1));
    p->lines = a.batch * a.queries * a.heads;
    p->values = a.values * a.heads * a.size;
    p->points = (int32_t)a.points;
    p->channels = (int32_t)(a.heads * a.size);
    p->size = (int32_t)a.size;
    p->gain = a.gain;
    p->shift = a.shift;
    p->softmax = a.softmax;
    p->v_type = ops_in_type(plan, 0);
    p->p_type = ops_in_type(plan, 1);
    p->w_type = ops_in_type(plan, 2);
    p->out_type = ops_out_type(plan, 0);
    return SAC_OK;
}

OPS_ROW(DeformAttention, deform_layouts, deform_attention_fill, ops_launch_deform_attention,
        ops_deform_attention)
