/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, and the scratch that each has for the kernels of one operation. */
#include "device/cuda/common.h"

cudaError_t cuda_stream_init(struct sac_device_stream *stream, struct sac_device *dev, bool patient)
{
    int least = 0, greatest = 0; /* the smaller the number the more urgent */
    stream->dev = dev;
    pthread_mutex_init(&stream->lock, NULL);
    cudaError_t res = cudaDeviceGetStreamPriorityRange(&least, &greatest);
    if (res == cudaSuccess)
        res = cudaStreamCreateWithPriority(&stream->handle, cudaStreamNonBlocking,
                                           patient ? least : greatest);
    if (res == cudaSuccess)
        res = cudaEventCreateWithFlags(&stream->reached,
                                       cudaEventDisableTiming | cudaEventBlockingSync);
    return res;
}

void cuda_stream_finish(struct sac_device_stream *stream)
{
    if (stream->handle && !stream->borrowed)
        cudaStreamSynchronize(stream->handle); /* after that its scratch and events are free */
    sac_buffer_unref(&stream->scratch);
    cuda_gather_finish(stream);
    pthread_mutex_destroy(&stream->lock);
    if (stream->reached)
        cudaEventDestroy(stream->reached);
    if (stream->handle && !stream->borrowed)
        cudaStreamDestroy(stream->handle);
}

void cuda_stream_destroy(struct sac_device_stream **stream_at)
{
    struct sac_device_stream *stream = stream_at ? *stream_at : NULL;
    if (!stream)
        return;
    *stream_at = NULL;
    if (cuda_enter(stream->dev) == SAC_OK) {
        cuda_stream_finish(stream);
        cuda_leave();
    }
    sac_free(stream);
}

static sac_result create_stream(struct sac_device *dev, bool patient,
                                struct sac_device_stream **out)
{
    struct sac_device_stream *stream = sac_new(struct sac_device_stream);
    if (!stream)
        return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "%s: no memory for a stream", dev->name);
    stream->dev = dev;
    sac_result res = CUDA_CALL(dev, cuda_stream_init(stream, dev, patient), "a stream");
    if (res == SAC_OK)
        *out = stream;
    else
        cuda_stream_destroy(&stream);
    return res;
}

sac_result cuda_stream_create(struct sac_device *dev, struct sac_device_stream **out)
{
    return create_stream(dev, false, out);
}

sac_result cuda_stream_create_patient(struct sac_device *dev, struct sac_device_stream **out)
{
    return create_stream(dev, true, out);
}

sac_result cuda_stream_borrow(struct sac_device *dev, void *handle, struct sac_device_stream **out)
{
    const unsigned            flags = cudaEventDisableTiming | cudaEventBlockingSync;
    struct sac_device_stream *stream = sac_new(struct sac_device_stream);
    if (!stream)
        return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "%s: no memory for a stream", dev->name);
    stream->dev = dev;
    stream->handle = handle;
    stream->borrowed = true;
    pthread_mutex_init(&stream->lock, NULL);
    sac_result res =
        CUDA_CALL(dev, cudaEventCreateWithFlags(&stream->reached, flags), "the caller's stream");
    if (res == SAC_OK)
        *out = stream;
    else
        cuda_stream_destroy(&stream);
    return res;
}

/* cudaStreamSynchronize spins, which costs a core; an event made for it lets the thread sleep. When
 * another thread records it anew meanwhile, this one waits a little longer. */
cudaError_t cuda_wait(struct sac_device_stream *stream)
{
    cuda_gather_part(stream);
    cudaError_t res = cudaEventRecord(stream->reached, stream->handle);
    return res == cudaSuccess ? cudaEventSynchronize(stream->reached) : res;
}

sac_result cuda_stream_wait(struct sac_device_stream *stream)
{
    return CUDA_CALL(stream->dev, cuda_wait(stream), "queued work");
}

static cudaError_t wait_for(cudaStream_t stream, struct sac_device_stream *before)
{
    cuda_gather_part(before);
    cudaError_t res = cudaEventRecord(before->reached, before->handle);
    return res == cudaSuccess ? cudaStreamWaitEvent(stream, before->reached, 0) : res;
}

sac_result cuda_stream_after(struct sac_device *dev, struct sac_device_stream *stream,
                             struct sac_device_stream *other)
{
    return CUDA_CALL(dev,
                     wait_for(cuda_own_stream(dev, stream)->handle, cuda_own_stream(dev, other)),
                     "one stream after another");
}

/* ---- scratch ---- */

/* Under the stream's lock. */
static sac_result scratch_grow(struct sac_device *dev, struct sac_device_stream *s, size_t bytes)
{
    struct sac_buffer *larger = NULL;
    cuda_gather_part(s); /* it may use the scratch that is given back */
    sac_result res = sac_buffer_create_own(dev, bytes, "scratch between kernels", false, &larger);
    if (res == SAC_OK && s != cuda_own_stream(dev, NULL)) /* work queued there may still use the
                                                             memory */
        res = cuda_stream_after(dev, s, NULL);
    if (res != SAC_OK) {
        sac_buffer_unref(&larger);
        return res;
    }
    if (s->scratch)
        sac_buffer_used(s->scratch, s); /* by what is queued */
    sac_buffer_unref(&s->scratch);
    s->scratch = larger;
    return SAC_OK;
}

sac_result cuda_scratch_take(struct sac_device *dev, struct sac_device_stream *stream, size_t bytes,
                             void **out)
{
    struct sac_device_stream *s = cuda_own_stream(dev, stream);
    sac_result                res = SAC_OK;
    pthread_mutex_lock(&s->lock);
    if (!s->scratch || sac_buffer_bytes(s->scratch) < bytes)
        res = scratch_grow(dev, s, bytes + bytes / 4);
    if (res != SAC_OK) {
        pthread_mutex_unlock(&s->lock);
        return res;
    }
    *out = sac_buffer_data(s->scratch);
    return SAC_OK;
}

void cuda_scratch_return(struct sac_device *dev, struct sac_device_stream *stream)
{
    pthread_mutex_unlock(&cuda_own_stream(dev, stream)->lock);
}
