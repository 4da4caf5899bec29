/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernel computes a convolution of few input channels, and what Hopper's copy engine is told.
 * Host code without CUDA, so that it can be tested without a GPU. */
#ifndef SAC_ENGINE_CUDA_PRODUCTS_STEM_SPEC_H
#define SAC_ENGINE_CUDA_PRODUCTS_STEM_SPEC_H

#include "engine/cuda/products/conv_launch.h"
#include "engine/cuda/products/conv_spec.h"

/* By warps on any GPU (conv_stem.cu), and by Hopper's matrix unit (conv_stem_unit.cu). */
enum { CONV_STEM_WARPS = 0, CONV_STEM_UNIT, CONV_STEM_VARIANTS };

/* Can a variant compute it on a GPU of this compute capability (90 of 9.0)? */
bool stem_takes(const struct conv_spec *s, int64_t variant, int capability);
/* What a launch needs but for the ending and the tensors. false: no variant takes it. */
bool stem_params_of(const struct conv_spec *s, struct conv_stem_params *out);
/* How CONV_STEM_UNIT tiles the map, so that there is work for so many processors. false: it does
 * not take it. */
bool stem_square_of(const struct conv_spec *s, int processors, struct conv_stem_square *out);
/* The map of what it copies. */
struct conv_copy_shape stem_copy(const struct conv_spec *s, const struct conv_stem_square *square,
                                 const void *x);

#endif
