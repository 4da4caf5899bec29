/* SPDX-License-Identifier: Apache-2.0 */
/* One picture as a JPEG file in memory, by libavcodec's encoder. */
#include <string.h>

#include <libavutil/imgutils.h>
#include <libswscale/swscale.h>

#include "media/media.h"

enum { QUALITY = 2 }; /* MJPEG's quantiser, of 1 to 31: about quality 95 on the IJG's scale */

/* JFIF: BT.601, full range. Chroma of a last column without a neighbour is right only with
 * FULL_CHR_H_INP. */
static int to_yuv(const uint8_t *rgb, AVFrame *picture)
{
    const int         *matrix = sws_getCoefficients(SWS_CS_ITU601);
    const uint8_t     *from[4] = {rgb};
    const int          pitch[4] = {3 * picture->width};
    struct SwsContext *scaler = sws_getContext(
        picture->width, picture->height, AV_PIX_FMT_RGB24, picture->width, picture->height,
        AV_PIX_FMT_YUV420P, SWS_BILINEAR | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INP, NULL, NULL, NULL);
    if (!scaler)
        return AVERROR(ENOMEM);
    sws_setColorspaceDetails(scaler, matrix, 1, matrix, 1, 0, 1 << 16, 1 << 16);
    sws_scale(scaler, from, pitch, 0, picture->height, picture->data, picture->linesize);
    sws_freeContext(scaler);
    return 0;
}

static int fill(const uint8_t *rgb, int width, int height, AVFrame *picture)
{
    picture->format = AV_PIX_FMT_YUV420P;
    picture->width = width;
    picture->height = height;
    picture->color_range = AVCOL_RANGE_JPEG;
    picture->quality = FF_QP2LAMBDA * QUALITY;
    int err = av_frame_get_buffer(picture, 0);
    return err < 0 ? err : to_yuv(rgb, picture);
}

static int open_encoder(AVCodecContext *avc, const AVCodec *codec, int width, int height)
{
    avc->width = width;
    avc->height = height;
    avc->pix_fmt = AV_PIX_FMT_YUV420P;
    avc->color_range = AVCOL_RANGE_JPEG;
    avc->time_base = (AVRational){1, 25}; /* must be set */
    avc->thread_count = 1;
    avc->flags |= AV_CODEC_FLAG_QSCALE;
    avc->global_quality = FF_QP2LAMBDA * QUALITY;
    return avcodec_open2(avc, codec, NULL);
}

static int encode(const uint8_t *rgb, int width, int height, AVPacket *packet)
{
    const AVCodec  *codec = avcodec_find_encoder(AV_CODEC_ID_MJPEG);
    AVCodecContext *avc = codec ? avcodec_alloc_context3(codec) : NULL;
    AVFrame        *picture = av_frame_alloc();
    int             err = codec ? AVERROR(ENOMEM) : AVERROR_ENCODER_NOT_FOUND;
    if (avc && picture && packet)
        err = fill(rgb, width, height, picture);
    if (err >= 0)
        err = open_encoder(avc, codec, width, height);
    if (err >= 0)
        err = avcodec_send_frame(avc, picture);
    if (err >= 0)
        err = avcodec_receive_packet(avc, packet);
    av_frame_free(&picture);
    avcodec_free_context(&avc);
    return err;
}

sac_result sac_jpeg_encode(sac_context *ctx, const uint8_t *rgb, int width, int height,
                           uint8_t **bytes, size_t *size)
{
    AVPacket  *packet = av_packet_alloc();
    int        err = encode(rgb, width, height, packet);
    sac_result res = SAC_OK;
    uint8_t   *copy = err >= 0 ? sac_alloc((size_t)packet->size) : NULL;
    if (err < 0)
        res = sac_ffmpeg_fail(ctx, err, "a JPEG picture");
    else if (!copy)
        res = SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for a JPEG picture of %dx%d", width, height);
    if (res == SAC_OK) {
        memcpy(copy, packet->data, (size_t)packet->size);
        *bytes = copy;
        *size = (size_t)packet->size;
    }
    av_packet_free(&packet);
    return res;
}
