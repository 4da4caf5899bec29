/* SPDX-License-Identifier: Apache-2.0 */
/* Split and Slice along the channels of channels-last maps. Outputs that are already parts of the
 * input (engine/plan/placement.c) are skipped. */
#include <stdio.h>
#include <string.h>

#include "engine/cpu/cpu.h"

struct piece_of {
    int64_t first, floats, sample, pixel; /* first channel, channels; strides of the output */
};

struct split_state {
    struct sac_map  in;
    int             count;
    struct piece_of parts[];
};

static bool channels_last(const struct sac_kernel_question *q)
{
    const struct sac_op_call *c = q->call;
    return c->in[0].dtype == SAC_F32 && sac_map_fits(&c->in[0]) &&
           q->in_layout[0] == SAC_LAYOUT_CHANNELS_LAST && sac_operand_elements(&c->in[0]) > 0;
}

static struct sac_kernel_offer accept(const struct sac_kernel_question *q)
{
    struct sac_kernel_offer offer = sac_kernel_take(q);
    for (int i = 0; i < q->call->out_count; i++)
        offer.out_layout[i] = SAC_LAYOUT_CHANNELS_LAST;
    offer.strided = true;
    return offer;
}

static struct sac_kernel_offer split_supports(struct sac_device                *dev,
                                              const struct sac_kernel_question *q)
{
    const int64_t axis = sac_attr_int(q->call->node, "axis", 0);
    (void)dev;
    if (!channels_last(q) || (axis != 1 && axis != 1 - q->call->in[0].rank))
        return sac_kernel_refuse("not along the channels of a map in channels last");
    return accept(q);
}

/* The first channel of a Slice along the channels only; -1: it is not one. */
static int64_t slice_first(const struct sac_op_call *c)
{
    int64_t starts[SAC_RANK_MAX], axes[SAC_RANK_MAX], steps[SAC_RANK_MAX];
    size_t  count, axis_count = 0, step_count = 0;
    if (c->in_count < 4 || !c->in[1].data || !c->in[3].present || !c->in[3].data ||
        sac_operand_ints(c, 1, starts, SAC_RANK_MAX, &count) != SAC_OK ||
        sac_operand_ints(c, 3, axes, SAC_RANK_MAX, &axis_count) != SAC_OK || axis_count != count)
        return -1;
    if (c->in_count > 4 && c->in[4].present &&
        (!c->in[4].data || sac_operand_ints(c, 4, steps, SAC_RANK_MAX, &step_count) != SAC_OK))
        return -1;
    for (int d = 0; d < c->in[0].rank; d++)
        if (d != 1 && c->in[0].dims[d] != c->out[0].dims[d])
            return -1;
    int64_t first = 0;
    for (size_t i = 0; i < count; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + c->in[0].rank : axes[i];
        if (step_count && steps[i] != 1)
            return -1;
        if (axis == 1)
            first = starts[i] < 0 ? starts[i] + c->in[0].dims[1] : starts[i];
    }
    return first >= 0 && first + c->out[0].dims[1] <= c->in[0].dims[1] ? first : -1;
}

static struct sac_kernel_offer slice_supports(struct sac_device                *dev,
                                              const struct sac_kernel_question *q)
{
    (void)dev;
    if (!channels_last(q) || sac_operand_elements(&q->call->out[0]) == 0 ||
        slice_first(q->call) < 0)
        return sac_kernel_refuse("not along the channels of a map in channels last");
    return accept(q);
}

static sac_result split_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    struct split_state *s = sac_calloc(1, sizeof *s + (size_t)c->out_count * sizeof s->parts[0]);
    (void)dev;
    if (!s)
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    int64_t first = c->node->op->id == SAC_OP_Slice ? slice_first(c) : 0;
    s->in = sac_map_in(plan, 0);
    s->count = c->out_count;
    for (int i = 0; i < c->out_count; i++) {
        if (!c->out[i].present)
            continue;
        const struct sac_map out = sac_map_out(plan, i);
        s->parts[i] = (struct piece_of){first, out.c, out.sample, out.pixel};
        first += out.c;
    }
    snprintf(plan->implementation, sizeof plan->implementation, "copy");
    plan->state = s;
    return SAC_OK;
}

static sac_result split_run(struct sac_device *dev, void *state, void *const *in, void *const *out,
                            void *scratch, struct sac_device_stream *stream)
{
    const struct split_state *s = state;
    (void)dev, (void)scratch, (void)stream;
    for (int i = 0; i < s->count; i++) {
        const struct piece_of *p = &s->parts[i];
        const float           *from = (const float *)in[0] + p->first;
        if (!out[i] || out[i] == from)
            continue;
        for (int64_t n = 0; n < s->in.n; n++)
            for (int64_t r = 0; r < s->in.h * s->in.w; r++)
                memcpy((float *)out[i] + n * p->sample + r * p->pixel,
                       from + n * s->in.sample + r * s->in.pixel,
                       (size_t)p->floats * sizeof(float));
    }
    return SAC_OK;
}

const struct sac_kernel sac_cpu_Split = {SAC_OP_Split, split_supports, split_prepare, split_run,
                                         sac_free};
const struct sac_kernel sac_cpu_Slice = {SAC_OP_Slice, slice_supports, split_prepare, split_run,
                                         sac_free};
