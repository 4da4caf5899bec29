/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that submit to a server: as much as it takes, or at a rate of their own, whose arrivals
 * are random (Poisson), as those of many users are. */
#ifndef SAC_CLI_SERVE_LOAD_H
#define SAC_CLI_SERVE_LOAD_H

#include <stdbool.h>

#include <saccade/server.h>

struct serve_load {
    sac_server        *server;
    sac_tensor *const *in;                  /* of every request */
    int                clients, priorities; /* each client submits at 0 to priorities - 1 in turn */
    double             per_s;               /* of all together */
    double             seconds;
    int64_t            deadline_us;
};

/* What the requests of one priority met. However long the load lasts, it has this size: latencies
 * of those that ran are counted in steps of 1 %, from a microsecond to a quarter of an hour. */
enum { SERVE_STEPS = 2080 };
struct serve_series {
    int64_t steps[SERVE_STEPS], count;
    double  most_ms;
    int64_t answered, failed, missed; /* missed: deadlines */
};
void serve_series_add(struct serve_series *s, double ms);
/* Within 1 %, the most itself for a share of 1. NAN: there are none. */
double serve_percentile(const struct serve_series *s, double share);

struct serve_result {
    int64_t    offered, submitted, full; /* full: SAC_AGAIN, of those offered */
    double     seconds;                  /* until the last answer */
    sac_result fault;                    /* the first that a submit met, but SAC_AGAIN */
};

/* Submit all the time, to a server that does not block; items a second, once it is warm. What waits
 * in the end is the caller's to cancel: a slow network would take long for it. */
sac_result serve_saturate(const struct serve_load *load, double *items_per_s);
/* At its rate, for its seconds; then the server is ended. series [priorities], zeroed. False: no
 * thread. */
bool serve_run(const struct serve_load *load, struct serve_series *series,
               struct serve_result *out);

#endif
