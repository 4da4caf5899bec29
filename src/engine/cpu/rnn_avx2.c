/* SPDX-License-Identifier: Apache-2.0 */
#if defined(__x86_64__)
#define SAC_SIMD_BITS 256
#include "engine/cpu/rnn_simd.h"
#endif
