/* SPDX-License-Identifier: Apache-2.0 */
/* Places buffers of known lifetimes in one piece of memory so that buffers alive at the same time
 * never overlap. */
#ifndef SAC_ENGINE_PLAN_LIFETIMES_H
#define SAC_ENGINE_PLAN_LIFETIMES_H

#include <stddef.h>

enum { SAC_ACTIVATION_ALIGN = 64 }; /* a cache line, and the widest vector register */

struct sac_lifetime {
    size_t bytes;       /* 0: needs no memory */
    int    first, last; /* steps between which it is alive, both included */
    size_t offset;      /* out: a multiple of SAC_ACTIVATION_ALIGN */
};

/* Returns the bytes of all, or (size_t)-1 when memory ran out or the sum overflows.
 *
 * Source  greedy by size: the largest first, each into the lowest gap that is free over its life
 *         (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference",
 *         2020). */
size_t sac_lifetimes_place(struct sac_lifetime *items, size_t count);

#endif
