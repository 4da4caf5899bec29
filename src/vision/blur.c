/* SPDX-License-Identifier: Apache-2.0 */
/* A frame out of focus, by the device's conversions alone, so that every device has it.
 *
 * It is halved by area until a pixel is as wide as the radius, and doubled on the way back. Growing
 * it by the whole factor at once would show the small picture's grid; doubled step by step its
 * pixels become quadratic B-splines: bilinear weights of a doubling are 1/4 and 3/4, which is
 * Chaikin's corner cutting. The last size is less than halved, where the radius wants it. */
#include "base/base.h"
#include "device/format.h"
#include "vision/vision.h"

enum { LEVELS_MAX = 16 }; /* 2^15 is the largest size */

/* The picture at sizes that halve; the first is the output's own. */
struct levels {
    sac_frame *frame[LEVELS_MAX];
    int        count;
};

static void close_levels(struct levels *l)
{
    for (int i = 1; i < l->count; i++)
        sac_frame_unref(&l->frame[i]);
}

static sac_result open_levels(struct levels *l, int radius, sac_frame *out)
{
    sac_result res = SAC_OK;
    l->frame[0] = out;
    l->count = 1;
    for (int wide = 1; wide < radius && l->count < LEVELS_MAX && res == SAC_OK;) {
        sac_frame desc = *out;
        wide = SAC_MIN(2 * wide, radius);
        desc.width = (out->width + wide - 1) / wide;
        desc.height = (out->height + wide - 1) / wide;
        res = sac_frame_create(out->device, &desc, &l->frame[l->count]);
        if (res == SAC_OK)
            l->count++;
    }
    return res;
}

sac_result sac_frame_blur_on(struct sac_device_stream *stream, const sac_frame *frame, int radius,
                             sac_frame *out)
{
    if (out->device != frame->device || out->width != frame->width ||
        out->height != frame->height || radius < 0)
        return SAC_FAIL(out->device->ctx, SAC_ERR_ARG,
                        "blur: radius %d from %dx%d to %dx%d; have a radius from 0 and one size on "
                        "one device",
                        radius, frame->width, frame->height, out->width, out->height);
    if (!sac_frame_is_writable(out))
        return SAC_FAIL(out->device->ctx, SAC_ERR_ARG, "blur: the output frame is shared");
    struct levels l = {0};
    sac_result    res = open_levels(&l, radius, out);
    if (res == SAC_OK && stream) /* work queued on the device's own may still use their memory */
        res = out->device->ops->stream_after(out->device, stream, NULL);
    if (res == SAC_OK)
        res = sac_frame_rescale_on(stream, frame, SAC_FILTER_AREA, l.frame[l.count > 1]);
    for (int i = 2; i < l.count && res == SAC_OK; i++)
        res = sac_frame_rescale_on(stream, l.frame[i - 1], SAC_FILTER_AREA, l.frame[i]);
    for (int i = l.count - 1; i > 0 && res == SAC_OK; i--)
        res = sac_frame_rescale_on(stream, l.frame[i], SAC_FILTER_BILINEAR, l.frame[i - 1]);
    close_levels(&l);
    return res;
}
