/* SPDX-License-Identifier: Apache-2.0 */
/* Handling of Ctrl-C, SIGTERM and a closed terminal (SIGHUP). A SIGHUP that was ignored when the
 * program started, as under nohup, stays ignored. */
#ifndef SAC_CLI_INTERRUPT_H
#define SAC_CLI_INTERRUPT_H

#include <stdbool.h>

#include <saccade/pipeline.h>

/* For work that can't end early: temporary files are removed, and the signal ends the program. */
void interrupt_ends(void);
/* The first signal stops the pipeline, which completes its outputs; the second removes temporary
 * files and ends the program. A first signal before interrupt_watch is remembered until then. */
void interrupt_stops(void);
/* Signals are only counted: what is to end runs in other processes. */
void interrupt_counts(void);
int  interrupt_count(void);
/* They wait from hold to release, so that a process that is forked between the two has none of its
 * parent's; forget: in the child, those that the parent counted. */
void interrupt_hold(void);
void interrupt_forget(void);
void interrupt_release(void);
/* The pipeline that a signal stops; NULL: none. */
void interrupt_watch(sac_pipeline *pipe);
bool interrupt_came(void);

#endif
