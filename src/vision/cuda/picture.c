/* SPDX-License-Identifier: Apache-2.0 */
#include "vision/cuda/cuda.h"

sac_result cuda_picture(struct sac_device *dev, struct sac_device_stream *stream,
                        const struct sac_picture_job *job)
{
    return CUDA_CALL(dev, cuda_launch_picture(job, cuda_stream_of(dev, stream)), "picture");
}
