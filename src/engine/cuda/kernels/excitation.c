/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/kernels/excitation.h"

#include "engine/cuda/kernels/kernels.h"
#include "engine/ops/excitation.h"

/* A block for each multiprocessor of a large card. With two, EfficientNet-B0 at batch 32 took 1.16
 * ms in place of 1.05 (one H100, 2026-11-27): clusters of eight find no room for all at once. */
enum { BLOCKS = 132, LANES = 8 };

/* Maps of one pixel lie the same in both orders. */
static bool excitation_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    const bool maps = sac_excitation_read(q->call).pixels > 1;
    for (int i = 1; i < q->call->in_count; i++)
        offer->in_layout[i] = ops_with_last(offer->in_layout[i], false);
    if (maps && ops_can_be_last(&q->call->in[0]))
        offer->in_layout[0] = ops_with_last(offer->in_layout[0], true);
    offer->strided = sac_layout_is_last(offer->in_layout[0]) && maps;
    offer->out_layout[0] = ops_with_half(ops_with_last(offer->in_layout[0], false), false);
    ops_halve_output(q, offer, 0, true);
    return true;
}

/* As many threads for a row as a block's rows leave to each, and as have eight numbers to read. */
static struct ops_layer layer_of(const struct sac_kernel_plan *plan, int input, int blocks,
                                 const struct sac_activation *act)
{
    const struct sac_operand *w = &plan->call->in[input];
    struct ops_layer          l = {.length = w->dims[1],
                                   .rows = w->dims[0],
                                   .w_type = ops_in_type(plan, input),
                                   .bias_type = ops_in_type(plan, input + 1),
                                   .lanes = 1};
    const int64_t             rows = (l.rows + blocks - 1) / blocks;
    l.fn = ops_activation_fn(act, &l.a, &l.b);
    while (l.lanes < 32 && l.lanes * LANES < l.length &&
           2 * l.lanes * rows <= OPS_EXCITATION_THREADS)
        l.lanes *= 2;
    return l;
}

static struct ops_maps maps_of(const struct sac_kernel_plan *plan, int64_t pixels)
{
    const int rank = plan->call->in[0].rank;
    int64_t   steps[SAC_RANK_MAX];
    ops_steps_in(plan, 0, steps);
    return (struct ops_maps){steps[0], steps[1], rank > 2 ? steps[rank - 1] : 0, pixels};
}

static sac_result excitation_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_excitation e = sac_excitation_read(plan->call);
    struct ops_excitation      *p = params;
    p->n = e.n;
    int blocks = 1;
    for (; blocks < OPS_EXCITATION_BLOCKS_MAX && 2 * blocks * e.n <= BLOCKS; p->shift++)
        blocks *= 2;
    p->layer[0] = layer_of(plan, 1, blocks, &e.inner);
    p->layer[1] = layer_of(plan, 3, blocks, &e.act);
    p->maps = maps_of(plan, e.pixels);
    p->in_type = ops_in_type(plan, 0);
    p->out_type = ops_out_type(plan, 0);
    p->vector = p->maps.channel == 1 && e.channels % LANES == 0 && p->maps.sample % LANES == 0 &&
                p->maps.pixel % LANES == 0 && ops_is_f16_or_f32(p->in_type);
    plan->scratch_bytes = (size_t)(e.n * e.hidden) * sizeof(float);
    if (e.pixels > 1)
        plan->scratch_bytes += (size_t)(e.n * blocks * e.channels) * sizeof(float);
    return SAC_OK;
}

OPS_ROW(Excitation, excitation_layouts, excitation_fill, ops_launch_excitation, ops_excitation)
