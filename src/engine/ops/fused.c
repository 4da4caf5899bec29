/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the fused groups, which engine/ops/fused.h defines. */
#include <math.h>

#include "engine/ops/batch.h"
#include "engine/ops/conv.h"
#include "engine/ops/fused.h"
#include "engine/ops/matmul.h"
#include "engine/ops/util.h"

extern const struct sac_op sac_row_Conv, sac_row_Activation, sac_row_FusedConv, sac_row_MatMul,
    sac_row_FusedMatMul, sac_row_SampleNorm, sac_row_GatedSum;

bool sac_activation_is_known(const struct sac_node *n, const char *attr)
{
    const int64_t kind = sac_attr_int(n, attr, SAC_ACT_NONE);
    return kind >= 0 && kind < SAC_ACT_COUNT;
}

struct sac_activation sac_activation_read(const struct sac_node *n)
{
    return (struct sac_activation){
        .kind = (enum sac_activation_kind)sac_attr_int(n, "activation", SAC_ACT_NONE),
        .alpha = sac_attr_float(n, "alpha", 0),
        .beta = sac_attr_float(n, "beta", 0),
    };
}

bool sac_activation_from_attrs(const struct sac_node *n, struct sac_activation *out)
{
    *out = (struct sac_activation){.kind = SAC_ACT_NONE};
    switch (n->op->id) {
    case SAC_OP_Activation: *out = sac_activation_read(n); break;
    case SAC_OP_Relu: out->kind = SAC_ACT_RELU; break;
    case SAC_OP_Sigmoid: out->kind = SAC_ACT_SIGMOID; break;
    case SAC_OP_Tanh: out->kind = SAC_ACT_TANH; break;
    case SAC_OP_Softplus: out->kind = SAC_ACT_SOFTPLUS; break;
    case SAC_OP_LeakyRelu:
        *out = (struct sac_activation){SAC_ACT_LEAKY_RELU, sac_attr_float(n, "alpha", 0.01f), 0};
        break;
    case SAC_OP_Clip:
        *out = (struct sac_activation){SAC_ACT_CLIP, sac_attr_float(n, "min", -INFINITY),
                                       sac_attr_float(n, "max", INFINITY)};
        break;
    case SAC_OP_HardSigmoid:
        *out = (struct sac_activation){SAC_ACT_HARD_SIGMOID, sac_attr_float(n, "alpha", 0.2f),
                                       sac_attr_float(n, "beta", 0.5f)};
        break;
    case SAC_OP_Gelu:
        out->kind = strcmp(sac_attr_string(n, "approximate", "none"), "tanh") == 0
                        ? SAC_ACT_GELU_TANH
                        : SAC_ACT_GELU;
        break;
    case SAC_OP_HardSwish:
        *out = (struct sac_activation){SAC_ACT_HARD_SWISH, 1.0f / 6, 0.5f};
        break;
    case SAC_OP_Swish:
        out->kind = sac_attr_float(n, "alpha", 1) == 1 ? SAC_ACT_SILU : SAC_ACT_NONE;
        break;
    default: break;
    }
    return out->kind != SAC_ACT_NONE;
}

/* In double, whose sums lose nothing where both halves cancel. */
static float gelu(float x, bool tanh_like)
{
    const double v = x;
    const double bell = tanh_like ? tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))
                                  : erf(v * 0.7071067811865476);
    return (float)(v / 2 * (1 + bell));
}

static float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

/* NaN stays NaN. A Clip may have low above high: then the result is high. */
static float clamp(float x, float low, float high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

float sac_activate(float x, const struct sac_activation *a)
{
    switch (a->kind) {
    case SAC_ACT_RELU: return x < 0 ? 0 : x;
    case SAC_ACT_LEAKY_RELU: return x < 0 ? a->alpha * x : x;
    case SAC_ACT_CLIP: return clamp(x, a->alpha, a->beta);
    case SAC_ACT_SIGMOID: return sigmoid(x);
    case SAC_ACT_SILU: return x * sigmoid(x);
    case SAC_ACT_HARD_SIGMOID: return clamp(a->alpha * x + a->beta, 0, 1);
    case SAC_ACT_HARD_SWISH: return x * clamp(a->alpha * x + a->beta, 0, 1);
    case SAC_ACT_TANH: return tanhf(x);
    case SAC_ACT_SOFTPLUS: return (x > 0 ? x : 0) + log1pf(expf(-fabsf(x)));
    case SAC_ACT_GELU: return gelu(x, false);
    case SAC_ACT_GELU_TANH: return gelu(x, true);
    case SAC_ACT_SQUARED_RELU: return x < 0 ? a->beta : a->alpha * (x * x) + a->beta;
    default: return x;
    }
}

sac_result sac_fused_dims(const struct sac_op_call *c, int64_t count, int64_t *dims, int *rank)
{
    const int64_t *shape;
    const size_t   listed = sac_attr_ints(c->node, "shape", &shape);
    int            open = -1;
    int64_t        known = 1;
    SAC_CHECK(c, listed >= 1 && listed <= SAC_RANK_MAX, "a shape of %zu dims", listed);
    for (size_t d = 0; d < listed; d++) {
        dims[d] = shape[d];
        if (shape[d] == -1 && open < 0) {
            open = (int)d;
            continue;
        }
        SAC_CHECK(c, shape[d] > 0 && !__builtin_mul_overflow(known, shape[d], &known),
                  "shape[%zu] is %lld", d, (long long)shape[d]);
    }
    SAC_CHECK(c, open >= 0 ? count % known == 0 : count == known,
              "%lld numbers do not fit the shape", (long long)count);
    if (open >= 0)
        dims[open] = count / known;
    *rank = (int)listed;
    return SAC_OK;
}

/* A file can use the domain too, so nothing about the node is trusted. */
static sac_result check_common(struct sac_op_call *c)
{
    for (int i = 0; i < c->in_count; i++)
        SAC_CHECK(c, !c->in[i].present || c->in[i].dtype == SAC_F32,
                  "input %d of dtype %s, not float32", i, sac_in_dtype(c, i));
    SAC_CHECK(c, sac_activation_is_known(c->node, "activation"), "activation %lld",
              (long long)sac_attr_int(c->node, "activation", SAC_ACT_NONE));
    return SAC_OK;
}

/* ---- Activation ---- */

static sac_result activation_shape(struct sac_op_call *c)
{
    SAC_TRY(check_common(c));
    return sac_shape_out_like(c, 0, 0);
}

static sac_result activation_ref(struct sac_op_call *c)
{
    const struct sac_activation act = sac_activation_read(c->node);
    const float                *x = c->in[0].data;
    float                      *y = c->out[0].data;
    const int64_t               count = sac_operand_elements(&c->out[0]);
    for (int64_t i = 0; i < count; i++)
        y[i] = sac_activate(x[i], &act);
    return SAC_OK;
}

const struct sac_op sac_row_Activation = {SAC_FUSED_ROW(Activation, 1, 1),
                                          SAC_TOLERANCE(1e-6f, 1e-5f), .flags = SAC_OP_ELEMENTWISE,
                                          .shape = activation_shape, .ref = activation_ref};

/* ---- FusedConv ---- */

/* Has R the output's dims, or fewer channels (of [N,C,...]) where it may? */
static bool residual_fits(const struct sac_operand *r, const struct sac_operand *y, bool fewer)
{
    bool fits = r->rank == y->rank;
    for (int d = 0; fits && d < y->rank; d++)
        fits = r->dims[d] == y->dims[d] || (fewer && d == 1 && r->dims[d] < y->dims[d]);
    return fits;
}

sac_result sac_residual_check(const struct sac_op_call *c, bool fewer)
{
    int64_t residual = sac_attr_int(c->node, "residual", SAC_RESIDUAL_NONE);
    SAC_CHECK(c, residual >= 0 && residual < SAC_RESIDUAL_COUNT, "residual %lld",
              (long long)residual);
    const bool has = sac_op_has(c, SAC_RESIDUAL_INPUT);
    SAC_CHECK(c, (residual != SAC_RESIDUAL_NONE) == has, "residual %lld, but input %d is %s",
              (long long)residual, SAC_RESIDUAL_INPUT, has ? "there" : "missing");
    SAC_CHECK(c, !has || residual_fits(&c->in[SAC_RESIDUAL_INPUT], &c->out[0], fewer),
              "the residual's shape is not the output's");
    return SAC_OK;
}

/* Number i of what the activation has made, with what is done to its channel. */
static float end_channel(const struct sac_op_call *c, int64_t i, float v, float residual)
{
    if (!sac_op_has(c, SAC_ENDING))
        return v + residual;
    const struct sac_operand *y = &c->out[0];
    const bool                last = c->node->op->id == SAC_OP_FusedMatMul;
    const int64_t             channels = c->in[SAC_ENDING].dims[1],
                  plane = last ? 1 : sac_operand_elements(y) / y->dims[0] / channels;
    const float *a = (const float *)c->in[SAC_ENDING].data + i / plane % channels;
    return v * a[SAC_ENDING_SCALE * channels] + a[SAC_ENDING_SHIFT * channels] +
           residual * a[SAC_ENDING_RESIDUAL * channels];
}

void sac_residual_and_activation(const struct sac_op_call *c, float *y, int64_t y_run,
                                 int64_t r_run)
{
    const struct sac_activation act = sac_activation_read(c->node);
    const int64_t               residual = sac_attr_int(c->node, "residual", SAC_RESIDUAL_NONE);
    const float  *r = sac_op_has(c, SAC_RESIDUAL_INPUT) ? c->in[SAC_RESIDUAL_INPUT].data : NULL;
    const int64_t count = sac_operand_elements(&c->out[0]);
    for (int64_t i = 0; i < count; i++) {
        const bool  has = r && i % y_run < r_run;
        const float other = has ? r[i / y_run * r_run + i % y_run] : 0;
        const float v = sac_activate(residual == SAC_RESIDUAL_BEFORE ? y[i] + other : y[i], &act);
        y[i] = end_channel(c, i, v, residual == SAC_RESIDUAL_AFTER ? other : 0);
    }
}

static sac_result check_ending(const struct sac_op_call *c, int64_t channels)
{
    const struct sac_operand *a = &c->in[SAC_ENDING];
    SAC_CHECK(c,
              !sac_op_has(c, SAC_ENDING) ||
                  (a->rank == 2 && a->dims[0] == SAC_ENDING_ROWS && a->dims[1] == channels),
              "input 4 is not three numbers for each of %lld channels", (long long)channels);
    return SAC_OK;
}

static sac_result fused_conv_shape(struct sac_op_call *c)
{
    SAC_TRY(check_common(c));
    SAC_TRY(sac_conv_shape(c, 0, 1, 2, SAC_F32));
    SAC_TRY(check_ending(c, c->out[0].dims[1]));
    return sac_residual_check(c, true);
}

static sac_result fused_conv_ref(struct sac_op_call *c)
{
    sac_conv_run(c, 0, 1, SAC_F32, c->in[0].data, c->in[1].data,
                 sac_op_has(c, 2) ? c->in[2].data : NULL, c->out[0].data);
    const int64_t y_run = sac_operand_elements(&c->out[0]) / SAC_MAX(c->out[0].dims[0], 1);
    const int64_t r_run =
        sac_op_has(c, SAC_RESIDUAL_INPUT)
            ? y_run / SAC_MAX(c->out[0].dims[1], 1) * c->in[SAC_RESIDUAL_INPUT].dims[1]
            : 0;
    sac_residual_and_activation(c, c->out[0].data, y_run, r_run);
    return SAC_OK;
}

static int64_t fused_conv_flops(const struct sac_op_call *c)
{
    return sac_row_Conv.flops(c);
}

const struct sac_op sac_row_FusedConv = {SAC_FUSED_ROW(FusedConv, 2, 5),
                                         SAC_TOLERANCE(1e-4f, 1e-4f), .shape = fused_conv_shape,
                                         .ref = fused_conv_ref, .flops = fused_conv_flops};

/* ---- FusedMatMul ---- */

static sac_result fused_matmul_shape(struct sac_op_call *c)
{
    SAC_TRY(check_common(c));
    SAC_CHECK(c, c->in[0].rank >= 2 && c->in[1].rank == 2,
              "a product of %d by %d dimensions; at least 2 by 2 are needed", c->in[0].rank,
              c->in[1].rank);
    SAC_TRY(sac_matmul_shape(c, 0, 1, SAC_F32));
    SAC_CHECK(c, !sac_op_has(c, 2) || (c->in[2].rank == 1 && c->in[2].dims[0] == c->in[1].dims[1]),
              "input 2 is not one number for each of %lld columns", (long long)c->in[1].dims[1]);
    SAC_TRY(check_ending(c, c->in[1].dims[1]));
    return sac_residual_check(c, false);
}

static sac_result fused_matmul_ref(struct sac_op_call *c)
{
    const int64_t columns = c->in[1].dims[1], count = sac_operand_elements(&c->out[0]);
    const float  *bias = sac_op_has(c, 2) ? c->in[2].data : NULL;
    float        *y = c->out[0].data;
    sac_matmul_run(&c->in[0], &c->in[1], SAC_CLASS_F32, c->in[0].data, c->in[1].data, y);
    for (int64_t i = 0; bias && i < count; i++)
        y[i] += bias[i % columns];
    sac_residual_and_activation(c, y, columns, columns);
    return SAC_OK;
}

static int64_t fused_matmul_flops(const struct sac_op_call *c)
{
    return sac_row_MatMul.flops(c);
}

/* Rows of X may be anything; R has the same. */
static bool fused_matmul_batch(struct sac_batch_walk *w, struct sac_node *n, int k, int *out)
{
    const struct sac_value *r =
        n->input_count > SAC_RESIDUAL_INPUT ? n->inputs[SAC_RESIDUAL_INPUT] : NULL;
    for (int i = 1; i < n->input_count; i++)
        if (i != SAC_RESIDUAL_INPUT && n->inputs[i] && sac_batch_axis(w, n->inputs[i]) >= 0)
            return sac_batch_refuse(w, "a parameter depends on the input");
    if (k < 0 || k >= n->inputs[0]->rank - 1)
        return sac_batch_refuse(w, "it multiplies along the batch");
    *out = k;
    return !r || sac_batch_axis(w, r) == k ||
           sac_batch_refuse(w, "its residual does not carry the batch on the same axis");
}

const struct sac_op sac_row_FusedMatMul = {
    SAC_FUSED_ROW(FusedMatMul, 2, 5), SAC_TOLERANCE(1e-4f, 1e-4f), .shape = fused_matmul_shape,
    .ref = fused_matmul_ref,          .flops = fused_matmul_flops, .batch = fused_matmul_batch};

/* ---- SampleNorm ---- */

static sac_result sample_norm_shape(struct sac_op_call *c)
{
    SAC_TRY(check_common(c));
    const struct sac_operand *x = &c->in[0];
    SAC_CHECK(c, x->rank >= 2, "an input of %d dimensions; at least 2 are needed", x->rank);
    for (int i = 1; i < 3; i++)
        SAC_CHECK(c, !sac_op_has(c, i) || (c->in[i].rank == 1 && c->in[i].dims[0] == x->dims[1]),
                  "input %d is not one number for each of %lld channels", i, (long long)x->dims[1]);
    return sac_shape_out_like(c, 0, 0);
}

static sac_result sample_norm_ref(struct sac_op_call *c)
{
    const struct sac_operand   *x = &c->in[0];
    const struct sac_activation act = sac_activation_read(c->node);
    const float                *scale = sac_op_has(c, 1) ? c->in[1].data : NULL;
    const float                *shift = sac_op_has(c, 2) ? c->in[2].data : NULL;
    const double                epsilon = sac_attr_float(c->node, "epsilon", 1e-5f);
    const int64_t               all = sac_operand_elements(x);
    if (all == 0)
        return SAC_OK;
    const int64_t count = all / x->dims[0], plane = count / x->dims[1];
    for (int64_t n = 0; n < x->dims[0]; n++) {
        const float *in = (const float *)x->data + n * count;
        float       *out = (float *)c->out[0].data + n * count;
        double       sum = 0, squares = 0;
        for (int64_t i = 0; i < count; i++)
            sum += in[i];
        const double mean = sum / (double)count;
        for (int64_t i = 0; i < count; i++)
            squares += (in[i] - mean) * (in[i] - mean);
        const double factor = 1 / sqrt(squares / (double)count + epsilon);
        for (int64_t i = 0; i < count; i++) {
            const int64_t channel = i / plane;
            float         v = (float)((in[i] - mean) * factor) * (scale ? scale[channel] : 1) +
                      (shift ? shift[channel] : 0);
            out[i] = sac_activate(v, &act);
        }
    }
    return SAC_OK;
}

const struct sac_op sac_row_SampleNorm = {SAC_FUSED_ROW(SampleNorm, 1, 3),
                                          SAC_TOLERANCE(1e-4f, 1e-4f), .shape = sample_norm_shape,
                                          .ref = sample_norm_ref};

/* ---- GatedSum ---- */

static sac_result gated_sum_shape(struct sac_op_call *c)
{
    SAC_TRY(check_common(c));
    const struct sac_operand *x = &c->in[0];
    SAC_CHECK(c, c->in_count >= 2 && c->in_count % 2 == 0, "%d inputs; pairs are needed",
              c->in_count);
    SAC_CHECK(c, x->rank >= 3, "an input of %d dimensions; at least 3 are needed", x->rank);
    const int64_t parts = sac_attr_int(c->node, "parts", 1);
    SAC_CHECK(c, parts >= 1 && x->dims[1] % parts == 0, "%lld parts of %lld channels",
              (long long)parts, (long long)x->dims[1]);
    for (int i = 0; i < c->in_count; i += 2) {
        const struct sac_operand *g = &c->in[i + 1];
        SAC_CHECK(c, sac_op_has(c, i) && sac_operand_same_dims(&c->in[i], x),
                  "input %d has not input 0's shape", i);
        bool fits = sac_op_has(c, i + 1) && g->rank == x->rank && g->dims[1] == x->dims[1] &&
                    (g->dims[0] == x->dims[0] || g->dims[0] == 1);
        for (int d = 2; fits && d < g->rank; d++)
            fits = g->dims[d] == 1;
        SAC_CHECK(c, fits, "gate %d is not one number for each channel", i + 1);
    }
    SAC_TRY(sac_shape_out_like(c, 0, 0));
    c->out[0].dims[1] /= parts;
    return SAC_OK;
}

static sac_result gated_sum_ref(struct sac_op_call *c)
{
    const struct sac_operand *y = &c->out[0];
    const int64_t all = sac_operand_elements(y), parts = sac_attr_int(c->node, "parts", 1);
    const struct sac_activation act = sac_activation_read(c->node);
    float                      *out = y->data;
    if (all == 0)
        return SAC_OK;
    const int64_t channels = y->dims[1], plane = all / y->dims[0] / channels;
    memset(out, 0, (size_t)all * sizeof *out);
    for (int k = 0; k < c->in_count; k += 2) {
        const float  *in = c->in[k].data, *gate = c->in[k + 1].data;
        const int64_t gates = c->in[k + 1].dims[0] * channels * parts;
        for (int64_t i = 0; i < all; i++) {
            const int64_t sample = i / (channels * plane), rest = i % (channels * plane);
            for (int64_t part = 0; part < parts; part++) {
                const int64_t at = (sample * parts + part) * channels;
                out[i] += in[at * plane + rest] * gate[(at + rest / plane) % gates];
            }
        }
    }
    for (int64_t i = 0; i < all; i++)
        out[i] = sac_activate(out[i], &act);
    return SAC_OK;
}

const struct sac_op sac_row_GatedSum = {SAC_FUSED_ROW(GatedSum, 2, 16), SAC_TOLERANCE(1e-5f, 1e-5f),
                                        .shape = gated_sum_shape, .ref = gated_sum_ref};
