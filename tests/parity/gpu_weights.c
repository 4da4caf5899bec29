/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/parity/gpu_weights.h"

#include <stdio.h>
#include <string.h>

static sac_result get(struct sac_weights *base, const void *data, const char *form, size_t bytes,
                      void (*fill)(void *arg, void *host), void *arg, void **device)
{
    struct gpu_weights *w = (struct gpu_weights *)base;
    for (int i = 0; i < w->count; i++)
        if (w->items[i].data == data && strcmp(w->items[i].form, form) == 0) {
            *device = sac_buffer_data(w->items[i].buffer);
            return SAC_OK;
        }
    if (w->count == GPU_WEIGHTS_MAX)
        return SAC_FAIL(w->dev->ctx, SAC_ERR_LIMIT, "more than %d weights in a test",
                        (int)GPU_WEIGHTS_MAX);
    void              *host = sac_alloc(bytes);
    struct sac_buffer *buffer = NULL;
    sac_result res = host ? sac_buffer_create(w->dev, bytes, "weights", &buffer) : SAC_ERR_MEMORY;
    if (res == SAC_OK) {
        fill(arg, host);
        res = sac_device_copy(w->dev, NULL, sac_buffer_data(buffer), host, bytes,
                              SAC_COPY_HOST_TO_DEVICE, SAC_COPY_WEIGHTS, "weights");
    }
    sac_free(host);
    if (res != SAC_OK) {
        sac_buffer_unref(&buffer);
        return res;
    }
    w->items[w->count].data = data;
    snprintf(w->items[w->count].form, sizeof w->items[w->count].form, "%s", form);
    w->items[w->count++].buffer = buffer;
    *device = sac_buffer_data(buffer);
    return SAC_OK;
}

void gpu_weights_init(struct gpu_weights *w, sac_device *dev)
{
    static const struct sac_weights_ops ops = {get};
    memset(w, 0, sizeof *w);
    w->base.ops = &ops;
    w->dev = dev;
}

void gpu_weights_finish(struct gpu_weights *w)
{
    while (w->count > 0)
        sac_buffer_unref(&w->items[--w->count].buffer);
}
