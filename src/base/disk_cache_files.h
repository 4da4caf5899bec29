/* SPDX-License-Identifier: Apache-2.0 */
/* The files in a cache's folder: how one of ours is known, and the bound. A file is ours when its
 * name has the form that we give, and it begins as such files do:
 *
 *     32 digits .entry          an entry (struct sac_entry_head, its label, the payload)
 *     32 digits .entry.PID.N.part   one that is being written; after a day: left by a crash
 *     32 digits .plan           plans of a network (engine/plan/planbook.h)
 *     cudnn-16 digits .json     kernels that cuDNN made (engine/cuda/products/cudnn_store.c) */
#ifndef SAC_BASE_DISK_CACHE_FILES_H
#define SAC_BASE_DISK_CACHE_FILES_H

#include "base/disk_cache.h"

#define SAC_ENTRY_MAGIC      "saccade entry 1"
#define SAC_ENTRY_SUFFIX     ".entry"
#define SAC_ENTRY_UNFINISHED ".part"
enum { SAC_ENTRY_KEY_MAX = 64 << 10, SAC_ENTRY_TEXT_MAX = 4096 };

/* As it lies at the begin of the file, in the byte order of the machine that wrote it: a sum of
 * another order does not fit. Behind it are key, kind, clip and model, each with a zero behind it,
 * and zeros up to `at`. */
struct sac_entry_head {
    char     magic[16];
    uint64_t sum[2]; /* of all behind the head */
    uint64_t at, bytes;
};

struct sac_cache {
    sac_context *ctx;
    char        *folder;
    uint64_t     bytes_max;
};

/* Bits: which files. */
enum { SAC_FILES_ENTRIES = 1, SAC_FILES_PLANS = 2 };
/* Removes the least recently used until the others take no more than this; 0: none. What can't be
 * removed stays. */
void sac_cache_bound(const char *folder, unsigned which, uint64_t bytes_max);

#endif
