/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "device/device.h"
#include "media/source.h"

struct sac_source_params sac_source_params_default(void)
{
    return (struct sac_source_params){
        .fps = 25, .every = 1, .prefetch = 4, .timeout_us = 10 * 1000 * 1000};
}

/* ---- the prefetch thread ---- */

static void *prefetch(void *arg)
{
    struct sac_source *src = arg;
    sac_result         res;
    sac_memory_use_set(SAC_MEMORY_DECODE);
    for (;;) {
        sac_frame *frame = NULL;
        res = sac_feed_next_frame(src, &frame);
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
    SAC_NEEDS(src ? src->ctx : NULL, src);
    SAC_NEEDS(src ? src->ctx : NULL, out);
    sac_result res = SAC_OK;
    if (src->first) {
        *out = src->first;
        src->first = NULL;
        return SAC_OK;
    }
    if (atomic_load(&src->at_end))
        return SAC_EOS;
    res = src->ready ? pop_ready(src, out) : sac_feed_next_frame(src, out);
    if (res == SAC_EOS)
        atomic_store(&src->at_end, 1);
    return res;
}

void sac_source_cancel(sac_source *src)
{
    if (!src)
        return;
    atomic_store(&src->cancelled, 1);
    if (src->ready)
        sac_queue_abort(src->ready);
}

/* ---- open, describe, close ---- */

/* The orientation of the pictures, and the turn that is applied. */
static void fill_orientation(struct sac_source *src)
{
    const struct sac_display *shown = src->first ? &src->decoder.shown : &src->decoder.display;
    struct sac_source_info   *info = &src->info;
    info->rotation = shown->degrees;
    info->mirrored = shown->mirrored;
    info->orientation = sac_display_turn(src->params.rotate, shown);
    if (sac_orientation_swaps_sides(info->orientation) && !src->first) {
        const int width = info->width;
        info->width = info->height;
        info->height = width;
    }
    if (src->params.rotate == SAC_ROTATE_AUTO && !shown->can_turn)
        sac_log(src->ctx, SAC_LOG_WARN,
                "%s: marked to be shown turned by %.4g degrees; only quarter turns are made, so "
                "its frames come as they are stored",
                src->name, shown->degrees);
    else if (info->orientation != SAC_UPRIGHT)
        sac_log(src->ctx, SAC_LOG_INFO, "%s: its frames are %s%s", src->name,
                sac_orientation_name(info->orientation),
                src->params.rotate == SAC_ROTATE_AUTO ? ", as it says" : "");
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
        .fps_num = in->average.num,
        .fps_den = in->average.den,
        .fps = av_q2d(in->average),
        .duration_us = in->duration_us,
        .frames = in->frames,
        .format = sac_format_of_av((enum AVPixelFormat)video->format, &direct),
        .matrix = sac_matrix_of_av(video->color_space, video->height),
        .range = sac_range_of_av(video->color_range, (enum AVPixelFormat)video->format),
        .audio_streams = in->audio_streams,
        .live = in->live,
        .alpha = info->alpha, /* of the first frame */
    };
    if (src->first) { /* the frame overrides the header */
        info->width = src->first->width;
        info->height = src->first->height;
        info->format = src->first->format;
        info->matrix = src->first->matrix;
        info->range = src->first->range;
    }
    snprintf(info->container, sizeof info->container, "%s", in->container);
    snprintf(info->codec, sizeof info->codec, "%s", avcodec_get_name(video->codec_id));
    fill_orientation(src);
    sac_feed_describe_decoder(src);
    sac_part_describe(src, info);
}

/* A GPU's decoder refuses a stream only at its first picture, so one is decoded while opening; also
 * where the picture may differ from what the container states. */
static sac_result read_first(struct sac_source *src)
{
    const AVCodecParameters *video = src->input.video;
    if (video->width > 0 && video->format >= 0 && !src->input.provisional &&
        src->decoder.ops != &sac_decoder_nvdec)
        return SAC_OK;
    return src->params.start_us > 0 ? sac_feed_any_frame(src, &src->first)
                                    : sac_feed_next_frame(src, &src->first);
}

static sac_result open_source(struct sac_source *src)
{
    src->opening = true;
    sac_result res = sac_feed_open_input(src);
    if (res == SAC_OK)
        res = sac_feed_open_decoder(src);
    if (res == SAC_OK)
        res = read_first(src);
    if (res == SAC_OK) {
        fill_info(src);
        res = sac_seek_part(src);
    }
    src->opening = false;
    if (res != SAC_OK)
        return res;
    return start_prefetch(src);
}

static sac_result check_params(sac_context *ctx, const struct sac_source_params *p)
{
    const struct sac_number numbers[] = {
        {"fps", p->fps, 0, 1e6}, /* 0: the default */
        {"decode", (int)p->decode, 0, SAC_DECODE_CPU},
        {"decode_threads", p->decode_threads, 0, 1024},
        {"surfaces", p->surfaces, 0, 1024},
        {"prefetch", p->prefetch, 0, 1 << 20},
        {"timeout_us", (double)p->timeout_us, 0, 1e15},
    };
    return sac_numbers_check(ctx, "source", numbers, SAC_COUNT(numbers));
}

sac_result sac_source_open(sac_device *dev, const char *url, const struct sac_source_params *params,
                           sac_source **out)
{
    SAC_NEEDS(sac_device_context(dev), dev);
    SAC_NEEDS(sac_device_context(dev), out);
    sac_context *ctx = sac_device_context(dev);
    if (!url || !url[0])
        return SAC_FAIL(ctx, SAC_ERR_ARG, "a source needs an address");
    SAC_NEEDS_NO_LATER_FIELD(ctx, params, "source parameters");
    if (params && check_params(ctx, params) != SAC_OK)
        return SAC_ERR_ARG;
    struct sac_source *src = sac_new(struct sac_source);
    if (!src)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "%s: no memory", url);
    src->ctx = ctx;
    src->dev = sac_device_ref(dev);
    src->part_first = -1;
    src->params = params ? *params : sac_source_params_default();
    if (!(src->params.fps > 0))
        src->params.fps = sac_source_params_default().fps;
    pthread_mutex_init(&src->lock, NULL);
    src->url = sac_strdup(url);
    src->name = sac_strdup_hidden(strcmp(url, "-") == 0 ? "standard input" : url);
    src->packet = av_packet_alloc();
    sac_result res = src->url && src->name && src->packet
                         ? open_source(src)
                         : SAC_FAIL(ctx, SAC_ERR_MEMORY, "%s: no memory", url);
    if (res != SAC_OK) {
        sac_source_close(&src);
        return res;
    }
    *out = src;
    return SAC_OK;
}

static bool unref_frame(void *user, void *item)
{
    sac_frame *frame = item;
    (void)user;
    sac_frame_unref(&frame);
    return true;
}

static void stop_prefetch(struct sac_source *src)
{
    if (src->thread_runs)
        pthread_join(src->thread, NULL);
    sac_frame_unref(&src->first);
    sac_frame_unref(&src->pending);
    if (!src->ready)
        return;
    sac_queue_sift(src->ready, unref_frame, NULL);
    sac_queue_destroy(&src->ready);
}

void sac_source_rest(sac_source *src)
{
    if (src->thread_runs)
        return;
    sac_frame_unref(&src->first);
    sac_frame_unref(&src->pending);
    sac_decoder_close(&src->decoder);
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
    sac_free(src->name);
    sac_device_unref(&src->dev);
    sac_free(src);
    *source = NULL;
}

void sac_source_describe(const sac_source *src, struct sac_source_info *out)
{
    if (!src || !out)
        return;
    pthread_mutex_t *lock = &((sac_source *)src)->lock; /* locking does not change the source */
    pthread_mutex_lock(lock);
    *out = src->info;
    pthread_mutex_unlock(lock);
}

void sac_source_get_stats(sac_source *src, struct sac_source_stats *out)
{
    if (!src || !out)
        return;
    pthread_mutex_lock(&src->lock);
    *out = src->stats;
    out->corrupt += src->corrupt_packets;
    pthread_mutex_unlock(&src->lock);
}

const struct sac_input *sac_source_input(const sac_source *src)
{
    return &src->input;
}

const char *sac_source_file(const sac_source *src, size_t i)
{
    return src->input.ops->file(&src->input, i);
}

int64_t sac_source_start_us(const sac_source *src)
{
    return src->params.start_us;
}

bool sac_source_at_end(const sac_source *src)
{
    return atomic_load(&src->at_end);
}
