/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "media/media.h"

/* The context that FFmpeg's messages on this thread go to, and the last error message. */
static _Thread_local struct {
    sac_context *ctx;
    char         complaint[160];
} listening;

static void hear(void *object, int level, const char *fmt, va_list ap)
{
    char line[1024]; /* long enough that no address is cut before its secrets are hidden */
    if (!listening.ctx || level > AV_LOG_VERBOSE)
        return;
    vsnprintf(line, sizeof line, fmt, ap);
    line[strcspn(line, "\r\n")] = '\0';
    if (!line[0])
        return;
    const AVClass *class = object ? *(const AVClass *const *)object : NULL;
    sac_log(listening.ctx, SAC_LOG_DEBUG, "ffmpeg %s: %s", class ? class->class_name : "", line);
    /* This message only follows the one that gives the reason. */
    if (level <= AV_LOG_ERROR && strncmp(line, "Failed setup for format", 23) != 0)
        sac_hide_secrets(line, listening.complaint, sizeof listening.complaint);
}

static void take_over_log(void)
{
    av_log_set_callback(hear);
}

void sac_ffmpeg_log_begin(sac_context *ctx)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, take_over_log);
    listening.ctx = ctx;
    listening.complaint[0] = '\0';
}

void sac_ffmpeg_log_end(void)
{
    listening.ctx = NULL;
    listening.complaint[0] = '\0';
}

const char *sac_ffmpeg_complaint(void)
{
    return listening.complaint;
}

sac_result sac_ffmpeg_result(int averror)
{
    switch (averror) {
    case AVERROR_INVALIDDATA:
    case AVERROR_EOF:
    case AVERROR_STREAM_NOT_FOUND:
    case AVERROR_DEMUXER_NOT_FOUND: return SAC_ERR_FORMAT;
    case AVERROR_DECODER_NOT_FOUND:
    case AVERROR_ENCODER_NOT_FOUND:
    case AVERROR_MUXER_NOT_FOUND:
    case AVERROR_PROTOCOL_NOT_FOUND:
    case AVERROR_PATCHWELCOME:
    case AVERROR(ENOSYS): return SAC_ERR_UNSUPPORTED;
    case AVERROR(ENOMEM): return SAC_ERR_MEMORY;
    case AVERROR_EXIT: return SAC_ERR_CANCELLED;
    default: return averror < 0 ? SAC_ERR_IO : SAC_OK;
    }
}

bool sac_ffmpeg_gpu_is_full(void)
{
    return strstr(listening.complaint, "OUT_OF_MEMORY");
}

sac_result sac_ffmpeg_verdict(const struct sac_decoder *dec, int averror)
{
    const char *complaint = listening.complaint;
    if (averror >= 0)
        return SAC_OK;
    if (averror == AVERROR(EAGAIN))
        return SAC_AGAIN;
    if (averror == AVERROR_EOF)
        return SAC_EOS;
    if (averror != AVERROR(ENOMEM) && !sac_ffmpeg_gpu_is_full())
        return SAC_ERR_FORMAT;
    return SAC_FAIL(sac_device_context(dec->dev), SAC_ERR_MEMORY,
                    complaint[0] ? "%s: no memory for its decoder '%s' on %s (%s)"
                                 : "%s: no memory for its decoder '%s' on %s",
                    dec->source_name, dec->name, sac_device_name(dec->dev), complaint);
}

sac_result sac_ffmpeg_fail(sac_context *ctx, int averror, const char *what)
{
    char words[AV_ERROR_MAX_STRING_SIZE];
    av_strerror(averror, words, sizeof words);
    const char *complaint = listening.complaint;
    return SAC_FAIL(ctx, sac_ffmpeg_result(averror), complaint[0] ? "%s: %s (%s)" : "%s: %s", what,
                    words, complaint);
}

struct sac_picture_note sac_picture_note_of(const AVFrame *picture)
{
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(57, 30, 100)
    const int64_t duration = picture->duration;
#else
    const int64_t duration = picture->pkt_duration;
#endif
    return (struct sac_picture_note){
        .ts = picture->best_effort_timestamp,
        .duration = SAC_MAX(duration, 0),
        .damaged = (picture->flags & AV_FRAME_FLAG_CORRUPT) || picture->decode_error_flags,
    };
}
