/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "media/media.h"

#define H264_OR_MPEG4                     \
    {                                     \
        "libx264", "libopenh264", "mpeg4" \
    }
#define FRONT_INDEX "movflags=+faststart" /* plays before the whole file is loaded */

/* What is too long a step from one packet to the next: MP4 has 31 bits for it, of which libavformat
 * reads 28 where pictures are not in display order; AVI's muxer refuses to write more than 60000
 * empty chunks. A transport stream's clock of 33 bits wraps, and readers take a step of more than
 * half of that for one back. */
enum { AVI_TICKS = 60000 };
#define MP4_TICKS           INT32_MAX
#define MP4_TICKS_REORDERED (1 << 28)
#define TS_TICKS            (INT64_C(1) << 32)

/* libavformat writes other codecs as private data, which no reader recognises as audio. */
static const enum AVCodecID ts_audio[] = {
    AV_CODEC_ID_MP1,      AV_CODEC_ID_MP2,    AV_CODEC_ID_MP3,  AV_CODEC_ID_AAC,
    AV_CODEC_ID_AAC_LATM, AV_CODEC_ID_AC3,    AV_CODEC_ID_EAC3, AV_CODEC_ID_DTS,
    AV_CODEC_ID_OPUS,     AV_CODEC_ID_TRUEHD, AV_CODEC_ID_NONE,
};

/* AVI stores one time per frame, so frames must be in display order. */
static const struct sac_container containers[] = {
    {".mp4", "mp4", FRONT_INDEX, true, false, MP4_TICKS, NULL, H264_OR_MPEG4},
    {".m4v", "mp4", FRONT_INDEX, true, false, MP4_TICKS, NULL, H264_OR_MPEG4},
    {".mov", "mov", FRONT_INDEX, true, false, MP4_TICKS, NULL, H264_OR_MPEG4, "prores_ks"},
    {".mkv", "matroska", NULL, true, false, 0, NULL, H264_OR_MPEG4, "ffv1"},
    {".webm",
     "webm",
     NULL,
     true,
     false,
     0,
     NULL,
     {"libvpx-vp9", "libvpx", "libsvtav1"},
     "libvpx-vp9"},
    {".avi", "avi", NULL, false, true, AVI_TICKS, NULL, H264_OR_MPEG4},
    {".ts", "mpegts", NULL, true, false, TS_TICKS, ts_audio, H264_OR_MPEG4},
};

const struct sac_container *sac_container_of_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash ? slash : path, '.');
    for (size_t i = 0; dot && i < SAC_COUNT(containers); i++)
        if (strcasecmp(containers[i].ending, dot) == 0)
            return &containers[i];
    return NULL;
}

void sac_container_endings(char *buf, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < SAC_COUNT(containers) && at < size; i++)
        at += (size_t)snprintf(buf + at, size - at, "%s%s", i ? ", " : "", containers[i].ending);
}

void sac_container_alphas(bool there, char *buf, size_t size)
{
    size_t at = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < SAC_COUNT(containers) && at < size; i++)
        if (containers[i].alpha && (!there || sac_encoder_exists(containers[i].alpha)))
            at += (size_t)snprintf(buf + at, size - at, "%s%s (%s)", at ? ", " : "",
                                   containers[i].ending, containers[i].alpha);
}

/* ---- open ---- */

sac_result sac_muxer_open(struct sac_muxer *mux, const char *file)
{
    sac_result res = SAC_OK;
    char      *url = sac_asprintf("file:%s", file); /* else "12:30.mp4" names a protocol */
    sac_ffmpeg_log_begin(mux->ctx);
    int err = url ? avformat_alloc_output_context2(&mux->fmt, NULL, mux->container->format, url)
                  : AVERROR(ENOMEM);
    if (err >= 0)
        err = avio_open(&mux->fmt->pb, url, AVIO_FLAG_WRITE);
    sac_free(url);
    if (err < 0) {
        res = sac_ffmpeg_fail(mux->ctx, err, mux->path);
        sac_fail_prefix(mux->ctx, res, "cannot write ");
    }
    sac_ffmpeg_log_end();
    return res;
}

static void set_display_matrix(AVStream *st, const struct sac_input *like)
{
    size_t size = sizeof like->display_matrix;
    void  *data = NULL;
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 31, 102)
    AVPacketSideData *side =
        av_packet_side_data_new(&st->codecpar->coded_side_data, &st->codecpar->nb_coded_side_data,
                                AV_PKT_DATA_DISPLAYMATRIX, size, 0);
    data = side ? side->data : NULL;
#else
    data = av_stream_new_side_data(st, AV_PKT_DATA_DISPLAYMATRIX, size);
#endif
    if (data)
        memcpy(data, like->display_matrix, size);
}

static int add_video(struct sac_muxer *mux, const AVCodecContext *avc, const struct sac_input *like,
                     bool turned)
{
    AVStream *st = mux->video = avformat_new_stream(mux->fmt, NULL);
    if (!st)
        return AVERROR(ENOMEM);
    st->time_base = mux->video_time_base = avc->time_base;
    st->avg_frame_rate = avc->framerate;
    st->sample_aspect_ratio = avc->sample_aspect_ratio;
    st->disposition = AV_DISPOSITION_DEFAULT;
    int err = avcodec_parameters_from_context(st->codecpar, avc);
    if (err >= 0 && like && like->has_display_matrix && !turned)
        set_display_matrix(st, like);
    return err;
}

static int add_kept(AVFormatContext *fmt, const AVStream *from)
{
    AVStream *st = avformat_new_stream(fmt, NULL);
    if (!st)
        return AVERROR(ENOMEM);
    int err = avcodec_parameters_copy(st->codecpar, from->codecpar);
    st->codecpar->codec_tag = 0; /* the tag belongs to the input's container */
    st->time_base = from->time_base;
    st->disposition = from->disposition;
    av_dict_copy(&st->metadata, from->metadata, 0);
    return err < 0 ? err : st->index;
}

/* Whether the container accepts a header with the video and that stream (NULL: only the video). */
static int try_header(const struct sac_muxer *mux, const AVCodecContext *video,
                      const AVStream *kept)
{
    struct sac_muxer trial = {.ctx = mux->ctx, .container = mux->container};
    uint8_t         *written = NULL;
    int err = avformat_alloc_output_context2(&trial.fmt, NULL, mux->container->format, NULL);
    if (err >= 0)
        err = avio_open_dyn_buf(&trial.fmt->pb);
    if (err >= 0)
        err = add_video(&trial, video, NULL, false);
    if (err >= 0 && kept)
        err = add_kept(trial.fmt, kept);
    if (err >= 0)
        err = avformat_write_header(trial.fmt, NULL);
    if (trial.fmt && trial.fmt->pb)
        avio_close_dyn_buf(trial.fmt->pb, &written);
    av_free(written);
    avformat_free_context(trial.fmt);
    return err;
}

/* avformat_query_codec answers yes, no or unknown. Codecs that need a container version or a
 * missing parameter fail only when the header is written. */
static bool can_hold(const struct sac_muxer *mux, const AVCodecContext *video, const AVStream *kept)
{
    const enum AVCodecID  codec = kept->codecpar->codec_id;
    const enum AVCodecID *known = mux->container->audio;
    while (known && *known != codec && *known != AV_CODEC_ID_NONE)
        known++;
    if (known && *known == AV_CODEC_ID_NONE)
        return false;
    if (avformat_query_codec(mux->fmt->oformat, codec, FF_COMPLIANCE_NORMAL) == 0)
        return false;
    return try_header(mux, video, kept) >= 0 || try_header(mux, video, NULL) < 0;
}

static int add_all_kept(struct sac_muxer *mux, const AVCodecContext *video,
                        const struct sac_input *like)
{
    int count = like ? like->kept_count : 0, err = 0;
    mux->kept = sac_calloc((size_t)count, sizeof *mux->kept);
    if (!mux->kept)
        return AVERROR(ENOMEM);
    mux->kept_count = count;
    for (int i = 0; i < count && err >= 0; i++) {
        mux->kept[i] = (struct sac_muxed){.stream = -1, .last = INT64_MIN};
        if (can_hold(mux, video, like->kept[i]))
            mux->kept[i].stream = err = add_kept(mux->fmt, like->kept[i]);
        else
            sac_log(mux->ctx, SAC_LOG_WARN, "%s: %s can't hold %s audio; that is left out",
                    mux->path, mux->container->ending,
                    avcodec_get_name(like->kept[i]->codecpar->codec_id));
    }
    return err;
}

static int write_header(struct sac_muxer *mux)
{
    AVDictionary *options = NULL;
    int           err = 0;
    if (mux->container->options)
        err = av_dict_parse_string(&options, mux->container->options, "=", ":", 0);
    if (err >= 0)
        err = avformat_write_header(mux->fmt, &options);
    av_dict_free(&options);
    mux->header = err >= 0;
    return err;
}

/* The least limit of all streams, less a twentieth, since packet times differ from frame times. */
static int64_t step_max_us(const struct sac_muxer *mux, bool reorders)
{
    int64_t least = 0;
    for (unsigned i = 0; i < mux->fmt->nb_streams && mux->container->step_max; i++) {
        const AVStream *st = mux->fmt->streams[i];
        if (mux->container->tick_is_frame && st->codecpar->block_align)
            continue; /* PCM counts bytes, not ticks */
        int64_t ticks = mux->container->step_max;
        if (st == mux->video && ticks == MP4_TICKS && reorders)
            ticks = MP4_TICKS_REORDERED;
        int64_t limit = av_rescale_q(ticks / 20 * 19, st->time_base, AV_TIME_BASE_Q);
        least = least ? SAC_MIN(least, limit) : limit;
    }
    return least;
}

sac_result sac_muxer_start(struct sac_muxer *mux, const AVCodecContext *video,
                           const struct sac_input *like, bool turned)
{
    sac_result res = SAC_OK;
    sac_ffmpeg_log_begin(mux->ctx);
    int err = add_video(mux, video, like, turned);
    if (err >= 0)
        err = add_all_kept(mux, video, like);
    if (err >= 0)
        err = write_header(mux);
    if (err >= 0)
        mux->step_max_us = step_max_us(mux, video->has_b_frames > 0);
    if (err < 0) {
        res = sac_ffmpeg_fail(mux->ctx, err, mux->path);
        sac_fail_prefix(mux->ctx, res, "cannot write ");
    }
    sac_ffmpeg_log_end();
    return res;
}

/* ---- write ---- */

/* A muxer does not report every failed write, so the file's own error is checked too. */
static int write_error(const struct sac_muxer *mux, int err)
{
    if (mux->fmt->pb && mux->fmt->pb->error < 0)
        return mux->fmt->pb->error;
    return err < 0 ? err : 0;
}

static sac_result fail_write(struct sac_muxer *mux, int err)
{
    sac_result res = sac_ffmpeg_fail(mux->ctx, err, mux->path);
    return sac_fail_prefix(mux->ctx, res, "cannot write ");
}

/* Leave out from now on a stream of which a packet was rejected; false: there is none. */
static bool leave_out_refused(struct sac_muxer *mux, int err)
{
    bool any = false;
    for (int i = 0; i < mux->kept_count; i++) {
        struct sac_muxed *kept = &mux->kept[i];
        if (kept->stream < 0 || mux->fmt->streams[kept->stream]->nb_frames >= kept->given)
            continue;
        sac_log(mux->ctx, SAC_LOG_WARN,
                "%s: audio stream %d can't be copied, and is left out from here on: %s", mux->path,
                i, av_err2str(err));
        kept->stream = -1;
        any = true;
    }
    return any;
}

/* libavformat sorts packets by time, so the packet that it rejects may be an earlier one; a
 * rejected packet is lost. A file without audio is better than no file. */
static int write_packet(struct sac_muxer *mux, AVPacket *packet)
{
    int err = write_error(mux, av_interleaved_write_frame(mux->fmt, packet));
    while (err < 0 && write_error(mux, 0) == 0) {
        const int refused = err;
        err = av_interleaved_write_frame(mux->fmt, NULL); /* flush: the counts show whose it was */
        if (err >= 0)
            return leave_out_refused(mux, refused) ? 0 : refused;
    }
    return err;
}

sac_result sac_muxer_write_video(struct sac_muxer *mux, AVPacket *packet)
{
    packet->stream_index = mux->video->index;
    av_packet_rescale_ts(packet, mux->video_time_base, mux->video->time_base);
    int err = write_packet(mux, packet);
    return err < 0 ? fail_write(mux, err) : SAC_OK;
}

/* Move a packet to the output's timeline. false: it has no place there. */
static bool retime(struct sac_muxer *mux, AVPacket *packet, struct sac_muxed *kept,
                   AVRational time_base, int64_t origin_us, const struct sac_gaps *gaps)
{
    const AVStream *st = mux->fmt->streams[kept->stream];
    if (packet->dts == AV_NOPTS_VALUE)
        packet->dts = packet->pts;
    if (packet->dts == AV_NOPTS_VALUE)
        return false;
    if (packet->pts == AV_NOPTS_VALUE)
        packet->pts = packet->dts;
    const int64_t us = sac_time_us(packet->dts, time_base);
    const int64_t placed = us == SAC_TIME_NONE ? us : sac_gaps_apply(gaps, us - origin_us);
    if (placed == SAC_TIME_NONE)
        return false;
    int64_t origin = av_rescale_q(us - placed, AV_TIME_BASE_Q, time_base);
    packet->pts -= origin;
    packet->dts -= origin;
    av_packet_rescale_ts(packet, time_base, st->time_base);
    packet->stream_index = st->index;
    packet->pos = -1;
    if (packet->dts <= kept->last)
        return false;
    kept->last = packet->dts;
    kept->given++;
    return true;
}

sac_result sac_muxer_write_kept(struct sac_muxer *mux, AVPacket *packet, int kept,
                                AVRational time_base, int64_t origin_us,
                                const struct sac_gaps *gaps)
{
    int err = 0;
    if (kept < mux->kept_count && mux->kept[kept].stream >= 0 &&
        retime(mux, packet, &mux->kept[kept], time_base, origin_us, gaps))
        err = write_packet(mux, packet);
    av_packet_unref(packet);
    return err < 0 ? fail_write(mux, err) : SAC_OK;
}

sac_result sac_muxer_finish(struct sac_muxer *mux)
{
    int err = write_packet(mux, NULL); /* flush first: else the trailer would, and fail */
    if (err >= 0)
        err = write_error(mux, av_write_trailer(mux->fmt));
    mux->header = false;
    int closed = avio_closep(&mux->fmt->pb);
    if (err >= 0)
        err = closed;
    return err < 0 ? fail_write(mux, err) : SAC_OK;
}

void sac_muxer_close(struct sac_muxer *mux)
{
    if (mux->fmt) {
        avio_closep(&mux->fmt->pb);
        avformat_free_context(mux->fmt);
    }
    sac_free(mux->kept);
    mux->fmt = NULL;
    mux->kept = NULL;
}
