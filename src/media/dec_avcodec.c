/* SPDX-License-Identifier: Apache-2.0 */
/* Any codec that libavcodec has. Frames are in host memory; for a device with memory of its own
 * they are uploaded. */
#include <stdio.h>

#include "device/device.h"
#include "media/media.h"

enum { SIZE_MAX_PX = 32768 }; /* a frame's limit */

struct state {
    struct sac_adopter adopter;
    bool               left_out; /* a frame that is too large, and it was said */
};

static const AVCodec *codec_for(const sac_device *dev, enum AVCodecID id)
{
    (void)dev;
    return avcodec_find_decoder(id);
}

static sac_result prepare(struct sac_decoder *dec)
{
    struct state *st = dec->state;
    dec->avc->thread_count = dec->threads;
    if (dec->params->low_delay) /* each thread with a picture of its own is a picture's delay */
        dec->avc->thread_type = FF_THREAD_SLICE;
    snprintf(dec->name, sizeof dec->name, "%s", dec->avc->codec->name);
    if (dec->dev->ops->host_memory)
        return SAC_OK;
    return sac_source_uploader_create(dec, &st->adopter.up);
}

/* Said once. */
static sac_result leave_out(struct sac_decoder *dec)
{
    struct state *st = dec->state;
    if (!st->left_out)
        sac_log(sac_device_context(dec->dev), SAC_LOG_WARN,
                "%s: frames of %dx%d are left out: a side has at most %d pixels here",
                dec->source_name, dec->picture->width, dec->picture->height, (int)SIZE_MAX_PX);
    st->left_out = true;
    return SAC_ERR_FORMAT;
}

static sac_result give(struct sac_decoder *dec, sac_frame **out, struct sac_picture_note *note)
{
    struct state *st = dec->state;
    if (dec->picture->width > SIZE_MAX_PX || dec->picture->height > SIZE_MAX_PX)
        return leave_out(dec);
    const enum sac_orientation orientation = sac_picture_orientation(dec, dec->picture);
    sac_result                 res;
    note->alpha = dec->params->alpha && sac_format_has_alpha(dec->picture->format);
    note->converted = note->alpha;
    res = note->alpha ? sac_adopt_alpha(&st->adopter, dec->dev, dec->picture, orientation, out)
                      : sac_adopt_picture(&st->adopter, dec->dev, dec->picture, orientation, out,
                                          &note->converted);
    if (res != SAC_OK)
        sac_fail_prefix(sac_device_context(dec->dev), res, "%s: ", dec->source_name);
    return res;
}

static void release(struct sac_decoder *dec)
{
    sac_adopter_finish(&((struct state *)dec->state)->adopter);
}

const struct sac_decoder_ops sac_decoder_avcodec = {
    .name = "avcodec",
    .state_bytes = sizeof(struct state),
    .codec = codec_for,
    .prepare = prepare,
    .give = give,
    .release = release,
};
