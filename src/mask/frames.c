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

/* Grey that was coded with loss has a little chroma. */
enum { COLOUR_MIN = 48 };

static int64_t count_coloured(const sac_frame *rgb)
{
    int64_t count = 0;
    for (int y = 0; y < rgb->height; y++) {
        const uint8_t *p = rgb->plane[0] + (size_t)y * rgb->pitch_bytes[0];
        for (int x = 0; x < rgb->width; x++, p += 3)
            count += SAC_MAX(SAC_MAX(p[0], p[1]), p[2]) - SAC_MIN(SAC_MIN(p[0], p[1]), p[2]) >
                     COLOUR_MIN;
    }
    return count;
}

static sac_result look_for_colour(struct sac_frames *frames, sac_frame *src)
{
    const sac_frame desc = {.format = SAC_PIXEL_RGB24, .width = src->width, .height = src->height};
    sac_frame      *rgb = NULL;
    sac_result      res = sac_frame_create(frames->dev, &desc, &rgb);
    if (res == SAC_OK)
        res = sac_frame_convert(src, SAC_FILTER_BILINEAR, rgb);
    if (res == SAC_OK) /* of a hundred pixels one */
        frames->coloured = 100 * count_coloured(rgb) > (int64_t)rgb->width * rgb->height;
    sac_frame_unref(&rgb);
    return res;
}

/* src in grey; its reference goes. */
static sac_result to_grey(struct sac_frames *frames, sac_frame *src)
{
    sac_frame desc = {.format = SAC_PIXEL_GRAY8, .width = src->width, .height = src->height};
    desc.matrix = src->matrix;
    desc.range = SAC_RANGE_FULL;
    desc.number = src->number;
    sac_frame_unref(&frames->frame);
    sac_result res = SAC_OK;
    if (frames->alpha && frames->at == 0 && src->format != SAC_PIXEL_GRAY8)
        res = look_for_colour(frames, src);
    if (res == SAC_OK)
        res = sac_frame_create(frames->dev, &desc, &frames->frame);
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
