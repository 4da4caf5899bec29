/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAC_ENGINE_CUDA_KERNELS_EXCITATION_H
#define SAC_ENGINE_CUDA_KERNELS_EXCITATION_H

#include "engine/cuda/kernels/types.h"

/* Of a block; blocks of a sample at most, which is a cluster's size on every card that has some. */
enum { OPS_EXCITATION_THREADS = 512, OPS_EXCITATION_BLOCKS_MAX = 8 };

/* A layer of Excitation: y = fn(w x + bias). Types: enum sac_dtype. */
struct ops_layer {
    int64_t length, rows;
    int32_t w_type, bias_type, fn;
    int32_t lanes; /* threads that share a row: a power of two, 1 to 32 */
    double  a, b;
};

/* The maps of a sample: elements from one sample, channel and pixel to the next. */
struct ops_maps {
    int64_t sample, channel, pixel, pixels;
};

/* A cluster of blocks works on a sample: each sums up a part of its pixels, then has a part of
 * each layer's rows. Where a card has no clusters the same are launches of so many blocks a sample,
 * and in scratch are their sums [n][blocks][C], where maps have more than one pixel, and what is
 * between the layers [n][hidden], all float. */
struct ops_excitation {
    struct ops_layer layer[2];
    struct ops_maps  maps;
    int64_t          n;
    int32_t          shift; /* of the number of blocks, a power of two */
    int32_t          in_type, out_type;
    int32_t          vector; /* eight channels are read at once */
};
OPS_LAUNCHER(ops_launch_excitation);

#endif
