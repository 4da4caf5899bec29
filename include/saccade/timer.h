/* SPDX-License-Identifier: Apache-2.0 */
/* Named timers: how long the stages take. A begin/end pair costs well under a microsecond when on,
 * a predicted branch when off. */
#ifndef SACCADE_TIMER_H
#define SACCADE_TIMER_H

#include <stdint.h>
#include <saccade/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sac_timers sac_timers;

/* What a timer has counted. */
struct sac_timer_summary {
    char     name[32];
    int64_t  count;
    double   total_ms, mean_ms, p50_ms, p95_ms, p99_ms, max_ms;
    uint64_t reserved[4]; /* 0 */
};

/* A set of up to 64 timers. All functions except destroy may be called from any thread.
 * Errors   SAC_ERR_MEMORY. */
SAC_API sac_result sac_timers_create(sac_context *ctx, sac_timers **out);
SAC_API void       sac_timers_destroy(sac_timers **timers);
SAC_API void       sac_timers_enable(sac_timers *timers, int on); /* on at creation */
/* The id of a name, added on first use; -1 when the set is full. */
SAC_API int sac_timers_id(sac_timers *timers, const char *name);

/* begin returns a stamp that end takes: pairs may nest, overlap and move between threads. */
SAC_API int64_t sac_timer_begin(sac_timers *timers);
SAC_API void    sac_timer_end(sac_timers *timers, int id, int64_t begun);
/* Record a duration measured elsewhere. */
SAC_API void sac_timer_add(sac_timers *timers, int id, int64_t duration_ns);
/* Fill up to max summaries; returns how many timers there are. Percentiles come from a histogram of
 * fixed size (relative error under 3 %), so memory does not grow with time. */
SAC_API int sac_timers_summary(sac_timers *timers, struct sac_timer_summary *out, int max);

#ifdef __cplusplus
}
#endif
#endif
