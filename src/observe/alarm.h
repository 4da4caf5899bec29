/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at a figure after each sample: whether it stays over a limit, has left its recent values,
 * or only grows. Each begins once and ends once, with a gap between the two, so that a figure at
 * the edge is not reported again and again. */
#ifndef SAC_OBSERVE_ALARM_H
#define SAC_OBSERVE_ALARM_H

#include "observe/series.h"

/* What is looked for in a figure. */
enum sac_alarm_rule {
    SAC_ALARM_NOTHING, /* it is kept, and may be another one's cause */
    SAC_ALARM_OTHERS,  /* the same: the part of the CPUs that other programs use */
    SAC_ALARM_STOLEN,  /* the same: the part that the machine's host gives away */
    SAC_ALARM_STRETCH, /* the same: how many times as long work takes for want of a CPU */
    SAC_ALARM_LOAD,    /* of the last minute: a moment's is no news */
    SAC_ALARM_FULL,    /* memory as a share of what there is */
    SAC_ALARM_HEAT,
    SAC_ALARM_POWER,
    SAC_ALARM_THROTTLE,
    SAC_ALARM_BEHIND, /* a share of what is due: too little */
    SAC_ALARM_TIME,   /* milliseconds: too long */
    SAC_ALARM_WORK,   /* the same, of work on the CPUs: beyond what others' load explains */
    SAC_ALARM_RATE,   /* frames a second: too few */
    SAC_ALARM_BYTES,  /* too many, or ever more */
    SAC_ALARM_HANDLES,
    SAC_ALARM_RULES
};

enum sac_alarm_kind { SAC_ALARM_LIMIT, SAC_ALARM_GROWTH, SAC_ALARM_ANOMALY, SAC_ALARM_KINDS };

/* Times of the parameters in samples. */
struct sac_alarm_setup {
    struct sac_monitor_params params;
    int                       hold, usual, warm, settled, growth;
};
void sac_alarm_set_up(struct sac_alarm_setup *setup, const struct sac_monitor_params *params);

struct sac_alarm {
    enum sac_alarm_rule rule;
    bool                on[SAC_ALARM_KINDS];
    int                 streak[SAC_ALARM_KINDS]; /* samples that would begin or end it, in a row */
    int                 since;                   /* of an anomaly: samples */
    int                 skipped;                 /* samples that belong to another situation */
    double              before, deviation;       /* of an anomaly: of what was usual */
    double              matters;                 /* smaller changes do not, in the figure's unit */
    int                 span;                    /* samples that its value is made of; 0: one */
};

struct sac_alarm_news {
    enum sac_alarm_kind kind;
    bool                ended, settled; /* settled: it has lasted, and is usual from now on */
    double              before, after;
};

/* After a sample was added. slowed: how many times as long work on the CPUs takes at present as it
 * usually does, since others use them; 1: no longer. Returns how many news there are. */
int sac_alarm_look(struct sac_alarm *alarm, const struct sac_series *series,
                   const struct sac_alarm_setup *setup, double slowed,
                   struct sac_alarm_news news[SAC_ALARM_KINDS]);
/* What comes now is not to be compared with what was before. */
void sac_alarm_restart(struct sac_alarm *alarm, const struct sac_series *series);
/* Its recent value, and the usual one before that; false: too little is known. */
bool sac_alarm_compare(const struct sac_alarm *alarm, const struct sac_series *series,
                       const struct sac_alarm_setup *setup, double *before, double *now);

#endif
