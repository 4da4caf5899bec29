/* SPDX-License-Identifier: Apache-2.0 */
/* The finishing thread of a job: it takes inferred items in waves, at most one of each stream, lets
 * the task finish them (a tracker, smoothing), and passes them on to their sinks. A wave is one
 * call of the task because its work on a device costs one round trip, however many streams take
 * part; each stream's items stay in order. */
#ifndef SAC_PIPELINE_FINISH_H
#define SAC_PIPELINE_FINISH_H

#include "pipeline/job.h"

enum { SAC_WAVE_MAX = 64 };

/* Written by the finishing thread alone, but for the first three: by the thread that starts and
 * stops the job. */
struct sac_finishing {
    struct sac_job *job;
    pthread_t       thread;
    bool            started;
    /* A wave in queue order, including items with a fault and the ends of lanes. */
    struct sac_item *item[SAC_WAVE_MAX];
    int              count, max;
    struct sac_item *later[SAC_WAVE_MAX]; /* for later waves, in queue order */
    int              later_count;
    bool closed; /* items of the push form, which have no lane, keep their order among all streams
                  */
};

sac_result sac_finishing_create(struct sac_job *job, struct sac_finishing **out);
sac_result sac_finishing_start(struct sac_finishing *f);
void       sac_finishing_join(struct sac_finishing *f);
void       sac_finishing_destroy(struct sac_finishing **f);

#endif
