/* SPDX-License-Identifier: Apache-2.0 */
/* Copies: each piece is one walk over source and destination. */
#ifndef SAC_ENGINE_CUDA_KERNELS_COPY_H
#define SAC_ENGINE_CUDA_KERNELS_COPY_H

#include "engine/cuda/kernels/types.h"

/* Operand 0 is the destination, 1 the source. units: the same in the largest units that all
 * fits. */
struct ops_copy {
    struct ops_view view, units;
    int32_t         bytes, unit_bytes; /* of an element, of a unit */
    int32_t         in, out;           /* ports */
};
struct ops_copies {
    int32_t         count;
    struct ops_copy piece[1]; /* and more */
};
OPS_LAUNCHER(ops_launch_copies);

/* Pad: each dimension of the output, outermost first, takes from one index of the input or from
 * none. */
struct ops_pad {
    int32_t            rank, mode, bytes;
    int64_t            count;
    int32_t            narrow; /* places are counted by `dim`, else in 64 bits */
    int32_t            run; /* so many of the innermost are 16 bytes that lie so; 0: they do not */
    struct ops_divisor dim[SAC_RANK_MAX], whole; /* `size`, the innermost in runs; itself */
    int64_t            size[SAC_RANK_MAX], in_size[SAC_RANK_MAX], begin[SAC_RANK_MAX];
    int64_t            to[SAC_RANK_MAX], from[SAC_RANK_MAX];
    int32_t            constant_port; /* -1: the number is known */
    uint32_t           constant[4];   /* its bytes, repeated */
};
OPS_LAUNCHER(ops_launch_pad);

#endif
