/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/canvas.h"

#include "vision/vision.h"

static sac_result open_canvas(struct sac_canvas *c, sac_device *dev)
{
    c->dev = dev;
    sac_result res = dev->ops->stream_create(dev, &c->stream);
    for (size_t i = 0; i < SAC_COUNT(c->sheet) && res == SAC_OK; i++)
        res = dev->ops->event_create(dev, false, &c->sheet[i].drawn);
    return res;
}

void sac_canvas_finish(struct sac_canvas *c)
{
    if (!c->dev)
        return;
    if (c->stream)
        c->dev->ops->stream_wait(c->stream);
    for (size_t i = 0; i < SAC_COUNT(c->sheet); i++) {
        sac_frame_unref(&c->sheet[i].frame);
        c->dev->ops->event_destroy(&c->sheet[i].drawn);
    }
    c->dev->ops->stream_destroy(&c->stream);
    *c = (struct sac_canvas){0};
}

/* Encoders take I420; the conversion is the copy that drawing needs anyway. */
static enum sac_pixel_format format_for(const sac_frame *frame)
{
    return frame->format == SAC_PIXEL_NV12 || frame->format == SAC_PIXEL_P010 ? SAC_PIXEL_I420
                                                                              : frame->format;
}

static bool is_like(const sac_frame *canvas, const sac_frame *frame)
{
    return canvas->width == frame->width && canvas->height == frame->height &&
           canvas->format == format_for(frame) && canvas->matrix == frame->matrix &&
           canvas->range == frame->range;
}

/* Make sure the sheet has a frame of this kind that nobody else reads. */
static sac_result stretch(struct sac_canvas *c, unsigned sheet, const sac_frame *frame)
{
    sac_frame **on = &c->sheet[sheet].frame, desc = *frame;
    if (*on && is_like(*on, frame) && sac_frame_is_writable(*on))
        return SAC_OK; /* a GPU's encoder keeps some for a while */
    sac_frame_unref(on);
    desc.format = format_for(frame);
    sac_result res = sac_frame_create(c->dev, &desc, on);
    if (res != SAC_OK)
        return res;
    sac_frame_set_ready(*on, c->sheet[sheet].drawn, false);
    /* Work queued on the device's own stream may still use the memory. */
    return c->dev->ops->stream_after(c->dev, c->stream, NULL);
}

sac_result sac_canvas_prepare(struct sac_canvas *c, sac_device *dev, const sac_frame *like)
{
    sac_result res = c->dev ? SAC_OK : open_canvas(c, dev);
    for (unsigned i = 0; i < SAC_COUNT(c->sheet) && res == SAC_OK; i++)
        res = stretch(c, i, like);
    return res;
}

sac_result sac_canvas_draw(struct sac_canvas *c, const sac_frame *frame,
                           const struct sac_shape *shapes, int n, sac_frame **out)
{
    const unsigned sheet = c->next++ % SAC_COUNT(c->sheet);
    char           what[128];
    sac_result     res = c->dev ? SAC_OK : open_canvas(c, frame->device);
    if (res == SAC_OK)
        res = stretch(c, sheet, frame);
    if (res != SAC_OK)
        return res;
    sac_frame *own = c->sheet[sheet].frame;
    own->pts_us = frame->pts_us;
    own->duration_us = frame->duration_us;
    own->number = frame->number;
    own->stream_id = frame->stream_id;
    sac_frame_name(frame, "draw: copy of", what, sizeof what);
    res = sac_frame_convert_on(c->stream, frame, SAC_FILTER_BILINEAR, own, SAC_COPY_DRAW, what);
    if (res == SAC_OK)
        res = sac_frame_draw_on(c->stream, own, shapes, n);
    if (res == SAC_OK)
        res = c->dev->ops->event_record(c->sheet[sheet].drawn, c->stream);
    if (res == SAC_OK)
        *out = own;
    return res;
}
