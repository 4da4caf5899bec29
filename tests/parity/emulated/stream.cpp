/* SPDX-License-Identifier: Apache-2.0 */
/* A second file of the kernels of 8-bit numbers. */
#include "engine/cuda/products/conv_stream.cu"
