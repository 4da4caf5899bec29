/* SPDX-License-Identifier: Apache-2.0 */
/* How much two frames differ: the sum of absolute differences of luma over a fixed grid of samples,
 * spread evenly over each frame. Whole numbers, so that all devices have the same. A frame's
 * samples can be kept for a comparison after the frame itself is gone. */
#ifndef SAC_VISION_DIFFERENCE_H
#define SAC_VISION_DIFFERENCE_H

#include "vision/matte.h"

enum {
    SAC_DIFFERENCE_SIDE = 64, /* samples each way */
    SAC_DIFFERENCE_SAMPLES = SAC_DIFFERENCE_SIDE * SAC_DIFFERENCE_SIDE,
    SAC_DIFFERENCE_MOST = 255 * SAC_DIFFERENCE_SAMPLES
};

/* One comparison. Memory is the device's. */
struct sac_difference_job {
    const sac_frame *frame;
    const sac_frame *other; /* another frame, or NULL */
    const uint8_t   *grid;  /* instead: [SAC_DIFFERENCE_SAMPLES] as an earlier job kept them; both
                               NULL: there is nothing to compare with, the sum is the most */
    uint8_t *kept;          /* [SAC_DIFFERENCE_SAMPLES] receives the frame's samples; NULL: it does
                               not. No other job of the call reads it */
};

/* sums [n] of the device's memory, 0 to SAC_DIFFERENCE_MOST each. It and the grids are the caller's
 * to keep until the stream is done with them.
 * Errors   SAC_ERR_UNSUPPORTED where the device compares no frames; SAC_ERR_ARG for frames of
 *          another device; SAC_ERR_LIMIT, SAC_ERR_MEMORY. */
sac_result sac_difference_run_on(sac_device *dev, struct sac_device_stream *stream,
                                 const struct sac_difference_job *jobs, int n, uint32_t *sums);

/* The pixel of a direction that sample i is: the middle of its part. */
SAC_ANYWHERE int sac_difference_pixel(int i, int size)
{
    return (2 * i + 1) * size / (2 * SAC_DIFFERENCE_SIDE);
}

/* Sample k; of a kept grid, which is a grey picture of the grid's size, its number k. */
SAC_ANYWHERE int sac_difference_sample(const struct sac_surface *s, int k)
{
    struct sac_reading r;
    r.format = s->format;
    r.turned = s->turned;
    return sac_matte_luma(s, r, sac_difference_pixel(k % SAC_DIFFERENCE_SIDE, s->width),
                          sac_difference_pixel(k / SAC_DIFFERENCE_SIDE, s->height));
}

SAC_ANYWHERE uint32_t sac_difference_of(int a, int b)
{
    return (uint32_t)(a < b ? b - a : a - b);
}

/* A kept grid as a picture. */
SAC_ANYWHERE struct sac_surface sac_difference_surface(const uint8_t *grid)
{
    struct sac_surface s;
    memset(&s, 0, sizeof s);
    s.plane[0] = grid;
    s.pitch[0] = SAC_DIFFERENCE_SIDE;
    s.across[0] = 1;
    s.down[0] = SAC_DIFFERENCE_SIDE;
    s.width = s.height = SAC_DIFFERENCE_SIDE;
    s.format = SAC_PIXEL_GRAY8;
    return s;
}

#endif
