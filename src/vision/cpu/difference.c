/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "vision/cpu/cpu.h"
#include "vision/difference.h"

static void read_grid(const struct sac_surface *s, uint8_t *grid)
{
    for (int k = 0; k < SAC_DIFFERENCE_SAMPLES; k++)
        grid[k] = (uint8_t)sac_difference_sample(s, k);
}

static uint32_t compare(const uint8_t *a, const uint8_t *b)
{
    uint32_t sum = 0;
    for (int k = 0; k < SAC_DIFFERENCE_SAMPLES; k++)
        sum += sac_difference_of(a[k], b[k]);
    return sum;
}

/* The last frame that was read: comparisons of one frame with several stand next to each other. */
struct sampled {
    const sac_frame *frame;
    uint8_t          grid[SAC_DIFFERENCE_SAMPLES];
};

static const uint8_t *grid_of(struct sampled *s, const sac_frame *frame)
{
    if (s->frame != frame) {
        const struct sac_surface surface = sac_surface_of(frame);
        read_grid(&surface, s->grid);
        s->frame = frame;
    }
    return s->grid;
}

sac_result sac_cpu_difference(struct sac_device *dev, struct sac_device_stream *stream,
                              const struct sac_difference_job *jobs, int n, uint32_t *sums)
{
    struct sampled frame = {.frame = NULL}, other = {.frame = NULL};
    (void)dev, (void)stream; /* the CPU's runs at once */
    for (int i = 0; i < n; i++) {
        const struct sac_difference_job *job = &jobs[i];
        const uint8_t                   *a = grid_of(&frame, job->frame),
                      *b = job->other ? grid_of(&other, job->other) : job->grid;
        sums[i] = b ? compare(a, b) : SAC_DIFFERENCE_MOST;
        if (job->kept)
            memcpy(job->kept, a, SAC_DIFFERENCE_SAMPLES);
    }
    return SAC_OK;
}
