/* SPDX-License-Identifier: Apache-2.0 */
/* What Ctrl-C, SIGTERM and a terminal that goes away (SIGHUP) do. A SIGHUP that was ignored when the program
 * started, as under nohup, stays ignored. */
#ifndef SAC_CLI_INTERRUPT_H
#define SAC_CLI_INTERRUPT_H

#include <stdbool.h>

#include <saccade/pipeline.h>

/* For work that can't end early: temporary files are removed, and the signal ends the program. */
void interrupt_ends(void);
/* The first stops the pipeline, whose outputs become whole; the second removes temporary files and ends the
 * program. Until one is handed over, the first is only remembered. */
void interrupt_stops(void);
/* The pipeline that a signal stops; NULL: none any more. */
void interrupt_watch(sac_pipeline *pipe);
bool interrupt_came(void);

#endif
