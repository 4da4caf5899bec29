/* SPDX-License-Identifier: Apache-2.0 */
#include <libavutil/pixdesc.h>

#include "media/media.h"

/* Formats whose planes a frame can use directly. The alpha plane of YUVA is dropped; the alpha of
 * RGBA is ignored. */
static const struct {
    enum AVPixelFormat    av;
    enum sac_pixel_format format;
} direct_formats[] = {
    {AV_PIX_FMT_YUV420P, SAC_PIXEL_I420},  {AV_PIX_FMT_YUVJ420P, SAC_PIXEL_I420},
    {AV_PIX_FMT_YUVA420P, SAC_PIXEL_I420}, {AV_PIX_FMT_NV12, SAC_PIXEL_NV12},
    {AV_PIX_FMT_P010LE, SAC_PIXEL_P010},   {AV_PIX_FMT_RGB24, SAC_PIXEL_RGB24},
    {AV_PIX_FMT_BGR24, SAC_PIXEL_BGR24},   {AV_PIX_FMT_RGBA, SAC_PIXEL_RGBA},
    {AV_PIX_FMT_RGB0, SAC_PIXEL_RGBA},     {AV_PIX_FMT_BGRA, SAC_PIXEL_BGRA},
    {AV_PIX_FMT_BGR0, SAC_PIXEL_BGRA},
};

enum sac_pixel_format sac_format_of_av(enum AVPixelFormat format, bool *direct)
{
    *direct = true;
    for (size_t i = 0; i < SAC_COUNT(direct_formats); i++)
        if (direct_formats[i].av == format)
            return direct_formats[i].format;
    *direct = false;
    const AVPixFmtDescriptor *about = av_pix_fmt_desc_get(format);
    if (!about || (about->flags & AV_PIX_FMT_FLAG_HWACCEL))
        return SAC_PIXEL_NONE;
    if (about->flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BAYER))
        return SAC_PIXEL_RGB24;
    return about->comp[0].depth > 8 ? SAC_PIXEL_P010 : SAC_PIXEL_I420;
}

/* A palette's colours may have alpha too: its pictures are taken for opaque. */
bool sac_format_has_alpha(enum AVPixelFormat format)
{
    const AVPixFmtDescriptor *about = av_pix_fmt_desc_get(format);
    return about && (about->flags & AV_PIX_FMT_FLAG_ALPHA) &&
           !(about->flags & (AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_FLOAT));
}

enum AVPixelFormat sac_format_to_av(enum sac_pixel_format format)
{
    switch (format) {
    case SAC_PIXEL_NV12: return AV_PIX_FMT_NV12;
    case SAC_PIXEL_P010: return AV_PIX_FMT_P010LE;
    case SAC_PIXEL_I420: return AV_PIX_FMT_YUV420P;
    case SAC_PIXEL_RGB24: return AV_PIX_FMT_RGB24;
    case SAC_PIXEL_GRAY8: return AV_PIX_FMT_GRAY8;
    case SAC_PIXEL_BGR24: return AV_PIX_FMT_BGR24;
    case SAC_PIXEL_RGBA: return AV_PIX_FMT_RGBA;
    case SAC_PIXEL_BGRA: return AV_PIX_FMT_BGRA;
    default: return AV_PIX_FMT_NONE;
    }
}

/* Untagged streams: players and encoders assume BT.601 for standard definition, BT.709 for
 * larger. */
enum sac_colour_matrix sac_matrix_of_av(enum AVColorSpace space, int height)
{
    switch (space) {
    case AVCOL_SPC_BT709: return SAC_MATRIX_BT709;
    case AVCOL_SPC_FCC:
    case AVCOL_SPC_BT470BG:
    case AVCOL_SPC_SMPTE170M: return SAC_MATRIX_BT601;
    case AVCOL_SPC_BT2020_NCL:
    case AVCOL_SPC_BT2020_CL: return SAC_MATRIX_BT2020;
    default: return height < 720 ? SAC_MATRIX_BT601 : SAC_MATRIX_BT709;
    }
}

enum AVColorSpace sac_matrix_to_av(enum sac_colour_matrix matrix)
{
    switch (matrix) {
    case SAC_MATRIX_BT601: return AVCOL_SPC_SMPTE170M;
    case SAC_MATRIX_BT2020: return AVCOL_SPC_BT2020_NCL;
    default: return AVCOL_SPC_BT709;
    }
}

/* Whether the format's name implies full range (yuvj...); swscale assumes it too. */
static bool is_full_by_format(enum AVPixelFormat format)
{
    const AVPixFmtDescriptor *about = av_pix_fmt_desc_get(format);
    switch (format) {
    case AV_PIX_FMT_YUVJ420P:
    case AV_PIX_FMT_YUVJ422P:
    case AV_PIX_FMT_YUVJ444P:
    case AV_PIX_FMT_YUVJ440P:
    case AV_PIX_FMT_YUVJ411P: return true;
    default: /* RGB; gray is an image, not a video's luma */
        return about && ((about->flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL)) ||
                         about->nb_components < 3);
    }
}

enum sac_colour_range sac_range_of_av(enum AVColorRange range, enum AVPixelFormat format)
{
    if (is_full_by_format(format) || range == AVCOL_RANGE_JPEG)
        return SAC_RANGE_FULL;
    return SAC_RANGE_LIMITED;
}
