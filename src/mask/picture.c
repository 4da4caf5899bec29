/* SPDX-License-Identifier: Apache-2.0 */
/* A mask from a file. A source would make colours of a palette's numbers; here they are kept. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <libavutil/imgutils.h>
#include <libavutil/intreadwrite.h>

#include "mask/mask.h"
#include "media/media.h"

enum { FILE_BYTES_MAX = 1 << 28 };

static sac_result load(sac_context *ctx, const char *path, AVPacket *packet)
{
    struct stat about;
    sac_result  res = SAC_OK;
    FILE       *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &about) != 0 || !S_ISREG(about.st_mode))
        res = SAC_FAIL(ctx, SAC_ERR_IO, "%s: %s", path,
                       file ? "not a regular file" : strerror(errno));
    else if (about.st_size > FILE_BYTES_MAX)
        res = SAC_FAIL(ctx, SAC_ERR_LIMIT, "%s: larger than %d bytes", path, FILE_BYTES_MAX);
    else if (av_new_packet(packet, (int)about.st_size) < 0)
        res = SAC_FAIL(ctx, SAC_ERR_MEMORY, "%s: no memory", path);
    else
        av_shrink_packet(packet, (int)fread(packet->data, 1, (size_t)about.st_size, file));
    if (file)
        fclose(file);
    return res;
}

static enum AVCodecID codec_of(const AVPacket *packet)
{
    if (packet->size >= 8 && memcmp(packet->data, "\x89PNG\r\n\x1a\n", 8) == 0)
        return AV_CODEC_ID_PNG;
    if (packet->size >= 2 &&
        (memcmp(packet->data, "P5", 2) == 0 || memcmp(packet->data, "P2", 2) == 0))
        return AV_CODEC_ID_PGM;
    return AV_CODEC_ID_NONE;
}

/* ---- pixels ---- */

/* Where numbers of a pixel are. Channel: the byte or, of 16 bits, the pair of bytes. */
struct samples {
    const AVFrame *frame;
    int            channels; /* 1, 2 (with alpha), 3, 4 (with alpha) */
    int            bytes;    /* of a channel */
    bool           little;   /* its lower byte first */
};

static bool samples_of(const AVFrame *frame, struct samples *out)
{
    static const struct {
        enum AVPixelFormat format;
        int                channels, bytes;
        bool               little;
    } formats[] = {
        {AV_PIX_FMT_PAL8, 1, 1, false},     {AV_PIX_FMT_GRAY8, 1, 1, false},
        {AV_PIX_FMT_GRAY16BE, 1, 2, false}, {AV_PIX_FMT_GRAY16LE, 1, 2, true},
        {AV_PIX_FMT_YA8, 2, 1, false},      {AV_PIX_FMT_YA16BE, 2, 2, false},
        {AV_PIX_FMT_YA16LE, 2, 2, true},    {AV_PIX_FMT_RGB24, 3, 1, false},
        {AV_PIX_FMT_RGB48BE, 3, 2, false},  {AV_PIX_FMT_RGBA, 4, 1, false},
        {AV_PIX_FMT_RGBA64BE, 4, 2, false},
    };
    for (size_t i = 0; i < SAC_COUNT(formats); i++)
        if (formats[i].format == frame->format) {
            *out =
                (struct samples){frame, formats[i].channels, formats[i].bytes, formats[i].little};
            return true;
        }
    return false;
}

static int sample(const struct samples *s, int x, int y, int channel)
{
    const uint8_t *at = s->frame->data[0] + (ptrdiff_t)y * s->frame->linesize[0] +
                        (ptrdiff_t)(x * s->channels + channel) * s->bytes;
    if (s->bytes == 1)
        return *at;
    int value = s->little ? AV_RL16(at) : AV_RB16(at);
    return (value * 255 + 32767) / 65535;
}

static bool is_opaque(const struct samples *s)
{
    for (int y = 0; y < s->frame->height; y++)
        for (int x = 0; x < s->frame->width; x++)
            if (sample(s, x, y, s->channels - 1) != 255)
                return false;
    return true;
}

static bool is_grey(const struct samples *s)
{
    for (int y = 0; y < s->frame->height; y++)
        for (int x = 0; x < s->frame->width; x++)
            if (sample(s, x, y, 0) != sample(s, x, y, 1) ||
                sample(s, x, y, 0) != sample(s, x, y, 2))
                return false;
    return true;
}

static void copy_bits(const AVFrame *frame, uint8_t *out)
{
    const int flip = frame->format == AV_PIX_FMT_MONOWHITE;
    for (int y = 0; y < frame->height; y++) {
        const uint8_t *row = frame->data[0] + (ptrdiff_t)y * frame->linesize[0];
        for (int x = 0; x < frame->width; x++)
            *out++ = ((row[x / 8] >> (7 - x % 8) & 1) ^ flip) ? 255 : 0;
    }
}

static sac_result keep(struct sac_mask_set *set, const char *path, const AVFrame *frame)
{
    struct sac_mask_picture *picture = &set->picture;
    struct samples           s;
    sac_result res = sac_mask_picture_size(set, path, frame->width, frame->height, true);
    if (res != SAC_OK)
        return res;
    picture->palette = frame->format == AV_PIX_FMT_PAL8;
    picture->bits = frame->format == AV_PIX_FMT_MONOBLACK || frame->format == AV_PIX_FMT_MONOWHITE;
    picture->transparent = picture->wide = false;
    if (picture->bits) {
        copy_bits(frame, picture->pixels);
        return SAC_OK;
    }
    if (!samples_of(frame, &s))
        return SAC_FAIL(set->ctx, SAC_ERR_UNSUPPORTED, "%s: pixels of FFmpeg's format %d", path,
                        frame->format);
    picture->wide = s.bytes == 2;
    picture->transparent = s.channels % 2 == 0 && !is_opaque(&s);
    if (!picture->transparent && s.channels >= 3 && !is_grey(&s))
        return SAC_FAIL(set->ctx, SAC_ERR_FORMAT,
                        "%s: a picture in colour; a mask is grey, or has a palette, or is the "
                        "picture's alpha",
                        path);
    int      channel = picture->transparent ? s.channels - 1 : 0;
    uint8_t *out = picture->pixels;
    for (int y = 0; y < frame->height; y++)
        for (int x = 0; x < frame->width; x++)
            *out++ = (uint8_t)sample(&s, x, y, channel);
    return SAC_OK;
}

/* ---- decoding ---- */

static sac_result decode(struct sac_mask_set *set, const char *path, const AVPacket *packet,
                         AVCodecContext *avc, AVFrame *frame)
{
    avc->thread_count = 1;
    avc->max_pixels = SAC_MASK_PIXELS_MAX;
    avc->err_recognition = AV_EF_CRCCHECK | AV_EF_EXPLODE; /* a half mask would be scored */
    sac_ffmpeg_log_begin(set->ctx);
    int err = avcodec_open2(avc, NULL, NULL);
    if (err >= 0)
        err = avcodec_send_packet(avc, packet);
    if (err >= 0)
        err = avcodec_receive_frame(avc, frame);
    sac_result res = err < 0 ? sac_ffmpeg_fail(set->ctx, err, path) : SAC_OK;
    sac_ffmpeg_log_end();
    return res == SAC_OK ? keep(set, path, frame) : res;
}

sac_result sac_mask_picture_read(struct sac_mask_set *set, const char *path)
{
    AVPacket       *packet = av_packet_alloc();
    AVFrame        *frame = av_frame_alloc();
    AVCodecContext *avc = NULL;
    sac_result      res = SAC_ERR_MEMORY;
    if (packet && frame)
        res = load(set->ctx, path, packet);
    if (res == SAC_OK) {
        const AVCodec *codec = avcodec_find_decoder(codec_of(packet));
        avc = codec ? avcodec_alloc_context3(codec) : NULL;
        if (!codec)
            res = SAC_FAIL(set->ctx, SAC_ERR_FORMAT, "%s: neither PNG nor PGM", path);
        else if (avc)
            res = decode(set, path, packet, avc, frame);
    }
    if (!packet || !frame || (res == SAC_OK && !avc))
        res = SAC_FAIL(set->ctx, SAC_ERR_MEMORY, "%s: no memory", path);
    avcodec_free_context(&avc);
    av_frame_free(&frame);
    av_packet_free(&packet);
    return res;
}
