/* SPDX-License-Identifier: Apache-2.0 */
/* The cache on disk behind saccade/cache.h, and what the library itself needs of it: entries that
 * are written in pieces, and the bound of the plans (base/cache.h), whose files lie in the same
 * folder.
 *
 *     struct sac_cache_writer w = {0};
 *     sac_result res = sac_cache_begin(cache, &label, &w);
 *     sac_cache_add(&w, bytes, size);             // as often as needed
 *     res = sac_cache_commit(&w);                 // or sac_cache_abandon
 */
#ifndef SAC_BASE_DISK_CACHE_H
#define SAC_BASE_DISK_CACHE_H

#include <stdio.h>

#include <saccade/cache.h>

#include "base/sum.h"

struct sac_cache_writer {
    sac_cache     *cache;
    FILE          *file; /* NULL: there is nothing to write */
    char          *path, *beside;
    struct sac_sum sum;
    uint64_t       at, bytes; /* where the payload begins; what there is of it so far */
    int            fault;     /* errno of the first write that failed; 0: none did */
};
/* Errors as sac_cache_put. */
sac_result sac_cache_begin(sac_cache *cache, const struct sac_cache_label *label,
                           struct sac_cache_writer *out);
/* A fault is commit's. */
void sac_cache_add(struct sac_cache_writer *w, const void *bytes, size_t size);
/* Nothing more is worth adding: the disk is full, or the bound is passed. Commit then says which.
 */
bool sac_cache_is_lost(const struct sac_cache_writer *w);
/* The entry gets its name, and the bound is kept. On failure there is none. */
sac_result sac_cache_commit(struct sac_cache_writer *w);
/* Removes what was written. Accepts a zeroed writer, and one that was committed. */
void sac_cache_abandon(struct sac_cache_writer *w);

/* As sac_cache_get, but the bytes are not read for their sum: for an entry that is large beside
 * what is done with it, whose parts have sums of their own, and which is read from begin to end. */
sac_result sac_cache_map(sac_cache *cache, const char *key, sac_cached **out);
/* A part of it was read, and need not stay in this process's memory. It can be read again. Any
 * thread. */
void sac_cached_drop_pages(const void *bytes, size_t size);
/* The entry of a key, if there is one. */
void sac_cache_remove(sac_cache *cache, const char *key);

/* Removes the plans and kernels least recently used from the user's cache folder until they take
 * no more than this; 0: 4 GiB. Any thread. */
void sac_cache_bound_plans(uint64_t bytes_max);
/* A plan was read: it is the latest used. */
void sac_cache_touch(const char *path);

#endif
