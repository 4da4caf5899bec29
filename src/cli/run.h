/* SPDX-License-Identifier: Apache-2.0 */
/* What track and segment share: inputs and their outputs, the progress line, the summary, and
 * stopping early. */
#ifndef SAC_CLI_RUN_H
#define SAC_CLI_RUN_H

#include "fault.h"
#include "settings.h"

/* Run s->run over the inputs in s->args; what a verb decides is in s->run already. Returns the exit
 * status. */
int run_videos(struct settings *s, struct fault *fault);

#endif
