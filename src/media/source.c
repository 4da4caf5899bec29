/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <libavutil/display.h>

#include "base/range.h"
#include "base/thread.h"
#include "device/device.h"
#include "media/media.h"

struct sac_source {
    sac_context             *ctx;
    sac_device              *dev;
    char                    *url;
    const char              *name; /* for sentences: the url, or "standard input" */
    struct sac_source_params params;
    atomic_int               cancelled;

    /* The reading side: the prefetch thread, or the reader where there is none. */
    struct sac_input    input;
    struct sac_decoder  decoder;
    int                 generation; /* of the parameters that the decoder was opened with */
    struct sac_timeline timeline;
    AVPacket           *packet;
    bool                packet_waits; /* read, but the decoder has not taken it */
    bool                draining;     /* the decoder was told that no packet follows */
    bool                input_ended;
    bool                opening;
    int64_t             number;
    int                 width, height; /* of the last frame */
    sac_frame          *first;         /* decoded while opening, to learn the size */
    struct sac_source_info info;

    struct sac_queue *ready; /* NULL: no prefetch */
    pthread_t         thread;
    bool              thread_runs;
    sac_result        end; /* how the thread ended; set before ready is closed */
    char              end_sentence[512];
    atomic_int        at_end;

    pthread_mutex_t         lock; /* guards all below */
    struct sac_source_stats stats; /* corrupt without those that the input counts */
    uint64_t                corrupt_packets;
    struct sac_kept         kept;
    int64_t                 origin_us; /* the timeline's, for sinks */
};

struct sac_source_params sac_source_params_default(void)
{
    return (struct sac_source_params){
        .fps = 25, .prefetch = 4, .timeout_us = 10 * 1000 * 1000};
}

/* ---- kept packets ---- */

static sac_result keep_packet(struct sac_source *src, int stream)
{
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
        int64_t    ts = first->packet->dts != AV_NOPTS_VALUE ? first->packet->dts : first->packet->pts;
        int64_t    us = sac_time_us(ts, tb);
        if (us == SAC_TIME_NONE || us - src->origin_us < until_us) {
            *stream = first->stream;
            *origin_us = src->origin_us;
            sac_kept_take(&src->kept, packet);
            res = SAC_OK;
        }
    }
    pthread_mutex_unlock(&src->lock);
    return res;
}

/* ---- from packets to frames ---- */

static sac_result read_packet(struct sac_source *src)
{
    int        kept = -1;
    sac_result res = SAC_OK;
    for (;;) {
        res = src->input.ops->read(&src->input, src->packet, &kept);
        if (res == SAC_OK && kept >= 0)
            res = keep_packet(src, kept);
        else if (res != SAC_OK || src->packet->size > 0)
            break;
        if (res != SAC_OK)
            return res;
        av_packet_unref(src->packet); /* empty: a picture left out; to a decoder it means the end */
    }
    src->packet_waits = res == SAC_OK;
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

/* Give the decoder its next packet, or tell it that none follows. */
static sac_result feed(struct sac_source *src)
{
    if (src->draining)
        return SAC_OK;
    if (!src->packet_waits) {
        sac_result res = read_packet(src);
        src->input_ended = res == SAC_EOS;
        if (res == SAC_EOS)
            return drain(src);
        if (res != SAC_OK)
            return res;
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

static sac_result open_decoder(struct sac_source *src)
{
    sac_decoder_close(&src->decoder);
    src->draining = false;
    src->generation = src->input.generation;
    return sac_decoder_open(&src->decoder, src->input.video);
}

static sac_result at_end_of_input(struct sac_source *src)
{
    struct sac_source_stats stats;
    sac_source_get_stats(src, &stats);
    if (src->number == 0)
        return SAC_FAIL(src->ctx, SAC_ERR_FORMAT,
                        "%s: not one frame of it can be decoded (%llu damaged)", src->name,
                        (unsigned long long)stats.corrupt);
    if (src->input.cut_off)
        return SAC_FAIL(src->ctx, SAC_ERR_FORMAT,
                        "%s: the file is cut off; the %lld frames that it still has were read",
                        src->name, (long long)src->number);
    return SAC_EOS;
}

/* The decoder is empty: the end, or another codec follows. */
static sac_result after_drain(struct sac_source *src)
{
    return src->input_ended ? at_end_of_input(src) : open_decoder(src);
}

/* What the decoder is, and what it holds of a GPU: a change of the stream may change them. Under the lock. */
static void describe_decoder(struct sac_source *src)
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
    frame->pts_us = sac_timeline_next(&src->timeline, sac_time_us(note->ts, tb), duration);
    frame->duration_us = duration > 0 ? duration : src->timeline.step_us;
    frame->number = src->input.numbered && note->ts >= 0 ? note->ts : src->number;
    frame->stream_id = src->params.stream_id;
    bool resized = src->number > 0 && (frame->width != src->width || frame->height != src->height);
    src->number++;
    src->width = frame->width;
    src->height = frame->height;

    pthread_mutex_lock(&src->lock);
    src->origin_us = src->timeline.origin_us;
    src->stats.frames++;
    src->stats.pts_repaired = src->timeline.repaired;
    src->stats.corrupt += note->damaged;
    src->stats.converted += note->converted;
    src->stats.size_changes += resized;
    if (resized || src->decoder.note[0] != src->info.decoder_note[0])
        describe_decoder(src);
    pthread_mutex_unlock(&src->lock);
}

/* Opening asks for a first frame, and may be told to give up. */
static bool is_cancelled(const struct sac_source *src)
{
    const struct sac_source_params *p = &src->params;
    return atomic_load(&src->cancelled) || (src->opening && p->give_up && p->give_up(p->give_up_user));
}

static sac_result decode_frame(struct sac_source *src, sac_frame **out)
{
    struct sac_picture_note note;
    sac_frame              *frame = NULL;
    sac_result              res = SAC_OK;
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

static sac_result next_frame(struct sac_source *src, sac_frame **out)
{
    const struct sac_source_params *p = &src->params;
    int64_t                         begun = p->on_decoded ? sac_time_ns() : 0;
    sac_range_push("decode");
    sac_result res = decode_frame(src, out);
    sac_range_pop();
    if (res == SAC_OK && p->on_decoded)
        p->on_decoded(p->on_decoded_user, *out, begun, sac_time_ns());
    return res;
}

/* ---- the prefetch thread ---- */

static void *prefetch(void *arg)
{
    struct sac_source *src = arg;
    sac_result         res;
    sac_memory_use_set(SAC_MEMORY_DECODE);
    for (;;) {
        sac_frame *frame = NULL;
        res = next_frame(src, &frame);
        if (res == SAC_OK) {
            res = sac_queue_push_wait(src->ready, frame);
            if (res == SAC_OK)
                continue;
            sac_frame_unref(&frame);
        }
        break;
    }
    src->end = res;
    if (res != SAC_EOS)
        sac_context_last_error(src->ctx, src->end_sentence, sizeof src->end_sentence);
    sac_queue_close(src->ready);
    return NULL;
}

static sac_result start_prefetch(struct sac_source *src)
{
    if (src->params.prefetch <= 0)
        return SAC_OK;
    sac_result res = sac_queue_create(src->ctx, (size_t)src->params.prefetch, &src->ready);
    if (res == SAC_OK)
        res = sac_thread_start(src->ctx, &src->thread, "sac-decode", prefetch, src);
    src->thread_runs = res == SAC_OK;
    return res;
}

static sac_result pop_ready(struct sac_source *src, sac_frame **out)
{
    void      *item = NULL;
    sac_result res = sac_queue_pop_wait(src->ready, -1, &item);
    if (res == SAC_OK)
        *out = item;
    if (res == SAC_ERR_CANCELLED)
        return SAC_FAIL(src->ctx, res, "%s: reading was cancelled", src->name);
    if (res != SAC_EOS || src->end == SAC_EOS)
        return res;
    /* The thread's sentence becomes the reader's. */
    return SAC_FAIL(src->ctx, src->end, "%s", src->end_sentence);
}

sac_result sac_source_read_wait(sac_source *src, sac_frame **out)
{
    sac_result res = SAC_OK;
    if (src->first) {
        *out = src->first;
        src->first = NULL;
        return SAC_OK;
    }
    if (atomic_load(&src->at_end))
        return SAC_EOS;
    res = src->ready ? pop_ready(src, out) : next_frame(src, out);
    if (res == SAC_EOS)
        atomic_store(&src->at_end, 1);
    return res;
}

void sac_source_cancel(sac_source *src)
{
    atomic_store(&src->cancelled, 1);
    if (src->ready)
        sac_queue_abort(src->ready);
}

/* ---- open, describe, close ---- */

static int rotation_of(const struct sac_input *in)
{
    if (!in->has_display_matrix)
        return 0;
    double counterclockwise = av_display_rotation_get(in->display_matrix); /* -180..180 or NaN */
    return isnan(counterclockwise) ? 0 : ((int)lround(-counterclockwise / 90) + 4) % 4 * 90;
}

static void fill_info(struct sac_source *src)
{
    const struct sac_input  *in = &src->input;
    struct sac_source_info  *info = &src->info;
    const AVCodecParameters *video = in->video;
    bool                     direct;
    *info = (struct sac_source_info){
        .width = video->width,
        .height = video->height,
        .fps_num = in->fps.num,
        .fps_den = in->fps.den,
        .fps = av_q2d(in->fps),
        .duration_us = in->duration_us,
        .frames = in->frames,
        .format = sac_format_of_av((enum AVPixelFormat)video->format, &direct),
        .matrix = sac_matrix_of_av(video->color_space, video->height),
        .range = sac_range_of_av(video->color_range, (enum AVPixelFormat)video->format),
        .rotation = rotation_of(in),
        .audio_streams = in->audio_streams,
        .live = in->live,
    };
    if (src->first) { /* what a frame says outweighs the header */
        info->width = src->first->width;
        info->height = src->first->height;
        info->format = src->first->format;
        info->matrix = src->first->matrix;
        info->range = src->first->range;
    }
    snprintf(info->container, sizeof info->container, "%s", in->container);
    snprintf(info->codec, sizeof info->codec, "%s", avcodec_get_name(video->codec_id));
    describe_decoder(src);
}

static sac_result open_source(struct sac_source *src)
{
    src->opening = true;
    src->input.ctx = src->ctx;
    src->input.url = src->url;
    src->input.name = src->name;
    src->input.params = &src->params;
    src->input.cancelled = &src->cancelled;
    sac_result res = sac_input_open(&src->input);
    if (res != SAC_OK)
        return res;
    src->decoder.dev = src->dev;
    src->decoder.source_name = src->name;
    src->decoder.params = &src->params;
    src->decoder.cancelled = &src->cancelled;
    src->decoder.images = src->input.fmt == NULL;
    src->decoder.threads =
        src->params.decode_threads > 0 ? src->params.decode_threads : sac_threads_default();
    src->decoder.time_base = src->input.time_base;
    if (src->input.fps.num > 0)
        src->timeline.step_us = av_rescale_q(1, av_inv_q(src->input.fps), AV_TIME_BASE_Q);
    src->timeline.anchored = src->input.numbered;
    res = open_decoder(src);
    /* A GPU's decoder refuses a stream with its first picture, so that one is asked for now. */
    if (res == SAC_OK && (src->input.video->width <= 0 || src->input.video->format < 0 ||
                          src->decoder.ops == &sac_decoder_nvdec))
        res = next_frame(src, &src->first);
    src->opening = false;
    if (res != SAC_OK)
        return res;
    fill_info(src);
    if (src->info.rotation)
        sac_log(src->ctx, SAC_LOG_WARN,
                "%s: marked to be shown turned by %d degrees; its frames are used unturned",
                src->name, src->info.rotation);
    return start_prefetch(src);
}

sac_result sac_source_open(sac_device *dev, const char *url,
                           const struct sac_source_params *params, sac_source **out)
{
    sac_context *ctx = sac_device_context(dev);
    if (!url || !url[0])
        return SAC_FAIL(ctx, SAC_ERR_ARG, "a source needs an address");
    struct sac_source *src = sac_new(struct sac_source);
    if (!src)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "%s: no memory", url);
    src->ctx = ctx;
    src->dev = sac_device_ref(dev);
    src->params = params ? *params : sac_source_params_default();
    if (!(src->params.fps > 0))
        src->params.fps = sac_source_params_default().fps;
    pthread_mutex_init(&src->lock, NULL);
    src->url = sac_strdup(url);
    src->name = strcmp(url, "-") == 0 ? "standard input" : src->url;
    src->packet = av_packet_alloc();
    sac_result res = src->url && src->packet
                         ? open_source(src)
                         : SAC_FAIL(ctx, SAC_ERR_MEMORY, "%s: no memory", url);
    if (res != SAC_OK) {
        sac_source_close(&src);
        return res;
    }
    *out = src;
    return SAC_OK;
}

static void unref_frame(void *item)
{
    sac_frame *frame = item;
    sac_frame_unref(&frame);
}

static void stop_prefetch(struct sac_source *src)
{
    if (src->thread_runs)
        pthread_join(src->thread, NULL);
    sac_frame_unref(&src->first);
    if (!src->ready)
        return;
    sac_queue_drain(src->ready, unref_frame);
    sac_queue_destroy(&src->ready);
}

void sac_source_close(sac_source **source)
{
    if (!source || !*source)
        return;
    struct sac_source *src = *source;
    sac_source_cancel(src);
    stop_prefetch(src);
    sac_decoder_close(&src->decoder);
    sac_input_close(&src->input);
    sac_kept_finish(&src->kept);
    av_packet_free(&src->packet);
    pthread_mutex_destroy(&src->lock);
    sac_free(src->url);
    sac_device_unref(&src->dev);
    sac_free(src);
    *source = NULL;
}

void sac_source_describe(const sac_source *src, struct sac_source_info *out)
{
    pthread_mutex_t *lock = &((sac_source *)src)->lock; /* a lock is no part of what the source is */
    pthread_mutex_lock(lock);
    *out = src->info;
    pthread_mutex_unlock(lock);
}

void sac_source_get_stats(sac_source *src, struct sac_source_stats *out)
{
    pthread_mutex_lock(&src->lock);
    *out = src->stats;
    out->corrupt += src->corrupt_packets;
    pthread_mutex_unlock(&src->lock);
}

const struct sac_input *sac_source_input(const sac_source *src)
{
    return &src->input;
}

bool sac_source_at_end(const sac_source *src)
{
    return atomic_load(&src->at_end);
}
