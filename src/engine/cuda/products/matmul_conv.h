/* SPDX-License-Identifier: Apache-2.0 */
/* A product with constant weights as a convolution: a window of one over a map of m pixels. The
 * ways of those end in any activation, which cuBLASLt leaves to a pass of ours, and their tiles of
 * other sizes may leave less of the last wave idle. */
#ifndef SAC_ENGINE_CUDA_PRODUCTS_MATMUL_CONV_H
#define SAC_ENGINE_CUDA_PRODUCTS_MATMUL_CONV_H

#include "engine/cuda/products/conv_kernel.h"
#include "engine/cuda/products/matmul_spec.h"

/* false: it is none, or none whose ways are worth asking for. */
bool matmul_conv_spec(const struct products_gpu *gpu, const struct matmul_spec *s,
                      const struct sac_kernel_plan *plan, struct conv_spec *out);

/* What is known of which of the two is faster. */
enum matmul_way { MATMUL_UNKNOWN, MATMUL_LT, MATMUL_CONV };
enum matmul_way matmul_way_known(const struct sac_device *dev, const struct sac_kernel_plan *plan,
                                 const struct conv_spec *spec);
void            matmul_way_remember(const struct sac_device *dev, const struct conv_spec *spec,
                                    enum matmul_way way);

/* Notes the convolution's ways, if prepare will ask for them. */
void matmul_foresee(struct sac_device *dev, const struct sac_kernel_plan *plan);
/* Makes the state's convolution ready by its best way; gpu, spec and label are set. false: there is
 * none that is faster than what cuBLASLt does. The GPU's context must be current. */
bool matmul_conv_take(struct sac_device *dev, struct conv_state *s,
                      const struct sac_kernel_plan *plan);

#endif
