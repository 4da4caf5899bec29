/* SPDX-License-Identifier: Apache-2.0 */
/* Precision and recall of the contour: F of Perazzi et al., "A Benchmark Dataset and Evaluation
 * Methodology for Video Object Segmentation", CVPR 2016, as DAVIS computes it. A contour pixel is
 * found where the other contour has one in a disk around it. */
#include <math.h>
#include <string.h>

#include "mask/mask.h"

/* A pixel is on the contour when the pixel to its right, below, or both, is on the other side. Past
 * the edge of the picture the mask goes on. */
static void trace(const uint8_t *mask, int width, int height, uint8_t *contour)
{
    for (int y = 0; y < height; y++) {
        const uint8_t *row = mask + (size_t)y * (size_t)width;
        const uint8_t *below = y + 1 < height ? row + width : row;
        for (int x = 0; x < width; x++) {
            int  right = x + 1 < width ? x + 1 : x;
            bool here = row[x] >= 128;
            *contour++ = here != (row[right] >= 128) || here != (below[x] >= 128) ||
                         here != (below[right] >= 128);
        }
    }
}

/* How far above or below the next contour pixel of the column is, reach + 1 if further. */
static void column_distances(const uint8_t *contour, int width, int height, int reach,
                             uint16_t *distance)
{
    const size_t w = (size_t)width;
    for (int x = 0; x < width; x++) {
        int far = reach + 1;
        for (int y = 0; y < height; y++) {
            size_t at = (size_t)y * w + (size_t)x;
            far = contour[at] ? 0 : SAC_MIN(far + 1, reach + 1);
            distance[at] = (uint16_t)far;
        }
        far = reach + 1;
        for (int y = height - 1; y >= 0; y--) {
            size_t at = (size_t)y * w + (size_t)x;
            far = SAC_MIN(distance[at], SAC_MIN(far + 1, reach + 1));
            distance[at] = (uint16_t)far;
        }
    }
}

/* How many pixels of `of` have one of the contour, whose distances these are, in a disk around
 * them. spans: [reach + 1] half the disk's width at each height; open: [width + 1]. */
static int64_t count_near(const uint8_t *of, const uint16_t *distance, int width, int height,
                          int reach, const int *spans, int *open)
{
    int64_t near = 0;
    for (int y = 0; y < height; y++, distance += width, of += width) {
        int covers = 0;
        memset(open, 0, ((size_t)width + 1) * sizeof *open);
        for (int x = 0; x < width; x++)
            if (distance[x] <= reach) {
                open[SAC_MAX(x - spans[distance[x]], 0)]++;
                open[SAC_MIN(x + spans[distance[x]] + 1, width)]--;
            }
        for (int x = 0; x < width; x++) {
            covers += open[x];
            near += of[x] && covers > 0;
        }
    }
    return near;
}

struct work {
    uint8_t  *contours[2]; /* of ground truth and mask */
    uint16_t *distance;
    int      *open, *spans;
};

static bool prepare(struct work *work, int width, int height, int reach)
{
    size_t count = (size_t)width * (size_t)height;
    work->contours[0] = sac_alloc(count);
    work->contours[1] = sac_alloc(count);
    work->distance = sac_alloc(count * sizeof *work->distance);
    work->open = sac_calloc((size_t)width + 1, sizeof *work->open);
    work->spans = sac_calloc((size_t)reach + 1, sizeof *work->spans);
    if (!work->contours[0] || !work->contours[1] || !work->distance || !work->open || !work->spans)
        return false;
    for (int y = 0; y <= reach; y++)
        while ((int64_t)(work->spans[y] + 1) * (work->spans[y] + 1) + (int64_t)y * y <=
               (int64_t)reach * reach)
            work->spans[y]++;
    return true;
}

static void finish(struct work *work)
{
    sac_free(work->contours[0]);
    sac_free(work->contours[1]);
    sac_free(work->distance);
    sac_free(work->open);
    sac_free(work->spans);
}

static int64_t count_ones(const uint8_t *bytes, size_t n)
{
    int64_t ones = 0;
    for (size_t i = 0; i < n; i++)
        ones += bytes[i];
    return ones;
}

/* The share of contour a that lies near the other one, `n` pixels long. An empty contour next to
 * one that is not: nothing wrong was found, and all was missed. */
static double share_near(struct work *work, int a, const int64_t n[2], int width, int height,
                         int reach)
{
    if (n[a] == 0)
        return 1;
    if (n[!a] == 0)
        return 0;
    column_distances(work->contours[!a], width, height, reach, work->distance);
    return (double)count_near(work->contours[a], work->distance, width, height, reach, work->spans,
                              work->open) /
           (double)n[a];
}

sac_result sac_mask_contours(sac_context *ctx, const struct sac_mask_two *two, double tolerance,
                             struct sac_mask_scores *out)
{
    struct work work = {0};
    double     diagonal = sqrt((double)two->width * two->width + (double)two->height * two->height);
    int        reach = (int)ceil(tolerance * diagonal);
    sac_result res = SAC_OK;
    if (prepare(&work, two->width, two->height, reach)) {
        size_t  count = (size_t)two->width * (size_t)two->height;
        int64_t n[2];
        trace(two->gt, two->width, two->height, work.contours[0]);
        trace(two->mask, two->width, two->height, work.contours[1]);
        n[0] = count_ones(work.contours[0], count);
        n[1] = count_ones(work.contours[1], count);
        double precision = share_near(&work, 1, n, two->width, two->height, reach);
        double recall = share_near(&work, 0, n, two->width, two->height, reach);
        out->boundary_precision = precision;
        out->boundary_recall = recall;
        out->boundary_f =
            precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0;
    } else {
        res = SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory to compare contours of %d x %d pixels",
                       two->width, two->height);
    }
    finish(&work);
    return res;
}
