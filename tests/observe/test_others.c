/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded run on a machine that others use: by itself it has no anomaly, and what goes wrong in
 * it is found all the same. */
#include <math.h>

#include "observe/monitor.h"
#include "tests/observe/busy_machine.h"
#include "tests/test.h"

enum { TOLD_S = 10 };

struct fault {
    int    from;            /* sample; 0: never */
    double inference, reid; /* ms more of each */
    double tracking, write; /* the same */
    double frames, latency; /* times as many, as long */
    double others_unknown;  /* not 0: as if nobody told what others use */
};

static void put_stage(sac_monitor *m, const char *name, double ms, double frames)
{
    sac_monitor_put_time(m, SAC_ALARM_WORK, ms, frames > 0 ? 100 / frames : 0, "stage %s", name);
}

static void sample(sac_monitor *m, const struct busy_sample *s, const struct fault *f, bool odd)
{
    const double frames = s->frames * (odd && f->frames > 0 ? f->frames : 1);
    const double latency = s->latency * (odd && f->latency > 0 ? f->latency : 1);
    sac_monitor_begin(m);
    if (f->others_unknown == 0) {
        sac_monitor_put(m, SAC_ALARM_OTHERS, "share", s->others, "cpu of others");
        sac_monitor_put(m, SAC_ALARM_STRETCH, "", s->stretch, "stretch");
    }
    sac_monitor_put(m, SAC_ALARM_RATE, "frames/s", frames, "frames");
    put_stage(m, "decode", s->decode, frames);
    put_stage(m, "inference", s->inference + odd * f->inference, frames);
    put_stage(m, "reid", s->reid + odd * f->reid, frames);
    put_stage(m, "tracking", s->tracking + odd * f->tracking, frames);
    put_stage(m, "write", 0.02 + odd * f->write, frames);
    sac_monitor_put_time(m, SAC_ALARM_WORK, latency, BUSY_FRAME_MS / 4, "latency");
    sac_monitor_end(m);
}

/* All of it, or until ten seconds after the fault began. */
static sac_monitor *replay(const struct busy_sample *samples, int count, const struct fault *f)
{
    sac_monitor *m = NULL;
    const int    n = f->from ? SAC_MIN(f->from + TOLD_S, count) : count;
    assert_sac_ok(sac_monitor_create_empty(test_context(), NULL, &m));
    for (int i = 0; i < n; i++)
        sample(m, &samples[i], f, f->from && i >= f->from);
    return m;
}

static void a_busy_machine_is_no_anomaly(void **state)
{
    (void)state;
    const struct fault       none = {0};
    struct sac_monitor_event e = {0};
    for (int full = 0; full < 2; full++) {
        sac_monitor *m = full ? replay(full_machine, FULL_SAMPLES, &none)
                              : replay(busy_machine, BUSY_SAMPLES, &none);
        if (sac_monitor_event_count(m)) {
            assert_sac_ok(sac_monitor_get_event(m, 0, &e));
            fail_msg("reported: %s", e.text);
        }
        sac_monitor_destroy(&m);
    }
}

/* Else the recording would show nothing. */
static void it_would_be_one_if_others_were_not_known(void **state)
{
    (void)state;
    const struct fault       blind = {.others_unknown = 1};
    sac_monitor             *m = replay(busy_machine, BUSY_SAMPLES, &blind);
    struct sac_monitor_event e = {0};
    assert_true(sac_monitor_event_count(m) > 0);
    assert_sac_ok(sac_monitor_get_event(m, 0, &e));
    assert_non_null(strstr(e.text, "stage "));
    sac_monitor_destroy(&m);
}

/* While others compile (166 to 178 s, 193 to 203 s, 224 to 241 s) and while they do not. */
static void faults_are_found_on_it(void **state)
{
    (void)state;
    static const int froms[] = {60, 100, 150, 170, 185, 195, 210, 226, 250, 285};
    static const struct {
        const char  *figure;
        struct fault fault;
    } kinds[] = {
        {"stage tracking", {.tracking = 40}},    /* it sleeps */
        {"stage write", {.write = 25}},          /* an encoder that slows */
        {"stage inference", {.inference = 160}}, /* beside another process on its card */
        {"frames", {.frames = 0.4}},             /* the input stalls */
        {"latency", {.latency = 12}},
    };
    for (size_t k = 0; k < SAC_COUNT(kinds); k++)
        for (size_t i = 0; i < SAC_COUNT(froms); i++) {
            struct fault fault = kinds[k].fault;
            fault.from = froms[i];
            sac_monitor             *m = replay(busy_machine, BUSY_SAMPLES, &fault);
            struct sac_monitor_event e = {0};
            bool                     found = false;
            for (int at = 0; at < sac_monitor_event_count(m); at++) {
                assert_sac_ok(sac_monitor_get_event(m, at, &e));
                found |= strcmp(e.figure, kinds[k].figure) == 0;
            }
            if (!found)
                fail_msg("%s from %d s: not reported", kinds[k].figure, froms[i]);
            sac_monitor_destroy(&m);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_busy_machine_is_no_anomaly),
        cmocka_unit_test(it_would_be_one_if_others_were_not_known),
        cmocka_unit_test(faults_are_found_on_it),
    };
    return cmocka_run_group_tests_name("observe/others", tests, NULL, NULL);
}
