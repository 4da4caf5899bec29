/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions along some axes. Sums are in double (floats) or int64, so that the order of adding
 * does not matter. */
#include <math.h>

#include "engine/ops/batch.h"
#include "engine/ops/reads.h"
#include "engine/ops/util.h"

/* Folds x[0..n-1] into accumulators `step` apart; step 0: all into one. */
#define FOLD(name, type, expr)                                              \
    static void name(type *to, int64_t step, const type *values, int64_t n) \
    {                                                                       \
        type acc = *to;                                                     \
        for (int64_t i = 0; i < n; i++) {                                   \
            const type x = values[i];                                       \
            acc = step ? to[i * step] : acc;                                \
            acc = (type)(expr);                                             \
            to[i * step] = acc;                                             \
        }                                                                   \
    }
#define FLOATS(name, expr) FOLD(name##_floats, double, expr)
#define INTS(name, expr)   FOLD(name##_ints, int64_t, expr) /* on unsigned: overflow wraps */
FLOATS(sum, acc + x)
INTS(sum, (uint64_t)acc + (uint64_t)x)
FLOATS(abs, acc + fabs(x))
INTS(abs, x < 0 ? (uint64_t)acc - (uint64_t)x : (uint64_t)acc + (uint64_t)x)
FLOATS(square, acc + x * x)
INTS(square, (uint64_t)acc + (uint64_t)x * (uint64_t)x)
FLOATS(product, acc *x)
INTS(product, (uint64_t)acc *(uint64_t)x)
FLOATS(max, x > acc || isnan(x) ? x : acc) /* NaN stays: no comparison with it is true */
INTS(max, SAC_MAX(acc, x))
FLOATS(min, x < acc || isnan(x) ? x : acc)
INTS(min, SAC_MIN(acc, x))

static double mean_finish(double acc, double count)
{
    return acc / count;
}

static double sqrt_finish(double acc, double count)
{
    (void)count;
    return sqrt(acc);
}

static double log_finish(double acc, double count)
{
    (void)count;
    return log(acc);
}

struct reduce {
    void (*floats)(double *to, int64_t step, const double *values, int64_t n);
    void (*ints)(int64_t *to, int64_t step, const int64_t *values, int64_t n); /* NULL: in double */
    double (*finish)(double acc, double count);                                /* NULL: as it is */
    double  start;
    int64_t start_int;
};

/* Which dimensions are reduced. No axes: all, or none with noop_with_empty_axes. */
sac_result sac_reduced_axes(const struct sac_op_call *c, bool *reduced)
{
    int axes[SAC_RANK_MAX], count, rank = c->in[0].rank;
    SAC_TRY(sac_op_axes(c, "axes", 1, rank, axes, &count));
    bool all = count == 0 && !sac_attr_int(c->node, "noop_with_empty_axes", 0);
    for (int d = 0; d < rank; d++)
        reduced[d] = all;
    for (int i = 0; i < count; i++)
        reduced[axes[i]] = true;
    return SAC_OK;
}

static sac_result reduce_shape(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    enum sac_op_id            id = c->node->op->id;
    bool                      reduced[SAC_RANK_MAX], keep = sac_attr_int(c->node, "keepdims", 1);
    int64_t                   dims[SAC_RANK_MAX];
    int                       rank = 0;
    SAC_CHECK(c, in->dtype != SAC_BOOL || id == SAC_OP_ReduceMax || id == SAC_OP_ReduceMin,
              "input of dtype bool");
    SAC_TRY(sac_reduced_axes(c, reduced));
    for (int d = 0; d < in->rank; d++)
        if (!reduced[d] || keep)
            dims[rank++] = reduced[d] ? 1 : in->dims[d];
    return sac_shape_out(c, 0, in->dtype, rank, dims);
}

/* A walk over the input in its own order, with the output offset of each element.
 */
static void walk_reduced(struct sac_walk *w, const struct sac_operand *in, const bool *reduced)
{
    int64_t to[SAC_RANK_MAX], step = 1;
    for (int d = in->rank - 1; d >= 0; d--) {
        to[d] = reduced[d] ? 0 : step;
        step *= reduced[d] ? 1 : in->dims[d];
    }
    sac_walk_init(w, in->rank, in->dims);
    sac_walk_operand(w, in);
    sac_walk_strides(w, 0, to);
    sac_walk_start(w);
}

enum { CHUNK = 256 };

static void reduce_floats(struct sac_op_call *c, const struct reduce *r, const bool *reduced,
                          double *acc)
{
    const struct sac_operand *in = &c->in[0], *out = &c->out[0];
    int64_t                   results = sac_operand_elements(out);
    double          count = results ? (double)(sac_operand_elements(in) / results) : 0, x[CHUNK];
    struct sac_walk w;
    for (int64_t i = 0; i < results; i++)
        acc[i] = r->start;
    for (walk_reduced(&w, in, reduced); w.run; sac_walk_next(&w))
        for (int64_t i = 0; i < w.run; i += CHUNK) {
            int64_t n = SAC_MIN(w.run - i, (int64_t)CHUNK);
            sac_read_doubles(in, w.at[0] + i * w.step[0], w.step[0], n, x);
            r->floats(&acc[w.at[1] + i * w.step[1]], w.step[1], x, n);
        }
    for (int64_t i = 0; i < results; i++) {
        double v = r->finish ? r->finish(acc[i], count) : acc[i];
        sac_operand_set(out, i, sac_dtype_is_float(out->dtype) ? v : trunc(v));
    }
}

static void reduce_ints(struct sac_op_call *c, const struct reduce *r, const bool *reduced,
                        int64_t *acc)
{
    const struct sac_operand *in = &c->in[0], *out = &c->out[0];
    int64_t                   results = sac_operand_elements(out), x[CHUNK];
    /* uint64 values compare as int64 after their top bit is flipped. */
    bool            ordered = r->ints == max_ints || r->ints == min_ints;
    uint64_t        flip = in->dtype == SAC_U64 && ordered ? (uint64_t)1 << 63 : 0;
    struct sac_walk w;
    for (int64_t i = 0; i < results; i++)
        acc[i] = r->start_int;
    for (walk_reduced(&w, in, reduced); w.run; sac_walk_next(&w))
        for (int64_t i = 0; i < w.run; i += CHUNK) {
            int64_t n = SAC_MIN(w.run - i, (int64_t)CHUNK);
            sac_load(in->dtype, in->data, w.at[0] + i * w.step[0], w.step[0], n, x);
            for (int64_t k = 0; k < n; k++)
                x[k] = (int64_t)((uint64_t)x[k] ^ flip);
            r->ints(&acc[w.at[1] + i * w.step[1]], w.step[1], x, n);
        }
    bool nothing = sac_operand_elements(in) == 0; /* the dtype's own extreme, or 0 or 1 */
    for (int64_t i = 0; i < results; i++) {
        acc[i] = (int64_t)((uint64_t)acc[i] ^ flip);
        if (nothing)
            sac_operand_set(out, i, out->dtype == SAC_BOOL ? r->start > 0 : r->start);
        else
            sac_store(out->dtype, out->data, i, 1, &acc[i]);
    }
}

static sac_result reduce_ref(struct sac_op_call *c)
{
    const struct reduce *r = c->node->op->own;
    size_t               results = (size_t)sac_operand_elements(&c->out[0]);
    bool                 reduced[SAC_RANK_MAX];
    SAC_TRY(sac_reduced_axes(c, reduced));
    void *acc = sac_alloc(results * sizeof(double));
    if (!acc)
        return sac_op_no_memory(c);
    if (sac_dtype_is_float(c->in[0].dtype) || !r->ints)
        reduce_floats(c, r, reduced, acc);
    else
        reduce_ints(c, r, reduced, acc);
    sac_free(acc);
    return SAC_OK;
}

/* log(sum(exp(x))) in two passes: exp cannot overflow once the maximum is subtracted. */
static void log_sum_exp(struct sac_op_call *c, const bool *reduced, double *max, double *sum)
{
    const struct sac_operand *in = &c->in[0], *out = &c->out[0];
    int64_t                   results = sac_operand_elements(out);
    struct sac_walk           w;
    for (int64_t i = 0; i < results; i++) {
        max[i] = -INFINITY;
        sum[i] = 0;
    }
    for (walk_reduced(&w, in, reduced); w.run; sac_walk_next(&w))
        for (int64_t i = 0; i < w.run; i++) {
            double *m = &max[w.at[1] + i * w.step[1]];
            max_floats(m, 0, (double[]){sac_operand_get(in, w.at[0] + i * w.step[0])}, 1);
        }
    for (int64_t i = 0; i < results; i++)
        max[i] = isinf(max[i]) ? 0 : max[i]; /* inf - inf would be NaN */
    for (walk_reduced(&w, in, reduced); w.run; sac_walk_next(&w))
        for (int64_t i = 0; i < w.run; i++) {
            int64_t to = w.at[1] + i * w.step[1];
            sum[to] += exp(sac_operand_get(in, w.at[0] + i * w.step[0]) - max[to]);
        }
    for (int64_t i = 0; i < results; i++)
        sac_operand_set(out, i, log(sum[i]) + max[i]);
}

static sac_result log_sum_exp_ref(struct sac_op_call *c)
{
    size_t results = (size_t)sac_operand_elements(&c->out[0]);
    bool   reduced[SAC_RANK_MAX];
    SAC_TRY(sac_reduced_axes(c, reduced));
    double *acc = sac_alloc(2 * results * sizeof *acc);
    if (!acc)
        return sac_op_no_memory(c);
    log_sum_exp(c, reduced, acc, acc + results);
    sac_free(acc);
    return SAC_OK;
}

/* Over one entry a mean, sum, product, minimum or maximum is that entry. */
static bool identity_over_one(enum sac_op_id id)
{
    return id == SAC_OP_ReduceMean || id == SAC_OP_ReduceSum || id == SAC_OP_ReduceProd ||
           id == SAC_OP_ReduceMin || id == SAC_OP_ReduceMax;
}

static bool reduce_batch(struct sac_batch_walk *w, struct sac_node *n, int k, int *out)
{
    int64_t               axes[SAC_RANK_MAX];
    size_t                count, kept = 0;
    int                   rank = n->inputs[0]->rank;
    bool                  keep = sac_attr_int(n, "keepdims", 1);
    struct sac_batch_edit e = {.node = n};
    if (!sac_batch_axes(n, 1, rank, axes, &count))
        return sac_batch_refuse(w, "its axes are not constant");
    if (count == 0 && sac_attr_int(n, "noop_with_empty_axes", 0)) {
        *out = k;
        return true;
    }
    if (count == 0)
        for (; count < (size_t)rank; count++)
            axes[count] = (int64_t)count;
    *out = k;
    for (size_t i = 0; i < count; i++) {
        *out -= !keep && axes[i] < k;
        if (axes[i] != k)
            e.ints[kept++] = axes[i];
    }
    if (kept == count)
        return true;
    if (!keep || kept == 0 || !identity_over_one(n->op->id))
        return sac_batch_refuse(w, "it reduces the batch away");
    e.count = kept;
    e.kind =
        sac_node_attr(n, "axes") || n->input_count < 2 ? SAC_BATCH_AXES_ATTR : SAC_BATCH_AXES_INPUT;
    if (e.kind == SAC_BATCH_AXES_ATTR && n->opset >= (n->op->id == SAC_OP_ReduceSum ? 13 : 18))
        e.kind = SAC_BATCH_AXES_INPUT;
    return sac_batch_edit(w, e);
}

#define ROW(op, ref_fn, ...)                                  \
    const struct sac_op sac_row_##op = {                      \
        SAC_ROW(op, 1, 1, 2, 1), SAC_TOLERANCE(1e-5f, 1e-5f), \
        .shape = reduce_shape,   .ref = ref_fn,               \
        .batch = reduce_batch,   .own = &(const struct reduce){__VA_ARGS__}}
ROW(ReduceSum, reduce_ref, sum_floats, sum_ints, NULL, 0, 0);
ROW(ReduceMean, reduce_ref, sum_floats, NULL, mean_finish, 0, 0);
ROW(ReduceProd, reduce_ref, product_floats, product_ints, NULL, 1, 1);
ROW(ReduceMax, reduce_ref, max_floats, max_ints, NULL, -INFINITY, INT64_MIN);
ROW(ReduceMin, reduce_ref, min_floats, min_ints, NULL, INFINITY, INT64_MAX);
ROW(ReduceL1, reduce_ref, abs_floats, abs_ints, NULL, 0, 0);
ROW(ReduceL2, reduce_ref, square_floats, NULL, sqrt_finish, 0, 0);
ROW(ReduceLogSum, reduce_ref, sum_floats, NULL, log_finish, 0, 0);
ROW(ReduceLogSumExp, log_sum_exp_ref, NULL);
ROW(ReduceSumSquare, reduce_ref, square_floats, square_ints, NULL, 0, 0);
