/* SPDX-License-Identifier: Apache-2.0 */
/* saccade profile: a run that is timed, traced and watched, and a page of what was seen. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"
#include "profile.h"
#include "term.h"
#include "verbs.h"
#include "whole_file.h"

/* ---- what the run leaves ---- */

static void take_figures(struct profile *p, sac_monitor *monitor)
{
    const int count = sac_monitor_figure_count(monitor), events = sac_monitor_event_count(monitor);
    p->figures = calloc((size_t)count + 1, sizeof *p->figures);
    p->events = calloc((size_t)events + 1, sizeof *p->events);
    for (int i = 0; p->figures && i < count; i++)
        p->figure_count += sac_monitor_get_figure(monitor, i, &p->figures[i]) == SAC_OK;
    for (int i = 0; p->events && i < events; i++)
        p->event_count += sac_monitor_get_event(monitor, i, &p->events[i]) == SAC_OK;
    p->monitor_cost = sac_monitor_cost(monitor);
}

void profile_take(struct profile *p, sac_pipeline *pipe, const struct sac_pipeline_stats *stats)
{
    p->stats = *stats;
    take_figures(p, sac_pipeline_monitor(pipe));
    p->allocation_count =
        sac_pipeline_get_allocations(pipe, p->allocation, (int)SAC_ALLOCATIONS_MAX);
}

static int by_bytes(const void *a, const void *b)
{
    const struct layer *x = a, *y = b;
    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static int by_flops(const void *a, const void *b)
{
    const struct layer *x = a, *y = b;
    return (x->flops < y->flops) - (x->flops > y->flops);
}

static int by_memory(const void *a, const void *b)
{
    const struct layer *x = a, *y = b;
    return (x->made < y->made) - (x->made > y->made);
}

/* They are sorted by time already. */
static void sort_layers(struct layers *layers, int sort)
{
    int (*const orders[])(const void *a, const void *b) = {
        [PROFILE_BY_TIME] = NULL,
        [PROFILE_BY_BYTES] = by_bytes,
        [PROFILE_BY_FLOPS] = by_flops,
        [PROFILE_BY_MEMORY] = by_memory,
    };
    if (layers->count && orders[sort])
        qsort(layers->items, layers->count, sizeof *layers->items, orders[sort]);
}

const char *profile_network(const struct profile *p)
{
    return p->stats.segmenter[0] ? p->stats.segmenter : p->stats.detector;
}

/* The network that took the time, at the batch that it mostly had. */
static void take_layers(const struct settings *s, struct profile *p)
{
    const char  *model = profile_network(p);
    struct fault fault = {0};
    if (!model[0]) {
        snprintf(p->layers_why, sizeof p->layers_why, "the run had no network");
        return;
    }
    p->layers_batch = p->stats.batch.mean >= 1 ? (int)(p->stats.batch.mean + 0.5) : 1;
    if (bench_model_layers(s, model, p->layers_batch, &p->layers, &fault) != STATUS_OK)
        snprintf(p->layers_why, sizeof p->layers_why, "%.290s", fault.sentence);
}

/* ---- the verb ---- */

/* A run has one file of each. */
static int check_settings(const struct settings *s, const struct profile *p, struct fault *fault)
{
    const char *stats = s->run.job.stats_out, *trace = s->run.job.trace_out;
    if (!stats && !trace)
        return STATUS_OK;
    return fault_usage(
        fault, "profile writes the run's %s itself, beside the page '%s': leave %s '%s' out",
        stats ? "statistics" : "trace", p->page, stats ? "--stats" : "--trace",
        stats ? stats : trace);
}

static bool ends_with(const char *text, const char *ending)
{
    const size_t a = strlen(text), b = strlen(ending);
    return a > b && strcmp(text + a - b, ending) == 0;
}

/* report.html: report.json, report.trace.json and report.folded. */
static int name_files(struct settings *s, struct profile *p, struct fault *fault)
{
    char path[4096];
    p->page = s->run.video_out;
    if (!p->page)
        return fault_usage(fault, "profile needs --output REPORT.html");
    if (!ends_with(p->page, ".html"))
        return fault_usage(fault, "--output '%s': profile writes a page, whose name ends in .html",
                           p->page);
    const int stem = (int)strlen(p->page) - 5;
    int       status = check_settings(s, p, fault);
    if (status != STATUS_OK)
        return status;
    if (stem > (int)sizeof path - 16)
        return fault_usage(fault, "--output '%s': the name is too long", p->page);
    snprintf(path, sizeof path, "%.*s.json", stem, p->page);
    p->stats_path = s->run.job.stats_out = settings_hold(s, path);
    snprintf(path, sizeof path, "%.*s.trace.json", stem, p->page);
    p->trace_path = s->run.job.trace_out = settings_hold(s, path);
    snprintf(path, sizeof path, "%.*s.folded", stem, p->page);
    p->folded = settings_hold(s, path);
    p->against = s->against;
    p->reads[0] = s->config;
    p->reads[1] = p->against;
    p->writes[0] = p->page;
    p->writes[1] = s->profile_stacks ? p->folded : NULL;
    p->rows = s->profile_rows;
    p->shapes = s->profile_shapes;
    p->by_memory = s->profile_sort == PROFILE_BY_MEMORY;
    if (!p->stats_path || !p->trace_path || !p->folded)
        return fault_failure(fault, "out of memory");
    if (access(p->page, F_OK) == 0) /* else its folder is created */
        status = whole_file_check(p->page, fault);
    return status;
}

/* Before the run: its threads are sampled from their start on. */
static int start_stacks(struct settings *s, struct profile *p, struct fault *fault)
{
    if (!s->profile_stacks)
        return STATUS_OK;
    int status = term_context(s, &p->stacks_ctx, fault);
    if (status == STATUS_OK && sac_stacks_start(p->stacks_ctx, NULL, &p->stacks) != SAC_OK)
        status = fault_library(fault, p->stacks_ctx, SAC_ERR_MEMORY);
    s->run.job.stacks = p->stacks;
    return status;
}

static int run(struct settings *s, struct profile *p, struct fault *fault)
{
    const bool segments = s->task == TASK_SEGMENT;
    const int  status = start_stacks(s, p, fault);
    if (status != STATUS_OK)
        return status;
    if (p->model.path)
        return profile_run_model(s, p, fault);
    s->run.job.timers = 1;
    s->watched = true;
    s->run.video_out = segments ? "none" : NULL;
    return segments ? verb_segment(s, fault) : verb_track(s, fault);
}

int verb_profile(struct settings *s, struct fault *fault)
{
    struct profile *p = calloc(1, sizeof *p);
    if (!p)
        return fault_failure(fault, "out of memory");
    bool whole = false;
    int  status = profile_choose_model(s, &p->model.path, fault);
    if (status == STATUS_OK)
        status = name_files(s, p, fault);
    if (status == STATUS_OK && p->against)
        status = profile_read_old(p, fault);
    s->profile = p;
    if (status == STATUS_OK)
        status = run(s, p, fault);
    /* Ctrl-C is how a camera's run ends: what was seen until then is a profile too. */
    if (status == STATUS_OK || (status == STATUS_INTERRUPTED && p->stats.frames > 0)) {
        if (!p->model.path) {
            profile_read_trace(p->trace_path, &p->trace);
            take_layers(s, p);
        }
        sort_layers(&p->layers, s->profile_sort);
        int written = p->stacks ? profile_write_folded(p, fault) : STATUS_OK;
        if (written == STATUS_OK)
            written = profile_write_page(p, fault);
        whole = written == STATUS_OK;
        status = whole ? status : written;
    }
    if (whole)
        printf("%s\n%s\n%s\n", p->page, p->stats_path, p->trace_path);
    if (whole && p->stacks)
        printf("%s\n", p->folded);
    for (int i = 0; i < SAC_STAGE_MAX; i++)
        bench_runs_finish(&p->model.runs[i]);
    layers_finish(&p->layers);
    s->run.job.stacks = NULL;
    sac_stacks_destroy(&p->stacks);
    sac_context_destroy(&p->stacks_ctx);
    free(p->figures);
    free(p->events);
    free(p);
    s->profile = NULL;
    return status;
}
