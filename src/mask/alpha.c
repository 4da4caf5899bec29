/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of a matte: Rhemann et al., "A Perceptually Motivated Online Benchmark for Image Matting",
 * CVPR 2009. Alpha is 0..1; the whole picture counts. The gradient is that of a Gaussian of sigma
 * 1.4, cut where it falls below 0.01, each filter of length 1, edge pixels repeated. */
#include <math.h>

#include "mask/mask.h"

#define SIGMA 1.4
enum { HALF = 4, TAPS = 2 * HALF + 1 }; /* ceil(sigma * sqrt(-2 ln(sqrt(2 pi) * sigma * 0.01))) */

struct filters {
    double smooth[TAPS], slope[TAPS];
};

static void scale(double *taps)
{
    double squares = 0;
    for (int i = 0; i < TAPS; i++)
        squares += taps[i] * taps[i];
    for (int i = 0; i < TAPS; i++)
        taps[i] /= sqrt(squares);
}

static struct filters make_filters(void)
{
    struct filters f;
    for (int i = 0; i < TAPS; i++) {
        double x = i - HALF;
        f.smooth[i] = exp(-x * x / (2 * SIGMA * SIGMA));
        f.slope[i] = x * f.smooth[i];
    }
    scale(f.smooth);
    scale(f.slope);
    return f;
}

/* Column by column a smoothed and a sloped row around y; then along the row. */
static void gradient_row(const struct filters *f, const uint8_t *mask, int width, int height, int y,
                         double *smoothed, double *sloped, double *length)
{
    for (int x = 0; x < width; x++)
        smoothed[x] = sloped[x] = 0;
    for (int i = 0; i < TAPS; i++) {
        int            from = SAC_CLAMP(y + i - HALF, 0, height - 1);
        const uint8_t *row = mask + (size_t)from * (size_t)width;
        for (int x = 0; x < width; x++) {
            smoothed[x] += f->smooth[i] * row[x];
            sloped[x] += f->slope[i] * row[x];
        }
    }
    for (int x = 0; x < width; x++) {
        double across = 0, down = 0;
        for (int i = 0; i < TAPS; i++) {
            int from = SAC_CLAMP(x + i - HALF, 0, width - 1);
            across += f->slope[i] * smoothed[from];
            down += f->smooth[i] * sloped[from];
        }
        length[x] = sqrt(across * across + down * down) / 255;
    }
}

static void differences(const struct sac_mask_two *two, struct sac_mask_scores *out)
{
    size_t  count = (size_t)two->width * (size_t)two->height;
    int64_t sum = 0, squares = 0;
    for (size_t i = 0; i < count; i++) {
        int difference = abs(two->gt[i] - two->mask[i]);
        sum += difference;
        squares += difference * difference;
    }
    int64_t scored = (int64_t)count - two->ignored;
    out->sad = (double)sum / 255;
    out->mse = scored > 0 ? (double)squares / (255. * 255.) / (double)scored : 0;
}

sac_result sac_mask_alpha_errors(sac_context *ctx, const struct sac_mask_two *two,
                                 struct sac_mask_scores *out)
{
    const struct filters f = make_filters();
    const size_t         width = (size_t)two->width;
    double              *rows = sac_alloc(4 * width * sizeof *rows);
    if (!rows)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory to compare mattes of %d x %d pixels",
                        two->width, two->height);
    differences(two, out);
    out->gradient = 0;
    for (int y = 0; y < two->height; y++) {
        double *gt = rows + 2 * width, *mask = rows + 3 * width;
        gradient_row(&f, two->gt, two->width, two->height, y, rows, rows + width, gt);
        gradient_row(&f, two->mask, two->width, two->height, y, rows, rows + width, mask);
        for (size_t x = 0; x < width; x++)
            out->gradient += (gt[x] - mask[x]) * (gt[x] - mask[x]);
    }
    sac_free(rows);
    return SAC_OK;
}
