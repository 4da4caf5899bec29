/* SPDX-License-Identifier: Apache-2.0 */
/* An NVIDIA GPU opened and closed. */
#include <stdio.h>
#include <string.h>

#include "device/cuda/common.h"

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
    if (dev->index < SAC_MIN(count, (int)CUDA_GPUS_MAX))
        return SAC_OK;
    snprintf(why, sizeof why, "there %s", count == 1 ? "is one GPU, number 0" : "are fewer GPUs");
    if (count > 1)
        snprintf(why, sizeof why, "there are %d GPUs, numbers 0 to %d", count, count - 1);
    return missing(dev, why);
}

static sac_result describe(struct sac_device *dev, bool *early)
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
    *early = cuda_card_launches_early(&cuda_build, version, gpu.major);
    return SAC_OK;
}

void cuda_rest(struct sac_device *dev)
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

void cuda_close(struct sac_device *dev)
{
    struct cuda_state *state = dev->state;
    if (state && cuda_enter(dev) == SAC_OK) {
        cuda_stream_finish(&state->stream);
        cuda_leave();
    }
    if (state) {
        pthread_cond_destroy(&state->given);
        pthread_mutex_destroy(&state->lock);
    }
    sac_free(state);
    dev->state = NULL;
}

sac_result cuda_open(struct sac_device *dev, int index)
{
    struct cuda_state *state = NULL;
    bool               early = false;
    sac_result         res = check_driver(dev);
    if (res == SAC_OK)
        res = describe(dev, &early);
    if (res != SAC_OK)
        return res;
    state = sac_new(struct cuda_state);
    if (!state)
        return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "%s: no memory for its state", dev->name);
    cudaError_t made = cuda_context_retain(index, &state->context);
    if (made != cudaSuccess) {
        sac_free(state);
        return missing(dev, cudaGetErrorString(made));
    }
    pthread_mutex_init(&state->lock, NULL);
    pthread_cond_init(&state->given, NULL);
    state->launches_early = early;
    dev->state = state;
    res = CUDA_CALL(dev, cuda_stream_init(&state->stream, dev, false), "its first stream");
    if (res != SAC_OK)
        cuda_close(dev);
    return res;
}
