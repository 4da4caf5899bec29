/* SPDX-License-Identifier: Apache-2.0 */
/* A block makes a tile of an image. Its threads first compute, in double as the CPU does, where the
 * tile's columns and rows fall in the frame; then each makes two by two pixels. Lanes lie along the
 * row: their reads share cache lines, their stores are whole sectors. */
#pragma once

#include "vision/sample.h"

namespace
{

enum {
    THREADS_X = 32,
    THREADS_Y = 8,
    THREADS = THREADS_X * THREADS_Y,
    PIXELS_X = 2,
    PIXELS_Y = 2,
    TILE_X = THREADS_X * PIXELS_X,
    TILE_Y = THREADS_Y * PIXELS_Y,
    AREA_TAPS_MAX = 24 /* more inputs under an output take the slow way */
};

/* ---- where to look ---- */

struct bilinear_axes {
    struct sac_tap x[TILE_X], y[TILE_Y];
};

__device__ void look_up(struct bilinear_axes *axes, const struct sac_axis_spec &x,
                        const struct sac_axis_spec &y, int x0, int y0, int thread)
{
    for (int i = thread; i < TILE_X + TILE_Y; i += THREADS) {
        const bool along = i < TILE_X;
        const int  at = along ? x0 + i : y0 + i - TILE_X;
        if (along && at >= 0 && at < x.n)
            axes->x[i] = sac_axis_tap(&x, at, 1 << SAC_COLUMN_WEIGHT_BITS);
        if (!along && at >= 0 && at < y.n)
            axes->y[i - TILE_X] = sac_axis_tap(&y, at, 1 << SAC_ROW_WEIGHT_BITS);
    }
}

struct area_axes {
    int     x_first[TILE_X], x_taps[TILE_X], y_first[TILE_Y], y_taps[TILE_Y];
    int32_t x_weight[AREA_TAPS_MAX][TILE_X], y_weight[AREA_TAPS_MAX][TILE_Y];
};

/* The inputs of one output and, up to max, their weights. Returns how many there are. */
__device__ int area_weights(const struct sac_axis_spec &spec, int at, int32_t one, int max,
                            int *first, int32_t *weight, int stride)
{
    if (!spec.area) {
        const struct sac_tap tap = sac_axis_tap(&spec, at, one);
        *first = tap.a;
        weight[0] = tap.a == tap.b ? one : one - tap.second;
        weight[stride] = tap.second;
        return tap.a == tap.b ? 1 : 2;
    }
    const struct sac_area area = sac_axis_area(&spec, at);
    int32_t               given = 0;
    int                   taps = 0;
    *first = area.first;
    for (; given < one; taps++) {
        const int32_t until = sac_area_until(&spec, &area, area.first + taps, one);
        if (taps < max)
            weight[taps * stride] = until - given;
        given = until;
    }
    return taps;
}

__device__ void look_up(struct area_axes *axes, const struct sac_axis_spec &x,
                        const struct sac_axis_spec &y, int x0, int y0, int thread)
{
    for (int i = thread; i < TILE_X + TILE_Y; i += THREADS) {
        const bool along = i < TILE_X;
        const int  at = along ? x0 + i : y0 + i - TILE_X, k = along ? i : i - TILE_X;
        if (along && at >= 0 && at < x.n)
            axes->x_taps[k] = area_weights(x, at, 1 << SAC_COLUMN_WEIGHT_BITS, AREA_TAPS_MAX,
                                           &axes->x_first[k], &axes->x_weight[0][k], TILE_X);
        if (!along && at >= 0 && at < y.n)
            axes->y_taps[k] = area_weights(y, at, 1 << SAC_ROW_WEIGHT_BITS, AREA_TAPS_MAX,
                                           &axes->y_first[k], &axes->y_weight[0][k], TILE_Y);
    }
}

/* ---- one pixel ---- */

/* The channels of output x, y, which is number i, j of the tile, as they lie in memory. */
template <enum sac_pixel_format FORMAT, bool TURNED>
__device__ void sample(const struct bilinear_axes *axes, const struct sac_surface &src,
                       const struct sac_axis_spec &, const struct sac_axis_spec &, int, int, int i,
                       int j, float channel[3])
{
    sac_sample_bilinear(&src, sac_reading{FORMAT, TURNED}, axes->x[i], axes->y[j], channel);
}

template <enum sac_pixel_format FORMAT, bool TURNED>
__device__ void sample(const struct area_axes *axes, const struct sac_surface &src,
                       const struct sac_axis_spec &spec_x, const struct sac_axis_spec &spec_y,
                       int x, int y, int i, int j, float channel[3])
{
    const struct sac_taps tx = {axes->x_first[i], axes->x_taps[i], &axes->x_weight[0][i], TILE_X};
    const struct sac_taps ty = {axes->y_first[j], axes->y_taps[j], &axes->y_weight[0][j], TILE_Y};
    if (tx.taps <= AREA_TAPS_MAX && ty.taps <= AREA_TAPS_MAX)
        sac_sample_taps(&src, sac_reading{FORMAT, TURNED}, &tx, &ty, channel);
    else
        sac_sample_area(&src, sac_reading{FORMAT, TURNED}, &spec_x, x, &spec_y, y, channel);
}

/* R, G and B: those that lie the other way round change places behind the same code. */
template <bool TURNED, typename AXES>
__device__ void sample_rgb(const AXES *axes, const struct sac_surface &src,
                           const struct sac_axis_spec &spec_x, const struct sac_axis_spec &spec_y,
                           int x, int y, int i, int j, float channel[3])
{
    sample<SAC_PIXEL_RGB24, TURNED>(axes, src, spec_x, spec_y, x, y, i, j, channel);
    if (sac_is_bgr(src.format)) {
        const float b = channel[0];
        channel[0] = channel[2];
        channel[2] = b;
    }
}

/* TURNED: some frame of the launch is; the upright ones among others are read the same way. */
template <bool TURNED, typename AXES>
__device__ void
sample_channels(const AXES *axes, const struct sac_surface &src, const struct sac_axis_spec &spec_x,
                const struct sac_axis_spec &spec_y, int x, int y, int i, int j, float channel[3])
{
    switch (src.format) { /* the same for all of a block */
    case SAC_PIXEL_NV12:
        sample<SAC_PIXEL_NV12, TURNED>(axes, src, spec_x, spec_y, x, y, i, j, channel);
        break;
    case SAC_PIXEL_P010:
        sample<SAC_PIXEL_P010, TURNED>(axes, src, spec_x, spec_y, x, y, i, j, channel);
        break;
    case SAC_PIXEL_I420:
        sample<SAC_PIXEL_I420, TURNED>(axes, src, spec_x, spec_y, x, y, i, j, channel);
        break;
    case SAC_PIXEL_GRAY8:
        sample<SAC_PIXEL_GRAY8, TURNED>(axes, src, spec_x, spec_y, x, y, i, j, channel);
        break;
    default: sample_rgb<TURNED>(axes, src, spec_x, spec_y, x, y, i, j, channel); break;
    }
}

} // namespace
