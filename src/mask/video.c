/* SPDX-License-Identifier: Apache-2.0 */
/* Masks as the alpha of a video's frames or, where they have none, as their luma. */
#include <string.h>

#include "mask/frames.h"
#include "mask/mask.h"

static bool claims(const char *path)
{
    (void)path; /* what nobody else takes */
    return true;
}

static bool is_opaque(const sac_frame *alpha)
{
    for (int y = 0; y < alpha->height; y++)
        for (int x = 0; x < alpha->width; x++)
            if (alpha->plane[0][(size_t)y * alpha->pitch_bytes[0] + (size_t)x] != 255)
                return false;
    return true;
}

/* Alpha counts unless it is opaque, as of pictures; here in all frames: one where everything is
 * inside must not be taken for another kind. */
static sac_result choose_plane(struct sac_mask_set *set, struct sac_frames *frames)
{
    sac_result res = sac_frames_get(frames, 0);
    const bool has_alpha = res == SAC_OK && sac_frames_have_alpha(frames);
    bool       opaque = has_alpha;
    for (int64_t i = 1; res == SAC_OK && opaque; i++) {
        opaque = is_opaque(frames->frame);
        if (opaque)
            res = sac_frames_get(frames, i);
    }
    frames->alpha = has_alpha && !opaque;
    if (frames->coloured)
        sac_log(set->ctx, SAC_LOG_WARN,
                "%s: a video in colour, without alpha: its luma is read as masks", set->path);
    if (has_alpha)
        sac_log(set->ctx, SAC_LOG_INFO, "%s: %s", set->path,
                opaque ? "its alpha is opaque throughout: its luma is read as masks"
                       : "its alpha is read as masks");
    return res == SAC_EOS ? SAC_OK : res;
}

/* How many frames there are is known for certain once all are read: a video is decoded twice. */
static sac_result open_video(struct sac_mask_set *set)
{
    struct sac_frames *frames = sac_new(struct sac_frames);
    set->state = frames;
    if (!frames)
        return SAC_FAIL(set->ctx, SAC_ERR_MEMORY, "%s: no memory", set->path);
    sac_result res = sac_frames_open(set->ctx, set->path, true, frames);
    if (res == SAC_OK)
        res = choose_plane(set, frames);
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
    set->picture.transparent = frames->alpha;
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
