/* SPDX-License-Identifier: Apache-2.0 */
/* HeadMatMul, which engine/ops/fused.h defines: scale A B of matrices of heads that are read and
 * written where they lie. */
#include "engine/ops/fused.h"
#include "engine/ops/reads.h"
#include "engine/ops/util.h"

static sac_result read_inputs(const struct sac_op_call *c, struct sac_head_matmul *m)
{
    for (int i = 0; i < 2; i++) {
        SAC_CHECK(c, sac_op_has(c, i), "input %d is missing", i);
        SAC_CHECK(c, c->in[i].dtype == SAC_F32, "input %d of dtype %s, not float32", i,
                  sac_in_dtype(c, i));
    }
    SAC_TRY(sac_head_view_read(c, "a", &c->in[0], &m->a));
    SAC_TRY(sac_head_view_read(c, "b", &c->in[1], &m->b));
    for (int d = 0; d < 2; d++) {
        SAC_CHECK(c, m->b.dim[d] == m->a.dim[d] || m->b.dim[d] == 1,
                  "b has other batches or heads than a");
        m->b.step[d] = m->b.dim[d] == 1 ? 0 : m->b.step[d];
    }
    SAC_CHECK(c, m->a.dim[3] == m->b.dim[2], "a and b do not fit together");
    m->batch = m->a.dim[0];
    m->heads = m->a.dim[1];
    m->rows = m->a.dim[2];
    m->depth = m->a.dim[3];
    m->columns = m->b.dim[3];
    m->scale = sac_attr_float(c->node, "scale", 1);
    return SAC_OK;
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
            y[i * m->y.step[2] + j * m->y.step[3]] = (float)(sum * m->scale);
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

const struct sac_op sac_row_HeadMatMul = {SAC_FUSED_ROW(HeadMatMul, 2, 2),
                                          SAC_TOLERANCE(1e-4f, 1e-4f), .shape = head_matmul_shape,
                                          .ref = head_matmul_ref, .flops = head_matmul_flops};
