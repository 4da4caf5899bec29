/* SPDX-License-Identifier: Apache-2.0 */
/* Which channels of a map its readers take. */
#ifndef SAC_ENGINE_PASSES_TAKEN_H
#define SAC_ENGINE_PASSES_TAKEN_H

#include "engine/passes/pass.h"

struct sac_taken {
    struct sac_value *value; /* what is taken out */
    int64_t           first, end;
    bool              whole; /* of all samples and pixels */
};

/* What all readers of v, Slices and Splits, take of its channels; their number, 0: some reader may
 * see any of them. */
int sac_taken_channels(const struct sac_value *v, struct sac_taken *out, int max);

#endif
