/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the pool share: pool.c allocates and frees, live.c lists who holds what,
 * kinds.c what was held at most. */
#ifndef SAC_DEVICE_POOL_H
#define SAC_DEVICE_POOL_H

#include "device/uses.h"

enum {
    SAC_POOL_CLASS_BYTES_MIN = 256,
    SAC_POOL_CLASS_BITS_MIN = 8,
    SAC_POOL_CLASSES = (48 - SAC_POOL_CLASS_BITS_MIN) * 4, /* to 256 TiB: more is refused before it
                                                              gets here */
    SAC_POOL_OWNER_BYTES = 48,
    SAC_POOL_KINDS = 256
};

/* Buffers of one owner and size class. */
struct sac_pool_kind {
    char                   owner[SAC_POOL_OWNER_BYTES];
    enum sac_memory_use    use;         /* of the first */
    size_t                 bytes;       /* the most that was asked for */
    uint64_t               class_bytes; /* taken by one */
    uint64_t               live, most;  /* in use, now and at most */
    uint64_t               requests;    /* so far */
    int64_t                first_ns, last_ns;
    struct sac_tensor_desc desc; /* of the last that was described */
    /* The watcher's: how many were old at its last look, and at the one before; at how many looks
     * there were more since there were fewer; how many count as leaks; how many it last told of. */
    uint64_t old, old_last, rises, leaks, told;
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
    int                     kind; /* its row in the pool's; -1: none */
    /* The live list's remarks. */
    int64_t                born_ns;
    bool                   keep;
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
    int64_t               begun_ns;
    struct sac_pool_kind  kind[SAC_POOL_KINDS];
    uint32_t              kind_hash[SAC_POOL_KINDS]; /* of their owners and sizes, side by side */
    int                   kind_count;
};

/* The buffer joins the live list, leaves it, or is described; under the lock. */
void sac_pool_kind_enter(struct sac_buffer_pool *pool, struct sac_buffer *buf);
void sac_pool_kind_leave(struct sac_buffer_pool *pool, const struct sac_buffer *buf);
void sac_pool_kind_describe(struct sac_buffer_pool *pool, const struct sac_buffer *buf);

/* The thread that names kinds of which ever more are held for longer than params.leak_age_s; begun
 * when that is more than 0. */
sac_result sac_pool_watch(struct sac_buffer_pool *pool);
void       sac_pool_unwatch(struct sac_buffer_pool *pool);

#endif
