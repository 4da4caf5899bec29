/* SPDX-License-Identifier: Apache-2.0 */
/* Maps put together from several scales': a launch for each few pictures. */
#include "vision/cuda/cuda.h"

sac_result cuda_scale_maps(struct sac_device *dev, struct sac_device_stream *stream,
                           const struct sac_scale_maps *maps, const int16_t *shares, int n,
                           float *out)
{
    struct cuda_scale_maps_params p = {.looks = maps->looks,
                                       .net_width = maps->net_width,
                                       .net_height = maps->net_height,
                                       .width = maps->width,
                                       .height = maps->height};
    sac_result                    res = cuda_enter(dev);
    if (res != SAC_OK)
        return res;
    const size_t seen = (size_t)p.looks * (size_t)p.net_width * (size_t)p.net_height,
                 made = (size_t)p.width * (size_t)p.height;
    for (int at = 0, count; at < n && res == SAC_OK; at += count) {
        count = SAC_MIN(n - at, (int)CUDA_SCALES_MAX);
        for (int i = 0; i < count; i++)
            p.picture[i] = maps->pictures[at + i];
        p.shares = shares + (size_t)at * seen;
        p.out = out + (size_t)at * made;
        res = cuda_check(dev, cuda_launch_scale_maps(&p, count, cuda_gathering_of(dev, stream)),
                         "scales' maps");
    }
    cuda_leave();
    return res;
}
