/* SPDX-License-Identifier: Apache-2.0 */
/* A timer's histogram, for what is computed between two looks at it. */
#ifndef SAC_OBSERVE_TIMERS_H
#define SAC_OBSERVE_TIMERS_H

#include <stdint.h>

#include <saccade/timer.h>

enum {
    SAC_TIMER_SUB_BITS = 5,
    SAC_TIMER_SUB = 1 << SAC_TIMER_SUB_BITS, /* buckets to a power of two */
    SAC_TIMER_POWERS = 43, /* to 2^(5 + 42) ns, 39 hours; longer ones count as that */
    /* values under SAC_TIMER_SUB have a bucket each */
    SAC_TIMER_BUCKETS = SAC_TIMER_SUB * (SAC_TIMER_POWERS + 1)
};

/* They pass over from 2^32 - 1 to 0, which the difference of two does not feel. */
struct sac_timer_counts {
    uint32_t bucket[SAC_TIMER_BUCKETS];
    uint32_t count; /* of all */
};

/* What it has counted so far; of no such timer, nothing. Any thread. */
void sac_timer_get_counts(const sac_timers *timers, int id, struct sac_timer_counts *out);
/* Of what was counted since `before`, in milliseconds: the smallest value that so many per cent do
 * not exceed (nearest rank), up to 1.6 % off; NAN: there is none. */
double sac_timer_percentile_since(const struct sac_timer_counts *now,
                                  const struct sac_timer_counts *before, int percent);

#endif
