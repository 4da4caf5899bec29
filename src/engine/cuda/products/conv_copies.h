/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of memory for Hopper's copy engine. */
#ifndef SAC_ENGINE_CUDA_PRODUCTS_CONV_COPIES_H
#define SAC_ENGINE_CUDA_PRODUCTS_CONV_COPIES_H

#include "engine/cuda/products/conv_launch.h"

/* cudaErrorNotSupported: the driver does not know the engine, or refuses such a map. Any thread. */
cudaError_t conv_copy_map_make(const struct conv_copy_shape *s, struct conv_copy_map *out);

#endif
