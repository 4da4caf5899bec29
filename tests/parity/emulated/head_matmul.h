/* SPDX-License-Identifier: Apache-2.0 */
/* Products of heads' matrices by tiles, with emulated threads. */
#ifndef SAC_TESTS_EMULATED_HEAD_MATMUL_H
#define SAC_TESTS_EMULATED_HEAD_MATMUL_H

#include "engine/cuda/kernels/head_matmul.h"

#ifdef __cplusplus
extern "C" {
#endif
int emulated_product_tiles(const struct ops_head_matmul *p, const struct ops_ports *ports,
                           bool unit);
int emulated_product_plain(const struct ops_head_matmul *p, const struct ops_ports *ports);
#ifdef __cplusplus
}
#endif

#endif
