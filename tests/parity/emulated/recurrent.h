/* SPDX-License-Identifier: Apache-2.0 */
/* FusedRecurrent's kernels with the GPU's threads emulated. */
#ifndef SAC_TESTS_EMULATED_RECURRENT_H
#define SAC_TESTS_EMULATED_RECURRENT_H

#include "engine/cuda/kernels/sequence.h"

#ifdef __cplusplus
extern "C" {
#endif
int emulated_recurrent_tiles(const struct ops_recurrent *p, const struct ops_ports *ports);
#ifdef __cplusplus
}
#endif

#endif
