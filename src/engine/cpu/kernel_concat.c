/* SPDX-License-Identifier: Apache-2.0 */
/* Concat in channels last, along the channels or the outermost spatial axis. Inputs that are
 * already in the output (engine/plan/placement.c) are skipped. */
#include <stdio.h>
#include <string.h>

#include "engine/cpu/cpu.h"

struct part {
    int64_t rows, sample, row; /* rows of `floats` numbers a sample; strides of the input */
    int64_t floats, offset;    /* offset: in the output */
};

struct concat_state {
    int64_t     n, out_sample, out_row;
    int         count;
    struct part parts[];
};

static int concat_axis(const struct sac_op_call *c)
{
    int axis = (int)sac_attr_int(c->node, "axis", 1);
    return axis < 0 ? axis + c->out[0].rank : axis;
}

static struct sac_kernel_offer concat_supports(struct sac_device                *dev,
                                               const struct sac_kernel_question *q)
{
    struct sac_kernel_offer   offer = sac_kernel_take(q);
    const struct sac_op_call *c = q->call;
    bool                      any = false;
    (void)dev;
    for (int i = 0; i < c->in_count; i++)
        any |= offer.in_layout[i] == SAC_LAYOUT_CHANNELS_LAST;
    if (!any || !sac_call_is_float(q->call) || !sac_map_fits(&c->out[0]))
        return sac_kernel_refuse("no input of it is float32 in channels last");
    if (concat_axis(c) != 1 && concat_axis(c) != 2)
        return sac_kernel_refuse("axis %d; have 1, 2", concat_axis(c));
    for (int i = 0; i < c->in_count; i++)
        offer.in_layout[i] = SAC_LAYOUT_CHANNELS_LAST;
    offer.out_layout[0] = SAC_LAYOUT_CHANNELS_LAST;
    offer.strided = true;
    return offer;
}

static sac_result concat_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    const struct sac_map      out = sac_map_out(plan, 0);
    const bool                channels = concat_axis(c) == 1;
    struct concat_state *s = sac_calloc(1, sizeof *s + (size_t)c->in_count * sizeof s->parts[0]);
    (void)dev;
    if (!s)
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    *s = (struct concat_state){out.n, out.sample, out.pixel, c->in_count};
    int64_t offset = 0;
    for (int i = 0; i < c->in_count; i++) {
        const struct sac_map in = sac_map_in(plan, i);
        s->parts[i] = (struct part){in.h * in.w, in.sample, in.pixel, in.c, offset};
        offset += channels ? in.c : in.h * in.w * out.pixel;
    }
    snprintf(plan->implementation, sizeof plan->implementation, "concat");
    plan->state = s;
    return SAC_OK;
}

static void copy_part(const struct concat_state *s, const struct part *p, const float *in,
                      float *out)
{
    for (int64_t n = 0; n < s->n; n++) {
        const float *from = in + n * p->sample;
        float       *to = out + n * s->out_sample;
        if (p->row == p->floats && s->out_row == p->floats) {
            memcpy(to, from, (size_t)(p->rows * p->floats) * sizeof *to);
            continue;
        }
        for (int64_t r = 0; r < p->rows; r++)
            memcpy(to + r * s->out_row, from + r * p->row, (size_t)p->floats * sizeof *to);
    }
}

static sac_result concat_run(struct sac_device *dev, void *state, void *const *in, void *const *out,
                             void *scratch, struct sac_device_stream *stream)
{
    const struct concat_state *s = state;
    (void)dev, (void)scratch, (void)stream;
    for (int i = 0; i < s->count; i++) {
        float *to = (float *)out[0] + s->parts[i].offset;
        if (in[i] != to)
            copy_part(s, &s->parts[i], in[i], to);
    }
    return SAC_OK;
}

const struct sac_kernel sac_cpu_Concat = {SAC_OP_Concat, concat_supports, concat_prepare,
                                          concat_run, sac_free};
