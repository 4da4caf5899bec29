/* SPDX-License-Identifier: Apache-2.0 */
/* From packets to frames: the part of a source that runs on the prefetch thread or, without one, on
 * the caller's. */
#include <stdio.h>
#include <string.h>

#include "base/range.h"
#include "device/device.h"
#include "media/source.h"

/* ---- open ---- */

/* Matroska and WebM: the alpha of VP8 and VP9 is a second picture in each packet's side data. */
static bool has_alpha_beside(const struct sac_input *in)
{
    const enum AVCodecID id = in->video->codec_id;
    if (!in->fmt || (id != AV_CODEC_ID_VP8 && id != AV_CODEC_ID_VP9))
        return false;
    const AVDictionary      *tags = in->fmt->streams[in->video_index]->metadata;
    const AVDictionaryEntry *mode = av_dict_get(tags, "alpha_mode", NULL, 0);
    return mode && strcmp(mode->value, "1") == 0;
}

sac_result sac_feed_open_input(struct sac_source *src)
{
    src->input.ctx = src->ctx;
    src->input.url = src->url;
    src->input.name = src->name;
    src->input.params = &src->params;
    src->input.cancelled = &src->cancelled;
    src->input.unmapped = src->dev->without & SAC_WITHOUT_MMAP;
    sac_result res = sac_input_open(&src->input);
    if (res != SAC_OK)
        return res;
    src->decoder.dev = src->dev;
    src->decoder.source_name = src->name;
    src->decoder.params = &src->params;
    src->decoder.cancelled = &src->cancelled;
    src->decoder.images = src->input.fmt == NULL;
    src->decoder.alpha_beside = src->params.alpha && has_alpha_beside(&src->input);
    src->decoder.threads =
        src->params.decode_threads > 0 ? src->params.decode_threads : sac_video_threads(src->dev);
    src->decoder.time_base = src->input.time_base;
    src->decoder.display = src->input.has_display_matrix ? sac_display_of(src->input.display_matrix)
                                                         : (struct sac_display){.can_turn = true};
    if (src->input.fps.num > 0)
        src->timeline.step_us = av_rescale_q(1, av_inv_q(src->input.fps), AV_TIME_BASE_Q);
    src->timeline.anchored = src->input.numbered;
    return SAC_OK;
}

/* ---- kept packets ---- */

/* Keep src->packet, which belongs to the input's kept[stream]. */
static sac_result keep_packet(struct sac_source *src, int stream)
{
    if (!sac_part_keeps(src, src->packet, stream))
        return SAC_OK;
    pthread_mutex_lock(&src->lock);
    uint64_t dropped = src->kept.dropped;
    bool     ok = sac_kept_push(&src->kept, src->packet, stream);
    bool     first_dropped = dropped == 0 && src->kept.dropped > 0;
    pthread_mutex_unlock(&src->lock);
    if (first_dropped)
        sac_log(src->ctx, SAC_LOG_WARN,
                "%s: too much audio lies far from its pictures; the oldest is dropped", src->name);
    return ok ? SAC_OK
              : SAC_FAIL(src->ctx, SAC_ERR_MEMORY, "%s: no memory for audio packets", src->name);
}

sac_result sac_source_take_kept(sac_source *src, int64_t until_us, AVPacket *packet, int *stream,
                                int64_t *origin_us)
{
    sac_result res = SAC_AGAIN;
    pthread_mutex_lock(&src->lock);
    const struct sac_kept_packet *first = sac_kept_first(&src->kept);
    if (first) {
        AVRational tb = src->input.kept[first->stream]->time_base;
        int64_t ts = first->packet->dts != AV_NOPTS_VALUE ? first->packet->dts : first->packet->pts;
        int64_t us = sac_time_us(ts, tb);
        if (us == SAC_TIME_NONE || us - src->origin_us < until_us) {
            *stream = first->stream;
            *origin_us = src->origin_us + src->params.start_us;
            sac_kept_take(&src->kept, packet);
            res = SAC_OK;
        }
    }
    pthread_mutex_unlock(&src->lock);
    return res;
}

/* ---- from packets to frames ---- */

/* Some decoders invent pictures that refer to packets they never got. */
static bool leaves_out(struct sac_source *src)
{
    src->wants_key &= !(src->packet->flags & AV_PKT_FLAG_KEY);
    return src->wants_key;
}

/* What can't be sought comes when its sender sends it: waiting for it is no work of the decoder. */
static sac_result await_packet(struct sac_source *src, int *kept)
{
    struct sac_input *in = &src->input;
    const int64_t     begun_ns = in->seekable ? 0 : sac_time_ns();
    const sac_result  res = in->ops->read(in, src->packet, kept);
    if (!in->seekable)
        src->waited_ns += sac_time_ns() - begun_ns;
    return res;
}

static sac_result read_packet(struct sac_source *src)
{
    int        kept = -1;
    sac_result res = SAC_OK;
    for (;;) {
        res = await_packet(src, &kept);
        if (res == SAC_OK && kept >= 0)
            res = keep_packet(src, kept);
        else if (res != SAC_OK || (src->packet->size > 0 && !leaves_out(src)))
            break;
        if (res != SAC_OK)
            return res;
        av_packet_unref(src->packet); /* empty: a skipped picture; it would mean the end */
    }
    src->packet_waits = res == SAC_OK;
    if (res == SAC_OK)
        sac_arrival_note(src);
    pthread_mutex_lock(&src->lock);
    src->corrupt_packets = src->input.corrupt;
    src->stats.packets += res == SAC_OK;
    src->stats.bytes += (uint64_t)(res == SAC_OK ? src->packet->size : 0);
    pthread_mutex_unlock(&src->lock);
    return res;
}

static void count_damage(struct sac_source *src)
{
    pthread_mutex_lock(&src->lock);
    src->stats.corrupt++;
    pthread_mutex_unlock(&src->lock);
}

static sac_result drain(struct sac_source *src)
{
    src->draining = true;
    sac_result res = sac_decoder_send(&src->decoder, NULL);
    return res == SAC_AGAIN || res == SAC_ERR_FORMAT ? SAC_OK : res;
}

/* No packet follows. A fault is reported after the frames that the decoder still holds. */
static sac_result end_packets(struct sac_source *src, sac_result res)
{
    if (res == SAC_ERR_CANCELLED)
        return res;
    src->input_ended = true;
    src->fault = res == SAC_EOS ? SAC_OK : res;
    if (src->fault != SAC_OK)
        sac_context_last_error(src->ctx, src->fault_sentence, sizeof src->fault_sentence);
    return drain(src);
}

/* Give the decoder its next packet, or tell it that none follows. */
static sac_result feed(struct sac_source *src)
{
    if (src->draining)
        return SAC_OK;
    if (!src->packet_waits) {
        sac_result res = read_packet(src);
        if (res != SAC_OK)
            return end_packets(src, res);
    }
    if (src->generation != src->input.generation)
        return drain(src);
    sac_result res = sac_decoder_send(&src->decoder, src->packet);
    if (res == SAC_AGAIN)
        return SAC_OK; /* full: it has frames to give first */
    if (res == SAC_ERR_FORMAT) {
        count_damage(src);
        res = SAC_OK;
    }
    av_packet_unref(src->packet);
    src->packet_waits = false;
    return res;
}

sac_result sac_feed_open_decoder(struct sac_source *src)
{
    sac_decoder_close(&src->decoder);
    src->draining = false;
    src->generation = src->input.generation;
    return sac_decoder_open(&src->decoder, src->input.video);
}

static sac_result at_end_of_input(struct sac_source *src)
{
    pthread_mutex_lock(&src->lock);
    const uint64_t  damaged = src->stats.corrupt + src->corrupt_packets;
    const long long frames = (long long)src->stats.frames;
    pthread_mutex_unlock(&src->lock);
    if (src->seeks)
        return SAC_EOS;
    if (src->fault != SAC_OK)
        return SAC_FAIL(src->ctx, src->fault, "%s", src->fault_sentence);
    if (src->params.start_us > 0 && src->part_first < 0 &&
        (src->decoded > 0 || src->input.numbered))
        return sac_part_fail_empty(src);
    if (src->decoded == 0)
        return SAC_FAIL(src->ctx, SAC_ERR_FORMAT,
                        "%s: not one frame of it can be decoded (%llu damaged)", src->name,
                        (unsigned long long)damaged);
    if (src->input.cut_off)
        return SAC_FAIL(src->ctx, SAC_ERR_FORMAT,
                        "%s: the file is cut off; the %lld frame%s that it still has %s read",
                        src->name, frames, frames == 1 ? "" : "s", frames == 1 ? "was" : "were");
    return SAC_EOS;
}

/* The decoder is empty: the end, or another codec follows. */
static sac_result after_drain(struct sac_source *src)
{
    return src->input_ended ? at_end_of_input(src) : sac_feed_open_decoder(src);
}

void sac_feed_describe_decoder(struct sac_source *src)
{
    struct sac_source_info *info = &src->info;
    snprintf(info->decoder, sizeof info->decoder, "%s", src->decoder.name);
    snprintf(info->decoder_note, sizeof info->decoder_note, "%s", src->decoder.note);
    info->surfaces = src->decoder.surfaces;
    info->surface_bytes = src->decoder.surface_bytes;
}

static void label(struct sac_source *src, sac_frame *frame, const struct sac_picture_note *note)
{
    AVRational tb = src->input.time_base;
    int64_t    duration = note->duration ? sac_time_us(note->duration, tb) : 0;
    frame->source_pts_us = sac_time_us(note->ts, tb);
    frame->pts_us = sac_timeline_next(&src->timeline, frame->source_pts_us, duration);
    frame->duration_us = duration > 0 ? duration : src->timeline.step_us;
    frame->number = src->input.numbered && note->ts >= 0 ? note->ts : src->number;
    frame->stream_id = src->params.stream_id;
    frame->arrived_ns = sac_arrival_of(src, note->ts);
    bool resized = src->decoded > 0 && (frame->width != src->width || frame->height != src->height);
    src->number++;
    src->decoded++;
    src->width = frame->width;
    src->height = frame->height;

    pthread_mutex_lock(&src->lock);
    src->origin_us = src->timeline.origin_us;
    src->stats.pts_repaired = src->timeline.repaired;
    /* after a seek the first frames may refer to what was not read */
    src->stats.corrupt += note->damaged && frame->pts_us >= src->params.start_us;
    src->stats.converted += note->converted;
    src->stats.size_changes += resized;
    src->info.alpha |= note->alpha;
    if (resized || src->decoder.note[0] != src->info.decoder_note[0])
        sac_feed_describe_decoder(src);
    pthread_mutex_unlock(&src->lock);
}

/* Opening decodes a first frame, and the caller may give up on it. */
static bool is_cancelled(const struct sac_source *src)
{
    const struct sac_source_params *p = &src->params;
    return atomic_load(&src->cancelled) ||
           (src->opening && p->give_up && p->give_up(p->give_up_user));
}

sac_result sac_feed_any_frame(struct sac_source *src, sac_frame **out)
{
    struct sac_picture_note note;
    sac_frame              *frame = NULL;
    sac_result              res = SAC_OK;
    if (src->pending) {
        *out = src->pending;
        src->pending = NULL;
        return SAC_OK;
    }
    while (res == SAC_OK) {
        if (is_cancelled(src))
            return SAC_FAIL(src->ctx, SAC_ERR_CANCELLED, "%s: reading was cancelled", src->name);
        res = sac_decoder_receive(&src->decoder, &frame, &note);
        if (res == SAC_OK) {
            label(src, frame, &note);
            *out = frame;
            return SAC_OK;
        }
        if (res == SAC_AGAIN) {
            res = feed(src);
        } else if (res == SAC_EOS) {
            res = after_drain(src);
        } else if (res == SAC_ERR_FORMAT) {
            count_damage(src);
            res = SAC_OK;
        }
    }
    return res;
}

/* Audio comes after its pictures in a file, mostly by less than a second. */
enum { REST_MAX_US = 3000000 };

/* At the end of the part: the rest of its audio. SAC_EOS. */
static sac_result read_rest(struct sac_source *src)
{
    struct sac_input *in = &src->input;
    int               left = in->kept_count, kept;
    bool             *ended = sac_calloc((size_t)SAC_MAX(left, 1), sizeof *ended);
    sac_result        res = ended ? SAC_OK : SAC_ERR_MEMORY;
    while (res == SAC_OK && left > 0) {
        int64_t us;
        av_packet_unref(src->packet);
        res = in->ops->read(in, src->packet, &kept);
        if (res != SAC_OK || !sac_part_time_of(src, src->packet, kept, &us))
            continue;
        if (kept >= 0)
            res = keep_packet(src, kept);
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

/* The next wanted frame. */
static sac_result decode_frame(struct sac_source *src, sac_frame **out)
{
    for (;;) {
        sac_frame *frame = NULL;
        sac_result res = sac_feed_any_frame(src, &frame);
        if (res != SAC_OK)
            return res;
        const bool over = sac_part_is_over(src, frame->pts_us);
        if (!over && sac_part_takes(src, frame)) {
            pthread_mutex_lock(&src->lock);
            src->stats.frames++;
            pthread_mutex_unlock(&src->lock);
            frame->duration_us *= SAC_MAX(src->params.every, 1);
            *out = frame;
            return SAC_OK;
        }
        sac_frame_unref(&frame);
        if (over)
            return src->part_first < 0 ? sac_part_fail_empty(src) : read_rest(src);
    }
}

sac_result sac_feed_next_frame(struct sac_source *src, sac_frame **out)
{
    const struct sac_source_params *p = &src->params;
    int64_t                         begun = p->on_decoded ? sac_time_ns() : 0;
    src->waited_ns = 0;
    sac_range_push("decode");
    sac_result res = decode_frame(src, out);
    sac_range_pop();
    if (res == SAC_OK && p->on_decoded)
        p->on_decoded(p->on_decoded_user, *out, begun + src->waited_ns, sac_time_ns());
    return res;
}
