/* SPDX-License-Identifier: Apache-2.0 */
/* A frame and its matte to a picture, in one launch. */
#include "vision/cuda/cuda.h"

/* The kernels' own frames and mattes are upright, and their pitch fits. */
static struct cuda_planes planes_of(const sac_frame *frame)
{
    struct cuda_planes p = {{0}, {0}};
    for (int i = 0; frame && i < sac_format_info_of(frame->format)->planes; i++) {
        p.plane[i] = frame->plane[i];
        p.pitch[i] = (uint32_t)frame->pitch_bytes[i];
    }
    return p;
}

/* Rows of other frames can't be read or written in larger pieces than numbers. */
static bool is_wide(const sac_frame *frame)
{
    uintptr_t bits = 0;
    for (int i = 0; frame && i < sac_format_info_of(frame->format)->planes; i++)
        bits |= (uintptr_t)frame->plane[i] | frame->pitch_bytes[i];
    return bits % CUDA_COMPOSITE_UNIT == 0;
}

sac_result cuda_composite(struct sac_device *dev, struct sac_device_stream *stream,
                          const struct sac_composite_job *job)
{
    const sac_frame *background = job->kind == SAC_COMPOSITE_BACKGROUND ? job->background : NULL;
    struct cuda_composite_params p = {
        .plan = sac_composite_plan_of(job),
        .matte = planes_of(job->matte),
        .background = planes_of(background),
        .out = planes_of(job->out),
        .to = job->out->format,
        .full_range = job->frame->range == SAC_RANGE_FULL,
        .wide =
            is_wide(job->frame) && is_wide(job->matte) && is_wide(background) && is_wide(job->out),
    };
    sac_result res = cuda_surface_of(dev, job->frame, &p.frame);
    if (res == SAC_OK)
        res = cuda_enter(dev);
    if (res != SAC_OK)
        return res;
    res = cuda_check(dev, cuda_launch_composite(&p, cuda_gathering_of(dev, stream)), "composite");
    cuda_leave();
    return res;
}
