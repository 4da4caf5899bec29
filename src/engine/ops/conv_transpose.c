/* SPDX-License-Identifier: Apache-2.0 */
/* ConvTranspose: every input element adds its kernel to the output around its place. */
#include "engine/ops/batch.h"
#include "engine/ops/util.h"
#include "engine/ops/window.h"

struct job {
    const struct sac_window *w;
    const double            *x, *weights, *bias; /* bias may be NULL */
    double                  *y;
    int64_t                  in_channels, out_channels, group;
};

static sac_result transpose_shape(struct sac_op_call *c)
{
    const struct sac_operand *x = &c->in[0], *w = &c->in[1];
    struct sac_window         win;
    int64_t                   group = sac_attr_int(c->node, "group", 1), channels;
    SAC_CHECK(c, sac_dtype_is_float(x->dtype) && w->dtype == x->dtype, "inputs of dtypes %s and %s",
              sac_in_dtype(c, 0), sac_in_dtype(c, 1));
    SAC_CHECK(c, w->rank == x->rank && w->rank >= 3, "weights of %d dimensions for an input of %d",
              w->rank, x->rank);
    SAC_CHECK(c,
              group >= 1 && w->dims[0] == x->dims[1] && x->dims[1] % group == 0 &&
                  !__builtin_mul_overflow(w->dims[1], group, &channels) && channels <= INT32_MAX &&
                  x->dims[0] <= INT32_MAX / SAC_MAX(channels, 1),
              "weights [%lld,%lld,...] do not fit %lld channels in %lld groups",
              (long long)w->dims[0], (long long)w->dims[1], (long long)x->dims[1],
              (long long)group);
    if (sac_op_has(c, 2))
        SAC_CHECK(c,
                  c->in[2].rank == 1 && c->in[2].dims[0] == channels && c->in[2].dtype == x->dtype,
                  "the bias is not one number for each of %lld channels", (long long)channels);
    SAC_TRY(sac_window_read_transposed(c, w->dims + 2, &win));
    int64_t dims[SAC_RANK_MAX] = {x->dims[0], channels};
    memcpy(dims + 2, win.out + SAC_WINDOW_DIMS - win.rank, (size_t)win.rank * sizeof *dims);
    return sac_shape_out(c, 0, x->dtype, x->rank, dims);
}

/* y[i * stride + offset] += weight * x[i] over the plane, where that is inside the output. */
static void add_tap(const struct sac_window *w, const double *x, double weight, const int64_t *k,
                    double *y)
{
    int64_t offset[3], first[3], last[3];
    for (int d = 0; d < 3; d++) {
        offset[d] = k[d] * w->dilation[d] - w->pad_begin[d];
        sac_window_span(offset[d], w->stride[d], w->out[d], w->in[d], &first[d], &last[d]);
    }
    for (int64_t z = first[0]; z < last[0]; z++)
        for (int64_t r = first[1]; r < last[1]; r++) {
            const double *row = x + (z * w->in[1] + r) * w->in[2];
            int64_t       to = (z * w->stride[0] + offset[0]) * w->out[1];
            to = (to + r * w->stride[1] + offset[1]) * w->out[2] + offset[2];
            for (int64_t i = first[2]; i < last[2]; i++)
                y[to + i * w->stride[2]] += weight * row[i];
        }
}

static void plane(void *arg, int piece, int worker)
{
    const struct job        *j = arg;
    const struct sac_window *w = j->w;
    int64_t in_plane = sac_dims_product(3, w->in), out_plane = sac_dims_product(3, w->out);
    int64_t taps = sac_dims_product(3, w->kernel);
    int64_t per_group = j->out_channels / j->group, inputs = j->in_channels / j->group;
    int64_t image = piece / j->out_channels, oc = piece % j->out_channels, group = oc / per_group;
    double *y = j->y + piece * out_plane;
    (void)worker;
    for (int64_t i = 0; i < out_plane; i++)
        y[i] = j->bias ? j->bias[oc] : 0;
    for (int64_t ic = group * inputs; ic < (group + 1) * inputs; ic++)
        for (int64_t t = 0; t < taps; t++) {
            int64_t row = t / w->kernel[2];
            int64_t k[3] = {row / w->kernel[1], row % w->kernel[1], t % w->kernel[2]};
            add_tap(w, j->x + (image * j->in_channels + ic) * in_plane,
                    j->weights[(ic * per_group + oc % per_group) * taps + t], k, y);
        }
}

static sac_result transpose_ref(struct sac_op_call *c)
{
    const struct sac_operand *x = &c->in[0], *w = &c->in[1], *y = &c->out[0];
    struct sac_window         win;
    SAC_TRY(sac_window_read_transposed(c, w->dims + 2, &win));
    struct job j = {.w = &win,
                    .in_channels = x->dims[1],
                    .out_channels = y->dims[1],
                    .group = sac_attr_int(c->node, "group", 1)};
    bool       bias = sac_op_has(c, 2);
    j.x = sac_doubles(x);
    j.weights = sac_doubles(w);
    j.bias = bias ? sac_doubles(&c->in[2]) : NULL;
    j.y = sac_alloc((size_t)sac_operand_elements(y) * sizeof *j.y);
    bool ok = j.x && j.weights && j.y && (j.bias || !bias);
    if (ok) {
        sac_worker_pool_run(c->workers, (int)(y->dims[0] * y->dims[1]), plane, &j);
        sac_write_doubles(y, 0, 1, sac_operand_elements(y), j.y);
    }
    sac_doubles_done(x, j.x);
    sac_doubles_done(w, j.weights);
    if (bias)
        sac_doubles_done(&c->in[2], j.bias);
    sac_free(j.y);
    return ok ? SAC_OK : sac_op_no_memory(c);
}

static int64_t transpose_flops(const struct sac_op_call *c)
{
    const struct sac_operand *w = &c->in[1];
    return 2 * sac_operand_elements(&c->in[0]) * sac_dims_product(w->rank - 1, w->dims + 1);
}

const struct sac_op sac_row_ConvTranspose = {
    SAC_ROW(ConvTranspose, 1, 2, 3, 1), SAC_TOLERANCE(1e-4f, 1e-4f),
    .shape = transpose_shape,           .ref = transpose_ref,
    .flops = transpose_flops,           .batch = sac_batch_first};
