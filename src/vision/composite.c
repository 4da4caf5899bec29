/* SPDX-License-Identifier: Apache-2.0 */
/* The checking side of composites, and a job's colours in the frame's own channels. */
#include "vision/composite.h"

#include "base/base.h"
#include "vision/paint.h"
#include "vision/vision.h"

/* ---- what is asked of each pixel ---- */

static void take_sample(void *user, const struct sac_coat *coat, const struct sac_segment *segment)
{
    (void)segment;
    *(struct sac_coat *)user = *coat;
}

/* As a shape of this colour is painted. */
static void sample_of(const sac_frame *frame, struct sac_colour colour, uint16_t sample[3])
{
    const struct sac_shape pixel = {
        .kind = SAC_SHAPE_FILL, .rect = {0, 0, 1, 1}, .colour = colour, .alpha = 1};
    struct sac_coat coat = {0};
    sac_coats_of(frame, &pixel, take_sample, &coat);
    for (int c = 0; c < 3; c++)
        sample[c] = (uint16_t)coat.sample[c];
}

struct sac_composite_plan sac_composite_plan_of(const struct sac_composite_job *job)
{
    struct sac_composite_plan plan = {
        .kind = job->kind,
        .words = job->frame->format == SAC_PIXEL_P010,
        .colours = SAC_MAX(job->colours, 1),
        .strength = (uint8_t)lrintf(job->strength * 255.0f),
        .outline = job->colours > 1,
        .radius = sac_composite_radius(job->frame->width, job->frame->height),
    };
    for (int i = 0; i < plan.colours; i++)
        sample_of(job->frame, job->colour[i], plan.sample[i]);
    return plan;
}

/* ---- checks ---- */

static bool is_like(const sac_frame *a, const sac_frame *b)
{
    return a->device == b->device && a->width == b->width && a->height == b->height;
}

static bool has_colours_of(const sac_frame *a, const sac_frame *b)
{
    return !sac_is_yuv(a->format) || (a->matrix == b->matrix && a->range == b->range);
}

static bool is_output_format(enum sac_pixel_format out, enum sac_pixel_format frame)
{
    return out == frame || (sac_is_yuv(frame) && (out == SAC_PIXEL_I420 || out == SAC_PIXEL_NV12));
}

/* Rows are written while others are still read. */
static bool shares_planes(const sac_frame *out, const sac_frame *with)
{
    return with && out->plane[0] == with->plane[0];
}

static sac_result check_out(sac_context *ctx, const struct sac_composite_job *job)
{
    const sac_frame *frame = job->frame, *out = job->out;
    if (!is_like(out, frame) || !is_output_format(out->format, frame->format))
        return SAC_FAIL(ctx, SAC_ERR_ARG,
                        "composite: a frame of %dx%d, %s, into one of %dx%d, %s; have the same "
                        "format, or nv12 or i420 of 4:2:0",
                        frame->width, frame->height, sac_pixel_format_name(frame->format),
                        out->width, out->height, sac_pixel_format_name(out->format));
    if (!has_colours_of(out, frame))
        return SAC_FAIL(ctx, SAC_ERR_ARG,
                        "composite: the output has another matrix or range than the frame");
    if (!sac_frame_is_writable(job->out) || out->orientation != SAC_UPRIGHT)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "composite: the output frame is shared or not upright");
    if (shares_planes(out, job->matte) || shares_planes(out, job->background) ||
        (out != frame && shares_planes(out, frame)))
        return SAC_FAIL(ctx, SAC_ERR_ARG,
                        "composite: the output lies in the memory of an input; it may only be the "
                        "frame itself");
    return SAC_OK;
}

static sac_result check_inputs(sac_context *ctx, const struct sac_composite_job *job)
{
    const sac_frame *frame = job->frame, *matte = job->matte, *background = job->background;
    if (!is_like(matte, frame) || matte->format != SAC_PIXEL_GRAY8)
        return SAC_FAIL(ctx, SAC_ERR_ARG,
                        "composite: a matte of %dx%d, %s, for a frame of %dx%d; it must be gray8 "
                        "of that size on the same device",
                        matte->width, matte->height, sac_pixel_format_name(matte->format),
                        frame->width, frame->height);
    if (background && (!is_like(background, frame) || background->format != frame->format ||
                       !has_colours_of(background, frame)))
        return SAC_FAIL(ctx, SAC_ERR_ARG,
                        "composite: a background of %dx%d, %s, for a frame of %dx%d, %s; it must "
                        "have the same size, format, matrix and range",
                        background->width, background->height,
                        sac_pixel_format_name(background->format), frame->width, frame->height,
                        sac_pixel_format_name(frame->format));
    return SAC_OK;
}

static sac_result check(sac_device *dev, const struct sac_composite_job *job)
{
    const struct sac_number numbers[] = {
        {"kind", (int)job->kind, SAC_COMPOSITE_BACKGROUND, SAC_COMPOSITE_PAINT},
        {"strength", job->strength, 0, 1},
        {"colours", job->colours, 0, SAC_COMPOSITE_COLOURS_MAX},
    };
    if (!dev->ops->vision->composite)
        return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED,
                        "composite: device %s does not put frames over backgrounds yet; have cpu",
                        dev->name);
    if (sac_numbers_check(dev->ctx, "composite", numbers, SAC_COUNT(numbers)) != SAC_OK)
        return SAC_ERR_ARG;
    if (job->frame->device != dev)
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "composite: the frame is not on device %s",
                        dev->name);
    sac_result res = check_inputs(dev->ctx, job);
    return res == SAC_OK ? check_out(dev->ctx, job) : res;
}

sac_result sac_composite_run_on(sac_device *dev, struct sac_device_stream *stream,
                                const struct sac_composite_job *job)
{
    sac_result res = check(dev, job);
    if (res != SAC_OK)
        return res;
    const sac_frame *const frames[] = {job->frame, job->matte, job->out, job->background};
    const size_t           n = SAC_COUNT(frames) - !job->background;
    for (size_t i = 0; i < n && res == SAC_OK; i++)
        res = sac_frame_await(frames[i], stream);
    if (res == SAC_OK)
        res = dev->ops->vision->composite(dev, stream, job);
    for (size_t i = 0; i < n; i++)
        sac_frame_used(frames[i], stream);
    return res;
}
