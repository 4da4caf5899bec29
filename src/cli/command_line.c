/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: arguments to assignments, then the layers in their order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/nearest.h"
#include "config.h"
#include "counterparts.h"
#include "options.h"
#include "term.h"

/* An option of the command line; applied after the configuration file, which it overrides. */
struct assignment {
    const struct option *option;
    const char          *text;
};

struct command_line {
    struct settings   *settings;
    unsigned           verb;
    char             **argv;
    int                argc, at;
    struct assignment *items; /* room for one per argument */
    size_t             count;
    struct fault      *fault;
};

static int tell_counterpart(struct fault *fault, const char *name, const struct counterpart *other)
{
    const char *advice = other->advice ? other->advice : "";
    if (!other->option)
        return fault_usage(fault, "unknown option '%s'; %s", name, advice);
    return fault_usage(fault, "unknown option '%s'; here it is '--%s'%s%s", name, other->option,
                       *advice ? ", " : "", advice);
}

/* Most name options of track, of which segment has some. */
static bool is_of_verb(const struct counterpart *other, unsigned verb)
{
    char name[64];
    if (!other->option)
        return (verb & VERB_VIDEO) != 0;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(other->option, " "), other->option);
    const char *positive = strncmp(name, "no-", 3) == 0 ? name + 3 : name;
    return (verb & VERB_VIDEO) && option_find(positive, verb);
}

/* Options that belong to another verb now. */
static const struct moved_option {
    unsigned    verb;
    const char *name, *sentence;
} moved_options[] = {{VERB_INFER, "--layers", "--layers is in 'saccade bench' now"}};

static int unknown_option(struct command_line *line, const char *arg)
{
    struct sac_nearest best = {0};
    char               name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(arg, "="), arg);
    for (size_t i = 0; i < sizeof moved_options / sizeof moved_options[0]; i++)
        if (line->verb == moved_options[i].verb && strcmp(name, moved_options[i].name) == 0)
            return fault_usage(line->fault, "%s", moved_options[i].sentence);
    const struct counterpart *other = counterpart_find(name + strspn(name, "-"));
    if (other && is_of_verb(other, line->verb))
        return tell_counterpart(line->fault, name, other);
    for (size_t i = 0; i < option_count; i++)
        if (options[i].verbs & line->verb)
            sac_nearest_offer(&best, name + strspn(name, "-"), options[i].name);
    if (best.word)
        return fault_usage(line->fault, "unknown option '%s'; did you mean '--%s'?", name,
                           best.word);
    return fault_usage(line->fault, "unknown option '%s'; --help lists them", name);
}

static void assign(struct command_line *line, const struct option *option, const char *text)
{
    line->items[line->count++] = (struct assignment){option, text};
    if (option->offset == offsetof(struct settings, help))
        line->settings->help = true; /* at once: help is printed even if other arguments are wrong
                                      */
}

static bool is_option(const char *arg)
{
    return arg[0] == '-' && arg[1] != '\0'; /* "-" by itself is standard input */
}

/* The value follows: attached ("--crf=20", "-oout.mp4") or as the next argument. A list takes all
 * up to the next option. */
static int take_value(struct command_line *line, const struct option *option, const char *attached)
{
    if (attached) {
        assign(line, option, attached);
        return STATUS_OK;
    }
    if (line->at >= line->argc || (is_option(line->argv[line->at]) && option->type == OPTION_LIST))
        return fault_usage(line->fault, "--%s needs a value: --%s %s", option->name, option->name,
                           option->value);
    assign(line, option, line->argv[line->at++]);
    while (option->type == OPTION_LIST && line->at < line->argc && !is_option(line->argv[line->at]))
        assign(line, option, line->argv[line->at++]);
    return STATUS_OK;
}

/* By its name, or by a former one. */
static const struct option *find_option(const struct command_line *line, const char *name)
{
    const struct option *option = option_find(name, line->verb);
    const char          *now = option ? NULL : option_renamed(name);
    char                 text[160];
    if (!now || !(option = option_find(now, line->verb)))
        return option;
    snprintf(text, sizeof text, "--%s is --%s now", name, now);
    term_line(text);
    return option;
}

static int parse_long(struct command_line *line, const char *arg)
{
    char        name[64];
    const char *attached = strchr(arg, '=');
    size_t      length = attached ? (size_t)(attached - arg) : strlen(arg);
    if (length >= sizeof name)
        return unknown_option(line, arg);
    snprintf(name, sizeof name, "%.*s", (int)(length - 2), arg + 2);
    bool                 negated = false;
    const struct option *option = find_option(line, name);
    if (!option && strncmp(name, "no-", 3) == 0) {
        option = find_option(line, name + 3);
        negated = true;
    }
    if (!option || (negated && option->type != OPTION_FLAG))
        return unknown_option(line, arg);
    if (option->type != OPTION_FLAG)
        return take_value(line, option, attached ? attached + 1 : NULL);
    if (attached && negated)
        return fault_usage(line->fault, "--%s takes no value", name);
    assign(line, option, attached ? attached + 1 : negated ? "false" : "true");
    return STATUS_OK;
}

/* -o FILE, -oFILE; flags may stand together: -hj. */
static int parse_short(struct command_line *line, const char *arg)
{
    for (const char *p = arg + 1; *p; p++) {
        const struct option *option = NULL;
        for (size_t i = 0; i < option_count && !option; i++)
            if ((options[i].verbs & line->verb) && options[i].letter == *p)
                option = &options[i];
        if (!option)
            return unknown_option(line, arg);
        if (option->type != OPTION_FLAG)
            return take_value(line, option, p[1] ? p + 1 : NULL);
        assign(line, option, "true");
    }
    return STATUS_OK;
}

static int parse_arguments(struct command_line *line)
{
    bool only_args = false; /* after "--" */
    int  status = STATUS_OK;
    while (line->at < line->argc && status == STATUS_OK) {
        const char *arg = line->argv[line->at++];
        if (only_args || !is_option(arg)) {
            if (!text_list_add(&line->settings->args, arg))
                status = fault_failure(line->fault, "out of memory");
        } else if (strcmp(arg, "--") == 0) {
            only_args = true;
        } else if (arg[1] == '-') {
            status = parse_long(line, arg);
        } else {
            status = parse_short(line, arg);
        }
    }
    return status;
}

/* Of two the first would be passed over, and who gives both wants both. */
static int find_config(const struct command_line *line, const char **path)
{
    for (size_t i = 0; i < line->count; i++) {
        if (strcmp(line->items[i].option->name, "config") != 0)
            continue;
        if (*path)
            return fault_usage(line->fault, "--config '%s' and '%s': one file is read", *path,
                               line->items[i].text);
        *path = line->items[i].text;
    }
    return STATUS_OK;
}

static int apply_environment(struct settings *s, struct fault *fault)
{
    const char *level = getenv("SACCADE_LOG"), *debug = getenv("DEBUG");
    if (level && *level)
        return option_set(s, option_find_key("log_level"), level, "SACCADE_LOG", fault);
    if (debug && strcmp(debug, "1") == 0)
        s->log_level = "debug";
    return STATUS_OK;
}

static int apply_assignments(struct command_line *line)
{
    struct settings *s = line->settings;
    int              status = STATUS_OK;
    /* A list on the command line replaces the file's. */
    for (size_t i = 0; i < line->count; i++)
        if (line->items[i].option->type == OPTION_LIST)
            ((struct text_list *)((char *)s + line->items[i].option->offset))->count = 0;
    for (size_t i = 0; i < line->count && status == STATUS_OK; i++) {
        char place[72];
        snprintf(place, sizeof place, "--%s", line->items[i].option->name);
        status = option_set(s, line->items[i].option, line->items[i].text, place, line->fault);
    }
    return status;
}

/* --quiet and --verbose set the log level. */
static int apply_quiet_and_verbose(struct settings *s, struct fault *fault)
{
    if (s->quiet && s->verbose)
        return fault_usage(fault, "--quiet and --verbose exclude each other");
    if (s->quiet || s->verbose)
        s->log_level = s->quiet ? "error" : "debug";
    return STATUS_OK;
}

int options_parse(struct settings *s, unsigned verb, int argc, char **argv, struct fault *fault)
{
    struct command_line line = {
        .settings = s, .verb = verb, .argv = argv, .argc = argc, .fault = fault};
    /* "-hjV" holds several options in one argument, so count letters rather than arguments. */
    size_t room = 1;
    for (int i = 0; i < argc; i++)
        room += strlen(argv[i]) + 1;
    line.items = calloc(room, sizeof *line.items);
    if (!line.items)
        return fault_failure(fault, "out of memory");
    const char *path = NULL;
    int         status = parse_arguments(&line);
    if (status == STATUS_OK)
        status = find_config(&line, &path);
    if (status == STATUS_OK && path)
        status = config_read(s, path, fault);
    if (status == STATUS_OK)
        status = apply_environment(s, fault);
    if (status == STATUS_OK)
        status = apply_assignments(&line);
    if (status == STATUS_OK)
        status = apply_quiet_and_verbose(s, fault);
    free(line.items);
    return status;
}
