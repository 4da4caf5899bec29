/* SPDX-License-Identifier: Apache-2.0 */
/* The plain matrix product, shared by MatMul, Gemm and their integer relatives. */
#ifndef SAC_ENGINE_OPS_MATMUL_H
#define SAC_ENGINE_OPS_MATMUL_H

#include "engine/ops/util.h"

/* Y[m,n] = A[m,k] B[k,n]; strides in elements, Y dense. */
struct sac_product {
    int64_t     m, n, k;
    const void *a, *b;
    int64_t     a_row, a_col, b_row, b_col;
};

/* out[0] as NumPy's matmul of two inputs shapes it. */
sac_result sac_matmul_shape(struct sac_op_call *c, int ia, int ib, enum sac_dtype dtype);
/* After it; da, db and y are dense arrays of the class's type. */
void sac_matmul_run(const struct sac_operand *a, const struct sac_operand *b, enum sac_class k,
                    const void *da, const void *db, void *y);

#endif
