/* SPDX-License-Identifier: Apache-2.0 */
/* Pad and CenterCropPad: each output index along an axis comes from one input index, or from none
 * (the constant). */
#include "engine/ops/batch.h"
#include "engine/ops/reads.h"
#include "engine/ops/util.h"

#define PAD_MAX (INT64_MAX / 2)

sac_result sac_pad_mode(const struct sac_op_call *c, enum sac_pad_mode *mode)
{
    static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
    const char              *wanted = sac_attr_string(c->node, "mode", "constant");
    for (int i = 0; i < (int)SAC_COUNT(names); i++)
        if (strcmp(wanted, names[i]) == 0) {
            *mode = (enum sac_pad_mode)i;
            return SAC_OK;
        }
    return SAC_OP_FAIL(c, SAC_ERR_UNSUPPORTED, "mode '%s'; have constant, reflect, edge, wrap",
                       wanted);
}

sac_result sac_pad_read(const struct sac_op_call *c, struct sac_pads *p)
{
    const struct sac_operand *in = &c->in[0];
    int64_t                   pads[2 * SAC_RANK_MAX];
    size_t                    n;
    int                       axes[SAC_RANK_MAX], count = 0;
    SAC_TRY(sac_op_ints(c, "pads", 1, pads, 2 * SAC_RANK_MAX, &n));
    if (sac_op_has(c, 3))
        SAC_TRY(sac_op_axes(c, "axes", 3, in->rank, axes, &count));
    else
        for (; count < in->rank; count++)
            axes[count] = count;
    SAC_CHECK(c, n == 2 * (size_t)count, "%zu pads for %d axes", n, count);
    for (int d = 0; d < in->rank; d++) {
        p->begin[d] = 0;
        p->out[d] = in->dims[d];
    }
    for (int i = 0; i < count; i++) {
        int64_t *out = &p->out[axes[i]];
        SAC_CHECK(c, /* an index less a pad does not overflow either */
                  pads[i] >= -PAD_MAX && pads[i] <= PAD_MAX && pads[count + i] >= -PAD_MAX &&
                      pads[count + i] <= PAD_MAX && !__builtin_add_overflow(*out, pads[i], out) &&
                      !__builtin_add_overflow(*out, pads[count + i], out),
                  "pads of %lld and %lld", (long long)pads[i], (long long)pads[count + i]);
        p->begin[axes[i]] = pads[i];
    }
    return SAC_OK;
}

static sac_result pad_shape(struct sac_op_call *c)
{
    struct sac_pads   p;
    enum sac_pad_mode mode = SAC_PAD_CONSTANT;
    SAC_TRY(sac_pad_mode(c, &mode));
    SAC_TRY(sac_pad_read(c, &p));
    if (sac_op_has(c, 2))
        SAC_CHECK(c, c->in[2].dtype == c->in[0].dtype && sac_operand_elements(&c->in[2]) <= 1,
                  "the constant is not one number of dtype %s", sac_in_dtype(c, 0));
    for (int d = 0; d < c->in[0].rank; d++)
        SAC_CHECK(c, mode == SAC_PAD_CONSTANT || c->in[0].dims[d] > 0 || p.out[d] == 0,
                  "nothing to repeat along axis %d", d);
    return sac_shape_out(c, 0, c->in[0].dtype, c->in[0].rank, p.out);
}

static int64_t positive_mod(int64_t a, int64_t n)
{
    return (a % n + n) % n;
}

/* The input index that index x, counted from the input's first element, is read from; -1: none. */
static int64_t pad_source(enum sac_pad_mode mode, int64_t x, int64_t n)
{
    if (x >= 0 && x < n)
        return x;
    switch (mode) {
    case SAC_PAD_EDGE: return x < 0 ? 0 : n - 1;
    case SAC_PAD_WRAP: return positive_mod(x, n);
    case SAC_PAD_REFLECT:
        if (n == 1)
            return 0;
        x = positive_mod(x, 2 * (n - 1));
        return x < n ? x : 2 * (n - 1) - x;
    default: return -1;
    }
}

/* Fills out element by element, computing the place in the input per axis. */
static void pad_copy(const struct sac_operand *in, const struct sac_operand *out,
                     const int64_t *begin, enum sac_pad_mode mode, const void *constant)
{
    int64_t strides[SAC_RANK_MAX], index[SAC_RANK_MAX] = {0};
    size_t  bytes = sac_dtype_bytes(in->dtype);
    char   *to = out->data;
    sac_dense_strides(in->rank, in->dims, strides);
    for (int64_t i = 0, n = sac_operand_elements(out); i < n; i++, to += bytes) {
        int64_t from = 0;
        for (int d = 0; d < out->rank && from >= 0; d++) {
            int64_t x = pad_source(mode, index[d] - begin[d], in->dims[d]);
            from = x < 0 ? -1 : from + x * strides[d];
        }
        memcpy(to, from < 0 ? constant : (const char *)in->data + (size_t)from * bytes, bytes);
        for (int d = out->rank - 1; d >= 0 && ++index[d] == out->dims[d]; d--)
            index[d] = 0;
    }
}

static sac_result pad_ref(struct sac_op_call *c)
{
    struct sac_pads    p;
    enum sac_pad_mode  mode = SAC_PAD_CONSTANT;
    double             room = 0;
    struct sac_operand constant = {.dtype = c->in[0].dtype, .data = &room};
    SAC_TRY(sac_pad_mode(c, &mode));
    SAC_TRY(sac_pad_read(c, &p));
    if (sac_op_has(c, 2) && sac_operand_elements(&c->in[2]) == 1)
        constant.data = c->in[2].data;
    else /* the attribute of opset 10 and before */
        sac_operand_set(&constant, 0, sac_attr_float(c->node, "value", 0));
    pad_copy(&c->in[0], &c->out[0], p.begin, mode, constant.data);
    return SAC_OK;
}

static bool pad_batch(struct sac_batch_walk *w, struct sac_node *n, int k, int *out)
{
    int64_t        pads[2 * SAC_RANK_MAX] = {0};
    const int64_t *list;
    int            rank = n->inputs[0]->rank;
    size_t         count = sac_attr_ints(n, "pads", &list);
    if (count == 0 && n->input_count > 1 && n->inputs[1] && n->inputs[1]->data &&
        n->inputs[1]->dtype == SAC_I64 && n->inputs[1]->rank == 1) {
        list = n->inputs[1]->data;
        count = (size_t)n->inputs[1]->dims[0];
    }
    if (count != 2 * (size_t)rank || count > SAC_COUNT(pads))
        return sac_batch_refuse(w, "its pads are not constant, or not for all axes");
    *out = k;
    return (list[k] == 0 && list[k + rank] == 0) || sac_batch_refuse(w, "it pads the batch");
}

const struct sac_op sac_row_Pad = {SAC_ROW(Pad, 2, 1, 4, 1), .shape = pad_shape, .ref = pad_ref,
                                   .batch = pad_batch};

/* ---- CenterCropPad ---- */

static sac_result center_shape(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    int64_t                   wanted[SAC_RANK_MAX], dims[SAC_RANK_MAX];
    size_t                    n;
    int                       axes[SAC_RANK_MAX], count;
    SAC_TRY(sac_op_axes(c, "axes", -1, in->rank, axes, &count));
    SAC_TRY(sac_operand_ints(c, 1, wanted, SAC_RANK_MAX, &n));
    bool all = !sac_node_attr(c->node, "axes");
    SAC_CHECK(c, (int)n == (all ? in->rank : count), "a shape of %zu numbers for %d axes", n,
              all ? in->rank : count);
    memcpy(dims, in->dims, sizeof dims);
    for (size_t i = 0; i < n; i++)
        dims[all ? (int)i : axes[i]] = wanted[i];
    return sac_shape_out(c, 0, in->dtype, in->rank, dims);
}

static sac_result center_ref(struct sac_op_call *c)
{
    static const char zero[8];
    int64_t           begin[SAC_RANK_MAX];
    for (int d = 0; d < c->in[0].rank; d++) {
        int64_t more = c->out[0].dims[d] - c->in[0].dims[d];
        begin[d] = more >= 0 ? more / 2 : -(-more / 2);
    }
    pad_copy(&c->in[0], &c->out[0], begin, SAC_PAD_CONSTANT, zero);
    return SAC_OK;
}

const struct sac_op sac_row_CenterCropPad = {SAC_ROW(CenterCropPad, 18, 2, 2, 1),
                                             .shape = center_shape, .ref = center_ref};
