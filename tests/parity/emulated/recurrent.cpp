/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda_runtime_api.h"

#include "engine/cuda/kernels/recurrent_tiles.cuh"
#include "tests/parity/emulated/recurrent.h"

int emulated_recurrent_tiles(const struct ops_recurrent *p, const struct ops_ports *ports)
{
    return ops::recurrent_by_tiles(*p, ports, NULL);
}
