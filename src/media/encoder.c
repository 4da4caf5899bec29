/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <libavutil/imgutils.h>
#include <libavutil/opt.h>
#include <saccade/image.h>

#include "device/device.h"
#include "device/format.h"
#include "media/media.h"
#include "media/turns.h"

/* How an encoder is told the quality, which is on libx264's scale (crf, 0 to 51). */
enum quality {
    QUALITY_OWN,   /* set by the row's options */
    QUALITY_CRF,   /* as libx264, with its presets */
    QUALITY_H264,  /* a constant quantiser of H.264 */
    QUALITY_MPEG4, /* a constant quantiser of MPEG-4 part 2 */
    QUALITY_NVENC, /* its own scale, which is close */
};

enum { SMALL = 16, PICTURE_ALIGN = 64 };

/* Pictures that an encoder encodes in its turn. A key frame each 48 pictures costs 12 to 20 % more
 * bytes than one each 250 (1080p of a camera that stands still, 2026-11-23), but the fewer they
 * are, the less memory waits. */
enum { GROUP = 48 };
/* Of pictures that wait: of one video (4 turns of 1080p, 2 of 4K), and of all of a run. */
static const int64_t waiting_bytes_max = 384 << 20, waiting_bytes_of_all = 1 << 30;

/* What an encoder makes of frames that come with their alpha. */
enum alpha {
    ALPHA_NONE,
    ALPHA_420,     /* 8 bits and a plane of alpha */
    ALPHA_444,     /* 10 bits, chroma and alpha as large as luma */
    ALPHA_LOSSLESS /* as the frame's own format is */
};

/* Settings of known encoders. One without a row is used with its own defaults. */
static const struct encoder {
    const char  *name;
    const char  *options; /* of the encoder, "key=value:..." */
    enum quality quality;
    int          gop;        /* most frames between key frames; 0: its default */
    int          tick_max;   /* the time base's largest denominator; 0: any */
    bool         full_range; /* marks full range in the stream */
    int          pool;       /* threads that all such encoders share; 0: each has its own */
    int          step_max_s; /* between frames; 0: any */
    bool         grey;       /* takes grey frames as one plane; else they get chroma of 128 */
    bool         odd;        /* takes frames of odd width and height */
    enum alpha   alpha;
    const char  *alpha_options; /* added to options for frames with alpha; or NULL */
    const char  *small_options; /* added for frames of less than SMALL pixels a side; or NULL */
} encoders[] = {
    {"libx264", "", QUALITY_CRF, 0, 0, true, 0, 0},
    /* Its default is a single key frame, so that no player could seek. CAVLC codes the same picture
     * in 12 % less time, 6 % larger (1080p on one thread of a Zen 5, 2026-11-22). */
    {"libopenh264", "rc_mode=quality:profile=high:coder=cavlc", QUALITY_H264, 250, 0, true, 4, 0},
    /* 16 bits for ticks a second: ISO/IEC 14496-2, 6.3.3; a key frame before inverse transforms
     * that round differently drift apart: its annex A, 132 frames. Each second that passes is one
     * more bit in the stream, and FFmpeg refuses a gap of more than an hour. */
    {"mpeg4", "", QUALITY_MPEG4, 100, 65535, false, 0, 3500},
    {"h264_nvenc", "preset=p4:rc=vbr", QUALITY_NVENC, 250, 0, true, 0, 0},
    {"hevc_nvenc", "preset=p4:rc=vbr", QUALITY_NVENC, 250, 0, true, 0, 0},
    /* libvpx encodes alpha beside the picture with the same settings, and can't where a frame may
     * be made of several (alternate references). */
    {"libvpx-vp9", "deadline=realtime:cpu-used=8:row-mt=1:crf=32:b=0", QUALITY_OWN, 0, 0, true, 0,
     0, .odd = true, .alpha = ALPHA_420, .alpha_options = "auto-alt-ref=0"},
    {"libvpx", "deadline=realtime:cpu-used=8:crf=10:b=4M", QUALITY_OWN, 0, 0, false, 0, 0},
    {"libsvtav1", "preset=10:crf=35", QUALITY_OWN, 0, 0, true, 0, 0},
    /* Version 3 (RFC 9043), each frame by itself, with checksums: what archives ask for. FFmpeg
     * cuts its frames into slices, and refuses or spoils those of up to 3 pixels a side (5.1). */
    {"ffv1", "level=3:slicecrc=1", QUALITY_OWN, 1, 0, true, 0, 0, .grey = true, .odd = true,
     .alpha = ALPHA_LOSSLESS, .small_options = "level=1:slicecrc=0"},
    /* Alpha is coded without loss; 8 bits are all that there is. ProRes has no full range. */
    {"prores_ks", "profile=4444:alpha_bits=8", QUALITY_OWN, 0, 0, false, 0, 0, .odd = true,
     .alpha = ALPHA_444},
};
static const struct encoder encoder_unknown = {"", "", QUALITY_OWN, 0, 0, false, 0, 0};

static const struct encoder *find(const char *name)
{
    for (size_t i = 0; i < SAC_COUNT(encoders); i++)
        if (strcmp(encoders[i].name, name) == 0)
            return &encoders[i];
    return &encoder_unknown;
}

bool sac_encoder_exists(const char *name)
{
    const AVCodec *codec = avcodec_find_encoder_by_name(name);
    return codec && codec->type == AVMEDIA_TYPE_VIDEO;
}

bool sac_encoder_has_alpha(const char *name)
{
    return find(name)->alpha != ALPHA_NONE;
}

static const char *const presets[] = {"ultrafast", "superfast", "veryfast", "faster",  "fast",
                                      "medium",    "slow",      "slower",   "veryslow"};

sac_result sac_encoder_check_preset(sac_context *ctx, const char *preset)
{
    char   names[128];
    size_t at = 0;
    for (size_t i = 0; i < SAC_COUNT(presets); i++) {
        if (strcmp(presets[i], preset) == 0)
            return SAC_OK;
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", presets[i]);
    }
    return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED, "preset '%s': libx264 has %s", preset, names);
}

/* ---- open ---- */

/* About as good as libx264 at that crf: within 1.7 dB of PSNR over 200 frames of vtest.avi with
 * boxes drawn, crf 20 to 26 (2026-11-21). OpenH264 and MPEG-4 take 1.6 to 2 times its bytes. */
static int set_quality(AVCodecContext *avc, AVDictionary **options, const struct encoder *row,
                       const struct sac_encoder_setup *setup)
{
    int err = 0;
    switch (row->quality) {
    case QUALITY_OWN: break;
    case QUALITY_CRF:
        err = av_dict_set(options, "preset", setup->preset, 0);
        return err < 0 ? err : av_dict_set_int(options, "crf", setup->crf, 0);
    case QUALITY_NVENC: return av_dict_set_int(options, "cq", setup->crf, 0);
    case QUALITY_H264: avc->qmin = avc->qmax = SAC_MAX(setup->crf - 3, 1); break;
    case QUALITY_MPEG4:
        avc->flags |= AV_CODEC_FLAG_QSCALE;
        avc->global_quality =
            FF_QP2LAMBDA * av_clip((int)lrint(exp2((setup->crf - 5.5) / 6) / 2), 2, 31);
        break;
    }
    return 0;
}

/* 60000 holds a frame of 24, 25, 30, 50, 60 and 30000/1001 a second exactly. */
static AVRational tick(const struct encoder *row, const struct sac_encoder_setup *setup)
{
    if (row->tick_max == 0 || setup->time_base.den <= row->tick_max)
        return setup->time_base;
    return (AVRational){1, 60000};
}

/* What frames are converted to, and what the encoder gets of that. */
struct pixels {
    enum sac_pixel_format layout;
    enum AVPixelFormat    av;
};

static struct pixels pixels_of(const struct encoder *row, const struct sac_encoder_setup *setup)
{
    const bool ten_bits = setup->format == SAC_PIXEL_P010;
    const bool rgb = sac_rgb_step(setup->format) > 0;
    if (!setup->alpha && row->grey && setup->format == SAC_PIXEL_GRAY8)
        return (struct pixels){SAC_PIXEL_GRAY8, AV_PIX_FMT_GRAY8};
    if (!setup->alpha)
        return (struct pixels){SAC_PIXEL_I420, AV_PIX_FMT_YUV420P};
    if (row->alpha == ALPHA_444)
        return (struct pixels){rgb        ? SAC_PIXEL_RGB24
                               : ten_bits ? SAC_PIXEL_P010
                                          : SAC_PIXEL_I420,
                               AV_PIX_FMT_YUVA444P10};
    if (row->alpha == ALPHA_LOSSLESS && ten_bits)
        return (struct pixels){SAC_PIXEL_P010, AV_PIX_FMT_YUVA420P10};
    if (row->alpha == ALPHA_LOSSLESS && rgb)
        return (struct pixels){SAC_PIXEL_BGRA, AV_PIX_FMT_BGRA};
    return (struct pixels){SAC_PIXEL_I420, AV_PIX_FMT_YUVA420P};
}

/* 4:2:0 halves the chroma's width, and most encoders take only even sizes. Where one takes others,
 * mattes and pictures with alpha keep the size of the frames that they belong to. */
static int size_mask(const struct encoder *row, const struct sac_encoder_setup *setup)
{
    return row->odd && (setup->alpha || setup->format == SAC_PIXEL_GRAY8) ? ~0 : ~1;
}

static bool is_too_small(const struct encoder *row, const struct sac_encoder_setup *setup)
{
    const int mask = size_mask(row, setup);
    return (setup->width & mask) == 0 || (setup->height & mask) == 0;
}

static void set_colour(AVCodecContext *avc, const struct encoder *row,
                       const struct sac_encoder_setup *setup)
{
    bool rgb = avc->pix_fmt == AV_PIX_FMT_BGRA;
    bool full = setup->range == SAC_RANGE_FULL && row->full_range;
    avc->color_range = full || rgb ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
    avc->colorspace = rgb ? AVCOL_SPC_RGB : sac_matrix_to_av(setup->matrix);
    if (setup->like) {
        avc->color_primaries = setup->like->color_primaries;
        avc->color_trc = setup->like->color_trc;
    }
}

/* Encoders that share a pool block each other (eight of OpenH264 with two threads each kept 2.5 of
 * 16 cores busy, with one each 8.2). So a video that may use several threads has several encoders
 * of one thread each, which take turns. Where none may wait for its turn, a single one uses the
 * pool, and several encode on their calling threads. */
static int turns_of(const struct encoder *row, const struct sac_encoder_setup *setup)
{
    const int64_t bytes = (int64_t)setup->width * setup->height * 3 / 2;
    const int64_t most = SAC_MIN(waiting_bytes_max, waiting_bytes_of_all / (setup->beside + 1));
    int           n = setup->turns > 0 || row->pool == 0 ? setup->turns : setup->threads;
    if (setup->prompt || setup->alpha)
        return 1;
    n = SAC_CLAMP(n, 1, (int)SAC_TURNS_MAX);
    while (n > 1 && bytes * sac_turns_pictures(n, GROUP) > most)
        n--;
    return n;
}

static int threads_of(const struct encoder *row, const struct sac_encoder_setup *setup, int turns)
{
    if (turns > 1)
        return 1;
    if (row->pool == 0)
        return setup->threads;
    return setup->beside > 0 ? 1 : SAC_MIN(setup->threads, row->pool);
}

/* One of those that take turns, or the only one. */
static int open_context(struct sac_encoder *enc, const char *name,
                        const struct sac_encoder_setup *setup, int turns)
{
    const struct encoder *row = find(name);
    const AVCodec        *codec = avcodec_find_encoder_by_name(name);
    AVDictionary         *options = NULL;
    if (!codec)
        return AVERROR_ENCODER_NOT_FOUND;
    AVCodecContext *avc = enc->avc = avcodec_alloc_context3(codec);
    if (!avc)
        return AVERROR(ENOMEM);
    enc->size_mask = size_mask(row, setup);
    avc->width = setup->width & enc->size_mask;
    avc->height = setup->height & enc->size_mask;
    avc->pix_fmt = pixels_of(row, setup).av;
    avc->time_base = tick(row, setup);
    avc->framerate = setup->fps;
    avc->sample_aspect_ratio = setup->sample_aspect;
    avc->thread_count = threads_of(row, setup, turns);
    set_colour(avc, row, setup);
    if (!setup->reordering || turns > 1)
        avc->max_b_frames = 0;
    if (setup->global_header)
        avc->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    if (row->gop || turns > 1)
        avc->gop_size = turns > 1 ? (int)GROUP : row->gop;
    enc->on_gpu = !enc->dev->ops->host_memory && sac_nvenc_is(name);
    int err = enc->on_gpu ? sac_nvenc_prepare(enc) : 0;
    if (err >= 0)
        err = av_dict_parse_string(&options, row->options, "=", ":", 0);
    if (err >= 0 && setup->alpha && row->alpha_options)
        err = av_dict_parse_string(&options, row->alpha_options, "=", ":", 0);
    if (err >= 0 && SAC_MIN(avc->width, avc->height) < SMALL && row->small_options)
        err = av_dict_parse_string(&options, row->small_options, "=", ":", 0);
    if (err >= 0)
        err = set_quality(avc, &options, row, setup);
    if (err >= 0)
        err = avcodec_open2(avc, codec, &options);
    av_dict_free(&options);
    return err;
}

/* One header serves the pictures of all. */
static bool are_alike(const AVCodecContext *a, const AVCodecContext *b)
{
    return a->extradata_size == b->extradata_size &&
           (a->extradata_size == 0 ||
            memcmp(a->extradata, b->extradata, (size_t)a->extradata_size) == 0);
}

static int open_turns(struct sac_encoder *enc, const char *name,
                      const struct sac_encoder_setup *setup, int turns)
{
    AVCodecContext *avc[SAC_TURNS_MAX] = {0};
    int             err = 0, n = 0;
    bool            alike = true;
    for (; n < turns && err >= 0 && alike; n++) {
        err = open_context(enc, name, setup, turns);
        avc[n] = enc->avc;
        alike = err < 0 || are_alike(avc[0], avc[n]);
    }
    enc->avc = avc[0];
    if (err >= 0 && alike &&
        sac_turns_create(sac_device_context(enc->dev), avc, turns, GROUP,
                         sac_turns_pictures(turns, GROUP), &enc->turns) == SAC_OK) {
        enc->encoders = turns;
        return 0;
    }
    for (int i = 1; i < n && (err < 0 || !alike); i++)
        avcodec_free_context(&avc[i]);
    avcodec_free_context(&enc->avc);
    return open_context(enc, name, setup, 1);
}

static int try_open(struct sac_encoder *enc, const char *name,
                    const struct sac_encoder_setup *setup)
{
    const int turns = turns_of(find(name), setup);
    return turns > 1 ? open_turns(enc, name, setup, turns) : open_context(enc, name, setup, 1);
}

static void describe_layout(struct sac_encoder *enc, const struct sac_encoder_setup *setup)
{
    AVCodecContext *avc = enc->avc;
    enc->layout = (sac_frame){
        .format = enc->on_gpu ? SAC_PIXEL_NV12 : pixels_of(find(avc->codec->name), setup).layout,
        .width = avc->width,
        .height = avc->height,
        .matrix = setup->matrix,
        .range = avc->color_range == AVCOL_RANGE_JPEG ? SAC_RANGE_FULL : SAC_RANGE_LIMITED,
    };
    enc->alpha_layout =
        (sac_frame){.format = SAC_PIXEL_GRAY8, .width = avc->width, .height = avc->height};
    enc->alpha = setup->alpha;
    enc->last_pts = INT64_MIN;
    enc->step =
        setup->fps.num > 0 ? SAC_MAX(av_rescale_q(1, av_inv_q(setup->fps), avc->time_base), 1) : 1;
}

static sac_result open_one(struct sac_encoder *enc, const char *path, const char *name,
                           const struct sac_encoder_setup *setup)
{
    sac_context *ctx = sac_device_context(enc->dev);
    if (is_too_small(find(name), setup))
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED, "%s: a frame of %dx%d is too small", path,
                        setup->width, setup->height);
    int err = try_open(enc, name, setup);
    if (err >= 0) {
        describe_layout(enc, setup);
        return SAC_OK;
    }
    sac_result res = sac_ffmpeg_fail(ctx, err, name);
    sac_fail_prefix(ctx, res, "%s: encoder ", path);
    avcodec_free_context(&enc->avc);
    return res;
}

/* Try the GPU's own encoder for H.264; if the card has none, that is logged. */
static bool try_gpu(struct sac_encoder *enc, const char *path,
                    const struct sac_encoder_setup *setup)
{
    static const char name[] = "h264_nvenc";
    sac_context      *ctx = sac_device_context(enc->dev);
    if (enc->dev->ops->host_memory || !enc->dev->ops->video_context ||
        strcmp(setup->names[0], "libx264") != 0 || !sac_encoder_exists(name) ||
        is_too_small(find(name), setup))
        return false;
    sac_ffmpeg_log_begin(ctx);
    int err = try_open(enc, name, setup);
    if (err >= 0) {
        describe_layout(enc, setup);
    } else {
        avcodec_free_context(&enc->avc);
        enc->on_gpu = false;
        sac_log(ctx, SAC_LOG_INFO, "%s: no NVENC on %s%s%s: frames are copied to the host", path,
                sac_device_name(enc->dev), sac_ffmpeg_complaint()[0] ? ", " : "",
                sac_ffmpeg_complaint());
    }
    sac_ffmpeg_log_end();
    return err >= 0;
}

sac_result sac_encoder_prepare(struct sac_encoder *enc, sac_device *dev, int width, int height,
                               enum sac_pixel_format format, bool alpha)
{
    const sac_frame colour = {.format = SAC_PIXEL_I420, .width = width, .height = height};
    const sac_frame grey = {.format = SAC_PIXEL_GRAY8, .width = width, .height = height};
    enc->dev = dev;
    if (dev->ops->host_memory || enc->down.dev)
        return SAC_OK;
    const bool rgb = sac_rgb_step(format) > 0; /* which encoders with alpha may take */
    sac_result res = sac_download_open(&enc->down, dev, &colour);
    if (res == SAC_OK && rgb && !alpha)
        res = sac_download_reserve(&enc->down, &colour);
    return res == SAC_OK && alpha ? sac_download_open(&enc->down_alpha, dev, &grey) : res;
}

sac_result sac_encoder_open(struct sac_encoder *enc, sac_device *dev, const char *path,
                            const struct sac_encoder_setup *setup)
{
    sac_context *ctx = sac_device_context(dev);
    sac_result   res = SAC_ERR_UNSUPPORTED;
    enc->picture = av_frame_alloc();
    if (!enc->picture)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "%s: no memory for an encoder", path);
    sac_result prepared =
        sac_encoder_prepare(enc, dev, setup->width, setup->height, setup->format, setup->alpha);
    if (prepared != SAC_OK)
        return prepared;
    if (!setup->named && try_gpu(enc, path, setup)) {
        sac_spares_finish(&enc->down.pictures); /* none comes to the host */
        sac_frame_unref(&enc->down.fitted);
        return SAC_OK;
    }
    for (int i = 0; setup->names[i]; i++) {
        if (!sac_encoder_exists(setup->names[i]) && setup->names[i + 1])
            continue;
        sac_ffmpeg_log_begin(ctx);
        res = open_one(enc, path, setup->names[i], setup);
        sac_ffmpeg_log_end();
        if (res == SAC_OK && i > 0)
            sac_log(ctx, SAC_LOG_WARN, "%s: this FFmpeg has no working %s; encoding with %s%s",
                    path, setup->names[0], setup->names[i],
                    enc->avc->codec_id == AV_CODEC_ID_MPEG4 ? ", whose video browsers do not play"
                                                            : "");
        if (res == SAC_OK)
            break;
    }
    return res;
}

int64_t sac_encoder_step_max_us(const struct sac_encoder *enc)
{
    return INT64_C(1000000) * find(enc->avc->codec->name)->step_max_s;
}

void sac_encoder_describe(const struct sac_encoder *enc, char *buf, size_t size)
{
    const int threads = enc->avc->thread_count;
    if (enc->turns)
        snprintf(buf, size, "%d that take turns of %d frames", enc->encoders, GROUP);
    else
        snprintf(buf, size, "%d thread%s", threads, threads == 1 ? "" : "s");
}

void sac_encoder_close(struct sac_encoder *enc)
{
    sac_turns_destroy(&enc->turns);
    av_buffer_pool_uninit(&enc->waiting);
    av_frame_free(&enc->copy);
    avcodec_free_context(&enc->avc);
    av_frame_free(&enc->picture);
    sac_download_close(&enc->down);
    sac_download_close(&enc->down_alpha);
    sac_pack_finish(&enc->pack);
}

/* ---- frames in ---- */

static bool fits(const struct sac_encoder *enc, const sac_frame *frame, const sac_frame *layout)
{
    /* A frame may be one pixel larger (an odd size): the encoder drops the last column or row. */
    return frame->format == layout->format && frame->orientation == SAC_UPRIGHT &&
           (!sac_is_yuv(layout->format) ||
            (frame->matrix == layout->matrix && frame->range == layout->range)) &&
           (frame->width & enc->size_mask) == layout->width &&
           (frame->height & enc->size_mask) == layout->height;
}

/* As it is downloaded: what grey lacks is made on the host. */
static bool fits_download(const struct sac_encoder *enc, const sac_frame *frame,
                          const sac_frame *layout)
{
    sac_frame like = *frame;
    if (frame->format == SAC_PIXEL_GRAY8 && layout->format == SAC_PIXEL_I420 &&
        layout->range == SAC_RANGE_FULL) {
        like.format = layout->format;
        like.matrix = layout->matrix;
        like.range = layout->range;
    }
    return fits(enc, &like, layout);
}

/* A new reference to a frame in that layout. */
static sac_result fit(struct sac_encoder *enc, sac_frame *frame, const sac_frame *layout,
                      sac_frame **out)
{
    if (fits(enc, frame, layout)) {
        *out = sac_frame_ref(frame);
        return SAC_OK;
    }
    sac_frame *converted = NULL;
    sac_result res = sac_frame_create(enc->dev, layout, &converted);
    if (res == SAC_OK)
        res = sac_frame_convert(frame, SAC_FILTER_AREA, converted);
    if (res != SAC_OK) {
        sac_frame_unref(&converted);
        return res;
    }
    converted->pts_us = frame->pts_us;
    converted->duration_us = frame->duration_us;
    *out = converted;
    return SAC_OK;
}

/* Planes that the encoder reads, and the reference that keeps them. */
struct lent {
    const sac_frame *frame;
    void (*release)(void *owner, uint8_t *data);
    void *owner; /* NULL: there is none */
};

static void release_frame(void *owner, uint8_t *data)
{
    (void)data;
    sac_frame *frame = owner;
    sac_frame_unref(&frame);
}

static void release_memory(void *owner, uint8_t *data)
{
    (void)data;
    struct sac_buffer *memory = owner;
    sac_buffer_unref(&memory);
}

static void take_back(const struct lent *lent)
{
    if (lent->owner)
        lent->release(lent->owner, NULL);
}

/* From plane `first` of the picture on; the reference is released once the encoder no longer needs
 * the picture. */
static int lend(AVFrame *pic, int buf, int first, const struct lent *lent)
{
    pic->buf[buf] = av_buffer_create(lent->frame->plane[0], 1, lent->release, lent->owner,
                                     AV_BUFFER_FLAG_READONLY);
    if (!pic->buf[buf]) {
        take_back(lent);
        return AVERROR(ENOMEM);
    }
    for (int i = 0; i < SAC_PLANES_MAX && first + i < 4; i++) {
        pic->data[first + i] = lent->frame->plane[i];
        pic->linesize[first + i] = (int)lent->frame->pitch_bytes[i];
    }
    return 0;
}

static int lend_both(AVFrame *pic, const struct lent *colour, const struct lent *alpha)
{
    int err = lend(pic, 0, 0, colour);
    if (err < 0)
        take_back(alpha);
    else if (alpha->owner)
        err = lend(pic, 1, 3, alpha);
    return err;
}

/* Takes the references. */
static int fill_picture(struct sac_encoder *enc, const struct lent *colour,
                        const struct lent *alpha)
{
    AVFrame *pic = enc->picture;
    int      err;
    pic->format = enc->avc->pix_fmt;
    pic->width = enc->avc->width;
    pic->height = enc->avc->height;
    pic->color_range = enc->avc->color_range;
    pic->colorspace = enc->avc->colorspace;
    pic->color_primaries = enc->avc->color_primaries; /* prores_ks reads them here */
    pic->color_trc = enc->avc->color_trc;
    pic->sample_aspect_ratio = enc->avc->sample_aspect_ratio;
    if (enc->alpha && sac_pack_is_needed(&enc->layout, enc->avc->pix_fmt)) {
        err = sac_pack_picture(&enc->pack, colour->frame, alpha->frame, pic);
        take_back(colour);
        take_back(alpha);
    } else {
        err = lend_both(pic, colour, alpha);
    }
    if (err >= 0 && enc->on_gpu && !(pic->hw_frames_ctx = av_buffer_ref(enc->avc->hw_frames_ctx)))
        return AVERROR(ENOMEM);
    return err;
}

/* Two frames may fall on one tick of a coarse time base; encoders need growing times. */
static int64_t tick_of(struct sac_encoder *enc, int64_t pts_us)
{
    int64_t pts = av_rescale_q(pts_us, AV_TIME_BASE_Q, enc->avc->time_base);
    if (enc->last_pts != INT64_MIN && pts <= enc->last_pts)
        pts = enc->last_pts + 1;
    return enc->last_pts = pts;
}

static void remember_duration(struct sac_encoder *enc, int64_t pts, int64_t duration_us)
{
    if (enc->gaps.max_us > 0)
        duration_us = SAC_MIN(duration_us, enc->gaps.max_us);
    int64_t  duration = av_rescale_q(duration_us, AV_TIME_BASE_Q, enc->avc->time_base);
    unsigned at = enc->recent_next++ % SAC_COUNT(enc->recent);
    enc->recent[at].pts = pts;
    enc->recent[at].duration = duration > 0 ? duration : enc->step;
}

static int64_t duration_of(const struct sac_encoder *enc, int64_t pts)
{
    for (size_t i = 0; i < SAC_COUNT(enc->recent); i++)
        if (enc->recent[i].pts == pts && enc->recent[i].duration > 0)
            return enc->recent[i].duration;
    return enc->step;
}

/* Pictures of several groups wait for encoders that take turns: more than page-locked memory, of
 * which all streams have a few hundred MB, should hold. */
static int copy_picture(struct sac_encoder *enc)
{
    const AVFrame *pic = enc->picture;
    const int bytes = av_image_get_buffer_size(pic->format, pic->width, pic->height, PICTURE_ALIGN);
    if (!enc->waiting)
        enc->waiting = av_buffer_pool_init((size_t)SAC_MAX(bytes, 0), NULL);
    if (!enc->copy)
        enc->copy = av_frame_alloc();
    if (!enc->waiting || !enc->copy)
        return AVERROR(ENOMEM);
    AVFrame *copy = enc->copy;
    copy->buf[0] = av_buffer_pool_get(enc->waiting);
    if (!copy->buf[0])
        return AVERROR(ENOMEM);
    copy->format = pic->format;
    copy->width = pic->width;
    copy->height = pic->height;
    int err = av_image_fill_arrays(copy->data, copy->linesize, copy->buf[0]->data, pic->format,
                                   pic->width, pic->height, PICTURE_ALIGN);
    if (err >= 0)
        err = av_frame_copy(copy, pic);
    if (err >= 0)
        err = av_frame_copy_props(copy, pic);
    if (err >= 0) {
        av_frame_unref(enc->picture);
        av_frame_move_ref(enc->picture, copy);
    }
    av_frame_unref(copy);
    return err;
}

/* Send the picture, unless filling it failed with err. */
static sac_result encode(struct sac_encoder *enc, const sac_frame *frame, int err)
{
    int64_t pts = tick_of(enc, sac_gaps_apply(&enc->gaps, frame->pts_us - enc->origin_us));
    remember_duration(enc, pts, frame->duration_us);
    enc->picture->pts = pts;
    enc->picture->quality = enc->avc->global_quality; /* a constant quantiser is read from here */
    if (err >= 0 && enc->turns && enc->down.dev)
        err = copy_picture(enc);
    if (err >= 0)
        err = enc->turns ? sac_turns_send_wait(enc->turns, enc->picture)
                         : avcodec_send_frame(enc->avc, enc->picture);
    av_frame_unref(enc->picture);
    return err < 0 ? sac_ffmpeg_fail(sac_device_context(enc->dev), err, enc->avc->codec->name)
                   : SAC_OK;
}

static sac_result send_fitting(struct sac_encoder *enc, sac_frame *frame, sac_frame *alpha)
{
    sac_frame *fitting = NULL, *fitting_alpha = NULL;
    sac_result res = enc->on_gpu
                         ? sac_nvenc_fit(enc, frame, fits(enc, frame, &enc->layout), &fitting)
                         : fit(enc, frame, &enc->layout, &fitting);
    if (res == SAC_OK && alpha)
        res = fit(enc, alpha, &enc->alpha_layout, &fitting_alpha);
    if (res != SAC_OK) {
        sac_frame_unref(&fitting);
        return res;
    }
    const struct lent colour = {fitting, release_frame, fitting};
    const struct lent over = {fitting_alpha, release_frame, fitting_alpha};
    return encode(enc, frame, fill_picture(enc, &colour, &over));
}

/* Start copying the frame (or NULL) and its alpha to the host, and encode the one before it. */
static sac_result send_downloaded(struct sac_encoder *enc, sac_frame *frame, sac_frame *alpha)
{
    sac_frame          host, host_alpha;
    struct sac_buffer *memory = NULL, *memory_alpha = NULL;
    sac_result         res = sac_download_end_wait(&enc->down, &host, &memory);
    if (res == SAC_OK)
        res = sac_download_end_wait(&enc->down_alpha, &host_alpha, &memory_alpha);
    if (res == SAC_OK && frame)
        res = sac_download_begin(&enc->down, frame, fits_download(enc, frame, &enc->layout),
                                 &enc->layout);
    if (res == SAC_OK && alpha)
        res = sac_download_begin(&enc->down_alpha, alpha, fits(enc, alpha, &enc->alpha_layout),
                                 &enc->alpha_layout);
    if (res == SAC_OK && memory) {
        const struct lent colour = {&host, release_memory, memory};
        const struct lent over = {&host_alpha, release_memory, memory_alpha};
        return encode(enc, &host, fill_picture(enc, &colour, &over));
    }
    sac_buffer_unref(&memory);
    sac_buffer_unref(&memory_alpha);
    return res;
}

sac_result sac_encoder_send(struct sac_encoder *enc, sac_frame *frame, sac_frame *alpha)
{
    const bool downloads = enc->down.dev && !enc->on_gpu;
    sac_result res = SAC_OK;
    if (downloads)
        res = send_downloaded(enc, frame, alpha);
    else if (frame)
        res = send_fitting(enc, frame, alpha);
    if (frame || res != SAC_OK)
        return res;
    int err =
        enc->turns ? sac_turns_send_wait(enc->turns, NULL) : avcodec_send_frame(enc->avc, NULL);
    return err < 0 && err != AVERROR_EOF
               ? sac_ffmpeg_fail(sac_device_context(enc->dev), err, "encoder")
               : SAC_OK;
}

sac_result sac_encoder_receive(struct sac_encoder *enc, AVPacket *packet)
{
    int err = enc->turns ? sac_turns_receive_wait(enc->turns, packet)
                         : avcodec_receive_packet(enc->avc, packet);
    if (err == AVERROR(EAGAIN))
        return SAC_AGAIN;
    if (err == AVERROR_EOF)
        return SAC_EOS;
    if (err < 0)
        return sac_ffmpeg_fail(sac_device_context(enc->dev), err, enc->avc->codec->name);
    packet->duration = duration_of(enc, packet->pts);
    return SAC_OK;
}
