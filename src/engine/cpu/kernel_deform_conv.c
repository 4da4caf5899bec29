/* SPDX-License-Identifier: Apache-2.0 */
/* DeformConv: what its moved taps see of some pixels, side by side, then a convolution over that,
 * whose kernel is as long as a pixel has taps and whose stride is as long. */
#include <stdio.h>
#include <string.h>

#include "engine/cpu/conv.h"
#include "engine/cpu/map.h"
#include "engine/ops/util.h"
#include "engine/ops/window.h"

enum { X, WEIGHTS, OFFSET, BIAS, MASK };

enum {
    TILE_BYTES = 256 << 10, /* of what taps see: beside the weights of a block in the L2 cache */
    TILE_LEAST = 24,        /* pixels; below that reading the weights takes longest */
    TILE_MOST = 84,
    TILE_STEP = 12,    /* whole tiles of the convolution */
    FLOPS_PER_NS = 50, /* for cutting work into pieces only */
    SAMPLES_PER_NS = 4
};

/* An operand in either layout: elements from one to the next. */
struct lie {
    int64_t sample, pixel, channel;
};

struct deform_state {
    struct sac_conv   conv; /* of one tile */
    struct sac_window w;
    struct sac_map    x, y;
    struct lie        offset, mask;
    bool              has_mask;
    int64_t           taps, offset_groups, plane; /* plane: pixels of an output map */
    int64_t           tile, tiles;                /* pixels of one; tiles of a sample */
    int               pieces;
};

struct deform_job {
    const struct deform_state *s;
    const float               *x, *offset, *mask;
    float                     *y, *seen; /* seen: [threads][tile][taps][channels] */
};

static struct sac_kernel_offer deform_supports(struct sac_device                *dev,
                                               const struct sac_kernel_question *q)
{
    struct sac_kernel_offer   offer = sac_kernel_take(q);
    const struct sac_op_call *c = q->call;
    (void)dev;
    if (sac_cpu_level() < SAC_CPU_AVX2 || !sac_call_is_float(c) ||
        sac_operand_elements(&c->in[X]) == 0 || sac_operand_elements(&c->out[0]) == 0)
        return sac_kernel_refuse("not float32, empty, or no AVX2");
    if (!c->in[WEIGHTS].data || (sac_op_has(c, BIAS) && !c->in[BIAS].data))
        return sac_kernel_refuse("weights are not constant");
    offer.in_layout[X] = offer.out_layout[0] = SAC_LAYOUT_CHANNELS_LAST;
    offer.in_layout[WEIGHTS] = offer.in_layout[BIAS] = SAC_LAYOUT_PLAIN;
    offer.strided = true;
    offer.in_place = -1;
    return offer;
}

static struct lie lie_of(const struct sac_kernel_plan *plan, int input)
{
    const struct sac_map m = sac_map_in(plan, input);
    if (plan->in_layout[input] == SAC_LAYOUT_CHANNELS_LAST)
        return (struct lie){m.sample, m.pixel, 1};
    return (struct lie){m.c * m.h * m.w, 1, m.h * m.w};
}

static void set_conv(struct deform_state *s, const struct sac_op_call *c)
{
    const int64_t groups = sac_attr_int(c->node, "group", 1);
    s->conv = sac_conv_product(s->tile, s->x.c, s->y.c, s->tile, s->y.pixel);
    struct sac_conv *v = &s->conv;
    v->groups = groups;
    v->group_in_c = s->x.c / groups;
    v->group_out_c = s->y.c / groups;
    v->kernel_w = v->stride_w = (int)s->taps;
    v->in_w = s->tile * s->taps;
    v->in.pixel = s->x.c;
    v->merged = groups == 1;
}

static void cut(struct deform_state *s, const struct sac_device *dev)
{
    const int64_t all = s->x.n * s->plane, depth = s->taps * s->x.c;
    const int64_t ns =
        2 * all * depth * s->conv.group_out_c / FLOPS_PER_NS + all * depth / SAMPLES_PER_NS;
    s->tiles = (s->plane + s->tile - 1) / s->tile;
    s->pieces = sac_pieces(dev, s->x.n * s->tiles, ns);
}

static bool make(struct deform_state *s, const struct sac_device *dev,
                 const struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    s->x = sac_map_in(plan, X);
    s->y = sac_map_out(plan, 0);
    s->taps = sac_dims_product(3, s->w.kernel);
    s->plane = s->y.h * s->y.w;
    s->offset_groups = sac_attr_int(c->node, "offset_group", 1);
    s->offset = lie_of(plan, OFFSET);
    s->has_mask = sac_op_has(c, MASK);
    if (s->has_mask)
        s->mask = lie_of(plan, MASK);
    const int64_t fits = TILE_BYTES / (int64_t)sizeof(float) / (s->taps * s->x.c);
    s->tile = SAC_MIN(SAC_CLAMP(fits / TILE_STEP * TILE_STEP, TILE_LEAST, TILE_MOST), s->plane);
    set_conv(s, c);
    cut(s, dev);
    const struct sac_conv_weights w = {c->in[WEIGHTS].data, s->conv.group_in_c * s->taps, s->taps,
                                       sac_op_has(c, BIAS) ? c->in[BIAS].data : NULL};
    return sac_conv_pack(&s->conv, &w);
}

static void deform_release(void *state)
{
    struct deform_state *s = state;
    if (s) {
        sac_free(s->conv.weights);
        sac_free(s->conv.bias);
    }
    sac_free(s);
}

static sac_result deform_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    struct deform_state      *s = sac_new(struct deform_state);
    if (!s || sac_window_read(c, X, c->in[WEIGHTS].dims + 2, &s->w) != SAC_OK ||
        !make(s, dev, plan)) {
        deform_release(s);
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    }
    plan->scratch_bytes =
        (size_t)(sac_worker_pool_threads(dev->workers) * s->tile * s->taps * s->x.c) *
        sizeof(float);
    snprintf(plan->implementation, sizeof plan->implementation, "%s", sac_simd_name());
    plan->state = s;
    return SAC_OK;
}

/* ---- what a tap sees ---- */

/* `count` channels of a map at a place between four pixels; those beyond its borders are 0. What is
 * no number stays so. */
static void see(const struct sac_map *m, const float *x, double at_y, double at_x, float mask,
                float *to, int64_t count)
{
    const float *from[4];
    float        weight[4];
    int          near = 0;
    if (!(at_y > -1 && at_x > -1 && at_y < (double)m->h && at_x < (double)m->w)) {
        const float nothing = mask * (float)((at_y - at_y) + (at_x - at_x));
        for (int64_t i = 0; i < count; i++)
            to[i] = nothing;
        return;
    }
    const int64_t y0 = (int64_t)(at_y + 1) - 1, x0 = (int64_t)(at_x + 1) - 1;
    const float   down = (float)(at_y - (double)y0), across = (float)(at_x - (double)x0);
    for (int k = 0; k < 4; k++) {
        const int64_t y = y0 + k / 2, column = x0 + k % 2;
        if (y < 0 || column < 0 || y >= m->h || column >= m->w)
            continue;
        from[near] = x + (y * m->w + column) * m->pixel;
        weight[near++] = (k / 2 ? down : 1 - down) * (k % 2 ? across : 1 - across) * mask;
    }
    SAC_SIMD_PICK(sac_map_weighted_sum)(near, from, weight, to, count);
}

/* All taps of pixel p of the output: [taps][channels]. */
static void see_pixel(const struct deform_job *j, int64_t n, int64_t p, float *to)
{
    const struct deform_state *s = j->s;
    const struct sac_window   *w = &s->w;
    const int64_t              count = s->x.c / s->offset_groups;
    const int64_t              top = p / s->y.w * w->stride[1] - w->pad_begin[1];
    const int64_t              left = p % s->y.w * w->stride[2] - w->pad_begin[2];
    const float               *offset = j->offset + n * s->offset.sample + p * s->offset.pixel;
    const float *mask = s->has_mask ? j->mask + n * s->mask.sample + p * s->mask.pixel : NULL;
    for (int64_t t = 0; t < s->taps; t++)
        for (int64_t g = 0; g < s->offset_groups; g++) {
            const int64_t at = g * s->taps + t;
            const double  y = (double)(top + t / w->kernel[2] * w->dilation[1]) +
                             offset[2 * at * s->offset.channel];
            const double x = (double)(left + t % w->kernel[2] * w->dilation[2]) +
                             offset[(2 * at + 1) * s->offset.channel];
            see(&s->x, j->x + n * s->x.sample + g * count, y, x,
                mask ? mask[at * s->mask.channel] : 1, to + t * s->x.c + g * count, count);
        }
}

static void deform_piece(void *arg, int piece, int worker)
{
    const struct deform_job   *j = arg;
    const struct deform_state *s = j->s;
    const int64_t              units = s->x.n * s->tiles, step = s->taps * s->x.c;
    float                     *seen = j->seen + worker * s->tile * step;
    for (int64_t u = units * piece / s->pieces; u < units * (piece + 1) / s->pieces; u++) {
        const int64_t   n = u / s->tiles, first = u % s->tiles * s->tile;
        struct sac_conv v = s->conv;
        v.out_w = v.last_w = SAC_MIN(s->tile, s->plane - first);
        v.in_w = v.out_w * s->taps;
        for (int64_t i = 0; i < v.out_w; i++)
            see_pixel(j, n, first + i, seen + i * step);
        SAC_SIMD_PICK(sac_conv_rows)
        (&v, seen, NULL, j->y + n * s->y.sample + first * s->y.pixel, 0, 1);
    }
}

static sac_result deform_run(struct sac_device *dev, void *state, void *const *in, void *const *out,
                             void *scratch, struct sac_device_stream *stream)
{
    const struct deform_state *s = state;
    struct deform_job          job = {.s = s,
                                      .x = in[X],
                                      .offset = in[OFFSET],
                                      .mask = s->has_mask ? in[MASK] : NULL,
                                      .y = out[0],
                                      .seen = scratch};
    (void)stream;
    sac_worker_pool_run(dev->workers, s->pieces, deform_piece, &job);
    return SAC_OK;
}

const struct sac_kernel sac_cpu_DeformConv = {SAC_OP_DeformConv, deform_supports, deform_prepare,
                                              deform_run, deform_release};
