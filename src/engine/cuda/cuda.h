/* SPDX-License-Identifier: Apache-2.0 */
/* Networks on an NVIDIA GPU: two providers (engine/kernel/kernel.h). products/ has the convolutions
 * and matrix products, by cuDNN, cuBLASLt and kernels of our own, whichever was faster when they
 * were measured; kernels/ has all other operators, and those too where no library takes them.
 * relayout.c converts between layouts.
 *
 * This header is for host code; the .cu files see vision/cuda/launch.h. */
#ifndef SAC_ENGINE_CUDA_CUDA_H
#define SAC_ENGINE_CUDA_CUDA_H

#include "device/cuda/common.h"
#include "engine/kernel/kernel.h"

/* The rows of plugin/cuda.c, in the order in which they are asked. */
extern const struct sac_kernel_provider sac_kernels_products; /* convolutions and matrix products */
/* everything else, and those too without cuDNN */
extern const struct sac_kernel_provider sac_kernels_cuda;

/* relayout.c, as in struct sac_device_ops */
sac_result cuda_find_odd(struct sac_device *dev, struct sac_device_stream *stream,
                         const void *numbers, int64_t count, bool half, bool nan_alone,
                         uint32_t *odd);
sac_result cuda_relayout(struct sac_device *dev, struct sac_device_stream *stream,
                         const struct sac_operand *o, void *dst, int to, const void *src, int from);

#endif
