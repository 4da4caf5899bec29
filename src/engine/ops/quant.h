/* SPDX-License-Identifier: Apache-2.0 */
/* QuantConv and QuantMatMul: convolutions and products of 8-bit numbers, which passes/quantised.c
 * makes of what stands between DequantizeLinear and QuantizeLinear.
 *
 *   QuantConv(X, W, B?, R?, S)    X [N,C,spatial...], W [M,C/group,k...], Conv's attributes
 *   QuantMatMul(X, W, B?, R?, S)  X [...,k], W [k,n]
 *
 * X   int8, uint8 or float8, x_zero its zero point
 * W   int8 for integers, float8 for float8; no zero point
 * B   a float32 for each output channel (column), in the units of the result
 * R   of the output's shape: float32, or 8 bits that stand for r_scale (R - r_zero)
 * S   a float32 for each output channel: what a step of the sum is worth
 *
 *   sum = of (X - x_zero) W, exact in int32 (it wraps); of float8 in float32, in any order. Padding
 *         adds nothing, so it has the value x_zero.
 *   v   = S sum + B, then activation and residual as in FusedConv, in float32
 *
 * y_type says what becomes of v: 0, it is the output; else 8 bits, of v / y_scale rounded to even,
 * plus y_zero, saturated. The quotient is v times the float32 nearest to 1 / y_scale. NaN becomes
 * any integer; in float8 it stays. The same attributes, with the same meaning, make 8 bits of what
 * a FusedNorm or FusedAttention computes. */
#ifndef SAC_ENGINE_OPS_QUANT_H
#define SAC_ENGINE_OPS_QUANT_H

#include "engine/ops/fused.h"

enum { SAC_QUANT_BIAS = 2, SAC_QUANT_SCALE = 4 }; /* inputs; the residual is SAC_RESIDUAL_INPUT */

/* The attributes beside those of FusedConv. */
struct sac_quant {
    int            x_zero, r_zero, y_zero;
    float          r_scale, y_scale, y_inverse; /* 1 / y_scale */
    enum sac_dtype y_dtype;                     /* SAC_F32: y_scale and y_zero mean nothing */
};
/* Of a node whose shape function has agreed. */
struct sac_quant sac_quant_read(const struct sac_node *n);
bool             sac_dtype_is_quantised(enum sac_dtype t); /* int8, uint8, float8 */
/* Checks y_type, y_scale and y_zero, of which a node need have none; sets the output's dtype. */
sac_result sac_quant_check_output(const struct sac_op_call *c, enum sac_dtype *out);
/* Number i of the output, of y_dtype. */
void sac_quant_put(const struct sac_quant *q, const struct sac_operand *y, int64_t i, float v);

#endif
