/* SPDX-License-Identifier: Apache-2.0 */
/* From a name to an open device, and its end. */
#include <limits.h>
#include <string.h>

#include "base/start.h"
#include "device/cpu/cpu.h"

struct sac_device_params sac_device_params_default(void)
{
    return (struct sac_device_params){.trim_frames = 300, .memory_share_max = 0.9};
}

/* ---- names ---- */

/* "name" or "name:index"; false when it is written in another way. */
static bool split_name(const char *text, char *name, size_t size, int *index)
{
    const char *colon = strchr(text, ':');
    size_t      len = colon ? (size_t)(colon - text) : strlen(text);
    if (len == 0 || len >= size)
        return false;
    memcpy(name, text, len);
    name[len] = '\0';
    *index = 0;
    if (!colon)
        return true;
    char *end;
    long  value = strtol(colon + 1, &end, 10);
    if (end == colon + 1 || *end || value < 0 || value > 255)
        return false;
    *index = (int)value;
    return true;
}

static const struct sac_device_row *find_row(const char *name)
{
    for (size_t i = 0; i < sac_device_row_count; i++)
        if (!strcmp(sac_device_rows[i].name, name))
            return &sac_device_rows[i];
    return NULL;
}

/* Prefer any usable accelerator to the CPU. When one is present but something it needs is missing,
 * that is logged even when no accelerator was asked for. */
static const struct sac_device_ops *choose_ops(sac_context *ctx)
{
    for (size_t i = 0; i < sac_device_row_count; i++) {
        const struct sac_device_row *row = &sac_device_rows[i];
        char                         missing[320] = "";
        enum sac_device_service      service = SAC_SERVICE_NONE;
        if (!strcmp(row->name, "cpu"))
            continue;
        const struct sac_device_ops *ops = row->ops(missing, sizeof missing);
        if (ops)
            service = ops->service ? ops->service(missing, sizeof missing) : SAC_SERVICE_WHOLE;
        if (service == SAC_SERVICE_WHOLE) {
            sac_log(ctx, SAC_LOG_DEBUG, "device auto: %s", row->name);
            return ops;
        }
        sac_log(ctx, service == SAC_SERVICE_PARTLY ? SAC_LOG_INFO : SAC_LOG_DEBUG,
                "device auto: not %s: %s", row->name, missing);
    }
    sac_log(ctx, SAC_LOG_DEBUG, "device auto: cpu");
    return &sac_device_cpu;
}

static sac_result resolve(sac_context *ctx, const char *text, const struct sac_device_ops **ops,
                          int *index)
{
    char name[16], missing[320];
    if (!text || !split_name(text, name, sizeof name, index))
        return SAC_FAIL(ctx, SAC_ERR_ARG, "device '%s': have auto, cpu, cuda, cuda:N",
                        text ? text : "");
    if (!strcmp(name, "auto") && !strchr(text, ':')) {
        *ops = choose_ops(ctx);
        return SAC_OK;
    }
    const struct sac_device_row *row = find_row(name);
    if (!row || (*index > 0 && !strcmp(name, "cpu")))
        return SAC_FAIL(ctx, SAC_ERR_ARG, "device '%s': have auto, cpu, cuda, cuda:N", text);
    *ops = row->ops(missing, sizeof missing);
    if (!*ops)
        return SAC_FAIL(ctx, SAC_ERR_DEVICE, "device '%s': %s; 'cpu' runs everywhere", text,
                        missing);
    return SAC_OK;
}

/* ---- life ---- */

struct sac_opening {
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t  ended;
    enum { OPENING, OPEN, FAILED } state;
};

static struct sac_opening *opening_create(void)
{
    struct sac_opening *o = sac_new(struct sac_opening);
    if (o) {
        pthread_mutex_init(&o->lock, NULL);
        pthread_cond_init(&o->ended, NULL);
    }
    return o;
}

static void opening_destroy(struct sac_opening *o)
{
    if (!o)
        return;
    pthread_cond_destroy(&o->ended);
    pthread_mutex_destroy(&o->lock);
    sac_free(o);
}

/* The first end counts. */
static void end_opening(struct sac_opening *o, bool open)
{
    pthread_mutex_lock(&o->lock);
    if (o->state == OPENING)
        o->state = open ? OPEN : FAILED;
    pthread_cond_broadcast(&o->ended);
    pthread_mutex_unlock(&o->lock);
}

sac_result sac_device_await(sac_device *dev)
{
    struct sac_opening *o = dev->opening;
    pthread_mutex_lock(&o->lock);
    while (o->state == OPENING)
        pthread_cond_wait(&o->ended, &o->lock);
    const bool open = o->state == OPEN;
    pthread_mutex_unlock(&o->lock);
    return open ? SAC_OK
                : SAC_FAIL(dev->ctx, SAC_ERR_CANCELLED, "device '%s' was not opened",
                           dev->ops->name);
}

void sac_device_open_cancel(sac_device *dev)
{
    end_opening(dev->opening, false);
}

static void device_destroy(sac_device *dev)
{
    if (dev->kernels_close)
        dev->kernels_close(dev);
    if (dev->opened && dev->ops->rest)
        dev->ops->rest(dev);
    sac_device_callers_forget(dev);
    sac_buffer_pool_destroy(&dev->pool);
    sac_buffer_pool_destroy(&dev->host_pool);
    if (dev->opened)
        dev->ops->close(dev);
    sac_worker_pool_destroy(&dev->workers);
    pthread_mutex_destroy(&dev->workers_lock);
    pthread_mutex_destroy(&dev->callers_lock);
    opening_destroy(dev->opening);
    sac_free(dev);
}

static sac_result device_begin(sac_context *ctx, const struct sac_device_ops *ops, int index,
                               const struct sac_device_params *params, sac_device **out)
{
    sac_device *dev = sac_new(sac_device);
    if (!dev)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "device '%s': no memory for its state", ops->name);
    dev->ops = ops;
    dev->ctx = ctx;
    dev->index = index;
    dev->params = params ? *params : sac_device_params_default();
    dev->destroy = device_destroy;
    dev->memory_use = sac_memory_use;
    dev->given_up = sac_start_given_up;
    sac_refcount_init(&dev->refs);
    sac_refcount_init(&dev->holds);
    pthread_mutex_init(&dev->workers_lock, NULL);
    pthread_mutex_init(&dev->callers_lock, NULL);
    if (dev->params.threads <= 0)
        dev->params.threads = sac_threads_default();
    atomic_init(&dev->strict, dev->params.zero_copy_strict);
    dev->opening = opening_create();
    sac_result res = dev->opening ? sac_worker_pool_create(ctx, dev->params.threads, &dev->workers)
                                  : SAC_FAIL(ctx, SAC_ERR_MEMORY,
                                             "device '%s': no memory for its state", ops->name);
    if (res == SAC_OK)
        *out = dev;
    else
        device_destroy(dev);
    return res;
}

static sac_result device_end(sac_device *dev)
{
    sac_result res = dev->ops->open(dev, dev->index);
    dev->opened = res == SAC_OK;
    if (res == SAC_OK)
        sac_device_leave_out(dev);
    if (res == SAC_OK)
        res = sac_buffer_pool_create(dev, &dev->pool);
    if (res == SAC_OK && !dev->ops->host_memory)
        res = sac_host_pool_create(dev, &dev->host_pool);
    end_opening(dev->opening, res == SAC_OK);
    return res;
}

sac_result sac_device_open_ops(sac_context *ctx, const struct sac_device_ops *ops, int index,
                               const struct sac_device_params *params, sac_device **out)
{
    sac_device *dev = NULL;
    sac_result  res = device_begin(ctx, ops, index, params, &dev);
    if (res == SAC_OK)
        res = device_end(dev);
    if (res == SAC_OK)
        *out = dev;
    else
        sac_device_unref(&dev);
    return res;
}

sac_result sac_device_open_end(sac_device *dev)
{
    struct sac_start_span span;
    sac_start_begin(&span, SAC_START_DEVICE);
    const sac_result res = device_end(dev);
    sac_start_end(&span);
    return res;
}

sac_result sac_device_open_begin(sac_context *ctx, const char *name,
                                 const struct sac_device_params *params, sac_device **out)
{
    SAC_NEEDS_NO_LATER_FIELD(ctx, params, "device parameters");
    const struct sac_device_ops *ops = NULL;
    int                          index = 0;
    const struct sac_number      numbers[] = {
             {"threads", params ? params->threads : 0, 0, 4096},
             {"leak_age_s", params ? params->leak_age_s : 0, 0, INT_MAX},
             {"deterministic", params ? params->deterministic : 0, 0, 1},
             {"trim_frames", params ? params->trim_frames : 0, 0, INT_MAX},
             {"memory_share_max", params ? params->memory_share_max : 0, 0, 1},
    };
    struct sac_start_span span;
    sac_result            res = sac_numbers_check(ctx, "device", numbers, SAC_COUNT(numbers));
    sac_start_begin(&span, SAC_START_DEVICE);
    if (res == SAC_OK)
        res = resolve(ctx, name, &ops, &index);
    if (res == SAC_OK)
        res = device_begin(ctx, ops, index, params, out);
    sac_start_end(&span);
    return res;
}

sac_result sac_device_open(sac_context *ctx, const char *name,
                           const struct sac_device_params *params, sac_device **out)
{
    SAC_NEEDS(ctx, ctx);
    SAC_NEEDS(ctx, name);
    SAC_NEEDS(ctx, out);
    sac_device *dev = NULL;
    sac_result  res = sac_device_open_begin(ctx, name, params, &dev);
    if (res == SAC_OK)
        res = sac_device_open_end(dev);
    if (res == SAC_OK)
        *out = dev;
    else
        sac_device_unref(&dev);
    return res;
}
