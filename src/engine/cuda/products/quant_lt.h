/* SPDX-License-Identifier: Apache-2.0 */
/* A product of E4M3 numbers by cuBLASLt, whose sums become float16 (quant_lt_fits). Its matrices
 * are column-major: our rows are its columns, so Y = X W is computed as Y' = W' X'. */
#ifndef SAC_ENGINE_CUDA_PRODUCTS_QUANT_LT_H
#define SAC_ENGINE_CUDA_PRODUCTS_QUANT_LT_H

#include "engine/cuda/products/libraries.h"
#include "engine/cuda/products/quant_params.h"

enum { QUANT_LT_MAX = 4 }; /* of what the heuristics offer, likely best first */
struct quant_lt {
    const struct cublas_api *api; /* NULL: there is none */
    cublasLtHandle_t         handle;
    cublasLtMatmulDesc_t     op;
    cublasLtMatrixLayout_t   w, x, c, y;
    float                    scale; /* what a step of the sum is worth */
    bool                     added; /* a residual */
    int                      count;
    struct {
        cublasLtMatmulAlgo_t algo;
        size_t               workspace;
    } variants[QUANT_LT_MAX];
};
/* bias: float16 numbers on the device, or NULL. What cuBLASLt does not offer has no variants. */
void quant_lt_make(const struct products_gpu *gpu, const struct quant_spec *s, float scale,
                   const void *bias, struct quant_lt *out);
void quant_lt_finish(struct quant_lt *lt);
/* Bytes of scratch for a variant, or for any. */
size_t quant_lt_workspace(const struct quant_lt *lt, int variant);
size_t quant_lt_workspace_max(const struct quant_lt *lt);
/* Queues it. */
cudaError_t quant_lt_run(const struct quant_lt *lt, int variant, const struct quant_operands *o,
                         void *workspace, cudaStream_t stream);

#endif
