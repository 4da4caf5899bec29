/* SPDX-License-Identifier: Apache-2.0 */
/* Sliding windows: pooling, and the convolutions that no library supports. */
#ifndef SAC_ENGINE_CUDA_KERNELS_WINDOW_H
#define SAC_ENGINE_CUDA_KERNELS_WINDOW_H

#include "engine/cuda/kernels/types.h"

/* Every element of an output [N,C,depth,height,width], in memory order. */
struct ops_places {
    int64_t            count;
    int32_t            last; /* channels innermost */
    struct ops_divisor c, z, y, x;
};

/* struct sac_window in 32 bits, with the steps along [N,C,depth,height,width]. */
struct ops_window {
    int32_t in[3], out[3], kernel[3], stride[3], dilation[3], pad_begin[3], pad_end[3];
    int64_t x_step[5], y_step[5];
};

enum ops_pool_kind { OPS_POOL_MAX, OPS_POOL_AVERAGE, OPS_POOL_LP };
enum { OPS_POOL_RUN = 4 };
struct ops_pool {
    struct ops_window w;
    struct ops_places places, units;
    /* Of float16 and float32: a unit is so many channels of so many outputs below each other, by a
     * thread. vector 0: there are no units. */
    int32_t vector, run;
    int32_t words; /* a unit's eight channels are compared as they lie in memory */
    int32_t kind, include_pad, in_type, out_type, indices, columns_first, channels;
    double  p;
};
OPS_LAUNCHER(ops_launch_pool);

/* Conv, FusedConv and ConvTranspose, each output a sum by one thread. Ports: x, weights, bias,
 * residual, ending. */
struct ops_conv {
    struct ops_window w;
    struct ops_places places;
    int64_t           residual_step[5];
    int32_t           group, in_each, out_each;   /* channels of a group */
    int32_t           transposed, exact;          /* exact: in double */
    int32_t           type[5], out_type;          /* type 0: there is none */
    int32_t           residual_after, activation; /* enum ops_fn */
    int32_t           residual_c;                 /* channels that have one */
    double            a, b;
};
OPS_LAUNCHER(ops_launch_conv);

/* ConvInteger and QLinearConv. A port of -1: there is none. */
struct ops_parameter {
    int32_t port, type, many; /* many: one for each row or channel, else one for all */
};
struct sac_kernel_plan;
struct ops_parameter ops_parameter_of(const struct sac_kernel_plan *plan, int input); /* host code;
                                                                                         input -1:
                                                                                         none */
struct ops_conv_integer {
    struct ops_window    w;
    struct ops_places    places;
    int32_t              group, in_each, out_each;
    int32_t              x_port, w_port, bias_port, x_type, w_type, out_type;
    struct ops_parameter x_zero, w_zero, y_zero, x_scale, w_scale, y_scale;
};
OPS_LAUNCHER(ops_launch_conv_integer);

#endif
