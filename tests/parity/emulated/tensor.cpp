/* SPDX-License-Identifier: Apache-2.0 */
/* A third file of the kernels of 8-bit numbers. */
#include "engine/cuda/products/conv_tensor.cu"
