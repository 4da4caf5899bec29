/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAC_OBSERVE_STACKS_H
#define SAC_OBSERVE_STACKS_H

#include <saccade/stacks.h>

/* [n], the most frequent first; the sampler's own. */
const struct sac_stack *sac_stacks_list(const sac_stacks *stacks, int *n);

#endif
