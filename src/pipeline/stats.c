/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "engine/engine.h"
#include "device/device.h"
#include "observe/figures.h"
#include "observe/gpu.h"
#include "observe/process.h"
#include "observe/trace.h"
#include "pipeline/flow.h"
#include "pipeline/job.h"
#include "pipeline/report.h"

static const enum sac_memory_use use_of_stage[SAC_STAGE_COUNT] = {
    [SAC_STAGE_DECODE] = SAC_MEMORY_DECODE,       [SAC_STAGE_PREPROCESS] = SAC_MEMORY_PREPROCESS,
    [SAC_STAGE_INFERENCE] = SAC_MEMORY_INFERENCE, [SAC_STAGE_HEAD] = SAC_MEMORY_HEAD,
    [SAC_STAGE_REID] = SAC_MEMORY_REID,           [SAC_STAGE_TRACKING] = SAC_MEMORY_TRACKING,
    [SAC_STAGE_DRAW] = SAC_MEMORY_DRAW,           [SAC_STAGE_ENCODE] = SAC_MEMORY_ENCODE,
};

/* Memory of stages that did not run is counted as other. */
static void add_stages(struct sac_job *job, struct sac_pipeline_stats *out)
{
    uint64_t live[SAC_MEMORY_USE_COUNT], peak[SAC_MEMORY_USE_COUNT];
    sac_device_memory_by_use(job->dev, live, peak);
    struct sac_timer_summary stage[SAC_SPAN_COUNT], gpu[SAC_SPAN_COUNT];
    sac_timers_summary(job->timers, stage, SAC_SPAN_COUNT);
    sac_timers_summary(job->gpu_timers, gpu, SAC_SPAN_COUNT);
    out->latency = stage[SAC_SPAN_LATENCY];
    for (int i = 0; i < SAC_STAGE_COUNT; i++)
        if (stage[i].count > 0) {
            enum sac_memory_use use = use_of_stage[i]; /* writing has none of its own */
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

static void add_counts(struct sac_job *job, struct sac_pipeline_stats *out)
{
    int64_t first_ns = atomic_load(&job->first_ns), last_ns = atomic_load(&job->last_ns);
    out->frames = atomic_load(&job->frames_done);
    out->detections = atomic_load(&job->detections);
    out->tracks = atomic_load(&job->tracks);
    out->objects = atomic_load(&job->objects);
    if (last_ns > first_ns)
        out->elapsed_s = (double)(last_ns - first_ns) * 1e-9;
}

static void add_batches(struct sac_job *job, struct sac_batch_stats *out)
{
    out->count = atomic_load(&job->batches);
    out->frames = atomic_load(&job->batch_frames);
    out->full = atomic_load(&job->batches_full);
    out->max = job->ready_made ? 0 : job->ahead ? job->batch_limit : job->batch_max;
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
    const struct sac_flow_facts facts = {
        .streams = streams,
        .cpus = sac_cpu_count(),
        .threads = sac_device_threads(job->dev),
        .camera_motion =
            job->params.tracker.camera_motion && job->params.tracker.kind == SAC_TRACKER_BOTSORT,
        .host_memory = job->dev->ops->host_memory,
    };
    sac_flow_judge(out, &facts);
}

static const char *precision_of(const struct sac_job *job)
{
    const struct sac_track_job_params *p = &job->params;
    switch (sac_engine_precision(job->dev, p->detector_params.precision)) {
    case SAC_PRECISION_FP16: return "float16";
    case SAC_PRECISION_TF32: return "tf32";
    default: return "float32";
    }
}

static void add_names(const struct sac_job *job, struct sac_pipeline_stats *out)
{
    const struct sac_track_job_params *p = &job->params;
    snprintf(out->device, sizeof out->device, "%s (%s)", sac_device_name(job->dev),
             sac_device_description(job->dev));
    snprintf(out->tracker, sizeof out->tracker, "%s", sac_tracker_kind_name(p->tracker.kind));
    snprintf(out->head, sizeof out->head, "%s", job->head);
    snprintf(out->classes, sizeof out->classes, "%s", job->kept);
    out->class_count = job->class_count;
    out->class_kept = job->class_kept;
    snprintf(out->engine, sizeof out->engine, "%s", job->engine);
    if (job->engine[0])
        snprintf(out->precision, sizeof out->precision, "%s", precision_of(job));
    if (p->detector && !job->ready_made)
        snprintf(out->detector, sizeof out->detector, "%s", p->detector);
    if (job->wants_embeddings)
        snprintf(out->reid, sizeof out->reid, "%s", p->reid);
}

void sac_job_get_stats(struct sac_job *job, struct sac_pipeline_stats *out)
{
    *out = (struct sac_pipeline_stats){0};
    add_counts(job, out);
    add_stages(job, out);
    out->queue[out->queue_count++] = sac_job_queue_info(job->detect, "detect");
    out->queue[out->queue_count++] = sac_job_queue_info(job->track, "track");
    add_names(job, out);
    out->outputs_whole = atomic_load(&job->reports_whole);
    add_batches(job, &out->batch);
    add_memory(job, out);
    sac_figures_set_rates(out);
    sac_gpu_watch_get(job->gpu, &out->gpu);
}

sac_result sac_job_finish_reports(struct sac_job *job, const struct sac_pipeline_stats *stats,
                                  const struct sac_stream_stats *streams, int stream_count)
{
    sac_result res = job->trace ? sac_trace_finish(job->trace) : SAC_OK;
    sac_result written = SAC_OK;
    if (job->trace && res == SAC_OK)
        atomic_fetch_or(&job->reports_whole, SAC_OUTPUT_TRACE);
    if (job->stats_file.file) {
        written = sac_report_write(job->ctx, &job->stats_file, stats, streams, stream_count);
        if (written == SAC_OK)
            atomic_fetch_or(&job->reports_whole, SAC_OUTPUT_STATS);
    }
    return res == SAC_OK ? written : res;
}
