/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "device/format.h"
#include "device/uses.h"

enum { FRAME_SIDE_MAX = 32768, PITCH_ALIGN = 64 };

/* What stands behind a frame; the frame itself is in here, so that both are one allocation. */
struct sac_frame_owner {
    sac_refcount       refs;
    struct sac_buffer *buffer; /* of a frame of our own, */
    sac_tensor        *tensor; /* or what its planes lie in, else release(user) */
    void (*release)(void *user);
    void             *user;
    pthread_mutex_t   lock;  /* guards uses */
    struct sac_uses   uses;  /* of a wrapped frame */
    struct sac_event *ready; /* NULL: the planes are complete */
    bool              ready_own;
    atomic_bool       queued; /* the device's own stream has, or had, work that writes it */
    sac_frame         frame;
};

static sac_result check(sac_device *dev, const sac_frame *desc)
{
    SAC_NEEDS_NO_LATER_FIELD(dev->ctx, desc, "frame");
    if (desc->width < 1 || desc->width > FRAME_SIDE_MAX || desc->height < 1 ||
        desc->height > FRAME_SIDE_MAX)
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "frame of %dx%d pixels: each side can be 1 to %d",
                        desc->width, desc->height, FRAME_SIDE_MAX);
    if (!sac_format_info_of(desc->format))
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "frame of pixel format %d: have %s",
                        (int)desc->format, sac_format_names());
    return SAC_OK;
}

static sac_result owner_new(sac_device *dev, const sac_frame *desc, struct sac_frame_owner **out)
{
    struct sac_frame_owner *owner = sac_new(struct sac_frame_owner);
    if (!owner)
        return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "no memory for a frame's state");
    sac_refcount_init(&owner->refs);
    pthread_mutex_init(&owner->lock, NULL);
    owner->frame = *desc;
    owner->frame.device = dev;
    owner->frame.owner = owner;
    sac_device_hold(dev);
    *out = owner;
    return SAC_OK;
}

static size_t align_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* Lay the planes out one after the other, each row on a 64-byte boundary; returns the bytes. */
size_t sac_frame_lay_out(sac_frame *frame)
{
    struct sac_plane_layout planes[SAC_PLANES_MAX];
    int                     n = sac_frame_stored_planes(frame, planes);
    size_t                  bytes = 0;
    for (int i = 0; i < SAC_PLANES_MAX; i++) {
        frame->plane[i] = NULL;
        frame->pitch_bytes[i] = i < n ? align_up(planes[i].row_bytes, PITCH_ALIGN) : 0;
        bytes += i < n ? frame->pitch_bytes[i] * (size_t)planes[i].rows : 0;
    }
    return bytes;
}

void sac_frame_place(sac_frame *frame, uint8_t *at)
{
    struct sac_plane_layout planes[SAC_PLANES_MAX];
    int                     n = sac_frame_stored_planes(frame, planes);
    for (int i = 0; i < n; i++) {
        frame->plane[i] = at;
        at += frame->pitch_bytes[i] * (size_t)planes[i].rows;
    }
}

sac_result sac_frame_create_in(sac_device *dev, const sac_frame *desc, struct sac_buffer *buf,
                               sac_frame **out)
{
    struct sac_frame_owner *owner = NULL;
    sac_result              res = check(dev, desc);
    if (res == SAC_OK)
        res = owner_new(dev, desc, &owner);
    if (res != SAC_OK) {
        sac_buffer_unref(&buf);
        return res;
    }
    sac_frame *frame = &owner->frame;
    owner->buffer = buf;
    sac_frame_lay_out(frame);
    sac_buffer_describe(buf, &(struct sac_tensor_desc){
                                 .dtype = SAC_U8,
                                 .rank = 2,
                                 .shape = {frame->height, frame->width},
                             });
    sac_frame_place(frame, sac_buffer_data(buf));
    *out = frame;
    return SAC_OK;
}

sac_result sac_frame_create(sac_device *dev, const sac_frame *desc, sac_frame **out)
{
    SAC_NEEDS(sac_device_context(dev), dev);
    SAC_NEEDS(sac_device_context(dev), desc);
    SAC_NEEDS(sac_device_context(dev), out);
    sac_frame          layout = *desc;
    struct sac_buffer *buf = NULL;
    char               name[32];
    sac_result         res = check(dev, desc);
    if (res != SAC_OK)
        return res;
    layout.orientation = SAC_UPRIGHT;
    snprintf(name, sizeof name, "frame %s", sac_pixel_format_name(desc->format));
    res = sac_buffer_create(dev, sac_frame_lay_out(&layout), name, &buf);
    return res == SAC_OK ? sac_frame_create_in(dev, &layout, buf, out) : res;
}

static sac_result check_planes(sac_device *dev, const sac_frame *desc)
{
    struct sac_plane_layout planes[SAC_PLANES_MAX];
    int                     n = sac_frame_stored_planes(desc, planes);
    if ((unsigned)desc->orientation >= SAC_ORIENTATION_COUNT)
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "wrapped frame: orientation %d; have 0 to %d",
                        (int)desc->orientation, SAC_ORIENTATION_COUNT - 1);
    for (int i = 0; i < n; i++)
        if (!desc->plane[i] || desc->pitch_bytes[i] < planes[i].row_bytes)
            return SAC_FAIL(dev->ctx, SAC_ERR_ARG,
                            "wrapped frame: plane %d needs an address and %zu bytes a row", i,
                            planes[i].row_bytes);
    return SAC_OK;
}

/* Code on the host reads rows, so planes are turned once here and not by every reader. */
static sac_result wrap_turned(sac_device *dev, const sac_frame *desc, void (*release)(void *user),
                              void *user, sac_frame **out)
{
    struct sac_plane_layout planes[SAC_PLANES_MAX];
    const int               n = sac_frame_stored_planes(desc, planes);
    size_t                  bytes = 0;
    sac_frame              *frame = NULL;
    char                    what[128];
    for (int i = 0; i < n; i++)
        bytes += planes[i].row_bytes * (size_t)planes[i].rows;
    snprintf(what, sizeof what, "frame of %dx%d, %s", desc->width, desc->height,
             sac_orientation_name(desc->orientation));
    sac_result res = sac_device_count_copy(dev, bytes, SAC_COPY_FRAME_CONVERT, what);
    if (res == SAC_OK)
        res = sac_frame_create(dev, desc, &frame);
    if (res != SAC_OK)
        return res;
    sac_frame_turn(desc, frame);
    if (release)
        release(user);
    *out = frame;
    return SAC_OK;
}

sac_result sac_frame_wrap(sac_device *dev, const sac_frame *desc, void (*release)(void *user),
                          void *user, sac_frame **out)
{
    SAC_NEEDS(sac_device_context(dev), dev);
    SAC_NEEDS(sac_device_context(dev), desc);
    SAC_NEEDS(sac_device_context(dev), out);
    struct sac_frame_owner *owner = NULL;
    sac_result              res = check(dev, desc);
    if (res == SAC_OK)
        res = check_planes(dev, desc);
    if (res == SAC_OK && desc->orientation != SAC_UPRIGHT && dev->ops->host_memory)
        return wrap_turned(dev, desc, release, user, out);
    if (res == SAC_OK)
        res = owner_new(dev, desc, &owner);
    if (res != SAC_OK)
        return res;
    owner->release = release;
    owner->user = user;
    *out = &owner->frame;
    return SAC_OK;
}

/* The tensor's numbers are complete behind the device's own stream, so the planes are. */
sac_result sac_frame_of_tensor(sac_tensor *t, const sac_frame *desc, sac_frame **out)
{
    sac_result res = sac_frame_wrap(sac_tensor_device(t), desc, NULL, NULL, out);
    if (res != SAC_OK)
        return res;
    (*out)->owner->tensor = sac_tensor_ref(t);
    sac_frame_written(*out, NULL);
    return SAC_OK;
}

sac_frame *sac_frame_ref(sac_frame *frame)
{
    if (!frame || !frame->owner)
        return NULL;
    sac_refcount_inc(&frame->owner->refs);
    return frame;
}

void sac_frame_unref(sac_frame **frame_at)
{
    sac_frame *frame = frame_at ? *frame_at : NULL;
    if (!frame)
        return;
    *frame_at = NULL;
    struct sac_frame_owner *owner = frame->owner;
    sac_device             *dev = frame->device;
    if (!sac_refcount_dec(&owner->refs))
        return;
    if (owner->ready_own)
        dev->ops->event_destroy(&owner->ready);
    sac_buffer_unref(&owner->buffer);
    sac_tensor_unref(&owner->tensor);
    sac_uses_wait(dev, &owner->uses); /* its owner does not know our streams */
    sac_uses_finish(dev, &owner->uses);
    pthread_mutex_destroy(&owner->lock);
    if (owner->release)
        owner->release(owner->user);
    sac_free(owner);
    sac_device_release(dev);
}

void sac_frame_used(const sac_frame *frame, struct sac_device_stream *stream)
{
    struct sac_frame_owner *owner = frame->owner;
    if (owner->buffer) {
        sac_buffer_used(owner->buffer, stream);
        return;
    }
    if (owner->tensor) {
        sac_tensor_used(owner->tensor, stream);
        return;
    }
    pthread_mutex_lock(&owner->lock);
    sac_uses_add(frame->device, &owner->uses, stream);
    pthread_mutex_unlock(&owner->lock);
}

bool sac_frame_is_writable(const sac_frame *frame)
{
    if (!frame || !frame->owner)
        return false;
    return frame->owner->buffer && frame->orientation == SAC_UPRIGHT &&
           atomic_load_explicit(&frame->owner->refs.count, memory_order_acquire) == 1;
}

/* ---- planes that are not complete yet ---- */

void sac_frame_set_ready(sac_frame *frame, struct sac_event *event, bool own)
{
    frame->owner->ready = event;
    frame->owner->ready_own = own;
}

void sac_frame_written(const sac_frame *frame, const struct sac_device_stream *stream)
{
    if (!stream && frame->owner)
        atomic_store(&frame->owner->queued, true);
}

sac_result sac_frame_await(const sac_frame *frame, struct sac_device_stream *stream)
{
    struct sac_frame_owner *owner = frame->owner;
    sac_device             *dev = frame->device;
    sac_result              res = SAC_OK;
    if (owner && owner->ready)
        res = dev->ops->stream_wait_event(dev, stream, owner->ready);
    if (res == SAC_OK && stream && owner && atomic_load(&owner->queued))
        res = dev->ops->stream_after(dev, stream, NULL);
    return res;
}

/* A frame of our own may have been copied, converted or drawn to since it was made. */
sac_result sac_frame_wait(const sac_frame *frame)
{
    SAC_NEEDS(NULL, frame);
    const struct sac_frame_owner *owner = frame->owner;
    sac_result res = owner && owner->ready ? frame->device->ops->event_wait(owner->ready) : SAC_OK;
    return res == SAC_OK && owner && (owner->buffer || owner->tensor)
               ? sac_device_wait(frame->device)
               : res;
}

/* ---- planes as tensors ---- */

sac_result sac_frame_plane_tensor(sac_frame *frame, int plane, sac_tensor **out)
{
    SAC_NEEDS(NULL, frame);
    SAC_NEEDS(sac_device_context(frame->device), frame->owner);
    SAC_NEEDS(frame->device->ctx, out);
    struct sac_plane_layout planes[SAC_PLANES_MAX];
    const int               n = sac_frame_stored_planes(frame, planes);
    const size_t            size = n ? (size_t)sac_format_info_of(frame->format)->number_bytes : 1;
    if (plane < 0 || plane >= n)
        return SAC_FAIL(frame->device->ctx, SAC_ERR_ARG, "plane %d of a %s frame; have 0 to %d",
                        plane, sac_pixel_format_name(frame->format), n - 1);
    if (frame->pitch_bytes[plane] % size)
        return SAC_FAIL(frame->device->ctx, SAC_ERR_ARG,
                        "plane %d of a %s frame: a pitch of %zu bytes", plane,
                        sac_pixel_format_name(frame->format), frame->pitch_bytes[plane]);
    const struct sac_tensor_desc desc = {
        .dtype = size == 2 ? SAC_U16 : SAC_U8,
        .rank = 2,
        .shape = {planes[plane].rows, (int64_t)(frame->pitch_bytes[plane] / size)},
    };
    sac_result res = sac_frame_await(frame, NULL);
    return res == SAC_OK ? sac_tensor_of_frame(frame, &desc, frame->plane[plane], out) : res;
}

/* ---- copies ---- */

void sac_frame_name(const sac_frame *frame, const char *doing, char *out, size_t size)
{
    snprintf(out, size, "%s frame %lld of stream %d (%s %dx%d)", doing, (long long)frame->number,
             frame->stream_id, sac_pixel_format_name(frame->format), frame->width, frame->height);
}

sac_result sac_frame_check_copy(const sac_frame *src, const sac_frame *dst)
{
    sac_context *ctx = dst->device->ctx;
    if (src->format != dst->format || src->width != dst->width || src->height != dst->height)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "frame copy: %s %dx%d into %s %dx%d",
                        sac_pixel_format_name(src->format), src->width, src->height,
                        sac_pixel_format_name(dst->format), dst->width, dst->height);
    if (!sac_frame_is_writable(dst))
        return SAC_FAIL(ctx, SAC_ERR_ARG, "frame copy: the destination frame is shared");
    if (src->device != dst->device && !src->device->ops->host_memory &&
        !dst->device->ops->host_memory)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "frame copy: from %s to %s goes through the CPU",
                        src->device->name, dst->device->name);
    return SAC_OK;
}

sac_result sac_frame_copy_upright(const sac_frame *src, sac_frame *dst)
{
    const bool  from_host = src->device->ops->host_memory, to_host = dst->device->ops->host_memory;
    sac_device *dev = to_host ? src->device : dst->device;
    enum sac_copy_kind   kind = SAC_COPY_ON_DEVICE;
    enum sac_copy_reason reason = SAC_COPY_FRAME_CONVERT;
    sac_result           res = SAC_OK;
    if (from_host && !to_host) {
        kind = SAC_COPY_HOST_TO_DEVICE;
        reason = SAC_COPY_FRAME_UPLOAD;
    } else if (to_host && !from_host) {
        kind = SAC_COPY_DEVICE_TO_HOST;
        reason = SAC_COPY_FRAME_DOWNLOAD;
    }
    if (res == SAC_OK && src->device == dev)
        res = sac_frame_await(src, NULL);
    if (res == SAC_OK && dst->device == dev)
        res = sac_frame_await(dst, NULL);
    struct sac_plane_layout plane[SAC_PLANES_MAX];
    char                    what[128];
    sac_frame_name(src, "copy of", what, sizeof what);
    int n = res == SAC_OK ? sac_frame_planes(src->format, src->width, src->height, plane) : 0;
    for (int i = 0; i < n && res == SAC_OK; i++) {
        const struct sac_copy_rows rows = {dst->plane[i],       src->plane[i],
                                           dst->pitch_bytes[i], src->pitch_bytes[i],
                                           plane[i].row_bytes,  plane[i].rows};
        res = sac_device_copy_rows(dev, NULL, &rows, kind, reason, what);
    }
    sac_frame_written(dst, NULL);
    return res;
}
