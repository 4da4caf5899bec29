/* SPDX-License-Identifier: Apache-2.0 */
/* The enums used in attributes of fused nodes, in a header of their own, so that CUDA kernels can
 * include them. */
#ifndef SAC_ENGINE_OPS_FUSED_KINDS_H
#define SAC_ENGINE_OPS_FUSED_KINDS_H

/* The activation that a fused node applies to its output; the attribute "activation" holds the
 * kind. */
enum sac_activation_kind {
    SAC_ACT_NONE = 0,
    SAC_ACT_RELU,
    SAC_ACT_LEAKY_RELU, /* x < 0: alpha x */
    SAC_ACT_CLIP,       /* to alpha..beta */
    SAC_ACT_SIGMOID,
    SAC_ACT_SILU,         /* x sigmoid(x), swish */
    SAC_ACT_HARD_SIGMOID, /* clip(alpha x + beta, 0, 1) */
    SAC_ACT_HARD_SWISH,   /* x clip(alpha x + beta, 0, 1) */
    SAC_ACT_TANH,
    SAC_ACT_SOFTPLUS, /* log(1 + e^x) */
    SAC_ACT_GELU,
    SAC_ACT_GELU_TANH,    /* approximated by tanh */
    SAC_ACT_SQUARED_RELU, /* alpha max(x, 0)^2 + beta: StarReLU (Yu et al., 2022) */
    SAC_ACT_COUNT
};

/* What a step of a Chain computes: an activation, or one of these. */
enum sac_chain_fn {
    SAC_CHAIN_ABS = 32,
    SAC_CHAIN_ERF,
    SAC_CHAIN_EXP,
    SAC_CHAIN_LOG,
    SAC_CHAIN_NEG,
    SAC_CHAIN_RECIPROCAL,
    SAC_CHAIN_SQRT,
    SAC_CHAIN_ADD = 64, /* from here on of two numbers */
    SAC_CHAIN_SUB,
    SAC_CHAIN_MUL,
    SAC_CHAIN_DIV,
    SAC_CHAIN_MAX,
    SAC_CHAIN_MIN,
};
enum { SAC_CHAIN_INPUTS = 8, SAC_CHAIN_STEPS = 12 };

/* The attribute "residual" of FusedConv and FusedMatMul: where R is added. */
enum sac_residual {
    SAC_RESIDUAL_NONE = 0,
    SAC_RESIDUAL_BEFORE, /* act(sum + R), as ResNet */
    SAC_RESIDUAL_AFTER,  /* act(sum) + R, as CSP bottlenecks */
    SAC_RESIDUAL_COUNT
};
enum { SAC_RESIDUAL_INPUT = 3 }; /* R of every operator with that attribute */

/* Input A of FusedConv and FusedMatMul, [3,channels]: what is done to each channel behind the
 * activation. */
enum { SAC_ENDING = 4 }; /* which input */
enum sac_ending_row { SAC_ENDING_SCALE, SAC_ENDING_SHIFT, SAC_ENDING_RESIDUAL, SAC_ENDING_ROWS };

/* The attribute "kind" of FusedNorm: what is made one of a line. */
enum sac_norm_kind {
    SAC_NORM_CENTRED = 0, /* the variance, about a mean that becomes zero: LayerNormalization */
    SAC_NORM_ROOT,        /* the mean of the squares: RMSNormalization */
    SAC_NORM_L1,          /* the sum of the magnitudes */
    SAC_NORM_L2,          /* the length */
    SAC_NORM_SUM,         /* the sum, of numbers of any sign */
    SAC_NORM_SHARES,      /* the sum of the exponentials that take the numbers' places: Softmax */
    SAC_NORM_COUNT
};

/* The attribute "kind" of LinearAttention. */
enum sac_linear_kind {
    SAC_LINEAR_SHARES = 0, /* a softmax of the state's rows: numbers of a head attend to others */
    SAC_LINEAR_TOKENS,     /* a softmax of the keys over the tokens */
    SAC_LINEAR_RATIO,      /* keys and queries without what is negative, over their products' sum */
    SAC_LINEAR_COUNT
};
/* Numbers of a head at most. */
enum { SAC_LINEAR_SIZE_MAX = 96 };

/* The attribute "y_type" of what can make 8 bits of its output: what its numbers are, as
 * TensorProto.DataType has it. */
enum sac_quant_type {
    SAC_QUANT_FLOAT = 0,
    SAC_QUANT_UINT8 = 2,
    SAC_QUANT_INT8 = 3,
    SAC_QUANT_FLOAT8 = 17
};

/* The most channels (C, K) and numbers between the layers (H) of an Excitation. */
enum { SAC_EXCITATION_CHANNELS_MAX = 8192, SAC_EXCITATION_HIDDEN_MAX = 4096 };

#endif
