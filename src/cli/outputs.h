/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of result files that track writes, declared as data: one row each. */
#ifndef SAC_CLI_OUTPUTS_H
#define SAC_CLI_OUTPUTS_H

#include <saccade/pipeline.h>

#include "settings.h"

struct output_kind {
    const char *option;             /* "--mot" */
    size_t      setting, in_stream; /* the path's place in the two structs */
    unsigned    bit;                /* SAC_OUTPUT_... */
    const char *ending; /* of each file with several inputs; NULL: the input's container; "": a
                           folder */
};
extern const struct output_kind output_kinds[];
extern const size_t             output_kind_count;

/* The kind's ending in this run: what a video holds depends on --as. */
const char  *output_ending(const struct output_kind *kind, const struct settings *s);
const char  *output_setting(const struct output_kind *kind, const struct settings *s);
void         output_set(const struct output_kind *kind, struct settings *s, const char *path);
const char **output_in_stream(const struct output_kind *kind, struct sac_stream_params *params);

#endif
