/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>

#include "tests/media/clip.h"
#include "tests/test.h"

enum { BLOCK = 16, BITS = 12, SAMPLE_RATE = 16000 };

struct writer {
    const struct clip *clip;
    AVFormatContext   *fmt;
    AVCodecContext    *video, *audio;
    AVPacket          *packet;
};

static void need(int err, const char *what)
{
    char words[AV_ERROR_MAX_STRING_SIZE];
    if (err < 0)
        fail_msg("%s: %s", what, av_make_error_string(words, sizeof words, err));
}

/* ---- pictures ---- */

/* A moving pattern and the number, most significant bit first. */
static void draw(uint8_t *luma, int pitch, int width, int height, int number)
{
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            luma[y * pitch + x] = (uint8_t)(64 + ((x + 3 * number) ^ (y + number)) % 96);
    for (int bit = 0; bit < BITS; bit++) {
        int x0 = bit % 6 * BLOCK, y0 = bit / 6 * BLOCK;
        for (int y = y0; y < y0 + BLOCK; y++)
            memset(luma + y * pitch + x0, number >> (BITS - 1 - bit) & 1 ? 225 : 25, BLOCK);
    }
}

static AVFrame *picture(enum AVPixelFormat format, int width, int height, int number)
{
    AVFrame *yuv = av_frame_alloc(), *out = av_frame_alloc();
    yuv->format = AV_PIX_FMT_YUV420P;
    out->format = format;
    yuv->width = out->width = width;
    yuv->height = out->height = height;
    need(av_frame_get_buffer(yuv, 0), "picture");
    need(av_frame_get_buffer(out, 0), "picture");
    draw(yuv->data[0], yuv->linesize[0], width, height, number);
    for (int i = 1; i < 3; i++)
        memset(yuv->data[i], 128, (size_t)yuv->linesize[i] * (size_t)((height + 1) / 2));
    struct SwsContext *scaler = sws_getContext(width, height, AV_PIX_FMT_YUV420P, width, height,
                                               format, SWS_POINT, NULL, NULL, NULL);
    sws_scale(scaler, (const uint8_t *const *)yuv->data, yuv->linesize, 0, height, out->data,
              out->linesize);
    sws_freeContext(scaler);
    av_frame_free(&yuv);
    return out;
}

static int brightness(const sac_frame *frame, int x, int y)
{
    const uint8_t *row = frame->plane[0] + (size_t)y * frame->pitch_bytes[0];
    switch (frame->format) {
    case SAC_PIXEL_RGB24:
    case SAC_PIXEL_BGR24: return row[3 * x + 1];
    case SAC_PIXEL_RGBA:
    case SAC_PIXEL_BGRA: return row[4 * x + 1];
    case SAC_PIXEL_P010: return row[2 * x + 1];
    default: return row[x];
    }
}

int clip_number(const sac_frame *frame)
{
    int number = 0;
    for (int bit = 0; bit < BITS; bit++) {
        int value = brightness(frame, bit % 6 * BLOCK + BLOCK / 2, bit / 6 * BLOCK + BLOCK / 2);
        number = number << 1 | (value > 125);
    }
    return number;
}

/* ---- streams ---- */

static AVCodecContext *open_video(struct writer *w)
{
    const struct clip *c = w->clip;
    const AVCodec     *codec = avcodec_find_encoder_by_name(c->codec ? c->codec : "mpeg4");
    AVCodecContext    *avc = avcodec_alloc_context3(codec);
    int                fps = c->fps ? c->fps : 25;
    avc->width = c->width ? c->width : 320;
    avc->height = c->height ? c->height : 192;
    avc->pix_fmt = c->pixels > 0 ? c->pixels : AV_PIX_FMT_YUV420P;
    avc->time_base = (AVRational){1, c->time_base ? c->time_base : fps};
    avc->framerate = (AVRational){fps, 1};
    avc->sample_aspect_ratio = (AVRational){c->aspect, 1};
    avc->gop_size = c->gop ? c->gop : 12;
    avc->max_b_frames = c->b_frames;
    avc->bit_rate = 4000000;
    avc->strict_std_compliance = FF_COMPLIANCE_UNOFFICIAL;
    avc->thread_count = 1;
    if (c->tagged) {
        avc->colorspace = AVCOL_SPC_BT2020_NCL;
        avc->color_primaries = AVCOL_PRI_BT2020;
        avc->color_trc = AVCOL_TRC_SMPTE2084;
        avc->color_range = AVCOL_RANGE_MPEG;
    }
    if (w->fmt->oformat->flags & AVFMT_GLOBALHEADER)
        avc->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    need(avcodec_open2(avc, codec, NULL), "video encoder");
    return avc;
}

static void set_rotation(AVStream *st, int degrees, bool mirrored)
{
    int32_t matrix[9];
    av_display_rotation_set(matrix, degrees);
    if (mirrored) { /* where right goes to */
        matrix[0] = -matrix[0];
        matrix[1] = -matrix[1];
    }
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 31, 102)
    AVPacketSideData *side =
        av_packet_side_data_new(&st->codecpar->coded_side_data, &st->codecpar->nb_coded_side_data,
                                AV_PKT_DATA_DISPLAYMATRIX, sizeof matrix, 0);
    memcpy(side->data, matrix, sizeof matrix);
#else
    memcpy(av_stream_new_side_data(st, AV_PKT_DATA_DISPLAYMATRIX, sizeof matrix), matrix,
           sizeof matrix);
#endif
}

static void add_stream(struct writer *w, AVCodecContext *avc)
{
    AVStream *st = avformat_new_stream(w->fmt, NULL);
    need(avcodec_parameters_from_context(st->codecpar, avc), "parameters");
    st->time_base = avc->time_base;
    st->sample_aspect_ratio = avc->sample_aspect_ratio;
    st->avg_frame_rate = avc->framerate;
    if (avc == w->video && w->clip->counted)
        av_dict_set_int(&st->metadata, "NUMBER_OF_FRAMES", w->clip->frames, 0);
    if (avc == w->video && (w->clip->rotation || w->clip->mirrored))
        set_rotation(st, w->clip->rotation, w->clip->mirrored);
}

static AVCodecContext *open_audio(struct writer *w)
{
    const char     *name = w->clip->audio_codec ? w->clip->audio_codec : "aac";
    const AVCodec  *codec = avcodec_find_encoder_by_name(name);
    AVCodecContext *avc = avcodec_alloc_context3(codec);
    avc->sample_rate = SAMPLE_RATE;
    avc->sample_fmt = strcmp(name, "aac") == 0 ? AV_SAMPLE_FMT_FLTP : AV_SAMPLE_FMT_S16;
    avc->ch_layout = (AVChannelLayout)AV_CHANNEL_LAYOUT_MONO;
    if (strcmp(name, "truehd") == 0) { /* has neither low rates nor one channel */
        avc->sample_rate = 48000;
        avc->ch_layout = (AVChannelLayout)AV_CHANNEL_LAYOUT_STEREO;
        if (avcodec_version() >= AV_VERSION_INT(61, 0, 0)) /* FFmpeg 7 takes planes alone */
            avc->sample_fmt = AV_SAMPLE_FMT_S16P;
    }
    avc->strict_std_compliance = FF_COMPLIANCE_EXPERIMENTAL;
    avc->time_base = (AVRational){1, avc->sample_rate};
    avc->bit_rate = 64000;
    if (w->fmt->oformat->flags & AVFMT_GLOBALHEADER)
        avc->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    need(avcodec_open2(avc, codec, NULL), "audio encoder");
    return avc;
}

/* Encode one frame (NULL: the rest) and write what comes out to `copies` streams from `index`
 * on. */
static void encode(struct writer *w, AVCodecContext *avc, AVFrame *frame, int index, int copies)
{
    need(avcodec_send_frame(avc, frame), "encode");
    while (avcodec_receive_packet(avc, w->packet) >= 0) {
        for (int i = 0; i < copies; i++) {
            AVPacket *copy = av_packet_clone(w->packet);
            copy->stream_index = index + i;
            if (avc == w->video)
                copy->duration = av_rescale_q(1, av_inv_q(avc->framerate), avc->time_base);
            av_packet_rescale_ts(copy, avc->time_base, w->fmt->streams[index + i]->time_base);
            need(av_interleaved_write_frame(w->fmt, copy), "write");
            av_packet_free(&copy);
        }
        av_packet_unref(w->packet);
    }
}

static void write_video(struct writer *w)
{
    const struct clip *c = w->clip;
    int                step = w->video->time_base.den / w->video->framerate.num;
    for (int i = 0; i < c->frames; i++) {
        AVFrame *pic = picture(w->video->pix_fmt, w->video->width, w->video->height, c->first + i);
        pic->pts = c->pts ? c->pts[i] : c->start + (int64_t)i * step;
        encode(w, w->video, pic, 0, 1);
        av_frame_free(&pic);
    }
    encode(w, w->video, NULL, 0, 1);
}

/* Sample i of those that lie one channel beside the other, or of planes. */
static void put_sample(AVFrame *sound, int channels, int i, double value)
{
    bool  planar = av_sample_fmt_is_planar(sound->format);
    void *plane = sound->extended_data[planar ? i % channels : 0];
    int   at = planar ? i / channels : i;
    if (av_get_packed_sample_fmt(sound->format) == AV_SAMPLE_FMT_S16)
        ((int16_t *)plane)[at] = (int16_t)(value * 32767);
    else
        ((float *)plane)[at] = (float)value;
}

static void write_audio(struct writer *w)
{
    const struct clip *c = w->clip;
    int                size = w->audio->frame_size ? w->audio->frame_size : 1024;
    int                ms = c->audio_ms ? c->audio_ms : c->frames * 1000 / w->video->framerate.num;
    int                channels = w->audio->ch_layout.nb_channels;
    int64_t            end = (int64_t)ms * w->audio->sample_rate / 1000;
    int64_t            offset = av_rescale_q(c->start, w->video->time_base, w->audio->time_base);
    for (int64_t at = 0; at + size <= end; at += size) {
        AVFrame *sound = av_frame_alloc();
        sound->format = w->audio->sample_fmt;
        sound->nb_samples = size;
        sound->sample_rate = w->audio->sample_rate;
        av_channel_layout_copy(&sound->ch_layout, &w->audio->ch_layout);
        need(av_frame_get_buffer(sound, 0), "sound");
        for (int i = 0; i < size * channels; i++)
            put_sample(sound, channels, i, 0.3 * sin(0.1 * (double)(at + i / channels)));
        sound->pts = offset + at;
        encode(w, w->audio, sound, 1, c->audio);
        av_frame_free(&sound);
    }
    encode(w, w->audio, NULL, 1, c->audio);
}

void clip_write(const char *path, const struct clip *clip)
{
    struct writer w = {.clip = clip, .packet = av_packet_alloc()};
    AVDictionary *options = NULL;
    av_log_set_level(AV_LOG_ERROR);
    need(avformat_alloc_output_context2(&w.fmt, NULL, clip->format, path), path);
    w.video = open_video(&w);
    add_stream(&w, w.video);
    if (clip->audio)
        w.audio = open_audio(&w);
    for (int i = 0; i < clip->audio; i++)
        add_stream(&w, w.audio);
    need(avio_open(&w.fmt->pb, path, AVIO_FLAG_WRITE), path);
    if (clip->front_index)
        av_dict_set(&options, "movflags", "+faststart", 0);
    if (clip->options)
        need(av_dict_parse_string(&options, clip->options, "=", ":", 0), "options");
    need(avformat_write_header(w.fmt, &options), path);
    av_dict_free(&options);
    write_video(&w);
    if (w.audio)
        write_audio(&w);
    need(av_write_trailer(w.fmt), path);
    need(avio_closep(&w.fmt->pb), path);
    avcodec_free_context(&w.video);
    avcodec_free_context(&w.audio);
    avformat_free_context(w.fmt);
    av_packet_free(&w.packet);
}

/* ---- files ---- */

static char folder[64];

const char *scratch(const char *fmt, ...)
{
    static char paths[16][256];
    static int  next;
    char       *path = paths[next++ % 16];
    if (!folder[0]) {
        snprintf(folder, sizeof folder, "/tmp/saccade-test-XXXXXX");
        assert_non_null(mkdtemp(folder));
    }
    int     len = snprintf(path, 256, "%s/", folder);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(path + len, (size_t)(256 - len), fmt, ap);
    va_end(ap);
    return path;
}

static void remove_tree(const char *path)
{
    DIR           *dir = opendir(path);
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        char child[512];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(child, sizeof child, "%s/%s", path, entry->d_name);
        if (unlink(child) != 0)
            remove_tree(child);
    }
    if (dir)
        closedir(dir);
    rmdir(path);
}

void scratch_remove(void)
{
    if (folder[0])
        remove_tree(folder);
}

uint8_t *file_load(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*size + 1);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

void file_save(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}
