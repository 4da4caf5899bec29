/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisations. Batch uses stored statistics, or in training the batch's own; Instance and Group
 * those of each dense row of the input; MeanVariance, Lp and LRN those along axes and channels.
 * Those of lines are in line_norm.c. */
#include <math.h>

#include "engine/ops/batch.h"
#include "engine/ops/fused.h"
#include "engine/ops/norm_rows.h"
#include "engine/ops/reads.h"
#include "engine/ops/util.h"

static sac_result float_input(struct sac_op_call *c)
{
    SAC_CHECK(c, sac_dtype_is_float(c->in[0].dtype), "input of dtype %s; have the float types",
              sac_in_dtype(c, 0));
    return SAC_OK;
}

/* Inputs first..last each hold `count` numbers. */
static sac_result check_vectors(struct sac_op_call *c, int first, int last, int64_t count)
{
    for (int i = first; i <= last; i++)
        SAC_CHECK(c,
                  c->in[i].rank == 1 && c->in[i].dims[0] == count &&
                      sac_dtype_is_float(c->in[i].dtype),
                  "input %d is not %lld numbers", i, (long long)count);
    return SAC_OK;
}

static sac_result check_channels(struct sac_op_call *c)
{
    SAC_TRY(float_input(c));
    SAC_CHECK(c, c->in[0].rank >= 2, "input of %d dimensions; have 2 and more", c->in[0].rank);
    return SAC_OK;
}

/* ---- BatchNormalization ---- */

enum { IN_MEAN = 3, IN_VARIANCE, IN_COUNT, OUT_MEAN = 1, OUT_VARIANCE, OUT_COUNT };

static bool trains(const struct sac_op_call *c)
{
    return sac_attr_int(c->node, "training_mode", 0) || c->out_count > 1;
}

static bool is_constant(const struct sac_op_call *c)
{
    for (int i = 0; i < IN_COUNT; i++)
        if (!c->in[i].data)
            return false;
    return true;
}

/* In training the statistics are the input's own. Exporters write so how weights are standardised,
 * which is done when the file is read; no kernel does it. */
static sac_result batch_shape(struct sac_op_call *c)
{
    SAC_TRY(check_channels(c));
    const int64_t channels = c->in[0].dims[1];
    SAC_TRY(check_vectors(c, 1, 4, channels));
    SAC_TRY(sac_shape_same(c));
    if (!trains(c))
        return SAC_OK;
    if (!is_constant(c) || c->out_count > OUT_COUNT || !sac_attr_int(c->node, "training_mode", 0))
        return SAC_OP_FAIL(c, SAC_ERR_UNSUPPORTED, "training mode; have inference");
    for (int i = OUT_MEAN; i < c->out_count; i++)
        if (c->out[i].present)
            SAC_TRY(sac_shape_out(c, i, c->in[IN_MEAN].dtype, 1, &channels));
    return SAC_OK;
}

/* Of channel k, in two passes: the difference of two large sums would lose digits. row: [plane]. */
static void statistics_of(const struct sac_op_call *c, int64_t k, double *row, double *mean,
                          double *variance)
{
    const struct sac_operand *in = &c->in[0];
    const int64_t channels = in->dims[1], plane = sac_dims_product(in->rank - 2, in->dims + 2);
    const double  count = (double)(in->dims[0] * plane);
    *mean = *variance = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t n = 0; n < in->dims[0]; n++) {
            sac_read_doubles(in, (n * channels + k) * plane, 1, plane, row);
            for (int64_t j = 0; j < plane; j++)
                if (pass == 0)
                    *mean += row[j] / count;
                else
                    *variance += (row[j] - *mean) * (row[j] - *mean) / count;
        }
}

/* What a training would go on with. */
static void put_running(struct sac_op_call *c, int64_t k, const double now[2])
{
    const double momentum = sac_attr_float(c->node, "momentum", 0.9f);
    for (int i = OUT_MEAN; i < c->out_count; i++)
        if (c->out[i].present)
            sac_operand_set(&c->out[i], k,
                            sac_operand_get(&c->in[IN_MEAN + i - OUT_MEAN], k) * momentum +
                                now[i - OUT_MEAN] * (1 - momentum));
}

static void normalise_channel(struct sac_op_call *c, int64_t k, const double statistics[2],
                              double *row)
{
    const struct sac_operand *in = &c->in[0];
    const int64_t channels = in->dims[1], plane = sac_dims_product(in->rank - 2, in->dims + 2);
    const double  epsilon = sac_attr_float(c->node, "epsilon", 1e-5f);
    const double  scale = sac_operand_get(&c->in[1], k) / sqrt(statistics[1] + epsilon);
    const double  shift = sac_operand_get(&c->in[2], k) - statistics[0] * scale;
    for (int64_t n = 0; n < in->dims[0]; n++) {
        const int64_t first = (n * channels + k) * plane;
        sac_read_doubles(in, first, 1, plane, row);
        for (int64_t j = 0; j < plane; j++)
            row[j] = row[j] * scale + shift;
        sac_write_doubles(&c->out[0], first, 1, plane, row);
    }
}

static sac_result batch_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    const int64_t             plane = sac_dims_product(in->rank - 2, in->dims + 2);
    double                   *row = sac_alloc((size_t)plane * sizeof *row);
    if (!row)
        return sac_op_no_memory(c);
    for (int64_t k = 0; k < in->dims[1]; k++) {
        double statistics[2] = {sac_operand_get(&c->in[IN_MEAN], k),
                                sac_operand_get(&c->in[IN_VARIANCE], k)};
        if (trains(c)) {
            statistics_of(c, k, row, &statistics[0], &statistics[1]);
            put_running(c, k, statistics);
        }
        normalise_channel(c, k, statistics, row);
    }
    sac_free(row);
    return SAC_OK;
}

const struct sac_op sac_row_BatchNormalization = {SAC_ROW(BatchNormalization, 7, 5, 5, 5),
                                                  SAC_TOLERANCE(1e-5f, 1e-5f), .shape = batch_shape,
                                                  .ref = batch_ref, .batch = sac_batch_first};

static sac_result known_activation(struct sac_op_call *c)
{
    SAC_CHECK(c, sac_activation_is_known(c->node, "activation"), "activation %lld",
              (long long)sac_attr_int(c->node, "activation", SAC_ACT_NONE));
    return SAC_OK;
}

static sac_result fused_batch_shape(struct sac_op_call *c)
{
    SAC_TRY(batch_shape(c));
    SAC_CHECK(c, !trains(c), "training mode; have inference");
    SAC_CHECK(c, c->in[0].dtype == SAC_F32, "input of dtype %s, not float32", sac_in_dtype(c, 0));
    return known_activation(c);
}

static sac_result fused_batch_ref(struct sac_op_call *c)
{
    const struct sac_activation act = sac_activation_read(c->node);
    const int64_t               count = sac_operand_elements(&c->out[0]);
    float                      *y = c->out[0].data;
    SAC_TRY(batch_ref(c));
    for (int64_t i = 0; i < count; i++)
        y[i] = sac_activate(y[i], &act);
    return SAC_OK;
}

const struct sac_op sac_row_FusedBatchNorm = {SAC_FUSED_ROW(FusedBatchNorm, 5, 5),
                                              SAC_TOLERANCE(1e-5f, 1e-5f),
                                              .shape = fused_batch_shape, .ref = fused_batch_ref};

/* ---- by dense rows ---- */

/* What a number adds to the sum that is made one. */
static double term_of(const struct sac_row_norm *norm, double x)
{
    switch (norm->kind) {
    case SAC_NORM_L1: return fabs(x);
    case SAC_NORM_SUM:
    case SAC_NORM_SHARES: return x;
    default: return x * x;
    }
}

/* What a row whose terms sum up to this is multiplied by. */
static double inverse_of(const struct sac_row_norm *norm, double sum)
{
    if (norm->kind == SAC_NORM_SUM || norm->kind == SAC_NORM_SHARES)
        return 1 / (sum + (norm->kind == SAC_NORM_SUM ? norm->epsilon : 0));
    const bool   mean = norm->kind == SAC_NORM_CENTRED || norm->kind == SAC_NORM_ROOT;
    const double length = norm->kind == SAC_NORM_L1 ? sum : sqrt(sum),
                 least = length < norm->epsilon ? norm->epsilon : length;
    if (mean)
        return 1 / sqrt(sum / (double)norm->size + norm->epsilon);
    return least != 0 ? 1 / least : 0;
}

static void take_exponentials(double *x, int64_t n)
{
    double most = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, x[i]);
    for (int64_t i = 0; i < n; i++)
        x[i] = exp(x[i] - most);
}

/* Normalises one row in place; returns its mean and 1 / deviation. */
static void normalise(double *x, const struct sac_row_norm *norm, double *mean, double *inverse)
{
    const int64_t n = norm->size;
    double        all = 0, sum = 0;
    if (norm->kind == SAC_NORM_SHARES)
        take_exponentials(x, n);
    for (int64_t i = 0; i < n && norm->kind == SAC_NORM_CENTRED; i++)
        all += x[i];
    *mean = all / (double)n;
    for (int64_t i = 0; i < n; i++)
        sum += term_of(norm, x[i] - *mean);
    *inverse = inverse_of(norm, sum);
    for (int64_t i = 0; i < n; i++)
        x[i] = (x[i] - *mean) * *inverse;
}

/* x = x * scale + bias in place, then out. scale and bias (NULL: none) are dense. */
static void scale_and_shift(const struct sac_row_norm *norm, double *x, const double *scale,
                            const double *bias, const struct sac_operand *out)
{
    struct sac_walk w;
    sac_walk_init(&w, norm->shape.rank, norm->shape.dims);
    sac_walk_operand(&w, &norm->shape);
    sac_walk_operand(&w, scale ? &norm->scale : &norm->shape);
    sac_walk_operand(&w, bias ? &norm->bias : &norm->shape);
    for (sac_walk_start(&w); w.run; sac_walk_next(&w)) {
        double *line = x + w.at[0];
        for (int64_t i = 0; i < w.run && scale; i++)
            line[i] *= scale[w.at[1] + i * w.step[1]];
        for (int64_t i = 0; i < w.run && bias; i++)
            line[i] += bias[w.at[2] + i * w.step[2]];
        sac_write_doubles(out, w.at[0], 1, w.run, line);
    }
}

sac_result sac_norm_rows(struct sac_op_call *c, const struct sac_row_norm *norm)
{
    const struct sac_operand *in = &c->in[0];
    const struct sac_operand *by = norm->scale.present ? &norm->scale : NULL,
                             *shift = norm->bias.present ? &norm->bias : NULL;
    double       *x = sac_alloc((size_t)sac_operand_elements(in) * sizeof *x);
    const double *scale = by ? sac_doubles(by) : NULL, *bias = shift ? sac_doubles(shift) : NULL;
    bool          ok = x && (scale || !by) && (bias || !shift);
    if (ok)
        sac_read_doubles(in, 0, 1, sac_operand_elements(in), x);
    for (int64_t i = 0; ok && i < norm->rows; i++) {
        double mean, inverse;
        normalise(x + i * norm->size, norm, &mean, &inverse);
        if (sac_op_wants(c, 1))
            sac_operand_set(&c->out[1], i, mean);
        if (sac_op_wants(c, 2))
            sac_operand_set(&c->out[2], i, inverse);
    }
    if (ok)
        scale_and_shift(norm, x, scale, bias, &c->out[0]);
    if (by)
        sac_doubles_done(by, scale);
    if (shift)
        sac_doubles_done(shift, bias);
    sac_free(x);
    return ok ? SAC_OK : sac_op_no_memory(c);
}

/* A vector of a number per channel, to broadcast over [N,C,...] of that rank. */
static struct sac_operand per_channel(const struct sac_operand *o, int rank)
{
    struct sac_operand v = *o;
    v.rank = rank - 1;
    v.dims[0] = o->dims[0];
    for (int d = 1; d < v.rank; d++)
        v.dims[d] = 1;
    return v;
}

static sac_result instance_shape(struct sac_op_call *c)
{
    SAC_TRY(check_channels(c));
    SAC_TRY(check_vectors(c, 1, 2, c->in[0].dims[1]));
    return sac_shape_same(c);
}

static sac_result instance_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    struct sac_row_norm       norm = {.rows = in->dims[0] * in->dims[1],
                                      .size = sac_dims_product(in->rank - 2, in->dims + 2),
                                      .epsilon = sac_attr_float(c->node, "epsilon", 1e-5f),
                                      .shape = *in,
                                      .scale = per_channel(&c->in[1], in->rank),
                                      .bias = per_channel(&c->in[2], in->rank)};
    return sac_norm_rows(c, &norm);
}

/* Scale and bias are per group in opset 18 and per channel since opset 21. */
static sac_result group_shape(struct sac_op_call *c)
{
    int64_t groups = sac_attr_int(c->node, "num_groups", 0);
    SAC_TRY(check_channels(c));
    SAC_CHECK(c, groups > 0 && c->in[0].dims[1] % groups == 0,
              "%lld channels do not divide into %lld groups", (long long)c->in[0].dims[1],
              (long long)groups);
    SAC_TRY(check_vectors(c, 1, 2, c->node->opset < 21 ? groups : c->in[0].dims[1]));
    return sac_shape_same(c);
}

static sac_result group_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    int64_t                   groups = sac_attr_int(c->node, "num_groups", 1);
    int64_t                   parts = c->in[1].dims[0]; /* of [N,parts,rest] */
    struct sac_row_norm       norm = {.rows = in->dims[0] * groups,
                                      .epsilon = sac_attr_float(c->node, "epsilon", 1e-5f),
                                      .scale = per_channel(&c->in[1], 3),
                                      .bias = per_channel(&c->in[2], 3),
                                      .shape = {.rank = 3, .dims = {in->dims[0], parts, 0}}};
    int64_t                   rest = sac_dims_product(in->rank - 1, in->dims + 1);
    norm.size = rest / groups;
    norm.shape.dims[2] = parts ? rest / parts : 0;
    return sac_norm_rows(c, &norm);
}

/* Scale and bias are of channels, whatever the opset. */
static sac_result fused_group_shape(struct sac_op_call *c)
{
    const int64_t groups = sac_attr_int(c->node, "num_groups", 0);
    SAC_TRY(check_channels(c));
    for (int i = 0; i < c->in_count; i++)
        SAC_CHECK(c, !c->in[i].present || c->in[i].dtype == SAC_F32,
                  "input %d of dtype %s, not float32", i, sac_in_dtype(c, i));
    SAC_CHECK(c, groups > 0 && c->in[0].dims[1] % groups == 0,
              "%lld channels do not divide into %lld groups", (long long)c->in[0].dims[1],
              (long long)groups);
    SAC_TRY(check_vectors(c, 1, 2, c->in[0].dims[1]));
    SAC_TRY(known_activation(c));
    SAC_TRY(sac_shape_same(c));
    return sac_residual_check(c, false);
}

static sac_result fused_group_ref(struct sac_op_call *c)
{
    SAC_TRY(group_ref(c));
    sac_residual_and_activation(c, c->out[0].data, 1, 1);
    return SAC_OK;
}

const struct sac_op sac_row_FusedGroupNorm = {SAC_FUSED_ROW(FusedGroupNorm, 3, 4),
                                              SAC_TOLERANCE(1e-4f, 1e-4f),
                                              .shape = fused_group_shape, .ref = fused_group_ref};

#define ROWS_ROW(op, since, in_min, in_max, outputs, shape_fn, ref_fn, batch_fn)        \
    const struct sac_op sac_row_##op = {SAC_ROW(op, since, in_min, in_max, outputs),    \
                                        SAC_TOLERANCE(1e-4f, 1e-4f), .shape = shape_fn, \
                                        .ref = ref_fn, .batch = batch_fn}
ROWS_ROW(InstanceNormalization, 1, 3, 3, 1, instance_shape, instance_ref, sac_batch_first);
ROWS_ROW(GroupNormalization, 18, 3, 3, 1, group_shape, group_ref, sac_batch_first);

/* ---- MeanVarianceNormalization: over any axes ---- */

sac_result sac_mean_variance_axes(const struct sac_op_call *c, bool *reduced)
{
    int axes[SAC_RANK_MAX] = {0, 2, 3}, count = 3, rank = c->in[0].rank;
    if (sac_node_attr(c->node, "axes"))
        SAC_TRY(sac_op_axes(c, "axes", -1, rank, axes, &count));
    for (int d = 0; d < rank; d++)
        reduced[d] = false;
    for (int i = 0; i < count; i++) {
        SAC_CHECK(c, axes[i] < rank, "axis %d of a tensor of %d dimensions", axes[i], rank);
        reduced[axes[i]] = true;
    }
    return SAC_OK;
}

static sac_result mean_variance_shape(struct sac_op_call *c)
{
    bool reduced[SAC_RANK_MAX];
    SAC_TRY(float_input(c));
    SAC_TRY(sac_mean_variance_axes(c, reduced));
    return sac_shape_same(c);
}

/* Index of the statistics that element `at` belongs to. */
static int64_t group_of(const struct sac_operand *in, const bool *reduced, int64_t at)
{
    int64_t group = 0, step = 1;
    for (int d = in->rank - 1; d >= 0; d--) {
        group += reduced[d] ? 0 : at % in->dims[d] * step;
        step *= reduced[d] ? 1 : in->dims[d];
        at /= in->dims[d];
    }
    return group;
}

static sac_result mean_variance_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    bool                      reduced[SAC_RANK_MAX];
    int64_t                   n = sac_operand_elements(in), groups = 1;
    SAC_TRY(sac_mean_variance_axes(c, reduced));
    for (int d = 0; d < in->rank; d++)
        groups *= reduced[d] ? 1 : in->dims[d];
    double *sum = sac_calloc((size_t)groups, 2 * sizeof *sum), *squares = sum + groups;
    if (!sum)
        return sac_op_no_memory(c);
    for (int64_t i = 0; i < n; i++)
        sum[group_of(in, reduced, i)] += sac_operand_get(in, i) / (double)(n / groups);
    for (int64_t i = 0; i < n; i++) {
        int64_t g = group_of(in, reduced, i);
        double  off = sac_operand_get(in, i) - sum[g];
        squares[g] += off * off / (double)(n / groups);
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t g = group_of(in, reduced, i);
        sac_operand_set(&c->out[0], i,
                        (sac_operand_get(in, i) - sum[g]) / (sqrt(squares[g]) + 1e-9));
    }
    sac_free(sum);
    return SAC_OK;
}

const struct sac_op sac_row_MeanVarianceNormalization = {
    SAC_ROW(MeanVarianceNormalization, 9, 1, 1, 1), SAC_TOLERANCE(1e-4f, 1e-4f),
    .shape = mean_variance_shape, .ref = mean_variance_ref};

/* ---- LpNormalization: lines along an axis to norm one ---- */

/* What a smaller norm is taken for: an attribute of our own, which passes set. */
double sac_norm_floor(const struct sac_node *n)
{
    return (double)sac_attr_float(n, "floor", 0);
}

static sac_result lp_shape(struct sac_op_call *c)
{
    int     axis;
    int64_t p = sac_attr_int(c->node, "p", 2);
    SAC_TRY(float_input(c));
    SAC_TRY(sac_op_axis(c, -1, c->in[0].rank, &axis));
    SAC_CHECK(c, p == 1 || p == 2, "norm of order %lld; have 1, 2", (long long)p);
    return sac_shape_same(c);
}

static sac_result lp_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    bool                      one = sac_attr_int(c->node, "p", 2) == 1;
    const double              floor = sac_norm_floor(c->node);
    int                       axis;
    SAC_TRY(sac_op_axis(c, -1, in->rank, &axis));
    int64_t length = in->dims[axis],
            inner = sac_dims_product(in->rank - axis - 1, in->dims + axis + 1);
    double *line = sac_alloc((size_t)length * sizeof *line);
    if (!line)
        return sac_op_no_memory(c);
    for (int64_t i = 0; i < sac_dims_product(axis, in->dims) * inner; i++) {
        int64_t start = i / inner * length * inner + i % inner;
        double  sum = 0;
        sac_read_doubles(in, start, inner, length, line);
        for (int64_t k = 0; k < length; k++)
            sum += one ? fabs(line[k]) : line[k] * line[k];
        double norm = one ? sum : sqrt(sum);
        norm = norm < floor ? floor : norm;
        for (int64_t k = 0; k < length; k++)
            line[k] = norm != 0 ? line[k] / norm : 0;
        sac_write_doubles(&c->out[0], start, inner, length, line);
    }
    sac_free(line);
    return SAC_OK;
}

const struct sac_op sac_row_LpNormalization = {SAC_ROW(LpNormalization, 1, 1, 1, 1),
                                               SAC_TOLERANCE(1e-5f, 1e-5f), .shape = lp_shape,
                                               .ref = lp_ref, .batch = sac_batch_last_axis};

/* ---- LRN: by the squares of neighbouring channels ---- */

static sac_result lrn_shape(struct sac_op_call *c)
{
    SAC_TRY(check_channels(c));
    SAC_CHECK(c, sac_attr_int(c->node, "size", 0) > 0, "'size' is %lld",
              (long long)sac_attr_int(c->node, "size", 0));
    return sac_shape_same(c);
}

static sac_result lrn_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    int64_t channels = in->dims[1], plane = sac_dims_product(in->rank - 2, in->dims + 2);
    int64_t size = SAC_MIN(sac_attr_int(c->node, "size", 1), 2 * channels + 1);
    double  alpha =
        sac_attr_float(c->node, "alpha", 1e-4f) / (double)sac_attr_int(c->node, "size", 1);
    double beta = sac_attr_float(c->node, "beta", 0.75f), bias = sac_attr_float(c->node, "bias", 1);
    for (int64_t i = 0, n = sac_operand_elements(in); i < n; i++) {
        int64_t k = i / plane % channels;
        int64_t first = SAC_MAX(0, k - (size - 1) / 2), last = SAC_MIN(channels - 1, k + size / 2);
        double  squares = 0;
        for (int64_t other = first; other <= last; other++) {
            double x = sac_operand_get(in, i + (other - k) * plane);
            squares += x * x;
        }
        sac_operand_set(&c->out[0], i, sac_operand_get(in, i) / pow(bias + alpha * squares, beta));
    }
    return SAC_OK;
}

const struct sac_op sac_row_LRN = {SAC_ROW(LRN, 1, 1, 1, 1), SAC_TOLERANCE(1e-5f, 1e-5f),
                                   .shape = lrn_shape, .ref = lrn_ref, .batch = sac_batch_first};
