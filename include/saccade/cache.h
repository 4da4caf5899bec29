/* SPDX-License-Identifier: Apache-2.0 */
/* A cache on disk: what took long to compute and may be deleted at any moment, by a key that names
 * all that it depends on. A pipeline keeps detections and embeddings there, on request
 * prepared frames (disk_cache and disk_cache_frames in saccade/pipeline.h), networks their plans; a
 * program can keep results of its own beside them:
 *
 *     sac_cache  *cache = NULL;
 *     sac_cached *found = NULL;
 *     sac_result  res = sac_cache_open(ctx, NULL, &cache);
 *     res = sac_cache_get(cache, "edges of in.mp4, threshold 3", &found);
 *     if (res == SAC_OK)
 *         use(sac_cached_bytes(found, &size), size);
 *     else if (res == SAC_AGAIN)                       // there is none: compute it, and
 *         res = sac_cache_put(cache, &label, bytes, size);
 *     sac_cached_release(&found);
 *     sac_cache_close(&cache);
 *
 * An entry is a file of its own. It appears under its name when it is whole, so a run that breaks
 * off leaves none; one that was damaged since is recognised by its sum, logged, and counts as
 * absent. Several processes may use one folder: of two that put the same key the last one stays.
 * Files that no saccade wrote are never touched. docs/cache.md describes what a pipeline keeps. */
#ifndef SACCADE_CACHE_H
#define SACCADE_CACHE_H

#include <stddef.h>
#include <stdint.h>
#include <saccade/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sac_cache  sac_cache;
typedef struct sac_cached sac_cached;

struct sac_cache_params {
    const char *folder; /* made when it is missing; NULL (default): SACCADE_CACHE, else "saccade" in
                           the user's cache folder */
    /* Bound of all entries that sac_cache_put and pipelines keep in the folder, in bytes: those
     * least recently used are removed. 0: none; default 10 GiB. Plans have a bound of their own
     * (struct sac_device_params). */
    uint64_t bytes_max;
    uint64_t reserved[8]; /* 0 */
};
SAC_API struct sac_cache_params sac_cache_params_default(void);

/* params   NULL: the defaults.
 * out      owned by the caller, closed with sac_cache_close.
 * Threads  a cache may be used by any number of threads at once.
 * Errors   SAC_ERR_ARG, SAC_ERR_IO (no such folder, and it can't be made), SAC_ERR_MEMORY. */
SAC_API sac_result sac_cache_open(sac_context *ctx, const struct sac_cache_params *params,
                                  sac_cache **out);
/* What was got from it stays valid. */
SAC_API void sac_cache_close(sac_cache **cache);

/* What an entry says of itself. Texts are borrowed for the call and copied; of the key up to 64
 * KiB, of the others up to 4 KiB are allowed. */
struct sac_cache_label {
    const char *key;         /* all that the entry depends on; entries with other keys are others */
    const char *kind;        /* one word of what it is, for lists: "boxes"; NULL: none */
    const char *clip;        /* what it was made of; NULL: none */
    const char *model;       /* what it was made with; NULL: none */
    uint64_t    reserved[8]; /* 0 */
};

/* The entry of a key, checked whole; it now counts as just used.
 * out      owned by the caller, released with sac_cached_release; it stays readable when the entry
 *          is replaced or removed.
 * Errors   SAC_AGAIN when there is none, or a damaged one (a warning is logged); SAC_ERR_ARG;
 *          SAC_ERR_MEMORY. */
SAC_API sac_result sac_cache_get(sac_cache *cache, const char *key, sac_cached **out);
/* The bytes of an entry, from an address that 16 divides; NULL for 0 bytes. Borrowed from it. Any
 * thread. */
SAC_API const void *sac_cached_bytes(const sac_cached *cached, size_t *size);
SAC_API void        sac_cached_release(sac_cached **cached);
/* Keep size bytes under the label's key, in place of what was there, and remove the entries least
 * recently used while all are over the bound.
 * Errors   SAC_ERR_ARG, SAC_ERR_IO (the disk is full, no permission), SAC_ERR_LIMIT (it is larger
 *          than the bound), SAC_ERR_MEMORY; there is then no entry, or the former one. */
SAC_API sac_result sac_cache_put(sac_cache *cache, const struct sac_cache_label *label,
                                 const void *bytes, size_t size);

/* One file of the folder that is saccade's. */
struct sac_cache_entry {
    const char *file;  /* its name within the folder */
    const char *kind;  /* of its label; "plan" and "kernels" are what networks keep for a GPU */
    const char *clip;  /* of its label; "" where it has none */
    const char *model; /* the same */
    uint64_t    bytes; /* of the file */
    double      age_s; /* seconds since it was last used or made */
    uint64_t    reserved[8]; /* 0 */
};
/* Call fn with each, the latest used first; borrowed for the call. Other files are not looked at.
 * Errors   SAC_ERR_ARG, SAC_ERR_IO, SAC_ERR_MEMORY. */
SAC_API sac_result sac_cache_list(sac_cache *cache,
                                  void (*fn)(void *user, const struct sac_cache_entry *entry),
                                  void *user);
/* Remove the entries that were not used for older_s seconds; 0: all. Runs that read one go on.
 * removed, bytes  how many, and what they took; may be NULL.
 * Errors   SAC_ERR_ARG, SAC_ERR_IO (one could not be removed; the others are), SAC_ERR_MEMORY. */
SAC_API sac_result sac_cache_clear(sac_cache *cache, double older_s, int *removed, uint64_t *bytes);
/* The folder; borrowed. */
SAC_API const char *sac_cache_folder_of(const sac_cache *cache);

#ifdef __cplusplus
}
#endif
#endif
