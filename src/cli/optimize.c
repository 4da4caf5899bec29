/* SPDX-License-Identifier: Apache-2.0 */
/* saccade optimize: runs of track or segment, each with other settings, until the goal is reached
 * best; and at the end default and best in turns. */
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <saccade/source.h>

#include "expand.h"
#include "interrupt.h"
#include "optimize.h"
#include "options.h"
#include "term.h"
#include "verbs.h"
#include "whole_file.h"

enum { STREAMS_MAX = 256, AGREED_MAX = 32, TEXT_SIZE = 16384 };

/* The first run only finds out how fast the others will be, and makes plans where there are none.
 */
static const double PILOT_S = 1;
enum { PILOT_FRAMES = 8, FAR = 16 };
/* Results are compared over this much of the input at least: tracks need time to begin. */
static const double GATE_S = 6;
/* In real time the default keeps up with some reserve, or runs are at full speed. */
static const double REALTIME_MIN = 1.05;

/* Of settings that may change results: how well theirs agree. */
struct agreed {
    int    at[CLIMB_KNOBS_MAX];
    double share;
};

struct optimizing {
    struct settings           *settings;
    struct fault              *fault;
    sac_context               *ctx;
    struct optimize_runner     runner;
    struct optimize_knob       knobs[OPTIMIZE_KNOBS];
    int                        knob_count;
    struct optimize_search     search;
    struct optimize_comparison comparison;
    struct optimize_log        log;
    struct agreed              agreed[AGREED_MAX];
    int                        agreed_count;
    double nominal_fps, input_s; /* of one stream; of the shortest, 0: unknown */
    double begun_s, wall_s;      /* of one run */
    bool   has_reference;
    double streams_fps[STREAMS_MAX + 1];
    int    streams_best;
};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double spent_s(const struct optimizing *o)
{
    return now_s() - o->begun_s;
}

/* ---- what is given ---- */

/* Only a file of an earlier search is replaced. */
static int check_output(const char *path, struct fault *fault)
{
    char        head[32] = "";
    struct stat about;
    if (!path || strcmp(path, "-") == 0)
        return STATUS_OK;
    const int status = whole_file_check(path, fault);
    if (status != STATUS_OK || stat(path, &about) != 0 || !S_ISREG(about.st_mode) ||
        about.st_size == 0)
        return status;
    FILE *file = fopen(path, "re");
    if (file && !fgets(head, sizeof head, file))
        head[0] = '\0';
    if (file)
        fclose(file);
    return strncmp(head, optimize_yaml_head, strlen(optimize_yaml_head)) == 0
               ? STATUS_OK
               : fault_usage(fault,
                             "'%s' exists and is not of saccade optimize; name another file, or "
                             "remove it",
                             path);
}

static int check_usage(const struct settings *s, struct fault *fault)
{
    if (s->task == TASK_MODEL)
        return fault_usage(fault, "--task model is profile's; optimize has track and segment");
    if (s->run.realtime && s->optimize.goal == OPTIMIZE_FPS)
        return fault_usage(fault, "--realtime and --goal fps exclude each other: at its own rate "
                                  "an input has no other frames a second");
    if (s->optimize.encodes && s->task == TASK_SEGMENT &&
        (s->segment.as == SAC_SEGMENT_PNG || s->segment.as == SAC_SEGMENT_COCO))
        return fault_usage(fault, "--encode: --as png and coco have no video to encode");
    if (s->optimize.budget_s < s->optimize.trial_s * (2 * OPTIMIZE_TURNS + 4))
        return fault_usage(fault,
                           "--budget %g is too short for runs of %g s (--trial): a search needs %d "
                           "of them at least",
                           s->optimize.budget_s, s->optimize.trial_s, 2 * OPTIMIZE_TURNS + 4);
    if (s->processes > 1)
        return fault_usage(fault, "optimize turns the settings of one process; leave --processes "
                                  "out");
    if (s->optimize.resume && s->optimize.dry_run)
        return fault_usage(fault, "--resume and --dry-run exclude each other");
    return STATUS_OK;
}

static int look_at_input(struct optimizing *o, sac_device *dev, const char *name)
{
    struct sac_source_params params = o->settings->run.source;
    struct sac_source_info   info;
    sac_source              *source = NULL;
    params.prefetch = 0;
    params.decode = SAC_DECODE_CPU;
    if (o->settings->run.fps > 0)
        params.fps = o->settings->run.fps;
    if (strcmp(name, "-") == 0)
        return fault_usage(o->fault, "standard input can be read only once; name a file");
    const sac_result res = sac_source_open(dev, name, &params, &source);
    if (res != SAC_OK)
        return fault_library(o->fault, o->ctx, res);
    sac_source_describe(source, &info);
    sac_source_close(&source);
    if (info.live)
        return fault_usage(o->fault,
                           "'%s' is live, and no two runs would see the same of it; "
                           "record some of it to a file",
                           name);
    const double length_s = (double)info.duration_us * 1e-6;
    o->nominal_fps += (info.fps > 0 ? info.fps : 25) / (double)o->runner.inputs.count;
    if (length_s > 0 && (o->input_s <= 0 || length_s < o->input_s))
        o->input_s = length_s;
    return STATUS_OK;
}

/* Pictures that are given one by one are one sequence. */
static void count_pictures(struct optimizing *o)
{
    const double fps = o->settings->run.fps;
    o->nominal_fps = fps > 0 ? fps : 25;
    o->input_s = (double)o->runner.inputs.count / o->nominal_fps;
}

static int look_at_inputs(struct optimizing *o)
{
    sac_device *dev = NULL;
    int         status = expand_inputs(o->settings, &o->runner.inputs, o->fault);
    if (status != STATUS_OK)
        return status;
    o->runner.pictures = are_pictures(&o->runner.inputs);
    if (o->runner.pictures && o->settings->optimize.streams_max)
        return fault_usage(o->fault, "--max-streams needs videos; these are pictures");
    if (o->runner.pictures) {
        count_pictures(o);
        return STATUS_OK;
    }
    const sac_result res = sac_device_open(o->ctx, "cpu", NULL, &dev);
    if (res != SAC_OK)
        return fault_library(o->fault, o->ctx, res);
    for (size_t i = 0; i < o->runner.inputs.count && status == STATUS_OK; i++)
        status = look_at_input(o, dev, o->runner.inputs.items[i]);
    sac_device_unref(&dev);
    return status;
}

static int count_inputs(const struct optimizing *o)
{
    return o->runner.pictures ? 1 : (int)o->runner.inputs.count;
}

static int count_cpus(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

static int choose_knobs(struct optimizing *o, const struct optimize_figures *pilot)
{
    const struct optimize_facts facts = {
        .settings = o->settings,
        .cpus = count_cpus(),
        .inputs = count_inputs(o),
        .reid = pilot->reid,
        .encodes = o->settings->optimize.encodes,
        .on_gpu = pilot->on_gpu,
        .batch = pilot->batch,
    };
    o->knob_count = optimize_knobs(&facts, o->knobs, o->fault);
    return o->knob_count < 0 ? STATUS_USAGE : STATUS_OK;
}

/* For a dry run: what no run has told is as the options say. */
static int choose_knobs_unseen(struct optimizing *o)
{
    const struct sac_track_job_params *job = &o->settings->run.job;
    const struct optimize_figures      unseen = {
             .reid = !o->runner.segments && job->reid && strcmp(job->reid, "none") != 0,
             .on_gpu = job->device && strncmp(job->device, "cuda", strlen("cuda")) == 0,
             .batch = job->inference_batch_max,
    };
    return choose_knobs(o, &unseen);
}

/* ---- the first run ---- */

static double at_most_the_input(const struct optimizing *o, double seconds)
{
    const double given_s = (double)o->settings->run.source.duration_us * 1e-6;
    return o->input_s > 0 && seconds >= o->input_s ? given_s : seconds;
}

/* A search has a start, some steps, and the turns at the end. */
static int check_budget(const struct optimizing *o, double run_s)
{
    const double least = run_s * (2 * OPTIMIZE_TURNS + 4);
    if (o->settings->optimize.budget_s >= least)
        return STATUS_OK;
    return fault_usage(o->fault,
                       "--budget %g is too short: a run takes %.1f s, and a search needs %.0f s at "
                       "least; or make runs shorter with --trial",
                       o->settings->optimize.budget_s, run_s, ceil(least));
}

/* How much of the input a run reads, so that it takes as long as asked for. */
static double choose_length(struct optimizing *o, const struct optimize_figures *f)
{
    const double speed = f->fps / (count_inputs(o) * o->nominal_fps); /* 1: in real time */
    o->runner.realtime = o->settings->optimize.goal == OPTIMIZE_LATENCY && speed >= REALTIME_MIN;
    return o->settings->optimize.trial_s * (o->runner.realtime ? 1 : speed);
}

/* Once more where the first was too short to tell: it was mostly a start. */
static int run_pilot(struct optimizing *o)
{
    struct optimize_figures f;
    double                  length_s = fmax(PILOT_S, PILOT_FRAMES / o->nominal_fps), wanted_s = 0;
    int                     status = STATUS_OK;
    for (bool far = true; status == STATUS_OK && far;) {
        o->runner.realtime = false;
        o->runner.duration_s = at_most_the_input(o, length_s);
        o->runner.limit_s = o->settings->optimize.budget_s;
        status = optimize_run(&o->runner, NULL, 0, NULL, 0, NULL, &f, o->fault);
        if (status == STATUS_OK && !f.ok)
            status =
                fault_failure(o->fault, "the run with the settings as they are failed: %s", f.why);
        wanted_s = status == STATUS_OK ? choose_length(o, &f) : 0;
        far = wanted_s > FAR * length_s && (o->input_s <= 0 || length_s < o->input_s);
        length_s *= FAR;
    }
    if (status != STATUS_OK)
        return status;
    o->runner.duration_s = at_most_the_input(o, wanted_s);
    o->wall_s = f.wall_s;
    return choose_knobs(o, &f);
}

/* What only a whole run can tell. */
static int check_first(const struct optimizing *o, const struct optimize_figures *f)
{
    if (o->settings->optimize.goal == OPTIMIZE_WATTS && f->ok && !(f->watts > 0))
        return fault_failure(o->fault, "--goal watts: no GPU of this run says what power it has");
    return check_budget(o, f->wall_s);
}

/* ---- the search ---- */

static int measure(void *user, const int *point, struct optimize_figures *out)
{
    struct optimizing *o = user;
    if (optimize_log_take(&o->log, point, out))
        return 0;
    o->runner.limit_s = fmax(o->settings->optimize.budget_s - spent_s(o), 10 * o->wall_s);
    int status = optimize_run(&o->runner, o->knobs, o->knob_count, point, 0, NULL, out, o->fault);
    if (status == STATUS_OK)
        status = optimize_log_add(&o->log, point, out, o->fault);
    if (status == STATUS_OK && out->ok)
        o->wall_s = out->wall_s;
    if (status == STATUS_OK && o->search.runs == 0) {
        status = check_first(o, out);
        if (status != STATUS_OK)
            optimize_log_remove(&o->log);
    }
    return status;
}

static const char *file_of(const struct optimizing *o, bool reference)
{
    if (o->runner.segments)
        return reference ? "reference.mkv" : "tried.mkv";
    return reference ? "reference.txt" : "tried.txt";
}

/* Of fp32 that sees every frame. */
static int make_reference(struct optimizing *o)
{
    struct settings         s = *o->settings, *given = o->runner.settings;
    struct optimize_figures f;
    if (o->has_reference)
        return STATUS_OK;
    int status = option_set(&s, option_find_key("precision"), "fp32", "precision", o->fault);
    o->runner.settings = &s;
    if (status == STATUS_OK)
        status = optimize_run(&o->runner, NULL, 0, NULL, 0, file_of(o, true), &f, o->fault);
    o->runner.settings = given;
    if (status == STATUS_OK && !f.ok)
        status =
            fault_failure(o->fault, "the run in fp32, to compare results with, failed: %s", f.why);
    o->has_reference = status == STATUS_OK;
    return status;
}

static const struct agreed *find_agreed(const struct optimizing *o, const int *point)
{
    for (int i = 0; i < o->agreed_count; i++) {
        bool same = true;
        for (int k = 0; k < o->knob_count; k++)
            same &= !o->knobs[k].changes || o->agreed[i].at[k] == point[k];
        if (same)
            return &o->agreed[i];
    }
    return NULL;
}

static int compare_results(struct optimizing *o, const int *point, double *share)
{
    const struct optimize_runner as_it_was = o->runner;
    struct optimize_figures      f;
    o->runner.realtime = false;
    o->runner.duration_s = at_most_the_input(o, fmax(as_it_was.duration_s, GATE_S));
    int status = make_reference(o);
    if (status == STATUS_OK)
        status = optimize_run(&o->runner, o->knobs, o->knob_count, point, 0, file_of(o, false), &f,
                              o->fault);
    o->runner = as_it_was;
    *share = 0;
    return status == STATUS_OK && f.ok ? optimize_agreement(&o->runner, file_of(o, true),
                                                            file_of(o, false), share, o->fault)
                                       : status;
}

static int agrees(void *user, const int *point, bool *out)
{
    struct optimizing   *o = user;
    const struct agreed *known = find_agreed(o, point);
    double               share = known ? known->share : 0;
    const int            status = known ? STATUS_OK : compare_results(o, point, &share);
    *out = share >= 1 - o->settings->optimize.loss_max;
    if (status == STATUS_OK && !known && o->agreed_count < AGREED_MAX) {
        struct agreed *kept = &o->agreed[o->agreed_count++];
        memcpy(kept->at, point, sizeof kept->at);
        kept->share = share;
    }
    return status;
}

static void show_progress(const struct optimizing *o)
{
    char line[128];
    if (!o->settings->progress || !term_is_terminal())
        return;
    snprintf(line, sizeof line, "%d runs, %.0f of %.0f s, best %.2f times the default",
             o->search.runs, spent_s(o), o->settings->optimize.budget_s, o->search.best_ratio);
    term_progress(line);
}

static double reserved_s(const struct optimizing *o)
{
    const int streams = o->settings->optimize.streams_max;
    return o->wall_s * (2 * OPTIMIZE_TURNS + (streams ? 2 * log2(streams + 1) : 0));
}

static bool ended(void *user)
{
    struct optimizing *o = user;
    show_progress(o);
    return spent_s(o) + reserved_s(o) > o->settings->optimize.budget_s || interrupt_came();
}

static bool found_something(const struct optimizing *o)
{
    for (int k = 0; k < o->knob_count; k++)
        if (o->search.best[k] != o->knobs[k].start)
            return true;
    return false;
}

static int run_streams(void *user, int streams, struct optimize_figures *out)
{
    struct optimizing     *o = user;
    struct optimize_runner r = o->runner;
    const int             *point = o->comparison.real ? o->search.best : NULL;
    const double           length = r.duration_s > 0 ? r.duration_s : o->input_s;
    r.realtime = false;
    r.duration_s = at_most_the_input(o, fmax(length * count_inputs(o) / streams, 1));
    r.limit_s = fmax(10 * o->wall_s, 60);
    return optimize_run(&r, point ? o->knobs : NULL, o->knob_count, point, streams, NULL, out,
                        o->fault);
}

static int search(struct optimizing *o)
{
    const struct settings *s = o->settings;
    o->search.knobs = o->knobs;
    o->search.knob_count = o->knob_count;
    o->search.goal = (enum optimize_goal)s->optimize.goal;
    o->search.keep_fps = s->optimize.keep_fps;
    o->search.memory_max = s->optimize.memory_max;
    o->search.follows = s->optimize.follows;
    o->search.seed = (uint64_t)s->seed;
    o->search.run = measure;
    o->search.agrees = agrees;
    o->search.ended = ended;
    o->search.user = o;
    int status = optimize_search_run(&o->search);
    if (status == STATUS_OK && !o->search.first.ok)
        status = fault_failure(o->fault, "the run with the settings as they are failed: %s",
                               o->search.first.why);
    o->log.read = 0; /* the closing turns are new ones */
    if (status == STATUS_OK && !interrupt_came() && found_something(o))
        status = optimize_compare(&o->search, &o->comparison);
    if (status == STATUS_OK && !interrupt_came() && s->optimize.streams_max)
        status = optimize_streams(run_streams, o, s->optimize.streams_max, o->nominal_fps,
                                  o->streams_fps, &o->streams_best);
    term_progress(NULL);
    return status < 0 ? fault_failure(o->fault, "out of memory") : status;
}

/* ---- the result ---- */

static void put_yaml(const void *user, FILE *out)
{
    optimize_write_yaml(user, out);
}

static int report(struct optimizing *o)
{
    struct settings     *s = o->settings, tuned = *s;
    const char          *path = s->run.video_out ? s->run.video_out : "-";
    FILE                *table = strcmp(path, "-") == 0 ? stderr : stdout;
    const bool           came = interrupt_came();
    const bool           compared = o->comparison.count > 0 && !came;
    const struct agreed *agreed = find_agreed(o, o->search.best);
    int status = optimize_apply(&tuned, o->knobs, o->knob_count, o->search.best, o->fault);
    const struct optimize_result result = {
        .settings = s,
        .search = &o->search,
        .comparison = &o->comparison,
        .tuned = &tuned,
        .inputs = &o->runner.inputs,
        .segments = o->runner.segments,
        .realtime = o->runner.realtime,
        .taken = compared ? o->comparison.real : came && found_something(o),
        .logged = o->log.path[0] != '\0',
        .ended_by = came                  ? "Ctrl-C"
                    : !o->search.complete ? "--budget"
                                          : NULL,
        .seconds = spent_s(o),
        .duration_s = o->runner.duration_s > 0 ? o->runner.duration_s : o->input_s,
        .agreement = agreed ? agreed->share : (double)NAN,
        .streams_best = o->streams_best,
        .streams_most = came ? 0 : s->optimize.streams_max,
        .streams_fps = o->streams_fps,
        .nominal_fps = o->nominal_fps,
    };
    if (table == stdout || strcmp(s->log_level, "error") != 0)
        optimize_print(&result, table);
    if (status == STATUS_OK)
        status = whole_file_write(path, put_yaml, &result, o->fault);
    if (status == STATUS_OK && !result.ended_by)
        optimize_log_remove(&o->log);
    if (status != STATUS_OK || !came)
        return status;
    fault_failure(o->fault, "interrupted: %s has the best so far", whole_file_name(path));
    return STATUS_INTERRUPTED;
}

/* ---- going on ---- */

static uint64_t mix(uint64_t hash, const char *text)
{
    for (; *text; text++) /* FNV-1a */
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001B3);
    return hash;
}

/* Of what decides the questions and their answers: settings, inputs, knobs, goal, program. */
static uint64_t key_of(const struct optimizing *o)
{
    const struct settings *s = o->settings;
    uint64_t               hash = mix(UINT64_C(0xCBF29CE484222325), sac_version());
    char                   text[TEXT_SIZE];
    FILE                  *out = fmemopen(text, sizeof text, "w");
    if (out) {
        optimize_put_settings(s, o->runner.segments, true, out);
        fclose(out);
        text[sizeof text - 1] = '\0';
        hash = mix(hash, text);
    }
    for (size_t i = 0; i < o->runner.inputs.count; i++) {
        struct stat about = {0};
        stat(o->runner.inputs.items[i], &about);
        snprintf(text, sizeof text, "%s %lld %lld", o->runner.inputs.items[i],
                 (long long)about.st_size, (long long)about.st_mtime);
        hash = mix(hash, text);
    }
    for (int k = 0; k < o->knob_count; k++)
        for (int v = 0; v < o->knobs[k].count; v++)
            hash = mix(mix(hash, o->knobs[k].key), o->knobs[k].values[v]);
    snprintf(text, sizeof text, "%d %d %d %g %g %g %g %d %lld", o->runner.segments,
             s->optimize.goal, s->optimize.follows, s->optimize.trial_s, s->optimize.keep_fps,
             s->optimize.memory_max, s->optimize.loss_max, s->optimize.encodes,
             (long long)s->run.source.duration_us);
    return mix(hash, text);
}

static int open_log(struct optimizing *o)
{
    const char *output = o->settings->run.video_out;
    o->log.key = key_of(o);
    o->log.knob_count = o->knob_count;
    o->log.duration_s = o->runner.duration_s;
    const int status =
        optimize_log_open(&o->log, output && !whole_file_is_stream(output) ? output : NULL,
                          o->settings->optimize.resume, o->fault);
    o->runner.duration_s = o->log.duration_s;
    return status;
}

/* ---- the verb ---- */

static int optimize(struct optimizing *o)
{
    struct settings *s = o->settings;
    int              status = check_usage(s, o->fault);
    if (status == STATUS_OK)
        status = check_output(s->run.video_out, o->fault);
    if (status == STATUS_OK)
        status = term_context(s, &o->ctx, o->fault);
    o->runner.ctx = o->ctx;
    if (status == STATUS_OK)
        status = look_at_inputs(o);
    if (status == STATUS_OK && s->optimize.dry_run) {
        status = choose_knobs_unseen(o);
        if (status == STATUS_OK)
            optimize_print_plan(s, o->knobs, o->knob_count, stdout);
        return status;
    }
    if (status == STATUS_OK)
        status = optimize_runner_init(&o->runner, o->fault);
    if (status == STATUS_OK)
        status = run_pilot(o);
    if (status == STATUS_OK)
        status = open_log(o);
    if (status == STATUS_OK)
        status = search(o);
    if (status == STATUS_INTERRUPTED && !o->search.first.ok) {
        fault_failure(o->fault, "interrupted before anything was tried; nothing was written");
        return status;
    }
    return status == STATUS_OK || status == STATUS_INTERRUPTED ? report(o) : status;
}

int verb_optimize(struct settings *s, struct fault *fault)
{
    struct optimizing *o = calloc(1, sizeof *o);
    if (!o)
        return fault_failure(fault, "out of memory");
    o->settings = o->runner.settings = s;
    o->fault = fault;
    o->runner.segments = s->task == TASK_SEGMENT;
    o->begun_s = now_s();
    interrupt_stops();
    const int status = optimize(o);
    optimize_log_finish(&o->log);
    optimize_runner_finish(&o->runner);
    free(o->runner.inputs.items);
    sac_context_destroy(&o->ctx);
    free(o);
    return status;
}
