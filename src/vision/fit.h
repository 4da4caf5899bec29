/* SPDX-License-Identifier: Apache-2.0 */
/* Where a crop lands in the tensor, and what is seen of a box. One definition for every device and
 * for the way back. */
#ifndef SAC_VISION_FIT_H
#define SAC_VISION_FIT_H

#include <math.h>

#include <saccade/head.h>
#include <saccade/image.h>

struct sac_fit_box {
    int x, y, width, height; /* tensor pixels that show the crop; the rest is fill */
};

/* Whole pixels, as the makers of the models resize: YOLOX cuts the fraction off, YOLOv5 and later
 * round it and put the odd pixel of the border right and below. */
static inline struct sac_fit_box sac_fit_box_of(const struct sac_preprocess *pre,
                                                const struct sac_rect       *crop)
{
    struct sac_fit_box box = {0, 0, pre->width, pre->height};
    if (pre->fit == SAC_FIT_STRETCH)
        return box;
    const double width = (double)crop->x1 - crop->x0, height = (double)crop->y1 - crop->y0;
    const double ratio = fmin(pre->width / width, pre->height / height);
    const bool   topleft = pre->fit == SAC_FIT_LETTERBOX_TOPLEFT;
    /* 1e-6: 768 * (416 / 768.0) may come out a hair under 416 */
    const double bias = topleft ? 1e-6 : 0.5;
    box.width = (int)fmin(width * ratio + bias, (double)pre->width);
    box.height = (int)fmin(height * ratio + bias, (double)pre->height);
    box.width = box.width > 1 ? box.width : 1;
    box.height = box.height > 1 ? box.height : 1;
    box.x = topleft ? 0 : (pre->width - box.width) / 2;
    box.y = topleft ? 0 : (pre->height - box.height) / 2;
    return box;
}

static inline float sac_clamp_to(float v, float low, float high)
{
    v = v < high ? v : high;
    return low > v ? low : v;
}

/* The part of the box inside the frame, as networks for crops are trained; a pixel at least, so
 * that a degenerate box and one outside still have a crop. */
static inline struct sac_rect sac_crop_of_box(const struct sac_detection *box, int frame_width,
                                              int frame_height)
{
    const float     width = (float)frame_width, height = (float)frame_height;
    struct sac_rect crop;
    crop.x0 = sac_clamp_to(box->x0, 0.0f, width - 1);
    crop.y0 = sac_clamp_to(box->y0, 0.0f, height - 1);
    crop.x1 = sac_clamp_to(box->x1, crop.x0 + 1, width);
    crop.y1 = sac_clamp_to(box->y1, crop.y0 + 1, height);
    return crop;
}

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
    bool planes = pre->layout == SAC_TENSOR_LAYOUT_NCHW;
    return (struct sac_tensor_desc){
        pre->dtype,
        4,
        {n, planes ? 3 : pre->height, planes ? pre->height : pre->width, planes ? pre->width : 3}};
}

#endif
