/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU's primary context around each entry, and CUDA's faults as sentences. */
#include "device/cuda/common.h"

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
    CUcontext primary[CUDA_GPUS_MAX];
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

cudaError_t cuda_context_retain(int index, CUcontext *out)
{
    CUdevice gpu;
    pthread_mutex_lock(&driver.lock);
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
    pthread_mutex_unlock(&driver.lock);
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
    if (driver.ctx_push(state->context) == CUDA_SUCCESS) {
        cuda_early_enter(state->launches_early && !(dev->without & SAC_WITHOUT_EARLY_LAUNCH));
        return SAC_OK;
    }
    return SAC_FAIL(dev->ctx, SAC_ERR_DEVICE, "%s: its context is gone; did the process fork?",
                    dev->name);
}

void cuda_leave(void)
{
    CUcontext ours;
    driver.ctx_pop(&ours);
    cuda_early_leave();
}
