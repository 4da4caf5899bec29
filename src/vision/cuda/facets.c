/* SPDX-License-Identifier: Apache-2.0 */
/* Facets and their maps: a launch for each batch of them. */
#include "vision/cuda/cuda.h"

static struct cuda_facet facet_of(const struct sac_facet_job *job)
{
    return (struct cuda_facet){.eye = job->eye->plane[0],
                               .eye_pitch = job->eye->pitch_bytes[0],
                               .eye_width = job->eye->width,
                               .eye_height = job->eye->height,
                               .places = job->places,
                               .out = job->out->plane[0],
                               .out_pitch = job->out->pitch_bytes[0],
                               .width = job->out->width,
                               .height = job->out->height};
}

sac_result cuda_facets(struct sac_device *dev, struct sac_device_stream *stream,
                       const struct sac_facet_job *jobs, int n)
{
    sac_result res = cuda_enter(dev);
    if (res != SAC_OK)
        return res;
    for (int at = 0, count; at < n && res == SAC_OK; at += count) {
        struct cuda_facets_params p = {0};
        count = SAC_MIN(n - at, (int)CUDA_FACETS_MAX);
        for (int i = 0; i < count; i++) {
            p.facet[i] = facet_of(&jobs[at + i]);
            p.width_max = SAC_MAX(p.width_max, p.facet[i].width);
            p.height_max = SAC_MAX(p.height_max, p.facet[i].height);
        }
        res = cuda_check(dev, cuda_launch_facets(&p, count, cuda_gathering_of(dev, stream)),
                         "facets");
    }
    cuda_leave();
    return res;
}

sac_result cuda_facet_shares(struct sac_device *dev, struct sac_device_stream *stream,
                             const struct sac_matte_spec *net, const void *const *tensors, int n,
                             int16_t *out)
{
    struct cuda_facet_shares_params p = {
        .spec = *net, .numbers = tensors[net->value.tensor], .out = out};
    sac_result res = cuda_enter(dev);
    if (res != SAC_OK)
        return res;
    p.spec.value.tensor = 0;
    res = cuda_check(dev, cuda_launch_facet_shares(&p, n, cuda_gathering_of(dev, stream)),
                     "facets' shares");
    cuda_leave();
    return res;
}

sac_result cuda_facet_maps(struct sac_device *dev, struct sac_device_stream *stream,
                           const struct sac_facet_maps *maps, const int16_t *shares, int n,
                           float *out)
{
    const struct cuda_facet_maps_params p = {.facets = maps->facets,
                                             .net_width = maps->net_width,
                                             .net_height = maps->net_height,
                                             .width = maps->width,
                                             .height = maps->height,
                                             .cells = maps->cells,
                                             .shares = shares,
                                             .out = out};
    sac_result                          res = cuda_enter(dev);
    if (res != SAC_OK)
        return res;
    res = cuda_check(dev, cuda_launch_facet_maps(&p, n, cuda_gathering_of(dev, stream)),
                     "facets' maps");
    cuda_leave();
    return res;
}
