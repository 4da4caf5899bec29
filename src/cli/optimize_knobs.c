/* SPDX-License-Identifier: Apache-2.0 */
/* What saccade optimize may turn: a row for each setting, in the order in which they are turned. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "optimize.h"
#include "options.h"

enum { READS = 1, COMPUTES = 2, EMBEDS = 4, TRACKS = 8, WRITES = 16 };

static const struct {
    const char *name;
    unsigned    bit;
} stages[] = {
    {"decode", READS},  {"compare", COMPUTES}, {"preprocess", COMPUTES}, {"inference", COMPUTES},
    {"head", COMPUTES}, {"reid", EMBEDS},      {"tracking", TRACKS},     {"crop", TRACKS},
    {"draw", WRITES},   {"encode", WRITES},    {"write", WRITES},
};

unsigned optimize_stage_bit(const char *bottleneck)
{
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++)
        if (strcmp(stages[i].name, bottleneck) == 0)
            return stages[i].bit;
    return 0;
}

/* ---- which apply ---- */

static bool always(const struct optimize_facts *f)
{
    (void)f;
    return true;
}

static bool is_one_input(const struct optimize_facts *f)
{
    return f->inputs == 1; /* of several, the reading threads decode ahead */
}

static bool has_reid(const struct optimize_facts *f)
{
    return f->reid;
}

static bool has_encoder(const struct optimize_facts *f)
{
    return f->encodes;
}

/* Where batches are one launch there is one stream. */
static bool has_input_streams(const struct optimize_facts *f)
{
    const struct settings *s = f->settings;
    return f->on_gpu && !(s->task == TASK_SEGMENT && s->segment.mode == SAC_SEGMENT_VR);
}

/* On the CPU trackers follow the camera, each a thread of these; on a GPU it does. */
static bool follows_cameras(const struct optimize_facts *f)
{
    const struct sac_tracker_params *tracker = &f->settings->run.job.tracker;
    return !f->on_gpu && f->settings->task != TASK_SEGMENT && f->inputs > 1 &&
           tracker->kind == SAC_TRACKER_BOTSORT && tracker->camera_motion;
}

static bool may_skip(const struct optimize_facts *f)
{
    return f->settings->optimize.interval_max > 1 && f->settings->run.job.skip_still <= 0;
}

static bool may_change_precision(const struct optimize_facts *f)
{
    return f->settings->optimize.precisions != NULL;
}

/* ---- the rows ---- */

enum limit { LIMIT_NONE, LIMIT_CPUS, LIMIT_INTERVAL };

static const struct row {
    const char *key, *with[2];
    unsigned    stages;
    bool (*applies)(const struct optimize_facts *f);
    enum limit  limit;
    bool        fills, changes;
    const char *values[OPTIMIZE_VALUES_MAX - 1]; /* none: of the settings */
    const char *about;
} rows[OPTIMIZE_KNOBS] = {
    {"inference.max_batch",
     {0},
     COMPUTES | EMBEDS,
     always,
     LIMIT_NONE,
     true,
     false,
     {"1", "2", "4", "6", "8", "12", "16", "24", "32", "48", "64", "96", "128"},
     "frames in one batch of the network"},
    {"threads",
     {0},
     COMPUTES | EMBEDS | TRACKS,
     always,
     LIMIT_CPUS,
     false,
     false,
     {"1", "2", "3", "4", "6", "8", "12", "16", "24", "32", "48", "64", "96", "128"},
     "CPU threads for networks and images"},
    {"precision",
     {0},
     COMPUTES | EMBEDS,
     may_change_precision,
     LIMIT_NONE,
     false,
     true,
     {0},
     "number format of the networks"},
    {"skip.max",
     {"skip.still", "1"},
     COMPUTES,
     may_skip,
     LIMIT_INTERVAL,
     false,
     true,
     {"0", "1", "2", "3", "4", "5", "7", "9", "11", "14", "19", "24", "29"},
     "frames in a row that the network does not see, and that are predicted"},
    {"reid.batch_max",
     {0},
     EMBEDS,
     has_reid,
     LIMIT_NONE,
     true,
     false,
     {"0", "1", "2", "4", "8", "16", "32", "64", "128"},
     "crops in one batch of the appearance network"},
    {"decode.threads",
     {0},
     READS,
     always,
     LIMIT_CPUS,
     false,
     false,
     {"1", "2", "3", "4", "6", "8", "12", "16", "24", "32", "48", "64", "96", "128"},
     "threads of the decoder, which work beside the networks"},
    {"decode.prefetch",
     {0},
     READS | COMPUTES,
     is_one_input,
     LIMIT_NONE,
     true,
     false,
     {"0", "1", "2", "4", "6", "8", "12", "16", "20"},
     "frames decoded ahead, each a surface of the decoder"},
    {"preprocess.streams",
     {0},
     COMPUTES,
     has_input_streams,
     LIMIT_NONE,
     true,
     false,
     {"1", "2"},
     "streams of the GPU for the network's inputs, beside its own"},
    {"postprocess.threads",
     {0},
     TRACKS,
     follows_cameras,
     LIMIT_CPUS,
     false,
     false,
     {"1", "2", "3", "4", "6", "8", "12", "16", "24", "32", "48", "64"},
     "threads that follow the cameras of several inputs side by side"},
    {"queue.length",
     {0},
     READS | COMPUTES | EMBEDS | TRACKS | WRITES,
     always,
     LIMIT_NONE,
     true,
     false,
     {"1", "2", "3", "4", "6", "8", "12", "16", "24", "32", "64"},
     "frames that may wait between two stages: frame rate against latency"},
    {"inference.timeout_ms",
     {0},
     COMPUTES,
     always,
     LIMIT_NONE,
     false,
     false,
     {"0", "1", "2", "5", "10", "20", "40"},
     "milliseconds that a batch waits for more frames"},
    {"inference.min_batch",
     {0},
     COMPUTES,
     always,
     LIMIT_NONE,
     false,
     false,
     {"0", "1", "2", "4", "8", "16"},
     "frames with which an idle device begins"},
    {"encode.threads",
     {0},
     WRITES,
     has_encoder,
     LIMIT_CPUS,
     false,
     false,
     {"1", "2", "3", "4", "6", "8", "12", "16", "24", "32"},
     "threads of the encoder, which work beside the networks"},
};

static bool is_within(const struct row *row, const struct optimize_facts *f, const char *value)
{
    const int number = atoi(value);
    switch (row->limit) {
    case LIMIT_NONE: return true;
    case LIMIT_CPUS: return number <= f->cpus;
    case LIMIT_INTERVAL: return number < f->settings->optimize.interval_max;
    }
    return true;
}

static void add_value(struct optimize_knob *knob, const char *value)
{
    if (knob->count < OPTIMIZE_VALUES_MAX)
        snprintf(knob->values[knob->count++], sizeof knob->values[0], "%s", value);
}

static int place_of(const struct optimize_knob *knob, const char *value)
{
    for (int i = 0; i < knob->count; i++)
        if (strcmp(knob->values[i], value) == 0)
            return i;
    return -1;
}

/* The start, in its order among the other numbers unless it is one of them. */
static void add_start(struct optimize_knob *knob, const char *start)
{
    knob->start = place_of(knob, start);
    if (knob->start >= 0)
        return;
    int place = 0;
    while (place < knob->count && atoi(knob->values[place]) < atoi(start))
        place++;
    if (knob->count == OPTIMIZE_VALUES_MAX) /* the largest goes */
        knob->count--;
    place = place < knob->count ? place : knob->count;
    memmove(knob->values[place + 1], knob->values[place],
            (size_t)(knob->count - place) * sizeof knob->values[0]);
    snprintf(knob->values[place], sizeof knob->values[0], "%.11s", start);
    knob->start = place;
    knob->count++;
}

/* ---- where the search begins ---- */

/* What 0 of a setting means on this machine, where that is a value of the knob. */
static int meaning_of_auto(const struct row *row, const struct optimize_facts *f)
{
    if (strcmp(row->key, "inference.max_batch") == 0)
        return f->batch >= 1 ? (int)f->batch : 1;
    if (strcmp(row->key, "preprocess.streams") == 0)
        return f->settings->task == TASK_SEGMENT ? 2 : 1;
    if (strcmp(row->key, "postprocess.threads") == 0)
        return 1;
    return row->limit == LIMIT_CPUS ? (f->cpus > 1 ? f->cpus / 2 : 1) : 0;
}

static void find_start(const struct row *row, const struct optimize_facts *f,
                       struct optimize_knob *knob)
{
    char text[64];
    if (row->limit == LIMIT_INTERVAL) { /* skip.still is off: its skip.max says nothing */
        knob->start = 0;
        return;
    }
    option_print(f->settings, option_find_key(row->key), text, sizeof text);
    if (strcmp(text, "0") == 0)
        snprintf(text, sizeof text, "%d", meaning_of_auto(row, f));
    add_start(knob, text);
}

/* "fp32,fp16": names that the option takes. */
static int add_precisions(const struct settings *s, struct optimize_knob *knob, struct fault *fault)
{
    const struct option *option = option_find_key(knob->key);
    char                 name[12];
    for (const char *at = s->optimize.precisions; *at; at += *at == ',') {
        const size_t length = strcspn(at, ",");
        bool         known = false;
        snprintf(name, sizeof name, "%.*s", length < sizeof name ? (int)length : 0, at);
        for (size_t i = 0; option->choices[i]; i++)
            known |= strcmp(option->choices[i], name) == 0;
        if (!known || place_of(knob, name) >= 0)
            return fault_usage(fault,
                               "--precisions '%s': it takes names of --precision, each once, such "
                               "as fp32,fp16",
                               s->optimize.precisions);
        add_value(knob, name);
        at += length;
    }
    return STATUS_OK;
}

int optimize_knobs(const struct optimize_facts *f, struct optimize_knob *knobs, struct fault *fault)
{
    int count = 0;
    for (int i = 0; i < OPTIMIZE_KNOBS; i++) {
        const struct row *row = &rows[i];
        if (!row->applies(f))
            continue;
        struct optimize_knob *knob = &knobs[count];
        *knob = (struct optimize_knob){.key = row->key,
                                       .stages = row->stages,
                                       .fills = row->fills,
                                       .changes = row->changes,
                                       .about = row->about};
        memcpy(knob->with, row->with, sizeof knob->with);
        for (int v = 0; v < OPTIMIZE_VALUES_MAX - 1 && row->values[v]; v++)
            if (is_within(row, f, row->values[v]))
                add_value(knob, row->values[v]);
        if (!row->values[0] && add_precisions(f->settings, knob, fault) != STATUS_OK)
            return -1;
        find_start(row, f, knob);
        count += knob->count > 1;
    }
    return count;
}
