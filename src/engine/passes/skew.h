/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers for relative places become numbers for places by skewing: line i begins so much earlier
 * that what was relative to i is not. Exporters have no operator for that and spell it with Pads,
 * Reshapes and Slices (BoTNet's and HaloNet's rel_to_abs, the relative shift of Transformer-XL).
 * Where each number comes from is found by running these on numbers that count, not by their order,
 * so any spelling is known. */
#ifndef SAC_ENGINE_PASSES_SKEW_H
#define SAC_ENGINE_PASSES_SKEW_H

#include "engine/passes/pass.h"

/* y[n,i,k] = x[n lines + i, from - i + k], the last dims of x and y being `numbers` and
 * `columns`. */
struct sac_skew {
    struct sac_value *x;
    int64_t           lines, columns, numbers, from;
};
/* False: y is no such skew. */
bool sac_skew_of(struct sac_skew *s, struct sac_value *y);

#endif
