/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that generate tensors, and DynamicQuantizeLinear. Values that follow from a shape or
 * become integers are float32 in ONNX's order. */
#include "engine/cuda/kernels/make.h"

#include "engine/cuda/kernels/kernels.h"

static bool known(const struct sac_op_call *c, int i)
{
    return !sac_op_has(c, i) || c->in[i].data;
}

static int out_bytes(const struct sac_kernel_plan *plan)
{
    return (int)sac_dtype_bytes((enum sac_dtype)ops_out_type(plan, 0));
}

/* ---- made of the parameters alone ---- */

static sac_result pattern(struct sac_kernel_plan *plan, struct ops_make *p, const void *data,
                          size_t bytes)
{
    memcpy(p->pattern, data, bytes);
    p->kind = OPS_MAKE_PATTERN;
    p->pattern_bytes = (int)SAC_MAX(bytes, 1);
    p->count = (int64_t)sac_operand_bytes(&plan->call->out[0]);
    ops_take_from(plan, 0);
    return SAC_OK;
}

/* The reference row's result, when that is small: Constant, Shape, Size. */
static bool literal_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    if (sac_operand_bytes(&q->call->out[0]) > sizeof((struct ops_make *)0)->pattern)
        return ops_refuse(offer, "a constant of %zu bytes", sac_operand_bytes(&q->call->out[0]));
    return ops_exact_layouts(q, offer);
}

static sac_result literal_fill(struct sac_kernel_plan *plan, void *params)
{
    uint64_t            data[64];
    struct sac_op_call *c = sac_new(struct sac_op_call); /* too large for the stack */
    if (!c)
        return SAC_OP_FAIL(plan->call, SAC_ERR_MEMORY, "no memory for its kernel");
    *c = *plan->call;
    c->out[0].data = data;
    sac_result res = c->node->op->ref(c);
    if (res == SAC_OK)
        res = pattern(plan, params, data, sac_operand_bytes(&c->out[0]));
    sac_free(c);
    return res;
}

_Static_assert(sizeof((struct ops_make *)0)->pattern == 64 * sizeof(uint64_t),
               "literals have room");

static sac_result fill_of_shape(struct sac_kernel_plan *plan, void *params)
{
    static const uint64_t  zero;
    const struct sac_attr *a = sac_node_attr(plan->call->node, "value");
    return pattern(plan, params, a ? a->tensor->data : &zero,
                   sac_dtype_bytes(plan->call->out[0].dtype));
}

static bool range_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    if (!known(q->call, 0) || !known(q->call, 2))
        return ops_refuse(offer, "its bounds are not known");
    return ops_exact_layouts(q, offer);
}

static sac_result range_fill(struct sac_kernel_plan *plan, void *params)
{
    struct ops_make *p = params;
    p->kind = OPS_MAKE_RANGE;
    p->type = ops_out_type(plan, 0);
    p->count = ops_count_out(plan, 0);
    p->start = sac_operand_get(&plan->call->in[0], 0);
    p->step = sac_operand_get(&plan->call->in[2], 0);
    ops_take_from(plan, 0);
    return SAC_OK;
}

static sac_result eye_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_operand *out = &plan->call->out[0];
    struct ops_make          *p = params;
    p->kind = OPS_MAKE_EYE;
    p->type = ops_out_type(plan, 0);
    p->count = ops_count_out(plan, 0);
    p->columns = SAC_MAX(out->dims[1], 1);
    p->diagonal = SAC_CLAMP(sac_attr_int(plan->call->node, "k", 0), -out->dims[0], out->dims[1]);
    return SAC_OK;
}

static sac_result window_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    const enum sac_op_id      id = c->node->op->id;
    struct ops_make          *p = params;
    p->kind = OPS_MAKE_WINDOW;
    p->type = ops_out_type(plan, 0);
    p->count = ops_count_out(plan, 0);
    p->period = (double)(sac_attr_int(c->node, "periodic", 1) ? p->count : p->count - 1);
    p->a = id == SAC_OP_HannWindow ? 0.5 : id == SAC_OP_HammingWindow ? 25. / 46 : 0.42;
    p->b = id == SAC_OP_HammingWindow ? 21. / 46 : 0.5;
    p->c = id == SAC_OP_BlackmanWindow ? 0.08 : 0;
    ops_take_from(plan, 0);
    return SAC_OK;
}

/* ---- by a rule ---- */

static bool one_hot_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    ops_exact_layouts(q, offer);
    if (q->call->in[2].dtype == SAC_F32)
        offer->in_layout[2] = SAC_LAYOUT_PLAIN;
    return true;
}

static sac_result one_hot_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    const struct sac_operand *out = &c->out[0];
    struct ops_one_hot       *p = params;
    int                       axis;
    if (!sac_axis_normalise(sac_attr_int(c->node, "axis", -1), out->rank, &axis))
        return ops_view_fail(plan);
    p->count = ops_count_out(plan, 0);
    p->depth = SAC_MAX(out->dims[axis], 1);
    p->inner = sac_dims_product(out->rank - axis - 1, out->dims + axis + 1);
    p->index_type = ops_in_type(plan, 0);
    p->bytes = out_bytes(plan);
    ops_take(plan, 1);
    return SAC_OK;
}

static bool trilu_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    if (!known(q->call, 1))
        return ops_refuse(offer, "k is not known");
    return ops_moved_layouts(q, offer);
}

static sac_result trilu_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    const struct sac_operand *in = &c->in[0];
    struct ops_trilu         *p = params;
    int64_t                   k = 0;
    size_t                    n;
    if (sac_op_has(c, 1))
        SAC_TRY(sac_operand_ints(c, 1, &k, 1, &n));
    p->count = ops_count_in(plan, 0);
    p->rows = SAC_MAX(in->dims[in->rank - 2], 1);
    p->columns = SAC_MAX(in->dims[in->rank - 1], 1);
    p->k = SAC_CLAMP(k, -p->rows - 1, p->columns + 1);
    p->upper = sac_attr_int(c->node, "upper", 1) != 0;
    p->bytes = out_bytes(plan);
    ops_take(plan, 1);
    return SAC_OK;
}

static sac_result reverse_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_operand *in = &plan->call->in[0];
    struct ops_reverse       *p = params;
    p->count = ops_count_in(plan, 0);
    p->first = SAC_MAX(in->dims[0], 1);
    p->second = SAC_MAX(in->dims[1], 1);
    p->run = SAC_MAX(sac_dims_product(in->rank - 2, in->dims + 2), 1);
    p->time_first = sac_attr_int(plan->call->node, "time_axis", 0) == 0;
    p->bytes = out_bytes(plan);
    return SAC_OK;
}

enum { MEL_BINS, MEL_LENGTH, MEL_RATE, MEL_LOWER, MEL_UPPER };

static bool mel_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    for (int i = 0; i <= MEL_UPPER; i++)
        if (!known(q->call, i))
            return ops_refuse(offer, "input %d is not known", i);
    if (q->call->out[0].dims[1] > OPS_MEL_BINS)
        return ops_refuse(offer, "more than %d triangles", OPS_MEL_BINS);
    return ops_exact_layouts(q, offer);
}

static sac_result mel_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    struct ops_mel           *p = params;
    p->type = ops_out_type(plan, 0);
    p->rows = c->out[0].dims[0];
    p->columns = c->out[0].dims[1];
    for (int64_t i = 0; i < p->columns + 2; i++)
        p->corner[i] = (int32_t)sac_mel_corner(c, i);
    ops_take_from(plan, 0);
    return SAC_OK;
}

/* ---- quantisation ---- */

static sac_result dynamic_fill(struct sac_kernel_plan *plan, void *params)
{
    struct ops_dynamic_quantize *p = params;
    p->n = ops_count_in(plan, 0);
    p->in_type = ops_in_type(plan, 0);
    for (int i = 0; i < 3; i++)
        p->wants |= sac_op_wants(plan->call, i) << i;
    plan->scratch_bytes = 2 * sizeof(float);
    return SAC_OK;
}

OPS_ROW(Constant, literal_layouts, literal_fill, ops_launch_make, ops_make)
OPS_ROW(Shape, literal_layouts, literal_fill, ops_launch_make, ops_make)
OPS_ROW(Size, literal_layouts, literal_fill, ops_launch_make, ops_make)
OPS_ROW(ConstantOfShape, ops_exact_layouts, fill_of_shape, ops_launch_make, ops_make)
OPS_ROW(Range, range_layouts, range_fill, ops_launch_make, ops_make)
OPS_ROW(EyeLike, ops_exact_layouts, eye_fill, ops_launch_make, ops_make)
OPS_ROW(HannWindow, ops_exact_layouts, window_fill, ops_launch_make, ops_make)
OPS_ROW(HammingWindow, ops_exact_layouts, window_fill, ops_launch_make, ops_make)
OPS_ROW(BlackmanWindow, ops_exact_layouts, window_fill, ops_launch_make, ops_make)
OPS_ROW(MelWeightMatrix, mel_layouts, mel_fill, ops_launch_mel, ops_mel)
OPS_ROW(OneHot, one_hot_layouts, one_hot_fill, ops_launch_one_hot, ops_one_hot)
OPS_ROW(Trilu, trilu_layouts, trilu_fill, ops_launch_trilu, ops_trilu)
OPS_ROW(ReverseSequence, ops_moved_layouts, reverse_fill, ops_launch_reverse, ops_reverse)
OPS_ROW(DynamicQuantizeLinear, ops_exact_layouts, dynamic_fill, ops_launch_dynamic_quantize,
        ops_dynamic_quantize)
