/* SPDX-License-Identifier: Apache-2.0 */
/* An embedder from inside. On a device whose memory is not the host's (embedder_device.c) the crops of
 * many frames are queued at once, and the rows stay there; nobody waits. */
#ifndef SAC_REID_EMBEDDER_H
#define SAC_REID_EMBEDDER_H

#include "heads/buckets.h"
#include "reid/features.h"

enum { SAC_EMBEDDER_SLOTS = 4 }; /* calls whose marks are kept until they can be read */

/* A call under way. */
struct sac_embedder_slot {
    struct sac_marks *marks; /* [mark_capacity], one a run of the network; made on first use */
    size_t            mark_count, mark_capacity;
};

struct sac_embedder_device {
    struct sac_buckets         buckets;
    struct sac_preprocess_job *jobs;
    size_t                     jobs_capacity;
    sac_frame                **frames; /* of the public run's boxes */
    size_t                     frames_capacity;
    bool                       timed;
    struct sac_embedder_slot   slots[SAC_EMBEDDER_SLOTS];
    uint64_t                   begun, taken; /* calls; those whose marks were read */
    struct sac_feature_store  *store; /* NULL: every call takes memory from the pool */
};

struct sac_embedder {
    sac_device                *dev;
    sac_model                 *model;
    struct sac_model_contract  contract;
    int                        dim, batch;
    struct sac_head_outputs    outputs;
    struct sac_preprocess_job *jobs; /* [batch] */
    struct sac_run_times       times;
    struct sac_embedder_device *device; /* NULL: the device's memory is the host's */
};

/* embedder_device.c; only where emb->device, which open makes. */
sac_result sac_embedder_device_open(struct sac_embedder *emb);
void       sac_embedder_device_close(struct sac_embedder *emb); /* waits for what is queued */
sac_result sac_embedder_warm_up(struct sac_embedder *emb);
void       sac_embedder_time(struct sac_embedder *emb, bool on);
/* Memory for the rows of up to so many boxes a call, less where there is none, so that calls take none. */
sac_result sac_embedder_reserve(struct sac_embedder *emb, size_t boxes);
/* Queue the embeddings of n >= 1 boxes, boxes[i] of frames[i]; those of one frame stand together. Frames
 * may be released at once: their planes stay until the work is done.
 * wait     for earlier rows to be given back, when all of what was reserved is out: as sac_feature_store_take.
 * out      a reference of the caller's. */
sac_result sac_embedder_queue(struct sac_embedder *emb, sac_frame *const *frames,
                              const struct sac_detection *boxes, int n, bool wait, struct sac_features **out);
/* The device's own time for an earlier call, each once, in order; false: none is done that was timed. */
bool       sac_embedder_take_gpu_ns(struct sac_embedder *emb, int64_t *ns);
/* The public run. */
sac_result sac_embedder_run_there(struct sac_embedder *emb, const sac_frame *frame,
                                  const struct sac_detection *boxes, size_t n, float *out);

#endif
