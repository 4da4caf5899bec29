/* SPDX-License-Identifier: Apache-2.0 */
/* Which decoder a stream gets, and what happens when a GPU's refuses it. */
#include <stdio.h>
#include <string.h>

#include "device/device.h"
#include "media/media.h"

/* The first that supports device and codec is used; a device's own decoders come before the
 * CPU's. */
static const struct sac_decoder_ops *const decoders[] = {
    &sac_decoder_nvdec,   /* what an NVIDIA GPU decodes, frames in its memory */
    &sac_decoder_avcodec, /* any codec that libavcodec has; frames in host memory, or uploaded */
};

/* ---- choosing ---- */

static bool is_gpu(const sac_device *dev)
{
    return !dev->ops->host_memory;
}

/* NULL: none. */
static const struct sac_decoder_ops *find(const struct sac_decoder *dec,
                                          const AVCodecParameters *video, bool on_device)
{
    for (size_t i = 0; i < SAC_COUNT(decoders); i++) {
        bool is_devices_own = decoders[i] != &sac_decoder_avcodec;
        if ((on_device || !is_devices_own) && decoders[i]->codec(dec->dev, video->codec_id))
            return decoders[i];
    }
    return NULL;
}

static sac_result open_on_cpu(struct sac_decoder *dec, const AVCodecParameters *video)
{
    const struct sac_decoder_ops *ops = find(dec, video, false);
    if (ops)
        return sac_codec_open(dec, ops, video);
    return SAC_FAIL(sac_device_context(dec->dev), SAC_ERR_UNSUPPORTED,
                    "%s: no decoder for codec '%s' in this FFmpeg", dec->source_name,
                    avcodec_get_name(video->codec_id));
}

static void note(struct sac_decoder *dec, enum sac_log_level level, const char *why)
{
    if (!dec->note[0])
        sac_log(sac_device_context(dec->dev), level,
                "%s: decoded on the CPU and uploaded to %s: %s", dec->source_name,
                sac_device_name(dec->dev), why);
    snprintf(dec->note, sizeof dec->note, "%.255s", why);
}

/* The GPU's decoder refused the stream; its sentence is the last one. Fails unless the CPU may take
 * over. */
static sac_result refused(struct sac_decoder *dec)
{
    sac_context *ctx = sac_device_context(dec->dev);
    const size_t prefix = strlen(dec->source_name) + 2; /* "NAME: " */
    char         why[512];
    sac_context_last_error(ctx, why, sizeof why);
    if (dec->params->decode != SAC_DECODE_AUTO)
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED, "%s; --decode auto or cpu decodes it on the CPU",
                        why);
    note(dec, SAC_LOG_WARN,
         strncmp(why, dec->source_name, prefix - 2) == 0 && strlen(why) > prefix ? why + prefix
                                                                                 : why);
    return SAC_OK;
}

static sac_result open_on_gpu(struct sac_decoder *dec, const AVCodecParameters *video)
{
    const struct sac_decoder_ops *ops = find(dec, video, true);
    sac_result                    res = SAC_ERR_UNSUPPORTED;
    if (ops && ops != &sac_decoder_avcodec)
        res = sac_codec_open(dec, ops, video);
    else
        SAC_FAIL(sac_device_context(dec->dev), res,
                 "%s: this FFmpeg has no decoder on %s for codec '%s'", dec->source_name,
                 sac_device_name(dec->dev), avcodec_get_name(video->codec_id));
    dec->may_refuse = res == SAC_OK && dec->params->decode == SAC_DECODE_AUTO;
    if (res == SAC_OK)
        dec->note[0] = '\0'; /* from a former stream */
    if (res != SAC_ERR_UNSUPPORTED)
        return res;
    res = refused(dec);
    sac_codec_close(dec);
    return res == SAC_OK ? open_on_cpu(dec, video) : res;
}

sac_result sac_decoder_open(struct sac_decoder *dec, const AVCodecParameters *video)
{
    sac_context    *ctx = sac_device_context(dec->dev);
    enum sac_decode decode = dec->params->decode;
    dec->video = avcodec_parameters_alloc();
    if (!dec->video || avcodec_parameters_copy(dec->video, video) < 0)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "%s: no memory for a decoder", dec->source_name);
    if (!is_gpu(dec->dev) && decode == SAC_DECODE_GPU)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "%s: --decode gpu, but device %s is no GPU",
                        dec->source_name, sac_device_name(dec->dev));
    if (!is_gpu(dec->dev))
        return open_on_cpu(dec, video);
    const bool jpeg = video->codec_id == AV_CODEC_ID_MJPEG; /* NVDEC has none: dec_nvdec.c */
    const bool alpha = dec->params->alpha;                  /* nor alpha */
    if (decode == SAC_DECODE_CPU || alpha || ((dec->images || jpeg) && decode != SAC_DECODE_GPU)) {
        note(dec, SAC_LOG_INFO,
             decode == SAC_DECODE_CPU ? "as asked for"
             : alpha                  ? "its alpha is asked for"
             : dec->images            ? "the input is images"
                                      : "NVDEC does not decode mjpeg");
        return open_on_cpu(dec, video);
    }
    return open_on_gpu(dec, video);
}

static void forget_packets(struct sac_decoder *dec)
{
    for (int i = 0; i < dec->replay_count; i++)
        av_packet_free(&dec->replay[i]);
    dec->replay_count = dec->replay_next = 0;
    dec->drains = dec->replays = false;
}

void sac_decoder_close(struct sac_decoder *dec)
{
    sac_codec_close(dec);
    dec->may_refuse = dec->has_begun = false;
    dec->surfaces = 0;
    dec->surface_bytes = 0;
    forget_packets(dec);
    avcodec_parameters_free(&dec->video);
}

/* ---- packets and frames, with the CPU as fallback ---- */

/* A header that a decoder refuses comes with a key frame; a few packets later it has been
 * accepted. */
static sac_result remember(struct sac_decoder *dec, const AVPacket *packet)
{
    bool begins = packet && (packet->flags & AV_PKT_FLAG_KEY);
    if (begins)
        forget_packets(dec);
    if (dec->replay_count == 0 && !begins && dec->has_begun)
        return SAC_OK;
    if (dec->replay_count == SAC_REPLAY_MAX) {
        forget_packets(dec);
        return SAC_OK;
    }
    AVPacket *kept = packet ? av_packet_clone(packet) : NULL;
    if (packet && !kept)
        return SAC_FAIL(sac_device_context(dec->dev), SAC_ERR_MEMORY, "%s: no memory for a packet",
                        dec->source_name);
    dec->replay[dec->replay_count++] = kept;
    return SAC_OK;
}

/* Let the CPU's decoder take over, once the GPU's has given its earlier pictures. */
static sac_result take_over(struct sac_decoder *dec)
{
    sac_result res = refused(dec);
    if (res != SAC_OK)
        return res;
    dec->may_refuse = false;
    dec->drains = true;
    sac_codec_send(dec, NULL);
    return SAC_OK;
}

/* The CPU's decoder takes over and gets the kept packets again. */
static sac_result finish_take_over(struct sac_decoder *dec)
{
    sac_codec_close(dec);
    dec->drains = false;
    dec->surfaces = 0;
    dec->surface_bytes = 0;
    dec->replays = dec->replay_count > 0;
    return open_on_cpu(dec, dec->video);
}

sac_result sac_decoder_send(struct sac_decoder *dec, const AVPacket *packet)
{
    if (dec->drains || dec->replays)
        return SAC_AGAIN;
    sac_result res = sac_codec_send(dec, packet);
    if (res != SAC_AGAIN && dec->may_refuse) {
        sac_result kept = remember(dec, packet);
        if (kept != SAC_OK)
            return kept;
    }
    if (res != SAC_ERR_UNSUPPORTED)
        return res;
    return dec->may_refuse ? take_over(dec) : refused(dec);
}

static sac_result replay_one(struct sac_decoder *dec)
{
    sac_result res = sac_codec_send(dec, dec->replay[dec->replay_next]);
    if (res == SAC_AGAIN)
        return SAC_OK;
    if (++dec->replay_next == dec->replay_count)
        forget_packets(dec);
    return res == SAC_ERR_FORMAT ? SAC_OK : res; /* counted when it was first sent */
}

sac_result sac_decoder_receive(struct sac_decoder *dec, sac_frame **out,
                               struct sac_picture_note *note)
{
    for (;;) {
        sac_result res = sac_codec_receive(dec, out, note);
        if (dec->drains && res != SAC_OK && res != SAC_ERR_CANCELLED)
            res = finish_take_over(dec);
        else if (res == SAC_AGAIN && dec->replays)
            res = replay_one(dec);
        else if (res == SAC_ERR_UNSUPPORTED)
            res = dec->may_refuse ? take_over(dec) : refused(dec);
        else {
            dec->has_begun |= res == SAC_OK;
            return res;
        }
        if (res != SAC_OK)
            return res;
    }
}
