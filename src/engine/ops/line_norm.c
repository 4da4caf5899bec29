/* SPDX-License-Identifier: Apache-2.0 */
/* Norms of lines that run to the last dim: LayerNormalization, RMSNormalization, and FusedNorm,
 * which engine/ops/fused.h defines. */
#include "engine/ops/batch.h"
#include "engine/ops/norm_rows.h"
#include "engine/ops/quant.h"
#include "engine/ops/reads.h"
#include "engine/ops/util.h"

enum { SCALE = 1, BIAS, RESIDUAL };

/* ---- what a node says ---- */

static enum sac_norm_kind kind_of(const struct sac_node *n)
{
    if (n->op->id == SAC_OP_FusedNorm)
        return (enum sac_norm_kind)sac_attr_int(n, "kind", SAC_NORM_CENTRED);
    return n->op->id == SAC_OP_LayerNormalization ? SAC_NORM_CENTRED : SAC_NORM_ROOT;
}

static sac_result read_dims(const struct sac_op_call *c, struct sac_line_norm *n)
{
    const struct sac_operand *in = &c->in[0];
    const int64_t            *entries;
    n->viewed = c->node->op->id == SAC_OP_FusedNorm && sac_attr_ints(c->node, "x", &entries) > 0;
    if (n->viewed) {
        SAC_TRY(sac_head_view_read(c, "x", in, &n->x));
        n->rank = SAC_VIEW_RANK;
        n->axis = SAC_VIEW_RANK - 1;
        memcpy(n->dims, n->x.dim, sizeof n->x.dim);
        return SAC_OK;
    }
    n->rank = in->rank;
    memcpy(n->dims, in->dims, sizeof n->dims);
    return sac_op_axis(c, -1, in->rank, &n->axis);
}

sac_result sac_line_norm_read(const struct sac_op_call *c, struct sac_line_norm *n)
{
    *n = (struct sac_line_norm){.kind = kind_of(c->node)};
    n->epsilon = (double)sac_attr_float(c->node, "epsilon", n->kind < SAC_NORM_L1 ? 1e-5f : 0);
    n->whole = n->kind == SAC_NORM_SHARES && sac_attr_int(c->node, "whole", 0) != 0;
    return read_dims(c, n);
}

/* ---- shapes ---- */

static bool broadcasts_to(const struct sac_operand *o, const struct sac_line_norm *n)
{
    int     rank = n->rank;
    int64_t sum[SAC_RANK_MAX];
    memcpy(sum, n->dims, sizeof sum);
    return sac_broadcast_dims(&rank, sum, o->rank, o->dims) && rank == n->rank &&
           memcmp(sum, n->dims, (size_t)rank * sizeof *sum) == 0;
}

/* Input, scale and bias. */
static sac_result check_line_norm(struct sac_op_call *c, struct sac_line_norm *n)
{
    SAC_CHECK(c, sac_dtype_is_float(c->in[0].dtype), "input of dtype %s; have the float types",
              sac_in_dtype(c, 0));
    SAC_TRY(sac_line_norm_read(c, n));
    for (int i = SCALE; i <= BIAS && i < c->in_count; i++)
        SAC_CHECK(c,
                  !c->in[i].present ||
                      (sac_dtype_is_float(c->in[i].dtype) && broadcasts_to(&c->in[i], n)),
                  "input %d does not broadcast to the input", i);
    return SAC_OK;
}

static sac_result layer_shape(struct sac_op_call *c)
{
    struct sac_line_norm n;
    int64_t              dims[SAC_RANK_MAX];
    SAC_TRY(check_line_norm(c, &n));
    for (int d = 0; d < n.rank; d++)
        dims[d] = d < n.axis ? n.dims[d] : 1;
    SAC_TRY(sac_shape_same(c));
    SAC_TRY(sac_shape_out(c, 1, SAC_F32, n.rank, dims));
    return sac_shape_out(c, 2, SAC_F32, n.rank, dims);
}

static sac_result fused_norm_shape(struct sac_op_call *c)
{
    const int64_t        kind = sac_attr_int(c->node, "kind", SAC_NORM_CENTRED);
    struct sac_line_norm n;
    enum sac_dtype       out;
    SAC_CHECK(c, kind >= 0 && kind < SAC_NORM_COUNT, "'kind' is %lld", (long long)kind);
    SAC_TRY(check_line_norm(c, &n));
    for (int i = 0; i < c->in_count; i++)
        SAC_CHECK(c, !c->in[i].present || c->in[i].dtype == SAC_F32,
                  "input %d of dtype %s, not float32", i, sac_in_dtype(c, i));
    SAC_CHECK(c,
              !sac_op_has(c, RESIDUAL) ||
                  (c->in[RESIDUAL].rank == n.rank &&
                   memcmp(c->in[RESIDUAL].dims, n.dims, (size_t)n.rank * sizeof *n.dims) == 0),
              "input %d is not of the output's shape", RESIDUAL);
    SAC_TRY(sac_quant_check_output(c, &out));
    return sac_shape_out(c, 0, out, n.rank, n.dims);
}

static bool layer_batch(struct sac_batch_walk *w, struct sac_node *n, int k, int *out)
{
    int64_t axis = sac_attr_int(n, "axis", -1);
    axis += axis < 0 ? n->inputs[0]->rank : 0;
    *out = k;
    return axis > k || sac_batch_refuse(w, "it normalises along the batch");
}

/* ---- references ---- */

static sac_result norm_lines(struct sac_op_call *c, const struct sac_line_norm *n)
{
    const struct sac_operand whole = {.dtype = c->in[0].dtype, .rank = n->rank};
    struct sac_row_norm      norm = {.kind = n->kind,
                                     .rows = sac_dims_product(n->axis, n->dims),
                                     .size = sac_dims_product(n->rank - n->axis, n->dims + n->axis),
                                     .epsilon = n->epsilon,
                                     .shape = whole};
    memcpy(norm.shape.dims, n->dims, sizeof n->dims);
    if (sac_op_has(c, SCALE))
        norm.scale = c->in[SCALE];
    if (sac_op_has(c, BIAS))
        norm.bias = c->in[BIAS];
    return sac_norm_rows(c, &norm);
}

static sac_result layer_ref(struct sac_op_call *c)
{
    struct sac_line_norm n;
    SAC_TRY(sac_line_norm_read(c, &n));
    return norm_lines(c, &n);
}

/* What the view shows, densely. */
static void gather(const struct sac_op_call *c, const struct sac_line_norm *n, float *to)
{
    int64_t dense[SAC_RANK_MAX];
    sac_dense_strides(n->rank, n->dims, dense);
    sac_copy_strided(to, 0, dense, c->in[0].data, n->x.offset, n->x.step, n->rank, n->dims,
                     sizeof *to);
}

/* Each line over its sum. */
static void make_whole(const struct sac_line_norm *n, float *v, int64_t count)
{
    const int64_t size = sac_dims_product(n->rank - n->axis, n->dims + n->axis);
    for (int64_t first = 0; first < count; first += size) {
        double sum = n->epsilon;
        for (int64_t i = first; i < first + size; i++)
            sum += v[i];
        for (int64_t i = first; i < first + size; i++)
            v[i] = (float)(v[i] / sum);
    }
}

static sac_result fused_norm_ref(struct sac_op_call *c)
{
    const struct sac_quant q = sac_quant_read(c->node);
    const int64_t          count = sac_operand_elements(&c->out[0]);
    const float           *r = sac_op_has(c, RESIDUAL) ? c->in[RESIDUAL].data : NULL;
    struct sac_op_call     floats = *c;
    struct sac_line_norm   n;
    SAC_TRY(sac_line_norm_read(c, &n));
    float *v = sac_alloc((size_t)count * sizeof *v);
    if (!v)
        return sac_op_no_memory(c);
    floats.out[0].dtype = SAC_F32;
    floats.out[0].data = v;
    if (n.viewed) {
        gather(c, &n, v);
        floats.in[0] = floats.out[0];
    }
    sac_result res = norm_lines(&floats, &n);
    for (int64_t i = 0; res == SAC_OK && r && i < count; i++)
        v[i] += r[i];
    if (res == SAC_OK && n.whole)
        make_whole(&n, v, count);
    for (int64_t i = 0; res == SAC_OK && i < count; i++)
        sac_quant_put(&q, &c->out[0], i, v[i]);
    sac_free(v);
    return res;
}

#define LINES_ROW(op, inputs_max, outputs)                                                 \
    const struct sac_op sac_row_##op = {SAC_ROW(op, 1, 2, inputs_max, outputs),            \
                                        SAC_TOLERANCE(1e-4f, 1e-4f), .shape = layer_shape, \
                                        .ref = layer_ref, .batch = layer_batch}
LINES_ROW(LayerNormalization, 3, 3);
LINES_ROW(RMSNormalization, 2, 1);
const struct sac_op sac_row_FusedNorm = {SAC_FUSED_ROW(FusedNorm, 1, 4),
                                         SAC_TOLERANCE(1e-4f, 1e-4f), .flags = SAC_OP_QUANTISES,
                                         .shape = fused_norm_shape, .ref = fused_norm_ref};
