/* SPDX-License-Identifier: Apache-2.0 */
/* The pull form: a reading thread feeds the job, a sink thread takes its results, and run() waits.
 *
 * How a run ends: the reading thread meets the end of the input (or a fault, or a cancelled source)
 * and ends the job; what is inside goes its way; the sink thread meets the end of the job, finishes
 * the outputs and wakes run(). A stop, and a fault of an output, only make the reading end earlier. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/output.h"

enum { OUTPUTS_MAX = 3 };

struct sac_pipeline {
    sac_context               *ctx;
    struct sac_arena           strings; /* behind params */
    struct sac_pipeline_params params;
    struct sac_job            *job;
    struct sac_rows            rows; /* with params.detections */
    sac_source                *src;  /* NULL without a video */
    struct sac_source_info     info;
    struct sac_output_setup    setup;
    struct sac_output         *outputs[OUTPUTS_MAX]; /* the sink thread's during a run */
    int                        output_count;
    char                       encoder[64];

    pthread_t        read_thread, sink_thread;
    bool             ran;
    sem_t            wake;     /* posted when one of the flags below was set */
    atomic_bool      stopped;  /* the user asks to end */
    atomic_bool      failed;   /* an output, or a frame on its way */
    atomic_bool      finished; /* the outputs are */
    atomic_bool      cancelled; /* a stop came before the end: frames are missing */
    struct sac_fault fault;
};

struct sac_pipeline_params sac_pipeline_params_default(void)
{
    struct sac_pipeline_params params = {
        .job = {.device = "auto",
                .device_params = sac_device_params_default(),
                .detector = "auto",
                .reid = "auto",
                .detector_params = sac_detector_params_default(),
                .reid_params = sac_embedder_params_default(),
                .tracker = sac_tracker_params_default(SAC_TRACKER_BOTSORT),
                .timeout_ms = 10,
                .inference_batch_max = 1,
                .queue_length = 4,
                .timers = 1},
        .source = sac_source_params_default(),
        .sink = sac_sink_params_default(),
        .draw_trails = 1,
        .trail_s = 2,
    };
    params.source.keep_packets = 1;
    return params;
}

/* ---- creation ---- */

static sac_result copy_params(sac_pipeline *pipe, const struct sac_pipeline_params *params)
{
    pipe->params = *params;
    const char **strings[] = {
        &pipe->params.input,         &pipe->params.detections,   &pipe->params.video_out,
        &pipe->params.jsonl_out,     &pipe->params.mot_out,      &pipe->params.command,
        &pipe->params.sink.encoder,  &pipe->params.sink.preset,
    };
    for (size_t i = 0; i < SAC_COUNT(strings); i++) {
        if (!*strings[i])
            continue;
        *strings[i] = sac_arena_strndup(&pipe->strings, *strings[i], strlen(*strings[i]));
        if (!*strings[i])
            return SAC_FAIL(pipe->ctx, SAC_ERR_MEMORY, "no memory for the pipeline's parameters");
    }
    return SAC_OK;
}

static sac_result open_rows(sac_pipeline *pipe)
{
    struct sac_pipeline_params *p = &pipe->params;
    sac_result res = sac_rows_open(pipe->ctx, p->detections, &pipe->rows);
    p->job.detector = NULL;
    if (res != SAC_OK || p->input)
        return res;
    if (p->video_out)
        return SAC_FAIL(pipe->ctx, SAC_ERR_ARG,
                        "'%s': an annotated video needs the video that it shows", p->video_out);
    if (p->job.reid && strcmp(p->job.reid, "auto") != 0 && strcmp(p->job.reid, "none") != 0)
        return SAC_FAIL(pipe->ctx, SAC_ERR_ARG, "'%s': appearance needs the video, not only '%s'",
                        p->job.reid, p->detections);
    if (p->fps <= 0)
        p->fps = pipe->rows.fps;
    if (!(p->fps > 0 && isfinite(p->fps)))
        return SAC_FAIL(pipe->ctx, SAC_ERR_ARG,
                        "'%s': without a video the frames per second must be given, or a "
                        "seqinfo.ini beside it",
                        p->detections);
    return SAC_OK;
}

static sac_result open_input(sac_pipeline *pipe)
{
    struct sac_source_params params = pipe->params.source;
    if (!pipe->params.input)
        return SAC_OK;
    if (!pipe->params.video_out)
        params.keep_packets = 0; /* nobody would take them */
    if (pipe->job->measures) {
        params.on_decoded = sac_job_on_decoded;
        params.on_decoded_user = pipe->job;
    }
    sac_result res = sac_source_open(pipe->job->dev, pipe->params.input, &params, &pipe->src);
    if (res == SAC_OK)
        sac_source_describe(pipe->src, &pipe->info);
    return res;
}

static sac_result add_output(sac_pipeline *pipe, const char *path,
                             sac_result (*create)(const struct sac_output_setup *setup,
                                                  struct sac_output **out))
{
    if (!path)
        return SAC_OK;
    sac_result res = create(&pipe->setup, &pipe->outputs[pipe->output_count]);
    if (res == SAC_OK)
        pipe->output_count++;
    return res;
}

static sac_result open_outputs(sac_pipeline *pipe)
{
    const struct sac_pipeline_params *p = &pipe->params;
    pipe->setup = (struct sac_output_setup){
        .ctx = pipe->ctx,
        .job = pipe->job,
        .params = p,
        .src = pipe->src,
        .width = pipe->info.width,
        .height = pipe->info.height,
        .fps = pipe->src ? pipe->info.fps : p->fps,
    };
    sac_result res = add_output(pipe, p->video_out, sac_video_create);
    if (res == SAC_OK && p->video_out)
        snprintf(pipe->encoder, sizeof pipe->encoder, "%s", sac_video_encoder(pipe->outputs[0]));
    if (res == SAC_OK)
        res = add_output(pipe, p->jsonl_out, sac_jsonl_create);
    if (res == SAC_OK)
        res = add_output(pipe, p->mot_out, sac_mot_sink_create);
    return res;
}

static const char *or_none(const char *text)
{
    return text && text[0] ? text : "none";
}

/* The first line of every run says what it runs on: nothing falls back in silence. */
static void log_setup(sac_pipeline *pipe)
{
    struct sac_pipeline_stats stats;
    char                      input[64] = "";
    sac_pipeline_get_stats(pipe, &stats);
    if (pipe->src)
        snprintf(input, sizeof input, " (%.31s %dx%d)", pipe->info.codec, pipe->info.width,
                 pipe->info.height);
    sac_log(pipe->ctx, SAC_LOG_INFO,
            "device %s; engine %s; precision %s; detector %s; head %s; tracker %s; reid %s; "
            "input %s%s; encoder %s",
            stats.device, or_none(stats.engine), or_none(stats.precision),
            or_none(pipe->params.detections ? pipe->params.detections : stats.detector),
            or_none(stats.head), stats.tracker, or_none(stats.reid), or_none(pipe->params.input),
            input, or_none(stats.encoder));
}

static sac_result pipeline_init(sac_pipeline *pipe, const struct sac_pipeline_params *params)
{
    sac_result res = copy_params(pipe, params);
    if (res == SAC_OK && !params->input && !params->detections)
        res = SAC_FAIL(pipe->ctx, SAC_ERR_ARG, "no input: give a video, or a file of detections");
    if (res == SAC_OK && params->detections)
        res = open_rows(pipe);
    if (res == SAC_OK)
        res = sac_job_create(pipe->ctx, &pipe->params.job, 1, &pipe->job);
    if (res == SAC_OK)
        res = open_input(pipe);
    if (res == SAC_OK)
        res = sac_job_start(pipe->job, params->detections ? &pipe->rows : NULL);
    if (res == SAC_OK)
        res = open_outputs(pipe);
    if (res == SAC_OK)
        log_setup(pipe);
    return res;
}

sac_result sac_pipeline_create(sac_context *ctx, const struct sac_pipeline_params *params,
                               sac_pipeline **out)
{
    const struct sac_pipeline_params defaults = sac_pipeline_params_default();
    sac_pipeline                    *pipe = sac_new(sac_pipeline);
    if (!pipe)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for a pipeline");
    pipe->ctx = ctx;
    sem_init(&pipe->wake, 0, 0);
    sac_fault_init(&pipe->fault);
    sac_result res = pipeline_init(pipe, params ? params : &defaults);
    if (res == SAC_OK)
        *out = pipe;
    else
        sac_pipeline_destroy(&pipe);
    return res;
}

/* ---- the reading thread ---- */

static void set_flag(sac_pipeline *pipe, atomic_bool *flag)
{
    atomic_store(flag, true);
    sem_post(&pipe->wake);
}

static sac_result read_frame(sac_pipeline *pipe, struct sac_item *item)
{
    sac_result res = sac_source_read_wait(pipe->src, &item->frame);
    if (res != SAC_OK)
        return res;
    item->number = item->frame->number;
    item->pts_us = item->frame->pts_us;
    item->stream_id = item->frame->stream_id;
    return SAC_OK;
}

/* Without a video, time is counted in frames. */
static sac_result next_number(sac_pipeline *pipe, int64_t number, struct sac_item *item)
{
    if (number >= pipe->rows.frames)
        return SAC_EOS;
    item->number = number;
    item->pts_us = llround((double)number * 1e6 / pipe->params.fps);
    item->stream_id = pipe->params.source.stream_id;
    return SAC_OK;
}

static bool should_end(sac_pipeline *pipe)
{
    return atomic_load(&pipe->stopped) || atomic_load(&pipe->failed);
}

static sac_result feed(sac_pipeline *pipe)
{
    sac_result res = SAC_OK;
    for (int64_t number = 0; res == SAC_OK && !should_end(pipe); number++) {
        struct sac_item *item = sac_job_item(pipe->job);
        if (!item)
            return SAC_ERR_MEMORY;
        res = pipe->src ? read_frame(pipe, item) : next_number(pipe, number, item);
        if (res == SAC_OK)
            res = sac_job_push_wait(pipe->job, item);
        else
            sac_job_recycle(pipe->job, item);
    }
    return res;
}

static void *read_main(void *arg)
{
    sac_pipeline *pipe = arg;
    sac_result    res = feed(pipe);
    if (res != SAC_EOS && res != SAC_ERR_CANCELLED)
        sac_fault_keep(&pipe->fault, pipe->ctx, res);
    sac_job_end(pipe->job);
    return NULL;
}

/* ---- the sink thread ---- */

static void drop_output(sac_pipeline *pipe, int i)
{
    pipe->outputs[i]->ops->destroy(pipe->outputs[i]);
    pipe->outputs[i] = pipe->outputs[--pipe->output_count];
}

/* An output that fails goes; the others are finished with what they have. */
static sac_result write_outputs(sac_pipeline *pipe, struct sac_item *item)
{
    struct sac_job *job = pipe->job;
    for (int i = 0; i < pipe->output_count; i++) {
        struct sac_output *out = pipe->outputs[i];
        int64_t begun = out->ops->times_itself ? 0 : sac_job_begin(job, SAC_STAGE_WRITE);
        sac_result res = out->ops->write(out, item);
        if (!out->ops->times_itself)
            sac_job_finish(job, SAC_STAGE_WRITE, begun, item);
        if (res != SAC_OK) {
            sac_fault_keep(&pipe->fault, pipe->ctx, res);
            drop_output(pipe, i);
            return res;
        }
    }
    return SAC_OK;
}

/* One frame's results to everybody who waits for them; false: no more should come. */
static bool deliver(sac_pipeline *pipe, struct sac_item *item)
{
    const struct sac_pipeline_params *p = &pipe->params;
    if (item->status != SAC_OK) {
        SAC_FAIL(pipe->ctx, item->status, "%s", item->why);
        sac_fault_keep(&pipe->fault, pipe->ctx, item->status);
        return false;
    }
    bool       go_on = !p->on_frame || p->on_frame(p->on_frame_user, item->frame, item->tracks,
                                                   item->track_count) == 0;
    sac_result res = write_outputs(pipe, item);
    if (!go_on) {
        atomic_store(&pipe->cancelled, true);
        set_flag(pipe, &pipe->stopped);
    }
    return go_on && res == SAC_OK;
}

static void finish_outputs(sac_pipeline *pipe)
{
    while (pipe->output_count > 0) {
        struct sac_output *out = pipe->outputs[0];
        sac_fault_keep(&pipe->fault, pipe->ctx, out->ops->finish(out));
        drop_output(pipe, 0);
    }
}

static void *sink_main(void *arg)
{
    sac_pipeline    *pipe = arg;
    struct sac_item *item;
    bool             open = true;
    while (sac_job_pop_wait(pipe->job, -1, &item) == SAC_OK) {
        if (open && !deliver(pipe, item)) {
            open = false;
            set_flag(pipe, &pipe->failed);
        }
        sac_job_recycle(pipe->job, item);
    }
    finish_outputs(pipe);
    set_flag(pipe, &pipe->finished);
    return NULL;
}

/* ---- the run ---- */

/* Let the reading end: the source stops waiting, and what waits for the detector is dropped. */
static void end_early(sac_pipeline *pipe)
{
    sac_job_discard(pipe->job);
    if (pipe->src)
        sac_source_cancel(pipe->src);
}

static void wait_finished(sac_pipeline *pipe)
{
    while (!atomic_load(&pipe->finished)) {
        while (sem_wait(&pipe->wake) != 0 && errno == EINTR)
            ;
        if (atomic_load(&pipe->finished) || !should_end(pipe))
            continue;
        if (atomic_load(&pipe->stopped))
            atomic_store(&pipe->cancelled, true);
        end_early(pipe);
    }
}

static sac_result start_threads(sac_pipeline *pipe)
{
    sac_result res =
        sac_thread_start(pipe->ctx, &pipe->sink_thread, "sac-sink", sink_main, pipe);
    if (res != SAC_OK)
        return res;
    res = sac_thread_start(pipe->ctx, &pipe->read_thread, "sac-read", read_main, pipe);
    if (res != SAC_OK) {
        sac_job_end(pipe->job);
        pthread_join(pipe->sink_thread, NULL);
    }
    return res;
}

sac_result sac_pipeline_run(sac_pipeline *pipe)
{
    if (pipe->ran)
        return SAC_FAIL(pipe->ctx, SAC_ERR_ARG, "pipeline: a second run; create another");
    pipe->ran = true;
    sac_result res = start_threads(pipe);
    if (res != SAC_OK)
        return res;
    wait_finished(pipe);
    pthread_join(pipe->read_thread, NULL);
    pthread_join(pipe->sink_thread, NULL);
    struct sac_pipeline_stats stats;
    sac_pipeline_get_stats(pipe, &stats);
    sac_fault_keep(&pipe->fault, pipe->ctx, sac_job_finish_reports(pipe->job, &stats));
    res = sac_fault_raise(&pipe->fault, pipe->ctx);
    if (res == SAC_OK && atomic_load(&pipe->cancelled))
        res = SAC_FAIL(pipe->ctx, SAC_ERR_CANCELLED, "stopped by request");
    return res;
}

void sac_pipeline_stop(sac_pipeline *pipe)
{
    set_flag(pipe, &pipe->stopped);
}

const char *sac_pipeline_class_name(const sac_pipeline *pipe, int class_id)
{
    return sac_job_class_name(pipe->job, class_id);
}

void sac_pipeline_get_stats(sac_pipeline *pipe, struct sac_pipeline_stats *out)
{
    sac_job_get_stats(pipe->job, out);
    snprintf(out->encoder, sizeof out->encoder, "%s", pipe->encoder);
    out->frames_total = pipe->src ? pipe->info.frames : pipe->rows.frames;
    if (pipe->src)
        sac_source_get_stats(pipe->src, &out->source);
    sac_job_judge(pipe->job, out);
}

void sac_pipeline_destroy(sac_pipeline **pipe_at)
{
    sac_pipeline *pipe = pipe_at ? *pipe_at : NULL;
    if (!pipe)
        return;
    *pipe_at = NULL;
    while (pipe->output_count > 0)
        drop_output(pipe, 0);
    sac_source_close(&pipe->src);
    sac_job_destroy(&pipe->job);
    sac_rows_finish(&pipe->rows);
    sac_fault_finish(&pipe->fault);
    sem_destroy(&pipe->wake);
    sac_arena_finish(&pipe->strings);
    sac_free(pipe);
}
