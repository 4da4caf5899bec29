/* SPDX-License-Identifier: Apache-2.0 */
/* LinearAttention, which engine/ops/fused.h defines. */
#include <math.h>

#include "base/base.h"
#include "engine/ops/fused.h"
#include "engine/ops/reads.h"
#include "engine/ops/util.h"

enum { A, B, C, GAIN, INPUTS };

static sac_result read_kind(const struct sac_op_call *c, struct sac_linear_attention *a)
{
    const int64_t kind = sac_attr_int(c->node, "kind", 0);
    SAC_CHECK(c, kind >= 0 && kind < SAC_LINEAR_COUNT, "kind %lld is none", (long long)kind);
    a->kind = (enum sac_linear_kind)kind;
    a->lengths = sac_attr_int(c->node, "lengths", 0) != 0;
    a->scale = sac_attr_float(c->node, "scale", 1);
    a->epsilon = sac_attr_float(c->node, "epsilon", 0);
    SAC_CHECK(c, a->kind == SAC_LINEAR_SHARES || (!a->lengths && !sac_op_has(c, GAIN)),
              "lengths and a gain are for shares alone");
    SAC_CHECK(c, a->epsilon >= 0, "epsilon %g is negative", (double)a->epsilon);
    return SAC_OK;
}

static sac_result read_gain(const struct sac_op_call *c, struct sac_linear_attention *a)
{
    a->gain_step = 0;
    if (!sac_op_has(c, GAIN))
        return SAC_OK;
    const int64_t count = sac_operand_elements(&c->in[GAIN]);
    SAC_CHECK(c, c->in[GAIN].dtype == SAC_F32 && (count == 1 || count == a->heads),
              "the gain is not one number, or one for each of %lld heads", (long long)a->heads);
    a->gain_step = count > 1;
    return SAC_OK;
}

static bool same_heads(const struct sac_head_view *a, const struct sac_head_view *b)
{
    return a->dim[0] == b->dim[0] && a->dim[1] == b->dim[1];
}

static sac_result read_inputs(const struct sac_op_call *c, struct sac_linear_attention *a)
{
    for (int i = 0; i < GAIN; i++) {
        SAC_CHECK(c, sac_op_has(c, i), "input %d is missing", i);
        SAC_CHECK(c, c->in[i].dtype == SAC_F32, "input %d of dtype %s, not float32", i,
                  sac_in_dtype(c, i));
    }
    SAC_TRY(read_kind(c, a));
    SAC_TRY(sac_head_view_read(c, "a", &c->in[A], &a->a));
    SAC_TRY(sac_head_view_read(c, "b", &c->in[B], &a->b));
    SAC_TRY(sac_head_view_read(c, "c", &c->in[C], &a->c));
    SAC_CHECK(c,
              same_heads(&a->a, &a->b) && same_heads(&a->a, &a->c) && a->a.dim[2] == a->b.dim[2] &&
                  a->b.dim[3] == a->c.dim[3],
              "a, b and c do not fit together");
    a->batch = a->a.dim[0];
    a->heads = a->a.dim[1];
    a->keys = a->a.dim[2];
    a->queries = a->c.dim[2];
    a->size = a->b.dim[3];
    a->width = a->a.dim[3];
    SAC_CHECK(c, a->size > 0 && a->size <= SAC_LINEAR_SIZE_MAX && a->width <= SAC_LINEAR_SIZE_MAX,
              "heads of %lld and %lld numbers, not 1 to %d", (long long)a->size,
              (long long)a->width, SAC_LINEAR_SIZE_MAX);
    return read_gain(c, a);
}

static sac_result read_output(const struct sac_op_call *c, struct sac_linear_attention *a)
{
    const int64_t dims[] = {a->batch, a->heads, a->queries, a->width};
    return sac_head_view_output(c, dims, &a->y);
}

sac_result sac_linear_attention_read(const struct sac_op_call *c, struct sac_linear_attention *a)
{
    SAC_TRY(read_inputs(c, a));
    return read_output(c, a);
}

static sac_result linear_attention_shape(struct sac_op_call *c)
{
    struct sac_linear_attention a;
    SAC_TRY(read_inputs(c, &a));
    const int64_t dims[] = {a.batch, a.heads, a.queries, a.width};
    SAC_TRY(sac_head_shape_out(c, SAC_F32, dims));
    return read_output(c, &a);
}

/* ---- the reference ---- */

/* Of one head: the state [width][size], and what each number of the keys sums up to. */
struct state {
    double of[SAC_LINEAR_SIZE_MAX][SAC_LINEAR_SIZE_MAX], sum[SAC_LINEAR_SIZE_MAX];
};

static double positive(double x)
{
    return x < 0 ? 0 : x;
}

/* Number j of a key, as the kind sees it; most: the column's largest. */
static double key(const struct sac_linear_attention *a, double x, double most)
{
    switch (a->kind) {
    case SAC_LINEAR_TOKENS: return exp(x - most);
    case SAC_LINEAR_RATIO: return positive(x);
    default: return x;
    }
}

static double largest(const float *from, int64_t step, int64_t count)
{
    double most = -INFINITY;
    for (int64_t n = 0; n < count; n++)
        most = from[n * step] > most || isnan(from[n * step]) ? from[n * step] : most;
    return most;
}

static double length(const float *from, int64_t step, int64_t count, double least)
{
    double squares = 0;
    for (int64_t n = 0; n < count; n++)
        squares += (double)from[n * step] * from[n * step];
    return sqrt(squares) < least ? least : sqrt(squares);
}

static void make_column(const struct sac_linear_attention *a, const float *values,
                        const float *keys, int64_t j, struct state *s)
{
    const float *from = keys + j * a->b.step[3];
    const double most = largest(from, a->b.step[2], a->keys);
    s->sum[j] = 0;
    for (int64_t i = 0; i < a->width; i++)
        s->of[i][j] = 0;
    for (int64_t n = 0; n < a->keys; n++) {
        const double k = key(a, from[n * a->b.step[2]], most);
        s->sum[j] += k;
        for (int64_t i = 0; i < a->width; i++)
            s->of[i][j] += k * values[n * a->a.step[2] + i * a->a.step[3]];
    }
    for (int64_t i = 0; i < a->width; i++)
        s->of[i][j] *= a->scale;
}

static void divide_by_lengths(const struct sac_linear_attention *a, const float *values,
                              const float *keys, struct state *s)
{
    double other[SAC_LINEAR_SIZE_MAX];
    for (int64_t j = 0; j < a->size; j++)
        other[j] = length(keys + j * a->b.step[3], a->b.step[2], a->keys, a->epsilon);
    for (int64_t i = 0; i < a->width; i++) {
        const double own = length(values + i * a->a.step[3], a->a.step[2], a->keys, a->epsilon);
        for (int64_t j = 0; j < a->size; j++)
            if (own > 0 && other[j] > 0) /* of zeros the products are zeros */
                s->of[i][j] /= own * other[j];
    }
}

static void make_shares(double *row, int64_t count, double gain)
{
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < count; j++) {
        row[j] *= gain;
        most = row[j] > most || isnan(row[j]) ? row[j] : most;
    }
    for (int64_t j = 0; j < count; j++)
        sum += row[j] = exp(row[j] - most);
    for (int64_t j = 0; j < count; j++)
        row[j] /= sum;
}

static void make_state(const struct sac_op_call *c, const struct sac_linear_attention *a, int64_t b,
                       int64_t h, struct state *s)
{
    const float *values = (const float *)c->in[A].data + sac_head_start(&a->a, b, h),
                *keys = (const float *)c->in[B].data + sac_head_start(&a->b, b, h);
    const double gain =
        sac_op_has(c, GAIN) ? ((const float *)c->in[GAIN].data)[h * a->gain_step] : 1;
    for (int64_t j = 0; j < a->size; j++)
        make_column(a, values, keys, j, s);
    if (a->lengths)
        divide_by_lengths(a, values, keys, s);
    for (int64_t i = 0; i < a->width; i++)
        if (a->kind == SAC_LINEAR_SHARES)
            make_shares(s->of[i], a->size, gain);
        else
            for (int64_t j = 0; a->kind == SAC_LINEAR_TOKENS && a->keys > 0 && j < a->size; j++)
                s->of[i][j] /= s->sum[j];
}

static void read_state(const struct sac_op_call *c, const struct sac_linear_attention *a, int64_t b,
                       int64_t h, const struct state *s)
{
    const bool   ratio = a->kind == SAC_LINEAR_RATIO;
    const float *query = (const float *)c->in[C].data + sac_head_start(&a->c, b, h);
    float       *y = (float *)c->out[0].data + sac_head_start(&a->y, b, h);
    for (int64_t n = 0; n < a->queries; n++)
        for (int64_t i = 0; i < a->width; i++) {
            double sum = 0, all = a->epsilon;
            for (int64_t j = 0; j < a->size; j++) {
                const double x = query[n * a->c.step[2] + j * a->c.step[3]],
                             q = ratio ? positive(x) : x;
                sum += q * s->of[i][j];
                all += q * s->sum[j];
            }
            y[n * a->y.step[2] + i * a->y.step[3]] = (float)(ratio ? sum / all : sum);
        }
}

static sac_result linear_attention_ref(struct sac_op_call *c)
{
    struct sac_linear_attention a;
    SAC_TRY(sac_linear_attention_read(c, &a));
    struct state *s = sac_new(struct state);
    if (!s)
        return sac_op_no_memory(c);
    for (int64_t b = 0; b < a.batch; b++)
        for (int64_t h = 0; h < a.heads; h++) {
            make_state(c, &a, b, h, s);
            read_state(c, &a, b, h, s);
        }
    sac_free(s);
    return SAC_OK;
}

static int64_t linear_attention_flops(const struct sac_op_call *c)
{
    struct sac_linear_attention a;
    if (sac_linear_attention_read(c, &a) != SAC_OK)
        return 0;
    return 2 * a.batch * a.heads * a.size * a.width * (a.keys + a.queries);
}

const struct sac_op sac_row_LinearAttention = {
    SAC_FUSED_ROW(LinearAttention, GAIN, INPUTS), SAC_TOLERANCE(1e-4f, 1e-4f),
    .shape = linear_attention_shape, .ref = linear_attention_ref, .flops = linear_attention_flops};
