/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's libraries for networks, opened once per process. */
#ifndef SAC_ENGINE_CUDA_PRODUCTS_LIBRARIES_H
#define SAC_ENGINE_CUDA_PRODUCTS_LIBRARIES_H

#include "engine/cuda/products/cublas_api.h"
#include "engine/cuda/cuda.h"
#include "engine/cuda/products/cudnn_kernels.h"

struct cuda_libraries {
    struct sac_nvidia_library found[SAC_NVIDIA_COUNT];
    bool                      has_cudnn, has_cublas;
    struct cudnn_api          cudnn;
    struct cublas_api         cublas;
};
/* Opened by the first call; found says what is missing. Any thread. */
const struct cuda_libraries *cuda_libraries(void);

/* The provider's state for a GPU. Created once and kept until the process ends, like the libraries'
 * own state in the GPU's primary context, although devices open and close. */
enum { CUDNN_SPARE_HANDLES = 16 };
struct products_gpu {
    pthread_mutex_t      lock; /* guards the handle's stream, and the rest during creation */
    bool                 known;
    int                  capability; /* 90 of 9.0 */
    int                  processors;
    struct cudnn_target  cudnn;  /* handle NULL: no cuDNN */
    cublasLtHandle_t     cublas; /* NULL: none */
    struct cudnn_kernels kernels;
    pthread_mutex_t      tuning; /* held while ways are made or measured; guards the rest */
    cudaStream_t         stream;
    cudnnHandle_t        spare[CUDNN_SPARE_HANDLES]; /* to make plans with, one per thread */
};
/* For an open device. Errors: SAC_ERR_UNSUPPORTED, with the sentence, when neither library is
 * found. */
sac_result           products_gpu_open(struct sac_device *dev);
struct products_gpu *products_gpu_of(struct sac_device *dev);

/* A cuDNN handle that no other thread uses until it is given back: the spare one of this number, or
 * where that cannot be created the main one, which nothing runs by meanwhile. `tuning` is held. */
struct products_loan {
    struct cudnn_target cudnn;
    bool                main;
};
struct products_loan products_borrow(struct products_gpu *gpu, int number);
void                 products_give_back(struct products_gpu *gpu, const struct products_loan *loan);

#endif
