/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAC_ENGINE_CUDA_KERNELS_EXCITATION_H
#define SAC_ENGINE_CUDA_KERNELS_EXCITATION_H

#include "engine/cuda/kernels/types.h"

/* A layer of Excitation: y = fn(w x + bias). Types: enum sac_dtype. */
struct ops_layer {
    int64_t length, rows;
    int32_t w_type, bias_type, fn;
    int32_t lanes; /* threads that share a row: a power of two, 1 to 32 */
    double  a, b;
};

/* With parts above 1 each layer is a launch of so many blocks a sample, and what is between them
 * [n][hidden] float is in scratch. */
struct ops_excitation {
    struct ops_layer layer[2];
    int64_t          n;
    int32_t          parts, in_type, out_type;
};
OPS_LAUNCHER(ops_launch_excitation);

#endif
