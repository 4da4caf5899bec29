/* SPDX-License-Identifier: Apache-2.0 */
/* The texts about an option in help, the manual page and the configuration's comments. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <saccade/track.h>

#include "options.h"

static void append(char *buf, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void append(char *buf, size_t size, const char *fmt, ...)
{
    size_t  used = strlen(buf);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(buf + used, size - used, fmt, ap);
    va_end(ap);
}

void option_spelling(const struct option *option, char *buf, size_t size)
{
    bool can_negate = option->type == OPTION_FLAG && option->key;
    snprintf(buf, size, "--%s%s%s%s%s", can_negate ? "[no-]" : "", option->name,
             option->value ? " " : "", option->value ? option->value : "",
             option->type == OPTION_LIST ? " ..." : "");
}

/* The value of "auto" depends on the tracker. */
static void append_tracker_defaults(const struct option *option, char *buf, size_t size)
{
    for (size_t i = 0; option_trackers[i]; i++) {
        struct settings       s;
        enum sac_tracker_kind kind;
        char                  value[32];
        settings_init(&s);
        if (sac_tracker_kind_parse(option_trackers[i], &kind) == SAC_OK)
            settings_fill_tracker(&s, kind);
        option_print(&s, option, value, sizeof value);
        settings_finish(&s);
        append(buf, size, "%s %s %s", i ? "," : ":", option_trackers[i], value);
    }
}

void option_print_default(const struct option *option, char *buf, size_t size)
{
    struct settings defaults;
    settings_init(&defaults);
    option_print(&defaults, option, buf, size);
    settings_finish(&defaults);
    if (strcmp(buf, "auto") == 0 && option->section == SECTION_TRACKER)
        append_tracker_defaults(option, buf, size);
    if (strcmp(buf, "\"\"") == 0 || strcmp(buf, "[]") == 0)
        *buf = '\0';
}

void option_description(const struct option *option, char *buf, size_t size)
{
    char by_default[128];
    snprintf(buf, size, "%s", option->help);
    for (const char *const *choice = option->choices; choice && *choice; choice++)
        append(buf, size, "%s%s", choice == option->choices ? ": " : ", ", *choice);
    if (option->max > option->min && option->type != OPTION_BYTES && option->type != OPTION_TIME)
        append(buf, size, "; %.10g to %.10g", option->min, option->max);
    option_print_default(option, by_default, sizeof by_default);
    if (option->key && *by_default)
        append(buf, size, " (default %s)", by_default);
}
