/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "media/media.h"

#define H264_OR_MPEG4 {"libx264", "libopenh264", "mpeg4"}
#define FRONT_INDEX   "movflags=+faststart" /* a player can start before it has the whole file */

/* AVI has one time for a frame, so its order must be the order of showing. */
static const struct sac_container containers[] = {
    {".mp4", "mp4", FRONT_INDEX, true, false, H264_OR_MPEG4},
    {".m4v", "mp4", FRONT_INDEX, true, false, H264_OR_MPEG4},
    {".mov", "mov", FRONT_INDEX, true, false, H264_OR_MPEG4},
    {".mkv", "matroska", NULL, true, false, H264_OR_MPEG4},
    {".webm", "webm", NULL, true, false, {"libvpx-vp9", "libvpx", "libsvtav1"}},
    {".avi", "avi", NULL, false, true, H264_OR_MPEG4},
    {".ts", "mpegts", NULL, true, false, H264_OR_MPEG4},
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

/* ---- open ---- */

sac_result sac_muxer_open(struct sac_muxer *mux, const char *file)
{
    sac_result res = SAC_OK;
    sac_ffmpeg_log_begin(mux->ctx);
    int err = avformat_alloc_output_context2(&mux->fmt, NULL, mux->container->format, file);
    if (err >= 0)
        err = avio_open(&mux->fmt->pb, file, AVIO_FLAG_WRITE);
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
    AVPacketSideData *side = av_packet_side_data_new(&st->codecpar->coded_side_data,
                                                     &st->codecpar->nb_coded_side_data,
                                                     AV_PKT_DATA_DISPLAYMATRIX, size, 0);
    data = side ? side->data : NULL;
#else
    data = av_stream_new_side_data(st, AV_PKT_DATA_DISPLAYMATRIX, size);
#endif
    if (data)
        memcpy(data, like->display_matrix, size);
}

static int add_video(struct sac_muxer *mux, const AVCodecContext *avc,
                     const struct sac_input *like)
{
    AVStream *st = mux->video = avformat_new_stream(mux->fmt, NULL);
    if (!st)
        return AVERROR(ENOMEM);
    st->time_base = mux->video_time_base = avc->time_base;
    st->avg_frame_rate = avc->framerate;
    st->sample_aspect_ratio = avc->sample_aspect_ratio;
    st->disposition = AV_DISPOSITION_DEFAULT;
    int err = avcodec_parameters_from_context(st->codecpar, avc);
    if (err >= 0 && like && like->has_display_matrix)
        set_display_matrix(st, like);
    return err;
}

static int add_kept(struct sac_muxer *mux, const AVStream *from, int kept)
{
    AVStream *st = avformat_new_stream(mux->fmt, NULL);
    if (!st)
        return AVERROR(ENOMEM);
    int err = avcodec_parameters_copy(st->codecpar, from->codecpar);
    st->codecpar->codec_tag = 0; /* the tag is the former container's */
    st->time_base = from->time_base;
    st->disposition = from->disposition;
    av_dict_copy(&st->metadata, from->metadata, 0);
    mux->kept_map[kept] = st->index;
    mux->kept_last[kept] = INT64_MIN;
    return err;
}

/* A muxer answers 1, 0, or that it does not know, and then it may still be able to. */
static bool can_hold(const struct sac_muxer *mux, enum AVCodecID codec)
{
    return avformat_query_codec(mux->fmt->oformat, codec, FF_COMPLIANCE_NORMAL) != 0;
}

static int add_all_kept(struct sac_muxer *mux, const struct sac_input *like)
{
    int count = like ? like->kept_count : 0, err = 0;
    mux->kept_map = sac_calloc((size_t)count, sizeof *mux->kept_map);
    mux->kept_last = sac_calloc((size_t)count, sizeof *mux->kept_last);
    if (!mux->kept_map || !mux->kept_last)
        return AVERROR(ENOMEM);
    mux->kept_count = count;
    for (int i = 0; i < count && err >= 0; i++) {
        enum AVCodecID codec = like->kept[i]->codecpar->codec_id;
        mux->kept_map[i] = -1;
        if (can_hold(mux, codec))
            err = add_kept(mux, like->kept[i], i);
        else
            sac_log(mux->ctx, SAC_LOG_WARN, "%s: %s can't hold %s audio; that is left out",
                    mux->path, mux->container->ending, avcodec_get_name(codec));
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

sac_result sac_muxer_start(struct sac_muxer *mux, const AVCodecContext *video,
                           const struct sac_input *like)
{
    sac_result res = SAC_OK;
    sac_ffmpeg_log_begin(mux->ctx);
    int err = add_video(mux, video, like);
    if (err >= 0)
        err = add_all_kept(mux, like);
    if (err >= 0)
        err = write_header(mux);
    if (err < 0) {
        res = sac_ffmpeg_fail(mux->ctx, err, mux->path);
        sac_fail_prefix(mux->ctx, res, "cannot write ");
    }
    sac_ffmpeg_log_end();
    return res;
}

/* ---- write ---- */

/* A muxer does not pass every failed write on, so the file's own state is asked too. */
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

sac_result sac_muxer_write_video(struct sac_muxer *mux, AVPacket *packet)
{
    packet->stream_index = mux->video->index;
    av_packet_rescale_ts(packet, mux->video_time_base, mux->video->time_base);
    int err = write_error(mux, av_interleaved_write_frame(mux->fmt, packet));
    return err < 0 ? fail_write(mux, err) : SAC_OK;
}

/* Onto the output's timeline. false: a packet that can't stand there. */
static bool retime(struct sac_muxer *mux, AVPacket *packet, int kept, AVRational time_base,
                   int64_t origin_us)
{
    const AVStream *st = mux->fmt->streams[mux->kept_map[kept]];
    int64_t         origin = av_rescale_q(origin_us, AV_TIME_BASE_Q, time_base);
    if (packet->dts == AV_NOPTS_VALUE)
        packet->dts = packet->pts;
    if (packet->dts == AV_NOPTS_VALUE)
        return false;
    if (packet->pts == AV_NOPTS_VALUE)
        packet->pts = packet->dts;
    packet->pts -= origin;
    packet->dts -= origin;
    av_packet_rescale_ts(packet, time_base, st->time_base);
    packet->stream_index = st->index;
    packet->pos = -1;
    if (packet->dts <= mux->kept_last[kept])
        return false;
    mux->kept_last[kept] = packet->dts;
    return true;
}

sac_result sac_muxer_write_kept(struct sac_muxer *mux, AVPacket *packet, int kept,
                                AVRational time_base, int64_t origin_us)
{
    int err = 0;
    if (kept < mux->kept_count && mux->kept_map[kept] >= 0 &&
        retime(mux, packet, kept, time_base, origin_us))
        err = av_interleaved_write_frame(mux->fmt, packet);
    av_packet_unref(packet);
    int lost = write_error(mux, 0);
    if (lost < 0)
        return fail_write(mux, lost);
    if (err < 0) { /* the packet's own fault: go on without that stream rather than without a file */
        sac_log(mux->ctx, SAC_LOG_WARN, "%s: audio stream %d can't be copied: %s", mux->path, kept,
                av_err2str(err));
        mux->kept_map[kept] = -1;
    }
    return SAC_OK;
}

sac_result sac_muxer_finish(struct sac_muxer *mux)
{
    int err = write_error(mux, av_write_trailer(mux->fmt));
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
    sac_free(mux->kept_map);
    sac_free(mux->kept_last);
    mux->fmt = NULL;
    mux->kept_map = NULL;
    mux->kept_last = NULL;
}
