/* SPDX-License-Identifier: Apache-2.0 */
/* Series and alarms on numbers of which it is known what they are. */
#include <math.h>

#include "observe/alarm.h"
#include "tests/test.h"

/* ---- a source of noise: the same numbers in each run ---- */

static uint64_t seed = 1;

static double uniform(void)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ((double)(seed >> 11) + 0.5) / (double)(UINT64_C(1) << 53);
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(2 * 3.14159265358979 * uniform());
}

/* Times of a stage: never below something, with a long tail, and one in fifty far out. */
static double stage_ms(double usual)
{
    return usual * exp(0.15 * normal()) * (uniform() < 0.02 ? 4 : 1);
}

/* ---- one figure and what is found in it ---- */

struct watched {
    struct sac_series      series;
    struct sac_alarm       alarm;
    struct sac_alarm_setup setup;
    double                 slowed;
    int                    begun[SAC_ALARM_KINDS], ended[SAC_ALARM_KINDS];
    int                    begun_at[SAC_ALARM_KINDS], ended_at[SAC_ALARM_KINDS]; /* samples */
    struct sac_alarm_news  last;
};

static void watch(struct watched *w, enum sac_alarm_rule rule, int interval_ms)
{
    struct sac_monitor_params params = sac_monitor_params_default();
    params.interval_ms = interval_ms;
    *w = (struct watched){.alarm.rule = rule, .slowed = 1};
    sac_alarm_set_up(&w->setup, &params);
    assert_true(sac_series_init(&w->series, interval_ms));
}

static void feed(struct watched *w, double value)
{
    struct sac_alarm_news news[SAC_ALARM_KINDS];
    sac_series_add(&w->series, value);
    const int n = sac_alarm_look(&w->alarm, &w->series, &w->setup, w->slowed, news);
    for (int i = 0; i < n; i++) {
        const enum sac_alarm_kind kind = news[i].kind;
        w->last = news[i];
        (news[i].ended ? w->ended : w->begun)[kind]++;
        (news[i].ended ? w->ended_at : w->begun_at)[kind] = w->series.count;
    }
}

static bool close_to(double a, double b)
{
    return fabs(a - b) <= 1e-6 * fabs(b) + 1e-9;
}

/* ---- series ---- */

static void averages_are_of_their_minutes(void **state)
{
    (void)state;
    struct watched            w;
    struct sac_monitor_figure f;
    watch(&w, SAC_ALARM_NOTHING, 1000);
    for (int i = 0; i < 600; i++)
        feed(&w, i < 300 ? 1 : i < 540 ? 2 : 4);
    sac_series_get(&w.series, 1000, &f);
    assert_true(close_to(f.now, 4) && close_to(f.mean_1m, 4));
    assert_true(close_to(f.mean_5m, (240 * 2 + 60 * 4) / 300.0));
    assert_true(close_to(f.least, 1) && close_to(f.most, 4));
    assert_true(isnan(sac_series_at(&w.series, 300)) && isnan(sac_series_at(&w.series, -1)));
    sac_series_finish(&w.series);
}

static void what_is_not_known_is_passed_over(void **state)
{
    (void)state;
    struct watched            w;
    struct sac_monitor_figure f;
    watch(&w, SAC_ALARM_TIME, 1000);
    feed(&w, NAN);
    sac_series_get(&w.series, 1000, &f);
    assert_true(isnan(f.now) && isnan(f.mean_1m) && isnan(f.least));
    feed(&w, 3);
    feed(&w, NAN);
    feed(&w, 5);
    sac_series_get(&w.series, 1000, &f);
    assert_true(close_to(f.mean_5m, 4) && close_to(f.least, 3) && close_to(f.most, 5));
    sac_series_finish(&w.series);
}

/* However long it takes, at most 120 points, whose mean is that of all samples. */
static void history_is_of_the_whole_time(void **state)
{
    (void)state;
    struct watched            w;
    struct sac_monitor_figure f;
    watch(&w, SAC_ALARM_NOTHING, 250);
    const int samples = 4 * 3600;
    for (int i = 0; i < samples; i++)
        feed(&w, i);
    sac_series_get(&w.series, 250, &f);
    assert_in_range(f.history_count, SAC_MONITOR_HISTORY_MAX / 2, SAC_MONITOR_HISTORY_MAX);
    const double covered = f.history_count * f.history_step_s;
    assert_true(covered <= 3600 && covered > 3600 - f.history_step_s);
    const int of_each = (int)(f.history_step_s / 0.25);
    for (int i = 0; i < f.history_count; i++)
        assert_true(close_to(f.history[i], i * of_each + (of_each - 1) / 2.0));
    sac_series_finish(&w.series);
}

/* ---- limits ---- */

static void a_limit_has_hysteresis(void **state)
{
    (void)state;
    struct watched w;
    watch(&w, SAC_ALARM_HEAT, 1000); /* 87, and back below 83 */
    for (int i = 0; i < 60; i++)
        feed(&w, i % 3 ? 90 : 80); /* never for four seconds */
    assert_int_equal(w.begun[SAC_ALARM_LIMIT], 0);
    for (int i = 0; i < 4; i++)
        feed(&w, 90);
    assert_int_equal(w.begun[SAC_ALARM_LIMIT], 1);
    assert_true(close_to(w.last.before, 87) && close_to(w.last.after, 90));
    for (int i = 0; i < 60; i++)
        feed(&w, i % 2 ? 88 : 85); /* around the limit: still hot */
    assert_int_equal(w.begun[SAC_ALARM_LIMIT], 1);
    assert_int_equal(w.ended[SAC_ALARM_LIMIT], 0);
    for (int i = 0; i < 10; i++)
        feed(&w, 82);
    assert_int_equal(w.ended[SAC_ALARM_LIMIT], 1);
    sac_series_finish(&w.series);
}

/* A machine that is full for moments, however often, is not; one that is for a minute is. */
static void high_load_is_that_of_a_minute(void **state)
{
    (void)state;
    struct watched w;
    watch(&w, SAC_ALARM_LOAD, 1000);
    for (int i = 0; i < 600; i++)
        feed(&w, i % 60 < 40 ? 1 : 0.5);
    assert_int_equal(w.begun[SAC_ALARM_LIMIT], 0);
    for (int i = 0; i < 70; i++)
        feed(&w, 1);
    assert_int_equal(w.begun[SAC_ALARM_LIMIT], 1);
    for (int i = 0; i < 60; i++)
        feed(&w, 0.5);
    assert_int_equal(w.ended[SAC_ALARM_LIMIT], 1);
    assert_int_equal(w.begun[SAC_ALARM_LIMIT], 1);
    sac_series_finish(&w.series);
}

/* ---- anomalies ---- */

/* Whatever the interval: found within ten seconds, once, and its end as well. */
static void an_anomaly_is_told_twice(void **state)
{
    (void)state;
    static const int intervals[] = {100, 250, 1000, 2000};
    for (size_t k = 0; k < SAC_COUNT(intervals); k++) {
        const int      ten_s = 10 * 1000 / intervals[k];
        const int      quiet = 120 * 1000 / intervals[k], odd = 40 * 1000 / intervals[k];
        struct watched w;
        watch(&w, SAC_ALARM_TIME, intervals[k]);
        for (int i = 0; i < quiet; i++)
            feed(&w, stage_ms(4));
        assert_int_equal(w.begun[SAC_ALARM_ANOMALY], 0);
        for (int i = 0; i < odd; i++)
            feed(&w, stage_ms(16));
        assert_int_equal(w.begun[SAC_ALARM_ANOMALY], 1);
        assert_in_range(w.begun_at[SAC_ALARM_ANOMALY] - quiet, 1, ten_s);
        assert_true(w.last.before > 3.5 && w.last.before < 4.5);
        assert_true(w.last.after > 10 && w.last.after < 30);
        for (int i = 0; i < quiet; i++)
            feed(&w, stage_ms(4));
        assert_int_equal(w.ended[SAC_ALARM_ANOMALY], 1);
        assert_int_equal(w.begun[SAC_ALARM_ANOMALY], 1);
        assert_false(w.last.settled);
        sac_series_finish(&w.series);
    }
}

static void a_rate_that_falls_is_one(void **state)
{
    (void)state;
    struct watched w;
    watch(&w, SAC_ALARM_RATE, 1000);
    for (int i = 0; i < 100; i++)
        feed(&w, 25 + normal());
    for (int i = 0; i < 100; i++)
        feed(&w, 60 + normal()); /* more than usual does not hurt */
    assert_int_equal(w.begun[SAC_ALARM_ANOMALY], 0);
    for (int i = 0; i < 10; i++)
        feed(&w, 0);
    assert_int_equal(w.begun[SAC_ALARM_ANOMALY], 1);
    sac_series_finish(&w.series);
}

/* What stays is no longer odd, and is told to have become usual. */
static void what_lasts_becomes_usual(void **state)
{
    (void)state;
    struct watched w;
    watch(&w, SAC_ALARM_TIME, 1000);
    for (int i = 0; i < 100; i++)
        feed(&w, 4);
    for (int i = 0; i < 900; i++)
        feed(&w, 9);
    assert_int_equal(w.begun[SAC_ALARM_ANOMALY], 1);
    assert_int_equal(w.ended[SAC_ALARM_ANOMALY], 1);
    assert_true(w.last.settled);
    sac_series_finish(&w.series);
}

/* One sample, or three, may be far out. */
static void moments_are_no_anomalies(void **state)
{
    (void)state;
    struct watched w;
    watch(&w, SAC_ALARM_TIME, 1000);
    for (int i = 0; i < 600; i++)
        feed(&w, i % 50 < 3 ? 400 : 4);
    assert_int_equal(w.begun[SAC_ALARM_ANOMALY], 0);
    sac_series_finish(&w.series);
}

/* A value made of four samples has each of them in four values: three odd ones are six. */
static void moments_of_a_longer_span_are_none(void **state)
{
    (void)state;
    struct watched w;
    watch(&w, SAC_ALARM_TIME, 1000);
    w.alarm.span = 4;
    for (int i = 0; i < 600; i++)
        feed(&w, i % 100 < 6 ? 400 : 4);
    assert_int_equal(w.begun[SAC_ALARM_ANOMALY], 0);
    for (int i = 0; i < 10; i++)
        feed(&w, 400);
    assert_int_equal(w.begun[SAC_ALARM_ANOMALY], 1);
    assert_int_equal(w.begun_at[SAC_ALARM_ANOMALY], 607);
    sac_series_finish(&w.series);
}

static void another_situation_is_not_compared(void **state)
{
    (void)state;
    struct watched w;
    watch(&w, SAC_ALARM_RATE, 1000);
    for (int i = 0; i < 100; i++)
        feed(&w, 200);
    sac_alarm_restart(&w.alarm, &w.series); /* most of the streams have ended */
    for (int i = 0; i < 100; i++)
        feed(&w, 25);
    assert_int_equal(w.begun[SAC_ALARM_ANOMALY], 0);
    for (int i = 0; i < 10; i++)
        feed(&w, 5);
    assert_int_equal(w.begun[SAC_ALARM_ANOMALY], 1);
    sac_series_finish(&w.series);
}

/* Twice as long for want of CPUs is what it was; three times as long is not, nor is a latency. */
static void what_others_explain_is_not_odd(void **state)
{
    (void)state;
    struct watched work, more, latency;
    watch(&work, SAC_ALARM_WORK, 1000);
    watch(&more, SAC_ALARM_WORK, 1000);
    watch(&latency, SAC_ALARM_TIME, 1000);
    for (int i = 0; i < 130; i++) {
        const double slowed = i < 100 ? 1 : 2;
        work.slowed = more.slowed = latency.slowed = slowed;
        feed(&work, 20 * slowed + normal());
        feed(&more, (i < 100 ? 20 : 80) + normal());
        feed(&latency, 20 * slowed + normal());
    }
    assert_int_equal(work.begun[SAC_ALARM_ANOMALY], 0);
    assert_int_equal(more.begun[SAC_ALARM_ANOMALY], 1);
    assert_int_equal(latency.begun[SAC_ALARM_ANOMALY], 1);
    assert_int_equal(more.ended[SAC_ALARM_ANOMALY], 0); /* it goes on */
    for (int i = 0; i < 20; i++)
        feed(&more, 40 + normal()); /* as long as others make it */
    assert_int_equal(more.ended[SAC_ALARM_ANOMALY], 1);
    sac_series_finish(&work.series);
    sac_series_finish(&more.series);
    sac_series_finish(&latency.series);
}

static void small_changes_do_not_matter(void **state)
{
    (void)state;
    struct watched w;
    watch(&w, SAC_ALARM_TIME, 1000);
    w.alarm.matters = 40;
    for (int i = 0; i < 200; i++)
        feed(&w, i < 100 ? 3 : 30);
    assert_int_equal(w.begun[SAC_ALARM_ANOMALY], 0);
    for (int i = 0; i < 10; i++)
        feed(&w, 80);
    assert_int_equal(w.begun[SAC_ALARM_ANOMALY], 1);
    sac_series_finish(&w.series);
}

/* The p99 of a hundred frames, of which one in a thousand is far out: the last but one. */
static double p99_of_hundred(double usual)
{
    double most = 0, next = 0;
    for (int i = 0; i < 100; i++) {
        const double ms = usual * exp(0.15 * normal()) * (uniform() < 0.001 ? 4 : 1);
        next = fmax(next, fmin(ms, most));
        most = fmax(ms, most);
    }
    return next;
}

/* Nine hours of ordinary work, of each kind of figure: nothing is reported. */
static void a_long_quiet_run_reports_nothing(void **state)
{
    (void)state;
    struct watched time, slow, tail, rate, rss, pool, handles, load;
    watch(&tail, SAC_ALARM_WORK, 1000);
    watch(&time, SAC_ALARM_TIME, 1000);
    watch(&slow, SAC_ALARM_TIME, 1000);
    watch(&rate, SAC_ALARM_RATE, 1000);
    watch(&rss, SAC_ALARM_BYTES, 1000);
    watch(&pool, SAC_ALARM_BYTES, 1000);
    watch(&handles, SAC_ALARM_HANDLES, 1000);
    watch(&load, SAC_ALARM_LOAD, 1000);
    for (int i = 0; i < 9 * 3600; i++) {
        const double scene = 1 + 0.2 * sin(i / 700.0); /* more people, fewer people */
        feed(&time, stage_ms(4 * scene));
        feed(&slow, stage_ms(60 * scene));
        feed(&tail, p99_of_hundred(20 * scene));
        feed(&rate, 100 / scene * (1 + 0.05 * normal()));
        feed(&rss, 800e6 * (1 - exp(-i / 20.0)) + 5e6 * uniform());
        feed(&pool, 200e6 + 40e6 * uniform());
        feed(&handles, 40 + (i % 7));
        feed(&load, 0.5 + 0.2 * uniform() + (uniform() < 0.05 ? 0.3 : 0));
    }
    struct watched *all[] = {&time, &slow, &tail, &rate, &rss, &pool, &handles, &load};
    for (size_t i = 0; i < SAC_COUNT(all); i++) {
        for (int kind = 0; kind < SAC_ALARM_KINDS; kind++)
            if (all[i]->begun[kind])
                fail_msg("figure %zu, kind %d: reported %d times, last at %d s: %g, was %g", i,
                         kind, all[i]->begun[kind], all[i]->begun_at[kind], all[i]->last.after,
                         all[i]->last.before);
        sac_series_finish(&all[i]->series);
    }
}

/* ---- growth ---- */

static void a_leak_is_found_and_a_saw_is_not(void **state)
{
    (void)state;
    struct watched leak, saw;
    watch(&leak, SAC_ALARM_BYTES, 1000);
    watch(&saw, SAC_ALARM_BYTES, 1000);
    for (int i = 0; i < 600; i++) {
        feed(&leak, 500e6 + 0.4e6 * i + 1e6 * uniform()); /* 24 MB a minute */
        feed(&saw, 500e6 + 1.5e6 * (i % 100));
    }
    assert_int_equal(leak.begun[SAC_ALARM_GROWTH], 1);
    assert_in_range(leak.begun_at[SAC_ALARM_GROWTH], 240, 260);
    assert_int_equal(leak.ended[SAC_ALARM_GROWTH], 0);
    assert_int_equal(saw.begun[SAC_ALARM_GROWTH], 0);
    for (int i = 0; i < 200; i++)
        feed(&leak, 740e6 + 1e6 * uniform());
    assert_int_equal(leak.ended[SAC_ALARM_GROWTH], 1);
    assert_int_equal(leak.begun[SAC_ALARM_GROWTH], 1);
    sac_series_finish(&leak.series);
    sac_series_finish(&saw.series);
}

static void switched_off_nothing_is_looked_for(void **state)
{
    (void)state;
    struct watched w;
    watch(&w, SAC_ALARM_BYTES, 1000);
    w.setup.params.growth_min = w.setup.params.anomaly_ratio = 0;
    for (int i = 0; i < 600; i++)
        feed(&w, 500e6 + (i > 300 ? 4e9 : 1e6 * i));
    assert_int_equal(w.begun[SAC_ALARM_GROWTH] + w.begun[SAC_ALARM_ANOMALY], 0);
    sac_series_finish(&w.series);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(averages_are_of_their_minutes),
        cmocka_unit_test(what_is_not_known_is_passed_over),
        cmocka_unit_test(history_is_of_the_whole_time),
        cmocka_unit_test(a_limit_has_hysteresis),
        cmocka_unit_test(high_load_is_that_of_a_minute),
        cmocka_unit_test(an_anomaly_is_told_twice),
        cmocka_unit_test(a_rate_that_falls_is_one),
        cmocka_unit_test(what_lasts_becomes_usual),
        cmocka_unit_test(moments_are_no_anomalies),
        cmocka_unit_test(moments_of_a_longer_span_are_none),
        cmocka_unit_test(another_situation_is_not_compared),
        cmocka_unit_test(what_others_explain_is_not_odd),
        cmocka_unit_test(small_changes_do_not_matter),
        cmocka_unit_test(a_long_quiet_run_reports_nothing),
        cmocka_unit_test(a_leak_is_found_and_a_saw_is_not),
        cmocka_unit_test(switched_off_nothing_is_looked_for),
    };
    return cmocka_run_group_tests_name("observe/alarm", tests, NULL, NULL);
}
