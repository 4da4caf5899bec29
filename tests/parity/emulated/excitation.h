/* SPDX-License-Identifier: Apache-2.0 */
/* Excitation with emulated threads. */
#ifndef SAC_TESTS_EMULATED_EXCITATION_H
#define SAC_TESTS_EMULATED_EXCITATION_H

#include "engine/cuda/kernels/excitation.h"

OPS_LAUNCHER(emulated_excitation);

#endif
