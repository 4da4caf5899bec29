/* SPDX-License-Identifier: Apache-2.0 */
/* Goes to the beginning of an input's wanted part. */
#include <math.h>

#include "media/source.h"

/* Not every container finds a key frame before a time (a transport stream has no index), so a
 * second attempt seeks further back. */
static const int64_t margins_us[] = {0, 3000000, 15000000, INT64_MAX};

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
    sac_result res = sac_feed_open_input(src);
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
        in->ops->seek(in, sac_part_frames_before(src, src->params.start_us));
    }
    sac_result res = in->numbered ? start_anew(src) : find_origin(src);
    /* Without times, or without a rate to number frames by, all are counted from the first. */
    const bool can = src->timeline.anchored && src->timeline.repaired == 0 && in->average.num > 0;
    if (res == SAC_OK && !in->numbered)
        res = can ? seek(src) : read_from_the_beginning(src);
    return res == SAC_OK ? sac_feed_next_frame(src, &src->first) : res;
}

sac_result sac_seek_part(struct sac_source *src)
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
