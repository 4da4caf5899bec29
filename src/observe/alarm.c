/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/alarm.h"

#include <math.h>

enum {
    USUAL_MS = 60 * 1000, /* recent values are those of a minute */
    WARM_MS = 10 * 1000,  /* the first batches plan, fill pools and caches */
    SETTLED_MS = 5 * 60 * 1000,
    GROWTH_MS = 3 * 60 * 1000, /* leaks are slow; pools that fill up end sooner */
    HOLD_MIN = 3,              /* samples: one or two may be odd by themselves */
    USUAL_MIN = 20,
    GROWTH_PARTS = 6
};

struct rule {
    size_t limit;     /* of warnings: where it is in the parameters */
    double fixed;     /* or itself, where that is 0 */
    double gap;       /* below the limit by which it ends */
    bool   lower;     /* the limit is a lower one, and the gap above it */
    bool   mean;      /* it is the last minute's mean that counts */
    int    direction; /* of anomalies: 1 too much, -1 too little, 0 not looked for */
    double ratio;     /* the part of params.anomaly_ratio above 1 that counts */
    double floor;     /* changes below this do not matter, in the figure's unit */
    bool   work;      /* what others' use of the CPUs explains is not odd */
    double growth;    /* above 0: looked for, from this many on */
};
#define LIMIT(field) offsetof(struct sac_monitor_params, field)
static const struct rule rules[SAC_ALARM_RULES] = {
    [SAC_ALARM_LOAD] = {.limit = LIMIT(utilisation_max), .gap = 0.05, .mean = true},
    [SAC_ALARM_FULL] = {.limit = LIMIT(memory_max), .gap = 0.02},
    [SAC_ALARM_HEAT] = {.limit = LIMIT(temperature_max), .gap = 4},
    [SAC_ALARM_POWER] = {.limit = LIMIT(power_max), .gap = 0.04},
    [SAC_ALARM_THROTTLE] = {.fixed = 0.5, .gap = 0.25},
    [SAC_ALARM_BEHIND] = {.fixed = 0.8, .gap = 0.1, .lower = true},
    [SAC_ALARM_TIME] = {.direction = 1, .ratio = 1, .floor = 0.5},
    [SAC_ALARM_WORK] = {.direction = 1, .ratio = 1, .floor = 0.5, .work = true},
    [SAC_ALARM_RATE] = {.direction = -1, .ratio = 1, .floor = 0.5},
    [SAC_ALARM_BYTES] = {.direction = 1, .ratio = 0.5, .floor = 64e6, .growth = 16e6},
    [SAC_ALARM_HANDLES] = {.direction = 1, .ratio = 1, .floor = 64, .growth = 16},
};

static int samples_of(double ms, int interval_ms, int min)
{
    return SAC_MAX((int)ceil(ms / interval_ms), min);
}

void sac_alarm_set_up(struct sac_alarm_setup *setup, const struct sac_monitor_params *params)
{
    const int ms = params->interval_ms;
    *setup = (struct sac_alarm_setup){
        .params = *params,
        .hold = samples_of(params->hold_s * 1e3, ms, HOLD_MIN),
        .usual = samples_of(USUAL_MS, ms, USUAL_MIN),
        .warm = samples_of(WARM_MS, ms, 1),
        .settled = samples_of(SETTLED_MS, ms, USUAL_MIN),
        .growth = samples_of(GROWTH_MS, ms, GROWTH_PARTS) / GROWTH_PARTS,
    };
}

void sac_alarm_restart(struct sac_alarm *alarm, const struct sac_series *series)
{
    alarm->skipped = series->count;
}

/* Count samples in a row that are so; true once there are enough. */
static bool holds(struct sac_alarm *alarm, enum sac_alarm_kind kind, bool so, int hold)
{
    alarm->streak[kind] = so ? alarm->streak[kind] + 1 : 0;
    if (alarm->streak[kind] < hold)
        return false;
    alarm->streak[kind] = 0;
    return true;
}

/* ---- a limit ---- */

/* Where it begins, or, once it is on, where it ends. */
static bool is_past(const struct rule *rule, double now, double limit, bool on)
{
    if (rule->lower)
        return on ? now > limit + rule->gap : now <= limit;
    return on ? now < limit - rule->gap : now >= limit;
}

static bool look_at_limit(struct sac_alarm *alarm, const struct sac_series *series,
                          const struct sac_alarm_setup *setup, struct sac_alarm_news *news)
{
    const struct rule *rule = &rules[alarm->rule];
    const bool         on = alarm->on[SAC_ALARM_LIMIT];
    const int          over = rule->mean ? setup->usual : 1; /* samples */
    const double       now = sac_series_mean(series, 0, over);
    const double       limit =
        rule->limit ? *(const double *)((const char *)&setup->params + rule->limit) : rule->fixed;
    if (limit <= 0 || isnan(now) || isnan(sac_series_at(series, 0)) || series->count < over)
        return false;
    if (rule->lower && series->count - alarm->skipped < setup->warm)
        return false; /* what begins does not have its pace yet */
    if (!holds(alarm, SAC_ALARM_LIMIT, is_past(rule, now, limit, on), setup->hold))
        return false;
    alarm->on[SAC_ALARM_LIMIT] = !on;
    *news =
        (struct sac_alarm_news){.ended = on,
                                .before = limit,
                                .after = sac_series_mean(series, 0, SAC_MAX(over, setup->hold))};
    return true;
}

/* ---- growth ---- */

static double least_of_part(const struct sac_series *series, int part, int length)
{
    return sac_series_least(series, (GROWTH_PARTS - 1 - part) * length, length);
}

/* A leak's least values rise from each part of the time to the next, by about as much: what comes
 * and goes falls back somewhere, and what fills up rises less and less. */
static bool only_grows(const double least[GROWTH_PARTS])
{
    const double step = (least[GROWTH_PARTS - 1] - least[0]) / (GROWTH_PARTS - 1);
    for (int i = 1; i < GROWTH_PARTS; i++)
        if (!(step > 0 && least[i] - least[i - 1] >= step / 4))
            return false;
    return true;
}

static bool look_at_growth(struct sac_alarm *alarm, const struct sac_series *series,
                           const struct sac_alarm_setup *setup, struct sac_alarm_news *news)
{
    const struct rule *rule = &rules[alarm->rule];
    const bool         on = alarm->on[SAC_ALARM_GROWTH];
    const int          since = series->count - alarm->skipped - setup->usual; /* a minute */
    double             least[GROWTH_PARTS];
    if (rule->growth <= 0 || setup->params.growth_min <= 0 || since < setup->growth * GROWTH_PARTS)
        return false;
    for (int i = 0; i < GROWTH_PARTS; i++)
        least[i] = least_of_part(series, i, setup->growth);
    const double first = least[0], last = least[GROWTH_PARTS - 1];
    const double enough = fmax(rule->growth, setup->params.growth_min * first);
    const bool   so =
        on ? last <= least[GROWTH_PARTS / 2 - 1] : only_grows(least) && last - first >= enough;
    if (!so)
        return false;
    alarm->on[SAC_ALARM_GROWTH] = !on;
    *news = (struct sac_alarm_news){
        .kind = SAC_ALARM_GROWTH, .ended = on, .before = first, .after = sac_series_at(series, 0)};
    return true;
}

/* ---- anomalies ---- */

/* The samples before the latest `hold`, which may be the anomaly; 0: too few so far. */
static int usual_of(const struct sac_alarm *alarm, const struct sac_series *series,
                    const struct sac_alarm_setup *setup, double *median, double *deviation)
{
    const int since = series->count - alarm->skipped - setup->warm - setup->hold;
    const int n = SAC_MIN(SAC_MIN(since, setup->usual), series->capacity - setup->hold);
    if (n < USUAL_MIN)
        return 0;
    const int known = sac_series_usual(series, setup->hold, n, median, deviation);
    return known < USUAL_MIN / 2 ? 0 : known;
}

/* Where anomalies begin. */
static double edge_of(const struct sac_alarm *alarm, const struct sac_monitor_params *p,
                      double median, double deviation)
{
    const struct rule *rule = &rules[alarm->rule];
    const double       ratio = 1 + (p->anomaly_ratio - 1) * rule->ratio;
    const double apart = fmax(p->anomaly_spread * deviation, fmax(rule->floor, alarm->matters));
    return rule->direction > 0 ? fmax(median * ratio, median + apart)
                               : fmin(median / ratio, median - apart);
}

static void begin_anomaly(struct sac_alarm *alarm, const struct sac_series *series,
                          const struct sac_alarm_setup *setup, double median, double deviation,
                          struct sac_alarm_news *news)
{
    alarm->on[SAC_ALARM_ANOMALY] = true;
    alarm->since = 0;
    alarm->before = median;
    alarm->deviation = deviation;
    *news = (struct sac_alarm_news){.kind = SAC_ALARM_ANOMALY,
                                    .before = median,
                                    .after = sac_series_mean(series, 0, setup->hold)};
}

/* The deviation over all that is kept: a minute can be a quiet one. Only asked for where the
 * minute's is not enough, as it costs as much again. */
static double long_deviation(const struct sac_alarm *alarm, const struct sac_series *series,
                             const struct sac_alarm_setup *setup)
{
    const int since = series->count - alarm->skipped - setup->warm - setup->hold;
    double    median, deviation;
    return sac_series_usual(series, setup->hold, SAC_MIN(since, series->capacity - setup->hold),
                            &median, &deviation)
               ? deviation
               : 0;
}

static bool is_odd(const struct sac_alarm *alarm, const struct sac_alarm_setup *setup, double now,
                   double median, double deviation)
{
    const double edge = edge_of(alarm, &setup->params, median, deviation);
    return (now - edge) * rules[alarm->rule].direction > 0;
}

static bool look_for_anomaly(struct sac_alarm *alarm, const struct sac_series *series,
                             const struct sac_alarm_setup *setup, double slowed,
                             struct sac_alarm_news *news)
{
    const double now = sac_series_at(series, 0);
    double       median, deviation;
    if (isnan(now) || !usual_of(alarm, series, setup, &median, &deviation))
        return false;
    bool odd = is_odd(alarm, setup, now, median * slowed, deviation * slowed);
    if (odd) {
        deviation = fmax(deviation, long_deviation(alarm, series, setup));
        odd = is_odd(alarm, setup, now, median * slowed, deviation * slowed);
    }
    /* A moment's fault is in all values that it is part of. */
    if (!holds(alarm, SAC_ALARM_ANOMALY, odd, setup->hold + SAC_MAX(alarm->span, 1) - 1))
        return false;
    begin_anomaly(alarm, series, setup, median, deviation, news);
    return true;
}

/* It ends half-way back to the usual value, or when it has become the usual one. */
static bool look_for_its_end(struct sac_alarm *alarm, const struct sac_series *series,
                             const struct sac_alarm_setup *setup, double slowed,
                             struct sac_alarm_news *news)
{
    const struct rule *rule = &rules[alarm->rule];
    const double       now = sac_series_at(series, 0);
    const double       usual = alarm->before * slowed;
    const double       edge = edge_of(alarm, &setup->params, usual, alarm->deviation * slowed);
    const bool         settled = ++alarm->since >= setup->settled;
    if (isnan(now) && !settled)
        return false;
    if (!holds(alarm, SAC_ALARM_ANOMALY, (now - (usual + edge) / 2) * rule->direction < 0,
               setup->hold) &&
        !settled)
        return false;
    alarm->on[SAC_ALARM_ANOMALY] = false;
    alarm->streak[SAC_ALARM_ANOMALY] = 0;
    *news = (struct sac_alarm_news){.kind = SAC_ALARM_ANOMALY,
                                    .ended = true,
                                    .settled = settled,
                                    .before = alarm->before,
                                    .after = sac_series_mean(series, 0, setup->hold)};
    return true;
}

static bool look_at_anomaly(struct sac_alarm *alarm, const struct sac_series *series,
                            const struct sac_alarm_setup *setup, double slowed,
                            struct sac_alarm_news *news)
{
    const struct rule *rule = &rules[alarm->rule];
    if (rule->direction == 0 || setup->params.anomaly_ratio <= 0)
        return false;
    slowed = rule->work ? slowed : 1;
    return alarm->on[SAC_ALARM_ANOMALY] ? look_for_its_end(alarm, series, setup, slowed, news)
                                        : look_for_anomaly(alarm, series, setup, slowed, news);
}

int sac_alarm_look(struct sac_alarm *alarm, const struct sac_series *series,
                   const struct sac_alarm_setup *setup, double slowed,
                   struct sac_alarm_news news[SAC_ALARM_KINDS])
{
    int n = 0;
    n += look_at_limit(alarm, series, setup, &news[n]);
    n += look_at_growth(alarm, series, setup, &news[n]);
    n += look_at_anomaly(alarm, series, setup, slowed, &news[n]);
    return n;
}

bool sac_alarm_compare(const struct sac_alarm *alarm, const struct sac_series *series,
                       const struct sac_alarm_setup *setup, double *before, double *now)
{
    double deviation;
    *now = sac_series_mean(series, 0, setup->hold);
    return !isnan(*now) && usual_of(alarm, series, setup, before, &deviation) > 0;
}
