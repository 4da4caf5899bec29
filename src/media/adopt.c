/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>

#include "device/device.h"
#include "media/media.h"

void sac_adopter_finish(struct sac_adopter *adopter)
{
    sws_freeContext(adopter->scaler);
    adopter->scaler = NULL;
    sac_uploader_destroy(&adopter->up);
}

static void release_picture(void *user)
{
    AVFrame *picture = user;
    av_frame_free(&picture);
}

static sac_result wrap(sac_device *dev, const sac_frame *desc, AVFrame *picture, sac_frame **out)
{
    sac_frame layout = *desc;
    AVFrame  *held = av_frame_alloc();
    if (!held)
        return SAC_FAIL(sac_device_context(dev), SAC_ERR_MEMORY, "no memory for a frame");
    av_frame_move_ref(held, picture);
    for (int i = 0; i < SAC_PLANES_MAX; i++) {
        layout.plane[i] = held->data[i];
        layout.pitch_bytes[i] = (size_t)held->linesize[i];
    }
    sac_result res = sac_frame_wrap(dev, &layout, release_picture, held, out);
    if (res != SAC_OK)
        av_frame_free(&held);
    return res;
}

/* swscale gets the picture's matrix and range for both sides, so that it changes only the
 * layout. */
static struct SwsContext *scaler_for(struct sac_adopter *adopter, const AVFrame *picture,
                                     const sac_frame *desc)
{
    enum AVPixelFormat from = (enum AVPixelFormat)picture->format;
    adopter->scaler = sws_getCachedContext(
        adopter->scaler, picture->width, picture->height, from, desc->width, desc->height,
        sac_format_to_av(desc->format), SWS_BILINEAR | SWS_ACCURATE_RND, NULL, NULL, NULL);
    if (!adopter->scaler)
        return NULL;
    const int *matrix = sws_getCoefficients((int)sac_matrix_to_av(desc->matrix));
    int        full = desc->range == SAC_RANGE_FULL;
    sws_setColorspaceDetails(adopter->scaler, matrix, full, matrix, full, 0, 1 << 16, 1 << 16);
    return adopter->scaler;
}

static size_t bytes_of(const sac_frame *frame)
{
    struct sac_plane_layout planes[SAC_PLANES_MAX];
    size_t                  bytes = 0;
    int                     n = sac_frame_stored_planes(frame, planes);
    for (int i = 0; i < n; i++)
        bytes += planes[i].row_bytes * (size_t)planes[i].rows;
    return bytes;
}

/* The picture's alpha, which libavutil always has as the last component, in 8 bits. */
static sac_result extract_alpha(sac_context *ctx, const AVFrame *picture, const sac_frame *to)
{
    const AVPixFmtDescriptor *about = av_pix_fmt_desc_get((enum AVPixelFormat)picture->format);
    const int                 alpha = about->nb_components - 1;
    const uint32_t            max = (1U << about->comp[alpha].depth) - 1;
    uint16_t                 *row = sac_alloc((size_t)picture->width * sizeof *row);
    if (!row)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for a row of alpha");
    for (int y = 0; y < picture->height; y++) {
        uint8_t *out = to->plane[0] + (size_t)y * to->pitch_bytes[0];
        av_read_image_line2(row, (const uint8_t **)picture->data, picture->linesize, about, 0, y,
                            alpha, picture->width, 0, sizeof *row);
        for (int x = 0; x < picture->width; x++)
            out[x] = (uint8_t)((row[x] * 255U + max / 2) / max);
    }
    sac_free(row);
    return SAC_OK;
}

/* The only grey frames are those of alpha: sac_format_of_av has none. */
static sac_result scale(struct sac_adopter *adopter, sac_context *ctx, const AVFrame *picture,
                        const sac_frame *to)
{
    if (to->format == SAC_PIXEL_GRAY8)
        return extract_alpha(ctx, picture, to);
    struct SwsContext *scaler = scaler_for(adopter, picture, to);
    if (!scaler)
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED, "swscale can't convert %s to %s",
                        av_get_pix_fmt_name((enum AVPixelFormat)picture->format),
                        sac_pixel_format_name(to->format));
    int      pitch[4] = {0};
    uint8_t *plane[4] = {0};
    for (int i = 0; i < SAC_PLANES_MAX; i++) {
        plane[i] = to->plane[i];
        pitch[i] = (int)to->pitch_bytes[i];
    }
    sws_scale(scaler, (const uint8_t *const *)picture->data, picture->linesize, 0, picture->height,
              plane, pitch);
    return SAC_OK;
}

static sac_result count_conversion(sac_device *dev, const sac_frame *desc, const AVFrame *picture)
{
    char what[64];
    snprintf(what, sizeof what, "decoded %s to %s",
             av_get_pix_fmt_name((enum AVPixelFormat)picture->format),
             sac_pixel_format_name(desc->format));
    return sac_device_count_copy(dev, bytes_of(desc), SAC_COPY_FRAME_CONVERT, what);
}

static void release_frame(void *user)
{
    sac_frame *frame = user;
    sac_frame_unref(&frame);
}

static sac_result convert(struct sac_adopter *adopter, sac_device *dev, const sac_frame *desc,
                          AVFrame *picture, sac_frame **out)
{
    const sac_frame stored = sac_frame_as_turned(desc, SAC_UPRIGHT);
    sac_frame      *frame = NULL;
    sac_result      res = count_conversion(dev, desc, picture);
    if (res == SAC_OK)
        res = sac_frame_create(dev, &stored, &frame);
    if (res == SAC_OK)
        res = scale(adopter, sac_device_context(dev), picture, frame);
    if (res == SAC_OK && desc->orientation != SAC_UPRIGHT) {
        const sac_frame lying = sac_frame_as_turned(frame, desc->orientation);
        res = sac_frame_wrap(dev, &lying, release_frame, frame, &frame);
    }
    if (res == SAC_OK)
        *out = frame;
    else
        sac_frame_unref(&frame);
    return res;
}

static void copy_planes(const AVFrame *picture, const sac_frame *to)
{
    struct sac_plane_layout plane[SAC_PLANES_MAX];
    int                     n = sac_frame_planes(to->format, to->width, to->height, plane);
    for (int i = 0; i < n; i++)
        av_image_copy_plane(to->plane[i], (int)to->pitch_bytes[i], picture->data[i],
                            picture->linesize[i], (int)plane[i].row_bytes, plane[i].rows);
}

static sac_result upload(struct sac_adopter *adopter, sac_device *dev, const sac_frame *desc,
                         AVFrame *picture, bool converted, sac_frame **out)
{
    sac_frame  staging = *desc;
    sac_result res = converted ? count_conversion(dev, desc, picture) : SAC_OK;
    if (res == SAC_OK)
        res = sac_upload_begin(adopter->up, &staging);
    const sac_frame stored = sac_frame_as_turned(&staging, SAC_UPRIGHT); /* the GPU reads it turned
                                                                          */
    if (res == SAC_OK && converted)
        res = scale(adopter, sac_device_context(dev), picture, &stored);
    else if (res == SAC_OK)
        copy_planes(picture, &stored);
    return res == SAC_OK ? sac_upload_end(adopter->up, &staging, out) : res;
}

/* A picture may be stored bottom up; a frame may not. */
static bool is_top_down(const AVFrame *picture)
{
    for (int i = 0; i < SAC_PLANES_MAX && picture->data[i]; i++)
        if (picture->linesize[i] < 0)
            return false;
    return true;
}

sac_result sac_adopt_alpha(struct sac_adopter *adopter, sac_device *dev, AVFrame *picture,
                           enum sac_orientation orientation, sac_frame **out)
{
    sac_frame desc = {
        .format = SAC_PIXEL_GRAY8,
        .width = picture->width,
        .height = picture->height,
        .matrix = sac_matrix_of_av(picture->colorspace, picture->height),
        .range = SAC_RANGE_FULL,
    };
    desc = sac_frame_as_turned(&desc, orientation);
    sac_result res = adopter->up ? upload(adopter, dev, &desc, picture, true, out)
                                 : convert(adopter, dev, &desc, picture, out);
    av_frame_unref(picture);
    return res;
}

sac_result sac_adopt_picture(struct sac_adopter *adopter, sac_device *dev, AVFrame *picture,
                             enum sac_orientation orientation, sac_frame **out, bool *converted)
{
    enum AVPixelFormat format = (enum AVPixelFormat)picture->format;
    bool               direct;
    sac_frame          desc = {
                 .format = sac_format_of_av(format, &direct),
                 .width = picture->width,
                 .height = picture->height,
                 .matrix = sac_matrix_of_av(picture->colorspace, picture->height),
                 .range = sac_range_of_av(picture->color_range, format),
    };
    sac_result res;
    desc = sac_frame_as_turned(&desc, orientation);
    *converted = !direct || !is_top_down(picture);
    if (desc.format == SAC_PIXEL_NONE)
        res = SAC_FAIL(sac_device_context(dev), SAC_ERR_UNSUPPORTED, "pixel format '%s'",
                       av_get_pix_fmt_name(format));
    else if (adopter->up)
        res = upload(adopter, dev, &desc, picture, *converted, out);
    else if (*converted)
        res = convert(adopter, dev, &desc, picture, out);
    else
        res = wrap(dev, &desc, picture, out);
    av_frame_unref(picture);
    return res;
}
