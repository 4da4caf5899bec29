/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample reads an image at the places given by another tensor; AffineGrid computes such places
 * from a matrix. Two or three spatial dimensions; two are treated as three with the first of size
 * one. */
#include <math.h>

#include "engine/ops/batch.h"
#include "engine/ops/reads.h"
#include "engine/ops/util.h"

enum { TAPS_MAX = 4 };

/* The input indices that one place reads along one dimension; index -1 reads zero. */
struct taps {
    int     count;
    int64_t index[TAPS_MAX];
    double  weight[TAPS_MAX];
};

sac_result sac_sampler_read(const struct sac_op_call *c, struct sac_sampler *s)
{
    const struct sac_operand *in = &c->in[0];
    const char               *mode = sac_attr_string(c->node, "mode", "linear");
    const char               *padding = sac_attr_string(c->node, "padding_mode", "zeros");
    SAC_CHECK(c, in->rank == 4 || in->rank == 5, "input of %d dimensions; have 4, 5", in->rank);
    bool nearest = strcmp(mode, "nearest") == 0;
    bool cubic = strcmp(mode, "cubic") == 0 || strcmp(mode, "bicubic") == 0;
    if (!nearest && !cubic && strcmp(mode, "linear") != 0 && strcmp(mode, "bilinear") != 0)
        return SAC_OP_FAIL(c, SAC_ERR_UNSUPPORTED, "mode '%s'; have nearest, linear, cubic", mode);
    s->mode = nearest ? SAC_SAMPLE_NEAREST : cubic ? SAC_SAMPLE_CUBIC : SAC_SAMPLE_LINEAR;
    s->padding = strcmp(padding, "border") == 0       ? SAC_SAMPLE_BORDER
                 : strcmp(padding, "reflection") == 0 ? SAC_SAMPLE_REFLECTION
                                                      : SAC_SAMPLE_ZEROS;
    if (s->padding == SAC_SAMPLE_ZEROS && strcmp(padding, "zeros") != 0)
        return SAC_OP_FAIL(c, SAC_ERR_UNSUPPORTED,
                           "padding_mode '%s'; have zeros, border, reflection", padding);
    s->align = sac_attr_int(c->node, "align_corners", 0);
    for (int d = 0; d < SAC_SAMPLE_DIMS; d++) {
        int from = in->rank - SAC_SAMPLE_DIMS + d;
        s->size[d] = from < 2 ? 1 : in->dims[from];
    }
    return SAC_OK;
}

static sac_result grid_sample_shape(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0], *grid = &c->in[1];
    struct sac_sampler        s;
    SAC_TRY(sac_sampler_read(c, &s));
    SAC_CHECK(c, sac_dtype_is_float(in->dtype) && sac_dtype_is_float(grid->dtype),
              "inputs of dtypes %s and %s", sac_in_dtype(c, 0), sac_in_dtype(c, 1));
    SAC_CHECK(c,
              grid->rank == in->rank && grid->dims[0] == in->dims[0] &&
                  grid->dims[grid->rank - 1] == in->rank - 2,
              "the grid does not fit the input");
    int64_t dims[SAC_RANK_MAX] = {in->dims[0], in->dims[1]};
    for (int d = 2; d < in->rank; d++) {
        SAC_CHECK(c, in->dims[d] > 0, "dimension %d is empty", d);
        dims[d] = grid->dims[d - 1];
    }
    return sac_shape_out(c, 0, in->dtype, in->rank, dims);
}

/* Mirrors x at lo and hi until it is between them. */
static double reflect(double x, double lo, double hi)
{
    double span = hi - lo;
    if (span <= 0)
        return lo;
    double off = fmod(fabs(x - lo), 2 * span);
    return off <= span ? lo + off : hi - (off - span);
}

/* The pixel that index `at`, inside the image or not, refers to; -1: zero. */
static int64_t padded_index(const struct sac_sampler *s, int d, double at)
{
    double last = (double)(s->size[d] - 1);
    if (at >= 0 && at <= last)
        return (int64_t)at;
    if (s->padding == SAC_SAMPLE_BORDER)
        return at < 0 ? 0 : (int64_t)last;
    if (s->padding == SAC_SAMPLE_ZEROS || !isfinite(at))
        return -1;
    double lo = s->align ? 0 : -0.5, hi = s->align ? last : last + 0.5;
    return (int64_t)SAC_CLAMP(reflect(at, lo, hi), 0, last);
}

static double cubic_weight(double x)
{
    const double a = -0.75;
    x = fabs(x);
    return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

/* g: the place along dimension d in [-1,1]. */
static struct taps taps_at(const struct sac_sampler *s, int d, double g)
{
    double last = (double)(s->size[d] - 1);
    double x = s->align ? (g + 1) / 2 * last : ((g + 1) * (last + 1) - 1) / 2;
    double lo = s->align ? 0 : -0.5, hi = s->align ? last : last + 0.5;
    if (s->mode == SAC_SAMPLE_NEAREST)
        x = rint(x);
    if ((x < lo || x > hi) && s->padding == SAC_SAMPLE_BORDER)
        x = SAC_CLAMP(x, 0, last);
    else if ((x < lo || x > hi) && s->padding == SAC_SAMPLE_REFLECTION)
        x = reflect(x, lo, hi);
    struct taps t = {.count = s->mode == SAC_SAMPLE_NEAREST  ? 1
                              : s->mode == SAC_SAMPLE_LINEAR ? 2
                                                             : 4};
    double first = s->mode == SAC_SAMPLE_NEAREST ? x : floor(x) - (s->mode == SAC_SAMPLE_CUBIC);
    for (int k = 0; k < t.count; k++) {
        double at = first + k;
        t.index[k] = padded_index(s, d, at);
        t.weight[k] = s->mode == SAC_SAMPLE_NEAREST  ? 1
                      : s->mode == SAC_SAMPLE_LINEAR ? 1 - fabs(at - x)
                                                     : cubic_weight(at - x);
    }
    return t;
}

static double sample(const struct sac_operand *in, const struct sac_sampler *s, int64_t plane,
                     const struct taps *t)
{
    double sum = 0;
    for (int a = 0; a < t[0].count; a++)
        for (int b = 0; b < t[1].count; b++)
            for (int k = 0; k < t[2].count; k++) {
                if (t[0].index[a] < 0 || t[1].index[b] < 0 || t[2].index[k] < 0)
                    continue;
                int64_t at = (plane * s->size[0] + t[0].index[a]) * s->size[1];
                at = (at + t[1].index[b]) * s->size[2] + t[2].index[k];
                sum += t[0].weight[a] * t[1].weight[b] * t[2].weight[k] * sac_operand_get(in, at);
            }
    return sum;
}

static sac_result grid_sample_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0], *grid = &c->in[1];
    struct sac_sampler        s;
    SAC_TRY(sac_sampler_read(c, &s));
    int     rank = in->rank - 2;
    int64_t places = sac_dims_product(rank, grid->dims + 1), channels = in->dims[1];
    for (int64_t i = 0; i < in->dims[0] * places; i++) {
        struct taps t[SAC_SAMPLE_DIMS] = {{.count = 1, .weight = {1}}};
        /* the grid has the last dimension first */
        for (int d = SAC_SAMPLE_DIMS - rank; d < SAC_SAMPLE_DIMS; d++)
            t[d] = taps_at(&s, d, sac_operand_get(grid, i * rank + SAC_SAMPLE_DIMS - 1 - d));
        for (int64_t k = 0; k < channels; k++) {
            int64_t plane = i / places * channels + k;
            sac_operand_set(&c->out[0], plane * places + i % places, sample(in, &s, plane, t));
        }
    }
    return SAC_OK;
}

/* Both inputs are [N,...]. */
static bool grid_sample_batch(struct sac_batch_walk *w, struct sac_node *n, int k, int *out)
{
    *out = 0;
    return (k == 0 && sac_batch_axis(w, n->inputs[1]) == 0) ||
           sac_batch_refuse(w, "its grid does not carry the batch");
}

const struct sac_op sac_row_GridSample = {SAC_ROW(GridSample, 16, 2, 2, 1),
                                          SAC_TOLERANCE(1e-5f, 1e-5f), .shape = grid_sample_shape,
                                          .ref = grid_sample_ref, .batch = grid_sample_batch};

/* ---- AffineGrid ---- */

static sac_result affine_shape(struct sac_op_call *c)
{
    const struct sac_operand *theta = &c->in[0];
    int64_t                   size[5], dims[5];
    size_t                    n;
    SAC_TRY(sac_operand_ints(c, 1, size, 5, &n));
    int rank = (int)n - 2;
    SAC_CHECK(c,
              (rank == 2 || rank == 3) && theta->rank == 3 && theta->dims[0] == size[0] &&
                  theta->dims[1] == rank && theta->dims[2] == rank + 1 &&
                  sac_dtype_is_float(theta->dtype),
              "matrices that do not fit a size of %zu numbers", n);
    dims[0] = size[0];
    for (int d = 0; d < rank; d++)
        dims[1 + d] = size[2 + d];
    dims[rank + 1] = rank;
    return sac_shape_out(c, 0, theta->dtype, rank + 2, dims);
}

static sac_result affine_ref(struct sac_op_call *c)
{
    const struct sac_operand *theta = &c->in[0], *out = &c->out[0];
    bool                      align = sac_attr_int(c->node, "align_corners", 0);
    int                       rank = (int)theta->dims[1];
    int64_t                   places = sac_dims_product(rank, out->dims + 1);
    for (int64_t i = 0; i < out->dims[0] * places; i++) {
        double  at[SAC_SAMPLE_DIMS + 1]; /* x, y, (z,) 1 */
        int64_t rest = i % places;
        for (int k = 0; k < rank; k++) {
            double size = (double)out->dims[rank - k], x = (double)(rest % out->dims[rank - k]);
            at[k] = !align ? (2 * x + 1) / size - 1 : size > 1 ? 2 * x / (size - 1) - 1 : -1;
            rest /= out->dims[rank - k];
        }
        at[rank] = 1;
        for (int row = 0; row < rank; row++) {
            double sum = 0;
            for (int k = 0; k <= rank; k++)
                sum += at[k] * sac_operand_get(theta, (i / places * rank + row) * (rank + 1) + k);
            sac_operand_set(out, i * rank + row, sum);
        }
    }
    return SAC_OK;
}

const struct sac_op sac_row_AffineGrid = {SAC_ROW(AffineGrid, 20, 2, 2, 1),
                                          SAC_TOLERANCE(1e-5f, 1e-5f), .shape = affine_shape,
                                          .ref = affine_ref};
