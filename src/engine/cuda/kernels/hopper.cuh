/* SPDX-License-Identifier: Apache-2.0 */
/* Is the current device one with Hopper's matrix unit? */
#pragma once

#include <cuda_runtime.h>

namespace ops
{

/* Code with the unit is for compute capability 9.0 alone. */
inline bool has_unit()
{
#ifdef SAC_HOPPER_CODE
    int device, major, minor;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) ==
               cudaSuccess &&
           cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) ==
               cudaSuccess &&
           major == 9 && minor == 0;
#else
    return false;
#endif
}

} // namespace ops
