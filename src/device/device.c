/* SPDX-License-Identifier: Apache-2.0 */
/* Handles to a device, and what it is. */
#include "device/device.h"

sac_device *sac_device_ref(sac_device *dev)
{
    if (!dev)
        return NULL;
    sac_refcount_inc(&dev->refs);
    sac_device_hold(dev);
    return dev;
}

void sac_device_unref(sac_device **dev_at)
{
    sac_device *dev = dev_at ? *dev_at : NULL;
    if (!dev)
        return;
    *dev_at = NULL;
    if (sac_refcount_dec(&dev->refs)) {
        if (dev->pool)
            sac_buffer_pool_report_held(dev->pool);
        if (dev->host_pool)
            sac_buffer_pool_report_held(dev->host_pool);
    }
    sac_device_release(dev);
}

void sac_device_hold(sac_device *dev)
{
    sac_refcount_inc(&dev->holds);
}

void sac_device_release(sac_device *dev)
{
    if (sac_refcount_dec(&dev->holds))
        dev->destroy(dev);
}

/* ---- what it is ---- */

const char *sac_device_name(const sac_device *dev)
{
    if (!dev)
        return NULL;
    return dev->name;
}

const char *sac_device_description(const sac_device *dev)
{
    if (!dev)
        return NULL;
    return dev->description;
}

int sac_device_threads(const sac_device *dev)
{
    if (!dev)
        return 0;
    return dev->params.threads;
}

int sac_video_threads(const sac_device *dev)
{
    return dev->ops->host_memory ? sac_threads_default() : sac_cpu_count();
}

sac_context *sac_device_context(const sac_device *dev)
{
    if (!dev)
        return NULL;
    return dev->ctx;
}

sac_result sac_device_wait(sac_device *dev)
{
    SAC_NEEDS(NULL, dev);
    struct sac_event *reached = NULL;
    if (dev->ops->host_memory)
        return SAC_OK;
    sac_result res = dev->ops->event_create(dev, false, &reached);
    if (res == SAC_OK)
        res = dev->ops->event_record(reached, NULL);
    if (res == SAC_OK)
        res = dev->ops->event_wait(reached);
    if (reached)
        dev->ops->event_destroy(&reached);
    return res;
}

void sac_device_parallel(sac_device *dev, int n, void (*fn)(void *arg, int piece, int worker),
                         void *arg)
{
    if (n > 1 && pthread_mutex_trylock(&dev->workers_lock) == 0) {
        sac_worker_pool_run(dev->workers, n, fn, arg);
        pthread_mutex_unlock(&dev->workers_lock);
        return;
    }
    for (int i = 0; i < n; i++)
        fn(arg, i, 0);
}
