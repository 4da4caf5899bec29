/* SPDX-License-Identifier: Apache-2.0 */
/* SIGUSR1: print the owner of every live buffer of device memory, at any time during a run. */
#ifndef SAC_CLI_LIVE_H
#define SAC_CLI_LIVE_H

#include <saccade/pipeline.h>

/* Blocks the signal. Call it before other threads start, which inherit this. */
void live_hold(void);
/* The pipeline is borrowed until live_stop. */
void live_start(sac_pipeline *pipe);
void live_stop(void);

#endif
