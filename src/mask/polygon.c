/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "mask/polygon.h"

enum { FIFTHS = 5, FAR = 4 * SAC_RLE_SIDE_MAX };

void sac_polygon_finish(struct sac_polygon *polygon)
{
    sac_free(polygon->xy);
    sac_free(polygon->changes);
    *polygon = (struct sac_polygon){0};
}

void sac_polygon_clear(struct sac_polygon *polygon)
{
    polygon->count = polygon->change_count = 0;
}

static sac_result no_memory(sac_context *ctx)
{
    return SAC_FAIL(ctx, SAC_ERR_MEMORY, "polygon: no memory");
}

sac_result sac_polygon_add(sac_context *ctx, struct sac_polygon *polygon, double value)
{
    if (!sac_grow((void **)&polygon->xy, &polygon->capacity, polygon->count + 1,
                  sizeof *polygon->xy))
        return no_memory(ctx);
    polygon->xy[polygon->count++] = value;
    return SAC_OK;
}

struct point {
    int x, y; /* fifths */
};

static struct point corner(const struct sac_polygon *polygon, size_t i)
{
    const double *xy = polygon->xy + 2 * (i % (polygon->count / 2));
    return (struct point){(int)(FIFTHS * xy[0] + .5), (int)(FIFTHS * xy[1] + .5)};
}

/* Between these two points of the way the middle of a column may lie. */
static bool note_change(struct sac_polygon *polygon, struct point a, struct point b, int width,
                        int height)
{
    double x = (SAC_MIN(a.x, b.x) + .5) / FIFTHS - .5;
    double y = (SAC_MIN(a.y, b.y) + .5) / FIFTHS - .5;
    if (floor(x) != x || x < 0 || x > width - 1)
        return true;
    y = ceil(SAC_CLAMP(y, 0, height));
    if (!sac_grow((void **)&polygon->changes, &polygon->change_capacity, polygon->change_count + 1,
                  sizeof *polygon->changes))
        return false;
    polygon->changes[polygon->change_count++] = (uint64_t)x * (uint64_t)height + (uint64_t)y;
    return true;
}

/* The point t steps from the edge's left (or upper) end. */
static struct point on_edge(struct point from, double slope, bool wide, int t)
{
    if (wide)
        return (struct point){from.x + t, (int)(from.y + slope * t + .5)};
    return (struct point){(int)(from.x + slope * t + .5), from.y + t};
}

static bool walk(struct sac_polygon *polygon, struct point a, struct point b, int width, int height)
{
    int          dx = abs(b.x - a.x), dy = abs(b.y - a.y);
    bool         wide = dx >= dy, back = wide ? a.x > b.x : a.y > b.y;
    struct point from = back ? b : a, to = back ? a : b;
    int          length = wide ? dx : dy;
    double       slope = wide ? (double)(to.y - from.y) / dx : (double)(to.x - from.x) / dy;
    polygon->steps -= length + 1;
    if (length == 0 || polygon->steps < 0)
        return true;
    struct point last = on_edge(from, slope, wide, back ? length : 0);
    for (int d = 1; d <= length; d++) {
        struct point here = on_edge(from, slope, wide, back ? length - d : d);
        if (here.x != last.x && !note_change(polygon, last, here, width, height))
            return false;
        last = here;
    }
    return true;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

sac_result sac_polygon_encode(sac_context *ctx, struct sac_polygon *polygon, int width, int height,
                              struct sac_rle *rle)
{
    sac_result res = sac_rle_begin(ctx, width, height, rle);
    if (polygon->count % 2)
        return SAC_FAIL(ctx, SAC_ERR_FORMAT, "polygon of %zu numbers, and two make a corner",
                        polygon->count);
    for (size_t i = 0; i < polygon->count; i++)
        if (!(fabs(polygon->xy[i]) <= FAR))
            return SAC_FAIL(ctx, SAC_ERR_FORMAT, "polygon with a corner at %g, far outside",
                            polygon->xy[i]);
    polygon->change_count = 0;
    for (size_t i = 0; i < polygon->count / 2 && res == SAC_OK; i++) {
        if (!walk(polygon, corner(polygon, i), corner(polygon, i + 1), width, height))
            res = no_memory(ctx);
        else if (polygon->steps < 0)
            res = SAC_FAIL(ctx, SAC_ERR_LIMIT, "polygon with edges that are too long");
    }
    if (res == SAC_OK && polygon->change_count > 0)
        qsort(polygon->changes, polygon->change_count, sizeof *polygon->changes, compare);
    uint64_t at = 0;
    for (size_t i = 0; i < polygon->change_count && res == SAC_OK; i++) {
        res = sac_rle_add_run(ctx, rle, (double)(polygon->changes[i] - at));
        at = polygon->changes[i];
    }
    if (res == SAC_OK)
        res = sac_rle_add_run(ctx, rle, (double)((uint64_t)width * (uint64_t)height - at));
    return res;
}
