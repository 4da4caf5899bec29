/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/tail.h"

#include <math.h>

enum { MINUTE_MS = 60 * 1000 };

void sac_tail_init(struct sac_tail *t, int interval_ms)
{
    *t = (struct sac_tail){
        .capacity = SAC_CLAMP(MINUTE_MS / interval_ms, 1, (int)SAC_TAIL_SAMPLES_MAX), .taken = 1};
}

void sac_tail_finish(struct sac_tail *t)
{
    sac_free(t->ring);
    *t = (struct sac_tail){0};
}

static struct sac_timer_counts *sample_of(const struct sac_tail *t, int index)
{
    return &t->ring[index % (t->capacity + 1)];
}

double sac_tail_look(struct sac_tail *t, const sac_timers *timers, int id, int *samples)
{
    *samples = 1;
    if (!t->ring && !(t->ring = sac_calloc((size_t)t->capacity + 1, sizeof *t->ring)))
        return NAN;
    struct sac_timer_counts *now = sample_of(t, t->taken);
    const int                kept = SAC_MIN(t->taken, t->capacity); /* before this one */
    sac_timer_get_counts(timers, id, now);
    const struct sac_timer_counts *before = sample_of(t, t->taken - 1);
    const bool                     fresh = now->count != before->count;
    for (int n = 2; n <= kept && now->count - before->count < SAC_TAIL_COUNTS; n++) {
        before = sample_of(t, t->taken - n);
        *samples = n;
    }
    t->taken++;
    return fresh ? sac_timer_percentile_since(now, before, 99) : NAN;
}
