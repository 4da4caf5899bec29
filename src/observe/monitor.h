/* SPDX-License-Identifier: Apache-2.0 */
/* What a monitor is made of: figures that are put in by name, one sample of each at a time, and the
 * events that their alarms find (alarm.h). Where the numbers come from is in look.c for
 * the machine and in run_watch.c for a run.
 *
 *     sac_monitor_begin(monitor);
 *     sac_monitor_put(monitor, SAC_ALARM_LOAD, "share", 0.7, "cpu");
 *     sac_monitor_end(monitor);           // what was not put has no value in this sample
 */
#ifndef SAC_OBSERVE_MONITOR_H
#define SAC_OBSERVE_MONITOR_H

#include <pthread.h>

#include <saccade/monitor.h>
#include <saccade/stats.h>

#include "observe/alarm.h"
#include "observe/figures.h"
#include "observe/machine.h"
#include "observe/nvml.h"

enum { SAC_MONITOR_GPUS = 16 };

struct sac_watched {
    char              name[48], unit[16];
    struct sac_series series;
    struct sac_alarm  alarm;
    double            value;                  /* of the sample that is being put in */
    uint64_t          event[SAC_ALARM_KINDS]; /* of what is on: its number */
};

/* A process on a GPU, and since which sample. */
struct sac_card_process {
    struct sac_monitor_process process;
    int                        since;
};
struct sac_card_processes {
    struct sac_card_process item[SAC_MONITOR_PROCESSES_MAX];
    int                     count;
};

struct sac_monitor {
    sac_context           *ctx;
    struct sac_alarm_setup setup;
    bool                   logs; /* what it finds */
    int64_t                begun_ns;

    /* Whoever samples. */
    struct sac_machine machine;
    struct sac_nvml   *nvml; /* NULL: none, or a run's, which has figures of its own */
    sac_nvml_card      card[SAC_MONITOR_GPUS];
    char               card_name[SAC_MONITOR_GPUS][96];
    int                card_count;
    int                next; /* where the figure that is put next was in the last sample */

    pthread_mutex_t            lock; /* guards all below; held from begin to end */
    struct sac_watched        *watched[SAC_MONITOR_FIGURES];
    int                        count;
    int                        samples; /* so far, with the one that is being put in */
    struct sac_card_processes *users;   /* [SAC_MONITOR_GPUS]; NULL: none was put in so far */
    struct sac_monitor_event   event[SAC_MONITOR_EVENTS]; /* a ring */
    uint64_t                   events;                    /* so far */
    int64_t                    cost_ns;
};

/* Errors   SAC_ERR_ARG. */
sac_result sac_monitor_check(sac_context *ctx, const struct sac_monitor_params *params);
/* Without NVML's cards, which sac_monitor_find_cards adds. */
sac_result sac_monitor_create_empty(sac_context *ctx, const struct sac_monitor_params *params,
                                    sac_monitor **out);
void       sac_monitor_find_cards(sac_monitor *monitor, const char *library);

void sac_monitor_begin(sac_monitor *monitor);
/* No figure more than SAC_MONITOR_FIGURES is kept. value: NAN as if it was not put. */
void sac_monitor_put(sac_monitor *monitor, enum sac_alarm_rule rule, const char *unit, double value,
                     const char *name, ...) SAC_PRINTF(5, 6);
/* A time in milliseconds, of which changes smaller than `matters` do not matter. */
void sac_monitor_put_time(sac_monitor *monitor, enum sac_alarm_rule rule, double ms, double matters,
                          const char *name, ...) SAC_PRINTF(5, 6);
/* One that is made of the latest `span` samples. */
void sac_monitor_put_tail(sac_monitor *monitor, enum sac_alarm_rule rule, double ms, double matters,
                          int span, const char *name);
void sac_monitor_end(sac_monitor *monitor);
/* The situation is another one: nothing is compared with what was before. Between begin and end. */
void sac_monitor_restart(sac_monitor *monitor);

/* The machine's figures. */
void sac_monitor_put_machine(sac_monitor *monitor, const struct sac_machine_load *load);
/* A GPU's, from its latest state and its loads, 0..1. */
void sac_monitor_put_gpu(sac_monitor *monitor, int index, double busy, double decoder,
                         double encoder, const struct sac_gpu_stats *state);

/* processes.c: who computes on it, the largest first. */
void sac_monitor_put_processes(sac_monitor *monitor, int index, const struct sac_nvml_process *list,
                               int count);
/* Those that came while what is now was still unusual, without this one: "4711 python3 (1.20 GB)",
 * or any but this one; the largest first, at most three. Empty: none is known. Under the lock. */
void sac_monitor_name_processes(const sac_monitor *monitor, bool new_ones, char *buf, size_t size);

/* All that it knows, on the heap (sac_free); history 0: without the figures' points. NULL: no
 * memory. Any thread. */
struct sac_monitor_view *sac_monitor_look_at(sac_monitor *monitor, bool history);

/* others.c: how many times as long work on the CPUs takes in this sample as it usually does, since
 * other programs or machines use them; 1: not longer. Under the lock. */
double sac_monitor_slowed(const sac_monitor *monitor);
/* cause.c: why this figure may have changed, as "; because" or nothing. Under the lock. */
void sac_monitor_cause(const sac_monitor *monitor, const struct sac_watched *watched, char *buf,
                       size_t size);

#endif
