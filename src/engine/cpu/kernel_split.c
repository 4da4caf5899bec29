/* SPDX-License-Identifier: Apache-2.0 */
/* Split and Slice, in the layout that the input has. Along the channels of channels-last maps,
 * outputs may already be parts of the input (engine/plan/placement.c); those are skipped. */
#include <stdio.h>

#include "engine/cpu/moves.h"
#include "engine/ops/reads.h"

/* The offer with what can be done to parts of wider values, which lie along the channels only. */
static struct sac_kernel_offer accept(const struct sac_kernel_question *q,
                                      struct sac_kernel_offer offer, bool along_channels)
{
    offer.strided = along_channels && offer.in_layout[0] == SAC_LAYOUT_CHANNELS_LAST &&
                    sac_volume_fits(&q->call->in[0]) && sac_operand_elements(&q->call->in[0]) > 0 &&
                    sac_operand_elements(&q->call->out[0]) > 0;
    offer.writes_any = !offer.strided;
    return offer;
}

/* ---- Split ---- */

static int split_axis(const struct sac_op_call *c)
{
    int axis = (int)sac_attr_int(c->node, "axis", 0);
    return axis < 0 ? axis + c->in[0].rank : axis;
}

static struct sac_kernel_offer split_supports(struct sac_device                *dev,
                                              const struct sac_kernel_question *q)
{
    (void)dev;
    for (int i = 0; i < q->call->out_count; i++)
        if (!q->call->out[i].present)
            return sac_kernel_refuse("output %d is left out, and with it its length", i);
    struct sac_kernel_offer offer = sac_moves_keep_layout(q);
    if (sac_split_feeds_convs(q->call)) {
        offer.in_layout[0] = SAC_LAYOUT_CHANNELS_LAST;
        for (int i = 0; i < q->call->out_count; i++)
            offer.out_layout[i] = SAC_LAYOUT_CHANNELS_LAST;
    }
    return accept(q, offer, split_axis(q->call) == 1);
}

static sac_result split_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    struct sac_moves         *s = sac_moves_create(c->out_count);
    int64_t                   in[SAC_RANK_MAX], out[SAC_RANK_MAX], offset = 0;
    const int                 axis = split_axis(c);
    (void)dev;
    if (!s)
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    sac_input_strides(plan, 0, in);
    for (int i = 0; i < c->out_count; i++) {
        sac_output_strides(plan, i, out);
        sac_moves_add(s, 0, offset, in, i, 0, out, sac_dtype_bytes(c->in[0].dtype), c->out[i].rank,
                      c->out[i].dims);
        offset += c->out[i].dims[axis] * in[axis];
    }
    snprintf(plan->implementation, sizeof plan->implementation, "copy");
    plan->state = s;
    return SAC_OK;
}

/* ---- Slice ---- */

static bool read_slice(const struct sac_op_call *c, struct sac_slice *slice)
{
    for (int i = 1; i < c->in_count; i++)
        if (c->in[i].present && !c->in[i].data && sac_operand_elements(&c->in[i]) > 0)
            return false;
    return sac_slice_read(c, slice) == SAC_OK;
}

static struct sac_kernel_offer slice_supports(struct sac_device                *dev,
                                              const struct sac_kernel_question *q)
{
    const struct sac_op_call *c = q->call;
    struct sac_slice          slice;
    bool                      channels = true;
    (void)dev;
    if (!read_slice(c, &slice))
        return sac_kernel_refuse("its bounds are known only at run time");
    for (int d = 0; d < c->in[0].rank; d++)
        channels &= slice.step[d] == 1 && (d == 1 || c->in[0].dims[d] == c->out[0].dims[d]);
    return accept(q, sac_moves_keep_layout(q), channels);
}

static sac_result slice_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    struct sac_moves         *s = sac_moves_create(1);
    int64_t                   in[SAC_RANK_MAX], out[SAC_RANK_MAX], from = 0;
    struct sac_slice          slice;
    (void)dev;
    if (!s || !read_slice(c, &slice)) {
        sac_free(s);
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    }
    sac_input_strides(plan, 0, in);
    sac_output_strides(plan, 0, out);
    for (int d = 0; d < c->in[0].rank; d++) {
        from += slice.start[d] * in[d];
        in[d] *= slice.step[d];
    }
    sac_moves_add(s, 0, from, in, 0, 0, out, sac_dtype_bytes(c->in[0].dtype), c->out[0].rank,
                  c->out[0].dims);
    snprintf(plan->implementation, sizeof plan->implementation, "copy");
    plan->state = s;
    return SAC_OK;
}

const struct sac_kernel sac_cpu_Split = {SAC_OP_Split, split_supports, split_prepare, sac_moves_run,
                                         sac_free};
const struct sac_kernel sac_cpu_Slice = {SAC_OP_Slice, slice_supports, slice_prepare, sac_moves_run,
                                         sac_free};
