/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's decoder through libavcodec's CUDA hwaccel: frames that never leave the GPU.
 *
 * No picture is copied: FFmpeg 5 hands out the surface that the driver maps; later versions copy it
 * unless AV_HWACCEL_FLAG_UNSAFE_OUTPUT is set. One number sets both the surfaces that NVDEC decodes
 * into and those that are mapped, so the pool is sized here for the stream's reference pictures,
 * the present picture, and those that may be lent out. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <libavutil/hwcontext.h>
#include <libavutil/pixdesc.h>

#include "device/device.h"
#include "media/media.h"

enum {
    SURFACES_MAX = 32,     /* drivers fail with more */
    OPEN_BYTES = 32 << 20, /* for a decoder before its size is known */
    LENT_MIN = 3,          /* as many as a round trip uses at once */
};

struct state {
    struct sac_device_stream *stream; /* the device's, on which pictures are completed */
    struct sac_surfaces      *surfaces;
    struct sac_uploader *round_trip; /* with params.round_trip: each picture to the host and back */
    bool                 holds_lock; /* the one below */
    sac_result           refusal;    /* SAC_OK: none */
    char                 why[320];
};

/* Decoders are made and freed one after the other. libavcodec asks for the decoder's abilities
 * before it makes one, and two threads that asked at once both ended in that call
 * (cuvidGetDecoderCaps of libnvcuvid 580.159, one H200, 2026-11-29; once in some thousand streams,
 * where other programs kept the card busy). It costs nothing: the driver takes them one by one.
 * A decoder that a new size replaces in the middle of a stream is freed without, by libavcodec or
 * with the last picture of it that is lent out. */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

void sac_nvdec_lock(void)
{
    pthread_mutex_lock(&one_at_a_time);
}

void sac_nvdec_unlock(void)
{
    pthread_mutex_unlock(&one_at_a_time);
}

static void hold_lock(struct state *st)
{
    if (!st->holds_lock)
        sac_nvdec_lock();
    st->holds_lock = true;
}

static void let_lock_go(struct state *st)
{
    if (st->holds_lock)
        sac_nvdec_unlock();
    st->holds_lock = false;
}

/* ---- which codecs ---- */

/* The decoders named cuvid copy each picture, and have no such configuration. */
static bool can_use_gpu(const AVCodec *codec)
{
    const AVCodecHWConfig *config;
    for (int i = 0; (config = avcodec_get_hw_config(codec, i)); i++)
        if (config->device_type == AV_HWDEVICE_TYPE_CUDA &&
            (config->methods & AV_CODEC_HW_CONFIG_METHOD_HW_FRAMES_CTX))
            return true;
    return false;
}

const AVCodec *sac_nvdec_codec(enum AVCodecID id)
{
    const AVCodec *codec;
    void          *at = NULL;
    while ((codec = av_codec_iterate(&at)))
        if (codec->id == id && av_codec_is_decoder(codec) && can_use_gpu(codec))
            return codec;
    return NULL;
}

/* The driver decodes these, not NVDEC: "hybrid (CUDA + CPU)", announced to be removed, says
 * NVDECODE's guide. Of ten such pictures the first once came out as zeros, without an error (one
 * H100, 2026-11-28). */
static bool is_hybrid(enum AVCodecID id)
{
    return id == AV_CODEC_ID_MJPEG;
}

/* A hybrid's is found in any FFmpeg, so that prepare refuses it by the same sentence. */
static const AVCodec *codec_for(const sac_device *dev, enum AVCodecID id)
{
    if (!dev->ops->video_context)
        return NULL;
    return is_hybrid(id) ? avcodec_find_decoder(id) : sac_nvdec_codec(id);
}

/* ---- memory ---- */

/* The driver allocates a decoder's memory outside our pool and can't use the pool's idle
 * buffers. */
static void make_way(sac_device *dev, uint64_t bytes)
{
    uint64_t left = 0, total = 0;
    if (dev->ops->memory_info && dev->ops->memory_info(dev, &left, &total) == SAC_OK &&
        left < bytes + bytes / 4)
        sac_device_pool_trim(dev);
}

/* ---- surfaces, chosen when a stream's header is known ---- */

/* Kept until libavcodec's call returns, then returned with its sentence. The first refusal
 * counts. */
static enum AVPixelFormat refuse(struct state *st, sac_result res, const char *why)
{
    if (st->refusal != SAC_OK)
        return AV_PIX_FMT_NONE;
    st->refusal = res;
    snprintf(st->why, sizeof st->why, "%s", why);
    return AV_PIX_FMT_NONE;
}

/* Describes the stream: "h264 High 10, yuv420p10le, 1920x1080". */
static void describe(const AVCodecContext *avc, char *out, size_t size)
{
    const char *profile = avcodec_profile_name(avc->codec_id, avc->profile);
    const char *pixels = av_get_pix_fmt_name(avc->sw_pix_fmt);
    snprintf(out, size, "%s%s%s, %s, %dx%d", avcodec_get_name(avc->codec_id), profile ? " " : "",
             profile ? profile : "", pixels ? pixels : "unknown pixels", avc->coded_width,
             avc->coded_height);
}

/* With other layouts the frames would not be NV12 or P010. */
static bool is_layout_taken(const AVCodecContext *avc)
{
    const AVPixFmtDescriptor *desc = av_pix_fmt_desc_get(avc->sw_pix_fmt);
    return desc && desc->nb_components >= 3 && desc->log2_chroma_w == 1 &&
           desc->log2_chroma_h == 1 && (desc->comp[0].depth == 8 || desc->comp[0].depth == 10);
}

/* libavcodec takes every picture from its pool, then replaces its memory by the decoder's own. */
static AVBufferRef *no_memory_at_all(size_t size)
{
    (void)size;
    return av_buffer_create(NULL, 0, NULL, NULL, 0);
}

static void free_pool(AVHWFramesContext *frames)
{
    av_buffer_pool_uninit(&frames->pool);
}

/* Within a tenth of the memory that the driver reports (H200, driver 580, H.264 and HEVC from
 * 768x576 to 4K, 2026-11-21): each surface twice, once to decode into and once mapped, in steps of
 * 1 or 2 MiB, and about four pictures for the decoder. */
static uint64_t bytes_taken(const AVHWFramesContext *frames)
{
    const uint64_t sample = frames->sw_format == AV_PIX_FMT_P010 ? 2 : 1;
    const uint64_t width = (uint64_t)frames->width, height = (uint64_t)frames->height;
    const uint64_t plain = width * height * 3 / 2 * sample;
    const uint64_t decoded =
        ((width * sample + 255) & ~UINT64_C(255)) * ((height + 31) & ~UINT64_C(31)) * 3 / 2;
    const uint64_t step = plain > 1 << 20 ? 2 << 20 : 1 << 20;
    const uint64_t both = (plain + step - 1) / step * step + (decoded + step - 1) / step * step;
    return both * (uint64_t)frames->initial_pool_size + 4 * plain;
}

static sac_result size_pool(struct sac_decoder *dec, AVHWFramesContext *frames)
{
    struct state *st = dec->state;
    int           wanted = dec->params->surfaces;
    if (wanted <= 0)
        wanted = SAC_LENT_DEFAULT + SAC_MAX(dec->params->prefetch, 0);
    /* Every version of nvdec.c counts the stream's reference and reordering pictures plus two, one
     * of which is the present picture. libavcodec holds no others, since it gets a packet only when
     * one more may be lent. */
    const int needed = frames->initial_pool_size - 1;
    const int lent = SAC_MAX(SAC_MIN(wanted, SURFACES_MAX - needed), LENT_MIN);
    frames->initial_pool_size = needed + lent;
    sac_surfaces_limit(st->surfaces, lent);
    dec->surfaces = frames->initial_pool_size;
    dec->surface_bytes = bytes_taken(frames);
    make_way(dec->dev, dec->surface_bytes);
    return sac_surfaces_reserve(st->surfaces, dec->surface_bytes);
}

static int make_pool(struct sac_decoder *dec, AVCodecContext *avc)
{
    struct state *st = dec->state;
    AVBufferRef  *ref = NULL;
    int err = avcodec_get_hw_frames_parameters(avc, avc->hw_device_ctx, AV_PIX_FMT_CUDA, &ref);
    if (err < 0)
        return err;
    AVHWFramesContext *frames = (AVHWFramesContext *)(void *)ref->data;
    st->refusal = size_pool(dec, frames);
    if (st->refusal != SAC_OK) {
        av_buffer_unref(&ref);
        return AVERROR(ENOMEM);
    }
    frames->free = free_pool;
    frames->pool = av_buffer_pool_init(0, no_memory_at_all);
    err = frames->pool ? av_hwframe_ctx_init(ref) : AVERROR(ENOMEM);
    if (err < 0)
        av_buffer_unref(&ref);
    else
        avc->hw_frames_ctx = ref; /* libavcodec unrefs it */
    return err;
}

/* Called for every header that changes the picture format, and a second time, with no CUDA format
 * to choose from, when the driver refused it. */
static enum AVPixelFormat choose(AVCodecContext *avc, const enum AVPixelFormat *offered)
{
    struct sac_decoder *dec = avc->opaque;
    struct state       *st = dec->state;
    char                what[120], why[320];
    const char         *complaint = sac_ffmpeg_complaint();
    describe(avc, what, sizeof what);
    while (*offered != AV_PIX_FMT_NONE && *offered != AV_PIX_FMT_CUDA)
        offered++;
    if (strstr(complaint, "nvcuvid"))
        return refuse(st, SAC_ERR_UNSUPPORTED,
                      "NVDEC is not available: libnvcuvid.so.1 is missing; see 'saccade doctor'");
    if (*offered == AV_PIX_FMT_NONE || !is_layout_taken(avc)) {
        const bool full = sac_ffmpeg_gpu_is_full();
        snprintf(why, sizeof why, "NVDEC %s %s%s%s%s",
                 full ? "has no memory for" : "does not decode", what, complaint[0] ? " (" : "",
                 complaint, complaint[0] ? ")" : "");
        return refuse(st, full ? SAC_ERR_MEMORY : SAC_ERR_UNSUPPORTED, why);
    }
    if (make_pool(dec, avc) < 0) {
        snprintf(why, sizeof why, "NVDEC: no surfaces for %s", what);
        return refuse(st, SAC_ERR_MEMORY, why);
    }
    hold_lock(st); /* libavcodec makes the decoder now: until its call returns */
    return AV_PIX_FMT_CUDA;
}

/* ---- open ---- */

static sac_result open_gpu(struct sac_decoder *dec)
{
    struct state *st = dec->state;
    AVBufferRef  *ref = av_hwdevice_ctx_alloc(AV_HWDEVICE_TYPE_CUDA);
    if (!ref) /* this FFmpeg has no CUDA, or no memory */
        return SAC_FAIL(sac_device_context(dec->dev), SAC_ERR_UNSUPPORTED,
                        "%s: this FFmpeg was built without NVDEC", dec->source_name);
    dec->avc->hw_device_ctx = ref;
    make_way(dec->dev, OPEN_BYTES);
    AVHWDeviceContext *gpu = (AVHWDeviceContext *)(void *)ref->data;
    sac_result         res = dec->dev->ops->video_context(dec->dev, gpu->hwctx, &st->stream);
    int                err = res == SAC_OK ? av_hwdevice_ctx_init(ref) : 0;
    return err < 0 ? sac_ffmpeg_fail(sac_device_context(dec->dev), err, dec->source_name) : res;
}

static sac_result prepare(struct sac_decoder *dec)
{
    struct state   *st = dec->state;
    AVCodecContext *avc = dec->avc;
    if (is_hybrid(avc->codec_id))
        return SAC_FAIL(sac_device_context(dec->dev), SAC_ERR_UNSUPPORTED,
                        "%s: NVDEC does not decode %s", dec->source_name,
                        avcodec_get_name(avc->codec_id));
    snprintf(dec->name, sizeof dec->name, "nvdec %s", avc->codec->name);
    avc->thread_count = 1; /* the GPU decodes; each thread would only hold more surfaces */
    avc->opaque = dec;
    avc->get_format = choose;
#ifdef AV_HWACCEL_FLAG_UNSAFE_OUTPUT
    avc->hwaccel_flags |= AV_HWACCEL_FLAG_UNSAFE_OUTPUT;
#endif
    sac_result res = sac_surfaces_create(dec->dev, dec->source_name, &st->surfaces);
    if (res == SAC_OK && dec->params->round_trip)
        res = sac_source_uploader_create(dec, &st->round_trip);
    return res == SAC_OK ? open_gpu(dec) : res;
}

/* ---- frames ---- */

static sac_result refusal(struct sac_decoder *dec)
{
    struct state *st = dec->state;
    sac_result    res = st->refusal;
    let_lock_go(st);
    st->refusal = SAC_OK; /* returned once: earlier pictures may still be received */
    if (res == SAC_OK || !st->why[0])
        return res;
    return SAC_FAIL(sac_device_context(dec->dev), res, "%s: %s", dec->source_name, st->why);
}

static sac_result wait_for_surface(struct sac_decoder *dec)
{
    return sac_surfaces_wait(((struct state *)dec->state)->surfaces, dec->cancelled);
}

/* libavcodec crops a GPU's picture only on the right and at the bottom. */
static void crop(const AVFrame *picture, sac_frame *desc)
{
    const size_t sample = desc->format == SAC_PIXEL_P010 ? 2 : 1;
    const size_t left = picture->crop_left & ~(size_t)1, top = picture->crop_top & ~(size_t)1;
    if (left >= (size_t)desc->width || top >= (size_t)desc->height)
        return;
    desc->width -= (int)left;
    desc->height -= (int)top;
    desc->plane[0] += top * desc->pitch_bytes[0] + left * sample;
    desc->plane[1] += top / 2 * desc->pitch_bytes[1] + left * sample;
}

static sac_result give(struct sac_decoder *dec, sac_frame **out, struct sac_picture_note *note)
{
    struct state            *st = dec->state;
    AVFrame                 *picture = dec->picture;
    const AVHWFramesContext *frames =
        picture->hw_frames_ctx ? (const AVHWFramesContext *)(void *)picture->hw_frames_ctx->data
                               : NULL;
    bool      direct;
    sac_frame desc = {
        .format = frames ? sac_format_of_av(frames->sw_format, &direct) : SAC_PIXEL_NONE,
        .width = picture->width,
        .height = picture->height,
        .matrix = sac_matrix_of_av(picture->colorspace, picture->height),
        .range = sac_range_of_av(picture->color_range, dec->avc->sw_pix_fmt),
    };
    (void)note;
    if (desc.format != SAC_PIXEL_NV12 && desc.format != SAC_PIXEL_P010)
        return SAC_FAIL(sac_device_context(dec->dev), SAC_ERR_UNSUPPORTED,
                        "%s: NVDEC gave a picture that is neither NV12 nor P010", dec->source_name);
    for (int i = 0; i < 2; i++) {
        desc.plane[i] = picture->data[i];
        desc.pitch_bytes[i] = (size_t)picture->linesize[i];
    }
    /* libavcodec expects chroma right after the last row; the driver puts it after an even number
     * of rows. */
    if ((size_t)(picture->data[1] - picture->data[0]) / desc.pitch_bytes[0] % 2)
        desc.plane[1] += desc.pitch_bytes[0];
    crop(picture, &desc);
    desc = sac_frame_as_turned(&desc, sac_picture_orientation(dec, picture));
    if (st->round_trip)
        return sac_upload_round_trip(st->round_trip, picture, &desc, st->stream, out);
    return sac_surfaces_lend(st->surfaces, picture, &desc, st->stream, out);
}

static void closing(struct sac_decoder *dec)
{
    struct state *st = dec->state;
    if (st->surfaces)
        sac_surfaces_closing(st->surfaces);
    hold_lock(st);
}

static void release(struct sac_decoder *dec)
{
    struct state *st = dec->state;
    sac_uploader_destroy(&st->round_trip);
    let_lock_go(st);
    sac_surfaces_close(&st->surfaces);
}

const struct sac_decoder_ops sac_decoder_nvdec = {
    .name = "nvdec",
    .state_bytes = sizeof(struct state),
    .codec = codec_for,
    .prepare = prepare,
    .refusal = refusal,
    .wait = wait_for_surface,
    .give = give,
    .closing = closing,
    .release = release,
};
