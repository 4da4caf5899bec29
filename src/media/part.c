/* SPDX-License-Identifier: Apache-2.0 */
/* The wanted part of an input: from a start time, for a duration, every n-th frame. */
#include <math.h>
#include <stdio.h>

#include "media/source.h"

/* Not every container finds a key frame before a time (a transport stream has no index), so a
 * second attempt seeks further back. */
static const int64_t margins_us[] = {0, 3000000, 15000000, INT64_MAX};

/* The number of frames before a time, at a constant rate. */
static int64_t frames_before(const struct sac_source *src, int64_t us)
{
    return (int64_t)ceil((double)us * av_q2d(src->input.average) / 1e6 - 1e-6);
}

bool sac_part_is_over(const struct sac_source *src, int64_t pts_us)
{
    const struct sac_source_params *p = &src->params;
    return p->duration_us > 0 && pts_us - p->start_us >= p->duration_us;
}

bool sac_part_takes(struct sac_source *src, const sac_frame *frame)
{
    if (frame->pts_us < src->params.start_us)
        return false;
    if (src->part_first < 0)
        src->part_first = frame->number;
    return (frame->number - src->part_first) % SAC_MAX(src->params.every, 1) == 0;
}

void sac_part_describe(const struct sac_source *src, struct sac_source_info *info)
{
    const struct sac_source_params *p = &src->params;
    const int                       every = SAC_MAX(p->every, 1);
    const int64_t                   before = frames_before(src, p->start_us);
    const int64_t                   end_us = p->start_us + p->duration_us;
    if (p->duration_us > 0 && (info->duration_us == 0 || end_us < info->duration_us)) {
        info->duration_us = p->duration_us;
        info->frames = frames_before(src, end_us) - before;
    } else {
        info->duration_us = SAC_MAX(info->duration_us - p->start_us, 0);
        info->frames = SAC_MAX(info->frames - before, 0);
    }
    info->frames = (info->frames + every - 1) / every;
    info->fps /= every;
    info->fps_den *= every;
}

sac_result sac_part_fail_empty(struct sac_source *src)
{
    const int64_t lasts = src->input.duration_us > 0
                              ? src->input.duration_us
                              : src->timeline.last_us + src->timeline.step_us;
    const double  start_s = (double)src->params.start_us * 1e-6;
    if (src->params.duration_us > 0 && src->params.start_us < lasts)
        return SAC_FAIL(src->ctx, SAC_ERR_ARG, "%s: no frame in the %.3f s from %.3f s on",
                        src->name, (double)src->params.duration_us * 1e-6, start_s);
    return SAC_FAIL(src->ctx, SAC_ERR_ARG, "%s: no frame at %.3f s or later; it lasts %.3f s",
                    src->name, start_s, (double)lasts * 1e-6);
}

/* ---- going to the beginning of the part ---- */

/* Restart decoding at the key frame that the input found; the timeline is kept. */
static sac_result start_anew(struct sac_source *src)
{
    av_packet_unref(src->packet);
    src->packet_waits = src->input_ended = src->wants_key = false;
    src->fault = SAC_OK;
    src->timeline.started = false;
    sac_frame_unref(&src->pending);
    pthread_mutex_lock(&src->lock);
    sac_kept_finish(&src->kept);
    pthread_mutex_unlock(&src->lock);
    return sac_feed_open_decoder(src);
}

/* *found: the first frame after the seek is not past the start. */
static sac_result try_from(struct sac_source *src, int64_t from_us, bool *found)
{
    struct sac_input *in = &src->input;
    const int64_t     ts =
        av_rescale_q(src->timeline.origin_us + from_us, AV_TIME_BASE_Q, in->time_base);
    if (!in->ops->seek(in, ts))
        return SAC_OK;
    sac_result res = start_anew(src);
    src->wants_key = src->seeks = true;
    if (res == SAC_OK)
        res = sac_feed_any_frame(src, &src->pending);
    src->seeks = false;
    if (res == SAC_EOS)
        return SAC_OK; /* between the last key frame and the end */
    if (res != SAC_OK)
        return res;
    src->pending->number = llround((double)src->pending->pts_us * av_q2d(in->average) / 1e6);
    src->number = src->pending->number + 1;
    /* a picture without a time of its own may be from anywhere */
    *found =
        src->pending->source_pts_us != SAC_PTS_NONE && src->pending->pts_us <= src->params.start_us;
    return SAC_OK;
}

/* An input that can't seek by time is read from its beginning. */
static sac_result read_from_the_beginning(struct sac_source *src)
{
    sac_input_close(&src->input);
    src->number = 0;
    src->timeline = (struct sac_timeline){0};
    sac_result res = sac_source_open_input(src);
    return res == SAC_OK ? start_anew(src) : res;
}

static sac_result seek(struct sac_source *src)
{
    sac_result res = SAC_OK;
    bool       found = false;
    for (size_t i = 0; i < SAC_COUNT(margins_us) && !found && res == SAC_OK; i++) {
        const int64_t start_us = src->params.start_us;
        const int64_t from_us = start_us > margins_us[i] ? start_us - margins_us[i] : 0;
        res = try_from(src, from_us, &found);
        if (from_us == 0)
            break;
    }
    return res == SAC_OK && !found ? read_from_the_beginning(src) : res;
}

/* Times count from the first frame, which must be decoded to be known. */
static sac_result find_origin(struct sac_source *src)
{
    sac_result res = src->first ? SAC_OK : sac_feed_any_frame(src, &src->first);
    sac_frame_unref(&src->first);
    return res;
}

static sac_result go_to_start(struct sac_source *src)
{
    struct sac_input *in = &src->input;
    if (in->numbered) {
        sac_frame_unref(&src->first); /* opening may have read one */
        in->ops->seek(in, frames_before(src, src->params.start_us));
    }
    sac_result res = in->numbered ? start_anew(src) : find_origin(src);
    /* Without times, or without a rate to number frames by, all are counted from the first. */
    const bool can = src->timeline.anchored && src->timeline.repaired == 0 && in->average.num > 0;
    if (res == SAC_OK && !in->numbered)
        res = can ? seek(src) : read_from_the_beginning(src);
    return res == SAC_OK ? sac_feed_next_frame(src, &src->first) : res;
}

sac_result sac_part_begin(struct sac_source *src)
{
    const struct sac_source_params *p = &src->params;
    if (p->start_us < 0 || p->duration_us < 0 || p->every < 0)
        return SAC_FAIL(src->ctx, SAC_ERR_ARG, "%s: start, duration and every can't be negative",
                        src->name);
    if (p->start_us == 0)
        return SAC_OK;
    if (src->input.seekable)
        return go_to_start(src);
    src->pending = src->first; /* a camera or pipe: the reader skips what comes before the start */
    src->first = NULL;
    return SAC_OK;
}

/* ---- the other streams ---- */

static AVRational base_of(const struct sac_input *in, int kept)
{
    return kept < 0 ? in->time_base : in->kept[kept]->time_base;
}

static bool time_of(const struct sac_source *src, const AVPacket *packet, AVRational time_base,
                    int64_t *out)
{
    const int64_t ts = packet->dts != AV_NOPTS_VALUE ? packet->dts : packet->pts;
    const int64_t us = sac_time_us(ts, time_base);
    *out = us - src->timeline.origin_us;
    return us != SAC_TIME_NONE && src->timeline.anchored;
}

bool sac_part_keeps(const struct sac_source *src, const AVPacket *packet, int stream)
{
    int64_t us;
    return !time_of(src, packet, base_of(&src->input, stream), &us) ||
           (us >= src->params.start_us && !sac_part_is_over(src, us));
}

/* Audio comes after its pictures in a file, mostly by less than a second. */
enum { REST_MAX_US = 3000000 };

sac_result sac_part_read_rest(struct sac_source *src)
{
    struct sac_input *in = &src->input;
    int               left = in->kept_count, kept;
    bool             *ended = sac_calloc((size_t)SAC_MAX(left, 1), sizeof *ended);
    sac_result        res = ended ? SAC_OK : SAC_ERR_MEMORY;
    while (res == SAC_OK && left > 0) {
        int64_t us;
        av_packet_unref(src->packet);
        res = in->ops->read(in, src->packet, &kept);
        if (res != SAC_OK || !time_of(src, src->packet, base_of(in, kept), &us))
            continue;
        if (kept >= 0)
            res = sac_feed_keep_packet(src, kept);
        if (kept < 0 && sac_part_is_over(src, us - REST_MAX_US))
            break;
        if (kept >= 0 && sac_part_is_over(src, us) && !ended[kept]) {
            ended[kept] = true;
            left--;
        }
    }
    sac_free(ended);
    av_packet_unref(src->packet);
    return res == SAC_ERR_CANCELLED ? res : SAC_EOS; /* the wanted part is complete */
}
