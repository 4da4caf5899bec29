/* SPDX-License-Identifier: Apache-2.0 */
#include "tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the knobs ---- */

#define AT(field) offsetof(struct sac_tracker_params, field)
/* In the order in which they are turned: what starts a track, and what a match is, first. */
static const struct row {
    const char *name, *option;
    size_t      offset;
    bool        appearance; /* of embeddings only */
    bool        whole;
    float       values[TUNE_VALUES_MAX - 1];
    int         count;
} rows[TUNE_KNOBS] = {
    {"score_high",
     "--score-high",
     AT(score_high),
     false,
     false,
     {0.2f, 0.25f, 0.3f, 0.35f, 0.4f, 0.45f, 0.5f, 0.55f, 0.6f, 0.65f, 0.7f, 0.75f, 0.8f},
     13},
    {"score_new",
     "--score-new",
     AT(score_new),
     false,
     false,
     {0.2f, 0.3f, 0.35f, 0.4f, 0.45f, 0.5f, 0.55f, 0.6f, 0.65f, 0.7f, 0.75f, 0.8f, 0.9f},
     13},
    {"match_iou",
     "--match-iou",
     AT(match_iou),
     false,
     false,
     {0.05f, 0.1f, 0.15f, 0.2f, 0.25f, 0.3f, 0.35f, 0.4f, 0.5f, 0.6f},
     10},
    {"lost_max_s",
     "--lost-max",
     AT(lost_max_s),
     false,
     false,
     {0.25f, 0.5f, 0.75f, 1, 1.5f, 2, 2.5f, 3, 4, 6, 8, 12},
     12},
    {"score_low",
     "--score-low",
     AT(score_low),
     false,
     false,
     {0.1f, 0.15f, 0.2f, 0.25f, 0.3f, 0.4f, 0.5f},
     7},
    {"confirm_s",
     "--confirm",
     AT(confirm_s),
     false,
     false,
     {0, 0.03f, 0.06f, 0.1f, 0.15f, 0.2f, 0.3f, 0.5f},
     8},
    {"reid_distance",
     "--reid-distance",
     AT(reid_distance_max),
     true,
     false,
     {0.05f, 0.1f, 0.15f, 0.2f, 0.25f, 0.3f, 0.4f, 0.5f},
     8},
    {"gallery_max", "--gallery", AT(gallery_max), true, true, {1, 2, 4, 8, 16, 32, 64}, 7},
};
#undef AT

static float get_value(const struct sac_tracker_params *params, const struct tune_knob *knob)
{
    const char *at = (const char *)params + knob->offset;
    return knob->whole ? (float)*(const int *)(const void *)at : *(const float *)(const void *)at;
}

static void set_value(struct sac_tracker_params *params, const struct tune_knob *knob, float value)
{
    void *at = (char *)params + knob->offset;
    if (knob->whole)
        *(int *)at = (int)value;
    else
        *(float *)at = value;
}

/* In its order among the others, unless it is one of them. */
static void add_start(struct tune_knob *knob, float start)
{
    int place = 0;
    while (place < knob->count && knob->values[place] < start - 1e-6f)
        place++;
    knob->start = place;
    if (place < knob->count && knob->values[place] < start + 1e-6f) {
        knob->values[place] = start;
        return;
    }
    memmove(&knob->values[place + 1], &knob->values[place],
            (size_t)(knob->count - place) * sizeof *knob->values);
    knob->values[place] = start;
    knob->count++;
}

int tune_knobs(const struct sac_tracker_params *baseline, bool appearance, struct tune_knob *knobs)
{
    int count = 0;
    for (int i = 0; i < TUNE_KNOBS; i++) {
        const struct row *row = &rows[i];
        if (row->appearance && !appearance)
            continue;
        struct tune_knob *knob = &knobs[count++];
        *knob = (struct tune_knob){.name = row->name,
                                   .option = row->option,
                                   .offset = row->offset,
                                   .whole = row->whole,
                                   .count = row->count};
        memcpy(knob->values, row->values, sizeof row->values);
        add_start(knob, get_value(baseline, knob));
    }
    return count;
}

struct sac_tracker_params tune_params(const struct sac_tracker_params *baseline,
                                      const struct tune_knob *knobs, int count, const int *point)
{
    struct sac_tracker_params params = *baseline;
    for (int i = 0; i < count; i++)
        set_value(&params, &knobs[i], knobs[i].values[point[i]]);
    return params;
}

/* ---- what was measured ---- */

static struct tune_point *point_of(struct tune_search *search, const int *at)
{
    const size_t bytes = (size_t)search->knob_count * sizeof *at;
    for (size_t i = 0; i < search->count; i++)
        if (memcmp(search->points[i].at, at, bytes) == 0)
            return &search->points[i];
    if (search->count == search->capacity) {
        const size_t       capacity = search->capacity ? 2 * search->capacity : 256;
        struct tune_point *points = realloc(search->points, capacity * sizeof *points);
        if (!points)
            return NULL;
        search->points = points;
        search->capacity = capacity;
    }
    struct tune_point *point = &search->points[search->count++];
    *point = (struct tune_point){.at = {0}};
    memcpy(point->at, at, bytes);
    for (int i = 0; i < search->sequences; i++)
        point->hota[i] = NAN;
    return point;
}

static int measure_one(struct tune_search *search, struct tune_point *point, int sequence)
{
    return isnan(point->hota[sequence])
               ? search->measure(search->user, sequence, point->at, &point->hota[sequence])
               : 0;
}

/* The mean over all sequences but one: each counts the same, however long it is. */
static int measure_others(struct tune_search *search, const int *at, int left_out, double *out)
{
    struct tune_point *point = point_of(search, at);
    double             sum = 0;
    int                status = point ? 0 : -1, count = 0;
    for (int i = 0; status == 0 && i < search->sequences; i++) {
        if (i == left_out)
            continue;
        status = measure_one(search, point, i);
        if (status == 0)
            sum += point->hota[i];
        count++;
    }
    *out = sum / count;
    return status;
}

/* ---- the searches ---- */

void tune_search_init(struct tune_search *search, const struct tune_knob *knobs, int knob_count,
                      int sequences, int trials, uint64_t seed)
{
    /* Scores do not vary from run to run, but what is better by less says nothing. */
    const struct climb_params params = {.margin = 0.0005, .restarts = trials, .seed = seed};
    *search = (struct tune_search){.knobs = knobs, .knob_count = knob_count};
    search->sequences = sequences;
    search->trials_max = trials;
    for (int k = 0; k < knob_count; k++)
        search->climb_knobs[k] = (struct climb_knob){knobs[k].name, knobs[k].count, knobs[k].start};
    for (int i = 0; i <= sequences; i++)
        climb_init(&search->climbs[i], search->climb_knobs, knob_count, &params);
}

void tune_search_finish(struct tune_search *search)
{
    for (int i = 0; i <= search->sequences; i++)
        climb_finish(&search->climbs[i]);
    free(search->points);
    *search = (struct tune_search){0};
}

/* One trial of one search. *any: it made one. */
static int advance(struct tune_search *search, int left_out, bool *any)
{
    struct climb *climb = &search->climbs[left_out];
    int           point[CLIMB_KNOBS_MAX] = {0};
    double        value = 0;
    if (climb->told_count >= (size_t)search->trials_max || !climb_ask(climb, point))
        return 0;
    int status = measure_others(search, point, left_out, &value);
    if (status == 0 && !climb_tell(climb, value))
        status = -1;
    *any = true;
    return status;
}

/* In turns, so that all are equally far when the time is up. */
int tune_search_run(struct tune_search *search)
{
    bool any = true;
    int  status = 0;
    while (any && status == 0) {
        any = false;
        for (int i = 0; i <= search->sequences && status == 0; i++) {
            if (search->ended(search->user))
                return 0;
            status = advance(search, i, &any);
        }
    }
    return status;
}

int tune_search_fold(struct tune_search *search, int left_out, struct tune_fold *out)
{
    int start[CLIMB_KNOBS_MAX] = {0}, status;
    for (int k = 0; k < search->knob_count; k++)
        start[k] = search->knobs[k].start;
    memcpy(out->best, search->climbs[left_out].best, sizeof out->best);
    struct tune_point *point = point_of(search, start);
    status = point ? measure_one(search, point, left_out) : -1;
    out->baseline = status == 0 ? point->hota[left_out] : (double)NAN;
    point = status == 0 ? point_of(search, out->best) : NULL;
    if (status == 0)
        status = point ? measure_one(search, point, left_out) : -1;
    out->tuned = status == 0 ? point->hota[left_out] : (double)NAN;
    return status;
}
