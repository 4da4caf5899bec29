/* SPDX-License-Identifier: Apache-2.0 */
/* MaxPool, AveragePool, GlobalAveragePool and the mean over all of each channel's map. */
#include <stdio.h>
#include <string.h>

#include "engine/cpu/cpu.h"
#include "engine/cpu/map.h"
#include "engine/ops/window.h"
#include "engine/ops/util.h"

/* ---- windows ---- */

struct pool_state {
    struct sac_units       rows;
    struct sac_window_pool pool;
    enum sac_dtype         dtype;
};

/* The largest of bytes; their mean would have to be rounded. */
static bool is_of_bytes(const struct sac_op_call *c)
{
    return c->node->op->id == SAC_OP_MaxPool &&
           (c->in[0].dtype == SAC_U8 || c->in[0].dtype == SAC_I8);
}

static struct sac_kernel_offer pool_supports(struct sac_device                *dev,
                                             const struct sac_kernel_question *q)
{
    struct sac_kernel_offer   offer = sac_kernel_take(q);
    const struct sac_op_call *c = q->call;
    (void)dev;
    const bool fits = is_of_bytes(c) ? sac_map_fits(&c->in[0])
                                     : sac_call_is_float(q->call) && sac_volume_fits(&c->in[0]);
    if (sac_cpu_level() < SAC_CPU_AVX2 || !fits)
        return sac_kernel_refuse("not float32 of one to three spatial dimensions, or no AVX2");
    if (c->out_count > 1 && c->out[1].present)
        return sac_kernel_refuse("indices are wanted");
    offer.in_layout[0] = offer.out_layout[0] = SAC_LAYOUT_CHANNELS_LAST;
    offer.strided = true;
    return offer;
}

static void pool_rows(const void *state, void *const *in, void *const *out, int64_t first,
                      int64_t end)
{
    const struct pool_state *s = state;
    if (s->dtype == SAC_F32)
        SAC_SIMD_PICK(sac_map_pool)(&s->pool, in[0], out[0], first, end);
    else
        SAC_SIMD_PICK(sac_map_pool_bytes)
    (&s->pool, s->dtype == SAC_I8, in[0], out[0], first, end);
}

static sac_result pool_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    struct sac_window         w;
    sac_result                res = sac_window_read(c, 0, NULL, &w);
    if (res != SAC_OK)
        return res;
    struct pool_state *s = sac_new(struct pool_state);
    if (!s)
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    const struct sac_map in = sac_map_in(plan, 0), out = sac_map_out(plan, 0);
    s->dtype = c->in[0].dtype;
    s->pool =
        (struct sac_window_pool){.average = c->node->op->id == SAC_OP_AveragePool,
                                 .count_pad = sac_attr_int(c->node, "count_include_pad", 0) != 0,
                                 .c = in.c,
                                 .in_h = in.h,
                                 .in_w = in.w,
                                 .out_h = out.h,
                                 .out_w = out.w,
                                 .in_row = in.w * in.pixel,
                                 .in_pixel = in.pixel,
                                 .in_sample = in.sample,
                                 .out_row = out.w * out.pixel,
                                 .out_pixel = out.pixel,
                                 .out_sample = out.sample,
                                 .in_d = in.d,
                                 .out_d = out.d,
                                 .in_slice = in.h * in.w * in.pixel,
                                 .out_slice = out.h * out.w * out.pixel,
                                 .kernel_d = (int)w.kernel[0],
                                 .stride_d = (int)w.stride[0],
                                 .dilation_d = (int)w.dilation[0],
                                 .pad_front = (int)w.pad_begin[0],
                                 .pad_back = (int)w.pad_end[0],
                                 .kernel_h = (int)w.kernel[1],
                                 .kernel_w = (int)w.kernel[2],
                                 .stride_h = (int)w.stride[1],
                                 .stride_w = (int)w.stride[2],
                                 .dilation_h = (int)w.dilation[1],
                                 .dilation_w = (int)w.dilation[2],
                                 .pad_top = (int)w.pad_begin[1],
                                 .pad_left = (int)w.pad_begin[2],
                                 .pad_bottom = (int)w.pad_end[1],
                                 .pad_right = (int)w.pad_end[2]};
    sac_units_init(&s->rows, dev, out.n * out.d * out.h,
                   sac_operand_elements(&c->out[0]) * sac_dims_product(3, w.kernel) / 16,
                   pool_rows);
    snprintf(plan->implementation, sizeof plan->implementation, "%s", sac_simd_name());
    plan->state = s;
    return SAC_OK;
}

const struct sac_kernel sac_cpu_MaxPool = {SAC_OP_MaxPool, pool_supports, pool_prepare,
                                           sac_units_run, sac_free};
const struct sac_kernel sac_cpu_AveragePool = {SAC_OP_AveragePool, pool_supports, pool_prepare,
                                               sac_units_run, sac_free};

/* ---- means per channel ---- */

/* Maps of rank 3 to 5; of ReduceMeans those over exactly the spatial dims. The result is
 * [N,C(,1,1,1)]. */
bool sac_map_means_fit(const struct sac_op_call *c)
{
    int axes[SAC_RANK_MAX], count = 0;
    if (!sac_volume_fits(&c->in[0]))
        return false;
    if (c->node->op->id == SAC_OP_GlobalAveragePool)
        return true;
    if ((c->in_count > 1 && c->in[1].present && !c->in[1].data) ||
        sac_op_axes(c, "axes", 1, c->in[0].rank, axes, &count) != SAC_OK)
        return false;
    bool maps = count == c->in[0].rank - 2;
    for (int i = 0; i < count; i++)
        maps &= axes[i] >= 2;
    return maps;
}

struct sac_kernel_offer sac_map_means_supports(struct sac_device                *dev,
                                               const struct sac_kernel_question *q)
{
    struct sac_kernel_offer   offer = sac_kernel_take(q);
    const struct sac_op_call *c = q->call;
    (void)dev;
    if (sac_cpu_level() < SAC_CPU_AVX2 || c->in[0].dtype != SAC_F32 || !sac_map_means_fit(c) ||
        sac_operand_elements(&c->in[0]) == 0)
        return sac_kernel_refuse("not a float32 mean over each channel's map, or no AVX2");
    if (offer.in_layout[0] != SAC_LAYOUT_CHANNELS_LAST)
        return sac_kernel_refuse("not channels last");
    offer.strided = true; /* the result is dense: its maps have one pixel, and no Concat reads them
                           */
    return offer;
}

/* Units are vectors of channels: the threads share one picture's map as well. */
struct means_state {
    struct sac_units units;
    struct sac_map   in;
    int64_t          vectors; /* of a sample */
};

static void means_units(const void *state, void *const *in, void *const *out, int64_t first,
                        int64_t end)
{
    const struct means_state *s = state;
    const int64_t             lanes = sac_simd_lanes();
    for (int64_t u = first, next; u < end; u = next) {
        const int64_t n = u / s->vectors, channel = u % s->vectors * lanes;
        next = SAC_MIN(end, (n + 1) * s->vectors);
        SAC_SIMD_PICK(sac_map_means)
        ((const float *)in[0] + n * s->in.sample + channel, s->in.d * s->in.h * s->in.w,
         s->in.pixel, SAC_MIN((next - u) * lanes, s->in.c - channel),
         (float *)out[0] + n * s->in.c + channel);
    }
}

sac_result sac_map_means_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    struct means_state *s = sac_new(struct means_state);
    if (!s)
        return SAC_OP_FAIL(plan->call, SAC_ERR_MEMORY, "no memory for its kernel");
    s->in = sac_map_in(plan, 0);
    s->vectors = (s->in.c + sac_simd_lanes() - 1) / sac_simd_lanes();
    sac_units_init(&s->units, dev, s->in.n * s->vectors,
                   s->in.n * s->in.c * s->in.d * s->in.h * s->in.w / 16, means_units);
    snprintf(plan->implementation, sizeof plan->implementation, "%s", sac_simd_name());
    plan->state = s;
    return SAC_OK;
}

const struct sac_kernel sac_cpu_GlobalAveragePool = {SAC_OP_GlobalAveragePool,
                                                     sac_map_means_supports, sac_map_means_prepare,
                                                     sac_units_run, sac_free};
