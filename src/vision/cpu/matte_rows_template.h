/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of matte.h in plain C. matte_rows.c and matte_rows_avx2.c include this text once each
 * with ROWS_TARGET set to their instruction set: the compiler widens the loops by itself. Of
 * multiply-adds only those of fmaf() are fused. */
#include "vision/cpu/matte.h"

#define ROWS_KERNEL ROWS_TARGET static

ROWS_KERNEL void share_row(const float *restrict in, int n, int16_t *restrict out)
{
    for (int i = 0; i < n; i++)
        out[i] = sac_matte_share(in[i]);
}

ROWS_KERNEL void sigmoid_row(const float *restrict in, int n, int16_t *restrict out)
{
    for (int i = 0; i < n; i++)
        out[i] = sac_matte_share(sac_sigmoid(in[i]));
}

ROWS_KERNEL void part_row(const float *restrict wanted, const float *restrict total, int n,
                          int16_t *restrict out)
{
    for (int i = 0; i < n; i++)
        out[i] = sac_matte_share(sac_matte_part(wanted[i], total[i]));
}

ROWS_KERNEL void greatest_row(const float *restrict in, int n, float *restrict greatest)
{
    for (int i = 0; i < n; i++)
        greatest[i] = in[i] > greatest[i] ? in[i] : greatest[i];
}

ROWS_KERNEL void add_row(const float *restrict in, int n, float *restrict sum)
{
    for (int i = 0; i < n; i++)
        sum[i] += in[i];
}

ROWS_KERNEL void exponentials_row(const float *restrict in, const float *restrict greatest, int n,
                                  float *restrict out, float *restrict total)
{
    for (int i = 0; i < n; i++) {
        out[i] = sac_exp(in[i] - greatest[i]);
        total[i] += out[i];
    }
}

ROWS_KERNEL int32_t unsure_row(const int16_t *share, int n)
{
    int32_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += sac_matte_unsure(share[i]);
    return sum;
}

ROWS_KERNEL void add_bytes_row(const uint8_t *restrict in, int n, uint16_t *restrict sum)
{
    for (int i = 0; i < n; i++)
        sum[i] = (uint16_t)(sum[i] + in[i]);
}

enum { RESIDUAL_PIECE = 256 };

ROWS_KERNEL void residual_row(const uint8_t *now, const uint8_t *before, int pitch, int n,
                              uint16_t *restrict out)
{
    uint16_t column[RESIDUAL_PIECE + 2];
    for (int from = 0; from < n; from += RESIDUAL_PIECE) {
        const int count = SAC_MIN(RESIDUAL_PIECE, n - from);
        for (int i = 0; i < count + 2; i++)
            column[i] = 0;
        for (int j = 0; j < 3; j++) {
            const uint8_t *a = now + (ptrdiff_t)j * pitch + from,
                          *b = before + (ptrdiff_t)j * pitch + from;
            for (int i = 0; i < count + 2; i++)
                column[i] = (uint16_t)(column[i] + (a[i] > b[i] ? a[i] - b[i] : b[i] - a[i]));
        }
        for (int i = 0; i < count; i++)
            out[from + i] = (uint16_t)(column[i] + column[i + 1] + column[i + 2]);
    }
}

ROWS_KERNEL void smooth_row(int16_t *restrict share, const int16_t *restrict was,
                            const uint16_t *restrict residual, int smooth, int n)
{
    for (int i = 0; i < n; i++)
        share[i] = sac_matte_smooth(share[i], was[i], residual[i], smooth);
}

ROWS_KERNEL void most_row(const int16_t *restrict in, int n, int16_t *restrict best)
{
    for (int i = 0; i < n; i++)
        best[i] = in[i] > best[i] ? in[i] : best[i];
}

ROWS_KERNEL void least_row(const int16_t *restrict in, int n, int16_t *restrict best)
{
    for (int i = 0; i < n; i++)
        best[i] = in[i] < best[i] ? in[i] : best[i];
}

ROWS_KERNEL void add_products_row(const uint8_t *restrict luma, const int16_t *restrict share,
                                  int n, int32_t *const sum[4])
{
    int32_t *restrict a = sum[0], *restrict b = sum[1], *restrict c = sum[2], *restrict d = sum[3];
    for (int i = 0; i < n; i++) {
        a[i] += luma[i];
        b[i] += share[i];
        c[i] += luma[i] * luma[i];
        d[i] += luma[i] * share[i];
    }
}

ROWS_KERNEL void add_sums_row(const int32_t *restrict in, int n, int32_t *restrict sum)
{
    for (int i = 0; i < n; i++)
        sum[i] += in[i];
}

ROWS_KERNEL void lines_row(int32_t *const sum[4], int x, int n, int cells, int radius, int count,
                           double variance, int32_t *restrict slope, int32_t *restrict base)
{
    const int32_t *luma = sum[0], *share = sum[1], *luma2 = sum[2], *both = sum[3];
    for (int i = 0; i < n; i++) {
        const struct sac_matte_sums s = {luma[i], share[i], luma2[i], both[i]};
        const double                size = (double)(sac_matte_window(x + i, cells, radius) * count);
        sac_matte_line(&s, size, sac_matte_noise(variance, size), &slope[i], &base[i]);
    }
}

ROWS_KERNEL void means_row(const int32_t *restrict slope, const int32_t *restrict base, int x,
                           int n, int cells, int radius, int count,
                           struct sac_matte_stretch stretch, float *restrict out_slope,
                           float *restrict out_base)
{
    for (int i = 0; i < n; i++) {
        const float inverse = sac_matte_inverse(sac_matte_window(x + i, cells, radius) * count);
        out_slope[i] = sac_matte_slope(slope[i], inverse, stretch);
        out_base[i] = sac_matte_base(base[i], inverse, stretch);
    }
}

ROWS_KERNEL void widen_row(const float *restrict in, const int32_t *restrict a,
                           const int32_t *restrict b, const float *restrict part, int n,
                           float *restrict out)
{
    for (int i = 0; i < n; i++)
        out[i] = sac_matte_between(in[a[i]], in[b[i]], part[i]);
}

ROWS_KERNEL void pixels_row(const float *const slope[2], const float *const base[2], float part,
                            const uint8_t *restrict luma, int n, uint8_t *restrict out)
{
    const float *restrict s0 = slope[0], *restrict s1 = slope[1];
    const float *restrict b0 = base[0], *restrict b1 = base[1];
    for (int i = 0; i < n; i++)
        out[i] = sac_matte_pixel(sac_matte_between(s0[i], s1[i], part),
                                 sac_matte_between(b0[i], b1[i], part), luma[i]);
}

ROWS_KERNEL void exceed_row(const float *restrict above, const float *restrict below, float part,
                            int n, int32_t number, float *restrict best, int32_t *restrict which)
{
    for (int i = 0; i < n; i++) {
        const float v = sac_matte_between(above[i], below[i], part);
        which[i] = v > best[i] ? number : which[i];
        best[i] = v > best[i] ? v : best[i];
    }
}

ROWS_KERNEL void luma_of_words_row(const uint8_t *restrict row, int n, uint8_t *restrict out)
{
    const uint16_t *restrict words = (const uint16_t *)(const void *)row;
    for (int i = 0; i < n; i++)
        out[i] = (uint8_t)(words[i] >> 8);
}

/* Spelled out for each format, so that the loop is free of choices. */
ROWS_TARGET static inline __attribute__((always_inline)) void
luma_of_format(const uint8_t *row, enum sac_pixel_format format, int n, uint8_t *out)
{
    const struct sac_surface s = {.plane = {row}, .format = format};
    const struct sac_reading r = {format, false};
    for (int i = 0; i < n; i++)
        out[i] = (uint8_t)sac_matte_luma(&s, r, i, 0);
}

ROWS_KERNEL void luma_of_colours_row(const uint8_t *row, enum sac_pixel_format format, int n,
                                     uint8_t *out)
{
    switch (format) {
    case SAC_PIXEL_RGB24: luma_of_format(row, SAC_PIXEL_RGB24, n, out); break;
    case SAC_PIXEL_BGR24: luma_of_format(row, SAC_PIXEL_BGR24, n, out); break;
    case SAC_PIXEL_RGBA: luma_of_format(row, SAC_PIXEL_RGBA, n, out); break;
    default: luma_of_format(row, SAC_PIXEL_BGRA, n, out); break;
    }
}

#define MATTE_ROWS                                                                             \
    {                                                                                          \
        share_row, sigmoid_row, part_row, greatest_row, add_row, exponentials_row, unsure_row, \
            add_bytes_row, residual_row, smooth_row, most_row, least_row, add_products_row,    \
            add_sums_row, lines_row, means_row, widen_row, pixels_row, exceed_row,             \
            luma_of_words_row, luma_of_colours_row                                             \
    }
