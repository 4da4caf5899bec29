/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/finite.h"
#include "engine/cuda/cuda.h"

sac_result cuda_find_odd(struct sac_device *dev, struct sac_device_stream *stream,
                         const void *numbers, int64_t count, bool half, bool nan_alone,
                         uint32_t *odd)
{
    return CUDA_CALL(
        dev,
        cuda_launch_find_odd(numbers, count, half, nan_alone, odd, cuda_gathering_of(dev, stream)),
        "a look for what is not finite");
}
