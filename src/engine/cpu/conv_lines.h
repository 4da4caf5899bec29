/* SPDX-License-Identifier: Apache-2.0 */
/* The way of a convolution over lines, columns and blocks of channels, whatever its numbers are and
 * whatever the vectors: it finds which taps a pixel sees and calls run_span for pixels that see the
 * same ones.
 *
 * Who includes this defines before it the types conv_in, conv_weight and conv_out (distances count
 * in them) and conv_weights; after it the functions that are declared here.
 */
#ifndef SAC_ENGINE_CPU_CONV_LINES_H
#define SAC_ENGINE_CPU_CONV_LINES_H

#include "engine/cpu/conv.h"
#include "engine/cpu/simd.h"

/* Parameters of a tile besides the convolution: its taps (clipped at the borders), the addresses of
 * its first pixel, and how many channels of the block exist. */
struct tile {
    const struct sac_conv *c;
    int                    ky0, ky1, kx0, kx1;
    int                    plane0, plane1; /* of the weights */
    const conv_in *in; /* tap (0,0) of the first pixel; may point outside where taps are clipped */
    const conv_weight *weights; /* of the block */
    int64_t            lane;    /* of the first vector: the place of its bias */
    const conv_out    *residual;
    conv_out          *out;
    int64_t            channels; /* from here to the group's last */
    int64_t            added;    /* those of them that have a residual, if there is one */
    int                block;    /* vectors of channels in a tile */
    /* From one pixel to the next: along a line, or down a column. */
    int64_t in_step, out_step, residual_step;
};

/* The taps of a kernel that are inside 0..size-1 for the output at o. */
static void clip_taps(int64_t origin, int dilation, int kernel, int64_t size, int *k0, int *k1)
{
    int64_t first = origin < 0 ? (-origin + dilation - 1) / dilation : 0;
    int64_t last = origin < size ? (size - 1 - origin) / dilation + 1 : 0;
    *k0 = (int)(first < kernel ? first : kernel);
    *k1 = (int)(last < kernel ? last : kernel);
}

/* Output columns first..last-1 see all taps; those before and after are at a border. */
static void inner_columns(const struct sac_conv *c, int64_t *first, int64_t *last)
{
    int64_t w = c->out_w;
    int64_t reach = (int64_t)(c->kernel_w - 1) * c->dilation_w;
    int64_t a = (c->pad_left + c->stride_w - 1) / c->stride_w;
    int64_t room = c->in_w - 1 - reach + c->pad_left;
    int64_t b = room < 0 ? 0 : room / c->stride_w + 1;
    *first = a < w ? a : w;
    *last = b > w ? w : b < *first ? *first : b;
}

/* ---- lines of one slice ---- */

struct band {
    const struct sac_conv *c;
    const conv_in         *in; /* where the kernel's first slice lies; may point outside */
    const conv_out        *residual;
    conv_out              *out;
    int64_t                y0, y1;
    int                    kz0, kz1; /* slices of the kernel that are inside */
};

/* Weights of the convolution's first channel. */
static const conv_weight *conv_weights(const struct sac_conv *c);
/* Pixels x0..x1-1 of one line or column, which all have the tile's taps. */
SIMD_FN static void run_span(const struct tile *line, int64_t x0, int64_t x1);
/* Blocks of channels from channel oc of group g on, one or several: run_taps and what follows.
 * Returns how many. */
static int  run_blocks(const struct band *b, int64_t g, int64_t oc);
static void run_depthwise(const struct band *b, int64_t y, int64_t lines);

/* Line y, all channels. */
static struct tile line_of(const struct band *b, int64_t y)
{
    const struct sac_conv *c = b->c;
    const int64_t          origin = y * c->stride_h - c->pad_top;
    struct tile            line = {.c = c,
                                   .plane0 = b->kz0 * (int)c->planes,
                                   .plane1 = b->kz1 * (int)c->planes,
                                   .in_step = c->in.pixel * c->stride_w,
                                   .out_step = c->out.pixel,
                                   .residual_step = c->residual.pixel};
    clip_taps(origin, c->dilation_h, c->kernel_h, c->in_h, &line.ky0, &line.ky1);
    line.in = b->in + b->kz0 * c->dilation_d * c->in.slice + origin * c->in.row -
              c->pad_left * c->in.pixel;
    line.out = b->out + y * c->out.row;
    line.residual = b->residual ? b->residual + y * c->residual.row : line.out;
    return line;
}

/* A block of its channels: those of group g from oc on. */
static struct tile block_of(const struct band *b, int64_t y, int64_t g, int64_t oc)
{
    const struct sac_conv *c = b->c;
    const int64_t          left = c->group_out_c - oc, vecs = (left + LANES - 1) / LANES;
    const int64_t          channel = g * c->group_out_c + oc;
    struct tile            part = line_of(b, y);
    part.block = vecs < c->block ? (int)vecs : c->block;
    part.in += g * c->group_in_c;
    part.weights = conv_weights(c) + g * c->group_weights + (c->first + oc) * c->depth;
    part.lane = g * c->group_bias + c->first + oc;
    part.out += channel * c->out.channel;
    part.residual += channel * c->residual.channel;
    part.channels = left;
    part.added = left - c->residual_fewer;
    return part;
}

static int64_t width_of(const struct sac_conv *c, int64_t y)
{
    return y == c->out_h - 1 ? c->last_w : c->out_w;
}

static bool sees_all_rows(const struct tile *t)
{
    return t->ky1 - t->ky0 == t->c->kernel_h;
}

/* Column x, which is at a border: lines with all taps of a column go together, as pixels of a line
 * do. One by one they would be a third of a small map's time. */
static void run_border(const struct band *b, int64_t g, int64_t oc, int64_t x)
{
    const struct sac_conv *c = b->c;
    for (int64_t y = b->y0; y < b->y1;) {
        struct tile part = block_of(b, y, g, oc), below = part;
        int64_t     end = y;
        while (++end < b->y1 && sees_all_rows(&below)) {
            below = line_of(b, end);
            if (!sees_all_rows(&below))
                break;
        }
        clip_taps(x * c->stride_w - c->pad_left, c->dilation_w, c->kernel_w, c->in_w, &part.kx0,
                  &part.kx1);
        part.in += x * part.in_step;
        part.out += x * part.out_step;
        part.residual += x * part.residual_step;
        part.in_step = c->in.row * c->stride_h;
        part.out_step = c->out.row;
        part.residual_step = c->residual.row;
        run_span(&part, 0, end - y);
        y = end;
    }
}

/* Columns x0..x1-1, which see the taps of columns kx0..kx1-1, line by line. */
static void run_alike(const struct band *b, int64_t g, int64_t oc, int64_t x0, int64_t x1, int kx0,
                      int kx1)
{
    for (int64_t y = b->y0; y < b->y1; y++) {
        const int64_t width = width_of(b->c, y);
        struct tile   part = block_of(b, y, g, oc);
        part.kx0 = kx0;
        part.kx1 = kx1;
        run_span(&part, x0, x1 < width ? x1 : width);
    }
}

/* Columns x0..x1-1 at a border. Of a dilated kernel as many neighbours as its taps are apart see
 * the same ones. */
static void run_side(const struct band *b, int64_t g, int64_t oc, int64_t x0, int64_t x1)
{
    const struct sac_conv *c = b->c;
    int                    at[2], to[2];
    for (int64_t x = x0, end = x0; x < x1; x = end) {
        clip_taps(x * c->stride_w - c->pad_left, c->dilation_w, c->kernel_w, c->in_w, &at[0],
                  &at[1]);
        do
            clip_taps(++end * c->stride_w - c->pad_left, c->dilation_w, c->kernel_w, c->in_w,
                      &to[0], &to[1]);
        while (end < x1 && to[0] == at[0] && to[1] == at[1]);
        if (end - x > b->y1 - b->y0)
            run_alike(b, g, oc, x, end, at[0], at[1]);
        else
            for (int64_t column = x; column < end; column++)
                run_border(b, g, oc, column);
    }
}

/* A block of channels. The lines share its weights while these are in the cache: on a small map
 * with many channels they are what is read most. */
static void run_taps(const struct band *b, int64_t g, int64_t oc)
{
    const struct sac_conv *c = b->c;
    int64_t                first, last;
    inner_columns(c, &first, &last);
    run_alike(b, g, oc, first, last, 0, c->kernel_w);
    run_side(b, g, oc, 0, first);
    run_side(b, g, oc, last, c->out_w);
}

/* The last line of a map may be shorter. */
static void run_lines(const struct band *b)
{
    const struct sac_conv *c = b->c;
    const bool             shorter = b->y1 == c->out_h && c->last_w < c->out_w;
    if (c->depthwise) {
        run_depthwise(b, b->y0, b->y1 - b->y0 - shorter);
        if (shorter)
            run_depthwise(b, b->y1 - 1, 1);
        return;
    }
    for (int64_t g = 0; g < c->groups; g++)
        for (int64_t oc = 0; oc < c->group_out_c;)
            oc += run_blocks(b, g, oc) * (int64_t)c->block * LANES;
}

/* Slice s % out_d of sample s / out_d. */
static struct band slice_of(const struct sac_conv *c, const conv_in *in, const conv_out *residual,
                            conv_out *out, int64_t s)
{
    const int64_t n = s / c->out_d, z = s % c->out_d, origin = z * c->stride_d - c->pad_front;
    struct band   band = {.c = c};
    band.in = in + n * c->in.sample + origin * c->in.slice;
    band.residual = residual ? residual + n * c->residual.sample + z * c->residual.slice : NULL;
    band.out = out + n * c->out.sample + z * c->out.slice;
    clip_taps(origin, c->dilation_d, c->kernel_d, c->in_d, &band.kz0, &band.kz1);
    return band;
}

/* All channels of the convolution, which may be a part of one. */
static void run_rows(const struct sac_conv *c, const conv_in *in, const conv_out *residual,
                     conv_out *out, int64_t row0, int64_t row1)
{
    in += c->depthwise ? c->first : 0;
    residual += residual ? c->first * c->residual.channel : 0;
    out += c->first * c->out.channel;
    for (int64_t r = row0; r < row1;) {
        const int64_t y = r % c->out_h, rest = c->out_h - y;
        const int64_t lines = rest < row1 - r ? rest : row1 - r;
        struct band   band = slice_of(c, in, residual, out, r / c->out_h);
        band.y0 = y;
        band.y1 = y + lines;
        run_lines(&band);
        r += lines;
    }
}

#endif
