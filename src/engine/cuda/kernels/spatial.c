/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of operators that read or write images at positions given by other tensors. */
#include "engine/cuda/kernels/spatial.h"

#include "engine/cuda/kernels/kernels.h"

/* The image may be in channels last; the positions are in ONNX's order. */
static bool image_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    const struct sac_op_call *c = q->call;
    const bool last = sac_layout_is_last(offer->in_layout[0]) && ops_can_be_last(&c->in[0]);
    for (int i = 1; i < c->in_count; i++)
        offer->in_layout[i] = ops_with_last(offer->in_layout[i], false);
    offer->out_layout[0] = ops_with_last(SAC_LAYOUT_PLAIN, last);
    ops_halve_output(q, offer, 0, true);
    return ops_small_enough(q, offer);
}

/* Eight channels of a place side by side are read at once, where a map of plain ones is read all
 * over for each: worth turning it. */
static bool grid_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    const struct sac_operand *map = &q->call->in[0];
    if (ops_can_be_last(map) && map->dtype == SAC_F32 && map->dims[1] % 8 == 0)
        offer->in_layout[0] = ops_with_last(offer->in_layout[0], true);
    return image_layouts(q, offer);
}

static bool plain_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    ops_want_plain(q, offer);
    return ops_small_enough(q, offer);
}

static sac_result grid_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    struct ops_grid_sample   *p = params;
    struct sac_sampler        s;
    SAC_TRY(sac_sampler_read(c, &s));
    p->mode = (int)s.mode;
    p->padding = (int)s.padding;
    p->align = s.align;
    p->rank = c->in[0].rank - 2;
    for (int d = 0; d < SAC_SAMPLE_DIMS; d++)
        p->size[d] = (int)s.size[d];
    p->in_type = ops_in_type(plan, 0);
    p->grid_type = ops_in_type(plan, 1);
    p->out_type = ops_out_type(plan, 0);
    ops_window_steps(plan, 0, &p->w);
    p->places = ops_places_of(&p->w, &c->out[0], sac_layout_is_last(plan->out_layout[0]));
    p->vector = p->places.last && sac_layout_is_last(plan->in_layout[0]) &&
                ops_window_by_eights(&p->w, p->in_type, p->out_type, c->in[0].dims[1]);
    if (p->vector) {
        p->units = p->places;
        p->units.c = ops_divisor_of(c->in[0].dims[1] / 8);
        p->units.count /= 8;
    }
    return SAC_OK;
}

static sac_result affine_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_operand *out = &plan->call->out[0];
    struct ops_affine        *p = params;
    p->rank = (int)plan->call->in[0].dims[1];
    p->align = sac_attr_int(plan->call->node, "align_corners", 0) != 0;
    p->in_type = ops_in_type(plan, 0);
    p->out_type = ops_out_type(plan, 0);
    for (int d = 0; d < 3; d++)
        p->size[d] = d < 3 - p->rank ? 1 : SAC_MAX(out->dims[1 + d - (3 - p->rank)], 1);
    p->count = ops_count_out(plan, 0) / SAC_MAX(p->rank, 1);
    ops_take(plan, 1);
    return SAC_OK;
}

static sac_result roi_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    struct ops_roi_align     *p = params;
    struct sac_roi_align      r;
    SAC_TRY(sac_roi_read(c, &r));
    p->images = (int)c->in[0].dims[0];
    p->height = (int)c->in[0].dims[2];
    p->width = (int)c->in[0].dims[3];
    p->bins_y = (int)r.height;
    p->bins_x = (int)r.width;
    p->sampling = (int)r.sampling;
    p->max = r.max;
    p->old = r.old;
    p->scale = r.scale;
    p->offset = r.offset;
    p->in_type = ops_in_type(plan, 0);
    p->roi_type = ops_in_type(plan, 1);
    p->out_type = ops_out_type(plan, 0);
    ops_window_steps(plan, 0, &p->w);
    p->places = ops_places_of(&p->w, &c->out[0], sac_layout_is_last(plan->out_layout[0]));
    return SAC_OK;
}

static sac_result col2im_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    struct ops_col2im        *p = params;
    struct sac_col2im         r;
    SAC_TRY(sac_col2im_read(c, &r));
    p->rank = r.rank;
    for (int d = 0; d < r.rank; d++) {
        p->image[d] = r.image[d];
        p->block[d] = r.block[d];
        p->places[d] = r.places[d];
        p->stride[d] = r.stride[d];
        p->dilation[d] = r.dilation[d];
        p->pad[d] = r.pad[d];
    }
    p->taps = sac_dims_product(r.rank, r.block);
    p->pixels = sac_dims_product(r.rank, r.image);
    p->columns = c->in[0].dims[2];
    p->count = ops_count_out(plan, 0);
    p->in_type = ops_in_type(plan, 0);
    p->out_type = ops_out_type(plan, 0);
    ops_take_from(plan, 1);
    return SAC_OK;
}

static sac_result deform_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    const struct sac_operand *x = &c->in[0], *weights = &c->in[1];
    struct ops_deform        *p = params;
    struct sac_window         w;
    SAC_TRY(sac_window_read(c, 0, weights->dims + 2, &w));
    if (!ops_window_of(plan, 0, &w, &p->w))
        return ops_view_fail(plan);
    p->places = ops_places_of(&p->w, &c->out[0], false);
    p->channels = (int)x->dims[1];
    p->in_each = (int)weights->dims[1];
    p->offset_groups = (int)sac_attr_int(c->node, "offset_group", 1);
    p->per_offset = SAC_MAX(p->channels / p->offset_groups, 1);
    p->out_each = (int)SAC_MAX(weights->dims[0] / sac_attr_int(c->node, "group", 1), 1);
    for (int i = 0; i < 5; i++)
        p->type[i] = ops_in_type(plan, i);
    p->out_type = ops_out_type(plan, 0);
    return SAC_OK;
}

static sac_result unpool_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    struct ops_unpool        *p = params;
    SAC_TRY(sac_unpool_whole(c, p->whole));
    p->rank = c->in[0].rank;
    p->count = ops_count_in(plan, 0);
    p->out_count = ops_count_out(plan, 0);
    p->whole_count = sac_dims_product(p->rank, p->whole);
    p->bytes = (int)sac_dtype_bytes((enum sac_dtype)ops_out_type(plan, 0));
    ops_steps_out(plan, 0, p->step);
    ops_take(plan, 2);
    return SAC_OK;
}

OPS_ROW(GridSample, grid_layouts, grid_fill, ops_launch_grid_sample, ops_grid_sample)
/* Positions are float32, because they are pixel coordinates. */
OPS_ROW(AffineGrid, ops_exact_layouts, affine_fill, ops_launch_affine, ops_affine)
OPS_ROW(RoiAlign, image_layouts, roi_fill, ops_launch_roi_align, ops_roi_align)
OPS_ROW(Col2Im, plain_layouts, col2im_fill, ops_launch_col2im, ops_col2im)
OPS_ROW(DeformConv, plain_layouts, deform_fill, ops_launch_deform, ops_deform)
OPS_ROW(MaxUnpool, ops_moved_layouts, unpool_fill, ops_launch_unpool, ops_unpool)
