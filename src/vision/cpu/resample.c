/* SPDX-License-Identifier: Apache-2.0 */
#include "vision/cpu/resample.h"

#include <math.h>
#include <string.h>

enum { ALIGN = 64 };

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

int sac_sampler_planes(const sac_frame *f, struct sac_plane out[SAC_SAMPLER_PLANES])
{
    static const enum sac_plane_kind kinds[2][4] = {
        {SAC_PLANE_BYTE, SAC_PLANE_BYTE_PAIR, SAC_PLANE_BYTE_TRIPLE, SAC_PLANE_BYTE_QUAD},
        {SAC_PLANE_WORD, SAC_PLANE_WORD_PAIR}};
    const struct sac_format_info *info = sac_format_info_of(f->format);
    for (int i = 0; i < info->planes; i++)
        out[i] = (struct sac_plane){
            .kind = kinds[info->number_bytes - 1][info->step[i] - 1],
            .channels = SAC_MIN(info->step[i], 3),      /* alpha is not looked at */
            .width = i ? (f->width + 1) / 2 : f->width, /* planes after the first are chroma */
            .height = i ? (f->height + 1) / 2 : f->height,
            .data = f->plane[i],
            .pitch = f->pitch_bytes[i],
        };
    return info->planes;
}

/* ---- axes ---- */

static int even(int taps)
{
    return taps + (taps & 1);
}

static int luma_taps(const struct sac_axis_spec *spec)
{
    /* Past the frame all inputs are its edge, so more taps than inputs are never needed. */
    return spec->area ? even((int)fmin(ceil(spec->step) + 1, spec->size)) : 2;
}

static int chroma_taps(int taps)
{
    return even(taps / 2 + 1);
}

static size_t axis_bytes(int n, int taps)
{
    return aligned((size_t)n * sizeof(int32_t) * (size_t)(1 + taps));
}

static void axis_place(struct sac_axis *a, int n, int size, int taps, char **memory)
{
    *a = (struct sac_axis){.n = n, .size = size, .taps = taps, .begin = size};
    a->first = (int32_t *)(void *)*memory;
    a->weight = a->first + n;
    *memory += axis_bytes(n, taps);
    memset(a->weight, 0, (size_t)n * (size_t)taps * sizeof *a->weight);
}

static void axis_start(struct sac_axis *a, int i, int first)
{
    a->first[i] = SAC_CLAMP(first, 0, SAC_MAX(a->size - a->taps, 0));
}

static void axis_add(struct sac_axis *a, int i, int input, int32_t weight)
{
    if (!weight)
        return;
    a->weight[(size_t)(input - a->first[i]) * (size_t)a->n + (size_t)i] += weight;
    a->begin = SAC_MIN(a->begin, input);
    a->end = SAC_MAX(a->end, input + 1);
}

static void bilinear_output(struct sac_axis *a, const struct sac_axis_spec *s, int i, int32_t one)
{
    struct sac_tap tap = sac_axis_tap(s, i, one);
    axis_start(a, i, tap.a);
    axis_add(a, i, tap.a, one - tap.second);
    axis_add(a, i, tap.b, tap.second);
}

static void area_output(struct sac_axis *a, const struct sac_axis_spec *s, int i, int32_t one)
{
    struct sac_area area = sac_axis_area(s, i);
    axis_start(a, i, area.first);
    for (int32_t input = area.first, given = 0; given < one; input++) {
        int32_t until = sac_area_until(s, &area, input, one);
        axis_add(a, i, input, until - given);
        given = until;
    }
}

static void axis_fill(struct sac_axis *a, const struct sac_axis_spec *s, int weight_bits)
{
    for (int i = 0; i < s->n; i++)
        if (s->area)
            area_output(a, s, i, 1 << weight_bits);
        else
            bilinear_output(a, s, i, 1 << weight_bits);
}

/* The taps of a 4:2:0 chroma plane whose samples stand for two inputs each. */
static void axis_halve(struct sac_axis *chroma, const struct sac_axis *luma)
{
    for (int i = 0; i < luma->n; i++) {
        axis_start(chroma, i, luma->first[i] / 2);
        for (int k = 0; k < luma->taps; k++)
            axis_add(chroma, i, (luma->first[i] + k) / 2,
                     luma->weight[(size_t)k * (size_t)luma->n + (size_t)i]);
    }
}

/* Weights k and k + 1 of one output become one 32 bit word, as the 16 bit multiply-add wants. In
 * place: a pair is written before any slot that is still to be read. */
static void axis_pack(struct sac_axis *a)
{
    size_t n = (size_t)a->n;
    for (size_t k = 0; k < (size_t)a->taps / 2; k++)
        for (size_t i = 0; i < n; i++) {
            uint32_t low = (uint32_t)a->weight[2 * k * n + i];
            uint32_t high = (uint32_t)a->weight[(2 * k + 1) * n + i];
            a->weight[k * n + i] = (int32_t)(low | high << 16);
        }
}

/* ---- sampler ---- */

static struct sac_axis_spec spec_x(const struct sac_sampler_spec *s)
{
    return sac_axis_spec_of(s->width, s->frame->width, s->crop.x0, (double)s->crop.x1 - s->crop.x0,
                            s->filter);
}

static struct sac_axis_spec spec_y(const struct sac_sampler_spec *s)
{
    return sac_axis_spec_of(s->height, s->frame->height, s->crop.y0,
                            (double)s->crop.y1 - s->crop.y0, s->filter);
}

size_t sac_sampler_bytes(const struct sac_sampler_spec *spec)
{
    struct sac_axis_spec x = spec_x(spec), y = spec_y(spec);
    int                  x_taps = luma_taps(&x), y_taps = luma_taps(&y);
    return axis_bytes(x.n, x_taps) + axis_bytes(x.n, chroma_taps(x_taps)) +
           axis_bytes(y.n, y_taps) + axis_bytes(y.n, chroma_taps(y_taps));
}

static void axes_init(struct sac_axis axis[2], const struct sac_axis_spec *spec, int weight_bits,
                      char **memory)
{
    int taps = luma_taps(spec);
    axis_place(&axis[0], spec->n, spec->size, taps, memory);
    axis_place(&axis[1], spec->n, (spec->size + 1) / 2, chroma_taps(taps), memory);
    axis_fill(&axis[0], spec, weight_bits);
    axis_halve(&axis[1], &axis[0]);
}

void sac_sampler_init(struct sac_sampler *s, const struct sac_sampler_spec *spec, void *memory)
{
    struct sac_axis_spec x = spec_x(spec), y = spec_y(spec);
    char                *at = memory;
    *s = (struct sac_sampler){.width = spec->width, .height = spec->height};
    s->plane_count = sac_sampler_planes(spec->frame, s->plane);
    s->yuv = s->plane_count > 1;
    s->grey = spec->frame->format == SAC_PIXEL_GRAY8;
    s->bgr = sac_is_bgr(spec->frame->format);
    s->colour = sac_colour_map_of(spec->frame);
    axes_init(s->x, &x, SAC_COLUMN_WEIGHT_BITS, &at);
    axes_init(s->y, &y, SAC_ROW_WEIGHT_BITS, &at);
    axis_pack(&s->x[0]);
    axis_pack(&s->x[1]);
}

/* A Q7 row is as long as the plane, and the taps of a plane with fewer inputs reach past its end.
 */
static size_t q7_row_bytes(int size, int taps)
{
    return aligned((size_t)(size + taps) * sizeof(int16_t));
}

static size_t float_row_bytes(int width)
{
    return aligned((size_t)width * sizeof(float));
}

size_t sac_sampler_scratch_bytes(const struct sac_sampler_spec *spec)
{
    struct sac_axis_spec x = spec_x(spec);
    return 3 * (q7_row_bytes(x.size, luma_taps(&x)) + float_row_bytes(spec->width));
}

void sac_sampler_channels(const struct sac_sampler *s, const struct sac_row_ops *ops, int y,
                          void *scratch, float *channel[3])
{
    size_t q7_bytes = q7_row_bytes(s->x[0].size, s->x[0].taps);
    char  *q7 = scratch, *floats = q7 + 3 * q7_bytes;
    int    c = 0;
    for (int p = 0; p < s->plane_count; p++) {
        const struct sac_axis *x = &s->x[p > 0];
        int16_t               *row[3];
        for (int k = 0; k < 3; k++)
            row[k] = (int16_t *)(void *)(q7 + (size_t)k * q7_bytes);
        ops->vertical(&s->plane[p], &s->y[p > 0], y, x->begin, x->end, row);
        for (int k = 0; k < s->plane[p].channels; k++, c++) {
            channel[c] = (float *)(void *)(floats + (size_t)c * float_row_bytes(s->width));
            ops->horizontal(x, row[k], channel[c]);
        }
    }
    if (s->bgr) {
        float *b = channel[0];
        channel[0] = channel[2];
        channel[2] = b;
    }
}

void sac_sampler_row(const struct sac_sampler *s, const struct sac_row_ops *ops, int y,
                     void *scratch, float *rgb[3])
{
    sac_sampler_channels(s, ops, y, scratch, rgb);
    if (s->yuv)
        ops->colour(&s->colour, rgb, s->width);
    if (s->grey)
        rgb[1] = rgb[2] = rgb[0];
}
