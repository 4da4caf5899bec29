/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/series.h"

#include <math.h>
#include <string.h>

enum { MINUTE_MS = 60 * 1000, USUAL_MAX = 60 };

/* Samples of a normal distribution lie this many standard deviations around their median's median
 * distance (1 / the 0.75 quantile). */
static const double DEVIATIONS_OF_MEDIAN_DISTANCE = 1.4826;

bool sac_series_init(struct sac_series *s, int interval_ms)
{
    *s = (struct sac_series){.least = NAN, .most = NAN, .history_step = 1};
    s->capacity = SAC_MAX(5 * MINUTE_MS / interval_ms, 2);
    s->ring = sac_calloc((size_t)s->capacity, sizeof *s->ring);
    return s->ring != NULL;
}

void sac_series_finish(struct sac_series *s)
{
    sac_free(s->ring);
    *s = (struct sac_series){0};
}

/* Two points become one, and each new one takes twice as long. */
static void halve_history(struct sac_series *s)
{
    for (int i = 0; i < SAC_MONITOR_HISTORY_MAX / 2; i++) {
        const float a = s->history[2 * i], b = s->history[2 * i + 1];
        s->history[i] = isnan(a) ? b : isnan(b) ? a : (a + b) / 2;
    }
    s->history_count = SAC_MONITOR_HISTORY_MAX / 2;
    s->history_step *= 2;
}

static void add_history(struct sac_series *s, double value)
{
    s->pending_count++;
    if (!isnan(value)) {
        s->pending += value;
        s->pending_known++;
    }
    if (s->pending_count < s->history_step)
        return;
    if (s->history_count == SAC_MONITOR_HISTORY_MAX)
        halve_history(s);
    if (s->pending_count < s->history_step)
        return; /* the longer point is half made */
    s->history[s->history_count++] =
        s->pending_known ? (float)(s->pending / s->pending_known) : NAN;
    s->pending = 0;
    s->pending_count = s->pending_known = 0;
}

void sac_series_add(struct sac_series *s, double value)
{
    const float kept = (float)value; /* so that means lie between least and most */
    s->ring[s->count % s->capacity] = kept;
    s->count++;
    s->least = fmin(s->least, kept); /* fmin and fmax pass over NAN */
    s->most = fmax(s->most, kept);
    add_history(s, value);
}

float sac_series_at(const struct sac_series *s, int ago)
{
    const int i = s->count - 1 - ago;
    return ago < 0 || i < 0 || ago >= s->capacity ? NAN : s->ring[i % s->capacity];
}

double sac_series_mean(const struct sac_series *s, int ago, int n)
{
    double sum = 0;
    int    known = 0;
    n = SAC_MIN(n, SAC_MIN(s->count, s->capacity) - ago);
    for (int i = 0; i < n; i++) {
        const float value = sac_series_at(s, ago + i);
        sum += isnan(value) ? 0 : value;
        known += !isnan(value);
    }
    return known ? sum / known : NAN;
}

double sac_series_least(const struct sac_series *s, int ago, int n)
{
    double least = NAN;
    for (int i = 0; i < n; i++)
        least = fmin(least, sac_series_at(s, ago + i));
    return least;
}

static int compare(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double middle_of(float *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, compare);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

int sac_series_usual(const struct sac_series *s, int ago, int n, double *median, double *deviation)
{
    float     values[USUAL_MAX];
    const int step = (n + USUAL_MAX - 1) / USUAL_MAX;
    int       known = 0;
    for (int i = 0; i < n && known < USUAL_MAX; i += step) {
        values[known] = sac_series_at(s, ago + i);
        known += !isnan(values[known]);
    }
    if (!known)
        return 0;
    *median = middle_of(values, known);
    for (int i = 0; i < known; i++)
        values[i] = fabsf(values[i] - (float)*median);
    *deviation = DEVIATIONS_OF_MEDIAN_DISTANCE * middle_of(values, known);
    return known;
}

void sac_series_get(const struct sac_series *s, int interval_ms, struct sac_monitor_figure *out)
{
    const int minute = SAC_MAX(MINUTE_MS / interval_ms, 1);
    out->now = sac_series_at(s, 0);
    out->mean_1m = sac_series_mean(s, 0, minute);
    out->mean_5m = sac_series_mean(s, 0, s->capacity);
    out->least = s->least;
    out->most = s->most;
    out->history_count = s->history_count;
    out->history_step_s = s->history_step * interval_ms * 1e-3;
    memcpy(out->history, s->history, sizeof out->history);
}
