/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/kernels/excitation.h"

#include "engine/cuda/kernels/kernels.h"
#include "engine/ops/excitation.h"

enum {
    LANES = 8,
    THREADS = OPS_EXCITATION_THREADS,
    PROCESSORS = 132,      /* of a large card */
    WAVE = 8 * PROCESSORS, /* blocks that it holds at once */
    PIXELS_MIN = 4,        /* of a thread, where there are more */
    TURNS_MAX = 16,
    ROOM_MAX = 1024 /* numbers between the layers, of each of the samples that share a block */
};

/* Maps of one pixel lie the same in both orders. Weights have the precision of the map. */
static bool excitation_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    const struct sac_excitation e = sac_excitation_read(q->call);
    const bool                  maps = e.pixels > 1;
    const bool half = q->precision == SAC_PRECISION_FP16 && sac_layout_is_half(offer->in_layout[0]);
    if (e.channels == 0 || e.hidden == 0 || e.gates == 0)
        return ops_refuse(offer, "a layer without numbers");
    for (int i = 1; i < q->call->in_count; i++)
        offer->in_layout[i] = ops_with_last(offer->in_layout[i], false);
    for (int i = 1; i < q->call->in_count; i += 2)
        if (half)
            offer->in_layout[i] = SAC_LAYOUT_PLAIN_HALF;
    if (maps && ops_can_be_last(&q->call->in[0]))
        offer->in_layout[0] = ops_with_last(offer->in_layout[0], true);
    offer->strided = sac_layout_is_last(offer->in_layout[0]) && maps;
    offer->out_layout[0] = ops_with_half(ops_with_last(offer->in_layout[0], false), false);
    ops_halve_output(q, offer, 0, true);
    return true;
}

static int64_t parts_of(int64_t whole, int64_t part)
{
    return (whole + part - 1) / part;
}

/* The least power of two, of at most `most`, that is not less than n. */
static int32_t power_of(int64_t n, int32_t most)
{
    int32_t power = 1;
    while (power < most && power < n)
        power *= 2;
    return power;
}

static struct ops_layer layer_of(const struct sac_kernel_plan *plan, int input,
                                 const struct sac_activation *act)
{
    const struct sac_operand *w = &plan->call->in[input];
    struct ops_layer          l = {.length = w->dims[1],
                                   .rows = w->dims[0],
                                   .w_type = ops_in_type(plan, input),
                                   .bias_type = ops_in_type(plan, input + 1),
                                   .together = 1};
    l.fn = ops_activation_fn(act, &l.a, &l.b);
    return l;
}

static struct ops_maps maps_of(const struct sac_kernel_plan *plan, int64_t pixels)
{
    const int rank = plan->call->in[0].rank;
    int64_t   steps[SAC_RANK_MAX];
    ops_steps_in(plan, 0, steps);
    return (struct ops_maps){steps[0], steps[1], rank > 2 ? steps[rank - 1] : 0, pixels};
}

/* Samples share a block where there are blocks enough without and weights are much of what one
 * reads. */
static int32_t together_of(int64_t n, int64_t blocks, bool heavy)
{
    const int64_t groups = parts_of(n, OPS_EXCITATION_TOGETHER);
    return heavy && n > 1 && blocks * groups >= PROCESSORS ? OPS_EXCITATION_TOGETHER : 1;
}

/* A sample's pixels are split so that blocks fill the card and threads have some pixels each. */
static void share_first(struct ops_excitation *p)
{
    const struct ops_layer *l = &p->layer[0];
    const int64_t           units = parts_of(l->length, LANES);
    p->abreast = power_of(units, OPS_EXCITATION_CHUNK / LANES);
    p->chunks = (int32_t)parts_of(units, p->abreast);
    p->layer[0].together =
        p->vector[0] ? together_of(p->n, p->chunks, p->maps.pixels <= 2 * l->rows) : 1;
    const int64_t blocks = p->chunks * parts_of(p->n, l->together),
                  turns = parts_of(p->maps.pixels, THREADS / p->abreast);
    p->splits = (int32_t)SAC_CLAMP(WAVE / SAC_MAX(blocks, 1), 1, SAC_MAX(turns / PIXELS_MIN, 1));
}

static void share_second(struct ops_excitation *p)
{
    const struct ops_layer *l = &p->layer[1];
    p->lanes = power_of(parts_of(l->length, LANES), 32);
    const int64_t all = parts_of(l->rows, THREADS / p->lanes);
    p->layer[1].together = p->vector[1] ? together_of(p->n, all, l->length <= ROOM_MAX) : 1;
    p->turns = (int32_t)SAC_CLAMP(all * parts_of(p->n, l->together) / PROCESSORS, 1, TURNS_MAX);
}

static sac_result excitation_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_excitation e = sac_excitation_read(plan->call);
    struct ops_excitation      *p = params;
    p->n = e.n;
    p->layer[0] = layer_of(plan, 1, &e.inner);
    p->layer[1] = layer_of(plan, 3, &e.act);
    p->maps = maps_of(plan, e.pixels);
    p->in_type = ops_in_type(plan, 0);
    p->out_type = ops_out_type(plan, 0);
    p->vector[0] = p->maps.channel == 1 && e.channels % LANES == 0 && p->maps.sample % LANES == 0 &&
                   p->maps.pixel % LANES == 0 && ops_is_f16_or_f32(p->in_type) &&
                   p->layer[0].w_type == p->in_type;
    p->vector[1] = e.hidden % LANES == 0 && ops_is_f16_or_f32(p->layer[1].w_type);
    share_first(p);
    share_second(p);
    plan->scratch_bytes = (size_t)(e.n * p->chunks * p->splits * e.hidden) * sizeof(float);
    return SAC_OK;
}

OPS_ROW(Excitation, excitation_layouts, excitation_fill, ops_launch_excitation, ops_excitation)
