/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA plug-in: the device, what computes on pictures, and the networks' kernels in one table.
 */
#include <stdio.h>

#include "device/dlpack.h"
#include "engine/cuda/cuda.h"
#include "engine/cuda/products/libraries.h"
#include "vision/cuda/cuda.h"

/* Is all here that a run on a GPU needs? */
static enum sac_device_service cuda_service(char *missing, size_t size)
{
    int         version = 0, count = 0, major = 0, minor = 0;
    cudaError_t res = cudaDriverGetVersion(&version);
    if (res != cudaSuccess || version == 0) {
        snprintf(missing, size, "there is no NVIDIA driver");
        return SAC_SERVICE_NONE;
    }
    if (!cuda_driver_serves(&cuda_build, version, missing, size))
        return SAC_SERVICE_PARTLY; /* this build cannot ask it which GPUs there are */
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        snprintf(missing, size, "the driver sees no NVIDIA GPU");
        return SAC_SERVICE_NONE;
    }
    res = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
    if (res == cudaSuccess)
        res = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0);
    if (res != cudaSuccess)
        snprintf(missing, size, "the driver does not answer: %s", cudaGetErrorString(res));
    else if (!cuda_card_serves(&cuda_build, version, "it", major, minor, missing, size))
        return SAC_SERVICE_PARTLY;
    else if (!cuda_libraries()->has_cudnn)
        snprintf(missing, size,
                 "a GPU is there, but not cuDNN, which networks need (saccade doctor says more)");
    else
        return SAC_SERVICE_WHOLE;
    return SAC_SERVICE_PARTLY;
}

static const struct sac_kernel_provider *const providers[] = {&sac_kernels_products,
                                                              &sac_kernels_cuda};

static const struct sac_device_ops cuda_ops = {
    .name = "cuda",
    .build = SAC_CUDA_BUILD,
    .host_memory = false,
    /* With torch.compile YOLOX-S takes 0.64 ms a frame alone, 0.22 in a batch of 8, 0.17 in one of
     * 32 (H200, 2026-11-21). */
    .batch_best = 32,
    /* Kernels are measured for each size; a third run is one launch. */
    .batch_step = 4,
    .run_cost = 3,
    .warm_runs = 3,
    .measures_kernels = true,
    .precision = SAC_PRECISION_FP16,
    .tensor_align = 64,
    .dlpack_type = SAC_DLPACK_CUDA,
    .dlpack_types = 1u << SAC_DLPACK_CUDA | 1u << SAC_DLPACK_CUDA_MANAGED,
    .detect_cells_max = 1 << 17, /* a bit of each is in shared memory */
    .async = true,
    .pictures_lent = 20, /* of 32 */
    .service = cuda_service,
    .open = cuda_open,
    .close = cuda_close,
    .memory_alloc = cuda_memory_alloc,
    .memory_free = cuda_memory_free,
    .memory_info = cuda_memory_info,
    .host_alloc = cuda_host_alloc,
    .host_free = cuda_host_free,
    .stream_create = cuda_stream_create,
    .stream_create_patient = cuda_stream_create_patient,
    .stream_destroy = cuda_stream_destroy,
    .stream_wait = cuda_stream_wait,
    .stream_after = cuda_stream_after,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .event_record = cuda_event_record,
    .event_wait = cuda_event_wait,
    .event_settle = cuda_gather_release,
    .stream_wait_event = cuda_stream_wait_event,
    .event_elapsed = cuda_event_elapsed,
    .event_reached = cuda_event_reached,
    .stream_borrow = cuda_stream_borrow,
    .stream_wait_handle = cuda_stream_wait_handle,
    .rest = cuda_rest,
    .video_context = cuda_video_context,
    .copy = cuda_copy,
    .copy_rows = cuda_copy_rows,
    .clear = cuda_clear,
    .vision = &cuda_vision,
    .providers = providers,
    .provider_count = SAC_COUNT(providers),
    .relayout = cuda_relayout,
    .find_odd = cuda_find_odd,
    .capture_begin = cuda_capture_begin,
    .capture_part = cuda_capture_part,
    .capture_end = cuda_capture_end,
    .graph_launch = cuda_graph_launch,
    .gather_begin = cuda_gather_begin,
    .gather_end = cuda_gather_end,
    .graph_destroy = cuda_graph_destroy,
};

SAC_API const struct sac_device_plugin *sac_device_plugin_v1(void);
const struct sac_device_plugin         *sac_device_plugin_v1(void)
{
    static const struct sac_device_plugin plugin =
        SAC_DEVICE_PLUGIN(cuda_ops, sizeof(struct sac_vision_ops));
    return &plugin;
}
