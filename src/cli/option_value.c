/* SPDX-License-Identifier: Apache-2.0 */
/* One option's value: text to field, field to text. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/nearest.h"
#include "options.h"

static void *field(const struct settings *s, const struct option *option)
{
    return (char *)s + option->offset;
}

static int set_flag(void *out, const struct option *option, const char *text, const char *place,
                    struct fault *fault)
{
    static const char *const on[] = {"true", "yes", "on"}, *const off[] = {"false", "no", "off"};
    for (size_t i = 0; i < sizeof on / sizeof on[0]; i++) {
        if (strcmp(text, on[i]) == 0 || strcmp(text, off[i]) == 0) {
            const bool yes = strcmp(text, on[i]) == 0;
            option->size == sizeof(bool) ? (*(bool *)out = yes) : (*(int *)out = yes);
            return STATUS_OK;
        }
    }
    return fault_usage(fault, "%s: '%s' is neither true nor false", place, text);
}

static int check_range(double value, const struct option *option, const char *text,
                       const char *place, struct fault *fault)
{
    if (value >= option->min && value <= option->max)
        return STATUS_OK;
    return fault_usage(fault, "%s: %s is out of range; it takes %.10g to %.10g", place, text,
                       option->min, option->max);
}

static int set_int(void *out, const struct option *option, const char *text, const char *place,
                   struct fault *fault)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (end == text || *end)
        return fault_usage(fault, "%s: '%s' is not a whole number", place, text);
    int status = check_range(errno ? HUGE_VAL : (double)value, option, text, place, fault);
    if (status == STATUS_OK)
        option->size == sizeof(int) ? (*(int *)out = (int)value) : (*(int64_t *)out = value);
    return status;
}

static int64_t get_int(const void *at, const struct option *option)
{
    return option->size == sizeof(int) ? *(const int *)at : *(const int64_t *)at;
}

static double get_real(const void *at, const struct option *option)
{
    switch (option->type) {
    case OPTION_SECONDS:
    case OPTION_TIME: return (double)*(const int64_t *)at / 1e6;
    default:
        return option->size == sizeof(float) ? (double)*(const float *)at : *(const double *)at;
    }
}

static void put_real(void *at, const struct option *option, double value)
{
    if (option->type != OPTION_REAL)
        *(int64_t *)at = llround(value * 1e6);
    else if (option->size == sizeof(float))
        *(float *)at = (float)value;
    else
        *(double *)at = value;
}

static int put_in_range(void *out, const struct option *option, double value, const char *text,
                        const char *place, struct fault *fault)
{
    int status = check_range(value, option, text, place, fault);
    if (status == STATUS_OK)
        put_real(out, option, value);
    return status;
}

static int set_real(void *out, const struct option *option, const char *text, const char *place,
                    struct fault *fault)
{
    struct settings defaults;
    settings_init(&defaults);
    bool has_auto = isnan(get_real(field(&defaults, option), option));
    settings_finish(&defaults);
    if (has_auto && strcmp(text, "auto") == 0) {
        put_real(out, option, (double)NAN);
        return STATUS_OK;
    }
    char  *end;
    double value = strtod(text, &end);
    if (end == text || *end || isnan(value))
        return fault_usage(fault, "%s: '%s' is not a number", place, text);
    return put_in_range(out, option, value, text, place, fault);
}

/* [[HH:]MM:]SS[.mmm] in seconds; NAN: not a time. */
static double read_time(const char *text)
{
    double total = 0;
    for (int part = 0; part < 3; part++) {
        size_t digits = strspn(text, "0123456789");
        char  *end;
        if (digits == 0)
            return (double)NAN;
        const bool last = text[digits] != ':';
        double     value = last ? strtod(text, &end) : strtol(text, &end, 10);
        if ((part > 0 && value >= 60) || strspn(text, "0123456789.") != (size_t)(end - text))
            return (double)NAN;
        total = 60 * total + value;
        if (last)
            return *end ? (double)NAN : total;
        text = end + 1;
    }
    return (double)NAN;
}

static int set_time(void *out, const struct option *option, const char *text, const char *place,
                    struct fault *fault)
{
    const double value = read_time(text);
    if (isnan(value))
        return fault_usage(fault, "%s: '%s' is not a time; write it as 90, 1:30 or 00:01:30.5",
                           place, text);
    return put_in_range(out, option, value, text, place, fault);
}

static int set_bytes(uint64_t *out, const struct option *option, const char *text,
                     const char *place, struct fault *fault)
{
    char  *end;
    double value = strtod(text, &end), unit = 1;
    if (end != text && *end) {
        const char *units = "KMGT", *at = strchr(units, *end);
        if (at && (end[1] == '\0' || strcmp(end + 1, "iB") == 0)) {
            unit = ldexp(1, 10 * (int)(at - units + 1));
            end += strlen(end);
        }
    }
    if (end == text || *end || !isfinite(value))
        return fault_usage(fault, "%s: '%s' is not a size; write it as 1500000, 512M or 2G", place,
                           text);
    int status = check_range(value * unit, option, text, place, fault);
    if (status == STATUS_OK)
        *out = (uint64_t)(value * unit);
    return status;
}

/* The number of the option's choice that the text is. */
static int find_choice(int *out, const struct option *option, const char *text, const char *place,
                       struct fault *fault)
{
    struct sac_nearest best = {0};
    char               have[256] = "";
    for (int i = 0; option->choices[i]; i++) {
        if (strcmp(text, option->choices[i]) == 0) {
            *out = i;
            return STATUS_OK;
        }
        sac_nearest_offer(&best, text, option->choices[i]);
        size_t used = strlen(have);
        snprintf(have + used, sizeof have - used, "%s%s", used ? ", " : "", option->choices[i]);
    }
    if (best.word)
        return fault_usage(fault, "%s: '%s' is unknown; did you mean '%s'? It takes %s", place,
                           text, best.word, have);
    return fault_usage(fault, "%s: '%s' is unknown; it takes %s", place, text, have);
}

static int set_text(const char **out, const struct option *option, const char *text,
                    const char *place, struct fault *fault)
{
    int choice, status = STATUS_OK;
    if (option->choices)
        status = find_choice(&choice, option, text, place, fault);
    if (status == STATUS_OK)
        *out = *text ? text : NULL;
    return status;
}

static int value_of(const struct option *option, int choice)
{
    return option->values ? option->values[choice] : choice;
}

static int set_choice(int *out, const struct option *option, const char *text, const char *place,
                      struct fault *fault)
{
    int choice, status = find_choice(&choice, option, text, place, fault);
    if (status == STATUS_OK)
        *out = value_of(option, choice);
    return status;
}

int option_set(struct settings *s, const struct option *option, const char *text, const char *place,
               struct fault *fault)
{
    void *out = field(s, option);
    switch (option->type) {
    case OPTION_FLAG: return set_flag(out, option, text, place, fault);
    case OPTION_INT: return set_int(out, option, text, place, fault);
    case OPTION_SECONDS:
    case OPTION_REAL: return set_real(out, option, text, place, fault);
    case OPTION_TIME: return set_time(out, option, text, place, fault);
    case OPTION_BYTES: return set_bytes(out, option, text, place, fault);
    case OPTION_TEXT: return set_text(out, option, text, place, fault);
    case OPTION_CHOICE: return set_choice(out, option, text, place, fault);
    case OPTION_LIST:
        if (!text_list_add(out, text))
            return fault_failure(fault, "%s: out of memory", place);
        return STATUS_OK;
    }
    return STATUS_OK;
}

static const char *choice_of(const struct option *option, int value)
{
    int i = 0;
    while (option->choices[i] && value_of(option, i) != value)
        i++;
    return option->choices[i];
}

static void print_list(const struct text_list *list, char *buf, size_t size)
{
    size_t used = (size_t)snprintf(buf, size, "[");
    for (size_t i = 0; i < list->count && used < size; i++)
        used +=
            (size_t)snprintf(buf + used, size - used, "%s\"%s\"", i ? ", " : "", list->items[i]);
    if (used < size)
        snprintf(buf + used, size - used, "]");
}

void option_print(const struct settings *s, const struct option *option, char *buf, size_t size)
{
    const void *at = field(s, option);
    switch (option->type) {
    case OPTION_FLAG:
        snprintf(buf, size, "%s",
                 (option->size == sizeof(bool) ? *(const bool *)at : *(const int *)at) ? "true"
                                                                                       : "false");
        break;
    case OPTION_INT: snprintf(buf, size, "%" PRId64, get_int(at, option)); break;
    case OPTION_BYTES: snprintf(buf, size, "%" PRIu64, *(const uint64_t *)at); break;
    case OPTION_LIST: print_list(at, buf, size); break;
    case OPTION_CHOICE: snprintf(buf, size, "%s", choice_of(option, *(const int *)at)); break;
    case OPTION_SECONDS:
    case OPTION_TIME:
    case OPTION_REAL: {
        double value = get_real(at, option);
        isnan(value) ? snprintf(buf, size, "auto") : snprintf(buf, size, "%g", value);
        break;
    }
    case OPTION_TEXT: {
        const char *text = *(const char *const *)at;
        snprintf(buf, size, "%s", text ? text : "\"\"");
        break;
    }
    }
}
