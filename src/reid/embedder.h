/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of an embedder. The crops of many frames are queued at once, the rows stay in the
 * device's memory, and no thread waits. */
#ifndef SAC_REID_EMBEDDER_H
#define SAC_REID_EMBEDDER_H

#include "heads/buckets.h"
#include "reid/embeddings.h"

enum { SAC_EMBEDDER_SLOTS = 4 }; /* calls whose marks are kept until they can be read */

/* A call in flight. */
struct sac_embedder_slot {
    struct sac_marks *marks; /* [mark_capacity], one per run of the network; created on first use */
    size_t            mark_count, mark_capacity;
};

struct sac_embedder {
    sac_device                 *dev;
    sac_model                  *model;
    struct sac_model_contract   contract;
    int                         dim, batch;
    struct sac_buckets          buckets;
    struct sac_run_times        times; /* of the calls since the latest public run began */
    struct sac_preprocess_job  *jobs;
    size_t                      jobs_capacity;
    sac_frame                 **frames; /* of the public run's boxes */
    size_t                      frames_capacity;
    bool                        timed;
    struct sac_embedder_slot    slots[SAC_EMBEDDER_SLOTS];
    uint64_t                    begun, taken; /* number of calls; of those whose marks were read */
    struct sac_embedding_store *store;        /* NULL: every call allocates from the pool */
};

sac_result sac_embedder_warm_up(struct sac_embedder *emb);
void       sac_embedder_time(struct sac_embedder *emb, bool on);
/* Reserves memory for the rows of up to this many boxes per call, or less where memory is short, so
 * that calls allocate none. */
sac_result sac_embedder_reserve(struct sac_embedder *emb, size_t boxes);
/* Queues the embeddings of n >= 1 boxes, boxes[i] of frames[i]; boxes of one frame are adjacent.
 * Frames may be released at once: their planes are kept until the work is done.
 * wait     whether to wait for earlier rows to be released when all reserved rows are in use: as
 *          sac_embedding_store_take.
 * out      a reference of the caller's. */
sac_result sac_embedder_queue(struct sac_embedder *emb, sac_frame *const *frames,
                              const struct sac_detection *boxes, int n, bool wait,
                              struct sac_embeddings **out);
/* The device's time for an earlier call, each once, in order; false: no timed call is done. */
bool sac_embedder_take_gpu_ns(struct sac_embedder *emb, int64_t *ns);

#endif
