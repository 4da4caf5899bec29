/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample of plain pictures, linear, with zeros or the border around them: what a place reads is
 * found once for all channels. */
#include <math.h>
#include <stdio.h>

#include "engine/cpu/cpu.h"
#include "engine/ops/reads.h"
#include "engine/ops/util.h"

enum { PLACES = 64 }; /* in a unit of work */

struct grid_state {
    struct sac_units units;
    int64_t          channels, height, width;
    int64_t          places, stretches; /* of one sample; units they make */
    bool             align, border;
};

static struct sac_kernel_offer grid_supports(struct sac_device                *dev,
                                             const struct sac_kernel_question *q)
{
    struct sac_kernel_offer offer = sac_kernel_take(q);
    struct sac_sampler      s;
    (void)dev;
    if (sac_cpu_level() < SAC_CPU_AVX2 || q->call->in[0].rank != 4 || !sac_call_is_float(q->call) ||
        sac_operand_elements(&q->call->out[0]) == 0)
        return sac_kernel_refuse("not float32 pictures, empty, or no AVX2");
    if (sac_sampler_read(q->call, &s) != SAC_OK || s.mode != SAC_SAMPLE_LINEAR ||
        s.padding == SAC_SAMPLE_REFLECTION)
        return sac_kernel_refuse("not linear, or reflection");
    offer.in_layout[0] = offer.in_layout[1] = SAC_LAYOUT_PLAIN;
    return offer;
}

/* Two neighbours along a dimension; of weight 0 where nothing lies there. */
struct pair {
    int64_t at[2];
    float   weight[2];
};

static struct pair pair_at(const struct grid_state *s, int64_t size, float g)
{
    const float last = (float)(size - 1);
    float       x = s->align ? (g + 1) / 2 * last : ((g + 1) * (float)size - 1) / 2;
    /* what is beyond, or no number, reads nothing or the border */
    x = fminf(fmaxf(x, s->border ? 0 : -2), s->border ? last : (float)size + 1);
    const int64_t at = (int64_t)floorf(x);
    const float   share = x - (float)at;
    struct pair   p = {{at, at + 1}, {1 - share, share}};
    for (int k = 0; k < 2; k++)
        if (p.at[k] < 0 || p.at[k] >= size)
            p.at[k] = p.weight[k] = 0;
    return p;
}

static void grid_stretch(const struct grid_state *s, const float *x, const float *grid, float *y,
                         int count)
{
    int64_t at[4][PLACES];
    float   weight[4][PLACES];
    for (int i = 0; i < count; i++) {
        const struct pair column = pair_at(s, s->width, grid[2 * i]),
                          row = pair_at(s, s->height, grid[2 * i + 1]);
        for (int k = 0; k < 4; k++) {
            at[k][i] = row.at[k / 2] * s->width + column.at[k % 2];
            weight[k][i] = row.weight[k / 2] * column.weight[k % 2];
        }
    }
    for (int64_t c = 0; c < s->channels; c++, x += s->height * s->width, y += s->places)
        for (int i = 0; i < count; i++) {
            float sum = 0;
            for (int k = 0; k < 4; k++) /* what has no weight may be infinite */
                sum += weight[k][i] != 0 ? weight[k][i] * x[at[k][i]] : 0;
            y[i] = sum;
        }
}

static void grid_work(const void *state, void *const *in, void *const *out, int64_t first,
                      int64_t end)
{
    const struct grid_state *s = state;
    for (int64_t u = first; u < end; u++) {
        const int64_t n = u / s->stretches, place = u % s->stretches * PLACES;
        grid_stretch(s, (const float *)in[0] + n * s->channels * s->height * s->width,
                     (const float *)in[1] + (n * s->places + place) * 2,
                     (float *)out[0] + n * s->channels * s->places + place,
                     (int)SAC_MIN(PLACES, s->places - place));
    }
}

static sac_result grid_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_operand *in = &plan->call->in[0], *out = &plan->call->out[0];
    struct grid_state        *s = sac_new(struct grid_state);
    struct sac_sampler        sampler;
    sac_result                res = s ? sac_sampler_read(plan->call, &sampler) : SAC_OK;
    if (!s)
        return SAC_OP_FAIL(plan->call, SAC_ERR_MEMORY, "no memory for its kernel");
    plan->state = s;
    if (res != SAC_OK)
        return res;
    s->channels = in->dims[1];
    s->height = in->dims[2];
    s->width = in->dims[3];
    s->places = out->dims[2] * out->dims[3];
    s->stretches = (s->places + PLACES - 1) / PLACES;
    s->align = sampler.align;
    s->border = sampler.padding == SAC_SAMPLE_BORDER;
    snprintf(plan->implementation, sizeof plan->implementation, "places");
    sac_units_init(&s->units, dev, in->dims[0] * s->stretches, sac_operand_elements(out) * 4,
                   grid_work);
    return SAC_OK;
}

const struct sac_kernel sac_cpu_GridSample = {SAC_OP_GridSample, grid_supports, grid_prepare,
                                              sac_units_run, sac_free};
