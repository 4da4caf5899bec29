/* SPDX-License-Identifier: Apache-2.0 */
/* The same data under another shape: Reshape, Flatten, Squeeze, Unsqueeze, Identity, and Dropout,
 * which is an identity at inference. */
#include "engine/ops/batch.h"
#include "engine/ops/util.h"

static sac_result copy_ref(struct sac_op_call *c)
{
    if (c->out[0].data != c->in[0].data)
        memcpy(c->out[0].data, c->in[0].data, sac_operand_bytes(&c->out[0]));
    return SAC_OK;
}

/* 0 keeps the input's dimension (unless allowzero); one -1 takes the remaining elements. */
static sac_result reshape_shape(struct sac_op_call *c)
{
    int64_t dims[SAC_RANK_MAX], known = 1, elements = sac_operand_elements(&c->in[0]);
    size_t  rank;
    int     open = -1;
    bool    zero_is_zero = sac_attr_int(c->node, "allowzero", 0);
    SAC_TRY(sac_operand_ints(c, 1, dims, SAC_RANK_MAX, &rank));
    for (int d = 0; d < (int)rank; d++) {
        if (dims[d] == 0 && !zero_is_zero) {
            SAC_CHECK(c, d < c->in[0].rank, "dimension %d is taken from an input of %d dimensions",
                      d, c->in[0].rank);
            dims[d] = c->in[0].dims[d];
        }
        SAC_CHECK(c, dims[d] >= -1, "dimension %d of the new shape is %lld", d, (long long)dims[d]);
        SAC_CHECK(c, dims[d] != -1 || open < 0, "two dimensions of the new shape are -1");
        if (dims[d] == -1)
            open = d;
        else
            SAC_CHECK(c, !__builtin_mul_overflow(known, dims[d], &known),
                      "the new shape is larger than memory can be");
    }
    if (open >= 0) {
        SAC_CHECK(c, known > 0 && elements % known == 0,
                  "%lld elements do not divide into the new shape", (long long)elements);
        dims[open] = elements / known;
        known = elements;
    }
    SAC_CHECK(c, known == elements, "%lld elements do not fit a shape of %lld", (long long)elements,
              (long long)known);
    return sac_shape_out(c, 0, c->in[0].dtype, (int)rank, dims);
}

static sac_result flatten_shape(struct sac_op_call *c)
{
    int     rank = c->in[0].rank;
    int64_t axis = sac_attr_int(c->node, "axis", 1);
    SAC_CHECK(c, axis >= -rank && axis <= rank, "axis %lld of a tensor of %d dimensions",
              (long long)axis, rank);
    axis += axis < 0 ? rank : 0;
    int64_t dims[2] = {sac_dims_product((int)axis, c->in[0].dims),
                       sac_dims_product(rank - (int)axis, c->in[0].dims + axis)};
    return sac_shape_out(c, 0, c->in[0].dtype, 2, dims);
}

static sac_result squeeze_shape(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    int                       axes[SAC_RANK_MAX], count, rank = 0;
    bool                      drop[SAC_RANK_MAX] = {false};
    int64_t                   dims[SAC_RANK_MAX];
    SAC_TRY(sac_op_axes(c, "axes", 1, in->rank, axes, &count));
    bool all = !sac_node_attr(c->node, "axes") && !sac_op_has(c, 1);
    for (int i = 0; i < count; i++) {
        SAC_CHECK(c, in->dims[axes[i]] == 1, "dimension %d is %lld and cannot be squeezed", axes[i],
                  (long long)in->dims[axes[i]]);
        drop[axes[i]] = true;
    }
    for (int d = 0; d < in->rank; d++)
        if (!(all ? in->dims[d] == 1 : drop[d]))
            dims[rank++] = in->dims[d];
    return sac_shape_out(c, 0, in->dtype, rank, dims);
}

static sac_result unsqueeze_shape(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    int                       axes[SAC_RANK_MAX], count;
    int64_t                   raw[SAC_RANK_MAX], dims[SAC_RANK_MAX];
    size_t                    added;
    /* their count gives the output's rank */
    SAC_TRY(sac_op_ints(c, "axes", 1, raw, SAC_RANK_MAX, &added));
    int rank = in->rank + (int)added;
    SAC_CHECK(c, rank <= SAC_RANK_MAX, "%d dimensions; at most %d", rank, SAC_RANK_MAX);
    SAC_TRY(sac_op_axes(c, "axes", 1, rank, axes, &count));
    for (int d = 0; d < rank; d++)
        dims[d] = 0;
    for (int i = 0; i < count; i++)
        dims[axes[i]] = 1;
    for (int d = 0, from = 0; d < rank; d++)
        if (dims[d] == 0)
            dims[d] = in->dims[from++];
    return sac_shape_out(c, 0, in->dtype, rank, dims);
}

/* The axis of size 1 with as many elements before it as the batch has. */
static int reshaped_axis(const struct sac_value *in, int k, const struct sac_value *out)
{
    int64_t before = 1, product = 1;
    for (int d = 0; d < k; d++)
        before *= in->dims[d];
    for (int d = 0; d < out->rank; d++) {
        if (product == before && out->dims[d] == 1)
            return d;
        product *= out->dims[d];
    }
    return -1;
}

static bool reshape_batch(struct sac_batch_walk *w, struct sac_node *n, int k, int *out)
{
    struct sac_batch_edit e = {.node = n, .kind = SAC_BATCH_SHAPE};
    if (n->outputs[0]->rank < 0 || n->inputs[0]->rank < 0)
        return sac_batch_refuse(w, "its shape is not known");
    *out = reshaped_axis(n->inputs[0], k, n->outputs[0]);
    if (*out < 0)
        return sac_batch_refuse(w, "it joins the batch with other axes");
    /* computed from shapes, so it adapts; the check verifies that */
    if (!n->inputs[1]->data)
        return true;
    if (!sac_batch_ints(n, 1, e.ints, &e.count) || (int)e.count <= *out)
        return sac_batch_refuse(w, "its shape is not known");
    if (e.ints[*out] != 1)
        return e.ints[*out] == -1 || e.ints[*out] == 0;
    if (sac_attr_int(n, "allowzero", 0) && sac_batch_contains(e.ints, e.count, 0))
        return sac_batch_refuse(w, "its shape has a real 0");
    if (*out == k)
        e.ints[*out] = 0;
    else if (!sac_batch_contains(e.ints, e.count, -1))
        e.ints[*out] = -1;
    else
        return sac_batch_refuse(w, "it moves the batch to another axis");
    return sac_batch_edit(w, e);
}

static bool flatten_batch(struct sac_batch_walk *w, struct sac_node *n, int k, int *out)
{
    int64_t axis = sac_attr_int(n, "axis", 1);
    axis += axis < 0 ? n->inputs[0]->rank : 0;
    *out = 0;
    return (k == 0 && axis == 1) || sac_batch_refuse(w, "it joins the batch with other axes");
}

static bool squeeze_batch(struct sac_batch_walk *w, struct sac_node *n, int k, int *out)
{
    int64_t axes[SAC_RANK_MAX];
    size_t  count;
    if (!sac_batch_axes(n, 1, n->inputs[0]->rank, axes, &count) || count == 0)
        return sac_batch_refuse(w, "its axes are not given");
    *out = k;
    for (size_t i = 0; i < count; i++)
        *out -= axes[i] < k;
    return !sac_batch_contains(axes, count, k) || sac_batch_refuse(w, "it drops the batch");
}

static bool unsqueeze_batch(struct sac_batch_walk *w, struct sac_node *n, int k, int *out)
{
    int64_t        axes[SAC_RANK_MAX];
    size_t         count;
    const int64_t *list;
    size_t         given = sac_attr_ints(n, "axes", &list);
    if (given == 0 && n->input_count > 1 && n->inputs[1] && n->inputs[1]->rank == 1)
        given = (size_t)n->inputs[1]->dims[0];
    if (!sac_batch_axes(n, 1, n->inputs[0]->rank + (int)given, axes, &count) || count == 0)
        return sac_batch_refuse(w, "its axes are not constant");
    *out = 0;
    for (int kept = 0;; ++*out) /* the k-th axis that is not a new one */
        if (!sac_batch_contains(axes, count, *out) && kept++ == k)
            return true;
}

#define VIEW(op, since, in_min, in_max, shape_fn, batch_fn)                                       \
    const struct sac_op sac_row_##op = {SAC_ROW(op, since, in_min, in_max, 1),                    \
                                        .flags = SAC_OP_VIEW, .shape = shape_fn, .ref = copy_ref, \
                                        .batch = batch_fn}
VIEW(Reshape, 5, 2, 2, reshape_shape, reshape_batch);
VIEW(Flatten, 1, 1, 1, flatten_shape, flatten_batch);
VIEW(Squeeze, 1, 1, 2, squeeze_shape, squeeze_batch);
VIEW(Unsqueeze, 1, 1, 2, unsqueeze_shape, unsqueeze_batch);
VIEW(Identity, 1, 1, 1, sac_shape_same, sac_batch_elementwise);

/* ---- Dropout ---- */

static sac_result dropout_shape(struct sac_op_call *c)
{
    if (sac_op_has(c, 2)) {
        if (!c->in[2].data)
            return SAC_AGAIN;
        double ratio = 0.5;
        if (c->in[1].present) {
            if (!c->in[1].data)
                return SAC_AGAIN;
            ratio = sac_operand_get(&c->in[1], 0);
        }
        if (sac_operand_get(&c->in[2], 0) && ratio != 0)
            return SAC_OP_FAIL(c, SAC_ERR_UNSUPPORTED, "training mode; have inference");
    }
    SAC_TRY(sac_shape_same(c));
    return sac_shape_out(c, 1, c->node->opset < 10 ? c->in[0].dtype : SAC_BOOL, c->in[0].rank,
                         c->in[0].dims);
}

static sac_result dropout_ref(struct sac_op_call *c)
{
    const struct sac_operand *mask = &c->out[1];
    for (int64_t i = 0, n = sac_op_wants(c, 1) ? sac_operand_elements(mask) : 0; i < n; i++)
        sac_operand_set(mask, i, 1);
    return copy_ref(c);
}

const struct sac_op sac_row_Dropout = {SAC_ROW(Dropout, 7, 1, 3, 2), .shape = dropout_shape,
                                       .ref = dropout_ref, .batch = sac_batch_elementwise};
