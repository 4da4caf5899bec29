/* SPDX-License-Identifier: Apache-2.0 */
/* --processes: each input as a process of its own, some of them at once.
 *
 * A process is a copy of this one that has no thread yet: options, the inputs' plan and the names
 * of outputs are its own by that, so none is written down and read again, and no password stands in
 * a list of processes. It does what a run of that input alone does, and ends. */
#ifndef SAC_CLI_PROCESSES_H
#define SAC_CLI_PROCESSES_H

#include "fault.h"
#include "inputs.h"
#include "settings.h"

/* Whether the options and inputs go together with --processes, if that is given. */
int processes_check(struct settings *s, const struct inputs *inputs, struct fault *fault);
/* Of each process, by --threads or its share of the CPUs. */
int processes_threads(const struct settings *s);

/* In the new process: the run of one input, of which s and one are. Returns the exit status. */
typedef int processes_work(struct settings *s, struct inputs *one, sac_context *ctx,
                           struct fault *fault);
/* Run them all. What a process prints is printed when those of the inputs before it are done, that
 * of the first at once. Returns the exit status: that of the first input that failed. */
int processes_run(struct settings *s, struct inputs *inputs, sac_context *ctx, processes_work *work,
                  struct fault *fault);

#endif
