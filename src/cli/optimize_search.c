/* SPDX-License-Identifier: Apache-2.0 */
/* Which settings saccade optimize tries. A machine gets slower and faster while it is measured, so
 * a run is compared with one of the best settings so far that was made just before it, and what
 * looks better is measured again in turns with them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "optimize.h"

/* What is better by less is no step: two runs of one setting differ by as much. */
static const double MARGIN = 0.02;
/* Runs after which the best settings are measured again, to compare with. */
enum { ANCHOR_RUNS = 3 };
/* In turns, of what looks better: so many at least, and more while noise hides whether it is. */
enum { PAIRS_MIN = 3, PAIRS_MAX = 7 };

/* Where two runs differ by more than this, more of them say little. */
static const double NOISE_MAX = 0.3;

/* ---- what is better ---- */

/* The larger the better; NAN: the run does not say. */
static double score(enum optimize_goal goal, const struct optimize_figures *f)
{
    switch (goal) {
    case OPTIMIZE_FPS: return f->fps;
    case OPTIMIZE_LATENCY: return 1 / f->latency_ms;
    case OPTIMIZE_VRAM: return 1 / f->memory_bytes;
    case OPTIMIZE_WATTS: return f->fps / f->watts; /* frames for a watt-second */
    }
    return (double)NAN;
}

double optimize_ratio(enum optimize_goal goal, double keep_fps, double memory_max,
                      const struct optimize_figures *run, const struct optimize_figures *beside)
{
    if (!run->ok || run->memory_share > memory_max)
        return 0;
    if (goal != OPTIMIZE_FPS && run->fps < keep_fps * beside->fps)
        return 0;
    const double ratio = score(goal, run) / score(goal, beside);
    return isfinite(ratio) ? ratio : 0;
}

static double ratio_of(const struct optimize_search *s, const struct optimize_figures *run)
{
    /* Of the start's frames a second, and the anchor may do less of them already. */
    return optimize_ratio(s->goal, s->keep_fps / s->best_fps_ratio, s->memory_max, run, &s->anchor);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_size);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* ---- one point ---- */

static int run_point(struct optimize_search *s, const int *point, struct optimize_figures *out)
{
    const int status = s->run(s->user, point, out);
    s->runs++;
    s->failed += status == 0 && !out->ok;
    return status;
}

/* Two runs of the same settings: how far apart they are is noise. */
static void note_noise(struct optimize_search *s, const struct optimize_figures *again)
{
    const double apart = fabs(log(score(s->goal, again) / score(s->goal, &s->anchor)));
    if (!isfinite(apart))
        return;
    /* a deviation is 1.25 times the mean difference */
    s->noise = s->anchors++ ? 0.7 * s->noise + 0.3 * 1.25 * apart : 1.25 * apart;
    s->noise = fmin(s->noise, NOISE_MAX);
}

static int renew_anchor(struct optimize_search *s)
{
    struct optimize_figures again;
    const int               status = run_point(s, s->best, &again);
    if (status == 0 && again.ok) {
        note_noise(s, &again);
        s->anchor = again;
    }
    s->anchor_age = 0;
    return status;
}

/* At a batch that had no memory, or above: not tried again, as other programs may need theirs. */
static bool is_beyond_cliff(const struct optimize_search *s, const int *point)
{
    for (int k = 0; k < s->knob_count; k++)
        if (s->cliff[k] && point[k] >= s->cliff[k])
            return true;
    return false;
}

static void note_cliff(struct optimize_search *s, const int *point,
                       const struct optimize_figures *figures)
{
    if (figures->ok && !(figures->memory_share > s->memory_max))
        return;
    for (int k = 0; k < s->knob_count; k++)
        if (s->knobs[k].fills && point[k] > s->best[k])
            s->cliff[k] = point[k];
}

static bool may_change_results(const struct optimize_search *s, const int *point)
{
    for (int k = 0; k < s->knob_count; k++)
        if (s->knobs[k].changes && point[k] != s->knobs[k].start)
            return true;
    return false;
}

/* Whether n pairs leave it open that a point is better. */
static bool may_be_better(const struct optimize_search *s, const struct gain *gain, int n)
{
    return gain->mean + s->noise / sqrt(n) > log1p(MARGIN);
}

/* Pairs in turns; the first ratio is there already. better: by more than noise. */
static int confirm(struct optimize_search *s, const int *point, double *ratio, bool *better,
                   struct optimize_figures *figures)
{
    double      logs[PAIRS_MAX] = {log(*ratio)};
    struct gain gain = {.mean = logs[0]};
    for (int n = 1; n < PAIRS_MAX && !*better && may_be_better(s, &gain, n); n++) {
        int status = renew_anchor(s);
        if (status == 0)
            status = run_point(s, point, figures);
        if (status != 0)
            return status;
        *ratio = ratio_of(s, figures);
        if (*ratio <= 0) /* it failed this time */
            return 0;
        logs[n] = log(*ratio);
        gain = gain_of(logs, n + 1);
        *better = n + 1 >= PAIRS_MIN && gain_is_real(&gain) && gain.mean > log1p(MARGIN);
    }
    *ratio = exp(gain.mean);
    return 0;
}

/* *ratio: to the best so far; 0: it can't be. better: it is what is best now. */
static int try_point(struct optimize_search *s, const int *point, double *ratio, bool *better,
                     struct optimize_figures *figures)
{
    int status = 0;
    *ratio = 0;
    *better = false;
    if (is_beyond_cliff(s, point))
        return 0;
    if (s->anchor_age >= ANCHOR_RUNS)
        status = renew_anchor(s);
    if (status == 0)
        status = run_point(s, point, figures);
    if (status != 0)
        return status;
    s->anchor_age++;
    note_cliff(s, point, figures);
    *ratio = ratio_of(s, figures);
    if (*ratio > 0)
        status = confirm(s, point, ratio, better, figures);
    if (status != 0 || !*better || !may_change_results(s, point))
        return status;
    status = s->agrees(s->user, point, better);
    s->refused += !*better;
    return status;
}

/* ---- steps ---- */

static void keep_step(struct optimize_search *s, const int *point, double ratio)
{
    const int room = sizeof s->steps / sizeof s->steps[0];
    for (int k = 0; k < s->knob_count; k++)
        if (point[k] != s->best[k] && s->step_count < room)
            s->steps[s->step_count++] = (struct optimize_step){k, s->best[k], point[k], ratio};
}

static void keep_best(struct optimize_search *s, const int *point, double ratio,
                      const struct optimize_figures *figures)
{
    keep_step(s, point, ratio);
    memcpy(s->best, point, (size_t)s->knob_count * sizeof *point);
    s->best_ratio *= ratio;
    s->best_fps_ratio *= figures->fps / s->anchor.fps;
    s->best_figures = s->anchor = *figures;
    s->anchor_age = 0;
}

/* ---- a climb over some of the knobs ---- */

struct round {
    struct climb      climb;
    struct climb_knob knobs[CLIMB_KNOBS_MAX];
    int               of[CLIMB_KNOBS_MAX]; /* which of the search's knobs */
    int               count;
};

static void begin_round(struct optimize_search *s, struct round *r, unsigned stages)
{
    const struct climb_params params = {.margin = MARGIN, .restarts = 1, .seed = s->seed};
    r->count = 0;
    for (int k = 0; k < s->knob_count; k++) {
        if (!(s->knobs[k].stages & stages))
            continue;
        r->of[r->count] = k;
        r->knobs[r->count++] = (struct climb_knob){s->knobs[k].key, s->knobs[k].count, s->best[k]};
    }
    climb_init(&r->climb, r->knobs, r->count, &params);
}

/* The climb's point among all knobs. */
static void spread(const struct optimize_search *s, const struct round *r, const int *at,
                   int *point)
{
    memcpy(point, s->best, sizeof s->best);
    for (int i = 0; i < r->count; i++)
        point[r->of[i]] = at[i];
}

/* Values are ratios to the start of the search, as the climb compares points of different times. */
static int climb_round(struct optimize_search *s, struct round *r)
{
    int at[CLIMB_KNOBS_MAX] = {0}, point[CLIMB_KNOBS_MAX], status = 0;
    while (status == 0 && !s->ended(s->user) && climb_ask(&r->climb, at)) {
        struct optimize_figures figures = {0};
        double                  ratio = 1, value = -INFINITY;
        bool                    better = false;
        spread(s, r, at, point);
        if (r->climb.told_count > 0) /* the start of the round is the best so far */
            status = try_point(s, point, &ratio, &better, &figures);
        if (status != 0)
            return status;
        if (ratio > 0) /* what was not shown to be better is no step */
            value = s->best_ratio * (better ? ratio : fmin(ratio, 1));
        if (better)
            keep_best(s, point, ratio, &figures);
        if (!climb_tell(&r->climb, value))
            return -1;
    }
    return status;
}

static int search_round(struct optimize_search *s, unsigned stages)
{
    struct round r;
    begin_round(s, &r, stages);
    const int status = r.count ? climb_round(s, &r) : 0;
    climb_finish(&r.climb);
    return status;
}

/* What bounds the run, then what bounds it after that. */
static int follow_bottleneck(struct optimize_search *s)
{
    unsigned done = 0;
    int      status = 0;
    for (;;) {
        const unsigned bit = optimize_stage_bit(s->best_figures.bottleneck);
        if (status != 0 || !bit || (done & bit) || s->ended(s->user))
            return status;
        done |= bit;
        status = search_round(s, bit);
    }
}

int optimize_search_run(struct optimize_search *s)
{
    for (int k = 0; k < s->knob_count; k++)
        s->best[k] = s->knobs[k].start;
    s->best_ratio = s->best_fps_ratio = 1;
    int status = run_point(s, s->best, &s->first);
    s->best_figures = s->anchor = s->first;
    if (status == 0 && s->first.ok)
        status = renew_anchor(s);
    if (status != 0 || !s->first.ok)
        return status;
    status = s->follows ? follow_bottleneck(s) : search_round(s, ~0u);
    s->complete = status == 0 && !s->ended(s->user);
    return status;
}

/* ---- at the end ---- */

static double median_of(const struct optimize_figures *f, int n, size_t offset)
{
    double values[OPTIMIZE_TURNS_MAX];
    for (int i = 0; i < n; i++)
        values[i] = *(const double *)((const char *)&f[i] + offset);
    return median(values, n);
}

/* Each figure's own median; texts are of the last run. */
static void take_medians(const struct optimize_figures *f, int n, struct optimize_figures *out)
{
#define AT(field) offsetof(struct optimize_figures, field)
    static const size_t fields[] = {AT(fps),     AT(latency_ms), AT(memory_bytes), AT(memory_share),
                                    AT(watts),   AT(cpu),        AT(others),       AT(gpu),
                                    AT(decoder), AT(encoder),    AT(batch),        AT(wall_s)};
#undef AT
    *out = f[n - 1];
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        *(double *)((char *)out + fields[i]) = median_of(f, n, fields[i]);
}

/* The order changes from turn to turn, as a machine may become slower with time. */
static int run_turn(struct optimize_search *s, int turn, const int *start,
                    struct optimize_figures *first, struct optimize_figures *tuned)
{
    const bool swapped = turn % 2 == 1;
    int        status = run_point(s, swapped ? s->best : start, swapped ? tuned : first);
    if (status == 0)
        status = run_point(s, swapped ? start : s->best, swapped ? first : tuned);
    return status;
}

/* More than the usual number only for a gain that noise hides, and while there is time. */
static bool needs_turn(const struct optimize_search *s, const struct optimize_comparison *c, int i)
{
    if (i < OPTIMIZE_TURNS)
        return true;
    return i < OPTIMIZE_TURNS_MAX && c->gain.mean > 0 && !gain_is_real(&c->gain) &&
           !s->ended(s->user);
}

int optimize_compare(struct optimize_search *s, struct optimize_comparison *out)
{
    struct optimize_figures first[OPTIMIZE_TURNS_MAX], tuned[OPTIMIZE_TURNS_MAX];
    int                     start[CLIMB_KNOBS_MAX] = {0};
    double                  gains[OPTIMIZE_TURNS_MAX];
    bool                    works = true;
    *out = (struct optimize_comparison){.count = 0};
    for (int k = 0; k < s->knob_count; k++)
        start[k] = s->knobs[k].start;
    for (int i = 0; works && needs_turn(s, out, i); i++) {
        const int status = run_turn(s, i, start, &first[i], &tuned[i]);
        if (status != 0)
            return status;
        const double ratio =
            optimize_ratio(s->goal, s->keep_fps, s->memory_max, &tuned[i], &first[i]);
        works = first[i].ok && ratio > 0;
        out->ratios[i] = ratio;
        gains[i] = works ? log(ratio) : 0;
        out->count = i + 1;
        out->gain = gain_of(gains, out->count);
    }
    take_medians(first, out->count, &out->start);
    take_medians(tuned, out->count, &out->tuned);
    out->real = works && gain_is_real(&out->gain);
    return 0;
}

/* ---- streams ---- */

static int run_streams(int (*run)(void *user, int streams, struct optimize_figures *out),
                       void *user, int n, double nominal_fps, double *out, bool *keeps)
{
    struct optimize_figures f = {0};
    const int               status = run(user, n, &f);
    if (status != 0)
        return status;
    out[n] = f.ok ? f.fps : 0;
    *keeps = f.ok && f.fps >= n * nominal_fps;
    return 0;
}

/* Doubled while they keep up, then halved into what is between. */
int optimize_streams(int (*run)(void *user, int streams, struct optimize_figures *out), void *user,
                     int most, double nominal_fps, double *out, int *best)
{
    int  good = 0, bad = most + 1, next = 1, status = 0;
    bool keeps = false;
    for (int n = 0; n <= most; n++)
        out[n] = (double)NAN;
    while (status == 0 && good + 1 < bad) {
        status = run_streams(run, user, next, nominal_fps, out, &keeps);
        if (status == 0)
            *(keeps ? &good : &bad) = next;
        next = bad <= most ? (good + bad) / 2 : 2 * good < most ? 2 * good : most;
    }
    *best = good;
    return status;
}
