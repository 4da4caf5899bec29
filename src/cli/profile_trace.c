/* SPDX-License-Identifier: Apache-2.0 */
/* The trace of a run, as observe/trace.c writes it: an element a line, its members in one order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile.h"

enum { LINE_SIZE = 1024 };

static double number_in(const char *line, const char *key)
{
    const char *at = strstr(line, key);
    return at ? strtod(at + strlen(key), NULL) : 0;
}

static void text_in(const char *line, const char *key, char *buf, size_t size)
{
    const char *at = strstr(line, key);
    at = at ? at + strlen(key) : "";
    snprintf(buf, size, "%.*s", (int)strcspn(at, "\""), at);
}

static void read_track(const char *line, struct profile_trace *t)
{
    const int   tid = (int)number_in(line, "\"tid\":");
    const char *args = strstr(line, "\"args\":");
    if (tid < 1 || tid > PROFILE_TRACKS_MAX || !args || !strstr(line, "\"thread_name\""))
        return;
    text_in(args, "\"name\":\"", t->track[tid - 1], sizeof t->track[0]);
    t->track_count = tid > t->track_count ? tid : t->track_count;
}

/* A batch's span is in the trace once for each of its frames. */
static bool is_repeated(const struct profile_trace *t, const struct profile_span *s)
{
    const struct profile_span *last = t->span_count ? &t->span[t->span_count - 1] : NULL;
    return last && last->track == s->track && last->begun_us == s->begun_us &&
           strcmp(last->stage, s->stage) == 0;
}

static void read_span(const char *line, double from_us, double to_us, struct profile_trace *t)
{
    struct profile_span s = {.track = (int)number_in(line, "\"tid\":") - 1,
                             .begun_us = number_in(line, "\"ts\":"),
                             .took_us = number_in(line, "\"dur\":")};
    text_in(line, "\"name\":\"", s.stage, sizeof s.stage);
    if (s.begun_us >= from_us && s.begun_us < to_us && s.track >= 0 &&
        s.track < PROFILE_TRACKS_MAX && t->span_count < PROFILE_SPANS_MAX && !is_repeated(t, &s))
        t->span[t->span_count++] = s;
}

static void count_batch(const char *line, struct profile_trace *t)
{
    char stage[24];
    int  batch = (int)number_in(line, "\"batch\":");
    text_in(line, "\"name\":\"", stage, sizeof stage);
    batch = batch < 1 ? 1 : batch > PROFILE_BATCH_MAX ? PROFILE_BATCH_MAX : batch;
    if (strcmp(stage, "inference") == 0)
        t->batches[batch] += 1.0 / batch;
}

/* pass 0: what there is; pass 1: spans of this while. */
static void read_lines(FILE *file, int pass, double from_us, double to_us, struct profile_trace *t)
{
    char line[LINE_SIZE];
    rewind(file);
    while (fgets(line, sizeof line, file)) {
        const double begun = number_in(line, "\"ts\":"), end = begun + number_in(line, "\"dur\":");
        if (strstr(line, "\"ph\":\"M\"") && pass == 0)
            read_track(line, t);
        if (!strstr(line, "\"ph\":\"X\""))
            continue;
        if (pass == 1)
            read_span(line, from_us, to_us, t);
        else
            count_batch(line, t);
        t->end_us = end > t->end_us ? end : t->end_us;
        if (!strstr(line, "\"name\":\"decode\"") && (begun < t->begun_us || t->begun_us == 0))
            t->begun_us = begun;
    }
}

void profile_read_trace(const char *path, struct profile_trace *out)
{
    FILE *file = fopen(path, "re");
    *out = (struct profile_trace){0};
    if (!file)
        return;
    read_lines(file, 0, 0, 0, out);
    /* decoders are at work while networks are still opened */
    const double run_us = out->end_us - out->begun_us, middle_us = out->begun_us + run_us / 2;
    read_lines(file, 1, middle_us, middle_us + (run_us / 4 < 400e3 ? run_us / 4 : 400e3), out);
    fclose(file);
}
