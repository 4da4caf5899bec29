/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise operators: up to three operands in, one out, broadcast over each other. */
#ifndef SAC_ENGINE_CUDA_KERNELS_MAP_H
#define SAC_ENGINE_CUDA_KERNELS_MAP_H

#include "engine/cuda/kernels/types.h"

/* The functions, of x, y, z and the constants a and b. */
enum ops_fn {
    OPS_FN_IDENTITY,
    OPS_FN_ABS,
    OPS_FN_ACOS,
    OPS_FN_ACOSH,
    OPS_FN_ASIN,
    OPS_FN_ASINH,
    OPS_FN_ATAN,
    OPS_FN_ATANH,
    OPS_FN_BIT_NOT,
    OPS_FN_CEIL,
    OPS_FN_CELU,
    OPS_FN_CLIP,
    OPS_FN_COS,
    OPS_FN_COSH,
    OPS_FN_ELU,
    OPS_FN_ERF,
    OPS_FN_EXP,
    OPS_FN_FLOOR,
    OPS_FN_GELU,
    OPS_FN_GELU_TANH,
    OPS_FN_HARD_SIGMOID,
    OPS_FN_HARD_SWISH,
    OPS_FN_IS_INF,
    OPS_FN_IS_NAN,
    OPS_FN_LEAKY_RELU,
    OPS_FN_LOG,
    OPS_FN_MISH,
    OPS_FN_NEG,
    OPS_FN_NOT,
    OPS_FN_ONE,
    OPS_FN_RECIPROCAL,
    OPS_FN_RELU,
    OPS_FN_ROUND,
    OPS_FN_SELU,
    OPS_FN_SHRINK,
    OPS_FN_SIGMOID,
    OPS_FN_SQUARED_RELU,
    OPS_FN_SIGN,
    OPS_FN_SIN,
    OPS_FN_SINH,
    OPS_FN_SOFTPLUS,
    OPS_FN_SOFTSIGN,
    OPS_FN_SQRT,
    OPS_FN_SWISH,
    OPS_FN_TAN,
    OPS_FN_TANH,
    OPS_FN_THRESHOLDED_RELU,
    /* of two */
    OPS_FN_ADD,
    OPS_FN_SUB,
    OPS_FN_MUL,
    OPS_FN_DIV,
    OPS_FN_POW,
    OPS_FN_MOD,
    OPS_FN_FMOD,
    OPS_FN_MAX,
    OPS_FN_MIN,
    OPS_FN_MEAN_LAST, /* (x + y) / a */
    OPS_FN_PRELU,
    OPS_FN_SWIGLU,
    OPS_FN_EQUAL,
    OPS_FN_GREATER,
    OPS_FN_GREATER_OR_EQUAL,
    OPS_FN_LESS,
    OPS_FN_LESS_OR_EQUAL,
    OPS_FN_AND,
    OPS_FN_OR,
    OPS_FN_XOR,
    OPS_FN_BIT_AND,
    OPS_FN_BIT_OR,
    OPS_FN_BIT_XOR,
    OPS_FN_SHIFT_LEFT,
    OPS_FN_SHIFT_RIGHT,
    /* of three */
    OPS_FN_WHERE,
    OPS_FN_CLIP_BY /* bounds y and z; bit 0 of a: y is there, bit 1: z */
};

/* How an input lies beside an output that is dense: number for number, as one number for all of it,
 * or where the view says. */
enum ops_beside { OPS_BESIDE_EACH, OPS_BESIDE_ONE, OPS_BESIDE_PLACED };

/* Operand 0 of the views is the output, 1 to 3 are the inputs. */
struct ops_map {
    struct ops_view view, units; /* units of so many elements as `vector` says: 8, 4, or 0: none */
    int32_t         fn, inputs, vector;
    int32_t         dense;     /* the output is, and all dtypes are float32, float16 or bool */
    int32_t         beside[3]; /* only with `dense` */
    uint32_t        stills;    /* of units */
    enum ops_class  type;      /* in which it is computed */
    int32_t         dtype[4];
    int32_t         port[3]; /* of the inputs; -1: the output, which a step before has written */
    double          a, b;
};

/* Max, Min, Sum and Mean: each step but the first reads what the one before has written. */
enum { OPS_CHAIN_MAX = 15 };
struct ops_map_chain {
    int32_t        count;
    struct ops_map step[OPS_CHAIN_MAX];
};
OPS_LAUNCHER(ops_launch_map);   /* struct ops_map */
OPS_LAUNCHER(ops_launch_cast);  /* the same; fn: enum ops_class of the output */
OPS_LAUNCHER(ops_launch_chain); /* struct ops_map_chain */

/* GatedSum. Operands: output, X, a gate for each sample, a gate for all samples. Parts of X and of
 * gates lie x_part and gate_part numbers apart. */
enum { OPS_GATES_MAX = 8 };
struct ops_gated {
    struct ops_view view, units;
    int32_t         count, parts, out_type;
    int32_t         vector;     /* channels that are read at once: 8, 4 or 2; 0: one by one */
    int32_t         activation; /* enum ops_fn */
    uint32_t        stills;
    double          a, b;
    int64_t         x_part, gate_part;
    int32_t         x_type[OPS_GATES_MAX], gate_type[OPS_GATES_MAX], shared[OPS_GATES_MAX];
};
OPS_LAUNCHER(ops_launch_gated);

#endif
