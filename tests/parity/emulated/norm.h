/* SPDX-License-Identifier: Apache-2.0 */
/* Norms of lines that blocks hold between them, with emulated threads. */
#ifndef SAC_TESTS_EMULATED_NORM_H
#define SAC_TESTS_EMULATED_NORM_H

#include "engine/cuda/kernels/lines.h"

#ifdef __cplusplus
extern "C" {
#endif

bool emulated_norm_spreads(const struct ops_norm *p, const struct ops_ports *ports);
int  emulated_norm(const struct ops_norm *p, const struct ops_ports *ports);

#ifdef __cplusplus
}
#endif

#endif
