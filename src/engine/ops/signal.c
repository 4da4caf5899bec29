/* SPDX-License-Identifier: Apache-2.0 */
/* DFT, STFT, the windows and MelWeightMatrix. */
#include <math.h>

#include "engine/ops/reads.h"
#include "engine/ops/util.h"

static const double PI = 3.14159265358979323846;

/* A scalar input; SAC_AGAIN when it is not known yet. */
static sac_result scalar(const struct sac_op_call *c, int input, double fallback, double *out)
{
    *out = fallback;
    if (!sac_op_has(c, input))
        return SAC_OK;
    SAC_CHECK(c, sac_operand_elements(&c->in[input]) == 1, "input %d is not one number", input);
    if (!c->in[input].data)
        return SAC_AGAIN;
    *out = sac_operand_get(&c->in[input], 0);
    return SAC_OK;
}

static sac_result whole(const struct sac_op_call *c, int input, int64_t fallback, int64_t lo,
                        int64_t *out)
{
    double v;
    SAC_TRY(scalar(c, input, (double)fallback, &v));
    SAC_CHECK(c, v >= (double)lo && v < 0x1p31, "input %d is %g", input, v);
    *out = (int64_t)v;
    return SAC_OK;
}

/* Frequency k of n samples x (re, im pairs); sign -1 forwards, 1 back. */
static void frequency(const double *x, int64_t n, int64_t k, double sign, double *out)
{
    out[0] = out[1] = 0;
    for (int64_t t = 0; t < n; t++) {
        double angle = sign * 2 * PI * (double)(k * t % n) / (double)n;
        out[0] += x[2 * t] * cos(angle) - x[2 * t + 1] * sin(angle);
        out[1] += x[2 * t] * sin(angle) + x[2 * t + 1] * cos(angle);
    }
}

/* ---- DFT ---- */

/* The axis was an attribute in opset 17 and is an input since. */
sac_result sac_dft_read(const struct sac_op_call *c, struct sac_dft *d)
{
    const struct sac_operand *in = &c->in[0];
    int64_t                   axis = sac_attr_int(c->node, "axis", 1);
    SAC_CHECK(c,
              sac_dtype_is_float(in->dtype) && in->rank >= 2 &&
                  (in->dims[in->rank - 1] == 1 || in->dims[in->rank - 1] == 2),
              "input of dtype %s and %d dimensions", sac_in_dtype(c, 0), in->rank);
    if (c->node->opset >= 20) {
        double v;
        SAC_TRY(scalar(c, 2, -2, &v));
        axis = (int64_t)SAC_CLAMP(v, -100, 100);
    }
    SAC_CHECK(c, sac_axis_normalise(axis, in->rank, &d->axis) && d->axis < in->rank - 1,
              "axis %lld of a tensor of %d dimensions", (long long)axis, in->rank);
    d->inverse = sac_attr_int(c->node, "inverse", 0);
    d->half = sac_attr_int(c->node, "onesided", 0);
    bool    real = d->inverse && d->half;
    int64_t size = in->dims[d->axis];
    SAC_TRY(whole(c, 1, real ? 2 * (size - 1) : size, 1, &d->length));
    d->out = d->half && !d->inverse ? d->length / 2 + 1 : d->length;
    d->parts = real ? 1 : 2;
    return SAC_OK;
}

static sac_result dft_shape(struct sac_op_call *c)
{
    struct sac_dft d;
    int64_t        dims[SAC_RANK_MAX];
    SAC_TRY(sac_dft_read(c, &d));
    memcpy(dims, c->in[0].dims, sizeof dims);
    dims[d.axis] = d.out;
    dims[c->in[0].rank - 1] = d.parts;
    return sac_shape_out(c, 0, c->in[0].dtype, c->in[0].rank, dims);
}

/* A line of the input as pairs, truncated or padded with zeros to the transform's length. */
static void dft_line(const struct sac_operand *in, const struct sac_dft *d, int64_t start,
                     int64_t step, double *x)
{
    int64_t given = in->dims[in->rank - 1], size = SAC_MIN(in->dims[d->axis], d->length);
    memset(x, 0, 2 * (size_t)d->length * sizeof *x);
    for (int64_t t = 0; t < size; t++) {
        x[2 * t] = sac_operand_get(in, (start + t * step) * given);
        x[2 * t + 1] = given == 2 ? sac_operand_get(in, (start + t * step) * given + 1) : 0;
    }
    if (d->half && d->inverse)
        for (int64_t t = d->length / 2 + 1; t < d->length; t++) {
            x[2 * t] = x[2 * (d->length - t)];
            x[2 * t + 1] = -x[2 * (d->length - t) + 1];
        }
}

static sac_result dft_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    struct sac_dft            d;
    SAC_TRY(sac_dft_read(c, &d));
    double *x = sac_alloc(2 * (size_t)d.length * sizeof *x);
    if (!x)
        return sac_op_no_memory(c);
    int64_t inner = sac_dims_product(in->rank - 2 - d.axis, in->dims + d.axis + 1);
    int64_t outer = sac_dims_product(d.axis, in->dims);
    for (int64_t i = 0; i < outer * inner; i++) {
        dft_line(in, &d, i / inner * in->dims[d.axis] * inner + i % inner, inner, x);
        for (int64_t k = 0; k < d.out; k++) {
            double  y[2];
            int64_t to = ((i / inner * d.out + k) * inner + i % inner) * d.parts;
            frequency(x, d.length, k, d.inverse ? 1 : -1, y);
            for (int64_t p = 0; p < d.parts; p++)
                sac_operand_set(&c->out[0], to + p, d.inverse ? y[p] / (double)d.length : y[p]);
        }
    }
    sac_free(x);
    return SAC_OK;
}

const struct sac_op sac_row_DFT = {SAC_ROW(DFT, 17, 1, 3, 1), SAC_TOLERANCE(1e-4f, 1e-4f),
                                   .shape = dft_shape, .ref = dft_ref};

/* ---- STFT: signal [B,L,1 or 2], frame step, window, frame length ---- */

sac_result sac_stft_read(const struct sac_op_call *c, struct sac_stft *s)
{
    const struct sac_operand *in = &c->in[0];
    SAC_CHECK(
        c, sac_dtype_is_float(in->dtype) && in->rank == 3 && (in->dims[2] == 1 || in->dims[2] == 2),
        "signal of dtype %s and %d dimensions", sac_in_dtype(c, 0), in->rank);
    if (sac_op_has(c, 2))
        SAC_CHECK(c, c->in[2].rank == 1 && sac_dtype_is_float(c->in[2].dtype), "window of dtype %s",
                  sac_in_dtype(c, 2));
    SAC_TRY(whole(c, 1, 1, 1, &s->step));
    SAC_TRY(whole(c, 3, sac_op_has(c, 2) ? c->in[2].dims[0] : in->dims[1], 1, &s->length));
    SAC_CHECK(c, s->length <= in->dims[1] && (!sac_op_has(c, 2) || c->in[2].dims[0] == s->length),
              "frames of %lld samples", (long long)s->length);
    s->frames = (in->dims[1] - s->length) / s->step + 1;
    s->out = sac_attr_int(c->node, "onesided", 1) ? s->length / 2 + 1 : s->length;
    return SAC_OK;
}

static sac_result stft_shape(struct sac_op_call *c)
{
    struct sac_stft s;
    SAC_TRY(sac_stft_read(c, &s));
    int64_t dims[4] = {c->in[0].dims[0], s.frames, s.out, 2};
    return sac_shape_out(c, 0, c->in[0].dtype, 4, dims);
}

static sac_result stft_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0];
    struct sac_stft           s;
    SAC_TRY(sac_stft_read(c, &s));
    double *x = sac_alloc(2 * (size_t)s.length * sizeof *x);
    if (!x)
        return sac_op_no_memory(c);
    for (int64_t i = 0; i < in->dims[0] * s.frames; i++) {
        int64_t start = i / s.frames * in->dims[1] + i % s.frames * s.step;
        for (int64_t t = 0; t < s.length; t++) {
            double weight = sac_op_has(c, 2) ? sac_operand_get(&c->in[2], t) : 1;
            x[2 * t] = weight * sac_operand_get(in, (start + t) * in->dims[2]);
            x[2 * t + 1] = in->dims[2] == 2 ? weight * sac_operand_get(in, (start + t) * 2 + 1) : 0;
        }
        for (int64_t k = 0; k < s.out; k++) {
            double y[2];
            frequency(x, s.length, k, -1, y);
            sac_operand_set(&c->out[0], (i * s.out + k) * 2, y[0]);
            sac_operand_set(&c->out[0], (i * s.out + k) * 2 + 1, y[1]);
        }
    }
    sac_free(x);
    return SAC_OK;
}

const struct sac_op sac_row_STFT = {SAC_ROW(STFT, 17, 2, 4, 1), SAC_TOLERANCE(1e-4f, 1e-4f),
                                    .shape = stft_shape, .ref = stft_ref};

/* ---- windows ---- */

static sac_result output_dtype(struct sac_op_call *c, enum sac_dtype *out)
{
    int64_t type = sac_attr_int(c->node, "output_datatype", 1);
    *out = sac_dtype_from_onnx(type);
    SAC_CHECK(c, *out != SAC_DTYPE_NONE, "ONNX data type %lld", (long long)type);
    return SAC_OK;
}

static sac_result window_shape(struct sac_op_call *c)
{
    enum sac_dtype t = SAC_DTYPE_NONE;
    int64_t        size;
    SAC_TRY(output_dtype(c, &t));
    SAC_TRY(whole(c, 0, 0, 0, &size));
    return sac_shape_out(c, 0, t, 1, &size);
}

static sac_result window_ref(struct sac_op_call *c)
{
    enum sac_op_id id = c->node->op->id;
    int64_t        size = c->out[0].dims[0];
    double         period = (double)(sac_attr_int(c->node, "periodic", 1) ? size : size - 1);
    for (int64_t i = 0; i < size; i++) {
        double angle = 2 * PI * (double)i / period;
        double v = id == SAC_OP_HannWindow      ? 0.5 - 0.5 * cos(angle)
                   : id == SAC_OP_HammingWindow ? 25. / 46 - 21. / 46 * cos(angle)
                                                : 0.42 - 0.5 * cos(angle) + 0.08 * cos(2 * angle);
        sac_operand_set(&c->out[0], i, v);
    }
    return SAC_OK;
}

#define WINDOW_ROW(op)                                                                         \
    const struct sac_op sac_row_##op = {SAC_ROW(op, 17, 1, 1, 1), SAC_TOLERANCE(1e-6f, 1e-6f), \
                                        .shape = window_shape, .ref = window_ref}
WINDOW_ROW(HannWindow);
WINDOW_ROW(HammingWindow);
WINDOW_ROW(BlackmanWindow);

/* ---- MelWeightMatrix: triangles over the bins of a spectrum ---- */

enum { MEL_BINS, MEL_LENGTH, MEL_RATE, MEL_LOWER, MEL_UPPER };

static sac_result mel_shape(struct sac_op_call *c)
{
    enum sac_dtype t = SAC_DTYPE_NONE;
    int64_t        bins, length, rate;
    double         edge;
    SAC_TRY(output_dtype(c, &t));
    SAC_TRY(whole(c, MEL_BINS, 1, 1, &bins));
    SAC_TRY(whole(c, MEL_LENGTH, 1, 1, &length));
    SAC_TRY(whole(c, MEL_RATE, 1, 1, &rate));
    for (int i = MEL_LOWER; i <= MEL_UPPER; i++) {
        SAC_TRY(scalar(c, i, 0, &edge));
        SAC_CHECK(c, edge >= 0 && edge <= (double)rate, "an edge of %g Hz", edge);
    }
    int64_t dims[2] = {length / 2 + 1, bins};
    return sac_shape_out(c, 0, t, 2, dims);
}

static double to_mel(double hertz)
{
    return 2595 * log10(1 + hertz / 700);
}

/* The spectrum bin of the i-th corner of the triangles; corners are evenly spaced in mel. */
int64_t sac_mel_corner(const struct sac_op_call *c, int64_t i)
{
    double low = to_mel(sac_operand_get(&c->in[MEL_LOWER], 0));
    double high = to_mel(sac_operand_get(&c->in[MEL_UPPER], 0));
    double mel = low + (double)i * (high - low) / (sac_operand_get(&c->in[MEL_BINS], 0) + 2);
    double hertz = 700 * (pow(10, mel / 2595) - 1);
    double bin = floor((sac_operand_get(&c->in[MEL_LENGTH], 0) + 1) * hertz /
                       sac_operand_get(&c->in[MEL_RATE], 0));
    return (int64_t)SAC_CLAMP(bin, 0, (double)(c->out[0].dims[0] - 1));
}

static sac_result mel_ref(struct sac_op_call *c)
{
    const struct sac_operand *out = &c->out[0];
    memset(out->data, 0, sac_operand_bytes(out));
    for (int64_t i = 0; i < out->dims[1]; i++) {
        int64_t left = sac_mel_corner(c, i), top = sac_mel_corner(c, i + 1),
                right = sac_mel_corner(c, i + 2);
        if (left == top)
            sac_operand_set(out, top * out->dims[1] + i, 1);
        for (int64_t j = left; j <= top && left < top; j++)
            sac_operand_set(out, j * out->dims[1] + i, (double)(j - left) / (double)(top - left));
        for (int64_t j = top; j < right; j++)
            sac_operand_set(out, j * out->dims[1] + i, (double)(right - j) / (double)(right - top));
    }
    return SAC_OK;
}

const struct sac_op sac_row_MelWeightMatrix = {SAC_ROW(MelWeightMatrix, 17, 5, 5, 1),
                                               SAC_TOLERANCE(1e-6f, 1e-6f), .shape = mel_shape,
                                               .ref = mel_ref};
