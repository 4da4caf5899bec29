/* SPDX-License-Identifier: Apache-2.0 */
/* Watches the machine, its GPUs and runs of saccade over time: each figure with its averages of the
 * last one and five minutes and its history, warnings, and what has left its usual range.
 *
 * Of the machine, by whoever wants to know (`saccade monitor` is this loop):
 *     sac_monitor *monitor = NULL;
 *     sac_result   res = sac_monitor_create(ctx, NULL, &monitor);
 *     for (; res == SAC_OK; sleep(1)) {
 *         sac_monitor_sample(monitor);
 *         for (int i = 0; i < sac_monitor_figure_count(monitor); i++) {
 *             sac_monitor_get_figure(monitor, i, &figure);
 *             printf("%s %.2f, %.2f over a minute\n", figure.name, figure.now, figure.mean_1m);
 *         }
 *         sac_monitor_list_runs(ctx, print_run, NULL);
 *     }
 *
 * Of a run, by the run: sac_track_job_params.monitor. A thread of its own samples it; what it finds
 * is logged, kept for --stats, and published for sac_monitor_list_runs in a small file,
 * $XDG_RUNTIME_DIR/saccade/PID.json, or /dev/shm/saccade-UID/PID.json where there is no such
 * folder, which only this user may read; PID-1.json and on are further runs of one process.
 *
 * A warning is a figure that stays above a limit, or memory or descriptors that grow for minutes;
 * it ends when the figure has stayed clearly below. An anomaly is a figure that leaves its own
 * recent values: frames a second, latency and its p99, a stage's time, memory. Both are reported
 * once, with the figure before and after and with the cause, where one is seen in the other
 * figures, and once more when they end. */
#ifndef SACCADE_MONITOR_H
#define SACCADE_MONITOR_H

#include <stdint.h>
#include <saccade/context.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sac_monitor_params {
    int interval_ms; /* between samples; 100..60000, default 1000 */
    /* Limits of warnings; 0: none. A run that is not live does not look at the first: it is to use
     * all that there is. */
    double utilisation_max; /* of CPUs, GPU, its decoder, over a minute; 0..1, default 0.95 */
    double memory_max;      /* of the machine and of a GPU; 0..1, default 0.95 */
    double temperature_max; /* of a GPU, degrees Celsius; 0..200, default 87 */
    double power_max;       /* of a GPU, as a share of its power limit; 0..2, default 0.98 */
    double hold_s;          /* a limit or an anomaly counts when it has lasted for this long, and is
                               over when it has been over for as long; 0.1..3600, default 4 */
    double growth_min;      /* memory or descriptors that only grow for three minutes, by this share
                               in all, may be a leak; 0: do not look, 0..10, default 0.05 */
    double anomaly_ratio;   /* an anomaly is this many times as much as usual, or as little; 0: do
                               not look, else 1..100, default 1.5 */
    double anomaly_spread;  /* and outside this many standard deviations of the last minute, and of
                               the last five; 1..100, default 6 */
    int published;          /* 1: of a run, publish it for others to see; default 0 */
    int live;               /* 1: of a run, utilisation_max counts; a run with realtime or a camera
                               sets it by itself; default 0 */
    uint64_t reserved[8];   /* 0 */
};
SAC_API struct sac_monitor_params sac_monitor_params_default(void);

enum { SAC_MONITOR_HISTORY_MAX = 120 };
/* A figure over time. Not a number (NAN): not measured, or the stage did not run. */
struct sac_monitor_figure {
    /* "cpu", "gpu0 temperature", "stage inference". Of a run, "latency" is a frame's mean time to
     * its result in milliseconds, "latency p99" what 99 of 100 frames do not exceed, in
     * milliseconds too: of the interval's frames, or, where it has fewer than 100, of those of the
     * latest intervals that have 100 together, at most a minute's. All: docs/monitor.md. */
    char     name[48];
    char     unit[16];              /* "share", "bytes", "ms", "C"; empty: a count */
    double   now, mean_1m, mean_5m; /* means of what there is of the time */
    double   least, most;           /* of all samples */
    int      history_count;         /* points of the whole time, each a mean, the oldest first */
    double   history_step_s;        /* from one to the next */
    float    history[SAC_MONITOR_HISTORY_MAX];
    uint64_t reserved[4]; /* 0 */
};

enum sac_monitor_kind { SAC_MONITOR_WARNING = 0, SAC_MONITOR_ANOMALY };
SAC_API const char *sac_monitor_kind_name(enum sac_monitor_kind kind); /* "warning", "anomaly" */

struct sac_monitor_event {
    enum sac_monitor_kind kind;
    char                  figure[48]; /* the name of what it is about */
    double   begun_s, ended_s;        /* since the monitor began; ended_s below 0: it goes on */
    double   before, after; /* the figure's usual value, or the limit; and what it came to */
    char     text[320];     /* a sentence, with the cause */
    uint64_t reserved[4];   /* 0 */
};

/* A figure's value as people read it: "97 %", "1.20 GB", "12.31 ms"; "-" for what is not known. */
SAC_API void sac_monitor_format(double value, const char *unit, char *buf, size_t size);

typedef struct sac_monitor sac_monitor;
/* Of the machine and all its GPUs; without NVML, of the machine.
 * Errors   SAC_ERR_ARG, SAC_ERR_MEMORY. */
SAC_API sac_result sac_monitor_create(sac_context *ctx, const struct sac_monitor_params *params,
                                      sac_monitor **out);
SAC_API void       sac_monitor_destroy(sac_monitor **monitor);
/* Measure all figures now. Loads are those since the sample before. One thread at a time. */
SAC_API void sac_monitor_sample(sac_monitor *monitor);
/* The name of GPU `index`, or NULL: there is none. */
SAC_API const char *sac_monitor_gpu_name(const sac_monitor *monitor, int index);

/* A process that computes on a GPU, other users' too. NVML numbers them as the machine does: inside
 * a container the number may be none of the container's, and then there is no name. */
struct sac_monitor_process {
    int      pid;
    char     name[32];     /* of its program, as the kernel has it (/proc/PID/comm); or empty */
    uint64_t memory_bytes; /* of the GPU; 0: the card does not tell */
    uint64_t reserved[4];  /* 0 */
};
enum { SAC_MONITOR_PROCESSES_MAX = 16 };
/* Those of GPU `index` in the latest sample that hold the most of its memory, the largest first, at
 * most SAC_MONITOR_PROCESSES_MAX; the figure "gpuN processes" counts all. Any thread, of a
 * monitor of a run too.
 * max      room in out.
 * Returns  how many were written. */
SAC_API int sac_monitor_get_processes(sac_monitor *monitor, int index,
                                      struct sac_monitor_process *out, int max);

/* Any thread, for these four and for a monitor of a run too. New figures come at the end; of
 * events, the latest 64 are kept, the oldest first.
 * Errors   SAC_ERR_ARG: there is none of this index. */
SAC_API int        sac_monitor_figure_count(sac_monitor *monitor);
SAC_API sac_result sac_monitor_get_figure(sac_monitor *monitor, int index,
                                          struct sac_monitor_figure *out);
SAC_API int        sac_monitor_event_count(sac_monitor *monitor);
SAC_API sac_result sac_monitor_get_event(sac_monitor *monitor, int index,
                                         struct sac_monitor_event *out);
/* CPU time that monitoring took, as a share of one core since it began. Any thread. */
SAC_API double sac_monitor_cost(sac_monitor *monitor);

/* A run of saccade that is under way. */
struct sac_monitor_run {
    int                              pid;
    char                             title[256]; /* its input, without an address's secrets */
    double                           elapsed_s;  /* since it began */
    double                           silent_s;   /* since it was last heard of */
    double                           cost;       /* of its own monitoring: see sac_monitor_cost */
    const struct sac_monitor_figure *figures;    /* without history */
    int                              figure_count;
    const struct sac_monitor_event  *events;
    int                              event_count;
    uint64_t                         reserved[4]; /* 0 */
};
/* Call fn for each run of this user that publishes itself; run is valid during the call.
 * Errors   SAC_ERR_MEMORY. Files that are no such runs are passed over. */
SAC_API sac_result sac_monitor_list_runs(sac_context *ctx,
                                         void (*fn)(void *user, const struct sac_monitor_run *run),
                                         void *user);

#ifdef __cplusplus
}
#endif
#endif
