/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares a quantised convolution for its inner loops: packs weights, folds scales and zero points
 * into what sums begin and end with, and brings input that they do not read into their form. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/cpu/quant.h"
#include "engine/ops/quant.h"

enum { FLOPS_PER_NS = 300, STAGED_PER_NS = 8 }; /* for cutting work into pieces only */

static bool has_vnni(void)
{
    return sac_cpu_level() >= SAC_CPU_AVX512_VNNI;
}

const char *sac_quant_name(void)
{
    return has_vnni() ? "avx512_vnni" : sac_simd_name();
}

/* The variant of fn for this CPU, which has at least AVX2. */
#if defined(__x86_64__)
#define PICK(fn) (has_vnni() ? fn##_avx512_vnni : SAC_SIMD_PICK(fn))
#else
#define PICK(fn) SAC_SIMD_PICK(fn)
#endif

/* ---- the input ---- */

struct stage_job {
    const struct sac_quant_stage *stage;
    const uint8_t                *from;
    uint8_t                      *to;
};

static void stage_piece(void *arg, int piece, int worker)
{
    const struct stage_job       *j = arg;
    const struct sac_quant_stage *g = j->stage;
    const int64_t                 total = g->n * g->pixels;
    (void)worker;
    for (int64_t at = total * piece / g->pieces, end = total * (piece + 1) / g->pieces; at < end;) {
        const int64_t n = at / g->pixels, pixel = at % g->pixels;
        const int64_t count = SAC_MIN(end - at, g->pixels - pixel);
        g->pixels_fn(g, j->from + n * g->from.sample + pixel * g->from.pixel,
                     j->to + at * g->groups * g->to_c, count);
        at += count;
    }
}

/* Decides whether the input goes through scratch, and has the convolution read it there. */
static void set_stage(struct sac_quant_state *s, const struct sac_device *dev,
                      struct sac_kernel_plan *plan, const struct sac_map *in)
{
    struct sac_conv        *v = &s->base.conv;
    struct sac_quant_stage *g = &s->stage;
    const bool              flip = plan->call->in[0].dtype == SAC_I8;
    v->in = (struct sac_conv_strides){in->sample, in->w * in->pixel, in->pixel, 1, 0};
    if (!flip && (v->group_in_c >= SAC_QUAD || v->depthwise))
        return;
    *g = (struct sac_quant_stage){.on = true,
                                  .flip = flip ? 0x80 : 0,
                                  .n = in->n,
                                  .pixels = in->h * in->w,
                                  .groups = v->groups,
                                  .from_c = v->group_in_c,
                                  .to_c = v->depthwise ? v->group_in_c
                                                       : SAC_MAX(v->group_in_c, SAC_QUAD),
                                  .from = *in};
    const int64_t pixel = g->groups * g->to_c, bytes = g->n * g->pixels * pixel;
    g->pixels_fn = PICK(sac_quant_stage);
    g->pieces = sac_pieces(dev, g->n * g->pixels, bytes / STAGED_PER_NS);
    v->in = (struct sac_conv_strides){g->pixels * pixel, in->w * pixel, pixel, 1, 0};
    v->group_in_c = g->to_c;
    plan->scratch_bytes = (size_t)bytes;
}

/* ---- the weights ---- */

/* The quad's first channel, and the first of them that no quad before it had. */
static int64_t quad_begin(const struct sac_conv *v, int64_t quad)
{
    return SAC_MIN(quad * SAC_QUAD, v->group_in_c - SAC_QUAD);
}

/* in_c: of them exist. */
static int8_t weight_of(const struct sac_conv *v, const struct sac_quant_weights *w,
                        const int8_t *group, int64_t in_c, int64_t out, int64_t quad, int64_t tap,
                        int k)
{
    const int64_t i = quad_begin(v, quad) + k;
    return out < v->group_out_c && i >= quad * SAC_QUAD && i < in_c
               ? group[out * w->out_stride + i * w->in_stride + tap]
               : 0;
}

/* One group to [blocks][kernel_h][kernel_w][quads][lanes of the block][4]. */
static void pack_group(const struct sac_conv *v, const struct sac_quant_weights *w, int64_t in_c,
                       int64_t g)
{
    const struct sac_quant_conv *q = v->quant;
    const int64_t taps = (int64_t)v->kernel_h * v->kernel_w, lanes = sac_simd_lanes();
    const int8_t *group = w->data + g * v->group_out_c * w->out_stride;
    int8_t       *to = q->weights + g * v->group_weights;
    for (int64_t oc = 0; oc < v->group_out_c; oc += v->block * lanes) {
        const int64_t vecs = SAC_MIN((v->group_out_c - oc + lanes - 1) / lanes, (int64_t)v->block);
        for (int64_t t = 0; t < taps; t++)
            for (int64_t quad = 0; quad < q->quads; quad++)
                for (int64_t lane = 0; lane < vecs * lanes; lane++)
                    for (int k = 0; k < SAC_QUAD; k++)
                        *to++ = weight_of(v, w, group, in_c,
                                          oc + sac_quant_conv_channel(q, vecs, lane), quad, t, k);
    }
}

/* What belongs to an output channel, at its lane: scale, bias, and what its sums begin with. */
static void set_lane(struct sac_quant_conv *q, const struct sac_conv *v,
                     const struct sac_quant_weights *w, int64_t in_c, int64_t channel, int64_t lane,
                     uint32_t zero)
{
    const int64_t taps = (int64_t)v->kernel_h * v->kernel_w;
    const float   unit = q->straight ? q->result_inverse : 1;
    uint32_t      all = 0;
    q->scale[lane] = w->scale[channel] * unit;
    q->bias[lane] = w->bias ? w->bias[channel] * unit : 0;
    for (int64_t t = 0; t < taps; t++) {
        uint32_t sum = 0;
        for (int64_t i = 0; i < in_c; i++)
            sum += (uint32_t)w->data[channel * w->out_stride + i * w->in_stride + t];
        q->start[t * q->lanes + lane] = (int32_t)(0 - zero * sum);
        all -= zero * sum;
    }
    q->start[taps * q->lanes + lane] = (int32_t)all;
}

static void set_lanes(struct sac_quant_conv *q, const struct sac_conv *v,
                      const struct sac_quant_weights *w, int64_t in_c, uint32_t zero)
{
    const int64_t lanes = sac_simd_lanes();
    for (int64_t g = 0; g < v->groups; g++)
        for (int64_t oc = 0; oc < v->group_bias; oc += v->block * lanes) {
            const int64_t vecs = SAC_MIN((v->group_bias - oc) / lanes, (int64_t)v->block);
            for (int64_t lane = 0; lane < vecs * lanes; lane++) {
                const int64_t channel = oc + sac_quant_conv_channel(q, vecs, lane);
                if (channel < v->group_out_c)
                    set_lane(q, v, w, in_c, g * v->group_out_c + channel,
                             g * v->group_bias + oc + lane, zero);
            }
        }
}

/* Three would leave the packing instructions a quarter empty. */
static int block_of(int64_t vecs)
{
    if (sac_simd_lanes() == 8)
        return (int)SAC_MIN(vecs, 2);
    return vecs % 4 == 3 ? 2 : (int)SAC_MIN(vecs, 4);
}

/* in_c: input channels of a group in the weights. */
static bool pack(struct sac_quant_conv *q, struct sac_conv *v, const struct sac_quant_weights *w,
                 int64_t in_c, uint32_t zero)
{
    const int64_t lanes = sac_simd_lanes(), taps = (int64_t)v->kernel_h * v->kernel_w;
    const int64_t vecs = (v->group_out_c + lanes - 1) / lanes;
    v->quant = q;
    v->block = block_of(vecs);
    v->group_bias = vecs * lanes;
    q->quads = (v->group_in_c + SAC_QUAD - 1) / SAC_QUAD;
    q->lanes = v->groups * v->group_bias;
    v->depth = taps * q->quads * SAC_QUAD;
    v->group_weights = v->group_bias * v->depth;
    q->weights = sac_alloc_aligned(64, (size_t)(v->groups * v->group_weights));
    q->start = sac_calloc((size_t)((taps + 1) * q->lanes), sizeof *q->start);
    q->scale = sac_calloc((size_t)q->lanes, sizeof *q->scale);
    q->bias = sac_calloc((size_t)q->lanes, sizeof *q->bias);
    if (!q->weights || !q->start || !q->scale || !q->bias)
        return false;
    for (int64_t g = 0; g < v->groups; g++)
        pack_group(v, w, in_c, g);
    set_lanes(q, v, w, in_c, zero);
    return true;
}

/* ---- depthwise weights ---- */

/* The channel of a strip of four vectors that lane `lane` of vector `vec` holds. */
static int64_t strip_channel(int64_t vec, int64_t lane)
{
    return lane / 4 * 16 + vec * 4 + lane % 4;
}

static int64_t channel_of(const struct sac_conv *v, int64_t first, int64_t vec, int64_t lane)
{
    const int64_t own = strip_channel(vec, lane);
    return v->quant->per > 1 ? own % v->groups : first + own;
}

static void pack_strip(const struct sac_conv *v, const struct sac_quant_weights *w, int64_t first,
                       int8_t *to)
{
    const int64_t lanes = sac_simd_lanes();
    for (int ky = 0; ky < v->kernel_h; ky++)
        for (int end = 0; end < v->kernel_w + 3; end++)
            for (int64_t lane = 0; lane < 4 * lanes; lane++)
                for (int k = 0; k < 4; k++) {
                    const int     tap = end - 3 + k;
                    const int64_t channel = channel_of(v, first, lane / lanes, lane % lanes);
                    *to++ = channel < v->groups && tap >= 0 && tap < v->kernel_w
                                ? w->data[channel * w->out_stride + ky * v->kernel_w + tap]
                                : 0;
                }
}

static void set_strip(struct sac_quant_conv *q, const struct sac_conv *v,
                      const struct sac_quant_weights *w, int64_t first)
{
    const int64_t lanes = sac_simd_lanes(), taps = (int64_t)v->kernel_h * v->kernel_w;
    const float   unit = q->straight ? q->result_inverse : 1;
    for (int64_t lane = 0; lane < 4 * lanes; lane++) {
        const int64_t own = strip_channel(lane / lanes, lane % lanes);
        const int64_t channel = channel_of(v, first, lane / lanes, lane % lanes);
        const int64_t at = first + (q->packed ? lane : own);
        uint32_t      sum = 0;
        if (channel >= v->groups)
            continue;
        for (int64_t t = 0; t < taps; t++)
            sum += (uint32_t)w->data[channel * w->out_stride + t];
        q->start[first + lane] = (int32_t)(0 - q->zeros[0] * sum);
        q->scale[at] = w->scale[channel] * unit;
        q->bias[at] = w->bias ? w->bias[channel] * unit : 0;
    }
}

static bool pack_depthwise(struct sac_quant_conv *q, struct sac_conv *v,
                           const struct sac_quant_weights *w, uint32_t zero)
{
    const int64_t strip = 4 * sac_simd_lanes(), strips = (v->groups + strip - 1) / strip;
    const int64_t bytes = (int64_t)v->kernel_h * (v->kernel_w + 3) * strip * 4;
    v->quant = q;
    v->block = 4;
    q->per = q->packed && (v->groups == 16 || v->groups == 32) ? (int)(64 / v->groups) : 1;
    q->lanes = strips * strip;
    memset(q->zeros, (int)zero, sizeof q->zeros);
    q->weights = sac_alloc_aligned(64, (size_t)(strips * bytes));
    q->start = sac_calloc((size_t)q->lanes, sizeof *q->start);
    q->scale = sac_calloc((size_t)q->lanes, sizeof *q->scale);
    q->bias = sac_calloc((size_t)q->lanes, sizeof *q->bias);
    if (!q->weights || !q->start || !q->scale || !q->bias)
        return false;
    for (int64_t k = 0; k < strips; k++) {
        pack_strip(v, w, k * strip, q->weights + k * bytes);
        set_strip(q, v, w, k * strip);
    }
    return true;
}

/* ---- the ending ---- */

/* A bound of Clip in steps; NaN is none. */
static int bound_in_steps(const struct sac_quant_conv *q, float bound, int none)
{
    const double steps = rint((double)(bound * q->result_inverse)) + q->result_zero;
    return isnan(steps) ? none : (int)SAC_CLAMP(steps, q->low, q->high);
}

static void read_ending(struct sac_quant_conv *q, struct sac_conv *v, const struct sac_op_call *c)
{
    const struct sac_quant a = sac_quant_read(c->node);
    v->act = sac_activation_read(c->node);
    v->residual_kind = (enum sac_residual)sac_attr_int(c->node, "residual", SAC_RESIDUAL_NONE);
    q->residual = v->residual_kind ? c->in[SAC_RESIDUAL_INPUT].dtype : SAC_F32;
    q->result = a.y_dtype;
    q->residual_scale = a.r_scale;
    q->residual_zero = a.r_zero;
    q->result_inverse = a.y_inverse;
    q->result_zero = a.y_zero;
    q->low = q->result == SAC_I8 ? INT8_MIN : 0;
    q->high = q->result == SAC_I8 ? INT8_MAX : UINT8_MAX;
    q->packed = sac_simd_lanes() == 16 && q->result != SAC_F32 && !v->residual_kind;
    q->straight = q->packed && (v->act.kind == SAC_ACT_NONE || v->act.kind == SAC_ACT_RELU ||
                                v->act.kind == SAC_ACT_CLIP);
    if (!q->straight || v->act.kind == SAC_ACT_NONE)
        return;
    const bool clips = v->act.kind == SAC_ACT_CLIP;
    const int  low = bound_in_steps(q, clips ? v->act.alpha : 0, q->low);
    const int  high = clips ? bound_in_steps(q, v->act.beta, q->high) : q->high;
    q->low = low;
    q->high = high;
}

/* ---- prepare, run, release ---- */

void sac_quant_release(void *state)
{
    struct sac_quant_state *s = state;
    if (!s)
        return;
    sac_free(s->quant.weights);
    sac_free(s->quant.start);
    sac_free(s->quant.scale);
    sac_free(s->quant.bias);
    sac_free(s);
}

sac_result sac_quant_prepare(struct sac_device *dev, struct sac_kernel_plan *plan,
                             struct sac_quant_state *s, const struct sac_map *in,
                             const struct sac_quant_weights *w)
{
    const struct sac_op_call *c = plan->call;
    struct sac_conv          *v = &s->base.conv;
    const int64_t             in_c = v->group_in_c;
    const int64_t             ns =
        2 * sac_operand_elements(&c->out[0]) * in_c * v->kernel_h * v->kernel_w / FLOPS_PER_NS;
    const int flip = c->in[0].dtype == SAC_I8 ? 128 : 0;
    s->base.has_residual = sac_op_has(c, SAC_RESIDUAL_INPUT);
    read_ending(&s->quant, v, c);
    set_stage(s, dev, plan, in);
    v->merged = v->dilation_w * v->in.pixel == v->group_in_c && v->group_in_c % SAC_QUAD == 0;
    if (!v->depthwise) /* which reads a quad of columns, also of a line that would be shorter */
        sac_conv_flatten(v, dev, ns);
    const uint32_t zero = (uint32_t)(sac_quant_read(c->node).x_zero + flip);
    if (!(v->depthwise ? pack_depthwise(&s->quant, v, w, zero)
                       : pack(&s->quant, v, w, in_c, zero))) {
        sac_quant_release(s);
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its weights");
    }
    sac_conv_cut(&s->base, dev, ns, PICK(sac_quant_rows));
    snprintf(plan->implementation, sizeof plan->implementation, "%s %s", sac_quant_name(),
             v->depthwise ? "depthwise" : "direct");
    plan->state = s;
    return SAC_OK;
}

sac_result sac_quant_run(struct sac_device *dev, void *state, void *const *in, void *const *out,
                         void *scratch, struct sac_device_stream *stream)
{
    struct sac_quant_state *s = state;
    struct stage_job        job = {&s->stage, in[0], scratch};
    void *const             staged[] = {scratch, NULL, NULL, in[SAC_RESIDUAL_INPUT]};
    if (!s->stage.on)
        return sac_units_run(dev, state, in, out, scratch, stream);
    sac_worker_pool_run(dev->workers, s->stage.pieces, stage_piece, &job);
    return sac_units_run(dev, state, staged, out, scratch, stream);
}
