/* SPDX-License-Identifier: Apache-2.0 */
/* Conv: the direct sum, one output plane at a time, with its inner loop along a row. */
#include "engine/ops/batch.h"
#include "engine/ops/conv.h"
#include "engine/ops/util.h"
#include "engine/ops/window.h"

struct job {
    const struct sac_window *w;
    const void              *x, *weights, *bias; /* bias may be NULL */
    void                    *y;
    int64_t                  in_channels, out_channels, group;
};

/* y[o] += weight * x[o * stride + offset] over the plane, where the tap is inside. */
#define TAP(type)                                                                               \
    static void tap_##type(const struct sac_window *w, const type *x, type weight,              \
                           const int64_t *k, type *y)                                           \
    {                                                                                           \
        int64_t offset[3], first[3], last[3];                                                   \
        for (int d = 0; d < 3; d++) {                                                           \
            offset[d] = k[d] * w->dilation[d] - w->pad_begin[d];                                \
            sac_window_span(offset[d], w->stride[d], w->in[d], w->out[d], &first[d], &last[d]); \
        }                                                                                       \
        for (int64_t z = first[0]; z < last[0]; z++)                                            \
            for (int64_t r = first[1]; r < last[1]; r++) {                                      \
                int64_t from = (z * w->stride[0] + offset[0]) * w->in[1];                       \
                from = (from + r * w->stride[1] + offset[1]) * w->in[2] + offset[2];            \
                type *row = y + (z * w->out[1] + r) * w->out[2];                                \
                if (w->stride[2] == 1)                                                          \
                    for (int64_t i = first[2]; i < last[2]; i++)                                \
                        row[i] += weight * x[from + i];                                         \
                else                                                                            \
                    for (int64_t i = first[2]; i < last[2]; i++)                                \
                        row[i] += weight * x[from + i * w->stride[2]];                          \
            }                                                                                   \
    }

/* One output plane: piece is its number over the whole batch. */
/* clang-format off */
#define PLANE(type) \
    static void plane_##type(void *arg, int piece, int worker) \
    { \
        const struct job        *j = arg; \
        const struct sac_window *w = j->w; \
        int64_t     in_plane = sac_dims_product(3, w->in); \
        int64_t     out_plane = sac_dims_product(3, w->out); \
        int64_t     taps = sac_dims_product(3, w->kernel), channels = j->in_channels / j->group; \
        int64_t     image = piece / j->out_channels, oc = piece % j->out_channels; \
        int64_t     group = oc / (j->out_channels / j->group); \
        const type *x = \
            (const type *)j->x + (image * j->in_channels + group * channels) * in_plane; \
        const type *weights = (const type *)j->weights + oc * channels * taps; \
        type       *y = (type *)j->y + piece * out_plane; \
        type        bias = j->bias ? ((const type *)j->bias)[oc] : 0; \
        (void)worker; \
        for (int64_t i = 0; i < out_plane; i++) \
            y[i] = bias; \
        for (int64_t ic = 0; ic < channels; ic++, x += in_plane) \
            for (int64_t t = 0; t < taps; t++) { \
                int64_t row = t / w->kernel[2]; \
                int64_t k[3] = {row / w->kernel[1], row % w->kernel[1], t % w->kernel[2]}; \
                tap_##type(w, x, *weights++, k, y); \
            } \
    }
TAP(float)
TAP(double)
TAP(uint32_t) /* of int32 numbers: sums wrap */
PLANE(float)
PLANE(double)
PLANE(uint32_t)
/* clang-format on */

sac_result sac_conv_shape(struct sac_op_call *c, int input, int weights, int bias,
                          enum sac_dtype dtype)
{
    const struct sac_operand *x = &c->in[input], *w = &c->in[weights];
    struct sac_window         win;
    int64_t                   group = sac_attr_int(c->node, "group", 1);
    SAC_CHECK(c, w->rank == x->rank && w->rank >= 3, "weights of %d dimensions for an input of %d",
              w->rank, x->rank);
    SAC_TRY(sac_window_read(c, input, w->dims + 2, &win));
    SAC_CHECK(c,
              group >= 1 && x->dims[1] % group == 0 && w->dims[0] % group == 0 &&
                  w->dims[1] == x->dims[1] / group,
              "weights [%lld,%lld,...] do not fit %lld channels in %lld groups",
              (long long)w->dims[0], (long long)w->dims[1], (long long)x->dims[1],
              (long long)group);
    SAC_CHECK(c, w->dims[0] <= INT32_MAX && x->dims[0] <= INT32_MAX / SAC_MAX(w->dims[0], 1),
              "%lld images of %lld channels", (long long)x->dims[0], (long long)w->dims[0]);
    if (sac_op_has(c, bias))
        SAC_CHECK(c, c->in[bias].rank == 1 && c->in[bias].dims[0] == w->dims[0],
                  "the bias is not one number for each of %lld channels", (long long)w->dims[0]);
    int64_t dims[SAC_RANK_MAX] = {x->dims[0], w->dims[0]};
    memcpy(dims + 2, win.out + SAC_WINDOW_DIMS - win.rank, (size_t)win.rank * sizeof *dims);
    return sac_shape_out(c, 0, dtype, x->rank, dims);
}

/* x, weights, bias and y are float, double or int32 as dtype says. */
void sac_conv_run(struct sac_op_call *c, int input, int weights, enum sac_dtype dtype,
                  const void *x, const void *w, const void *bias, void *y)
{
    struct sac_window win;
    if (sac_window_read(c, input, c->in[weights].dims + 2, &win) != SAC_OK)
        return; /* cannot happen: the shape function has checked it */
    struct job j = {.w = &win,
                    .x = x,
                    .weights = w,
                    .bias = bias,
                    .y = y,
                    .in_channels = c->in[input].dims[1],
                    .out_channels = c->in[weights].dims[0],
                    .group = sac_attr_int(c->node, "group", 1)};
    int        planes = (int)(c->in[input].dims[0] * j.out_channels);
    sac_worker_pool_run(c->workers, planes,
                        dtype == SAC_F64   ? plane_double
                        : dtype == SAC_F32 ? plane_float
                                           : plane_uint32_t,
                        &j);
}

static sac_result conv_shape(struct sac_op_call *c)
{
    for (int i = 0; i < c->in_count; i++)
        SAC_CHECK(c,
                  !c->in[i].present ||
                      (sac_dtype_is_float(c->in[i].dtype) && c->in[i].dtype == c->in[0].dtype),
                  "input %d of dtype %s, input 0 of %s", i, sac_in_dtype(c, i), sac_in_dtype(c, 0));
    return sac_conv_shape(c, 0, 1, 2, c->in[0].dtype);
}

static const struct sac_operand *conv_bias(const struct sac_op_call *c)
{
    return sac_op_has(c, 2) ? &c->in[2] : NULL;
}

/* The half precisions: through float copies. */
static sac_result conv_half(struct sac_op_call *c)
{
    const struct sac_operand *x = &c->in[0], *w = &c->in[1], *b = conv_bias(c), *y = &c->out[0];
    const float *fx = sac_floats(x), *fw = sac_floats(w), *fb = b ? sac_floats(b) : NULL;
    float       *fy = sac_alloc((size_t)sac_operand_elements(y) * sizeof *fy);
    sac_result   res = SAC_OK;
    if (fx && fw && fy && (fb || !b)) {
        sac_conv_run(c, 0, 1, SAC_F32, fx, fw, fb, fy);
        sac_store(y->dtype, y->data, 0, sac_operand_elements(y), fy);
    } else
        res = sac_op_no_memory(c);
    sac_floats_done(x, fx);
    sac_floats_done(w, fw);
    if (b)
        sac_floats_done(b, fb);
    sac_free(fy);
    return res;
}

static sac_result conv_ref(struct sac_op_call *c)
{
    const struct sac_operand *b = conv_bias(c);
    if (c->in[0].dtype != SAC_F32 && c->in[0].dtype != SAC_F64)
        return conv_half(c);
    sac_conv_run(c, 0, 1, c->in[0].dtype, c->in[0].data, c->in[1].data, b ? b->data : NULL,
                 c->out[0].data);
    return SAC_OK;
}

static int64_t conv_flops(const struct sac_op_call *c)
{
    const struct sac_operand *w = &c->in[1];
    return 2 * sac_operand_elements(&c->out[0]) * sac_dims_product(w->rank - 1, w->dims + 1);
}

const struct sac_op sac_row_Conv = {SAC_ROW(Conv, 1, 2, 3, 1), SAC_TOLERANCE(1e-4f, 1e-4f),
                                    .shape = conv_shape,       .ref = conv_ref,
                                    .flops = conv_flops,       .batch = sac_batch_first};
