/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the Gather and Scatter families and of TopK. */
#include "engine/cuda/kernels/index.h"

#include "engine/cuda/kernels/kernels.h"

/* Bytes are moved: the output has the data's precision. */
static bool like_data(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    const struct sac_op_call *c = q->call;
    const bool half = sac_layout_is_half(offer->in_layout[0]) && c->in[0].dtype == SAC_F32;
    for (int i = 0; i < c->in_count; i++) {
        offer->in_layout[i] = ops_with_last(offer->in_layout[i], false);
        if (c->in[i].present && c->in[i].dtype == SAC_F32)
            offer->in_layout[i] = ops_with_half(offer->in_layout[i], half);
    }
    for (int i = 0; i < c->out_count; i++)
        offer->out_layout[i] = ops_with_half(SAC_LAYOUT_PLAIN, half && c->out[i].dtype == SAC_F32);
    return true;
}

static int data_bytes(const struct sac_kernel_plan *plan)
{
    return (int)sac_dtype_bytes((enum sac_dtype)ops_in_type(plan, 0));
}

/* ---- gather ---- */

/* Units of 16 bytes where whole slices are moved: the innermost dimension stands still for the
 * index. */
static void widen(struct ops_gather *p)
{
    const int       inner = p->view.rank - 1;
    const int64_t   n = 16 / p->bytes;
    struct ops_view units;
    unsigned        stills;
    if (p->view.step[2][inner] != 0 || n < 2)
        return;
    for (int k = 0; k < p->depth; k++)
        if (p->step[k] % n)
            return;
    struct ops_view two = p->view; /* of out and in; the index keeps its offsets */
    if (!ops_view_units(&two, 2, (int)n, false, &units, &stills))
        return;
    p->view = units;
    for (int k = 0; k < p->depth; k++)
        p->step[k] /= n;
    p->bytes = 16;
}

static sac_result finish_gather(struct sac_kernel_plan *plan, struct ops_gather *p,
                                const struct ops_shape *s)
{
    p->bytes = data_bytes(plan);
    p->index_type = ops_in_type(plan, 1);
    if (!ops_view_of(s, 0, &p->view))
        return ops_view_fail(plan);
    widen(p);
    return SAC_OK;
}

static sac_result gather_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    const struct sac_operand *in = &c->in[0], *indices = &c->in[1];
    struct ops_gather        *p = params;
    int                       axis, rank = 0;
    int64_t                   own[SAC_RANK_MAX], index[SAC_RANK_MAX];
    int64_t                   from[OPS_SHAPE_DIMS] = {0}, at[OPS_SHAPE_DIMS] = {0};
    struct ops_shape          s;
    SAC_TRY(sac_op_axis(c, 0, in->rank, &axis));
    ops_steps_in(plan, 0, own);
    ops_steps_in(plan, 1, index);
    for (int d = 0; d < axis; d++)
        from[rank++] = own[d];
    for (int d = 0; d < indices->rank; d++)
        at[rank++] = index[d];
    for (int d = axis + 1; d < in->rank; d++)
        from[rank++] = own[d];
    ops_shape_over_out(&s, plan);
    ops_shape_add(&s, 0, from);
    ops_shape_add(&s, 0, at);
    p->depth = 1;
    p->dim[0] = in->dims[axis];
    p->step[0] = own[axis];
    return finish_gather(plan, p, &s);
}

static sac_result gather_elements_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    struct ops_gather        *p = params;
    int                       axis;
    int64_t                   own[SAC_RANK_MAX], index[SAC_RANK_MAX];
    struct ops_shape          s;
    SAC_TRY(sac_op_axis(c, 0, c->in[0].rank, &axis));
    ops_steps_in(plan, 0, own);
    ops_steps_in(plan, 1, index);
    p->depth = 1;
    p->dim[0] = c->in[0].dims[axis];
    p->step[0] = own[axis];
    own[axis] = 0;
    ops_shape_over_out(&s, plan);
    ops_shape_add(&s, 0, own);
    ops_shape_add(&s, 0, index);
    return finish_gather(plan, p, &s);
}

static sac_result gather_nd_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    const struct sac_operand *in = &c->in[0], *indices = &c->in[1];
    struct ops_gather        *p = params;
    const int                 batch = (int)sac_attr_int(c->node, "batch_dims", 0),
              depth = (int)indices->dims[indices->rank - 1];
    int              rank = 0;
    int64_t          own[SAC_RANK_MAX], index[SAC_RANK_MAX];
    int64_t          from[OPS_SHAPE_DIMS] = {0}, at[OPS_SHAPE_DIMS] = {0};
    struct ops_shape s;
    ops_steps_in(plan, 0, own);
    ops_steps_in(plan, 1, index);
    for (int d = 0; d < indices->rank - 1; d++, rank++) {
        at[rank] = index[d];
        from[rank] = d < batch ? own[d] : 0;
    }
    for (int d = batch + depth; d < in->rank; d++)
        from[rank++] = own[d];
    p->depth = depth;
    for (int k = 0; k < depth; k++) {
        p->dim[k] = in->dims[batch + k];
        p->step[k] = own[batch + k];
    }
    ops_shape_over_out(&s, plan);
    ops_shape_add(&s, 0, from);
    ops_shape_add(&s, 0, at);
    return finish_gather(plan, p, &s);
}

/* ---- scatter ---- */

static int64_t data_size(const struct sac_kernel_plan *plan)
{
    return ops_count_in(plan, 0) * data_bytes(plan);
}

static sac_result scatter_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    struct ops_scatter_lines *p = params;
    enum sac_combine          how = SAC_COMBINE_NONE;
    int                       axis;
    int64_t out[SAC_RANK_MAX], index[SAC_RANK_MAX], update[SAC_RANK_MAX], dims[SAC_RANK_MAX];
    struct ops_shape s;
    SAC_TRY(sac_read_combine(c, &how));
    SAC_TRY(sac_op_axis(c, 0, c->in[0].rank, &axis));
    ops_steps_out(plan, 0, out);
    ops_steps_in(plan, 1, index);
    ops_steps_in(plan, 2, update);
    memcpy(dims, c->in[1].dims, sizeof dims);
    dims[axis] = 1;
    ops_shape_init(&s, c->in[1].rank, dims);
    ops_shape_add(&s, 0, out);
    ops_shape_add(&s, 0, index);
    ops_shape_add(&s, 0, update);
    p->count = c->in[1].dims[axis];
    p->dim = c->in[0].dims[axis];
    p->out_step = out[axis];
    p->index_step = index[axis];
    p->update_step = update[axis];
    p->copy_bytes = data_size(plan);
    p->combine = (int)how; /* in the same order */
    p->bytes = data_bytes(plan);
    p->type = ops_in_type(plan, 0);
    p->index_type = ops_in_type(plan, 1);
    p->computed = ops_class_of(c->in[0].dtype);
    return ops_view_of(&s, 0, &p->outer) ? SAC_OK : ops_view_fail(plan);
}

_Static_assert((int)SAC_COMBINE_ADD == OPS_COMBINE_ADD && (int)SAC_COMBINE_MUL == OPS_COMBINE_MUL &&
                   (int)SAC_COMBINE_MAX == OPS_COMBINE_MAX &&
                   (int)SAC_COMBINE_MIN == OPS_COMBINE_MIN,
               "reductions are those of ops/reads.h");

static sac_result scatter_nd_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    const struct sac_operand *in = &c->in[0], *indices = &c->in[1];
    struct ops_scatter_nd    *p = params;
    enum sac_combine          how = SAC_COMBINE_NONE;
    SAC_TRY(sac_read_combine(c, &how));
    p->depth = (int)indices->dims[indices->rank - 1];
    p->places = sac_dims_product(indices->rank - 1, indices->dims);
    p->inner = sac_dims_product(in->rank - p->depth, in->dims + p->depth);
    ops_steps_in(plan, 0, p->step);
    for (int d = 0; d < in->rank; d++)
        p->dim[d] = in->dims[d];
    p->copy_bytes = data_size(plan);
    p->combine = (int)how;
    p->bytes = data_bytes(plan);
    p->type = ops_in_type(plan, 0);
    p->index_type = ops_in_type(plan, 1);
    p->computed = ops_class_of(in->dtype);
    return SAC_OK;
}

static sac_result cache_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    const struct sac_operand *in = &c->in[0];
    struct ops_cache         *p = params;
    int                       axis;
    SAC_TRY(sac_cache_axis(c, &axis));
    p->outer = sac_dims_product(axis, in->dims);
    p->per_image = SAC_MAX(in->dims[0] ? p->outer / in->dims[0] : 1, 1);
    p->room = SAC_MAX(in->dims[axis], 1);
    p->count = c->in[1].dims[axis];
    p->run = sac_dims_product(in->rank - axis - 1, in->dims + axis + 1) * data_bytes(plan);
    p->copy_bytes = data_size(plan);
    p->circular = strcmp(sac_attr_string(c->node, "mode", "linear"), "circular") == 0;
    p->has_index = sac_op_has(c, 2);
    return SAC_OK;
}

/* ---- TopK ---- */

/* Where nothing is selected, every element reads its whole line, which is fine for a few thousand
 * of them. */
enum { TOPK_LINE_MAX = 1 << 16 };

/* TOPK_MAX of topk.cuh bounds k. */
static bool topk_selects(const struct sac_op_call *c, int axis)
{
    enum { LINE_MIN = 33, BEST_MAX = 2048 };
    const int64_t n = c->in[0].dims[axis], k = c->out[sac_op_wants(c, 0) ? 0 : 1].dims[axis];
    return ops_class_of(c->in[0].dtype) == OPS_FLOAT && n >= LINE_MIN && n < INT32_MAX && k > 0 &&
           k <= BEST_MAX;
}

static bool topk_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    const struct sac_op_call *c = q->call;
    int                       axis;
    if (sac_op_axis(c, -1, c->in[0].rank, &axis) != SAC_OK ||
        (c->in[0].dims[axis] > TOPK_LINE_MAX && !topk_selects(c, axis)))
        return ops_refuse(offer, "lines of more than %d numbers", TOPK_LINE_MAX);
    return like_data(q, offer);
}

static sac_result topk_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    struct ops_topk          *p = params;
    int                       axis;
    int64_t                   in[SAC_RANK_MAX], out[2][SAC_RANK_MAX] = {{0}}, dims[SAC_RANK_MAX];
    struct ops_shape          s;
    SAC_TRY(sac_op_axis(c, -1, c->in[0].rank, &axis));
    p->values = sac_op_wants(c, 0);
    p->indices = sac_op_wants(c, 1);
    ops_steps_in(plan, 0, in);
    for (int i = 0; i < 2; i++)
        if (sac_op_wants(c, i))
            ops_steps_out(plan, i, out[i]);
    memcpy(dims, c->in[0].dims, sizeof dims);
    p->length = dims[axis];
    p->step = in[axis];
    p->k = c->out[p->values ? 0 : 1].dims[axis];
    p->selects = topk_selects(c, axis);
    p->value_step = out[0][axis];
    p->index_step = out[1][axis];
    dims[axis] = 1;
    ops_shape_init(&s, c->in[0].rank, dims);
    ops_shape_add(&s, 0, in);
    ops_shape_add(&s, 0, out[0]);
    ops_shape_add(&s, 0, out[1]);
    p->least = !sac_attr_int(c->node, "largest", 1);
    p->type = ops_in_type(plan, 0);
    p->computed = ops_class_of(c->in[0].dtype);
    ops_take(plan, 1);
    return ops_view_of(&s, 0, &p->outer) ? SAC_OK : ops_view_fail(plan);
}

OPS_ROW(Gather, like_data, gather_fill, ops_launch_gather, ops_gather)
OPS_ROW(GatherElements, like_data, gather_elements_fill, ops_launch_gather, ops_gather)
OPS_ROW(GatherND, like_data, gather_nd_fill, ops_launch_gather, ops_gather)
OPS_ROW(Scatter, like_data, scatter_fill, ops_launch_scatter_lines, ops_scatter_lines)
OPS_ROW(ScatterElements, like_data, scatter_fill, ops_launch_scatter_lines, ops_scatter_lines)
OPS_ROW(ScatterND, like_data, scatter_nd_fill, ops_launch_scatter_nd, ops_scatter_nd)
OPS_ROW(TensorScatter, like_data, cache_fill, ops_launch_cache, ops_cache)
OPS_ROW(TopK, topk_layouts, topk_fill, ops_launch_topk, ops_topk)
