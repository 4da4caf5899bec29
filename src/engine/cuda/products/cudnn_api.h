/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN's functions, opened at run time, and shorthands for its descriptors. */
#ifndef SAC_ENGINE_CUDA_PRODUCTS_CUDNN_API_H
#define SAC_ENGINE_CUDA_PRODUCTS_CUDNN_API_H

#include <cudnn_graph.h>

#include "base/base.h"
#include "base/nvidia.h"

struct cudnn_api {
    size_t (*version)(void); /* of the library, not of the headers: 91900 is 9.19.0 */
    cudnnStatus_t (*create)(cudnnHandle_t *);
    cudnnStatus_t (*destroy)(cudnnHandle_t);
    cudnnStatus_t (*set_stream)(cudnnHandle_t, cudaStream_t);
    const char *(*error_string)(cudnnStatus_t);
    void (*last_error)(char *, size_t);
    cudnnStatus_t (*desc_create)(cudnnBackendDescriptorType_t, cudnnBackendDescriptor_t *);
    cudnnStatus_t (*desc_destroy)(cudnnBackendDescriptor_t);
    cudnnStatus_t (*desc_finalize)(cudnnBackendDescriptor_t);
    cudnnStatus_t (*desc_set)(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                              cudnnBackendAttributeType_t, int64_t, const void *);
    cudnnStatus_t (*desc_get)(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                              cudnnBackendAttributeType_t, int64_t, int64_t *, void *);
    cudnnStatus_t (*execute)(cudnnHandle_t, cudnnBackendDescriptor_t, cudnnBackendDescriptor_t);
};
/* Loads them from an open library. Returns the name of the missing function, or NULL. */
const char *cudnn_api_read(void *library, struct cudnn_api *out);

/* The GPU that plans are made for: an open one, or only its description, on which nothing runs. */
struct cudnn_target {
    const struct cudnn_api  *api;
    cudnnHandle_t            handle;
    cudnnBackendDescriptor_t device; /* with no handle: the properties */
};

typedef cudnnBackendDescriptor_t cudnn_desc;

/* Kernel caches: in older headers parts are missing, and 9.19 is the oldest that was tried, as
 * headers and as a library. */
#define CUDNN_KERNEL_CACHE_SINCE 91900
#define CUDNN_HAS_KERNEL_CACHE   (CUDNN_VERSION >= CUDNN_KERNEL_CACHE_SINCE)

/* Descriptors that belong together. The first error is kept and all later calls do nothing, so that
 * a graph can be written as a list. */
enum { CUDNN_DESCS_MAX = 48 };
struct cudnn_set {
    const struct cudnn_api *api;
    cudnnStatus_t           status;
    const char             *doing; /* when the error occurred */
    cudnn_desc              made[CUDNN_DESCS_MAX];
    int                     count;
};
cudnn_desc cudnn_make(struct cudnn_set *s, cudnnBackendDescriptorType_t type, const char *doing);
void       cudnn_put(struct cudnn_set *s, cudnn_desc d, cudnnBackendAttributeName_t name,
                     cudnnBackendAttributeType_t type, int64_t count, const void *values);
void       cudnn_put_desc(struct cudnn_set *s, cudnn_desc d, cudnnBackendAttributeName_t name,
                          cudnn_desc value);
void       cudnn_put_int(struct cudnn_set *s, cudnn_desc d, cudnnBackendAttributeName_t name,
                         int64_t value);
void       cudnn_put_float(struct cudnn_set *s, cudnn_desc d, cudnnBackendAttributeName_t name,
                           float value);
void       cudnn_put_type(struct cudnn_set *s, cudnn_desc d, cudnnBackendAttributeName_t name,
                          cudnnDataType_t value);
cudnn_desc cudnn_done(struct cudnn_set *s, cudnn_desc d); /* finalised, and passed through */
bool       cudnn_good(const struct cudnn_set *s);
void       cudnn_set_finish(struct cudnn_set *s); /* destroys all of them */
/* "finalise plan: CUDNN_STATUS_NOT_SUPPORTED: ..." */
void cudnn_say(const struct cudnn_set *s, char *out, size_t size);

#endif
