/* SPDX-License-Identifier: Apache-2.0 */
#include "device/format.h"
#include "track/cmc.h"
#include "vision/vision.h"

bool sac_cmc_is_remote(const sac_frame *frame)
{
    return sac_device_apart(frame->device) != NULL;
}

bool sac_cmc_can_read(const sac_frame *frame)
{
    const int least = SAC_CAMERA_SIZE_MIN, most = SAC_CAMERA_SIZE_MAX;
    return (!sac_device_apart(frame->device) || frame->device->ops->vision->camera) &&
           sac_format_info_of(frame->format) && frame->width >= least && frame->width <= most &&
           frame->height >= SAC_MAX(least, sac_camera_shrink(frame->width)) &&
           frame->height <= most && frame->pitch_bytes[0] <= INT32_MAX;
}

bool sac_cmc_reserve(struct sac_cmc *cmc, const sac_frame *frame)
{
    const int      w = frame->width, h = frame->height;
    size_t         bytes;
    struct sac_cmc fresh = {.dev = sac_device_apart(frame->device),
                            .width = w,
                            .height = h,
                            .shrink = sac_camera_shrink(w)};
    if (cmc->memory && fresh.dev == cmc->dev && w == cmc->width && h == cmc->height)
        return true;
    sac_camera_pyramid_of(w, h, NULL, &bytes);
    if (!fresh.dev)
        fresh.memory = sac_alloc(2 * bytes);
    else if (sac_buffer_create(fresh.dev, 2 * bytes, "camera motion", &fresh.buffer) == SAC_OK)
        fresh.memory = sac_buffer_data(fresh.buffer);
    if (!fresh.memory)
        return false;
    if (fresh.buffer)
        sac_buffer_keep(fresh.buffer);
    fresh.is_new = fresh.buffer != NULL;
    fresh.now = sac_camera_pyramid_of(w, h, fresh.memory, &bytes);
    fresh.before = sac_camera_pyramid_of(w, h, fresh.memory + bytes, &bytes);
    sac_cmc_finish(cmc);
    *cmc = fresh;
    return true;
}

void sac_cmc_finish(struct sac_cmc *cmc)
{
    if (cmc->buffer)
        sac_buffer_unref(&cmc->buffer);
    else
        sac_free(cmc->memory);
    *cmc = (struct sac_cmc){0};
}

void sac_cmc_next(struct sac_cmc *cmc, const sac_frame *frame, const struct sac_camera_box *moving,
                  size_t n, struct sac_camera_job *out)
{
    struct sac_camera_pyramid former = cmc->now;
    cmc->now = cmc->before;
    cmc->before = former;
    *out = (struct sac_camera_job){.frame = frame,
                                   .shrink = cmc->shrink,
                                   .now = cmc->now,
                                   .before = cmc->before,
                                   .has_before = cmc->has_before,
                                   .moving = moving,
                                   .moving_count = (int)n};
    cmc->has_before = true;
}

void sac_cmc_forget(struct sac_cmc *cmc)
{
    cmc->has_before = false;
}

struct sac_similarity sac_cmc_similarity(int shrink, const struct sac_camera_move *move)
{
    const double c = 0.5; /* from centres of pixels to their edges */
    return (struct sac_similarity){move->a, move->b,
                                   (move->tx + c - move->a * c + move->b * c) * shrink,
                                   (move->ty + c - move->b * c - move->a * c) * shrink};
}
