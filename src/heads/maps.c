/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs that are maps: numbers for each of some ten thousand cells that cover the picture. */
#include <stdlib.h>
#include <string.h>

#include "heads/heads.h"
#include "vision/matte.h"

enum { STRIDE_MAX = 16 }; /* pixels of the picture that a cell is wide, at most */

/* One of unknown size belongs to a picture of unknown size; of a known one it may be that a shape
 * could not be inferred. */
static bool fits_side(int64_t cells, int side)
{
    if (cells == SAC_DIM_UNKNOWN)
        return true;
    return cells > 1 && cells <= side && cells * STRIDE_MAX >= side;
}

/* A map covers the picture, so it has its proportions, to one cell of rounding. */
static bool covers(const struct sac_head_view *v, int64_t width, int64_t height)
{
    if (!fits_side(width, v->width) || !fits_side(height, v->height))
        return false;
    if (!v->width || !v->height || width < 0 || height < 0)
        return true;
    return llabs(height * v->width - width * v->height) <= v->width + v->height;
}

static bool map_of(const struct sac_head_view *v, const int64_t *dims, bool last,
                   struct sac_head_map *out)
{
    const struct sac_head_map map = {.width = dims[last ? 1 : 2],
                                     .height = dims[last ? 0 : 1],
                                     .numbers = dims[last ? 2 : 0],
                                     .last = last};
    if (map.numbers < 1 || map.numbers > SAC_DETECT_CLASSES_MAX ||
        !covers(v, map.width, map.height))
        return false;
    *out = map;
    return true;
}

bool sac_head_map_of(const struct sac_head_view *v, int output, struct sac_head_map *out)
{
    const struct sac_tensor_desc *d = &v->output[output].desc;
    if (d->rank == 4)
        return map_of(v, d->shape + 1, v->channels_last, out) ||
               map_of(v, d->shape + 1, !v->channels_last, out);
    if (d->rank != 2 && d->rank != 3) /* [h,w] of a single picture, [N,h,w] */
        return false;
    const int64_t dims[3] = {1, d->shape[d->rank - 2], d->shape[d->rank - 1]};
    const bool    open = dims[1] == SAC_DIM_UNKNOWN || dims[2] == SAC_DIM_UNKNOWN;
    return (!open || (!v->width && !v->height)) && map_of(v, dims, false, out);
}

bool sac_head_is_called(const struct sac_head_view *v, int output, const char *const *words)
{
    for (int i = 0; words[i]; i++)
        if (v->output[output].name && strcasestr(v->output[output].name, words[i]))
            return true;
    return false;
}

bool sac_head_map_spec(const struct sac_head_view *v, int output, struct sac_matte_spec *out)
{
    const struct sac_tensor_desc *d = &v->output[output].desc;
    struct sac_head_map           map;
    if (!sac_head_map_of(v, output, &map) || map.width < 1 || map.height < 1 ||
        map.width > v->width || map.height > v->height)
        return false;
    const int64_t cells = map.width * map.height;
    out->width = (int)map.width;
    out->height = (int)map.height;
    out->classes = (int)map.numbers;
    out->value = (struct sac_detect_field){.tensor = output,
                                           .dtype = d->dtype,
                                           .image = cells * map.numbers,
                                           .cell = map.last ? map.numbers : 1,
                                           .number = map.last ? 1 : cells};
    return true;
}
