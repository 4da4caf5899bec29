/* SPDX-License-Identifier: Apache-2.0 */
/* An NVIDIA GPU as a device: its primary context, memory, streams and copies. */
#include <stdio.h>
#include <string.h>

#include "device/cuda/common.h"
#include "engine/cuda/cuda.h"

enum { GPUS_MAX = 64 };

/* ---- the driver ---- */

/* The context functions of the driver, which the runtime opens: nothing here links libcuda.so.1.
 * Each primary context is retained once and kept: a runtime does not survive its context, and all
 * that it costs stays with the process, however often devices are opened. */
static struct {
    pthread_mutex_t lock; /* guards the rest */
    bool            known;
    CUresult (*ctx_push)(CUcontext);
    CUresult (*ctx_pop)(CUcontext *);
    CUresult (*device_get)(CUdevice *, int);
    CUresult (*primary_retain)(CUcontext *, CUdevice);
    CUcontext primary[GPUS_MAX];
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

static cudaError_t entry_point(const char *name, void *fn)
{
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    cudaError_t res = cudaGetDriverEntryPointByVersion(name, fn, 12000, cudaEnableDefault, &found);
#else
    cudaError_t res = cudaGetDriverEntryPoint(name, fn, cudaEnableDefault, &found);
#endif
    if (res == cudaSuccess && found != cudaDriverEntryPointSuccess)
        return cudaErrorSymbolNotFound;
    return res;
}

/* Under the lock. */
static cudaError_t know_driver(void)
{
    cudaError_t res =
        driver.known ? cudaSuccess : entry_point("cuCtxPushCurrent", &driver.ctx_push);
    if (res == cudaSuccess && !driver.known)
        res = entry_point("cuCtxPopCurrent", &driver.ctx_pop);
    if (res == cudaSuccess && !driver.known)
        res = entry_point("cuDeviceGet", &driver.device_get);
    if (res == cudaSuccess && !driver.known)
        res = entry_point("cuDevicePrimaryCtxRetain", &driver.primary_retain);
    driver.known = res == cudaSuccess;
    return res;
}

/* Under the lock. */
static cudaError_t retain_primary(int index, CUcontext *out)
{
    CUdevice    gpu;
    cudaError_t res = know_driver();
    if (res == cudaSuccess && !driver.primary[index]) {
        /* A thread that waits for the GPU, in libavcodec's calls too, sleeps: the default spins. */
        res = cudaInitDevice(index, cudaDeviceScheduleBlockingSync, cudaInitDeviceFlagsAreValid);
        if (res == cudaSuccess &&
            (driver.device_get(&gpu, index) != CUDA_SUCCESS ||
             driver.primary_retain(&driver.primary[index], gpu) != CUDA_SUCCESS))
            res = cudaErrorDeviceUninitialized;
    }
    *out = driver.primary[index];
    return res;
}

sac_result cuda_check(struct sac_device *dev, cudaError_t res, const char *doing)
{
    if (res == cudaSuccess)
        return SAC_OK;
    cudaGetLastError(); /* the next call starts clean, unless the fault is one that stays */
    return SAC_FAIL(dev->ctx, res == cudaErrorMemoryAllocation ? SAC_ERR_MEMORY : SAC_ERR_DEVICE,
                    "%s: %s: %s", dev->name, doing, cudaGetErrorString(res));
}

sac_result cuda_enter(struct sac_device *dev)
{
    const struct cuda_state *state = dev->state;
    if (driver.ctx_push(state->context) == CUDA_SUCCESS)
        return SAC_OK;
    return SAC_FAIL(dev->ctx, SAC_ERR_DEVICE, "%s: its context is gone; did the process fork?",
                    dev->name);
}

void cuda_leave(void)
{
    CUcontext ours;
    driver.ctx_pop(&ours);
}

/* ---- open and close ---- */

static sac_result missing(struct sac_device *dev, const char *why)
{
    return SAC_FAIL(dev->ctx, SAC_ERR_DEVICE, "device 'cuda:%d': %s; 'cpu' runs everywhere",
                    dev->index, why);
}

static const int        codes[] = {SAC_CUDA_CODES};
const struct cuda_build cuda_build = {CUDART_VERSION, codes, SAC_COUNT(codes)};

static sac_result check_driver(struct sac_device *dev)
{
    int  version = 0, count = 0;
    char why[400];
    if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0)
        return missing(dev, "there is no NVIDIA driver (libcuda.so.1 cannot be opened)");
    if (!cuda_driver_serves(&cuda_build, version, why, sizeof why))
        return missing(dev, why);
    cudaError_t res = cudaGetDeviceCount(&count);
    if (res == cudaErrorNoDevice || (res == cudaSuccess && count == 0))
        return missing(dev, "the driver sees no NVIDIA GPU");
    if (res != cudaSuccess) {
        snprintf(why, sizeof why, "the driver does not answer: %s", cudaGetErrorString(res));
        return missing(dev, why);
    }
    if (dev->index < SAC_MIN(count, (int)GPUS_MAX))
        return SAC_OK;
    snprintf(why, sizeof why, "there %s", count == 1 ? "is one GPU, number 0" : "are fewer GPUs");
    if (count > 1)
        snprintf(why, sizeof why, "there are %d GPUs, numbers 0 to %d", count, count - 1);
    return missing(dev, why);
}

static sac_result describe(struct sac_device *dev)
{
    struct cudaDeviceProp gpu;
    int                   version = 0;
    char                  why[400];
    cudaError_t           res = cudaGetDeviceProperties(&gpu, dev->index);
    if (res == cudaSuccess)
        res = cudaDriverGetVersion(&version);
    if (res != cudaSuccess)
        return missing(dev, cudaGetErrorString(res));
    if (!cuda_card_serves(&cuda_build, version, gpu.name, gpu.major, gpu.minor, why, sizeof why))
        return missing(dev, why);
    snprintf(dev->name, sizeof dev->name, "cuda:%d", dev->index);
    snprintf(dev->pci_bus_id, sizeof dev->pci_bus_id, "%08x:%02x:%02x.0", (unsigned)gpu.pciDomainID,
             (unsigned)gpu.pciBusID, (unsigned)gpu.pciDeviceID);
    snprintf(dev->description, sizeof dev->description,
             "%.60s, %.1f GiB, compute %d.%d, driver for CUDA %d.%d", gpu.name,
             (double)gpu.totalGlobalMem / (1 << 30), gpu.major, gpu.minor, version / 1000,
             version % 1000 / 10);
    return SAC_OK;
}

/* patient: blocks of kernels on other streams are placed first. */
static cudaError_t stream_init(struct sac_stream *stream, struct sac_device *dev, bool patient)
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

static void stream_finish(struct sac_stream *stream)
{
    if (stream->handle)
        cudaStreamSynchronize(stream->handle); /* after that its scratch and events are free */
    sac_buffer_unref(&stream->scratch);
    pthread_mutex_destroy(&stream->lock);
    if (stream->reached)
        cudaEventDestroy(stream->reached);
    if (stream->handle)
        cudaStreamDestroy(stream->handle);
}

static void cuda_rest(struct sac_device *dev)
{
    struct cuda_state *state = dev->state;
    dev->ops->stream_destroy(&state->video);
    if (cuda_enter(dev) != SAC_OK)
        return;
    cudaStreamSynchronize(state->stream.handle);
    cuda_commands_finish(state);
    sac_buffer_unref(&state->stream.scratch);
    cuda_leave();
}

static void cuda_close(struct sac_device *dev)
{
    struct cuda_state *state = dev->state;
    if (state && cuda_enter(dev) == SAC_OK) {
        stream_finish(&state->stream);
        cuda_leave();
    }
    if (state) {
        pthread_cond_destroy(&state->given);
        pthread_mutex_destroy(&state->lock);
    }
    sac_free(state);
    dev->state = NULL;
}

static sac_result cuda_open(struct sac_device *dev, int index)
{
    struct cuda_state *state = NULL;
    sac_result         res = check_driver(dev);
    if (res == SAC_OK)
        res = describe(dev);
    if (res != SAC_OK)
        return res;
    state = sac_new(struct cuda_state);
    if (!state)
        return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "%s: no memory for its state", dev->name);
    pthread_mutex_lock(&driver.lock);
    cudaError_t made = retain_primary(index, &state->context);
    pthread_mutex_unlock(&driver.lock);
    if (made != cudaSuccess) {
        sac_free(state);
        return missing(dev, cudaGetErrorString(made));
    }
    pthread_mutex_init(&state->lock, NULL);
    pthread_cond_init(&state->given, NULL);
    dev->state = state;
    res = cuda_enter(dev);
    if (res == SAC_OK) {
        res = cuda_check(dev, stream_init(&state->stream, dev, false), "its first stream");
        cuda_leave();
    }
    if (res != SAC_OK)
        cuda_close(dev);
    return res;
}

/* ---- streams ---- */

static void cuda_stream_destroy(struct sac_stream **stream_at)
{
    struct sac_stream *stream = stream_at ? *stream_at : NULL;
    if (!stream)
        return;
    *stream_at = NULL;
    if (cuda_enter(stream->dev) == SAC_OK) {
        stream_finish(stream);
        cuda_leave();
    }
    sac_free(stream);
}

static sac_result create_stream(struct sac_device *dev, bool patient, struct sac_stream **out)
{
    struct sac_stream *stream = sac_new(struct sac_stream);
    if (!stream)
        return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "%s: no memory for a stream", dev->name);
    stream->dev = dev;
    sac_result res = cuda_enter(dev);
    if (res == SAC_OK) {
        res = cuda_check(dev, stream_init(stream, dev, patient), "a stream");
        cuda_leave();
    }
    if (res == SAC_OK)
        *out = stream;
    else
        cuda_stream_destroy(&stream);
    return res;
}

static sac_result cuda_stream_create(struct sac_device *dev, struct sac_stream **out)
{
    return create_stream(dev, false, out);
}

static sac_result cuda_stream_create_patient(struct sac_device *dev, struct sac_stream **out)
{
    return create_stream(dev, true, out);
}

/* cudaStreamSynchronize spins, which costs a core; an event made for it lets the thread sleep. When
 * another thread records it anew meanwhile, this one waits a little longer. */
cudaError_t cuda_wait(struct sac_stream *stream)
{
    cudaError_t res = cudaEventRecord(stream->reached, stream->handle);
    return res == cudaSuccess ? cudaEventSynchronize(stream->reached) : res;
}

static sac_result cuda_stream_wait(struct sac_stream *stream)
{
    sac_result res = cuda_enter(stream->dev);
    if (res != SAC_OK)
        return res;
    res = cuda_check(stream->dev, cuda_wait(stream), "queued work");
    cuda_leave();
    return res;
}

static sac_result cuda_stream_after(struct sac_device *dev, struct sac_stream *stream,
                                    struct sac_stream *other)
{
    struct sac_stream *before = cuda_own_stream(dev, other);
    sac_result         res = cuda_enter(dev);
    if (res != SAC_OK)
        return res;
    cudaError_t done = cudaEventRecord(before->reached, before->handle);
    if (done == cudaSuccess)
        done = cudaStreamWaitEvent(cuda_stream_of(dev, stream), before->reached, 0);
    res = cuda_check(dev, done, "one stream after another");
    cuda_leave();
    return res;
}

/* ---- scratch ---- */

/* Under the stream's lock. */
static sac_result scratch_grow(struct sac_device *dev, struct sac_stream *s, size_t bytes)
{
    struct sac_buffer *larger = NULL;
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

sac_result cuda_scratch_take(struct sac_device *dev, struct sac_stream *stream, size_t bytes,
                             void **out)
{
    struct sac_stream *s = cuda_own_stream(dev, stream);
    sac_result         res = SAC_OK;
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

void cuda_scratch_return(struct sac_device *dev, struct sac_stream *stream)
{
    pthread_mutex_unlock(&cuda_own_stream(dev, stream)->lock);
}

/* ---- the table ---- */

static const struct sac_kernel_provider *const providers[] = {&sac_kernels_cudnn,
                                                              &sac_kernels_cuda};

static const struct sac_device_ops sac_device_cuda = {
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
    .stream_wait_event = cuda_stream_wait_event,
    .event_elapsed = cuda_event_elapsed,
    .event_reached = cuda_event_reached,
    .rest = cuda_rest,
    .video_context = cuda_video_context,
    .copy = cuda_copy,
    .copy_rows = cuda_copy_rows,
    .vision = &cuda_vision,
    .providers = providers,
    .provider_count = SAC_COUNT(providers),
    .relayout = cuda_relayout,
    .capture_begin = cuda_capture_begin,
    .capture_end = cuda_capture_end,
    .graph_launch = cuda_graph_launch,
    .graph_destroy = cuda_graph_destroy,
};

SAC_API const struct sac_device_plugin *sac_device_plugin_v1(void);
const struct sac_device_plugin         *sac_device_plugin_v1(void)
{
    static const struct sac_device_plugin plugin = SAC_DEVICE_PLUGIN(sac_device_cuda);
    return &plugin;
}
