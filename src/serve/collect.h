/* SPDX-License-Identifier: Apache-2.0 */
/* The one batcher: items are collected into batches, several of which are under way at once. The
 * pipeline's inference thread stands on it, and so does a server (serve/server.h).
 *
 * A batch is collected until it is full, its time is over, no more items can come for now, or there
 * are enough of them for a device that has nothing to do; then it is begun, and landed: the thread
 * waits for its results and passes its items on. Batches that arrive while another is collected are
 * landed meanwhile. Batches land in the order in which they began. An item may be a mark, such as
 * the end of a stream: it counts for nothing and keeps its place behind the items before it.
 *
 * Where memory runs out, batches become smaller (shrink.c): a failed one is tried again in halves,
 * later ones stay small for a while, then twice as long, and for as long as memory is nearly full.
 *
 *     struct sac_collector c = {.calls = &calls, .user = me, .dev = dev, .most = 32, .depth = 2};
 *     sac_collector_run(&c);      // on one thread, until next_wait says that no more items come
 *     sac_collector_finish(&c);
 */
#ifndef SAC_SERVE_COLLECT_H
#define SAC_SERVE_COLLECT_H

#include "device/device.h"

enum { SAC_BATCHES_MAX = 8 }; /* under way at once */

struct sac_batch {
    void     **items; /* [count], marks between them */
    size_t     count, capacity;
    int        size;  /* what its items count for, all together */
    int        slot;  /* 0 to slots - 1, in turn */
    sac_result begun; /* the result of beginning it */
};

/* An item, as it comes. */
struct sac_collected {
    void   *item;
    int     size;     /* what it counts for; 0: a mark */
    int64_t since_ns; /* it has waited from then on; sac_time_ns */
};

/* The part of a failed batch that is being tried again: of the n items lined up those before `at`
 * are done, and the next `size` are tried together. */
struct sac_pieces {
    int at, n, size;
};

/* What the owner does; all on the collector's thread. Entries may be NULL where it is said. */
struct sac_collector_calls {
    /* The next item, of at most this size; as sac_queue_pop_wait. SAC_ERR_LIMIT: it is larger. */
    sac_result (*next_wait)(void *user, int size_max, int64_t timeout_ns,
                            struct sac_collected *out);
    /* true: it was dealt with. NULL: all are wanted. */
    bool (*refuses)(void *user, void *item);
    /* Every item that may be inside, in sizes: when all are in batches, no other comes. 0: any
     * number. NULL: the same. */
    int64_t (*room)(void *user);
    sac_result (*begin)(void *user, struct sac_batch *b);
    /* Would land return without waiting? */
    bool (*arrived)(void *user, const struct sac_batch *b);
    /* Wait for it, and pass its items on. It may call sac_collector_retry. */
    void (*land)(void *user, struct sac_batch *b);
    /* Pass on an item that is in no batch: a mark, or one that failed with res. */
    void (*alone)(void *user, void *item, sac_result res);

    /* For sac_collector_retry. Items are those that the owner has lined up, by their number. */
    sac_result (*again)(void *user, struct sac_batch *b, int first, int n); /* begin and land */
    void (*fail)(void *user, int item, sac_result res);
    /* Before the first try: p may lose items. NULL: none is lost. */
    void (*sort_out)(void *user, struct sac_batch *b, struct sac_pieces *p);
    /* true: the item is dealt with. NULL: none is. */
    bool (*skips)(void *user, int item);
    /* Not even one item finds memory. true: go on with what is left in p. NULL: the item fails. */
    bool (*find_room)(void *user, struct sac_batch *b, struct sac_pieces *p, sac_result res);
    /* What had no memory is tried again from now on. NULL: nobody asks. */
    void (*eased)(void *user);
    /* The limit of a batch has changed. NULL: nobody counts. */
    void (*resized)(void *user, int from, int to);
};

struct sac_collector {
    /* Written before the run, constant from then on. */
    const struct sac_collector_calls *calls;
    void                             *user;
    sac_device                       *dev;
    const char                       *unit; /* what is counted, for the log: "frames" */
    int                               most; /* a full batch */
    int     preferred;    /* from this size on a batch waits for no more; 0: until it is full */
    int     least;        /* the same while the device has nothing to do; 0: never */
    int     depth, slots; /* batches under way at once; the numbers that they get */
    int     idle;         /* with fewer of them the device has nothing to do; 0: 1 */
    int64_t timeout_ns;   /* how long an item waits for others */
    /* Items are taken no sooner than a batch of them may begin, so that those which come meanwhile
     * can go before them. */
    bool    late;
    int64_t small_ns; /* how long batches stay small without memory; then doubles */
    double  target;   /* and they do while more than this share of the memory is in use; 0: that is
                         not asked */

    /* The thread's own. */
    struct sac_batch ring[SAC_BATCHES_MAX + 1];
    int              first, under_way; /* the oldest batch, and the number of batches */
    unsigned         turn;
    int              limit;              /* of a batch now */
    int64_t          grow_ns, shrunk_ns; /* when to try larger ones; how long they stay small */
};

void sac_collector_run(struct sac_collector *c);
void sac_collector_finish(struct sac_collector *c);
/* Number n of the batches under way, from the oldest; the one being collected is behind them. */
struct sac_batch *sac_collector_batch(struct sac_collector *c, int n);

/* shrink.c. The n items lined up of a batch failed with res: afterwards each was done, failed or
 * dealt with. A fault other than memory leaves single items, so that an unusable one does not make
 * the others fail; the last try of each has set the sentence for its fault. */
void sac_collector_retry(struct sac_collector *c, struct sac_batch *b, int n, sac_result res);
/* Batches are no larger for a while. */
void sac_collector_shrink(struct sac_collector *c, int size);
/* Try larger ones again once they have been small for long enough. */
void sac_collector_grow(struct sac_collector *c);

#endif
