/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/files.h"
#include "base/outfile.h"
#include "base/thread.h"
#include "device/device.h"
#include "device/format.h"
#include "media/media.h"

/* Without a source: MPEG's clock. */
enum { TICKS_DEFAULT = 90000 };

struct sac_sink {
    sac_context           *ctx;
    sac_device            *dev;
    sac_source            *like; /* borrowed; or NULL */
    char                  *path;
    struct sac_outname     name;
    char                  *encoder_name, *preset;
    const char            *planned; /* the encoder to try first */
    struct sac_sink_params params;
    bool                   prompt;
    struct sac_muxer       muxer;
    struct sac_encoder     encoder;
    AVPacket              *packet;
    int64_t                end_us;       /* of the last frame sent to the encoder */
    int64_t                ends_us[256]; /* of the latest ones, by number */
    unsigned               sent, encoded;
    sac_result             failed; /* the first failure: later frames can't repair the file */
    bool                   finished;
};

struct sac_sink_params sac_sink_params_default(void)
{
    return (struct sac_sink_params){.crf = 23, .preset = "veryfast"};
}

/* ---- create ---- */

static sac_result no_memory(sac_context *ctx, const char *path)
{
    return SAC_FAIL(ctx, SAC_ERR_MEMORY, "%s: no memory for a video file", path);
}

/* For frames with alpha. */
static sac_result check_alpha(sac_context *ctx, const char *path, const char *named)
{
    const struct sac_container *container = sac_container_of_path(path);
    char                        all[128], there[128];
    sac_container_alphas(false, all, sizeof all);
    sac_container_alphas(true, there, sizeof there);
    if (!container->alpha)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "output '%s': no alpha is written into %s; have %s", path,
                        container->ending, all);
    if (named && !sac_encoder_has_alpha(named))
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED, "%s: encoder '%s' writes no alpha; have %s", path,
                        named, all);
    if (!named && !sac_encoder_exists(container->alpha))
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED,
                        "%s: this FFmpeg has no %s, which writes alpha into %s; it has %s", path,
                        container->alpha, container->ending, there[0] ? there : "none that does");
    return SAC_OK;
}

/* False: the container holds no such video. Not every muxer tells. */
static bool holds(const struct sac_container *container, const char *encoder)
{
    const AVOutputFormat *format = av_guess_format(container->format, NULL, NULL);
    const AVCodec        *codec = avcodec_find_encoder_by_name(encoder);
    return !format || !codec || avformat_query_codec(format, codec->id, FF_COMPLIANCE_NORMAL) != 0;
}

/* Checked before the first frame, so that a long run does not fail at its end. planned: the encoder
 * to try first. */
static sac_result check_encoder(sac_context *ctx, const char *path, const struct sac_sink_params *p,
                                const char **planned)
{
    const struct sac_container *container = sac_container_of_path(path);
    const char *const           alpha[] = {container->alpha, NULL};
    const char *const          *names = p->alpha ? alpha : container->encoders;
    sac_result                  res = p->alpha ? check_alpha(ctx, path, p->encoder) : SAC_OK;
    if (res != SAC_OK)
        return res;
    if (p->encoder) {
        *planned = p->encoder;
        if (!sac_encoder_exists(p->encoder))
            return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED, "encoder '%s': this FFmpeg has none",
                            p->encoder);
        return holds(container, p->encoder) ? SAC_OK
                                            : SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED,
                                                       "%s: %s files hold no video of encoder '%s'",
                                                       path, container->ending, p->encoder);
    }
    for (int i = 0; names[i]; i++) {
        *planned = names[i];
        if (sac_encoder_exists(names[i]))
            return SAC_OK;
    }
    return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED, "%s: this FFmpeg has no encoder for %s files", path,
                    container->ending);
}

sac_result sac_sink_check_path(sac_context *ctx, const char *path)
{
    SAC_NEEDS(ctx, path);
    char endings[128];
    if (sac_container_of_path(path))
        return SAC_OK;
    sac_container_endings(endings, sizeof endings);
    return SAC_FAIL(ctx, SAC_ERR_ARG,
                    "output '%s': the name's ending chooses the container; have %s", path, endings);
}

static const char *preset_of(const struct sac_sink_params *p)
{
    return p->preset ? p->preset : "veryfast";
}

static sac_result check_params(sac_context *ctx, const struct sac_sink_params *p)
{
    const struct sac_number numbers[] = {
        {"threads", p->threads, 0, 1024},
        {"beside", p->beside, 0, 1 << 20},
        {"crf", p->crf, 0, 255}, /* encoders have scales of their own */
        {"alpha", p->alpha, 0, 1},
    };
    return sac_numbers_check(ctx, "sink", numbers, SAC_COUNT(numbers));
}

static sac_result check(sac_context *ctx, const char *path, const struct sac_sink_params *p,
                        const char **planned)
{
    sac_result res = sac_sink_check_path(ctx, path);
    if (res == SAC_OK)
        res = check_encoder(ctx, path, p, planned);
    return res == SAC_OK ? sac_encoder_check_preset(ctx, preset_of(p)) : res;
}

sac_result sac_sink_check(sac_context *ctx, const char *path, const struct sac_sink_params *params)
{
    const struct sac_sink_params p = params ? *params : sac_sink_params_default();
    const char                  *planned = NULL;
    SAC_NEEDS(ctx, path);
    SAC_NEEDS_NO_LATER_FIELD(ctx, params, "sink parameters");
    sac_result res = check_params(ctx, &p);
    return res == SAC_OK ? check(ctx, path, &p, &planned) : res;
}

/* Checked now, not with the first frame. */
static sac_result check_strict(const struct sac_sink *sink)
{
    if (sink->dev->ops->host_memory || !atomic_load(&sink->dev->strict))
        return SAC_OK;
    return SAC_FAIL(sink->ctx, SAC_ERR_COPY,
                    "%s: its encoder works on the host, so every frame of %s would be downloaded "
                    "(overlay-download), and zero-copy is strict",
                    sink->path, sac_device_name(sink->dev));
}

/* From the source; without one they are unknown. */
static struct sac_source_info info_of(const struct sac_sink *sink)
{
    struct sac_source_info info = {0};
    if (sink->like)
        sac_source_describe(sink->like, &info);
    return info;
}

static int threads_of(const struct sac_sink *sink)
{
    return sink->params.threads > 0 ? sink->params.threads : sac_video_threads(sink->dev);
}

/* Allocate what the encoder needs on the device, if the frames' size is known. */
static sac_result prepare(struct sac_sink *sink)
{
    const struct sac_source_info info = info_of(sink);
    const int mask = sink->params.alpha ? ~0 : ~1; /* mostly what the encoder will use */
    const int width = info.width & mask, height = info.height & mask;
    return width > 0 && height > 0 ? sac_encoder_prepare(&sink->encoder, sink->dev, width, height,
                                                         info.format, sink->params.alpha)
                                   : SAC_OK;
}

static sac_result open_sink(struct sac_sink *sink)
{
    sink->muxer.ctx = sink->ctx;
    sink->muxer.path = sink->path;
    sink->muxer.container = sac_container_of_path(sink->path);
    sac_result res = check_strict(sink);
    if (res == SAC_OK)
        res = sac_outname_open(sink->ctx, sink->path, &sink->name, NULL);
    if (res == SAC_OK)
        res = sac_muxer_open(&sink->muxer, sink->name.file);
    return res == SAC_OK ? prepare(sink) : res;
}

/* Finishing the file would replace what is read. */
static sac_result check_source(sac_context *ctx, const char *path, const sac_source *like)
{
    struct sac_files files = {.ctx = ctx};
    const char      *file;
    for (size_t i = 0; like && (file = sac_source_file(like, i)); i++)
        sac_files_add_input(&files, file);
    sac_files_add_output(&files, path, NULL);
    sac_result res = sac_files_judge(&files);
    sac_files_finish(&files);
    return res;
}

sac_result sac_sink_open(sac_device *dev, const char *path, sac_source *like,
                         const struct sac_sink_params *params, bool prompt, sac_sink **out)
{
    SAC_NEEDS(sac_device_context(dev), dev);
    SAC_NEEDS(sac_device_context(dev), out);
    sac_context *ctx = sac_device_context(dev);
    if (!path || !path[0])
        return SAC_FAIL(ctx, SAC_ERR_ARG, "a sink needs a path");
    SAC_NEEDS_NO_LATER_FIELD(ctx, params, "sink parameters");
    const struct sac_sink_params p = params ? *params : sac_sink_params_default();
    const char                  *planned = NULL;
    sac_result                   res = check_params(ctx, &p);
    if (res == SAC_OK)
        res = check(ctx, path, &p, &planned);
    if (res == SAC_OK)
        res = check_source(ctx, path, like);
    if (res != SAC_OK)
        return res;
    struct sac_sink *sink = sac_new(struct sac_sink);
    if (!sink)
        return no_memory(ctx, path);
    sink->ctx = ctx;
    sink->dev = sac_device_ref(dev);
    sink->like = like;
    sink->params = p;
    sink->prompt = prompt;
    sink->path = sac_strdup(path);
    sink->preset = sac_strdup(preset_of(&p));
    if (p.encoder)
        sink->encoder_name = sac_strdup(p.encoder);
    sink->planned = p.encoder ? sink->encoder_name : planned;
    sink->packet = av_packet_alloc();
    bool ok = sink->path && sink->preset && sink->packet && (sink->encoder_name || !p.encoder);
    res = ok ? open_sink(sink) : no_memory(ctx, path);
    if (res != SAC_OK) {
        sac_sink_destroy(&sink);
        return res;
    }
    *out = sink;
    return SAC_OK;
}

sac_result sac_sink_create(sac_device *dev, const char *path, sac_source *like,
                           const struct sac_sink_params *params, sac_sink **out)
{
    return sac_sink_open(dev, path, like, params, false, out);
}

/* ---- write ---- */

/* The source may deliver only every n-th frame. */
static AVRational rate_of(const struct sac_input *like)
{
    return like ? av_div_q(like->fps, (AVRational){SAC_MAX(like->params->every, 1), 1})
                : (AVRational){0, 1};
}

/* The source's time base, so that each frame keeps its exact time. Where every tick is a frame,
 * times are rounded to the frame rate. */
static AVRational tick(const struct sac_sink *sink, const struct sac_input *like)
{
    if (!like)
        return (AVRational){1, TICKS_DEFAULT};
    return sink->muxer.container->tick_is_frame && like->fps.num > 0 ? av_inv_q(rate_of(like))
                                                                     : like->time_base;
}

/* The pixel aspect; inverted for frames that were turned by a quarter. */
static AVRational sample_aspect(const struct sac_input *like, enum sac_orientation orientation)
{
    const AVRational stored = like ? like->video->sample_aspect_ratio : (AVRational){0, 1};
    return sac_orientation_swaps_sides(orientation) && stored.num > 0 ? av_inv_q(stored) : stored;
}

/* Grey is full range by itself; RGB becomes the usual range. */
static enum sac_colour_range range_of(const sac_frame *first)
{
    if (first->format == SAC_PIXEL_GRAY8)
        return SAC_RANGE_FULL;
    return sac_rgb_step(first->format) ? SAC_RANGE_LIMITED : first->range;
}

/* The first frame gives the size; time base, aspect and colour tags come from the source. */
static sac_result start(struct sac_sink *sink, const sac_frame *first)
{
    const struct sac_input *like = sink->like ? sac_source_input(sink->like) : NULL;
    sink->encoder.origin_us = sink->like ? sac_source_start_us(sink->like) : 0;
    const char *const  named[] = {sink->encoder_name, NULL};
    const char *const  alpha[] = {sink->muxer.container->alpha, NULL};
    const char *const *usual = sink->params.alpha ? alpha : sink->muxer.container->encoders;
    const struct sac_source_info info = info_of(sink);
    const bool                   grey = first->format == SAC_PIXEL_GRAY8;
    char                         how[64];
    struct sac_encoder_setup     setup = {
            .names = sink->encoder_name ? named : usual,
            .named = sink->encoder_name != NULL,
            .preset = sink->preset,
            .crf = sink->params.crf,
            .threads = threads_of(sink),
            .beside = sink->params.beside,
            .format = first->format,
            .alpha = sink->params.alpha,
            .width = first->width,
            .height = first->height,
            .time_base = tick(sink, like),
            .fps = rate_of(like),
            .sample_aspect = sample_aspect(like, info.orientation),
            .matrix = grey && like ? info.matrix : first->matrix, /* grey has none by itself */
            .range = range_of(first),
            .like = like ? like->video : NULL,
            .global_header = sink->muxer.fmt->oformat->flags & AVFMT_GLOBALHEADER,
            .reordering = sink->muxer.container->reordering,
            .prompt = sink->prompt,
    };
    sac_result res = sac_encoder_open(&sink->encoder, sink->dev, sink->path, &setup);
    if (res != SAC_OK)
        return res;
    sac_encoder_describe(&sink->encoder, how, sizeof how);
    sac_log(sink->ctx, SAC_LOG_DEBUG, "%s: encoder %s, %s", sink->path, sac_sink_encoder(sink),
            how);
    res = sac_muxer_start(&sink->muxer, sink->encoder.avc, like, info.orientation != SAC_UPRIGHT);
    if (res != SAC_OK)
        return res;
    const int64_t encoder_us = sac_encoder_step_max_us(&sink->encoder),
                  muxer_us = sink->muxer.step_max_us;
    sink->encoder.gaps.max_us =
        encoder_us && muxer_us ? SAC_MIN(encoder_us, muxer_us) : SAC_MAX(encoder_us, muxer_us);
    return SAC_OK;
}

/* Shorten a step that the container can't hold, rather than fail. */
static void note_time(struct sac_sink *sink, const sac_frame *frame)
{
    struct sac_gaps *gaps = &sink->encoder.gaps;
    const int64_t    now_us = frame->pts_us - sink->encoder.origin_us;
    const int64_t    before_us = gaps->last_us, left_us = gaps->left_us;
    if (sac_gaps_note(gaps, now_us) && left_us == 0)
        sac_log(sink->ctx, SAC_LOG_WARN,
                "%s: the next frame comes after %.0f s; %s with %s holds %.0f, and longer gaps are "
                "shortened",
                sink->path, (double)(now_us - before_us) / 1e6, sink->muxer.container->ending,
                sac_sink_encoder(sink), (double)gaps->max_us / 1e6);
}

/* Write audio up to the time of the pictures, so that in an interrupted file both end together. */
static sac_result write_kept(struct sac_sink *sink, int64_t until_us)
{
    sac_result res = SAC_OK;
    int        kept;
    int64_t    origin_us;
    while (sink->like && res == SAC_OK) {
        res = sac_source_take_kept(sink->like, until_us, sink->packet, &kept, &origin_us);
        if (res == SAC_OK)
            res = sac_muxer_write_kept(&sink->muxer, sink->packet, kept,
                                       sac_source_input(sink->like)->kept[kept]->time_base,
                                       origin_us, &sink->encoder.gaps);
    }
    return res == SAC_AGAIN ? SAC_OK : res;
}

/* An encoder may hold many frames back: audio waits with them. */
static sac_result write_packets(struct sac_sink *sink)
{
    sac_result res = SAC_OK;
    while (res == SAC_OK) {
        res = sac_encoder_receive(&sink->encoder, sink->packet);
        if (res == SAC_OK)
            res = sac_muxer_write_video(&sink->muxer, sink->packet);
        if (res == SAC_OK)
            res = write_kept(sink, sink->ends_us[sink->encoded++ % SAC_COUNT(sink->ends_us)]);
    }
    return res == SAC_AGAIN || res == SAC_EOS ? SAC_OK : res;
}

static sac_result write_frame(struct sac_sink *sink, sac_frame *frame, sac_frame *alpha)
{
    sac_result res = sink->encoder.avc ? SAC_OK : start(sink, frame);
    if (res == SAC_OK)
        note_time(sink, frame);
    if (res == SAC_OK)
        res = sac_encoder_send(&sink->encoder, frame, alpha);
    if (res != SAC_OK)
        return res;
    sink->end_us = frame->pts_us + SAC_MAX(frame->duration_us, 0);
    sink->ends_us[sink->sent++ % SAC_COUNT(sink->ends_us)] = sink->end_us;
    return write_packets(sink);
}

sac_result sac_sink_write_wait(sac_sink *sink, sac_frame *frame)
{
    SAC_NEEDS(sink ? sink->ctx : NULL, sink);
    SAC_NEEDS(sink ? sink->ctx : NULL, frame);
    if (sink->params.alpha)
        return SAC_FAIL(sink->ctx, SAC_ERR_ARG,
                        "%s: its parameters say that each frame comes with its alpha; this one has "
                        "none",
                        sink->path);
    if (sink->failed == SAC_OK)
        sink->failed = write_frame(sink, frame, NULL);
    return sink->failed;
}

sac_result sac_sink_write_alpha_wait(sac_sink *sink, sac_frame *frame, sac_frame *alpha)
{
    SAC_NEEDS(sink ? sink->ctx : NULL, sink);
    SAC_NEEDS(sink ? sink->ctx : NULL, frame);
    SAC_NEEDS(sink ? sink->ctx : NULL, alpha);
    if (!sink->params.alpha)
        return SAC_FAIL(sink->ctx, SAC_ERR_ARG,
                        "%s: its parameters say that frames come without alpha", sink->path);
    sac_result res = sac_alpha_check(sink->ctx, frame, alpha);
    if (res != SAC_OK)
        return res;
    if (sink->failed == SAC_OK)
        sink->failed = write_frame(sink, frame, alpha);
    return sink->failed;
}

/* ---- finish ---- */

static sac_result finish_file(struct sac_sink *sink)
{
    bool       whole = sink->like && sac_source_at_end(sink->like);
    sac_result res = sac_encoder_send(&sink->encoder, NULL, NULL);
    if (res == SAC_OK)
        res = write_packets(sink);
    if (res == SAC_OK)
        res = write_kept(sink, whole ? INT64_MAX : sink->end_us);
    if (res == SAC_OK)
        res = sac_muxer_finish(&sink->muxer);
    if (res == SAC_OK)
        res = sac_outname_commit(&sink->name);
    sink->finished = res == SAC_OK;
    return res;
}

sac_result sac_sink_finish(sac_sink *sink)
{
    SAC_NEEDS(NULL, sink);
    if (sink->finished || sink->failed != SAC_OK)
        return sink->failed;
    if (sink->encoder.avc) {
        sink->failed = finish_file(sink);
        return sink->failed;
    }
    sac_log(sink->ctx, SAC_LOG_WARN, "%s: not one frame came, so there is no file", sink->path);
    return SAC_OK;
}

void sac_sink_destroy(sac_sink **sink_at)
{
    if (!sink_at || !*sink_at)
        return;
    struct sac_sink *sink = *sink_at;
    sac_encoder_close(&sink->encoder);
    sac_muxer_close(&sink->muxer);
    sac_outname_finish(&sink->name);
    av_packet_free(&sink->packet);
    sac_free(sink->path);
    sac_free(sink->encoder_name);
    sac_free(sink->preset);
    sac_device_unref(&sink->dev);
    sac_free(sink);
    *sink_at = NULL;
}

const char *sac_sink_encoder(const sac_sink *sink)
{
    if (!sink)
        return NULL;
    return sink->encoder.avc ? sink->encoder.avc->codec->name : sink->planned;
}

enum sac_pixel_format sac_sink_wants(const sac_sink *sink, enum sac_pixel_format format)
{
    return sink && sink->encoder.on_gpu && format == SAC_PIXEL_I420 ? sink->encoder.layout.format
                                                                    : format;
}
