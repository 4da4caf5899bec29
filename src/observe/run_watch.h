/* SPDX-License-Identifier: Apache-2.0 */
/* A run's own monitor: a thread that samples the run's statistics, its process and the machine,
 * logs what is found, and publishes it (published.h) if the parameters say so. */
#ifndef SAC_OBSERVE_RUN_WATCH_H
#define SAC_OBSERVE_RUN_WATCH_H

#include "observe/monitor.h"

struct sac_run_watch;

struct sac_run_feed {
    void (*get)(void *user, struct sac_pipeline_stats *out);
    /* How many streams run; when that changes, nothing is compared with what was before. NULL:
     * always the same. */
    int (*streams)(void *user);
    void *user;
    /* How many frames a second the inputs are to bring; NULL, 0: unknown, or as many as they can.
     */
    double (*due)(void *user);
    /* Who computes on the GPU of that shard; returns how many. NULL: not known. */
    int (*processes)(void *user, int shard, struct sac_nvml_process *out, int max);
    /* Where a frame's latency and its composite's are counted, for their p99; NULL: there is none.
     */
    const sac_timers *timers;
    int               latency, composite_latency; /* ids in them */
};

/* Begins at once; title is copied. */
sac_result sac_run_watch_start(sac_context *ctx, const struct sac_monitor_params *params,
                               const struct sac_run_feed *feed, const char *title,
                               struct sac_run_watch **out);
/* No more samples are taken; what was found stays. */
void         sac_run_watch_end(struct sac_run_watch *watch);
void         sac_run_watch_destroy(struct sac_run_watch **watch);
sac_monitor *sac_run_watch_monitor(struct sac_run_watch *watch); /* of NULL: NULL */

/* One sample without the thread, of these statistics. */
struct sac_run_sampler;
struct sac_run_sampler *sac_run_sampler_create(int interval_ms);
void                    sac_run_sampler_destroy(struct sac_run_sampler **sampler);
void                    sac_run_sampler_take(struct sac_run_sampler *sampler, sac_monitor *monitor,
                                             const struct sac_run_feed *feed);

#endif
