/* SPDX-License-Identifier: Apache-2.0 */
/* What reaches a profiler: the names of ranges as they begin, and a minus where one ends. */
#ifndef SAC_TESTS_RANGES_H
#define SAC_TESTS_RANGES_H

#include <stdio.h>
#include <string.h>

#include "base/range.h"

static char test_ranges[4096];

static int test_range_add(const char *mark, const char *name)
{
    const size_t used = strlen(test_ranges);
    return snprintf(test_ranges + used, sizeof test_ranges - used, "%s%s", mark, name);
}

static int test_range_push(const char *name)
{
    return test_range_add("+", name);
}

static int test_range_pop(void)
{
    return test_range_add("-", "");
}

/* From now on they are written down; false: no longer. One thread alone. */
static inline void test_ranges_watch(bool on)
{
    static const struct sac_range_ops ops = {test_range_push, test_range_pop};
    test_ranges[0] = '\0';
    atomic_store(&sac_range_ops, on ? &ops : NULL);
}

#endif
