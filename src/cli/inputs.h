/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs and outputs of track: arguments become inputs, and the names of outputs follow from them.
 */
#ifndef SAC_CLI_INPUTS_H
#define SAC_CLI_INPUTS_H

#include <saccade/pipeline.h>

#include "fault.h"
#include "settings.h"

struct inputs {
    struct sac_stream_params *streams;  /* [count]; paths are owned by the settings */
    size_t                    count;    /* 1 even without a video */
    const char *const        *pictures; /* [picture_count] of the only input, if given one by one */
    size_t                    picture_count;
    struct text_list          given; /* what pictures points to */
    struct text_list          made;  /* folders */
};

/* Arguments become inputs: a folder of videos is one input per video, a pattern (img?.jpg) is
 * replaced by its matches, several pictures are one sequence. Each input gets the paths of its
 * outputs; if no output is given, that of JSON lines, which must not exist yet. Changes s: args
 * become the inputs' names, and with one input the outputs become its paths. */
int  inputs_plan(struct settings *s, struct inputs *out, struct fault *fault);
void inputs_finish(struct inputs *inputs);

/* Create the outputs' folders if they are missing. */
int inputs_make_folders(struct settings *s, struct inputs *inputs, struct fault *fault);
/* Remove the folders that were created and are empty. */
void inputs_remove_folders(struct inputs *inputs);

/* "-": standard input or output. */
bool is_standard(const char *file);

#endif
