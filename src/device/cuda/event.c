/* SPDX-License-Identifier: Apache-2.0 */
/* Points in the work of a stream: to wait for, and to measure between. */
#include "device/cuda/common.h"

sac_result cuda_event_create(struct sac_device *dev, bool timed, struct sac_event **out)
{
    struct sac_event *event = sac_new(struct sac_event);
    if (!event)
        return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "%s: no memory for an event", dev->name);
    event->dev = dev;
    event->timed = timed;
    /* A thread that waits sleeps: the default spins. */
    const unsigned flags = cudaEventBlockingSync | (timed ? 0 : cudaEventDisableTiming);
    sac_result res = CUDA_CALL(dev, cudaEventCreateWithFlags(&event->handle, flags), "an event");
    if (res == SAC_OK)
        *out = event;
    else
        sac_free(event);
    return res;
}

void cuda_event_destroy(struct sac_event **event_at)
{
    struct sac_event *event = event_at ? *event_at : NULL;
    if (!event)
        return;
    *event_at = NULL;
    cuda_gather_settle(event);
    if (cuda_enter(event->dev) == SAC_OK) {
        cudaEventDestroy(event->handle);
        cuda_leave();
    }
    sac_free(event);
}

/* A stream that is captured would take the event for an edge of its graph: it is to be a node
 * there. */
static cudaError_t record(cudaEvent_t event, cudaStream_t stream)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaError_t                  res = cudaStreamIsCapturing(stream, &status);
    if (res != cudaSuccess)
        return res;
    return cudaEventRecordWithFlags(
        event, stream,
        status == cudaStreamCaptureStatusActive ? cudaEventRecordExternal : cudaEventRecordDefault);
}

sac_result cuda_event_record(struct sac_event *event, struct sac_device_stream *stream)
{
    struct sac_device_stream *own = cuda_own_stream(event->dev, stream);
    if (cuda_gather_event(own, event))
        return SAC_OK;
    return CUDA_CALL(event->dev, record(event->handle, own->handle), "an event");
}

sac_result cuda_event_wait(struct sac_event *event)
{
    cuda_gather_settle(event);
    return CUDA_CALL(event->dev, cudaEventSynchronize(event->handle), "queued work");
}

sac_result cuda_stream_wait_event(struct sac_device *dev, struct sac_device_stream *stream,
                                  struct sac_event *event)
{
    struct sac_device_stream *own = cuda_own_stream(dev, stream);
    if (cuda_gather_has(own, event))
        return SAC_OK; /* what is queued there runs in order */
    cuda_gather_settle(event);
    return CUDA_CALL(dev, cudaStreamWaitEvent(own->handle, event->handle, 0),
                     "a stream after an event");
}

sac_result cuda_stream_wait_handle(struct sac_device *dev, struct sac_device_stream *stream,
                                   void *event)
{
    return CUDA_CALL(dev, cudaStreamWaitEvent(cuda_stream_of(dev, stream), event, 0),
                     "a stream after the caller's event");
}

sac_result cuda_event_elapsed(struct sac_event *begin, struct sac_event *end, int64_t *ns)
{
    float      ms = 0;
    sac_result res = CUDA_CALL(begin->dev, cudaEventElapsedTime(&ms, begin->handle, end->handle),
                               "a measurement");
    if (res == SAC_OK)
        *ns = (int64_t)((double)ms * 1e6);
    return res;
}

bool cuda_event_reached(struct sac_event *event)
{
    if (atomic_load(&event->gathered))
        return false;
    if (cuda_enter(event->dev) != SAC_OK)
        return true;
    const bool reached = cudaEventQuery(event->handle) != cudaErrorNotReady;
    cudaGetLastError(); /* "not ready" is an answer */
    cuda_leave();
    return reached;
}
