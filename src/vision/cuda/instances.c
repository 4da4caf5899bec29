/* SPDX-License-Identifier: Apache-2.0 */
/* Masks of boxes to one map: one launch for a batch, and one for the sums of each. */
#include "vision/cuda/cuda.h"

sac_result cuda_instances(struct sac_device *dev, struct sac_device_stream *stream,
                          const struct sac_instances_spec *spec, const void *const *tensors,
                          const void *found, int n, float *out,
                          const struct sac_instances_sums *sums)
{
    const char                  *lists = found;
    struct cuda_instances_params p = {
        .spec = *spec,
        .coefficients = tensors[spec->coefficient.tensor],
        .prototypes = tensors[spec->prototype.tensor],
        .count = found,
        .boxes = (const void *)(lists + sac_detect_boxes_at(n)),
        .origins = (const void *)(lists + sac_detect_origins_at(spec->keep, n)),
        .out = out};
    if (sums)
        p.sums = *sums;
    p.spec.coefficient.tensor = p.spec.prototype.tensor = 0;
    sac_result res = cuda_enter(dev);
    if (res != SAC_OK)
        return res;
    res =
        cuda_check(dev, cuda_launch_instances(&p, n, cuda_gathering_of(dev, stream)), "instances");
    if (res == SAC_OK && sums)
        res = cuda_check(dev, cuda_launch_instance_sums(&p, n, cuda_gathering_of(dev, stream)),
                         "sums of instances");
    cuda_leave();
    return res;
}
