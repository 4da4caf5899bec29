/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA device's kernels with their bodies compiled for the host. */
#ifndef SAC_TESTS_PARITY_BODIES_H
#define SAC_TESTS_PARITY_BODIES_H

#include "engine/kernel/kernel.h"

/* On the CPU device they run at once, on the device of the tests (engine/far.h) when its work is
 * done. */
extern const struct sac_kernel_provider bodies;

#endif
