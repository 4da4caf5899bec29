/* SPDX-License-Identifier: Apache-2.0 */
/* LinearAttention's kernels with the GPU's threads emulated. */
#ifndef SAC_TESTS_EMULATED_LINEAR_ATTENTION_H
#define SAC_TESTS_EMULATED_LINEAR_ATTENTION_H

#include "engine/cuda/kernels/linear_attention.h"

#ifdef __cplusplus
extern "C" {
#endif
int emulated_linear_tiles(const struct ops_linear_attention *p, const struct ops_ports *ports);
int emulated_linear_plain(const struct ops_linear_attention *p, const struct ops_ports *ports);
#ifdef __cplusplus
}
#endif

#endif
