/* SPDX-License-Identifier: Apache-2.0 */
/* Those of all kinds in one file, as what stands for the copy engine is. */
#include "engine/cuda/products/conv_tensor.cu"
#include "engine/cuda/products/conv_tensor_f8.cu"
#include "engine/cuda/products/conv_tensor_s8.cu"
