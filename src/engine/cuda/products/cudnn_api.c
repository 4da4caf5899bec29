/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/products/cudnn_api.h"

#include <dlfcn.h>
#include <stdio.h>

const char *cudnn_api_read(void *library, struct cudnn_api *out)
{
    const struct {
        const char *name;
        void       *fn;
    } symbols[] = {
        {"cudnnGetVersion", &out->version},
        {"cudnnCreate", &out->create},
        {"cudnnDestroy", &out->destroy},
        {"cudnnSetStream", &out->set_stream},
        {"cudnnGetErrorString", &out->error_string},
        {"cudnnGetLastErrorString", &out->last_error},
        {"cudnnBackendCreateDescriptor", &out->desc_create},
        {"cudnnBackendDestroyDescriptor", &out->desc_destroy},
        {"cudnnBackendFinalize", &out->desc_finalize},
        {"cudnnBackendSetAttribute", &out->desc_set},
        {"cudnnBackendGetAttribute", &out->desc_get},
        {"cudnnBackendExecute", &out->execute},
    };
    for (size_t i = 0; i < SAC_COUNT(symbols); i++) {
        void *found = dlsym(library, symbols[i].name);
        if (!found)
            return symbols[i].name;
        *(void **)symbols[i].fn = found;
    }
    return NULL;
}

static void note(struct cudnn_set *s, cudnnStatus_t status, const char *doing)
{
    if (s->status == CUDNN_STATUS_SUCCESS && status != CUDNN_STATUS_SUCCESS) {
        s->status = status;
        s->doing = doing;
    }
}

cudnn_desc cudnn_make(struct cudnn_set *s, cudnnBackendDescriptorType_t type, const char *doing)
{
    cudnn_desc d = NULL;
    if (!cudnn_good(s))
        return NULL;
    if (s->count == CUDNN_DESCS_MAX)
        note(s, CUDNN_STATUS_NOT_SUPPORTED, "too many descriptors");
    else
        note(s, s->api->desc_create(type, &d), doing);
    if (cudnn_good(s)) {
        s->made[s->count++] = d;
        s->doing = doing; /* of what is put into it */
    }
    return d;
}

void cudnn_put(struct cudnn_set *s, cudnn_desc d, cudnnBackendAttributeName_t name,
               cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    if (cudnn_good(s))
        note(s, s->api->desc_set(d, name, type, count, values), s->doing);
}

void cudnn_put_desc(struct cudnn_set *s, cudnn_desc d, cudnnBackendAttributeName_t name,
                    cudnn_desc value)
{
    cudnn_put(s, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

void cudnn_put_int(struct cudnn_set *s, cudnn_desc d, cudnnBackendAttributeName_t name,
                   int64_t value)
{
    cudnn_put(s, d, name, CUDNN_TYPE_INT64, 1, &value);
}

void cudnn_put_float(struct cudnn_set *s, cudnn_desc d, cudnnBackendAttributeName_t name,
                     float value)
{
    cudnn_put(s, d, name, CUDNN_TYPE_FLOAT, 1, &value);
}

void cudnn_put_type(struct cudnn_set *s, cudnn_desc d, cudnnBackendAttributeName_t name,
                    cudnnDataType_t value)
{
    cudnn_put(s, d, name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}

cudnn_desc cudnn_done(struct cudnn_set *s, cudnn_desc d)
{
    if (cudnn_good(s))
        note(s, s->api->desc_finalize(d), s->doing);
    return d;
}

bool cudnn_good(const struct cudnn_set *s)
{
    return s->status == CUDNN_STATUS_SUCCESS;
}

void cudnn_set_finish(struct cudnn_set *s)
{
    while (s->count > 0) {
        cudnn_desc d = s->made[--s->count];
        if (d)
            s->api->desc_destroy(d);
    }
}

void cudnn_say(const struct cudnn_set *s, char *out, size_t size)
{
    char last[512] = "";
    if (s->status != CUDNN_STATUS_SUCCESS)
        s->api->last_error(last, sizeof last);
    snprintf(out, size, "%s: %s: %.300s", s->doing ? s->doing : "cuDNN",
             s->api->error_string(s->status), last);
}
