/* SPDX-License-Identifier: Apache-2.0 */
#include "vision/instances.h"
#include "vision/matte.h"

static sac_result check_field(sac_device *dev, const struct sac_detect_field *f)
{
    if (f->tensor < 0 || f->tensor >= SAC_DETECT_TENSORS_MAX)
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "instances: tensor %d; have 0 to %d", f->tensor,
                        SAC_DETECT_TENSORS_MAX - 1);
    if (f->dtype != SAC_F32 && f->dtype != SAC_F16)
        return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED,
                        "instances: outputs of %s; have float32, float16",
                        sac_dtype_name(f->dtype));
    return SAC_OK;
}

static sac_result check(sac_device *dev, const struct sac_instances_spec *s)
{
    if (s->width < 1 || s->height < 1 || s->width > SAC_MATTE_SIZE_MAX ||
        s->height > SAC_MATTE_SIZE_MAX)
        return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED,
                        "instances: a map of %dx%d; have 1x1 to %dx%d", s->width, s->height,
                        SAC_MATTE_SIZE_MAX, SAC_MATTE_SIZE_MAX);
    if (s->numbers < 1 || s->numbers > SAC_INSTANCES_NUMBERS_MAX)
        return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED, "instances: %d prototypes; have 1 to %d",
                        s->numbers, SAC_INSTANCES_NUMBERS_MAX);
    if (s->input_width < 1 || s->input_height < 1 || s->keep < 1)
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "instances: %d boxes of an input of %dx%d", s->keep,
                        s->input_width, s->input_height);
    sac_result res = check_field(dev, &s->coefficient);
    return res == SAC_OK ? check_field(dev, &s->prototype) : res;
}

sac_result sac_instances_run(sac_device *dev, struct sac_device_stream *stream,
                             const struct sac_instances_spec *s, const void *const *tensors,
                             const void *found, int n, float *out)
{
    if (!dev->ops->vision->instances)
        return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED,
                        "instances: device %s makes no masks of them; cpu does", dev->name);
    sac_result res = check(dev, s);
    return res == SAC_OK && n > 0
               ? dev->ops->vision->instances(dev, stream, s, tensors, found, n, out)
               : res;
}
