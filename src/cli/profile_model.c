/* SPDX-License-Identifier: Apache-2.0 */
/* A model that is profiled by itself: what it is asked for, its runs, and what holds them up. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <saccade/files.h>
#include <saccade/head.h>

#include "inspect.h"
#include "interrupt.h"
#include "profile.h"
#include "term.h"
#include "whole_file.h"

/* ---- which model, if any ---- */

/* Named on the command line or in the configuration, and not "auto" or "none". */
static bool is_given(const char *model)
{
    return model && strcmp(model, "auto") != 0 && strcmp(model, "none") != 0;
}

static enum sac_head_kind kind_of(const sac_model *model)
{
    return sac_head_kind_of(sac_head_recognise(model));
}

/* INPUT and a model that a run over inputs has no use for. */
static int refuse_both(const struct settings *s, struct fault *fault)
{
    sac_context       *ctx = NULL;
    sac_device        *device = NULL;
    sac_model         *model = NULL;
    enum sac_head_kind kind = SAC_HEAD_MATTES; /* of one that can't be read: track needs none */
    int                status = term_context(s, &ctx, fault);
    if (status == STATUS_OK && sac_device_open(ctx, "cpu", NULL, &device) == SAC_OK &&
        sac_model_open_for_inspection(device, s->segment.model, NULL, &model) == SAC_OK)
        kind = kind_of(model);
    if (status == STATUS_OK && (kind == SAC_HEAD_UNKNOWN || kind == SAC_HEAD_EMBEDDINGS))
        status = fault_usage(fault,
                             "--model '%s' is neither a detector nor a segmenter, so it is "
                             "profiled by itself: leave '%s' out",
                             s->segment.model, s->args.items[0]);
    sac_model_unref(&model);
    sac_device_unref(&device);
    sac_context_destroy(&ctx);
    return status;
}

static int check_inputs(const struct settings *s, struct fault *fault)
{
    const char *input = s->args.count ? s->args.items[0] : NULL;
    if (s->task == TASK_MODEL && input)
        return fault_usage(fault,
                           "--task model takes a MODEL, an ONNX file or the name of one that comes "
                           "with saccade, and '%s' is none",
                           input);
    if (s->task == TASK_MODEL)
        return fault_usage(fault, "--task model needs a MODEL; see 'saccade profile --help'");
    if (!input && is_given(s->run.job.detector))
        return fault_usage(fault,
                           "--detector '%s' needs an INPUT to find objects in; by itself a network "
                           "is profiled with 'saccade profile %s --task model'",
                           s->run.job.detector, s->run.job.detector);
    if (!input)
        return fault_usage(fault, "profile needs INPUT... or a MODEL; see 'saccade profile "
                                  "--help'");
    return is_given(s->segment.model) && s->task == TASK_TRACK ? refuse_both(s, fault) : STATUS_OK;
}

int profile_choose_model(const struct settings *s, const char **out, struct fault *fault)
{
    const char *model = NULL, *input = NULL;
    for (size_t i = 0; i < s->args.count; i++)
        if (inspect_is_model(s->args.items[i]) && !model)
            model = s->args.items[i];
        else
            input = s->args.items[i];
    if (model && input)
        return fault_usage(fault,
                           "'%s' is a model, which is profiled by itself: leave '%s' out, or name "
                           "the model with --detector, --reid or --task segment --model",
                           model, input);
    if (!model && !input && s->task != TASK_SEGMENT && is_given(s->segment.model))
        model = s->segment.model;
    if (model && s->task == TASK_SEGMENT)
        return fault_usage(fault,
                           "--task segment needs an INPUT: saccade profile INPUT --task segment "
                           "--model %s",
                           model);
    *out = model;
    return model ? STATUS_OK : check_inputs(s, fault);
}

/* What a detector or a segmenter takes is a part of its pipeline: on random numbers it finds
 * nothing. */
static int check_kind(const struct bench *b, struct fault *fault)
{
    const enum sac_head_kind kind = kind_of(b->model);
    if (b->settings->task == TASK_MODEL || (kind != SAC_HEAD_BOXES && kind != SAC_HEAD_MATTES))
        return STATUS_OK;
    return fault_usage(fault,
                       "'%s' is a %s and needs an INPUT: saccade profile INPUT %s %s; for the "
                       "network by itself add --task model",
                       b->path, kind == SAC_HEAD_BOXES ? "detector" : "segmenter",
                       kind == SAC_HEAD_BOXES ? "--detector" : "--task segment --model", b->path);
}

/* ---- files ---- */

static int check_files(const struct profile *p, const struct bench *b, struct fault *fault)
{
    const char *const out[] = {p->page, p->stats_path, p->trace_path,
                               b->settings->profile_stacks ? p->folded : NULL};
    const size_t      count = sizeof out / sizeof out[0];
    size_t            read_count = 2;
    int               status = STATUS_OK;
    while (sac_model_file(b->model, (int)read_count - 2))
        read_count++;
    const char **read = calloc(read_count, sizeof *read);
    if (!read)
        return fault_failure(fault, "out of memory");
    read[0] = b->settings->config;
    read[1] = p->against;
    for (size_t i = 2; i < read_count; i++)
        read[i] = sac_model_file(b->model, (int)i - 2);
    if (sac_files_check(b->ctx, out, count, read, read_count) != SAC_OK) {
        fault_library(fault, b->ctx, SAC_ERR_ARG);
        status = STATUS_USAGE;
    }
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = out[i] ? whole_file_check(out[i], fault) : STATUS_OK;
    free(read);
    return status;
}

/* ---- figures ---- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Nearest rank. */
static double percentile(const double *sorted, int count, int percent)
{
    return sorted[((int64_t)count * percent + 99) / 100 - 1];
}

static bool summarise(const struct bench_runs *runs, struct sac_timer_summary *out)
{
    double *ms = malloc((size_t)runs->count * sizeof *ms);
    if (!ms)
        return false;
    memcpy(ms, runs->ms, (size_t)runs->count * sizeof *ms);
    qsort(ms, (size_t)runs->count, sizeof *ms, by_value);
    snprintf(out->name, sizeof out->name, "batch %d", runs->batch);
    out->count = runs->count;
    for (int i = 0; i < runs->count; i++)
        out->total_ms += ms[i];
    out->mean_ms = out->total_ms / runs->count;
    out->p50_ms = percentile(ms, runs->count, 50);
    out->p95_ms = percentile(ms, runs->count, 95);
    out->p99_ms = percentile(ms, runs->count, 99);
    out->max_ms = ms[runs->count - 1];
    free(ms);
    return true;
}

double profile_items_per_s(const struct profile *p, int i)
{
    return 1e3 * p->model.runs[i].batch / p->stats.stage[i].p50_ms;
}

/* The time of the runs as they came, for the page's chart: each point is a mean of as many. */
static void draw_runs(const struct bench_runs *runs, struct sac_monitor_figure *f)
{
    const int points =
        runs->count < SAC_MONITOR_HISTORY_MAX ? runs->count : SAC_MONITOR_HISTORY_MAX;
    snprintf(f->name, sizeof f->name, "batch %d", runs->batch);
    snprintf(f->unit, sizeof f->unit, "ms");
    f->history_count = points;
    f->history_step_s = points > 1 ? (runs->ended_us - runs->begun_us[0]) * 1e-6 / (points - 1) : 0;
    for (int i = 0; i < points; i++) {
        const int from = (int)((int64_t)runs->count * i / points),
                  to = (int)((int64_t)runs->count * (i + 1) / points);
        double sum = 0;
        for (int k = from; k < to; k++)
            sum += runs->ms[k];
        f->history[i] = (float)(sum / (to - from));
        f->most = fmax(f->most, (double)f->history[i]);
    }
}

static int add_runs(struct profile *p, int i, struct fault *fault)
{
    p->figures = p->figures ? p->figures : calloc(SAC_STAGE_MAX, sizeof *p->figures);
    if (!p->figures || !summarise(&p->model.runs[i], &p->stats.stage[i]))
        return fault_failure(fault, "out of memory");
    draw_runs(&p->model.runs[i], &p->figures[i]);
    p->model.count = p->stats.stage_count = p->figure_count = i + 1;
    return STATUS_OK;
}

static void describe(struct profile *p, const struct bench *b)
{
    struct sac_pipeline_stats *s = &p->stats;
    struct sac_model_info      info;
    struct rusage              usage;
    struct sac_device_memory   memory = {0};
    sac_model_inspect(b->model, &info);
    sac_device_get_memory(b->device, &memory);
    getrusage(RUSAGE_SELF, &usage);
    snprintf(s->device, sizeof s->device, "%s (%s)", sac_device_name(b->device),
             sac_device_description(b->device));
    snprintf(s->precision, sizeof s->precision, "%s",
             sac_precision_name(sac_model_precision(b->model)));
    s->rss_peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
    s->pool = memory.pool;
    sac_device_ledger(b->device, &s->ledger);
    p->allocation_count =
        sac_device_get_allocations(b->device, p->allocation, (int)SAC_ALLOCATIONS_MAX);
    p->model.parameters = info.parameters;
    p->model.weights_bytes = info.weights_bytes;
    p->model.activation_bytes = info.activation_bytes;
    p->model.quantised = info.quantised != NULL;
    p->model.takes_batch = bench_takes_batch(b);
    /* A GPU's threads are its own. */
    p->model.threads = memory.bytes_total ? 0 : sac_device_threads(b->device);
}

/* ---- what holds it up ---- */

static void explain(struct profile *p, enum bound most, double share, double least_ms)
{
    static const char *const   names[BOUND_COUNT] = {"starting the steps", "memory", "arithmetic"};
    struct sac_pipeline_stats *s = &p->stats;
    const struct layers       *l = &p->layers;
    const struct layer        *first = &l->items[0];
    char                       need[24];
    snprintf(s->bottleneck, sizeof s->bottleneck, "%s", names[most]);
    if (least_ms < l->ms)
        snprintf(need, sizeof need, "%.2f ms", least_ms);
    else /* a cache is faster than the memory that was measured; or other work held that up */
        snprintf(need, sizeof need, "no less");
    snprintf(s->bottleneck_why, sizeof s->bottleneck_why,
             "it bounds steps with %.0f %% of the time; all %zu steps took %.2f ms, and need %s at "
             "the rates measured of the device; the costliest, %.24s '%.60s', takes %.0f %%",
             100 * share, l->count, l->ms, need, first->operator_name, first->name,
             100 * first->ms / l->ms);
}

static void advise(struct profile *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void advise(struct profile *p, const char *fmt, ...)
{
    struct sac_pipeline_stats *s = &p->stats;
    va_list                    ap;
    if (s->advice_count == SAC_ADVICE_MAX)
        return;
    va_start(ap, fmt);
    vsnprintf(s->advice[s->advice_count++], sizeof s->advice[0], fmt, ap);
    va_end(ap);
}

static void advise_threads(struct profile *p)
{
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (p->model.threads > 0 && p->model.threads < cpus)
        advise(p, "More threads: it had %d, and the machine has %ld CPUs (--threads).",
               p->model.threads, cpus);
}

static void advise_bits(struct profile *p, const char *why)
{
    if (!p->model.quantised)
        advise(p,
               "Numbers of 8 bits, %s: 'saccade build --precision int8' "
               "(docs/quantisation.md) says what that loses.",
               why);
}

/* The measured batch with the most items a second. */
static void advise_batch(struct profile *p, enum bound most)
{
    int best = 0;
    for (int i = 1; i < p->model.count; i++)
        best = profile_items_per_s(p, i) > profile_items_per_s(p, best) ? i : best;
    const double gain = profile_items_per_s(p, best) / profile_items_per_s(p, 0);
    if (gain > 1.1)
        advise(p,
               "Batches of %d: %.2f times the items a second of batches of %d, and a run then "
               "takes %.2f ms.",
               p->model.runs[best].batch, gain, p->model.runs[0].batch,
               p->stats.stage[best].p50_ms);
    else if (p->model.count == 1 && p->model.takes_batch && most != BOUND_MATRIX)
        advise(p, "Larger batches, if items can wait for others: a step is started and its "
                  "weights are read once for all of them; --batch 1,4,16 measures it.");
}

static void judge(struct profile *p)
{
    const struct layers *l = &p->layers;
    double               ms[BOUND_COUNT] = {0}, least_ms = 0;
    enum bound           most = BOUND_LAUNCH;
    if (!l->count || !(l->ms > 0))
        return;
    for (size_t i = 0; i < l->count; i++) {
        double need_ms;
        ms[layer_bound(l, &l->items[i], &need_ms)] += l->items[i].ms;
        least_ms += need_ms;
    }
    for (int k = 1; k < BOUND_COUNT; k++)
        most = ms[k] > ms[most] ? (enum bound)k : most;
    explain(p, most, ms[most] / l->ms, least_ms);
    advise_batch(p, most);
    if (most == BOUND_MATRIX)
        advise_threads(p);
    if (most != BOUND_LAUNCH)
        advise_bits(p, most == BOUND_MEMORY ? "which move fewer bytes"
                                            : "of which the device multiplies more in the time");
    if (l->ms > 2 * least_ms)
        advise(p,
               "Better kernels: the steps took %.1f times what the device was measured to need; "
               "the table names each one's.",
               l->ms / least_ms);
}

/* ---- the run ---- */

static void say(const struct profile *p, const struct settings *s, int i)
{
    const struct sac_timer_summary *t = &p->stats.stage[i];
    char                            line[160];
    if (strcmp(s->log_level, "silent") == 0 || strcmp(s->log_level, "error") == 0 ||
        strcmp(s->log_level, "warn") == 0)
        return;
    snprintf(line, sizeof line,
             "%s: p50 %.3f ms, p95 %.3f, p99 %.3f, %.1f items/s (%d runs, the first one %.0f ms)",
             t->name, t->p50_ms, t->p95_ms, t->p99_ms, profile_items_per_s(p, i),
             p->model.runs[i].count, p->model.runs[i].first_ms);
    term_line(line);
}

static int measure(struct profile *p, struct bench *b, struct fault *fault)
{
    int status = STATUS_OK;
    for (int i = 0; i < b->batch_count && status == STATUS_OK; i++) {
        status = bench_time_runs(b, b->batches[i], &p->model.runs[i], i ? NULL : &p->layers);
        if (status == STATUS_OK)
            status = add_runs(p, i, fault);
        if (status == STATUS_OK)
            say(p, b->settings, i);
    }
    p->layers_batch = b->batches[0];
    return status;
}

int profile_run_model(struct settings *s, struct profile *p, struct fault *fault)
{
    struct bench b;
    interrupt_ends();
    int status = bench_init(&b, s, p->model.path, fault);
    if (status == STATUS_OK && b.batch_count > SAC_STAGE_MAX)
        status = fault_usage(fault, "--batch: profile takes %d sizes, not %d", (int)SAC_STAGE_MAX,
                             b.batch_count);
    if (status == STATUS_OK)
        status = check_kind(&b, fault);
    if (status == STATUS_OK)
        status = check_files(p, &b, fault);
    if (status == STATUS_OK)
        status = measure(p, &b, fault);
    if (p->stacks)
        sac_stacks_stop(p->stacks);
    if (status == STATUS_OK) {
        describe(p, &b);
        status = bench_measure_device(&b); /* last: its memory is not the model's */
    }
    if (status == STATUS_OK) {
        p->layers.rates = b.rates;
        judge(p);
        status = profile_write_model(p, fault);
    }
    bench_finish(&b);
    return status;
}
