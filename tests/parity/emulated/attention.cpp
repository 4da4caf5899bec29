/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda_runtime_api.h"

#include "engine/cuda/kernels/attention_run.cuh"
#include "tests/parity/emulated/attention.h"

int emulated_attention(const struct ops_fused_attention *p, const struct ops_ports *ports)
{
    return ops::by_tiles(*p, ports, NULL);
}

int emulated_few(const struct ops_fused_attention *p, const struct ops_ports *ports)
{
    return ops::by_few(*p, ports, NULL);
}
