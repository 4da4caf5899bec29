/* SPDX-License-Identifier: Apache-2.0 */
/* Where a crop lands in the tensor, and what is seen of a box: for the host and for kernels. */
#ifndef SAC_DEVICE_PLACE_H
#define SAC_DEVICE_PLACE_H

#include <saccade/head.h>
#include "device/sample.h"

struct sac_fit_box {
    int x, y, width, height; /* tensor pixels that show the crop; the rest is fill */
};

/* Whole pixels, as the makers of the models resize: YOLOX cuts the fraction off, YOLOv5 and later
 * round it and put the odd pixel of the border right and below. */
SAC_ANYWHERE struct sac_fit_box sac_fit_box_of(const struct sac_preprocess *pre,
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

SAC_ANYWHERE float sac_clamp_to(float v, float low, float high)
{
    v = v < high ? v : high;
    return low > v ? low : v;
}

/* The part of the box inside the frame, as networks for crops are trained; a pixel at least, so
 * that a degenerate box and one outside still have a crop. */
SAC_ANYWHERE struct sac_rect sac_crop_of_box(const struct sac_detection *box, int frame_width,
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

#ifndef __CUDACC__
#include "device/device.h"

/* Crops of boxes that never leave the device: what sac_detect_run left there. */
struct sac_crops_job {
    const struct sac_preprocess *pre;
    sac_frame *const            *frames; /* [n], of which the boxes are */
    int                          n;
    const void                  *boxes; /* device memory, as sac_detect_run fills it for n images */
    float                        score_min; /* boxes below it are skipped */
    int                          max;       /* crops that dst has room for */
};
enum { SAC_CROPS_FRAMES_MAX = 128 };

/* Fill dst [max,C,H,W] or [max,H,W,C] with the crops of the boxes in their order; images behind the
 * last crop stay as they are.
 * count    one number in device memory: how many crops there are; more than max: the rest was left
 *          out.
 * Errors   SAC_ERR_ARG, as of sac_preprocess_run, and for more than SAC_CROPS_FRAMES_MAX frames. */
sac_result sac_preprocess_boxes(sac_device *dev, struct sac_stream *stream,
                                const struct sac_crops_job *job, sac_tensor *dst, int32_t *count);
#endif

#endif
