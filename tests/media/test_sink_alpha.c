/* SPDX-License-Identifier: Apache-2.0 */
/* Mattes as grey video, and video with alpha: what FFmpeg's own decoders give back. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/imgutils.h>
#include <libavutil/intreadwrite.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>

#include <saccade/image.h>
#include <saccade/sink.h>

#include "device/format.h"
#include "media/media.h"
#include "tests/media/apart.h"
#include "tests/media/reading.h"
#include "tests/temporary.h"

/* ---- frames made here ---- */

/* A disc with a soft edge that moves right; 0 and 255 cover most of the picture. */
static uint8_t matte_at(int x, int y, int width, int height, int number)
{
    const double cx = width * 0.5 + 4 * number, cy = height * 0.5, r = height * 0.3;
    const double v = r - hypot(x - cx, y - cy);
    return (uint8_t)(255 * SAC_CLAMP(v / 8 + 0.5, 0.0, 1.0));
}

static sac_frame *matte_of(sac_device *on, int width, int height, int number)
{
    const sac_frame desc = {.format = SAC_PIXEL_GRAY8,
                            .width = width,
                            .height = height,
                            .pts_us = number * 40000,
                            .duration_us = 40000};
    sac_frame      *matte = NULL;
    assert_sac_ok(sac_frame_create(on, &desc, &matte));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            matte->plane[0][(size_t)y * matte->pitch_bytes[0] + (size_t)x] =
                matte_at(x, y, width, height, number);
    return matte;
}

/* Every byte of every plane differs from its neighbours, smoothly; of P010 the low bits are 0. */
static sac_frame *picture_of(sac_device *on, enum sac_pixel_format format, int width, int height,
                             int number)
{
    const sac_frame         desc = {.format = format,
                                    .width = width,
                                    .height = height,
                                    .matrix = SAC_MATRIX_BT709,
                                    .pts_us = number * 40000,
                                    .duration_us = 40000};
    struct sac_plane_layout plane[SAC_PLANES_MAX];
    sac_frame              *frame = NULL;
    const int               n = sac_frame_planes(format, width, height, plane);
    assert_sac_ok(sac_frame_create(on, &desc, &frame));
    for (int p = 0; p < n; p++)
        for (int y = 0; y < plane[p].rows; y++)
            for (size_t k = 0; k < plane[p].row_bytes; k++) {
                const int v = 60 + (int)(k / 2 + (size_t)(y + 3 * number + 40 * p)) % 120;
                frame->plane[p][(size_t)y * frame->pitch_bytes[p] + k] =
                    (uint8_t)(format == SAC_PIXEL_P010 && k % 2 == 0 ? v & 0xc0 : v);
            }
    return frame;
}

static const struct sac_sink_params with_alpha = {.crf = 23, .alpha = 1};

/* `frames` pictures with their mattes, or mattes alone (SAC_PIXEL_GRAY8). */
static sac_result write_on(sac_device *on, const char *path, enum sac_pixel_format format,
                           int width, int height, int frames, const struct sac_sink_params *params)
{
    sac_sink  *sink = NULL;
    sac_result res = sac_sink_create(on, path, NULL, params, &sink);
    for (int i = 0; res == SAC_OK && i < frames; i++) {
        sac_frame *matte = matte_of(on, width, height, i);
        if (params && params->alpha) {
            sac_frame *frame = picture_of(on, format, width, height, i);
            res = sac_sink_write_alpha_wait(sink, frame, matte);
            sac_frame_unref(&frame);
        } else {
            res = sac_sink_write_wait(sink, matte);
        }
        sac_frame_unref(&matte);
    }
    if (res == SAC_OK)
        res = sac_sink_finish(sink);
    sac_sink_destroy(&sink);
    return res;
}

/* ---- files read back, by FFmpeg alone ---- */

enum { PICTURES_MAX = 64 };

struct decoded {
    int                n;
    AVFrame           *picture[PICTURES_MAX];
    AVFrame           *beside[PICTURES_MAX]; /* WebM's alpha: the luma of a stream of its own */
    int                beside_count;
    AVCodecParameters *video;
};

static AVCodecContext *decoder_for(const AVCodecParameters *video)
{
    AVCodecContext *avc = avcodec_alloc_context3(avcodec_find_decoder(video->codec_id));
    assert_true(avcodec_parameters_to_context(avc, video) >= 0);
    avc->thread_count = 1;
    assert_int_equal(avcodec_open2(avc, NULL, NULL), 0);
    return avc;
}

static int decode(AVCodecContext *avc, const AVPacket *packet, AVFrame **out, int n)
{
    assert_int_equal(avcodec_send_packet(avc, packet), 0);
    for (;; n++) {
        assert_true(n < PICTURES_MAX);
        out[n] = av_frame_alloc();
        if (avcodec_receive_frame(avc, out[n]) < 0)
            break;
    }
    av_frame_free(&out[n]);
    return n;
}

static void decode_beside(AVCodecContext *avc, const AVPacket *packet, struct decoded *d)
{
    size_t         size = 0;
    const uint8_t *side =
        av_packet_get_side_data(packet, AV_PKT_DATA_MATROSKA_BLOCKADDITIONAL, &size);
    if (!side)
        return;
    assert_true(size > 8);
    assert_int_equal(AV_RB64(side), 1); /* BlockAddID 1: alpha */
    AVPacket *alpha = av_packet_alloc();
    assert_int_equal(av_new_packet(alpha, (int)size - 8), 0);
    memcpy(alpha->data, side + 8, size - 8);
    d->beside_count = decode(avc, alpha, d->beside, d->beside_count);
    av_packet_free(&alpha);
}

static struct decoded decode_file(const char *path)
{
    struct decoded   d = {.video = avcodec_parameters_alloc()};
    AVFormatContext *fmt = NULL;
    AVPacket        *packet = av_packet_alloc();
    av_log_set_level(AV_LOG_ERROR);
    assert_int_equal(avformat_open_input(&fmt, path, NULL, NULL), 0);
    assert_true(avformat_find_stream_info(fmt, NULL) >= 0);
    const int video = av_find_best_stream(fmt, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
    assert_true(video >= 0);
    avcodec_parameters_copy(d.video, fmt->streams[video]->codecpar);
    AVCodecContext *avc = decoder_for(d.video), *second = decoder_for(d.video);
    while (av_read_frame(fmt, packet) >= 0) {
        if (packet->stream_index == video) {
            decode_beside(second, packet, &d);
            d.n = decode(avc, packet, d.picture, d.n);
        }
        av_packet_unref(packet);
    }
    d.n = decode(avc, NULL, d.picture, d.n);
    avcodec_free_context(&avc);
    avcodec_free_context(&second);
    av_packet_free(&packet);
    avformat_close_input(&fmt);
    return d;
}

static void decoded_free(struct decoded *d)
{
    for (int i = 0; i < d->n; i++)
        av_frame_free(&d->picture[i]);
    for (int i = 0; i < d->beside_count; i++)
        av_frame_free(&d->beside[i]);
    avcodec_parameters_free(&d->video);
}

/* The picture as `ffmpeg -pix_fmt gray` gives it. */
static AVFrame *grey_of(const AVFrame *picture)
{
    AVFrame *grey = av_frame_alloc();
    grey->format = AV_PIX_FMT_GRAY8;
    grey->width = picture->width;
    grey->height = picture->height;
    assert_int_equal(av_frame_get_buffer(grey, 0), 0);
    struct SwsContext *scaler = sws_getContext(
        picture->width, picture->height, (enum AVPixelFormat)picture->format, grey->width,
        grey->height, AV_PIX_FMT_GRAY8, SWS_BICUBIC | SWS_ACCURATE_RND, NULL, NULL, NULL);
    const int *matrix = sws_getCoefficients(SWS_CS_ITU709);
    sws_setColorspaceDetails(scaler, matrix, picture->color_range == AVCOL_RANGE_JPEG, matrix, 1, 0,
                             1 << 16, 1 << 16);
    sws_scale(scaler, (const uint8_t *const *)picture->data, picture->linesize, 0, picture->height,
              grey->data, grey->linesize);
    sws_freeContext(scaler);
    return grey;
}

static int at(const AVFrame *picture, int plane, int x, int y)
{
    const uint8_t *row = picture->data[plane] + (ptrdiff_t)y * picture->linesize[plane];
    return av_pix_fmt_desc_get(picture->format)->comp[0].depth > 8
               ? ((const uint16_t *)(const void *)row)[x]
               : row[x];
}

/* Mean and largest difference from the matte; all of it where the matte is flat around. */
static void compare_with_matte(const AVFrame *picture, int plane, int shift, int number,
                               double *mean, int *most, int *most_flat)
{
    const int w = picture->width, h = picture->height;
    double    sum = 0;
    *most = *most_flat = 0;
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            const int want = matte_at(x, y, w, h, number);
            const int off = abs((at(picture, plane, x, y) >> shift) - want);
            bool      flat = want == 0 || want == 255;
            for (int k = 0; k < 4 && flat; k++)
                flat =
                    matte_at(x + (k & 1 ? 24 : -24), y + (k & 2 ? 24 : -24), w, h, number) == want;
            *most = SAC_MAX(*most, off);
            *most_flat = flat ? SAC_MAX(*most_flat, off) : *most_flat;
            sum += off;
        }
    *mean = sum / (w * h);
}

/* ---- grey ---- */

static void a_matte_comes_back_from_each_container(void **state)
{
    (void)state;
    static const char *const names[] = {"g.mp4", "g.m4v", "g.mov", "g.mkv",
                                        "g.avi", "g.ts",  "g.webm"};
    for (size_t i = 0; i < SAC_COUNT(names); i++) {
        const char *to = scratch("%s", names[i]);
        assert_sac_ok(write_on(dev, to, SAC_PIXEL_GRAY8, 320, 192, 20, NULL));
        struct decoded d = decode_file(to);
        assert_int_equal(d.n, 20);
        if (d.video->codec_id != AV_CODEC_ID_MPEG4)
            assert_int_equal(d.picture[0]->color_range, AVCOL_RANGE_JPEG);
        for (int n = 0; n < d.n; n++) {
            AVFrame *grey = grey_of(d.picture[n]);
            double   mean;
            int      most, flat;
            compare_with_matte(grey, 0, 0, n, &mean, &most, &flat);
            if (mean > 1.5 || flat > 1 || most > 60)
                fail_msg("%s, frame %d: off by %.2f, at most %d, %d where it is flat", names[i], n,
                         mean, most, flat);
            if (n == d.n - 1)
                print_message("%s: off by %.2f, at most %d, %d where it is flat\n", names[i], mean,
                              most, flat);
            av_frame_free(&grey);
        }
        decoded_free(&d);
    }
}

static const int sizes[][2] = {{1, 1}, {3, 5}, {2, 7}, {321, 193}, {4096, 16}, {320, 192}};

static void a_matte_in_ffv1_is_exact(void **state)
{
    (void)state;
    struct sac_sink_params params = sac_sink_params_default();
    params.encoder = "ffv1";
    for (size_t i = 0; i < SAC_COUNT(sizes); i++) {
        const char *to = scratch("g%zu.mkv", i);
        assert_sac_ok(write_on(dev, to, SAC_PIXEL_GRAY8, sizes[i][0], sizes[i][1], 3, &params));
        struct decoded d = decode_file(to);
        assert_int_equal(d.n, 3);
        assert_int_equal(d.video->format, AV_PIX_FMT_GRAY8);
        assert_int_equal(d.video->width, sizes[i][0]);
        assert_int_equal(d.video->height, sizes[i][1]);
        for (int n = 0; n < d.n; n++) {
            double mean;
            int    most, flat;
            compare_with_matte(d.picture[n], 0, 0, n, &mean, &most, &flat);
            assert_int_equal(most, 0);
        }
        decoded_free(&d);
    }
}

/* ---- alpha ---- */

static const enum sac_pixel_format formats[] = {SAC_PIXEL_NV12,  SAC_PIXEL_I420,  SAC_PIXEL_P010,
                                                SAC_PIXEL_RGB24, SAC_PIXEL_BGR24, SAC_PIXEL_RGBA,
                                                SAC_PIXEL_BGRA,  SAC_PIXEL_GRAY8};

/* Sample c (Y, U, V or R, G, B) of a frame, in its own bits. */
static int sample_of(const sac_frame *f, int c, int x, int y)
{
    const uint8_t *row = f->plane[0] + (size_t)y * f->pitch_bytes[0];
    const int      step = sac_rgb_step(f->format);
    if (step)
        return row[step * x + sac_rgb_place(f->format, c)];
    if (c == 0 || f->format == SAC_PIXEL_GRAY8)
        return f->format == SAC_PIXEL_P010 ? ((const uint16_t *)(const void *)row)[x] >> 6
               : c == 0                    ? row[x]
                                           : 128;
    const int plane = f->format == SAC_PIXEL_I420 ? c : 1, pair = plane == c && c == 2 ? 0 : c - 1;
    row = f->plane[plane] + (size_t)(y / 2) * f->pitch_bytes[plane];
    if (f->format == SAC_PIXEL_I420)
        return row[x / 2];
    if (f->format == SAC_PIXEL_P010)
        return ((const uint16_t *)(const void *)row)[x / 2 * 2 + pair] >> 6;
    return row[x / 2 * 2 + pair];
}

/* The same of a decoded picture; c 3 is alpha. */
static int decoded_sample(const AVFrame *picture, int c, int x, int y)
{
    const AVPixFmtDescriptor *about = av_pix_fmt_desc_get(picture->format);
    if (about->flags & AV_PIX_FMT_FLAG_RGB)
        return at(picture, 0, 4 * x + (c == 3 ? 3 : 2 - c), y);
    if (c == 1 || c == 2)
        return at(picture, c, x >> about->log2_chroma_w, y >> about->log2_chroma_h);
    return at(picture, c, x, y);
}

static void ffv1_keeps_frame_and_alpha(void **state)
{
    (void)state;
    for (size_t f = 0; f < SAC_COUNT(formats); f++)
        for (size_t i = 0; i < SAC_COUNT(sizes); i++) {
            const int   w = sizes[i][0], h = sizes[i][1];
            const char *to = scratch("a%zu-%zu.mkv", f, i);
            assert_sac_ok(write_on(dev, to, formats[f], w, h, 3, &with_alpha));
            struct decoded d = decode_file(to);
            assert_int_equal(d.n, 3);
            assert_int_equal(d.picture[0]->width, w);
            assert_int_equal(d.picture[0]->height, h);
            const int alpha_shift = formats[f] == SAC_PIXEL_P010 ? 2 : 0;
            for (int n = 0; n < d.n; n++) {
                sac_frame *want = picture_of(dev, formats[f], w, h, n);
                for (int y = 0; y < h; y++)
                    for (int x = 0; x < w; x++) {
                        assert_int_equal(decoded_sample(d.picture[n], 3, x, y) >> alpha_shift,
                                         matte_at(x, y, w, h, n));
                        for (int c = 0; c < 3; c++)
                            if (decoded_sample(d.picture[n], c, x, y) != sample_of(want, c, x, y))
                                fail_msg("%s of %dx%d, channel %d at %d, %d: %d, not %d",
                                         sac_pixel_format_name(formats[f]), w, h, c, x, y,
                                         decoded_sample(d.picture[n], c, x, y),
                                         sample_of(want, c, x, y));
                    }
                sac_frame_unref(&want);
            }
            decoded_free(&d);
        }
}

/* What a frame's sample is in Y, U, V of 10 bits and limited range. */
static double yuv_of(const sac_frame *f, int c, int x, int y)
{
    if (f->format == SAC_PIXEL_GRAY8)
        return c ? 512 : 64 + 4 * 219.0 / 255 * sample_of(f, 0, x, y);
    if (!sac_rgb_step(f->format))
        return sample_of(f, c, x, y) * (f->format == SAC_PIXEL_P010 ? 1 : 4);
    const double r = sample_of(f, 0, x, y), g = sample_of(f, 1, x, y), b = sample_of(f, 2, x, y);
    const double luma = 0.2126 * r + 0.7152 * g + 0.0722 * b; /* BT.709 */
    const double u = (b - luma) / 1.8556, v = (r - luma) / 1.5748;
    return c == 0 ? 64 + 876 * luma / 255 : 512 + 896 * (c == 1 ? u : v) / 255;
}

static void prores_keeps_alpha_and_nearly_the_frame(void **state)
{
    (void)state;
    if (!sac_encoder_exists("prores_ks"))
        skip();
    for (size_t f = 0; f < SAC_COUNT(formats); f++)
        for (size_t i = 0; i < SAC_COUNT(sizes); i++) {
            const int   w = sizes[i][0], h = sizes[i][1];
            const char *to = scratch("p%zu-%zu.mov", f, i);
            assert_sac_ok(write_on(dev, to, formats[f], w, h, 2, &with_alpha));
            struct decoded d = decode_file(to);
            double         off[3] = {0};
            assert_int_equal(d.n, 2);
            assert_int_equal(d.video->codec_tag, MKTAG('a', 'p', '4', 'h'));
            /* the decoder may give more bits than there are */
            const int more = av_pix_fmt_desc_get(d.picture[0]->format)->comp[0].depth - 10;
            assert_in_range(more, 0, 2);
            assert_int_equal(d.picture[0]->width, w);
            assert_int_equal(d.picture[0]->height, h);
            sac_frame *want = picture_of(dev, formats[f], w, h, 1);
            for (int y = 0; y < h; y++)
                for (int x = 0; x < w; x++) {
                    if (at(d.picture[1], 3, x, y) >> (2 + more) != matte_at(x, y, w, h, 1))
                        fail_msg("%s of %dx%d, alpha at %d, %d: %d, not %d",
                                 sac_pixel_format_name(formats[f]), w, h, x, y,
                                 at(d.picture[1], 3, x, y), matte_at(x, y, w, h, 1));
                    for (int c = 0; c < 3; c++)
                        off[c] += fabs((double)at(d.picture[1], c, x, y) / (1 << more) -
                                       yuv_of(want, c, x, y)) /
                                  (w * h);
                }
            for (int c = 0; c < 3; c++)
                if (off[c] > 8) /* 2 of 255 */
                    fail_msg("%s of %dx%d: channel %d is off by %.1f of 1023",
                             sac_pixel_format_name(formats[f]), w, h, c, off[c]);
            sac_frame_unref(&want);
            decoded_free(&d);
        }
}

static void webm_has_alpha_beside_the_picture(void **state)
{
    (void)state;
    if (!sac_encoder_exists("libvpx-vp9"))
        skip();
    for (size_t i = 0; i < SAC_COUNT(sizes); i++) {
        const int   w = sizes[i][0], h = sizes[i][1];
        const char *to = scratch("v%zu.webm", i);
        assert_sac_ok(write_on(dev, to, SAC_PIXEL_NV12, w, h, 12, &with_alpha));
        struct decoded d = decode_file(to);
        assert_int_equal(d.n, 12);
        assert_int_equal(d.beside_count, 12);
        assert_int_equal(d.picture[0]->width, w);
        assert_int_equal(d.picture[0]->height, h);
        for (int n = 0; n < d.n; n++) {
            sac_frame *want = picture_of(dev, SAC_PIXEL_NV12, w, h, n);
            double     mean, luma = 0;
            int        most, flat;
            compare_with_matte(d.beside[n], 0, 0, n, &mean, &most, &flat);
            for (int y = 0; y < h; y++)
                for (int x = 0; x < w; x++)
                    luma += abs(at(d.picture[n], 0, x, y) - sample_of(want, 0, x, y));
            const bool tiny = SAC_MIN(w, h) <= 16; /* a block holds it all */
            if (mean > (tiny ? 8 : 2) || flat > (tiny ? 12 : 2) || luma / (w * h) > 8)
                fail_msg("%dx%d, frame %d: alpha off by %.2f, %d where flat; luma by %.2f", w, h, n,
                         mean, flat, luma / (w * h));
            if (n == d.n - 1)
                print_message("%dx%d: alpha off by %.2f, at most %d, %d where it is flat; luma by "
                              "%.2f\n",
                              w, h, mean, most, flat, luma / (w * h));
            sac_frame_unref(&want);
        }
        decoded_free(&d);
    }
}

/* ---- what comes from the source ---- */

struct stream_facts {
    int audio_packets;
    int alpha_mode; /* -1: not stated */
};
static struct stream_facts facts_of(const char *path)
{
    struct stream_facts facts = {.alpha_mode = -1};
    AVFormatContext    *fmt = NULL;
    AVPacket           *packet = av_packet_alloc();
    assert_int_equal(avformat_open_input(&fmt, path, NULL, NULL), 0);
    assert_true(avformat_find_stream_info(fmt, NULL) >= 0);
    for (unsigned i = 0; i < fmt->nb_streams; i++) {
        const AVDictionaryEntry *mode =
            av_dict_get(fmt->streams[i]->metadata, "alpha_mode", NULL, 0);
        facts.alpha_mode = mode ? atoi(mode->value) : facts.alpha_mode;
    }
    while (av_read_frame(fmt, packet) >= 0) {
        const AVStream *st = fmt->streams[packet->stream_index];
        facts.audio_packets += st->codecpar->codec_type == AVMEDIA_TYPE_AUDIO;
        av_packet_unref(packet);
    }
    av_packet_free(&packet);
    avformat_close_input(&fmt);
    return facts;
}

static void transcode_with_alpha(const char *from, const char *to)
{
    struct sac_source_params params = sac_source_params_default();
    sac_source              *src = NULL;
    sac_sink                *sink = NULL;
    sac_frame               *frame = NULL;
    params.keep_packets = 1;
    assert_sac_ok(sac_source_open(dev, from, &params, &src));
    assert_sac_ok(sac_sink_create(dev, to, src, &with_alpha, &sink));
    for (int n = 0; sac_source_read_wait(src, &frame) == SAC_OK; n++) {
        sac_frame *alpha = matte_of(dev, frame->width, frame->height, n);
        assert_sac_ok(sac_sink_write_alpha_wait(sink, frame, alpha));
        sac_frame_unref(&alpha);
        sac_frame_unref(&frame);
    }
    assert_sac_ok(sac_sink_finish(sink));
    sac_sink_destroy(&sink);
    sac_source_close(&src);
}

static void audio_times_and_colours_are_the_sources(void **state)
{
    (void)state;
    static const int64_t pts[] = {0, 40, 80, 200, 1000, 1040, 1500};
    static const struct {
        const char *to, *encoder, *audio;
    } cases[] = {{"like.mkv", "ffv1", "aac"},
                 {"like.mov", "prores_ks", "aac"},
                 {"like.webm", "libvpx-vp9", "libopus"}};
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        if (!sac_encoder_exists(cases[i].encoder) || !avcodec_find_encoder_by_name(cases[i].audio))
            continue; /* a lean FFmpeg */
        const char *from = scratch("like-%s.mkv", cases[i].audio), *to = scratch("%s", cases[i].to);
        clip_write(from, &(struct clip){.frames = SAC_COUNT(pts),
                                        .pts = pts,
                                        .time_base = 1000,
                                        .codec = "ffv1",
                                        .audio = 1,
                                        .audio_ms = 1500,
                                        .audio_codec = cases[i].audio,
                                        .tagged = true});
        transcode_with_alpha(from, to);
        const struct stream_facts in = facts_of(from), out = facts_of(to);
        assert_true(in.audio_packets > 10);
        assert_int_equal(out.audio_packets, in.audio_packets);
        if (strstr(to, ".webm"))
            assert_int_equal(out.alpha_mode, 1);
        struct reading r = read_all(to, NULL);
        assert_int_equal(r.frames, SAC_COUNT(pts));
        for (int n = 0; n < r.frames; n++) {
            assert_int_equal(r.number[n], n);
            assert_in_range(r.pts_us[n] - pts[n] * 1000 + 1000, 0, 2000);
        }
        struct decoded d = decode_file(to);
        if (d.video->color_space != AVCOL_SPC_BT2020_NCL)
            fail_msg("%s: matrix %d", to, d.video->color_space);
        if (d.video->color_primaries != AVCOL_PRI_BT2020)
            fail_msg("%s: color_primaries %d", to, d.video->color_primaries);
        if (d.video->color_trc != AVCOL_TRC_SMPTE2084)
            fail_msg("%s: color_trc %d", to, d.video->color_trc);
        assert_int_not_equal(d.video->color_range, AVCOL_RANGE_JPEG);
        decoded_free(&d);
    }
}

static void grey_keeps_audio_and_times(void **state)
{
    (void)state;
    const char              *from = scratch("grey-in.mp4"), *to = scratch("grey-out.mp4");
    struct sac_source_params params = sac_source_params_default();
    sac_source              *src = NULL;
    sac_sink                *sink = NULL;
    sac_frame               *frame = NULL;
    params.keep_packets = 1;
    clip_write(from, &(struct clip){.frames = 25, .audio = 1, .tagged = true});
    assert_sac_ok(sac_source_open(dev, from, &params, &src));
    assert_sac_ok(sac_sink_create(dev, to, src, NULL, &sink));
    for (int n = 0; sac_source_read_wait(src, &frame) == SAC_OK; n++) {
        sac_frame *matte = matte_of(dev, frame->width, frame->height, n);
        matte->pts_us = frame->pts_us;
        assert_sac_ok(sac_sink_write_wait(sink, matte));
        sac_frame_unref(&matte);
        sac_frame_unref(&frame);
    }
    assert_sac_ok(sac_sink_finish(sink));
    sac_sink_destroy(&sink);
    sac_source_close(&src);
    assert_int_equal(facts_of(to).audio_packets, facts_of(from).audio_packets);
    struct reading r = read_all(to, NULL);
    assert_int_equal(r.frames, 25);
    assert_int_equal(r.info.range, SAC_RANGE_FULL);
    assert_int_equal(r.info.matrix, SAC_MATRIX_BT2020);
    for (int n = 0; n < 25; n++)
        assert_in_range(r.pts_us[n] - n * 40000 + 1000, 0, 2000);
}

/* ---- sizes that change, faults ---- */

/* Frame and alpha are both scaled to the first one's size. */
static void scales_to_the_first_frame(void **state)
{
    (void)state;
    const char *to = scratch("sizes.mkv");
    sac_sink   *sink = NULL;
    assert_sac_ok(sac_sink_create(dev, to, NULL, &with_alpha, &sink));
    for (int i = 0; i < 3; i++) {
        const int  w = 320 << (i % 2), h = 192 << (i % 2);
        sac_frame *frame = picture_of(dev, SAC_PIXEL_NV12, w, h, i);
        sac_frame *alpha = matte_of(dev, w, h, 0);
        assert_sac_ok(sac_sink_write_alpha_wait(sink, frame, alpha));
        sac_frame_unref(&frame);
        sac_frame_unref(&alpha);
    }
    assert_sac_ok(sac_sink_finish(sink));
    sac_sink_destroy(&sink);
    struct decoded d = decode_file(to);
    double         mean;
    int            most, flat;
    assert_int_equal(d.n, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(d.picture[i]->width, 320);
        compare_with_matte(d.picture[i], 3, 0, 0, &mean, &most, &flat);
        assert_true(i == 1 ? mean < 3 && flat == 0 : most == 0);
    }
    decoded_free(&d);
}

static void says_what_writes_alpha(void **state)
{
    (void)state;
    static const char *const without[] = {"a.mp4", "a.m4v", "a.avi", "a.ts"};
    struct sac_sink_params   params = with_alpha;
    sac_sink                *sink = NULL;
    for (size_t i = 0; i < SAC_COUNT(without); i++) {
        const char *to = scratch("%s", without[i]);
        assert_why(sac_sink_check(test_context(), to, &params), SAC_ERR_ARG,
                   "have .mov (prores_ks), .mkv (ffv1), .webm (libvpx-vp9)");
        assert_why(sac_sink_create(dev, to, NULL, &params, &sink), SAC_ERR_ARG,
                   "no alpha is written into");
    }
    assert_why(sac_sink_check(test_context(), "a.xyz", &params), SAC_ERR_ARG, "have .mp4, ");
    assert_sac_ok(sac_sink_check(test_context(), "a.mkv", &params));
    assert_false(access("a.mkv", F_OK) == 0);
    params.encoder = "mpeg4";
    assert_why(sac_sink_create(dev, scratch("a.mkv"), NULL, &params, &sink), SAC_ERR_UNSUPPORTED,
               "encoder 'mpeg4' writes no alpha; have .mov (prores_ks), ");
    params.encoder = NULL;
    params.alpha = 2;
    assert_why(sac_sink_create(dev, scratch("a.mkv"), NULL, &params, &sink), SAC_ERR_ARG, "alpha");
    params = sac_sink_params_default();
    params.preset = "nonsense";
    assert_why(sac_sink_check(test_context(), "a.mp4", &params), SAC_ERR_UNSUPPORTED, "libx264");
    assert_why(sac_sink_check(test_context(), NULL, NULL), SAC_ERR_ARG, "path");
}

static void alpha_must_be_the_frames(void **state)
{
    (void)state;
    sac_frame *frame = picture_of(dev, SAC_PIXEL_I420, 64, 48, 0), *alpha = NULL,
              *small = matte_of(dev, 63, 48, 0), *fits = matte_of(dev, 64, 48, 0);
    sac_sink *sink = NULL, *plain = NULL;
    alpha = picture_of(dev, SAC_PIXEL_I420, 64, 48, 0);
    assert_sac_ok(sac_sink_create(dev, scratch("must.mkv"), NULL, &with_alpha, &sink));
    assert_sac_ok(sac_sink_create(dev, scratch("plain.mkv"), NULL, NULL, &plain));
    assert_why(sac_sink_write_alpha_wait(sink, frame, alpha), SAC_ERR_ARG, "alpha in i420");
    assert_why(sac_sink_write_alpha_wait(sink, frame, small), SAC_ERR_ARG, "alpha of 63x48");
    assert_why(sac_sink_write_alpha_wait(sink, frame, NULL), SAC_ERR_ARG, "alpha is NULL");
    assert_why(sac_sink_write_wait(sink, frame), SAC_ERR_ARG, "comes with its alpha");
    assert_why(sac_sink_write_alpha_wait(plain, frame, fits), SAC_ERR_ARG, "come without alpha");
    assert_sac_ok(sac_sink_write_alpha_wait(sink, frame, fits)); /* none of that broke it */
    assert_sac_ok(sac_sink_finish(sink));
    sac_sink_destroy(&sink);
    sac_sink_destroy(&plain);
    sac_frame_unref(&frame);
    sac_frame_unref(&alpha);
    sac_frame_unref(&small);
    sac_frame_unref(&fits);
}

static void nothing_is_left_of_what_fails(void **state)
{
    (void)state;
    static const char *const endings[] = {"mkv", "mov", "webm"};
    for (size_t i = 0; i < SAC_COUNT(endings); i++) {
        const char *full = scratch("full.%s", endings[i]), *cut = scratch("cut.%s", endings[i]);
        sac_sink   *sink = NULL;
        if (sac_sink_check(test_context(), full, &with_alpha) != SAC_OK)
            continue; /* a lean FFmpeg */
        assert_int_equal(symlink("/dev/full", full), 0);
        assert_why(write_on(dev, full, SAC_PIXEL_I420, 320, 192, 40, &with_alpha), SAC_ERR_IO,
                   "No space left on device");
        assert_why(write_on(dev, scratch("missing/o.%s", endings[i]), SAC_PIXEL_I420, 64, 48, 1,
                            &with_alpha),
                   SAC_ERR_IO, "No such file or directory");
        assert_sac_ok(sac_sink_create(dev, cut, NULL, &with_alpha, &sink));
        sac_frame *frame = picture_of(dev, SAC_PIXEL_I420, 320, 192, 0);
        sac_frame *alpha = matte_of(dev, 320, 192, 0);
        assert_sac_ok(sac_sink_write_alpha_wait(sink, frame, alpha));
        sac_frame_unref(&frame);
        sac_frame_unref(&alpha);
        assert_int_equal(temporaries_of(cut, NULL, 0), 1);
        sac_sink_destroy(&sink); /* interrupted */
        assert_int_equal(temporaries_of(cut, NULL, 0), 0);
        assert_true(access(cut, F_OK) != 0);
    }
}

static void survives_every_failed_allocation(void **state)
{
    (void)state;
    const char *to = scratch("allocations.mkv");
    sac_result  res = SAC_ERR_MEMORY;
    long        n = 1;
    for (; n < 200 && res != SAC_OK; n++) {
        sac_sink  *sink = NULL;
        sac_frame *frame = picture_of(dev, SAC_PIXEL_RGB24, 64, 48, 0);
        sac_frame *alpha = matte_of(dev, 64, 48, 0);
        sac_alloc_fail_at(n);
        res = sac_sink_create(dev, to, NULL, &with_alpha, &sink);
        if (res == SAC_OK)
            res = sac_sink_write_alpha_wait(sink, frame, alpha);
        if (res == SAC_OK)
            res = sac_sink_finish(sink);
        sac_alloc_fail_at(0);
        assert_true(res == SAC_OK || res == SAC_ERR_MEMORY);
        assert_true((access(to, F_OK) == 0) == (res == SAC_OK));
        sac_sink_destroy(&sink);
        sac_frame_unref(&frame);
        sac_frame_unref(&alpha);
        assert_int_equal(temporaries_of(to, NULL, 0), 0);
    }
    assert_int_equal(res, SAC_OK);
    assert_true(n > 3);
}

/* ---- a device with memory of its own ---- */

/* Files of Matroska have random numbers in them. */
static void assert_same_pictures(const char *a, const char *b)
{
    struct decoded x = decode_file(a), y = decode_file(b);
    assert_int_equal(x.n, y.n);
    assert_int_equal(x.beside_count, y.beside_count);
    for (int i = 0; i < x.n + x.beside_count; i++) {
        const AVFrame *p = i < x.n ? x.picture[i] : x.beside[i - x.n];
        const AVFrame *q = i < x.n ? y.picture[i] : y.beside[i - x.n];
        for (int c = 0; c < 4 && p->data[c]; c++) {
            const int rows =
                c == 1 || c == 2
                    ? AV_CEIL_RSHIFT(p->height, av_pix_fmt_desc_get(p->format)->log2_chroma_h)
                    : p->height;
            const int bytes = av_image_get_linesize(p->format, p->width, c);
            assert_int_equal(p->format, q->format);
            for (int row = 0; row < rows; row++)
                assert_memory_equal(p->data[c] + (ptrdiff_t)row * p->linesize[c],
                                    q->data[c] + (ptrdiff_t)row * q->linesize[c], bytes);
        }
    }
    decoded_free(&x);
    decoded_free(&y);
}

static uint64_t calls(sac_device *on, enum sac_copy_reason reason)
{
    struct sac_ledger ledger;
    sac_device_ledger(on, &ledger);
    return ledger.reason[reason].calls;
}

/* The file is the CPU's; the ledger has one download of each plane and of the alpha. */
static void frames_apart_are_downloaded(void **state)
{
    (void)state;
    static const struct {
        enum sac_pixel_format format;
        const char           *ending, *encoder;
        int                   planes; /* downloaded, with alpha */
    } cases[] = {
        {SAC_PIXEL_I420, "mkv", "ffv1", 4},      {SAC_PIXEL_NV12, "mkv", "ffv1", 4},
        {SAC_PIXEL_P010, "mkv", "ffv1", 3},      {SAC_PIXEL_RGB24, "mkv", "ffv1", 2},
        {SAC_PIXEL_P010, "mov", "prores_ks", 3}, {SAC_PIXEL_NV12, "webm", "libvpx-vp9", 4}};
    sac_device            *apart = apart_open(NULL);
    struct sac_sink_params params = with_alpha;
    params.threads = 1;
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        const char    *here = scratch("here.%s", cases[i].ending);
        const char    *there = scratch("there.%s", cases[i].ending);
        const uint64_t before = calls(apart, SAC_COPY_OVERLAY);
        if (!sac_encoder_exists(cases[i].encoder))
            continue; /* a lean FFmpeg */
        assert_sac_ok(write_on(apart, there, cases[i].format, 321, 193, 5, &params));
        assert_sac_ok(write_on(dev, here, cases[i].format, 321, 193, 5, &params));
        assert_same_pictures(there, here);
        assert_int_equal(calls(apart, SAC_COPY_OVERLAY) - before, 5 * cases[i].planes);
        assert_int_equal(calls(apart, SAC_COPY_FRAME_DOWNLOAD), 0);
    }
    params = sac_sink_params_default();
    params.threads = 1;
    const uint64_t before = calls(apart, SAC_COPY_OVERLAY);
    params.encoder = "ffv1";
    const char *here = scratch("grey-here.mkv"), *there = scratch("grey-there.mkv");
    assert_sac_ok(write_on(apart, there, SAC_PIXEL_GRAY8, 321, 193, 5, &params));
    assert_sac_ok(write_on(dev, here, SAC_PIXEL_GRAY8, 321, 193, 5, &params));
    assert_same_pictures(there, here);
    assert_int_equal(calls(apart, SAC_COPY_OVERLAY) - before, 5);
    sac_device_unref(&apart);
}

/* ---- read by a source ---- */

static int farthest_from_matte(const sac_frame *f, int number)
{
    int most = 0;
    for (int y = 0; y < f->height; y++)
        for (int x = 0; x < f->width; x++) {
            const int is = f->plane[0][(size_t)y * f->pitch_bytes[0] + (size_t)x];
            most = SAC_MAX(most, abs(is - matte_at(x, y, f->width, f->height, number)));
        }
    return most;
}

/* off: the most that a pixel may differ. */
static void read_alpha(sac_device *on, const char *path, int off)
{
    struct sac_source_params params = sac_source_params_default();
    sac_source              *src = NULL;
    struct sac_source_info   info;
    params.alpha = 1;
    assert_sac_ok(sac_source_open(on, path, &params, &src));
    for (int i = 0; i < 5; i++) {
        sac_frame *frame = NULL;
        assert_sac_ok(sac_source_read_wait(src, &frame));
        assert_sac_ok(sac_frame_wait(frame));
        assert_int_equal(frame->format, SAC_PIXEL_GRAY8);
        assert_int_equal(frame->range, SAC_RANGE_FULL);
        assert_in_range(farthest_from_matte(frame, i), 0, off);
        sac_frame_unref(&frame);
    }
    sac_source_describe(src, &info);
    assert_int_equal(info.alpha, 1);
    sac_source_close(&src);
}

static void a_source_gives_the_alpha(void **state)
{
    (void)state;
    static const struct {
        enum sac_pixel_format format;
        const char           *ending, *encoder;
        int                   off;
    } cases[] = {{SAC_PIXEL_I420, "mkv", "ffv1", 0},
                 {SAC_PIXEL_P010, "mkv", "ffv1", 0},
                 {SAC_PIXEL_RGB24, "mkv", "ffv1", 0},
                 {SAC_PIXEL_P010, "mov", "prores_ks", 0},
                 {SAC_PIXEL_I420, "webm", "libvpx-vp9", 60}};
    sac_device *apart = apart_open(NULL); /* decodes on the CPU whatever it could */
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        const char *path = scratch("alpha%zu.%s", i, cases[i].ending);
        if (!sac_encoder_exists(cases[i].encoder))
            continue; /* a lean FFmpeg */
        assert_sac_ok(write_on(dev, path, cases[i].format, 321, 193, 5, &with_alpha));
        read_alpha(dev, path, cases[i].off);
        read_alpha(apart, path, cases[i].off);
    }
    sac_device_unref(&apart);
}

/* What has none stays as it is. */
static void a_source_without_alpha_gives_frames(void **state)
{
    (void)state;
    struct sac_source_params params = sac_source_params_default();
    const char              *path = scratch("plain.mkv");
    sac_source              *src = NULL;
    sac_frame               *frame = NULL;
    struct sac_source_info   info;
    clip_write(path, &(struct clip){.frames = 2});
    params.alpha = 1;
    assert_sac_ok(sac_source_open(dev, path, &params, &src));
    assert_sac_ok(sac_source_read_wait(src, &frame));
    assert_int_equal(frame->format, SAC_PIXEL_I420);
    sac_source_describe(src, &info);
    assert_int_equal(info.alpha, 0);
    sac_frame_unref(&frame);
    sac_source_close(&src);
}

static void strict_mode_refuses(void **state)
{
    (void)state;
    struct sac_device_params params = sac_device_params_default();
    sac_sink                *sink = NULL;
    params.zero_copy_strict = 1;
    sac_device *apart = apart_open(&params);
    assert_why(sac_sink_create(apart, scratch("strict.mkv"), NULL, &with_alpha, &sink),
               SAC_ERR_COPY, "overlay-download");
    sac_device_unref(&apart);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_matte_comes_back_from_each_container),
        cmocka_unit_test(a_matte_in_ffv1_is_exact),
        cmocka_unit_test(ffv1_keeps_frame_and_alpha),
        cmocka_unit_test(prores_keeps_alpha_and_nearly_the_frame),
        cmocka_unit_test(webm_has_alpha_beside_the_picture),
        cmocka_unit_test(audio_times_and_colours_are_the_sources),
        cmocka_unit_test(grey_keeps_audio_and_times),
        cmocka_unit_test(scales_to_the_first_frame),
        cmocka_unit_test(says_what_writes_alpha),
        cmocka_unit_test(alpha_must_be_the_frames),
        cmocka_unit_test(nothing_is_left_of_what_fails),
        cmocka_unit_test(survives_every_failed_allocation),
        cmocka_unit_test(frames_apart_are_downloaded),
        cmocka_unit_test(a_source_gives_the_alpha),
        cmocka_unit_test(a_source_without_alpha_gives_frames),
        cmocka_unit_test(strict_mode_refuses),
    };
    return cmocka_run_group_tests_name("media/sink_alpha", tests, open_device, close_device);
}
