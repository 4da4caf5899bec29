/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that only move data: Transpose, Concat, Split, Slice, Expand, Tile, DepthToSpace,
 * SpaceToDepth. Each is one strided copy, or one per piece. */
#include "engine/ops/batch.h"
#include "engine/ops/reads.h"
#include "engine/ops/util.h"

static size_t element_bytes(const struct sac_op_call *c)
{
    return sac_dtype_bytes(c->in[0].dtype);
}

/* ---- Transpose ---- */

sac_result sac_transpose_perm(const struct sac_op_call *c, int *perm)
{
    const int64_t *values;
    size_t         n = sac_attr_ints(c->node, "perm", &values);
    int            rank = c->in[0].rank;
    SAC_CHECK(c, n == 0 || n == (size_t)rank, "'perm' holds %zu axes for %d dimensions", n, rank);
    bool seen[SAC_RANK_MAX] = {false};
    for (int d = 0; d < rank; d++) {
        int64_t axis = n ? values[d] : rank - 1 - d;
        SAC_CHECK(c, axis >= 0 && axis < rank && !seen[axis], "'perm' is not a permutation");
        seen[axis] = true;
        perm[d] = (int)axis;
    }
    return SAC_OK;
}

static sac_result transpose_shape(struct sac_op_call *c)
{
    int     perm[SAC_RANK_MAX];
    int64_t dims[SAC_RANK_MAX];
    SAC_TRY(sac_transpose_perm(c, perm));
    for (int d = 0; d < c->in[0].rank; d++)
        dims[d] = c->in[0].dims[perm[d]];
    return sac_shape_out(c, 0, c->in[0].dtype, c->in[0].rank, dims);
}

static sac_result transpose_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0], *out = &c->out[0];
    int                       perm[SAC_RANK_MAX];
    int64_t                   from[SAC_RANK_MAX], dense[SAC_RANK_MAX], to[SAC_RANK_MAX];
    SAC_TRY(sac_transpose_perm(c, perm));
    sac_dense_strides(in->rank, in->dims, dense);
    sac_dense_strides(out->rank, out->dims, to);
    for (int d = 0; d < in->rank; d++)
        from[d] = dense[perm[d]];
    sac_copy_strided(out->data, 0, to, in->data, 0, from, out->rank, out->dims, element_bytes(c));
    return SAC_OK;
}

static bool transpose_batch(struct sac_batch_walk *w, struct sac_node *n, int k, int *out)
{
    const int64_t *perm;
    size_t         count = sac_attr_ints(n, "perm", &perm);
    int            rank = n->inputs[0]->rank;
    *out = rank - 1 - k;
    for (size_t i = 0; i < count; i++)
        if (perm[i] == k)
            *out = (int)i;
    (void)w;
    return true;
}

const struct sac_op sac_row_Transpose = {SAC_ROW(Transpose, 1, 1, 1, 1), .shape = transpose_shape,
                                         .ref = transpose_ref, .batch = transpose_batch};

/* ---- Concat, Split ---- */

/* Copy between a piece and its place at `offset` along `axis` of the whole. */
static void copy_piece(const struct sac_operand *whole, const struct sac_operand *piece, int axis,
                       int64_t offset, bool gather)
{
    int64_t outer = sac_dims_product(axis, whole->dims);
    int64_t inner = sac_dims_product(whole->rank - axis - 1, whole->dims + axis + 1);
    size_t  bytes = sac_dtype_bytes(whole->dtype);
    size_t  run = (size_t)(piece->dims[axis] * inner) * bytes;
    char   *w = (char *)whole->data + (size_t)(offset * inner) * bytes, *p = piece->data;
    for (int64_t i = 0; i < outer; i++) {
        memcpy(gather ? w : p, gather ? p : w, run);
        w += (size_t)(whole->dims[axis] * inner) * bytes;
        p += run;
    }
}

static sac_result concat_shape(struct sac_op_call *c)
{
    const struct sac_operand *first = &c->in[0];
    int                       axis, rank = first->rank;
    int64_t                   dims[SAC_RANK_MAX];
    SAC_TRY(sac_op_axis(c, 1, rank, &axis));
    memcpy(dims, first->dims, sizeof dims);
    for (int i = 1; i < c->in_count; i++) {
        const struct sac_operand *in = &c->in[i];
        SAC_CHECK(c, in->dtype == first->dtype && in->rank == rank,
                  "input %d is %s of %d dimensions, input 0 %s of %d", i, sac_in_dtype(c, i),
                  in->rank, sac_in_dtype(c, 0), rank);
        for (int d = 0; d < rank; d++)
            SAC_CHECK(c, d == axis || in->dims[d] == dims[d],
                      "dimension %d of input %d is %lld, of those before it %lld", d, i,
                      (long long)in->dims[d], (long long)dims[d]);
        SAC_CHECK(c, !__builtin_add_overflow(dims[axis], in->dims[axis], &dims[axis]),
                  "the result is larger than memory can be");
    }
    return sac_shape_out(c, 0, first->dtype, rank, dims);
}

static sac_result concat_ref(struct sac_op_call *c)
{
    int     axis;
    int64_t offset = 0;
    SAC_TRY(sac_op_axis(c, 1, c->in[0].rank, &axis));
    for (int i = 0; i < c->in_count; i++) {
        copy_piece(&c->out[0], &c->in[i], axis, offset, true);
        offset += c->in[i].dims[axis];
    }
    return SAC_OK;
}

static bool concat_batch(struct sac_batch_walk *w, struct sac_node *n, int k, int *out)
{
    int64_t axis = sac_attr_int(n, "axis", 1);
    axis += axis < 0 ? n->inputs[0]->rank : 0;
    for (int i = 0; i < n->input_count; i++)
        if (sac_batch_axis(w, n->inputs[i]) != k)
            return sac_batch_refuse(w, "one of its inputs does not carry the batch");
    *out = k;
    return axis != k || sac_batch_refuse(w, "it joins along the batch");
}

const struct sac_op sac_row_Concat = {SAC_ROW(Concat, 4, 1, SAC_OP_INPUTS_MAX, 1),
                                      .flags = SAC_OP_BATCH_ANYWHERE, .shape = concat_shape,
                                      .ref = concat_ref, .batch = concat_batch};

/* Sizes come from the attribute or the input. Without either they are equal, and the last may be
 * smaller.
 */
static sac_result split_shape(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    int                       axis;
    int64_t                   sizes[SAC_OP_OUTPUTS_MAX], dims[SAC_RANK_MAX], sum = 0;
    int64_t                   parts = c->out_count;
    size_t                    given;
    SAC_TRY(sac_op_axis(c, 0, in->rank, &axis));
    SAC_TRY(sac_op_ints(c, "split", 1, sizes, SAC_OP_OUTPUTS_MAX, &given));
    SAC_CHECK(c, given == 0 || (int64_t)given == parts, "%zu sizes for %lld outputs", given,
              (long long)parts);
    int64_t even = in->dims[axis] / parts + (in->dims[axis] % parts != 0);
    memcpy(dims, in->dims, sizeof dims);
    for (int i = 0; i < parts; i++) {
        int64_t size = given ? sizes[i] : SAC_CLAMP(in->dims[axis] - sum, 0, even);
        SAC_CHECK(c, size >= 0 && size <= in->dims[axis] - sum,
                  "piece %d of %lld does not fit what is left of %lld", i, (long long)size,
                  (long long)in->dims[axis]);
        sum += dims[axis] = size;
        SAC_TRY(sac_shape_out(c, i, in->dtype, in->rank, dims));
    }
    SAC_CHECK(c, sum == in->dims[axis], "the pieces add up to %lld of %lld", (long long)sum,
              (long long)in->dims[axis]);
    return SAC_OK;
}

static sac_result split_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    int                       axis;
    size_t                    given;
    int64_t                   sizes[SAC_OP_OUTPUTS_MAX], parts = c->out_count, offset = 0;
    SAC_TRY(sac_op_axis(c, 0, in->rank, &axis));
    SAC_TRY(sac_op_ints(c, "split", 1, sizes, SAC_OP_OUTPUTS_MAX, &given));
    int64_t even = in->dims[axis] / parts + (in->dims[axis] % parts != 0);
    for (int i = 0; i < parts; i++) {
        if (sac_op_wants(c, i))
            copy_piece(in, &c->out[i], axis, offset, false);
        offset += given ? sizes[i] : SAC_CLAMP(in->dims[axis] - offset, 0, even);
    }
    return SAC_OK;
}

bool sac_split_feeds_convs(const struct sac_op_call *c)
{
    int axis;
    if (!c->node->outputs) /* it is part of no graph */
        return false;
    if (!c->node->inputs[0]->producer || c->in[0].dtype != SAC_F32 || c->in[0].rank < 3 ||
        sac_op_axis(c, 0, c->in[0].rank, &axis) != SAC_OK || axis != 1)
        return false;
    for (int i = 0; i < c->node->output_count; i++) {
        const struct sac_value *part = c->node->outputs[i];
        const struct sac_node  *n = part ? sac_value_only_reader(part) : NULL;
        if (!n || !n->op || (n->op->id != SAC_OP_Conv && n->op->id != SAC_OP_FusedConv) ||
            n->inputs[0] != part)
            return false;
    }
    return true;
}

const struct sac_op sac_row_Split = {SAC_ROW(Split, 2, 1, 2, SAC_OP_OUTPUTS_MAX),
                                     .shape = split_shape, .ref = split_ref,
                                     .batch = sac_batch_one_axis};

/* ---- Slice ---- */

/* Attributes up to opset 9, inputs after. Bounds are clamped as in Python. */
sac_result sac_slice_read(const struct sac_op_call *c, struct sac_slice *s)
{
    const struct sac_operand *in = &c->in[0];
    int64_t starts[SAC_RANK_MAX], ends[SAC_RANK_MAX], axes[SAC_RANK_MAX], steps[SAC_RANK_MAX];
    size_t  n, end_count, axis_count, step_count;
    SAC_TRY(sac_op_ints(c, "starts", 1, starts, SAC_RANK_MAX, &n));
    SAC_TRY(sac_op_ints(c, "ends", 2, ends, SAC_RANK_MAX, &end_count));
    SAC_TRY(sac_op_ints(c, "axes", 3, axes, SAC_RANK_MAX, &axis_count));
    SAC_TRY(sac_op_ints(c, "steps", 4, steps, SAC_RANK_MAX, &step_count));
    SAC_CHECK(c,
              end_count == n && (!axis_count || axis_count == n) &&
                  (!step_count || step_count == n) && (int)n <= in->rank,
              "%zu starts, %zu ends, %zu axes, %zu steps for %d dimensions", n, end_count,
              axis_count, step_count, in->rank);
    bool seen[SAC_RANK_MAX] = {false};
    for (int d = 0; d < in->rank; d++) {
        s->start[d] = 0;
        s->step[d] = 1;
        s->dims[d] = in->dims[d];
    }
    for (size_t i = 0; i < n; i++) {
        int d;
        SAC_CHECK(c,
                  sac_axis_normalise(axis_count ? axes[i] : (int64_t)i, in->rank, &d) && !seen[d],
                  "axis %lld of a tensor of %d dimensions",
                  (long long)(axis_count ? axes[i] : (int64_t)i), in->rank);
        seen[d] = true;
        int64_t dim = in->dims[d], step = step_count ? steps[i] : 1;
        SAC_CHECK(c, step != 0, "a step of 0 along axis %d", d);
        step = SAC_CLAMP(step, -dim - 1, dim + 1); /* a larger step has the same effect */
        int64_t lo = step < 0 ? -1 : 0, hi = step < 0 ? dim - 1 : dim;
        int64_t start = starts[i] < 0 ? starts[i] + dim : starts[i];
        int64_t end = ends[i] < 0 ? ends[i] + dim : ends[i];
        start = SAC_CLAMP(start, SAC_MAX(lo, 0), hi);
        end = SAC_CLAMP(end, lo, hi);
        int64_t span = step < 0 ? start - end : end - start, stride = step < 0 ? -step : step;
        s->start[d] = start;
        s->step[d] = step;
        s->dims[d] = dim && span > 0 ? (span - 1) / stride + 1 : 0; /* of none, none */
    }
    return SAC_OK;
}

static sac_result slice_shape(struct sac_op_call *c)
{
    struct sac_slice s;
    SAC_TRY(sac_slice_read(c, &s));
    return sac_shape_out(c, 0, c->in[0].dtype, c->in[0].rank, s.dims);
}

static sac_result slice_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0], *out = &c->out[0];
    struct sac_slice          s;
    int64_t                   dense[SAC_RANK_MAX], to[SAC_RANK_MAX], from[SAC_RANK_MAX], offset = 0;
    SAC_TRY(sac_slice_read(c, &s));
    sac_dense_strides(in->rank, in->dims, dense);
    sac_dense_strides(out->rank, out->dims, to);
    for (int d = 0; d < in->rank; d++) {
        offset += s.start[d] * dense[d];
        from[d] = s.step[d] * dense[d];
    }
    sac_copy_strided(out->data, 0, to, in->data, offset, from, out->rank, out->dims,
                     element_bytes(c));
    return SAC_OK;
}

static bool slice_batch(struct sac_batch_walk *w, struct sac_node *n, int k, int *out)
{
    int64_t axes[SAC_RANK_MAX];
    size_t  count;
    if (!sac_batch_axes(n, 3, n->inputs[0]->rank, axes, &count))
        return sac_batch_refuse(w, "its axes are not constant");
    if (count == 0) { /* left out: the first ones */
        const int64_t *list;
        count = sac_attr_ints(n, "starts", &list);
        if (count == 0 && n->input_count > 1 && n->inputs[1] && n->inputs[1]->rank == 1)
            count = (size_t)n->inputs[1]->dims[0];
        *out = k;
        return k >= (int)count || sac_batch_refuse(w, "it cuts along the batch");
    }
    *out = k;
    return !sac_batch_contains(axes, count, k) || sac_batch_refuse(w, "it cuts along the batch");
}

const struct sac_op sac_row_Slice = {SAC_ROW(Slice, 1, 1, 5, 1), .shape = slice_shape,
                                     .ref = slice_ref, .batch = slice_batch};

/* ---- Expand, Tile ---- */

static sac_result expand_shape(struct sac_op_call *c)
{
    int     rank = c->in[0].rank;
    int64_t dims[SAC_RANK_MAX], wanted[SAC_RANK_MAX];
    size_t  n;
    SAC_TRY(sac_operand_ints(c, 1, wanted, SAC_RANK_MAX, &n));
    memcpy(dims, c->in[0].dims, sizeof dims);
    SAC_CHECK(c, sac_broadcast_dims(&rank, dims, (int)n, wanted),
              "the input does not broadcast to the wanted shape");
    return sac_shape_out(c, 0, c->in[0].dtype, rank, dims);
}

void sac_expand_steps(const struct sac_op_call *c, const int64_t *own, int64_t *from)
{
    const struct sac_operand *in = &c->in[0];
    const int                 missing = c->out[0].rank - in->rank;
    for (int d = 0; d < missing; d++)
        from[d] = 0;
    for (int d = 0; d < in->rank; d++)
        from[missing + d] = in->dims[d] == 1 ? 0 : own[d];
}

static sac_result expand_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0], *out = &c->out[0];
    int64_t                   dense[SAC_RANK_MAX], to[SAC_RANK_MAX], from[SAC_RANK_MAX];
    sac_dense_strides(in->rank, in->dims, dense);
    sac_dense_strides(out->rank, out->dims, to);
    sac_expand_steps(c, dense, from);
    sac_copy_strided(out->data, 0, to, in->data, 0, from, out->rank, out->dims, element_bytes(c));
    return SAC_OK;
}

/* A 1 in the target, or a target computed from shapes, keeps the batch. */
static bool expand_batch(struct sac_batch_walk *w, struct sac_node *n, int k, int *out)
{
    const struct sac_value *y = n->outputs[0];
    *out = y->rank - n->inputs[0]->rank + k;
    return (*out >= 0 && y->dims[*out] == 1) || sac_batch_refuse(w, "it widens the batch");
}

const struct sac_op sac_row_Expand = {SAC_ROW(Expand, 8, 2, 2, 1), .shape = expand_shape,
                                      .ref = expand_ref, .batch = expand_batch};

static sac_result tile_shape(struct sac_op_call *c)
{
    int64_t dims[SAC_RANK_MAX], repeats[SAC_RANK_MAX];
    size_t  n;
    SAC_TRY(sac_operand_ints(c, 1, repeats, SAC_RANK_MAX, &n));
    SAC_CHECK(c, (int)n == c->in[0].rank, "%zu repeats for %d dimensions", n, c->in[0].rank);
    for (size_t d = 0; d < n; d++)
        SAC_CHECK(
            c, repeats[d] >= 0 && !__builtin_mul_overflow(c->in[0].dims[d], repeats[d], &dims[d]),
            "%lld repeats along axis %zu", (long long)repeats[d], d);
    return sac_shape_out(c, 0, c->in[0].dtype, (int)n, dims);
}

struct sac_tiling sac_tiling_of(const struct sac_op_call *c, const int64_t *in, const int64_t *out)
{
    struct sac_tiling t = {.rank = 2 * c->in[0].rank};
    for (int d = 0; d < c->in[0].rank; d++) {
        const int64_t dim = c->in[0].dims[d];
        t.dims[2 * d] = dim ? c->out[0].dims[d] / dim : 0;
        t.dims[2 * d + 1] = dim;
        t.from[2 * d + 1] = in[d];
        t.to[2 * d] = out[d] * dim;
        t.to[2 * d + 1] = out[d];
    }
    return t;
}

static sac_result tile_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0], *out = &c->out[0];
    int64_t                   from[SAC_RANK_MAX], to[SAC_RANK_MAX];
    sac_dense_strides(in->rank, in->dims, from);
    sac_dense_strides(out->rank, out->dims, to);
    const struct sac_tiling t = sac_tiling_of(c, from, to);
    sac_copy_strided(out->data, 0, t.to, in->data, 0, t.from, t.rank, t.dims, element_bytes(c));
    return SAC_OK;
}

static bool tile_batch(struct sac_batch_walk *w, struct sac_node *n, int k, int *out)
{
    *out = k;
    return n->outputs[0]->dims[k] == 1 || sac_batch_refuse(w, "it repeats the batch");
}

const struct sac_op sac_row_Tile = {SAC_ROW(Tile, 6, 2, 2, 1), .shape = tile_shape, .ref = tile_ref,
                                    .batch = tile_batch};

/* ---- DepthToSpace, SpaceToDepth ---- */

static sac_result block_size(struct sac_op_call *c, int64_t *b)
{
    *b = sac_attr_int(c->node, "blocksize", 0);
    SAC_CHECK(c, c->in[0].rank == 4, "input of %d dimensions; have 4", c->in[0].rank);
    SAC_CHECK(c, *b > 0 && *b < 1 << 15, "'blocksize' is %lld", (long long)*b);
    return SAC_OK;
}

/* The position of the block's offset in depth: "DCR" before the channels, "CRD" after them. */
static bool depth_first(const struct sac_op_call *c)
{
    return strcmp(sac_attr_string(c->node, "mode", "DCR"), "CRD") != 0;
}

static sac_result depth_to_space_shape(struct sac_op_call *c)
{
    const int64_t *in = c->in[0].dims;
    int64_t        b;
    SAC_TRY(block_size(c, &b));
    SAC_CHECK(c, in[1] % (b * b) == 0, "%lld channels do not divide into blocks of %lld",
              (long long)in[1], (long long)b);
    int64_t dims[4] = {in[0], in[1] / (b * b), in[2] * b, in[3] * b};
    return sac_shape_out(c, 0, c->in[0].dtype, 4, dims);
}

static sac_result space_to_depth_shape(struct sac_op_call *c)
{
    const int64_t *in = c->in[0].dims;
    int64_t        b;
    SAC_TRY(block_size(c, &b));
    SAC_CHECK(c, in[2] % b == 0 && in[3] % b == 0, "%lldx%lld does not divide into blocks of %lld",
              (long long)in[3], (long long)in[2], (long long)b);
    int64_t dims[4] = {in[0], in[1] * b * b, in[2] / b, in[3] / b};
    return sac_shape_out(c, 0, c->in[0].dtype, 4, dims);
}

/* Both are one copy over [N,C,H,b,W,b], with the strides of depth and of space. */
static void block_strides(const struct sac_op_call *c, const int64_t *depth, int64_t b,
                          int64_t *in_depth, int64_t *in_space, int64_t *dims)
{
    int64_t channels = depth[1] / (b * b), h = depth[2], w = depth[3];
    int64_t block = depth_first(c) ? channels * h * w : h * w;
    int64_t channel = depth_first(c) ? h * w : b * b * h * w;
    int64_t space[6] = {channels * h * b * w * b, h * b * w * b, b * w * b, w * b, b, 1};
    int64_t deep[6] = {depth[1] * h * w, channel, w, b * block, 1, block};
    int64_t size[6] = {depth[0], channels, h, b, w, b};
    memcpy(in_depth, deep, sizeof deep);
    memcpy(in_space, space, sizeof space);
    memcpy(dims, size, sizeof size);
}

static sac_result depth_to_space_ref(struct sac_op_call *c)
{
    int64_t depth[6], space[6], dims[6];
    block_strides(c, c->in[0].dims, sac_attr_int(c->node, "blocksize", 0), depth, space, dims);
    sac_copy_strided(c->out[0].data, 0, space, c->in[0].data, 0, depth, 6, dims, element_bytes(c));
    return SAC_OK;
}

static sac_result space_to_depth_ref(struct sac_op_call *c)
{
    int64_t depth[6], space[6], dims[6];
    block_strides(c, c->out[0].dims, sac_attr_int(c->node, "blocksize", 0), depth, space, dims);
    sac_copy_strided(c->out[0].data, 0, depth, c->in[0].data, 0, space, 6, dims, element_bytes(c));
    return SAC_OK;
}

const struct sac_op sac_row_DepthToSpace = {SAC_ROW(DepthToSpace, 1, 1, 1, 1),
                                            .shape = depth_to_space_shape,
                                            .ref = depth_to_space_ref, .batch = sac_batch_first};
const struct sac_op sac_row_SpaceToDepth = {SAC_ROW(SpaceToDepth, 1, 1, 1, 1),
                                            .shape = space_to_depth_shape,
                                            .ref = space_to_depth_ref, .batch = sac_batch_first};
