/* SPDX-License-Identifier: Apache-2.0 */
#include "vision/cuda/cuda.h"

sac_result cuda_normalise(struct sac_device *dev, struct sac_device_stream *stream, const void *in,
                          enum sac_dtype dtype, int rows, int dim, float *out)
{
    return CUDA_CALL(dev,
                     cuda_launch_normalise(in, dtype, rows, dim, out, cuda_stream_of(dev, stream)),
                     "normalise");
}
