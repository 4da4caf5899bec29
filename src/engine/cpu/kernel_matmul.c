/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul and Gemm with a constant second matrix: a pointwise convolution over the rows of the
 * first. */
#include <math.h>

#include "engine/cpu/conv.h"

/* [rows,K] x [K,N] and the strides of B. */
struct product {
    int64_t                 rows, depth, columns;
    struct sac_conv_weights weights;
};

static bool read_gemm(const struct sac_op_call *c, struct product *p)
{
    const struct sac_node *n = c->node;
    const bool             turned = sac_attr_int(n, "transB", 0) != 0;
    if (sac_attr_int(n, "transA", 0) || sac_attr_float(n, "alpha", 1) != 1 ||
        sac_attr_float(n, "beta", 1) != 1)
        return false;
    p->rows = c->in[0].dims[0];
    p->depth = c->in[0].dims[1];
    p->columns = c->out[0].dims[1];
    p->weights = (struct sac_conv_weights){c->in[1].data, turned ? p->depth : 1,
                                           turned ? 1 : p->columns, NULL};
    if (c->in_count < 3 || !c->in[2].present)
        return true;
    p->weights.bias = c->in[2].data;
    return c->in[2].data && c->in[2].rank > 0 && sac_operand_elements(&c->in[2]) == p->columns &&
           c->in[2].dims[c->in[2].rank - 1] == p->columns;
}

static bool read_matmul(const struct sac_op_call *c, struct product *p)
{
    const struct sac_operand *a = &c->in[0], *b = &c->in[1];
    if (a->rank < 2 || b->rank != 2)
        return false;
    p->depth = b->dims[0];
    p->columns = b->dims[1];
    p->rows = sac_operand_elements(a) / p->depth;
    p->weights = (struct sac_conv_weights){b->data, 1, p->columns, NULL};
    return true;
}

static struct sac_kernel_offer product_supports(struct sac_device                *dev,
                                                const struct sac_kernel_question *q)
{
    struct sac_kernel_offer   offer = sac_kernel_take(q);
    const struct sac_op_call *c = q->call;
    struct product            p;
    (void)dev;
    for (int i = 0; i < c->in_count; i++)
        offer.in_layout[i] = SAC_LAYOUT_PLAIN;
    if (sac_cpu_level() < SAC_CPU_AVX2 || !sac_call_is_float(q->call) || !c->in[1].data ||
        sac_operand_elements(&c->out[0]) == 0 || sac_operand_elements(&c->in[0]) == 0)
        return sac_kernel_refuse("not float32 with a constant second matrix, or no AVX2");
    if (!(c->node->op->id == SAC_OP_Gemm ? read_gemm(c, &p) : read_matmul(c, &p)))
        return sac_kernel_refuse("scaled, turned, or a sum that is not a constant row");
    return offer;
}

static sac_result product_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    struct product            p;
    struct sac_conv_state    *s = sac_new(struct sac_conv_state);
    if (!s)
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    (void)(c->node->op->id == SAC_OP_Gemm ? read_gemm(c, &p) : read_matmul(c, &p));
    s->conv = (struct sac_conv){.n = 1,
                                .group_in_c = p.depth,
                                .group_out_c = p.columns,
                                .groups = 1,
                                .in_h = 1,
                                .in_w = p.rows,
                                .out_h = 1,
                                .out_w = p.rows,
                                .last_w = p.rows,
                                .kernel_h = 1,
                                .kernel_w = 1,
                                .stride_h = 1,
                                .stride_w = 1,
                                .dilation_h = 1,
                                .dilation_w = 1,
                                .planes = 1,
                                .merged = true,
                                .in = {p.rows * p.depth, p.rows * p.depth, p.depth, 1},
                                .out = {p.rows * p.columns, p.rows * p.columns, p.columns, 1},
                                .clamp_min = -INFINITY,
                                .clamp_max = INFINITY};
    return sac_conv_prepare(dev, plan, s, &p.weights);
}

const struct sac_kernel sac_cpu_MatMul = {SAC_OP_MatMul, product_supports, product_prepare,
                                          sac_units_run, sac_conv_release};
const struct sac_kernel sac_cpu_Gemm = {SAC_OP_Gemm, product_supports, product_prepare,
                                        sac_units_run, sac_conv_release};
