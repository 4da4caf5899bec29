/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, a bounded queue and a thread pool over pthreads. */
#ifndef SAC_BASE_THREAD_H
#define SAC_BASE_THREAD_H

#include <pthread.h>
#include "base/base.h"

/* Start a named thread (name cut to 15 bytes). */
sac_result sac_thread_start(sac_context *ctx, pthread_t *out, const char *name, void *(*fn)(void *),
                            void *arg);

/* Threads that are started from now on let this signal through, too; 0: none. For one whose handler
 * looks at nothing that may go away before the thread. */
void sac_thread_admit(int signal);

/* A condition that is waited for by sac_time_ns. Under the lock; end_ns < 0: for ever. false: the
 * time is over. It may wake for nothing. */
void sac_cond_init(pthread_cond_t *cond);
bool sac_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t end_ns);

int sac_cpu_count(void);       /* CPUs this process may run on (affinity, not the machine's) */
int sac_threads_default(void); /* half of them, at least 1 */

/* Bounded queue of pointers; many producers, many consumers. */
struct sac_queue;
struct sac_queue_stats {
    size_t   length, capacity, length_max;
    uint64_t pushed, popped;
    uint64_t push_waits, pop_waits; /* times a side had to wait: a full or an empty queue */
    int64_t  push_wait_ns, pop_wait_ns;
};
sac_result sac_queue_create(sac_context *ctx, size_t capacity, struct sac_queue **out);
void       sac_queue_destroy(struct sac_queue **q); /* items left inside are the caller's loss: sift
                                                       first */
/* Offer every item inside to wanted, in order, also once closed or aborted: those for which it
 * returns true are its own from then on. It is called under the queue's lock. */
void sac_queue_sift(struct sac_queue *q, bool (*wanted)(void *user, void *item), void *user);
/* Waits for room. SAC_EOS once closed (item not taken), SAC_ERR_CANCELLED once aborted. */
sac_result sac_queue_push_wait(struct sac_queue *q, void *item);
/* timeout_ns < 0 waits for ever; SAC_AGAIN on time-out; SAC_EOS when closed and empty;
 * SAC_ERR_CANCELLED once aborted. */
sac_result sac_queue_pop_wait(struct sac_queue *q, int64_t timeout_ns, void **item);
void       sac_queue_close(struct sac_queue *q); /* no more pushes; pops drain what is left */
void       sac_queue_abort(struct sac_queue *q); /* every wait returns SAC_ERR_CANCELLED */
void       sac_queue_stats(struct sac_queue *q, struct sac_queue_stats *out);

/* Thread pool for short, independent pieces of one job: the caller takes part and returns when all
 * pieces are done. fn(arg, piece, worker): piece in 0..n-1, worker in 0..threads-1. While one
 * thread's job is under way, another thread that calls does its pieces alone. threads = 1 runs in
 * the caller. Idle workers sleep; a helper that has no piece yet is never waited for. */
struct sac_worker_pool;
sac_result sac_worker_pool_create(sac_context *ctx, int threads, struct sac_worker_pool **out);
void       sac_worker_pool_destroy(struct sac_worker_pool **pool);
int        sac_worker_pool_threads(const struct sac_worker_pool *pool); /* NULL: 1 */
void       sac_worker_pool_run(struct sac_worker_pool *pool, int                   n,
                               void (*fn)(void *arg, int piece, int worker), void *arg);
/* Between hold and release, jobs follow each other within microseconds (the layers of a network):
 * helpers that run out of pieces then watch for the next job for a moment before they sleep, after
 * the release too. */
void sac_worker_pool_hold(struct sac_worker_pool *pool);
void sac_worker_pool_release(struct sac_worker_pool *pool);

#endif
