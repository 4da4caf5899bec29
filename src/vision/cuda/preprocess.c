/* SPDX-License-Identifier: Apache-2.0 */
/* Crops of frames straight into a tensor: one launch for up to CUDA_CROPS_MAX of them. */
#include <string.h>

#include "vision/cuda/cuda.h"
#include "vision/fit.h"

static struct cuda_preprocess_params params_of(const struct sac_preprocess *pre, const void *dst)
{
    struct cuda_preprocess_params p = {
        .width = pre->width,
        .height = pre->height,
        .layout = pre->layout,
        .dtype = pre->dtype,
        .bgr = pre->order == SAC_ORDER_BGR,
        .paired = pre->width % 2 == 0 && (uintptr_t)dst % 8 == 0,
        .scale = {1, 1, 1},
    };
    memcpy(p.fill, pre->fill, sizeof p.fill);
    if (pre->dtype != SAC_U8) {
        memcpy(p.mean, pre->mean, sizeof p.mean);
        memcpy(p.scale, pre->scale, sizeof p.scale);
    }
    return p;
}

sac_result cuda_surface_of(struct sac_device *dev, const sac_frame *frame, struct sac_surface *out)
{
    struct sac_plane_layout planes[SAC_PLANES_MAX];
    int                     n = sac_frame_stored_planes(frame, planes);
    uintptr_t               odd = 0;
    for (int i = 0; i < n && (frame->format == SAC_PIXEL_NV12 || frame->format == SAC_PIXEL_P010);
         i++)
        if (i > 0 || frame->format == SAC_PIXEL_P010)
            odd |= (uintptr_t)frame->plane[i] | frame->pitch_bytes[i];
    if (odd & 1)
        return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED,
                        "%s: a plane of a %s frame begins at an odd address or has an odd pitch",
                        dev->name, sac_pixel_format_name(frame->format));
    for (int i = 0; i < n; i++)
        if (frame->pitch_bytes[i] > INT32_MAX)
            return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED, "%s: a frame with a pitch of %zu bytes",
                            dev->name, frame->pitch_bytes[i]);
    *out = sac_surface_of(frame);
    return SAC_OK;
}

static sac_result crop_init(struct sac_device *dev, const struct sac_preprocess *pre,
                            const struct sac_preprocess_job *job, struct cuda_crop *out)
{
    struct sac_rect    r = sac_job_crop(job);
    struct sac_fit_box box = sac_fit_box_of(pre, &r);
    *out = (struct cuda_crop){
        .x = sac_axis_spec_of(box.width, job->frame->width, r.x0, (double)r.x1 - r.x0, pre->filter),
        .y = sac_axis_spec_of(box.height, job->frame->height, r.y0, (double)r.y1 - r.y0,
                              pre->filter),
        .left = box.x,
        .top = box.y,
    };
    return cuda_surface_of(dev, job->frame, &out->src);
}

sac_result cuda_preprocess(struct sac_device *dev, struct sac_device_stream *stream,
                           const struct sac_preprocess *pre, const struct sac_preprocess_job *jobs,
                           int n, void *dst)
{
    const size_t image_bytes =
        (size_t)pre->width * (size_t)pre->height * 3 * sac_dtype_bytes(pre->dtype);
    struct cuda_preprocess_params params = params_of(pre, dst);
    struct cuda_crop              crops[CUDA_CROPS_MAX];
    sac_result                    res = cuda_enter(dev);
    if (res != SAC_OK)
        return res;
    for (int at = 0, count; at < n && res == SAC_OK; at += count) {
        count = SAC_MIN(n - at, (int)CUDA_CROPS_MAX);
        params.area = params.turned = false;
        for (int i = 0; i < count && res == SAC_OK; i++) {
            res = crop_init(dev, pre, &jobs[at + i], &crops[i]);
            params.area |= crops[i].x.area || crops[i].y.area;
            params.turned |= crops[i].src.turned;
        }
        if (res == SAC_OK)
            res = cuda_check(dev,
                             cuda_launch_preprocess(&params, crops, count,
                                                    (char *)dst + (size_t)at * image_bytes,
                                                    cuda_gathering_of(dev, stream)),
                             "preprocess");
    }
    cuda_leave();
    return res;
}
