/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/products/libraries.h"

#include <dlfcn.h>
#include <stdio.h>

const char *cublas_api_read(void *library, struct cublas_api *out)
{
    const struct {
        const char *name;
        void       *fn;
    } symbols[] = {
        {"cublasLtCreate", &out->create},
        {"cublasLtDestroy", &out->destroy},
        {"cublasLtGetStatusString", &out->status_string},
        {"cublasLtMatmul", &out->matmul},
        {"cublasLtMatmulDescCreate", &out->desc_create},
        {"cublasLtMatmulDescDestroy", &out->desc_destroy},
        {"cublasLtMatmulDescSetAttribute", &out->desc_set},
        {"cublasLtMatrixLayoutCreate", &out->layout_create},
        {"cublasLtMatrixLayoutDestroy", &out->layout_destroy},
        {"cublasLtMatrixLayoutSetAttribute", &out->layout_set},
        {"cublasLtMatmulPreferenceCreate", &out->preference_create},
        {"cublasLtMatmulPreferenceDestroy", &out->preference_destroy},
        {"cublasLtMatmulPreferenceSetAttribute", &out->preference_set},
        {"cublasLtMatmulAlgoGetHeuristic", &out->heuristic},
        {"cublasLtMatmulAlgoCheck", &out->algo_check},
    };
    for (size_t i = 0; i < SAC_COUNT(symbols); i++) {
        void *found = dlsym(library, symbols[i].name);
        if (!found)
            return symbols[i].name;
        *(void **)symbols[i].fn = found;
    }
    return NULL;
}

/* ---- the process's libraries ---- */

static struct {
    pthread_mutex_t       lock; /* guards the rest until opened is set */
    bool                  opened;
    struct cuda_libraries libs;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool lacks(struct sac_nvidia_library *lib, const char *symbol)
{
    if (symbol)
        snprintf(lib->missing, sizeof lib->missing, "%.300s has no %s", lib->path, symbol);
    return symbol != NULL;
}

static void open_libraries(struct cuda_libraries *libs)
{
    int version = 0;
    if (cudaDriverGetVersion(&version) != cudaSuccess)
        version = 0;
    sac_nvidia_open_all(version / 1000, libs->found);
    struct sac_nvidia_library *cudnn = &libs->found[SAC_NVIDIA_CUDNN],
                              *cublas = &libs->found[SAC_NVIDIA_CUBLASLT];
    libs->has_cudnn = cudnn->handle && !lacks(cudnn, cudnn_api_read(cudnn->handle, &libs->cudnn));
    libs->has_cublas =
        cublas->handle && !lacks(cublas, cublas_api_read(cublas->handle, &libs->cublas));
}

const struct cuda_libraries *cuda_libraries(void)
{
    pthread_mutex_lock(&process.lock);
    if (!process.opened)
        open_libraries(&process.libs);
    process.opened = true;
    pthread_mutex_unlock(&process.lock);
    return &process.libs;
}

/* ---- a GPU's handles ---- */

enum { GPUS_MAX = 64 };
static struct products_gpu gpus[GPUS_MAX];
static pthread_once_t      gpus_once = PTHREAD_ONCE_INIT;

static void init_locks(void)
{
    for (int i = 0; i < GPUS_MAX; i++) {
        pthread_mutex_init(&gpus[i].lock, NULL);
        pthread_mutex_init(&gpus[i].tuning, NULL);
        cudnn_kernels_init(&gpus[i].kernels);
    }
}

struct products_gpu *products_gpu_of(struct sac_device *dev)
{
    pthread_once(&gpus_once, init_locks);
    return &gpus[SAC_CLAMP(dev->index, 0, GPUS_MAX - 1)];
}

struct products_loan products_borrow(struct products_gpu *gpu, int number)
{
    struct products_loan loan = {.cudnn = gpu->cudnn};
    cudnnHandle_t *const spare = &gpu->spare[number];
    if (!loan.cudnn.handle)
        return loan;
    if (!*spare && loan.cudnn.api->create(spare) != CUDNN_STATUS_SUCCESS)
        *spare = NULL;
    loan.main = !*spare;
    if (loan.main)
        pthread_mutex_lock(&gpu->lock);
    else
        loan.cudnn.handle = *spare;
    return loan;
}

void products_give_back(struct products_gpu *gpu, const struct products_loan *loan)
{
    if (loan->main)
        pthread_mutex_unlock(&gpu->lock);
}

/* One of the two may be missing: that is logged, and its operators run on other kernels. */
static void say_missing(struct sac_device *dev, const char *what, const char *why)
{
    sac_log(dev->ctx, SAC_LOG_INFO,
            "engine on %s: %s; %s run on saccade's own kernels, which are slower", dev->name, why,
            what);
}

static void make_handles(struct sac_device *dev, struct products_gpu *gpu,
                         const struct cuda_libraries *libs)
{
    gpu->cudnn.api = &libs->cudnn;
    if (libs->has_cudnn) {
        cudnnStatus_t res = libs->cudnn.create(&gpu->cudnn.handle);
        if (res != CUDNN_STATUS_SUCCESS) {
            gpu->cudnn.handle = NULL;
            say_missing(dev, "convolutions", libs->cudnn.error_string(res));
        }
    } else {
        say_missing(dev, "convolutions", libs->found[SAC_NVIDIA_CUDNN].missing);
    }
    if (libs->has_cublas) {
        cublasStatus_t res = libs->cublas.create(&gpu->cublas);
        if (res != CUBLAS_STATUS_SUCCESS) {
            gpu->cublas = NULL;
            say_missing(dev, "matrix products", libs->cublas.status_string(res));
        }
    } else {
        say_missing(dev, "matrix products", libs->found[SAC_NVIDIA_CUBLASLT].missing);
    }
    if (libs->has_cudnn && !libs->found[SAC_NVIDIA_NVRTC].handle)
        sac_log(dev->ctx, SAC_LOG_INFO, "engine on %s: %s; cuDNN fuses less without it", dev->name,
                libs->found[SAC_NVIDIA_NVRTC].missing);
}

static void ask_gpu(const struct sac_device *dev, struct products_gpu *gpu)
{
    int major = 0, minor = 0;
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, dev->index);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, dev->index);
    cudaDeviceGetAttribute(&gpu->processors, cudaDevAttrMultiProcessorCount, dev->index);
    gpu->capability = major * 10 + minor;
}

/* The GPU's lock is held and its context is current. */
static sac_result make_gpu(struct sac_device *dev, struct products_gpu *gpu)
{
    const struct cuda_libraries *libs = cuda_libraries();
    if (!libs->has_cudnn && !libs->has_cublas)
        return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED, "%s; %s",
                        libs->found[SAC_NVIDIA_CUDNN].missing,
                        libs->found[SAC_NVIDIA_CUBLASLT].missing);
    sac_result res = cuda_check(dev, cudaStreamCreateWithFlags(&gpu->stream, cudaStreamNonBlocking),
                                "a stream to measure on");
    if (res != SAC_OK)
        return res;
    ask_gpu(dev, gpu);
    make_handles(dev, gpu, libs);
    gpu->known = true;
    return SAC_OK;
}

sac_result products_gpu_open(struct sac_device *dev)
{
    struct products_gpu *gpu = products_gpu_of(dev);
    sac_result           res = cuda_enter(dev);
    if (res != SAC_OK)
        return res;
    pthread_mutex_lock(&gpu->lock);
    if (!gpu->known)
        res = make_gpu(dev, gpu);
    pthread_mutex_unlock(&gpu->lock);
    cuda_leave();
    return res;
}
