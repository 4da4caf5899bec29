/* SPDX-License-Identifier: Apache-2.0 */
/* What this process may use of the machine's memory. */
#ifndef SAC_BASE_CGROUP_H
#define SAC_BASE_CGROUP_H

#include <stdint.h>

/* Bytes: the machine's, or less where the control group of the process, or one above it, says so.
 * UINT64_MAX: unknown. */
uint64_t sac_memory_allowed(void);

/* The least limit of the groups named in `list` (/proc/self/cgroup) and of those above them, in the
 * hierarchies under `root` (/sys/fs/cgroup), of version 1 and 2. UINT64_MAX: none. */
uint64_t sac_cgroup_memory_limit(const char *list, const char *root);

#endif
