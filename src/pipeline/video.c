/* SPDX-License-Identifier: Apache-2.0 */
/* The annotated video. */

#include "media/media.h"
#include "pipeline/canvas.h"
#include "pipeline/output.h"
#include "pipeline/overlay.h"
#include "vision/vision.h"

struct video {
    struct sac_output  base;
    sac_context       *ctx;
    struct sac_job    *job;
    sac_sink          *sink;
    struct sac_overlay overlay;
    struct sac_canvas  canvas; /* of a GPU's frames */
};

static const char *class_name(void *job, int class_id)
{
    return sac_job_class_name(job, class_id);
}

/* A frame to draw on: the item's own if nobody else reads it, else a copy (a decoder predicts from
 * the pictures that it hands out). */
static sac_result make_writable(struct sac_item *item)
{
    sac_frame *copy = NULL;
    char       what[128];
    if (sac_frame_is_writable(item->frame))
        return SAC_OK;
    sac_frame_name(item->frame, "draw: copy of", what, sizeof what);
    sac_result res = sac_frame_create(item->frame->device, item->frame, &copy);
    if (res == SAC_OK)
        res =
            sac_frame_convert_on(NULL, item->frame, SAC_FILTER_BILINEAR, copy, SAC_COPY_DRAW, what);
    if (res != SAC_OK) {
        sac_frame_unref(&copy);
        return res;
    }
    sac_frame_unref(&item->frame);
    item->frame = copy;
    return SAC_OK;
}

/* *out: what to encode, borrowed. */
static sac_result draw(struct video *v, struct sac_item *item, sac_frame **out)
{
    if (!sac_overlay_build(&v->overlay, item->tracks, item->track_count, item->pts_us,
                           item->frame->width, item->frame->height))
        return SAC_FAIL(v->ctx, SAC_ERR_MEMORY, "no memory to draw %zu tracks", item->track_count);
    const int  n = (int)v->overlay.shape_count;
    sac_result res = SAC_OK;
    *out = item->frame;
    /* Also with nothing to draw: encoders need another format, and frames of one size in one kind
     * of memory. */
    if (sac_device_apart(item->frame->device))
        return sac_canvas_draw(&v->canvas, item->frame, v->overlay.shapes, n, out);
    if (n == 0)
        return SAC_OK;
    res = make_writable(item);
    *out = item->frame;
    return res == SAC_OK ? sac_frame_draw(item->frame, v->overlay.shapes, n) : res;
}

static sac_result video_write(struct sac_output *out, struct sac_item *item)
{
    struct video *v = (struct video *)out;
    sac_frame    *drawn = NULL;
    int64_t       begun = sac_books_begin(v->job->books, SAC_STAGE_DRAW);
    sac_memory_use_set(SAC_MEMORY_DRAW);
    sac_result res = draw(v, item, &drawn);
    sac_memory_use_set(SAC_MEMORY_ENCODE);
    sac_books_finish(v->job->books, SAC_STAGE_DRAW, begun, item);
    begun = sac_books_begin(v->job->books, SAC_STAGE_ENCODE);
    if (res == SAC_OK)
        res = sac_sink_write_wait(v->sink, drawn);
    sac_books_finish(v->job->books, SAC_STAGE_ENCODE, begun, item);
    return res;
}

static sac_result video_finish(struct sac_output *out)
{
    return sac_sink_finish(((struct video *)out)->sink);
}

static void video_destroy(struct sac_output *out)
{
    struct video *v = (struct video *)out;
    sac_sink_destroy(&v->sink);
    sac_canvas_finish(&v->canvas);
    sac_overlay_finish(&v->overlay);
    sac_free(v);
}

static const char *video_encoder(const struct sac_output *out)
{
    return sac_sink_encoder(((const struct video *)out)->sink);
}

static const struct sac_output_ops video_ops = {
    .name = "video",
    .bit = SAC_OUTPUT_VIDEO,
    .times_itself = true,
    .write = video_write,
    .finish = video_finish,
    .destroy = video_destroy,
    .encoder = video_encoder,
};

static sac_result prepare_canvas(struct video *v, sac_device *dev, const sac_source *src)
{
    struct sac_source_info info;
    if (!sac_device_apart(dev) || !src)
        return SAC_OK;
    sac_source_describe(src, &info);
    if (info.width <= 0 || info.height <= 0 || info.format == SAC_PIXEL_NONE)
        return SAC_OK;
    const sac_frame           like = {.format = sac_canvas_format(info.format),
                                      .width = info.width,
                                      .height = info.height,
                                      .matrix = info.matrix,
                                      .range = info.range};
    const enum sac_memory_use before = sac_memory_use_set(SAC_MEMORY_DRAW);
    sac_result                res = sac_canvas_prepare(&v->canvas, dev, &like);
    sac_memory_use_set(before);
    return res;
}

sac_result sac_video_create(const struct sac_output_setup *setup, struct sac_output **out)
{
    const struct sac_pipeline_params *p = setup->params;
    struct video                     *v = sac_new(struct video);
    if (!v)
        return SAC_FAIL(setup->ctx, SAC_ERR_MEMORY, "no memory for the annotated video");
    v->base.ops = &video_ops;
    v->ctx = setup->ctx;
    v->job = setup->job;
    v->overlay.trail_us = p->draw_trails ? (int64_t)((double)p->trail_s * 1e6) : 0;
    v->overlay.labels = p->labels;
    if (p->labels & SAC_LABEL_AUTO) /* the name of the only class says nothing */
        v->overlay.labels = SAC_LABEL_ID | (setup->job->run->class_kept > 1 ? SAC_LABEL_CLASS : 0);
    v->overlay.class_name = class_name;
    v->overlay.user = setup->job;
    sac_result res = sac_sink_open(setup->job->dev, p->video_out, setup->src, &p->sink,
                                   sac_job_is_prompt(setup->job), &v->sink);
    if (res == SAC_OK)
        res = prepare_canvas(v, setup->job->dev, setup->src);
    if (res == SAC_OK)
        *out = &v->base;
    else
        video_destroy(&v->base);
    return res;
}
