/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a card takes what the kernels were compiled to. */
#include "device/cuda/launch.h"

namespace {

__global__ void nothing() {}

} // namespace

extern "C" cudaError_t cuda_probe_kernels(void)
{
    cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, nothing);
}
