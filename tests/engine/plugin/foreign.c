/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in of another build of saccade, for test_providers.c. */
#include "engine/kernel/kernel.h"

__attribute__((visibility("default"))) const struct sac_kernel_provider *
sac_kernel_provider_v1(void);

const struct sac_kernel_provider *sac_kernel_provider_v1(void)
{
    static const struct sac_kernel_provider foreign = {.abi = SAC_KERNEL_ABI + 1,
                                                       .struct_size = sizeof foreign,
                                                       .op_count = SAC_OP_COUNT,
                                                       .name = "foreign"};
    return &foreign;
}
