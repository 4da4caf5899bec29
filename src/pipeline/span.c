/* SPDX-License-Identifier: Apache-2.0 */
/* Records a stage's work: a duration in its histogram, an event in the trace, a range in a
 * profiler's timeline. */
#include <stdio.h>

#include "base/range.h"
#include "device/device.h"
#include "observe/trace.h"
#include "pipeline/job.h"

static const char *const stage_names[SAC_SPAN_COUNT] = {
    [SAC_STAGE_DECODE] = "decode",       [SAC_STAGE_PREPROCESS] = "preprocess",
    [SAC_STAGE_INFERENCE] = "inference", [SAC_STAGE_HEAD] = "head",
    [SAC_STAGE_REID] = "reid",           [SAC_STAGE_TRACKING] = "tracking",
    [SAC_STAGE_CROP] = "crop",           [SAC_STAGE_DRAW] = "draw",
    [SAC_STAGE_ENCODE] = "encode",       [SAC_STAGE_WRITE] = "write",
    [SAC_SPAN_LATENCY] = "latency",
};

static sac_result create_timers(struct sac_job *job, sac_timers **timers)
{
    sac_result res = sac_timers_create(job->ctx, timers);
    for (int i = 0; res == SAC_OK && i < SAC_SPAN_COUNT; i++)
        if (sac_timers_id(*timers, stage_names[i]) != i)
            res = SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for the timers of the stages");
    if (res == SAC_OK)
        sac_timers_enable(*timers, job->params.timers);
    return res;
}

static sac_result share_spans(struct sac_job *job)
{
    job->timers = job->leader->timers;
    job->gpu_timers = job->leader->gpu_timers;
    job->trace = job->leader->trace;
    return SAC_OK;
}

static void add_gpu_tracks(struct sac_job *job)
{
    char name[32];
    snprintf(name, sizeof name, "%.16s tracking", job->dev->name);
    job->gpu_track = sac_trace_track(job->trace, job->dev->name);
    job->gpu_tracking = sac_trace_track(job->trace, name);
}

sac_result sac_job_spans_open(struct sac_job *job)
{
    sac_result res = job->leader ? share_spans(job) : create_timers(job, &job->timers);
    if (res == SAC_OK && !job->leader)
        res = create_timers(job, &job->gpu_timers);
    if (res == SAC_OK && job->params.trace_out)
        res = sac_trace_create(job->ctx, job->params.trace_out, &job->trace);
    if (res != SAC_OK)
        return res;
    job->gpu_track = job->gpu_tracking = -1;
    if (job->trace && !job->dev->ops->host_memory)
        add_gpu_tracks(job);
    sac_ranges_open();
    job->measures = job->params.timers || job->trace;
    return SAC_OK;
}

void sac_job_spans_close(struct sac_job *job)
{
    if (job->leader)
        return;
    sac_trace_destroy(&job->trace);
    sac_timers_destroy(&job->timers);
    sac_timers_destroy(&job->gpu_timers);
}

int64_t sac_job_begin(struct sac_job *job, enum sac_stage stage)
{
    sac_range_push(stage_names[stage]);
    return job->measures ? sac_time_ns() : 0;
}

void sac_job_finish(struct sac_job *job, enum sac_stage stage, int64_t begun,
                    const struct sac_item *item)
{
    sac_range_pop();
    if (begun)
        sac_job_record(job, stage, begun, sac_time_ns(), &item, 1);
}

static void add_events(struct sac_job *job, int track, enum sac_stage stage, int64_t begun_ns,
                       int64_t ended_ns, const struct sac_item *const *items, int n)
{
    for (int i = 0; i < n; i++)
        sac_trace_add(job->trace, &(struct sac_trace_event){
                                      .name = stage_names[stage],
                                      .track = track,
                                      .begun_ns = begun_ns,
                                      .ended_ns = ended_ns,
                                      .frame = items[i]->number,
                                      .pts_us = items[i]->pts_us,
                                      .stream_id = items[i]->stream_id,
                                      .batch = n,
                                  });
}

void sac_job_trace(struct sac_job *job, enum sac_stage stage, int64_t begun_ns, int64_t ended_ns,
                   const struct sac_item *const *items, int n)
{
    if (job->trace)
        add_events(job, sac_trace_thread(job->trace), stage, begun_ns, ended_ns, items, n);
}

void sac_job_time(struct sac_job *job, enum sac_stage stage, int64_t duration_ns)
{
    sac_timer_add(job->timers, stage, duration_ns);
}

void sac_job_record(struct sac_job *job, enum sac_stage stage, int64_t begun_ns, int64_t ended_ns,
                    const struct sac_item *const *items, int n)
{
    sac_job_time(job, stage, ended_ns - begun_ns);
    sac_job_trace(job, stage, begun_ns, ended_ns, items, n);
}

void sac_job_record_gpu(struct sac_job *job, enum sac_stage stage, int64_t begun_ns,
                        int64_t duration_ns, const struct sac_item *const *items, int n)
{
    sac_timer_add(job->gpu_timers, stage, duration_ns);
    if (job->trace && begun_ns)
        add_events(job, stage == SAC_STAGE_TRACKING ? job->gpu_tracking : job->gpu_track, stage,
                   begun_ns, begun_ns + duration_ns, items, n);
}

void sac_job_on_decoded(void *arg, const sac_frame *frame, int64_t begun_ns, int64_t ended_ns)
{
    const struct sac_item item = {
        .number = frame->number, .pts_us = frame->pts_us, .stream_id = frame->stream_id};
    const struct sac_item *items = &item;
    sac_job_record(arg, SAC_STAGE_DECODE, begun_ns, ended_ns, &items, 1);
}
