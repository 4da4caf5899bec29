/* SPDX-License-Identifier: Apache-2.0 */
/* Polygons as COCO draws them, to the pixel: corners are rounded to fifths of a pixel, each edge is
 * walked fifth by fifth, and where it passes the middle of a column, all pixels after that, down
 * the columns, change sides (rleFrPoly of Dollar and Lin's maskApi). */
#ifndef SAC_MASK_POLYGON_H
#define SAC_MASK_POLYGON_H

#include "mask/rle.h"

struct sac_polygon {
    double   *xy; /* [2 * count] pixels; x, y */
    size_t    count, capacity;
    uint64_t *changes; /* where sides change, column by column */
    size_t    change_count, change_capacity;
    int64_t   steps; /* that may still be walked; set by who reads a file */
};
void sac_polygon_finish(struct sac_polygon *polygon);
void sac_polygon_clear(struct sac_polygon *polygon); /* no corners; the steps stay */
/* The next number of the list x, y, x, y, ...
 * Errors   SAC_ERR_MEMORY. */
sac_result sac_polygon_add(sac_context *ctx, struct sac_polygon *polygon, double value);
/* The inside, as runs of a mask of this size.
 * Errors   SAC_ERR_FORMAT, SAC_ERR_LIMIT; the sentence begins "polygon". */
sac_result sac_polygon_encode(sac_context *ctx, struct sac_polygon *polygon, int width, int height,
                              struct sac_rle *rle);

#endif
