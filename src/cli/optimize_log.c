/* SPDX-License-Identifier: Apache-2.0 */
/* The measurements of a search, a line each, beside its output. A search that is told them again
 * asks the same questions, so it goes on where it ended. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "optimize.h"
#include "whole_file.h"

static const char HEAD[] = "saccade optimize, measurements of search";
enum { LINE_SIZE = 1024, NUMBERS = 12 };

static double *number_at(struct optimize_figures *f, int i)
{
    double *const numbers[NUMBERS] = {
        &f->fps,    &f->latency_ms, &f->memory_bytes, &f->memory_share, &f->watts, &f->cpu,
        &f->others, &f->gpu,        &f->decoder,      &f->encoder,      &f->batch, &f->wall_s};
    return numbers[i];
}

/* ---- reading ---- */

static bool keep_entry(struct optimize_log *log, const struct optimize_entry *entry)
{
    if (log->count == log->capacity) {
        const size_t           capacity = log->capacity ? 2 * log->capacity : 64;
        struct optimize_entry *entries = realloc(log->entries, capacity * sizeof *entries);
        if (!entries)
            return false;
        log->entries = entries;
        log->capacity = capacity;
    }
    log->entries[log->count++] = *entry;
    return true;
}

/* "1 4 0|1 38.5 ...|inference|why": places, ok and numbers, bottleneck, sentence. */
static bool read_line(const struct optimize_log *log, char *line, struct optimize_entry *out)
{
    char *parts[4], *rest = line, *end;
    *out = (struct optimize_entry){.used = false};
    for (int i = 0; i < 4; i++)
        if (!(parts[i] = strsep(&rest, "|")))
            return false;
    for (int k = 0; k < log->knob_count; k++, parts[0] = end) {
        out->at[k] = (int)strtol(parts[0], &end, 10);
        if (end == parts[0] || out->at[k] < 0 || out->at[k] >= OPTIMIZE_VALUES_MAX)
            return false;
    }
    out->figures.ok = strtol(parts[1], &end, 10) == 1;
    for (int i = 0; i < NUMBERS; i++, parts[1] = end) {
        parts[1] = end;
        *number_at(&out->figures, i) = strtod(parts[1], &end);
        if (end == parts[1])
            return false;
    }
    snprintf(out->figures.bottleneck, sizeof out->figures.bottleneck, "%s", parts[2]);
    parts[3][strcspn(parts[3], "\n")] = '\0';
    snprintf(out->figures.why, sizeof out->figures.why, "%s", parts[3]);
    return true;
}

/* A line that was cut off ends it: the run that it is of is made again. */
static int read_lines(struct optimize_log *log, FILE *file, struct fault *fault)
{
    char                  line[LINE_SIZE];
    struct optimize_entry entry;
    while (fgets(line, sizeof line, file) && strchr(line, '\n') && read_line(log, line, &entry))
        if (!keep_entry(log, &entry))
            return fault_failure(fault, "out of memory");
    log->read = log->count;
    return STATUS_OK;
}

static bool read_head(FILE *file, unsigned long long *key, double *duration_s)
{
    char         line[LINE_SIZE];
    const size_t length = sizeof HEAD - 1;
    return fgets(line, sizeof line, file) && strncmp(line, HEAD, length) == 0 &&
           sscanf(line + length, " %llx %lf", key, duration_s) == 2;
}

static int read_file(struct optimize_log *log, FILE *file, bool resume, struct fault *fault)
{
    unsigned long long key = 0;
    double             duration_s = 0;
    if (!read_head(file, &key, &duration_s))
        return fault_usage(fault,
                           "'%s' is where the measurements go, but it is another file; name "
                           "another --output, or remove it",
                           log->path);
    if (!resume)
        return STATUS_OK;
    if (key != log->key)
        return fault_usage(fault,
                           "'%s' is of another search: the input, the options or the machine were "
                           "others; without --resume it begins anew",
                           log->path);
    log->duration_s = duration_s;
    return read_lines(log, file, fault);
}

/* ---- writing ---- */

static void put_entry(const struct optimize_log *log, const struct optimize_entry *entry, FILE *out)
{
    struct optimize_figures f = entry->figures;
    for (int k = 0; k < log->knob_count; k++)
        fprintf(out, "%d ", entry->at[k]);
    fprintf(out, "|%d", f.ok);
    for (int i = 0; i < NUMBERS; i++)
        fprintf(out, " %.17g", *number_at(&f, i));
    fprintf(out, "|%s|", f.bottleneck);
    for (const char *at = f.why; *at; at++)
        fputc((unsigned char)*at < ' ' ? ' ' : *at, out);
    fputc('\n', out);
}

/* With what was read, so that a line that was cut off is gone. */
static void put_log(const void *user, FILE *out)
{
    const struct optimize_log *log = user;
    fprintf(out, "%s %llx %.9g\n", HEAD, (unsigned long long)log->key, log->duration_s);
    for (size_t i = 0; i < log->count; i++)
        put_entry(log, &log->entries[i], out);
}

int optimize_log_open(struct optimize_log *log, const char *output, bool resume,
                      struct fault *fault)
{
    int status = STATUS_OK;
    if (!output)
        return resume ? fault_usage(fault, "--resume needs the --output of the earlier search")
                      : STATUS_OK;
    snprintf(log->path, sizeof log->path, "%s.runs", output);
    FILE *file = fopen(log->path, "re");
    if (file) {
        status = read_file(log, file, resume, fault);
        fclose(file);
    } else if (resume)
        status = fault_usage(fault,
                             "--resume: there is no '%s'; an earlier search leaves it when "
                             "it ends early",
                             log->path);
    return status == STATUS_OK ? whole_file_write(log->path, put_log, log, fault) : status;
}

void optimize_log_finish(struct optimize_log *log)
{
    free(log->entries);
    *log = (struct optimize_log){0};
}

/* ---- for the search ---- */

bool optimize_log_take(struct optimize_log *log, const int *point, struct optimize_figures *out)
{
    for (size_t i = 0; i < log->read; i++) {
        struct optimize_entry *entry = &log->entries[i];
        if (entry->used || memcmp(entry->at, point, (size_t)log->knob_count * sizeof *point) != 0)
            continue;
        entry->used = true;
        *out = entry->figures;
        return true;
    }
    return false;
}

int optimize_log_add(struct optimize_log *log, const int *point,
                     const struct optimize_figures *figures, struct fault *fault)
{
    struct optimize_entry entry = {.figures = *figures, .used = true};
    if (!log->path[0])
        return STATUS_OK;
    memcpy(entry.at, point, (size_t)log->knob_count * sizeof *point);
    FILE *out = fopen(log->path, "ae");
    if (out)
        put_entry(log, &entry, out);
    if (!out || fclose(out) != 0)
        return fault_failure(fault, "'%s' can't be written: %s", log->path, strerror(errno));
    return STATUS_OK;
}

void optimize_log_remove(const struct optimize_log *log)
{
    if (log->path[0])
        unlink(log->path);
}
