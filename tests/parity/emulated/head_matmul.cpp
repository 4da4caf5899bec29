/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda_runtime_api.h"

#include "engine/cuda/kernels/head_matmul_plain.cuh"
#include "engine/cuda/kernels/head_matmul_tiles.cuh"
#include "tests/parity/emulated/head_matmul.h"

int emulated_product_tiles(const struct ops_head_matmul *p, const struct ops_ports *ports,
                           bool unit)
{
    return ops::product_by_tiles(*p, ports, unit, NULL);
}

int emulated_product_plain(const struct ops_head_matmul *p, const struct ops_ports *ports)
{
    return ops::product_plain(*p, ports, NULL);
}
