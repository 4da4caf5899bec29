/* SPDX-License-Identifier: Apache-2.0 */
/* SIGUSR1: print who holds what of the device's memory, at any time of a run. */
#ifndef SAC_CLI_LIVE_H
#define SAC_CLI_LIVE_H

#include <saccade/pipeline.h>

/* Before any other thread: the signal then waits until somebody takes it. */
void live_hold(void);
/* The pipeline is borrowed until live_stop. */
void live_start(sac_pipeline *pipe);
void live_stop(void);

#endif
