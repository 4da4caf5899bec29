/* SPDX-License-Identifier: Apache-2.0 */
/* The p99 of what a timer counted lately: over the samples that end now, as few as have
 * SAC_TAIL_COUNTS counts together, so that one odd value is not the p99; the latest sample alone
 * where it has that many, and no more than a minute. Kept are the timer's buckets at each sample,
 * so a new sample costs one walk over them.
 *
 *     struct sac_tail tail = {0};
 *     sac_tail_init(&tail, interval_ms);
 *     for (;; sleep(1))
 *         p99_ms = sac_tail_look(&tail, timers, id, &samples);
 *     sac_tail_finish(&tail);
 */
#ifndef SAC_OBSERVE_TAIL_H
#define SAC_OBSERVE_TAIL_H

#include <saccade/timer.h>

#include "base/base.h"
#include "observe/timers.h"

enum { SAC_TAIL_COUNTS = 100, SAC_TAIL_SAMPLES_MAX = 60 };

struct sac_tail {
    struct sac_timer_counts *ring; /* [capacity + 1] the latest samples; NULL: not yet needed */
    int                      capacity;
    int                      taken; /* samples so far; the first is that nothing was counted */
};

void sac_tail_init(struct sac_tail *tail, int interval_ms);
void sac_tail_finish(struct sac_tail *tail);
/* Take a sample. samples: over how many the p99 is. NAN: nothing was counted since the sample
 * before, or there is no memory. */
double sac_tail_look(struct sac_tail *tail, const sac_timers *timers, int id, int *samples);

#endif
