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

/* Encoders take I420; drawing needs a copy anyway, and composing writes any. */
enum sac_pixel_format sac_canvas_format(enum sac_pixel_format format)
{
    return format == SAC_PIXEL_NV12 || format == SAC_PIXEL_P010 ? SAC_PIXEL_I420 : format;
}

bool sac_canvas_is_like(const sac_frame *sheet, const sac_frame *desc)
{
    return sheet->width == desc->width && sheet->height == desc->height &&
           sheet->format == desc->format && sheet->matrix == desc->matrix &&
           sheet->range == desc->range;
}

sac_result sac_canvas_frame(struct sac_canvas *c, const sac_frame *desc, sac_frame **out)
{
    sac_result res = sac_frame_create(c->dev, desc, out);
    /* Work queued on the device's own stream may still use the memory. */
    return res == SAC_OK ? c->dev->ops->stream_after(c->dev, c->stream, NULL) : res;
}

/* Make sure the sheet has a frame of this kind that nobody else reads. */
static sac_result stretch(struct sac_canvas *c, unsigned sheet, const sac_frame *desc)
{
    sac_frame **on = &c->sheet[sheet].frame;
    if (*on && sac_canvas_is_like(*on, desc) && sac_frame_is_writable(*on))
        return SAC_OK; /* an encoder keeps some for a while */
    sac_frame_unref(on);
    sac_result res = sac_canvas_frame(c, desc, on);
    if (*on)
        sac_frame_set_ready(*on, c->sheet[sheet].drawn, false);
    return res;
}

sac_result sac_canvas_prepare(struct sac_canvas *c, sac_device *dev, const sac_frame *desc)
{
    sac_result res = c->dev ? SAC_OK : open_canvas(c, dev);
    for (unsigned i = 0; i < SAC_COUNT(c->sheet) && res == SAC_OK; i++)
        res = stretch(c, i, desc);
    return res;
}

sac_result sac_canvas_take(struct sac_canvas *c, sac_device *dev, const sac_frame *desc,
                           sac_frame **out)
{
    const unsigned sheet = c->next++ % SAC_COUNT(c->sheet);
    sac_result     res = c->dev ? SAC_OK : open_canvas(c, dev);
    if (res == SAC_OK)
        res = stretch(c, sheet, desc);
    if (res != SAC_OK)
        return res;
    sac_frame *own = c->sheet[sheet].frame;
    own->pts_us = desc->pts_us;
    own->duration_us = desc->duration_us;
    own->number = desc->number;
    own->stream_id = desc->stream_id;
    *out = own;
    return SAC_OK;
}

sac_result sac_canvas_give(struct sac_canvas *c)
{
    const unsigned sheet = (c->next - 1) % SAC_COUNT(c->sheet);
    return c->dev->ops->event_record(c->sheet[sheet].drawn, c->stream);
}

sac_result sac_canvas_draw(struct sac_canvas *c, const sac_frame *frame,
                           const struct sac_shape *shapes, int n, sac_frame **out)
{
    sac_frame desc = *frame, *own = NULL;
    char      what[128];
    desc.format = sac_canvas_format(frame->format);
    sac_result res = sac_canvas_take(c, frame->device, &desc, &own);
    if (res != SAC_OK)
        return res;
    sac_frame_name(frame, "draw: copy of", what, sizeof what);
    res = sac_frame_convert_on(c->stream, frame, SAC_FILTER_BILINEAR, own, SAC_COPY_DRAW, what);
    if (res == SAC_OK)
        res = sac_frame_draw_on(c->stream, own, shapes, n);
    if (res == SAC_OK)
        res = sac_canvas_give(c);
    if (res == SAC_OK)
        *out = own;
    return res;
}
