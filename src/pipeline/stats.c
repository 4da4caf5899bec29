/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "pipeline/books.h"
#include "observe/figures.h"
#include "observe/gpu.h"
#include "observe/process.h"
#include "observe/run_watch.h"
#include "observe/trace.h"
#include "pipeline/flow.h"
#include "pipeline/inference.h"
#include "pipeline/report.h"
#include "pipeline/task.h"
#include "track/core.h"

/* Memory of stages that did not run is counted as other. */
static void add_stages(struct sac_job *job, struct sac_pipeline_stats *out)
{
    uint64_t live[SAC_MEMORY_USE_COUNT], peak[SAC_MEMORY_USE_COUNT];
    sac_device_memory_by_use(job->dev, live, peak);
    struct sac_timer_summary stage[SAC_SPAN_COUNT], gpu[SAC_SPAN_COUNT];
    sac_timers_summary(job->books->timers, stage, SAC_SPAN_COUNT);
    sac_timers_summary(job->books->gpu_timers, gpu, SAC_SPAN_COUNT);
    out->latency = stage[SAC_SPAN_LATENCY];
    out->composite_latency = stage[SAC_SPAN_COMPOSITE_LATENCY];
    out->composites_late = atomic_load(&job->books->composites_late);
    for (int i = 0; i < SAC_STAGE_COUNT; i++)
        if (stage[i].count > 0) {
            enum sac_memory_use use = sac_stages[i].memory;
            out->stage_gpu[out->stage_count] = gpu[i];
            if (use != SAC_MEMORY_OTHER) {
                out->stage_bytes[out->stage_count] = live[use];
                out->stage_bytes_peak[out->stage_count] = peak[use];
                live[use] = peak[use] = 0;
            }
            out->stage[out->stage_count++] = stage[i];
        }
    for (int i = 0; i < SAC_MEMORY_USE_COUNT; i++) {
        out->other_bytes += live[i];
        out->other_bytes_peak += peak[i];
    }
}

struct sac_queue_info sac_job_queue_info(struct sac_queue *queue, const char *name)
{
    struct sac_queue_stats stats;
    sac_queue_stats(queue, &stats);
    struct sac_queue_info info = {
        .length = stats.length,
        .capacity = stats.capacity,
        .length_max = stats.length_max,
        .passed = stats.pushed,
        .full = stats.push_waits,
        .empty = stats.pop_waits,
        .push_wait_ms = (double)stats.push_wait_ns * 1e-6,
        .pop_wait_ms = (double)stats.pop_wait_ns * 1e-6,
    };
    snprintf(info.name, sizeof info.name, "%s", name);
    return info;
}

static void add_savings(struct sac_books *b, struct sac_saving_stats *out)
{
    out->still = atomic_load(&b->still);
    out->regions = atomic_load(&b->regions);
    out->region_area = (double)atomic_load(&b->region_millionths) * 1e-6;
    out->small = atomic_load(&b->small);
    out->large = atomic_load(&b->large);
    out->scales = atomic_load(&b->scales);
    out->looks = atomic_load(&b->looks);
}

static int us_of(const atomic_int_fast64_t *ns)
{
    return (int)SAC_CLAMP((atomic_load(ns) + 500) / 1000, (int64_t)0, (int64_t)INT32_MAX);
}

static void add_start(const struct sac_start *start, struct sac_start_stats *out)
{
    int *const parts[SAC_START_PARTS] = {
        [SAC_START_DEVICE] = &out->device_us,       [SAC_START_INPUTS] = &out->inputs_us,
        [SAC_START_LIBRARIES] = &out->libraries_us, [SAC_START_READ] = &out->read_us,
        [SAC_START_PASSES] = &out->passes_us,       [SAC_START_KEPT] = &out->kept_us,
        [SAC_START_RANGES] = &out->ranges_us,       [SAC_START_PLAN] = &out->plan_us,
        [SAC_START_KERNELS] = &out->kernels_us,     [SAC_START_TRIALS] = &out->trials_us,
        [SAC_START_WEIGHTS] = &out->weights_us,     [SAC_START_CHECK] = &out->check_us,
        [SAC_START_RUNS] = &out->runs_us,           [SAC_START_GRAPHS] = &out->graphs_us,
        [SAC_START_OUTPUTS] = &out->outputs_us,
    };
    out->total_us = us_of(&start->total_ns);
    for (int i = 0; i < SAC_START_PARTS; i++)
        *parts[i] = us_of(&start->ns[i]);
}

static void add_counts(struct sac_job *job, struct sac_pipeline_stats *out)
{
    int64_t first_ns = atomic_load(&job->books->first_ns),
            last_ns = atomic_load(&job->books->last_ns);
    out->frames = atomic_load(&job->books->frames);
    out->detections = atomic_load(&job->books->detections);
    out->tracks = atomic_load(&job->books->tracks);
    out->objects = atomic_load(&job->books->objects);
    add_savings(job->books, &out->savings);
    add_start(&job->start, &out->start);
    if (last_ns > first_ns)
        out->elapsed_s = (double)(last_ns - first_ns) * 1e-9;
}

static void add_batches(struct sac_job *job, struct sac_batch_stats *out)
{
    out->count = atomic_load(&job->books->batches);
    out->frames = atomic_load(&job->books->batch_frames);
    out->full = atomic_load(&job->books->batches_full);
    out->padded = atomic_load(&job->books->padded);
    out->whole = atomic_load(&job->books->united);
    out->shrunk = atomic_load(&job->books->shrunk);
    out->grown = atomic_load(&job->books->grown);
    out->max = job->run->task->begin ? sac_inference_batch_most(job->inference) : 0;
}

static void add_memory(struct sac_job *job, struct sac_pipeline_stats *out)
{
    struct sac_process_usage usage;
    sac_device_pool_stats(job->dev, &out->pool);
    sac_device_host_pool_stats(job->dev, &out->host_pool);
    sac_device_ledger(job->dev, &out->ledger);
    sac_process_usage(&usage);
    out->rss_bytes = usage.rss_bytes;
    out->rss_peak_bytes = usage.rss_peak_bytes;
    out->cpu_s = usage.cpu_s;
}

void sac_job_judge(const struct sac_job *job, int streams, struct sac_pipeline_stats *out)
{
    const struct sac_tracker_row *row = sac_tracker_row_of(job->params.tracker.kind);
    const struct sac_flow_facts   facts = {
          .streams = streams,
          .cpus = sac_cpu_count(),
          .threads = sac_device_threads(job->dev),
          .camera_motion = job->params.tracker.camera_motion && row && row->camera,
          .device = job->dev->ops->async,
    };
    sac_flow_judge(out, &facts);
}

static void add_names(const struct sac_job *job, struct sac_pipeline_stats *out)
{
    const struct sac_task_run *run = job->run;
    snprintf(out->device, sizeof out->device, "%s (%s)", sac_device_name(job->dev),
             sac_device_description(job->dev));
    out->class_count = run->class_count;
    out->class_kept = run->class_kept;
    if (run->task->describe)
        run->task->describe(run, out);
}

void sac_job_get_stats(struct sac_job *job, struct sac_pipeline_stats *out)
{
    *out = (struct sac_pipeline_stats){0};
    add_counts(job, out);
    add_stages(job, out);
    out->queue[out->queue_count++] = sac_job_queue_info(job->detect, "detect");
    out->queue[out->queue_count++] = sac_job_queue_info(job->track, "track");
    add_names(job, out);
    out->outputs_whole = atomic_load(&job->books->whole);
    add_batches(job, &out->batch);
    add_memory(job, out);
    sac_figures_set_rates(out);
    sac_gpu_watch_get(job->books->gpu, &out->gpu);
}

sac_result sac_job_watch(struct sac_job *job, const struct sac_run_feed *feed, const char *title,
                         bool live)
{
    if (!job->params.monitor)
        return SAC_OK;
    struct sac_monitor_params params = *job->params.monitor;
    struct sac_run_feed       whole = *feed;
    params.live |= live;
    whole.timers = job->books->timers;
    whole.latency = SAC_SPAN_LATENCY;
    whole.composite_latency = SAC_SPAN_COMPOSITE_LATENCY;
    return sac_run_watch_start(job->ctx, &params, &whole, title, &job->books->watch);
}

void sac_job_watch_end(struct sac_job *job)
{
    sac_run_watch_end(job->books->watch);
}

/* The file is written without it where there is no memory for it. */
static struct sac_monitor_view *view_of(const struct sac_books *b)
{
    sac_monitor *monitor = sac_run_watch_monitor(b->watch);
    return monitor ? sac_monitor_look_at(monitor, true) : NULL;
}

/* ---- what was held ---- */

static const char *stage_of(enum sac_memory_use use)
{
    for (int i = 0; i < SAC_STAGE_COUNT && use != SAC_MEMORY_OTHER; i++)
        if (sac_stages[i].memory == use)
            return sac_stages[i].name;
    return "";
}

static int list_of(const struct sac_job *job, struct sac_allocation *out)
{
    enum sac_memory_use use[SAC_ALLOCATIONS_MAX];
    const int           n = sac_device_list_kinds(job->dev, out, use, SAC_ALLOCATIONS_MAX);
    for (int i = 0; i < n; i++)
        snprintf(out[i].stage, sizeof out[i].stage, "%s", stage_of(use[i]));
    return n;
}

/* Two lists in order as one; returns its length. */
static int merge(const struct sac_allocation *a, int a_count, const struct sac_allocation *b,
                 int b_count, struct sac_allocation *out, int max)
{
    int n = 0;
    for (int i = 0, k = 0; n < max && (i < a_count || k < b_count); n++)
        if (k == b_count || (i < a_count && a[i].bytes_peak >= b[k].bytes_peak))
            out[n] = a[i++];
        else
            out[n] = b[k++];
    return n;
}

int sac_jobs_get_allocations(struct sac_job *const *jobs, int job_count, struct sac_allocation *out,
                             int max)
{
    enum { MAX = SAC_ALLOCATIONS_MAX };
    struct sac_allocation *lists = sac_calloc((size_t)3 * MAX, sizeof *lists);
    struct sac_allocation *all = lists, *one = lists + MAX, *both = lists + 2 * MAX;
    int                    n = 0;
    if (!lists)
        return 0;
    for (int i = 0; i < job_count; i++) {
        n = merge(all, n, one, list_of(jobs[i], one), both, MAX);
        memcpy(all, both, (size_t)n * sizeof *all);
    }
    n = SAC_MIN(n, max);
    memcpy(out, all, (size_t)n * sizeof *out);
    sac_free(lists);
    return n;
}

static sac_result write_report(struct sac_job *const *jobs, int job_count,
                               const struct sac_pipeline_stats *stats,
                               const struct sac_stream_stats *streams, int stream_count)
{
    struct sac_books        *b = jobs[0]->books;
    struct sac_held         *held = sac_new(struct sac_held);
    struct sac_monitor_view *view = view_of(b);
    sac_stacks              *stacks = jobs[0]->params.stacks;
    const struct sac_report  report = {stats, streams, stream_count, held, stacks, view};
    sac_result               res;
    if (held) {
        held->count = sac_jobs_get_allocations(jobs, job_count, held->item, SAC_ALLOCATIONS_MAX);
        res = sac_report_write(jobs[0]->ctx, &b->stats_file, &report);
    } else {
        res = SAC_FAIL(jobs[0]->ctx, SAC_ERR_MEMORY, "'%s': no memory for the statistics",
                       b->stats_file.name.path);
    }
    sac_free(held);
    sac_free(view);
    return res;
}

sac_result sac_job_finish_reports(struct sac_job *const *jobs, int job_count,
                                  const struct sac_pipeline_stats *stats,
                                  const struct sac_stream_stats *streams, int stream_count)
{
    struct sac_books *b = jobs[0]->books;
    if (jobs[0]->params.stacks) /* what it has no memory for it says itself */
        sac_stacks_stop(jobs[0]->params.stacks);
    sac_result res = b->trace ? sac_trace_finish(b->trace) : SAC_OK;
    sac_result written = SAC_OK;
    if (b->trace && res == SAC_OK)
        atomic_fetch_or(&b->whole, SAC_OUTPUT_TRACE);
    if (b->stats_file.file) {
        written = write_report(jobs, job_count, stats, streams, stream_count);
        if (written == SAC_OK)
            atomic_fetch_or(&b->whole, SAC_OUTPUT_STATS);
    }
    return res == SAC_OK ? written : res;
}
