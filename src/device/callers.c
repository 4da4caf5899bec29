/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of the program that calls us. There are few, and each stays known until the device
 * closes. */
#include "device/device.h"

struct sac_callers_stream {
    struct sac_callers_stream *next;
    void                      *handle;
    struct sac_device_stream  *stream;
};

/* Under the lock. */
static sac_result borrow(sac_device *dev, void *handle, struct sac_callers_stream **out)
{
    struct sac_callers_stream *c = sac_new(struct sac_callers_stream);
    if (!c)
        return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "%s: no memory for a stream", dev->name);
    c->handle = handle;
    sac_result res = dev->ops->stream_borrow(dev, handle, &c->stream);
    if (res != SAC_OK) {
        sac_free(c);
        return res;
    }
    c->next = dev->callers;
    dev->callers = *out = c;
    return SAC_OK;
}

sac_result sac_device_callers_stream(sac_device *dev, void *handle, struct sac_device_stream **out)
{
    sac_result res = SAC_OK;
    *out = NULL;
    if (!dev->ops->stream_borrow)
        return SAC_OK;
    pthread_mutex_lock(&dev->callers_lock);
    struct sac_callers_stream *c = dev->callers;
    while (c && c->handle != handle)
        c = c->next;
    if (!c)
        res = borrow(dev, handle, &c);
    if (res == SAC_OK)
        *out = c->stream;
    pthread_mutex_unlock(&dev->callers_lock);
    return res;
}

void sac_device_callers_forget(sac_device *dev)
{
    while (dev->callers) {
        struct sac_callers_stream *c = dev->callers;
        dev->callers = c->next;
        dev->ops->stream_destroy(&c->stream);
        sac_free(c);
    }
}
