/* SPDX-License-Identifier: Apache-2.0 */
/* Copies pictures to a GPU through page-locked memory, a few at once, on a stream of their own. The
 * receiver of the frame need not wait for the copy: see sac_frame_await. */
#include <stdio.h>

#include "device/spares.h"
#include "media/media.h"

enum { SLOTS = 3 };

struct slot {
    struct sac_buffer *staging; /* page-locked */
    struct sac_event  *done;    /* the GPU has finished with it */
    AVFrame           *held;    /* the surface being read; or empty */
};

struct sac_uploader {
    sac_device               *dev;
    struct sac_device_stream *stream;
    char                      what[320]; /* for strict mode's sentence */
    struct slot               slot[SLOTS];
    int                       next;
    struct sac_spares         frames; /* what they are copied to */
    int                       frame_count;
};

static sac_result slot_init(sac_device *dev, struct slot *slot)
{
    slot->held = av_frame_alloc();
    if (!slot->held)
        return SAC_FAIL(sac_device_context(dev), SAC_ERR_MEMORY, "no memory to upload frames");
    return dev->ops->event_create(dev, false, &slot->done);
}

/* The frames that may be lent out, as with a GPU's decoder. */
static int frames_of(const struct sac_source_params *params)
{
    return params->surfaces > 0 ? params->surfaces
                                : SAC_LENT_DEFAULT + SAC_MAX(params->prefetch, 0);
}

sac_result sac_source_uploader_create(const struct sac_decoder *dec, struct sac_uploader **out)
{
    char       what[320];
    const bool is_chosen = dec->params->decode == SAC_DECODE_CPU || !dec->note[0];
    snprintf(what, sizeof what, "%.120s: upload of a frame (%.160s)", dec->source_name,
             is_chosen ? "--decode gpu leaves there what the GPU decodes" : dec->note);
    return sac_uploader_create(dec->dev, what, frames_of(dec->params), out);
}

sac_result sac_uploader_create(sac_device *dev, const char *what, int frames,
                               struct sac_uploader **out)
{
    struct sac_uploader *up = sac_new(struct sac_uploader);
    if (!up)
        return SAC_FAIL(sac_device_context(dev), SAC_ERR_MEMORY, "%s: no memory", what);
    up->dev = dev;
    up->frames = (struct sac_spares){.dev = dev, .owner = "frames from the host"};
    up->frame_count = frames;
    snprintf(up->what, sizeof up->what, "%s", what);
    sac_result res = dev->ops->stream_create(dev, &up->stream);
    for (int i = 0; i < SLOTS && res == SAC_OK; i++)
        res = slot_init(dev, &up->slot[i]);
    if (res == SAC_OK)
        *out = up;
    else
        sac_uploader_destroy(&up);
    return res;
}

void sac_uploader_destroy(struct sac_uploader **up_at)
{
    struct sac_uploader *up = *up_at;
    *up_at = NULL;
    if (!up)
        return;
    if (up->stream)
        up->dev->ops->stream_wait(up->stream);
    for (int i = 0; i < SLOTS; i++) {
        struct slot *slot = &up->slot[i];
        av_frame_free(&slot->held);
        up->dev->ops->event_destroy(&slot->done);
        sac_buffer_unref(&slot->staging);
    }
    sac_spares_finish(&up->frames);
    up->dev->ops->stream_destroy(&up->stream);
    sac_free(up);
}

sac_result sac_upload_begin(struct sac_uploader *up, sac_frame *staging)
{
    struct slot *slot = &up->slot[up->next];
    size_t       bytes = sac_frame_lay_out(staging);
    sac_result   res = up->dev->ops->event_wait(slot->done);
    av_frame_unref(slot->held);
    if (slot->staging && sac_buffer_bytes(slot->staging) != bytes)
        sac_buffer_unref(&slot->staging);
    if (res == SAC_OK && !slot->staging)
        res = sac_host_buffer_create(up->dev, bytes, "frames on their way to the GPU",
                                     &slot->staging);
    if (res == SAC_OK)
        sac_frame_place(staging, sac_buffer_data(slot->staging));
    return res;
}

/* Work queued on the device's own stream may still use this memory. */
static sac_result queue_upload(struct sac_uploader *up, const sac_frame *staging, sac_frame *frame)
{
    const struct sac_device_ops *ops = up->dev->ops;
    struct slot                 *slot = &up->slot[up->next];
    struct sac_event            *ready = NULL;
    sac_result                   res = ops->stream_after(up->dev, up->stream, NULL);
    if (res == SAC_OK)
        res = ops->event_create(up->dev, false, &ready);
    if (res != SAC_OK)
        return res;
    sac_frame_set_ready(frame, ready, true);
    /* Both have the same layout, one plane after the other. */
    res = sac_device_copy(up->dev, up->stream, frame->plane[0], staging->plane[0],
                          sac_buffer_bytes(slot->staging), SAC_COPY_HOST_TO_DEVICE,
                          SAC_COPY_FRAME_UPLOAD, up->what);
    sac_frame_used(frame, up->stream);
    if (res == SAC_OK)
        res = ops->event_record(ready, up->stream);
    if (res == SAC_OK)
        res = ops->event_record(slot->done, up->stream);
    up->next = (up->next + 1) % SLOTS;
    return res;
}

sac_result sac_upload_end(struct sac_uploader *up, const sac_frame *staging, sac_frame **out)
{
    const size_t       bytes = sac_buffer_bytes(up->slot[up->next].staging);
    struct sac_buffer *memory = NULL;
    sac_frame         *frame = NULL;
    /* One more with each frame: a source that reads ahead leaves memory for networks that are
     * loaded later. */
    const int  wanted = SAC_MIN(up->frames.count + 1, up->frame_count);
    sac_result res = sac_spares_reserve(&up->frames, bytes, wanted);
    if (up->frames.count < wanted) /* memory is short: make do with these */
        up->frame_count = SAC_MAX(up->frames.count, 1);
    if (res == SAC_OK)
        res = sac_spares_take(&up->frames, bytes, &memory);
    if (res == SAC_OK)
        res = sac_frame_create_in(up->dev, staging, memory, &frame);
    if (res == SAC_OK)
        res = queue_upload(up, staging, frame);
    if (res == SAC_OK)
        *out = frame;
    else
        sac_frame_unref(&frame);
    return res;
}

sac_result sac_upload_round_trip(struct sac_uploader *up, AVFrame *surface, const sac_frame *desc,
                                 struct sac_device_stream *after, sac_frame **out)
{
    struct sac_plane_layout plane[SAC_PLANES_MAX];
    const int               n = sac_frame_stored_planes(desc, plane);
    sac_frame               staging = *desc;
    sac_result              res = sac_upload_begin(up, &staging);
    if (res == SAC_OK)
        res = up->dev->ops->stream_after(up->dev, up->stream, after);
    for (int i = 0; i < n && res == SAC_OK; i++) {
        const struct sac_copy_rows rows = {staging.plane[i],       desc->plane[i],
                                           staging.pitch_bytes[i], desc->pitch_bytes[i],
                                           plane[i].row_bytes,     plane[i].rows};
        res = sac_device_copy_rows(up->dev, up->stream, &rows, SAC_COPY_DEVICE_TO_HOST,
                                   SAC_COPY_FRAME_DOWNLOAD,
                                   "download of a decoded frame (--zero-copy off)");
    }
    if (res == SAC_OK)
        av_frame_move_ref(up->slot[up->next].held, surface);
    return res == SAC_OK ? sac_upload_end(up, &staging, out) : res;
}
