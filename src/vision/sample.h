/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of one pixel: where an output falls on its inputs, with which weights, and what
 * becomes of the channels. The CPU's row kernels and the CUDA kernels both compute by it, to the
 * last bit: weights are integers, and nothing may be contracted to a fused multiply-add (the
 * kernels are compiled with -fmad=false). */
#ifndef SAC_VISION_SAMPLE_H
#define SAC_VISION_SAMPLE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <saccade/image.h>

#include "base/anywhere.h"
#include "device/format.h"

/* GCC is told by -std=c11, nvcc by -fmad=false. */
#if defined(__clang__) && !defined(__CUDACC__)
#pragma STDC FP_CONTRACT OFF
#endif

enum {
    SAC_ROW_WEIGHT_BITS = 15,   /* vertical */
    SAC_COLUMN_WEIGHT_BITS = 14 /* horizontal: as a 16 bit multiply-add takes them */
};
#define SAC_FLOAT_OF_SUM (1.0f / (float)(1 << (7 + SAC_COLUMN_WEIGHT_BITS)))

/* R = y_scale * (Y - y_zero) + r_v * (V - c_zero), and so on; the result is clamped to 0..255. */
struct sac_colour_map {
    float y_scale, y_zero, c_zero;
    float r_v, g_u, g_v, b_u;
};

/* How outputs fall on inputs: output i covers inputs from origin + i * step on. */
struct sac_axis_spec {
    int    n, size; /* outputs, inputs */
    double origin, step;
    bool   area;
};

/* `length` inputs from `origin` on, seen as n outputs. */
SAC_ANYWHERE struct sac_axis_spec sac_axis_spec_of(int n, int size, double origin, double length,
                                                   enum sac_filter filter)
{
    struct sac_axis_spec spec;
    spec.n = n;
    spec.size = size;
    spec.origin = origin;
    spec.step = length / n;
    spec.area = filter == SAC_FILTER_AREA && spec.step > 1.0;
    return spec;
}

SAC_ANYWHERE int sac_axis_clamp(double i, int size)
{
    i = i < size - 1 ? i : size - 1;
    return (int)(i > 0.0 ? i : 0.0);
}

/* The two inputs of a bilinear output; the second weighs `second`, the first what is left of
 * one. */
struct sac_tap {
    int     a, b;
    int32_t second;
};

SAC_ANYWHERE struct sac_tap sac_axis_tap(const struct sac_axis_spec *s, int i, int32_t one)
{
    double         centre = s->origin + (i + 0.5) * s->step - 0.5, low = floor(centre);
    struct sac_tap tap;
    tap.a = sac_axis_clamp(low, s->size);
    tap.b = sac_axis_clamp(low + 1, s->size);
    tap.second = (int32_t)lrint((centre - low) * one);
    return tap;
}

/* The inputs under an output of an area filter. Shares are cut from a running sum, so that rounding
 * never changes the total: input i weighs sac_area_until(i) - sac_area_until(i - 1). */
struct sac_area {
    int    first;
    bool   outside; /* the output lies past the frame: first alone, the edge, counts */
    double begin, end;
};

SAC_ANYWHERE struct sac_area sac_axis_area(const struct sac_axis_spec *s, int i)
{
    struct sac_area a;
    a.begin = s->origin + i * s->step;
    a.end = a.begin + s->step;
    a.first = sac_axis_clamp(floor(a.begin), s->size);
    a.outside = a.begin >= s->size || a.end <= 0;
    if (a.outside)
        a.first = a.begin < 0 ? 0 : s->size - 1;
    return a;
}

SAC_ANYWHERE int32_t sac_area_until(const struct sac_axis_spec *s, const struct sac_area *a,
                                    int input, int32_t one)
{
    if (a->outside || input == s->size - 1 || input + 1 >= a->end)
        return one;
    return (int32_t)lrint((input + 1 - a->begin) / s->step * one);
}

/* ---- samples ---- */

/* A frame's planes as a kernel sees them, from the upright picture's first sample on. Rows of NV12
 * and P010 begin at even addresses. */
struct sac_surface {
    const uint8_t *plane[SAC_PLANES_MAX];
    uint32_t       pitch[SAC_PLANES_MAX];
    int32_t        across[SAC_PLANES_MAX]; /* bytes from a sample to the next one in its row */
    int32_t        down[SAC_PLANES_MAX];   /* and to the one below */
    bool           turned;                 /* else these are the sample's size and the pitch */
    int            width, height;
    enum sac_pixel_format format;
    struct sac_colour_map colour; /* of Y, U, V formats */
};

/* What is known of a surface when its kernel is compiled. A surface that is upright can be read as
 * a turned one, slower. */
struct sac_reading {
    enum sac_pixel_format format;
    bool                  turned;
};

/* Row y of a plane. Of a turned one a row is no run of bytes: then it is the sample x itself, at
 * 0. */
SAC_ANYWHERE const uint8_t *sac_row_of(const struct sac_surface *s, bool turned, int plane, int x,
                                       int y)
{
    if (turned)
        return s->plane[plane] + (int64_t)y * s->down[plane] + (int64_t)x * s->across[plane];
    return s->plane[plane] + (size_t)y * s->pitch[plane];
}

/* Luma, or number c of a pixel of R, G, B, in Q7. A format that is known when this is compiled
 * leaves one line. */
SAC_ANYWHERE int32_t sac_luma_q7(const struct sac_surface *s, struct sac_reading r, int x, int y,
                                 int c)
{
    const uint8_t *row = sac_row_of(s, r.turned, 0, x, y);
    x = r.turned ? 0 : x;
    if (r.format == SAC_PIXEL_P010)
        return ((const uint16_t *)(const void *)row)[x] >> 1; /* the top byte is the 8 bit value */
    if (sac_rgb_step(r.format)) /* one body for pixels of 3 and of 4: two would take registers from
                                   all formats */
        return row[sac_rgb_step(s->format) * x + c] << 7;
    return row[x] << 7;
}

/* U and V of the chroma sample x, y, in Q7. */
SAC_ANYWHERE void sac_chroma_q7(const struct sac_surface *s, struct sac_reading r, int x, int y,
                                int32_t uv[2])
{
    const uint8_t *row = sac_row_of(s, r.turned, 1, x, y);
    const int      at = r.turned ? 0 : x;
    if (r.format == SAC_PIXEL_P010) {
        uv[0] = ((const uint16_t *)(const void *)row)[2 * at] >> 1;
        uv[1] = ((const uint16_t *)(const void *)row)[2 * at + 1] >> 1;
    } else if (r.format == SAC_PIXEL_I420) {
        uv[0] = row[at] << 7;
        uv[1] = sac_row_of(s, r.turned, 2, x, y)[at] << 7;
    } else {
        const uint16_t pair = ((const uint16_t *)(const void *)row)[at]; /* U is the lower byte */
        uv[0] = (pair & 0xff) << 7;
        uv[1] = pair >> 8 << 7;
    }
}

/* Two Q7 samples, one above the other, to one. */
SAC_ANYWHERE int32_t sac_blend_rows(int32_t above, int32_t below, int32_t second)
{
    const int32_t one = 1 << SAC_ROW_WEIGHT_BITS;
    return ((one - second) * above + second * below + one / 2) >> SAC_ROW_WEIGHT_BITS;
}

/* Two Q7 samples side by side to a number in 0..255. */
SAC_ANYWHERE float sac_blend_columns(int32_t left, int32_t right, int32_t second)
{
    const int32_t one = 1 << SAC_COLUMN_WEIGHT_BITS;
    return (float)((one - second) * left + second * right) * SAC_FLOAT_OF_SUM;
}

/* The frame's own channels at one output pixel, as they lie in memory; grey: three times the same.
 * Chroma stands for 2 x 2 pixels, so that both taps of an axis may be one chroma sample: their
 * weights then add up. */
SAC_ANYWHERE void sac_sample_bilinear(const struct sac_surface *s, struct sac_reading r,
                                      struct sac_tap x, struct sac_tap y, float channel[3])
{
    const int count = sac_rgb_step(r.format) ? 3 : 1;
    for (int c = 0; c < count; c++) {
        int32_t left = sac_blend_rows(sac_luma_q7(s, r, x.a, y.a, c),
                                      sac_luma_q7(s, r, x.a, y.b, c), y.second);
        int32_t right = sac_blend_rows(sac_luma_q7(s, r, x.b, y.a, c),
                                       sac_luma_q7(s, r, x.b, y.b, c), y.second);
        channel[c] = sac_blend_columns(left, right, x.second);
    }
    if (sac_is_yuv(r.format)) {
        int32_t a[2], b[2], c[2], d[2];
        sac_chroma_q7(s, r, x.a / 2, y.a / 2, a);
        sac_chroma_q7(s, r, x.b / 2, y.a / 2, b);
        sac_chroma_q7(s, r, x.a / 2, y.b / 2, c);
        sac_chroma_q7(s, r, x.b / 2, y.b / 2, d);
        for (int k = 0; k < 2; k++)
            channel[1 + k] = sac_blend_columns(sac_blend_rows(a[k], c[k], y.second),
                                               sac_blend_rows(b[k], d[k], y.second), x.second);
    } else if (count == 1) {
        channel[1] = channel[2] = channel[0];
    }
}

/* ---- samples by area ---- */

/* A pixel summed column by column. Neighbours that share a chroma sample are taken together: it is
 * rounded once. */
struct sac_area_sum {
    int32_t sum[3], column[3];
    int32_t chroma_weight; /* of columns whose chroma comes with a later one */
};

SAC_ANYWHERE void sac_area_begin(struct sac_area_sum *a)
{
    a->sum[0] = a->sum[1] = a->sum[2] = a->chroma_weight = 0;
}

SAC_ANYWHERE void sac_area_begin_column(struct sac_area_sum *a)
{
    a->column[0] = a->column[1] = a->column[2] = 1 << (SAC_ROW_WEIGHT_BITS - 1);
}

/* One sample of a column; chroma: the column brings it. */
SAC_ANYWHERE void sac_area_add(struct sac_area_sum *a, const struct sac_surface *s,
                               struct sac_reading r, int x, int y, int32_t weight, bool chroma)
{
    const int count = sac_rgb_step(r.format) ? 3 : 1;
    for (int c = 0; c < count; c++)
        a->column[c] += weight * sac_luma_q7(s, r, x, y, c);
    if (chroma) {
        int32_t uv[2];
        sac_chroma_q7(s, r, x / 2, y / 2, uv);
        a->column[1] += weight * uv[0];
        a->column[2] += weight * uv[1];
    }
}

SAC_ANYWHERE void sac_area_end_column(struct sac_area_sum *a, struct sac_reading r, int32_t weight,
                                      bool chroma)
{
    const int count = sac_rgb_step(r.format) ? 3 : 1;
    a->chroma_weight += weight;
    for (int c = 0; c < count; c++)
        a->sum[c] += weight * (a->column[c] >> SAC_ROW_WEIGHT_BITS);
    if (chroma) {
        a->sum[1] += a->chroma_weight * (a->column[1] >> SAC_ROW_WEIGHT_BITS);
        a->sum[2] += a->chroma_weight * (a->column[2] >> SAC_ROW_WEIGHT_BITS);
        a->chroma_weight = 0;
    }
}

SAC_ANYWHERE void sac_area_end(const struct sac_area_sum *a, struct sac_reading r, float channel[3])
{
    const bool grey = !sac_rgb_step(r.format) && !sac_is_yuv(r.format);
    for (int c = 0; c < 3; c++)
        channel[c] = (float)a->sum[grey ? 0 : c] * SAC_FLOAT_OF_SUM;
}

/* One direction of a pixel: `taps` inputs from first on, weight[k * stride] each. */
struct sac_taps {
    int            first, taps;
    const int32_t *weight;
    int            stride;
};

/* A pixel of any number of inputs, whose weights were made before. */
SAC_ANYWHERE void sac_sample_taps(const struct sac_surface *s, struct sac_reading r,
                                  const struct sac_taps *x, const struct sac_taps *y,
                                  float channel[3])
{
    const bool          yuv = sac_is_yuv(r.format);
    struct sac_area_sum a;
    sac_area_begin(&a);
    for (int i = 0; i < x->taps; i++) {
        const int  at = x->first + i;
        const bool chroma = yuv && (i + 1 == x->taps || (at & 1));
        sac_area_begin_column(&a);
        for (int k = 0; k < y->taps; k++) {
            const int32_t weight = y->weight[k * y->stride];
            if (weight)
                sac_area_add(&a, s, r, at, y->first + k, weight, chroma);
        }
        sac_area_end_column(&a, r, x->weight[i * x->stride], chroma);
    }
    sac_area_end(&a, r, channel);
}

/* One direction of a pixel with its weights made on the way: for any size, slowly. */
struct sac_axis_walk {
    struct sac_tap  tap;
    struct sac_area area;
    int             first;
    int32_t         given;
};

SAC_ANYWHERE void sac_axis_walk_begin(struct sac_axis_walk *w, const struct sac_axis_spec *s, int i,
                                      int32_t one)
{
    w->given = 0;
    w->area = sac_axis_area(s, i);
    w->tap = sac_axis_tap(s, i, one);
    w->first = s->area ? w->area.first : w->tap.a;
}

/* The weight of the next input; the walk is over when they add up to one. */
SAC_ANYWHERE int32_t sac_axis_walk_next(struct sac_axis_walk *w, const struct sac_axis_spec *s,
                                        int input, int32_t one)
{
    int32_t until = one;
    if (s->area)
        until = sac_area_until(s, &w->area, input, one);
    else if (input == w->tap.a && w->tap.a != w->tap.b)
        until = one - w->tap.second;
    const int32_t weight = until - w->given;
    w->given = until;
    return weight;
}

/* The same pixel by walks. */
SAC_ANYWHERE void sac_sample_area(const struct sac_surface *s, struct sac_reading r,
                                  const struct sac_axis_spec *x, int ix,
                                  const struct sac_axis_spec *y, int iy, float channel[3])
{
    const int32_t        one_x = 1 << SAC_COLUMN_WEIGHT_BITS, one_y = 1 << SAC_ROW_WEIGHT_BITS;
    struct sac_axis_walk wx, wy;
    struct sac_area_sum  a;
    sac_area_begin(&a);
    sac_axis_walk_begin(&wx, x, ix, one_x);
    for (int at = wx.first; wx.given < one_x; at++) {
        const int32_t weight = sac_axis_walk_next(&wx, x, at, one_x);
        const bool    chroma = sac_is_yuv(r.format) && (wx.given == one_x || (at & 1));
        sac_area_begin_column(&a);
        sac_axis_walk_begin(&wy, y, iy, one_y);
        for (int row = wy.first; wy.given < one_y; row++)
            sac_area_add(&a, s, r, at, row, sac_axis_walk_next(&wy, y, row, one_y), chroma);
        sac_area_end_column(&a, r, weight, chroma);
    }
    sac_area_end(&a, r, channel);
}

/* ---- colour ---- */

SAC_ANYWHERE float sac_clamp255(float v)
{
    v = v < 0.0f ? 0.0f : v;
    return v > 255.0f ? 255.0f : v;
}

/* Y, U, V become R, G, B. */
SAC_ANYWHERE void sac_colour_apply(const struct sac_colour_map *m, float channel[3])
{
    float y = m->y_scale * (channel[0] - m->y_zero), u = channel[1] - m->c_zero,
          v = channel[2] - m->c_zero;
    channel[0] = sac_clamp255(y + m->r_v * v);
    channel[1] = sac_clamp255(y + (m->g_u * u + m->g_v * v));
    channel[2] = sac_clamp255(y + m->b_u * u);
}

/* Y = r*R + g*G + b*B, scaled and shifted; U and V from B - Y and R - Y. */
struct sac_encode_map {
    float r, g, b; /* of full-range luma */
    float y_scale, y_zero, u_scale, v_scale;
};

/* R, G, B become Y, U, V. */
SAC_ANYWHERE void sac_encode_apply(const struct sac_encode_map *m, float channel[3])
{
    float y = m->r * channel[0] + m->g * channel[1] + m->b * channel[2];
    float u = (channel[2] - y) * m->u_scale, v = (channel[0] - y) * m->v_scale;
    channel[0] = y * m->y_scale + m->y_zero;
    channel[1] = u + 128.0f;
    channel[2] = v + 128.0f;
}

/* From a source's channels to a destination's. */
struct sac_recode {
    bool                  same_colours; /* both Y, U, V of one matrix and range */
    enum sac_pixel_format from, to;
    struct sac_colour_map decode;
    struct sac_encode_map encode;
};

SAC_ANYWHERE void sac_recode_apply(const struct sac_recode *r, float channel[3])
{
    if (r->same_colours || (r->from == SAC_PIXEL_GRAY8 && r->to == SAC_PIXEL_GRAY8))
        return;
    if (r->to == SAC_PIXEL_GRAY8) { /* full-range luma: of a Y, U, V frame its own Y */
        channel[0] = sac_is_yuv(r->from) ? r->decode.y_scale * (channel[0] - r->decode.y_zero)
                                         : r->encode.r * channel[0] + r->encode.g * channel[1] +
                                               r->encode.b * channel[2];
        return;
    }
    if (sac_is_yuv(r->from))
        sac_colour_apply(&r->decode, channel);
    if (sac_is_yuv(r->to))
        sac_encode_apply(&r->encode, channel);
}

SAC_ANYWHERE uint8_t sac_byte_of(float v)
{
    return (uint8_t)(int)(sac_clamp255(v) + 0.5f);
}

SAC_ANYWHERE uint16_t sac_ten_bits_of(float v)
{
    v *= 4.0f;
    v = v > 0.0f ? v : 0.0f;
    v = v < 1023.0f ? v : 1023.0f;
    return (uint16_t)((int)(v + 0.5f) << 6);
}

SAC_ANYWHERE float sac_float_of_half(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, magnitude = half & 0x7fff;
    uint32_t       bits = sign | ((magnitude << 13) + 0x38000000);
    float          f;
    if (magnitude >= 0x7c00) /* infinity, not a number */
        bits = sign | 0x7f800000 | (magnitude & 0x3ff) << 13;
    if (magnitude < 0x400) { /* subnormal */
        f = (float)magnitude * (1.0f / (1 << 24));
        return sign ? -f : f;
    }
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* ---- sample.c: what the host finds out about frames, for every device ---- */

/* Luma weights of the three primaries in a colour matrix. */
struct sac_luma_weights {
    double r, g, b;
};
struct sac_luma_weights sac_luma_weights_of(enum sac_colour_matrix matrix);
struct sac_colour_map   sac_colour_map_of(const sac_frame *frame);
struct sac_surface      sac_surface_of(const sac_frame *frame);
struct sac_recode       sac_recode_of(const sac_frame *src, const sac_frame *dst);
/* A conversion that changes nothing. */
bool sac_is_plain_copy(const sac_frame *a, const sac_frame *b);

#endif
