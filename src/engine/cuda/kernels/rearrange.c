/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/kernels/rearrange.h"

#include "engine/cuda/kernels/kernels.h"

_Static_assert((int)OPS_RINGS == (int)SAC_REARRANGE_RINGS &&
                   2 + (int)OPS_RINGS + 1 <= (int)OPS_OPERANDS &&
                   (int)SAC_REARRANGE_DIGITS <= (int)OPS_DIMS,
               "what the row takes fits into a view");

/* X as it lies. The output stays in channels last where that keeps its meaning. */
static bool rearrange_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    struct sac_rearrange r;
    bool                 half = sac_layout_is_half(offer->in_layout[0]);
    if (sac_rearrange_read(q->call, &r) != SAC_OK)
        return ops_refuse(offer, "its digits do not fit");
    for (int a = 0; a < r.axes; a++)
        if (r.ring[a] && r.period[a] >= INT32_MAX / 2)
            return ops_refuse(offer, "an axis of %lld", (long long)r.period[a]);
    if (!ops_can_be_last(&q->call->in[0]))
        offer->in_layout[0] = ops_with_last(offer->in_layout[0], false);
    const bool last = sac_layout_is_last(offer->in_layout[0]) &&
                      ops_can_be_last(&q->call->out[0]) && sac_rearrange_is_map(q->call, &r);
    if (sac_op_has(q->call, 1)) {
        offer->in_layout[1] = ops_with_last(offer->in_layout[1], last);
        half &= sac_layout_is_half(offer->in_layout[1]);
    }
    offer->writes_any = !sac_op_has(q->call, 1) && ops_can_be_last(&q->call->out[0]) &&
                        q->call->out[0].dtype == SAC_F32 && sac_rearrange_fits_dims(q->call, &r);
    offer->out_layout[0] = ops_with_half(ops_with_last(SAC_LAYOUT_PLAIN, last), half);
    offer->in_place =
        sac_op_has(q->call, 1) && offer->in_layout[1] == offer->out_layout[0] ? 1 : -1;
    return true;
}

/* Over the output's digits, with the output and the straight axes of X as operands. */
static void straight_shape(struct sac_kernel_plan *plan, const struct sac_rearrange *r,
                           const int64_t *to, struct ops_shape *s)
{
    int64_t in[SAC_RANK_MAX], from[SAC_REARRANGE_DIGITS], start = 0;
    ops_steps_in(plan, 0, in);
    for (int i = 0; i < r->digits; i++)
        from[i] = r->ring[r->axis[i]] ? 0 : r->step[i] * in[r->axis[i]];
    for (int a = 0; a < r->axes; a++)
        start += r->ring[a] ? 0 : r->start[a] * in[a];
    ops_shape_init(s, r->digits, r->dim);
    ops_shape_add(s, 0, to);
    ops_shape_add(s, start, from);
}

static void add_rings(struct sac_kernel_plan *plan, const struct sac_rearrange *r,
                      struct ops_shape *s, struct ops_rearrange *p)
{
    int64_t in[SAC_RANK_MAX], steps[SAC_REARRANGE_DIGITS];
    ops_steps_in(plan, 0, in);
    for (int a = 0; a < r->axes; a++) {
        if (!r->ring[a])
            continue;
        for (int i = 0; i < r->digits; i++)
            steps[i] = r->axis[i] == a ? r->step[i] : 0;
        ops_shape_add(s, r->start[a], steps);
        p->ring[p->rings++] =
            (struct ops_ring){.period = r->period[a],
                              .size = r->size[a],
                              .inner = ops_divisor_of(r->inner[a]),
                              .stride = in[a],
                              .inner_stride = r->part[a] < 0 ? 0 : in[r->part[a]]};
    }
}

/* Units of n numbers: only the rings stand still within one. */
static void find_units(struct ops_rearrange *p, int n)
{
    const int operands = 2 + p->rings + p->adds;
    unsigned  stills, rings = 0;
    for (int k = 0; k < p->rings; k++) {
        struct ops_ring *ring = &p->ring[k];
        if (ring->stride % n || ring->inner_stride % n)
            return;
        ring->unit_stride = ring->stride / n;
        ring->unit_inner_stride = ring->inner_stride / n;
        rings |= 4u << k;
    }
    p->vector =
        n > 1 && ops_view_units(&p->view, operands, n, true, &p->units, &stills) && stills == rings;
}

static sac_result rearrange_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    struct ops_rearrange     *p = params;
    struct sac_rearrange      r;
    struct ops_shape          s;
    int64_t                   out[SAC_RANK_MAX], to[SAC_REARRANGE_DIGITS];
    SAC_TRY(sac_rearrange_read(c, &r));
    ops_steps_out(plan, 0, out);
    if (!sac_layout_is_last(plan->out_layout[0]))
        sac_dense_strides(r.digits, r.dim, to);
    else
        sac_rearrange_steps(&r, c->out[0].rank, c->out[0].dims, out, to);
    straight_shape(plan, &r, to, &s);
    add_rings(plan, &r, &s, p);
    p->adds = sac_op_has(c, 1);
    p->in_type = ops_in_type(plan, 0);
    p->add_type = p->adds ? ops_in_type(plan, 1) : 0;
    p->out_type = ops_out_type(plan, 0);
    p->bytes = (int)sac_dtype_bytes((enum sac_dtype)p->out_type);
    p->moves = p->in_type == p->out_type && !p->adds;
    p->straight = p->rings == 0 && p->moves;
    if (p->straight)
        return ops_copies_add(plan, &p->copy, &s, 0, 0);
    if (p->adds)
        ops_shape_add(&s, 0, to);
    if (!ops_view_of(&s, 0, &p->view))
        return ops_view_fail(plan);
    find_units(p, p->moves ? 16 / p->bytes : 8);
    return SAC_OK;
}

OPS_ROW(Rearrange, rearrange_layouts, rearrange_fill, ops_launch_rearrange, ops_rearrange)
