/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear. */
#include <math.h>

#include "engine/ops/batch.h"
#include "engine/ops/quant.h"
#include "engine/ops/reads.h"
#include "engine/ops/util.h"

sac_result sac_read_scaling(const struct sac_op_call *c, struct sac_scaling *s)
{
    const struct sac_operand *in = &c->in[0], *scale = &c->in[1];
    int                       axis;
    *s = (struct sac_scaling){.length = 1, .inner = 1, .block = 1};
    SAC_CHECK(c, sac_dtype_is_float(scale->dtype), "scale of dtype %s", sac_in_dtype(c, 1));
    if (sac_op_has(c, 2))
        SAC_CHECK(c, sac_operand_elements(&c->in[2]) == sac_operand_elements(scale),
                  "scale and zero point differ in size");
    if (sac_operand_elements(scale) == 1 && scale->rank <= 1)
        return SAC_OK;
    SAC_TRY(sac_op_axis(c, 1, in->rank, &axis));
    s->length = in->dims[axis];
    s->inner = sac_dims_product(in->rank - axis - 1, in->dims + axis + 1);
    if (scale->rank == 1) {
        SAC_CHECK(c, scale->dims[0] == s->length, "%lld scales for an axis of %lld",
                  (long long)scale->dims[0], (long long)s->length);
        s->count = s->length;
        return SAC_OK;
    }
    SAC_CHECK(c, scale->rank == in->rank && scale->dims[axis] > 0,
              "scales of %d dimensions for an input of %d", scale->rank, in->rank);
    for (int d = 0; d < in->rank; d++)
        SAC_CHECK(c, d == axis || scale->dims[d] == in->dims[d],
                  "dimension %d of the scales is %lld, of the input %lld", d,
                  (long long)scale->dims[d], (long long)in->dims[d]);
    s->count = scale->dims[axis];
    s->block = sac_attr_int(c->node, "block_size", 0);
    if (s->block <= 0)
        s->block = (s->length + s->count - 1) / s->count;
    SAC_CHECK(c, s->block > 0 && (s->length + s->block - 1) / s->block == s->count,
              "%lld blocks of %lld for an axis of %lld", (long long)s->count, (long long)s->block,
              (long long)s->length);
    s->blocked = true;
    return SAC_OK;
}

static int64_t scale_index(const struct sac_scaling *s, int64_t i)
{
    if (!s->count)
        return 0;
    int64_t along = i / s->inner % s->length / s->block;
    if (!s->blocked)
        return along;
    return (i / s->inner / s->length * s->count + along) * s->inner + i % s->inner;
}

static double zero_point(const struct sac_op_call *c, int64_t i)
{
    return sac_op_has(c, 2) ? sac_operand_get(&c->in[2], i) : 0;
}

/* A scale and a zero point for all, or along an axis that is not the batch. */
static bool scaled_batch(struct sac_batch_walk *w, struct sac_node *n, int k, int *out)
{
    for (int i = 1; i < n->input_count; i++)
        if (sac_batch_axis(w, n->inputs[i]) >= 0)
            return sac_batch_refuse(w, "a scale or zero point depends on the input");
    const struct sac_value *scale = n->inputs[1];
    int64_t                 axis = sac_attr_int(n, "axis", 1);
    axis += axis < 0 ? n->inputs[0]->rank : 0;
    *out = k;
    return scale->rank == 0 || (scale->rank == 1 && (scale->dims[0] == 1 || axis != k)) ||
           sac_batch_refuse(w, "its scales go by the batch");
}

/* ---- QuantizeLinear ---- */

static sac_result quantize_shape(struct sac_op_call *c)
{
    struct sac_scaling s;
    int64_t            type = sac_attr_int(c->node, "output_dtype", 0);
    enum sac_dtype     t = sac_op_has(c, 2) ? c->in[2].dtype
                           : type           ? sac_dtype_from_onnx(type)
                                            : SAC_U8;
    if (t != SAC_F8 && (!sac_dtype_is_integer(t) || sac_dtype_bytes(t) > 4))
        return SAC_OP_FAIL(c, SAC_ERR_UNSUPPORTED,
                           "to dtype %s; have 8 and 16 bit integers, and float8e4m3fn",
                           sac_dtype_name(t));
    SAC_TRY(sac_read_scaling(c, &s));
    return sac_shape_out(c, 0, t, c->in[0].rank, c->in[0].dims);
}

/* How many consecutive elements share a scale. */
static int64_t scale_run(const struct sac_scaling *s, int64_t n)
{
    return !s->count ? n : s->blocked ? 1 : s->inner;
}

static sac_result quantize_ref(struct sac_op_call *c)
{
    struct sac_scaling s;
    SAC_TRY(sac_read_scaling(c, &s));
    int64_t n = sac_operand_elements(&c->in[0]), run = SAC_MAX(scale_run(&s, n), 1);
    bool    exact = c->out[0].dtype == SAC_F8; /* rounds by itself */
    for (int64_t start = 0; start < n; start += run) {
        int64_t k = scale_index(&s, start);
        float   scale = (float)sac_operand_get(&c->in[1], k);
        double  zero = zero_point(c, k);
        for (int64_t i = start; i < start + run; i++) {
            /* The quotient is computed in float, as other implementations do, because its rounding
             * decides ties. */
            float q = (float)sac_operand_get(&c->in[0], i) / scale;
            sac_operand_set(&c->out[0], i, exact ? (double)q : rint((double)q) + zero);
        }
    }
    return SAC_OK;
}

const struct sac_op sac_row_QuantizeLinear = {SAC_ROW(QuantizeLinear, 10, 2, 3, 1),
                                              SAC_TOLERANCE(0, 0),
                                              .flags = SAC_OP_QUANTISES,
                                              .shape = quantize_shape,
                                              .ref = quantize_ref,
                                              .batch = scaled_batch};

/* ---- DequantizeLinear ---- */

static sac_result dequantize_shape(struct sac_op_call *c)
{
    struct sac_scaling s;
    int64_t            type = sac_attr_int(c->node, "output_dtype", 0);
    enum sac_dtype     t = type ? sac_dtype_from_onnx(type) : c->in[1].dtype;
    SAC_CHECK(c, sac_dtype_is_integer(c->in[0].dtype) || c->in[0].dtype == SAC_F8, "from dtype %s",
              sac_in_dtype(c, 0));
    SAC_CHECK(c, sac_dtype_is_float(t), "to dtype %s", sac_dtype_name(t));
    SAC_TRY(sac_read_scaling(c, &s));
    return sac_shape_out(c, 0, t, c->in[0].rank, c->in[0].dims);
}

/* Weights are many: float32 of 8-bit integers, one scale for n of them. */
static bool dequantize_bytes(const struct sac_op_call *c, int64_t start, int64_t n, float scale,
                             float zero)
{
    const struct sac_operand *in = &c->in[0];
    float                    *y = (float *)c->out[0].data + start;
    if (c->out[0].dtype != SAC_F32 || (in->dtype != SAC_I8 && in->dtype != SAC_U8))
        return false;
    if (in->dtype == SAC_I8)
        for (int64_t i = 0; i < n; i++)
            y[i] = (((const int8_t *)in->data)[start + i] - zero) * scale;
    else
        for (int64_t i = 0; i < n; i++)
            y[i] = (((const uint8_t *)in->data)[start + i] - zero) * scale;
    return true;
}

static sac_result dequantize_ref(struct sac_op_call *c)
{
    struct sac_scaling s;
    SAC_TRY(sac_read_scaling(c, &s));
    int64_t n = sac_operand_elements(&c->in[0]), run = SAC_MAX(scale_run(&s, n), 1);
    for (int64_t start = 0; start < n; start += run) {
        int64_t k = scale_index(&s, start);
        double  scale = sac_operand_get(&c->in[1], k), zero = zero_point(c, k);
        if (dequantize_bytes(c, start, run, (float)scale, (float)zero))
            continue;
        for (int64_t i = start; i < start + run; i++)
            sac_operand_set(&c->out[0], i, (sac_operand_get(&c->in[0], i) - zero) * scale);
    }
    return SAC_OK;
}

const struct sac_op sac_row_DequantizeLinear = {
    SAC_ROW(DequantizeLinear, 10, 2, 3, 1), SAC_TOLERANCE(1e-6f, 1e-6f), .shape = dequantize_shape,
    .ref = dequantize_ref, .batch = scaled_batch};

/* ---- DynamicQuantizeLinear: the scale comes from the values ---- */

static sac_result dynamic_shape(struct sac_op_call *c)
{
    SAC_CHECK(c, c->in[0].dtype == SAC_F32, "input of dtype %s; have float32", sac_in_dtype(c, 0));
    SAC_TRY(sac_shape_out(c, 0, SAC_U8, c->in[0].rank, c->in[0].dims));
    SAC_TRY(sac_shape_out(c, 1, SAC_F32, 0, NULL));
    return sac_shape_out(c, 2, SAC_U8, 0, NULL);
}

static sac_result dynamic_ref(struct sac_op_call *c)
{
    const float *x = c->in[0].data;
    int64_t      n = sac_operand_elements(&c->in[0]);
    float        lo = 0, hi = 0; /* zero must be exact, so the range always includes it */
    for (int64_t i = 0; i < n; i++) {
        lo = fminf(lo, x[i]);
        hi = fmaxf(hi, x[i]);
    }
    float scale = hi > lo ? (hi - lo) / 255 : 1;
    float zero = SAC_CLAMP(rintf(-lo / scale), 0, 255);
    for (int64_t i = 0; sac_op_wants(c, 0) && i < n; i++)
        sac_operand_set(&c->out[0], i, rintf(x[i] / scale) + zero);
    if (sac_op_wants(c, 1))
        *(float *)c->out[1].data = scale;
    if (sac_op_wants(c, 2))
        *(uint8_t *)c->out[2].data = (uint8_t)zero;
    return SAC_OK;
}

const struct sac_op sac_row_DynamicQuantizeLinear = {
    SAC_ROW(DynamicQuantizeLinear, 11, 1, 1, 3), SAC_TOLERANCE(1e-6f, 1e-6f),
    .flags = SAC_OP_QUANTISES, .shape = dynamic_shape, .ref = dynamic_ref};
