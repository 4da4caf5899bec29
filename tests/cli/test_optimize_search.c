/* SPDX-License-Identifier: Apache-2.0 */
/* The search of saccade optimize on made-up machines: what each would say of its settings. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/optimize.h"
#include "tests/test.h"

enum { BATCH, THREADS, QUEUE, PRECISION, KNOBS };

static struct optimize_knob made_knobs[KNOBS] = {
    {.key = "inference.max_batch",
     .stages = 2,
     .fills = true,
     .values = {"1", "2", "4", "6", "8", "12", "16", "24", "32", "48", "64", "96", "128"},
     .count = 13},
    {.key = "threads", .stages = 2, .values = {"1", "2", "4", "8"}, .count = 4},
    {.key = "queue.length",
     .stages = 1 | 2,
     .values = {"1", "2", "4", "8", "16"},
     .count = 5,
     .start = 2},
    {.key = "precision",
     .stages = 2,
     .changes = true,
     .values = {"fp32", "fp16", "int8"},
     .count = 3},
};

/* A machine. Its frame rate grows with the batch up to `batch_best`, with threads up to `cores`,
 * and with fewer bits; a batch above `batch_most` finds no memory. */
struct machine {
    double      batch_best, batch_most, cores, noise, drift;
    bool        fails;     /* without memory a run fails, else it has too large a share */
    int         runs_left; /* until it is ended */
    int         runs, most_tried;
    bool        fp16_agrees;
    int         asked; /* whether results agree */
    unsigned    random;
    const char *bottleneck;
};

static struct machine quiet_machine(void)
{
    return (struct machine){.batch_best = 24,
                            .batch_most = 1000,
                            .cores = 4,
                            .runs_left = 100000,
                            .random = 1,
                            .bottleneck = "inference"};
}

static double value_of(const int *point, int knob)
{
    return atof(made_knobs[knob].values[point[knob]]);
}

/* -1..1, the same on every machine. */
static double draw(struct machine *m)
{
    m->random = m->random * 1664525u + 1013904223u;
    return (double)(m->random >> 8) / (1 << 23) - 1;
}

static double speed_of(const struct machine *m, const int *point)
{
    const double batch = value_of(point, BATCH), bits[] = {1, 1.5, 2};
    const double off = log2(batch / m->batch_best), threads = value_of(point, THREADS);
    const double cores = threads <= m->cores ? threads : 0.9 * m->cores;
    return 100 * exp(-0.08 * off * off) * cores * bits[point[PRECISION]];
}

static int run_made(void *user, const int *point, struct optimize_figures *out)
{
    struct machine *m = user;
    const double    batch = value_of(point, BATCH), slower = 1 + m->drift * m->runs;
    m->runs++;
    m->runs_left--;
    m->most_tried = batch > m->most_tried ? (int)batch : m->most_tried;
    *out = (struct optimize_figures){.ok = !(m->fails && batch > m->batch_most), .wall_s = 1};
    out->fps = speed_of(m, point) / slower * (1 + m->noise * draw(m));
    out->latency_ms = 1000 * batch * value_of(point, QUEUE) / out->fps;
    out->memory_bytes = 1e6 * (50 + batch * value_of(point, QUEUE));
    out->memory_share = batch > m->batch_most ? 0.95 : 0.5;
    out->watts = (double)NAN;
    snprintf(out->bottleneck, sizeof out->bottleneck, "%s", m->bottleneck);
    return 0;
}

static int agrees_made(void *user, const int *point, bool *out)
{
    struct machine *m = user;
    m->asked++;
    *out = point[PRECISION] == 0 || (point[PRECISION] == 1 && m->fp16_agrees);
    return 0;
}

static bool ended_made(void *user)
{
    return ((struct machine *)user)->runs_left <= 0;
}

static struct optimize_search search_of(struct machine *m, enum optimize_goal goal)
{
    return (struct optimize_search){.knobs = made_knobs,
                                    .knob_count = KNOBS,
                                    .goal = goal,
                                    .keep_fps = 0.9,
                                    .memory_max = 0.9,
                                    .seed = 1,
                                    .run = run_made,
                                    .agrees = agrees_made,
                                    .ended = ended_made,
                                    .user = m};
}

static double best_speed(const struct machine *m, bool fp16)
{
    double best = 0;
    for (int batch = 0; batch < 13; batch++)
        for (int threads = 0; threads < 4; threads++) {
            const int point[KNOBS] = {batch, threads, 2, fp16 ? 1 : 0};
            if (value_of(point, BATCH) <= m->batch_most)
                best = fmax(best, speed_of(m, point));
        }
    return best;
}

static void the_best_of_a_quiet_machine_is_found(void **state)
{
    (void)state;
    struct machine         m = quiet_machine();
    struct optimize_search s = search_of(&m, OPTIMIZE_FPS);
    assert_int_equal(optimize_search_run(&s), 0);
    assert_true(s.complete);
    assert_true(speed_of(&m, s.best) >= 0.98 * best_speed(&m, false));
    assert_int_equal(value_of(s.best, THREADS), 4); /* eight are slower */
    assert_int_equal(s.best[QUEUE], 2);             /* says nothing here, so it stays */
    assert_true(fabs(s.best_ratio - speed_of(&m, s.best) / s.first.fps) < 0.01);
}

static void memory_is_a_cliff_that_is_tried_once(void **state)
{
    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        struct machine m = quiet_machine();
        m.batch_best = 128;
        m.batch_most = 40;
        m.fails = fails;
        struct optimize_search s = search_of(&m, OPTIMIZE_FPS);
        assert_int_equal(optimize_search_run(&s), 0);
        assert_int_equal(value_of(s.best, BATCH), 32); /* 48 has no memory */
        assert_int_equal(value_of((int[KNOBS]){s.cliff[BATCH]}, BATCH), 48);
        assert_true(fails ? s.failed > 0 && s.failed < 4 : s.failed == 0);
    }
}

static void what_changes_results_is_taken_only_where_they_agree(void **state)
{
    (void)state;
    struct machine         m = quiet_machine();
    struct optimize_search s = search_of(&m, OPTIMIZE_FPS);
    assert_int_equal(optimize_search_run(&s), 0);
    assert_int_equal(s.best[PRECISION], 0);
    assert_true(m.asked > 0 && s.refused > 0);
    m = quiet_machine();
    m.fp16_agrees = true;
    s = search_of(&m, OPTIMIZE_FPS);
    assert_int_equal(optimize_search_run(&s), 0);
    assert_int_equal(s.best[PRECISION], 1); /* and not int8, which is faster */
    assert_true(speed_of(&m, s.best) >= 0.98 * best_speed(&m, true));
}

static void noise_and_drift_hide_little(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 20; seed++) {
        struct machine m = quiet_machine();
        m.noise = 0.04;
        m.drift = 0.004; /* after 250 runs half as fast */
        m.random = seed;
        struct optimize_search     s = search_of(&m, OPTIMIZE_FPS);
        struct optimize_comparison c;
        assert_int_equal(optimize_search_run(&s), 0);
        assert_true(speed_of(&m, s.best) >= 0.93 * best_speed(&m, false));
        assert_int_equal(optimize_compare(&s, &c), 0);
        assert_true(c.real && c.count >= OPTIMIZE_TURNS);
    }
}

/* Nothing to gain, much noise: what it finds is mostly nothing, and never handed out as a gain. */
static void noise_alone_is_no_gain(void **state)
{
    (void)state;
    int taken = 0;
    for (unsigned seed = 1; seed <= 40; seed++) {
        struct machine m = quiet_machine();
        m.batch_best = 1;
        m.cores = 1;
        m.noise = 0.1;
        m.random = seed;
        struct optimize_search     s = search_of(&m, OPTIMIZE_FPS);
        struct optimize_comparison c;
        assert_int_equal(optimize_search_run(&s), 0);
        assert_int_equal(optimize_compare(&s, &c), 0);
        taken += c.real && speed_of(&m, s.best) < 0.97 * s.first.fps / (1 + m.noise);
    }
    assert_int_equal(taken, 0); /* of what is worse */
}

static void a_worse_one_is_never_real(void **state)
{
    (void)state;
    struct machine             m = quiet_machine();
    struct optimize_search     s = search_of(&m, OPTIMIZE_FPS);
    struct optimize_comparison c;
    assert_int_equal(optimize_search_run(&s), 0);
    s.best[BATCH] = 0; /* as if it had been seen in a lucky moment */
    s.best[THREADS] = 0;
    assert_int_equal(optimize_compare(&s, &c), 0);
    assert_false(c.real);
    m.fails = true; /* or it does not run any more */
    m.batch_most = 4;
    s.best[BATCH] = 6;
    s.best[THREADS] = 2;
    assert_int_equal(optimize_compare(&s, &c), 0);
    assert_false(c.real);
    assert_int_equal(c.count, 1);
}

static void a_goal_keeps_the_frame_rate(void **state)
{
    (void)state;
    struct machine         m = quiet_machine();
    struct optimize_search s = search_of(&m, OPTIMIZE_LATENCY);
    assert_int_equal(optimize_search_run(&s), 0);
    assert_int_equal(value_of(s.best, QUEUE), 1);
    assert_int_equal(value_of(s.best, BATCH), 1);
    assert_int_equal(value_of(s.best, THREADS), 4);
    made_knobs[BATCH].start = 6; /* 16: with 1 it were half as fast */
    m = quiet_machine();
    s = search_of(&m, OPTIMIZE_VRAM);
    assert_int_equal(optimize_search_run(&s), 0);
    made_knobs[BATCH].start = 0;
    assert_int_equal(value_of(s.best, QUEUE), 1);
    assert_true(speed_of(&m, s.best) >= 0.9 * s.first.fps);
    assert_true(s.best_figures.memory_bytes < s.first.memory_bytes);
}

static void only_the_bottleneck_is_turned(void **state)
{
    (void)state;
    struct machine m = quiet_machine();
    m.bottleneck = "decode"; /* of whose knobs there is the queue alone */
    struct optimize_search s = search_of(&m, OPTIMIZE_FPS);
    s.follows = true;
    assert_int_equal(optimize_search_run(&s), 0);
    assert_int_equal(s.step_count, 0);
    assert_true(m.runs < 10);
    m = quiet_machine();
    s = search_of(&m, OPTIMIZE_FPS);
    s.follows = true;
    assert_int_equal(optimize_search_run(&s), 0);
    assert_true(speed_of(&m, s.best) >= 0.98 * best_speed(&m, false));
}

static void an_early_end_leaves_the_best_so_far(void **state)
{
    (void)state;
    for (int runs = 1; runs < 30; runs += 4) {
        struct machine m = quiet_machine();
        m.runs_left = runs;
        struct optimize_search s = search_of(&m, OPTIMIZE_FPS);
        assert_int_equal(optimize_search_run(&s), 0);
        assert_false(s.complete);
        assert_true(speed_of(&m, s.best) >= s.first.fps);
    }
}

static void a_start_that_fails_ends_it(void **state)
{
    (void)state;
    struct machine m = quiet_machine();
    m.fails = true;
    m.batch_most = 0;
    struct optimize_search s = search_of(&m, OPTIMIZE_FPS);
    assert_int_equal(optimize_search_run(&s), 0);
    assert_false(s.first.ok);
    assert_int_equal(m.runs, 1);
}

/* ---- going on ---- */

struct logged {
    struct machine      machine;
    struct optimize_log log;
    struct fault        fault;
    int                 measured;
};

static int run_logged(void *user, const int *point, struct optimize_figures *out)
{
    struct logged *l = user;
    if (optimize_log_take(&l->log, point, out))
        return 0;
    l->measured++;
    run_made(&l->machine, point, out);
    return optimize_log_add(&l->log, point, out, &l->fault);
}

static int agrees_logged(void *user, const int *point, bool *out)
{
    return agrees_made(&((struct logged *)user)->machine, point, out);
}

static bool ended_logged(void *user)
{
    return ended_made(&((struct logged *)user)->machine);
}

static void search_logged(struct logged *l, struct optimize_search *s, const char *output,
                          bool resume, int runs)
{
    *l = (struct logged){.machine = quiet_machine()};
    l->machine.runs_left = runs;
    l->log = (struct optimize_log){.key = 7, .knob_count = KNOBS, .duration_s = resume ? 1 : 2.5};
    assert_int_equal(optimize_log_open(&l->log, output, resume, &l->fault), STATUS_OK);
    *s = search_of(&l->machine, OPTIMIZE_FPS);
    s->run = run_logged;
    s->agrees = agrees_logged;
    s->ended = ended_logged;
    s->user = l;
    assert_int_equal(optimize_search_run(s), 0);
}

static void a_search_goes_on_where_it_ended(void **state)
{
    (void)state;
    char                   folder[] = "/tmp/saccade-test-XXXXXX";
    struct logged          l;
    struct optimize_search whole, part;
    char                   output[4096];
    assert_non_null(mkdtemp(folder));
    snprintf(output, sizeof output, "%s/tuned.yaml", folder);
    search_logged(&l, &whole, output, false, 100000);
    const int all = l.measured;
    optimize_log_remove(&l.log);
    optimize_log_finish(&l.log);
    search_logged(&l, &part, output, false, 20);
    const int first = l.measured;
    assert_false(part.complete);
    optimize_log_finish(&l.log);
    search_logged(&l, &part, output, true, 100000);
    assert_true(l.log.duration_s == 2.5); /* that of the first part */
    assert_int_equal(first + l.measured, all);
    assert_memory_equal(part.best, whole.best, KNOBS * sizeof *part.best);
    optimize_log_remove(&l.log);
    optimize_log_finish(&l.log);
    assert_int_equal(rmdir(folder), 0);
}

static void a_log_of_another_search_is_refused(void **state)
{
    (void)state;
    char                folder[] = "/tmp/saccade-test-XXXXXX";
    struct optimize_log log = {.key = 1, .knob_count = 1};
    struct fault        fault = {0};
    char                output[4000], path[4100];
    assert_non_null(mkdtemp(folder));
    snprintf(output, sizeof output, "%s/a", folder);
    snprintf(path, sizeof path, "%s.runs", output);
    assert_int_equal(optimize_log_open(&log, output, true, &fault), STATUS_USAGE); /* none there */
    assert_int_equal(optimize_log_open(&log, output, false, &fault), STATUS_OK);
    log.key = 2;
    assert_int_equal(optimize_log_open(&log, output, true, &fault), STATUS_USAGE);
    assert_non_null(strstr(fault.sentence, "of another search"));
    FILE *mine = fopen(path, "w");
    assert_non_null(mine);
    fputs("my own notes\n", mine);
    fclose(mine);
    assert_int_equal(optimize_log_open(&log, output, false, &fault), STATUS_USAGE);
    assert_non_null(strstr(fault.sentence, "another file"));
    unlink(path);
    optimize_log_finish(&log);
    assert_int_equal(rmdir(folder), 0);
}

/* ---- streams ---- */

static int run_few_streams(void *user, int streams, struct optimize_figures *out)
{
    const double most = *(const double *)user;
    *out = (struct optimize_figures){.ok = true, .fps = fmin(most, streams * 100.0)};
    return 0;
}

static void the_most_streams_that_keep_up(void **state)
{
    (void)state;
    double fps[65];
    for (int most = 0; most <= 64; most++) {
        double together = most * 30 + 15;
        int    best = -1;
        assert_int_equal(optimize_streams(run_few_streams, &together, 64, 30, fps, &best), 0);
        assert_int_equal(best, most);
        assert_true(most == 0 || isfinite(fps[most]));
    }
    double plenty = 1e9;
    int    best;
    assert_int_equal(optimize_streams(run_few_streams, &plenty, 1, 30, fps, &best), 0);
    assert_int_equal(best, 1);
}

/* ---- knobs ---- */

static const struct optimize_knob *find_knob(const struct optimize_knob *knobs, int count,
                                             const char *key)
{
    for (int k = 0; k < count; k++)
        if (strcmp(knobs[k].key, key) == 0)
            return &knobs[k];
    return NULL;
}

static void knobs_fit_the_machine_and_what_is_allowed(void **state)
{
    (void)state;
    struct settings       s;
    struct fault          fault = {0};
    struct optimize_knob  knobs[OPTIMIZE_KNOBS];
    struct optimize_facts facts = {.settings = &s, .cpus = 6, .inputs = 1, .batch = 32};
    settings_init(&s);
    int count = optimize_knobs(&facts, knobs, &fault);
    assert_null(find_knob(knobs, count, "precision"));
    assert_null(find_knob(knobs, count, "skip.max"));
    assert_null(find_knob(knobs, count, "encode.threads"));
    assert_null(find_knob(knobs, count, "reid.batch_max"));
    assert_null(find_knob(knobs, count, "postprocess.threads")); /* of several inputs */
    const struct optimize_knob *batch = find_knob(knobs, count, "inference.max_batch"),
                               *threads = find_knob(knobs, count, "threads");
    assert_string_equal(batch->values[batch->start], "32");    /* the device's choice */
    assert_string_equal(threads->values[threads->start], "3"); /* half of six */
    assert_string_equal(threads->values[threads->count - 1], "6");
    s.optimize.precisions = "fp32,fp16";
    s.optimize.interval_max = 3;
    s.run.job.device_params.threads = 5; /* between two of the row */
    facts.reid = facts.encodes = true;
    facts.inputs = 2;
    count = optimize_knobs(&facts, knobs, &fault);
    threads = find_knob(knobs, count, "threads");
    assert_string_equal(threads->values[threads->start], "5");
    assert_int_equal(find_knob(knobs, count, "skip.max")->count, 3); /* 0, 1, 2 */
    assert_int_equal(find_knob(knobs, count, "precision")->count, 3);
    assert_null(find_knob(knobs, count, "decode.prefetch"));
    assert_non_null(find_knob(knobs, count, "reid.batch_max"));
    assert_null(find_knob(knobs, count, "preprocess.streams")); /* of a GPU */
    const struct optimize_knob *trackers = find_knob(knobs, count, "postprocess.threads");
    assert_string_equal(trackers->values[trackers->start], "1");
    assert_string_equal(trackers->values[trackers->count - 1], "6");
    assert_true(trackers->stages & optimize_stage_bit("tracking"));
    s.run.job.tracker.camera_motion = 0; /* what these threads are for */
    count = optimize_knobs(&facts, knobs, &fault);
    assert_null(find_knob(knobs, count, "postprocess.threads"));
    s.run.job.tracker.camera_motion = 1;
    facts.on_gpu = true;
    count = optimize_knobs(&facts, knobs, &fault);
    assert_null(find_knob(knobs, count, "postprocess.threads"));
    const struct optimize_knob *streams = find_knob(knobs, count, "preprocess.streams");
    assert_int_equal(streams->count, 2);
    assert_int_equal(streams->start, 0);
    assert_true(streams->fills && !streams->changes);
    s.task = TASK_SEGMENT;
    count = optimize_knobs(&facts, knobs, &fault);
    streams = find_knob(knobs, count, "preprocess.streams");
    assert_int_equal(streams->start, 1); /* mattes have two */
    s.segment.mode = SAC_SEGMENT_VR;     /* batches are one launch */
    count = optimize_knobs(&facts, knobs, &fault);
    assert_null(find_knob(knobs, count, "preprocess.streams"));
    s.optimize.precisions = "fp32,fp17";
    assert_true(optimize_knobs(&facts, knobs, &fault) < 0);
    assert_non_null(strstr(fault.sentence, "fp32,fp17"));
    settings_finish(&s);
}

/* A short run does not know how busy the CPUs were: the other row's column has a title still. */
static void a_column_that_one_row_knows_has_a_title(void **state)
{
    (void)state;
    struct settings            s;
    struct optimize_search     search = {.knobs = made_knobs, .step_count = 1, .failed = 1};
    struct optimize_comparison comparison = {.count = 0};
    char                      *text = NULL, *row[3] = {NULL}, *rest;
    size_t                     size = 0;
    settings_init(&s);
    for (int i = 0; i < 2; i++)
        *(i ? &search.best_figures : &search.first) =
            (struct optimize_figures){.ok = true,
                                      .fps = 40,
                                      .latency_ms = 20,
                                      .memory_bytes = 1e8,
                                      .cpu = i ? 0.5 : (double)NAN,
                                      .others = (double)NAN,
                                      .gpu = (double)NAN,
                                      .decoder = (double)NAN,
                                      .encoder = (double)NAN,
                                      .watts = (double)NAN};
    const struct optimize_result result = {
        .settings = &s, .search = &search, .comparison = &comparison, .agreement = (double)NAN};
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    optimize_print(&result, out);
    fclose(out);
    rest = text;
    for (int i = 0; i < 3; i++)
        assert_non_null(row[i] = strsep(&rest, "\n"));
    assert_non_null(strstr(row[0], "CPUs"));
    assert_null(strstr(row[0], "GPU"));
    assert_int_equal(strlen(row[0]), strlen(row[1]));
    assert_int_equal(strlen(row[0]), strlen(row[2]));
    assert_non_null(strstr(rest, "1 run failed"));
    free(text);
    settings_finish(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_of_a_quiet_machine_is_found),
        cmocka_unit_test(memory_is_a_cliff_that_is_tried_once),
        cmocka_unit_test(what_changes_results_is_taken_only_where_they_agree),
        cmocka_unit_test(noise_and_drift_hide_little),
        cmocka_unit_test(noise_alone_is_no_gain),
        cmocka_unit_test(a_worse_one_is_never_real),
        cmocka_unit_test(a_goal_keeps_the_frame_rate),
        cmocka_unit_test(only_the_bottleneck_is_turned),
        cmocka_unit_test(an_early_end_leaves_the_best_so_far),
        cmocka_unit_test(a_start_that_fails_ends_it),
        cmocka_unit_test(a_search_goes_on_where_it_ended),
        cmocka_unit_test(a_log_of_another_search_is_refused),
        cmocka_unit_test(the_most_streams_that_keep_up),
        cmocka_unit_test(knobs_fit_the_machine_and_what_is_allowed),
        cmocka_unit_test(a_column_that_one_row_knows_has_a_title),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
