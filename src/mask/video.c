/* SPDX-License-Identifier: Apache-2.0 */
/* Masks as the luma of a video's frames. */
#include <string.h>

#include "mask/frames.h"
#include "mask/mask.h"

static bool claims(const char *path)
{
    (void)path; /* what nobody else takes */
    return true;
}

/* How many frames there are is known for certain once all are read: a video is decoded twice. */
static sac_result open_video(struct sac_mask_set *set)
{
    struct sac_frames *frames = sac_new(struct sac_frames);
    set->state = frames;
    if (!frames)
        return SAC_FAIL(set->ctx, SAC_ERR_MEMORY, "%s: no memory", set->path);
    sac_result res = sac_frames_open(set->ctx, set->path, frames);
    if (res == SAC_OK)
        res = sac_frames_get(frames, INT64_MAX);
    if (res != SAC_EOS)
        return res;
    res = SAC_OK;
    for (int64_t i = 0; i < frames->count && res == SAC_OK; i++)
        res = sac_mask_set_add(set, NULL, i, (size_t)i);
    return res;
}

static sac_result load(struct sac_mask_set *set, size_t entry, int width, int height)
{
    struct sac_frames *frames = set->state;
    (void)width;
    (void)height;
    sac_result res = sac_frames_get(frames, (int64_t)set->entries[entry].at);
    if (res == SAC_EOS)
        res = SAC_FAIL(set->ctx, SAC_ERR_IO, "%s: frame %zu is gone", set->path,
                       set->entries[entry].at);
    if (res == SAC_OK)
        res = sac_mask_picture_size(set, set->path, frames->frame->width, frames->frame->height,
                                    true);
    for (int y = 0; res == SAC_OK && y < set->picture.height; y++)
        memcpy(set->picture.pixels + (size_t)y * (size_t)set->picture.width,
               frames->frame->plane[0] + (size_t)y * frames->frame->pitch_bytes[0],
               (size_t)set->picture.width);
    return res;
}

static void close_video(struct sac_mask_set *set)
{
    if (set->state)
        sac_frames_close(set->state);
    sac_free(set->state);
}

const struct sac_mask_set_ops sac_mask_video = {
    .claims = claims,
    .open = open_video,
    .load = load,
    .close = close_video,
};
