/* SPDX-License-Identifier: Apache-2.0 */
/* Several inputs in one run: outputs name folders, files take the inputs' names. */
#ifndef SAC_CLI_INPUTS_H
#define SAC_CLI_INPUTS_H

#include <saccade/pipeline.h>

#include "fault.h"
#include "settings.h"

/* One entry for each input of s->args, with the paths of its outputs (owned by s); the folders are made
 * where they are missing. Names that would clash are refused before anything is made.
 * out: [s->args.count], released by free. Returns the exit status. */
int inputs_plan(struct settings *s, struct sac_stream_params **out, struct fault *fault);

/* "-": standard input or output. */
bool is_standard(const char *file);
/* True when both are the same file, by name or in fact. */
bool same_file(const char *a, const char *b);

#endif
