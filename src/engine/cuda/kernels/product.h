/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of products: MatMul, Gemm, FusedMatMul and their integer relatives when no library supports
 * them, and Einsum. */
#ifndef SAC_ENGINE_CUDA_KERNELS_PRODUCT_H
#define SAC_ENGINE_CUDA_KERNELS_PRODUCT_H

#include "engine/cuda/kernels/lines.h"
#include "engine/cuda/kernels/window.h"

/* The output and six others at most: factors, or what FusedMatMul has (below). */
enum { OPS_PRODUCT_OPERANDS = 7 };

/* Operand 0: out, 1...: the factors, then what Gemm adds. The outer view walks the output, the
 * inner one the products of a sum. */
struct ops_product {
    struct ops_lines lines;
    int32_t          factors, type[OPS_PRODUCT_OPERANDS], adds, out_type;
    enum ops_class   computed;
    double           alpha, beta;
};
OPS_LAUNCHER(ops_launch_product);

/* FusedMatMul. Operands: out, x, w, the output's index, bias, residual, the column's ending, whose
 * rows have so many numbers; the types of inputs that are left out are 0. */
struct ops_product_fused {
    struct ops_lines lines;
    int32_t          type[5], out_type, residual_after, activation; /* enum ops_fn */
    int64_t          columns;
    double           a, b;
};
OPS_LAUNCHER(ops_launch_product_fused);

/* MatMulInteger and QLinearMatMul: two factors; a's parameters go by row, b's by column. */
struct ops_product_integer {
    struct ops_lines     lines;
    int32_t              a_port, b_port, a_type, b_type, out_type;
    struct ops_parameter a_zero, b_zero, y_zero, a_scale, b_scale, y_scale;
    int64_t              rows, columns;
};
OPS_LAUNCHER(ops_launch_product_integer);

#endif
