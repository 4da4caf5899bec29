/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of the pool share: pool.c allocates and frees, live.c lists who holds
 * what. */
#ifndef SAC_DEVICE_POOL_H
#define SAC_DEVICE_POOL_H

#include "device/uses.h"

enum {
    SAC_POOL_CLASS_BYTES_MIN = 256,
    SAC_POOL_CLASS_BITS_MIN = 8,
    SAC_POOL_CLASSES = (48 - SAC_POOL_CLASS_BITS_MIN) * 4, /* to 256 TiB: more is refused before it
                                                              gets here */
    SAC_POOL_OWNER_BYTES = 48
};

struct sac_buffer {
    sac_refcount            refs;
    struct sac_buffer_pool *pool;
    void                   *data;        /* NULL: memory that others took, see sac_buffer_reserve */
    size_t                  bytes;       /* asked for */
    size_t                  class_bytes; /* taken */
    int                     class_index;
    struct sac_buffer      *next, *prev; /* in the live list, or next in an idle list */
    uint64_t                idle_request, idle_interval, idle_return; /* when it came back */
    struct sac_uses         uses;
    bool                    reused; /* at least once */
    bool                    own;    /* the device's: it does not hold the device open */
    enum sac_memory_use     use;
    /* The live list's remarks. */
    int64_t                born_ns;
    bool                   keep, reported;
    char                   owner[SAC_POOL_OWNER_BYTES];
    struct sac_tensor_desc desc; /* dtype SAC_DTYPE_NONE: not described */
};

struct sac_buffer_pool {
    sac_device *dev;
    const char *where; /* in sentences: "cuda:0", "page-locked host memory" */
    sac_result (*alloc)(struct sac_device *dev, size_t bytes, void **out);
    void (*free)(struct sac_device *dev, void *p);
    uint64_t              limit_bytes, buffers_max; /* 0: none */
    pthread_mutex_t       lock;                     /* guards all below */
    pthread_cond_t        wake;                     /* the watcher should end */
    bool                  quit, watching;
    pthread_t             watcher;
    struct sac_buffer    *live;
    struct sac_buffer    *idle[SAC_POOL_CLASSES];
    uint64_t              buffers;             /* in use and idle; without those reserved */
    uint64_t              requests, intervals; /* an interval is params.trim_frames frames */
    struct sac_pool_stats stats;
    uint64_t              use_live[SAC_MEMORY_USE_COUNT], use_peak[SAC_MEMORY_USE_COUNT];
};

/* The thread that names buffers held for params.leak_age_s; begun when that is more than 0. */
sac_result sac_pool_watch(struct sac_buffer_pool *pool);
void       sac_pool_unwatch(struct sac_buffer_pool *pool);

#endif
