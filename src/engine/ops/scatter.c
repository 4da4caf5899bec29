/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of the data with some elements replaced or combined with the old ones: Scatter,
 * ScatterElements, ScatterND, TensorScatter. Indices are known only at run time, so the kernels
 * check them.
 */
#include <math.h>

#include "engine/ops/reads.h"
#include "engine/ops/util.h"

sac_result sac_read_combine(const struct sac_op_call *c, enum sac_combine *out)
{
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    const char              *wanted = sac_attr_string(c->node, "reduction", "none");
    for (int i = 0; i < (int)SAC_COUNT(names); i++)
        if (strcmp(wanted, names[i]) == 0) {
            *out = (enum sac_combine)i;
            return SAC_OK;
        }
    return SAC_OP_FAIL(c, SAC_ERR_UNSUPPORTED, "reduction '%s'; have none, add, mul, max, min",
                       wanted);
}

/* out[to] = combine(out[to], updates[from]); 64-bit integers are exact. */
static void put(const struct sac_operand *out, int64_t to, const struct sac_operand *updates,
                int64_t from, enum sac_combine how)
{
    size_t bytes = sac_dtype_bytes(out->dtype);
    if (how == SAC_COMBINE_NONE) {
        memcpy((char *)out->data + (size_t)to * bytes,
               (const char *)updates->data + (size_t)from * bytes, bytes);
    } else if (sac_dtype_is_float(out->dtype)) {
        double a = sac_operand_get(out, to), b = sac_operand_get(updates, from);
        sac_operand_set(out, to,
                        how == SAC_COMBINE_ADD   ? a + b
                        : how == SAC_COMBINE_MUL ? a * b
                        : how == SAC_COMBINE_MAX ? fmax(a, b)
                                                 : fmin(a, b));
    } else {
        int64_t a, b;
        sac_load(out->dtype, out->data, to, 1, 1, &a);
        sac_load(updates->dtype, updates->data, from, 1, 1, &b);
        bool     less = out->dtype == SAC_U64 ? (uint64_t)a < (uint64_t)b : a < b;
        uint64_t v = how == SAC_COMBINE_ADD             ? (uint64_t)a + (uint64_t)b
                     : how == SAC_COMBINE_MUL           ? (uint64_t)a * (uint64_t)b
                     : (how == SAC_COMBINE_MAX) == less ? (uint64_t)b
                                                        : (uint64_t)a;
        sac_store(out->dtype, out->data, to, 1, &v);
    }
}

static sac_result check_index(struct sac_op_call *c, int64_t index, int64_t dim, int64_t *out)
{
    SAC_CHECK(c, index >= -dim && index < dim, "index %lld into a dimension of %lld",
              (long long)index, (long long)dim);
    *out = index < 0 ? index + dim : index;
    return SAC_OK;
}

static sac_result read_index(struct sac_op_call *c, int64_t i, int64_t dim, int64_t *out)
{
    int64_t index;
    sac_load(c->in[1].dtype, c->in[1].data, i, 1, 1, &index);
    return check_index(c, index, dim, out);
}

static sac_result check_inputs(struct sac_op_call *c)
{
    enum sac_combine how;
    SAC_TRY(sac_read_combine(c, &how));
    SAC_CHECK(c, c->in[1].dtype == SAC_I64 || c->in[1].dtype == SAC_I32,
              "indices of dtype %s; have int64, int32", sac_in_dtype(c, 1));
    SAC_CHECK(c, c->in[2].dtype == c->in[0].dtype, "updates of dtype %s for data of %s",
              sac_in_dtype(c, 2), sac_in_dtype(c, 0));
    return SAC_OK;
}

static void copy_data(struct sac_op_call *c)
{
    if (c->out[0].data != c->in[0].data)
        memcpy(c->out[0].data, c->in[0].data, sac_operand_bytes(&c->in[0]));
}

/* ---- Scatter, ScatterElements ---- */

static sac_result elements_shape(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0], *indices = &c->in[1];
    int                       axis;
    SAC_TRY(check_inputs(c));
    SAC_TRY(sac_op_axis(c, 0, in->rank, &axis));
    SAC_CHECK(c, indices->rank == in->rank && c->in[2].rank == in->rank,
              "indices of %d and updates of %d dimensions for data of %d", indices->rank,
              c->in[2].rank, in->rank);
    for (int d = 0; d < in->rank; d++)
        SAC_CHECK(c,
                  indices->dims[d] == c->in[2].dims[d] &&
                      (d == axis || indices->dims[d] <= in->dims[d]),
                  "dimension %d of the indices is %lld, of the updates %lld, of the data %lld", d,
                  (long long)indices->dims[d], (long long)c->in[2].dims[d], (long long)in->dims[d]);
    return sac_shape_same(c);
}

static sac_result elements_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0], *indices = &c->in[1];
    enum sac_combine          how;
    int                       axis;
    int64_t                   stride[SAC_RANK_MAX];
    SAC_TRY(sac_read_combine(c, &how));
    SAC_TRY(sac_op_axis(c, 0, in->rank, &axis));
    copy_data(c);
    sac_dense_strides(in->rank, in->dims, stride);
    int64_t along = stride[axis];
    stride[axis] = 0;
    struct sac_walk w;
    sac_walk_init(&w, in->rank, indices->dims);
    sac_walk_operand(&w, indices);
    sac_walk_strides(&w, 0, stride);
    for (sac_walk_start(&w); w.run; sac_walk_next(&w))
        for (int64_t i = 0; i < w.run; i++) {
            int64_t index, from = w.at[0] + i * w.step[0];
            SAC_TRY(read_index(c, from, in->dims[axis], &index));
            put(&c->out[0], w.at[1] + i * w.step[1] + index * along, &c->in[2], from, how);
        }
    return SAC_OK;
}

const struct sac_op sac_row_ScatterElements = {SAC_ROW(ScatterElements, 11, 3, 3, 1),
                                               .shape = elements_shape, .ref = elements_ref};
const struct sac_op sac_row_Scatter = {SAC_ROW(Scatter, 9, 3, 3, 1), .shape = elements_shape,
                                       .ref = elements_ref};

/* ---- ScatterND ---- */

static sac_result nd_shape(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0], *indices = &c->in[1], *updates = &c->in[2];
    SAC_TRY(check_inputs(c));
    SAC_CHECK(c,
              indices->rank >= 1 && indices->dims[indices->rank - 1] >= 0 &&
                  indices->dims[indices->rank - 1] <= in->rank,
              "places in a tensor of %d dimensions", in->rank);
    int depth = (int)indices->dims[indices->rank - 1], rank = 0;
    SAC_CHECK(c, updates->rank == indices->rank - 1 + in->rank - depth, "updates of %d dimensions",
              updates->rank);
    for (int d = 0; d < indices->rank - 1; d++, rank++)
        SAC_CHECK(c, updates->dims[rank] == indices->dims[d], "dimension %d of the updates is %lld",
                  rank, (long long)updates->dims[rank]);
    for (int d = depth; d < in->rank; d++, rank++)
        SAC_CHECK(c, updates->dims[rank] == in->dims[d], "dimension %d of the updates is %lld",
                  rank, (long long)updates->dims[rank]);
    return sac_shape_same(c);
}

static void put_run(const struct sac_operand *out, int64_t to, const struct sac_operand *updates,
                    int64_t from, int64_t count, enum sac_combine how)
{
    const size_t bytes = sac_dtype_bytes(out->dtype);
    if (how == SAC_COMBINE_NONE)
        memcpy((char *)out->data + (size_t)to * bytes,
               (const char *)updates->data + (size_t)from * bytes, (size_t)count * bytes);
    for (int64_t i = 0; i < count && how != SAC_COMBINE_NONE; i++)
        put(out, to + i, updates, from + i, how);
}

/* Where an update goes that has `depth` indices. */
static sac_result nd_place(struct sac_op_call *c, int64_t p, int depth, const int64_t *stride,
                           int64_t *to)
{
    int64_t index[SAC_RANK_MAX];
    sac_load(c->in[1].dtype, c->in[1].data, p * depth, 1, depth, index);
    *to = 0;
    for (int k = 0; k < depth; k++) {
        SAC_TRY(check_index(c, index[k], c->in[0].dims[k], &index[k]));
        *to += index[k] * stride[k];
    }
    return SAC_OK;
}

static sac_result nd_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0], *indices = &c->in[1];
    enum sac_combine          how;
    int64_t stride[SAC_RANK_MAX], places = sac_dims_product(indices->rank - 1, indices->dims), to;
    int     depth = (int)indices->dims[indices->rank - 1];
    int64_t inner = sac_dims_product(in->rank - depth, in->dims + depth);
    SAC_TRY(sac_read_combine(c, &how));
    copy_data(c);
    sac_dense_strides(in->rank, in->dims, stride);
    for (int64_t p = 0; p < places; p++) {
        SAC_TRY(nd_place(c, p, depth, stride, &to));
        put_run(&c->out[0], to, &c->in[2], p * inner, inner, how);
    }
    return SAC_OK;
}

const struct sac_op sac_row_ScatterND = {SAC_ROW(ScatterND, 11, 3, 3, 1), .shape = nd_shape,
                                         .ref = nd_ref};

/* ---- TensorScatter: a cache [B,...,T,D] takes an update at each image's write index ---- */

sac_result sac_cache_axis(const struct sac_op_call *c, int *axis)
{
    int64_t wanted = sac_attr_int(c->node, "axis", -2);
    SAC_CHECK(c, sac_axis_normalise(wanted, c->in[0].rank, axis) && *axis > 0,
              "axis %lld of a tensor of %d dimensions", (long long)wanted, c->in[0].rank);
    return SAC_OK;
}

static sac_result cache_shape(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0], *update = &c->in[1];
    int                       axis;
    const char               *mode = sac_attr_string(c->node, "mode", "linear");
    SAC_TRY(sac_cache_axis(c, &axis));
    SAC_CHECK(c, strcmp(mode, "linear") == 0 || strcmp(mode, "circular") == 0,
              "mode '%s'; have linear, circular", mode);
    SAC_CHECK(c, update->rank == in->rank && update->dtype == in->dtype,
              "update of %d dimensions and dtype %s", update->rank, sac_in_dtype(c, 1));
    for (int d = 0; d < in->rank; d++)
        SAC_CHECK(c, d == axis ? update->dims[d] <= in->dims[d] : update->dims[d] == in->dims[d],
                  "dimension %d of the update is %lld", d, (long long)update->dims[d]);
    if (sac_op_has(c, 2))
        SAC_CHECK(
            c, c->in[2].dtype == SAC_I64 && c->in[2].rank == 1 && c->in[2].dims[0] == in->dims[0],
            "not one write index for each of %lld images", (long long)in->dims[0]);
    return sac_shape_same(c);
}

static sac_result cache_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0], *update = &c->in[1];
    bool circular = strcmp(sac_attr_string(c->node, "mode", "linear"), "circular") == 0;
    int  axis;
    SAC_TRY(sac_cache_axis(c, &axis));
    copy_data(c);
    int64_t outer = sac_dims_product(axis, in->dims), room = in->dims[axis];
    int64_t count = update->dims[axis];
    size_t  run = (size_t)sac_dims_product(in->rank - axis - 1, in->dims + axis + 1) *
                 sac_dtype_bytes(in->dtype);
    for (int64_t o = 0; o < outer; o++) {
        int64_t image = o / (outer / in->dims[0]);
        int64_t first = sac_op_has(c, 2) ? ((const int64_t *)c->in[2].data)[image] : 0;
        SAC_CHECK(c, first >= 0 && first <= room - (circular ? 1 : count),
                  "write index %lld of %lld", (long long)first, (long long)room);
        for (int64_t i = 0; i < count; i++)
            memcpy((char *)c->out[0].data + (size_t)(o * room + (first + i) % room) * run,
                   (const char *)update->data + (size_t)(o * count + i) * run, run);
    }
    return SAC_OK;
}

const struct sac_op sac_row_TensorScatter = {SAC_ROW(TensorScatter, 24, 2, 3, 1),
                                             .shape = cache_shape, .ref = cache_ref};
