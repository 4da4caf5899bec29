/* SPDX-License-Identifier: Apache-2.0 */
/* Raw memory behind the pool, and the copies behind the ledger. */
#include "device/cuda/common.h"

/* ---- memory ---- */

static sac_result taken(struct sac_device *dev, cudaError_t got, const char *what)
{
    if (got != cudaErrorMemoryAllocation)
        return cuda_check(dev, got, what);
    cudaGetLastError();
    return SAC_ERR_MEMORY; /* the pool frees memory and tries again, or reports it */
}

/* The pool keeps what it took, so the frame path comes here only while it warms up. cudaFree waits
 * for the GPU: what is trimmed can never be in use by work still queued. */
sac_result cuda_memory_alloc(struct sac_device *dev, size_t bytes, void **out)
{
    void      *p = NULL;
    sac_result res = cuda_enter(dev);
    if (res == SAC_OK)
        res = cuda_left(taken(dev, cudaMalloc(&p, bytes), "device memory"));
    if (res == SAC_OK)
        *out = p;
    return res;
}

void cuda_memory_free(struct sac_device *dev, void *p)
{
    if (cuda_enter(dev) != SAC_OK)
        return;
    cudaFree(p);
    cuda_leave();
}

sac_result cuda_memory_info(struct sac_device *dev, uint64_t *free_bytes, uint64_t *total_bytes)
{
    size_t     left = 0, total = 0;
    sac_result res = CUDA_CALL(dev, cudaMemGetInfo(&left, &total), "its memory");
    if (res == SAC_OK) {
        *free_bytes = left;
        *total_bytes = total;
    }
    return res;
}

sac_result cuda_host_alloc(struct sac_device *dev, size_t bytes, void **out)
{
    void      *p = NULL;
    sac_result res = cuda_enter(dev);
    if (res == SAC_OK)
        res = cuda_left(
            taken(dev, cudaHostAlloc(&p, bytes, cudaHostAllocDefault), "page-locked memory"));
    if (res == SAC_OK)
        *out = p;
    return res;
}

void cuda_host_free(struct sac_device *dev, void *p)
{
    if (cuda_enter(dev) != SAC_OK)
        return;
    cudaFreeHost(p);
    cuda_leave();
}

/* ---- copies ---- */

static enum cudaMemcpyKind kind_of(enum sac_copy_kind kind)
{
    return kind == SAC_COPY_HOST_TO_DEVICE   ? cudaMemcpyHostToDevice
           : kind == SAC_COPY_DEVICE_TO_HOST ? cudaMemcpyDeviceToHost
                                             : cudaMemcpyDeviceToDevice;
}

/* On the device's own stream the caller may use its memory at once. */
static cudaError_t settle(struct sac_device *dev, struct sac_device_stream *stream,
                          enum sac_copy_kind kind, cudaError_t queued)
{
    return queued != cudaSuccess || stream || kind == SAC_COPY_ON_DEVICE
               ? queued
               : cuda_wait(cuda_own_stream(dev, NULL));
}

sac_result cuda_copy(struct sac_device *dev, struct sac_device_stream *stream, void *dst,
                     const void *src, size_t bytes, enum sac_copy_kind kind)
{
    return CUDA_CALL(
        dev,
        settle(dev, stream, kind,
               cudaMemcpyAsync(dst, src, bytes, kind_of(kind), cuda_stream_of(dev, stream))),
        "a copy");
}

sac_result cuda_clear(struct sac_device *dev, struct sac_device_stream *stream, void *at,
                      size_t bytes)
{
    return CUDA_CALL(dev, cudaMemsetAsync(at, 0, bytes, cuda_stream_of(dev, stream)), "zeros");
}

sac_result cuda_copy_rows(struct sac_device *dev, struct sac_device_stream *stream,
                          const struct sac_copy_rows *r, enum sac_copy_kind kind)
{
    return CUDA_CALL(
        dev,
        settle(dev, stream, kind,
               cudaMemcpy2DAsync(r->dst, r->dst_pitch, r->src, r->src_pitch, r->row_bytes,
                                 (size_t)r->rows, kind_of(kind), cuda_stream_of(dev, stream))),
        "a copy");
}
