/* SPDX-License-Identifier: Apache-2.0 */
/* One pipeline on several devices: a job for each; the streams are assigned to them in turn. All
 * jobs use the first one's timers and trace; their other figures are added up here. */
#include <stdio.h>
#include <string.h>

#include "device/device.h"
#include "observe/figures.h"
#include "pipeline/books.h"
#include "pipeline/inference.h"
#include "pipeline/pipeline.h"

/* ---- jobs ---- */

int sac_pipeline_streams_of(const sac_pipeline *pipe, int job)
{
    return (pipe->stream_count - job + pipe->job_count - 1) / pipe->job_count;
}

static sac_result create_job(sac_pipeline *pipe, const struct sac_task *task, int i)
{
    struct sac_track_job_params params = pipe->params.job;
    if (pipe->params.device_count > 0)
        params.device = pipe->params.devices[i];
    if (i > 0) /* there is one of each for all jobs */
        params.trace_out = params.stats_out = NULL;
    return sac_job_create(pipe->ctx, task, &params, (size_t)sac_pipeline_streams_of(pipe, i),
                          pipe->jobs[0], &pipe->jobs[i]);
}

static void set_up_job(const sac_pipeline *pipe, struct sac_job *job)
{
    job->inference->batch_limit = sac_pipeline_batch_limit(pipe, job);
    job->inference->eager |= pipe->params.realtime != 0;
    job->unwanted = pipe->params.source.give_up;
    job->unwanted_user = pipe->params.source.give_up_user;
}

sac_result sac_pipeline_create_jobs(sac_pipeline *pipe, const struct sac_task *task)
{
    const int  n = SAC_MAX(pipe->params.device_count, 1);
    sac_result res = SAC_OK;
    if (n > SAC_SHARDS_MAX)
        return SAC_FAIL(pipe->ctx, SAC_ERR_ARG, "%d devices; up to %d share a run", n,
                        (int)SAC_SHARDS_MAX);
    pipe->job_count = SAC_MIN(n, pipe->stream_count); /* one without streams would only load its
                                                         models */
    if (pipe->job_count < n)
        sac_log(pipe->ctx, SAC_LOG_WARN, "%d input%s for %d devices: %s%s not used",
                pipe->stream_count, pipe->stream_count == 1 ? "" : "s", n,
                pipe->params.devices[pipe->job_count],
                pipe->job_count + 1 < n ? " and those behind it are" : " is");
    for (int i = 0; i < pipe->job_count && res == SAC_OK; i++)
        res = create_job(pipe, task, i);
    for (int i = 0; i < pipe->stream_count && res == SAC_OK; i++)
        pipe->streams[i].job = pipe->jobs[i % pipe->job_count];
    for (int i = 0; i < pipe->job_count && res == SAC_OK; i++)
        set_up_job(pipe, pipe->jobs[i]);
    return res;
}

/* Drop the newest of several streams on a device whose decoders left too little memory. */
static bool refuse_newest(void *user, struct sac_job *job)
{
    sac_pipeline          *pipe = user;
    struct sac_stream_run *newest = NULL;
    int                    open = 0;
    for (int i = 0; i < pipe->stream_count; i++)
        if (pipe->streams[i].job == job && pipe->streams[i].src) {
            newest = &pipe->streams[i];
            open++;
        }
    if (open < 2)
        return false;
    sac_stream_fail(newest,
                    SAC_FAIL(pipe->ctx, SAC_ERR_MEMORY,
                             "%s has no memory for networks and trackers beside the decoders of %d "
                             "streams",
                             sac_device_name(job->dev), open));
    sac_stream_close(newest);
    sac_job_forget(job, newest->params.source.stream_id);
    return true;
}

sac_result sac_pipeline_prepare_jobs(sac_pipeline *pipe)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < pipe->job_count && res == SAC_OK; i++)
        res = sac_inference_prepare(pipe->jobs[i]->inference);
    return res;
}

sac_result sac_pipeline_open_devices(sac_pipeline *pipe)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < pipe->job_count && res == SAC_OK; i++)
        res = sac_job_open_device(pipe->jobs[i]);
    return res;
}

/* The first alone: the networks of the others find in the cache what it measured. */
sac_result sac_pipeline_open_jobs(sac_pipeline *pipe)
{
    return sac_inference_open(pipe->jobs[0]->inference);
}

void sac_pipeline_recall_jobs(sac_pipeline *pipe)
{
    sac_inference_recall(pipe->jobs[0]->inference);
}

sac_result sac_pipeline_start_jobs(sac_pipeline *pipe)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < pipe->job_count && res == SAC_OK; i++) {
        pipe->jobs[i]->give_way = refuse_newest;
        pipe->jobs[i]->give_way_user = pipe;
        res = sac_job_start(pipe->jobs[i]);
    }
    return res;
}

/* The first is destroyed last: the others use its timers and trace. */
void sac_pipeline_destroy_jobs(sac_pipeline *pipe)
{
    for (int i = pipe->job_count - 1; i >= 0; i--)
        sac_job_destroy(&pipe->jobs[i]);
}

/* ---- figures ---- */

static void add_shard(sac_pipeline *pipe, int i, const struct sac_pipeline_stats *one,
                      struct sac_pipeline_stats *out)
{
    struct sac_shard_stats *shard = &out->shard[out->shard_count++];
    *shard = (struct sac_shard_stats){.streams = sac_pipeline_streams_of(pipe, i),
                                      .frames = one->frames,
                                      .fps = one->fps,
                                      .batch = one->batch,
                                      .memory_bytes_peak = one->pool.bytes_peak,
                                      .gpu = one->gpu};
    snprintf(shard->device, sizeof shard->device, "%s", sac_device_name(pipe->jobs[i]->dev));
}

/* From the first frame of any to the last. */
static void set_rate(const sac_pipeline *pipe, struct sac_pipeline_stats *out)
{
    int64_t first = 0, last = 0;
    for (int i = 0; i < pipe->job_count; i++) {
        int64_t begun = atomic_load(&pipe->jobs[i]->books->first_ns);
        first = !first || (begun && begun < first) ? begun : first;
        last = SAC_MAX(last, (int64_t)atomic_load(&pipe->jobs[i]->books->last_ns));
    }
    out->elapsed_s = last > first ? (double)(last - first) * 1e-9 : 0;
    sac_figures_set_rates(out);
}

void sac_pipeline_add_jobs(sac_pipeline *pipe, struct sac_pipeline_stats *out)
{
    sac_job_get_stats(pipe->jobs[0], out);
    if (pipe->job_count == 1)
        return;
    struct sac_pipeline_stats *one = sac_new(struct sac_pipeline_stats);
    if (!one) /* then the figures are the first job's */
        return;
    *one = *out;
    add_shard(pipe, 0, one, out);
    for (int i = 1; i < pipe->job_count; i++) {
        sac_job_get_stats(pipe->jobs[i], one);
        sac_figures_add(&sac_figures_run, out, one);
        add_shard(pipe, i, one, out);
    }
    sac_free(one);
    set_rate(pipe, out);
    size_t used = strlen(out->device);
    snprintf(out->device + used, sizeof out->device - used, " and %d more", pipe->job_count - 1);
}
