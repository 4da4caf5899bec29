/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda_runtime_api.h"

#include "engine/cuda/kernels/norm_spread.cuh"
#include "tests/parity/emulated/norm.h"

bool emulated_norm_spreads(const struct ops_norm *p, const struct ops_ports *ports)
{
    return ops::norm_spreads(*p, ports);
}

int emulated_norm(const struct ops_norm *p, const struct ops_ports *ports)
{
    return ops::norm_spread(*p, ports, NULL);
}
