/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher of the pass behind a product. */
#ifndef SAC_ENGINE_CUDA_PRODUCTS_MATMUL_PASS_H
#define SAC_ENGINE_CUDA_PRODUCTS_MATMUL_PASS_H

#include <stdbool.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* y = act(y + bias) ending[0] + ending[1] + residual ending[2], in place, over rows of `columns`
 * numbers. act and ending as in ops/fused_kinds.h. */
struct matmul_pass_params {
    bool        half;
    int         act;
    float       alpha, beta;
    const void *bias;     /* [columns]; NULL: none */
    const void *residual; /* [count]; NULL: none */
    /* [SAC_ENDING_ROWS][columns]; NULL: none */
    const float *ending;
    void        *y;
    int64_t      count, columns;
};
cudaError_t matmul_launch_pass(const struct matmul_pass_params *p, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
