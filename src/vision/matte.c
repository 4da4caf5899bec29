/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "device/device.h"
#include "vision/matte.h"
#include "vision/vision.h"

static bool is_number(enum sac_dtype dtype)
{
    return dtype == SAC_F32 || dtype == SAC_F16 || dtype == SAC_I32 || dtype == SAC_I64;
}

static bool has_classes(const struct sac_matte_spec *s)
{
    return s->form == SAC_MATTE_CLASS_LOGITS || s->form == SAC_MATTE_CLASS_SHARES;
}

static sac_result check_spec(sac_context *ctx, const struct sac_matte_spec *s, bool classes)
{
    const int classes_max = classes ? 256 : SAC_DETECT_CLASSES_MAX;
    if (s->width < 1 || s->height < 1 || s->width > SAC_MATTE_SIZE_MAX ||
        s->height > SAC_MATTE_SIZE_MAX)
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED, "matte: a map of %dx%d; have 1x1 to %dx%d",
                        s->width, s->height, SAC_MATTE_SIZE_MAX, SAC_MATTE_SIZE_MAX);
    if (s->input_width < 1 || s->input_height < 1)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "matte: a network's input of %dx%d", s->input_width,
                        s->input_height);
    if (s->form < SAC_MATTE_SHARE || s->form > SAC_MATTE_LABEL)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "matte: the unknown form %d", (int)s->form);
    if (has_classes(s) && (s->classes < 1 || s->classes > classes_max))
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED, "matte: %d classes; have 1 to %d", s->classes,
                        classes_max);
    if (s->value.tensor < 0 || s->value.tensor >= SAC_MATTE_TENSORS_MAX)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "matte: tensor %d; have 0 to %d", s->value.tensor,
                        SAC_MATTE_TENSORS_MAX - 1);
    if (!is_number(s->value.dtype))
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED,
                        "matte: outputs of %s; have float32, float16, int32, int64",
                        sac_dtype_name(s->value.dtype));
    return SAC_OK;
}

static sac_result check_style(sac_context *ctx, const struct sac_matte_style *s)
{
    const struct sac_number numbers[] = {
        {"guide", s->guide, 0, SAC_MATTE_GUIDE_MAX},
        {"guide noise", s->guide > 0 ? (double)s->guide_noise : 1, 1, 255},
        {"smooth", (double)s->smooth, 0, 0.95f},
        {"hole", s->hole, 0, SAC_MATTE_HOLE_MAX},
        {"low", (double)s->low, 0, 1},
        {"high", (double)s->high, 0, 1},
    };
    if (s->classes)
        return SAC_OK;
    if (sac_numbers_check(ctx, "matte", numbers, SAC_COUNT(numbers)) != SAC_OK)
        return SAC_ERR_ARG;
    if (!(s->high - s->low >= 1.0f / (float)SAC_MATTE_ONE))
        return SAC_FAIL(ctx, SAC_ERR_ARG, "matte: from share %g to %g; have low below high",
                        (double)s->low, (double)s->high);
    return SAC_OK;
}

/* Of a way from the frame to the network's input. */
static bool is_scale(float scale, float offset)
{
    return scale >= 1e-6f && scale <= 1e6f && fabsf(offset) <= 1e9f;
}

static bool is_frame_of(const sac_device *dev, const sac_frame *f)
{
    return f && f->owner && f->device == dev && sac_format_info_of(f->format);
}

static sac_result check_memory(sac_device *dev, const struct sac_matte_job *job, bool classes,
                               int index)
{
    if (job->image < -1 || (!classes && !job->state.memory))
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "matte: job %d of image %d has no memory", index,
                        job->image);
    if (job->image < 0 && (classes || !job->state.has_before))
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG,
                        "matte: job %d has no image, and %s before it to take from", index,
                        classes ? "no matte" : "no frame");
    if (classes && job->summary)
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "matte: job %d wants a summary of classes", index);
    return SAC_OK;
}

static sac_result check_job(sac_device *dev, const struct sac_matte_job *job, bool classes,
                            int index)
{
    const sac_frame *f = job->frame, *out = job->out;
    const float      edge[4] = {job->crop.x0, job->crop.y0, job->crop.x1, job->crop.y1};
    if (!is_frame_of(dev, f) || !is_frame_of(dev, out))
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "matte: job %d has no two frames on device %s",
                        index, dev->name);
    if (out->format != SAC_PIXEL_GRAY8 || out->width != f->width || out->height != f->height ||
        out->orientation != SAC_UPRIGHT)
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG,
                        "matte: job %d writes %s of %dx%d; the frame wants gray8 of %dx%d", index,
                        sac_pixel_format_name(out->format), out->width, out->height, f->width,
                        f->height);
    if (!sac_frame_is_writable(out))
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "matte: job %d writes a shared frame", index);
    if (!is_scale(job->map.scale_x, job->map.offset_x) ||
        !is_scale(job->map.scale_y, job->map.offset_y))
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG,
                        "matte: job %d maps its frame by %g and %g to the network's input", index,
                        (double)job->map.scale_x, (double)job->map.scale_y);
    for (int i = 0; i < 4; i++)
        if (!(fabsf(edge[i]) <= 1 << 20))
            return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "matte: job %d crops at %g", index,
                            (double)edge[i]);
    return check_memory(dev, job, classes, index);
}

static sac_result check(sac_device *dev, const struct sac_matte_spec *spec,
                        const struct sac_matte_style *style, const struct sac_matte_job *jobs,
                        int n)
{
    if (!dev->ops->vision->matte)
        return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED, "matte: device %s makes none; cpu does",
                        dev->name);
    sac_result res = check_spec(dev->ctx, spec, style->classes);
    if (res == SAC_OK)
        res = check_style(dev->ctx, style);
    for (int i = 0; i < n && res == SAC_OK; i++)
        res = check_job(dev, &jobs[i], style->classes, i);
    return res;
}

sac_result sac_matte_run_on(sac_device *dev, struct sac_device_stream *stream,
                            const struct sac_matte_spec *spec, const struct sac_matte_style *style,
                            const void *const *tensors, const struct sac_matte_job *jobs, int n)
{
    sac_result res = check(dev, spec, style, jobs, n);
    if (res != SAC_OK)
        return res;
    for (int i = 0; i < n && res == SAC_OK; i++) {
        res = sac_frame_await(jobs[i].frame, stream);
        if (res == SAC_OK)
            res = sac_frame_await(jobs[i].out, stream);
    }
    const enum sac_memory_use before = sac_memory_use_set(SAC_MEMORY_HEAD); /* its scratch */
    if (n > 0 && res == SAC_OK)
        res = dev->ops->vision->matte(dev, stream, spec, style, tensors, jobs, n);
    sac_memory_use_set(before);
    for (int i = 0; i < n; i++) {
        sac_frame_used(jobs[i].frame, stream);
        sac_frame_used(jobs[i].out, stream);
    }
    return res;
}
