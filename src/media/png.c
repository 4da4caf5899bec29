/* SPDX-License-Identifier: Apache-2.0 */
/* Frames as PNG files, by libavcodec's encoder. */
#include <saccade/image.h>

#include "base/outfile.h"
#include "device/device.h"
#include "device/format.h"
#include "media/media.h"

struct sac_png {
    sac_device         *dev;
    sac_context        *ctx;
    struct sac_download down, down_alpha; /* open while the device has memory of its own */
    sac_frame           layout;           /* of the latest frame */
    sac_frame          *converted;        /* on a device in host memory */
    AVCodecContext     *avc;              /* NULL: no frame yet */
    AVFrame            *picture;
    AVPacket           *packet;
};

/* Where a frame is read from, and what keeps it there. */
struct pixels {
    sac_frame          frame;
    struct sac_buffer *memory; /* or NULL */
    sac_frame         *owner;  /* or NULL */
};

static void release(struct pixels *pixels)
{
    sac_buffer_unref(&pixels->memory);
    sac_frame_unref(&pixels->owner);
}

/* ---- create ---- */

sac_result sac_png_create(sac_device *dev, struct sac_png **out)
{
    sac_context    *ctx = sac_device_context(dev);
    struct sac_png *png = NULL;
    if (!avcodec_find_encoder(AV_CODEC_ID_PNG))
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED, "PNG files: this FFmpeg has no encoder for them");
    if (!dev->ops->host_memory && atomic_load(&dev->strict))
        return SAC_FAIL(ctx, SAC_ERR_COPY,
                        "PNG files are encoded on the host, so every frame of %s would be "
                        "downloaded (overlay-download), and zero-copy is strict",
                        sac_device_name(dev));
    png = sac_new(struct sac_png);
    if (png) {
        png->dev = sac_device_ref(dev);
        png->ctx = ctx;
        png->picture = av_frame_alloc();
        png->packet = av_packet_alloc();
    }
    if (!png || !png->picture || !png->packet) {
        sac_png_destroy(&png);
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for PNG files");
    }
    *out = png;
    return SAC_OK;
}

void sac_png_destroy(struct sac_png **png_at)
{
    if (!png_at || !*png_at)
        return;
    struct sac_png *png = *png_at;
    avcodec_free_context(&png->avc);
    av_frame_free(&png->picture);
    av_packet_free(&png->packet);
    sac_frame_unref(&png->converted);
    sac_download_close(&png->down);
    sac_download_close(&png->down_alpha);
    sac_device_unref(&png->dev);
    sac_free(png);
    *png_at = NULL;
}

/* ---- pixels in host memory ---- */

static sac_frame layout_of(const sac_frame *frame, bool alpha)
{
    const bool grey = frame->format == SAC_PIXEL_GRAY8 && !alpha;
    return (sac_frame){.format = grey    ? SAC_PIXEL_GRAY8
                                 : alpha ? SAC_PIXEL_RGBA
                                         : SAC_PIXEL_RGB24,
                       .width = frame->width,
                       .height = frame->height,
                       .matrix = frame->matrix,
                       .range = SAC_RANGE_FULL};
}

static bool is_laid_out(const sac_frame *frame, const sac_frame *layout)
{
    return frame->format == layout->format && frame->orientation == SAC_UPRIGHT;
}

/* A GPU's frame. */
static sac_result download(struct sac_png *png, struct sac_download *down, sac_frame *frame,
                           const sac_frame *layout, struct pixels *out)
{
    sac_result res = down->dev ? SAC_OK : sac_download_open(down, png->dev, layout);
    if (res == SAC_OK)
        res = sac_download_begin(down, frame, is_laid_out(frame, layout), layout);
    return res == SAC_OK ? sac_download_end_wait(down, &out->frame, &out->memory) : res;
}

/* A frame in host memory; one that is written to is the png's own. */
static sac_result convert(struct sac_png *png, sac_frame *frame, bool write,
                          const sac_frame *layout, struct pixels *out)
{
    sac_result res = SAC_OK;
    if (!write && is_laid_out(frame, layout)) {
        out->owner = sac_frame_ref(frame);
    } else {
        if (!png->converted)
            res = sac_frame_create(png->dev, layout, &png->converted);
        if (res == SAC_OK)
            res = sac_frame_convert(frame, SAC_FILTER_BILINEAR, png->converted);
        if (res == SAC_OK)
            out->owner = sac_frame_ref(png->converted);
    }
    if (res == SAC_OK)
        out->frame = *out->owner;
    return res;
}

static void put_alpha(const sac_frame *alpha, const sac_frame *rgba)
{
    for (int y = 0; y < rgba->height; y++) {
        const uint8_t *from = alpha->plane[0] + (size_t)y * alpha->pitch_bytes[0];
        uint8_t       *to = rgba->plane[0] + (size_t)y * rgba->pitch_bytes[0];
        for (int x = 0; x < rgba->width; x++)
            to[4 * x + 3] = from[x];
    }
}

static sac_result bring(struct sac_png *png, sac_frame *frame, sac_frame *alpha, struct pixels *out)
{
    const sac_frame grey = layout_of(alpha ? alpha : frame, false);
    struct pixels   over = {0};
    const bool      host = png->dev->ops->host_memory;
    sac_result      res = host ? convert(png, frame, alpha != NULL, &png->layout, out)
                               : download(png, &png->down, frame, &png->layout, out);
    if (res == SAC_OK && alpha && host)
        put_alpha(alpha, &out->frame);
    if (res == SAC_OK && alpha && !host)
        res = download(png, &png->down_alpha, alpha, &grey, &over);
    if (res == SAC_OK && alpha && !host)
        put_alpha(&over.frame, &out->frame);
    release(&over);
    return res;
}

/* ---- encode ---- */

/* One thread gives the same bytes on every machine, and each packet with its frame. Level 4 of
 * zlib takes a third of the time of its usual 6 for 8 % more bytes (1080p of vtest.avi, with and
 * without alpha, 2026-11-23). Other predictions than the pixel to the left save at most 4 %. */
static int open_encoder(struct sac_png *png)
{
    AVDictionary *options = NULL;
    png->avc = avcodec_alloc_context3(avcodec_find_encoder(AV_CODEC_ID_PNG));
    if (!png->avc)
        return AVERROR(ENOMEM);
    png->avc->width = png->layout.width;
    png->avc->height = png->layout.height;
    png->avc->pix_fmt = sac_format_to_av(png->layout.format);
    png->avc->time_base = (AVRational){1, 25}; /* must be set */
    png->avc->thread_count = 1;
    png->avc->compression_level = 4;
    int err = av_dict_set(&options, "pred", "sub", 0);
    if (err >= 0)
        err = avcodec_open2(png->avc, NULL, &options);
    av_dict_free(&options);
    if (err < 0)
        avcodec_free_context(&png->avc);
    return err;
}

static void keep(void *opaque, uint8_t *data)
{
    (void)opaque;
    (void)data;
}

static int encode(struct sac_png *png, const sac_frame *pixels)
{
    AVFrame *pic = png->picture;
    pic->format = png->avc->pix_fmt;
    pic->width = pixels->width;
    pic->height = pixels->height;
    pic->data[0] = pixels->plane[0];
    pic->linesize[0] = (int)pixels->pitch_bytes[0];
    /* Without a buffer libavcodec would copy the picture. */
    pic->buf[0] = av_buffer_create(pic->data[0], 1, keep, NULL, AV_BUFFER_FLAG_READONLY);
    int err = pic->buf[0] ? avcodec_send_frame(png->avc, pic) : AVERROR(ENOMEM);
    av_frame_unref(pic);
    return err < 0 ? err : avcodec_receive_packet(png->avc, png->packet);
}

/* What was made for frames of another kind or size goes. */
static void make_ready(struct sac_png *png, const sac_frame *layout)
{
    if (layout->format == png->layout.format && layout->width == png->layout.width &&
        layout->height == png->layout.height && layout->matrix == png->layout.matrix)
        return;
    avcodec_free_context(&png->avc);
    sac_frame_unref(&png->converted);
    sac_download_close(&png->down);
    sac_download_close(&png->down_alpha);
    png->layout = *layout;
}

static sac_result write_file(sac_context *ctx, const char *path, const AVPacket *packet)
{
    struct sac_outfile file;
    sac_result         res = sac_outfile_open(ctx, path, &file);
    if (res != SAC_OK)
        return res;
    fwrite(packet->data, 1, (size_t)packet->size, file.file);
    return sac_outfile_finish(&file);
}

sac_result sac_png_write_wait(struct sac_png *png, const char *path, sac_frame *frame,
                              sac_frame *alpha)
{
    struct pixels   pixels = {0};
    const sac_frame layout = layout_of(frame, alpha != NULL);
    sac_result      res = alpha ? sac_alpha_check(png->ctx, frame, alpha) : SAC_OK;
    if (res != SAC_OK)
        return res;
    make_ready(png, &layout);
    res = bring(png, frame, alpha, &pixels);
    if (res == SAC_OK) {
        sac_ffmpeg_log_begin(png->ctx);
        int err = png->avc ? 0 : open_encoder(png);
        if (err >= 0)
            err = encode(png, &pixels.frame);
        if (err < 0)
            res = sac_ffmpeg_fail(png->ctx, err, path);
        sac_ffmpeg_log_end();
    }
    if (res == SAC_OK)
        res = write_file(png->ctx, path, png->packet);
    av_packet_unref(png->packet);
    release(&pixels);
    return res;
}
