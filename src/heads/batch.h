/* SPDX-License-Identifier: Apache-2.0 */
/* A batch under way: cut into runs of the network's buckets, queued, waited for, with its times.
 * What is queued behind a run, and what is taken once it is done, is the owner's.
 *
 *     sac_batch_begin(&b, &slot, n);
 *     for (int i = 0; i < slot.part_count && res == SAC_OK; i++) {
 *         res = sac_batch_run(&b, &slot, &slot.parts[i], jobs);
 *         ... queue what reads slot.parts[i].bucket->out on b.behind ...
 *         res = sac_batch_mark_end(&b, &slot.parts[i]);
 *     }
 *     res = sac_batch_queued(&b, &slot, res);
 *     ...
 *     res = sac_batch_await(&b, &slot);
 */
#ifndef SAC_HEADS_BATCH_H
#define SAC_HEADS_BATCH_H

#include "heads/buckets.h"

/* What the host did when for a batch, and the device's own times. Monotonic clock; 0: not
 * measured. */
struct sac_batch_times {
    /* begin: preprocessing, the network and the head of all parts, laid end to end */
    int64_t begun_ns, prepared_ns, queued_ns, decoded_ns;
    int64_t waited_ns, arrived_ns, ended_ns; /* end: from waited to arrived the thread slept */
    int64_t gpu_ns[SAC_MARK_STAGES];         /* preprocess, network, head; 0 where not timed */
    /* when the device began with each, on the host's clock; 0: not known */
    int64_t gpu_begun_ns[SAC_MARK_STAGES];
};

/* How long each stage took the host. */
static inline struct sac_run_times sac_batch_run_times(const struct sac_batch_times *t)
{
    return (struct sac_run_times){
        .begun_ns = t->begun_ns,
        .preprocess_ns = t->prepared_ns - t->begun_ns,
        .inference_ns = t->queued_ns - t->prepared_ns + t->arrived_ns - t->waited_ns,
        .head_ns = t->decoded_ns - t->queued_ns + t->ended_ns - t->arrived_ns};
}

/* A run of the network within a batch. */
struct sac_batch_part {
    struct sac_bucket *bucket;
    int                first, n; /* images of the batch */
    struct sac_marks   marks;    /* made on first use */
};

struct sac_batch_slot {
    int                    size; /* images that it has room for */
    int                    part_count;
    struct sac_batch_part *parts; /* [size] */
    struct sac_event      *done;
    struct sac_run_times   spent; /* of the host, by the runs so far */
    struct sac_batch_times times;
};

sac_result sac_batch_open(struct sac_buckets *b, struct sac_batch_slot *slot, int size);
/* Nothing of it is under way; half-built too. */
void sac_batch_close(struct sac_buckets *b, struct sac_batch_slot *slot);
/* Cut n images into parts. */
void sac_batch_begin(struct sac_buckets *b, struct sac_batch_slot *slot, int n);
/* Queue a part's run; jobs: of the whole batch. */
sac_result sac_batch_run(struct sac_buckets *b, struct sac_batch_slot *slot,
                         struct sac_batch_part *part, const struct sac_preprocess_job *jobs);
/* What the owner queued behind it ends here. */
sac_result sac_batch_mark_end(struct sac_buckets *b, const struct sac_batch_part *part);
/* All of the batch is queued; or res, a fault, came between: then what is queued was waited for, as
 * it reads the frames. Returns res, or a fault of its own. */
sac_result sac_batch_queued(struct sac_buckets *b, struct sac_batch_slot *slot, sac_result res);
bool       sac_batch_arrived(const struct sac_buckets *b, const struct sac_batch_slot *slot);
/* Wait until it has arrived, and read the marks. */
sac_result sac_batch_await(struct sac_buckets *b, struct sac_batch_slot *slot);

#endif
