/* SPDX-License-Identifier: Apache-2.0 */
/* Elements selected by index: Gather, GatherElements, GatherND. Negative indices count from the
 * end. Indices are known only at run time, so the kernels check them. */
#include "engine/ops/batch.h"
#include "engine/ops/util.h"

static sac_result index_dtype(struct sac_op_call *c)
{
    SAC_CHECK(c, c->in[1].dtype == SAC_I64 || c->in[1].dtype == SAC_I32,
              "indices of dtype %s; have int64, int32", sac_in_dtype(c, 1));
    return SAC_OK;
}

/* Index i of the second input, brought into [0, dim). */
static sac_result read_index(struct sac_op_call *c, int64_t i, int64_t dim, int64_t *out)
{
    int64_t index = 0;
    sac_load(c->in[1].dtype, c->in[1].data, i, 1, 1, &index);
    SAC_CHECK(c, index >= -dim && index < dim, "index %lld into a dimension of %lld",
              (long long)index, (long long)dim);
    *out = index < 0 ? index + dim : index;
    return SAC_OK;
}

/* ---- Gather: whole slices along an axis ---- */

static sac_result gather_shape(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0], *indices = &c->in[1];
    int                       axis, rank = 0;
    int64_t                   dims[2 * SAC_RANK_MAX];
    SAC_TRY(index_dtype(c));
    SAC_TRY(sac_op_axis(c, 0, c->in[0].rank, &axis));
    for (int d = 0; d < axis; d++)
        dims[rank++] = in->dims[d];
    for (int d = 0; d < indices->rank; d++)
        dims[rank++] = indices->dims[d];
    for (int d = axis + 1; d < in->rank; d++)
        dims[rank++] = in->dims[d];
    return sac_shape_out(c, 0, in->dtype, rank, dims);
}

static sac_result gather_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    int                       axis;
    SAC_TRY(sac_op_axis(c, 0, c->in[0].rank, &axis));
    int64_t dim = in->dims[axis], count = sac_operand_elements(&c->in[1]);
    int64_t outer = sac_dims_product(axis, in->dims);
    size_t  run = (size_t)sac_dims_product(in->rank - axis - 1, in->dims + axis + 1) *
                 sac_dtype_bytes(in->dtype);
    const char *src = in->data;
    char       *dst = c->out[0].data;
    for (int64_t i = 0; i < count; i++) {
        int64_t index = 0;
        SAC_TRY(read_index(c, i, dim, &index));
        for (int64_t o = 0; o < outer; o++)
            memcpy(dst + (size_t)(o * count + i) * run, src + (size_t)(o * dim + index) * run, run);
    }
    return SAC_OK;
}

static bool gather_batch(struct sac_batch_walk *w, struct sac_node *n, int k, int *out)
{
    int64_t axis = sac_attr_int(n, "axis", 0);
    axis += axis < 0 ? n->inputs[0]->rank : 0;
    if (sac_batch_axis(w, n->inputs[1]) >= 0)
        return sac_batch_refuse(w, "its indices depend on the input");
    *out = axis < k ? k + n->inputs[1]->rank - 1 : k;
    return axis != k || sac_batch_refuse(w, "it picks along the batch");
}

const struct sac_op sac_row_Gather = {SAC_ROW(Gather, 1, 2, 2, 1), .shape = gather_shape,
                                      .ref = gather_ref, .batch = gather_batch};

/* ---- GatherElements: one element per index ---- */

static sac_result gather_elements_shape(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0], *indices = &c->in[1];
    int                       axis;
    SAC_TRY(index_dtype(c));
    SAC_TRY(sac_op_axis(c, 0, c->in[0].rank, &axis));
    SAC_CHECK(c, indices->rank == in->rank, "indices of %d dimensions into %d", indices->rank,
              in->rank);
    for (int d = 0; d < in->rank; d++)
        SAC_CHECK(c, d == axis || indices->dims[d] <= in->dims[d],
                  "dimension %d of the indices is %lld, of the data %lld", d,
                  (long long)indices->dims[d], (long long)in->dims[d]);
    return sac_shape_out(c, 0, in->dtype, in->rank, indices->dims);
}

static sac_result gather_elements_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0], *out = &c->out[0];
    int                       axis;
    int64_t                   stride[SAC_RANK_MAX];
    size_t                    bytes = sac_dtype_bytes(in->dtype);
    SAC_TRY(sac_op_axis(c, 0, c->in[0].rank, &axis));
    sac_dense_strides(in->rank, in->dims, stride);
    int64_t along = stride[axis];
    stride[axis] = 0; /* the walk gives the offset without this axis; the index adds to it */
    struct sac_walk w;
    sac_walk_init(&w, out->rank, out->dims);
    int io = sac_walk_operand(&w, out), ii = sac_walk_strides(&w, 0, stride);
    for (sac_walk_start(&w); w.run; sac_walk_next(&w))
        for (int64_t i = 0; i < w.run; i++) {
            int64_t index = 0, to = w.at[io] + i * w.step[io];
            SAC_TRY(read_index(c, to, in->dims[axis], &index));
            memcpy((char *)out->data + (size_t)to * bytes,
                   (const char *)in->data +
                       (size_t)(w.at[ii] + i * w.step[ii] + index * along) * bytes,
                   bytes);
        }
    return SAC_OK;
}

static bool gather_elements_batch(struct sac_batch_walk *w, struct sac_node *n, int k, int *out)
{
    return sac_batch_axis(w, n->inputs[1]) == k
               ? sac_batch_one_axis(w, n, k, out)
               : sac_batch_refuse(w, "its indices do not carry the batch");
}

const struct sac_op sac_row_GatherElements = {
    SAC_ROW(GatherElements, 11, 2, 2, 1), .shape = gather_elements_shape,
    .ref = gather_elements_ref, .batch = gather_elements_batch};

/* ---- GatherND: the last dimension of the indices is a place ---- */

static sac_result gather_nd_shape(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0], *indices = &c->in[1];
    int64_t batch = sac_attr_int(c->node, "batch_dims", 0), dims[2 * SAC_RANK_MAX];
    int     rank = 0;
    SAC_TRY(index_dtype(c));
    SAC_CHECK(c, indices->rank >= 1 && batch >= 0 && batch < indices->rank && batch < in->rank,
              "'batch_dims' %lld with %d and %d dimensions", (long long)batch, in->rank,
              indices->rank);
    int64_t depth = indices->dims[indices->rank - 1];
    SAC_CHECK(c, depth >= 1 && depth <= in->rank - batch,
              "places of %lld numbers in a tensor of %d dimensions", (long long)depth, in->rank);
    for (int d = 0; d < batch; d++)
        SAC_CHECK(c, in->dims[d] == indices->dims[d], "batch dimension %d is %lld and %lld", d,
                  (long long)in->dims[d], (long long)indices->dims[d]);
    for (int d = 0; d < indices->rank - 1; d++)
        dims[rank++] = indices->dims[d];
    for (int d = (int)(batch + depth); d < in->rank; d++)
        dims[rank++] = in->dims[d];
    return sac_shape_out(c, 0, in->dtype, rank, dims);
}

static sac_result gather_nd_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0], *indices = &c->in[1];
    int                       batch = (int)sac_attr_int(c->node, "batch_dims", 0);
    int                       depth = (int)indices->dims[indices->rank - 1];
    int64_t stride[SAC_RANK_MAX], places = sac_dims_product(indices->rank - 1, indices->dims);
    int64_t batches = sac_dims_product(batch, in->dims);
    int64_t inner = sac_dims_product(in->rank - batch - depth, in->dims + batch + depth);
    int64_t per_batch = sac_dims_product(in->rank - batch, in->dims + batch);
    size_t  bytes = sac_dtype_bytes(in->dtype);
    sac_dense_strides(in->rank, in->dims, stride);
    for (int64_t p = 0; p < places; p++) {
        int64_t from = p / (places / batches) * per_batch;
        for (int k = 0; k < depth; k++) {
            int64_t index = 0;
            SAC_TRY(read_index(c, p * depth + k, in->dims[batch + k], &index));
            from += index * stride[batch + k];
        }
        memcpy((char *)c->out[0].data + (size_t)(p * inner) * bytes,
               (const char *)in->data + (size_t)from * bytes, (size_t)inner * bytes);
    }
    return SAC_OK;
}

const struct sac_op sac_row_GatherND = {SAC_ROW(GatherND, 11, 2, 2, 1), .shape = gather_nd_shape,
                                        .ref = gather_nd_ref};
