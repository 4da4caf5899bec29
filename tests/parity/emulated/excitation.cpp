/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda_runtime_api.h"

#define ops_launch_excitation emulated_excitation /* the library has the one for the host */
#include "engine/cuda/kernels/excitation.cu"
