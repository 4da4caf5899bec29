/* SPDX-License-Identifier: Apache-2.0 */
/* What lets libavcodec decode in this device's context. The library itself is built without CUDA's
 * headers, which libavutil's wants; so the struct is filled here. */
#include <dlfcn.h>
#include <stdatomic.h>

#include <libavutil/hwcontext_cuda.h>

#include "device/cuda/common.h"

/* libavutil's, since FFmpeg 4.0: another one would be a new major version of it. */
_Static_assert(offsetof(AVCUDADeviceContext, cuda_ctx) == 0, "the context stands first");
_Static_assert(offsetof(AVCUDADeviceContext, stream) == sizeof(CUcontext), "then the stream");
_Static_assert(sizeof(AVCUDADeviceContext) == 3 * sizeof(void *), "then libavutil's own part");

/* libavcodec opens NVIDIA's decoding library for each decoder and closes it behind each: with none
 * left it would be unmapped, and read again for the next one. Where it is missing libavcodec says
 * so. */
static void keep_library(void)
{
    static atomic_bool kept;
    if (!atomic_exchange(&kept, true))
        dlopen("libnvcuvid.so.1", RTLD_NOW | RTLD_LOCAL);
}

/* All decoders complete their pictures on one stream: it takes microseconds a picture, and a stream
 * for each would use up the few queues that a GPU has, which then wait for each other's work. */
sac_result cuda_video_context(struct sac_device *dev, void *hwctx,
                              struct sac_device_stream **stream)
{
    struct cuda_state   *state = dev->state;
    AVCUDADeviceContext *video = hwctx;
    sac_result           res = SAC_OK;
    pthread_mutex_lock(&state->lock);
    keep_library();
    if (!state->video)
        res = dev->ops->stream_create(dev, &state->video);
    pthread_mutex_unlock(&state->lock);
    if (res != SAC_OK)
        return res;
    video->cuda_ctx = state->context;
    video->stream = state->video->handle;
    *stream = state->video;
    return SAC_OK;
}
