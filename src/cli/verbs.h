/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs, declared as data like the options: dispatch, help, completion and the man page read
 * this table. */
#ifndef SAC_CLI_VERBS_H
#define SAC_CLI_VERBS_H

#include <stdio.h>

#include "options.h"

struct verb {
    const char *name;
    unsigned    bit;       /* its options: the rows of options[] with this bit */
    const char *arguments; /* "[INPUT]" */
    const char *summary;   /* one line, lower case */
    const char *about;     /* a paragraph */
    const char *examples;  /* one a line */
    size_t      args_min, args_max;
    int (*run)(struct settings *s, struct fault *fault); /* returns the exit status */
};

extern const struct verb verbs[];
extern const size_t      verb_count;

const struct verb *verb_find(const char *name);

int verb_track(struct settings *s, struct fault *fault);
int verb_segment(struct settings *s, struct fault *fault);
int verb_infer(struct settings *s, struct fault *fault);
int verb_bench(struct settings *s, struct fault *fault);
int verb_serve_bench(struct settings *s, struct fault *fault);
int verb_inspect(struct settings *s, struct fault *fault);
int verb_build(struct settings *s, struct fault *fault);
int verb_eval(struct settings *s, struct fault *fault);
int eval_masks(struct settings *s, struct fault *fault); /* eval with --masks */
int verb_tune(struct settings *s, struct fault *fault);
int verb_optimize(struct settings *s, struct fault *fault);
int verb_monitor(struct settings *s, struct fault *fault);
int verb_profile(struct settings *s, struct fault *fault);
int verb_cache(struct settings *s, struct fault *fault);
int verb_doctor(struct settings *s, struct fault *fault);
int verb_help(struct settings *s, struct fault *fault);
int verb_config(struct settings *s, struct fault *fault);
int verb_completion(struct settings *s, struct fault *fault);
int verb_man(struct settings *s, struct fault *fault);

/* ---- printed from the tables (help.c, completion.c, man.c) ---- */

void help_program(FILE *out);
void help_verb(const struct verb *verb, FILE *out);

#endif
