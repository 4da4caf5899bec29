/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a matte for AVX2. */
#if defined(__x86_64__)
#define ROWS_TARGET __attribute__((target("avx2,fma")))
#include "vision/cpu/matte_rows_template.h"

const struct sac_matte_rows sac_matte_rows_avx2 = MATTE_ROWS;
#endif
