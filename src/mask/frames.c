/* SPDX-License-Identifier: Apache-2.0 */
#include <saccade/device.h>
#include <saccade/image.h>

#include "mask/frames.h"

static sac_result open_source(struct sac_frames *frames)
{
    struct sac_source_params params = sac_source_params_default();
    params.alpha = frames->alpha;
    return sac_source_open(frames->dev, frames->url, &params, &frames->source);
}

sac_result sac_frames_open(sac_context *ctx, const char *url, bool alpha, struct sac_frames *out)
{
    *out = (struct sac_frames){.ctx = ctx, .url = url, .alpha = alpha, .at = -1, .count = -1};
    sac_result res = sac_device_open(ctx, "cpu", NULL, &out->dev);
    if (res == SAC_OK)
        res = open_source(out);
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

bool sac_frames_have_alpha(const struct sac_frames *frames)
{
    struct sac_source_info info = {0};
    if (frames->source)
        sac_source_describe(frames->source, &info);
    return info.alpha;
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
        res = open_source(frames);
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
