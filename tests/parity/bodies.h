/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA device's kernels with their bodies compiled for the host. */
#ifndef SAC_TESTS_PARITY_BODIES_H
#define SAC_TESTS_PARITY_BODIES_H

#include "engine/cuda/kernels/types.h"
#include "engine/kernel/kernel.h"

/* On the CPU device they run at once, on the device of the tests (engine/far.h) when its work is
 * done. */
extern const struct sac_kernel_provider bodies;
/* Takes a row's place where it is set: a kernel whose threads work together, emulated. */
extern ops_launch *bodies_instead;

#endif
