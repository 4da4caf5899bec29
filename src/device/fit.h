/* SPDX-License-Identifier: Apache-2.0 */
/* Where a crop lands in the tensor. One definition for every device and for the way back. */
#ifndef SAC_DEVICE_FIT_H
#define SAC_DEVICE_FIT_H

#include <saccade/image.h>
#include "base/base.h"
#include "device/place.h"

/* The crop that a job means: an empty one is the whole frame. */
static inline struct sac_rect sac_job_crop(const struct sac_preprocess_job *job)
{
    if (job->crop.x1 > job->crop.x0 && job->crop.y1 > job->crop.y0)
        return job->crop;
    return (struct sac_rect){0, 0, (float)job->frame->width, (float)job->frame->height};
}

/* The tensor of n images. */
static inline struct sac_tensor_desc sac_preprocess_desc(const struct sac_preprocess *pre, int n)
{
    bool planes = pre->layout == SAC_LAYOUT_NCHW;
    return (struct sac_tensor_desc){
        pre->dtype,
        4,
        {n, planes ? 3 : pre->height, planes ? pre->height : pre->width, planes ? pre->width : 3}};
}

#endif
