/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cpu/cpu.h"

static const struct sac_kernel *const kernels[SAC_OP_COUNT] = {
#define KERNEL(op) [SAC_OP_##op] = &sac_cpu_##op,
    SAC_CPU_KERNELS(KERNEL)
#undef KERNEL
};

const struct sac_kernel_provider sac_kernels_cpu = {
    .abi = SAC_KERNEL_ABI,
    .struct_size = sizeof(struct sac_kernel_provider),
    .op_count = SAC_OP_COUNT,
    .name = "cpu",
    .kernels = kernels,
};
