/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a stage's time, or of the latency, is the machine's other work. On a machine that
 * others use too it follows their load, and says nothing of the stage: a run beside two compilers
 * took 71 ms for a network that takes 20, on the CPU time of 20. So what their load explains is no
 * anomaly. That the run is crowded out is one, and so is that it no longer keeps up: the frame rate
 * is judged as it is. */
#include <math.h>

#include "observe/monitor.h"

/* Others count once they use this much more of the CPUs than usual, or this much of them: where all
 * are busy, others that come take the place of those that give way, and of the run. */
static const double RISE_MIN = 0.05, USE_MIN = 0.25;

/* Sharing the CPUs with a few others explains this much; who waits for longer is crowded out. */
static const double WAITING_MAX = 4;

/* Beside work on the same core's other thread, in the same caches, at a lower clock: as much longer
 * without a wait (two compilers, 2 CPUs of an EPYC: 1.5 times, 2026-11-26), from this rise on. */
static const double SHARED_CORE = 0.6, SHARED_RISE = 0.25;

/* Of the figure with this rule: its usual value, and that of this sample. */
static bool compare(const sac_monitor *m, enum sac_alarm_rule rule, double *before, double *now)
{
    double recent;
    for (int i = 0; i < m->count; i++) {
        const struct sac_watched *w = m->watched[i];
        if (w->alarm.rule != rule)
            continue;
        *now = sac_series_at(&w->series, 0);
        return !isnan(*now) && sac_alarm_compare(&w->alarm, &w->series, &m->setup, before, &recent);
    }
    return false;
}

static double by_waiting(const sac_monitor *m)
{
    double before, now;
    if (!compare(m, SAC_ALARM_STRETCH, &before, &now) || before <= 0)
        return 1;
    return fmin(fmax(now / before, 1), WAITING_MAX);
}

double sac_monitor_slowed(const sac_monitor *m)
{
    double before, now, slowed = 1;
    if (compare(m, SAC_ALARM_OTHERS, &before, &now) && (now - before >= RISE_MIN || now >= USE_MIN))
        slowed = by_waiting(m) * (1 + SHARED_CORE * fmin(fmax(now - before, 0) / SHARED_RISE, 1));
    if (compare(m, SAC_ALARM_STOLEN, &before, &now) && now - before >= RISE_MIN && now < 1)
        slowed *= (1 - before) / (1 - now);
    return slowed;
}
