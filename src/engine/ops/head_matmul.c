/* SPDX-License-Identifier: Apache-2.0 */
/* HeadMatMul, which engine/ops/fused.h defines: products of matrices of heads that are read and
 * written where they lie, with what is behind them. */
#include <string.h>

#include "engine/ops/fused.h"
#include "engine/ops/reads.h"
#include "engine/ops/util.h"

static sac_result check_float(const struct sac_op_call *c, int input)
{
    SAC_CHECK(c, c->in[input].dtype == SAC_F32, "input %d of dtype %s, not float32", input,
              sac_in_dtype(c, input));
    return SAC_OK;
}

static sac_result read_bias(const struct sac_op_call *c, struct sac_head_matmul *m)
{
    m->by_row = sac_attr_int(c->node, "by_row", 0) != 0;
    m->has_bias = sac_op_has(c, 2);
    if (!m->has_bias)
        return SAC_OK;
    SAC_TRY(check_float(c, 2));
    SAC_CHECK(c, sac_operand_elements(&c->in[2]) == (m->by_row ? m->rows : m->columns),
              "input 2 has not a number for each %s", m->by_row ? "row" : "column");
    return SAC_OK;
}

static sac_result read_other(const struct sac_op_call *c, struct sac_head_matmul *m)
{
    const int64_t dims[SAC_VIEW_RANK] = {m->batch, m->heads, m->rows, m->columns};
    m->gates = sac_attr_int(c->node, "gates", 0) != 0;
    m->has_other = sac_op_has(c, 3);
    if (!m->has_other)
        return SAC_OK;
    SAC_TRY(check_float(c, 3));
    SAC_TRY(sac_head_view_read(c, "r", &c->in[3], &m->r));
    SAC_CHECK(c, memcmp(dims, m->r.dim, sizeof dims) == 0, "view r is not of the product's dims");
    return SAC_OK;
}

/* What has one batch or head has it for all of the other's. */
static void repeat(struct sac_head_view *v, int d, int64_t times)
{
    if (v->dim[d] != times)
        v->step[d] = 0;
    v->dim[d] = times;
}

static sac_result fit_together(const struct sac_op_call *c, struct sac_head_view *a,
                               struct sac_head_view *b)
{
    for (int d = 0; d < 2; d++) {
        const int64_t times = a->dim[d] == 1 ? b->dim[d] : a->dim[d];
        SAC_CHECK(c, b->dim[d] == times || b->dim[d] == 1, "b has other batches or heads than a");
        repeat(a, d, times);
        repeat(b, d, times);
    }
    SAC_CHECK(c, a->dim[3] == b->dim[2], "a and b do not fit together");
    return SAC_OK;
}

static sac_result read_inputs(const struct sac_op_call *c, struct sac_head_matmul *m)
{
    *m = (struct sac_head_matmul){.scale = sac_attr_float(c->node, "scale", 1)};
    for (int i = 0; i < 2; i++) {
        SAC_CHECK(c, sac_op_has(c, i), "input %d is missing", i);
        SAC_TRY(check_float(c, i));
    }
    SAC_TRY(sac_head_view_read(c, "a", &c->in[0], &m->a));
    SAC_TRY(sac_head_view_read(c, "b", &c->in[1], &m->b));
    SAC_TRY(fit_together(c, &m->a, &m->b));
    SAC_CHECK(c, sac_activation_is_known(c->node, "activation"), "an unknown activation");
    m->act = sac_activation_read(c->node);
    m->batch = m->a.dim[0];
    m->heads = m->a.dim[1];
    m->rows = m->a.dim[2];
    m->depth = m->a.dim[3];
    m->columns = m->b.dim[3];
    SAC_TRY(read_bias(c, m));
    return read_other(c, m);
}

static sac_result read_output(const struct sac_op_call *c, struct sac_head_matmul *m)
{
    const int64_t dims[] = {m->batch, m->heads, m->rows, m->columns};
    return sac_head_view_output(c, dims, &m->y);
}

sac_result sac_head_matmul_read(const struct sac_op_call *c, struct sac_head_matmul *m)
{
    SAC_TRY(read_inputs(c, m));
    return read_output(c, m);
}

static sac_result head_matmul_shape(struct sac_op_call *c)
{
    struct sac_head_matmul m;
    SAC_TRY(read_inputs(c, &m));
    const int64_t dims[] = {m.batch, m.heads, m.rows, m.columns};
    SAC_TRY(sac_head_shape_out(c, SAC_F32, dims));
    return read_output(c, &m);
}

/* What is behind the sum of a number of the product. */
static float ending(const struct sac_op_call *c, const struct sac_head_matmul *m, int64_t batch,
                    int64_t head, int64_t row, int64_t column, double sum)
{
    const double bias = m->has_bias ? ((const float *)c->in[2].data)[m->by_row ? row : column] : 0;
    const float  v = sac_activate((float)(sum * m->scale + bias), &m->act);
    if (!m->has_other)
        return v;
    const float other = ((const float *)c->in[3].data)[sac_head_start(&m->r, batch, head) +
                                                       row * m->r.step[2] + column * m->r.step[3]];
    return m->gates ? v * other : v + other;
}

static void multiply(const struct sac_op_call *c, const struct sac_head_matmul *m, int64_t batch,
                     int64_t head)
{
    const float *a = (const float *)c->in[0].data + sac_head_start(&m->a, batch, head);
    const float *b = (const float *)c->in[1].data + sac_head_start(&m->b, batch, head);
    float       *y = (float *)c->out[0].data + sac_head_start(&m->y, batch, head);
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->columns; j++) {
            double sum = 0;
            for (int64_t k = 0; k < m->depth; k++)
                sum += (double)a[i * m->a.step[2] + k * m->a.step[3]] *
                       b[k * m->b.step[2] + j * m->b.step[3]];
            y[i * m->y.step[2] + j * m->y.step[3]] = ending(c, m, batch, head, i, j, sum);
        }
}

static sac_result head_matmul_ref(struct sac_op_call *c)
{
    struct sac_head_matmul m;
    SAC_TRY(sac_head_matmul_read(c, &m));
    for (int64_t b = 0; b < m.batch; b++)
        for (int64_t h = 0; h < m.heads; h++)
            multiply(c, &m, b, h);
    return SAC_OK;
}

static int64_t head_matmul_flops(const struct sac_op_call *c)
{
    struct sac_head_matmul m;
    if (sac_head_matmul_read(c, &m) != SAC_OK)
        return 0;
    return 2 * m.batch * m.heads * m.rows * m.columns * m.depth;
}

const struct sac_op sac_row_HeadMatMul = {SAC_FUSED_ROW(HeadMatMul, 2, 4),
                                          SAC_TOLERANCE(1e-4f, 1e-4f), .shape = head_matmul_shape,
                                          .ref = head_matmul_ref, .flops = head_matmul_flops};
