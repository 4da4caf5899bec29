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

/* What the requests of one priority met. */
struct serve_series {
    double *ms; /* latency of those that ran, [count] of [capacity]; sorted in the end */
    size_t  count, capacity;
    int64_t answered, failed, missed; /* missed: deadlines */
};
double serve_percentile(const struct serve_series *s, double share); /* NAN: there are none */
void   serve_series_finish(struct serve_series *s);

struct serve_result {
    int64_t    offered, submitted, full; /* full: SAC_AGAIN, of those offered */
    double     seconds;                  /* until the last answer */
    sac_result fault;                    /* the first that a submit met, but SAC_AGAIN */
};

/* Submit all the time, to a server that blocks; items a second, once it is warm. */
sac_result serve_saturate(const struct serve_load *load, double *items_per_s);
/* At its rate, for its seconds; then the server is ended. series [priorities], zeroed. False: no
 * memory, or no thread. */
bool serve_run(const struct serve_load *load, struct serve_series *series,
               struct serve_result *out);

#endif
