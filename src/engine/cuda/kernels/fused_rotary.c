/* SPDX-License-Identifier: Apache-2.0 */
/* The row of FusedRotary. */
#include "engine/cuda/kernels/fused_rotary.h"

#include "engine/cuda/kernels/kernels.h"

enum { X, COSINE, SINE, INPUTS, EIGHT = 8 };

/* Constant tables in the precision of the output: cosines and sines are at most 1. */
static bool rotary_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    ops_want_plain(q, offer);
    for (int i = COSINE; i < INPUTS; i++)
        if (q->call->in[i].data)
            offer->in_layout[i] = offer->out_layout[0];
    return true;
}

/* The dims of the heads, the last of them taken apart: blocks, and the first numbers of their
 * pairs; or one block after the other. */
static void add_operands(struct sac_kernel_plan *plan, const struct sac_fused_rotary *r,
                         bool in_blocks, struct ops_shape *s)
{
    const int last = r->rank - 1, rank = r->rank + in_blocks;
    int64_t   dims[OPS_SHAPE_DIMS], own[SAC_RANK_MAX], steps[1 + INPUTS][OPS_SHAPE_DIMS] = {{0}};
    for (int k = 0; k <= INPUTS; k++) {
        const struct sac_operand *o = k == 0 ? &plan->call->out[0] : &plan->call->in[k - 1];
        const int                 missing = r->rank - o->rank;
        if (k == 0)
            ops_steps_out(plan, 0, own);
        else
            ops_steps_in(plan, k - 1, own);
        for (int d = 0; d < r->rank; d++)
            steps[k][d] = k == 1 + X                                 ? r->step[d]
                          : d < missing || o->dims[d - missing] == 1 ? 0
                                                                     : own[d - missing];
        steps[k][rank - 1] = steps[k][last];
        if (in_blocks)
            steps[k][last] = steps[k][rank - 1] * r->block;
    }
    memcpy(dims, r->dims, (size_t)r->rank * sizeof *dims);
    if (in_blocks) {
        dims[last] = r->size / r->block;
        dims[rank - 1] = r->block / 2;
    }
    ops_shape_init(s, rank, dims);
    for (int k = 0; k <= INPUTS; k++)
        ops_shape_add(s, k == 1 + X ? r->offset : 0, steps[k]);
}

/* Do all operands lie in units of eight, and is what is added to a place one, too? */
static void find_units(struct sac_kernel_plan *plan, const struct sac_fused_rotary *r,
                       struct ops_fused_rotary *p)
{
    const bool       within = p->half == 1 || p->half == 2 || p->half == 4;
    struct ops_shape s;
    struct ops_view  all;
    unsigned         stills;
    bool             floats = r->step[r->rank - 1] == 1;
    for (int k = 0; k <= INPUTS; k++)
        floats &= ops_is_f16_or_f32(p->type[k]);
    if (!floats || (!within && p->half % EIGHT != 0))
        return;
    add_operands(plan, r, !within, &s);
    p->within = within ? (int)p->half : 0;
    p->vector = ops_view_of(&s, 0, &all) &&
                ops_view_units(&all, 1 + INPUTS, EIGHT, false, &p->units, &stills);
}

static sac_result rotary_fill(struct sac_kernel_plan *plan, void *params)
{
    struct ops_fused_rotary *p = params;
    struct sac_fused_rotary  r;
    struct ops_shape         s;
    SAC_TRY(sac_fused_rotary_read(plan->call, &r));
    p->half = r.block / 2;
    p->x_step = r.step[r.rank - 1];
    p->type[0] = ops_out_type(plan, 0);
    for (int i = 0; i < INPUTS; i++)
        p->type[1 + i] = ops_in_type(plan, i);
    add_operands(plan, &r, true, &s);
    if (!ops_view_of(&s, 0, &p->pairs))
        return ops_view_fail(plan);
    find_units(plan, &r, p);
    return SAC_OK;
}

OPS_ROW(FusedRotary, rotary_layouts, rotary_fill, ops_launch_fused_rotary, ops_fused_rotary)
