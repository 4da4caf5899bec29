/* SPDX-License-Identifier: Apache-2.0 */
/* The inference thread of a job: it opens the task, and drives it batch by batch.
 *
 * Batches are those of serve/collect.h: collected from all streams, begun (the task queues its
 * work), and landed. Where a device works beside the host, the next batch is begun before the last
 * one lands, so the device never waits; elsewhere begin does the work, and the batch lands at once.
 * The end of a lane is a mark in a batch, so each lane keeps its order.
 *
 * No thread stops at a fault: the item carries it to the consumer, which decides.
 *
 * At a start the thread does one order after the other, beside the thread that gives them:
 *
 *     sac_inference_prepare   the thread begins, and opens the engine's libraries
 *     sac_inference_open      it opens the task while the caller opens the device, then the inputs
 *     sac_inference_recall    an input finds no memory: the task closes, and waits for them
 *     sac_inference_start     the inputs are open: it opens the task if it is not, and infers
 */
#ifndef SAC_PIPELINE_INFERENCE_H
#define SAC_PIPELINE_INFERENCE_H

#include <semaphore.h>

#include "base/thread.h"
#include "pipeline/job.h"
#include "pipeline/task.h"
#include "serve/collect.h"

struct sac_inference {
    struct sac_job *job;
    /* Written before START is ordered, constant from then on. */
    int     batch_max;
    int     batch_limit;   /* frames in a full batch; fewer if fewer can be inside */
    int     depth;         /* batches under way at once */
    bool    eager;         /* while the device is idle no frame waits for a fuller batch */
    int64_t small_ns;      /* how long batches stay small without memory; then doubles */
    double  memory_target; /* and while more than this share of it is in use */

    pthread_t thread;
    bool      prepared, started, busy; /* written by the thread that starts and stops the job; busy:
                                          it gave an order and has not waited for its end */
    enum sac_inference_order {
        SAC_INFERENCE_OPEN,
        SAC_INFERENCE_RECALL,
        SAC_INFERENCE_START,
        SAC_INFERENCE_LEAVE /* without having inferred */
    } order;                /* written before ordered is posted; constant until done is */
    sem_t            ordered, done;
    struct sac_fault fault; /* of START, which found the task open or opened it */

    /* Written by the inference thread alone. */
    struct sac_collector collector;
    struct sac_item    **lined; /* [batch_max] items of a batch that have frames and no fault */
    /* Frames that the lanes which have not ended may have inside, all together; written by the
     * threads that start lanes, too. 0: there are no lanes, any number. */
    atomic_int_fast64_t room;
    /* Streams without memory: pushed ones from this number on, INT32_MAX: none; lanes by a flag of
     * their own, whose memory is waited for until relief_ns. */
    int     refused_from;
    int64_t relief_ns;
    /* What a lane was refused for. */
    sac_result shortage;
    char       short_of[256];
};

/* Chooses the batches; job->params and job->dev are known. */
sac_result sac_inference_create(struct sac_job *job, struct sac_inference **out);
/* These four by one thread. Starts the thread, or the first of the others does. */
sac_result sac_inference_prepare(struct sac_inference *inf);
/* Has it open the task, and does not wait: a fault is start's. */
sac_result sac_inference_open(struct sac_inference *inf);
/* After open: waits for it, and has it give back what it took. */
void sac_inference_recall(struct sac_inference *inf);
/* Has it begin its work once the task is open, and waits for that. */
sac_result sac_inference_start(struct sac_inference *inf);
/* What it was ordered is given up. */
void sac_inference_join(struct sac_inference *inf);
void sac_inference_destroy(struct sac_inference **inf);
/* A lane begins; before its first item. Its end is one of its items. */
void sac_inference_add_lane(struct sac_inference *inf, const struct sac_lane *lane);
/* Frames in a full batch; once started, as the task's network takes them. */
int sac_inference_batch_most(const struct sac_inference *inf);

#endif
