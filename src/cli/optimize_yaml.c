/* SPDX-License-Identifier: Apache-2.0 */
/* Settings as YAML: those of a measured run, and those that saccade optimize hands out. */
#include <stdio.h>
#include <string.h>

#include "optimize.h"
#include "options.h"

enum { VALUE_SIZE = 4200 };

/* What a run is not told, and what is not handed out: a section with its dot, or a key. */
static const char *const not_measured[] = {
    "output.",    "profile.",          "optimize.",      "search.",        "log_level", "json",
    "disk_cache", "disk_cache_frames", "input.duration", "input.realtime", "monitor.",  NULL};
static const char *const not_handed_out[] = {
    "output.", "profile.", "optimize.", "search.", "input.", "monitor.", "log_level", "json", NULL};

static bool is_listed(const char *const *list, const char *key)
{
    for (; *list; list++) {
        const size_t length = strlen(*list);
        if (strncmp(*list, key, length) == 0 && ((*list)[length - 1] == '.' || !key[length]))
            return true;
    }
    return false;
}

static void put_quoted(const char *text, FILE *out)
{
    fputc('"', out);
    for (const char *at = text; *at; at++) {
        const unsigned char c = (unsigned char)*at;
        if (c < ' ' || c == 127)
            fprintf(out, "\\x%02x", c);
        else
            fprintf(out, "%s%c", c == '"' || c == '\\' ? "\\" : "", c);
    }
    fputc('"', out);
}

static void put_value(const struct option *option, const char *value, FILE *out)
{
    const bool empty = strcmp(value, "\"\"") == 0;
    option->type == OPTION_TEXT && !empty ? put_quoted(value, out) : (void)fputs(value, out);
    fputc('\n', out);
}

/* *section: the one that is open; keys of one section are adjacent in the table. */
static void put_key(const struct option *option, const char *value, const char **section, FILE *out)
{
    const char  *dot = strchr(option->key, '.');
    const size_t length = dot ? (size_t)(dot - option->key) + 1 : 0;
    if (length && (!*section || strncmp(*section, option->key, length) != 0))
        fprintf(out, "%.*s:\n", (int)length - 1, option->key);
    *section = length ? option->key : NULL;
    fprintf(out, "%s%s: ", dot ? "  " : "", option->key + length);
    put_value(option, value, out);
}

void optimize_put_settings(const struct settings *s, bool segments, bool for_runs, FILE *out)
{
    const unsigned  verb = segments ? VERB_SEGMENT : VERB_TRACK;
    const char     *section = NULL;
    char            value[VALUE_SIZE], normal[VALUE_SIZE];
    struct settings defaults;
    settings_init(&defaults);
    for (size_t i = 0; i < option_count; i++) {
        const struct option *option = &options[i];
        if (!option->key || !(option->verbs & verb) ||
            is_listed(for_runs ? not_measured : not_handed_out, option->key))
            continue;
        option_print(s, option, value, sizeof value);
        option_print(&defaults, option, normal, sizeof normal);
        if (strcmp(value, normal) != 0)
            put_key(option, value, &section, out);
    }
    settings_finish(&defaults);
}

static int set_key(struct settings *s, const char *key, const char *value, struct fault *fault)
{
    return option_set(s, option_find_key(key), value, key, fault);
}

int optimize_apply(struct settings *s, const struct optimize_knob *knobs, int count,
                   const int *point, struct fault *fault)
{
    int status = STATUS_OK;
    for (int k = 0; k < count && status == STATUS_OK; k++) {
        if (point[k] == knobs[k].start)
            continue;
        status = set_key(s, knobs[k].key, knobs[k].values[point[k]], fault);
        if (status == STATUS_OK && knobs[k].with[0])
            status = set_key(s, knobs[k].with[0], knobs[k].with[1], fault);
    }
    return status;
}
