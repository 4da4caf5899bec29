/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/kernels/excitation.h"

#include "engine/cuda/kernels/kernels.h"
#include "engine/ops/excitation.h"

/* One block alone reads slowly: beyond so many weights several share them, in two launches, so that
 * all multiprocessors read and each has few rows to wait for. */
enum { WEIGHTS_OF_A_BLOCK = 12 << 10, BLOCKS = 264, PARTS_MAX = 32 };

/* Maps of one pixel lie the same in both orders. */
static bool excitation_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    for (int i = 1; i < q->call->in_count; i++)
        offer->in_layout[i] = ops_with_last(offer->in_layout[i], false);
    offer->out_layout[0] = ops_with_half(offer->in_layout[0], false);
    ops_halve_output(q, offer, 0, true);
    return true;
}

static struct ops_layer layer_of(const struct sac_kernel_plan *plan, int input,
                                 const struct sac_activation *act)
{
    const struct sac_operand *w = &plan->call->in[input];
    struct ops_layer          l = {.length = w->dims[1],
                                   .rows = w->dims[0],
                                   .w_type = ops_in_type(plan, input),
                                   .bias_type = ops_in_type(plan, input + 1),
                                   .lanes = 1};
    l.fn = ops_activation_fn(act, &l.a, &l.b);
    while (l.lanes < 32 && l.lanes * 8 < l.length)
        l.lanes *= 2;
    return l;
}

static sac_result excitation_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_excitation e = sac_excitation_read(plan->call);
    struct ops_excitation      *p = params;
    const int64_t               weights = e.hidden * (e.channels + e.gates);
    p->n = e.n;
    p->layer[0] = layer_of(plan, 1, &e.inner);
    p->layer[1] = layer_of(plan, 3, &e.act);
    p->in_type = ops_in_type(plan, 0);
    p->out_type = ops_out_type(plan, 0);
    p->parts = 1;
    if (weights > WEIGHTS_OF_A_BLOCK)
        p->parts = (int32_t)SAC_CLAMP(BLOCKS / SAC_MAX(e.n, 1), 1, PARTS_MAX);
    plan->scratch_bytes = p->parts > 1 ? (size_t)(e.n * e.hidden) * sizeof(float) : 0;
    return SAC_OK;
}

OPS_ROW(Excitation, excitation_layouts, excitation_fill, ops_launch_excitation, ops_excitation)
