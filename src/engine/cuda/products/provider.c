/* SPDX-License-Identifier: Apache-2.0 */
/* The provider "products". */
#include <stdio.h>

#include "engine/cuda/products/matmul_conv.h"

static const struct sac_kernel *const kernels[SAC_OP_COUNT] = {
    [SAC_OP_Conv] = &products_Conv,
    [SAC_OP_FusedConv] = &products_FusedConv,
    [SAC_OP_ConvTranspose] = &products_ConvTranspose,
    [SAC_OP_Gemm] = &products_Gemm,
    [SAC_OP_MatMul] = &products_MatMul,
    [SAC_OP_FusedMatMul] = &products_FusedMatMul,
    [SAC_OP_QuantConv] = &products_QuantConv,
    [SAC_OP_QuantMatMul] = &products_QuantMatMul,
};

/* Raised when the number in a choice, as of "depthwise 3", means another kernel than before: plan
 * files with the old meaning are made again. */
enum { CHOICES = 3 };

/* Includes the versions once open was called: it is part of the plan files' key. */
static char name[96] = "products";

static void write_name(void)
{
    const struct cuda_libraries     *libs = cuda_libraries();
    const struct sac_nvidia_library *dnn = &libs->found[SAC_NVIDIA_CUDNN],
                                    *lt = &libs->found[SAC_NVIDIA_CUBLASLT];
    const struct sac_nvidia_library *rtc = &libs->found[SAC_NVIDIA_NVRTC];
    snprintf(name, sizeof name, "products %d of cudnn %d.%d.%d, cublaslt %d.%d.%d, nvrtc %d.%d",
             CHOICES, dnn->version[0], dnn->version[1], dnn->version[2], lt->version[0],
             lt->version[1], lt->version[2], rtc->version[0], rtc->version[1]);
}

/* The name belongs to the process: the first device writes it, before any other thread can read
 * it. */
static sac_result provider_open(struct sac_device *dev)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    sac_result            res = products_gpu_open(dev);
    if (res == SAC_OK)
        pthread_once(&once, write_name);
    return res;
}

/* Without a driver there will be no device. */
static void provider_load(void)
{
    int version = 0;
    if (cudaDriverGetVersion(&version) == cudaSuccess && version > 0)
        cuda_libraries();
}

static void provider_foresee(struct sac_device *dev, const struct sac_kernel *kernel,
                             const struct sac_kernel_plan *plan)
{
    if (kernel == &products_Conv || kernel == &products_FusedConv ||
        kernel == &products_ConvTranspose)
        conv_foresee(dev, plan);
    else if (kernel == &products_FusedMatMul)
        matmul_foresee(dev, plan);
}

static void provider_forget(struct sac_device *dev)
{
    (void)dev;
    conv_forget();
}

const struct sac_kernel_provider sac_kernels_products = {
    .abi = SAC_KERNEL_ABI,
    .struct_size = sizeof(struct sac_kernel_provider),
    .op_count = SAC_OP_COUNT,
    .name = name,
    .open = provider_open,
    .kernels = kernels,
    .load = provider_load,
    .foresee = provider_foresee,
    .forget = provider_forget,
};
