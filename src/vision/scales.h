/* SPDX-License-Identifier: Apache-2.0 */
/* Scales: a picture that one network, with one size of input, sees at several sizes, and the mean
 * of what it gives. Each look is a crop as any other:
 *
 *   1         the picture
 *   above 1   parts of it, as much larger in the input; neighbours overlap
 *   below 1   the picture in the middle of a larger one, about which its edges are repeated
 *
 * Scales are from a quarter to 2.
 *
 * The looks' maps become one of the picture, with as many cells as the largest scale has. It has
 * the geometry of the network's own, finer, so a matte is made of it as of that one. A place in a
 * look's map is a line of the cell's number, which the host works out; devices compute by whole
 * numbers, so all come to the same to the last bit. Of the scale 1 alone the map is the network's
 * own. */
#ifndef SAC_VISION_SCALES_H
#define SAC_VISION_SCALES_H

#include "vision/facets.h"

enum {
    SAC_SCALES_MAX = 4,
    SAC_SCALE_CROPS_MAX = 3, /* of a scale, each way: of 2 */
    SAC_SCALE_LOOKS_MAX = SAC_SCALES_MAX * SAC_SCALE_CROPS_MAX * SAC_SCALE_CROPS_MAX,
    SAC_SCALE_STEP_BITS = 24, /* of a cell */
    SAC_SCALE_PART_BITS = 8,
    SAC_SCALE_WEIGHT_BITS = 10 /* of a crop along one direction */
};

/* A crop's map along one direction. */
struct sac_scale_axis {
    int64_t origin, step; /* cell i of the picture's map lies at origin + i * step of the crop's, in
                             2^-24 cells */
    int32_t low, high;    /* the first and the last cell that show the picture, in 2^-8 cells */
    int32_t rise_low, rise_high; /* how fast its weight grows from either edge, in 2^-16 of a 1024th
                                    to 2^-8 cells; 0: the edge is the picture's own, and it does not
                                    fall there */
};

struct sac_scale {
    int                   crops; /* each way */
    struct sac_scale_axis x[SAC_SCALE_CROPS_MAX], y[SAC_SCALE_CROPS_MAX];
};

/* Of one picture: looks stand in the order of the scales, and of each row by row. */
struct sac_scales {
    int              count;
    struct sac_scale scale[SAC_SCALES_MAX];
};

/* ---- cells ---- */

struct sac_scale_place {
    int cell, part; /* between this one and the next, 0 to 255 */
    int weight;     /* 0: the crop does not show it */
};

SAC_ANYWHERE int sac_scale_rise(int weight, int from_edge, int32_t rise)
{
    const int64_t w = from_edge > 0 ? (int64_t)from_edge * rise >> 16 : 0;
    return rise == 0 || w > weight ? weight : (int)w;
}

SAC_ANYWHERE struct sac_scale_place sac_scale_place_of(const struct sac_scale_axis *a, int cell)
{
    struct sac_scale_place p;
    const int              half = 1 << (SAC_SCALE_PART_BITS - 1);
    int at = (int)((a->origin + a->step * cell) >> (SAC_SCALE_STEP_BITS - SAC_SCALE_PART_BITS));
    p.weight = sac_scale_rise(1 << SAC_SCALE_WEIGHT_BITS, at - a->low + half, a->rise_low);
    p.weight = sac_scale_rise(p.weight, a->high - at + half, a->rise_high);
    at = at > a->low ? (at < a->high ? at : a->high) : a->low;
    p.cell = at >> SAC_SCALE_PART_BITS;
    p.part = at & ((1 << SAC_SCALE_PART_BITS) - 1);
    return p;
}

/* A cell x, y of the picture's map; share: the maps of its looks, width x height each. */
SAC_ANYWHERE float sac_scale_number(const struct sac_scales *scales, const int16_t *share,
                                    int width, int height, int x, int y)
{
    const int64_t cells = (int64_t)width * height;
    int64_t       sum = 0, total = 0;
    for (int i = 0; i < scales->count; i++) {
        const struct sac_scale *s = &scales->scale[i];
        for (int row = 0; row < s->crops; row++, share += s->crops * cells) {
            const struct sac_scale_place down = sac_scale_place_of(&s->y[row], y);
            for (int column = 0; column < s->crops && down.weight > 0; column++) {
                const struct sac_scale_place across = sac_scale_place_of(&s->x[column], x);
                const int32_t                weight = across.weight * down.weight;
                const int16_t               *c =
                    share + column * cells + (int64_t)down.cell * width + across.cell;
                const int right = across.part > 0, below = down.part > 0 ? width : 0;
                if (weight == 0)
                    continue;
                sum += (int64_t)((sac_facet_between(c[0], c[right], c[below], c[below + right],
                                                    across.part, down.part) +
                                  (1 << 7)) >>
                                 8) *
                       weight;
                total += weight;
            }
        }
    }
    return total > 0 ? (float)((sum + total / 2) / total) *
                           (1.0f / (float)(1 << (SAC_MATTE_BITS + 2 * SAC_SCALE_PART_BITS - 8)))
                     : 0.0f;
}

#ifndef __CUDACC__

/* ---- looks (scales.c) ---- */

/* Crops of a scale, each way. */
int sac_scale_crops(float scale);
/* How many looks they are together. */
int sac_scales_looks(const float *scale, int count);

/* The looks of a picture's part `whole`, pixels, in their order: crops [sac_scales_looks]. */
void sac_scales_look(const float *scale, int count, const struct sac_rect *whole,
                     struct sac_rect *crops);

/* The size of the picture's map for looks' maps of so many cells. */
void sac_scales_map_size(const float *scale, int count, const struct sac_matte_spec *net,
                         int *width, int *height);

/* How the looks at `whole` become its map of width x height. */
struct sac_scales sac_scales_of(const float *scale, int count, const struct sac_preprocess *pre,
                                const struct sac_matte_spec *net, const struct sac_rect *whole,
                                int width, int height);

/* ---- running it ---- */

struct sac_scale_maps {
    const struct sac_scales *pictures; /* [n], of the host */
    int                      looks, net_width, net_height;
    int                      width, height; /* cells of the pictures' maps */
};

/* shares [n][looks][net_height][net_width] of n pictures (sac_facet_shares_run_on) to out
 * [n][height][width], of the device.
 * Errors   SAC_ERR_UNSUPPORTED where the device has no scales. */
sac_result sac_scale_maps_run_on(sac_device *dev, struct sac_device_stream *stream,
                                 const struct sac_scale_maps *maps, const int16_t *shares, int n,
                                 float *out);
#endif

#endif
