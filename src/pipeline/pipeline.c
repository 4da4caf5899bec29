/* SPDX-License-Identifier: Apache-2.0 */
/* The pull form: opens all that a run needs, and runs it. */
#include <limits.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "observe/figures.h"
#include "observe/gpu.h"
#include "observe/run_watch.h"
#include "pipeline/inference.h"
#include "pipeline/pipeline.h"
#include "pipeline/replay.h"
#include "pipeline/task.h"

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
                .queue_length = 4,
                .skip_max = 8,
                .timers = 1,
                .memory_target = 0.85f},
        .source = sac_source_params_default(),
        .sink = sac_sink_params_default(),
        .labels = SAC_LABEL_AUTO,
        .clip_boxes = 1,
        .draw_trails = 1,
        .trail_s = 2,
    };
    params.source.keep_packets = 1;
    params.job.reid_params.batch_max = 0;
    return params;
}

struct sac_segment_params sac_segment_params_default(void)
{
    return (struct sac_segment_params){.model = "auto",
                                       .segmenter = sac_segmenter_params_default(),
                                       .colour = {0, 177, 64},
                                       .strength = 0.5f,
                                       .region_every = 25,
                                       .region_margin = 0.25f,
                                       .small_confidence = 0.95f};
}

/* ---- parameters ---- */

static const char *const as_names[SAC_SEGMENT_AS_COUNT] = {
    [SAC_SEGMENT_OVERLAY] = "overlay",
    [SAC_SEGMENT_MASK] = "mask",
    [SAC_SEGMENT_CUTOUT] = "cutout",
    [SAC_SEGMENT_ALPHA] = "alpha",
    [SAC_SEGMENT_ALPHA_PACKED] = "alpha-packed",
    [SAC_SEGMENT_CLASSES] = "classes",
    [SAC_SEGMENT_PNG] = "png",
    [SAC_SEGMENT_COCO] = "coco",
};

const char *sac_segment_as_name(enum sac_segment_as as)
{
    return (unsigned)as < SAC_SEGMENT_AS_COUNT ? as_names[as] : "unknown";
}

sac_result sac_labels_parse(const char *text, unsigned *out)
{
    SAC_NEEDS(NULL, text);
    SAC_NEEDS(NULL, out);
    static const struct {
        const char *name;
        unsigned    bits;
        bool        alone;
    } words[] = {{"id", SAC_LABEL_ID, false},
                 {"class", SAC_LABEL_CLASS, false},
                 {"score", SAC_LABEL_SCORE, false},
                 {"auto", SAC_LABEL_AUTO, true},
                 {"none", 0, true}};
    unsigned labels = 0;
    for (const char *at = text;; at++) {
        const size_t length = strcspn(at, ",");
        size_t       i = 0;
        while (i < SAC_COUNT(words) &&
               (strlen(words[i].name) != length || strncmp(words[i].name, at, length) != 0))
            i++;
        if (i == SAC_COUNT(words) || (words[i].alone && text[length]))
            return SAC_ERR_ARG;
        labels |= words[i].bits;
        at += length;
        if (!*at)
            break;
    }
    *out = labels;
    return SAC_OK;
}

static bool hold(sac_pipeline *pipe, const char **string)
{
    if (*string)
        *string = sac_arena_strndup(&pipe->strings, *string, strlen(*string));
    return *string != NULL;
}

/* An address as it is shown, without secrets. */
static const char *hold_name(sac_pipeline *pipe, const char *address)
{
    const size_t size = sac_hide_secrets(address, NULL, 0) + 1;
    char        *name = sac_arena_alloc(&pipe->strings, size);
    if (name)
        sac_hide_secrets(address, name, size);
    return name;
}

static sac_result copy_params(sac_pipeline *pipe, const struct sac_pipeline_params *params)
{
    pipe->params = *params;
    const char **devices = sac_arena_alloc(
        &pipe->strings, (size_t)SAC_MAX(params->device_count, 1) * sizeof(*devices));
    for (int i = 0; devices && i < params->device_count; i++) {
        devices[i] = params->devices[i];
        if (!hold(pipe, &devices[i]))
            devices = NULL;
    }
    if (!devices)
        return SAC_FAIL(pipe->ctx, SAC_ERR_MEMORY, "no memory for the pipeline's parameters");
    pipe->params.devices = devices;
    pipe->params.reads = NULL; /* used only by create's check */
    pipe->params.read_count = 0;
    pipe->params.writes = NULL;
    pipe->params.write_count = 0;
    const char **strings[] = {
        &pipe->params.input,        &pipe->params.detections,  &pipe->params.command,
        &pipe->params.sink.encoder, &pipe->params.sink.preset, &pipe->params.disk_cache,
    };
    bool held = true;
    for (size_t i = 0; i < SAC_COUNT(strings); i++)
        held = held && (!*strings[i] || hold(pipe, strings[i]));
    for (int i = 0; i < SAC_OUTPUT_ROWS; i++) {
        const char **path = sac_output_path(&pipe->params, i);
        held = held && (!*path || hold(pipe, path));
    }
    return held ? SAC_OK
                : SAC_FAIL(pipe->ctx, SAC_ERR_MEMORY, "no memory for the pipeline's parameters");
}

static sac_result copy_stream(sac_pipeline *pipe, const struct sac_stream_params *params, int index)
{
    struct sac_stream_params p = *params;
    bool held = (!p.input || hold(pipe, &p.input)) && (!p.detections || hold(pipe, &p.detections));
    for (int i = 0; i < SAC_OUTPUT_ROWS; i++) {
        const char **path = sac_output_path_of_stream(&p, i);
        held = held && (!*path || hold(pipe, path));
    }
    if (!held)
        return SAC_FAIL(pipe->ctx, SAC_ERR_MEMORY, "no memory for the pipeline's parameters");
    sac_stream_init(&pipe->streams[index], pipe, &p, index);
    pipe->streams[index].name = hold_name(pipe, p.input ? p.input : p.detections);
    if (!pipe->streams[index].name)
        return SAC_FAIL(pipe->ctx, SAC_ERR_MEMORY, "no memory for the pipeline's parameters");
    return SAC_OK;
}

static sac_result create_streams(sac_pipeline *pipe, const struct sac_stream_params *params, int n)
{
    sac_result res = SAC_OK;
    pipe->streams = sac_calloc((size_t)n, sizeof *pipe->streams);
    if (!pipe->streams)
        return SAC_FAIL(pipe->ctx, SAC_ERR_MEMORY, "no memory for %d inputs", n);
    pipe->stream_count = n;
    for (int i = 0; i < n && res == SAC_OK; i++)
        res = copy_stream(pipe, &params[i], i);
    return res;
}

/* All or none of the inputs have ready-made detections: they decide whether there is a detector. */
static sac_result check_streams(sac_context *ctx, const struct sac_stream_params *params, int n)
{
    for (int i = 0; i < n; i++) {
        if (!params[i].input && !params[i].detections)
            return SAC_FAIL(ctx, SAC_ERR_ARG, "no input: give a video, or a file of detections");
        if (!params[i].detections != !params[0].detections)
            return SAC_FAIL(ctx, SAC_ERR_ARG, "'%s': of several inputs all or none have detections",
                            params[i].input);
    }
    return SAC_OK;
}

/* Before an input is opened. */
static sac_result check_videos(sac_context *ctx, const struct sac_pipeline_params *params,
                               const struct sac_stream_params *list, int n)
{
    const struct sac_segment_params *segment = params->job.segment;
    struct sac_sink_params           sink = params->sink;
    sac_result                       res = SAC_OK;
    if (segment && (segment->as == SAC_SEGMENT_PNG || segment->as == SAC_SEGMENT_COCO))
        return SAC_OK; /* no video */
    sink.alpha = segment && segment->as == SAC_SEGMENT_ALPHA;
    for (int i = 0; i < n && res == SAC_OK; i++)
        if (list[i].video_out)
            res = sac_sink_check(ctx, list[i].video_out, &sink);
    return res;
}

/* A run that segments takes pixels and writes mattes. */
static sac_result check_segment(sac_context *ctx, const struct sac_pipeline_params *params,
                                const struct sac_stream_params *list, int n)
{
    for (int i = 0; i < n && params->job.segment; i++) {
        struct sac_stream_params p = list[i];
        if (p.detections)
            return SAC_FAIL(ctx, SAC_ERR_ARG, "'%s': mattes need no detections", p.detections);
        for (int row = 0; row < SAC_OUTPUT_ROWS; row++)
            if (*sac_output_path_of_stream(&p, row) && !sac_output_rows[row].create_mattes)
                return SAC_FAIL(ctx, SAC_ERR_ARG, "'%s': a run that makes mattes has no tracks",
                                *sac_output_path_of_stream(&p, row));
    }
    return SAC_OK;
}

static sac_result set_up_streams(sac_pipeline *pipe, const struct sac_pipeline_params *params)
{
    const struct sac_stream_params  one = sac_pipeline_only_stream(params);
    bool                            many = params->stream_count > 0;
    const struct sac_stream_params *list = many ? params->streams : &one;
    int                             n = many ? params->stream_count : 1;
    sac_result                      res = sac_pipeline_check_files(pipe->ctx, params);
    if (res == SAC_OK)
        res = check_streams(pipe->ctx, list, n);
    if (res == SAC_OK)
        res = check_segment(pipe->ctx, params, list, n);
    if (res == SAC_OK)
        res = check_videos(pipe->ctx, params, list, n);
    return res == SAC_OK ? create_streams(pipe, list, n) : res;
}

/* ---- opening ---- */

/* The fault to return: the only stream's, or how many of several met one. */
static sac_result raise_fault(sac_pipeline *pipe)
{
    int                    failed = 0;
    struct sac_stream_run *first = NULL;
    for (int i = pipe->stream_count - 1; i >= 0; i--)
        if (pipe->streams[i].fault.res != SAC_OK) {
            first = &pipe->streams[i];
            failed++;
        }
    if (!first)
        return SAC_OK;
    sac_result res = sac_fault_raise(&first->fault, pipe->ctx);
    return pipe->stream_count == 1
               ? res
               : sac_fail_prefix(pipe->ctx, res, "%d of %d inputs failed: ", failed,
                                 pipe->stream_count);
}

/* A step of opening, for each stream. A single stream must succeed; of several, those that fail are
 * left out, unless all fail. */
static sac_result for_each_stream(sac_pipeline *pipe, sac_result (*step)(struct sac_stream_run *s))
{
    int failed = 0;
    for (int i = 0; i < pipe->stream_count; i++) {
        struct sac_stream_run *s = &pipe->streams[i];
        sac_result             res = s->fault.res == SAC_OK ? step(s) : s->fault.res;
        if (res != SAC_OK && (pipe->stream_count == 1 || res == SAC_ERR_CANCELLED))
            return res;
        if (res != SAC_OK && s->fault.res == SAC_OK) {
            sac_stream_fail(s, res);
            sac_stream_close(s); /* release what it has opened */
        }
        failed += res != SAC_OK;
    }
    return failed < pipe->stream_count ? SAC_OK : raise_fault(pipe);
}

/* Cameras answer late and decoders are made slowly, so several are opened at once. */
enum { OPENED_AT_ONCE = 8 };

static void open_one_input(void *arg, int piece, int worker)
{
    sac_pipeline          *pipe = arg;
    struct sac_stream_run *s = &pipe->streams[piece];
    (void)worker;
    if (s->fault.res == SAC_OK)
        sac_fault_keep(&s->unopened, pipe->ctx, sac_stream_open_input(s));
}

/* Behind the pool, so that faults are logged in the inputs' order. */
static sac_result take_opened(struct sac_stream_run *s)
{
    return sac_fault_raise(&s->unopened, s->pipe->ctx);
}

/* An input that found no memory, perhaps as the networks were opened beside it. */
static sac_result take_or_retry(struct sac_stream_run *s)
{
    if (!sac_is_out_of_memory(s->unopened.res))
        return take_opened(s);
    sac_log(s->pipe->ctx, SAC_LOG_INFO,
            "%s: there is no memory for it beside the networks; it is opened before them", s->name);
    sac_pipeline_recall_jobs(s->pipe);
    sac_stream_reset(s);
    return sac_stream_open_input(s);
}

/* With a limit on memory one after the other: the newest are those that it has no room for. */
static bool has_limit(const sac_pipeline *pipe)
{
    const struct sac_device_params *p = &pipe->params.job.device_params;
    return p->memory_limit_bytes || p->vram_limit_bytes;
}

static sac_result open_inputs(sac_pipeline *pipe)
{
    struct sac_worker_pool *pool = NULL;
    const int               threads = SAC_MIN(pipe->stream_count, (int)OPENED_AT_ONCE);
    if (has_limit(pipe))
        return for_each_stream(pipe, sac_stream_open_input);
    sac_result res = sac_worker_pool_create(pipe->ctx, threads, &pool);
    if (res == SAC_OK)
        sac_worker_pool_run(pool, pipe->stream_count, open_one_input, pipe);
    sac_worker_pool_destroy(&pool);
    return res == SAC_OK ? for_each_stream(pipe, take_or_retry) : res;
}

/* A driver, a device's decoders and its networks take about as long each, and networks are read
 * while the driver starts. The faults of the device come first, then those of the inputs, then
 * those of the networks. */
static sac_result open_devices_and_inputs(sac_pipeline *pipe)
{
    sac_result res = sac_pipeline_prepare_jobs(pipe);
    if (res == SAC_OK && !has_limit(pipe))
        res = sac_pipeline_open_jobs(pipe);
    if (res == SAC_OK && !pipe->devices_open)
        res = sac_pipeline_open_devices(pipe);
    return res == SAC_OK ? open_inputs(pipe) : res;
}

/* ---- the disk cache ---- */

/* A job whose streams all have their boxes needs no detector; one that lacks no embeddings either
 * needs no network. */
static void choose_networks(sac_pipeline *pipe, struct sac_job *job)
{
    bool boxes = true, looks = true;
    int  dim = 0;
    for (int i = 0; i < pipe->stream_count; i++) {
        const struct sac_stream_run *s = &pipe->streams[i];
        if (s->job != job || s->fault.res != SAC_OK)
            continue;
        const struct sac_replay *replay = s->lane.replay;
        boxes &= replay && replay->boxes;
        looks &= replay && replay->boxes && !sac_replay_lacks_looks(replay, job);
        dim = replay && replay->looks ? replay->dim : dim;
    }
    if (boxes && job->replay)
        job->run->task = &sac_task_track_rows;
    job->replay_dim = boxes && looks ? dim : 0;
}

/* What an input has there is known once the device is: so that comes before all else. */
static sac_result look_up(sac_pipeline *pipe)
{
    sac_result res = sac_replay_open_cache(pipe->ctx, &pipe->params, &pipe->cache);
    if (res == SAC_OK && !pipe->cache && pipe->params.disk_cache_frames)
        sac_log(pipe->ctx, SAC_LOG_WARN, "prepared frames are kept in a disk cache, and it is off");
    if (res != SAC_OK || !pipe->cache || pipe->jobs[0]->run->task != &sac_task_track)
        return res;
    res = sac_pipeline_open_devices(pipe);
    pipe->devices_open = res == SAC_OK;
    if (res == SAC_OK)
        res = for_each_stream(pipe, sac_stream_look_up);
    for (int i = 0; i < pipe->job_count && res == SAC_OK; i++)
        choose_networks(pipe, pipe->jobs[i]);
    return res;
}

static void record(sac_pipeline *pipe)
{
    for (int i = 0; i < pipe->stream_count; i++)
        if (pipe->streams[i].ready && pipe->streams[i].lane.replay)
            sac_stream_record(&pipe->streams[i]);
}

/* A step that may find no memory on the device: then the newest stream is dropped, which may be s.
 */
static sac_result with_room(struct sac_stream_run *s, sac_result (*step)(struct sac_stream_run *s))
{
    sac_result res = step(s);
    while (sac_job_make_way(s->job, res)) {
        if (s->fault.res != SAC_OK)
            return s->fault.res;
        res = step(s);
    }
    return res;
}

static sac_result prepare(struct sac_stream_run *s)
{
    return with_room(s, sac_stream_prepare);
}

static sac_result open_outputs(struct sac_stream_run *s)
{
    return with_room(s, sac_stream_open_outputs);
}

static const char *or_none(const char *text)
{
    return text && text[0] ? text : "none";
}

/* "person_det.onnx" */
static const char *file_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void describe_input(const sac_pipeline *pipe, char *buf, size_t size)
{
    const struct sac_stream_run *s = &pipe->streams[0];
    int                          used = 0, ready = 0;
    for (int i = 0; i < pipe->stream_count; i++)
        ready += pipe->streams[i].ready;
    if (pipe->stream_count > 1)
        used = snprintf(buf, size, "%d input%s", ready, ready == 1 ? "" : "s");
    else
        used = snprintf(buf, size, "%s", s->name);
    if (pipe->stream_count == 1 && s->src && used > 0 && (size_t)used < size)
        snprintf(buf + used, size - (size_t)used, " (%.31s %dx%d)", s->info.codec, s->info.width,
                 s->info.height);
}

/* The first line of every run names what runs where, so no fallback goes unnoticed. The second line
 * is for debugging. */
static void log_setup(sac_pipeline *pipe)
{
    struct sac_pipeline_stats stats;
    char                      input[512];
    const char               *detections = pipe->streams[0].params.detections;
    sac_pipeline_get_stats(pipe, &stats);
    describe_input(pipe, input, sizeof input);
    if (stats.segmenter[0])
        sac_log(pipe->ctx, SAC_LOG_INFO, "%s on %s: mattes of %s", input, stats.device,
                file_of(stats.segmenter));
    else
        sac_log(pipe->ctx, SAC_LOG_INFO, "%s on %s: %s %s, tracker %s, reid %s", input,
                stats.device, detections ? "boxes of" : "detector",
                detections ? detections : file_of(stats.detector), stats.tracker,
                or_none(file_of(stats.reid)));
    sac_log(pipe->ctx, SAC_LOG_DEBUG, "engine %s; precision %s; head %s; decoder %s; encoder %s",
            or_none(stats.engine), or_none(stats.precision), or_none(stats.head),
            or_none(pipe->streams[0].info.decoder), or_none(stats.encoder));
    if (stats.classes[0])
        sac_log(pipe->ctx, SAC_LOG_INFO, "classes %s%s", stats.classes,
                stats.class_kept < stats.class_count - (stats.segmenter[0] != '\0')
                    ? "; --classes all keeps all"
                    : "");
}

static const struct sac_task *task_of(const sac_pipeline *pipe)
{
    if (pipe->params.job.segment)
        return &sac_task_segment;
    return pipe->streams[0].params.detections ? &sac_task_track_rows : &sac_task_track;
}

static sac_result pipeline_init(sac_pipeline *pipe, const struct sac_pipeline_params *params)
{
    sac_result res = copy_params(pipe, params);
    if (res == SAC_OK)
        res = set_up_streams(pipe, params);
    bool ready_made = res == SAC_OK && pipe->streams[0].params.detections;
    if (ready_made) {
        pipe->params.job.detector = NULL;
        res = for_each_stream(pipe, sac_stream_open_rows);
    }
    if (res == SAC_OK)
        res = sac_pipeline_create_jobs(pipe, task_of(pipe));
    if (res == SAC_OK)
        pipe->params.job.segment = pipe->jobs[0]->segment; /* the caller's may go */
    if (res == SAC_OK)
        res = look_up(pipe);
    if (res == SAC_OK)
        res = open_devices_and_inputs(pipe);
    for (int i = 0; i < pipe->stream_count && res == SAC_OK; i++)
        pipe->streams[i].job->inference->eager |= pipe->streams[i].info.live != 0;
    if (res == SAC_OK)
        res = sac_pipeline_start_jobs(pipe);
    if (res == SAC_OK)
        res = sac_pipeline_check_opened(pipe, params);
    if (res == SAC_OK)
        res = for_each_stream(pipe, prepare);
    if (res == SAC_OK)
        res = for_each_stream(pipe, open_outputs);
    if (res == SAC_OK)
        record(pipe);
    if (res == SAC_OK)
        log_setup(pipe);
    return res;
}

static sac_result check_params(sac_context *ctx, const struct sac_pipeline_params *p)
{
    const struct sac_number numbers[] = {
        {"stream_count", p->stream_count, 0, INT_MAX},
        {"device_count", p->device_count, 0, INT_MAX},
        {"read_count", p->read_count, 0, INT_MAX},
        {"write_count", p->write_count, 0, INT_MAX},
        {"fps", p->fps, 0, 1e6},
        {"labels", p->labels, 0, SAC_LABEL_ID | SAC_LABEL_CLASS | SAC_LABEL_SCORE | SAC_LABEL_AUTO},
        {"trail_s", p->trail_s, 0, 3600},
        {"disk_cache_frames", p->disk_cache_frames, 0, 1},
    };
    SAC_NEEDS_ARRAY(ctx, p->streams, p->stream_count);
    SAC_NEEDS_ARRAY(ctx, p->devices, p->device_count);
    SAC_NEEDS_ARRAY(ctx, p->reads, p->read_count);
    SAC_NEEDS_ARRAY(ctx, p->writes, p->write_count);
    for (int i = 0; i < p->stream_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "stream %d", i);
        SAC_NEEDS_NO_LATER_FIELD(ctx, &p->streams[i], name);
    }
    for (int i = 0; i < p->device_count; i++)
        SAC_NEEDS(ctx, p->devices[i]);
    return sac_numbers_check(ctx, "pipeline", numbers, SAC_COUNT(numbers));
}

sac_result sac_pipeline_create(sac_context *ctx, const struct sac_pipeline_params *params,
                               sac_pipeline **out)
{
    SAC_NEEDS(ctx, ctx);
    SAC_NEEDS(ctx, out);
    SAC_NEEDS_NO_LATER_FIELD(ctx, params, "pipeline parameters");
    const struct sac_pipeline_params defaults = sac_pipeline_params_default();
    const int64_t                    begun = sac_time_ns();
    sac_pipeline                    *pipe = sac_new(sac_pipeline);
    if (!pipe)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for a pipeline");
    pipe->ctx = ctx;
    sem_init(&pipe->wake, 0, 0);
    pthread_mutex_init(&pipe->on_frame_lock, NULL);
    params = params ? params : &defaults;
    sac_result res = check_params(ctx, params);
    if (res == SAC_OK)
        res = pipeline_init(pipe, params);
    for (int i = 0; i < pipe->job_count && res == SAC_OK; i++)
        sac_job_started(pipe->jobs[i], begun);
    if (res == SAC_OK)
        *out = pipe;
    else
        sac_pipeline_destroy(&pipe);
    return res;
}

/* ---- the run ---- */

static void start_streams(sac_pipeline *pipe)
{
    for (int i = 0; i < pipe->stream_count; i++) {
        struct sac_stream_run *s = &pipe->streams[i];
        if (!s->ready)
            continue;
        sac_stream_fail(s, sac_stream_start(s));
        if (!s->sink_started) /* none of its threads runs */
            atomic_store(&s->finished, true);
    }
}

/* Tell the streams that should end to do so; true once all have ended. */
static bool look_after_streams(sac_pipeline *pipe)
{
    bool stopped = atomic_load(&pipe->stopped), finished = true;
    for (int i = 0; i < pipe->stream_count; i++)
        finished &= !pipe->streams[i].ready || atomic_load(&pipe->streams[i].finished);
    if (finished)
        return true;
    if (stopped) {
        atomic_store(&pipe->cancelled, true);
        for (int i = 0; i < pipe->job_count; i++)
            sac_job_discard(pipe->jobs[i]);
    }
    for (int i = 0; i < pipe->stream_count; i++)
        if (pipe->streams[i].ready && (stopped || atomic_load(&pipe->streams[i].failed)))
            sac_stream_end_early(&pipe->streams[i]);
    return false;
}

/* ---- its monitor ---- */

static void feed_stats(void *pipe, struct sac_pipeline_stats *out)
{
    sac_pipeline_get_stats(pipe, out);
}

static int feed_streams(void *user)
{
    const sac_pipeline *pipe = user;
    int                 running = 0;
    for (int i = 0; i < pipe->stream_count; i++)
        running += pipe->streams[i].ready && !atomic_load(&pipe->streams[i].finished);
    return running;
}

/* Of cameras and what is read like one, while all that run are. Nobody films less than a frame a
 * second or more than 1,000: such rates are a container's time base. */
static double feed_due(void *user)
{
    const sac_pipeline *pipe = user;
    double              due = 0;
    for (int i = 0; i < pipe->stream_count; i++) {
        const struct sac_stream_run *s = &pipe->streams[i];
        if (!s->ready || atomic_load(&s->finished))
            continue;
        if (!(pipe->params.realtime || s->info.live) || !(s->info.fps >= 1 && s->info.fps <= 1000))
            return 0;
        due += s->info.fps; /* of the frames that are used */
    }
    return due;
}

static int feed_processes(void *user, int shard, struct sac_nvml_process *out, int max)
{
    const sac_pipeline *pipe = user;
    return shard < pipe->job_count
               ? sac_gpu_watch_processes(pipe->jobs[shard]->books->gpu, out, max)
               : 0;
}

/* A run that can't be watched runs all the same. */
static void watch(sac_pipeline *pipe)
{
    const struct sac_run_feed feed = {feed_stats, feed_streams, pipe, feed_due, feed_processes};
    char                      title[256];
    bool                      live = pipe->params.realtime != 0;
    for (int i = 0; i < pipe->stream_count; i++)
        live |= pipe->streams[i].info.live != 0;
    describe_input(pipe, title, sizeof title);
    if (sac_job_watch(pipe->jobs[0], &feed, title, live) != SAC_OK) {
        sac_log(pipe->ctx, SAC_LOG_WARN, "there are no means to watch the run");
        sac_error_clear(pipe->ctx);
    }
}

sac_monitor *sac_pipeline_monitor(sac_pipeline *pipe)
{
    return pipe && pipe->job_count ? sac_run_watch_monitor(pipe->jobs[0]->books->watch) : NULL;
}

static sac_result write_reports(sac_pipeline *pipe)
{
    struct sac_pipeline_stats stats;
    struct sac_stream_stats  *streams = sac_calloc((size_t)pipe->stream_count, sizeof *streams);
    if (!streams)
        return SAC_FAIL(pipe->ctx, SAC_ERR_MEMORY, "no memory for the statistics");
    sac_pipeline_get_stats(pipe, &stats);
    for (int i = 0; i < pipe->stream_count; i++)
        sac_pipeline_get_stream_stats(pipe, i, &streams[i]);
    sac_result res =
        sac_job_finish_reports(pipe->jobs, pipe->job_count, &stats, streams, pipe->stream_count);
    sac_free(streams);
    return res;
}

sac_result sac_pipeline_run(sac_pipeline *pipe)
{
    SAC_NEEDS(NULL, pipe);
    if (pipe->ran)
        return SAC_FAIL(pipe->ctx, SAC_ERR_ARG, "pipeline: a second run; create another");
    pipe->ran = true;
    start_streams(pipe);
    watch(pipe);
    while (!look_after_streams(pipe))
        while (sem_wait(&pipe->wake) != 0 && errno == EINTR)
            ;
    sac_job_watch_end(pipe->jobs[0]);
    for (int i = 0; i < pipe->stream_count; i++)
        sac_stream_join(&pipe->streams[i]);
    sac_result reported = write_reports(pipe);
    char       why[512];
    sac_context_last_error(pipe->ctx, why, sizeof why);
    sac_result res = raise_fault(pipe);
    if (res == SAC_OK && reported != SAC_OK)
        res = SAC_FAIL(pipe->ctx, reported, "%s", why);
    if (res == SAC_OK && atomic_load(&pipe->cancelled))
        res = SAC_FAIL(pipe->ctx, SAC_ERR_CANCELLED, "stopped by request");
    return res;
}

void sac_pipeline_stop(sac_pipeline *pipe)
{
    if (!pipe)
        return;
    atomic_store(&pipe->stopped, true);
    sem_post(&pipe->wake);
}

/* ---- questions ---- */

const char *sac_pipeline_class_name(const sac_pipeline *pipe, int class_id)
{
    if (!pipe)
        return NULL;
    return sac_job_class_name(pipe->jobs[0], class_id);
}

void sac_pipeline_dump_live(const sac_pipeline *pipe, void (*fn)(void *user, const char *line),
                            void               *user)
{
    if (!pipe || !fn)
        return;
    for (int i = 0; i < pipe->job_count; i++)
        sac_device_dump_live(pipe->jobs[i]->dev, fn, user);
}

int sac_pipeline_get_allocations(const sac_pipeline *pipe, struct sac_allocation *out, int max)
{
    if (!pipe || !out || max < 1)
        return 0;
    return sac_jobs_get_allocations(pipe->jobs, pipe->job_count, out, max);
}

static int64_t frames_total(const struct sac_stream_run *s)
{
    if (s->lane.replay && s->lane.replay->boxes)
        return s->lane.replay->frames;
    return s->src ? s->info.frames : s->params.input ? 0 : sac_stream_rows_total(s);
}

/* Report the queues of all sinks as one, and the frames' wait for room as a wait for the first
 * queue. */
static void add_queues(sac_pipeline *pipe, struct sac_pipeline_stats *out)
{
    struct sac_queue_info *first = &out->queue[0], *write = &out->queue[out->queue_count++];
    *write = (struct sac_queue_info){.name = "write"};
    uint64_t ended = 0;
    for (int i = 0; i < pipe->stream_count; i++) {
        struct sac_stream_run *s = &pipe->streams[i];
        if (!s->ready)
            continue;
        ended += atomic_load(&s->finished);
        struct sac_queue_info one = sac_job_queue_info(s->lane.done, write->name);
        one.passed = (uint64_t)atomic_load(&s->lane.frames_done);
        sac_figures_add(&sac_figures_queue, write, &one);
        first->full += atomic_load(&s->room_waits);
        first->push_wait_ms += (double)atomic_load(&s->room_wait_ns) * 1e-6;
    }
    for (int i = 0; i < 2; i++) /* a stream's last item is not a frame */
        out->queue[i].passed -= SAC_MIN(ended, out->queue[i].passed);
    /* A frame that waited for room and then for the queue counts once. */
    first->full = SAC_MIN(first->full, first->passed);
}

void sac_pipeline_get_stats(sac_pipeline *pipe, struct sac_pipeline_stats *out)
{
    if (!pipe || !out)
        return;
    int  running = 0;
    bool known = true;
    sac_pipeline_add_jobs(pipe, out);
    add_queues(pipe, out);
    for (int i = 0; i < pipe->stream_count; i++) {
        struct sac_stream_run *s = &pipe->streams[i];
        if (!s->ready)
            continue;
        running++;
        out->outputs_whole |= atomic_load(&s->whole);
        if (!out->encoder[0])
            snprintf(out->encoder, sizeof out->encoder, "%s", s->encoder);
        out->frames_total += frames_total(s);
        known &= frames_total(s) > 0;
        struct sac_source_stats source = {0};
        if (s->src)
            sac_source_get_stats(s->src, &source);
        sac_figures_add(&sac_figures_source, &out->source, &source);
    }
    if (!known) /* unknown for one: unknown for all */
        out->frames_total = 0;
    sac_job_judge(pipe->jobs[0], running, out);
}

void sac_pipeline_get_stream_stats(sac_pipeline *pipe, int stream, struct sac_stream_stats *out)
{
    if (!pipe || !out || stream < 0 || stream >= pipe->stream_count)
        return;
    struct sac_stream_run *s = &pipe->streams[stream];
    int64_t first_ns = atomic_load(&s->lane.first_ns), last_ns = atomic_load(&s->lane.last_ns);
    *out = (struct sac_stream_stats){
        .stream_id = s->params.source.stream_id,
        .frames = atomic_load(&s->lane.frames_done),
        .frames_total = frames_total(s),
        .detections = atomic_load(&s->lane.detections),
        .tracks = atomic_load(&s->lane.tracks),
        .outputs_whole = atomic_load(&s->whole),
    };
    snprintf(out->input, sizeof out->input, "%.255s", s->name);
    snprintf(out->encoder, sizeof out->encoder, "%s", s->encoder);
    if (last_ns > first_ns) {
        out->elapsed_s = (double)(last_ns - first_ns) * 1e-9;
        out->fps = (double)out->frames / out->elapsed_s;
    }
    pthread_mutex_lock(&s->fault.lock);
    out->status = s->fault.res;
    snprintf(out->why, sizeof out->why, "%.511s", s->fault.res == SAC_OK ? "" : s->fault.sentence);
    pthread_mutex_unlock(&s->fault.lock);
    if (!s->src)
        return;
    struct sac_source_info info;
    sac_source_get_stats(s->src, &out->source);
    sac_source_describe(s->src, &info);
    snprintf(out->decoder, sizeof out->decoder, "%s", info.decoder);
    snprintf(out->decoder_note, sizeof out->decoder_note, "%s", info.decoder_note);
    out->surface_bytes = info.surface_bytes;
}

void sac_pipeline_destroy(sac_pipeline **pipe_at)
{
    sac_pipeline *pipe = pipe_at ? *pipe_at : NULL;
    if (!pipe)
        return;
    *pipe_at = NULL;
    for (int i = 0; i < pipe->stream_count; i++)
        sac_stream_close(&pipe->streams[i]);
    sac_pipeline_destroy_jobs(pipe);
    for (int i = 0; i < pipe->stream_count; i++)
        sac_stream_finish(&pipe->streams[i]);
    sac_cache_close(&pipe->cache);
    sac_free(pipe->streams);
    pthread_mutex_destroy(&pipe->on_frame_lock);
    sem_destroy(&pipe->wake);
    sac_arena_finish(&pipe->strings);
    sac_free(pipe);
}
