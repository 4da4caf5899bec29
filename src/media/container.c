/* SPDX-License-Identifier: Apache-2.0 */
/* Packets from a container: whatever libavformat opens, files, standard input, network streams. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libavutil/avstring.h>

#include "media/capture.h"
#include "media/media.h"

enum {
    STDIN_BUFFER_BYTES = 64 * 1024,
    STDIN_POLL_MS = 100,             /* how soon a cancelled read of standard input returns */
    SOUND_BEHIND_BYTES = 256 * 1024, /* audio follows its pictures in the file by at most this */
    DAMAGED_IN_A_ROW_MAX = 64        /* failed reads without a packet in between: give up */
};

struct state {
    AVFormatContext *fmt;
    AVIOContext     *standard_input; /* NULL: libavformat opens the address itself */
    bool             network, capture, opened;
    int64_t          deadline_ns; /* network: when the present call times out; 0: never */
    int64_t          bytes_seen;  /* received when the deadline was last set */
    bool             timed_out;   /* libavformat was interrupted; buffered packets may follow */
    int              video_index;
    /* A transport stream file is reopened where its video's codec changes. The former contexts stay
     * open, since sinks refer to their streams. */
    struct sac_program program;
    int64_t            change_at; /* bytes; 0: none is known */
    AVFormatContext  **former;    /* [former_count] */
    size_t             former_count, former_capacity;

    enum AVCodecID *kept_codec; /* [kept_count] NONE: changed, no longer kept */

    /* To tell a file that was cut off from one that ends. */
    int64_t video_packets, video_end_us;
    int64_t end_us; /* the latest end of a packet in any stream */
    bool    last_is_damaged;
    bool    sought; /* not all packets were read */
};

static bool is_network(const char *url)
{
    return strstr(url, "://") && strncmp(url, "file://", 7) != 0;
}

static bool is_cancelled(const struct sac_input *in)
{
    const struct sac_source_params *p = in->params;
    const struct state             *st = in->state;
    return atomic_load(in->cancelled) || (!st->opened && p->give_up && p->give_up(p->give_up_user));
}

static void start_deadline(struct sac_input *in)
{
    struct state *st = in->state;
    if (st->network && in->params->timeout_us > 0)
        st->deadline_ns = sac_time_ns() + in->params->timeout_us * 1000;
}

/* One call may read for long to detect the streams, so the deadline moves on while bytes arrive. */
static bool has_new_bytes(struct state *st)
{
    const AVIOContext *pb = st->fmt ? st->fmt->pb : NULL;
    const int64_t      before = st->bytes_seen;
    st->bytes_seen = pb ? pb->bytes_read : 0;
    return st->bytes_seen != before;
}

/* libavformat calls this now and then, to ask whether to give up. */
static int interrupted(void *arg)
{
    struct sac_input *in = arg;
    struct state     *st = in->state;
    if (st->deadline_ns && !st->timed_out && has_new_bytes(st))
        start_deadline(in);
    st->timed_out |= st->deadline_ns && sac_time_ns() > st->deadline_ns;
    return is_cancelled(in) || st->timed_out;
}

/* An interrupted protocol may return any error, so our own reasons are checked first. */
static sac_result fail(struct sac_input *in, int err)
{
    const struct state *st = in->state;
    if (is_cancelled(in))
        return SAC_FAIL(in->ctx, SAC_ERR_CANCELLED, "%s: reading was cancelled", in->name);
    if (st->timed_out)
        return SAC_FAIL(in->ctx, SAC_ERR_IO, "%s: no answer for %.3g s", in->name,
                        (double)in->params->timeout_us / 1e6);
    if (st->network && st->opened && err == AVERROR(EIO))
        return SAC_FAIL(in->ctx, SAC_ERR_IO, "%s: the connection ended before the video", in->name);
    const bool odd = err == AVERROR_INVALIDDATA || (err == AVERROR_EOF && !st->opened);
    char       what[512];
    snprintf(what, sizeof what, "%.400s%s", in->name, odd ? ": not a video, or a damaged one" : "");
    return sac_ffmpeg_fail(in->ctx, err, what);
}

/* ---- standard input ---- */

/* libavformat's own pipe reader blocks in read(), which can't be cancelled. */
static int read_standard_input(void *arg, uint8_t *buf, int size)
{
    struct sac_input *in = arg;
    struct pollfd     fd = {.fd = STDIN_FILENO, .events = POLLIN};
    for (;;) {
        if (interrupted(in))
            return AVERROR_EXIT;
        int ready = poll(&fd, 1, STDIN_POLL_MS);
        if (ready == 0 || (ready < 0 && errno == EINTR))
            continue;
        ssize_t got = ready < 0 ? -1 : read(STDIN_FILENO, buf, (size_t)size);
        if (got > 0)
            return (int)got;
        if (got == 0)
            return AVERROR_EOF;
        if (errno != EINTR && errno != EAGAIN)
            return AVERROR(errno);
    }
}

static int use_standard_input(struct sac_input *in)
{
    struct state *st = in->state;
    uint8_t      *buffer = av_malloc(STDIN_BUFFER_BYTES);
    if (buffer)
        st->standard_input =
            avio_alloc_context(buffer, STDIN_BUFFER_BYTES, 0, in, read_standard_input, NULL, NULL);
    if (!st->standard_input) {
        av_free(buffer);
        return AVERROR(ENOMEM);
    }
    st->fmt->pb = st->standard_input;
    return 0;
}

/* ---- open ---- */

/* Check the file with the system, whose error is clearer than a demuxer's guess. */
static sac_result look_at_file(struct sac_input *in)
{
    struct stat about;
    const char *path = sac_input_path(in->url);
    if (stat(path, &about) != 0)
        return SAC_FAIL(in->ctx, SAC_ERR_IO, "%s: %s", in->name, strerror(errno));
    if (S_ISREG(about.st_mode) && about.st_size == 0)
        return SAC_FAIL(in->ctx, SAC_ERR_FORMAT, "%s: the file is empty", in->name);
    return SAC_OK;
}

static bool is_format(const struct state *st, const char *name)
{
    return av_match_name(name, st->fmt->iformat->name);
}

static bool is_transport_file(const struct state *st)
{
    const AVIOContext *pb = st->fmt->pb;
    return is_format(st, "mpegts") && !st->network && pb && (pb->seekable & AVIO_SEEKABLE_NORMAL);
}

/* A transport stream may move its video to another PID anywhere. While libavformat detects the
 * streams it takes the new PID for the first codec that it saw; afterwards it follows the
 * change. */
static void read_again(struct state *st)
{
    if (is_transport_file(st))
        av_seek_frame(st->fmt, -1, 0, AVSEEK_FLAG_BYTE);
}

/* To libavformat a word before a colon is a protocol: "12:30.mp4" is no file. NULL: no memory. */
static char *address_of(const struct sac_input *in)
{
    const struct state *st = in->state;
    const char         *path = sac_input_path(in->url);
    if (strcmp(in->url, "-") == 0)
        return sac_strdup("");
    return st->network || !strchr(path, ':') ? sac_strdup(in->url) : sac_asprintf("file:%s", path);
}

static int open_address(struct sac_input *in, const char *address)
{
    struct state        *st = in->state;
    AVDictionary        *options = NULL;
    bool                 standard = strcmp(in->url, "-") == 0;
    const AVInputFormat *format = NULL;
    if (st->capture && sac_capture_find(in, &format, &address) != SAC_OK)
        return AVERROR_DEMUXER_NOT_FOUND;
    st->fmt = avformat_alloc_context();
    if (!st->fmt)
        return AVERROR(ENOMEM);
    st->fmt->interrupt_callback = (AVIOInterruptCB){interrupted, in};
    int err = standard ? use_standard_input(in) : 0;
    if (err < 0)
        return err;
    /* Over UDP, lost datagrams damage the picture at every hiccup. */
    av_dict_set(&options, "rtsp_flags", "prefer_tcp", 0);
    start_deadline(in);
    /* On failure it frees the context, but not our own pb. */
    err = avformat_open_input(&st->fmt, address, format, &options);
    av_dict_free(&options);
    if (err < 0)
        return err;
    start_deadline(in);
    err = avformat_find_stream_info(st->fmt, NULL);
    if (err >= 0)
        read_again(st);
    return err;
}

static int open_format(struct sac_input *in)
{
    char *address = address_of(in);
    int   err = address ? open_address(in, address) : AVERROR(ENOMEM);
    sac_free(address);
    return err;
}

/* The video to play: no cover picture; the one marked as default is preferred, then the largest. */
static int choose_video(const AVFormatContext *fmt)
{
    int     best = -1;
    int64_t best_rank = -1;
    for (int i = 0; i < (int)fmt->nb_streams; i++) {
        const AVStream          *st = fmt->streams[i];
        const AVCodecParameters *par = st->codecpar;
        if (par->codec_type != AVMEDIA_TYPE_VIDEO ||
            (st->disposition & (AV_DISPOSITION_ATTACHED_PIC | AV_DISPOSITION_TIMED_THUMBNAILS)))
            continue;
        int64_t rank = (int64_t)SAC_MAX(par->width, 0) * SAC_MAX(par->height, 0) +
                       (st->disposition & AV_DISPOSITION_DEFAULT ? INT64_C(1) << 62 : 0);
        if (rank > best_rank) {
            best_rank = rank;
            best = i;
        }
    }
    return best;
}

/* libavformat renders a text file as video, as a terminal would show it; that is not wanted
 * here. */
static bool is_text(const AVFormatContext *fmt)
{
    const AVCodecParameters *par = fmt->nb_streams ? fmt->streams[0]->codecpar : NULL;
    return par && (par->codec_id == AV_CODEC_ID_ANSI || par->codec_id == AV_CODEC_ID_BINTEXT ||
                   par->codec_id == AV_CODEC_ID_XBIN || par->codec_id == AV_CODEC_ID_IDF);
}

static sac_result keep_streams(struct sac_input *in)
{
    AVFormatContext *fmt = ((struct state *)in->state)->fmt;
    int              video = ((struct state *)in->state)->video_index;
    bool             network = ((struct state *)in->state)->network;
    enum AVCodecID  *codecs = ((struct state *)in->state)->kept_codec =
        sac_calloc(fmt->nb_streams, sizeof *codecs);
    in->kept = sac_calloc(fmt->nb_streams, sizeof *in->kept);
    if (!in->kept || !codecs)
        return SAC_FAIL(in->ctx, SAC_ERR_MEMORY, "%s: no memory", in->name);
    for (int i = 0; i < (int)fmt->nb_streams; i++) {
        AVStream *st = fmt->streams[i];
        bool      audio = st->codecpar->codec_type == AVMEDIA_TYPE_AUDIO;
        in->audio_streams += audio;
        if (audio && in->params->keep_packets) {
            codecs[in->kept_count] = st->codecpar->codec_id;
            in->kept[in->kept_count++] = st;
        } else if (i != video && network) /* of a file all are read: they show where it ends */
            st->discard = AVDISCARD_ALL;
    }
    return SAC_OK;
}

static void read_display_matrix(struct sac_input *in, const AVStream *st)
{
    const int32_t *matrix = NULL;
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 31, 102)
    const AVPacketSideData *side = av_packet_side_data_get(
        st->codecpar->coded_side_data, st->codecpar->nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
    if (side && side->size >= sizeof in->display_matrix)
        matrix = (const int32_t *)side->data;
#else
    size_t         size = 0;
    const uint8_t *data = av_stream_get_side_data(st, AV_PKT_DATA_DISPLAYMATRIX, &size);
    if (data && size >= sizeof in->display_matrix)
        matrix = (const int32_t *)data;
#endif
    in->has_display_matrix = matrix != NULL;
    if (matrix)
        memcpy(in->display_matrix, matrix, sizeof in->display_matrix);
}

/* The indices of these formats list every frame, without those that an edit list leaves out. 0:
 * there is no index, or only the part that was built while the file was opened. */
static int frames_listed(const struct state *st)
{
    AVStream *video = st->fmt->streams[st->video_index];
    const int count =
        is_format(st, "mp4") || is_format(st, "avi") ? avformat_index_get_entries_count(video) : 0;
    if (count < 2)
        return 0;
    const int64_t last = avformat_index_get_entry(video, count - 1)->timestamp;
    const int64_t span = last - avformat_index_get_entry(video, 0)->timestamp;
    return video->duration > 0 && span >= video->duration / count * (count - 1) / 2 ? count : 0;
}

/* mkvmerge and others store the number of frames as a tag; Matroska's own header has at best a
 * rate. */
static int64_t frames_counted(const AVStream *video)
{
    const AVDictionaryEntry *tag =
        av_dict_get(video->metadata, "NUMBER_OF_FRAMES", NULL, AV_DICT_IGNORE_SUFFIX);
    return tag ? strtoll(tag->value, NULL, 10) : 0;
}

/* libavformat guesses the rate from the spacing of the timestamps. Where the average is close to
 * it, the average is the number that people know. */
static AVRational average_rate(const struct state *st, AVRational guess)
{
    const AVStream *video = st->fmt->streams[st->video_index];
    const int       listed = frames_listed(st);
    const int64_t   counted = frames_counted(video), duration_us = st->fmt->duration;
    AVRational      rate = video->avg_frame_rate;
    if (counted > 1 && counted < INT32_MAX && duration_us > 0)
        av_reduce(&rate.num, &rate.den, counted * AV_TIME_BASE, duration_us, INT32_MAX);
    else if (listed > 0)
        av_reduce(&rate.num, &rate.den, (int64_t)listed * video->time_base.den,
                  video->duration * video->time_base.num, INT32_MAX);
    if (rate.num <= 0 || rate.den <= 0)
        return guess;
    return guess.num > 0 && fabs(av_q2d(rate) / av_q2d(guess) - 1) < 0.01 ? guess : rate;
}

static sac_result describe(struct sac_input *in)
{
    struct state    *st = in->state;
    AVFormatContext *fmt = st->fmt;
    AVStream        *video = fmt->streams[st->video_index];
    if (avcodec_parameters_copy(in->video, video->codecpar) < 0)
        return SAC_FAIL(in->ctx, SAC_ERR_MEMORY, "%s: no memory", in->name);
    if (in->video->sample_aspect_ratio.num == 0)
        in->video->sample_aspect_ratio = video->sample_aspect_ratio;
    in->time_base = video->time_base;
    in->fps = av_guess_frame_rate(fmt, video, NULL);
    if (in->fps.num <= 0 || in->fps.den <= 0)
        in->fps = (AVRational){0, 1};
    in->average = average_rate(st, in->fps);
    in->fmt = fmt;
    in->video_index = st->video_index;
    in->duration_us = fmt->duration > 0 ? fmt->duration : 0;
    const int listed = frames_listed(st);
    in->frames = video->nb_frames > 0
                     ? (listed > 0 ? listed : video->nb_frames)
                     : llround((double)in->duration_us * av_q2d(in->average) / 1e6);
    in->provisional = is_format(st, "mpegts");
    if (is_transport_file(st) &&
        sac_program_open(in->ctx, sac_input_path(in->url), video->id, &st->program) != SAC_OK)
        sac_error_clear(in->ctx);
    in->live = st->capture || (st->network && in->duration_us == 0);
    in->seekable = !in->live && fmt->pb && (fmt->pb->seekable & AVIO_SEEKABLE_NORMAL);
    snprintf(in->container, sizeof in->container, "%s", fmt->iformat->name);
    read_display_matrix(in, video);
    return keep_streams(in);
}

static sac_result choose_and_describe(struct sac_input *in)
{
    struct state *st = in->state;
    if (is_text(st->fmt))
        return SAC_FAIL(in->ctx, SAC_ERR_FORMAT, "%s: this is text, not a video", in->name);
    st->video_index = choose_video(st->fmt);
    if (st->video_index < 0)
        return SAC_FAIL(in->ctx, SAC_ERR_FORMAT, "%s: no video in it (%s with %u other stream%s)",
                        in->name, st->fmt->iformat->name, st->fmt->nb_streams,
                        st->fmt->nb_streams == 1 ? "" : "s");
    return describe(in);
}

static sac_result open_container(struct sac_input *in)
{
    struct state *st = sac_new(struct state);
    if (!st)
        return SAC_FAIL(in->ctx, SAC_ERR_MEMORY, "%s: no memory", in->name);
    in->state = st;
    st->capture = sac_capture_is(in->url);
    st->network = !st->capture && is_network(in->url);
    if (!st->network && !st->capture && strcmp(in->url, "-") != 0) {
        sac_result res = look_at_file(in);
        if (res != SAC_OK)
            return res;
    }
    sac_ffmpeg_log_begin(in->ctx);
    int        err = open_format(in);
    sac_result res = err == AVERROR_DEMUXER_NOT_FOUND && st->capture ? SAC_ERR_UNSUPPORTED
                     : err < 0                                       ? fail(in, err)
                                                                     : choose_and_describe(in);
    st->opened = true;
    sac_ffmpeg_log_end();
    return res;
}

/* ---- read ---- */

static int kept_of(const struct sac_input *in, int stream)
{
    const struct state *st = in->state;
    const AVStream     *now = st->fmt->streams[stream];
    for (int i = 0; i < in->kept_count; i++)
        if (in->kept[i]->id == now->id && (st->former_count || in->kept[i]->index == stream))
            return i;
    return -1;
}

/* Whether the file or the connection failed, as opposed to damaged bytes. */
static bool is_io_error(const struct state *st, int err)
{
    return err == AVERROR_EXIT || err == AVERROR(ENOMEM) || err == AVERROR(EIO) ||
           err == AVERROR(ETIMEDOUT) || err == AVERROR(ECONNRESET) ||
           (st->fmt->pb && st->fmt->pb->error == err && err != AVERROR_INVALIDDATA);
}

/* Why no packet came. Some demuxers report any error as the end, so the file or connection is
 * checked. HTTP reports the end as an error when the length was not announced. */
static int cause_of(const struct state *st, int err)
{
    AVIOContext *pb = st->fmt->pb;
    if (st->timed_out)
        return AVERROR_EXIT;
    if (!pb || pb->error >= 0 || pb->error == AVERROR_EOF)
        return err;
    if (st->network && pb->error == AVERROR(EIO) && avio_size(pb) <= 0)
        return AVERROR_EOF;
    return err == AVERROR_EOF ? pb->error : err;
}

static void note_packet(struct state *st, const AVPacket *packet)
{
    AVRational tb = st->fmt->streams[packet->stream_index]->time_base;
    int64_t    ts = packet->pts != AV_NOPTS_VALUE ? packet->pts : packet->dts;
    int64_t    at = sac_time_us(ts, tb), lasts = sac_time_us(packet->duration, tb);
    st->video_packets += packet->stream_index == st->video_index;
    st->last_is_damaged = packet->flags & AV_PKT_FLAG_CORRUPT;
    if (at == SAC_TIME_NONE || lasts == SAC_TIME_NONE)
        return;
    st->end_us = SAC_MAX(st->end_us, at + lasts);
    if (packet->stream_index == st->video_index)
        st->video_end_us = SAC_MAX(st->video_end_us, at + lasts);
}

/* How much of the stated duration the file holds. Writers count it from 0 or from the first
 * picture; a file that begins after its stated duration must mean the latter. */
static int64_t came_of(const struct state *st, int64_t promised)
{
    const int64_t start = st->fmt->start_time == AV_NOPTS_VALUE ? 0 : st->fmt->start_time;
    return start > 0 && promised > start ? st->end_us : st->end_us - start;
}

/* MP4 counts its packets; an edit list may leave some out, as a video that was trimmed does. */
static int64_t packets_promised(const struct state *st)
{
    const AVStream *video = st->fmt->streams[st->video_index];
    const int       listed = frames_listed(st);
    return listed > 0 ? SAC_MIN(video->nb_frames, listed) : video->nb_frames;
}

/* Whether the file holds less than its header states. AVI counts chunks; empty ones give no packet,
 * but each is one tick. Matroska states the duration of the stream that ends last. A transport
 * stream states nothing. */
static bool is_cut_off(const struct state *st)
{
    const AVStream *video = st->fmt->streams[st->video_index];
    const bool      avi = is_format(st, "avi");
    int64_t         promised = avi ? sac_time_us(video->nb_frames, video->time_base) : 0;
    int64_t         came = st->video_end_us;
    if (st->network)
        return false;
    if (!avi && st->fmt->duration_estimation_method == AVFMT_DURATION_FROM_STREAM) {
        promised = st->fmt->duration;
        came = came_of(st, promised);
    }
    return st->last_is_damaged || promised - came > SAC_MAX(500000, promised / 100) ||
           (!avi && !st->sought &&
            packets_promised(st) - st->video_packets > 1 + video->nb_frames / 200);
}

static sac_result end_of_input(struct sac_input *in)
{
    const struct state *st = in->state;
    if (st->standard_input && st->video_packets == 0 && in->corrupt > 0)
        return SAC_FAIL(
            in->ctx, SAC_ERR_FORMAT,
            "%s: its pictures lie before its index, and there is no way back in a pipe; give the "
            "file by name, or write it with the index in front",
            in->name);
    in->cut_off = is_cut_off(st);
    return SAC_EOS;
}

/* ---- changes of a transport stream's program ---- */

static sac_result go_on_with(struct sac_input *in, const AVCodecParameters *video)
{
    AVCodecParameters *plain = avcodec_parameters_alloc();
    if (!plain)
        return SAC_FAIL(in->ctx, SAC_ERR_MEMORY, "%s: no memory", in->name);
    sac_log(in->ctx, SAC_LOG_INFO, "%s: the video goes on as %s, after %s", in->name,
            avcodec_get_name(video->codec_id), avcodec_get_name(in->video->codec_id));
    plain->codec_type = video->codec_type; /* the other fields may still be the former codec's */
    plain->codec_id = video->codec_id;
    plain->codec_tag = video->codec_tag;
    plain->sample_aspect_ratio = in->video->sample_aspect_ratio;
    const int err = avcodec_parameters_copy(in->video, plain);
    avcodec_parameters_free(&plain);
    in->generation++;
    return err < 0 ? SAC_FAIL(in->ctx, SAC_ERR_MEMORY, "%s: no memory", in->name) : SAC_OK;
}

static bool is_in_a_program(const struct state *st, int stream)
{
    return av_find_program_from_stream(st->fmt, NULL, stream) != NULL;
}

/* The program map may name another stream for the video; the former one is then in no program. */
static bool takes_over(const struct sac_input *in, const AVPacket *packet)
{
    const struct state *st = in->state;
    const AVStream     *stream = st->fmt->streams[packet->stream_index];
    return packet->stream_index != st->video_index && st->fmt->nb_programs > 0 &&
           stream->codecpar->codec_type == AVMEDIA_TYPE_VIDEO &&
           av_cmp_q(stream->time_base, in->time_base) == 0 &&
           !is_in_a_program(st, st->video_index) && is_in_a_program(st, packet->stream_index);
}

/* Open the file again, from an offset on, in a new context. */
static sac_result open_from(struct sac_input *in, int64_t place, int pid)
{
    struct state    *st = in->state;
    AVFormatContext *fmt = avformat_alloc_context();
    char            *address = address_of(in);
    int              err = fmt && address ? 0 : AVERROR(ENOMEM);
    if (err == 0)
        err = avio_open2(&fmt->pb, address, AVIO_FLAG_READ, NULL, NULL);
    sac_free(address);
    if (fmt) {
        fmt->interrupt_callback = (AVIOInterruptCB){interrupted, in};
        fmt->flags |= AVFMT_FLAG_CUSTOM_IO; /* until it is open, we close the file */
    }
    if (err >= 0)
        err = (int)SAC_MIN(avio_seek(fmt->pb, place, SEEK_SET), 0);
    AVIOContext *pb = fmt ? fmt->pb : NULL;
    if (err >= 0) /* which frees the context on failure, but not the file */
        err = avformat_open_input(&fmt, NULL, st->fmt->iformat, NULL);
    if (err >= 0)
        err = avformat_find_stream_info(fmt, NULL);
    int video = -1;
    for (unsigned i = 0; err >= 0 && i < fmt->nb_streams; i++)
        if (fmt->streams[i]->id == pid &&
            fmt->streams[i]->codecpar->codec_type == AVMEDIA_TYPE_VIDEO)
            video = (int)i;
    if (err < 0 || video < 0 ||
        !sac_grow((void **)&st->former, &st->former_capacity, st->former_count + 1,
                  sizeof *st->former)) {
        avformat_close_input(&fmt);
        avio_closep(&pb);
        return err < 0 ? fail(in, err) : SAC_AGAIN;
    }
    fmt->flags &= ~AVFMT_FLAG_CUSTOM_IO; /* so that libavformat closes the file */
    st->former[st->former_count++] = st->fmt;
    st->fmt = fmt;
    st->video_index = video;
    return go_on_with(in, fmt->streams[video]->codecpar);
}

/* Call after each packet, and with NULL at the end. SAC_AGAIN: the video's codec changes, and the
 * file was reopened from there. The former codec's parser may give no packet of the new codec; then
 * the next audio packet behind the change shows it. */
static sac_result follow_codec(struct sac_input *in, const AVPacket *packet)
{
    struct state *st = in->state;
    if (st->change_at == 0 && st->program.file)
        st->change_at = sac_program_change(&st->program, packet ? avio_tell(st->fmt->pb)
                                                                : avio_size(st->fmt->pb));
    const int64_t behind =
        packet && packet->stream_index == st->video_index ? 0 : SOUND_BEHIND_BYTES;
    if (st->change_at == 0 || (packet && packet->pos < st->change_at + behind))
        return SAC_OK;
    sac_result res = open_from(in, st->change_at, st->program.pid);
    st->change_at = 0;
    return res == SAC_OK ? SAC_AGAIN : res == SAC_AGAIN ? SAC_OK : res;
}

static sac_result follow_program(struct sac_input *in, const AVPacket *packet)
{
    struct state *st = in->state;
    const bool    other = takes_over(in, packet);
    if (other)
        st->video_index = packet->stream_index;
    const AVCodecParameters *video = st->fmt->streams[st->video_index]->codecpar;
    if (other) {
        st->program.pid = st->fmt->streams[st->video_index]->id;
        st->program.type = -1;
    }
    if (other ||
        (packet->stream_index == st->video_index && video->codec_id != in->video->codec_id))
        return go_on_with(in, video);
    return follow_codec(in, packet);
}

/* A sink's stream holds packets of one codec only. */
static bool still_fits(struct sac_input *in, int kept, int stream)
{
    struct state            *st = in->state;
    const AVCodecParameters *now = st->fmt->streams[stream]->codecpar;
    if (st->kept_codec[kept] != AV_CODEC_ID_NONE && st->kept_codec[kept] != now->codec_id) {
        sac_log(in->ctx, SAC_LOG_WARN,
                "%s: its audio changes from %s to %s, and is left out from here on", in->name,
                avcodec_get_name(st->kept_codec[kept]), avcodec_get_name(now->codec_id));
        st->kept_codec[kept] = AV_CODEC_ID_NONE;
    }
    return st->kept_codec[kept] == now->codec_id;
}

static sac_result read_packet(struct sac_input *in, AVPacket *packet, int *kept)
{
    struct state *st = in->state;
    for (int damaged = 0; damaged < DAMAGED_IN_A_ROW_MAX;) {
        if (!st->timed_out)
            start_deadline(in);
        int err = av_read_frame(st->fmt, packet);
        if (atomic_load(in->cancelled)) {
            av_packet_unref(packet);
            return fail(in, AVERROR_EXIT);
        }
        if (err < 0 && err != AVERROR(EAGAIN))
            err = cause_of(st, err);
        if (err == AVERROR_EOF) {
            sac_result res = follow_codec(in, NULL);
            if (res == SAC_AGAIN)
                continue;
            return res == SAC_OK ? end_of_input(in) : res;
        }
        if (err == AVERROR(EAGAIN) && !st->timed_out)
            continue;
        if (err < 0) {
            if (is_io_error(st, err) || interrupted(in))
                return fail(in, err);
            in->corrupt++;
            damaged++;
            st->last_is_damaged = true;
            continue;
        }
        sac_result res = follow_program(in, packet);
        if (res == SAC_AGAIN) { /* the packet will be read again */
            av_packet_unref(packet);
            continue;
        }
        if (res != SAC_OK)
            return res;
        note_packet(st, packet);
        *kept = packet->stream_index == st->video_index ? -1 : kept_of(in, packet->stream_index);
        if (*kept < 0 ? packet->stream_index != st->video_index
                      : !still_fits(in, *kept, packet->stream_index)) {
            av_packet_unref(packet);
            continue;
        }
        in->corrupt += *kept < 0 && (packet->flags & AV_PKT_FLAG_CORRUPT);
        return SAC_OK;
    }
    return end_of_input(in);
}

static bool seek(struct sac_input *in, int64_t ts)
{
    struct state *st = in->state;
    start_deadline(in);
    sac_ffmpeg_log_begin(in->ctx);
    const int err = av_seek_frame(st->fmt, st->video_index, ts, AVSEEK_FLAG_BACKWARD);
    sac_ffmpeg_log_end();
    st->sought = true;
    st->program.at = -1;
    st->change_at = 0;
    return err >= 0;
}

static bool claims(const char *url)
{
    (void)url;
    return true;
}

static void close_container(struct sac_input *in)
{
    struct state *st = in->state;
    if (!st)
        return;
    in->fmt = NULL;
    avformat_close_input(&st->fmt);
    while (st->former_count > 0)
        avformat_close_input(&st->former[--st->former_count]);
    sac_free(st->former);
    sac_program_close(&st->program);
    if (st->standard_input) {
        av_freep(&st->standard_input->buffer);
        avio_context_free(&st->standard_input);
    }
    sac_free(in->kept);
    sac_free(st->kept_codec);
    sac_free(st);
    in->state = NULL;
}

static const char *file_of_container(const struct sac_input *in, size_t i)
{
    return i == 0 ? sac_input_path(in->url) : NULL;
}

const struct sac_input_ops sac_input_container = {
    .name = "container",
    .claims = claims,
    .open = open_container,
    .read = read_packet,
    .seek = seek,
    .close = close_container,
    .file = file_of_container,
};
