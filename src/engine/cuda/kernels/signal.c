/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of Fourier transforms, determinants and losses. All results are float32: sums and
 * products of many numbers, logarithms. */
#include "engine/cuda/kernels/signal.h"

#include "engine/cuda/kernels/kernels.h"

static sac_result dft_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    const struct sac_operand *in = &c->in[0];
    struct ops_dft           *p = params;
    struct sac_dft            d;
    SAC_TRY(sac_dft_read(c, &d));
    p->outer = sac_dims_product(d.axis, in->dims);
    p->inner = sac_dims_product(in->rank - 2 - d.axis, in->dims + d.axis + 1);
    p->size = in->dims[d.axis];
    p->length = d.length;
    p->out = d.out;
    p->given = (int)in->dims[in->rank - 1];
    p->parts = (int)d.parts;
    p->inverse = d.inverse;
    p->mirrors = d.half && d.inverse;
    p->in_type = ops_in_type(plan, 0);
    p->out_type = ops_out_type(plan, 0);
    ops_take_from(plan, 1);
    return SAC_OK;
}

static sac_result stft_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    struct ops_dft           *p = params;
    struct sac_stft           s;
    SAC_TRY(sac_stft_read(c, &s));
    p->stft = 1;
    p->outer = c->in[0].dims[0];
    p->inner = 1;
    p->size = c->in[0].dims[1];
    p->frames = s.frames;
    p->hop = s.step;
    p->length = s.length;
    p->out = s.out;
    p->given = (int)c->in[0].dims[2];
    p->parts = 2;
    p->in_type = ops_in_type(plan, 0);
    p->out_type = ops_out_type(plan, 0);
    p->window_type = ops_in_type(plan, 2);
    ops_take(plan, 1);
    ops_take(plan, 3);
    return SAC_OK;
}

static sac_result det_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_operand *in = &plan->call->in[0];
    struct ops_det           *p = params;
    p->n = in->dims[in->rank - 1];
    p->count = ops_count_out(plan, 0);
    p->in_type = ops_in_type(plan, 0);
    p->out_type = ops_out_type(plan, 0);
    plan->scratch_bytes = (size_t)(p->count * p->n * p->n) * sizeof(double);
    return SAC_OK;
}

static sac_result loss_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    const struct sac_operand *x = &c->in[0];
    const char               *reduction = sac_attr_string(c->node, "reduction", "mean");
    struct ops_loss          *p = params;
    p->count = ops_count_in(plan, 1);
    p->classes = x->dims[1];
    p->plane = SAC_MAX(sac_dims_product(x->rank - 2, x->dims + 2), 1);
    p->cross_entropy = c->node->op->id == SAC_OP_SoftmaxCrossEntropyLoss;
    p->reduces = strcmp(reduction, "none") != 0;
    p->mean = strcmp(reduction, "mean") == 0;
    p->ignores = sac_node_attr(c->node, "ignore_index") != NULL;
    p->ignored = sac_attr_int(c->node, "ignore_index", 0);
    p->in_type = ops_in_type(plan, 0);
    p->target_type = ops_in_type(plan, 1);
    p->weight_type = ops_in_type(plan, 2);
    p->out_type = ops_out_type(plan, 0);
    p->log_type = ops_out_type(plan, 1);
    plan->scratch_bytes = p->reduces ? (size_t)p->count * 2 * sizeof(double) : 0;
    return SAC_OK;
}

OPS_ROW(DFT, ops_exact_layouts, dft_fill, ops_launch_dft, ops_dft)
OPS_ROW(STFT, ops_exact_layouts, stft_fill, ops_launch_dft, ops_dft)
OPS_ROW(Det, ops_exact_layouts, det_fill, ops_launch_det, ops_det)
OPS_ROW(NegativeLogLikelihoodLoss, ops_exact_layouts, loss_fill, ops_launch_loss, ops_loss)
OPS_ROW(SoftmaxCrossEntropyLoss, ops_exact_layouts, loss_fill, ops_launch_loss, ops_loss)
