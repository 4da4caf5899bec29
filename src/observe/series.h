/* SPDX-License-Identifier: Apache-2.0 */
/* A figure over time: the samples of the last five minutes, and points of the whole time, which
 * grow longer as it does. NAN is a sample that could not be taken. */
#ifndef SAC_OBSERVE_SERIES_H
#define SAC_OBSERVE_SERIES_H

#include <saccade/monitor.h>

#include "base/base.h"

struct sac_series {
    float *ring;     /* [capacity] the latest samples */
    int    capacity; /* of five minutes */
    int    count;    /* samples so far */
    double least, most;
    float  history[SAC_MONITOR_HISTORY_MAX];
    int    history_count, history_step; /* whole points; samples of each */
    double pending;                     /* the point that is being made: the sum of what is known */
    int    pending_count, pending_known;
};

/* false: no memory. */
bool sac_series_init(struct sac_series *series, int interval_ms);
void sac_series_finish(struct sac_series *series);
void sac_series_add(struct sac_series *series, double value);
/* The sample before the latest `ago` ones; NAN: not known, or no longer. */
float sac_series_at(const struct sac_series *series, int ago);
/* Of the known ones among the n that end before the latest `ago`; NAN: none. */
double sac_series_mean(const struct sac_series *series, int ago, int n);
double sac_series_least(const struct sac_series *series, int ago, int n);
/* Median and standard deviation, the latter from the median distance to the median, so that a few
 * odd samples count for nothing. Of up to 60 of these samples, evenly chosen. Returns how many are
 * known. */
int  sac_series_usual(const struct sac_series *series, int ago, int n, double *median,
                      double *deviation);
void sac_series_get(const struct sac_series *series, int interval_ms,
                    struct sac_monitor_figure *out);

#endif
