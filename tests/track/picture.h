/* SPDX-License-Identifier: Apache-2.0 */
/* A made-up scene that can be looked at from any place: smooth blobs of grey. */
#ifndef SAC_TESTS_TRACK_PICTURE_H
#define SAC_TESTS_TRACK_PICTURE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "track/cmc.h"

static inline uint32_t picture_hash(int x, int y)
{
    uint32_t h = (uint32_t)x * 374761393u + (uint32_t)y * 668265263u;
    h = (h ^ (h >> 13)) * 1274126177u;
    return h ^ (h >> 16);
}

/* Random values on a lattice of some pixels, blended between, 0..1. */
static inline double picture_lattice(double x, double y, double pixels)
{
    double u = x / pixels + 1000, v = y / pixels + 1000;
    int    iu = (int)floor(u), iv = (int)floor(v);
    double fu = u - iu, fv = v - iv;
    fu = fu * fu * (3 - 2 * fu);
    fv = fv * fv * (3 - 2 * fv);
    double a = picture_hash(iu, iv) % 256, b = picture_hash(iu + 1, iv) % 256;
    double c = picture_hash(iu, iv + 1) % 256, d = picture_hash(iu + 1, iv + 1) % 256;
    return ((a * (1 - fu) + b * fu) * (1 - fv) + (c * (1 - fu) + d * fu) * fv) / 256;
}

/* Grey of the scene: large and small shapes, as in the world. */
static inline uint8_t picture_grey(double x, double y)
{
    return (uint8_t)(20 + 120 * picture_lattice(x, y, 70) + 90 * picture_lattice(x, y, 11));
}

/* Bytes of a pixel that has R, G and B; 0: another format. */
static inline size_t picture_rgb(enum sac_pixel_format format)
{
    bool alpha = format == SAC_PIXEL_RGBA || format == SAC_PIXEL_BGRA;
    return alpha ? 4 : format == SAC_PIXEL_RGB24 || format == SAC_PIXEL_BGR24 ? 3 : 0;
}

/* Planes of a frame without a device. */
static inline sac_frame picture_frame(enum sac_pixel_format format, int width, int height)
{
    size_t    step = picture_rgb(format) ? picture_rgb(format) : format == SAC_PIXEL_P010 ? 2 : 1;
    sac_frame f = {.format = format, .width = width, .height = height};
    f.pitch_bytes[0] = (size_t)width * step + 13; /* a pitch that is not the width */
    f.plane[0] = calloc(f.pitch_bytes[0], (size_t)height);
    return f;
}

/* What a camera sees after `move` took the scene's pixels elsewhere. */
static inline void picture_take(sac_frame *f, const struct sac_similarity *move)
{
    double square = move->a * move->a + move->b * move->b;
    size_t rgb = picture_rgb(f->format);
    for (int y = 0; y < f->height; y++) {
        uint8_t *row = f->plane[0] + (size_t)y * f->pitch_bytes[0];
        for (size_t x = 0; x < (size_t)f->width; x++) {
            double  px = x + 0.5 - move->tx, py = y + 0.5 - move->ty;
            uint8_t grey = picture_grey((move->a * px + move->b * py) / square,
                                        (move->a * py - move->b * px) / square);
            if (rgb)
                memset(row + rgb * x, grey, 3);
            else if (f->format == SAC_PIXEL_P010)
                row[2 * x + 1] = grey;
            else
                row[x] = grey;
        }
    }
}

#endif
