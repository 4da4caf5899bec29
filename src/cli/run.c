/* SPDX-License-Identifier: Apache-2.0 */
#include "run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "inputs.h"
#include "interrupt.h"
#include "live.h"
#include "outputs.h"
#include "processes.h"
#include "profile.h"
#include "summary.h"
#include "term.h"

/* ---- settings to parameters ---- */

/* The options are in the parameters already; this is what follows from several of them. */
static void fill_params(struct settings *s, const char *input, struct sac_pipeline_params *params)
{
    const int threads = s->run.job.device_params.threads;
    *params = s->run;
    params->job.device_params.zero_copy_strict = strcmp(s->zero_copy, "strict") == 0;
    params->input = input;
    if (params->fps > 0)
        params->source.fps = params->fps;
    params->source.round_trip = strcmp(s->zero_copy, "off") == 0;
    if (!params->source.decode_threads)
        params->source.decode_threads = threads;
    params->source.keep_packets = params->video_out && s->audio;
    if (!params->sink.threads)
        params->sink.threads = threads;
    params->disk_cache_bytes = (uint64_t)(s->disk_cache_gb * 1e9);
    params->job.monitor = s->watched ? &s->monitor : NULL;
    params->reads = (const char *const *)&s->config;
    params->read_count = 1;
    if (s->profile) {
        params->reads = s->profile->reads;
        params->read_count = sizeof s->profile->reads / sizeof *s->profile->reads;
        params->writes = s->profile->writes;
        params->write_count = sizeof s->profile->writes / sizeof *s->profile->writes;
    }
}

/* ---- several GPUs ---- */

enum { GPUS_MAX = 16 };
struct gpus {
    char        name[GPUS_MAX][16];
    const char *list[GPUS_MAX];
    int         count;
};

/* "0,1" to cuda:0, cuda:1. */
static int read_gpus(const struct settings *s, struct gpus *out, struct fault *fault)
{
    out->count = 0;
    if (!s->gpus)
        return STATUS_OK;
    if (strcmp(s->run.job.device, "auto") != 0 && strcmp(s->run.job.device, "cuda") != 0)
        return fault_usage(fault, "--gpus and --device %s exclude each other", s->run.job.device);
    for (const char *at = s->gpus; *at;) {
        char *end;
        long  number = strtol(at, &end, 10);
        if (end == at || number < 0 || number > 255 || (*end && (*end != ',' || !end[1])) ||
            out->count == GPUS_MAX)
            return fault_usage(fault, "--gpus '%s': it takes up to %d GPU numbers, such as 0,1",
                               s->gpus, (int)GPUS_MAX);
        snprintf(out->name[out->count], sizeof out->name[0], "cuda:%ld", number);
        for (int i = 0; i < out->count; i++)
            if (strcmp(out->name[i], out->name[out->count]) == 0)
                return fault_usage(fault, "--gpus '%s': GPU %ld is listed twice", s->gpus, number);
        out->list[out->count] = out->name[out->count];
        out->count++;
        at = *end ? end + 1 : end;
    }
    return STATUS_OK;
}

/* ---- stopping early ---- */

/* Asked while inputs are opened: opening may wait for a pipe or a camera, before there is a
 * pipeline to stop. */
static int was_interrupted(void *user)
{
    (void)user;
    return interrupt_came();
}

/* ---- the progress line ---- */

enum { PROGRESS_EVERY_MS = 200 };

struct progress {
    sac_pipeline   *pipe;
    struct timespec shown;
};

static void format_time(double seconds, char *buf, size_t size)
{
    long whole = lround(fmax(seconds, 0));
    if (whole >= 3600)
        snprintf(buf, size, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
    else
        snprintf(buf, size, "%ld:%02ld", whole / 60, whole % 60);
}

static void format_progress(const struct sac_pipeline_stats *stats, char *buf, size_t size)
{
    char head[64], eta[32] = "";
    snprintf(head, sizeof head, "frame %lld", (long long)stats->frames);
    if (stats->frames_total > stats->frames && stats->fps > 0) {
        format_time((double)(stats->frames_total - stats->frames) / stats->fps, eta, sizeof eta);
        snprintf(head, sizeof head, "frame %lld of %lld, %d %%", (long long)stats->frames,
                 (long long)stats->frames_total, (int)(100 * stats->frames / stats->frames_total));
    }
    int used =
        snprintf(buf, size, "%s, %.1f frames/s%s%s", head, stats->fps, *eta ? ", ETA " : "", eta);
    if (!stats->segmenter[0] && used > 0 && (size_t)used < size)
        snprintf(buf + used, size - (size_t)used, ", %d object%s", stats->objects,
                 stats->objects == 1 ? "" : "s");
}

static int show_progress(void *user, const sac_frame *frame, const struct sac_track *tracks,
                         size_t n)
{
    struct progress *progress = user;
    struct timespec  now;
    (void)frame;
    (void)tracks;
    (void)n;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if ((now.tv_sec - progress->shown.tv_sec) * 1000 +
            (now.tv_nsec - progress->shown.tv_nsec) / 1000000 <
        PROGRESS_EVERY_MS)
        return 0;
    progress->shown = now;
    struct sac_pipeline_stats stats;
    char                      line[128];
    sac_pipeline_get_stats(progress->pipe, &stats);
    format_progress(&stats, line, sizeof line);
    term_progress(line);
    return 0;
}

/* Results printed to the same terminal would be mixed with the progress line. */
static bool shares_terminal(const struct settings *s)
{
    bool standard = (s->run.job.trace_out && is_standard(s->run.job.trace_out)) ||
                    (s->run.job.stats_out && is_standard(s->run.job.stats_out));
    for (size_t i = 0; i < output_kind_count; i++) {
        const char *path = output_setting(&output_kinds[i], s);
        standard |= path && is_standard(path);
    }
    return standard && isatty(STDOUT_FILENO);
}

/* ---- the run ---- */

/* The summary has the level "info": a log level below that hides it too. */
static bool is_verbose(const struct settings *s)
{
    return strcmp(s->log_level, "debug") == 0 || strcmp(s->log_level, "trace") == 0;
}

static bool is_talkative(const struct settings *s)
{
    return strcmp(s->log_level, "info") == 0 || is_verbose(s);
}

static int finish(const struct settings *s, const struct inputs *inputs, sac_context *ctx,
                  sac_pipeline *pipe, sac_result res, struct fault *fault)
{
    bool                      many = inputs->count > 1;
    struct sac_pipeline_stats stats;
    sac_pipeline_get_stats(pipe, &stats);
    if (s->profile)
        profile_take(s->profile, pipe, &stats);
    if (is_talkative(s)) {
        summary_print(&stats, stderr);
        if (many)
            summary_print_streams(pipe, &stats, (int)inputs->count, stderr);
        summary_print_files(pipe, &stats, s, inputs, stderr);
    }
    if (is_verbose(s)) {
        summary_print_details(&stats, stderr);
        summary_print_monitor(sac_pipeline_monitor(pipe), stderr);
    }
    if ((res == SAC_ERR_CANCELLED || (many && res != SAC_OK)) && interrupt_came()) {
        fault_failure(fault, "interrupted: %lld frame%s done%s", (long long)stats.frames,
                      stats.frames == 1 ? " is" : "s are",
                      stats.outputs_whole ? "; the output files are complete up to there" : "");
        return STATUS_INTERRUPTED;
    }
    return res == SAC_OK ? STATUS_OK : fault_library(fault, ctx, res);
}

/* SAC_ERR_ARG: an option that only the library can check: --device, --classes, file names, ... */
static int fail_create(const sac_context *ctx, sac_result res, struct fault *fault)
{
    const int status = fault_library(fault, ctx, res);
    return res == SAC_ERR_ARG ? STATUS_USAGE : status;
}

static int run(struct settings *s, const struct inputs *inputs, sac_context *ctx,
               struct sac_pipeline_params *params, struct fault *fault)
{
    struct progress progress = {0};
    if (s->progress && term_is_terminal() && !shares_terminal(s)) {
        params->on_frame = show_progress;
        params->on_frame_user = &progress;
    }
    interrupt_stops();
    live_hold();
    params->source.give_up = was_interrupted;
    sac_result res = sac_pipeline_create(ctx, params, &progress.pipe);
    if (res == SAC_ERR_CANCELLED && interrupt_came()) {
        fault_failure(fault, "interrupted while opening; nothing was written");
        return STATUS_INTERRUPTED;
    }
    if (res != SAC_OK)
        return fail_create(ctx, res, fault);
    live_start(progress.pipe);
    interrupt_watch(progress.pipe);
    res = sac_pipeline_run(progress.pipe);
    interrupt_watch(NULL);
    live_stop();
    if (params->on_frame)
        term_progress(NULL);
    int status = finish(s, inputs, ctx, progress.pipe, res, fault);
    sac_pipeline_destroy(&progress.pipe);
    return status;
}

/* ---- the verb ---- */

static void use_inputs(const struct inputs *inputs, struct sac_pipeline_params *params)
{
    params->source.pictures = inputs->pictures;
    params->source.picture_count = (int)inputs->picture_count;
    if (inputs->count > 1) {
        params->streams = inputs->streams;
        params->stream_count = (int)inputs->count;
    }
}

/* One input, in a process of its own. */
static int run_alone(struct settings *s, struct inputs *one, sac_context *ctx, struct fault *fault)
{
    struct sac_pipeline_params params;
    fill_params(s, one->streams->input, &params);
    params.job.device_params.threads = processes_threads(s);
    return run(s, one, ctx, &params, fault);
}

static int run_planned(struct settings *s, sac_context *ctx, struct inputs *inputs,
                       struct fault *fault)
{
    struct sac_pipeline_params params;
    struct gpus                gpus;
    int                        status = processes_check(s, inputs, fault);
    if (status != STATUS_OK)
        return status;
    fill_params(s, s->args.count ? s->args.items[0] : NULL, &params);
    use_inputs(inputs, &params);
    status = read_gpus(s, &gpus, fault);
    params.devices = gpus.list;
    params.device_count = gpus.count;
    if (status != STATUS_OK)
        return status;
    sac_result res = sac_pipeline_check_files(ctx, &params);
    if (res != SAC_OK) /* before a folder is created */
        return fail_create(ctx, res, fault);
    status = inputs_make_folders(s, inputs, fault);
    if (status == STATUS_OK && s->processes > 1 && inputs->count > 1)
        status = processes_run(s, inputs, ctx, run_alone, fault);
    else if (status == STATUS_OK)
        status = run(s, inputs, ctx, &params, fault);
    if (status != STATUS_OK)
        inputs_remove_folders(inputs);
    return status;
}

int run_videos(struct settings *s, struct fault *fault)
{
    struct inputs inputs = {0};
    sac_context  *ctx = NULL;
    int           status = inputs_plan(s, &inputs, fault);
    if (status == STATUS_OK)
        status = term_context(s, &ctx, fault);
    if (status == STATUS_OK)
        status = run_planned(s, ctx, &inputs, fault);
    inputs_finish(&inputs);
    sac_context_destroy(&ctx);
    return status;
}
