/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAC_ENGINE_CUDA_KERNELS_CHAIN_H
#define SAC_ENGINE_CUDA_KERNELS_CHAIN_H

#include "engine/cuda/kernels/types.h"
#include "engine/ops/fused_kinds.h"

/* fn: enum ops_fn. Operands: as in engine/ops/chain.h. */
struct ops_chain_step {
    int32_t fn, operand[2];
    float   alpha, beta;
};
/* Operand 0 of the views is the output, then the inputs. */
struct ops_chain {
    struct ops_view       view, units; /* units of four, where `vector` */
    int32_t               inputs, count, vector;
    uint32_t              stills; /* of units */
    int32_t               dtype[1 + SAC_CHAIN_INPUTS];
    struct ops_chain_step step[SAC_CHAIN_STEPS];
};
OPS_LAUNCHER(ops_launch_elementwise_chain);

#endif
