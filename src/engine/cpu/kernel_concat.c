/* SPDX-License-Identifier: Apache-2.0 */
/* Concat, in the layout that its inputs have in common. In channels last, inputs along the channels
 * or the outermost spatial axis may already be in the output (engine/plan/placement.c); those are
 * skipped. */
#include <stdio.h>

#include "engine/cpu/moves.h"

static int concat_axis(const struct sac_op_call *c)
{
    int axis = (int)sac_attr_int(c->node, "axis", 1);
    return axis < 0 ? axis + c->out[0].rank : axis;
}

/* Channels last when an input has it and nothing speaks against it. */
static enum sac_layout layout_of(const struct sac_kernel_question *q)
{
    const struct sac_op_call *c = q->call;
    bool                      any = false;
    for (int i = 0; i < c->in_count; i++)
        any |= q->in_layout[i] == SAC_LAYOUT_CHANNELS_LAST;
    const bool fits = sac_dtype_is_mapped(c->out[0].dtype) && sac_volume_fits(&c->out[0]) &&
                      (concat_axis(c) == 1 || concat_axis(c) == 2);
    return any && fits ? SAC_LAYOUT_CHANNELS_LAST : SAC_LAYOUT_PLAIN;
}

static struct sac_kernel_offer concat_supports(struct sac_device                *dev,
                                               const struct sac_kernel_question *q)
{
    struct sac_kernel_offer offer = sac_kernel_take(q);
    (void)dev;
    offer.out_layout[0] = layout_of(q);
    for (int i = 0; i < q->call->in_count; i++)
        offer.in_layout[i] = offer.out_layout[0];
    offer.strided = offer.out_layout[0] == SAC_LAYOUT_CHANNELS_LAST;
    offer.writes_any = !offer.strided;
    return offer;
}

static sac_result concat_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    struct sac_moves         *s = sac_moves_create(c->in_count);
    int64_t                   in[SAC_RANK_MAX], out[SAC_RANK_MAX], offset = 0;
    const int                 axis = concat_axis(c);
    (void)dev;
    if (!s)
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    sac_output_strides(plan, 0, out);
    for (int i = 0; i < c->in_count; i++) {
        sac_input_strides(plan, i, in);
        sac_moves_add(s, i, 0, in, 0, offset, out, sac_dtype_bytes(c->in[i].dtype), c->in[i].rank,
                      c->in[i].dims);
        offset += c->in[i].dims[axis] * out[axis];
    }
    snprintf(plan->implementation, sizeof plan->implementation, "concat");
    plan->state = s;
    return SAC_OK;
}

const struct sac_kernel sac_cpu_Concat = {SAC_OP_Concat, concat_supports, concat_prepare,
                                          sac_moves_run, sac_free};
