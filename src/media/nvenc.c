/* SPDX-License-Identifier: Apache-2.0 */
/* NVENC through libavcodec: the GPU's encoder, which takes frames in GPU memory. None of the cards
 * used in development has NVENC (data-centre cards do not), so only the path without NVENC has been
 * run. */
#include <string.h>

#include <libavutil/hwcontext.h>

#include "media/media.h"
#include "vision/vision.h"

bool sac_nvenc_is(const char *encoder)
{
    const size_t length = strlen(encoder);
    return length > 6 && strcmp(encoder + length - 6, "_nvenc") == 0;
}

/* An empty pool: the pictures are our frames. */
static AVBufferRef *frames_for(sac_device *dev, int width, int height)
{
    AVBufferRef              *gpu = av_hwdevice_ctx_alloc(AV_HWDEVICE_TYPE_CUDA), *ref = NULL;
    struct sac_device_stream *stream = NULL;
    if (!gpu)
        return NULL;
    void *hwctx = ((AVHWDeviceContext *)(void *)gpu->data)->hwctx;
    if (dev->ops->video_context(dev, hwctx, &stream) == SAC_OK && av_hwdevice_ctx_init(gpu) >= 0)
        ref = av_hwframe_ctx_alloc(gpu);
    av_buffer_unref(&gpu);
    if (!ref)
        return NULL;
    AVHWFramesContext *frames = (AVHWFramesContext *)(void *)ref->data;
    frames->format = AV_PIX_FMT_CUDA;
    frames->sw_format = AV_PIX_FMT_NV12;
    frames->width = width;
    frames->height = height;
    if (av_hwframe_ctx_init(ref) < 0)
        av_buffer_unref(&ref);
    return ref;
}

int sac_nvenc_prepare(struct sac_encoder *enc)
{
    AVCodecContext *avc = enc->avc;
    if (!enc->dev->ops->video_context)
        return AVERROR(ENOSYS);
    avc->hw_frames_ctx = frames_for(enc->dev, avc->width, avc->height);
    avc->pix_fmt = AV_PIX_FMT_CUDA;
    return avc->hw_frames_ctx ? 0 : AVERROR_EXTERNAL;
}

/* NVENC gets one address and one pitch, so chroma must follow the last encoded row of luma. In a
 * decoder's surface, or a frame of odd height, other rows lie in between. */
static bool lies_as_wanted(const sac_frame *frame, const sac_frame *layout)
{
    return frame->pitch_bytes[1] == frame->pitch_bytes[0] &&
           frame->plane[1] == frame->plane[0] + frame->pitch_bytes[0] * (size_t)layout->height;
}

/* The encoder reads on its own stream, so the frame must be complete first. */
sac_result sac_nvenc_fit(struct sac_encoder *enc, sac_frame *frame, bool fits, sac_frame **out)
{
    fits = fits && lies_as_wanted(frame, &enc->layout);
    sac_frame *fitted = fits ? sac_frame_ref(frame) : NULL;
    char       what[128];
    sac_result res = fits ? SAC_OK : sac_frame_create(enc->dev, &enc->layout, &fitted);
    sac_frame_name(frame, "encode: conversion of", what, sizeof what);
    if (res == SAC_OK && !fits)
        res = enc->dev->ops->stream_after(enc->dev, enc->down.stream, NULL);
    if (res == SAC_OK && !fits)
        res = sac_frame_convert_on(enc->down.stream, frame, SAC_FILTER_AREA, fitted,
                                   SAC_COPY_FRAME_CONVERT, what);
    if (res == SAC_OK)
        res = fits ? sac_frame_wait(fitted) : enc->dev->ops->stream_wait(enc->down.stream);
    if (res == SAC_OK)
        *out = fitted;
    else
        sac_frame_unref(&fitted);
    return res;
}
