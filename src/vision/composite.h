/* SPDX-License-Identifier: Apache-2.0 */
/* A frame and its matte to a picture: over a background, or with what the matte covers marked. All
 * devices compute by what is here, to the last bit. */
#ifndef SAC_VISION_COMPOSITE_H
#define SAC_VISION_COMPOSITE_H

#include "vision/sample.h"

struct sac_device_stream;

enum sac_composite_kind {
    SAC_COMPOSITE_BACKGROUND, /* frame * matte + background * (1 - matte) */
    SAC_COMPOSITE_TINT,       /* where the matte is, the frame is tinted with colour[0], and its
                                 outline is drawn */
    SAC_COMPOSITE_CLASSES,    /* the matte holds class numbers, each tinted with its colour; class 0
                                 and those without a colour stay as they are */
    SAC_COMPOSITE_PAINT       /* TINT without its outline */
};

enum { SAC_COMPOSITE_COLOURS_MAX = 256 };

struct sac_composite_job {
    enum sac_composite_kind kind;
    const sac_frame        *frame;
    const sac_frame        *matte;      /* SAC_PIXEL_GRAY8, as large as the frame */
    const sac_frame        *background; /* as large, of the frame's format, matrix and range; NULL:
                                           colour[0] */
    float             strength;         /* of a tint, 0..1 */
    struct sac_colour colour[SAC_COMPOSITE_COLOURS_MAX];
    int colours;    /* that are given. CLASSES: of classes 0, 1, ...; TINT: with two, the outline
                       has the second */
    sac_frame *out; /* as large as the frame, writable, upright; of the frame's format, or I420 or
                       NV12 of one in 4:2:0. Matrix and range are the frame's. It may be the frame
                       itself. The fourth number of RGBA and BGRA is the frame's */
};

/* Queue it on a stream (NULL: the device's own) of the device that all frames are on.
 * Errors   SAC_ERR_ARG for frames that do not fit each other, a shared out, a strength or a count
 *          out of range; SAC_ERR_UNSUPPORTED where the device has no composites. */
sac_result sac_composite_run_on(sac_device *dev, struct sac_device_stream *stream,
                                const struct sac_composite_job *job);

/* ---- what a job asks of each pixel (composite.c) ---- */

/* Each number of the picture goes a part of the way, 0..255, to another one. */
struct sac_composite_plan {
    enum sac_composite_kind kind;
    uint16_t sample[SAC_COMPOSITE_COLOURS_MAX][3]; /* the colours as the frame stores them: Y, U, V
                                                      or R, G, B or B, G, R */
    bool    words;                                 /* ten bits in the high ones of 16 */
    int     colours;
    uint8_t strength; /* 0..255 */
    int     outline;  /* its colour */
    int     radius;   /* half the window that an outline is found in */
};
struct sac_composite_plan sac_composite_plan_of(const struct sac_composite_job *job);

/* ---- arithmetic ---- */

/* v / 255 to nearest; exact up to 1023 * 255. */
SAC_ANYWHERE uint32_t sac_composite_part(uint32_t v)
{
    v += 128;
    return (v + ((v + (v >> 8)) >> 8)) >> 8;
}

/* The same of a byte times another in 16 bits, of which a register holds twice as many. */
SAC_ANYWHERE uint8_t sac_composite_part_byte(uint16_t v)
{
    v = (uint16_t)(v + 128);
    const uint16_t w = (uint16_t)(v + (v >> 8));
    return (uint8_t)((uint16_t)(v + (w >> 8)) >> 8);
}

SAC_ANYWHERE uint8_t sac_composite_mix_byte(uint8_t from, uint8_t to, uint8_t weight)
{
    const uint16_t kept = (uint16_t)(from * (uint8_t)(255 - weight));
    return sac_composite_part_byte((uint16_t)(kept + (uint16_t)(to * weight)));
}

/* Ten bits in the high ones of 16. */
SAC_ANYWHERE uint16_t sac_composite_mix_word(uint16_t from, uint16_t to, uint8_t weight)
{
    const uint32_t kept = (uint32_t)(from >> 6) * (255u - weight);
    return (uint16_t)(sac_composite_part(kept + (uint32_t)(to >> 6) * weight) << 6);
}

/* How far a pixel goes to its other colour, by its matte, in each kind. */
SAC_ANYWHERE uint8_t sac_composite_weight_background(uint8_t matte)
{
    return (uint8_t)(255 - matte);
}
SAC_ANYWHERE uint8_t sac_composite_weight_tint(uint8_t strength, uint8_t matte)
{
    return sac_composite_part_byte((uint16_t)(matte * strength));
}
SAC_ANYWHERE uint8_t sac_composite_weight_class(uint8_t strength, int colours, uint8_t matte)
{
    return matte > 0 && matte < colours ? strength : 0;
}

/* A chroma sample's weight from those of its 2 x 2 pixels. At a right or lower edge of odd size the
 * last pixel stands for two. */
SAC_ANYWHERE uint8_t sac_composite_mean(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
    return (uint8_t)((uint16_t)(a + b + c + d + 2) >> 2);
}

/* Channel c of what a chroma sample goes to: the mean of those of its pixels that have a colour. */
SAC_ANYWHERE uint16_t sac_composite_class_chroma(const struct sac_composite_plan *p,
                                                 const uint8_t matte[4], int c)
{
    const int shift = p->words ? 6 : 0;
    uint32_t  sum = 0, count = 0;
    for (int i = 0; i < 4; i++)
        if (matte[i] > 0 && matte[i] < p->colours) {
            sum += p->sample[matte[i]][c] >> shift;
            count++;
        }
    return count ? (uint16_t)((sum + count / 2) / count << shift) : 0;
}

/* An outline is where the pixels of a window, the frame's edge repeated, are partly inside the
 * matte: strongest where half of them are, so that it is smooth and about as wide as its radius on
 * either side. Wider in larger pictures: 1 of 576 rows, 2 of 1080, 3 of 2160. */
enum { SAC_COMPOSITE_RADIUS_MAX = 7 };

SAC_ANYWHERE int sac_composite_radius(int width, int height)
{
    const int radius = ((width < height ? width : height) + 360) / 720;
    return radius < 1 ? 1 : radius > SAC_COMPOSITE_RADIUS_MAX ? SAC_COMPOSITE_RADIUS_MAX : radius;
}

/* 1 where the matte is one half or more. */
SAC_ANYWHERE uint8_t sac_composite_inside(uint8_t matte)
{
    return matte >> 7;
}

/* Weight of the outline's colour where `inside` of a window's pixels are. */
SAC_ANYWHERE uint8_t sac_composite_outline(int radius, uint32_t inside)
{
    const uint32_t all = (uint32_t)((2 * radius + 1) * (2 * radius + 1));
    return (uint8_t)((4 * 255 * inside * (all - inside) + all * all / 2) / (all * all));
}

/* Ten bits in the high ones of 16 to eight. In full range 1023 is white, in limited range 940. */
SAC_ANYWHERE uint8_t sac_composite_narrow(uint16_t word, bool full_range)
{
    const uint32_t ten = word >> 6, v = full_range ? (ten * 255 + 511) / 1023 : (ten + 2) >> 2;
    return (uint8_t)(v < 255 ? v : 255);
}

#endif
