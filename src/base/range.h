/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges for NVIDIA's profilers: what a thread does between push and pop has a name in their
 * timeline. The library of NVTX is opened at run time; without it a push costs a load and a
 * predicted branch. */
#ifndef SAC_BASE_RANGE_H
#define SAC_BASE_RANGE_H

#include "base/base.h"

struct sac_range_ops {
    int (*push)(const char *name);
    int (*pop)(void);
};
extern _Atomic(const struct sac_range_ops *) sac_range_ops; /* NULL: no profiler */

/* Look for the library, once in a process; true when it is there. Any thread. */
bool sac_ranges_open(void);

/* Pairs nest; both on one thread. */
static inline void sac_range_push(const char *name)
{
    const struct sac_range_ops *ops = atomic_load_explicit(&sac_range_ops, memory_order_acquire);
    if (ops)
        ops->push(name);
}

static inline void sac_range_pop(void)
{
    const struct sac_range_ops *ops = atomic_load_explicit(&sac_range_ops, memory_order_acquire);
    if (ops)
        ops->pop();
}

#endif
