/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/monitor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct sac_monitor_params sac_monitor_params_default(void)
{
    return (struct sac_monitor_params){.interval_ms = 1000,
                                       .utilisation_max = 0.95,
                                       .memory_max = 0.95,
                                       .temperature_max = 87,
                                       .power_max = 0.98,
                                       .hold_s = 4,
                                       .growth_min = 0.05,
                                       .anomaly_ratio = 1.5,
                                       .anomaly_spread = 6};
}

const char *sac_monitor_kind_name(enum sac_monitor_kind kind)
{
    return kind == SAC_MONITOR_WARNING   ? "warning"
           : kind == SAC_MONITOR_ANOMALY ? "anomaly"
                                         : "unknown";
}

/* ---- creation ---- */

sac_result sac_monitor_check(sac_context *ctx, const struct sac_monitor_params *p)
{
    const struct sac_number numbers[] = {
        {"interval_ms", p->interval_ms, 100, 60000},
        {"utilisation_max", p->utilisation_max, 0, 1},
        {"memory_max", p->memory_max, 0, 1},
        {"temperature_max", p->temperature_max, 0, 200},
        {"power_max", p->power_max, 0, 2},
        {"hold_s", p->hold_s, 0.1, 3600},
        {"growth_min", p->growth_min, 0, 10},
        {"anomaly_ratio", p->anomaly_ratio == 0 ? 1 : p->anomaly_ratio, 1, 100},
        {"anomaly_spread", p->anomaly_spread, 1, 100},
        {"published", p->published, 0, 1},
        {"live", p->live, 0, 1},
    };
    SAC_NEEDS_NO_LATER_FIELD(ctx, p, "monitor parameters");
    return sac_numbers_check(ctx, "monitor", numbers, SAC_COUNT(numbers));
}

sac_result sac_monitor_create_empty(sac_context *ctx, const struct sac_monitor_params *params,
                                    sac_monitor **out)
{
    const struct sac_monitor_params defaults = sac_monitor_params_default();
    params = params ? params : &defaults;
    sac_result res = sac_monitor_check(ctx, params);
    if (res != SAC_OK)
        return res;
    sac_monitor *m = sac_new(sac_monitor);
    if (!m)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for a monitor");
    m->ctx = ctx;
    sac_alarm_set_up(&m->setup, params);
    m->begun_ns = sac_time_ns();
    pthread_mutex_init(&m->lock, NULL);
    *out = m;
    return SAC_OK;
}

void sac_monitor_destroy(sac_monitor **monitor)
{
    sac_monitor *m = monitor ? *monitor : NULL;
    if (!m)
        return;
    for (int i = 0; i < m->count; i++) {
        sac_series_finish(&m->watched[i]->series);
        sac_free(m->watched[i]);
    }
    sac_free(m->users);
    sac_nvml_close(&m->nvml);
    pthread_mutex_destroy(&m->lock);
    sac_free(m);
    *monitor = NULL;
}

/* ---- figures ---- */

static struct sac_watched *add_watched(sac_monitor *m, const char *name, const char *unit,
                                       enum sac_alarm_rule rule)
{
    struct sac_watched *w = m->count < SAC_MONITOR_FIGURES ? sac_new(struct sac_watched) : NULL;
    if (!w || !sac_series_init(&w->series, m->setup.params.interval_ms)) {
        sac_free(w);
        return NULL;
    }
    snprintf(w->name, sizeof w->name, "%s", name);
    snprintf(w->unit, sizeof w->unit, "%s", unit);
    w->alarm.rule = rule;
    m->watched[m->count++] = w;
    return w;
}

/* They come in the same order each time, so most are found at once. */
static struct sac_watched *watched_of(sac_monitor *m, const char *name, const char *unit,
                                      enum sac_alarm_rule rule)
{
    for (int i = 0; i < m->count; i++) {
        const int at = (m->next + i) % m->count;
        if (strcmp(m->watched[at]->name, name) == 0) {
            m->next = at + 1;
            return m->watched[at];
        }
    }
    m->next = 0;
    return add_watched(m, name, unit, rule);
}

void sac_monitor_begin(sac_monitor *m)
{
    pthread_mutex_lock(&m->lock);
    m->next = 0;
    m->samples++;
    for (int i = 0; i < m->count; i++)
        m->watched[i]->value = NAN;
}

static void put_value(sac_monitor *m, enum sac_alarm_rule rule, const char *unit, double value,
                      double matters, int span, const char *name)
{
    struct sac_watched *w = watched_of(m, name, unit, rule);
    if (!w)
        return;
    w->value = value;
    w->alarm.matters = matters;
    w->alarm.span = span;
}

static void put(sac_monitor *m, enum sac_alarm_rule rule, const char *unit, double value,
                double matters, const char *name, va_list args)
{
    char full[48];
    vsnprintf(full, sizeof full, name, args);
    put_value(m, rule, unit, value, matters, 1, full);
}

void sac_monitor_put(sac_monitor *m, enum sac_alarm_rule rule, const char *unit, double value,
                     const char *name, ...)
{
    va_list args;
    va_start(args, name);
    put(m, rule, unit, value, 0, name, args);
    va_end(args);
}

void sac_monitor_put_time(sac_monitor *m, enum sac_alarm_rule rule, double ms, double matters,
                          const char *name, ...)
{
    va_list args;
    va_start(args, name);
    put(m, rule, "ms", ms, matters, name, args);
    va_end(args);
}

void sac_monitor_put_tail(sac_monitor *m, enum sac_alarm_rule rule, double ms, double matters,
                          int span, const char *name)
{
    put_value(m, rule, "ms", ms, matters, span, name);
}

void sac_monitor_restart(sac_monitor *m)
{
    for (int i = 0; i < m->count; i++)
        sac_alarm_restart(&m->watched[i]->alarm, &m->watched[i]->series);
}

/* ---- events ---- */

/* "12 s", "3 min" */
static void format_duration(double s, char *buf, size_t size)
{
    snprintf(buf, size, s < 120 ? "%.0f s" : "%.0f min", s < 120 ? s : s / 60);
}

static void tell_begin(const sac_monitor *m, const struct sac_watched *w,
                       const struct sac_alarm_news *news, char *buf, size_t size)
{
    static const char *const forms[SAC_ALARM_KINDS] = {
        [SAC_ALARM_LIMIT] = "%s: %s, and the limit is %s%s",
        [SAC_ALARM_GROWTH] = "%s: %s, and has only grown for three minutes, from %s, as a leak%s",
        [SAC_ALARM_ANOMALY] = "%s: %s, and was %s%s",
    };
    char before[32], after[32], cause[240] = "";
    sac_monitor_format(news->before, w->unit, before, sizeof before);
    sac_monitor_format(news->after, w->unit, after, sizeof after);
    if (news->kind != SAC_ALARM_LIMIT || w->alarm.rule == SAC_ALARM_BEHIND)
        sac_monitor_cause(m, w, cause, sizeof cause);
    if (w->alarm.rule == SAC_ALARM_THROTTLE)
        snprintf(buf, size, "%s: the card slows itself down", w->name);
    else
        snprintf(buf, size, forms[news->kind], w->name, after, before, cause);
}

static void tell_end(const struct sac_watched *w, const struct sac_alarm_news *news, double lasted,
                     char *buf, size_t size)
{
    char after[32], duration[32];
    sac_monitor_format(news->after, w->unit, after, sizeof after);
    format_duration(lasted, duration, sizeof duration);
    if (news->settled)
        snprintf(buf, size, "%s: %s for %s, which counts as usual from now on", w->name, after,
                 duration);
    else
        snprintf(buf, size, "%s: %s again, after %s", w->name, after, duration);
}

static void begin_event(sac_monitor *m, struct sac_watched *w, const struct sac_alarm_news *news,
                        double now_s)
{
    struct sac_monitor_event *event = &m->event[m->events % SAC_MONITOR_EVENTS];
    *event = (struct sac_monitor_event){
        .kind = news->kind == SAC_ALARM_ANOMALY ? SAC_MONITOR_ANOMALY : SAC_MONITOR_WARNING,
        .begun_s = now_s,
        .ended_s = -1,
        .before = news->before,
        .after = news->after,
    };
    snprintf(event->figure, sizeof event->figure, "%s", w->name);
    tell_begin(m, w, news, event->text, sizeof event->text);
    w->event[news->kind] = m->events++;
    if (m->logs)
        sac_log(m->ctx, SAC_LOG_WARN, "monitor: %s", event->text);
}

static void end_event(sac_monitor *m, struct sac_watched *w, const struct sac_alarm_news *news,
                      double now_s)
{
    const uint64_t            number = w->event[news->kind];
    struct sac_monitor_event *event = &m->event[number % SAC_MONITOR_EVENTS];
    char                      text[160];
    if (m->events - number > SAC_MONITOR_EVENTS)
        return; /* so many others came that it is no longer kept */
    event->ended_s = now_s;
    tell_end(w, news, now_s - event->begun_s, text, sizeof text);
    if (m->logs)
        sac_log(m->ctx, SAC_LOG_INFO, "monitor: %s", text);
}

/* All have their sample before the first is judged: each may be another's cause. */
void sac_monitor_end(sac_monitor *m)
{
    const double now_s = (double)(sac_time_ns() - m->begun_ns) * 1e-9;
    for (int i = 0; i < m->count; i++)
        sac_series_add(&m->watched[i]->series, m->watched[i]->value);
    const double slowed = sac_monitor_slowed(m);
    for (int i = 0; i < m->count; i++) {
        struct sac_watched   *w = m->watched[i];
        struct sac_alarm_news news[SAC_ALARM_KINDS];
        const int             n = sac_alarm_look(&w->alarm, &w->series, &m->setup, slowed, news);
        for (int j = 0; j < n; j++)
            (news[j].ended ? end_event : begin_event)(m, w, &news[j], now_s);
    }
    pthread_mutex_unlock(&m->lock);
}

/* ---- questions ---- */

int sac_monitor_figure_count(sac_monitor *m)
{
    if (!m)
        return 0;
    pthread_mutex_lock(&m->lock);
    const int count = m->count;
    pthread_mutex_unlock(&m->lock);
    return count;
}

sac_result sac_monitor_get_figure(sac_monitor *m, int index, struct sac_monitor_figure *out)
{
    SAC_NEEDS(NULL, m);
    SAC_NEEDS(m->ctx, out);
    pthread_mutex_lock(&m->lock);
    const int count = m->count;
    if (index >= 0 && index < count) {
        const struct sac_watched *w = m->watched[index];
        *out = (struct sac_monitor_figure){0};
        memcpy(out->name, w->name, sizeof out->name);
        memcpy(out->unit, w->unit, sizeof out->unit);
        sac_series_get(&w->series, m->setup.params.interval_ms, out);
    }
    pthread_mutex_unlock(&m->lock);
    return index >= 0 && index < count
               ? SAC_OK
               : SAC_FAIL(m->ctx, SAC_ERR_ARG, "monitor: figure %d of %d", index, count);
}

int sac_monitor_event_count(sac_monitor *m)
{
    if (!m)
        return 0;
    pthread_mutex_lock(&m->lock);
    const int count = (int)SAC_MIN(m->events, (uint64_t)SAC_MONITOR_EVENTS);
    pthread_mutex_unlock(&m->lock);
    return count;
}

sac_result sac_monitor_get_event(sac_monitor *m, int index, struct sac_monitor_event *out)
{
    SAC_NEEDS(NULL, m);
    SAC_NEEDS(m->ctx, out);
    pthread_mutex_lock(&m->lock);
    const int      count = (int)SAC_MIN(m->events, (uint64_t)SAC_MONITOR_EVENTS);
    const uint64_t first = m->events - (uint64_t)count;
    if (index >= 0 && index < count)
        *out = m->event[(first + (uint64_t)index) % SAC_MONITOR_EVENTS];
    pthread_mutex_unlock(&m->lock);
    return index >= 0 && index < count
               ? SAC_OK
               : SAC_FAIL(m->ctx, SAC_ERR_ARG, "monitor: event %d of %d", index, count);
}

double sac_monitor_cost(sac_monitor *m)
{
    if (!m)
        return 0;
    pthread_mutex_lock(&m->lock);
    const double cost = (double)m->cost_ns, past = (double)(sac_time_ns() - m->begun_ns);
    pthread_mutex_unlock(&m->lock);
    return past > 0 ? cost / past : 0;
}

const char *sac_monitor_gpu_name(const sac_monitor *m, int index)
{
    return m && index >= 0 && index < m->card_count ? m->card_name[index] : NULL;
}

struct sac_monitor_view *sac_monitor_look_at(sac_monitor *m, bool history)
{
    struct sac_monitor_view *v = sac_alloc(sizeof *v);
    if (!v)
        return NULL;
    v->known = true;
    v->interval_s = m->setup.params.interval_ms * 1e-3;
    v->elapsed_s = (double)(sac_time_ns() - m->begun_ns) * 1e-9;
    v->cost = sac_monitor_cost(m);
    v->figure_count = sac_monitor_figure_count(m);
    v->event_count = sac_monitor_event_count(m);
    for (int i = 0; i < v->figure_count; i++) {
        sac_monitor_get_figure(m, i, &v->figure[i]);
        v->figure[i].history_count *= history;
    }
    for (int i = 0; i < v->event_count; i++) {
        struct sac_monitor_told *told = &v->event[i];
        sac_monitor_get_event(m, i, &told->event);
        told->event.ended_s = told->event.ended_s < 0 ? NAN : told->event.ended_s;
        snprintf(told->kind, sizeof told->kind, "%s", sac_monitor_kind_name(told->event.kind));
    }
    return v;
}
