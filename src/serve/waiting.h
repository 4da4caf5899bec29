/* SPDX-License-Identifier: Apache-2.0 */
/* The requests that wait: a queue of limited length by priority, and by the order in which they
 * came.
 *
 * A step of priority is worth so much time of waiting: each request has a key, the time at which it
 * came less its priority in steps, and the least key is first. So those of one priority keep their
 * order, higher ones go first, and a low one waits no longer than its distance from the higher ones
 * in steps, however many of them come. With steps of no length the priority alone decides. */
#ifndef SAC_SERVE_WAITING_H
#define SAC_SERVE_WAITING_H

#include "serve/request.h"

struct sac_waiting {
    int64_t         step_ns;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t  not_empty, not_full;
    sac_request   **heap; /* [count] of [max] */
    int             count, max, count_max;
    uint64_t        came;
    int64_t         earliest_ns; /* no deadline is before it */
    bool            closed;
};

sac_result sac_waiting_init(struct sac_waiting *w, sac_context *ctx, int max, int64_t step_ns);
/* Nothing waits; accepts a zeroed struct. */
void sac_waiting_finish(struct sac_waiting *w);
/* Takes the caller's reference. SAC_AGAIN: it is full, unless wait is set; SAC_ERR_CANCELLED: it is
 * closed. Then the reference stays the caller's. */
sac_result sac_waiting_push(struct sac_waiting *w, sac_request *request, bool wait);
/* As sac_queue_pop_wait. SAC_ERR_LIMIT: the first has more items. */
sac_result sac_waiting_pop_wait(struct sac_waiting *w, int size_max, int64_t timeout_ns,
                                sac_request **out);
/* Take out those whose deadline is over at now_ns, as a list. */
sac_request *sac_waiting_take_late(struct sac_waiting *w, int64_t now_ns);
/* No more are pushed; pops drain what is left. */
void sac_waiting_close(struct sac_waiting *w);
/* Close it and take out all, as a list. */
sac_request *sac_waiting_take_all(struct sac_waiting *w);
void         sac_waiting_get(struct sac_waiting *w, int *count, int *count_max);

#endif
