/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares a convolution for its inner loops: packs weights and reshapes pointwise convolutions. */
#include <math.h>
#include <stdio.h>

#include "engine/cpu/conv.h"

enum {
    LINE_PIXELS = 84, /* whole tiles of 14, 6 and 12 pixels; with 64 channels in and out a line
                         fills the L1 data cache */
    LINE_PIXELS_MIN = LINE_PIXELS / 2,
    LINE_PIXELS_MAX = LINE_PIXELS * 3,
    LINE_BYTES = 384 << 10,    /* of its input: three quarters of an L2 cache of 512 KB; 0.98 of the
                                  time with 256 KB (an AMD EPYC, AVX2, 2026-11-30) */
    FEW_WEIGHTS = 32 << 10,    /* 128 KB: with a line they still fit there */
    FLOPS_PER_NS = 100,        /* for cutting work into pieces only */
    DEPTHWISE_BYTES = 64 << 10 /* of a cache line of each pixel of a depthwise band's input: lines
                                  above a pixel's are still in the L1 data cache, the band in L2 */
};

/* ---- which thread does what ---- */

enum {
    OWN_CHANNELS = 4, /* weights so many times the input: each thread has its own channels */
    EVEN_LINES = 4,   /* a thread; of fewer, all threads have the same number */
    LEAST_BANDS = 2   /* a thread; each reads all weights, and low ones have more border pixels */
};

/* Most pixels of a line, each of which reads `depth` numbers. They stay in the L2 cache from one
 * block of channels to the next. Where the weights do not, longer lines read them less often.
 * Numbers of 8 bits count as if they had 32. */
static int64_t longest_line(int64_t weights, int64_t depth)
{
    const int64_t fit = LINE_BYTES / (int64_t)sizeof(float) / SAC_MAX(depth, 1);
    const int64_t most = weights > FEW_WEIGHTS ? LINE_PIXELS_MAX : LINE_PIXELS;
    return SAC_CLAMP(fit / LINE_PIXELS_MIN * LINE_PIXELS_MIN, LINE_PIXELS_MIN, most);
}

/* A thread finds in its core's cache what it wrote there itself: a line from the other core's costs
 * about 10 times as much. So it has the same rows of each map, layer after layer. But all read all
 * weights then, and those of the last layers lie in no core's cache. */
static bool own_channels(const struct sac_device *dev, int64_t weights, int64_t input)
{
    return sac_worker_pool_threads(dev->workers) > 1 && weights > OWN_CHANNELS * input;
}

struct sac_conv_split sac_conv_split(const struct sac_device *dev, int64_t maps, int64_t pixels,
                                     int64_t depth, int64_t weights, int64_t ns)
{
    const int64_t         threads = sac_worker_pool_threads(dev->workers);
    const int64_t         most = longest_line(weights, depth);
    int64_t               lines = SAC_MAX((pixels + most - 1) / most, 1);
    struct sac_conv_split split = {SAC_MIN(pixels, most),
                                   own_channels(dev, weights, maps * pixels * depth)};
    if (lines >= EVEN_LINES * threads)
        return split;
    if (!split.by_channels && sac_pieces(dev, pixels, ns) > 1)
        lines = (lines + threads - 1) / threads * threads;
    split.line = (pixels + lines - 1) / lines;
    return split;
}

static int64_t weights_of(const struct sac_conv *v)
{
    const int64_t channels = v->depthwise ? v->groups : v->groups * v->group_out_c;
    return channels * sac_conv_taps(v) * v->group_in_c * v->planes;
}

static bool follows(const struct sac_conv_strides *s, int64_t pixels)
{
    return s->sample == pixels * s->pixel;
}

void sac_conv_flatten(struct sac_conv *v, const struct sac_device *dev, int64_t ns)
{
    int64_t pixels = v->out_h * v->out_w;
    if (sac_conv_taps(v) != 1 || v->in_d * v->out_d != 1 || v->stride_h * v->stride_w != 1 ||
        v->in_h * v->in_w != pixels || v->in.row != v->in_w * v->in.pixel)
        return;
    if (follows(&v->in, pixels) && follows(&v->out, pixels) &&
        (!v->residual_kind || follows(&v->residual, pixels))) {
        pixels *= v->n;
        v->n = 1;
    }
    v->in_w = v->out_w =
        sac_conv_split(dev, 1, pixels, v->groups * v->group_in_c, weights_of(v), ns).line;
    v->in_h = v->out_h = (pixels + v->out_w - 1) / v->out_w;
    v->last_w = pixels - (v->out_h - 1) * v->out_w;
    v->in.row = v->out_w * v->in.pixel;
    v->out.row = v->out_w * v->out.pixel;
    v->residual.row = v->out_w * v->residual.pixel;
}

void sac_conv_read_ending(struct sac_conv *v, const struct sac_node *n)
{
    v->act = sac_activation_read(n);
    v->residual_kind = (enum sac_residual)sac_attr_int(n, "residual", SAC_RESIDUAL_NONE);
    v->clamp_min = v->act.kind == SAC_ACT_RELU   ? 0
                   : v->act.kind == SAC_ACT_CLIP ? v->act.alpha
                                                 : -INFINITY;
    v->clamp_max = v->act.kind == SAC_ACT_CLIP ? v->act.beta : INFINITY;
    const bool straight =
        v->act.kind == SAC_ACT_NONE || v->act.kind == SAC_ACT_RELU || v->act.kind == SAC_ACT_CLIP;
    v->two_passes = !straight || v->residual_kind == SAC_RESIDUAL_AFTER;
    if (straight)
        v->act.kind = SAC_ACT_NONE;
}

/* 5 is 3 + 2, 7 is 4 + 3. */
int sac_conv_block(int64_t vecs)
{
    if (sac_simd_lanes() == 8)
        return (int)SAC_MIN(vecs, 2);
    if (vecs <= 4)
        return (int)vecs;
    return vecs == 5 || vecs == 6 || vecs == 9 ? 3 : 4;
}

/* Packs one group to [blocks][kernel_d][planes][taps of a slice][I][lanes of the block]. */
static void pack_group(const struct sac_conv *v, const struct sac_conv_weights *w,
                       const float *from, float *packed)
{
    const int64_t flat = (int64_t)v->kernel_h * v->kernel_w, taps = flat * v->kernel_d;
    const int64_t lanes = sac_simd_lanes();
    for (int64_t oc = 0; oc < v->group_out_c; oc += v->block * lanes) {
        const int64_t vecs = (v->group_out_c - oc + lanes - 1) / lanes;
        const int64_t width = SAC_MIN(vecs, v->block) * lanes;
        for (int64_t t = 0; t < taps * v->planes; t++) {
            const int64_t slice = t / flat / v->planes, tap = slice * flat + t % flat;
            for (int64_t i = t / flat % v->planes; i < v->group_in_c * v->planes; i += v->planes)
                for (int64_t k = 0; k < width; k++)
                    *packed++ = oc + k < v->group_out_c
                                    ? from[(oc + k) * w->out_stride + i * w->in_stride + tap]
                                    : 0;
        }
    }
}

/* Each group's channels in whole vectors. */
static void spread_channels(const struct sac_conv *v, const float *from, int64_t channels,
                            float *to)
{
    const int64_t groups = v->depthwise ? 1 : v->groups;
    for (int64_t g = 0; g < groups; g++)
        for (int64_t k = 0; k < v->group_bias; k++)
            to[g * v->group_bias + k] = from && k < channels ? from[g * channels + k] : 0;
}

bool sac_conv_pack_ending(struct sac_conv *v, const float *from, int64_t channels)
{
    const int64_t groups = v->depthwise ? 1 : v->groups, row = v->group_bias * groups;
    if (!from)
        return true;
    v->ending = sac_alloc_aligned(64, (size_t)(row * SAC_ENDING_ROWS) * sizeof(float));
    for (int64_t i = 0; v->ending && i < SAC_ENDING_ROWS; i++)
        spread_channels(v, from + i * channels * groups, channels, v->ending + i * row);
    v->two_passes = true;
    return v->ending != NULL;
}

bool sac_conv_pack(struct sac_conv *v, const struct sac_conv_weights *w)
{
    const int64_t taps = sac_conv_taps(v), lanes = sac_simd_lanes();
    const int64_t channels = v->depthwise ? v->groups : v->group_out_c;
    const int64_t groups = v->depthwise ? 1 : v->groups;
    v->block = sac_conv_block((channels + lanes - 1) / lanes);
    v->group_bias = (channels + lanes - 1) / lanes * lanes;
    v->depth = taps * v->group_in_c * v->planes;
    v->group_weights = v->group_bias * v->depth;
    v->weights = sac_alloc_aligned(64, (size_t)(v->group_weights * groups) * sizeof(float));
    v->bias = sac_alloc_aligned(64, (size_t)(v->group_bias * groups) * sizeof(float));
    if (!v->weights || !v->bias || !sac_conv_pack_ending(v, w->ending, channels))
        return false;
    spread_channels(v, w->bias, channels, v->bias);
    for (int64_t g = 0; g < groups && !v->depthwise; g++)
        pack_group(v, w, w->data + g * channels * w->out_stride, v->weights + g * v->group_weights);
    if (v->depthwise)
        for (int64_t t = 0; t < taps; t++)
            for (int64_t k = 0; k < v->group_bias; k++)
                v->weights[t * v->group_bias + k] =
                    k < channels ? w->data[k * w->out_stride + t] : 0;
    return true;
}

struct sac_conv sac_conv_product(int64_t rows, int64_t depth, int64_t columns, int64_t line,
                                 int64_t out_row)
{
    const int64_t   lanes = sac_simd_lanes(), vecs = (columns + lanes - 1) / lanes;
    struct sac_conv v = {.n = 1,
                         .group_in_c = depth,
                         .group_out_c = columns,
                         .groups = 1,
                         .in_h = (rows + line - 1) / line,
                         .in_w = SAC_MIN(rows, line),
                         .in_d = 1,
                         .out_d = 1,
                         .kernel_d = 1,
                         .stride_d = 1,
                         .dilation_d = 1,
                         .kernel_h = 1,
                         .kernel_w = 1,
                         .stride_h = 1,
                         .stride_w = 1,
                         .dilation_h = 1,
                         .dilation_w = 1,
                         .planes = 1,
                         .merged = true,
                         .block = sac_conv_block(vecs),
                         .group_bias = vecs * lanes,
                         .group_weights = vecs * lanes * depth,
                         .depth = depth,
                         .clamp_min = -INFINITY,
                         .clamp_max = INFINITY};
    v.out_h = v.in_h;
    v.out_w = v.in_w;
    v.last_w = rows - (v.out_h - 1) * v.out_w;
    v.in = (struct sac_conv_strides){rows * depth, v.in_w * depth, depth, 1, 0};
    v.out = (struct sac_conv_strides){rows * out_row, v.in_w * out_row, out_row, 1, 0};
    return v;
}

void sac_conv_release(void *state)
{
    struct sac_conv_state *s = state;
    if (!s)
        return;
    sac_free(s->conv.weights);
    sac_free(s->conv.bias);
    sac_free(s->conv.ending);
    sac_free(s);
}

struct sac_conv sac_conv_part(const struct sac_conv *v, int64_t first, int64_t end)
{
    const int64_t   width = (int64_t)v->block * sac_simd_lanes();
    struct sac_conv part = *v;
    part.first = first * width;
    if (v->depthwise)
        part.groups = SAC_MIN(end * width, v->groups) - part.first;
    else
        part.group_out_c = SAC_MIN(end * width, v->group_out_c) - part.first;
    if (!v->depthwise)
        part.residual_fewer =
            SAC_MAX(v->residual_fewer - (v->group_out_c - part.first - part.group_out_c), 0);
    return part;
}

int64_t sac_conv_chunks(const struct sac_device *dev, int64_t units, int64_t blocks, int64_t ns)
{
    const int64_t wanted = sac_pieces(dev, units * blocks, ns);
    return SAC_CLAMP((wanted + units - 1) / units, 1, blocks);
}

static void work(const void *state, void *const *in, void *const *out, int64_t first, int64_t end)
{
    const struct sac_conv_state *s = state;
    const int64_t                rows = sac_conv_row_count(&s->conv);
    for (int64_t u = first; u < end; u++) {
        const int64_t   band = s->by_channels ? u % s->bands : u / s->chunks;
        const int64_t   chunk = s->by_channels ? u / s->bands : u % s->chunks;
        struct sac_conv v = s->conv;
        if (s->chunks > 1)
            v = sac_conv_part(&s->conv, s->blocks * chunk / s->chunks,
                              s->blocks * (chunk + 1) / s->chunks);
        s->rows(&v, in[0], s->has_residual ? in[SAC_RESIDUAL_INPUT] : NULL, out[0],
                rows * band / s->bands, rows * (band + 1) / s->bands);
    }
}

/* At most so many lines in a band: about longest_line. A depthwise band is high, as its lines share
 * their input. */
static int64_t tallest(const struct sac_conv *v)
{
    const int64_t line = v->in_w * v->stride_h * 64;
    const int64_t depth =
        v->groups * v->group_in_c * v->planes * v->stride_d * v->stride_h * v->stride_w;
    const int64_t lines =
        v->depthwise ? DEPTHWISE_BYTES / line : longest_line(weights_of(v), depth) / v->out_w;
    return SAC_CLAMP(lines, 1, v->out_h);
}

/* Bands of equal height, as many for each thread; where that leaves a thread without work, or each
 * has its own channels, chunks of these too. */
void sac_conv_cut(struct sac_conv_state *s, const struct sac_device *dev, int64_t ns,
                  sac_conv_rows_fn *rows_fn)
{
    const struct sac_conv *v = &s->conv;
    const int64_t          threads = sac_worker_pool_threads(dev->workers);
    const int64_t rows = sac_conv_row_count(v), width = (int64_t)v->block * sac_simd_lanes();
    const int64_t channels = v->depthwise ? v->groups : v->group_out_c;
    const bool    whole = v->groups > 1 && !v->depthwise;
    const int64_t input =
        v->n * v->in_d * v->in_h * v->in_w * v->groups * v->group_in_c * v->planes;
    s->blocks = whole ? 1 : (channels + width - 1) / width;
    s->by_channels = s->blocks > 1 && own_channels(dev, weights_of(v), input);
    const int64_t wanted = sac_pieces(dev, rows * s->blocks, ns), tall = tallest(v);
    s->bands = (rows + tall - 1) / tall;
    if (wanted > 1 && !s->by_channels) {
        const int64_t least = v->depthwise ? wanted : SAC_MIN(wanted, LEAST_BANDS * threads);
        s->bands = SAC_MAX(s->bands, SAC_MIN(least, rows));
        if (s->bands < EVEN_LINES * threads)
            s->bands = SAC_MIN((s->bands + threads - 1) / threads * threads, rows);
    }
    s->chunks =
        s->by_channels ? SAC_MIN(wanted, s->blocks) : sac_conv_chunks(dev, s->bands, s->blocks, ns);
    s->rows = rows_fn;
    sac_units_init(&s->units, dev, s->bands * s->chunks, ns, work);
}

sac_result sac_conv_prepare(struct sac_device *dev, struct sac_kernel_plan *plan,
                            struct sac_conv_state *s, const struct sac_conv_weights *w)
{
    struct sac_conv *v = &s->conv;
    const int64_t    flops = 2 * sac_operand_elements(&plan->call->out[0]) * v->group_in_c *
                          v->planes * sac_conv_taps(v);
    sac_conv_flatten(v, dev, flops / FLOPS_PER_NS);
    if (!sac_conv_pack(v, w)) {
        sac_conv_release(s);
        return SAC_OP_FAIL(plan->call, SAC_ERR_MEMORY, "no memory for its weights");
    }
    sac_conv_cut(s, dev, flops / FLOPS_PER_NS, SAC_SIMD_PICK(sac_conv_rows));
    snprintf(plan->implementation, sizeof plan->implementation, "%s %s", sac_simd_name(),
             v->depthwise ? "depthwise" : "direct");
    plan->state = s;
    return SAC_OK;
}
