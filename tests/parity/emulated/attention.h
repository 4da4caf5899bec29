/* SPDX-License-Identifier: Apache-2.0 */
/* Attention by tiles, with emulated threads. */
#ifndef SAC_TESTS_EMULATED_ATTENTION_H
#define SAC_TESTS_EMULATED_ATTENTION_H

#include "engine/cuda/kernels/fused_attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/* By the tiles that p names; by attention_few.cuh. */
int emulated_attention(const struct ops_fused_attention *p, const struct ops_ports *ports);
int emulated_few(const struct ops_fused_attention *p, const struct ops_ports *ports);

#ifdef __cplusplus
}
#endif

#endif
