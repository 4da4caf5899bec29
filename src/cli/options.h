/* SPDX-License-Identifier: Apache-2.0 */
/* The options, declared as data. One table gives the command line, the YAML keys, --help, shell
 * completion and the man page, so they cannot disagree. */
#ifndef SAC_CLI_OPTIONS_H
#define SAC_CLI_OPTIONS_H

#include "fault.h"
#include "settings.h"

enum {
    VERB_TRACK = 1 << 0,
    VERB_INFER = 1 << 1,
    VERB_INSPECT = 1 << 2,
    VERB_EVAL = 1 << 3,
    VERB_DOCTOR = 1 << 4,
    VERB_BUILD = 1 << 6,
    VERB_SEGMENT = 1 << 7,
    VERB_BENCH = 1 << 8,
    VERB_SERVE = 1 << 9,
    VERB_MONITOR = 1 << 10,
    VERB_PROFILE = 1 << 11,
    VERB_CACHE = 1 << 12,
    VERB_TUNE = 1 << 13,
    VERB_OPTIMIZE = 1 << 14,
    VERB_VIDEO = VERB_TRACK | VERB_SEGMENT,
    VERB_MODEL =
        VERB_VIDEO | VERB_INFER | VERB_INSPECT | VERB_BUILD | VERB_BENCH | VERB_SERVE | VERB_TUNE,
    VERB_TOOLS = 1 << 5, /* help, config, completion, man: they take only --help */
    VERB_WATCH = VERB_VIDEO | VERB_MONITOR,
    VERB_WORK = VERB_VIDEO | VERB_INFER | VERB_INSPECT | VERB_EVAL | VERB_DOCTOR | VERB_BUILD |
                VERB_BENCH | VERB_SERVE | VERB_MONITOR | VERB_PROFILE | VERB_CACHE | VERB_TUNE |
                VERB_OPTIMIZE,
    VERB_ALL = VERB_WORK | VERB_TOOLS
};

enum option_type {
    OPTION_FLAG,    /* bool or int: --name and --no-name; true or false in YAML */
    OPTION_INT,     /* int or int64_t, in min..max */
    OPTION_REAL,    /* double or float, in min..max; "auto" is NAN if the default is NAN */
    OPTION_SECONDS, /* int64_t, microseconds; written as seconds in min..max */
    OPTION_TIME,    /* the same, written as a time: 90, 1:30, 00:01:30.5 */
    OPTION_BYTES,   /* uint64_t: 1500000, 512M, 2G */
    OPTION_TEXT,    /* const char *, one of choices if there are any; empty: NULL */
    OPTION_CHOICE,  /* an enum: the place in choices, or the value there */
    OPTION_LIST     /* struct text_list: all arguments up to the next option */
};

enum option_section {
    SECTION_IN,
    SECTION_OUT,
    SECTION_DETECTOR,
    SECTION_REID,
    SECTION_TRACKER,
    SECTION_SEGMENTER,
    SECTION_RUN,
    SECTION_COUNT
};

struct option {
    const char         *name;   /* without the dashes; unique within a verb */
    char                letter; /* short form, or 0 */
    unsigned            verbs;
    enum option_section section;
    enum option_type    type;
    size_t              offset, size; /* of the field in struct settings */
    const char         *key;   /* in YAML, "section.name" or "name"; NULL: command line only */
    const char         *value; /* what help calls the value: "FILE", "N", "SECONDS" */
    const char         *help;  /* unit and meaning, lower case, no full stop */
    double              min, max;
    const char *const  *choices; /* ends with NULL */
    const int          *values;  /* of the choices; NULL: 0, 1, 2, ... */
    const char *const  *words;   /* special values, for completion; ends with NULL */
};

extern const struct option options[];
extern const size_t        option_count;

/* The kinds' names, which are the library's; they end with NULL. */
extern const char *const option_trackers[];
extern const char *const option_segment_kinds[]; /* and "none" behind them */

const char *option_section_title(enum option_section section);

/* What an option or a key was called before, and is read as still, with a sentence; NULL: it was
 * called nothing else. */
const char *option_renamed(const char *old);

/* The row of a verb's option, or of a YAML key; NULL: none. */
const struct option *option_find(const char *name, unsigned verb);
const struct option *option_find_key(const char *key);

/* Read text into the option's field; place goes before the sentence ("--crf", "a.yaml:3:
 * encode.crf"). text is kept, not copied. */
int option_set(struct settings *s, const struct option *option, const char *text, const char *place,
               struct fault *fault);
/* The value as YAML would write it: "4", "auto", "[]", "\"\"". */
void option_print(const struct settings *s, const struct option *option, char *buf, size_t size);
/* "--crf N", "--[no-]audio" into buf. */
void option_spelling(const struct option *option, char *buf, size_t size);
/* The default as help prints it: "4", "auto: sort 0.3, botsort 0.5"; empty if there is none. */
void option_print_default(const struct option *option, char *buf, size_t size);
/* The help text with choices, range and default. */
void option_description(const struct option *option, char *buf, size_t size);

/* Parse the arguments after the verb. Order: what s holds < the file of --config < SACCADE_LOG and
 * DEBUG < the command line. */
int options_parse(struct settings *s, unsigned verb, int argc, char **argv, struct fault *fault);

#endif
