/* SPDX-License-Identifier: Apache-2.0 */
/* Several inputs in one run: outputs name folders, files take the inputs' names. */
#ifndef SAC_CLI_INPUTS_H
#define SAC_CLI_INPUTS_H

#include <saccade/pipeline.h>

#include "fault.h"
#include "settings.h"

/* One entry for each input of s->args, with the paths of its outputs (owned by s).
 * out: [s->args.count], released by free. Returns the exit status. */
int inputs_plan(struct settings *s, struct sac_stream_params **out, struct fault *fault);

/* Make the outputs' folders where they are missing. Returns the exit status. */
int inputs_make_folders(const struct settings *s, struct fault *fault);

/* "-": standard input or output. */
bool is_standard(const char *file);

#endif
