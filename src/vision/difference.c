/* SPDX-License-Identifier: Apache-2.0 */
#include "vision/difference.h"

#include "vision/vision.h"

static bool is_frame_of(const sac_device *dev, const sac_frame *f)
{
    return f && f->device == dev && sac_format_info_of(f->format) && f->width >= 1 &&
           f->height >= 1;
}

static sac_result check(sac_device *dev, const struct sac_difference_job *jobs, int n)
{
    if (!dev->ops->vision->difference)
        return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED, "%s compares no frames", dev->name);
    for (int i = 0; i < n; i++)
        if (!is_frame_of(dev, jobs[i].frame) ||
            (jobs[i].other && !is_frame_of(dev, jobs[i].other)) || (jobs[i].other && jobs[i].grid))
            return SAC_FAIL(dev->ctx, SAC_ERR_ARG,
                            "difference: comparison %d of %d has no two pictures on %s", i, n,
                            dev->name);
    return SAC_OK;
}

static sac_result await(const struct sac_difference_job *job, struct sac_device_stream *stream)
{
    sac_result res = sac_frame_await(job->frame, stream);
    return res == SAC_OK && job->other ? sac_frame_await(job->other, stream) : res;
}

sac_result sac_difference_run_on(sac_device *dev, struct sac_device_stream *stream,
                                 const struct sac_difference_job *jobs, int n, uint32_t *sums)
{
    sac_result res = check(dev, jobs, n);
    for (int i = 0; i < n && res == SAC_OK; i++)
        res = await(&jobs[i], stream);
    if (res == SAC_OK && n > 0)
        res = dev->ops->vision->difference(dev, stream, jobs, n, sums);
    for (int i = 0; i < n && res == SAC_OK; i++) {
        sac_frame_used(jobs[i].frame, stream);
        if (jobs[i].other)
            sac_frame_used(jobs[i].other, stream);
    }
    return res;
}
