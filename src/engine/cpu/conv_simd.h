/* SPDX-License-Identifier: Apache-2.0 */
/* The convolution's inner loops for one vector width; see simd.h for how this file is compiled. */
typedef float conv_in, conv_weight, conv_out;
#include "engine/cpu/conv_lines.h"

static const conv_weight *conv_weights(const struct sac_conv *c)
{
    return c->weights;
}

/* Where and how a tile's results are stored. Copied to locals first: the compiler must assume that
 * a vector store changes any memory, and would reload the tile after each store. */
struct ending {
    const float *residual; /* NULL: none is added here */
    float       *out;
    int64_t      out_pixel, residual_pixel, channels, added;
    vec          min, max;
};

SIMD_INLINE struct ending ending_of(const struct tile *t)
{
    const struct sac_conv *c = t->c;
    return (struct ending){
        .residual = c->residual_kind == SAC_RESIDUAL_BEFORE ? t->residual : NULL,
        .out = t->out,
        .out_pixel = t->out_step,
        .residual_pixel = t->residual_step,
        .channels = t->channels,
        .added = t->added,
        .min = v_set(c->clamp_min),
        .max = v_set(c->clamp_max),
    };
}

/* The next channels of a residual that has `left` of them. */
SIMD_INLINE vec residual_of(const float *r, int64_t left)
{
    return left >= LANES ? v_load(r) : v_load_first(r, v_first(left > 0 ? left : 0));
}

/* Stores [pixels, block] vectors, without the padding of the last channels. */
SIMD_INLINE void finish(const struct ending *e, vec *acc, const int pixels, const int block)
{
    if (e->residual)
#pragma GCC unroll 28
        for (int i = 0; i < pixels; i++)
#pragma GCC unroll 4
            for (int j = 0; j < block; j++) {
                const float *r = e->residual + i * e->residual_pixel + j * LANES;
                acc[i * block + j] =
                    v_add(acc[i * block + j], residual_of(r, e->added - j * LANES));
            }
#pragma GCC unroll 28
    for (int i = 0; i < pixels * block; i++)
        acc[i] = v_min(e->max, v_max(e->min, acc[i])); /* in this order NaN stays NaN */
    if (e->channels >= block * LANES) {
#pragma GCC unroll 28
        for (int i = 0; i < pixels; i++)
#pragma GCC unroll 4
            for (int j = 0; j < block; j++)
                v_store(e->out + i * e->out_pixel + j * LANES, acc[i * block + j]);
        return;
    }
#pragma GCC unroll 4
    for (int j = 0; j < block; j++) {
        const int64_t left = e->channels - j * LANES;
        if (left <= 0)
            break;
#pragma GCC unroll 28
        for (int i = 0; i < pixels; i++)
            if (left >= LANES)
                v_store(e->out + i * e->out_pixel + j * LANES, acc[i * block + j]);
            else
                v_store_count(e->out + i * e->out_pixel + j * LANES, acc[i * block + j], left);
    }
}

/* What is done to a vector of channels, and to their residual. */
struct channel_ending {
    vec scale, shift, residual;
};
SIMD_INLINE struct channel_ending ending_at(const struct sac_conv *c, int64_t lane)
{
    const int64_t row = c->depthwise ? c->group_bias : c->group_bias * c->groups;
    const float  *at = c->ending + lane;
    return (struct channel_ending){v_load(at + SAC_ENDING_SCALE * row),
                                   v_load(at + SAC_ENDING_SHIFT * row),
                                   v_load(at + SAC_ENDING_RESIDUAL * row)};
}

/* The same as second_pass, with numbers for each channel behind the activation. */
SIMD_FN static void end_channels(const struct tile *t, int64_t x0, int64_t x1, int64_t channels)
{
    const struct sac_conv *c = t->c;
    const bool             add = c->residual_kind == SAC_RESIDUAL_AFTER;
    for (int64_t x = x0; x < x1; x++) {
        float       *p = t->out + x * c->out.pixel;
        const float *r = t->residual + x * c->residual.pixel;
        for (int64_t k = 0; k < channels; k += LANES) {
            const struct channel_ending e = ending_at(c, t->lane + k);
            const int64_t               left = channels - k;
            vec v = left >= LANES ? v_load(p + k) : v_load_first(p + k, v_first(left));
            v = v_fma(v, e.scale, e.shift);
            if (add)
                v = v_fma(residual_of(r + k, t->added - k), e.residual, v);
            if (left >= LANES)
                v_store(p + k, v);
            else
                v_store_count(p + k, v, left);
        }
    }
}

/* What finish leaves to a second pass while the line is in the L1 cache: curved activations (their
 * code in every tile costs more than the extra load and store) and a residual after them. */
SIMD_INLINE void second_pass(const struct tile *t, int64_t x0, int64_t x1, int64_t channels,
                             enum sac_activation_kind kind)
{
    const struct sac_conv      *c = t->c;
    const struct sac_activation act = {kind, c->act.alpha, c->act.beta};
    const bool                  add = c->residual_kind == SAC_RESIDUAL_AFTER && !c->ending;
    if (channels == LANES && t->added >= LANES) { /* a depthwise tile: the general loop's counting
                                                     would be half of it */
        for (int64_t x = x0; x < x1; x++) {
            const vec v = v_activate(v_load(t->out + x * c->out.pixel), &act);
            v_store(t->out + x * c->out.pixel,
                    add ? v_add(v, v_load(t->residual + x * c->residual.pixel)) : v);
        }
        return;
    }
    for (int64_t x = x0; x < x1; x++) {
        float       *p = t->out + x * c->out.pixel;
        const float *r = t->residual + x * c->residual.pixel;
        for (int64_t k = 0; k < channels; k += LANES) {
            const bool whole = channels - k >= LANES;
            vec        v = whole ? v_load(p + k) : v_load_first(p + k, v_first(channels - k));
            v = v_activate(v, &act);
            if (add)
                v = v_add(v, residual_of(r + k, t->added - k));
            if (whole)
                v_store(p + k, v);
            else
                v_store_count(p + k, v, channels - k);
        }
    }
}

SIMD_FN static void curve(const struct tile *t, int64_t x0, int64_t x1, int64_t channels)
{
    switch (t->c->act.kind) {
    case SAC_ACT_SILU: second_pass(t, x0, x1, channels, SAC_ACT_SILU); break;
    case SAC_ACT_SIGMOID: second_pass(t, x0, x1, channels, SAC_ACT_SIGMOID); break;
    case SAC_ACT_LEAKY_RELU: second_pass(t, x0, x1, channels, SAC_ACT_LEAKY_RELU); break;
    case SAC_ACT_HARD_SIGMOID: second_pass(t, x0, x1, channels, SAC_ACT_HARD_SIGMOID); break;
    case SAC_ACT_HARD_SWISH: second_pass(t, x0, x1, channels, SAC_ACT_HARD_SWISH); break;
    case SAC_ACT_TANH: second_pass(t, x0, x1, channels, SAC_ACT_TANH); break;
    case SAC_ACT_SOFTPLUS: second_pass(t, x0, x1, channels, SAC_ACT_SOFTPLUS); break;
    case SAC_ACT_GELU: second_pass(t, x0, x1, channels, SAC_ACT_GELU); break;
    case SAC_ACT_GELU_TANH: second_pass(t, x0, x1, channels, SAC_ACT_GELU_TANH); break;
    case SAC_ACT_SQUARED_RELU: second_pass(t, x0, x1, channels, SAC_ACT_SQUARED_RELU); break;
    case SAC_ACT_NONE:
        if (t->c->ending)
            break; /* which comes with the residual */
        /* fall through */
    default: second_pass(t, x0, x1, channels, SAC_ACT_NONE); break;
    }
    if (t->c->ending)
        end_channels(t, x0, x1, channels);
}

/* From the plane of the weights before `plane` to that one: those of a plain input lie in each
 * slice. */
SIMD_INLINE int64_t to_plane(const struct sac_conv *c, int plane)
{
    const int64_t slice = c->dilation_d * c->in.slice;
    if (c->planes == 1)
        return slice;
    return plane % (int)c->planes ? c->in.channel : slice - (c->planes - 1) * c->in.channel;
}

/* pixels x block vectors of accumulators; both are constants where this is inlined, so that the
 * loops unroll and the accumulators stay in registers. Pixels are addressed relative to every
 * fourth one: x86 can add one or two strides in an address, and has too few registers for a pointer
 * per pixel. */
SIMD_INLINE void tile_run(const struct tile *t, const int pixels, const int block)
{
    const struct sac_conv *c = t->c;
    vec                    acc[28];
#pragma GCC unroll 28
    for (int i = 0; i < pixels; i++)
#pragma GCC unroll 4
        for (int j = 0; j < block; j++)
            acc[i * block + j] = v_load(t->c->bias + t->lane + j * LANES);

    const int64_t step = t->in_step, step3 = 3 * step;
    const int64_t column = c->group_in_c * block * LANES; /* weights of one tap */
    const float  *in = t->in;
    for (int plane = t->plane0; plane < t->plane1; plane++) {
        if (plane > t->plane0)
            in += to_plane(c, plane);
        for (int ky = t->ky0; ky < t->ky1; ky++)
            for (int kx = t->kx0; kx < t->kx1; kx = c->merged ? t->kx1 : kx + 1) {
                const float *w =
                    t->weights + (((int64_t)plane * c->kernel_h + ky) * c->kernel_w + kx) * column;
                const float *p[7];
                p[0] = in + ky * c->dilation_h * c->in.row + kx * c->dilation_w * c->in.pixel;
#pragma GCC unroll 7
                for (int i = 1; i < (pixels + 3) / 4; i++)
                    p[i] = p[i - 1] + 4 * step;
                const int64_t run = c->merged ? (t->kx1 - kx) * c->group_in_c : c->group_in_c;
                for (int64_t k = 0; k < run; k++) {
                    vec wv[4];
#pragma GCC unroll 4
                    for (int j = 0; j < block; j++)
                        wv[j] = v_load(w + j * LANES);
#pragma GCC unroll 28
                    for (int i = 0; i < pixels; i++) {
                        const int64_t off = i % 4 == 0   ? 0
                                            : i % 4 == 1 ? step
                                            : i % 4 == 2 ? 2 * step
                                                         : step3;
                        vec           x = v_set(p[i / 4][off]);
#pragma GCC unroll 4
                        for (int j = 0; j < block; j++)
                            acc[i * block + j] = v_fma(x, wv[j], acc[i * block + j]);
                    }
                    w += block * LANES;
#pragma GCC unroll 7
                    for (int i = 0; i < (pixels + 3) / 4; i++)
                        p[i]++;
                }
            }
    }
    const struct ending e = ending_of(t);
    finish(&e, acc, pixels, block);
}

typedef void tile_fn(const struct tile *t);
#define TILE(pixels, block)                                           \
    SIMD_FN static void tile_##pixels##x##block(const struct tile *t) \
    {                                                                 \
        tile_run(t, pixels, block);                                   \
    }
#define TILES(block) TILE(8, block) TILE(4, block) TILE(2, block) TILE(1, block)
#define TILE_ROW(full, block)                                                    \
    {                                                                            \
        {full, tile_##full##x##block}, {8, tile_8x##block}, {4, tile_4x##block}, \
            {2, tile_2x##block},                                                 \
        {                                                                        \
            1, tile_1x##block                                                    \
        }                                                                        \
    }

struct tile_size {
    int      pixels;
    tile_fn *run;
};

/* The largest tiles fill the registers (32 or 16, less the weights and one pixel); the rest of a
 * row uses powers of two, or any size in a block of EVEN_BLOCK vectors. */
#if SAC_SIMD_BITS == 512
/* clang-format off */
TILE(24, 1) TILES(1) TILE(14, 2) TILES(2) TILE(9, 3) TILES(3) TILE(6, 4) TILE(4, 4) TILE(2, 4)
TILE(1, 4)
    /* clang-format on */
    static const struct tile_size tile_sizes[4][5] = {
        TILE_ROW(24, 1),
        TILE_ROW(14, 2),
        TILE_ROW(9, 3),
        {{6, tile_6x4}, {4, tile_4x4}, {2, tile_2x4}, {1, tile_1x4}, {1, tile_1x4}},
};
enum { EVEN_BLOCK = 0 }; /* none */
#else
/* clang-format off */
TILE(12, 1) TILES(1) TILE(6, 2) TILE(5, 2) TILE(4, 2) TILE(3, 2) TILE(2, 2) TILE(1, 2)
    /* clang-format on */
    static const struct tile_size tile_sizes[2][6] = {
        TILE_ROW(12, 1),
        {{6, tile_6x2}, {5, tile_5x2}, {4, tile_4x2}, {3, tile_3x2}, {2, tile_2x2}, {1, tile_1x2}},
};
enum { EVEN_BLOCK = 2 };
#endif

/* Pixels x0..x1-1 of one line or column, which all have the tile's taps: large tiles first. Where
 * there are all sizes, as few as can be and nearly equal, as a tile of one pixel takes as long as
 * one of four: 49 pixels are 4 tiles of 6 and 5 of 5, not 8 of 6 and one of 1. */
SIMD_FN static void run_span(const struct tile *line, int64_t x0, int64_t x1)
{
    const struct tile_size *size = tile_sizes[line->block - 1];
    const bool              even = line->block == EVEN_BLOCK;
    struct tile             t = *line;
    for (int64_t tiles = (x1 - x0 + size->pixels - 1) / size->pixels; x0 < x1; tiles--) {
        const int64_t most = even ? (x1 - x0 + tiles - 1) / tiles : x1 - x0;
        while (size->pixels > most)
            size++;
        t.in = line->in + x0 * t.in_step;
        t.out = line->out + x0 * t.out_step;
        t.residual = line->residual + x0 * t.residual_step;
        size->run(&t);
        x0 += size->pixels;
    }
}

/* ---- depthwise: each vector of channels is a convolution of its own ---- */

/* Neighbouring columns of some lines, of one vector of channels. */
struct columns {
    const struct sac_conv *c;
    const float           *in;      /* tap (0,0) of the first pixel of the first line */
    const float           *weights; /* [kernel_h][kernel_w][group_bias] */
    const float           *bias, *residual;
    float                 *out;
    int64_t                channels;   /* from here to the last */
    int64_t                first, end; /* input columns that exist, from `in` on */
    int64_t                y, lines;   /* the first line, and how many */
    int                    slices;     /* of the kernel, from the one that these two begin with */
    int64_t                slice_in, slice_weights; /* from one to the next */
};

/* The taps of a line that are within the map, of one slice of the kernel. */
struct taps {
    int          y0, y1;
    const float *in, *weights; /* of the slice */
};

SIMD_INLINE vec load_channels(const float *p, const bool whole, int64_t channels)
{
    return whole || channels >= LANES ? v_load(p) : v_load_first(p, v_first(channels));
}

/* kernel and stride are constants for the usual sizes, where each input vector is loaded once for
 * all the taps that use it. Columns beyond a border are zeros that nobody has written; to skip them
 * costs little, as the tests end alike for all channels and lines. */
SIMD_INLINE void depthwise_sized(const struct columns *d, struct taps taps, vec *acc,
                                 const int pixels, const bool plain, const int kernel,
                                 const int stride)
{
    const struct sac_conv *c = d->c;
    const int64_t          pixel = c->in.pixel, channels = c->group_bias;
    for (int ky = taps.y0; ky < taps.y1; ky++) {
        const float *w = taps.weights + ky * kernel * channels;
        const float *p = taps.in + ky * c->dilation_h * c->in.row;
        vec          wv[7];
#pragma GCC unroll 7
        for (int k = 0; k < kernel; k++)
            wv[k] = v_load(w + k * channels);
#pragma GCC unroll 21
        for (int x = 0; x < (pixels - 1) * stride + kernel; x++, p += pixel) {
            if (!plain && (x < d->first || x >= d->end))
                continue;
            vec v = load_channels(p, plain, d->channels);
#pragma GCC unroll 8
            for (int i = 0; i < pixels; i++)
                if (x - i * stride >= 0 && x - i * stride < kernel)
                    acc[i] = v_fma(v, wv[x - i * stride], acc[i]);
        }
    }
}

SIMD_INLINE void depthwise_any(const struct columns *d, struct taps taps, vec *acc,
                               const int pixels, const bool plain)
{
    const struct sac_conv *c = d->c;
    const int64_t          step = c->in.pixel * c->stride_w;
    for (int ky = taps.y0; ky < taps.y1; ky++)
        for (int kx = 0; kx < c->kernel_w; kx++) {
            const float *p =
                taps.in + ky * c->dilation_h * c->in.row + kx * c->dilation_w * c->in.pixel;
            const vec wv = v_load(taps.weights + (ky * c->kernel_w + kx) * c->group_bias);
#pragma GCC unroll 8
            for (int i = 0; i < pixels; i++) {
                const int64_t x = kx * c->dilation_w + i * c->stride_w;
                if (plain || (x >= d->first && x < d->end))
                    acc[i] = v_fma(load_channels(p + i * step, plain, d->channels), wv, acc[i]);
            }
        }
}

/* plain: a whole vector of channels, no pixel beyond a border. kernel 0: any, with any stride.
 * deep: of three dims. */
SIMD_INLINE void depthwise_tile(const struct columns *d, const int pixels, const bool plain,
                                const int kernel, const int stride, const bool deep)
{
    const struct sac_conv *c = d->c;
    struct tile            t = {.c = c,
                                .out = d->out,
                                .residual = d->residual,
                                .lane = d->bias - c->bias,
                                .channels = d->channels,
                                .added = d->channels,
                                .out_step = c->out.pixel,
                                .residual_step = c->residual.pixel};
    const float *in = d->in, *const weights = d->weights;
    const int     slices = d->slices;
    const int64_t slice_in = d->slice_in, slice_weights = d->slice_weights;
    for (int64_t y = d->y; y < d->y + d->lines; y++) {
        struct taps taps;
        vec         acc[8];
        clip_taps(y * c->stride_h - c->pad_top, c->dilation_h, c->kernel_h, c->in_h, &taps.y0,
                  &taps.y1);
#pragma GCC unroll 8
        for (int i = 0; i < pixels; i++)
            acc[i] = v_load(d->bias);
        taps.in = in;
        taps.weights = weights;
        for (int k = 0; k < (deep ? slices : 1); k++) {
            if (kernel)
                depthwise_sized(d, taps, acc, pixels, plain, kernel, stride);
            else
                depthwise_any(d, taps, acc, pixels, plain);
            taps.in += slice_in;
            taps.weights += slice_weights;
        }
        const struct ending e = ending_of(&t);
        finish(&e, acc, pixels, 1);
        if (c->two_passes)
            curve(&t, 0, pixels, t.channels < LANES ? t.channels : LANES);
        in += c->stride_h * c->in.row;
        t.out += c->out.row;
        t.residual += c->residual.row;
    }
}

/* As many pixels as keep their sums in registers; a line is cut into nearly equal tiles. */
enum { DEPTHWISE_PIXELS = 8 };
typedef void depthwise_fn(const struct columns *d, bool plain);
#define DEPTHWISE_TILE(name, pixels, kernel, stride, deep)                               \
    SIMD_FN static void depthwise_##name##_##pixels(const struct columns *d, bool plain) \
    {                                                                                    \
        if (plain)                                                                       \
            depthwise_tile(d, pixels, true, kernel, stride, deep);                       \
        else                                                                             \
            depthwise_tile(d, pixels, false, kernel, stride, deep);                      \
    }
#define DEPTHWISE(name, kernel, stride, deep)                                                   \
    DEPTHWISE_TILE(name, 1, kernel, stride, deep)                                               \
    DEPTHWISE_TILE(name, 2, kernel, stride, deep)                                               \
    DEPTHWISE_TILE(name, 3, kernel, stride, deep)                                               \
    DEPTHWISE_TILE(name, 4, kernel, stride, deep)                                               \
    DEPTHWISE_TILE(name, 5, kernel, stride, deep)                                               \
    DEPTHWISE_TILE(name, 6, kernel, stride, deep)                                               \
    DEPTHWISE_TILE(name, 7, kernel, stride, deep)                                               \
    DEPTHWISE_TILE(name, 8, kernel, stride, deep)                                               \
    static depthwise_fn *const depthwise_##name[DEPTHWISE_PIXELS] = {                           \
        depthwise_##name##_1, depthwise_##name##_2, depthwise_##name##_3, depthwise_##name##_4, \
        depthwise_##name##_5, depthwise_##name##_6, depthwise_##name##_7, depthwise_##name##_8, \
    };
DEPTHWISE(0_0, 0, 0, false)
DEPTHWISE(3_1, 3, 1, false)
DEPTHWISE(3_2, 3, 2, false)
DEPTHWISE(5_1, 5, 1, false)
DEPTHWISE(5_2, 5, 2, false)
DEPTHWISE(7_1, 7, 1, false)
DEPTHWISE(deep_0_0, 0, 0, true)
DEPTHWISE(deep_3_1, 3, 1, true)
DEPTHWISE(deep_3_2, 3, 2, true)

static depthwise_fn *const *depthwise_tiles(const struct sac_conv *c)
{
    const int size = c->dilation_w == 1 ? c->kernel_w * 10 + c->stride_w : 0;
    if (c->kernel_d > 1 || c->out_d > 1 || c->pad_front > 0)
        return size == 31   ? depthwise_deep_3_1
               : size == 32 ? depthwise_deep_3_2
                            : depthwise_deep_0_0;
    switch (size) {
    case 31: return depthwise_3_1;
    case 32: return depthwise_3_2;
    case 51: return depthwise_5_1;
    case 52: return depthwise_5_2;
    case 71: return depthwise_7_1;
    default: return depthwise_0_0;
    }
}

/* Lines of w columns and one vector of channels, tile by tile down the lines: so their input stays
 * in the L1 cache from line to line, where a line of all channels would not. */
static void depthwise_lines(const struct columns *all, int64_t w)
{
    const struct sac_conv     *c = all->c;
    depthwise_fn *const *const sized = depthwise_tiles(c);
    const int64_t              tiles = (w + DEPTHWISE_PIXELS - 1) / DEPTHWISE_PIXELS;
    const int64_t              reach = (int64_t)(c->kernel_w - 1) * c->dilation_w;
    for (int64_t k = 0, x = 0, end; k < tiles; k++, x = end) {
        end = w * (k + 1) / tiles;
        const int64_t  origin = x * c->stride_w - c->pad_left;
        const int64_t  last = origin + (end - x - 1) * c->stride_w + reach;
        struct columns d = *all;
        d.in += x * c->stride_w * c->in.pixel;
        d.out += x * c->out.pixel;
        d.residual += x * c->residual.pixel;
        d.first = -origin;
        d.end = c->in_w - origin;
        sized[end - x - 1](&d, origin >= 0 && last < c->in_w && d.channels >= LANES);
    }
}

static void run_depthwise(const struct band *b, int64_t y, int64_t lines)
{
    const struct sac_conv *c = b->c;
    const struct tile      line = line_of(b, y);
    const int64_t          slice_in = c->dilation_d * c->in.slice;
    const int64_t          slice_weights = (int64_t)c->kernel_h * c->kernel_w * c->group_bias;
    const float           *weights = c->weights + c->first + b->kz0 * slice_weights;
    for (int64_t channel = 0; channel < c->groups; channel += LANES) {
        const struct columns all = {.c = c,
                                    .in = line.in + channel,
                                    .weights = weights + channel,
                                    .bias = c->bias + c->first + channel,
                                    .residual = line.residual + channel,
                                    .out = line.out + channel,
                                    .channels = c->groups - channel,
                                    .y = y,
                                    .lines = lines,
                                    .slices = b->kz1 - b->kz0,
                                    .slice_in = slice_in,
                                    .slice_weights = slice_weights};
        depthwise_lines(&all, width_of(c, y));
    }
}

/* ---- one pixel ----
 *
 * A network's last layers have one pixel, which reads each weight once, from memory. Four blocks at
 * once are four streams to wait for together, and enough sums to fill the units. */

enum { PIXEL_BLOCKS = 4 };

SIMD_INLINE void pixel_run(const struct tile *t, const int block)
{
    const struct sac_conv *c = t->c;
    const float           *w[PIXEL_BLOCKS];
    vec                    acc[PIXEL_BLOCKS * 4];
#pragma GCC unroll 4
    for (int b = 0; b < PIXEL_BLOCKS; b++) {
        w[b] = t[b].weights;
#pragma GCC unroll 4
        for (int j = 0; j < block; j++)
            acc[b * block + j] = v_load(c->bias + t[b].lane + j * LANES);
    }
    for (int64_t k = 0; k < c->group_in_c; k++) {
        const vec x = v_set(t->in[k]);
#pragma GCC unroll 4
        for (int b = 0; b < PIXEL_BLOCKS; b++) {
#pragma GCC unroll 4
            for (int j = 0; j < block; j++)
                acc[b * block + j] = v_fma(x, v_load(w[b] + j * LANES), acc[b * block + j]);
            w[b] += block * LANES;
        }
    }
#pragma GCC unroll 4
    for (int b = 0; b < PIXEL_BLOCKS; b++) {
        const struct ending e = ending_of(&t[b]);
        finish(&e, acc + b * block, 1, block);
    }
}

/* Fewer vectors than most of a block are those of recurrent networks. */
SIMD_FN static void run_pixel(const struct tile *t)
{
    switch (t->block) {
    case 1: pixel_run(t, 1); break;
    case 2: pixel_run(t, 2); break;
#if SAC_SIMD_BITS == 512
    case 3: pixel_run(t, 3); break;
    default: pixel_run(t, 4); break;
#endif
    }
}

/* One pixel, whose one tap is in the map. */
static bool is_pixel(const struct band *b)
{
    const struct sac_conv *c = b->c;
    int64_t                first, last;
    if (b->y1 - b->y0 != 1 || width_of(c, b->y0) != 1 || sac_conv_taps(c) * c->planes != 1)
        return false;
    const struct tile line = line_of(b, b->y0);
    inner_columns(c, &first, &last);
    return sees_all_rows(&line) && line.plane1 > line.plane0 && first == 0 && last > 0;
}

static void end_block(const struct tile *t, int64_t width)
{
    curve(t, 0, width, SAC_MIN(t->channels, (int64_t)t->block * LANES));
}

static int run_blocks(const struct band *b, int64_t g, int64_t oc)
{
    const struct sac_conv *c = b->c;
    const int64_t          width = (int64_t)c->block * LANES;
    if (c->group_out_c - oc >= PIXEL_BLOCKS * width && is_pixel(b)) {
        struct tile part[PIXEL_BLOCKS];
        for (int i = 0; i < PIXEL_BLOCKS; i++)
            part[i] = block_of(b, b->y0, g, oc + i * width);
        run_pixel(part);
        for (int i = 0; c->two_passes && i < PIXEL_BLOCKS; i++)
            end_block(&part[i], 1);
        return PIXEL_BLOCKS;
    }
    run_taps(b, g, oc);
    for (int64_t y = b->y0; c->two_passes && y < b->y1; y++) {
        const struct tile part = block_of(b, y, g, oc);
        end_block(&part, width_of(c, y));
    }
    return 1;
}

void SIMD_NAME(sac_conv_rows)(const struct sac_conv *c, const void *in, const void *residual,
                              void *out, int64_t row0, int64_t row1)
{
    run_rows(c, in, residual, out, row0, row1);
}
