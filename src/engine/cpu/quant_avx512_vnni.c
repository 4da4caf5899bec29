/* SPDX-License-Identifier: Apache-2.0 */
#if defined(__x86_64__)
#define SAC_SIMD_BITS 512
#define SAC_SIMD_VNNI 1
#include "engine/cpu/quant_simd.h"
#endif
