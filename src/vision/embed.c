/* SPDX-License-Identifier: Apache-2.0 */
#include "vision/embed.h"

static sac_result check(sac_device *dev, int rows, int dim)
{
    if (rows >= 0 && dim >= 1)
        return SAC_OK;
    return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "embeddings: %d rows of %d numbers", rows, dim);
}

sac_result sac_embed_normalise(sac_device *dev, struct sac_device_stream *stream, const void *in,
                               enum sac_dtype dtype, int rows, int dim, float *out)
{
    sac_result res = check(dev, rows, dim);
    if (res == SAC_OK && dtype != SAC_F32 && dtype != SAC_F16)
        res = SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED, "embeddings of %s; have float32, float16",
                       sac_dtype_name(dtype));
    return res == SAC_OK && rows
               ? dev->ops->vision->normalise(dev, stream, in, dtype, rows, dim, out)
               : res;
}
