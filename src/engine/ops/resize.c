/* SPDX-License-Identifier: Apache-2.0 */
/* Resize and Upsample. Every mode is separable: for each axis a table holds the input indices that
 * each output index reads, and their weights. The axes are resized one after the other. */
#include <math.h>

#include "engine/ops/batch.h"
#include "engine/ops/reads.h"
#include "engine/ops/util.h"

struct axis_plan {
    double   scale;
    int      taps;
    double  *weights; /* [out][taps] */
    int64_t *indices; /* [out][taps], inside the input */
    bool    *outside; /* [out]: tf_crop_and_resize wants the extrapolation value */
};

static bool one_of(const char *s, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(s, *list) == 0)
            return true;
    return false;
}

static sac_result read_modes(const struct sac_op_call *c, struct sac_resize *r)
{
    static const char *const coordinates[] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
        "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize", NULL};
    static const char *const nearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                          "ceil", NULL};
    const struct sac_node   *n = c->node;
    bool                     old = n->op->id == SAC_OP_Upsample || n->opset < 11;
    const char              *mode = sac_attr_string(n, "mode", "nearest");
    r->mode = strcmp(mode, "nearest") == 0 ? SAC_RESIZE_NEAREST
              : strcmp(mode, "cubic") == 0 ? SAC_RESIZE_CUBIC
                                           : SAC_RESIZE_LINEAR;
    if (r->mode == SAC_RESIZE_LINEAR && strcmp(mode, "linear") != 0 &&
        strcmp(mode, "bilinear") != 0)
        return SAC_OP_FAIL(c, SAC_ERR_UNSUPPORTED, "mode '%s'; have nearest, linear, cubic", mode);
    r->coordinates =
        old ? "asymmetric" : sac_attr_string(n, "coordinate_transformation_mode", "half_pixel");
    r->nearest = old ? "floor" : sac_attr_string(n, "nearest_mode", "round_prefer_floor");
    if (!one_of(r->coordinates, coordinates) || !one_of(r->nearest, nearest))
        return SAC_OP_FAIL(c, SAC_ERR_UNSUPPORTED,
                           "coordinate_transformation_mode '%s', nearest_mode '%s'", r->coordinates,
                           r->nearest);
    r->cubic_a = sac_attr_float(n, "cubic_coeff_a", -0.75f);
    r->extrapolation = sac_attr_float(n, "extrapolation_value", 0);
    r->antialias = sac_attr_int(n, "antialias", 0);
    r->exclude_outside = sac_attr_int(n, "exclude_outside", 0);
    return SAC_OK;
}

/* Values of a float input; *count is 0 when it is left out or empty. */
static sac_result read_floats(const struct sac_op_call *c, int input, double *out, size_t max,
                              size_t *count)
{
    const struct sac_operand *o = &c->in[input];
    *count = 0;
    if (input >= c->in_count || !o->present || sac_operand_elements(o) == 0)
        return SAC_OK;
    SAC_CHECK(c, sac_dtype_is_float(o->dtype) && sac_operand_elements(o) <= (int64_t)max,
              "input %d: %lld numbers of dtype %s", input, (long long)sac_operand_elements(o),
              sac_in_dtype(c, input));
    if (!o->data)
        return SAC_AGAIN;
    *count = (size_t)sac_operand_elements(o);
    for (size_t i = 0; i < *count; i++)
        out[i] = sac_operand_get(o, (int64_t)i);
    return SAC_OK;
}

static sac_result size_from_scales(const struct sac_op_call *c, struct sac_resize *r,
                                   const double *scales, const int *axes, int count)
{
    for (int i = 0; i < count; i++) {
        int    d = axes[i];
        double size = floor((double)c->in[0].dims[d] * scales[i]);
        SAC_CHECK(c, scales[i] > 0 && size < 0x1p31, "a scale of %g", scales[i]);
        r->scale[d] = scales[i];
        r->out[d] = (int64_t)size;
    }
    return SAC_OK;
}

/* Of an empty batch too. */
static double ratio_of(int64_t size, int64_t in)
{
    return size == in ? 1 : (double)size / (double)in;
}

static sac_result size_from_sizes(const struct sac_op_call *c, struct sac_resize *r,
                                  const int64_t *sizes, const int *axes, int count)
{
    const char *policy = sac_attr_string(c->node, "keep_aspect_ratio_policy", "stretch");
    bool        larger = strcmp(policy, "not_smaller") == 0;
    bool        keep = larger || strcmp(policy, "not_larger") == 0;
    double      common = larger ? 0 : INFINITY;
    for (int i = 0; i < count; i++) {
        int64_t in = c->in[0].dims[axes[i]];
        SAC_CHECK(c, sizes[i] == in || (sizes[i] > 0 && sizes[i] < INT32_MAX && in > 0),
                  "from a size of %lld to %lld", (long long)in, (long long)sizes[i]);
        double scale = ratio_of(sizes[i], in);
        common = larger ? fmax(common, scale) : fmin(common, scale);
    }
    for (int i = 0; i < count; i++) {
        int d = axes[i];
        r->scale[d] = keep ? common : ratio_of(sizes[i], c->in[0].dims[d]);
        r->out[d] = keep ? (int64_t)floor(common * (double)c->in[0].dims[d] + 0.5) : sizes[i];
    }
    return SAC_OK;
}

/* The inputs that hold scales, sizes and the region of interest differ between opsets. */
sac_result sac_resize_read(const struct sac_op_call *c, struct sac_resize *r)
{
    const struct sac_operand *in = &c->in[0];
    bool                      old = c->node->op->id == SAC_OP_Upsample || c->node->opset < 11;
    int                       axes[SAC_RANK_MAX], count;
    double                    scales[SAC_RANK_MAX], roi[2 * SAC_RANK_MAX];
    int64_t                   sizes[SAC_RANK_MAX];
    size_t                    scale_count = 0, size_count = 0, roi_count = 0;
    SAC_TRY(read_modes(c, r));
    SAC_TRY(sac_op_axes(c, "axes", -1, in->rank, axes, &count));
    if (count == 0)
        for (count = 0; count < in->rank; count++)
            axes[count] = count;
    const float *attr;
    size_t       attr_count = old ? sac_attr_floats(c->node, "scales", &attr) : 0;
    for (; scale_count < SAC_MIN(attr_count, (size_t)SAC_RANK_MAX); scale_count++)
        scales[scale_count] = attr[scale_count];
    if (!attr_count)
        SAC_TRY(read_floats(c, old ? 1 : 2, scales, SAC_RANK_MAX, &scale_count));
    if (!old && sac_op_has(c, 3))
        SAC_TRY(sac_operand_ints(c, 3, sizes, SAC_RANK_MAX, &size_count));
    for (int d = 0; d < in->rank; d++) {
        r->scale[d] = r->roi_end[d] = 1;
        r->roi_start[d] = 0;
        r->out[d] = in->dims[d];
    }
    if (!old && strcmp(r->coordinates, "tf_crop_and_resize") == 0) {
        SAC_TRY(read_floats(c, 1, roi, 2 * SAC_RANK_MAX, &roi_count));
        SAC_CHECK(c, (int)roi_count == 2 * count, "a region of %zu numbers", roi_count);
        for (int i = 0; i < count; i++) {
            r->roi_start[axes[i]] = roi[i];
            r->roi_end[axes[i]] = roi[count + i];
        }
    }
    SAC_CHECK(c, scale_count ? (int)scale_count == count : (int)size_count == count,
              "%zu scales and %zu sizes for %d dimensions", scale_count, size_count, count);
    return scale_count ? size_from_scales(c, r, scales, axes, count)
                       : size_from_sizes(c, r, sizes, axes, count);
}

static sac_result resize_shape(struct sac_op_call *c)
{
    struct sac_resize r;
    SAC_TRY(sac_resize_read(c, &r));
    SAC_CHECK(c, r.mode == SAC_RESIZE_NEAREST || c->in[0].dtype != SAC_BOOL,
              "bools cannot be blended");
    for (int d = 0; d < c->in[0].rank; d++)
        SAC_CHECK(c, c->in[0].dims[d] > 0 || r.out[d] == 0, "dimension %d is empty", d);
    return sac_shape_out(c, 0, c->in[0].dtype, c->in[0].rank, r.out);
}

/* ---- the plan of one axis ---- */

/* The position of output index x on the input's axis. */
static double source_at(const struct sac_resize *r, int d, int64_t in, int64_t x)
{
    const char *mode = r->coordinates;
    double      scale = r->scale[d], size = (double)in, out = scale * size;
    if (strcmp(mode, "asymmetric") == 0)
        return (double)x / scale;
    if (strcmp(mode, "align_corners") == 0)
        return out == 1 ? 0 : (double)x * (size - 1) / (out - 1);
    if (strcmp(mode, "tf_crop_and_resize") == 0) {
        double span = (r->roi_end[d] - r->roi_start[d]) * (size - 1);
        return r->roi_start[d] * (size - 1) +
               (r->out[d] == 1 ? span / 2 : (double)x * span / (double)(r->out[d] - 1));
    }
    if (strcmp(mode, "tf_half_pixel_for_nn") == 0)
        return ((double)x + 0.5) / scale;
    if (strcmp(mode, "pytorch_half_pixel") == 0 && r->out[d] == 1)
        return -0.5;
    double centre = ((double)x + 0.5) / scale - 0.5;
    if (strcmp(mode, "half_pixel_symmetric") == 0)
        centre += size / 2 * (1 - (double)r->out[d] / out);
    return centre;
}

static double cubic_weight(double x, double a)
{
    x = fabs(x);
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static int64_t nearest_at(const struct sac_resize *r, double x)
{
    if (strcmp(r->nearest, "floor") == 0)
        return (int64_t)floor(x);
    if (strcmp(r->nearest, "ceil") == 0)
        return (int64_t)ceil(x);
    if (strcmp(r->nearest, "round_prefer_ceil") == 0)
        return (int64_t)floor(x + 0.5);
    return (int64_t)ceil(x - 0.5);
}

/* How far, in input samples, the kernel reaches to each side; antialiasing widens it when
 * shrinking. */
static double kernel_radius(const struct sac_resize *r, double shrink)
{
    return (r->mode == SAC_RESIZE_CUBIC ? 2 : 1) / shrink;
}

static void axis_taps(const struct sac_resize *r, int64_t in, double x, double shrink,
                      struct axis_plan *p, int64_t out)
{
    double  *weights = p->weights + out * p->taps, sum = 0;
    int64_t *indices = p->indices + out * p->taps;
    int64_t  start =
        r->mode == SAC_RESIZE_NEAREST ? nearest_at(r, x) : (int64_t)floor(x) + 1 - p->taps / 2;
    for (int k = 0; k < p->taps; k++) {
        int64_t at = start + k;
        double  distance = ((double)at - x) * shrink;
        weights[k] = r->mode == SAC_RESIZE_NEAREST ? 1
                     : r->mode == SAC_RESIZE_CUBIC ? cubic_weight(distance, r->cubic_a)
                                                   : fmax(0, 1 - fabs(distance));
        if (r->exclude_outside && (at < 0 || at >= in))
            weights[k] = 0;
        sum += weights[k];
        indices[k] = SAC_CLAMP(at, 0, in - 1);
    }
    for (int k = 0; k < p->taps && sum != 0; k++)
        weights[k] /= sum;
}

static void axis_plan_finish(struct axis_plan *p)
{
    sac_free(p->weights);
    sac_free(p->indices);
    sac_free(p->outside);
}

static bool axis_plan_init(struct axis_plan *p, const struct sac_resize *r, int d, int64_t in)
{
    size_t out = (size_t)r->out[d];
    double shrink = r->antialias && r->scale[d] < 1 ? r->scale[d] : 1;
    bool   crop = strcmp(r->coordinates, "tf_crop_and_resize") == 0;
    double radius = ceil(kernel_radius(r, shrink));
    if (radius > (double)(1 << 24))
        return false;
    p->taps = r->mode == SAC_RESIZE_NEAREST ? 1 : 2 * (int)radius;
    p->weights = sac_calloc(out, (size_t)p->taps * sizeof *p->weights);
    p->indices = sac_calloc(out, (size_t)p->taps * sizeof *p->indices);
    p->outside = sac_calloc(out, sizeof *p->outside);
    if (!p->weights || !p->indices || !p->outside)
        return false;
    for (int64_t i = 0; i < r->out[d]; i++) {
        double x = source_at(r, d, in, i);
        p->outside[i] = crop && (x < 0 || x > (double)(in - 1));
        axis_taps(r, in, SAC_CLAMP(x, -0x1p40, 0x1p40), shrink, p, i);
    }
    return true;
}

/* ---- doing an axis ---- */

/* dst[outer][out][inner] from src[outer][in][inner]. Nearest copies, whatever the dtype. */
static void copy_axis(const struct axis_plan *p, int64_t outer, int64_t in, int64_t out,
                      size_t inner_bytes, const char *src, char *dst)
{
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < out; i++, dst += inner_bytes)
            memcpy(dst, src + (size_t)(o * in + p->indices[i]) * inner_bytes, inner_bytes);
}

static void blend_axis(const struct axis_plan *p, int64_t outer, int64_t in, int64_t out,
                       int64_t inner, const double *src, double *dst)
{
    memset(dst, 0, (size_t)(outer * out * inner) * sizeof *dst);
    for (int64_t o = 0; o < outer; o++, src += in * inner)
        for (int64_t i = 0; i < out; i++, dst += inner)
            for (int k = 0; k < p->taps; k++) {
                const double *row = src + p->indices[i * p->taps + k] * inner;
                double        weight = p->weights[i * p->taps + k];
                for (int64_t j = 0; j < inner && weight != 0; j++)
                    dst[j] += weight * row[j];
            }
}

/* Values outside the crop, over all axes. */
static void extrapolate(const struct sac_operand *out, const struct axis_plan *plans, double value)
{
    for (int64_t i = 0, n = sac_operand_elements(out); i < n; i++) {
        int64_t rest = i;
        bool    outside = false;
        for (int d = out->rank - 1; d >= 0; d--) {
            outside |= plans[d].outside[rest % out->dims[d]];
            rest /= out->dims[d];
        }
        if (outside)
            sac_operand_set(out, i, value);
    }
}

/* Resizes axis by axis between two buffers of the class's elements. Takes ownership of `from`;
 * returns the result. */
static void *resize_axes(const struct sac_resize *r, const struct sac_operand *in,
                         const struct axis_plan *plans, void *from)
{
    size_t  bytes = r->mode == SAC_RESIZE_NEAREST ? sac_dtype_bytes(in->dtype) : sizeof(double);
    int64_t dims[SAC_RANK_MAX];
    memcpy(dims, in->dims, sizeof dims);
    for (int d = 0; from && d < in->rank; d++) {
        int64_t outer = sac_dims_product(d, dims),
                inner = sac_dims_product(in->rank - d - 1, dims + d + 1);
        if (r->out[d] == dims[d] && r->scale[d] == 1 && r->roi_start[d] == 0 && r->roi_end[d] == 1)
            continue;
        void *to = sac_calloc((size_t)(outer * r->out[d] * inner), bytes);
        if (to && r->mode == SAC_RESIZE_NEAREST)
            copy_axis(&plans[d], outer, dims[d], r->out[d], (size_t)inner * bytes, from, to);
        else if (to)
            blend_axis(&plans[d], outer, dims[d], r->out[d], inner, from, to);
        sac_free(from);
        from = to;
        dims[d] = r->out[d];
    }
    return from;
}

/* The input as a buffer of our own. */
static void *resize_begin(const struct sac_resize *r, const struct sac_operand *in)
{
    int64_t n = sac_operand_elements(in);
    if (r->mode == SAC_RESIZE_NEAREST) {
        void *copy = sac_alloc(sac_operand_bytes(in));
        return copy ? memcpy(copy, in->data, sac_operand_bytes(in)) : NULL;
    }
    double *copy = sac_alloc((size_t)n * sizeof *copy);
    for (int64_t i = 0; copy && i < n; i++)
        copy[i] = sac_operand_get(in, i);
    return copy;
}

static sac_result resize_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0], *out = &c->out[0];
    struct axis_plan          plans[SAC_RANK_MAX] = {{0}};
    struct sac_resize         r;
    bool                      ok = true;
    SAC_TRY(sac_resize_read(c, &r));
    for (int d = 0; d < in->rank && ok; d++)
        ok = axis_plan_init(&plans[d], &r, d, in->dims[d]);
    void *result = ok ? resize_axes(&r, in, plans, resize_begin(&r, in)) : NULL;
    if (result && r.mode == SAC_RESIZE_NEAREST)
        memcpy(out->data, result, sac_operand_bytes(out));
    for (int64_t i = 0, n = sac_operand_elements(out);
         result && r.mode != SAC_RESIZE_NEAREST && i < n; i++)
        sac_operand_set(out, i, ((double *)result)[i]);
    if (result && strcmp(r.coordinates, "tf_crop_and_resize") == 0)
        extrapolate(out, plans, r.extrapolation);
    for (int d = 0; d < in->rank; d++)
        axis_plan_finish(&plans[d]);
    sac_free(result);
    return result ? SAC_OK : sac_op_no_memory(c);
}

/* A scale of 1 leaves the batch unchanged; sizes would fix it. */
static bool resize_batch(struct sac_batch_walk *w, struct sac_node *n, int k, int *out)
{
    const struct sac_value *sizes = n->input_count > 3 ? n->inputs[3] : NULL;
    const int64_t          *axes;
    *out = 0;
    if (k != 0)
        return sac_batch_refuse(w, "the batch is not its first axis");
    size_t count = sac_attr_ints(n, "axes", &axes);
    if (count)
        return !sac_batch_contains(axes, count, 0) || sac_batch_refuse(w, "it scales the batch");
    return !sizes || !sizes->data || sac_batch_refuse(w, "its sizes fix the batch");
}

const struct sac_op sac_row_Resize = {SAC_ROW(Resize, 10, 1, 4, 1), SAC_TOLERANCE(1e-5f, 1e-5f),
                                      .shape = resize_shape, .ref = resize_ref,
                                      .batch = resize_batch};
const struct sac_op sac_row_Upsample = {SAC_ROW(Upsample, 7, 1, 2, 1), SAC_TOLERANCE(1e-5f, 1e-5f),
                                        .shape = resize_shape, .ref = resize_ref,
                                        .batch = sac_batch_first};
