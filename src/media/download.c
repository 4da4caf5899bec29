/* SPDX-License-Identifier: Apache-2.0 */
/* GPU frames for an encoder on the host: converted on the GPU to the encoder's format, then copied
 * to page-locked memory. One frame is copied while the one before is encoded. */
#include <string.h>

#include "media/media.h"
#include "vision/vision.h"

enum { PICTURES = 3 }; /* being copied, and held by the encoder */

sac_result sac_download_reserve(struct sac_download *down, const sac_frame *layout)
{
    sac_frame *f = down->fitted;
    if (f && f->format == layout->format && f->width == layout->width &&
        f->height == layout->height) {
        f->matrix = layout->matrix;
        f->range = layout->range;
        return SAC_OK;
    }
    sac_frame_unref(&down->fitted);
    sac_result res = sac_frame_create(down->dev, layout, &down->fitted);
    /* Work queued on the device's own stream may still use the memory. */
    return res == SAC_OK ? down->dev->ops->stream_after(down->dev, down->stream, NULL) : res;
}

sac_result sac_download_open(struct sac_download *down, sac_device *dev, const sac_frame *layout)
{
    sac_frame host = *layout;
    down->dev = dev;
    down->pictures =
        (struct sac_spares){.dev = dev, .owner = "frames for the encoder", .host = true};
    sac_result res = dev->ops->stream_create(dev, &down->stream);
    if (res == SAC_OK)
        res = dev->ops->event_create(dev, false, &down->done);
    if (res == SAC_OK)
        res = sac_spares_reserve(&down->pictures, sac_frame_lay_out(&host), PICTURES);
    return res;
}

void sac_download_close(struct sac_download *down)
{
    if (!down->dev)
        return;
    if (down->stream)
        down->dev->ops->stream_wait(down->stream);
    sac_frame_unref(&down->fitted);
    sac_frame_unref(&down->reading);
    sac_buffer_unref(&down->memory);
    sac_spares_finish(&down->pictures);
    down->dev->ops->event_destroy(&down->done);
    down->dev->ops->stream_destroy(&down->stream);
    down->dev = NULL;
}

/* Convert the frame to the layout, in a frame that is kept for this. */
static sac_result fit(struct sac_download *down, const sac_frame *frame, const sac_frame *layout)
{
    char       what[128];
    sac_result res = sac_download_reserve(down, layout);
    sac_frame_name(frame, "encode: conversion of", what, sizeof what);
    if (res == SAC_OK)
        res = sac_frame_convert_on(down->stream, frame, SAC_FILTER_AREA, down->fitted,
                                   SAC_COPY_FRAME_CONVERT, what);
    return res;
}

/* How many are copied: of grey in 4:2:0 luma alone, as its chroma is the same everywhere. */
static int planes_of(const sac_frame *host, bool grey,
                     struct sac_plane_layout plane[SAC_PLANES_MAX])
{
    const int n = sac_frame_planes(host->format, host->width, host->height, plane);
    if (!grey || host->format != SAC_PIXEL_I420)
        return n;
    for (int i = 1; i < n; i++)
        memset(host->plane[i], 128, host->pitch_bytes[i] * (size_t)plane[i].rows);
    return 1;
}

static sac_result copy_planes(struct sac_download *down, const sac_frame *frame, bool grey,
                              const sac_frame *host)
{
    struct sac_plane_layout plane[SAC_PLANES_MAX];
    char                    what[128];
    const int               n = planes_of(host, grey, plane);
    sac_result              res = sac_frame_await(frame, down->stream);
    sac_frame_name(frame, "encode: download of", what, sizeof what);
    for (int i = 0; i < n && res == SAC_OK; i++) {
        const struct sac_copy_rows rows = {host->plane[i],       frame->plane[i],
                                           host->pitch_bytes[i], frame->pitch_bytes[i],
                                           plane[i].row_bytes,   plane[i].rows};
        res = sac_device_copy_rows(down->dev, down->stream, &rows, SAC_COPY_DEVICE_TO_HOST,
                                   SAC_COPY_OVERLAY, what);
    }
    return res;
}

sac_result sac_download_begin(struct sac_download *down, sac_frame *frame, bool fits,
                              const sac_frame *layout)
{
    struct sac_buffer *buf = NULL;
    sac_result         res = fits ? SAC_OK : fit(down, frame, layout);
    sac_frame          host = *layout;
    const size_t       bytes = sac_frame_lay_out(&host);
    if (res == SAC_OK)
        res = sac_spares_take(&down->pictures, bytes, &buf);
    if (res != SAC_OK)
        return res;
    sac_frame_place(&host, sac_buffer_data(buf));
    host.pts_us = frame->pts_us;
    host.duration_us = frame->duration_us;
    res = copy_planes(down, fits ? frame : down->fitted, frame->format == SAC_PIXEL_GRAY8, &host);
    if (res == SAC_OK)
        res = down->dev->ops->event_record(down->done, down->stream);
    if (res != SAC_OK) {
        down->dev->ops->stream_wait(down->stream); /* some planes may still be copied */
        sac_buffer_unref(&buf);
        return res;
    }
    down->host = host;
    down->memory = buf;
    down->reading = fits ? sac_frame_ref(frame) : NULL; /* the conversion holds others */
    return SAC_OK;
}

sac_result sac_download_end_wait(struct sac_download *down, sac_frame *host,
                                 struct sac_buffer **memory)
{
    if (!down->memory)
        return SAC_OK;
    sac_result res = down->dev->ops->event_wait(down->done);
    sac_frame_unref(&down->reading);
    *host = down->host;
    *memory = down->memory;
    down->memory = NULL;
    if (res != SAC_OK)
        sac_buffer_unref(memory);
    return res;
}
