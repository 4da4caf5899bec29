/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAC_ENGINE_CUDA_KERNELS_EXCITATION_H
#define SAC_ENGINE_CUDA_KERNELS_EXCITATION_H

#include "engine/cuda/kernels/types.h"

enum {
    OPS_EXCITATION_THREADS = 256, /* of a block */
    OPS_EXCITATION_CHUNK = 64,    /* channels of a block of the first launch at most */
    OPS_EXCITATION_TOGETHER = 4   /* samples that may share a block's weights */
};

/* A layer of Excitation: y = fn(w x + bias). Types: enum sac_dtype. */
struct ops_layer {
    int64_t length, rows;
    int32_t w_type, bias_type, fn;
    int32_t together; /* samples of a block: 1 or OPS_EXCITATION_TOGETHER */
    double  a, b;
};

/* The maps of a sample: elements from one sample, channel and pixel to the next. */
struct ops_maps {
    int64_t sample, channel, pixel, pixels;
};

/* Two launches. A block of the first sums up some pixels of a chunk of channels and multiplies the
 * first layer's weights by these means: as that layer is linear, what chunks and pixels add to its
 * numbers, [n][chunks * splits][hidden] in scratch, can be summed up later. A block of the second
 * does that and has some of the second layer's rows. */
struct ops_excitation {
    struct ops_layer layer[2];
    struct ops_maps  maps;
    int64_t          n;
    int32_t          abreast; /* eights of channels of a chunk: a power of two */
    int32_t          chunks, splits;
    int32_t          lanes; /* threads that share a row of the second layer: a power of two to 32 */
    int32_t          turns; /* of a block through its rows */
    int32_t          in_type, out_type;
    int32_t          vector[2]; /* eight channels, and eight numbers between, are read at once */
};
OPS_LAUNCHER(ops_launch_excitation);

#endif
