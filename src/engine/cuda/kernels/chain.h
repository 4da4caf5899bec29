/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAC_ENGINE_CUDA_KERNELS_CHAIN_H
#define SAC_ENGINE_CUDA_KERNELS_CHAIN_H

#include "engine/cuda/kernels/types.h"
#include "engine/ops/fused_kinds.h"

enum {
    OPS_CHAIN_KEPT = 2, /* results of steps that stay in registers */
    OPS_CHAIN_LAST = SAC_CHAIN_INPUTS + OPS_CHAIN_KEPT, /* the result of the step before */
};

/* A step's form: of one number; of two; of one and alpha, which comes second. */
enum { OPS_CHAIN_ONE, OPS_CHAIN_TWO, OPS_CHAIN_NUMBER };
/* fn: enum ops_fn. Operands: as in engine/ops/chain.h. from: where a thread that has several
 * numbers at once finds them: inputs, then results that are kept, then OPS_CHAIN_LAST, -1 alpha;
 * keep: the place where the result stays, -1: none. */
struct ops_chain_step {
    int32_t fn, form, operand[2], from[2], keep;
    float   alpha, beta;
};
/* Operand 0 of the views is the output, then the inputs. */
struct ops_chain {
    struct ops_view view, groups;
    int32_t         inputs, count;
    int32_t         each; /* numbers of a group, 8, 4 or 1; 0: by no groups */
    /* bits of operands: of a group, it shows one number; its numbers do not lie as a vector; it
     * lies otherwise than a dense output */
    uint32_t              stills, loose, placed;
    int32_t               spread; /* groups of the dense output go over ends of dimensions */
    int32_t               halves; /* all operands but stills are float16 */
    int32_t               dtype[1 + SAC_CHAIN_INPUTS];
    struct ops_chain_step step[SAC_CHAIN_STEPS];
};
OPS_LAUNCHER(ops_launch_elementwise_chain);

#endif
