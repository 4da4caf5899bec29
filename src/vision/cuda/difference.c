/* SPDX-License-Identifier: Apache-2.0 */
/* All comparisons of a call go to the GPU as one list, for one launch. */
#include <string.h>

#include "vision/cuda/cuda.h"

static sac_result write_jobs(struct sac_device *dev, const struct sac_difference_job *jobs, int n,
                             char *to)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < n && res == SAC_OK; i++) {
        const struct sac_difference_job *job = &jobs[i];
        struct cuda_difference_job made = {.kept = job->kept, .alone = !job->other && !job->grid};
        res = cuda_surface_of(dev, job->frame, &made.frame);
        if (res == SAC_OK && job->other)
            res = cuda_surface_of(dev, job->other, &made.other);
        if (job->grid)
            made.other = sac_difference_surface(job->grid);
        memcpy(to + (size_t)i * sizeof made, &made, sizeof made);
    }
    return res;
}

static sac_result queue_jobs(struct sac_device *dev, struct sac_device_stream *stream,
                             const struct sac_difference_job *jobs, int n, uint32_t *sums)
{
    const size_t               bytes = (size_t)n * sizeof(struct cuda_difference_job);
    struct cuda_command_block *block = NULL;
    sac_result                 res = cuda_commands_take(dev, bytes, &block);
    if (res != SAC_OK)
        return res;
    res = write_jobs(dev, jobs, n, block->host);
    if (res == SAC_OK)
        res = cuda_commands_send(dev, stream, block, bytes, "frames to compare");
    if (res == SAC_OK)
        res = cuda_check(
            dev, cuda_launch_difference(block->device, n, sums, cuda_stream_of(dev, stream)),
            "difference");
    cuda_commands_done(dev, stream, block);
    return res;
}

sac_result cuda_difference(struct sac_device *dev, struct sac_device_stream *stream,
                           const struct sac_difference_job *jobs, int n, uint32_t *sums)
{
    sac_result res = cuda_enter(dev);
    if (res != SAC_OK)
        return res;
    res = queue_jobs(dev, stream, jobs, n, sums);
    cuda_leave();
    return res;
}
