/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "device/device.h"
#include "media/media.h"

enum { SIZE_MAX_PX = 32768 }; /* a frame's limit */

struct state {
    AVCodecContext    *avc;
    AVFrame           *picture;
    struct sac_adopter adopter;
};

/* Frames are in host memory; for a device with memory of its own they are uploaded. */
static bool supports(const sac_device *dev, const AVCodecParameters *video)
{
    (void)dev;
    return avcodec_find_decoder(video->codec_id);
}

static int open_codec(struct sac_decoder *dec, const AVCodecParameters *video)
{
    struct state  *st = dec->state;
    const AVCodec *codec = avcodec_find_decoder(video->codec_id);
    st->avc = avcodec_alloc_context3(codec);
    st->picture = av_frame_alloc();
    if (!st->avc || !st->picture)
        return AVERROR(ENOMEM);
    int err = avcodec_parameters_to_context(st->avc, video);
    if (err < 0)
        return err;
    st->avc->pkt_timebase = dec->time_base;
    st->avc->thread_count = dec->threads;
    snprintf(dec->name, sizeof dec->name, "%s", codec->name);
    return avcodec_open2(st->avc, codec, NULL);
}

static sac_result open_decoder(struct sac_decoder *dec, const AVCodecParameters *video)
{
    sac_context  *ctx = sac_device_context(dec->dev);
    sac_result    res = SAC_OK;
    struct state *st = dec->state = sac_new(struct state);
    if (!st)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "%s: no memory for a decoder", dec->source_name);
    if (!dec->dev->ops->host_memory)
        res = sac_source_uploader_create(dec->dev, dec->source_name, dec->params, &st->adopter.up);
    if (res != SAC_OK)
        return res;
    sac_ffmpeg_log_begin(ctx);
    int err = open_codec(dec, video);
    if (err < 0) {
        res = sac_ffmpeg_fail(ctx, err, dec->source_name);
        sac_fail_prefix(ctx, res, "decoder '%s': ", avcodec_get_name(video->codec_id));
    }
    sac_ffmpeg_log_end();
    return res;
}

static sac_result send(struct sac_decoder *dec, const AVPacket *packet)
{
    struct state *st = dec->state;
    sac_result    res = sac_ffmpeg_verdict(dec, avcodec_send_packet(st->avc, packet));
    return res == SAC_EOS ? SAC_OK : res; /* the end was sent twice */
}

static sac_result receive(struct sac_decoder *dec, sac_frame **out, struct sac_picture_note *note)
{
    struct state *st = dec->state;
    sac_result    res = sac_ffmpeg_verdict(dec, avcodec_receive_frame(st->avc, st->picture));
    if (res != SAC_OK)
        return res;
    *note = sac_picture_note_of(st->picture);
    if (st->picture->width > SIZE_MAX_PX || st->picture->height > SIZE_MAX_PX) {
        av_frame_unref(st->picture);
        return SAC_ERR_FORMAT;
    }
    res = sac_adopt_picture(&st->adopter, dec->dev, st->picture,
                            sac_picture_orientation(dec, st->picture), out, &note->converted);
    if (res != SAC_OK)
        sac_fail_prefix(sac_device_context(dec->dev), res, "%s: ", dec->source_name);
    return res;
}

static void close_decoder(struct sac_decoder *dec)
{
    struct state *st = dec->state;
    if (!st)
        return;
    avcodec_free_context(&st->avc);
    av_frame_free(&st->picture);
    sac_adopter_finish(&st->adopter);
    sac_free(st);
    dec->state = NULL;
}

const struct sac_decoder_ops sac_decoder_avcodec = {
    .name = "avcodec",
    .supports = supports,
    .open = open_decoder,
    .send = send,
    .receive = receive,
    .close = close_decoder,
};
