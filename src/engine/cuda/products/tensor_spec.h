/* SPDX-License-Identifier: Apache-2.0 */
/* What conv_tensor.cuh can compute, of 8-bit numbers and of float16, and what its copy engine is
 * told. Host code without CUDA, so that it can be tested without a GPU. */
#ifndef SAC_ENGINE_CUDA_PRODUCTS_TENSOR_SPEC_H
#define SAC_ENGINE_CUDA_PRODUCTS_TENSOR_SPEC_H

#include "engine/cuda/products/conv_launch.h"
#include "engine/cuda/products/conv_spec.h"

/* Pixels and channels of a tile, by variant, and those of a panel that it stores. */
extern const struct conv_tile_size tensor_sizes[CONV_TENSOR_VARIANTS];
enum { TENSOR_ROWS = 64, TENSOR_PANEL = 64 };

/* Does a map lie pixel after pixel, also from one of n samples to the next? */
bool tensor_is_dense(const struct conv_map *m, int64_t n);
/* Do samples of the output, and of a residual, follow each other? */
bool tensor_writes_dense(const struct conv_spec *s);
/* Has the window steps and corners that the engine knows, and the output whole sixteens of channels
 * and so few pixels that they can be counted? */
bool tensor_copies(const struct conv_spec *s);
/* How a variant from CONV_TENSOR_WINDOWS on tiles it; row: bytes of a pixel's channels. false: it
 * does not. */
bool tensor_window(const struct conv_spec *s, int variant, int64_t row,
                   struct conv_window_shape *out);
/* May the variant be the fastest? */
bool tensor_worth(const struct conv_spec *s, int variant);

/* The maps that the kernel copies, in the order of conv_tensor_params; of rank 0 are those that it
 * does not. p: all but the maps; sets its chunk and runs, or its window. */
void tensor_shapes(const struct conv_spec *s, struct conv_tensor_params *p, int variant,
                   struct conv_copy_shape shapes[TENSOR_MAPS]);

/* ---- float16 ---- */

/* Can a variant compute it on a GPU of this compute capability (90 of 9.0)? */
bool tensor_takes_half(const struct conv_spec *s, int64_t variant, int capability);
/* Of CONV_PATCHES: variants of conv_tile.cu, then those of conv_tensor.cuh, over the rows. Where a
 * pixel's channels come by eights, both read the map itself. */
enum { CONV_PATCHES_VARIANTS = CONV_TILE_VARIANTS + CONV_TENSOR_WINDOWS };
bool patches_fits(const struct conv_spec *s, int64_t variant, int capability);
bool patches_worth(const struct conv_spec *s, int variant);
/* All but the pointers. */
struct conv_patches_params patches_params_of(const struct conv_spec *s);

/* at: as conv_tile.cu gets it. */
struct conv_tensor_params tensor_half_params(const struct conv_spec        *s,
                                             const struct conv_tile_params *at, int variant,
                                             struct conv_copy_shape shapes[TENSOR_MAPS]);

#endif
