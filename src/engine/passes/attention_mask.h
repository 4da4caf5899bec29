/* SPDX-License-Identifier: Apache-2.0 */
/* What is added to the scores of attention.c, gathered into one mask [period, heads, queries, keys]
 * of the batch's first entries, after which it repeats. */
#ifndef SAC_ENGINE_PASSES_ATTENTION_MASK_H
#define SAC_ENGINE_PASSES_ATTENTION_MASK_H

#include "engine/passes/pass.h"

struct sac_mask_sum {
    int64_t heads, queries, keys, period; /* period 0: nothing was added yet */
    float  *at;                           /* freed by sac_mask_finish */
};

/* Adds factor times a constant that is broadcast over `scores`, whatever dims the scores have
 * there. False: it does not repeat with the batch, or is too large. */
bool sac_mask_add(struct sac_mask_sum *m, const struct sac_value *constant,
                  const struct sac_value *scores, double factor);
/* The constant, with dims of one where all entries are the same; NULL with SAC_OK: all are zero. */
sac_result sac_mask_value(struct sac_graph *g, struct sac_mask_sum *m, struct sac_value **out);
void       sac_mask_finish(struct sac_mask_sum *m);

#endif
