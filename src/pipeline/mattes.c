/* SPDX-License-Identifier: Apache-2.0 */
/* The video of a run that segments. */
#include <math.h>

#include "device/format.h"
#include "media/media.h"
#include "pipeline/canvas.h"
#include "pipeline/output.h"
#include "pipeline/tasks/segment.h"
#include "vision/composite.h"
#include "vision/packing.h"
#include "vision/vision.h"

struct mattes {
    struct sac_output        base;
    sac_context             *ctx;
    struct sac_job          *job;
    sac_sink                *sink;      /* NULL: nothing is encoded */
    pthread_mutex_t         *call_lock; /* held for calls of the program */
    struct sac_canvas        canvas;    /* what is encoded is composed in its frames */
    struct sac_composite_job composite;
    sac_frame               *picture;    /* params.background as it was read; or NULL */
    sac_frame               *background; /* that behind frames of the latest one's kind */
    struct sac_packing       packing;    /* of frames of packed_width x packed_height */
    int                      packed_width, packed_height; /* 0: none yet */
};

/* ---- the background ---- */

/* As its decoder may have left it lying on a side, of which no part can be cut. */
static sac_result turn_upright(sac_frame **picture)
{
    sac_frame *upright = NULL;
    if ((*picture)->orientation == SAC_UPRIGHT)
        return SAC_OK;
    sac_result res = sac_frame_create((*picture)->device, *picture, &upright);
    if (res == SAC_OK)
        res = sac_frame_rescale_on(NULL, *picture, SAC_FILTER_BILINEAR, upright);
    if (res == SAC_OK)
        res = sac_frame_wait(upright);
    sac_frame_unref(picture);
    *picture = upright;
    return res;
}

/* A video would stand still behind the people. */
static sac_result check_single(sac_device *dev, const char *path, sac_source *src)
{
    sac_frame *second = NULL;
    if (sac_source_read_wait(src, &second) != SAC_OK)
        return SAC_OK;
    sac_frame_unref(&second);
    return SAC_FAIL(dev->ctx, SAC_ERR_ARG,
                    "'%s' is a video, or has several pictures; a background is one picture, and "
                    "no video is played there",
                    path);
}

static sac_result read_picture(sac_device *dev, const char *path, sac_frame **out)
{
    struct sac_source_params params = sac_source_params_default();
    sac_source              *src = NULL;
    params.decode = SAC_DECODE_CPU;
    params.prefetch = 0;
    sac_result res = sac_source_open(dev, path, &params, &src);
    if (res == SAC_OK)
        res = sac_source_read_wait(src, out);
    if (res == SAC_EOS)
        res = SAC_FAIL(dev->ctx, SAC_ERR_FORMAT, "'%s': no picture for the background", path);
    if (res == SAC_OK)
        res = check_single(dev, path, src);
    if (res == SAC_OK)
        res = turn_upright(out);
    sac_source_close(&src);
    return res;
}

/* Let v->background be a writable frame of the same kind. */
static sac_result make_background(struct mattes *v, const sac_frame *like)
{
    if (v->background && sac_canvas_is_like(v->background, like))
        return SAC_OK;
    sac_frame_unref(&v->background);
    return sac_canvas_frame(&v->canvas, like, &v->background);
}

static void release_picture(void *user)
{
    sac_frame *picture = user;
    sac_frame_unref(&picture);
}

/* The part of the picture in the middle that has the frame's proportions, over the same pixels. */
static sac_result crop_picture(sac_frame *picture, const sac_frame *like, sac_frame **out)
{
    const struct sac_format_info *format = sac_format_info_of(picture->format);
    const double                  scale =
        fmin((double)picture->width / like->width, (double)picture->height / like->height);
    sac_frame desc = *picture;
    desc.width = SAC_CLAMP((int)lround(like->width * scale), 1, picture->width);
    desc.height = SAC_CLAMP((int)lround(like->height * scale), 1, picture->height);
    const int x = (picture->width - desc.width) / 2 & ~1,
              y = (picture->height - desc.height) / 2 & ~1; /* even: chroma is halved */
    for (int i = 0; i < format->planes; i++) {
        const size_t half = i > 0;
        desc.plane[i] +=
            ((size_t)y >> half) * desc.pitch_bytes[i] +
            ((size_t)x >> half) * (size_t)format->step[i] * (size_t)format->number_bytes;
    }
    sac_frame *held = sac_frame_ref(picture);
    sac_result res = sac_frame_wrap(picture->device, &desc, release_picture, held, out);
    if (res != SAC_OK)
        sac_frame_unref(&held);
    return res;
}

/* The picture fills the frame; what reaches past it is cut off. */
static sac_result fit_picture(struct mattes *v, const sac_frame *frame)
{
    sac_frame *crop = NULL;
    if (v->background && sac_canvas_is_like(v->background, frame))
        return SAC_OK;
    sac_result res = make_background(v, frame);
    if (res == SAC_OK)
        res = crop_picture(v->picture, frame, &crop);
    if (res == SAC_OK)
        res = sac_frame_rescale_on(v->canvas.stream, crop, SAC_FILTER_AREA, v->background);
    sac_frame_unref(&crop);
    return res;
}

static sac_result set_background(struct mattes *v, const sac_frame *frame)
{
    const struct sac_segment_params *p = v->job->segment;
    sac_result                       res = SAC_OK;
    if (p->as != SAC_SEGMENT_CUTOUT || (!(p->blur > 0) && !v->picture))
        return SAC_OK;
    if (p->blur > 0) {
        res = make_background(v, frame);
        if (res == SAC_OK)
            res = sac_frame_blur_on(v->canvas.stream, frame, (int)lroundf(p->blur), v->background);
    } else {
        res = fit_picture(v, frame);
    }
    v->composite.background = v->background;
    return res;
}

/* ---- a frame ---- */

/* Let v->packing be that of frames of this size. */
static sac_result lay_out_packing(struct mattes *v, int width, int height)
{
    static const enum sac_packing_projection projections[] = {
        [SAC_PROJECTION_FLAT] = SAC_PACKING_FLAT,
        [SAC_PROJECTION_FISHEYE] = SAC_PACKING_FISHEYE,
        [SAC_PROJECTION_EQUIRECT180] = SAC_PACKING_FLAT};
    static const enum sac_packing_stereo eyes[] = {[SAC_STEREO_MONO] = SAC_PACKING_MONO,
                                                   [SAC_STEREO_SBS] = SAC_PACKING_SBS,
                                                   [SAC_STEREO_TB] = SAC_PACKING_TB};
    const struct sac_segment_params     *p = v->job->segment;
    if (v->packed_width == width && v->packed_height == height)
        return SAC_OK;
    sac_result res = sac_packing_init(v->ctx, projections[p->projection], eyes[p->stereo], width,
                                      height, &v->packing);
    if (res != SAC_OK)
        return res;
    v->packed_width = width;
    v->packed_height = height;
    return SAC_OK;
}

/* What frames become: one in the encoder's format, in their own where nothing is encoded. */
static sac_result describe(struct mattes *v, const sac_frame *frame, sac_frame *out)
{
    *out = *frame;
    if (!v->base.empty)
        out->format = sac_sink_wants(v->sink, sac_canvas_format(frame->format));
    if (v->job->segment->as != SAC_SEGMENT_ALPHA_PACKED)
        return SAC_OK;
    sac_result res = lay_out_packing(v, frame->width, frame->height);
    out->width = v->packing.width;
    out->height = v->packing.height;
    return res;
}

/* The frame with its matte inside, or composed with it. */
static sac_result put_together(struct mattes *v, const struct sac_item *item, sac_frame *out)
{
    const sac_frame *matte = sac_segment_matte(item);
    if (v->job->segment->as == SAC_SEGMENT_ALPHA_PACKED)
        return sac_packing_write_on(v->canvas.stream, &v->packing, item->frame, matte, out);
    sac_result res = set_background(v, item->frame);
    v->composite.frame = item->frame;
    v->composite.matte = matte;
    v->composite.out = out;
    return res == SAC_OK ? sac_composite_run_on(out->device, v->canvas.stream, &v->composite) : res;
}

/* *out: what is encoded, borrowed. A GPU's is queued; its encoder waits for it. */
static sac_result compose(struct mattes *v, const struct sac_item *item, sac_frame **out)
{
    sac_frame desc, *own = sac_segment_composed(item);
    if (own) {
        *out = own;
        return SAC_OK;
    }
    sac_result res = describe(v, item->frame, &desc);
    if (res == SAC_OK)
        res = sac_canvas_take(&v->canvas, item->frame->device, &desc, &own);
    if (res == SAC_OK)
        res = put_together(v, item, own);
    if (res == SAC_OK)
        res = sac_canvas_give(&v->canvas);
    if (res == SAC_OK)
        *out = own;
    return res;
}

static sac_result encode(struct mattes *v, struct sac_item *item, sac_frame *composed)
{
    sac_frame *matte = sac_segment_matte(item);
    switch (v->job->segment->as) {
    case SAC_SEGMENT_MASK: return sac_sink_write_wait(v->sink, matte);
    case SAC_SEGMENT_ALPHA: return sac_sink_write_alpha_wait(v->sink, item->frame, matte);
    default: return sac_sink_write_wait(v->sink, composed);
    }
}

/* Several sink threads call it, one at a time. */
static sac_result give(struct mattes *v, const struct sac_item *item, const sac_frame *composed)
{
    const struct sac_segment_params *p = v->job->segment;
    sac_result res = composed == sac_segment_composed(item) ? SAC_OK : sac_frame_wait(composed);
    if (res != SAC_OK)
        return res;
    sac_books_count_composite(v->job->books, item);
    pthread_mutex_lock(v->call_lock);
    p->on_composite(p->on_composite_user, item->frame, composed);
    pthread_mutex_unlock(v->call_lock);
    return SAC_OK;
}

static sac_result compose_timed(struct mattes *v, struct sac_item *item, sac_frame **composed)
{
    struct sac_books *books = v->job->books;
    const int64_t     begun = sac_books_begin(books, SAC_STAGE_COMPOSITE);
    sac_memory_use_set(SAC_MEMORY_DRAW);
    sac_result res = compose(v, item, composed);
    if (res == SAC_OK && v->job->segment->on_composite)
        res = give(v, item, *composed);
    sac_books_finish(books, SAC_STAGE_COMPOSITE, begun, item);
    return res;
}

static sac_result encode_timed(struct mattes *v, struct sac_item *item, sac_frame *composed)
{
    struct sac_books *books = v->job->books;
    const int64_t     begun = sac_books_begin(books, SAC_STAGE_ENCODE);
    sac_memory_use_set(SAC_MEMORY_ENCODE);
    sac_result res = encode(v, item, composed);
    sac_books_finish(books, SAC_STAGE_ENCODE, begun, item);
    return res;
}

static sac_result mattes_write(struct sac_output *out, struct sac_item *item)
{
    struct mattes *v = (struct mattes *)out;
    sac_frame     *composed = NULL;
    sac_result     res = SAC_OK;
    if (sac_segment_composes(v->job->segment->as))
        res = compose_timed(v, item, &composed);
    if (res == SAC_OK && v->sink)
        res = encode_timed(v, item, composed);
    return res;
}

static sac_result mattes_finish(struct sac_output *out)
{
    const struct mattes *v = (const struct mattes *)out;
    return v->sink ? sac_sink_finish(v->sink) : SAC_OK;
}

static const char *mattes_encoder(const struct sac_output *out)
{
    const struct mattes *v = (const struct mattes *)out;
    return v->sink ? sac_sink_encoder(v->sink) : "";
}

static void mattes_destroy(struct sac_output *out)
{
    struct mattes *v = (struct mattes *)out;
    sac_sink_destroy(&v->sink);
    sac_canvas_finish(&v->canvas);
    sac_frame_unref(&v->picture);
    sac_frame_unref(&v->background);
    sac_free(v);
}

static const struct sac_output_ops mattes_ops = {
    .name = "mattes",
    .bit = SAC_OUTPUT_VIDEO,
    .times_itself = true,
    .write = mattes_write,
    .finish = mattes_finish,
    .destroy = mattes_destroy,
    .encoder = mattes_encoder,
};

/* ---- creation ---- */

/* Before the first frame, where its size is known: whether it can be packed, and a GPU's memory. */
static sac_result prepare(struct mattes *v, sac_source *src)
{
    const enum sac_memory_use before = sac_memory_use_set(SAC_MEMORY_DRAW);
    struct sac_source_info    info = {0};
    sac_frame                 desc = {0};
    sac_result                res = SAC_OK;
    if (src)
        sac_source_describe(src, &info);
    if (info.width > 0 && info.height > 0) {
        const sac_frame first = {.format = info.format,
                                 .width = info.width,
                                 .height = info.height,
                                 .matrix = info.matrix,
                                 .range = info.range};
        res = describe(v, &first, &desc);
    }
    if (res == SAC_OK && info.width > 0 && info.format != SAC_PIXEL_NONE &&
        sac_device_apart(v->job->dev))
        res = sac_canvas_prepare(&v->canvas, v->job->dev, &desc);
    sac_memory_use_set(before);
    return res;
}

static sac_result create_video(const struct sac_output_setup *setup, struct sac_output **out)
{
    const struct sac_segment_params *p = setup->job->segment;
    struct sac_sink_params           sink = setup->params->sink;
    struct mattes                   *v = sac_new(struct mattes);
    sac_result                       res = SAC_OK;
    if (!v)
        return SAC_FAIL(setup->ctx, SAC_ERR_MEMORY, "no memory for a video of mattes");
    v->base.ops = &mattes_ops;
    v->ctx = setup->ctx;
    v->job = setup->job;
    v->call_lock = setup->call_lock;
    v->base.empty = !setup->params->video_out;
    v->composite = sac_segment_composite_of(p);
    if (v->base.empty)
        sac_segment_compose_early(setup->job);
    sink.alpha = p->as == SAC_SEGMENT_ALPHA;
    if (sac_segment_composes(p->as))
        res = prepare(v, setup->src);
    if (res == SAC_OK && p->as == SAC_SEGMENT_CUTOUT && p->background)
        res = read_picture(setup->job->dev, p->background, &v->picture);
    if (res == SAC_OK && setup->params->video_out)
        res = sac_sink_open(setup->job->dev, setup->params->video_out, setup->src, &sink,
                            sac_job_is_prompt(setup->job), &v->sink);
    if (res == SAC_OK)
        *out = &v->base;
    else
        mattes_destroy(&v->base);
    return res;
}

sac_result sac_mattes_create(const struct sac_output_setup *setup, struct sac_output **out)
{
    switch (setup->job->segment->as) {
    case SAC_SEGMENT_PNG: return sac_matte_pictures_create(setup, out);
    case SAC_SEGMENT_COCO: return sac_matte_records_create(setup, out);
    default: return create_video(setup, out);
    }
}
