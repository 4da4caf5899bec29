/* SPDX-License-Identifier: Apache-2.0 */
/* The provider of convolutions (cuDNN's graph API) and matrix products (cuBLASLt). */
#include "engine/cuda/cuda.h"

static const struct sac_kernel *const kernels[SAC_OP_COUNT];

const struct sac_kernel_provider sac_kernels_cudnn = {
    .abi = SAC_KERNEL_ABI,
    .struct_size = sizeof(struct sac_kernel_provider),
    .op_count = SAC_OP_COUNT,
    .name = "cudnn",
    .kernels = kernels,
};
