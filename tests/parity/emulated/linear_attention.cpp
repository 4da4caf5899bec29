/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda_runtime_api.h"

#include "engine/cuda/kernels/linear_attention_plain.cuh"
#include "engine/cuda/kernels/linear_attention_tiles.cuh"
#include "tests/parity/emulated/linear_attention.h"

int emulated_linear_tiles(const struct ops_linear_attention *p, const struct ops_ports *ports)
{
    return ops::linear_by_tiles(*p, ports, NULL);
}

int emulated_linear_plain(const struct ops_linear_attention *p, const struct ops_ports *ports)
{
    return ops::linear_plain(*p, ports, NULL);
}
