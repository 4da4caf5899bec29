/* SPDX-License-Identifier: Apache-2.0 */
/* The plain C rows of a matte: the reference. */
#define ROWS_TARGET
#include "vision/cpu/matte_rows_template.h"

const struct sac_matte_rows sac_matte_rows_ref = MATTE_ROWS;
