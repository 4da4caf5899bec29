/* SPDX-License-Identifier: Apache-2.0 */
#include <saccade/device.h>
#include <saccade/image.h>

#include "mask/frames.h"

sac_result sac_frames_open(sac_context *ctx, const char *url, struct sac_frames *out)
{
    *out = (struct sac_frames){.ctx = ctx, .url = url, .at = -1, .count = -1};
    sac_result res = sac_device_open(ctx, "cpu", NULL, &out->dev);
    if (res == SAC_OK)
        res = sac_source_open(out->dev, url, NULL, &out->source);
    return res;
}

void sac_frames_close(struct sac_frames *frames)
{
    sac_frame_unref(&frames->frame);
    sac_source_close(&frames->source);
    sac_device_unref(&frames->dev);
    *frames = (struct sac_frames){.at = -1, .count = -1};
}

/* src in grey; its reference goes. */
static sac_result to_grey(struct sac_frames *frames, sac_frame *src)
{
    sac_frame desc = {.format = SAC_PIXEL_GRAY8, .width = src->width, .height = src->height};
    desc.matrix = src->matrix;
    desc.range = SAC_RANGE_FULL;
    desc.number = src->number;
    sac_frame_unref(&frames->frame);
    sac_result res = sac_frame_create(frames->dev, &desc, &frames->frame);
    if (res == SAC_OK)
        res = sac_frame_convert(src, SAC_FILTER_BILINEAR, frames->frame);
    sac_frame_unref(&src);
    return res;
}

sac_result sac_frames_get(struct sac_frames *frames, int64_t number)
{
    sac_result res = SAC_OK;
    if (number == frames->at && frames->frame)
        return SAC_OK;
    if (frames->count >= 0 && number >= frames->count)
        return SAC_EOS;
    if (number <= frames->at || !frames->source) {
        sac_source_close(&frames->source);
        frames->at = -1;
        res = sac_source_open(frames->dev, frames->url, NULL, &frames->source);
    }
    while (res == SAC_OK && frames->at < number) {
        sac_frame *frame = NULL;
        res = sac_source_read_wait(frames->source, &frame);
        if (res == SAC_OK)
            frames->at++;
        if (res == SAC_OK && frames->at == number)
            return to_grey(frames, frame);
        sac_frame_unref(&frame);
    }
    if (res == SAC_EOS) {
        frames->count = frames->at + 1;
        sac_source_close(&frames->source);
    }
    return res;
}
