/* SPDX-License-Identifier: Apache-2.0 */
/* A frame and its alpha as one picture of a format that frames do not have. */
#include <string.h>

#include <libavutil/imgutils.h>

#include "device/format.h"
#include "media/media.h"
#include "vision/sample.h"

enum { ALIGNMENT = 64 };

bool sac_pack_is_needed(const sac_frame *layout, enum AVPixelFormat to)
{
    return !(layout->format == SAC_PIXEL_I420 && to == AV_PIX_FMT_YUVA420P);
}

sac_result sac_alpha_check(sac_context *ctx, const sac_frame *frame, const sac_frame *alpha)
{
    if (alpha->format != SAC_PIXEL_GRAY8)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "alpha in %s; it must be %s",
                        sac_pixel_format_name(alpha->format),
                        sac_pixel_format_name(SAC_PIXEL_GRAY8));
    if (alpha->width != frame->width || alpha->height != frame->height)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "alpha of %dx%d for a frame of %dx%d", alpha->width,
                        alpha->height, frame->width, frame->height);
    if (alpha->device != frame->device)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "a frame and its alpha are on different devices");
    return SAC_OK;
}

/* ---- one row ---- */

/* 255 becomes 1023. */
static uint16_t ten_bits_of_alpha(uint8_t a)
{
    return (uint16_t)(a << 2 | a >> 6);
}

static const uint8_t *row_of(const sac_frame *frame, int plane, int y)
{
    return frame->plane[plane] + (size_t)y * frame->pitch_bytes[plane];
}

static void *out_row(const AVFrame *out, int plane, int y)
{
    return out->data[plane] + (ptrdiff_t)y * out->linesize[plane];
}

/* n samples in 10 bits, every `step` numbers; each stands for `repeat` pixels of n. */
static void ten_bits(const sac_frame *frame, const uint8_t *row, int step, int repeat, int n,
                     uint16_t *out)
{
    const uint16_t *wide = (const uint16_t *)(const void *)row;
    for (int x = 0; x < n; x++) {
        const int at = x / repeat * step;
        out[x] =
            frame->format == SAC_PIXEL_P010 ? (uint16_t)(wide[at] >> 6) : (uint16_t)(row[at] << 2);
    }
}

/* Row y of plane c of a picture whose chroma is as large as luma, or half as large. */
static void yuv_row(const sac_frame *frame, int c, int y, int repeat, int n, uint16_t *out)
{
    const bool together = frame->format == SAC_PIXEL_P010; /* U and V in pairs */
    const int  plane = together ? SAC_MIN(c, 1) : c, step = together && c ? 2 : 1;
    const int  first = together && c == 2 ? 2 : 0; /* byte */
    ten_bits(frame, row_of(frame, plane, y) + first, step, repeat, n, out);
}

static void rgb_row(const struct sac_encode_map *map, const uint8_t *rgb, int n,
                    uint16_t *const out[3])
{
    for (int x = 0; x < n; x++) {
        float channel[3] = {rgb[3 * x], rgb[3 * x + 1], rgb[3 * x + 2]};
        sac_encode_apply(map, channel);
        for (int c = 0; c < 3; c++)
            out[c][x] = sac_ten_bits_of(channel[c]) >> 6;
    }
}

static void alpha_row(const uint8_t *alpha, int n, uint16_t *out)
{
    for (int x = 0; x < n; x++)
        out[x] = ten_bits_of_alpha(alpha[x]);
}

/* ---- pictures ---- */

static void pack_alpha(const sac_frame *alpha, AVFrame *out)
{
    for (int y = 0; y < out->height; y++)
        alpha_row(row_of(alpha, 0, y), out->width, out_row(out, 3, y));
}

static void pack_420(const sac_frame *frame, const sac_frame *alpha, AVFrame *out)
{
    for (int y = 0; y < out->height; y++)
        yuv_row(frame, 0, y, 1, out->width, out_row(out, 0, y));
    for (int c = 1; c < 3; c++)
        for (int y = 0; y < (out->height + 1) / 2; y++)
            yuv_row(frame, c, y, 1, (out->width + 1) / 2, out_row(out, c, y));
    pack_alpha(alpha, out);
}

/* A sample of chroma stands for its 2 x 2 pixels, so that their mean is the sample again. */
static void pack_444(const sac_frame *frame, const sac_frame *alpha, AVFrame *out)
{
    const sac_frame as = {
        .format = SAC_PIXEL_P010, .matrix = frame->matrix, .range = SAC_RANGE_LIMITED};
    const struct sac_recode recode = sac_recode_of(frame, &as);
    for (int y = 0; y < out->height; y++) {
        uint16_t *const rows[3] = {out_row(out, 0, y), out_row(out, 1, y), out_row(out, 2, y)};
        if (sac_rgb_step(frame->format))
            rgb_row(&recode.encode, row_of(frame, 0, y), out->width, rows);
        for (int c = 0; c < 3 && sac_is_yuv(frame->format); c++)
            yuv_row(frame, c, c ? y / 2 : y, c ? 2 : 1, out->width, rows[c]);
    }
    pack_alpha(alpha, out);
}

static void pack_bgra(const sac_frame *frame, const sac_frame *alpha, AVFrame *out)
{
    for (int y = 0; y < out->height; y++) {
        const uint8_t *over = row_of(alpha, 0, y);
        uint8_t       *row = out_row(out, 0, y);
        memcpy(row, row_of(frame, 0, y), (size_t)out->width * 4);
        for (int x = 0; x < out->width; x++)
            row[4 * x + 3] = over[x];
    }
}

int sac_pack_picture(struct sac_pack *pack, const sac_frame *frame, const sac_frame *alpha,
                     AVFrame *out)
{
    const enum AVPixelFormat to = (enum AVPixelFormat)out->format;
    const int bytes = av_image_get_buffer_size(to, out->width, out->height, ALIGNMENT);
    if (bytes < 0)
        return bytes;
    if (!pack->pool)
        pack->pool = av_buffer_pool_init((size_t)bytes, NULL);
    out->buf[0] = pack->pool ? av_buffer_pool_get(pack->pool) : NULL;
    if (!out->buf[0])
        return AVERROR(ENOMEM);
    av_image_fill_arrays(out->data, out->linesize, out->buf[0]->data, to, out->width, out->height,
                         ALIGNMENT);
    switch (to) {
    case AV_PIX_FMT_YUVA420P10: pack_420(frame, alpha, out); break;
    case AV_PIX_FMT_YUVA444P10: pack_444(frame, alpha, out); break;
    case AV_PIX_FMT_BGRA: pack_bgra(frame, alpha, out); break;
    default: return AVERROR(ENOSYS);
    }
    return 0;
}

void sac_pack_finish(struct sac_pack *pack)
{
    av_buffer_pool_uninit(&pack->pool); /* pictures that the encoder still holds keep it */
}
