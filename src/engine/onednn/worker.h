/* SPDX-License-Identifier: Apache-2.0 */
/* The only thread that calls oneDNN. Debian builds oneDNN on OpenMP, whose team of workers belongs
 * to the calling thread: more calling threads would mean more teams. */
#ifndef SAC_ENGINE_ONEDNN_WORKER_H
#define SAC_ENGINE_ONEDNN_WORKER_H

#include "base/thread.h"

/* Start it; once for the process, whose end also ends it. */
sac_result worker_start(sac_context *ctx);
/* Runs fn(arg) there, with a team of `threads`, and waits for it. One caller at a time; others
 * wait. */
void worker_call(int threads, void (*fn)(void *arg), void *arg);

#endif
