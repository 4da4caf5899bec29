/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of sums of products. */
#include "engine/cuda/kernels/product.h"

#include "engine/cuda/kernels/kernels.h"
#include "engine/ops/fused.h"

/* The outer walk follows the output, so that neighbouring threads share a row. Where there are only
 * a few long sums, a warp computes each. */
static sac_result finish(struct sac_kernel_plan *plan, const struct ops_shape *outer,
                         const struct ops_shape *inner, struct ops_lines *l)
{
    if (!ops_view_of(outer, 0, &l->outer) || !ops_view_of(inner, 1, &l->inner))
        return ops_view_fail(plan);
    l->parts = 1;
    l->team = l->outer.count < 64 << 10 && l->inner.count >= 64 ? OPS_TEAM_WARP : OPS_TEAM_SOLO;
    return SAC_OK;
}

/* Steps of a's rows, b's columns and the sum, in a matrix or a vector. */
struct factor {
    int64_t own[SAC_RANK_MAX], across, along;
    int     batch; /* dimensions before the matrix */
};
static struct factor factor_of(const struct sac_kernel_plan *plan, int input, bool left)
{
    const int     rank = plan->call->in[input].rank;
    struct factor f = {.batch = SAC_MAX(rank - 2, 0)};
    ops_steps_in(plan, input, f.own);
    if (rank == 1)
        f.along = f.own[0];
    else {
        f.across = f.own[left ? rank - 2 : rank - 1];
        f.along = f.own[left ? rank - 1 : rank - 2];
    }
    return f;
}

/* [batch..., rows, columns] and the sum over k; plain: the output's index as operand 3. */
static void matmul_shapes(struct sac_kernel_plan *plan, int ia, int ib, struct ops_shape *outer,
                          struct ops_shape *inner)
{
    const struct sac_op_call *c = plan->call;
    const struct sac_operand *a = &c->in[ia], *b = &c->in[ib], *y = &c->out[0];
    const struct factor       fa = factor_of(plan, ia, true), fb = factor_of(plan, ib, false);
    int64_t                   steps[2][SAC_RANK_MAX] = {{0}}, out[SAC_RANK_MAX];
    const int                 batch = y->rank - (a->rank > 1) - (b->rank > 1);
    for (int d = 0; d < batch; d++) {
        const int da = d - (batch - fa.batch), db = d - (batch - fb.batch);
        steps[0][d] = da >= 0 && a->dims[da] != 1 ? fa.own[da] : 0;
        steps[1][d] = db >= 0 && b->dims[db] != 1 ? fb.own[db] : 0;
    }
    if (a->rank > 1)
        steps[0][batch] = fa.across;
    if (b->rank > 1)
        steps[1][y->rank - 1] = fb.across;
    sac_dense_strides(y->rank, y->dims, out);
    ops_shape_over_out(outer, plan);
    ops_shape_add(outer, 0, steps[0]);
    ops_shape_add(outer, 0, steps[1]);
    ops_shape_add(outer, 0, out);
    const int64_t k = a->dims[a->rank - 1], none = 0;
    ops_shape_init(inner, 1, &k);
    ops_shape_add(inner, 0, &none);
    ops_shape_add(inner, 0, &fa.along);
    ops_shape_add(inner, 0, &fb.along);
}

static void finish_factors(const struct sac_kernel_plan *plan, struct ops_product *p, int factors)
{
    const enum ops_class k = ops_class_of(plan->call->in[0].dtype);
    p->factors = factors;
    p->alpha = 1;
    p->computed = k;
    p->out_type = ops_out_type(plan, 0);
    for (int i = 0; i < factors + p->adds; i++)
        p->type[i + 1] = ops_in_type(plan, i);
}

static sac_result matmul_fill(struct sac_kernel_plan *plan, void *params)
{
    struct ops_product *p = params;
    struct ops_shape    outer, inner;
    matmul_shapes(plan, 0, 1, &outer, &inner);
    finish_factors(plan, p, 2);
    return finish(plan, &outer, &inner, &p->lines);
}

static sac_result fused_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call   *c = plan->call;
    const struct sac_activation act = sac_activation_read(c->node);
    struct ops_product_fused   *p = params;
    struct ops_shape            outer, inner;
    const int64_t               none[SAC_RANK_MAX] = {0};
    matmul_shapes(plan, 0, 1, &outer, &inner);
    for (int i = 0; i < 5; i++)
        p->type[i] = ops_in_type(plan, i);
    p->columns = c->in[1].dims[1];
    for (int i = 2; i < 4; i++)
        if (p->type[i])
            ops_shape_in(&outer, plan, i);
        else
            ops_shape_add(&outer, 0, none);
    int64_t column[SAC_RANK_MAX] = {0};
    column[c->out[0].rank - 1] = 1;
    ops_shape_add(&outer, 0, column);
    p->out_type = ops_out_type(plan, 0);
    p->activation = ops_activation_fn(&act, &p->a, &p->b);
    p->residual_after = sac_attr_int(c->node, "residual", SAC_RESIDUAL_NONE) == SAC_RESIDUAL_AFTER;
    return finish(plan, &outer, &inner, &p->lines);
}

static sac_result gemm_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    const struct sac_node    *n = c->node;
    const bool                ta = sac_attr_int(n, "transA", 0), tb = sac_attr_int(n, "transB", 0);
    struct ops_product       *p = params;
    struct ops_shape          outer, inner;
    int64_t                   a[SAC_RANK_MAX], b[SAC_RANK_MAX];
    const int64_t             k = c->in[0].dims[ta ? 0 : 1], none = 0;
    ops_steps_in(plan, 0, a);
    ops_steps_in(plan, 1, b);
    const int64_t rows[2] = {a[ta ? 1 : 0], 0}, columns[2] = {0, b[tb ? 0 : 1]};
    ops_shape_over_out(&outer, plan);
    ops_shape_add(&outer, 0, rows);
    ops_shape_add(&outer, 0, columns);
    p->adds = sac_op_has(c, 2);
    if (p->adds)
        ops_shape_in(&outer, plan, 2);
    ops_shape_init(&inner, 1, &k);
    ops_shape_add(&inner, 0, &none);
    ops_shape_add(&inner, 0, &a[ta ? 0 : 1]);
    ops_shape_add(&inner, 0, &b[tb ? 1 : 0]);
    finish_factors(plan, p, 2);
    p->alpha = sac_attr_float(n, "alpha", 1);
    p->beta = sac_attr_float(n, "beta", 1);
    return finish(plan, &outer, &inner, &p->lines);
}

static int label_index(const struct sac_einsum *e, char label)
{
    for (int i = 0; i < e->count; i++)
        if (e->labels[i] == label)
            return i;
    return -1;
}

static sac_result einsum_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    struct ops_product       *p = params;
    struct sac_einsum         e;
    struct ops_shape          side[2];
    SAC_TRY(sac_einsum_parse(c, &e));
    const int kept = e.out.count;
    ops_shape_init(&side[0], kept, e.dims);
    ops_shape_init(&side[1], e.count - kept, e.dims + kept);
    ops_shape_out(&side[0], plan, 0);
    ops_shape_add(&side[1], 0, (int64_t[OPS_SHAPE_DIMS]){0});
    for (int i = 0; i < c->in_count; i++) {
        int64_t own[SAC_RANK_MAX], steps[OPS_SHAPE_DIMS] = {0};
        ops_steps_in(plan, i, own);
        for (int k = 0; k < c->in[i].rank; k++) /* a repeated letter selects the diagonal */
            steps[label_index(&e, e.in[i].labels[k])] += c->in[i].dims[k] == 1 ? 0 : own[k];
        ops_shape_add(&side[0], 0, steps);
        ops_shape_add(&side[1], 0, steps + kept);
    }
    finish_factors(plan, p, c->in_count);
    return finish(plan, &side[0], &side[1], &p->lines);
}

_Static_assert(SAC_EINSUM_INPUTS_MAX + 1 <= OPS_PRODUCT_OPERANDS, "Einsum's inputs have room");

struct ops_parameter ops_parameter_of(const struct sac_kernel_plan *plan, int input)
{
    if (input < 0 || !sac_op_has(plan->call, input))
        return (struct ops_parameter){.port = -1};
    return (struct ops_parameter){input, ops_in_type(plan, input), ops_count_in(plan, input) != 1};
}

static sac_result integer_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call   *c = plan->call;
    struct ops_product_integer *p = params;
    const bool                  linear = c->node->op->id == SAC_OP_QLinearMatMul;
    struct ops_shape            outer, inner;
    p->a_port = 0;
    p->b_port = linear ? 3 : 1;
    matmul_shapes(plan, p->a_port, p->b_port, &outer, &inner);
    const struct sac_operand *a = &c->in[p->a_port], *b = &c->in[p->b_port];
    p->rows = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    p->columns = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    p->a_type = ops_in_type(plan, p->a_port);
    p->b_type = ops_in_type(plan, p->b_port);
    p->out_type = ops_out_type(plan, 0);
    p->a_zero = ops_parameter_of(plan, 2);
    p->b_zero = ops_parameter_of(plan, linear ? 5 : 3);
    p->a_scale = ops_parameter_of(plan, linear ? 1 : -1);
    p->b_scale = ops_parameter_of(plan, linear ? 4 : -1);
    p->y_scale = ops_parameter_of(plan, linear ? 6 : -1);
    p->y_zero = ops_parameter_of(plan, linear ? 7 : -1);
    return finish(plan, &outer, &inner, &p->lines);
}

OPS_ROW(MatMul, NULL, matmul_fill, ops_launch_product, ops_product)
OPS_ROW(FusedMatMul, NULL, fused_fill, ops_launch_product_fused, ops_product_fused)
OPS_ROW(Gemm, NULL, gemm_fill, ops_launch_product, ops_product)
OPS_ROW(Einsum, NULL, einsum_fill, ops_launch_product, ops_product)
OPS_ROW(MatMulInteger, NULL, integer_fill, ops_launch_product_integer, ops_product_integer)
OPS_ROW(QLinearMatMul, NULL, integer_fill, ops_launch_product_integer, ops_product_integer)
