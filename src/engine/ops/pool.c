/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling: MaxPool, AveragePool, LpPool, their global forms, and MaxUnpool. */
#include <math.h>

#include "engine/ops/batch.h"
#include "engine/ops/reads.h"
#include "engine/ops/util.h"
#include "engine/ops/window.h"

sac_result sac_pooling_read(const struct sac_op_call *c, struct sac_pooling *p)
{
    enum sac_op_id id = c->node->op->id;
    bool           global =
        id == SAC_OP_GlobalAveragePool || id == SAC_OP_GlobalMaxPool || id == SAC_OP_GlobalLpPool;
    p->kind = id == SAC_OP_MaxPool || id == SAC_OP_GlobalMaxPool ? SAC_POOL_MAX
              : id == SAC_OP_LpPool || id == SAC_OP_GlobalLpPool ? SAC_POOL_LP
                                                                 : SAC_POOL_AVERAGE;
    p->p = (double)sac_attr_int(c->node, "p", 2);
    p->include_pad = sac_attr_int(c->node, "count_include_pad", 0);
    p->columns_first = sac_attr_int(c->node, "storage_order", 0);
    if (!global)
        return sac_window_read(c, 0, NULL, &p->w);
    SAC_CHECK(c, c->in[0].rank >= 3, "input of %d dimensions; have 3 to 5", c->in[0].rank);
    for (int d = 2; d < c->in[0].rank; d++)
        SAC_CHECK(c, c->in[0].dims[d] > 0, "dimension %d is empty", d);
    return sac_window_read(c, 0, c->in[0].dims + 2, &p->w);
}

static sac_result pool_shape(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    struct sac_pooling        p;
    SAC_TRY(sac_pooling_read(c, &p));
    bool bytes = in->dtype == SAC_I8 || in->dtype == SAC_U8;
    SAC_CHECK(c, sac_dtype_is_float(in->dtype) || (p.kind == SAC_POOL_MAX && bytes),
              "input of dtype %s", sac_in_dtype(c, 0));
    for (int d = 0; d < SAC_WINDOW_DIMS; d++) /* else a window could cover only padding */
        SAC_CHECK(c,
                  p.w.pad_begin[d] < (p.w.kernel[d] - 1) * p.w.dilation[d] + 1 &&
                      p.w.pad_end[d] < (p.w.kernel[d] - 1) * p.w.dilation[d] + 1,
                  "padding as wide as the window");
    int64_t dims[SAC_RANK_MAX] = {in->dims[0], in->dims[1]};
    memcpy(dims + 2, p.w.out + SAC_WINDOW_DIMS - p.w.rank, (size_t)p.w.rank * sizeof *dims);
    SAC_TRY(sac_shape_out(c, 0, in->dtype, in->rank, dims));
    return sac_shape_out(c, 1, SAC_I64, in->rank, dims);
}

/* The taps of one output position along one dimension that are inside the input. */
struct taps {
    int64_t start, first, last; /* input index of tap k: start + k * dilation */
    int64_t padded;             /* how many are inside the padded input */
};

static struct taps taps_at(const struct sac_window *w, int d, int64_t out)
{
    struct taps t = {.start = out * w->stride[d] - w->pad_begin[d]};
    sac_window_span(t.start, w->dilation[d], w->in[d], w->kernel[d], &t.first, &t.last);
    int64_t end = w->in[d] + w->pad_end[d];
    t.padded = SAC_CLAMP((end - 1 - t.start) / w->dilation[d] + 1, 0, w->kernel[d]);
    return t;
}

static double pool_one(const struct sac_pooling *p, const double *x, const struct taps *t,
                       int64_t *where)
{
    const struct sac_window *w = &p->w;
    double                   acc = p->kind == SAC_POOL_MAX ? -INFINITY : 0;
    int64_t                  count = 0;
    *where = -1;
    for (int64_t a = t[0].first; a < t[0].last; a++)
        for (int64_t b = t[1].first; b < t[1].last; b++)
            for (int64_t k = t[2].first; k < t[2].last; k++, count++) {
                int64_t at = (t[0].start + a * w->dilation[0]) * w->in[1];
                at = (at + t[1].start + b * w->dilation[1]) * w->in[2];
                at += t[2].start + k * w->dilation[2];
                if (p->kind == SAC_POOL_AVERAGE)
                    acc += x[at];
                else if (p->kind == SAC_POOL_LP)
                    acc += pow(fabs(x[at]), p->p);
                else if (x[at] > acc || *where < 0 || isnan(x[at])) {
                    acc = x[at];
                    *where = at;
                }
            }
    if (p->kind == SAC_POOL_LP)
        return pow(acc, 1 / p->p);
    if (p->kind == SAC_POOL_MAX)
        return acc;
    if (p->include_pad)
        count = t[0].padded * t[1].padded * t[2].padded;
    return count ? acc / (double)count : 0;
}

/* MaxPool's second output counts over the whole tensor, in row or column order of each plane. */
static int64_t pool_index(const struct sac_pooling *p, int64_t plane, int64_t at)
{
    const int64_t *in = p->w.in;
    if (p->columns_first)
        at = at % in[2] * in[1] * in[0] + at / in[2] % in[1] * in[0] + at / in[2] / in[1];
    return plane * sac_dims_product(3, in) + at;
}

static sac_result pool_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0], *out = &c->out[0];
    int64_t                  *indices = sac_op_wants(c, 1) ? c->out[1].data : NULL;
    struct sac_pooling        p;
    SAC_TRY(sac_pooling_read(c, &p));
    const double *x = sac_doubles(in);
    if (!x)
        return sac_op_no_memory(c);
    int64_t to = 0, in_plane = sac_dims_product(3, p.w.in);
    for (int64_t plane = 0; plane < in->dims[0] * in->dims[1]; plane++)
        for (int64_t a = 0; a < p.w.out[0]; a++)
            for (int64_t b = 0; b < p.w.out[1]; b++)
                for (int64_t k = 0; k < p.w.out[2]; k++, to++) {
                    struct taps t[3] = {taps_at(&p.w, 0, a), taps_at(&p.w, 1, b),
                                        taps_at(&p.w, 2, k)};
                    int64_t     where;
                    sac_operand_set(out, to, pool_one(&p, x + plane * in_plane, t, &where));
                    if (indices)
                        indices[to] = pool_index(&p, plane, where);
                }
    sac_doubles_done(in, x);
    return SAC_OK;
}

#define POOL(op, outputs, tolerance)                                                              \
    const struct sac_op sac_row_##op = {SAC_ROW(op, 1, 1, 1, outputs),                            \
                                        SAC_TOLERANCE(tolerance, tolerance), .shape = pool_shape, \
                                        .ref = pool_ref, .batch = sac_batch_first}
POOL(MaxPool, 2, 0);
POOL(AveragePool, 1, 1e-5f);
POOL(LpPool, 1, 1e-5f);
POOL(GlobalAveragePool, 1, 1e-5f);
POOL(GlobalMaxPool, 1, 0);
POOL(GlobalLpPool, 1, 1e-5f);

/* ---- MaxUnpool: each value back to where MaxPool's index says it came from ---- */

/* The tensor that the indices refer to: MaxPool's assumed input. */
sac_result sac_unpool_whole(const struct sac_op_call *c, int64_t *dims)
{
    struct sac_window w;
    SAC_TRY(sac_window_read_transposed(c, NULL, &w));
    dims[0] = c->in[0].dims[0];
    dims[1] = c->in[0].dims[1];
    memcpy(dims + 2, w.out + SAC_WINDOW_DIMS - w.rank, (size_t)w.rank * sizeof *dims);
    return SAC_OK;
}

static sac_result unpool_shape(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    int64_t                   whole[SAC_RANK_MAX], dims[SAC_RANK_MAX];
    size_t                    n;
    SAC_TRY(sac_unpool_whole(c, whole));
    SAC_CHECK(c,
              c->in[1].dtype == SAC_I64 && c->in[1].rank == in->rank &&
                  memcmp(c->in[1].dims, in->dims, (size_t)in->rank * sizeof *dims) == 0,
              "the indices do not fit the input");
    if (!sac_op_has(c, 2))
        return sac_shape_out(c, 0, in->dtype, in->rank, whole);
    SAC_TRY(sac_operand_ints(c, 2, dims, SAC_RANK_MAX, &n));
    SAC_CHECK(c, (int)n == in->rank, "an output shape of %zu dimensions", n);
    for (int d = 0; d < in->rank; d++)
        SAC_CHECK(c, dims[d] >= whole[d], "dimension %d of the output is %lld, under %lld", d,
                  (long long)dims[d], (long long)whole[d]);
    return sac_shape_out(c, 0, in->dtype, in->rank, dims);
}

static sac_result unpool_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0], *out = &c->out[0];
    int64_t                   whole[SAC_RANK_MAX], strides[SAC_RANK_MAX];
    size_t                    bytes = sac_dtype_bytes(in->dtype);
    SAC_TRY(sac_unpool_whole(c, whole));
    sac_dense_strides(out->rank, out->dims, strides);
    memset(out->data, 0, sac_operand_bytes(out));
    for (int64_t i = 0, n = sac_operand_elements(in); i < n; i++) {
        int64_t rest = ((const int64_t *)c->in[1].data)[i], to = 0;
        SAC_CHECK(c, rest >= 0 && rest < sac_dims_product(in->rank, whole), "index %lld",
                  (long long)rest);
        for (int d = in->rank - 1; d >= 0; d--) {
            to += rest % whole[d] * strides[d];
            rest /= whole[d];
        }
        memcpy((char *)out->data + (size_t)to * bytes, (const char *)in->data + (size_t)i * bytes,
               bytes);
    }
    return SAC_OK;
}

const struct sac_op sac_row_MaxUnpool = {SAC_ROW(MaxUnpool, 9, 2, 3, 1), .shape = unpool_shape,
                                         .ref = unpool_ref};
