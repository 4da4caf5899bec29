/* SPDX-License-Identifier: Apache-2.0 */
/* A matrix product in cuBLASLt's descriptors. cuBLASLt is column-major: our rows are its columns,
 * so Y = A B is computed as Y' = B' A'. */
#ifndef SAC_ENGINE_CUDA_PRODUCTS_MATMUL_LT_H
#define SAC_ENGINE_CUDA_PRODUCTS_MATMUL_LT_H

#include "engine/cuda/products/libraries.h"
#include "engine/cuda/products/matmul_spec.h"

struct matmul_lt {
    const struct cublas_api *api;
    cublasLtHandle_t         handle;
    cublasStatus_t           status; /* the first error; later calls do nothing */
    cublasLtMatmulDesc_t     op;
    cublasLtMatrixLayout_t   a, b, y; /* ours */
    cublasLtMatmulAlgo_t     algo;
    size_t                   workspace;
};
/* false: status says why. finish it in any case. */
bool matmul_lt_make(struct products_gpu *gpu, const struct cublas_api *api,
                    const struct matmul_spec *s, struct matmul_lt *out);
void matmul_lt_finish(struct matmul_lt *lt);

/* What the heuristics offer, likely best first. */
int matmul_lt_candidates(struct matmul_lt *lt, const struct matmul_spec *s,
                         cublasLtMatmulHeuristicResult_t *out, int max);
/* Selects a variant; false: it does not fit this product. */
bool matmul_lt_take(struct matmul_lt *lt, const cublasLtMatmulAlgo_t *algo);

struct matmul_pointers {
    const void *a, *b, *c, *bias; /* c: a whole matrix, or NULL */
    void       *y, *workspace;
};
cublasStatus_t matmul_lt_run(struct matmul_lt *lt, const struct matmul_spec *s,
                             const struct matmul_pointers *p, cudaStream_t stream);

#endif
