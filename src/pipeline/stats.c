/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "observe/process.h"
#include "pipeline/job.h"

/* The thread that each stage runs on: stages of one thread add up. */
enum { THREAD_READ, THREAD_INFER, THREAD_TRACK, THREAD_SINK, THREAD_COUNT };
static const int thread_of[SAC_STAGE_COUNT] = {
    [SAC_STAGE_DECODE] = THREAD_READ,     [SAC_STAGE_PREPROCESS] = THREAD_INFER,
    [SAC_STAGE_INFERENCE] = THREAD_INFER, [SAC_STAGE_HEAD] = THREAD_INFER,
    [SAC_STAGE_REID] = THREAD_INFER,      [SAC_STAGE_TRACKING] = THREAD_TRACK,
    [SAC_STAGE_DRAW] = THREAD_SINK,       [SAC_STAGE_ENCODE] = THREAD_SINK,
    [SAC_STAGE_WRITE] = THREAD_SINK,
};

/* The busiest thread is the one that the others wait for (they stand at its queues meanwhile); of its
 * stages, the longest is named. NULL: nothing ran yet. */
static const struct sac_timer_summary *
find_bottleneck(const struct sac_timer_summary stage[SAC_STAGE_COUNT])
{
    const struct sac_timer_summary *longest = NULL;

    double busy_ms[THREAD_COUNT] = {0};
    int    busiest = 0;
    for (int i = 0; i < SAC_STAGE_COUNT; i++)
        busy_ms[thread_of[i]] += stage[i].total_ms;
    for (int i = 1; i < THREAD_COUNT; i++)
        if (busy_ms[i] > busy_ms[busiest])
            busiest = i;
    for (int i = 0; i < SAC_STAGE_COUNT; i++)
        if (thread_of[i] == busiest && stage[i].count > 0 &&
            (!longest || stage[i].total_ms > longest->total_ms))
            longest = &stage[i];
    return longest;
}

static void add_stages(struct sac_job *job, struct sac_pipeline_stats *out)
{
    struct sac_timer_summary stage[SAC_STAGE_COUNT];
    sac_timers_summary(job->timers, stage, SAC_STAGE_COUNT);
    for (int i = 0; i < SAC_STAGE_COUNT; i++)
        if (stage[i].count > 0)
            out->stage[out->stage_count++] = stage[i];
    const struct sac_timer_summary *longest = find_bottleneck(stage);
    if (longest)
        memcpy(out->bottleneck, longest->name, sizeof out->bottleneck);
}

static void add_queue(struct sac_pipeline_stats *out, const char *name, struct sac_queue *queue)
{
    struct sac_queue_stats stats;
    struct sac_queue_info *info = &out->queue[out->queue_count++];
    sac_queue_stats(queue, &stats);
    snprintf(info->name, sizeof info->name, "%s", name);
    info->length = stats.length;
    info->capacity = stats.capacity;
    info->length_max = stats.length_max;
    info->push_wait_ms = (double)stats.push_wait_ns * 1e-6;
    info->pop_wait_ms = (double)stats.pop_wait_ns * 1e-6;
}

static void add_counts(struct sac_job *job, struct sac_pipeline_stats *out)
{
    int64_t first_ns = atomic_load(&job->first_ns), last_ns = atomic_load(&job->last_ns);
    out->frames = atomic_load(&job->frames_done);
    out->detections = atomic_load(&job->detections);
    out->tracks = atomic_load(&job->tracks);
    out->objects = atomic_load(&job->objects);
    if (last_ns > first_ns) {
        out->elapsed_s = (double)(last_ns - first_ns) * 1e-9;
        out->fps = (double)out->frames / out->elapsed_s;
    }
}

static void add_names(const struct sac_job *job, struct sac_pipeline_stats *out)
{
    const struct sac_track_job_params *p = &job->params;
    snprintf(out->device, sizeof out->device, "%s (%s)", sac_device_name(job->dev),
             sac_device_description(job->dev));
    snprintf(out->tracker, sizeof out->tracker, "%s", sac_tracker_kind_name(p->tracker.kind));
    snprintf(out->head, sizeof out->head, "%s", job->head);
    snprintf(out->engine, sizeof out->engine, "%s", job->engine);
    if (job->engine[0])
        snprintf(out->precision, sizeof out->precision, "float32");
    if (p->detector && !job->rows)
        snprintf(out->detector, sizeof out->detector, "%s", p->detector);
    if (job->wants_embeddings)
        snprintf(out->reid, sizeof out->reid, "%s", p->reid);
}

void sac_job_get_stats(struct sac_job *job, struct sac_pipeline_stats *out)
{
    struct sac_process_usage usage;
    *out = (struct sac_pipeline_stats){0};
    add_counts(job, out);
    add_stages(job, out);
    add_queue(out, "detect", job->detect);
    add_queue(out, "track", job->track);
    add_queue(out, "write", job->done);
    add_names(job, out);
    sac_device_pool_stats(job->dev, &out->pool);
    sac_device_ledger(job->dev, &out->ledger);
    sac_process_usage(&usage);
    out->rss_bytes = usage.rss_bytes;
    out->rss_peak_bytes = usage.rss_peak_bytes;
    out->cpu_s = usage.cpu_s;
}
