/* SPDX-License-Identifier: Apache-2.0 */
/* Frames into frames of another format, size, matrix or range. */
#include "vision/cuda/cuda.h"

static cudaError_t copy_planes(const sac_frame *src, const sac_frame *dst, cudaStream_t stream)
{
    struct sac_plane_layout plane[SAC_PLANES_MAX];
    int                     n = sac_frame_planes(src->format, src->width, src->height, plane);
    cudaError_t             res = cudaSuccess;
    for (int i = 0; i < n && res == cudaSuccess; i++)
        res = cudaMemcpy2DAsync(dst->plane[i], dst->pitch_bytes[i], src->plane[i],
                                src->pitch_bytes[i], plane[i].row_bytes, (size_t)plane[i].rows,
                                cudaMemcpyDeviceToDevice, stream);
    return res;
}

static sac_result convert(struct sac_device *dev, cudaStream_t stream, const sac_frame *src,
                          enum sac_filter filter, const sac_frame *dst)
{
    struct cuda_convert_params p = {
        .x = sac_axis_spec_of(dst->width, src->width, 0, src->width, filter),
        .y = sac_axis_spec_of(dst->height, src->height, 0, src->height, filter),
        .recode = sac_recode_of(src, dst),
        .keeps_alpha =
            src->format == dst->format && src->width == dst->width && src->height == dst->height,
    };
    for (int i = 0; i < SAC_PLANES_MAX; i++) {
        p.plane[i] = dst->plane[i];
        p.pitch[i] = (uint32_t)dst->pitch_bytes[i]; /* of a frame of our own, so it fits */
    }
    sac_result res = cuda_surface_of(dev, src, &p.src);
    return res == SAC_OK ? cuda_check(dev, cuda_launch_convert(&p, stream), "convert") : res;
}

sac_result cuda_convert(struct sac_device *dev, struct sac_device_stream *stream,
                        const sac_frame *src, enum sac_filter filter, sac_frame *dst)
{
    sac_result res = cuda_enter(dev);
    if (res != SAC_OK)
        return res;
    if (sac_is_plain_copy(src, dst))
        res = cuda_check(dev, copy_planes(src, dst, cuda_stream_of(dev, stream)), "convert");
    else
        res = convert(dev, cuda_gathering_of(dev, stream), src, filter, dst);
    cuda_leave();
    return res;
}
