/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes as coats of paint: what a device has to do for each, in order, is to blend one colour into
 * the pixels of a rectangle by how much of each is covered. Luma is blended pixel by pixel, chroma
 * by the mean of the four pixels that share a sample: so thin lines keep their colour and edges
 * bleed no more than 4:2:0 must. All devices do it with the arithmetic here, to the last bit. */
#ifndef SAC_VISION_PAINT_H
#define SAC_VISION_PAINT_H

#include "vision/sample.h"

enum sac_cover {
    SAC_COVER_ALL,
    SAC_COVER_FRAME,  /* all but the hole */
    SAC_COVER_STROKES /* what is near a segment */
};

struct sac_bounds {
    int x0, y0, x1, y1; /* right and bottom open */
};

struct sac_segment {
    float x0, y0, x1, y1; /* pixel centres are at .5 */
};

enum { SAC_SEGMENTS_MAX = 48 }; /* of one coat */

struct sac_coat {
    struct sac_bounds bounds; /* within the frame, not empty */
    enum sac_cover    cover;
    struct sac_bounds hole;
    int               first, count; /* segments */
    float             radius;
    int sample[3]; /* the colour as the frame stores it: Y, U, V or R, G, B or B, G, R */
    int alpha;     /* 0..256 */
};

/* The coats of one shape, in order. segment: coat->count of them, valid during the call. */
typedef void (*sac_coat_fn)(void *user, const struct sac_coat *coat,
                            const struct sac_segment *segment);
void sac_coats_of(const sac_frame *frame, const struct sac_shape *shape, sac_coat_fn fn,
                  void *user);

/* ---- coverage ---- */

/* Coverage 0..255 of the pixel whose centre is x, y. Round caps and joints; a pixel at the edge is
 * covered by its distance, which smooths it. */
SAC_ANYWHERE int sac_cover_of(const struct sac_segment *s, float radius, float x, float y)
{
    float dx = s->x1 - s->x0, dy = s->y1 - s->y0, length2 = dx * dx + dy * dy;
    float t = length2 > 0 ? ((x - s->x0) * dx + (y - s->y0) * dy) / length2 : 0.0f;
    t = t > 0.0f ? t : 0.0f;
    t = t < 1.0f ? t : 1.0f;
    float ex = x - s->x0 - t * dx, ey = y - s->y0 - t * dy;
    float cover = radius + 0.5f - sqrtf(ex * ex + ey * ey);
    cover = cover > 0.0f ? cover : 0.0f;
    cover = cover < 1.0f ? cover : 1.0f;
    return (int)(cover * 255.0f + 0.5f);
}

/* ---- blending ---- */

enum { SAC_COVER_FULL = 255 * 256 }; /* coverage times alpha */

/* from + (to - from) * weight / full, to nearest. */
SAC_ANYWHERE int sac_mix(int from, int to, int cover, int alpha)
{
    int change = (to - from) * cover * alpha; /* up to 1023 * 255 * 256 */
    return from +
           (change + (change < 0 ? -SAC_COVER_FULL / 2 : SAC_COVER_FULL / 2)) / SAC_COVER_FULL;
}

SAC_ANYWHERE uint8_t sac_mix_byte(int from, int to, int cover, int alpha)
{
    return (uint8_t)sac_mix(from, to, cover, alpha);
}

SAC_ANYWHERE uint16_t sac_mix_word(int from, int to, int cover, int alpha)
{
    return (uint16_t)(sac_mix(from >> 6, to >> 6, cover, alpha) << 6);
}

#endif
