/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the CUDA device share. Host code only: kernels see launch.h. */
#ifndef SAC_DEVICE_CUDA_COMMON_H
#define SAC_DEVICE_CUDA_COMMON_H

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "device/device.h"
#include "device/sample.h"

struct sac_stream {
    struct sac_device *dev;
    cudaStream_t       handle;
    cudaEvent_t        reached; /* recorded when another stream is to wait for this one */
};

struct cuda_state {
    CUcontext         context; /* the GPU's primary one, which libavcodec shares */
    struct sac_stream stream;  /* the device's own */
};

/* Every entry works between these two, so that a thread's own context stays what it was. */
sac_result cuda_enter(struct sac_device *dev);
void       cuda_leave(void);

/* SAC_OK, or the sentence "cuda:0: DOING: what CUDA says". */
sac_result cuda_check(struct sac_device *dev, cudaError_t res, const char *doing);

static inline cudaStream_t cuda_stream_of(struct sac_device *dev, const struct sac_stream *stream)
{
    const struct cuda_state *state = dev->state;
    return stream ? stream->handle : state->stream.handle;
}

/* SAC_ERR_UNSUPPORTED, with a sentence, for planes that the kernels cannot read. */
sac_result cuda_surface_of(struct sac_device *dev, const sac_frame *frame, struct sac_surface *out);

sac_result cuda_preprocess(struct sac_device *dev, struct sac_stream *stream,
                           const struct sac_preprocess *pre, const struct sac_preprocess_job *jobs,
                           int n, void *dst);
sac_result cuda_convert(struct sac_device *dev, struct sac_stream *stream, const sac_frame *src,
                        enum sac_filter filter, sac_frame *dst);

#endif
