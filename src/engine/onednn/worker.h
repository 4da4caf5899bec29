/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of oneDNN. Debian builds it on OpenMP, whose team of workers belongs to the calling
 * thread: more calling threads would mean more teams. So what needs a team is called by one thread
 * only, and the others call as a team of one. */
#ifndef SAC_ENGINE_ONEDNN_WORKER_H
#define SAC_ENGINE_ONEDNN_WORKER_H

#include "base/thread.h"

/* Start it; once for the process, whose end also ends it. */
sac_result worker_start(sac_context *ctx);
/* Runs fn(arg) there, with a team of `threads`, and waits for it. One caller at a time; others
 * wait. */
void worker_call(int threads, void (*fn)(void *arg), void *arg);

/* Between these the calling thread is a team of one; end gets what begin returned. can_be_alone:
 * the library has no threads of its own, or OpenMP's, whose number can be set. */
bool worker_can_be_alone(void);
int  worker_alone_begin(void);
void worker_alone_end(int team);

#endif
