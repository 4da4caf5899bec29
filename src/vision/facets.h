/* SPDX-License-Identifier: Apache-2.0 */
/* Facets: flat pictures of parts of a wide one, as a camera that is turned there would take them.
 * An eye of 180 degrees bends what is in it, most where people stand near; a network sees its
 * facets, and the maps of these are put together to one of the eye.
 *
 *   places   of each pixel of a facet, where it lies in the eye's picture
 *   taps     of each cell of the eye's map, where it lies in the facets' maps, and what each weighs
 *
 * Both are tables, made once on the host: the devices' libraries differ in their sines. What is
 * computed by them is whole numbers, so all devices come to the same to the last bit.
 *
 * Directions: x to the right, y down, z ahead. */
#ifndef SAC_VISION_FACETS_H
#define SAC_VISION_FACETS_H

#include <saccade/segment.h>

#include "vision/matte.h"

enum {
    SAC_FACETS_MAX = 5,
    SAC_FACET_TAPS = 3,         /* facets that show one direction, at most */
    SAC_FACET_PLACE_BITS = 24,  /* of a place: the eye's width and height are 1 */
    SAC_FACET_PART_BITS = 8,    /* between two pixels or cells */
    SAC_FACET_WEIGHT_BITS = 10, /* the weights of a cell's taps add up to 1, or are all 0 */
    SAC_FACET_JOBS_MAX = 1 << 16
};

/* x below 0: the eye does not see there. */
struct sac_facet_place {
    int32_t x, y;
};

/* Between four cells of a facet's map. */
struct sac_facet_tap {
    int32_t  cell;         /* the upper left one, counted through the maps of an eye's facets */
    uint16_t right, below; /* how far towards its neighbours, 0 to 256 */
    int32_t  weight;
};
struct sac_facet_cell {
    struct sac_facet_tap tap[SAC_FACET_TAPS]; /* those that weigh something come first */
};

/* ---- pixels ---- */

/* A place along one direction of the eye's picture: between a pixel and the next. */
struct sac_facet_pixel {
    int first, next, part;
};

SAC_ANYWHERE struct sac_facet_pixel sac_facet_pixel_of(int32_t place, int size)
{
    struct sac_facet_pixel p;
    const int              last = (size - 1) << SAC_FACET_PART_BITS;
    int at = (int)((int64_t)place * size >> (SAC_FACET_PLACE_BITS - SAC_FACET_PART_BITS)) -
             (1 << (SAC_FACET_PART_BITS - 1));
    at = at > 0 ? (at < last ? at : last) : 0;
    p.first = at >> SAC_FACET_PART_BITS;
    p.next = p.first < size - 1 ? p.first + 1 : p.first;
    p.part = at & ((1 << SAC_FACET_PART_BITS) - 1);
    return p;
}

/* Between four numbers, times 2^16. */
SAC_ANYWHERE int32_t sac_facet_between(int a, int b, int c, int d, int right, int below)
{
    const int one = 1 << SAC_FACET_PART_BITS;
    return (a * (one - right) + b * right) * (one - below) +
           (c * (one - right) + d * right) * below;
}

/* A pixel of a facet; above, below: the eye's two rows. Black where the eye does not see. */
SAC_ANYWHERE void sac_facet_sample(const uint8_t *above, const uint8_t *below,
                                   struct sac_facet_pixel x, int part, uint8_t out[3])
{
    for (int c = 0; c < 3; c++)
        out[c] = (uint8_t)((sac_facet_between(above[3 * x.first + c], above[3 * x.next + c],
                                              below[3 * x.first + c], below[3 * x.next + c], x.part,
                                              part) +
                            (1 << 15)) >>
                           16);
}

/* ---- cells ---- */

/* How much of a cell of the network's map belongs to what is wanted, as mattes have it. */
SAC_ANYWHERE int16_t sac_facet_share(const struct sac_matte_spec *s, const void *const *tensors,
                                     int image, int64_t cell)
{
    const struct sac_detect_field *f = &s->value;
    const int64_t                  at = sac_detect_at(f, image, cell);
    float                          greatest = -INFINITY, total = 0.0f, wanted = 0.0f, v;
    if (s->form == SAC_MATTE_LABEL)
        return sac_matte_share_of_label(s, sac_detect_read(f, tensors, at));
    if (s->form == SAC_MATTE_LOGIT)
        return sac_matte_share(sac_sigmoid(sac_detect_read(f, tensors, at)));
    if (s->form == SAC_MATTE_SHARE)
        return sac_matte_share(sac_detect_read(f, tensors, at));
    if (s->form == SAC_MATTE_CLASS_SHARES) {
        for (int k = 0; k < s->classes; k++)
            if (sac_matte_wanted(s, k))
                wanted += sac_detect_read(f, tensors, at + k * f->number);
        return sac_matte_share(wanted);
    }
    for (int k = 0; k < s->classes; k++) {
        v = sac_detect_read(f, tensors, at + k * f->number);
        greatest = v > greatest ? v : greatest;
    }
    for (int k = 0; k < s->classes; k++) {
        v = sac_exp(sac_detect_read(f, tensors, at + k * f->number) - greatest);
        total += v;
        wanted = sac_matte_wanted(s, k) ? wanted + v : wanted;
    }
    return sac_matte_share(sac_matte_part(wanted, total));
}

/* A cell of the eye's map; share: the maps of its facets, width x height each. */
SAC_ANYWHERE float sac_facet_number(const struct sac_facet_cell *c, const int16_t *share, int width,
                                    int height)
{
    const int across = width > 1 ? 1 : 0, down = height > 1 ? width : 0;
    int32_t   sum = 0;
    for (int i = 0; i < SAC_FACET_TAPS && c->tap[i].weight > 0; i++) {
        const struct sac_facet_tap *t = &c->tap[i];
        const int16_t              *s = share + t->cell;
        const int32_t               four =
            sac_facet_between(s[0], s[across], s[down], s[down + across], t->right, t->below);
        sum += ((four + (1 << 7)) >> 8) * t->weight;
    }
    return (float)sum * (1.0f / (float)(1 << (SAC_MATTE_BITS + 2 * SAC_FACET_PART_BITS - 8 +
                                              SAC_FACET_WEIGHT_BITS)));
}

#ifndef __CUDACC__

/* ---- the tables (facets.c) ---- */

/* How many facets an eye has; 0: the network sees it as it is. */
int sac_facets_count(enum sac_projection projection, enum sac_facets facets);

/* Facets are square, of `side` pixels: all of the network's input, or what fits into it. */
int sac_facets_side(const struct sac_preprocess *pre);

/* The size that an eye's picture is brought to, so that the facets' pixels are as far from each
 * other as its own. */
void sac_facets_eye_size(enum sac_projection projection, enum sac_facets facets, int side,
                         int eye_width, int eye_height, int *width, int *height);

/* places [count][side][side] */
void sac_facets_place(enum sac_projection projection, enum sac_facets facets, int side,
                      struct sac_facet_place *places);

/* The size of an eye's map for facets' maps of so many cells. */
void sac_facets_map_size(enum sac_projection projection, enum sac_facets facets,
                         const struct sac_matte_spec *net, int *width, int *height);

/* cells [height][width] */
void sac_facets_tap(enum sac_projection projection, enum sac_facets facets,
                    const struct sac_preprocess *pre, const struct sac_matte_spec *net, int width,
                    int height, struct sac_facet_cell *cells);

/* ---- running it ---- */

struct sac_facet_job {
    const sac_frame              *eye;    /* SAC_PIXEL_RGB24, upright */
    const struct sac_facet_place *places; /* of the device, [out->height][out->width] */
    sac_frame                    *out;    /* SAC_PIXEL_RGB24, upright, writable */
};

/* From the maps of an eye's facets to its own. */
struct sac_facet_maps {
    int                          facets, net_width, net_height; /* of an eye; cells of their maps */
    int                          width, height;                 /* cells of the eye's map */
    const struct sac_facet_cell *cells;                         /* of the device, [height][width] */
};

/* Take the facets' pixels.
 * Errors   SAC_ERR_UNSUPPORTED where the device has no facets; SAC_ERR_ARG. */
sac_result sac_facets_run_on(sac_device *dev, struct sac_device_stream *stream,
                             const struct sac_facet_job *jobs, int n);
/* The shares of n images of a run, into out [n][height][width] of the device.
 * Errors   the same. */
sac_result sac_facet_shares_run_on(sac_device *dev, struct sac_device_stream *stream,
                                   const struct sac_matte_spec *net, const void *const *tensors,
                                   int n, int16_t *out);
/* shares [n][facets][net_height][net_width] of n eyes to out [n][height][width], of the device.
 * Errors   the same. */
sac_result sac_facet_maps_run_on(sac_device *dev, struct sac_device_stream *stream,
                                 const struct sac_facet_maps *maps, const int16_t *shares, int n,
                                 float *out);
#endif

#endif
