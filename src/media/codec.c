/* SPDX-License-Identifier: Apache-2.0 */
/* What all decoders have in common: libavcodec takes packets and gives pictures. */
#include "device/device.h"
#include "media/media.h"

static sac_result open_codec(struct sac_decoder *dec, const AVCodec *codec,
                             const AVCodecParameters *video)
{
    sac_context *ctx = sac_device_context(dec->dev);
    int          err = avcodec_parameters_to_context(dec->avc, video);
    dec->avc->pkt_timebase = dec->time_base;
    sac_result res = err < 0 ? SAC_OK : dec->ops->prepare(dec);
    if (res != SAC_OK)
        return res;
    if (err >= 0)
        err = avcodec_open2(dec->avc, codec, NULL);
    /* Some codecs, such as VC-1, choose their surfaces in here. */
    res = dec->ops->refusal ? dec->ops->refusal(dec) : SAC_OK;
    if (res != SAC_OK || err >= 0)
        return res;
    res = sac_ffmpeg_fail(ctx, err, dec->source_name);
    return sac_fail_prefix(ctx, res, "decoder '%s': ", avcodec_get_name(video->codec_id));
}

/* FFmpeg's own decoders of VP8 and VP9 pass over the alpha beside a picture. */
static sac_result find_codec(const struct sac_decoder *dec, const struct sac_decoder_ops *ops,
                             enum AVCodecID id, const AVCodec **out)
{
    const char *name = id == AV_CODEC_ID_VP8 ? "libvpx" : "libvpx-vp9";
    *out = dec->alpha_beside ? avcodec_find_decoder_by_name(name) : ops->codec(dec->dev, id);
    if (*out)
        return SAC_OK;
    return SAC_FAIL(sac_device_context(dec->dev), SAC_ERR_UNSUPPORTED,
                    "%s: this FFmpeg has no decoder %s, which reads the alpha of %s",
                    dec->source_name, name, avcodec_get_name(id));
}

sac_result sac_codec_open(struct sac_decoder *dec, const struct sac_decoder_ops *ops,
                          const AVCodecParameters *video)
{
    sac_context   *ctx = sac_device_context(dec->dev);
    const AVCodec *codec;
    sac_result     res = find_codec(dec, ops, video->codec_id, &codec);
    if (res != SAC_OK)
        return res;
    dec->ops = ops;
    dec->state = sac_calloc(1, ops->state_bytes);
    dec->avc = avcodec_alloc_context3(codec);
    dec->picture = av_frame_alloc();
    if (!dec->state || !dec->avc || !dec->picture)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "%s: no memory for a decoder", dec->source_name);
    sac_ffmpeg_log_begin(ctx);
    res = open_codec(dec, codec, video);
    sac_ffmpeg_log_end();
    return res;
}

/* libavcodec's result; a refusal overrides it. */
static sac_result verdict(struct sac_decoder *dec, int err)
{
    const sac_result refusal = dec->ops->refusal ? dec->ops->refusal(dec) : SAC_OK;
    return refusal != SAC_OK ? refusal : sac_ffmpeg_verdict(dec, err);
}

sac_result sac_codec_send(struct sac_decoder *dec, const AVPacket *packet)
{
    sac_ffmpeg_log_begin(sac_device_context(dec->dev));
    sac_result res = verdict(dec, avcodec_send_packet(dec->avc, packet));
    sac_ffmpeg_log_end();
    return res == SAC_EOS ? SAC_OK : res; /* the end was sent twice */
}

sac_result sac_codec_receive(struct sac_decoder *dec, sac_frame **out,
                             struct sac_picture_note *note)
{
    sac_result res = dec->ops->wait ? dec->ops->wait(dec) : SAC_OK;
    if (res != SAC_OK)
        return res;
    sac_ffmpeg_log_begin(sac_device_context(dec->dev));
    res = verdict(dec, avcodec_receive_frame(dec->avc, dec->picture));
    sac_ffmpeg_log_end();
    if (res != SAC_OK)
        return res;
    *note = sac_picture_note_of(dec->picture);
    res = dec->ops->give(dec, out, note);
    av_frame_unref(dec->picture);
    return res;
}

void sac_codec_close(struct sac_decoder *dec)
{
    if (dec->state && dec->ops->closing)
        dec->ops->closing(dec);
    avcodec_free_context(&dec->avc);
    av_frame_free(&dec->picture);
    if (dec->state)
        dec->ops->release(dec);
    sac_free(dec->state);
    dec->state = NULL;
    dec->ops = NULL;
}
