/* SPDX-License-Identifier: Apache-2.0 */
/* Places buffers of known lifetimes in one piece of memory so that buffers alive at the same time
 * never overlap. */
#ifndef SAC_ENGINE_PLAN_LIFETIMES_H
#define SAC_ENGINE_PLAN_LIFETIMES_H

#include <stdbool.h>
#include <stddef.h>

enum { SAC_ACTIVATION_ALIGN = 64 }; /* a cache line, and the widest vector register */

struct sac_lifetime {
    size_t bytes;       /* 0: needs no memory */
    int    first, last; /* steps between which it is alive, both included */
    size_t offset;      /* out: a multiple of SAC_ACTIVATION_ALIGN */
};

/* Returns the bytes of all, or (size_t)-1 when memory ran out or the sum overflows.
 * together  says of two items whether they may be alive at the same time; NULL: their steps do,
 *           which run one after the other.
 *
 * Source  greedy by size: the largest first, each into the lowest gap that is free over its life
 *         (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference",
 *         2020). */
size_t sac_lifetimes_place(struct sac_lifetime *items, size_t count,
                           bool (*together)(const void *user, size_t a, size_t b),
                           const void *user);

#endif
