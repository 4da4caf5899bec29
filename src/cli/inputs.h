/* SPDX-License-Identifier: Apache-2.0 */
/* What comes in and where it goes: arguments to inputs, their names to those of outputs. */
#ifndef SAC_CLI_INPUTS_H
#define SAC_CLI_INPUTS_H

#include <saccade/pipeline.h>

#include "fault.h"
#include "settings.h"

struct inputs {
    struct sac_stream_params *streams; /* [count]; paths are owned by the settings */
    size_t                    count;   /* 1 also without a video */
    const char *const        *pictures; /* [picture_count] of the only input, when they were given one by one */
    size_t                    picture_count;
    struct text_list          given;    /* what pictures points to */
    struct text_list          made;     /* folders */
};

/* Arguments become inputs: a folder of videos each of its videos, a pattern (img?.jpg) what fits it, several
 * pictures one sequence. Each gets the paths of its outputs; without any that of JSON lines, which must not be
 * there yet. Changes s: args to the inputs' names, and of one input the outputs to its paths. */
int  inputs_plan(struct settings *s, struct inputs *out, struct fault *fault);
void inputs_finish(struct inputs *inputs);

/* Make the outputs' folders where they are missing. */
int  inputs_make_folders(struct settings *s, struct inputs *inputs, struct fault *fault);
/* Those that were made and are empty. */
void inputs_remove_folders(struct inputs *inputs);

/* "-": standard input or output. */
bool is_standard(const char *file);

#endif
