/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "device/uses.h"

struct sac_tensor {
    sac_refcount           refs;
    sac_device            *dev; /* held open */
    struct sac_tensor_desc desc;
    char                  *data;
    /* What backs data: one of these, or memory that needs no release. */
    struct sac_buffer *buffer;
    sac_tensor        *base;
    sac_frame         *frame;
    void (*release)(void *user);
    void           *user;
    bool            read_only; /* wrapped memory that others may read */
    pthread_mutex_t lock;      /* guards the rest */
    struct sac_uses uses;      /* of wrapped memory */
    /* Streams of the caller's: where wrapped memory was written, and goes back to; and those that
     * may read it, until it is released. */
    struct sac_device_stream  *owner;
    struct sac_device_stream **readers;
    size_t                     reader_count, reader_capacity;
};

static sac_result check(sac_device *dev, const struct sac_tensor_desc *desc, const char *owner,
                        int64_t *bytes)
{
    *bytes = sac_tensor_desc_bytes(desc);
    if (*bytes < 0 || sac_dtype_bytes(desc->dtype) == 0)
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG,
                        "%s: no tensor of dtype %s and rank %d with such dimensions", owner,
                        sac_dtype_name(desc->dtype), desc->rank);
    return SAC_OK;
}

/* A tensor without its bytes yet. */
static sac_result tensor_new(sac_device *dev, const struct sac_tensor_desc *desc, sac_tensor **out)
{
    sac_tensor *t = sac_new(sac_tensor);
    if (!t)
        return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "no memory for a tensor's state");
    sac_refcount_init(&t->refs);
    pthread_mutex_init(&t->lock, NULL);
    t->desc = *desc;
    t->dev = dev;
    sac_device_hold(dev);
    *out = t;
    return SAC_OK;
}

sac_result sac_tensor_create(sac_device *dev, const struct sac_tensor_desc *desc, const char *owner,
                             sac_tensor **out)
{
    SAC_NEEDS(sac_device_context(dev), dev);
    SAC_NEEDS(sac_device_context(dev), desc);
    SAC_NEEDS(sac_device_context(dev), out);
    int64_t     bytes;
    sac_tensor *t = NULL;
    if (!owner)
        owner = "tensor";
    sac_result res = check(dev, desc, owner, &bytes);
    if (res == SAC_OK)
        res = tensor_new(dev, desc, &t);
    if (res == SAC_OK)
        res = sac_buffer_create(dev, (size_t)bytes, owner, &t->buffer);
    if (res != SAC_OK) {
        sac_tensor_unref(&t);
        return res;
    }
    sac_buffer_describe(t->buffer, desc);
    t->data = sac_buffer_data(t->buffer);
    *out = t;
    return SAC_OK;
}

sac_result sac_tensor_wrap(sac_device *dev, const struct sac_tensor_desc *desc, void *data,
                           void (*release)(void *user), void *user, sac_tensor **out)
{
    SAC_NEEDS(sac_device_context(dev), dev);
    SAC_NEEDS(sac_device_context(dev), desc);
    SAC_NEEDS(sac_device_context(dev), out);
    int64_t     bytes;
    sac_tensor *t = NULL;
    sac_result  res = check(dev, desc, "wrapped tensor", &bytes);
    if (res == SAC_OK && bytes > 0 && !data)
        res = SAC_FAIL(dev->ctx, SAC_ERR_ARG, "wrapped tensor: no address");
    if (res == SAC_OK)
        res = tensor_new(dev, desc, &t);
    if (res != SAC_OK)
        return res;
    t->data = data;
    t->release = release;
    t->user = user;
    *out = t;
    return SAC_OK;
}

sac_result sac_tensor_view(sac_tensor *base, size_t offset_bytes,
                           const struct sac_tensor_desc *desc, sac_tensor **out)
{
    SAC_NEEDS(base ? base->dev->ctx : NULL, base);
    SAC_NEEDS(base ? base->dev->ctx : NULL, desc);
    SAC_NEEDS(base ? base->dev->ctx : NULL, out);
    int64_t     bytes;
    sac_tensor *t = NULL;
    sac_result  res = check(base->dev, desc, "tensor view", &bytes);
    size_t      room = (size_t)sac_tensor_desc_bytes(&base->desc);
    if (res == SAC_OK && (offset_bytes > room || (size_t)bytes > room - offset_bytes))
        res = SAC_FAIL(base->dev->ctx, SAC_ERR_ARG,
                       "tensor view: %lld bytes from %zu on reach past the %zu there are",
                       (long long)bytes, offset_bytes, room);
    if (res == SAC_OK)
        res = tensor_new(base->dev, desc, &t);
    if (res != SAC_OK)
        return res;
    t->base = sac_tensor_ref(base);
    t->data = base->data + offset_bytes;
    *out = t;
    return SAC_OK;
}

sac_result sac_tensor_wrap_const(sac_device *dev, const struct sac_tensor_desc *desc, void *data,
                                 void (*release)(void *user), void *user, sac_tensor **out)
{
    sac_result res = sac_tensor_wrap(dev, desc, data, release, user, out);
    if (res == SAC_OK)
        (*out)->read_only = true;
    return res;
}

sac_result sac_tensor_of_frame(sac_frame *frame, const struct sac_tensor_desc *desc, void *data,
                               sac_tensor **out)
{
    sac_result res = sac_tensor_wrap_const(frame->device, desc, data, NULL, NULL, out);
    if (res == SAC_OK)
        (*out)->frame = sac_frame_ref(frame);
    return res;
}

sac_tensor *sac_tensor_ref(sac_tensor *t)
{
    if (!t)
        return NULL;
    sac_refcount_inc(&t->refs);
    return t;
}

/* The owner of wrapped memory does not know our streams: the stream that it works on waits for
 * them, else this thread. */
static void give_back(sac_tensor *t)
{
    sac_result res = t->owner ? t->dev->ops->stream_after(t->dev, t->owner, NULL) : SAC_OK;
    if (t->owner && res == SAC_OK)
        res = sac_uses_precede(t->dev, &t->uses, t->owner);
    if (!t->owner || res != SAC_OK)
        sac_uses_wait(t->dev, &t->uses);
}

void sac_tensor_unref(sac_tensor **t_at)
{
    sac_tensor *t = t_at ? *t_at : NULL;
    if (!t)
        return;
    *t_at = NULL;
    if (!sac_refcount_dec(&t->refs))
        return;
    sac_device *dev = t->dev;
    for (size_t i = 0; i < t->reader_count; i++)
        sac_tensor_used(t, t->readers[i]);
    sac_free(t->readers);
    sac_buffer_unref(&t->buffer);
    sac_tensor_unref(&t->base);
    sac_frame_unref(&t->frame);
    give_back(t);
    if (t->release)
        t->release(t->user);
    sac_uses_finish(dev, &t->uses);
    pthread_mutex_destroy(&t->lock);
    sac_free(t);
    sac_device_release(dev);
}

static sac_tensor *root_of(const sac_tensor *t)
{
    while (t->base)
        t = t->base;
    return (sac_tensor *)t;
}

void sac_tensor_used(sac_tensor *t, struct sac_device_stream *stream)
{
    t = root_of(t);
    if (t->buffer) {
        sac_buffer_used(t->buffer, stream);
        return;
    }
    if (t->frame) {
        sac_frame_used(t->frame, stream);
        return;
    }
    pthread_mutex_lock(&t->lock);
    sac_uses_add(t->dev, &t->uses, stream);
    pthread_mutex_unlock(&t->lock);
}

/* ---- the caller's streams ---- */

sac_result sac_tensor_written_on(sac_tensor *t, void *stream)
{
    SAC_NEEDS(t ? t->dev->ctx : NULL, t);
    struct sac_device_stream *theirs = NULL;
    sac_tensor               *root = root_of(t);
    sac_result                res = sac_device_callers_stream(t->dev, stream, &theirs);
    if (res == SAC_OK && theirs)
        res = t->dev->ops->stream_after(t->dev, NULL, theirs);
    if (res != SAC_OK || !theirs)
        return res;
    pthread_mutex_lock(&root->lock);
    root->owner = root->buffer || root->frame ? NULL : theirs;
    pthread_mutex_unlock(&root->lock);
    return SAC_OK;
}

sac_result sac_tensor_written_at(sac_tensor *t, void *event)
{
    SAC_NEEDS(t ? t->dev->ctx : NULL, t);
    if (!t->dev->ops->stream_wait_handle)
        return SAC_OK;
    SAC_NEEDS(t->dev->ctx, event);
    return t->dev->ops->stream_wait_handle(t->dev, NULL, event);
}

static sac_result add_reader(sac_tensor *t, struct sac_device_stream *stream)
{
    bool known = false;
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->reader_count; i++)
        known |= t->readers[i] == stream;
    const bool room = known || sac_grow((void **)&t->readers, &t->reader_capacity,
                                        t->reader_count + 1, sizeof(*t->readers));
    if (room && !known)
        t->readers[t->reader_count++] = stream;
    pthread_mutex_unlock(&t->lock);
    return room ? SAC_OK
                : SAC_FAIL(t->dev->ctx, SAC_ERR_MEMORY, "no memory for a tensor's readers");
}

sac_result sac_tensor_ready_on(sac_tensor *t, void *stream)
{
    SAC_NEEDS(t ? t->dev->ctx : NULL, t);
    struct sac_device_stream *theirs = NULL;
    sac_result                res = sac_device_callers_stream(t->dev, stream, &theirs);
    if (res != SAC_OK || !theirs)
        return res;
    res = add_reader(root_of(t), theirs);
    return res == SAC_OK ? t->dev->ops->stream_after(t->dev, theirs, NULL) : res;
}

/* ---- what it is ---- */

bool sac_tensor_is_const(const sac_tensor *t)
{
    return root_of(t)->read_only;
}

sac_result sac_tensor_check_writable(const sac_tensor *t, const char *doing)
{
    if (!sac_tensor_is_const(t))
        return SAC_OK;
    return SAC_FAIL(t->dev->ctx, SAC_ERR_ARG,
                    "%s: the tensor's memory may only be read, as its owner or its frame says",
                    doing);
}

const struct sac_tensor_desc *sac_tensor_describe(const sac_tensor *t)
{
    if (!t)
        return NULL;
    return &t->desc;
}

void *sac_tensor_data(const sac_tensor *t)
{
    if (!t)
        return NULL;
    return t->data;
}

sac_device *sac_tensor_device(const sac_tensor *t)
{
    if (!t)
        return NULL;
    return t->dev;
}

void sac_tensor_name(const sac_tensor *t, const char *doing, char *out, size_t size)
{
    char              shape[120];
    const sac_tensor *base = t;
    while (base->base)
        base = base->base;
    sac_tensor_desc_print(&t->desc, shape, sizeof shape);
    snprintf(out, size, "%s '%s', %s", doing,
             base->buffer ? sac_buffer_owner(base->buffer) : "wrapped tensor", shape);
}

bool sac_tensor_is_aligned(const sac_tensor *t)
{
    const int align = t->dev->ops->tensor_align;
    return align == 0 || (uintptr_t)t->data % (uintptr_t)align == 0;
}

sac_result sac_tensor_clear(sac_tensor *t)
{
    const size_t bytes = (size_t)sac_tensor_desc_bytes(&t->desc);
    if (t->dev->ops->clear)
        return t->dev->ops->clear(t->dev, NULL, t->data, bytes);
    memset(t->data, 0, bytes);
    return SAC_OK;
}

sac_result sac_tensor_upload(sac_tensor *t, const void *src)
{
    SAC_NEEDS(t ? t->dev->ctx : NULL, t);
    SAC_NEEDS_ARRAY(t ? t->dev->ctx : NULL, src, sac_tensor_desc_bytes(&t->desc));
    char what[200];
    sac_tensor_name(t, "upload of", what, sizeof what);
    sac_result res = sac_tensor_check_writable(t, what);
    if (res != SAC_OK)
        return res;
    return sac_device_copy(t->dev, NULL, t->data, src, (size_t)sac_tensor_desc_bytes(&t->desc),
                           SAC_COPY_HOST_TO_DEVICE, SAC_COPY_TENSOR_USER, what);
}

sac_result sac_tensor_download(const sac_tensor *t, void *dst)
{
    SAC_NEEDS(t ? t->dev->ctx : NULL, t);
    SAC_NEEDS_ARRAY(t ? t->dev->ctx : NULL, dst, sac_tensor_desc_bytes(&t->desc));
    char what[200];
    sac_tensor_name(t, "download of", what, sizeof what);
    return sac_device_copy(t->dev, NULL, dst, t->data, (size_t)sac_tensor_desc_bytes(&t->desc),
                           SAC_COPY_DEVICE_TO_HOST, SAC_COPY_TENSOR_USER, what);
}
